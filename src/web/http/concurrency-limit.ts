// Bounds how many operations run at once. Knows neither the operations nor how a refusal looks.

/** Runs at most `most` at a time; each further call resolves with `refusal` at once. */
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
