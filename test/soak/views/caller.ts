// One caller of the checker: reads the newest state over and over, now and then in batches, sends
// transactions of its own account and asks what became of them. Notes everything in the history.
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { keccak256 } from "viem/utils";
import { blockOfResult, type ViewChain } from "./chain.ts";
import type { NodeClient, WireAnswer, WireCall } from "./client.ts";
import type { Observation, Operation, SessionKind } from "./history.ts";
import { VIEW_CHAIN_ID } from "./provider.ts";

/** A caller. */
export interface CallerPlan {
  /** The promises that it is given, and the session of each at a node. */
  readonly sessions: readonly CallerSession[];
  /** One client for each node that it goes to, by the number of the node. */
  readonly clients: ReadonlyMap<number, NodeClient>;
  /** Whether it sends back the mark that answers carry. */
  readonly sendsMark: boolean;
  readonly account: PrivateKeyAccount;
  readonly chain: ViewChain;
  readonly random: () => number;
  readonly habits: Habits;
  readonly note: (operation: Operation) => void;
}

/** A promise, and the name of the session that it holds for. */
export interface CallerSession {
  readonly kind: SessionKind;
  readonly nameAt: (node: number) => string;
}

/** How often a caller does what, as shares of its requests. */
export interface Habits {
  readonly sends: number;
  readonly asksOfOwn: number;
  readonly batches: number;
  /** Longest pause between two requests. */
  readonly pauseMs: number;
}

const LEAST_BATCH = 3;
const MOST_BATCH = 8;
/** The newest own transactions that are asked for. */
const RECENT_WRITES = 4;
/** Reads of state go to so many addresses, so that callers share some answers and not all. */
const ADDRESSES = 6;
const GAS = 21_000n;
const GAS_PRICE = 1_000_000_000n;

/** Runs a caller until `take` grants no more reads; `take` is asked for so many. */
export async function runCaller(plan: CallerPlan, take: (reads: number) => boolean): Promise<void> {
  const { clients, random, habits } = plan;
  const nodes = [...clients.keys()];
  const state: CallerState = { mark: null, accepted: [], next: null };
  for (;;) {
    const asked = await nextRequest(plan, state);
    if (!take(asked.length)) return;
    const node = nodes[Math.floor(random() * nodes.length)] ?? 0;
    await perform(plan, state, { node, asked });
    if (habits.pauseMs > 0)
      await new Promise((resolve) => setTimeout(resolve, random() * habits.pauseMs));
  }
}

interface CallerState {
  /** What the last answer said that was seen. */
  mark: string | null;
  /** Accepted transactions, in the order of their nonces. */
  readonly accepted: string[];
  /** What is asked next: for a transaction just sent, or to send it again where that failed. */
  next: Asked | null;
}

/** A call, and what its result shows. */
interface Asked {
  readonly call: WireCall;
  readonly read: (result: unknown, chain: ViewChain) => Observation | null;
  /** What an error to it shows, where that is something. */
  readonly onError?: Observation;
}

async function perform(
  plan: CallerPlan,
  state: CallerState,
  { node, asked }: { readonly node: number; readonly asked: readonly Asked[] },
): Promise<void> {
  const client = plan.clients.get(node);
  if (client === undefined) return;
  const startMs = performance.now();
  const sent = await client.send(
    asked.map(({ call }) => call),
    plan.sendsMark ? state.mark : null,
  );
  state.mark = sent.seen;
  state.next = null;
  const seen = asked.flatMap((one, at) => observed(plan.chain, one, sent.answers?.[at]));
  const operation = { node, startMs, endMs: performance.now(), isBatch: asked.length > 1, seen };
  for (const { kind, nameAt } of plan.sessions)
    plan.note({ ...operation, kind, session: nameAt(node) });
  noteSent(state, asked, seen);
}

function observed(
  chain: ViewChain,
  { call, read, onError }: Asked,
  answer: WireAnswer | undefined,
): readonly Observation[] {
  const { method } = call;
  const failed = (code: string): readonly Observation[] => [
    ...(onError === undefined ? [] : [onError]),
    { kind: "failed", method, code },
  ];
  if (answer === undefined) return failed("connection lost");
  if (answer.error !== undefined) return failed(errorName(answer.error));
  const seen = read(answer.result, chain);
  return seen === null ? failed(`not understood: ${JSON.stringify(answer.result)}`) : [seen];
}

function errorName({ code, message, data }: NonNullable<WireAnswer["error"]>): string {
  return data?.code ?? `${code} ${message}`;
}

function noteSent(state: CallerState, asked: readonly Asked[], seen: readonly Observation[]): void {
  for (const it of seen) {
    if (it.kind !== "sent") continue;
    const isThere = it.isAccepted || isMined(seen);
    state.next = isThere ? transactionRead(it.hash) : (asked[0] ?? null);
    if (isThere) state.accepted.push(it.hash);
  }
}

