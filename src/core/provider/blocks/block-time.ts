// How long a chain takes for a block, as the heights of one provider tell. Pure.

interface SeenHeight {
  readonly height: number;
  readonly atMs: number;
}

/** A shorter time, or fewer blocks, tell too little: a height may be of the block before. */
const LEAST_MS = 10_000;
const LEAST_BLOCKS = 8;
/** Heights older than this, at least, are left out: chains change their pace. */
const WINDOW_MS = 600_000;
const SHORTEST_MS = 50;
const LONGEST_MS = 3_600_000;
/** Block times that differ by less than this factor count as equal. */
const CLEARLY = 1.5;

/** The pace of the heights of one provider. */
export class BlockPace {
  #first: SeenHeight | null = null;
  /** Where the next window begins. */
  #middle: SeenHeight | null = null;
  #last: SeenHeight | null = null;

  see(height: number, atMs: number): void {
    const seen = { height, atMs };
    if (this.#first === null || height < this.#first.height) {
      this.#first = seen;
      this.#middle = seen;
      this.#last = seen;
      return;
    }
    if (height <= (this.#last?.height ?? -1)) return;
    this.#last = seen;
    if (this.#middle === null || atMs - this.#middle.atMs < WINDOW_MS) return;
    this.#first = this.#middle;
    this.#middle = seen;
  }

  /** Milliseconds a block; null = not known yet. */
  blockTimeMs(): number | null {
    if (this.#first === null || this.#last === null) return null;
    const blocks = this.#last.height - this.#first.height;
    const ms = this.#last.atMs - this.#first.atMs;
    if (blocks < LEAST_BLOCKS || ms < LEAST_MS) return null;
    return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, Math.round(ms / blocks)));
  }
}

/** The middle of several block times, so that one provider alone changes nothing; null = none. */
export function middleOf(blockTimesMs: readonly number[]): number | null {
  const sorted = [...blockTimesMs].sort((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
}

/** Whether two block times are so far apart that what depends on them should follow. */
export function isOtherPace(leftMs: number, rightMs: number): boolean {
  return Math.max(leftMs, rightMs) / Math.max(1, Math.min(leftMs, rightMs)) >= CLEARLY;
}
