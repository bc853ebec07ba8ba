// History of the whole service in one process: the steps that its processes count, in memory, and
// the hours until the database has them. At most 64 MiB in all. Knows neither bus nor database.
import type { ChangeEvent } from "../feed/feed-event.ts";
import { History, type HistoryUse, MAX_HISTORY_BYTES } from "./history.ts";
import type { CountedRow, CountedStep } from "./history-counts.ts";
import {
  type ChainSums,
  type HistoryQuery,
  historyReport,
  type SeriesReport,
} from "./history-report.ts";
import { HourBook, type HourBookUse, type OpenHour, type UnwrittenHour } from "./hour-book.ts";

/** What the hours that are not written may take of the memory of history. */
const HOURS_BYTES = MAX_HISTORY_BYTES / 4;

/** How history is kept. */
export interface ServiceHistoryUse extends HistoryUse {
  /** Null = no database keeps hours. */
  readonly hours: HourBookUse | null;
}

/** What is asked for of the steps, and how history is kept. */
export interface StepsReport {
  readonly series: readonly SeriesReport[];
  /** Of the profiles on chains that were asked for. */
  readonly pairs: readonly ChainSums[];
  readonly use: ServiceHistoryUse;
}

/** The hours that the database does not have, or not whole. */
export interface OpenHours {
  readonly hours: readonly {
    readonly hour: number;
    /** Rows of this hour under this name are not whole: those here stand in their place. */
    readonly writer: string;
    readonly rows: readonly CountedRow[];
  }[];
  readonly use: ServiceHistoryUse;
}

/** Why hours cannot be read. */
export type HoursFailure = "no_store" | "store_silent" | "busy" | "no_answer";

/** Reads history of the whole service. */
export interface HistoryReader {
  /** Of the steps in memory; null = the process that has them does not answer. */
  readonly steps: (query: HistoryQuery) => Promise<StepsReport | null>;
  /** Of 90 days. */
  readonly hours: (query: HistoryQuery) => Promise<StepsReport | HoursFailure>;
  /** What changed, the latest first; null as above. */
  readonly changes: () => Promise<readonly ChangeEvent[] | null>;
}

/** What history is kept with. */
export interface ServiceHistoryParts {
  readonly wallMs: () => number;
  /** Unique for each start of a service; null = no database keeps hours. */
  readonly writer: string | null;
}

/** History of a service. */
export class ServiceHistory {
  readonly #wallMs: () => number;
  readonly #writer: string | null;
  readonly #steps: History;
  readonly #hours: HourBook | null;

  constructor({ wallMs, writer }: ServiceHistoryParts) {
    this.#wallMs = wallMs;
    this.#writer = writer;
    const hoursBytes = writer === null ? 0 : HOURS_BYTES;
    this.#steps = new History(wallMs(), MAX_HISTORY_BYTES - hoursBytes);
    this.#hours = writer === null ? null : new HourBook();
  }

  /** Adds what a process counted in a step. */
  add(step: CountedStep): void {
    this.#steps.add(step);
    this.#hours?.add(step, this.#wallMs());
  }

  use(): ServiceHistoryUse {
    return { ...this.#steps.use(), hours: this.#hours?.use(this.#wallMs()) ?? null };
  }

  /** The steps that are asked for. */
  report(query: HistoryQuery): StepsReport {
    this.#steps.advance(this.#wallMs());
    const report = historyReport(this.#steps, query);
    return { series: report.series(), pairs: report.pairs(), use: this.use() };
  }

  /** The name under which an hour is written. */
  writerOf({ generation }: Pick<OpenHour, "generation">): string {
    return `${this.#writer}.${generation}`;
  }

  /** Hours to write, oldest first. */
  unwritten(): readonly UnwrittenHour[] {
    return this.#hours?.unwritten() ?? [];
  }

  /** An hour was written as it was. */
  written(hour: UnwrittenHour): void {
    this.#hours?.written(hour, this.#wallMs());
  }

  /** What of the hours that are asked for is here; null = no database keeps hours. */
  openHours({ chain, provider, pairs = [] }: HistoryQuery): OpenHours | null {
    const book = this.#hours;
    if (book === null) return null;
    const asked = new Set(pairs.map((pair) => `${pair.profile} ${pair.chain}`));
    const concerns = (row: CountedRow): boolean =>
      (row.profile === (chain?.profile ?? "") &&
        row.chain === (chain?.chain ?? "") &&
        (provider === null || row.provider === null || row.provider.id === provider)) ||
      (row.provider === null && asked.has(`${row.profile} ${row.chain}`));
    const hours = book.hours.map((open) => ({
      hour: open.hour,
      writer: this.writerOf(open),
      rows: book.rowsOf(open.hour).filter(concerns),
    }));
    return { hours, use: this.use() };
  }
}
