// The rate limits of an account or payment channel: takes a token for each call from the limit that
// applies, and reports what is left. Knows no price.

import { type Fault, fault } from "../faults/rpc-fault.ts";
import type { RateLimit } from "./access.ts";
import { FULL_MS, type RateLimitSize, remaining, take, waitMs } from "./gcra.ts";
import { type LimitSharing, type SharedLimit, unsharedPart } from "./shared-limit.ts";

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
  /** Those that nodes share now, by their names; absent or null = none. */
  shared?: Map<string, SharedLimit> | null;
  /** Tells owners apart in all of the service. */
  readonly id?: string;
}

/** The size of a limit, and the time. */
export interface RateLimitNow {
  readonly size: RateLimitSize;
  readonly nowMs: number;
  /** How nodes share the limits of an owner with an id; absent or null = they do not. */
  readonly sharing?: LimitSharing | null;
}

/** Takes a token; a fault = there is none. */
export function takeToken(
  owner: RateLimitOwner,
  { name }: RateLimit,
  { size, nowMs, sharing }: RateLimitNow,
): Fault | null {
  const shared = owner.shared?.get(name);
  if (shared !== undefined) return takeShared(owner, name, { shared, nowMs });
  const part = partOf(size, sharing);
  owner.fullAtMs ??= new Map();
  const fullAtMs = owner.fullAtMs.get(name) ?? FULL_MS;
  const next = take(fullAtMs, part ?? size, nowMs);
  if (next !== null) {
    owner.fullAtMs.set(name, next);
    return null;
  }
  if (part !== null && sharing !== null && sharing !== undefined && owner.id !== undefined) {
    const begun = sharing.begin(`${name} ${owner.id}`, size, { debt: part.burst, nowMs });
    if (begun !== null)
      return takeShared(share(owner, begun, name), name, { shared: begun, nowMs });
  }
  return exceeded(size, waitMs(fullAtMs, part ?? size, nowMs));
}

/** What a node takes of a limit before others have to know; null = there are no others. */
function partOf(size: RateLimitSize, sharing: RateLimitNow["sharing"]): RateLimitSize | null {
  if (sharing === null || sharing === undefined || sharing.nodes <= 1) return null;
  return unsharedPart(size, sharing.nodes);
}

/** Takes a token that other nodes may take as well. */
function takeShared(
  owner: RateLimitOwner,
  name: string,
  { shared, nowMs }: { readonly shared: SharedLimit; readonly nowMs: number },
): Fault | null {
  if (shared.isOver(nowMs)) owner.shared?.delete(name);
  const afterMs = shared.take(nowMs);
  return afterMs === 0 ? null : exceeded(shared.size, afterMs);
}

function share(owner: RateLimitOwner, limit: SharedLimit, name: string): RateLimitOwner {
  owner.shared ??= new Map();
  owner.shared.set(name, limit);
  return owner;
}

function exceeded({ perSecond, burst }: RateLimitSize, afterMs: number): Fault {
  const message = `more than ${perSecond} requests a second (${burst} at once)`;
  return fault("rate_limit_exceeded", message, {
    retryAfterMs: Math.max(1, Math.ceil(afterMs)),
  });
}

/** What is left of a limit. */
export function rateLimitStatusOf(
  owner: RateLimitOwner,
  { name }: RateLimit,
  { size, nowMs, sharing }: RateLimitNow,
): RateLimitStatus {
  const shared = owner.shared?.get(name);
  if (shared !== undefined)
    return {
      name,
      burst: size.burst,
      windowS: windowS(size),
      remaining: shared.remaining(nowMs),
      resetS: Math.ceil(shared.fullInMs(nowMs) / 1_000),
    };
  const fullAtMs = owner.fullAtMs?.get(name) ?? FULL_MS;
  const part = partOf(size, sharing);
  if (part !== null) {
    const taken = (Math.max(0, fullAtMs - nowMs) * part.perSecond) / 1_000;
    return {
      name,
      burst: size.burst,
      windowS: windowS(size),
      remaining: Math.max(0, Math.floor(size.burst - taken)),
      resetS: Math.ceil(taken / size.perSecond),
    };
  }
  return {
    name,
    burst: size.burst,
    windowS: windowS(size),
    remaining: remaining(fullAtMs, size, nowMs),
    resetS: Math.max(0, Math.ceil((fullAtMs - nowMs) / 1_000)),
  };
}

function windowS({ burst, perSecond }: RateLimitSize): number {
  return Math.max(1, Math.round(burst / perSecond));
}
