// Decides when a dead worker is started again: soon at first, later after each further death.

const FIRST_MS = 100;
const LONGEST_MS = 30_000;
/** After serving this long, a worker's earlier deaths are forgotten. */
const STEADY_MS = 60_000;

/** The recent deaths of a worker after another one, before which it served; 0 = it never did. */
export function afterDeath(deaths: number, servedMs: number): number {
  return servedMs >= STEADY_MS ? 1 : deaths + 1;
}

/** The delay of the next start. */
export function delayMs(deaths: number): number {
  return deaths === 0 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** (deaths - 1));
}
