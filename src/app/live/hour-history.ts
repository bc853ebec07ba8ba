// Hours of history and the database: written at the end of each hour, every ten minutes within it
// and when the service ends, and read for 90 days. What cannot be written waits in memory.

import type { Logger } from "pino";
import { errorText } from "../../core/fields.ts";
import { setNewest } from "../../core/newest.ts";
import type { Bus } from "../../core/workers/bus.ts";
import {
  chainHours,
  type HistoryHourRow,
  historyHours,
  writeHistoryHour,
} from "../../hosted/operator/stored-history.ts";
import type { CountedRow, RowSubject } from "../../observe/history/history-counts.ts";
import { METHOD_CLASSES } from "../../observe/history/history-counts.ts";
import { type HistoryQuery, HistoryReport } from "../../observe/history/history-report.ts";
import {
  CALL_ROW,
  hourCounts,
  layoutOfRow,
  parseHourCounts,
} from "../../observe/history/history-row.ts";
import { HOUR_MS } from "../../observe/history/hour-book.ts";
import {
  type HistoryReader,
  type HoursFailure,
  ServiceHistory,
  type StepsReport,
} from "../../observe/history/service-history.ts";
import type { IncidentView } from "../../observe/incidents/incident-book.ts";
import { type Runtime, within } from "../../runtime.ts";
import type { Store } from "../../shared/store/store.ts";
import { isStoreFailure } from "../../shared/store/store-failure.ts";
import type { HistoryHourTable } from "../../shared/store/tables-cluster.ts";
import { type HistoryService, serveHistory } from "./history-service.ts";
import { IncidentService } from "./incident-service.ts";

/** What history is kept with in the process that gathers it. */
export interface SupervisedHistoryParts {
  readonly runtime: Pick<Runtime, "after" | "wallMs" | "random">;
  readonly log: Pick<Logger, "warn">;
  readonly bus: Bus;
  /** Hears of incidents, in a process that serves alone. */
  readonly hear?: (view: IncidentView) => void;
  /** Unique for each start of the service. */
  readonly serviceId: string;
  /** Opens the store in which hours are written; null = nowhere. */
  readonly store: (() => Promise<Store>) | null;
}

/**
 * Begins to gather history and to judge providers by it, in the supervisor or in the process that
 * serves alone, and to write hours and incidents; the returned function writes what is left once
 * all workers have ended.
 */
export function openSupervisedHistory(parts: SupervisedHistoryParts): () => Promise<void> {
  const { runtime, bus, serviceId, store, log } = parts;
  const writer = store === null ? null : serviceId;
  const history = new ServiceHistory({ wallMs: runtime.wallMs, writer });
  const incidents = new IncidentService(parts);
  serveHistory(bus, runtime, history, incidents);
  if (store === null) return () => Promise.resolve();
  const endHours = startHourWriter({ history, runtime, log, store });
  return async () => void (await Promise.all([endHours(), incidents.close()]));
}

/** What writes hours; the store is opened when it is first written to. */
interface HourWriterParts extends Pick<SupervisedHistoryParts, "log"> {
  readonly runtime: Pick<Runtime, "after" | "wallMs">;
  readonly history: ServiceHistory;
  readonly store: () => Promise<Store>;
}

/** Within an hour, so that a service that is killed loses no more than this. */
const WRITE_MS = 600_000;
/** After the end of an hour, for what processes hand over last. */
const AFTER_HOUR_MS = 30_000;
const RETRY_MS = 60_000;
const CLOSE_MS = 5_000;

/** Begins to write; the returned function writes what is left, and ends. */
export function startHourWriter(parts: HourWriterParts): () => Promise<void> {
  const { history, runtime, store, log } = parts;
  let isFailing = false;
  let writing: Promise<void> = Promise.resolve();
  let cancel = runtime.after(nextMs(runtime.wallMs()), again);

  function again(): void {
    writing = writeAll().then(() => {
      cancel = runtime.after(isFailing ? RETRY_MS : nextMs(runtime.wallMs()), again);
    });
  }

  /** Tells of it once for each time that the database ceases to answer. */
  function failed(error: unknown): void {
    const problem = errorText(error);
    if (!isFailing)
      log.warn({ problem }, "hours of history cannot be written now: they wait in memory");
    isFailing = true;
  }

  async function writeAll(): Promise<void> {
    try {
      const to = await store();
      for (const hour of history.unwritten()) {
        const writer = history.writerOf(hour);
        await writeHistoryHour(to, { hour: hour.hour, writer }, hour.rows.map(storedRow));
        history.written(hour);
      }
      isFailing = false;
    } catch (error) {
      failed(error);
    }
  }

  return async () => {
    cancel();
    const last = writing.then(() => {
      cancel();
      return writeAll();
    });
    await within(runtime, CLOSE_MS, "writing the history", last).catch(failed);
  };
}

