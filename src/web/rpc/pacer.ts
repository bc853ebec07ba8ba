// Paces the items of a batch, or the requests of a WebSocket: those over the caller's rate limit
// wait until the limit admits them or their deadline passes. Learns the rate from refusals only.
import type { Admission } from "../../hosted/admission/admission.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import type { Runtime } from "../../runtime.ts";
import type { Timer, TimerWheel } from "../../upstream/timer-wheel.ts";

/**
 * Items of a batch and requests of a WebSocket may wait this long after their arrival. Those not
 * admitted by then are refused.
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

/** What waits in order for tokens. */
export interface PacedItems {
  /** Until when the first one may wait. */
  readonly deadlineMs: number;
  /** The number of items that are not started yet. */
  readonly itemsLeft: () => number;
}

/** Paces one batch or one WebSocket. */
export type Pacer = NonNullable<ReturnType<typeof createPacer>>;

/** Creates a pacer; null = the caller has no rate limit. */
export function createPacer(
  { runtime, timerWheel, admission }: PacerParts,
  keyContext: KeyContext | null,
) {
  if (admission === null || keyContext === null) return null;
  let tokenMs = 0;
  let paced: PacedItems = { deadlineMs: 0, itemsLeft: () => 0 };
  const batch = {
    aloneMs: () => paced.itemsLeft() * tokenMs,
    latestMs: () => Math.max(0, paced.deadlineMs - runtime.now()),
  };
  let leave: (() => void) | null = null;
  let timer: Timer | null = null;
  return {
    /** True while a token is waited for: no item may start. */
    get isWaiting() {
      return timer !== null;
    },
    /** True from the first wait until `stop`. */
    get isPacing() {
      return leave !== null;
    },
    /**
     * Waits for the next token, then calls `resume` once. False = the items may not wait: the
     * deadline has passed, or too many batches of the account are waiting.
     */
    wait(token: TokenWait, items: PacedItems, resume: () => void): boolean {
      const leftMs = items.deadlineMs - runtime.now();
      if (leftMs <= 0) return false;
      leave ??= admission.batches.enter(keyContext.account, batch);
      if (leave === null) return false;
      tokenMs = token.tokenMs;
      paced = items;
      timer ??= timerWheel.set(Math.min(token.waitMs, leftMs), () => {
        timer = null;
        resume();
      });
      return true;
    },
    /** Ends waiting and pacing, until the next `wait`. */
    stop() {
      timer?.clear();
      timer = null;
      leave?.();
      leave = null;
    },
  };
}
