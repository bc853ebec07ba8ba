// A part of history as it is asked for: of the service, of a profile on a chain or of one provider.
// Steps come from memory, hours from rows that were kept for months. Unknown values are null, never
// 0. Knows no clock.
import { CALL_OUTCOMES, type CallOutcome } from "../../core/call-end.ts";
import { type History, RESOLUTIONS, type Resolution } from "./history.ts";
import { METHOD_CLASSES, type RowSubject, subjectKey } from "./history-counts.ts";
import {
  ATTEMPT_ROW,
  addRow,
  CALL_ROW,
  circuitOf,
  HIDDEN_AT,
  lagOf,
  latencyOf,
  layoutOfRow,
  overheadOf,
  type ReadNumbers,
  type RowLayout,
  UNANSWERED_AT,
} from "./history-row.ts";
import { HOUR_MS, SERVICE } from "./hour-book.ts";

/** In which resolution history is read: what is in memory, and what the database keeps. */
export const HISTORY_SPANS = ["hour", "day", "90d"] as const;

/** One of them. */
export type HistorySpan = (typeof HISTORY_SPANS)[number];

/** The steps of each, finest first. */
export const SPANS: Readonly<Record<HistorySpan, Resolution>> = {
  hour: RESOLUTIONS[0],
  day: RESOLUTIONS[1],
  "90d": { stepMs: HOUR_MS, steps: 90 * 24 },
};

/** How far back may be asked. */
export const HISTORY_RANGES = ["15m", "hour", "day", "7d", "30d", "90d"] as const;

/** One of them. */
export type HistoryRangeName = (typeof HISTORY_RANGES)[number];

/** The steps of each, until now. */
const RANGES: Readonly<
  Record<HistoryRangeName, { readonly span: HistorySpan; readonly steps: number }>
> = {
  "15m": { span: "hour", steps: 90 },
  hour: { span: "hour", steps: 360 },
  day: { span: "day", steps: 1_440 },
  "7d": { span: "90d", steps: 7 * 24 },
  "30d": { span: "90d", steps: 30 * 24 },
  "90d": { span: "90d", steps: 90 * 24 },
};

/** What is asked for. */
export interface HistoryQuery {
  readonly span: HistorySpan;
  /** The first step, by its number since the epoch; `joined` steps are one. */
  readonly firstStep: number;
  readonly joined: number;
  /** Number of (joined) steps. */
  readonly count: number;
  /** Null = the whole service. */
  readonly chain: { readonly profile: string; readonly chain: string } | null;
  /** Id of a provider of that chain; null = all. */
  readonly provider: string | null;
  /** Whether classes of methods of that provider are asked for. */
  readonly classes: boolean;
  /** Profiles on chains that are told of in sums beside the whole service. */
  readonly pairs?: readonly ChainPair[];
}

/** A profile on a chain, by their names. */
export type ChainPair = Pick<RowSubject, "profile" | "chain">;

/** Calls of a profile on a chain: all columns as sums, and how many began in each step. */
export interface ChainSums extends ChainPair {
  readonly sums: number[];
  /** Null = nothing is known. */
  readonly calls: (number | null)[];
}

/** What a series tells of. */
export interface SeriesSubject {
  readonly kind: "service" | "chain" | "provider" | "class";
  readonly profile: string | null;
  readonly chain: string | null;
  readonly provider: string | null;
  readonly class: string | null;
}

/** The rows of a series; a row is null where nothing is known. */
export interface SeriesReport extends SeriesSubject {
  /** What callers see of a managed provider; null = this is no series of a provider. */
  readonly alias: string | null;
  readonly rows: readonly (readonly number[] | null)[];
}

/** Most numbers of one report: beyond it no further series is reported. */
const MAX_NUMBERS = 1_000_000;

