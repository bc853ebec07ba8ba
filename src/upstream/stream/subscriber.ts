// The port between streams and subscribers: the request, and what a subscriber hears.

import type { Provider } from "../../core/provider/profile.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import type { Block } from "../../core/stream/chain-event.ts";
import type { Unconfirmed } from "../../core/stream/log-verification.ts";
import type { StreamMark } from "../../core/stream/stream-mark.ts";
import type { Subscription } from "../../core/stream/subscription.ts";
import type { Outcome } from "../engine/answer.ts";
import type { RoutedCall } from "../engine/router.ts";
import type { Tracker } from "../health/tracker.ts";

/** A caller with subscriptions, and how many different log filters it may have open. */
export interface StreamCaller {
  /** Equal for all connections of one caller. */
  readonly id: string;
  readonly maxLogFilters: number;
}

/** What a subscriber asks for. */
export interface SubscribeRequest {
  /** The `profileId`. */
  readonly profile: string;
  readonly tracker: Tracker;
  readonly subscription: Subscription;
  readonly strategy: Strategy;
  readonly pin: Provider | null;
  /** The caller; null = the service itself, which has no limit. */
  readonly caller: StreamCaller | null;
  /** How long (ms) the subscriber waits for the subscription to start. */
  readonly deadlineMs: number;
  /** What the subscriber has been told elsewhere; absent = nothing: its events begin now. */
  readonly resume?: StreamMark;
}

/** Where the stream of a subscriber stands. */
export interface StreamPosition {
  /** What its subscribers have been told; null = the kind has no order to go on from. */
  mark(): StreamMark | null;
  /** Number of the newest block that was delivered; null = unknown. */
  readonly height: number | null;
}

/**
 * Hears one subscription: `started` or `refused`, once; after `started` any number of events and at
 * most one `ended`.
 */
export interface Subscriber {
  /**
   * The subscription is active upstream. `route` shows how a provider was found; null = the stream
   * already existed. `position` tells what the subscriber has been told so far.
   */
  started(route: RoutedCall | null, position?: StreamPosition): void;
  /** Refused, with a provider's error or a fault. */
  refused(outcome: Outcome, route: RoutedCall | null): void;
  /**
   * The raw JSON of results, in order. Array and buffers are shared by all subscribers: do not
   * change them.
   */
  events(results: readonly Buffer[]): void;
  /**
   * Logs of the block are told before another provider has confirmed them, in spite of `strict`;
   * also where it has none for this subscriber. Absent = the subscriber does not want to know.
   */
  unconfirmed?(block: Block, why: Unconfirmed): void;
  /** The subscription cannot continue without a gap. `reason` contains no address. */
  ended(reason: string): void;
}

/**
 * Why a stream left a provider. `stale_heads`: it reported no heads, or late ones, while others had
 * newer blocks. `far`, `unanswered`, `backlog`: it could not return what was missing.
 * `missing_logs`: it left some out.
 */
export const FAILOVER_REASONS = [
  "lost",
  "stale_heads",
  "far",
  "unanswered",
  "backlog",
  "removed",
  "missing_logs",
] as const;

/** One of the reasons. */
export type FailoverReason = (typeof FAILOVER_REASONS)[number];
