// Judges a failed attempt, and decides what of it a caller may be shown. Where no provider gave a
// result, picks the answer: a provider's own error if one may be shown, else a refusal of ours.
import type { Verdict } from "../../../core/provider/attempt.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import { classifyCall } from "../../../core/provider-errors/classify-call.ts";
import { bestError, type FailedAttempt, unownedVerdict } from "../../../core/routing/failover.ts";
import type { Call } from "../../../core/rpc/call.ts";
import type { Failure } from "../../../core/rpc/failure.ts";
import { type Answer, faultAnswer, providerAnswer, refusedAnswer } from "../answer.ts";
import type { CallContext } from "../call-context.ts";
import {
  allFailed,
  mayShow,
  noProviderEligible,
  noRoom,
  outcomeUnknown,
  rangeRefused,
  unreadRequestError,
} from "../refusal.ts";

/** A failure, and where it was met. */
export interface FailedCall {
  readonly failure: Failure;
  readonly provider: Provider;
  readonly call: Call;
  readonly wallMs: number;
}

/** What follows from a failure. */
export interface Judgement {
  readonly verdict: Verdict;
  /** Raw JSON of an error that may be shown; null = nothing may. */
  readonly shown: Buffer | null;
}

/** Judges what a provider said; `raw` is its `error` member, where it sent one. */
export function judge(failed: FailedCall, raw: Buffer | null): Judgement {
  const { failure, provider, call } = failed;
  if (failure.crowded === true) return { verdict: CROWDED, shown: null };
  if (failure.kind === "no_room") return { verdict: NO_ROOM, shown: null };
  const own = verdictOf(failed);
  const isUnowned = failure.kind === "error" && raw === null;
  const verdict = isUnowned ? unownedVerdict(own, call.method) : own;
  const shown = isUnowned ? unreadRequestError(failure) : raw;
  return { verdict, shown: shown !== null && mayShow(provider, verdict, shown) ? shown : null };
}

/** What the classifier makes of a failure. */
export function verdictOf({ failure, provider, call, wallMs }: FailedCall): Verdict {
  return classifyCall(failure, call, { rules: provider.errorRules, wallMs });
}

/** Its caller has left. */
export const CANCELLED: Verdict = ignored("cancelled", "return");
/** Another provider has answered first. */
export const OVERTAKEN: Verdict = ignored("overtaken", "next");
/** No connection was free. */
export const CROWDED: Verdict = ignored("no_connection", "next");
/** The circuit of the provider opened before it was sent. */
export const LEFT: Verdict = ignored("circuit_open", "next");
/** It answered another question. A quirk of its chain looks alike, so it is not blamed. */
export const INTEGRITY: Verdict = ignored("integrity", "next");
/** Its answer could not be gathered. */
const NO_ROOM: Verdict = ignored("no_room", "return");

function ignored(category: string, step: Verdict["step"]): Verdict {
  return { category, step, effect: { kind: "ignored" } };
}

/** Where a call stands that has no result. */
export interface Ending {
  readonly context: CallContext;
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
  const { request, failed } = ending.context;
  const last = failed.at(-1);
  if (last?.failure.kind !== "no_room") return failureOf(ending, last);
  return request.call.method.replaySafe ? faultAnswer(noRoom()) : unknownOutcome(ending.context);
}

/** The call was sent, must not be sent again, and its outcome is unknown. */
export function unknownOutcome({ failed }: CallContext): Answer {
  return faultAnswer(outcomeUnknown(failed, null));
}

/** Everybody who could be asked has failed, or nobody could be asked. */
export function exhausted(ending: Ending): Answer {
  const { failed } = ending.context;
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

function nobodyAsked({ context, trialsTaken }: Ending): Answer {
  const { plan } = context;
  const pinned = context.request.pin !== null;
  return faultAnswer(noProviderEligible({ plan, trialsTaken, pinned, waitMs: waitMs(context) }));
}

function allHaveFailed({ context, late }: Ending): Answer {
  return faultAnswer(allFailed(context.failed, { late, waitMs: waitMs(context) }));
}

/** How long until somebody may be asked; null = waiting cannot help. */
function waitMs({ request }: CallContext): number | null {
  const { tracker, call, strategy, transport, pin } = request;
  return tracker.waitMs(call, { strategy, transport, pin });
}
