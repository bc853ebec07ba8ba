// Usage by day as the columns of a graph: every day of the time is there, unused ones as 0.

import type { AnswerOf } from "../../api/contract-types.ts";

type UsageDay = Pick<AnswerOf<"GET /api/v1/usage">["by_day"][number], "day" | Measure>;

/** What can be shown of a day. */
export type Measure = "calls" | "cu" | "usd";

const DAY_S = 86_400;

/** Times in seconds and values, from the day of `from` to the one of `to`. */
export function columnsOf(
  {
    from,
    to,
    days,
  }: { readonly from: string; readonly to: string; readonly days: readonly UsageDay[] },
  measure: Measure,
): { readonly times: readonly number[]; readonly values: readonly number[] } {
  const byDay = new Map(days.map((row) => [Date.parse(row.day) / 1000, Number(row[measure])]));
  const firstS = Math.floor(Date.parse(from) / 1000 / DAY_S) * DAY_S;
  const count = Math.max(1, Math.floor((Date.parse(to) / 1000 - firstS) / DAY_S) + 1);
  const times = Array.from({ length: count }, (_, at) => firstS + at * DAY_S);
  return { times, values: times.map((time) => byDay.get(time) ?? 0) };
}

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
