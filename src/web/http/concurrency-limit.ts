// How much may be under way at once. Knows neither what is done nor how a refusal looks.

/** Runs at most `most` at a time; whoever comes beyond that gets `refusal`. */
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
