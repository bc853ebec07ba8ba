// How many requests may have arrived at a provider within the last second. Counts sent requests in
// slots of 1/64 s, so that every second is bounded, wherever it begins, at a cost that does not
// grow with the rate. Knows no limit and no provider.

const SLOT_MS = 1_000 / 64;
/**
 * Slots added to a second (1/16 s): the network delays some requests more than others, so requests
 * sent over more than a second can arrive within one.
 */
const JITTER_SLOTS = 4;
/** The slots of one second, with the jitter, and the one in progress. */
const SLOTS = 65 + JITTER_SLOTS;

/** Requests of the last second and its jitter. */
export class SecondWindow {
  /** By number of the slot, modulo their count. */
  readonly #counts = new Uint32Array(SLOTS);
  /** Requests in all slots. */
  #total = 0;
  /** Number of the slot in progress. */
  #slot = Number.NEGATIVE_INFINITY;

  /** Requests that were sent within the second before `nowMs`, or up to 5/64 s earlier. */
  sentWithin(nowMs: number): number {
    this.#turn(nowMs);
    return this.#total;
  }

  /** Counts requests that are sent now. */
  count(requests: number, nowMs: number): void {
    this.#turn(nowMs);
    const at = indexOf(this.#slot);
    this.#counts[at] = (this.#counts[at] ?? 0) + requests;
    this.#total += requests;
  }

  /** Milliseconds until fewer than `limit` requests lie within a second; null = never. */
  roomInMs(limit: number, nowMs: number): number | null {
    this.#turn(nowMs);
    if (limit < 1) return null;
    let left = this.#total;
    for (let slot = this.#slot - SLOTS + 1; slot <= this.#slot && left >= limit; slot++) {
      left -= this.#counts[indexOf(slot)] ?? 0;
      if (left < limit) return Math.max(0, (slot + SLOTS) * SLOT_MS - nowMs);
    }
    return 0;
  }

  /** Drops the slots that are older than the window; all of them if the clock jumped. */
  #turn(nowMs: number): void {
    const slot = Math.floor(nowMs / SLOT_MS);
    const passed = slot - this.#slot;
    if (passed === 0) return;
    if (passed < 0 && passed > -SLOTS) return;
    if (passed < 0 || passed >= SLOTS) {
      if (this.#total > 0) this.#counts.fill(0);
      this.#total = 0;
    } else
      for (let old = this.#slot + 1; old <= slot; old++) {
        const at = indexOf(old);
        this.#total -= this.#counts[at] ?? 0;
        this.#counts[at] = 0;
      }
    this.#slot = slot;
  }
}

function indexOf(slot: number): number {
  return ((slot % SLOTS) + SLOTS) % SLOTS;
}
