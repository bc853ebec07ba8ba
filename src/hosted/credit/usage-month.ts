// The months by which free compute units are counted: numbered from January 1970, UTC.

const FIRST_YEAR = 1970;
const MONTHS = 12;

/** Months since January 1970, UTC. */
export function monthOf(wallMs: number): number {
  const date = new Date(wallMs);
  return (date.getUTCFullYear() - FIRST_YEAR) * MONTHS + date.getUTCMonth();
}

/** When a month begins. */
export function monthStartMs(month: number): number {
  return Date.UTC(FIRST_YEAR, month);
}
