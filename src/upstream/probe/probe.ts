// Probes one endpoint: who it is, how far back it keeps what, what it limits and what it serves.
// Endpoints are probed one after the other, each within the bounds of `endpoint-calls.ts`.

import { isRecord } from "../../core/fields.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { redact } from "../../core/redact/redact.ts";
import { EndpointCalls, PROBE_BOUNDS, type ProbeBounds } from "./endpoint-calls.ts";
import { type LogLimits, logLimits } from "./log-limits.ts";
import { type OldestBlocks, oldestBlocks } from "./resources.ts";
import { servedMethods, type TriedMethod } from "./served-methods.ts";
import type { ProbeTransports } from "./transports.ts";

/** Times of one request, in milliseconds. */
export interface LatencyReport {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** What was found over WebSocket. */
export interface SocketFindings {
  readonly works: boolean;
  /** Kinds of subscriptions that were acknowledged. */
  readonly kinds: readonly string[];
}

/** What was found of an endpoint that answers. */
export interface ProbeFindings {
  readonly kind: "found";
  readonly chainId: number;
  readonly client: string | null;
  readonly head: number;
  /** Heights of the tags; null = the tag is not served. */
  readonly finalized: number | null;
  readonly safe: number | null;
  readonly latency: LatencyReport;
  readonly oldest: OldestBlocks;
  readonly logs: LogLimits;
  readonly methods: readonly TriedMethod[];
  /** Null = it was not tried: there is no HTTP address. */
  readonly batch: boolean | null;
  /** Null = there is no WebSocket address. */
  readonly socket: SocketFindings | null;
  readonly requests: number;
  /** Answers that were rate limits. */
  readonly rateLimits: number;
  /** Why the probe ended before it was done; null = it was done. */
  readonly ended: string | null;
}

/** What was found, or why nothing was. */
export type ProbeResult =
  | ProbeFindings
  | { readonly kind: "failed"; readonly reason: string; readonly said: string };

const LATENCY_SAMPLES = 10;
const MAX_CLIENT_CHARS = 100;
const KINDS = ["newHeads", "logs", "newPendingTransactions", "syncing"];

/** Probes an endpoint; always resolves. */
export async function probeEndpoint(
  transports: ProbeTransports,
  provider: Provider,
  bounds: ProbeBounds = PROBE_BOUNDS,
): Promise<ProbeResult> {
  const calls = new EndpointCalls(transports, provider, bounds);
  const chainId = await quantity(calls, "eth_chainId");
  if (typeof chainId !== "number") return chainId;
  const head = await quantity(calls, "eth_blockNumber");
  if (typeof head !== "number") return head;
  const client = await calls.send("web3_clientVersion");
  const latency = await latencyOf(calls);
  const [finalized, safe] = [await heightOf(calls, "finalized"), await heightOf(calls, "safe")];
  const methods = await servedMethods(calls);
  const socket = provider.wsUrl === null ? null : await socketFindings(transports, calls);
  const batch =
    provider.url === null
      ? null
      : await calls.within((timeoutMs) => transports.takesBatch(provider, timeoutMs));
  const logs = await logLimits(calls, head);
  const oldest = await oldestBlocks(calls, head);
  return {
    kind: "found",
    chainId,
    client: client.kind === "result" ? clientName(client.value) : null,
    head,
    finalized,
    safe,
    latency,
    oldest,
    logs,
    methods,
    batch,
    socket,
    requests: calls.sent,
    rateLimits: calls.rateLimits,
    ended: calls.end,
  };
}

/** The head of an endpoint now; null = it does not say. */
export async function headOf(
  transports: ProbeTransports,
  provider: Provider,
  bounds: ProbeBounds = PROBE_BOUNDS,
): Promise<number | null> {
  const calls = new EndpointCalls(transports, provider, { ...bounds, maxRequests: 1 });
  const head = await quantity(calls, "eth_blockNumber");
  return typeof head === "number" ? head : null;
}

/** The chain id of an endpoint; null = it does not say. */
export async function chainIdOf(
  transports: ProbeTransports,
  provider: Provider,
  bounds: ProbeBounds = PROBE_BOUNDS,
): Promise<number | null> {
  const calls = new EndpointCalls(transports, provider, { ...bounds, maxRequests: 1 });
  const chainId = await quantity(calls, "eth_chainId");
  return typeof chainId === "number" ? chainId : null;
}

type Failed = Extract<ProbeResult, { readonly kind: "failed" }>;

async function quantity(calls: EndpointCalls, method: string): Promise<number | Failed> {
  const answer = await calls.send(method);
  if (answer.kind === "none") return { kind: "failed", reason: "no answer", said: answer.said };
  if (answer.kind === "refused")
    return { kind: "failed", reason: answer.category, said: answer.said };
  const number = numberOf(answer.value);
  const said = `no hex number as the result of ${method}`;
  return number ?? { kind: "failed", reason: "bad answer", said };
}

function numberOf(value: unknown): number | null {
  return typeof value === "string" && /^0x[0-9a-fA-F]{1,13}$/.test(value) ? Number(value) : null;
}

async function heightOf(calls: EndpointCalls, tag: string): Promise<number | null> {
  const answer = await calls.send("eth_getBlockByNumber", [tag, false]);
  return answer.kind === "result" && isRecord(answer.value)
    ? numberOf(answer.value["number"])
    : null;
}

/** The name that a node gives itself, short and without what looks like a key. */
function clientName(value: unknown): string | null {
  if (typeof value !== "string") return null;
  const line = redact(value.slice(0, MAX_CLIENT_CHARS)).replace(/[\p{Cc}\p{Cf}\s]+/gu, " ");
  return line.trim() === "" ? null : line.trim();
}

async function latencyOf(calls: EndpointCalls): Promise<LatencyReport> {
  const times: number[] = [];
  for (let sample = 0; sample < LATENCY_SAMPLES; sample++) {
    const answer = await calls.send("eth_blockNumber");
    if (answer.kind === "result") times.push(answer.latencyMs);
  }
  times.sort((one, other) => one - other);
  const at = (share: number): number => {
    const time = times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
    return Math.round(time * 10) / 10;
  };
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

async function socketFindings(
  transports: ProbeTransports,
  calls: EndpointCalls,
): Promise<SocketFindings> {
  const works = (await calls.send("eth_chainId", [], "ws")).kind === "result";
  const kinds: string[] = [];
  for (const kind of works ? KINDS : []) {
    const isTaken = await calls.within((timeoutMs) =>
      transports.takesSubscription(calls.provider, kind, timeoutMs),
    );
    if (isTaken === true) kinds.push(kind);
  }
  return { works, kinds };
}
