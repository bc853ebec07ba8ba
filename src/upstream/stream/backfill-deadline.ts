// How long one source may take for a backfill: silence ends it, and so does using up the time that
// other sources need. Knows nothing of the queries.
import type { TimerWheel } from "../timer-wheel.ts";

/** Time limits of one source. */
export interface BackfillDeadlineLimits {
  /** Longest time without a useful answer. */
  readonly stallMs: number;
  /** Longest time in total. */
  readonly totalMs: number;
}

const LEAST_STALL_MS = 1_000;
const MOST_STALL_MS = 3_000;
const STALL_SHARE = 10;
const TOTAL_SHARE = 2;

/**
 * The time limits of one source, as a share of the time that an outage may last. Doubled with each
 * `round` in which all sources were tried in vain.
 */
export function backfillDeadlineFor(outageMs: number, round: number): BackfillDeadlineLimits {
  const stallMs =
    Math.min(MOST_STALL_MS, Math.max(LEAST_STALL_MS, outageMs / STALL_SHARE)) * 2 ** round;
  return { stallMs, totalMs: outageMs / TOTAL_SHARE };
}

/**
 * Starts work and reports when it exceeds its limits. Does not stop the work: the caller closes the
 * source.
 */
export function withBackfillDeadline<T>(
  timerWheel: TimerWheel,
  { stallMs, totalMs }: BackfillDeadlineLimits,
  begin: (progress: () => void) => Promise<T>,
): Promise<T | "given up"> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      over = true;
      stall.clear();
      total.clear();
      resolve("given up");
    };
    let over = false;
    let stall = timerWheel.set(stallMs, giveUp);
    const total = timerWheel.set(totalMs, giveUp);
    const progress = (): void => {
      if (over) return;
      stall.clear();
      stall = timerWheel.set(stallMs, giveUp);
    };
    const done = (): void => {
      over = true;
      stall.clear();
      total.clear();
    };
    begin(progress).then(
      (found) => {
        done();
        resolve(found);
      },
      (error: unknown) => {
        done();
        reject(error);
      },
    );
  });
}
