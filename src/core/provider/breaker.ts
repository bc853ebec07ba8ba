// The circuit breaker of one provider on one transport: closed, open or half-open. It knows no
// errors, only success, failure with a cause, ignored, and successful probes. If a stored time lies
// in the future, the clock has jumped back: the wait that started then counts as over, so that no
// circuit stays open forever.
import { isFresh, leftMs } from "../fresh.ts";

/** The cause of a counted failure; some causes open the circuit after fewer failures. */
export type Cause = "server" | "network" | "timeout" | "auth";

/** The outcome of an attempt as the breaker sees it. */
export type Signal = "success" | "ignored" | Cause;

/** The state of a circuit; each kind has only the members that are valid in it. */
export type Breaker =
  | {
      readonly kind: "closed";
      readonly failures: number;
      readonly cause: Cause | null;
      readonly causeRun: number;
      /** Only of one that probes closed: it counts as recovered until calls succeed. */
      readonly recovery?: Recovery;
    }
  | {
      readonly kind: "open";
      readonly sinceMs: number;
      readonly waitMs: number;
      readonly openings: number;
      /** When a probe last made the circuit half-open since it was last closed; null = never. */
      readonly probedAtMs: number | null;
    }
  | {
      readonly kind: "half_open";
      /** When the circuit opened. Attempts that began before say nothing about the present. */
      readonly openedAtMs: number;
      /** When it became half-open. */
      readonly sinceMs: number;
      readonly probedAtMs: number | null;
      readonly openings: number;
      readonly successes: number;
      /** When the trial in flight took the permit; null = the permit is free. */
      readonly trialAtMs: number | null;
      /** Good probes in a row since then; null = a call has tried it, so that calls decide. */
      readonly goodProbes: number | null;
    };

/** What a circuit keeps of its past that good probes alone closed. */
interface Recovery {
  readonly openings: number;
  readonly probedAtMs: number | null;
  /** Calls that succeeded since. */
  readonly successes: number;
}

/**
 * When an attempt began and ended (monotonic ms), and a random number in [0, 1) for the jitter of a
 * wait.
 */
export interface Moment {
  readonly startedAtMs: number;
  readonly nowMs: number;
  readonly chance: number;
}

/** A closed circuit without failures. */
export const CLOSED: Closed = { kind: "closed", failures: 0, cause: null, causeRun: 0 };

/** Consecutive counted failures, of any causes, that open a circuit. */
export const FAILURES_TO_OPEN = 5;
/** Consecutive failures of the same cause that open a circuit. */
export const RUN_TO_OPEN: Readonly<Record<Cause, number>> = {
  server: FAILURES_TO_OPEN,
  network: 3,
  auth: 3,
  timeout: 2,
};
/** Successful trials that close a half-open circuit, or end the recovery of one. */
export const SUCCESSES_TO_CLOSE = 2;
/** Good probes in a row that close a half-open circuit which no call has tried. */
export const PROBES_TO_CLOSE = 3;
/**
 * How long a circuit stays open the first time; doubled each time it opens again without having
 * closed.
 */
export const OPEN_BASE_MS = 30_000;
/** The longest a circuit stays open, before jitter. */
export const OPEN_CAP_MS = 60_000;
/** Largest part of a wait by which jitter lengthens or shortens it. */
export const OPEN_JITTER = 0.05;
/** A permit whose trial never reports is released after this time. */
export const PERMIT_EXPIRY_MS = 60_000;
/**
 * A permit is released after this time already if the provider has answered something since its
 * trial was sent: the answer to the trial is slow, or was lost when the provider hung.
 */
export const OVERDUE_TRIAL_MS = 1_000;

/**
 * The state at `nowMs`: an open circuit whose wait is over is half-open, and an expired permit is
 * free. `heardAtMs`: when the provider last answered anything; left out = never.
 */
export function settled(
  breaker: Breaker,
  nowMs: number,
  heardAtMs = Number.NEGATIVE_INFINITY,
): Breaker {
  switch (breaker.kind) {
    case "closed":
      return breaker;
    case "open":
      return openRemainingMs(breaker, nowMs) > 0
        ? breaker
        : halfOpened(breaker, {
            sinceMs: breaker.sinceMs + breaker.waitMs,
            probedAtMs: breaker.probedAtMs,
            successes: 0,
            goodProbes: 0,
          });
    case "half_open": {
      if (breaker.trialAtMs === null) return breaker;
      const expiryMs = heardAtMs > breaker.trialAtMs ? OVERDUE_TRIAL_MS : PERMIT_EXPIRY_MS;
      return isFresh(breaker.trialAtMs, expiryMs, nowMs)
        ? breaker
        : { ...breaker, trialAtMs: null };
    }
  }
}

/**
 * The state after an attempt was admitted, holding the trial permit if one is needed; null = not
 * admitted. Expects a `settled` state.
 */
export function admitted(breaker: Breaker, nowMs: number): Breaker | null {
  if (breaker.kind === "closed") return breaker;
  const mayTry = breaker.kind === "half_open" && breaker.trialAtMs === null;
  return mayTry ? { ...breaker, trialAtMs: nowMs, goodProbes: null } : null;
}

/**
 * The state after a successful probe: an open circuit becomes half-open, but at most once per wait
 * if it was opened again after a probe, since probes then say little about calls. A half-open one
 * that no call has tried closes after some of them in a row. Expects a `settled` state.
 */
export function probed(breaker: Breaker, at: Pick<Moment, "startedAtMs" | "nowMs">): Breaker {
  if (breaker.kind === "closed") return breaker;
  if (breaker.kind === "half_open") return probedAgain(breaker, at);
  const { startedAtMs, nowMs } = at;
  const { sinceMs, waitMs, probedAtMs } = breaker;
  if (startedAtMs < sinceMs && nowMs >= sinceMs) return breaker;
  if (probedAtMs !== null && nowMs >= probedAtMs && nowMs - probedAtMs < waitMs) return breaker;
  return halfOpened(breaker, { sinceMs: nowMs, probedAtMs: nowMs, successes: 0, goodProbes: 1 });
}

