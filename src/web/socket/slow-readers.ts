// Bounds what all sockets together hold of bytes that their clients have yet to read. Knows no
// connection.
import type { MemoryBudget, MemoryLimits } from "../../upstream/memory-budget.ts";

/** A socket whose client has not read everything yet. */
export interface SlowReader {
  /** Closes it with 1013, behind what waits to be read. */
  tellTooSlow(): void;
  /** Cuts the connection. Its bytes are free then. */
  cutOff(): void;
}

/** Parts of `max_in_flight_bytes`: beyond the first one is warned, beyond the second cut off. */
const WARNED_SHARE = 1 / 4;
const CUT_SHARE = 1 / 2;

interface Unread {
  bytes: number;
  isWarned: boolean;
}

/**
 * Counts unread bytes in the memory budget. Beyond a quarter of the budget the socket that has been
 * behind for longest is warned. Warned sockets may go on reading until all sockets hold half of the
 * budget, or it is used up: then the socket that has been behind for longest is cut off.
 */
export class SlowReaders {
  readonly #budget: MemoryBudget;
  readonly #limits: () => Pick<MemoryLimits, "maxInFlightBytes">;
  /** Longest behind first. */
  readonly #readers = new Map<SlowReader, Unread>();
  #bytes = 0;
  /** The part of them of sockets that were not warned. */
  #unwarnedBytes = 0;

  constructor(budget: MemoryBudget, limits: () => Pick<MemoryLimits, "maxInFlightBytes">) {
    this.#budget = budget;
    this.#limits = limits;
  }

  /** Sets how many bytes a socket holds; 0 = its client has read everything, or is gone. */
  count(reader: SlowReader, bytes: number): void {
    const known = this.#readers.get(reader);
    if (known === undefined && bytes === 0) return;
    const unread = known ?? { bytes: 0, isWarned: false };
    const more = bytes - unread.bytes;
    unread.bytes = bytes;
    if (bytes === 0) this.#readers.delete(reader);
    else this.#readers.set(reader, unread);
    this.#bytes += more;
    this.#budget.used += more;
    if (!unread.isWarned) this.#unwarnedBytes += more;
    if (more > 0) this.#relieve();
  }

  /** A socket is closing: what it holds counts as warned. */
  closing(reader: SlowReader): void {
    const unread = this.#readers.get(reader);
    if (unread === undefined || unread.isWarned) return;
    unread.isWarned = true;
    this.#unwarnedBytes -= unread.bytes;
  }

  #relieve(): void {
    const { maxInFlightBytes } = this.#limits();
    for (const [reader, { isWarned }] of this.#readers) {
      if (this.#unwarnedBytes <= maxInFlightBytes * WARNED_SHARE) break;
      if (!isWarned) reader.tellTooSlow();
    }
    for (const [reader, { isWarned }] of this.#readers) {
      const isBeyond = this.#bytes > maxInFlightBytes * CUT_SHARE;
      if (!isBeyond && this.#budget.used <= maxInFlightBytes) return;
      if (!isBeyond && !isWarned) return reader.tellTooSlow();
      reader.cutOff();
    }
  }
}
