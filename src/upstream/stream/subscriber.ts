// The port between subscriptions and their subscribers: the request, and what a subscriber hears.

import type { Provider } from "../../core/provider/profile.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import type { Subscription } from "../../core/stream/subscription.ts";
import type { Outcome } from "../engine/answer.ts";
import type { RoutedCall } from "../engine/router.ts";
import type { Tracker } from "../health/tracker.ts";

/** Who holds subscriptions, and how many different log filters it may have open at once. */
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
  /** Who asks; null = the service itself, which is not bounded. */
  readonly caller: StreamCaller | null;
  /** How long it may wait until the subscription is real. */
  readonly deadlineMs: number;
}

/**
 * Hears one subscription: `started` or `refused`, once; after `started` any number of events and at
 * most one `ended`.
 */
export interface Subscriber {
  /**
   * It is real upstream. `route` tells how a provider was found; null = the stream was there
   * already.
   */
  started(route: RoutedCall | null): void;
  /** A provider's error or a fault. */
  refused(outcome: Outcome, route: RoutedCall | null): void;
  /**
   * The raw JSON of results, in order. The same array and buffers for every subscriber: not to be
   * changed.
   */
  events(results: readonly Buffer[]): void;
  /** It cannot go on without a gap. `reason` names no address. */
  ended(reason: string): void;
}

/**
 * Why a stream left a provider. `stale_heads`: it told of none, or late, while others had newer
 * blocks. `far`, `unanswered` and `backlog`: it could not give what was missing. `missing_logs`: it
 * left some out.
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

/** The state of a stream, for showing. */
export interface StreamReport {
  readonly state: "opening" | "live" | "recovering";
  readonly provider: Provider | null;
  readonly subscribers: number;
  /** Of the newest block told; null where there is none. */
  readonly height: number | null;
  /** Blocks that providers are known to have beyond that one; null = unknown. */
  readonly behind: number | null;
  readonly failovers: number;
  /** Blocks that had to be asked for because nobody pushed them. */
  readonly filledBlocks: number;
  readonly events: number;
}
