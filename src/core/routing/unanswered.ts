// Why nobody answered a call, as far as it tells whether somebody may answer it later: a provider
// that fails for a moment is not one that cannot know. Asks nobody.
import type { Verdict } from "../provider/attempt.ts";
import type { ExclusionReason } from "../provider/exclusion.ts";
import type { FailedAttempt } from "./failover.ts";
import type { Plan } from "./plan.ts";

/** A call without an answer. */
export interface NoAnswer {
  /** Ids of the providers that cannot answer it. */
  readonly unable: readonly string[];
  /** Somebody else could answer it, and did not for now. */
  readonly isForNow: boolean;
}

/** The failed attempts of a call, and those who were not to be asked. */
export interface UnansweredCall {
  readonly plan: Plan;
  readonly failed: readonly FailedAttempt[];
  readonly avoid: ReadonlySet<string> | null;
}

/** Who could not answer, and whether anybody else might have. */
export function unansweredOf({ plan, failed, avoid }: UnansweredCall): NoAnswer {
  const unable = failed
    .filter(({ verdict }) => isUnable(verdict))
    .map(({ attempt }) => attempt.provider.id);
  const isOther = (id: string): boolean => avoid?.has(id) !== true && !unable.includes(id);
  const isForNow =
    plan.candidates.some(({ provider }) => isOther(provider.id)) ||
    plan.excluded.some(({ provider, reason }) => isOther(provider.id) && PASSING.has(reason));
  return { unable, isForNow };
}

/** Reasons for which a provider is left out that are soon over. */
const PASSING: ReadonlySet<ExclusionReason> = new Set<ExclusionReason>([
  "lagging",
  "circuit_open",
  "trial_in_flight",
  "rps_limit",
  "concurrency_limit",
]);

/** Failures that teach nothing, and still come back when the same is asked again. */
const LASTING: ReadonlySet<string> = new Set([
  "response_size",
  "request_size",
  "dialect",
  "trace_state",
  "not_indexed",
]);

function isUnable({ step, effect, category }: Verdict): boolean {
  return (
    step === "range" || effect.kind === "learn" || effect.kind === "cordon" || LASTING.has(category)
  );
}
