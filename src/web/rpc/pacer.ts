// Paces a batch: items beyond the caller's rate wait until the rate admits them or the batch's
// deadline passes. Knows no rate but what a refusal says.
import type { Admission } from "../../hosted/admission/admission.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import type { Runtime } from "../../runtime.ts";
import type { Timer, TimerWheel } from "../../upstream/timer-wheel.ts";

/**
 * From its arrival on, the items of a batch may wait this long. Items that the rate has not
 * admitted by then are refused.
 */
export const BATCH_DEADLINE_MS = 30_000;

/** What pacing needs. */
export interface PacerParts {
  readonly runtime: Pick<Runtime, "now">;
  readonly timerWheel: TimerWheel;
  readonly admission: Pick<Admission, "batches"> | null;
}

/** How long the next token takes, and every one after it, in milliseconds. */
export interface TokenWait {
  readonly waitMs: number;
  readonly tokenMs: number;
}

/** The pace of one batch. */
export interface Pacer {
  /** True while the batch waits: no further item is to be started. */
  readonly isWaiting: boolean;
  /**
   * Waits for the next token, then calls `resume` once; `itemsLeft` says how many items have yet to
   * begin. False = the batch may not wait: its deadline has passed, or too many batches of the
   * account wait.
   */
  wait(token: TokenWait, itemsLeft: () => number, resume: () => void): boolean;
  /** Ends the wait. */
  stop(): void;
}

/** The pace of a batch that arrives now; null = no rate limits its caller. */
export function createPacer(
  { runtime, timerWheel, admission }: PacerParts,
  keyContext: KeyContext | null,
): Pacer | null {
  if (admission === null || keyContext === null) return null;
  const deadlineMs = runtime.now() + BATCH_DEADLINE_MS;
  let tokenMs = 0;
  let left: () => number = () => 0;
  const batch = {
    aloneMs: () => left() * tokenMs,
    latestMs: () => Math.max(0, deadlineMs - runtime.now()),
  };
  let leave: (() => void) | null = null;
  let timer: Timer | null = null;
  return {
    get isWaiting() {
      return timer !== null;
    },
    wait(token, itemsLeft, resume) {
      const leftMs = deadlineMs - runtime.now();
      if (leftMs <= 0) return false;
      leave ??= admission.batches.enter(keyContext.account, batch);
      if (leave === null) return false;
      tokenMs = token.tokenMs;
      left = itemsLeft;
      timer ??= timerWheel.set(Math.min(token.waitMs, leftMs), () => {
        timer = null;
        resume();
      });
      return true;
    },
    stop() {
      timer?.clear();
      timer = null;
      leave?.();
      leave = null;
    },
  };
}
