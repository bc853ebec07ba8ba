// Callers who spend the credit of accounts at nodes picked by chance, and their own count of what
// they were answered: what the books are compared with.
import { setTimeout as sleep } from "node:timers/promises";
import { SERVED_BY } from "../../fakes/balancer.ts";
import type { NodeProcess } from "./node-process.ts";
import { markOf } from "./provider.ts";

/** An account of a schedule. */
export interface SpendingAccount {
  /** What its calls carry. */
  readonly caller: number;
  readonly id: string;
  readonly key: string;
}

/** What the callers of one account saw. */
export interface SeenCalls {
  /** Answered with a result. */
  answered: number;
  /** The sum of their prices, nano-USD; some are free. */
  answeredN: bigint;
  /** The connection was lost, or no answer came in time: charged or not. */
  unknown: number;
  /** Of these, connections that were lost. */
  lost: number;
  /** Refused by the service, or by a machine without a service, by code. */
  readonly refused: Map<string, number>;
  /** The last answer that refused a call; empty = none did. */
  lastRefusal: string;
}

/** An answered call: which process served it, and when the caller had it. */
export interface AnsweredCall {
  readonly node: string;
  /** Empty = the node is one process. */
  readonly worker: string;
  readonly atMs: number;
}

/** Calls of a schedule, and what came of them. */
export interface CallRecord {
  readonly answers: readonly AnsweredCall[];
  /** Answers to something else than what was asked. */
  readonly wrong: readonly string[];
  seenBy(caller: number): SeenCalls;
  /** Sends one call, under a number of its own; without a key where its text is empty. */
  call(
    node: Pick<NodeProcess, "id" | "url">,
    account: Pick<SpendingAccount, "caller" | "key">,
    path?: string,
  ): Promise<CallResult>;
}

/** How traffic is made. */
export interface TrafficPlan {
  readonly nodes: readonly NodeProcess[];
  readonly accounts: readonly SpendingAccount[];
  readonly random: () => number;
  readonly callers: number;
  /** Longest pause of a caller between two calls. */
  readonly pauseMs: number;
}

/** The result of one call. `servedBy`: the node that a balancer passed it to; empty = none said. */
export type CallResult = { readonly number: number; readonly servedBy: string } & (
  | { readonly kind: "answered"; readonly priceN: bigint; readonly worker: string }
  | { readonly kind: "wrong"; readonly text: string }
  /** `text`: the answer; absent = there was none. */
  | { readonly kind: "refused"; readonly code: string; readonly text?: string }
  /** `isLate` = no answer came in time; otherwise the connection was lost. */
  | { readonly kind: "unknown"; readonly isLate: boolean }
);

/** The price of a call to a managed profile, nano-USD: 3 compute units. */
export const CALL_N = 15_000n;
/** A call is given up after this; its outcome is unknown then. */
const CALL_MS = 1_500;
/** A caller leaves a node alone for this long after it gave no answer. */
const AVOIDED_MS = 1_000;

/** Begins a record of calls that are given up after a time. */
export function createCallRecord(callMs = CALL_MS): CallRecord {
  const seen = new Map<number, SeenCalls>();
  const answers: AnsweredCall[] = [];
  const wrong: string[] = [];
  let number = 0;
  const seenBy = (caller: number): SeenCalls => {
    const known = seen.get(caller) ?? emptyCount();
    seen.set(caller, known);
    return known;
  };
  return {
    answers,
    wrong,
    seenBy,
    async call(node, account, path = "ethereum") {
      const result = await send(node, { ...account, path, number: ++number, callMs });
      note(seenBy(account.caller), result);
      if (result.kind === "wrong") wrong.push(result.text);
      if (result.kind === "answered")
        answers.push({ node: node.id, worker: result.worker, atMs: performance.now() });
      return result;
    },
  };
}

