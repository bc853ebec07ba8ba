// When a worker that died is started again: soon at first, later the more often it dies.

const FIRST_MS = 100;
const LONGEST_MS = 30_000;
/** A worker that served this long starts anew as if it had never died. */
const STEADY_MS = 60_000;

/** How often the worker of one place died lately. */
export interface Restarts {
  readonly deaths: number;
}

/** No deaths yet. */
export const NO_RESTARTS: Restarts = { deaths: 0 };

/** Counts the death of a worker that served for some time; 0 = it never served. */
export function afterDeath({ deaths }: Restarts, servedMs: number): Restarts {
  return { deaths: servedMs >= STEADY_MS ? 1 : deaths + 1 };
}

/** The wait before the next start. */
export function delayMs({ deaths }: Restarts): number {
  return deaths === 0 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** (deaths - 1));
}
