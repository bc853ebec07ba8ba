// Holds new blocks back from a node of the local chain for some time, as distance and load do to
// real nodes. Knows heights and times; copies nothing.

/** What of the leader's chain a node may copy by now. */
export interface BlockDelay {
  /** Takes the leader's height in; returns the number of the newest block that may be copied. */
  readonly release: (leaderHeight: number, nowMs: number) => number;
  /** Time until the next block may be copied; Infinity = none is held back. */
  readonly waitMs: (nowMs: number) => number;
}

/** A node this many blocks behind copies the next one at once. */
const MAX_HELD_BLOCKS = 2;

/** Holds every block back for so long. The height that it is first told of is not held back. */
export function createBlockDelay(delayMs: number): BlockDelay {
  let released: number | null = null;
  // Never more than MAX_HELD_BLOCKS.
  let held: readonly { readonly height: number; readonly dueAtMs: number }[] = [];
  return {
    release(leaderHeight, nowMs) {
      if (released === null || leaderHeight < released) {
        released = leaderHeight;
        held = [];
        return released;
      }
      if (leaderHeight > (held.at(-1)?.height ?? released))
        held = [...held, { height: leaderHeight, dueAtMs: nowMs + delayMs }];
      const due = held.findLast(({ dueAtMs }) => dueAtMs <= nowMs)?.height ?? released;
      const height = Math.max(released, due, leaderHeight - MAX_HELD_BLOCKS);
      released = height;
      held = held.filter((block) => block.height > height);
      return height;
    },
    waitMs: (nowMs) => Math.max(0, (held[0]?.dueAtMs ?? Number.POSITIVE_INFINITY) - nowMs),
  };
}
