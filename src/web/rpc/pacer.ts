// Paces a batch: items over the caller's rate limit wait until the limit admits them or the
// deadline of the batch passes. Learns the rate from refusals only.
import type { Admission } from "../../hosted/admission/admission.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import type { Runtime } from "../../runtime.ts";
import type { Timer, TimerWheel } from "../../upstream/timer-wheel.ts";

/**
 * Items of a batch may wait this long after its arrival. Items not admitted by then are refused.
 */
export const BATCH_DEADLINE_MS = 30_000;

export interface PacerParts {
  readonly runtime: Pick<Runtime, "now">;
  readonly timerWheel: TimerWheel;
  readonly admission: Pick<Admission, "batches"> | null;
}

/** Milliseconds until the next token, and between further tokens. */
export interface TokenWait {
  readonly waitMs: number;
  readonly tokenMs: number;
}

/** Paces one batch. */
export interface Pacer {
  /** True while the batch waits for a token: no item may start. */
  readonly isWaiting: boolean;
  /**
   * Waits for the next token, then calls `resume` once. `itemsLeft` returns the number of items not
   * yet started. False = the batch may not wait: its deadline has passed, or too many batches of
   * the account are waiting.
   */
  wait(token: TokenWait, itemsLeft: () => number, resume: () => void): boolean;
  /** Cancels the wait. */
  stop(): void;
}

/** Creates the pacer of a batch that has just arrived; null = the caller has no rate limit. */
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
