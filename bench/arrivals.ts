// Chance from a seed, and arrival times of independent callers: a Poisson process with a fixed
// seed, equal in every run and thread.

/** Returns a function that yields the gap in ms to the next arrival at this rate. */
export function arrivalGaps(ratePerSecond: number): () => number {
  const chance = seededChance(0x9e3779b9);
  return () => (-Math.log(1 - chance()) * 1_000) / ratePerSecond;
}

/** Uniform numbers in [0, 1) that depend on the seed alone (mulberry32). */
export function seededChance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Milliseconds of a monotonic clock that all threads share. */
export function sharedNowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
