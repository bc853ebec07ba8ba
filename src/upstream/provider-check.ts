// Calls to providers for people: checks the providers of a profile live before the profile is
// accepted (chain id, heights compared with each other, and the methods that callers need, over
// connections of its own), and sends single calls for an operator. Shows no address and no secret,
// changes no health and stores nothing.
import type { Channel } from "../core/provider/attempt.ts";
import {
  consensusOf,
  type HeadSample,
  lagBlocks,
  plausibleLead,
} from "../core/provider/blocks/head.ts";
import {
  type Profile,
  type Provider,
  type ProviderSet,
  type Transport,
  transportsOf,
} from "../core/provider/profile.ts";
import { bareHost } from "../core/public-address.ts";
import { redact } from "../core/redact/redact.ts";
import { type Failure, plainFailure } from "../core/rpc/failure.ts";
import { methodOf } from "../core/rpc/method.ts";
import { repeatsSecret } from "./engine/refusal.ts";
import { HTTP_LIMITS, HttpUpstream } from "./http/http-upstream.ts";
import type { OnHandshake } from "./http/tls-client.ts";
import { MemoryBudget } from "./memory-budget.ts";
import {
  callProvider,
  type ProviderCall,
  type ProviderCallParts,
  readQuantity,
  verdictOn,
} from "./rpc-call.ts";
import { SOCKET_LIMITS } from "./socket/socket-limits.ts";
import { createSockets } from "./socket/sockets.ts";
import { NOT_PUBLIC, type SsrfGuard } from "./ssrf-guard.ts";

/** Why a provider failed the check. */
export type CheckReason =
  | "not_public"
  | "unreachable"
  | "no_answer"
  | "refused"
  | "rate_limited"
  | "bad_answer"
  | "wrong_chain"
  | "method_unsupported"
  | "lagging";

/**
 * The result for one provider. `said` is shown to its owner: short, without its address or keys.
 */
export type ProviderCheckResult =
  | { readonly kind: "ok"; readonly height: number }
  | {
      readonly kind: "failed";
      readonly transport: Transport;
      readonly reason: CheckReason;
      readonly said: string;
    };

/** The result for one provider of one chain. */
export interface ProviderCheck {
  readonly chain: string;
  readonly provider: string;
  readonly result: ProviderCheckResult;
}

/** Bounds of one check. */
export interface CheckBounds {
  /** Deadline of each call. */
  readonly timeoutMs: number;
  /** Deadline of the whole check; a provider that was not queried by then has failed. */
  readonly totalMs: number;
  /** Providers checked concurrently. */
  readonly concurrency: number;
}

/** Dependencies of a check. */
export interface CheckParts extends Omit<ProviderCallParts, "upstreams"> {
  readonly guard: SsrfGuard;
  /** Hears of the certificates of HTTP addresses. */
  readonly onHandshake?: OnHandshake;
}

/** The bounds used unless a test tightens them. */
const CHECK_BOUNDS: CheckBounds = { timeoutMs: 5_000, totalMs: 20_000, concurrency: 8 };

const MAX_ANSWER_BYTES = 4_194_304;
const MAX_SAID_CHARS = 200;
/**
 * Logs are queried this far below the head, since not every node behind one address has the newest
 * block.
 */
const SETTLED_BLOCKS = 4;
const CALL = '[{"to":"0x0000000000000000000000000000000000000000","data":"0x"},"latest"]';
const TIME_OVER = "the time for the check was over";
const REFUSALS: ReadonlySet<string> = new Set([
  "auth",
  "forbidden",
  "refused",
  "quota",
  "quota_exhausted",
]);

/**
 * Checks every provider of every chain of a profile, on each of its transports. Results are in the
 * order of the profile.
 */
export async function checkProviders(
  parts: CheckParts,
  profile: Profile,
  bounds: CheckBounds = CHECK_BOUNDS,
): Promise<readonly ProviderCheck[]> {
  const { runtime, timerWheel, guard, onHandshake } = parts;
  const http = new HttpUpstream(
    runtime,
    { ...HTTP_LIMITS, connectionsPerOrigin: 8, maxWholeBytes: MAX_ANSWER_BYTES },
    guard,
    { budget: MemoryBudget.unbounded(), timerWheel, ...(onHandshake && { onHandshake }) },
  );
  const socketLimits = { ...SOCKET_LIMITS, maxFrameBytes: MAX_ANSWER_BYTES, closeTimeoutMs: 250 };
  const ws = createSockets({ runtime, timerWheel, guard, limits: socketLimits });
  const check = new Check({ runtime, timerWheel, upstreams: { http, ws } }, bounds);
  const candidates = [...profile.chains.values()].flatMap((set) =>
    set.providers.map((provider): CheckedProvider => ({ set, provider, found: null })),
  );
  const next = candidates.values();
  const examine = async (): Promise<void> => {
    for (const checked of next) checked.found = await check.found(checked);
  };
  try {
    await Promise.all(Array.from({ length: bounds.concurrency }, examine));
  } finally {
    await Promise.all([http.close(), ws.close()]);
  }
  return candidates.map((checked) => ({
    chain: checked.set.chain.chainName,
    provider: checked.provider.id,
    result: judge(checked, candidates, runtime.now()),
  }));
}

