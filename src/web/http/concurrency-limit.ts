// Limits concurrent operations. Knows neither the operations nor the form of a refusal.

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
