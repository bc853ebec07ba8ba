// The circuit breaker of one provider on one transport: closed, open, half-open. It knows no errors, only success, failure with a cause, and ignored.
// A moment that lies in the future means that the clock jumped back: the wait it started is then over, so nothing can wedge.

/** Why a counted failure happened; some causes open the circuit sooner than others. */
export type Cause = "server" | "network" | "timeout" | "auth";

/** What the breaker hears of a finished try. */
export type Signal = "success" | "ignored" | Cause;

/** The state of a circuit, holding only what is valid in it. */
export type Breaker =
  | { readonly kind: "closed"; readonly failures: number; readonly cause: Cause | null; readonly causeRun: number }
  | { readonly kind: "open"; readonly sinceMs: number; readonly waitMs: number; readonly openings: number }
  | {
      readonly kind: "half_open";
      /** When the circuit opened; tries that began before it say nothing about now. */
      readonly openedAtMs: number;
      readonly openings: number;
      readonly successes: number;
      /** When the trial in flight took the permit; null = the permit is free. */
      readonly trialAtMs: number | null;
    };

/** When a try began and ended (monotonic ms), and one number in [0, 1) from which the jitter of a wait is taken. */
export interface Moment {
  readonly startedAtMs: number;
  readonly nowMs: number;
  readonly chance: number;
}

/** A circuit without a failure. */
export const CLOSED: Breaker = { kind: "closed", failures: 0, cause: null, causeRun: 0 };

/** Consecutive counted failures, of whatever cause, that open a circuit. */
export const FAILURES_TO_OPEN = 5;
/** Failures of one cause in a row that open a circuit. */
export const RUN_TO_OPEN: Readonly<Record<Cause, number>> = { server: FAILURES_TO_OPEN, network: 3, auth: 3, timeout: 2 };
/** Successful trials that close a half-open circuit. */
export const SUCCESSES_TO_CLOSE = 2;
/** How long a circuit stays open the first time. */
export const OPEN_BASE_MS = 30_000;
/** The longest a circuit stays open, before jitter. */
export const OPEN_CAP_MS = 600_000;
/** Part of a wait by which it may be longer or shorter. */
export const OPEN_JITTER = 0.05;
/** A permit whose trial never reports is free again after this long. */
export const PERMIT_EXPIRY_MS = 60_000;

/** A try that began less than this after the opening was sent before it: nothing is sent while a circuit is open, and that lasts longer. */
const STRAY_MARGIN_MS = 10_000;

/** The state as time alone makes it: an open circuit whose wait is over is half-open, a permit that never came back is free. */
export function settled(breaker: Breaker, nowMs: number): Breaker {
  switch (breaker.kind) {
    case "closed":
      return breaker;
    case "open":
      return openRemainingMs(breaker, nowMs) > 0
        ? breaker
        : { kind: "half_open", openedAtMs: breaker.sinceMs, openings: breaker.openings, successes: 0, trialAtMs: null };
    case "half_open": {
      if (breaker.trialAtMs === null) return breaker;
      const ageMs = nowMs - breaker.trialAtMs;
      return ageMs >= 0 && ageMs < PERMIT_EXPIRY_MS ? breaker : { ...breaker, trialAtMs: null };
    }
  }
}

/** The state after a try was let through, holding its permit where one is needed; null = not let through. Expects a settled state. */
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

/** The state after a try reported; gives its permit back. What arrives while it is open was sent before, and changes nothing. */
export function next(breaker: Breaker, signal: Signal, at: Moment): Breaker {
  switch (breaker.kind) {
    case "closed":
      return signal === "ignored" ? breaker : signal === "success" ? CLOSED : afterClosedFailure(breaker, signal, at);
    case "open":
      return breaker;
    case "half_open": {
      if (isStray(breaker, at)) return breaker;
      if (signal === "ignored") return breaker.trialAtMs === null ? breaker : { ...breaker, trialAtMs: null };
      if (signal !== "success") return opened(breaker.openings + 1, at);
      const successes = breaker.successes + 1;
      return successes >= SUCCESSES_TO_CLOSE ? CLOSED : { ...breaker, successes, trialAtMs: null };
    }
  }
}

/** Milliseconds until an open circuit becomes half-open; 0 in every other state. */
export function openRemainingMs(breaker: Breaker, nowMs: number): number {
  if (breaker.kind !== "open") return 0;
  const elapsedMs = nowMs - breaker.sinceMs;
  return elapsedMs < 0 ? 0 : Math.max(0, breaker.waitMs - elapsedMs);
}

function afterClosedFailure(breaker: Extract<Breaker, { kind: "closed" }>, cause: Cause, at: Moment): Breaker {
  const failures = breaker.failures + 1;
  const causeRun = breaker.cause === cause ? breaker.causeRun + 1 : 1;
  return failures >= FAILURES_TO_OPEN || causeRun >= RUN_TO_OPEN[cause] ? opened(1, at) : { kind: "closed", failures, cause, causeRun };
}

function opened(openings: number, at: Moment): Breaker {
  const plainMs = Math.min(OPEN_CAP_MS, OPEN_BASE_MS * 2 ** (openings - 1));
  return { kind: "open", sinceMs: at.nowMs, waitMs: plainMs * (1 + OPEN_JITTER * (2 * at.chance - 1)), openings };
}

function isStray({ openedAtMs, trialAtMs }: Extract<Breaker, { kind: "half_open" }>, at: Moment): boolean {
  // The trial itself never is, wherever the clock has been meanwhile.
  if (trialAtMs !== null && at.startedAtMs >= trialAtMs) return false;
  return at.nowMs >= openedAtMs && at.startedAtMs < openedAtMs + STRAY_MARGIN_MS;
}
