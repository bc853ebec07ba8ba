// A part of history as it is asked for: of the service, of a profile on a chain or of one provider.
// Each process reports rows for the same steps; rows of several are added up, and shown as columns.
// Unknown values are null, never 0. Knows no clock.
import type { Provider } from "../../core/provider/profile.ts";
import type { CircuitOrCordon } from "../../upstream/health/health-report.ts";
import {
  type ChainHistory,
  type History,
  METHOD_CLASSES,
  type ProviderHistory,
  RESOLUTIONS,
  type SeriesRows,
} from "./history.ts";
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

/** What is asked for. */
export interface HistoryQuery {
  /** Position in `RESOLUTIONS`. */
  readonly resolution: number;
  /** The first step, by its number since the epoch; `joined` steps are one. */
  readonly firstStep: number;
  readonly joined: number;
  /** Number of (joined) steps. */
  readonly count: number;
  /** Null = the whole service. */
  readonly chain: { readonly profile: string; readonly chain: string } | null;
  /** Id of a provider of that chain, as the reader sees it; null = all. */
  readonly provider: string | null;
  /** True = the reader sees real ids. */
  readonly realIds: boolean;
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
  readonly rows: readonly (readonly number[] | null)[];
}

/** Which names a managed pool's providers have for its reader. */
export type ShownId = (profile: string, provider: Provider) => string;

/** Most numbers of one report: beyond it no further series is reported. */
const MAX_NUMBERS = 1_000_000;

/** The part of a history that is asked for. */
export function historyReport(
  history: History,
  query: HistoryQuery,
  shownId: ShownId,
): readonly SeriesReport[] {
  const { chain, provider } = query;
  if (chain === null) return [serviceReport(history, query)];
  const known = history.find(chain.profile, chain.chain);
  if (known === null) return [];
  const providers = [...known.providers.values()]
    .map((each) => ({ each, id: shownId(known.profile, each.provider) }))
    .filter(({ id }) => provider === null || provider === id)
    .sort((left, right) => (left.id < right.id ? -1 : 1));
  const most = Math.max(1, Math.floor(MAX_NUMBERS / (query.count * ATTEMPT_ROW.width)));
  const subjects = providers.slice(0, most);
  const ofProviders = subjects.map(({ each, id }) =>
    seriesReport(history, each.total, query, subjectOf("provider", known, id)),
  );
  const ofClasses =
    provider === null || !query.realIds
      ? []
      : subjects.flatMap(({ each, id }) => classReports(history, each, query, { known, id }));
  const whole = seriesReport(history, known.calls, query, subjectOf("chain", known, null));
  return [whole, ...ofProviders, ...ofClasses];
}

function classReports(
  history: History,
  { classes }: ProviderHistory,
  query: HistoryQuery,
  { known, id }: { readonly known: ChainHistory; readonly id: string },
): readonly SeriesReport[] {
  return classes.flatMap((series, at) => {
    if (series.rows[query.resolution] == null) return [];
    const subject = { ...subjectOf("class", known, id), class: METHOD_CLASSES[at] ?? null };
    return [seriesReport(history, series, query, subject)];
  });
}

function subjectOf(
  kind: SeriesSubject["kind"],
  { profile, chain }: Pick<ChainHistory, "profile" | "chain">,
  provider: string | null,
): SeriesSubject {
  return { kind, profile, chain, provider, class: null };
}

/** The calls of all chains. */
function serviceReport(history: History, query: HistoryQuery): SeriesReport {
  const all = history.chains().map(({ calls }) => rowsOf(history, calls, query));
  return { ...SERVICE, rows: mergedRows(CALL_ROW, all) };
}

const SERVICE: SeriesSubject = {
  kind: "service",
  profile: null,
  chain: null,
  provider: null,
  class: null,
};

function seriesReport(
  history: History,
  series: SeriesRows,
  query: HistoryQuery,
  subject: SeriesSubject,
): SeriesReport {
  return { ...subject, rows: rowsOf(history, series, query) };
}

/** The rows of a series, with as many steps joined as are asked for. */
function rowsOf(
  history: History,
  series: SeriesRows,
  { resolution, firstStep, joined, count }: HistoryQuery,
): (number[] | null)[] {
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

/** The reports of several processes as one: series of one subject are added up. */
export function mergeHistory(
  reports: readonly (readonly SeriesReport[])[],
): readonly SeriesReport[] {
  const groups = Map.groupBy(reports.flat(), ({ kind, profile, chain, provider, class: of }) =>
    JSON.stringify([kind, profile, chain, provider, of]),
  );
  return Array.from(groups.values(), (same) => {
    const [first = { ...SERVICE, rows: [] }] = same;
    return {
      ...first,
      rows: mergedRows(
        layoutOf(first),
        same.map(({ rows }) => rows),
      ),
    };
  }).sort((left, right) => KINDS.indexOf(left.kind) - KINDS.indexOf(right.kind));
}

const KINDS: readonly SeriesSubject["kind"][] = ["service", "chain", "provider", "class"];

function layoutOf({ kind }: SeriesSubject): RowLayout {
  return kind === "service" || kind === "chain" ? CALL_ROW : ATTEMPT_ROW;
}

type Column<T> = readonly (T | null)[];

/** A series as columns, each with a value for every step. */
export interface SeriesColumns extends SeriesSubject {
  readonly calls: Column<number>;
  /** Only the errors that occurred. */
  readonly errors: Readonly<Record<string, Column<number>>>;
  readonly p50_ms: Column<number>;
  readonly p95_ms: Column<number>;
  readonly p99_ms: Column<number>;
  readonly added_p50_ms: Column<number> | null;
  readonly added_p95_ms: Column<number> | null;
  readonly share: Column<number> | null;
  readonly lag_blocks: Column<number> | null;
  readonly circuit: Column<CircuitOrCordon> | null;
}

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

function columnsOf(
  { rows, ...subject }: SeriesReport,
  totals: readonly number[] | null,
): SeriesColumns {
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

/** A range of history that is asked for. */
export interface HistoryRange {
  readonly resolution: number;
  readonly stepMs: number;
  readonly firstStep: number;
  readonly joined: number;
  readonly count: number;
}

/**
 * The steps of the latest `steps` until now, joined so that there are at most `points`. They begin
 * at whole multiples, so that one who asks again is given the same steps.
 */
export function historyRange(resolution: number, points: number, wallMs: number): HistoryRange {
  const { stepMs, steps } = RESOLUTIONS[resolution] ?? RESOLUTIONS[0];
  const joined = Math.ceil(steps / points);
  const last = Math.floor(wallMs / (stepMs * joined));
  const count = Math.floor(steps / joined);
  return { resolution, stepMs, joined, count, firstStep: (last - count + 1) * joined };
}
