// The circuit breaker of one provider on one transport: closed, open, half-open. It knows no
// errors, only success, failure with a cause, ignored, and that a probe succeeded. A moment that
// lies in the future means that the clock jumped back: the wait it started is then over, so nothing
// can wedge.

/** Why a counted failure happened; some causes open the circuit sooner than others. */
export type Cause = "server" | "network" | "timeout" | "auth";

/** What the breaker hears of a finished try. */
export type Signal = "success" | "ignored" | Cause;

/** The state of a circuit, holding only what is valid in it. */
export type Breaker =
  | {
      readonly kind: "closed";
      readonly failures: number;
      readonly cause: Cause | null;
      readonly causeRun: number;
    }
  | {
      readonly kind: "open";
      readonly sinceMs: number;
      readonly waitMs: number;
      readonly openings: number;
      /** When a probe last made it half-open since it was closed; null = none did. */
      readonly probedAtMs: number | null;
    }
  | {
      readonly kind: "half_open";
      /** When the circuit opened; tries that began before it say nothing about now. */
      readonly openedAtMs: number;
      /** When it became half-open. */
      readonly sinceMs: number;
      readonly probedAtMs: number | null;
      readonly openings: number;
      readonly successes: number;
      /** When the trial in flight took the permit; null = the permit is free. */
      readonly trialAtMs: number | null;
    };

/**
 * When a try began and ended (monotonic ms), and one number in [0, 1) from which the jitter of a
 * wait is taken.
 */
export interface Moment {
  readonly startedAtMs: number;
  readonly nowMs: number;
  readonly chance: number;
}

/** A circuit without a failure. */
export const CLOSED: Breaker = { kind: "closed", failures: 0, cause: null, causeRun: 0 };

/** Consecutive counted failures of any cause that open a circuit. */
export const FAILURES_TO_OPEN = 5;
/** Failures of one cause in a row that open a circuit. */
export const RUN_TO_OPEN: Readonly<Record<Cause, number>> = {
  server: FAILURES_TO_OPEN,
  network: 3,
  auth: 3,
  timeout: 2,
};
/** Successful trials that close a half-open circuit. */
export const SUCCESSES_TO_CLOSE = 2;
/** How long a circuit stays open the first time. */
export const OPEN_BASE_MS = 30_000;
/** The longest a circuit stays open, before jitter. */
export const OPEN_CAP_MS = 60_000;
/** Part of a wait by which it may be longer or shorter. */
export const OPEN_JITTER = 0.05;
/** A permit whose trial never reports is free again after this long. */
export const PERMIT_EXPIRY_MS = 60_000;

/**
 * The state as time alone makes it: an open circuit whose wait is over is half-open, a permit that
 * never came back is free.
 */
export function settled(breaker: Breaker, nowMs: number): Breaker {
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
          });
    case "half_open": {
      if (breaker.trialAtMs === null) return breaker;
      const ageMs = nowMs - breaker.trialAtMs;
      return ageMs >= 0 && ageMs < PERMIT_EXPIRY_MS ? breaker : { ...breaker, trialAtMs: null };
    }
  }
}

/**
 * The state after a try was let through, holding its permit where one is needed; null = not let
 * through. Expects a settled state.
 */
export function admitted(breaker: Breaker, nowMs: number): Breaker | null {
  switch (breaker.kind) {
    case "closed":
      return breaker;
    case "open":
      return null;
    case "half_open":
      return breaker.trialAtMs === null ? { ...breaker, trialAtMs: nowMs } : null;
  }
}

/**
 * The state after a successful probe: an open circuit becomes half-open. One that real calls opened
 * again after that does so at most once per wait, since its probes say nothing about the calls it
 * fails. Probes change no other state.
 */
export function probed(
  breaker: Breaker,
  { startedAtMs, nowMs }: Pick<Moment, "startedAtMs" | "nowMs">,
): Breaker {
  if (breaker.kind !== "open") return breaker;
  const { sinceMs, waitMs, probedAtMs } = breaker;
  if (startedAtMs < sinceMs && nowMs >= sinceMs) return breaker;
  if (probedAtMs !== null && nowMs >= probedAtMs && nowMs - probedAtMs < waitMs) return breaker;
  return halfOpened(breaker, { sinceMs: nowMs, probedAtMs: nowMs, successes: 0 });
}

/**
 * The state after a try reported; gives its permit back. What was sent before the circuit opened
 * changes nothing while it is open. What was sent after that (a call that had nobody else to ask)
 * changes it only by succeeding.
 */
export function next(breaker: Breaker, signal: Signal, at: Moment): Breaker {
  switch (breaker.kind) {
    case "closed":
      if (signal === "ignored") return breaker;
      return signal === "success" ? CLOSED : afterClosedFailure(breaker, signal, at);
    case "open":
      if (signal !== "success" || at.startedAtMs <= breaker.sinceMs) return breaker;
      return halfOpened(breaker, {
        sinceMs: at.nowMs,
        probedAtMs: breaker.probedAtMs,
        successes: 1,
      });
    case "half_open": {
      if (isStray(breaker, signal, at)) return breaker;
      if (signal === "ignored")
        return breaker.trialAtMs === null ? breaker : { ...breaker, trialAtMs: null };
      if (signal !== "success") return opened(breaker.openings + 1, breaker.probedAtMs, at);
      const successes = breaker.successes + 1;
      if (successes >= SUCCESSES_TO_CLOSE) return CLOSED;
      return { ...breaker, successes, trialAtMs: isEarly(breaker, at) ? breaker.trialAtMs : null };
    }
  }
}

/** Milliseconds until an open circuit becomes half-open; 0 in every other state. */
export function openRemainingMs(breaker: Breaker, nowMs: number): number {
  if (breaker.kind !== "open") return 0;
  const elapsedMs = nowMs - breaker.sinceMs;
  return elapsedMs < 0 ? 0 : Math.max(0, breaker.waitMs - elapsedMs);
}

function afterClosedFailure(
  breaker: Extract<Breaker, { kind: "closed" }>,
  cause: Cause,
  at: Moment,
): Breaker {
  const failures = breaker.failures + 1;
  const causeRun = breaker.cause === cause ? breaker.causeRun + 1 : 1;
  return failures >= FAILURES_TO_OPEN || causeRun >= RUN_TO_OPEN[cause]
    ? opened(1, null, at)
    : { kind: "closed", failures, cause, causeRun };
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
  rest: Pick<HalfOpen, "sinceMs" | "probedAtMs" | "successes">,
): Breaker {
  return { kind: "half_open", openedAtMs, openings, trialAtMs: null, ...rest };
}

/**
 * Whether a try says nothing about now: it began too early. A success of one that began after the
 * opening counts all the same.
 */
function isStray(breaker: HalfOpen, signal: Signal, at: Moment): boolean {
  return isEarly(breaker, at) && (signal !== "success" || at.startedAtMs <= breaker.openedAtMs);
}

/**
 * Whether a try began before the circuit was half-open. The trial never did, wherever the clock has
 * been meanwhile.
 */
function isEarly(
  { trialAtMs, openedAtMs, sinceMs }: HalfOpen,
  { startedAtMs, nowMs }: Moment,
): boolean {
  if (trialAtMs !== null && startedAtMs >= trialAtMs - ROUNDING_MS) return false;
  return nowMs >= openedAtMs && startedAtMs < sinceMs;
}

/** Beginnings are reckoned back from ends. */
const ROUNDING_MS = 0.01;

type Open = Extract<Breaker, { kind: "open" }>;
type HalfOpen = Extract<Breaker, { kind: "half_open" }>;
