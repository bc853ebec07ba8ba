// Holds new blocks back from a node of the local chain for some time, as distance and load do to
// real nodes. Knows heights and times; copies nothing.

/** A node this many blocks behind copies the next one at once. */
const MAX_HELD_BLOCKS = 2;

/** What of the leader's chain a node may copy by now. */
export class BlockDelay {
  readonly #delayMs: number;
  #released: number | null = null;
  // Never more than MAX_HELD_BLOCKS.
  #held: readonly { readonly height: number; readonly dueAtMs: number }[] = [];

  /** Holds every block back for so long. The height that it is first told of is not held back. */
  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  /** Takes the leader's height in; returns the number of the newest block that may be copied. */
  release(leaderHeight: number, nowMs: number): number {
    if (this.#released === null || leaderHeight < this.#released) {
      this.#released = leaderHeight;
      this.#held = [];
      return this.#released;
    }
    if (leaderHeight > (this.#held.at(-1)?.height ?? this.#released))
      this.#held = [...this.#held, { height: leaderHeight, dueAtMs: nowMs + this.#delayMs }];
    const due = this.#held.findLast(({ dueAtMs }) => dueAtMs <= nowMs)?.height ?? this.#released;
    const height = Math.max(this.#released, due, leaderHeight - MAX_HELD_BLOCKS);
    this.#released = height;
    this.#held = this.#held.filter((block) => block.height > height);
    return height;
  }

  /** Time until the next block may be copied; Infinity = none is held back. */
  waitMs(nowMs: number): number {
    return Math.max(0, (this.#held[0]?.dueAtMs ?? Number.POSITIVE_INFINITY) - nowMs);
  }
}
