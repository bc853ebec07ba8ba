// Rate limits by GCRA (generic cell rate algorithm). The state of a limit is one number: the time
// (ms) at which it is full again. Knows no clock and no owner.

/** The size of a rate limit. */
export interface RateLimitSize {
  readonly perSecond: number;
  /** Most requests at once after a pause. */
  readonly burst: number;
}

/** The state of an unused limit. */
export const FULL_MS = 0;

/**
 * Takes requests from a limit that is full at `fullAtMs`: all of `count`, or none. Returns the new
 * time at which it is full; null = the limit is used up.
 */
export function take(
  fullAtMs: number,
  { perSecond, burst }: RateLimitSize,
  nowMs: number,
  count = 1,
): number | null {
  const stepMs = 1_000 / perSecond;
  // More than a whole burst ahead: the clock has jumped back.
  const from = fullAtMs - nowMs > burst * stepMs + TOLERANCE_MS ? nowMs : Math.max(fullAtMs, nowMs);
  const next = from + count * stepMs;
  return next - nowMs > burst * stepMs + TOLERANCE_MS ? null : next;
}

/** Number of requests that the limit allows now. */
export function remaining(
  fullAtMs: number,
  { perSecond, burst }: RateLimitSize,
  nowMs: number,
): number {
  const usedMs = Math.max(0, fullAtMs - nowMs);
  if (usedMs > (burst * 1_000) / perSecond + TOLERANCE_MS) return burst;
  return Math.max(0, Math.floor(burst - (usedMs * perSecond) / 1_000 + TOLERANCE_MS));
}

/** Milliseconds until the limit allows `count` requests. */
export function waitMs(
  fullAtMs: number,
  { perSecond, burst }: RateLimitSize,
  nowMs: number,
  count = 1,
): number {
  const usedMs = fullAtMs - nowMs;
  return usedMs > (burst * 1_000) / perSecond + TOLERANCE_MS
    ? 0
    : Math.max(0, usedMs - ((burst - count) * 1_000) / perSecond);
}

/** Sums of steps are not exact. */
const TOLERANCE_MS = 1e-6;
