// The rate limits of an account or a channel: a token for each call from the bucket that binds it,
// and what is left there. Knows no price.

import { type Fault, fault } from "../faults/rpc-fault.ts";
import type { RateLimit } from "./access.ts";
import { FULL_MS, type RateLimitSize, remaining, take, waitMs } from "./gcra.ts";

/** What a bucket lets through, for the caller to know. */
export interface RateLimitStatus {
  readonly name: string;
  readonly burst: number;
  readonly windowS: number;
  readonly remaining: number;
  /** Seconds until it is full. */
  readonly resetS: number;
}

/** The owner of rate limits: an account, or a channel of pay-per-call. */
export interface RateLimitOwner {
  /** When each bucket would be full again, by its name; null = none was used yet. */
  fullAtMs: Map<string, number> | null;
}

/** How large a bucket is, and the time. */
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

/** What a bucket still lets through. */
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
