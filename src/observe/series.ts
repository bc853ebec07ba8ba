// The counters of one profile on one chain.
import { CALL_ENDS, CALL_OUTCOMES, type CallEnd } from "../core/call-end.ts";
import { Histogram } from "../core/provider/latency.ts";
import type { Provider } from "../core/provider/profile.ts";
import type { AnswerSource } from "../core/routing/answer-source.ts";
import type { CacheUse } from "../core/routing/cache-terms.ts";
import { METHOD_SLOTS, type Method } from "../core/rpc/method.ts";
import { COUNTED_KINDS } from "../core/stream/subscription.ts";
import { Tally } from "./error-book.ts";
import type { ChainCounts } from "./history/history-counts.ts";

/** Providers of a series that are told apart. */
const MAX_PROVIDERS = 200;

/** Counts of one profile on one chain, from zero. */
export class Series {
  readonly profile: string;
  readonly chain: string;
  /** Every call that ended, by the index of its end. Notifications are not among them. */
  readonly ends = new Float64Array(CALL_ENDS.length);
  /** Those whose method is known, at `method.index * CALL_OUTCOMES.length + outcomeIndex`. */
  readonly requests = new Float64Array(METHOD_SLOTS * CALL_OUTCOMES.length);
  /** Requests without an id, which get no answer. */
  unanswered = 0;
  /** Attempts that providers failed unnoticed by callers; those of users' own are others. */
  readonly hiddenFailures = new Tally<Pick<Provider, "id" | "alias">>(MAX_PROVIDERS);
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
  unknown = 0;
  /** What happened lately. */
  readonly history: ChainCounts;

  constructor(history: ChainCounts) {
    this.profile = history.profile;
    this.chain = history.chain;
    this.history = history;
  }

  /** Counts a call; `method` null = it was not read. */
  count(method: Method | null, end: CallEnd): void {
    const { index, outcomeIndex } = end;
    const { ends, requests } = this;
    this.history.ended(end);
    ends[index] = (ends[index] ?? 0) + 1;
    if (method === null) return;
    const at = method.index * CALL_OUTCOMES.length + outcomeIndex;
    requests[at] = (requests[at] ?? 0) + 1;
  }

  /** Counts a request without an id. */
  countUnanswered(): void {
    this.unanswered++;
    this.history.unanswered();
  }

  /** Counts a failure of a provider that a caller did not notice. */
  countHidden({ id, alias, guarded }: Pick<Provider, "id" | "alias" | "guarded">): void {
    if (guarded) this.hiddenFailures.others++;
    else this.hiddenFailures.add(id, 1, () => ({ id, alias }));
    this.history.hidden(1);
  }
}