/** A transaction that was mined after its sending had failed. */
function isMined(seen: readonly Observation[]): boolean {
  return seen.some((it) => it.kind === "failed" && it.code.endsWith("nonce too low"));
}

async function nextRequest(plan: CallerPlan, state: CallerState): Promise<readonly Asked[]> {
  const { random, habits } = plan;
  if (state.next !== null) return [state.next];
  const draw = random();
  if (draw < habits.sends) return [await send(plan, state.accepted.length)];
  if (draw < habits.sends + habits.asksOfOwn) return [ofOwn(plan, state)];
  if (draw > 1 - habits.batches)
    return Array.from(
      { length: LEAST_BATCH + Math.floor(random() * (MOST_BATCH - LEAST_BATCH + 1)) },
      () => newest(random),
    );
  return [newest(random)];
}

/** A read of the newest state. */
function newest(random: () => number): Asked {
  const address = addressOf(Math.floor(random() * ADDRESSES));
  switch (Math.floor(random() * NEWEST_KINDS)) {
    case 0:
      return { call: { method: "eth_blockNumber", params: [] }, read: readHeight };
    case 1:
      return stateRead("eth_call", [{ to: address, data: "0x01" }, "latest"]);
    case 2:
      return stateRead("eth_call", [{ to: address, data: "0x02" }]);
    case 3:
      return stateRead("eth_getBalance", [address, "latest"]);
    case 4:
      return stateRead("eth_getStorageAt", [address, "0x0", "latest"]);
    default:
      return {
        call: { method: "eth_getBlockByNumber", params: ["latest", false] },
        read: readBlock,
      };
  }
}

const NEWEST_KINDS = 6;

function stateRead(method: string, params: readonly unknown[]): Asked {
  return {
    call: { method, params },
    read(result, { blocks }) {
      const block = blockOfResult(blocks, result);
      return block === undefined ? null : { kind: "block", method, block };
    },
  };
}

function readHeight(result: unknown): Observation {
  return { kind: "height", method: "eth_blockNumber", number: Number(result) };
}

function readBlock(result: unknown, { blocks }: ViewChain): Observation | null {
  const block = blocks.byHash(memberOf(result, "hash"));
  return block === undefined ? null : { kind: "block", method: "eth_getBlockByNumber", block };
}

/** A question about the caller's own account: a transaction, a receipt or a nonce. */
function ofOwn({ random, account }: CallerPlan, { accepted }: CallerState): Asked {
  const recent = accepted.slice(-RECENT_WRITES);
  const hash = recent[Math.floor(random() * recent.length)];
  const draw = random();
  if (hash === undefined || draw < PENDING_NONCES) return nonceRead(account, "pending");
  if (draw < PENDING_NONCES + LATEST_NONCES) return nonceRead(account, "latest");
  return random() < 0.5 ? transactionRead(hash) : receiptRead(hash);
}

const PENDING_NONCES = 0.2;
const LATEST_NONCES = 0.1;

function nonceRead({ address }: PrivateKeyAccount, tag: "latest" | "pending"): Asked {
  return {
    call: { method: "eth_getTransactionCount", params: [address, tag] },
    read: (result) => ({
      kind: "nonce",
      account: address.toLowerCase(),
      tag,
      value: Number(result),
    }),
  };
}

function transactionRead(hash: string): Asked {
  return {
    call: { method: "eth_getTransactionByHash", params: [hash] },
    read: (result) => ({ kind: "transaction", hash, isFound: result !== null }),
  };
}

function receiptRead(hash: string): Asked {
  return {
    call: { method: "eth_getTransactionReceipt", params: [hash] },
    read(result, { blocks }) {
      if (result === null) return { kind: "receipt", hash, block: null };
      const block = blocks.byHash(memberOf(result, "blockHash"));
      return block === undefined ? null : { kind: "receipt", hash, block };
    },
  };
}

async function send({ account }: CallerPlan, nonce: number): Promise<Asked> {
  const raw = await account.signTransaction({
    chainId: VIEW_CHAIN_ID,
    type: "legacy",
    nonce,
    to: account.address,
    value: 0n,
    gas: GAS,
    gasPrice: GAS_PRICE,
  });
  const seen = (isAccepted: boolean): Observation => ({
    kind: "sent",
    hash: keccak256(raw),
    account: account.address.toLowerCase(),
    nonce,
    isAccepted,
  });
  return {
    call: { method: "eth_sendRawTransaction", params: [raw] },
    read: () => seen(true),
    onError: seen(false),
  };
}

/** An account of its own for each caller of each seed. */
export function accountOf(seed: number, caller: number): PrivateKeyAccount {
  return privateKeyToAccount(keccak256(new TextEncoder().encode(`views ${seed} ${caller}`)));
}

function addressOf(index: number): string {
  return `0x${(index + 1).toString(16).padStart(ADDRESS_DIGITS, "c")}`;
}

const ADDRESS_DIGITS = 40;

function memberOf(value: unknown, name: string): string {
  return typeof value === "object" && value !== null ? String(Reflect.get(value, name)) : "";
}