type Failed = Extract<ProviderCheckResult, { kind: "failed" }>;
type Found = (HeadSample & { readonly kind: "head"; readonly transport: Transport }) | Failed;

interface CheckedProvider {
  readonly set: ProviderSet;
  readonly provider: Provider;
  /** By transport; null = it was not queried in time. */
  found: readonly Found[] | null;
}

/** The calls of one check, and why they failed. */
class Check {
  readonly #parts: ProviderCallParts;
  readonly #timeoutMs: number;
  readonly #untilMs: number;

  constructor(parts: ProviderCallParts, { timeoutMs, totalMs }: CheckBounds) {
    this.#parts = parts;
    this.#timeoutMs = timeoutMs;
    this.#untilMs = parts.runtime.now() + totalMs;
  }

  /** Queries the chain id, the height, a call and logs over each transport. */
  found({ set, provider }: CheckedProvider): Promise<readonly Found[]> {
    return Promise.all(
      transportsOf(provider).map((transport) => this.#foundOver({ provider, transport }, set)),
    );
  }

  async #foundOver(channel: Channel, { chain }: ProviderSet): Promise<Found> {
    const chainId = await this.#quantity({ ...channel, method: "eth_chainId", params: "[]" });
    if (typeof chainId !== "number") return chainId;
    if (chainId !== chain.chainId)
      return failed(channel, "wrong_chain", `chain id ${chainId} instead of ${chain.chainId}`);
    const height = await this.#quantity({ ...channel, method: "eth_blockNumber", params: "[]" });
    if (typeof height !== "number") return height;
    const atMs = this.#parts.runtime.now();
    const block = `0x${Math.max(0, height - SETTLED_BLOCKS).toString(16)}`;
    const logs = `[{"fromBlock":"${block}","toBlock":"${block}"}]`;
    const problems = await Promise.all([
      this.#problemOf({ ...channel, method: "eth_call", params: CALL }),
      this.#problemOf({ ...channel, method: "eth_getLogs", params: logs }),
    ]);
    const { transport } = channel;
    const head = { kind: "head", transport, height, atMs, polled: true } as const;
    return problems.find((problem) => problem !== null) ?? head;
  }

  /** Sends a call whose result is a hex quantity. */
  async #quantity(call: ProviderCall): Promise<number | Failed> {
    const answer = await this.#send(call);
    if (!Buffer.isBuffer(answer))
      return failedBy(call, answer, this.#reasonOf(call, answer) ?? "bad_answer");
    const why = `no hex number as the result of ${call.method}`;
    return readQuantity(answer) ?? failed(call, "bad_answer", why);
  }

  /**
   * Checks that a method is served. Null = it is: the provider returned a result, or an error that
   * only a node that runs the method can give.
   */
  async #problemOf(call: ProviderCall): Promise<Failed | null> {
    const { provider, method } = call;
    if (
      provider.unsupportedMethods.has(method) ||
      provider.unsupportedCategories.has(methodOf(method).category)
    )
      return null;
    const answer = await this.#send(call);
    const reason = Buffer.isBuffer(answer) ? null : this.#reasonOf(call, answer);
    return Buffer.isBuffer(answer) || reason === null ? null : failedBy(call, answer, reason);
  }

  async #send(call: ProviderCall): Promise<Buffer | Failure> {
    const timeoutMs = Math.min(this.#timeoutMs, this.#untilMs - this.#parts.runtime.now());
    if (timeoutMs <= 0) return plainFailure("timeout", TIME_OVER);
    return callProvider(this.#parts, call, timeoutMs);
  }

  /** Why a failure counts against the provider; null = the error is a legitimate answer. */
  #reasonOf(call: ProviderCall, failure: Failure): CheckReason | null {
    if (failure.message.includes(NOT_PUBLIC)) return "not_public";
    if (failure.kind === "timeout" || /TIMEDOUT|timed out|in time/.test(failure.message))
      return "no_answer";
    const unheard = failure.kind === "unsent" || failure.kind === "network";
    if (unheard && failure.httpStatus === 0) return "unreachable";
    // A handshake that was answered with something else is as informative as a body.
    const heard: Failure = unheard ? { ...failure, kind: "body" } : failure;
    const verdict = verdictOn(heard, call, this.#parts.runtime);
    if (verdict.category.endsWith("rate_limit")) return "rate_limited";
    if (REFUSALS.has(verdict.category)) return "refused";
    if (verdict.category === "method_unsupported") return "method_unsupported";
    return heard.kind === "body" || verdict.effect.kind === "failure" ? "bad_answer" : null;
  }
}

