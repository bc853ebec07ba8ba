// The counters of one profile on one chain.

import { Histogram } from "../core/provider/latency.ts";
import { type SeenErrors, UnknownErrors } from "../core/provider-errors/error-samples.ts";
import type { AnswerSource } from "../core/routing/answer-source.ts";
import type { CacheUse } from "../core/routing/cache-terms.ts";
import { METHOD_SLOTS } from "../core/rpc/method.ts";
import { COUNTED_KINDS } from "../core/stream/subscription.ts";
import type { ChainCounts } from "./history/history-counts.ts";

/** Outcomes of a request, as labels. */
export const OUTCOMES = ["success", "provider_error", "fault", "cancelled"] as const;

/** Counts of one profile on one chain, from zero. */
export class Series {
  readonly profile: string;
  readonly chain: string;
  /** Requests by method and outcome, at `method.index * OUTCOMES.length + outcome`. */
  readonly requests = new Float64Array(METHOD_SLOTS * OUTCOMES.length);
  readonly durations = new Histogram();
  /** Notifications delivered, by position in `COUNTED_KINDS`. */
  readonly notifications = new Float64Array(COUNTED_KINDS.length);
  /** Answers by where they came from; `none` = the call was refused, or nobody answered. */
  readonly sources: Record<AnswerSource["kind"], number> = {
    provider: 0,
    cache: 0,
    merged: 0,
    shared: 0,
    heads: 0,
    accepted: 0,
    local: 0,
    refused: 0,
    none: 0,
  };
  /**
   * Calls while every circuit was open: sent all the same, or refused by the limit on such calls.
   */
  readonly panics = { sent: 0, refused: 0 };
  /** Calls that were hedged, by who answered first, and those for which the budget was spent. */
  readonly hedges = { won: 0, lost: 0, over_budget: 0 };
  /** Calls that were asked again after `null`, by whether the second provider had an answer. */
  readonly rechecked = { found: 0, missing: 0 };
  /** Calls by how they met the cache. */
  readonly cacheUses: Record<CacheUse["result"], number> = { hit: 0, miss: 0, bypass: 0 };
  /** Errors of the operator's providers that match no rule. */
  readonly unknown = new UnknownErrors();
  /** The errors of the operator's providers by category. */
  readonly errors: SeenErrors = new Map();
  /** What happened lately. */
  readonly history: ChainCounts;

  constructor(history: ChainCounts) {
    this.profile = history.profile;
    this.chain = history.chain;
    this.history = history;
  }
}
