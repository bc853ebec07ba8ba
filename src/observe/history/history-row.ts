// One step of history as a row of whole numbers: how many calls, which errors, a small histogram of
// latencies. Rows of one layout can be added up, over steps, providers and workers alike. Knows no
// time and no provider.
import { CALL_REASONS, type CallOutcome } from "../../core/call-end.ts";
import { isRecord, parseJson } from "../../core/fields.ts";
import { ERROR_GROUPS } from "../../core/provider-errors/category.ts";
import { CIRCUIT_STATES, type CircuitOrCordon } from "../../upstream/health/health-report.ts";

/** What the columns of a row mean; the first one is the number of calls. */
export interface RowLayout {
  /** The names of the columns of errors, or of calls not answered; after the number of calls. */
  readonly errors: readonly string[];
  /** Where the histogram of latencies begins. */
  readonly latencyAt: number;
  /** Where the histogram of what the service added begins; null = there is none. */
  readonly addedAt: number | null;
  /**
   * Where the head lag stands, plus one (0 = unknown); after it the circuit, by its position in
   * `CIRCUIT_STATES`, plus one. Null = neither.
   */
  readonly stateAt: number | null;
  readonly width: number;
}

/** How calls of callers end that are not answered, each a column: by reason, or cancelled. */
const CALL_ERRORS = [...CALL_REASONS, "cancelled"] as const;
const CANCELLED_AT = 1 + CALL_REASONS.length;

/** Requests without an id, which are not among the calls. */
export const UNANSWERED_AT = 1 + CALL_ERRORS.length;
/** Failures of providers that callers did not notice. */
export const HIDDEN_AT = UNANSWERED_AT + 1;

/** The column of a call that was not answered. */
export function endColumn(outcome: CallOutcome, reasonIndex: number): number {
  return outcome === "cancelled" ? CANCELLED_AT : 1 + reasonIndex;
}

/** Upper bounds (ms) of latencies; a last column takes longer ones. */
const LATENCY_BOUNDS_MS = [
  1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, 800, 1_200, 2_000, 5_000, 15_000,
] as const;
/** Upper bounds (ms) of what the service adds. */
const ADDED_BOUNDS_MS = [0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10, 50] as const;

const CALLS_LATENCY_AT = HIDDEN_AT + 1;
const CALLS_ADDED_AT = CALLS_LATENCY_AT + LATENCY_BOUNDS_MS.length + 1;

/** Rows of calls of callers, of a profile on a chain or of the whole service. */
export const CALL_ROW: RowLayout = {
  errors: CALL_ERRORS,
  latencyAt: CALLS_LATENCY_AT,
  addedAt: CALLS_ADDED_AT,
  stateAt: null,
  width: CALLS_ADDED_AT + ADDED_BOUNDS_MS.length + 1,
};

const ATTEMPTS_LATENCY_AT = 1 + ERROR_GROUPS.length;
const ATTEMPTS_STATE_AT = ATTEMPTS_LATENCY_AT + LATENCY_BOUNDS_MS.length + 1;

/** Rows of attempts at a provider. */
export const ATTEMPT_ROW: RowLayout = {
  errors: ERROR_GROUPS,
  latencyAt: ATTEMPTS_LATENCY_AT,
  addedAt: null,
  stateAt: ATTEMPTS_STATE_AT,
  width: ATTEMPTS_STATE_AT + 2,
};

/** The columns of a layout by name: of a histogram by the upper bound of each. */
function columnNames(layout: RowLayout): readonly string[] {
  return layout === CALL_ROW ? CALL_COLUMNS : ATTEMPT_COLUMNS;
}

const LATENCY_COLUMNS = histogramColumns("latency", LATENCY_BOUNDS_MS);
const CALL_COLUMNS = [
  "calls",
  ...CALL_ERRORS.map((name) => `error.${name}`),
  "unanswered",
  "hidden",
  ...LATENCY_COLUMNS,
  ...histogramColumns("added", ADDED_BOUNDS_MS),
];
const ATTEMPT_COLUMNS = [
  "calls",
  ...ERROR_GROUPS.map((name) => `error.${name}`),
  ...LATENCY_COLUMNS,
  "lag",
  "circuit",
];

function histogramColumns(name: string, bounds: readonly number[]): readonly string[] {
  return [...bounds.map((bound) => `${name}.${bound}`), `${name}.more`];
}

/** The layout of the row of calls of callers, or of attempts at a provider. */
export function layoutOfRow({ provider }: { readonly provider: unknown }): RowLayout {
  return provider === null ? CALL_ROW : ATTEMPT_ROW;
}

/** A row that is counted in, and one that is read. */
export type Numbers = Uint32Array | number[];
export type ReadNumbers = Uint32Array | readonly number[];

/** Adds one call that took `ms` to the histogram of latencies at `at`. */
export function addLatency(row: Numbers, at: number, ms: number): void {
  addToHistogram(row, at, LATENCY_BOUNDS_MS, ms);
}

/** Adds what the service added to one call to the histogram at `at`. */
export function addOverhead(row: Numbers, at: number, ms: number): void {
  addToHistogram(row, at, ADDED_BOUNDS_MS, ms);
}

function addToHistogram(row: Numbers, at: number, bounds: readonly number[], ms: number): void {
  let column = 0;
  while (column < bounds.length && ms > (bounds[column] ?? 0)) column++;
  row[at + column] = (row[at + column] ?? 0) + 1;
}

/** Counts one more. */
export function increment(row: Numbers, at: number): void {
  row[at] = (row[at] ?? 0) + 1;
}

