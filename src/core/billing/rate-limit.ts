// The rate limits of an account or payment channel: takes a token for each call from the limit that
// applies, and reports what is left. Knows no price.

import { type Fault, fault } from "../faults/rpc-fault.ts";
import type { RateLimit } from "./access.ts";
import { FULL_MS, type RateLimitSize, remaining, take, waitMs } from "./gcra.ts";
import { equalPartOf, type LimitSharing, type SharedLimit } from "./shared-limit.ts";

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
  /** Those that processes share now, by their names; absent or null = none. */
  shared?: Map<string, SharedLimit> | null;
  /** Tells owners apart in all of the service. */
  readonly id?: string;
}

/** The size of a limit, and the time. */
export interface RateLimitNow {
  readonly size: RateLimitSize;
  readonly nowMs: number;
  /** How processes share the limits of an owner with an id; absent or null = they do not. */
  readonly sharing?: LimitSharing | null;
  /** Tokens that one call takes, all or none; absent = 1. No more than the burst. */
  readonly tokens?: number;
}

/** Takes tokens here, all or none; a fault = there are too few. */
export function takeToken(
  owner: RateLimitOwner,
  { name }: RateLimit,
  { size, nowMs, tokens = 1 }: RateLimitNow,
): Fault | null {
  const count = Math.min(tokens, size.burst);
  owner.fullAtMs ??= new Map();
  const fullAtMs = owner.fullAtMs.get(name) ?? FULL_MS;
  const next = take(fullAtMs, size, nowMs, count);
  if (next === null) return exceeded(size, waitMs(fullAtMs, size, nowMs, count));
  owner.fullAtMs.set(name, next);
  return null;
}

/**
 * Takes the tokens of a call from a limit that processes may share. `isFinal`: the call has waited
 * before, and must be decided now. A fault = there are too few;
 * the limit itself = it has to be waited for what is left of it.
 */
export function takeSharedToken(
  owner: RateLimitOwner,
  limit: RateLimit,
  now: RateLimitNow & { readonly isFinal: boolean },
): Fault | SharedLimit | null {
  const { size, nowMs, isFinal, tokens = 1 } = now;
  const shared = sharedLimitOf(owner, limit, now);
  if (shared === null) return takeToken(owner, limit, { size: hereOf(now), nowMs, tokens });
  if (tokens > 1 && !shared.isUnknown(nowMs)) {
    const missing = tokens - shared.remaining(nowMs);
    if (missing > 0) return exceeded(size, (missing * 1_000) / size.perSecond);
  }
  const first = shared.take(nowMs, isFinal);
  if (first === "wait") return shared;
  if (first > 0) return exceeded(size, first);
  // There are enough in all: those that other processes hold now are not waited for.
  for (let at = 1; at < tokens; at++) if (shared.take(nowMs, isFinal) !== 0) break;
  return null;
}

/** The limit that a call would have to wait for, which is asked for; null = none. */
export function awaitedLimit(
  owner: RateLimitOwner,
  limit: RateLimit,
  now: RateLimitNow,
): SharedLimit | null {
  const shared = sharedLimitOf(owner, limit, now);
  return shared?.isUnknown(now.nowMs) === true ? shared : null;
}

/** The limit as it is shared; null = it is not, or there are no others. */
function sharedLimitOf(
  owner: RateLimitOwner,
  { name }: RateLimit,
  { size, nowMs, sharing }: RateLimitNow,
): SharedLimit | null {
  const known = owner.shared?.get(name);
  if (known !== undefined && !known.isEnded && isSame(known.size, size)) return known;
  if (known !== undefined) owner.shared?.delete(name);
  if (sharing === null || sharing === undefined || sharing.nodes <= 1 || owner.id === undefined)
    return null;
  const usedMs = Math.max(0, (owner.fullAtMs?.get(name) ?? FULL_MS) - nowMs);
  const owed = Math.ceil((usedMs * size.perSecond) / 1_000 - TOLERANCE);
  const begun = sharing.begin(`${name} ${owner.id}`, size, { owed, nowMs });
  if (begun === null) return null;
  owner.fullAtMs?.delete(name);
  owner.shared ??= new Map();
  owner.shared.set(name, begun);
  return begun;
}

function isSame(a: RateLimitSize, b: RateLimitSize): boolean {
  return a === b || (a.perSecond === b.perSecond && a.burst === b.burst);
}

/** What this process takes of a limit that it does not share. */
function hereOf({ size, sharing }: RateLimitNow): RateLimitSize {
  const nodes = sharing?.nodes ?? 1;
  return nodes > 1 ? equalPartOf(size, nodes) : size;
}

function exceeded({ perSecond, burst }: RateLimitSize, afterMs: number): Fault {
  const message = `more than ${perSecond} requests a second (${burst} at once)`;
  return fault("rate_limit_exceeded", message, {
    retryAfterMs: Math.max(1, Math.ceil(afterMs)),
    nextAction: NEXT_ACTION,
  });
}

const NEXT_ACTION =
  "retry after the indicated delay, or send calls in batches or over a WebSocket, where they wait " +
  "for the rate by themselves; who runs the service raises it with hosted.buckets";

/** What is left of a limit. */
export function rateLimitStatusOf(
  owner: RateLimitOwner,
  { name }: RateLimit,
  { size, nowMs }: RateLimitNow,
): RateLimitStatus {
  const shared = owner.shared?.get(name);
  const fullAtMs = owner.fullAtMs?.get(name) ?? FULL_MS;
  const isShared = shared !== undefined && !shared.isEnded;
  const fullInMs = isShared ? shared.fullInMs(nowMs) : fullAtMs - nowMs;
  return {
    name,
    burst: size.burst,
    windowS: windowS(size),
    remaining: isShared ? shared.remaining(nowMs) : remaining(fullAtMs, size, nowMs),
    resetS: Math.max(0, Math.ceil(fullInMs / 1_000)),
  };
}

/** Sums of steps are not exact. */
const TOLERANCE = 1e-6;

function windowS({ burst, perSecond }: RateLimitSize): number {
  return Math.max(1, Math.round(burst / perSecond));
}
