// Decides what follows a failed attempt, and which error the caller gets when every attempt failed.
// Never waits, sends or counts.
import type { Attempt, Step, Verdict } from "../provider/attempt.ts";
import type { ExclusionReason } from "../provider/capability.ts";
import type { Failure } from "../rpc/failure.ts";
import type { Method } from "../rpc/method.ts";
import type { Plan } from "./plan.ts";

/** An attempt that failed, with what the provider said. */
export interface FailedAttempt {
  readonly attempt: Attempt;
  readonly verdict: Verdict;
  readonly failure: Failure;
  /** Raw JSON of the provider's `error` member; null when it sent none. */
  readonly raw: Buffer | null;
}

/** The failed attempts of a request so far, and how many attempts it may send. */
export interface FailoverState {
  readonly maxAttempts: number;
  /** It asks for a part of a range: one that is refused is cut, and nobody else is asked. */
  readonly isPart?: boolean;
  /** In order of dispatch; the decision is about the last one. */
  readonly failed: readonly FailedAttempt[];
}

/**
 * The next move: answer with the last error, try another provider, give up, or one of the
 * transaction steps.
 */
export type Move = "return" | "next" | "exhausted" | "stop" | "known" | "verify";

/** Decides what follows the last failure of `state`. */
export function nextMove(state: FailoverState): Move {
  const last = state.failed.at(-1);
  if (last === undefined) return "exhausted";
  const step: Step = last.verdict.step;
  switch (step) {
    case "return":
    case "stop":
    case "known":
    case "verify":
      return step;
    case "next_once":
      return state.failed.some((other) => other !== last && other.verdict.step === "next_once")
        ? "return"
        : withinBudget(state);
    case "range":
      return state.isPart === true ? "exhausted" : withinBudget(state);
    case "next":
      return state.failed.some((other) => isAgreed(last, other)) ? "return" : withinBudget(state);
  }
}

function withinBudget({ failed, maxAttempts }: FailoverState): Move {
  const sent = failed.filter(({ failure }) => failure.kind !== "unsent");
  return sent.length < maxAttempts ? "next" : "exhausted";
}

/** An error that nobody can classify is the answer once another operator says the same. */
function isAgreed(last: FailedAttempt, other: FailedAttempt): boolean {
  return (
    isUnclassified(last) &&
    isUnclassified(other) &&
    last.failure.code === other.failure.code &&
    last.attempt.provider.operator !== other.attempt.provider.operator
  );
}

function isUnclassified({ verdict, failure, raw }: FailedAttempt): boolean {
  return verdict.category === "unknown" && raw !== null && failure.code !== null;
}

/** Whether every attempt failed because its provider is out of order or refuses the service. */
export function haveProvidersFailed(failed: readonly FailedAttempt[]): boolean {
  return failed.every(({ verdict: { effect } }) => AT_FAULT.has(effect.kind));
}

const AT_FAULT: ReadonlySet<string> = new Set(["failure", "cooldown", "cordon"]);

/**
 * The verdict on an error that does not carry the id of its request. Such an answer counts for the
 * health of the provider, but may belong to another request, so the caller never gets it: a read
 * goes to the next provider, and the outcome of a write is unknown.
 */
export function unownedVerdict(verdict: Verdict, method: Method): Verdict {
  const saysNothingOfRequest = verdict.step === "next" || verdict.step === "stop";
  return saysNothingOfRequest ? verdict : { ...verdict, step: method.replaySafe ? "next" : "stop" };
}

/** What the caller is answered when every attempt failed. */
export type Verdicts =
  /** Every provider refused the block range as too large. */
  | { readonly kind: "range"; readonly worst: FailedAttempt }
  /** The most informative error of a provider, unchanged. */
  | { readonly kind: "error"; readonly best: FailedAttempt }
  /** No provider sent an error that may be passed on. */
  | { readonly kind: "none" };

/** Chooses the most informative provider error; method-not-found only if all said so. */
export function bestError(failed: readonly FailedAttempt[]): Verdicts {
  const real = failed.filter(({ raw }) => raw !== null);
  const last = real.at(-1);
  if (last !== undefined && failed.every(({ verdict }) => verdict.step === "range"))
    return { kind: "range", worst: last };
  const all601 = failed.every(({ failure }) => failure.code === METHOD_NOT_FOUND);
  const shown = all601 ? real : real.filter(({ failure }) => failure.code !== METHOD_NOT_FOUND);
  let best: FailedAttempt | undefined;
  for (const attempt of shown)
    if (best === undefined || informationOf(attempt) > informationOf(best)) best = attempt;
  return best === undefined ? { kind: "none" } : { kind: "error", best };
}

const METHOD_NOT_FOUND = -32601;

/**
 * How much an error tells the caller, 0 to 6: most if the request is wrong, then if the node lacks
 * something, then if it is busy, broken, or refuses the service.
 */
function informationOf({ verdict }: FailedAttempt): number {
  const { effect, step } = verdict;
  if (step === "range") return 6;
  switch (effect.kind) {
    case "ignored":
      return verdict.category === "unknown" ? 4 : 5;
    case "learn":
    case "lag":
      return 4;
    case "cooldown":
    case "avoid":
      return 3;
    case "failure":
      return effect.cause === "auth" ? 1 : 2;
    case "cordon":
      return 0;
  }
}

// Why nobody answered a call. Tells a provider that failed for a moment, and may answer later, from
// a provider that cannot know the answer. Asks nobody.

/** A call without an answer. */
export interface NoAnswer {
  /** Ids of the providers that cannot answer it. */
  readonly unable: readonly string[];
  /** Somebody else could answer it, and did not for now. */
  readonly isForNow: boolean;
}

/** Who could not answer, and whether anybody else might have. */
export function unansweredOf(
  plan: Plan,
  failed: readonly FailedAttempt[],
  avoid: ReadonlySet<string> | null,
): NoAnswer {
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
const LASTING: ReadonlySet<string> = new Set(
  "response_size request_size dialect trace_state not_indexed".split(" "),
);

function isUnable({ step, effect, category }: Verdict): boolean {
  return (
    step === "range" || effect.kind === "learn" || effect.kind === "cordon" || LASTING.has(category)
  );
}
