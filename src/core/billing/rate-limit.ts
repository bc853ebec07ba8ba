// The rate limits of an account or payment channel: takes a token for each call from the limit that
// applies, and reports what is left. Knows no price.

import { type Fault, fault } from "../faults/rpc-fault.ts";
import type { RateLimit } from "./access.ts";
import { FULL_MS, type RateLimitSize, remaining, take, waitMs } from "./gcra.ts";

/** The state of a rate limit, as shown to the caller. */
export interface RateLimitStatus {
  readonly name: string;
  readonly burst: number;
  readonly windowS: number;
  readonly remaining: number;
  /** Seconds until it is full again. */
  readonly resetS: number;
}

/** The owner of rate limits: an account, or a payment channel. */
export interface RateLimitOwner {
  /** Time (ms) at which each limit is full again, by name; null = none was used yet. */
  fullAtMs: Map<string, number> | null;
}

/** The size of a limit, and the time. */
export interface RateLimitNow {
  readonly size: RateLimitSize;
  readonly nowMs: number;
}

/** Takes a token; a fault = there is none. */
export function takeToken(
  owner: RateLimitOwner,
  { name }: RateLimit,
  { size, nowMs }: RateLimitNow,
): Fault | null {
  owner.fullAtMs ??= new Map();
  const fullAtMs = owner.fullAtMs.get(name) ?? FULL_MS;
  const next = take(fullAtMs, size, nowMs);
  if (next !== null) {
    owner.fullAtMs.set(name, next);
    return null;
  }
  const message = `more than ${size.perSecond} requests a second (${size.burst} at once)`;
  return fault("rate_limit_exceeded", message, {
    retryAfterMs: Math.max(1, Math.ceil(waitMs(fullAtMs, size, nowMs))),
  });
}

/** What is left of a limit. */
export function rateLimitStatusOf(
  owner: RateLimitOwner,
  { name }: RateLimit,
  { size, nowMs }: RateLimitNow,
): RateLimitStatus {
  const fullAtMs = owner.fullAtMs?.get(name) ?? FULL_MS;
  return {
    name,
    burst: size.burst,
    windowS: Math.max(1, Math.round(size.burst / size.perSecond)),
    remaining: remaining(fullAtMs, size, nowMs),
    resetS: Math.max(0, Math.ceil((fullAtMs - nowMs) / 1_000)),
  };
}