/** Adds a row to another one; of states the worst stays. */
export function addRow({ width, stateAt }: RowLayout, to: Numbers, row: ReadNumbers): void {
  const summed = stateAt ?? width;
  for (let column = 0; column < summed; column++)
    to[column] = (to[column] ?? 0) + (row[column] ?? 0);
  for (let column = summed; column < width; column++)
    to[column] = Math.max(to[column] ?? 0, row[column] ?? 0);
}

/** The latency (ms) within which a share of the answers of a row came; null = there were none. */
export function latencyOf(row: ReadNumbers, layout: RowLayout, share: number): number | null {
  return percentileOf(row, layout.latencyAt, LATENCY_BOUNDS_MS, share);
}

/** The same of what the service added. */
export function overheadOf(row: ReadNumbers, { addedAt }: RowLayout, share: number): number | null {
  return addedAt === null ? null : percentileOf(row, addedAt, ADDED_BOUNDS_MS, share);
}

/** The head lag of a row; null = unknown. */
export function lagOf(row: ReadNumbers, { stateAt }: RowLayout): number | null {
  const lag = stateAt === null ? 0 : (row[stateAt] ?? 0);
  return lag === 0 ? null : lag - 1;
}

/** The worst circuit of a row; null = unknown. */
export function circuitOf(row: ReadNumbers, { stateAt }: RowLayout): CircuitOrCordon | null {
  const state = stateAt === null ? 0 : (row[stateAt + 1] ?? 0);
  return CIRCUIT_STATES[state - 1] ?? null;
}

/** Notes the lag and circuit of a provider; the worst of a step stays. */
export function noteState(row: Numbers, lag: number | null, circuit: CircuitOrCordon): void {
  const { stateAt } = ATTEMPT_ROW;
  if (stateAt === null) return;
  const code = CIRCUIT_STATES.indexOf(circuit) + 1;
  if (lag !== null) row[stateAt] = Math.max(row[stateAt] ?? 0, Math.max(0, lag) + 1);
  row[stateAt + 1] = Math.max(row[stateAt + 1] ?? 0, code);
}

/** Interpolated within its column. */
function percentileOf(
  row: ReadNumbers,
  from: number,
  bounds: readonly number[],
  share: number,
): number | null {
  const countAt = (column: number): number => row[from + column] ?? 0;
  let total = 0;
  for (let column = 0; column <= bounds.length; column++) total += countAt(column);
  if (total === 0) return null;
  const rank = share * total;
  let before = 0;
  for (let column = 0; column <= bounds.length; column++) {
    const count = countAt(column);
    if (count > 0 && before + count >= rank) {
      const lower = bounds[column - 1] ?? 0;
      const upper = bounds[column] ?? lower * 2;
      return lower + ((upper - lower) * Math.max(0, rank - before)) / count;
    }
    before += count;
  }
  return bounds.at(-1) ?? null;
}

// A row as text that is kept for months: the columns that are not 0, by name, so that versions with
// different columns read each other's rows.

/** How many names there may be; a text with more was not written by a version of this service. */
const MAX_NAMES = 1_000;
const CIRCUIT = "circuit.";

/** A row as text. */
export function hourCounts(layout: RowLayout, numbers: readonly number[]): string {
  const named = columnNames(layout).flatMap((name, at): readonly [string, number][] => {
    const value = numbers[at] ?? 0;
    if (value === 0) return [];
    return name === "circuit" ? [[CIRCUIT + CIRCUIT_STATES[value - 1], 1]] : [[name, value]];
  });
  return JSON.stringify(Object.fromEntries(named));
}

/** The row of a text; null = it is none. Columns of other versions count where they fit best. */
export function parseHourCounts(layout: RowLayout, text: string): readonly number[] | null {
  const value = parseJson(text);
  const named = isRecord(value) ? Object.entries(value) : null;
  if (named === null || named.length > MAX_NAMES) return null;
  const names = columnNames(layout);
  const numbers = Array.from({ length: layout.width }, () => 0);
  for (const [name, count] of named) {
    if (typeof count !== "number" || !Number.isSafeInteger(count) || count < 0) return null;
    if (name.startsWith(CIRCUIT)) {
      const at = names.indexOf("circuit");
      const state = CIRCUIT_STATES.findIndex((each) => name === CIRCUIT + each) + 1;
      if (at !== -1) numbers[at] = Math.max(numbers[at] ?? 0, state);
      continue;
    }
    const at = columnFor(names, name);
    if (at !== -1) numbers[at] = (numbers[at] ?? 0) + count;
  }
  return numbers;
}

/**
 * What earlier versions called such columns. They did not tell a provider's failure from a caller's
 * own error, which most of these were, nor a refusal from a call that nobody could serve; calls
 * refused before they were routed were not counted at all.
 */
const EARLIER_NAMES: ReadonlyMap<string, string> = new Map([
  ["error.fault", "error.failed.other"],
  ["error.provider_error", "error.caller_error.other"],
]);

/** The column of a name; of a histogram with other bounds the one that includes the bound. */
function columnFor(names: readonly string[], given: string): number {
  const name = EARLIER_NAMES.get(given) ?? given;
  const exact = names.indexOf(name);
  const of = /^(latency|added)\.([\d.]+)$/.exec(name);
  if (exact !== -1 || of === null) return exact;
  const [, kind = "", bound = ""] = of;
  return names.findIndex((each) => {
    if (!each.startsWith(`${kind}.`)) return false;
    const upper = each.slice(kind.length + 1);
    return upper === "more" || Number(upper) >= Number(bound);
  });
}