/** The part of the steps in memory that is asked for. */
export function historyReport(history: History, query: HistoryQuery): HistoryReport {
  const report = new HistoryReport(query);
  const resolution = query.span === "day" ? 1 : 0;
  const end = query.firstStep + query.count * query.joined;
  for (const series of history.series()) {
    const { subject, layout } = series;
    if ((series.rows[resolution] ?? null) === null && series.isClass) continue;
    const isOfService = query.chain === null && subject.provider === null;
    const rows = report.rowsOf(isOfService ? SERVICE : subject);
    if (rows === null) continue;
    for (let step = query.firstStep; step < end; step++) {
      const row = history.rowAt(series, resolution, step);
      if (row === null) continue;
      report.addTo(rows, layout, step, row);
      if (isOfService) report.addToPair(subject, step, row);
    }
  }
  return report;
}

/** Whom the series of a row tells of. */
function subjectOf({
  profile,
  chain,
  provider,
  class: of,
}: RowSubject): Omit<SeriesReport, "rows"> {
  const ofProvider = of === null ? "provider" : "class";
  const ofCalls = profile === "" ? "service" : "chain";
  return {
    kind: provider === null ? ofCalls : ofProvider,
    profile: profile === "" ? null : profile,
    chain: chain === "" ? null : chain,
    provider: provider?.id ?? null,
    alias: provider?.alias ?? null,
    class: of,
  };
}

type Rows = (number[] | null)[];

/** Adds up rows of steps or hours as they are read. Tells of the whole even where it is unknown. */
export class HistoryReport {
  readonly #query: HistoryQuery;
  readonly #series = new Map<string, { readonly row: RowSubject; readonly rows: Rows }>();
  readonly #pairs = new Map<string, ChainSums>();

  constructor(query: HistoryQuery) {
    this.#query = query;
    const { pairs = [], count } = query;
    for (const { profile, chain } of pairs) {
      const sums = Array.from({ length: CALL_ROW.width }, () => 0);
      const calls = Array.from({ length: count }, () => null);
      this.#pairs.set(`${profile} ${chain}`, { profile, chain, sums, calls });
    }
    this.rowsOf({ ...SERVICE, ...query.chain });
  }

