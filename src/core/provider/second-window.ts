// How many requests may have arrived within the last second: counts those that were sent, in slots
// of 1/64 s, so that any second, wherever it begins, can be bounded at a cost that does not depend
// on the rate. Knows no limit and no provider.

/** Requests of the last second and its jitter; changed in place. */
export class SecondWindow {
  /** By number of the slot, modulo their count. */
  readonly counts = new Uint32Array(SLOTS);
  /** Requests in all slots. */
  total = 0;
  /** Number of the slot in progress. */
  slot = Number.NEGATIVE_INFINITY;
}

const SLOT_MS = 1_000 / 64;
/**
 * On their way some requests are held up longer than others, so that those of more than a second
 * arrive within one: so many slots are added to it, 1/16 s.
 */
const JITTER_SLOTS = 4;
/** The slots of one second, with the jitter, and the one in progress. */
const SLOTS = 65 + JITTER_SLOTS;

/** Requests that were sent within the second before `nowMs`, or up to 5/64 s earlier. */
export function sentWithin(window: SecondWindow, nowMs: number): number {
  turn(window, nowMs);
  return window.total;
}

/** Counts requests that are sent now. */
export function countSent(window: SecondWindow, requests: number, nowMs: number): void {
  turn(window, nowMs);
  const at = indexOf(window.slot);
  window.counts[at] = (window.counts[at] ?? 0) + requests;
  window.total += requests;
}

/** Milliseconds until fewer than `limit` requests lie within a second; null = never. */
export function roomInMs(window: SecondWindow, limit: number, nowMs: number): number | null {
  turn(window, nowMs);
  if (limit < 1) return null;
  let left = window.total;
  for (let slot = window.slot - SLOTS + 1; slot <= window.slot && left >= limit; slot++) {
    left -= window.counts[indexOf(slot)] ?? 0;
    if (left < limit) return Math.max(0, (slot + SLOTS) * SLOT_MS - nowMs);
  }
  return 0;
}

/** Drops the slots that are older than the window; all of them if the clock jumped. */
function turn(window: SecondWindow, nowMs: number): void {
  const slot = Math.floor(nowMs / SLOT_MS);
  const passed = slot - window.slot;
  if (passed === 0) return;
  if (passed < 0 && passed > -SLOTS) return;
  if (passed < 0 || passed >= SLOTS) {
    if (window.total > 0) window.counts.fill(0);
    window.total = 0;
  } else
    for (let old = window.slot + 1; old <= slot; old++) {
      const at = indexOf(old);
      window.total -= window.counts[at] ?? 0;
      window.counts[at] = 0;
    }
  window.slot = slot;
}

function indexOf(slot: number): number {
  return ((slot % SLOTS) + SLOTS) % SLOTS;
}
