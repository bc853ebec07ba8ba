// Columns of history made ready for graphs and figures. Pure.
import type { AnswerOf } from "../api/contract-types.ts";
import { isFailure, NOT_ANSWERED, OUTCOMES, type Outcome, reasonText } from "./outcomes.ts";

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

/** Kinds of errors of providers that are not called as the API names them. */
const ERROR_WORDS: Readonly<Record<string, string>> = {
  cut: "ended by the service",
  rejected: "the call was wrong",
  too_large: "the call asked for too much",
  unsupported: "not served by it",
  behind: "lacks a block or state",
  unknown: "unknown error",
  server: "server error",
};

/** A line of a graph. */
export interface RateLine {
  readonly label: string;
  readonly values: Column;
  /** Name of its colour in the style sheet. */
  readonly color: string;
}

/** Colours of failures, the most frequent first; what is no failure has none of them. */
const FAILURE_COLORS = ["--bad", "--error-2", "--error-3", "--error-4"] as const;
const NEUTRAL_COLORS = ["--muted", "--line-strong"] as const;

/** Errors a second of several providers together, a line for each of the `most` frequent kinds. */
export function errorRates(
  { times, step_s: stepS }: Pick<History, "times" | "step_s">,
  series: readonly HistorySeries[],
  most: number,
): readonly RateLine[] {
  const groups = new Set(series.flatMap(({ errors }) => Object.keys(errors)));
  const kinds = [...groups].map((group) => {
    const sums = sumColumns(
      series.flatMap(({ errors }) => (errors[group] ? [errors[group]] : [])),
      times.length,
    );
    const label = ERROR_WORDS[group] ?? group.replaceAll("_", " ");
    return { group, count: total(sums) ?? 0, label, values: perSecond(sums, stepS) };
  });
  const shown = kinds
    .filter(({ count }) => count > 0)
    .sort((left, right) => right.count - left.count)
    .slice(0, most);
  return [true, false].flatMap((wanted) =>
    shown
      .filter(({ group }) => isFailure(group) === wanted)
      .map(({ label, values }, at) => ({
        label,
        values,
        color: colorAt(wanted ? FAILURE_COLORS : NEUTRAL_COLORS, at),
      })),
  );
}

function colorAt(colors: readonly string[], at: number): string {
  return colors[at % colors.length] ?? "--muted";
}

const OUTCOME_COLORS = {
  failed: "--bad",
  refused: "--warn",
  caller_error: "--muted",
  cancelled: "--line-strong",
} as const;

/** Calls a second that were not answered, a line for each outcome that occurred. */
export function outcomeRates(
  { step_s: stepS }: Pick<History, "step_s">,
  { outcomes }: HistorySeries,
): readonly RateLine[] {
  if (outcomes === null) return [];
  return NOT_ANSWERED.filter((outcome) => (total(outcomes[outcome]) ?? 0) > 0).map((outcome) => ({
    label: OUTCOMES[outcome].word,
    values: perSecond(outcomes[outcome], stepS),
    color: OUTCOME_COLORS[outcome],
  }));
}

/** Calls of a profile on a chain in the range that is shown. */
export type ChainCalls = NonNullable<History["chains"]>[number];

/** The part of all calls that ended so; null = there were none, or nothing is known. */
export function shareOfEnds(
  outcomes: ChainCalls["outcomes"] | undefined,
  outcome: Outcome,
): number | null {
  const all = outcomes == null ? 0 : total(Object.values(outcomes));
  return outcomes == null || !all ? null : outcomes[outcome] / all;
}

/** The path of a small line through `width` by `height`; "" = less than two points are known. */
export function sparkPath(values: Column, width: number, height: number, points = 60): string {
  const first = values.findIndex((value) => value !== null);
  // The step that runs would look like a fall.
  const known = first === -1 ? [] : values.slice(first, -1);
  const joined = Math.ceil(known.length / points);
  const sums = Array.from(
    { length: joined === 0 ? 0 : Math.floor(known.length / joined) },
    (_, n) => total(known.slice(n * joined, (n + 1) * joined)),
  );
  if (sums.length < 2) return "";
  const most = Math.max(1, ...sums.map((value) => value ?? 0));
  const place = (value: number, n: number): string =>
    `${((n / (sums.length - 1)) * width).toFixed(1)},${(height - (value / most) * height).toFixed(1)}`;
  return sums
    .map((value, n) => {
      if (value === null) return "";
      return `${n === 0 || sums[n - 1] === null ? "M" : "L"}${place(value, n)}`;
    })
    .join("");
}

/** The part of calls that ended so; null = there were none. */
export function outcomeShare({ calls, outcomes }: HistorySeries, outcome: Outcome): number | null {
  const all = total(calls);
  const some = outcomes === null ? null : total(outcomes[outcome]);
  return all === null || all === 0 || some === null ? null : some / all;
}

/** The `most` frequent reasons of an outcome, with their numbers of calls. */
export function topReasons(
  { reasons }: Pick<HistorySeries, "reasons">,
  outcome: Outcome,
  most: number,
): readonly { readonly text: string; readonly calls: number }[] {
  return Object.entries(reasons)
    .filter(([name]) => name.startsWith(`${outcome}.`))
    .map(([name, column]) => ({ text: reasonText(name), calls: total(column) ?? 0 }))
    .filter(({ calls }) => calls > 0)
    .sort((left, right) => right.calls - left.calls)
    .slice(0, most);
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
      reasons: cutColumns(each.reasons, from, end),
      outcomes: each.outcomes === null ? null : cutColumns(each.outcomes, from, end),
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