  /** The rows of a series, which is begun if it is new; null = it is not reported. */
  rowsOf(row: RowSubject): Rows | null {
    if (!this.#matches(row)) return null;
    const key = subjectKey(row);
    const known = this.#series.get(key);
    if (known !== undefined) return known.rows;
    const { count } = this.#query;
    const most = Math.max(1, Math.floor(MAX_NUMBERS / (count * ATTEMPT_ROW.width)));
    if (this.#series.size > most) return null;
    const rows = Array.from({ length: count }, () => null);
    this.#series.set(key, { row, rows });
    return rows;
  }

  /** Adds a row of a step, unless it is not asked for. */
  add(step: number, row: RowSubject, numbers: readonly number[]): void {
    const rows = this.rowsOf(row);
    if (rows !== null) this.addTo(rows, layoutOfRow(row), step, numbers);
  }

  addTo(rows: Rows, layout: RowLayout, step: number, row: ReadNumbers): void {
    const { firstStep, joined, count } = this.#query;
    const at = Math.floor((step - firstStep) / joined);
    if (at < 0 || at >= count) return;
    const sum = rows[at] ?? Array.from({ length: layout.width }, () => 0);
    addRow(layout, sum, row);
    rows[at] = sum;
  }

  /** Adds calls of a profile on a chain, if it is asked for. */
  addToPair({ profile, chain }: ChainPair, step: number, row: ReadNumbers): void {
    const pair = this.#pairs.get(`${profile} ${chain}`);
    const { firstStep, joined, count } = this.#query;
    const at = Math.floor((step - firstStep) / joined);
    if (pair === undefined || at < 0 || at >= count) return;
    addRow(CALL_ROW, pair.sums, row);
    pair.calls[at] = (pair.calls[at] ?? 0) + (row[0] ?? 0);
  }

  /** The profiles on chains that were asked for. */
  pairs(): readonly ChainSums[] {
    return [...this.#pairs.values()];
  }

  /** The whole first, then providers, then classes. */
  series(): readonly SeriesReport[] {
    return sortedSeries(
      Array.from(this.#series.values(), ({ row, rows }) => ({ ...subjectOf(row), rows })),
    );
  }

  #matches({ profile, chain, provider, class: of }: RowSubject): boolean {
    const { chain: place, provider: only, classes } = this.#query;
    if (profile !== (place?.profile ?? "") || chain !== (place?.chain ?? "")) return false;
    if (only !== null && provider !== null && provider.id !== only) return false;
    return of === null || (classes && only !== null);
  }
}

/** Series in the order of their kinds, then of their names. */
export function sortedSeries<S extends SeriesSubject>(series: readonly S[]): readonly S[] {
  return series.toSorted(
    (left, right) =>
      KINDS.indexOf(left.kind) - KINDS.indexOf(right.kind) ||
      (left.provider ?? "").localeCompare(right.provider ?? "") ||
      METHOD_ORDER.indexOf(left.class ?? "") - METHOD_ORDER.indexOf(right.class ?? ""),
  );
}

const KINDS: readonly SeriesSubject["kind"][] = ["service", "chain", "provider", "class"];
const METHOD_ORDER: readonly string[] = METHOD_CLASSES;

type Column<T> = readonly (T | null)[];

/** A series as columns, each with a value for every step. */
export type SeriesColumns = ReturnType<typeof columnsOf>;

/** Reports as columns. */
export function historyColumns(reports: readonly SeriesReport[]): readonly SeriesColumns[] {
  const ofProviders = reports.filter(({ kind }) => kind === "provider");
  const callsAt = (at: number): number =>
    ofProviders.reduce((sum, { rows }) => sum + (rows[at]?.[0] ?? 0), 0);
  // Of one provider alone there is no share.
  const isWhole = ofProviders.length > 1;
  return reports.map((report) => columnsOf(report, isWhole ? callsAt : null));
}

/** `callsAt`: of all providers in a step; null = there is no share of them. */
function columnsOf(
  { rows, alias: _, ...subject }: SeriesReport,
  callsAt: ((at: number) => number) | null,
) {
  const layout = layoutOfRow(subject);
  const column = <T>(read: (row: readonly number[], at: number) => T | null): Column<T> =>
    rows.map((row, at) => (row === null ? null : read(row, at)));
  const latency = (share: number) => column((row) => rounded(latencyOf(row, layout, share)));
  const added = (share: number) =>
    layout.addedAt === null ? null : column((row) => rounded(overheadOf(row, layout, share)));
  const isProvider = subject.kind === "provider";
  const isOfCalls = layout === CALL_ROW;
  const { cancelled: _cancelled, ...named } = errorColumns(rows, layout);
  return {
    ...subject,
    calls: column((row) => row[0] ?? 0),
    /** Of calls: how they ended. */
    outcomes: isOfCalls
      ? recordOf(CALL_OUTCOMES, (outcome) => column((row) => outcomeIn(row, outcome)))
      : null,
    /** Of calls: why, and only what occurred. */
    reasons: isOfCalls ? named : {},
    unanswered: isOfCalls ? column((row) => row[UNANSWERED_AT] ?? 0) : null,
    hidden_failures: isOfCalls ? column((row) => row[HIDDEN_AT] ?? 0) : null,
    /** Of attempts: only what occurred. */
    errors: isOfCalls ? {} : named,
    p50_ms: latency(0.5),
    p95_ms: latency(0.95),
    p99_ms: latency(0.99),
    added_p50_ms: added(0.5),
    added_p95_ms: added(0.95),
    share:
      isProvider && callsAt !== null
        ? column((row, at) => shareOf(row[0] ?? 0, callsAt(at)))
        : null,
    lag_blocks: isProvider ? column((row) => lagOf(row, layout)) : null,
    circuit: isProvider ? column((row) => circuitOf(row, layout)) : null,
  };
}

/** Sums of a profile on a chain; where nothing is known of it there are none. */
export function chainColumns({ profile, chain, sums, calls }: ChainSums) {
  const isKnown = calls.some((value) => value !== null);
  return {
    profile,
    chain,
    calls,
    outcomes: isKnown ? recordOf(CALL_OUTCOMES, (outcome) => outcomeIn(sums, outcome)) : null,
    p95_ms: rounded(latencyOf(sums, CALL_ROW, 0.95)),
  };
}

/** How many calls of a row ended so. */
function outcomeIn(row: readonly number[], outcome: CallOutcome): number {
  if (outcome === "answered") return (row[0] ?? 0) - sumOf(row, NOT_ANSWERED);
  return sumOf(row, COLUMNS_OF[outcome]);
}

function sumOf(row: readonly number[], columns: readonly number[]): number {
  return columns.reduce((sum, at) => sum + (row[at] ?? 0), 0);
}

const COLUMNS_OF = recordOf(CALL_OUTCOMES, (outcome) =>
  CALL_ROW.errors.flatMap((name, n) => (name.split(".", 1)[0] === outcome ? [1 + n] : [])),
);
const NOT_ANSWERED = Object.values(COLUMNS_OF).flat();

function recordOf<Name extends string, T>(
  names: readonly Name[],
  columnOf: (name: Name) => T,
): Readonly<Record<Name, T>> {
  return Object.fromEntries(names.map((name) => [name, columnOf(name)])) as Record<Name, T>;
}

function errorColumns(
  rows: SeriesReport["rows"],
  { errors }: RowLayout,
): Readonly<Record<string, Column<number>>> {
  const columns = errors.flatMap((name, n): [string, Column<number>][] =>
    rows.some((row) => (row?.[1 + n] ?? 0) > 0)
      ? [[name, rows.map((row) => (row === null ? null : (row[1 + n] ?? 0)))]]
      : [],
  );
  return Object.fromEntries(columns);
}

function shareOf(calls: number, total: number): number | null {
  return total === 0 ? null : Math.round((calls / total) * 10_000) / 10_000;
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 100) / 100;
}

/** The steps of a query. */
export type HistoryRange = Pick<HistoryQuery, "span" | "firstStep" | "joined" | "count">;

/**
 * The steps of a range until now, joined so that there are at most `points`. They begin at whole
 * multiples, so that one who asks again is given the same steps.
 */
export function historyRange(name: HistoryRangeName, points: number, wallMs: number): HistoryRange {
  const { span, steps } = RANGES[name];
  const joined = Math.ceil(steps / points);
  const last = Math.floor(wallMs / (SPANS[span].stepMs * joined));
  const count = Math.floor(steps / joined);
  return { span, joined, count, firstStep: (last - count + 1) * joined };
}

/** A stretch of time (wall clock, ms), without its end. */
export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * The steps that an interval touches, in the finest resolution that is kept for its beginning; what
 * lies before the oldest step or after now is left out. Null = nothing is left.
 */
export function historyInterval(
  { fromMs, toMs }: Interval,
  points: number,
  wallMs: number,
): HistoryRange | null {
  const oldestMs = ({ stepMs, steps }: Resolution): number =>
    (Math.floor(wallMs / stepMs) - steps + 1) * stepMs;
  const span = HISTORY_SPANS.find((each) => fromMs >= oldestMs(SPANS[each])) ?? "90d";
  const { stepMs } = SPANS[span];
  const first = Math.floor(Math.max(fromMs, oldestMs(SPANS[span])) / stepMs);
  const last = Math.floor(Math.min(toMs - 1, wallMs) / stepMs);
  if (last < first) return null;
  // One step more than there are points may be touched at either end.
  const joined = Math.ceil((last - first + 1) / Math.max(1, points - 1));
  const firstStep = Math.floor(first / joined) * joined;
  return { span, joined, firstStep, count: Math.floor((last - firstStep) / joined) + 1 };
}
