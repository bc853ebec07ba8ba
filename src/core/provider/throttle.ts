// The rate-limit state of one provider on one transport: limited until a time. A limited provider
// is asked later, never excluded. Knows neither who set the limit nor why.

/** A rate limit that was announced or assumed; null where there is none. */
export interface Throttle {
  readonly sinceMs: number;
  readonly forMs: number;
}

/** How long a provider counts as limited when it names no time. */
export const DEFAULT_COOLDOWN_MS = 30_000;
/** The longest rate limit that is accepted. */
export const MAX_COOLDOWN_MS = 600_000;

/** The state after a rate limit of `ms`; of two limits the one that ends later is kept. */
export function throttled(throttle: Throttle | null, ms: number, nowMs: number): Throttle {
  const forMs = Number.isNaN(ms) ? DEFAULT_COOLDOWN_MS : Math.min(MAX_COOLDOWN_MS, Math.max(0, ms));
  return throttle !== null && limitedForMs(throttle, nowMs) > forMs
    ? throttle
    : { sinceMs: nowMs, forMs };
}

/**
 * Milliseconds until the limit ends; 0 = not limited. A limit set in the future (the clock jumped
 * back) is over.
 */
export function limitedForMs(throttle: Throttle | null, nowMs: number): number {
  if (throttle === null) return 0;
  const elapsedMs = nowMs - throttle.sinceMs;
  return elapsedMs < 0 ? 0 : Math.max(0, throttle.forMs - elapsedMs);
}
