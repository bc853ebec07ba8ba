// What a call is answered with when no provider gave a result: a provider's own error where one may
// be shown, else a refusal of ours.
import { bestError, type FailedAttempt } from "../../../core/routing/failover.ts";
import { type Answer, faultAnswer, providerAnswer, refusedAnswer } from "../answer.ts";
import type { Job } from "../job.ts";
import { allFailed, noProviderEligible, noRoom, outcomeUnknown, rangeRefused } from "../refusal.ts";

/** Where a call stands that has no result. */
export interface Ending {
  readonly job: Job;
  /** A half-open provider was passed over because its trial was taken. */
  readonly trialsTaken: boolean;
  /** Its time is over. */
  readonly late: boolean;
}

/**
 * The last failure ends the call. An answer that could not be gathered has been given all the same:
 * what it did is done.
 */
export function returned(ending: Ending): Answer {
  const { request, failed } = ending.job;
  const last = failed.at(-1);
  if (last?.failure.kind !== "no_room") return failureOf(ending, last);
  return request.call.method.replaySafe ? faultAnswer(noRoom()) : unknownOutcome(ending.job);
}

/** It was sent, must not be sent again, and nobody knows what became of it. */
export function unknownOutcome({ failed }: Job): Answer {
  return faultAnswer(outcomeUnknown(failed, null));
}

/** Everybody who could be asked has failed, or nobody could be asked. */
export function exhausted(ending: Ending): Answer {
  const { failed } = ending.job;
  const best = bestError(failed);
  switch (best.kind) {
    case "error":
      return failureOf(ending, best.best);
    case "range":
      return refusedAnswer(rangeRefused(best.worst.failure));
    case "none":
      return failed.length === 0 ? nobodyAsked(ending) : allHaveFailed(ending);
  }
}

/** A provider's error is the answer, if it may be shown. */
function failureOf(ending: Ending, last: FailedAttempt | undefined): Answer {
  if (last === undefined || last.raw === null) return exhausted(ending);
  return providerAnswer({ kind: "error", raw: last.raw }, last.attempt.provider);
}

function nobodyAsked({ job, trialsTaken }: Ending): Answer {
  const { plan } = job;
  const pinned = job.request.pin !== null;
  return faultAnswer(noProviderEligible({ plan, trialsTaken, pinned, waitMs: waitMs(job) }));
}

function allHaveFailed({ job, late }: Ending): Answer {
  return faultAnswer(allFailed(job.failed, { late, waitMs: waitMs(job) }));
}

/** How long until somebody may be asked; null = waiting cannot help. */
function waitMs({ request }: Job): number | null {
  const { tracker, call, strategy, transport, pin } = request;
  return tracker.waitMs(call, { strategy, transport, pin });
}
