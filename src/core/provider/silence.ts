// Whether a provider that does not answer is silent or merely slow. Silence is evidence against it,
// slowness is not: otherwise any caller could open a circuit by asking for slow things. Knows no
// clock, no connection and no caller but by an opaque key.

/** An attempt that has not been answered. */
export interface Unanswered {
  /**
   * When it was sent, or while it is not: when its connection was begun. Null = the provider has
   * not been asked for anything.
   */
  readonly askedAtMs: number | null;
  /** When the provider last answered anything at all on this transport. */
  readonly heardAtMs: number;
  /** The 99th percentile of its answers to calls of this kind; null = unknown. */
  readonly usualMs: number | null;
}

/**
 * `heard`: the provider has answered something since, so it is there. `early`: nothing can be said
 * yet. `quiet`: long enough to check whether it is reachable. `silent`: longer than usual, and no
 * answer to any request.
 */
export type Silence = "heard" | "early" | "quiet" | "silent";

/** Whose attempt it is. */
export interface CallerIdentity {
  /**
   * Opaque, never empty: the same for all calls of one account, or of one address where there is no
   * account.
   */
  readonly key: string;
}

/** The service itself: what it asks for probes and subscriptions. */
export const SERVICE_CALLER: CallerIdentity = { key: "service" };

/** No provider is silent before this. */
const LEAST_SILENCE_MS = 1_000;
/** No provider is quiet before this. */
const LEAST_QUIET_MS = 250;
/** When a provider is quiet whose usual latency is unknown. */
const DEFAULT_QUIET_MS = 300;
/** One caller contributes one count to one circuit in this time. */
const COUNT_EVERY_MS = 10_000;
/** Callers that are remembered for one circuit. */
const MAX_COUNTED_CALLERS = 64;

/** What an attempt that has no answer at `nowMs` says of its provider. */
export function silenceOf({ askedAtMs, heardAtMs, usualMs }: Unanswered, nowMs: number): Silence {
  if (askedAtMs === null) return "early";
  if (heardAtMs > askedAtMs && heardAtMs <= nowMs) return "heard";
  const outMs = nowMs - askedAtMs;
  if (outMs > Math.max(LEAST_SILENCE_MS, usualMs ?? 0)) return "silent";
  return outMs > Math.max(LEAST_QUIET_MS, usualMs ?? DEFAULT_QUIET_MS) ? "quiet" : "early";
}

/**
 * Whether a caller's silent attempt counts toward a circuit, which it then has. `counted` holds
 * when each caller's last one did.
 */
export function takeCount(counted: Map<string, number>, caller: string, nowMs: number): boolean {
  const ageMs = nowMs - (counted.get(caller) ?? Number.NEGATIVE_INFINITY);
  if (ageMs >= 0 && ageMs < COUNT_EVERY_MS) return false;
  counted.delete(caller);
  counted.set(caller, nowMs);
  for (const oldest of counted.keys()) {
    if (counted.size <= MAX_COUNTED_CALLERS) break;
    counted.delete(oldest);
  }
  return true;
}
