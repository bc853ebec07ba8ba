// The clock of the service as this browser knows it, from the `Date` of answers: ages are right
// also where the clock of this computer is off.

/** What is known of the difference between two clocks. */
export interface ClockReading {
  /** Add this to the browser's time to get the time of the service. */
  readonly offsetMs: number;
  /** True = the difference is too large to be the resolution of `Date` and the way of an answer. */
  readonly isOff: boolean;
}

/** Nothing is known yet: both clocks are taken as equal. */
export const SAME_CLOCK: ClockReading = { offsetMs: 0, isOff: false };

/** `Date` counts whole seconds, and an answer takes a while. */
const TOLERATED_MS = 20_000;

/** The reading after an answer with this `Date` arrived; an unreadable one changes nothing. */
export function readClock(
  before: ClockReading,
  date: string | null,
  receivedAtMs: number,
): ClockReading {
  const serviceMs = date === null ? Number.NaN : Date.parse(date);
  if (!Number.isFinite(serviceMs)) return before;
  const offsetMs = serviceMs - receivedAtMs;
  if (Math.abs(offsetMs) < TOLERATED_MS) return before.isOff ? SAME_CLOCK : before;
  const isSettled = before.isOff && Math.abs(offsetMs - before.offsetMs) < TOLERATED_MS;
  return isSettled ? before : { offsetMs, isOff: true };
}
