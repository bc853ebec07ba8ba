// Limits panic calls, which are calls that ask a provider although every circuit is open: each
// takes one of a few slots of its profile and chain. A slot is free again when its call ends, at
// the latest after a second.
import type { Tracker } from "../../health/tracker.ts";
import type { TimerWheel } from "../../timer-wheel.ts";

/** How long a slot is held at most; also the deadline of a read that holds one. */
export const PANIC_SLOT_MS = 1_000;

/**
 * Takes a slot. Returns a function that frees it, which has an effect once; null = no slot is free.
 */
export function takePanicSlot(timerWheel: TimerWheel, tracker: Tracker): (() => void) | null {
  if (!tracker.takePanicSlot()) return null;
  let isHeld = true;
  const free = (): void => {
    if (!isHeld) return;
    isHeld = false;
    timer.clear();
    tracker.freePanicSlot();
  };
  const timer = timerWheel.set(PANIC_SLOT_MS, free);
  return free;
}
