// What is made of a failed attempt, and what of it a caller could be shown. Knows no other attempt.
import type { Verdict } from "../../../core/provider/attempt.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import { classifyCall } from "../../../core/provider-errors/classify-call.ts";
import { unownedVerdict } from "../../../core/routing/failover.ts";
import type { Call } from "../../../core/rpc/call.ts";
import type { Failure } from "../../../core/rpc/failure.ts";
import { mayShow, unreadRequestError } from "../refusal.ts";

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
