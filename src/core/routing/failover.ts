// What to do after a failed attempt, and which error to tell when nobody could answer. Decides;
// never waits, sends or counts.
import type { Attempt, Step, Verdict } from "../provider/attempt.ts";
import type { Failure } from "../rpc/failure.ts";
import type { Method } from "../rpc/method.ts";

/** An attempt that failed, with what the provider said. */
export interface FailedAttempt {
  readonly attempt: Attempt;
  readonly verdict: Verdict;
  readonly failure: Failure;
  /** Raw JSON of the provider's `error` member; null when it sent none. */
  readonly raw: Buffer | null;
}

/** Where a request stands after a failure. */
export interface FailoverState {
  readonly maxAttempts: number;
  /** In order of dispatch; the last one is the one to decide about. */
  readonly failed: readonly FailedAttempt[];
}

/**
 * The next move: answer with the last error, try another provider, give up, or one of the
 * transaction steps.
 */
export type Move = "return" | "next" | "exhausted" | "stop" | "known" | "verify";

/** Decides after the last failure of `standing`. */
export function nextMove(standing: FailoverState): Move {
  const last = standing.failed.at(-1);
  if (last === undefined) return "exhausted";
  const step: Step = last.verdict.step;
  switch (step) {
    case "return":
    case "stop":
    case "known":
    case "verify":
      return step;
    case "next_once":
      return standing.failed.some((it) => it !== last && it.verdict.step === "next_once")
        ? "return"
        : budget(standing);
    case "next":
    case "range":
      return budget(standing);
  }
}

function budget(standing: FailoverState): Move {
  return standing.failed.length < standing.maxAttempts ? "next" : "exhausted";
}

/**
 * What follows from an error that does not carry the id of its request. It says how the provider
 * is; what it says of a request may be about another one, so it never is the answer: a read goes
 * on, and of a write nobody knows what became of it.
 */
export function unownedVerdict(verdict: Verdict, method: Method): Verdict {
  const saysNothingOfRequest = verdict.step === "next" || verdict.step === "stop";
  return saysNothingOfRequest ? verdict : { ...verdict, step: method.replaySafe ? "next" : "stop" };
}

/** What to tell when every attempt failed. */
export type Verdicts =
  /** Every provider found the range too large. */
  | { readonly kind: "range"; readonly worst: FailedAttempt }
  /** The most informative real error, unchanged. */
  | { readonly kind: "error"; readonly best: FailedAttempt }
  /** No provider sent an error that may be shown. */
  | { readonly kind: "none" };

/** Chooses the most informative real provider error; never method-not-found unless all said so. */
export function bestError(failed: readonly FailedAttempt[]): Verdicts {
  const real = failed.filter((it) => it.raw !== null);
  const last = real.at(-1);
  if (last !== undefined && failed.every((it) => it.verdict.step === "range"))
    return { kind: "range", worst: last };
  const all601 = failed.every((it) => it.failure.code === METHOD_NOT_FOUND);
  const shown = all601 ? real : real.filter((it) => it.failure.code !== METHOD_NOT_FOUND);
  let best: FailedAttempt | undefined;
  for (const it of shown) if (best === undefined || informative(it) > informative(best)) best = it;
  return best === undefined ? { kind: "none" } : { kind: "error", best };
}

const METHOD_NOT_FOUND = -32601;

/**
 * Higher says more to the caller: what is wrong with the request, then what the node lacks, then
 * that it is busy, broken, or refuses us.
 */
function informative(it: FailedAttempt): number {
  const { effect, step } = it.verdict;
  if (step === "range") return 6;
  switch (effect.kind) {
    case "ignored":
      return it.verdict.category === "unknown" ? 4 : 5;
    case "learn":
    case "lag":
      return 4;
    case "cooldown":
      return 3;
    case "failure":
      return effect.cause === "auth" ? 1 : 2;
    case "cordon":
      return 0;
  }
}