/** Starts callers; the returned function resolves when all are idle. */
export function startTraffic(record: CallRecord, plan: TrafficPlan): () => Promise<void> {
  let isRunning = true;
  const callOnce = async (avoided: Map<string, number>): Promise<void> => {
    const usable = plan.nodes.filter(({ id }) => (avoided.get(id) ?? 0) <= performance.now());
    const node = pick(usable.length === 0 ? plan.nodes : usable, plan.random);
    const result = await record.call(node, pick(plan.accounts, plan.random));
    if (result.kind === "unknown" || (result.kind === "refused" && result.code === NOT_CONNECTED))
      avoided.set(node.id, performance.now() + AVOIDED_MS);
  };
  const loops = Array.from({ length: plan.callers }, async () => {
    const avoided = new Map<string, number>();
    while (isRunning) {
      await callOnce(avoided);
      await sleep(plan.random() * plan.pauseMs);
    }
  });
  return async () => {
    isRunning = false;
    await Promise.all(loops);
  };
}

function emptyCount(): SeenCalls {
  return { answered: 0, answeredN: 0n, unknown: 0, lost: 0, refused: new Map(), lastRefusal: "" };
}

function note(count: SeenCalls, result: CallResult): void {
  switch (result.kind) {
    case "answered":
      count.answered++;
      count.answeredN += result.priceN;
      return;
    case "refused":
      count.refused.set(result.code, (count.refused.get(result.code) ?? 0) + 1);
      if (result.text !== undefined) count.lastRefusal = result.text;
      return;
    case "unknown":
      count.unknown++;
      if (!result.isLate) count.lost++;
      return;
    case "wrong":
      return;
  }
}

/** The code of calls to a node that does not run. */
export const NOT_CONNECTED = "not connected";

/** What is sent. */
interface SentCall extends Pick<SpendingAccount, "key" | "caller"> {
  readonly path: string;
  readonly number: number;
  readonly callMs: number;
}

/** One call with a key in its path, marked with its caller and number. */
async function send(node: Pick<NodeProcess, "url">, call: SentCall): Promise<CallResult> {
  const { key, caller, path, number } = call;
  const data = markOf(caller, number);
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: number,
    method: "eth_call",
    params: [{ to: ZERO_ADDRESS, data }, "latest"],
  });
  let servedBy = "";
  try {
    const response = await fetch(`${node.url}/rpc/${key === "" ? "" : `k/${key}/`}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      signal: AbortSignal.timeout(call.callMs),
    });
    servedBy = response.headers.get(SERVED_BY) ?? "";
    const text = await response.text();
    if (!text.startsWith("{"))
      return { number, servedBy, kind: "refused", code: `HTTP ${response.status}`, text };
    const answer: { result?: unknown; error?: { data?: { code?: string }; message?: string } } =
      JSON.parse(text);
    if (answer.error !== undefined) {
      const { data: why, message } = answer.error;
      return { number, servedBy, kind: "refused", code: why?.code ?? String(message), text };
    }
    if (answer.result !== data)
      return { number, servedBy, kind: "wrong", text: `${data} was answered ${text}` };
    const worker = /^req-[0-9a-z]+-(\d+)-/.exec(response.headers.get("x-svc-request-id") ?? "");
    return {
      number,
      servedBy,
      kind: "answered",
      priceN: isFree(response.headers) ? 0n : CALL_N,
      worker: worker?.[1] ?? "",
    };
  } catch (error) {
    return isRefusedConnection(error)
      ? { number, servedBy, kind: "refused", code: NOT_CONNECTED }
      : { number, servedBy, kind: "unknown", isLate: isTimeout(error) };
  }
}

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;

/**
 * Calls to Custom profiles, and those in the days of grace: where the clock of the node at which a
 * balance ran out is ahead, there are some even if the grace is none.
 */
function isFree(headers: Headers): boolean {
  return headers.get("x-svc-access") === "custom" || headers.get("x-svc-fallback") === "payment";
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "TimeoutError";
}

function isRefusedConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { cause } = error;
  return cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED";
}

/** One of several by chance; throws where there is none. */
export function pick<T>(items: readonly T[], random: () => number): T {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}
