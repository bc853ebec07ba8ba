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

/** Counts of one profile on one chain. */
export interface Series {
  readonly profile: string;
  readonly chain: string;
  /** Requests by method and outcome, at `method.index * OUTCOMES.length + outcome`. */
  readonly requests: Float64Array;
  readonly durations: Histogram;
  /** Notifications delivered, by position in `COUNTED_KINDS`. */
  readonly notifications: Float64Array;
  /** Answers by where they came from; `none` = the call was refused, or nobody answered. */
  readonly sources: Record<AnswerSource["kind"], number>;
  /**
   * Calls while every circuit was open: sent all the same, or refused by the limit on such calls.
   */
  readonly panics: { sent: number; refused: number };
  /** Calls that were hedged, by who answered first, and those for which the budget was spent. */
  readonly hedges: { won: number; lost: number; over_budget: number };
  /** Calls that were asked again after `null`, by whether the second provider had an answer. */
  readonly rechecked: { found: number; missing: number };
  /** Calls by how they met the cache. */
  readonly cacheUses: Record<CacheUse["result"], number>;
  /** Errors of the operator's providers that match no rule. */
  readonly unknown: UnknownErrors;
  /** The errors of the operator's providers by category. */
  readonly errors: SeenErrors;
  /** What happened lately. */
  readonly history: ChainCounts;
}

/** Counters at zero. */
export function newSeries(history: ChainCounts): Series {
  const { profile, chain } = history;
  return {
    profile,
    chain,
    requests: new Float64Array(METHOD_SLOTS * OUTCOMES.length),
    durations: new Histogram(),
    notifications: new Float64Array(COUNTED_KINDS.length),
    sources: {
      provider: 0,
      cache: 0,
      merged: 0,
      shared: 0,
      heads: 0,
      accepted: 0,
      local: 0,
      refused: 0,
      none: 0,
    },
    panics: { sent: 0, refused: 0 },
    hedges: { won: 0, lost: 0, over_budget: 0 },
    rechecked: { found: 0, missing: 0 },
    cacheUses: { hit: 0, miss: 0, bypass: 0 },
    unknown: new UnknownErrors(),
    errors: new Map(),
    history,
  };
}
