// Columns of history made ready for graphs and figures. Pure.
import type { AnswerOf } from "../api/contract-types.ts";

/** What the service remembers. */
export type History = AnswerOf<"GET /api/v1/history">;
/** One series of it. */
export type HistorySeries = History["series"][number];

type Column = readonly (number | null)[];

/** Counts of a step as a rate. */
export function perSecond(column: Column, stepS: number): Column {
  return column.map((value) => (value === null ? null : value / stepS));
}

/** The sum of what is known; null = nothing is. */
export function total(column: Column): number | null {
  const known = column.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}

/** Several columns added up, step by step. */
function sumColumns(columns: readonly Column[], length: number): Column {
  return Array.from({ length }, (_, at) => total(columns.map((column) => column[at] ?? null)));
}

/** The latest value that is known, and its step; null = none is. */
export function latest(
  column: Column | null,
): { readonly value: number; readonly step: number } | null {
  const step = column?.findLastIndex((value) => value !== null) ?? -1;
  const value = column?.[step] ?? null;
  return value === null ? null : { value, step };
}

/** Kinds of errors that are not called as the API names them. */
const ERROR_WORDS: Readonly<Record<string, string>> = {
  fault: "refused by the service",
  provider_error: "error from a provider",
  cancelled: "caller left",
  cut: "ended by the service",
  rejected: "wrong calls and reverts",
  unknown: "unknown error",
  server: "server error",
};

/** Errors a second of several series together, a line for each of the `most` frequent kinds. */
export function errorRates(
  { times, step_s: stepS }: Pick<History, "times" | "step_s">,
  series: readonly HistorySeries[],
  most: number,
): readonly { readonly label: string; readonly values: Column }[] {
  const groups = new Set(series.flatMap(({ errors }) => Object.keys(errors)));
  const kinds = [...groups].map((group) => {
    const sums = sumColumns(
      series.flatMap(({ errors }) => (errors[group] ? [errors[group]] : [])),
      times.length,
    );
    const label = ERROR_WORDS[group] ?? group.replaceAll("_", " ");
    return { count: total(sums) ?? 0, line: { label, values: perSecond(sums, stepS) } };
  });
  return kinds
    .filter(({ count }) => count > 0)
    .sort((left, right) => right.count - left.count)
    .slice(0, most)
    .map(({ line }) => line);
}

/** The part of calls that went wrong; null = there were none. */
export function errorShare({ calls, errors }: HistorySeries): number | null {
  const all = total(calls);
  if (all === null || all === 0) return null;
  const wrong = Object.entries(errors)
    // The right answer to a wrong call, and what callers ended themselves, are no errors.
    .filter(([group]) => !["rejected", "cut", "cancelled"].includes(group))
    .reduce((sum, [, column]) => sum + (total(column) ?? 0), 0);
  return Math.min(1, wrong / all);
}

/** The providers that were asked most, in that order. */
export function busiest(series: readonly HistorySeries[], most: number): readonly HistorySeries[] {
  return series
    .filter(({ kind }) => kind === "provider")
    .sort((left, right) => (total(right.calls) ?? 0) - (total(left.calls) ?? 0))
    .slice(0, most);
}

/** Steps that a graph of a young service shows at least. */
const LEAST_STEPS = 12;

/**
 * History without what says nothing: the steps before the service began to count, and the last
 * step, which was not over when the service answered.
 */
export function trimHistory(history: History): History {
  const { times, series } = history;
  const end = Math.max(0, times.length - 1);
  const firsts = series.map(({ calls }) => calls.findIndex((value) => value !== null));
  const known = firsts.filter((at) => at >= 0);
  const first = known.length === 0 ? 0 : Math.min(...known);
  const from = Math.max(0, Math.min(first, end - LEAST_STEPS));
  return {
    ...history,
    times: times.slice(from, end),
    series: series.map((each) => ({
      ...cutColumns(each, from, end),
      errors: cutColumns(each.errors, from, end),
    })),
  };
}

/** The same fields, with a part of each that is a column. */
function cutColumns<T extends object>(fields: T, from: number, end: number): T {
  const entries = Object.entries(fields).map(([name, value]: [string, unknown]) => [
    name,
    Array.isArray(value) ? value.slice(from, end) : value,
  ]);
  return Object.fromEntries(entries);
}
