// A part of history as it is asked for: of the service, of a profile on a chain or of one provider.
// Steps come from memory, hours from rows that were kept for months. Unknown values are null, never
// 0. Knows no clock.
import {
  type ChainHistory,
  type History,
  type ProviderHistory,
  RESOLUTIONS,
  type Resolution,
  type SeriesRows,
} from "./history.ts";
import { METHOD_CLASSES, type RowSubject } from "./history-counts.ts";
import {
  ATTEMPT_ROW,
  addRow,
  CALL_ROW,
  circuitOf,
  lagOf,
  latencyOf,
  overheadOf,
  type RowLayout,
} from "./history-row.ts";
import { HOUR_MS } from "./hour-book.ts";

/** How far back is asked: what is in memory, and what the database keeps. */
export const HISTORY_SPANS = ["hour", "day", "90d"] as const;

/** One of them. */
export type HistorySpan = (typeof HISTORY_SPANS)[number];

/** The steps of each. */
export const SPANS: Readonly<Record<HistorySpan, Resolution>> = {
  hour: RESOLUTIONS[0],
  day: RESOLUTIONS[1],
  "90d": { stepMs: HOUR_MS, steps: 90 * 24 },
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

function mostSeries({ count }: Pick<HistoryQuery, "count">): number {
  return Math.max(1, Math.floor(MAX_NUMBERS / (count * ATTEMPT_ROW.width)));
}

/** The part of the steps in memory that is asked for. */
export function historyReport(history: History, query: HistoryQuery): readonly SeriesReport[] {
  const { chain, provider } = query;
  if (chain === null) return [serviceReport(history, query)];
  const known = history.find(chain.profile, chain.chain);
  if (known === null) return [];
  const providers = [...known.providers.values()]
    .filter(({ name }) => provider === null || provider === name.id)
    .sort((left, right) => (left.name.id < right.name.id ? -1 : 1))
    .slice(0, mostSeries(query));
  const ofProviders = providers.map((each) =>
    seriesReport(history, each.total, query, { ...known, provider: each.name, class: null }),
  );
  const ofClasses =
    provider === null || !query.classes
      ? []
      : providers.flatMap((each) => classReports(history, each, query));
  const ofChain = { ...known, provider: null, class: null };
  return [seriesReport(history, known.calls, query, ofChain), ...ofProviders, ...ofClasses];
}

function classReports(
  history: History,
  { name, classes }: ProviderHistory,
  query: HistoryQuery,
): readonly SeriesReport[] {
  const { chain: place } = query;
  if (place === null) return [];
  return classes.flatMap((series, at) => {
    if (series.rows[resolutionOf(query)] == null) return [];
    const subject = { ...place, provider: name, class: METHOD_CLASSES[at] ?? null };
    return [seriesReport(history, series, query, subject)];
  });
}

/** Whom the series of a row tells of. */
function subjectOf(row: RowSubject): Omit<SeriesReport, "rows"> {
  const { profile, chain, provider, class: of } = row;
  if (profile === "") return SERVICE;
  const ofProvider = of === null ? "provider" : "class";
  const kind = provider === null ? "chain" : ofProvider;
  return {
    kind,
    profile,
    chain,
    provider: provider?.id ?? null,
    alias: provider?.alias ?? null,
    class: of,
  };
}

/** The calls of all chains. */
function serviceReport(history: History, query: HistoryQuery): SeriesReport {
  const all = history.chains().map(({ calls }) => rowsOf(history, calls, query));
  return { ...SERVICE, rows: mergedRows(CALL_ROW, all) };
}

const SERVICE: Omit<SeriesReport, "rows"> = {
  kind: "service",
  profile: null,
  chain: null,
  provider: null,
  alias: null,
  class: null,
};

function seriesReport(
  history: History,
  series: SeriesRows,
  query: HistoryQuery,
  subject: RowSubject | ChainHistory,
): SeriesReport {
  return {
    ...subjectOf({ provider: null, class: null, ...subject }),
    rows: rowsOf(history, series, query),
  };
}

function resolutionOf({ span }: HistoryQuery): number {
  return span === "day" ? 1 : 0;
}

/** Adds up rows of hours as they are read, for a query of 90 days. */
export class HourReport {
  readonly #query: HistoryQuery;
  readonly #series = new Map<string, { readonly row: RowSubject; readonly rows: Rows }>();

  constructor(query: HistoryQuery) {
    this.#query = query;
  }

  /** Adds a row of an hour, unless it is not asked for. */
  add(hour: number, row: RowSubject, numbers: readonly number[]): void {
    const { firstStep, joined, count } = this.#query;
    const at = Math.floor((hour - firstStep) / joined);
    if (at < 0 || at >= count || !this.#matches(row)) return;
    const key = JSON.stringify([row.provider?.id ?? null, row.class]);
    const known = this.#series.get(key) ?? { row, rows: Array.from({ length: count }, () => null) };
    if (!this.#series.has(key) && this.#series.size > mostSeries(this.#query)) return;
    this.#series.set(key, known);
    const layout = row.provider === null ? CALL_ROW : ATTEMPT_ROW;
    const sum = known.rows[at] ?? Array.from({ length: layout.width }, () => 0);
    addRow(layout, sum, 0, { numbers, at: 0 });
    known.rows[at] = sum;
  }

  /** The whole first, then providers, then classes. */
  series(): readonly SeriesReport[] {
    const { chain, count } = this.#query;
    const found = Array.from(this.#series.values(), ({ row, rows }) => ({
      ...subjectOf(row),
      rows,
    }));
    if (!found.some(({ kind }) => kind === "service" || kind === "chain")) {
      const whole = { profile: "", chain: "", ...chain, provider: null, class: null };
      found.push({ ...subjectOf(whole), rows: Array.from({ length: count }, () => null) });
    }
    return sortedSeries(found);
  }

  #matches({ profile, chain, provider, class: of }: RowSubject): boolean {
    const { chain: place, provider: only, classes } = this.#query;
    if (profile !== (place?.profile ?? "") || chain !== (place?.chain ?? "")) return false;
    if (only !== null && provider !== null && provider.id !== only) return false;
    return of === null || (classes && only !== null);
  }
}

