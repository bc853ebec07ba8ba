// One of the few places for calls that ask providers while every circuit is open. It is free again
// when the call is over, at the latest after a second.
import type { RoutingState } from "../health/tracker.ts";
import type { TimerWheel } from "../timer-wheel.ts";

/** How long one place is held, and how long a read may take that holds one. */
export const PANIC_SLOT_MS = 1_000;

/** Takes a place. Returns the way to free it, which works once; null = all are taken. */
export function takePanicSlot(timerWheel: TimerWheel, tracker: RoutingState): (() => void) | null {
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
