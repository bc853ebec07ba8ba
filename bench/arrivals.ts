// Arrival times of independent callers: a Poisson process with a fixed seed, equal in every run and
// thread. Knows no clock.

/** Returns a function that yields the gap in ms to the next arrival at this rate. */
export function arrivalGaps(ratePerSecond: number): () => number {
  let state = 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    const uniform = ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    return (-Math.log(1 - uniform) * 1_000) / ratePerSecond;
  };
}

/** Milliseconds of a monotonic clock that all threads share. */
export function sharedNowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