function probedAgain(
  breaker: HalfOpen,
  { startedAtMs, nowMs }: Pick<Moment, "startedAtMs" | "nowMs">,
): Breaker {
  const { goodProbes, openedAtMs, openings, probedAtMs } = breaker;
  // One that was sent before the circuit opened says nothing about the present.
  if (goodProbes === null || (startedAtMs < openedAtMs && nowMs >= openedAtMs)) return breaker;
  return goodProbes + 1 < PROBES_TO_CLOSE
    ? { ...breaker, goodProbes: goodProbes + 1 }
    : { ...CLOSED, recovery: { openings, probedAtMs, successes: 0 } };
}

/** The state after a probe failed: it changes nothing but the run of good ones. */
export function probeFailed(breaker: Breaker): Breaker {
  return breaker.kind === "half_open" && breaker.goodProbes !== null && breaker.goodProbes > 0
    ? { ...breaker, goodProbes: 0 }
    : breaker;
}

/**
 * The state after an attempt ended; releases its permit. While the circuit is open, attempts sent
 * earlier change nothing, and attempts sent later (calls without another provider) change it only
 * by success.
 */
export function next(breaker: Breaker, signal: Signal, at: Moment): Breaker {
  switch (breaker.kind) {
    case "closed":
      if (signal === "ignored") return breaker;
      return signal === "success" ? afterSuccess(breaker) : afterClosedFailure(breaker, signal, at);
    case "open":
      if (signal !== "success" || at.startedAtMs <= breaker.sinceMs) return breaker;
      return halfOpened(breaker, {
        sinceMs: at.nowMs,
        probedAtMs: breaker.probedAtMs,
        successes: 1,
        goodProbes: null,
      });
    case "half_open": {
      const isGoodSince = signal === "success" && at.startedAtMs > breaker.openedAtMs;
      // It began too early to count; a success that began after the circuit opened always counts.
      if (isEarly(breaker, at) && !isGoodSince) return breaker;
      if (signal === "ignored")
        return breaker.trialAtMs === null ? breaker : { ...breaker, trialAtMs: null };
      if (signal !== "success") return opened(breaker.openings + 1, breaker.probedAtMs, at);
      const successes = breaker.successes + 1;
      if (successes >= SUCCESSES_TO_CLOSE) return CLOSED;
      return { ...breaker, successes, trialAtMs: isEarly(breaker, at) ? breaker.trialAtMs : null };
    }
  }
}

/**
 * The state after another worker's circuit to this provider opened: a closed circuit is left with
 * one failure to go, of any cause, and closed without failures by the next success. A hint alone
 * never opens a circuit.
 */
export function warned(breaker: Breaker): Breaker {
  return breaker.kind === "closed"
    ? { ...breaker, failures: Math.max(breaker.failures, FAILURES_TO_OPEN - 1) }
    : breaker;
}

/** Milliseconds until an open circuit becomes half-open; 0 in every other state. */
export function openRemainingMs(breaker: Breaker, nowMs: number): number {
  return breaker.kind === "open" ? leftMs(breaker.sinceMs, breaker.waitMs, nowMs) : 0;
}

function afterSuccess({ recovery }: Closed): Breaker {
  if (recovery === undefined) return CLOSED;
  const successes = recovery.successes + 1;
  return successes < SUCCESSES_TO_CLOSE
    ? { ...CLOSED, recovery: { ...recovery, successes } }
    : CLOSED;
}

function afterClosedFailure(breaker: Closed, cause: Cause, at: Moment): Breaker {
  const failures = breaker.failures + 1;
  const causeRun = breaker.cause === cause ? breaker.causeRun + 1 : 1;
  const { recovery } = breaker;
  if (failures >= FAILURES_TO_OPEN || causeRun >= RUN_TO_OPEN[cause])
    return opened((recovery?.openings ?? 0) + 1, recovery?.probedAtMs ?? null, at);
  return { ...breaker, failures, cause, causeRun };
}

function opened(openings: number, probedAtMs: number | null, at: Moment): Breaker {
  const plainMs = Math.min(OPEN_CAP_MS, OPEN_BASE_MS * 2 ** (openings - 1));
  return {
    kind: "open",
    sinceMs: at.nowMs,
    waitMs: plainMs * (1 + OPEN_JITTER * (2 * at.chance - 1)),
    openings,
    probedAtMs,
  };
}

function halfOpened(
  { sinceMs: openedAtMs, openings }: Open,
  rest: Pick<HalfOpen, "sinceMs" | "probedAtMs" | "successes" | "goodProbes">,
): Breaker {
  return { kind: "half_open", openedAtMs, openings, trialAtMs: null, ...rest };
}

/**
 * Whether an attempt began before the circuit was half-open. The trial itself never did, even if
 * the clock has jumped.
 */
function isEarly(
  { trialAtMs, openedAtMs, sinceMs }: HalfOpen,
  { startedAtMs, nowMs }: Moment,
): boolean {
  if (trialAtMs !== null && startedAtMs >= trialAtMs - ROUNDING_MS) return false;
  return nowMs >= openedAtMs && startedAtMs < sinceMs;
}

/** Start times are computed from end time minus latency, with rounding errors up to this. */
const ROUNDING_MS = 0.01;

type Closed = Extract<Breaker, { kind: "closed" }>;
type Open = Extract<Breaker, { kind: "open" }>;
type HalfOpen = Extract<Breaker, { kind: "half_open" }>;