type Rows = (number[] | null)[];

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

/** The rows of a series, with as many steps joined as are asked for. */
function rowsOf(history: History, series: SeriesRows, query: HistoryQuery): Rows {
  const { firstStep, joined, count } = query;
  const resolution = resolutionOf(query);
  const numbers = series.rows[resolution] ?? null;
  return Array.from({ length: count }, (_, n) => {
    let row: number[] | null = null;
    for (let step = firstStep + n * joined; step < firstStep + (n + 1) * joined; step++) {
      const at = numbers === null ? null : history.rowAt(series, resolution, step);
      if (numbers === null || at === null) continue;
      row ??= Array.from({ length: series.layout.width }, () => 0);
      addRow(series.layout, row, 0, { numbers, at });
    }
    return row;
  });
}

function mergedRows(
  layout: RowLayout,
  all: readonly (readonly (readonly number[] | null)[])[],
): (number[] | null)[] {
  const length = Math.max(0, ...all.map((rows) => rows.length));
  return Array.from({ length }, (_, n) => {
    let merged: number[] | null = null;
    for (const rows of all) {
      const row = rows[n] ?? null;
      if (row === null) continue;
      merged ??= Array.from({ length: layout.width }, () => 0);
      addRow(layout, merged, 0, { numbers: row, at: 0 });
    }
    return merged;
  });
}

function layoutOf({ kind }: SeriesSubject): RowLayout {
  return kind === "service" || kind === "chain" ? CALL_ROW : ATTEMPT_ROW;
}

type Column<T> = readonly (T | null)[];

/** A series as columns, each with a value for every step. */
export type SeriesColumns = ReturnType<typeof columnsOf>;

/** Reports as columns. */
export function historyColumns(reports: readonly SeriesReport[]): readonly SeriesColumns[] {
  const ofProviders = reports.filter(({ kind }) => kind === "provider");
  const totals = mergedRows(
    ATTEMPT_ROW,
    ofProviders.map(({ rows }) => rows),
  ).map((row) => row?.[0] ?? 0);
  // Of one provider alone there is no share.
  const isWhole = ofProviders.length > 1;
  return reports.map((report) => columnsOf(report, isWhole ? totals : null));
}

function columnsOf({ rows, alias: _, ...subject }: SeriesReport, totals: readonly number[] | null) {
  const layout = layoutOf(subject);
  const column = <T>(read: (row: readonly number[], at: number) => T | null): Column<T> =>
    rows.map((row, at) => (row === null ? null : read(row, at)));
  const latency = (share: number) =>
    column((numbers) => rounded(latencyOf({ numbers, at: 0 }, layout, share)));
  const added = (share: number) =>
    layout.addedAt === null
      ? null
      : column((numbers) => rounded(overheadOf({ numbers, at: 0 }, layout, share)));
  const isProvider = subject.kind === "provider";
  return {
    ...subject,
    calls: column((row) => row[0] ?? 0),
    /** Only the errors that occurred. */
    errors: errorColumns(rows, layout),
    p50_ms: latency(0.5),
    p95_ms: latency(0.95),
    p99_ms: latency(0.99),
    added_p50_ms: added(0.5),
    added_p95_ms: added(0.95),
    share:
      isProvider && totals !== null
        ? column((row, at) => shareOf(row[0] ?? 0, totals[at] ?? 0))
        : null,
    lag_blocks: isProvider ? column((numbers) => lagOf({ numbers, at: 0 }, layout)) : null,
    circuit: isProvider ? column((numbers) => circuitOf({ numbers, at: 0 }, layout)) : null,
  };
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
 * The steps of a span until now, joined so that there are at most `points`. They begin at whole
 * multiples, so that one who asks again is given the same steps.
 */
export function historyRange(span: HistorySpan, points: number, wallMs: number): HistoryRange {
  const { stepMs, steps } = SPANS[span];
  const joined = Math.ceil(steps / points);
  const last = Math.floor(wallMs / (stepMs * joined));
  const count = Math.floor(steps / joined);
  return { span, joined, count, firstStep: (last - count + 1) * joined };
}
