// Decides when a dead worker is started again: soon at first, later after each further death.

const FIRST_MS = 100;
const LONGEST_MS = 30_000;
/** After serving this long, a worker's earlier deaths are forgotten. */
const STEADY_MS = 60_000;

/** Recent deaths of the worker at one position. */
export interface Restarts {
  readonly deaths: number;
}

/** No deaths yet. */
export const NO_RESTARTS: Restarts = { deaths: 0 };

/** Counts the death of a worker that served for `servedMs`; 0 = it never served. */
export function afterDeath({ deaths }: Restarts, servedMs: number): Restarts {
  return { deaths: servedMs >= STEADY_MS ? 1 : deaths + 1 };
}

/** The delay of the next start. */
export function delayMs({ deaths }: Restarts): number {
  return deaths === 0 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** (deaths - 1));
}
