// Counts the requests under way, so that a drain can wait for them, and bounds those of one kind.

/** Requests under way on all listeners. */
export interface Activity {
  active: number;
  lastMs: number;
  draining: boolean;
  /** True once the drain is over: every request still under way is cut off. */
  ended: boolean;
}

/** Runs at most `most` operations at a time; a further call resolves to `refusal` at once. */
export function createBound<Refusal>(
  most: number,
  refusal: Refusal,
): <T>(run: () => Promise<T>) => Promise<T | Refusal> {
  let running = 0;
  return async (run) => {
    if (running >= most) return refusal;
    running++;
    try {
      return await run();
    } finally {
      running--;
    }
  };
}
