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
