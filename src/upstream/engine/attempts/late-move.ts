// What follows while an attempt takes long: it is waited for, a second provider is asked as well
// (a hedge, within the budget), or the next one is asked because this one is overdue. Asks nobody.
import type { Channel } from "../../../core/provider/attempt.ts";
import { creditsOf } from "../../../core/provider/budget/budget-limits.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import { hedgeAfterMs, LEAST_ATTEMPT_MS, overdueAfterMs } from "../../../core/routing/hedge.ts";
import type { Call } from "../../../core/rpc/call.ts";
import type { Job } from "../job.ts";
import type { PendingAttempt } from "./attempt.ts";
import type { Candidates } from "./candidates.ts";

/** The next step. */
export type LateMove =
  /** Looks again after `ms`; null = waits until the end of the attempt. */
  | { readonly kind: "wait"; readonly ms: number | null }
  /** Asks this provider as well. */
  | { readonly kind: "hedge"; readonly target: Channel }
  /** Asks the next provider; this one may still answer. */
  | { readonly kind: "next" };

/** A call while one of its attempts is waited for. */
export interface LateCall {
  readonly job: Job;
  readonly pending: PendingAttempt;
  readonly candidates: Candidates;
  /** It is the only one that is out. */
  readonly isAlone: boolean;
}

/** When an attempt of a call is first looked at; null = it has all the time that it was given. */
export function firstLookMs({ policy, plan, request }: Job, couldFollow: boolean): number | null {
  if (!couldFollow || !request.call.method.replaySafe || plan.panic === true) return null;
  return policy.hedge === null ? LEAST_ATTEMPT_MS : policy.hedge.floorMs;
}

/** What follows for an attempt that has not been answered. A hedge has been paid for. */
export function lateMove(late: LateCall): LateMove {
  const { job, pending, candidates, isAlone } = late;
  const { tracker, call } = job.request;
  if (pending.isTrial) {
    tracker.extraCalls.takeAnyway(costOf(pending.provider, call));
    return { kind: "next" };
  }
  const target = candidates.hedgeTarget();
  const usualMs =
    tracker.usualMs(pending, call.method, 0.99) ??
    (target === null ? null : tracker.usualMs(target, call.method, 0.99));
  const overdueMs = usualMs === null ? Number.POSITIVE_INFINITY : overdueAfterMs(usualMs);
  if (pending.ageMs >= overdueMs) return { kind: "next" };
  const wait = (untilMs: number): LateMove => {
    const ms = Math.min(untilMs, overdueMs) - pending.ageMs;
    return { kind: "wait", ms: ms === Number.POSITIVE_INFINITY ? null : ms };
  };
  const { hedge } = job.policy;
  if (hedge === null || target === null || !isAlone) return wait(Number.POSITIVE_INFINITY);
  const usual = {
    askedP95Ms: tracker.usualMs(pending, call.method, 0.95),
    targetP50Ms: tracker.usualMs(target, call.method, 0.5),
  };
  const hedgeMs = hedgeAfterMs(usual, hedge);
  if (pending.ageMs < hedgeMs) return wait(hedgeMs);
  if (tracker.extraCalls.take(costOf(target.provider, call))) return { kind: "hedge", target };
  job.overBudget = true;
  return wait(2 * Math.max(pending.ageMs, hedge.floorMs));
}

/** What a call costs at a provider, in credits. */
export function costOf({ budget }: Provider, { methodName }: Call): number {
  return budget === null ? 1 : creditsOf(budget, methodName);
}
