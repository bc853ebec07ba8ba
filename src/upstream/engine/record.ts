// What is known of one routed call, under way or ended: its plan, its attempts and where its answer
// came from. The evidence is made of it. Decides nothing.
import type { Attempt } from "../../core/provider/attempt.ts";
import { type AnswerSource, NO_SOURCE } from "../../core/routing/answer-source.ts";
import type { FailedAttempt } from "../../core/routing/failover.ts";
import type { Plan } from "../../core/routing/plan.ts";
import type { Failure } from "../../core/rpc/failure.ts";
import type { RouteRequest } from "./route-request.ts";

/** One attempt, as evidence. */
export interface Trace {
  readonly attempt: Attempt;
  readonly failure: Failure | null;
}

/** The record of one job. Stages write it; what stands above the engine reads it. */
export class CallRecord {
  readonly request: RouteRequest;
  readonly startedAtMs: number;
  plan: Plan = EMPTY_PLAN;
  readonly traces: Trace[] = [];
  /** Attempts that ended without an answer, in that order. */
  readonly failed: FailedAttempt[] = [];
  /** Where the answer came from; nowhere until there is one. */
  source: AnswerSource = NO_SOURCE;
  /** Calls that the engine made by itself to answer this one, for example to look up a write. */
  readonly lookups: CallRecord[] = [];

  constructor(request: RouteRequest, startedAtMs: number) {
    this.request = request;
    this.startedAtMs = startedAtMs;
  }

  /** An attempt has ended without an answer. */
  addFailed(failed: FailedAttempt): void {
    this.traces.push({ attempt: failed.attempt, failure: failed.failure });
    this.failed.push(failed);
  }

  /** Takes over what is known of a call that was made for this job and for others. */
  absorb(shared: CallRecord): void {
    this.plan = shared.plan;
    this.traces.push(...shared.traces);
    this.failed.push(...shared.failed);
    this.lookups.push(...shared.lookups);
  }
}

const EMPTY_PLAN: Plan = { candidates: [], excluded: [] };
