// A job of the engine: a request, how it is carried out, and what is known of it so far: its plan,
// its attempts and where its answer came from. The evidence is made of it. Decides nothing.
import type { Attempt } from "../../core/provider/attempt.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { type AnswerSource, NO_SOURCE } from "../../core/routing/answer-source.ts";
import type { CacheUse } from "../../core/routing/cache-terms.ts";
import type { FailedAttempt } from "../../core/routing/failover.ts";
import type { Plan } from "../../core/routing/plan.ts";
import type { Policy } from "../../core/routing/policy.ts";
import type { SeenBlock } from "../../core/routing/seen.ts";
import type { Failure } from "../../core/rpc/failure.ts";
import type { RouteRequest } from "./route-request.ts";

/** One attempt, as evidence. */
export interface Trace {
  readonly attempt: Attempt;
  readonly failure: Failure | null;
}

/** When a job was begun, and when no stage goes on with it. */
export interface JobTimes {
  readonly startedAtMs: number;
  readonly endsAtMs: number;
}

/** What a stage is asked for. Stages add what they find out; what stands above them reads it. */
export class Job {
  readonly request: RouteRequest;
  readonly policy: Policy;
  readonly startedAtMs: number;
  readonly endsAtMs: number;
  plan: Plan = NONE.plan;
  /** Who was asked last; null = nobody. */
  lastAsked: Provider | null = null;
  traces: readonly Trace[] = NONE.traces;
  /** Attempts that ended without an answer, in that order. */
  failed: readonly FailedAttempt[] = NONE.failed;
  /** Where the answer came from; nowhere until there is one. */
  source: AnswerSource = NO_SOURCE;
  /** A further provider would have been asked as well, and the budget for that was spent. */
  overBudget = false;
  /** What a recheck of `null` brought; null = there was none. */
  rechecked: "found" | "missing" | null = null;
  /** Parts of its range that were asked for; null = it was not cut into parts. */
  partsSent: number | null = null;
  /** How it met the cache; null = it has no part in it. */
  cacheUse: CacheUse | null = null;
  /** When what answered it was begun, if that was a call shared with others. */
  sharedSinceMs: number = Number.POSITIVE_INFINITY;
  /** The block at which it was answered; null = not known. */
  at: SeenBlock | null = null;
  /** Nobody had the block of its view, so that its tag went out as it was written. */
  isStale = false;
  /** Jobs that the engine made by itself to carry this one out, for example to look up a write. */
  lookups: readonly Job[] = NONE.lookups;

  constructor(request: RouteRequest, policy: Policy, { startedAtMs, endsAtMs }: JobTimes) {
    this.request = request;
    this.policy = policy;
    this.startedAtMs = startedAtMs;
    this.endsAtMs = endsAtMs;
  }

  /** Its answer contradicts its question, as those of several providers do: it is not kept. */
  isContradicted = false;

  /** An attempt is over for this job. */
  addTrace(attempt: Attempt, failure: Failure | null): void {
    const trace = { attempt, failure };
    this.traces = this.traces.length === 0 ? [trace] : [...this.traces, trace];
  }

  /** An attempt has ended without an answer. */
  addFailed(failed: FailedAttempt): void {
    this.addTrace(failed.attempt, failed.failure);
    this.failed = [...this.failed, failed];
  }

  /** Takes over what is known of a job that was carried out for this one and for others. */
  absorb(shared: Job): void {
    this.plan = shared.plan;
    this.sharedSinceMs = shared.startedAtMs;
    this.traces = [...this.traces, ...shared.traces];
    this.failed = [...this.failed, ...shared.failed];
    this.lookups = [...this.lookups, ...shared.lookups];
    this.overBudget ||= shared.overBudget;
    this.isContradicted ||= shared.isContradicted;
    this.rechecked ??= shared.rechecked;
    this.cacheUse ??= shared.cacheUse;
    this.partsSent = shared.partsSent ?? this.partsSent;
  }
}

const NONE = {
  plan: { candidates: [], excluded: [] },
  traces: [],
  failed: [],
  lookups: [],
} as const;
