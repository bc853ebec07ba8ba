// Whether a provider that does not answer is silent or only slow. Silence counts against it,
// slowness does not: otherwise any caller could open a circuit by sending slow calls. Knows no
// clock and no connections, and callers only by an opaque key.
import { isFresh } from "../fresh.ts";
import { setNewest } from "../newest.ts";

/** An attempt without an answer. */
export interface Unanswered {
  /**
   * When the attempt was sent, or, before that, when its connection was begun. Null = neither has
   * happened.
   */
  readonly askedAtMs: number | null;
  /** When the provider last answered anything at all on this transport. */
  readonly heardAtMs: number;
  /** The 99th percentile of its answers to calls of this kind; null = unknown. */
  readonly usualMs: number | null;
}

/**
 * `heard`: the provider has answered something since. `early`: too soon to tell. `quiet`: time to
 * check whether the provider is reachable. `silent`: no answer to any request for longer than
 * usual.
 */
export type Silence = "heard" | "early" | "quiet" | "silent";

/** The caller of an attempt. */
export interface CallerIdentity {
  /**
   * Opaque, never empty: the same for all calls of one account, or of one address where there is no
   * account.
   */
  readonly key: string;
  /** The id of the key that it calls with; absent or null = it has none. */
  readonly keyId?: string | null;
  /** Marks of the services of this kind that its request has passed, never empty; absent = none. */
  readonly passed?: readonly string[] | undefined;
}

/** The service itself, as the caller of probes and subscriptions. */
export const SERVICE_CALLER: CallerIdentity = { key: "service" };

/** Least time until a provider counts as silent. */
const LEAST_SILENCE_MS = 1_000;
/** Least time until a provider counts as quiet. */
const LEAST_QUIET_MS = 250;
/** When a provider counts as quiet whose usual latency is unknown. */
const DEFAULT_QUIET_MS = 300;
/** One caller counts at most once per circuit in this time. */
const COUNT_EVERY_MS = 10_000;
/** Most callers remembered per circuit. */
const MAX_COUNTED_CALLERS = 64;

/** What an attempt without an answer at `nowMs` says about its provider. */
export function silenceOf({ askedAtMs, heardAtMs, usualMs }: Unanswered, nowMs: number): Silence {
  if (askedAtMs === null) return "early";
  if (heardAtMs > askedAtMs && heardAtMs <= nowMs) return "heard";
  const outMs = nowMs - askedAtMs;
  if (outMs > Math.max(LEAST_SILENCE_MS, usualMs ?? 0)) return "silent";
  return outMs > Math.max(LEAST_QUIET_MS, usualMs ?? DEFAULT_QUIET_MS) ? "quiet" : "early";
}

/**
 * Whether a silent attempt of a caller counts toward the circuit; if so, it is recorded. `counted`
 * holds the time (ms) of each caller's last counted attempt.
 */
export function takeCount(counted: Map<string, number>, caller: string, nowMs: number): boolean {
  if (isFresh(counted.get(caller), COUNT_EVERY_MS, nowMs)) return false;
  setNewest(counted, caller, nowMs, MAX_COUNTED_CALLERS);
  return true;
}
