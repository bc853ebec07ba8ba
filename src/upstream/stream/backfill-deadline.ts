// How long one source may take to give what was missed: silence ends it, and so does taking up the
// time that others need. Knows nothing of what is asked.
import type { TimerWheel } from "../timer-wheel.ts";

/** Bounds of one source's questions. */
export interface BackfillDeadlineLimits {
  /** Without a useful answer. */
  readonly stallMs: number;
  /** In sum, however useful. */
  readonly totalMs: number;
}

const LEAST_STALL_MS = 1_000;
const MOST_STALL_MS = 3_000;
const STALL_SHARE = 10;
const TOTAL_SHARE = 2;

/**
 * What one source may take of the time that an outage may last. When everybody was asked in vain,
 * all get twice as long.
 */
export function backfillDeadlineFor(outageMs: number, round: number): BackfillDeadlineLimits {
  const stallMs =
    Math.min(MOST_STALL_MS, Math.max(LEAST_STALL_MS, outageMs / STALL_SHARE)) * 2 ** round;
  return { stallMs, totalMs: outageMs / TOTAL_SHARE };
}

/** Begins work and watches it. It does not stop the work: the caller closes the source. */
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