/** Until the next time at which hours are written: by the clock, and shortly after each hour. */
function nextMs(wallMs: number): number {
  const intoHourMs = wallMs % HOUR_MS;
  const next = (Math.floor((intoHourMs - AFTER_HOUR_MS) / WRITE_MS) + 1) * WRITE_MS + AFTER_HOUR_MS;
  return Math.max(1, next - intoHourMs);
}

function storedRow({ profile, chain, provider, class: of, numbers }: CountedRow): HistoryHourRow {
  return {
    profile,
    chain,
    provider: provider?.id ?? "",
    class: of ?? "",
    alias: provider?.alias ?? "",
    counts: hourCounts(layoutOfRow({ provider }), numbers),
  };
}

/** Readings that wait for the one under way; anybody may ask, and each reads many rows. */
const MAX_QUEUED = 8;
/** For so long the latest reports are given again. */
const FRESH_MS = 15_000;
const MAX_REPORTS = 4;

/** Reads 90 days; `store` null = the service has none. */
export function createHourReader(
  service: Pick<HistoryService, "hours">,
  store: Store | null,
  { now }: Pick<Runtime, "now">,
): HistoryReader["hours"] {
  const reports = new Map<string, { readonly atMs: number; readonly report: StepsReport }>();
  let last: Promise<unknown> = Promise.resolve();
  let queued = 0;

  async function readNow(query: HistoryQuery, key: string): Promise<StepsReport | HoursFailure> {
    const known = reports.get(key);
    if (known !== undefined && now() - known.atMs < FRESH_MS) return known.report;
    if (store === null) return "no_store";
    const report = await readHours(service, store, query);
    if (typeof report === "string") return report;
    setNewest(reports, key, { atMs: now(), report }, MAX_REPORTS);
    return report;
  }

  return (query) => {
    if (store === null) return Promise.resolve("no_store");
    if (queued >= MAX_QUEUED) return Promise.resolve("busy");
    queued++;
    const report = last
      .then(() => readNow(query, JSON.stringify(query)))
      .finally(() => {
        queued--;
      });
    last = report.catch(() => undefined);
    return report;
  };
}

async function readHours(
  service: Pick<HistoryService, "hours">,
  store: Store,
  query: HistoryQuery,
): Promise<StepsReport | HoursFailure> {
  const open = await service.hours(query);
  if (open === null) return "no_answer";
  if (open === "none") return "no_store";
  const { hours, use } = open;
  const report = new HistoryReport(query);
  for (const { hour, rows } of hours)
    for (const row of rows) {
      report.add(hour, row, row.numbers);
      if (row.provider === null) report.addToPair(row, hour, row.numbers);
    }
  const writerOf = new Map(hours.map(({ hour, writer }) => [hour, writer]));
  const { chain, provider, classes, firstStep: fromHour, pairs = [] } = query;
  const of = { profile: "", chain: "", ...chain, provider, classes, fromHour };
  try {
    for await (const page of historyHours(store, of))
      for (const row of page) {
        const hour = Number(row.hour);
        if (row.writer !== writerOf.get(hour)) addStored(report, hour, row);
      }
    const asked = { firstHour: fromHour, endHour: fromHour + query.count * query.joined };
    for await (const page of chainHours(store, pairs, asked))
      for (const row of page) {
        const hour = Number(row.hour);
        const counts = parseHourCounts(CALL_ROW, row.counts);
        if (row.writer !== writerOf.get(hour) && counts !== null)
          report.addToPair(row, hour, counts);
      }
  } catch (error) {
    if (isStoreFailure(error)) return "store_silent";
    throw error;
  }
  return { series: report.series(), pairs: report.pairs(), use };
}

function addStored(report: HistoryReport, hour: number, row: HistoryHourTable): void {
  const { profile, chain, provider: id, alias } = row;
  const provider = id === "" ? null : { id, alias };
  const of = row.class === "" ? null : METHOD_CLASSES.find((name) => name === row.class);
  // A class that only another version knows.
  if (of === undefined) return;
  const subject: RowSubject = { profile, chain, provider, class: of };
  const numbers = parseHourCounts(layoutOfRow(subject), row.counts);
  if (numbers !== null) report.add(hour, subject, numbers);
}