/** The result for a provider whose heights are known, compared with the others. */
function judge(
  { set, provider, found }: CheckedProvider,
  candidates: readonly CheckedProvider[],
  nowMs: number,
): ProviderCheckResult {
  const fail = (transport: Transport, reason: CheckReason, said: string): Failed =>
    failed({ provider, transport }, reason, said);
  if (found === null) return fail(provider.url === null ? "ws" : "http", "no_answer", TIME_OVER);
  const failure = found.find(({ kind }) => kind === "failed");
  if (failure?.kind === "failed") return failure;
  const others = candidates
    .filter((checked) => checked.set === set)
    .flatMap(headsOf)
    .map((sample) => ({ sample, roseAtMs: sample.atMs }));
  const head = consensusOf(others, set.chain, nowMs).height;
  const heads = headsOf({ found });
  for (const sample of heads) {
    const { transport, height } = sample;
    const lag = lagBlocks(sample, head, set.chain, nowMs);
    const said = `block ${height}, while the others are at ${head}`;
    if (head !== null && height - head > plausibleLead(set.chain))
      return fail(transport, "bad_answer", said);
    if (lag !== null && lag > set.maxLagBlocks + SETTLED_BLOCKS)
      return fail(transport, "lagging", said);
  }
  return { kind: "ok", height: Math.max(...heads.map(({ height }) => height)) };
}

/** The heights of a provider; none where one of its transports failed. */
function headsOf({ found }: Pick<CheckedProvider, "found">) {
  const heads = found?.filter((each) => each.kind === "head") ?? [];
  return heads.length === found?.length ? heads : [];
}

function failedBy(
  query: ProviderCall,
  { kind, code, message, httpStatus }: Failure,
  reason: CheckReason,
): Failed {
  if (reason === "not_public")
    return failed(query, reason, "its host leads to an address that is not public");
  if (kind === "error")
    return failed(query, reason, `${query.method}: ${code ?? `HTTP ${httpStatus}`} ${message}`);
  return failed(query, reason, httpStatus === 0 ? message : `HTTP ${httpStatus} ${message}`);
}

function failed({ provider, transport }: Channel, reason: CheckReason, said: string): Failed {
  return { kind: "failed", transport, reason, said: tellable(provider, said) };
}

/** The part of a provider's text that may be shown: one short line without its address. */
function tellable(provider: Provider, said: string): string {
  if (repeatsSecret(provider, said))
    return "an answer that repeats a part of the provider's address or headers";
  const hosts = [provider.url, provider.wsUrl]
    .flatMap((url) => (url === null ? [] : [bareHost(URL.parse(url)?.hostname ?? "")]))
    .filter((host) => host !== "");
  const line = said
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .replace(/\b(?:https?|wss?):\/\/\S+/gi, "(address)");
  const plain = hosts.reduce((text, host) => text.replaceAll(host, "(host)"), line).trim();
  return plain.length > MAX_SAID_CHARS ? `${plain.slice(0, MAX_SAID_CHARS)}…` : plain;
}

/** An error of a provider as an operator sees it. */
export interface ShownError {
  readonly category: string;
  readonly code: number | null;
  readonly http_status: number | null;
  /** Without secrets. */
  readonly message: string;
}

/** What came of a call. */
export type QueryResult =
  | { readonly kind: "result"; readonly result: Buffer; readonly latencyMs: number }
  | { readonly kind: "error"; readonly error: ShownError; readonly latencyMs: number };

const TIMEOUT_MS = 10_000;
const MAX_MESSAGE_CHARS = 500;

/** Sends a call; always resolves. */
export async function queryProvider(
  parts: ProviderCallParts,
  call: ProviderCall,
): Promise<QueryResult> {
  const { runtime } = parts;
  const startedAtMs = runtime.now();
  const answer = await callProvider(parts, call, TIMEOUT_MS);
  const latencyMs = Math.round((runtime.now() - startedAtMs) * 100) / 100;
  if (Buffer.isBuffer(answer)) return { kind: "result", result: answer, latencyMs };
  const { code, httpStatus, message } = answer;
  const error = {
    category: verdictOn(answer, call, runtime).category,
    code,
    http_status: httpStatus === 0 ? null : httpStatus,
    message: shownMessage(call.provider, message),
  };
  return { kind: "error", error, latencyMs };
}

/** The message of a provider without secrets, for an operator. */
export function shownMessage(provider: Provider, message: string): string {
  const short = message.slice(0, MAX_MESSAGE_CHARS).toWellFormed();
  return repeatsSecret(provider, message) ? HIDDEN : redact(short);
}

const HIDDEN = "the message repeats a secret of the provider's address and is not shown";
