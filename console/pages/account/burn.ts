// How fast an account spends, and when its balance ends at that rate. An estimate: it may round.

/** What an account spends. */
export interface Burn {
  /** US dollars a day over the last week; null = nothing was spent. */
  readonly perDayUsd: number | null;
  /** When the balance ends at that rate; null = not at all. */
  readonly endsAtMs: number | null;
}

const DAY_MS = 86_400_000;
const WINDOW_DAYS = 7;

/** Reads the days of the last week; a shorter life counts as long as it was, one day at least. */
export function burnOf(
  balanceUsd: string,
  days: readonly { readonly day: string; readonly usd: string }[],
  nowMs: number,
): Burn {
  const fromMs = nowMs - WINDOW_DAYS * DAY_MS;
  const recent = days.filter(({ day }) => Date.parse(day) + DAY_MS > fromMs);
  const spent = recent.reduce((sum, { usd }) => sum + Number(usd), 0);
  const firstMs = Math.min(...recent.map(({ day }) => Math.max(Date.parse(day), fromMs)));
  if (!(spent > 0)) return { perDayUsd: null, endsAtMs: null };
  const perDayUsd = spent / Math.max(1, (nowMs - firstMs) / DAY_MS);
  const balance = Math.max(0, Number(balanceUsd));
  return { perDayUsd, endsAtMs: nowMs + (balance / perDayUsd) * DAY_MS };
}
