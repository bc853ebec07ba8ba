// The hours of history that the database does not have yet, as this service counted them: rows per
// hour for the whole service, each profile on a chain, each provider and each class of methods. An
// hour is written more than once, always whole, so a repetition changes nothing. Bounded in hours
// and rows; what was dropped is told. Knows no database.
import { type CountedRow, type CountedStep, RowSums } from "./history-counts.ts";

export const HOUR_MS = 3_600_000;
/** For so long after its end an hour takes what a process hands over late. */
const LATE_MS = 120_000;
/** A database that is away longer loses the oldest hours. */
const MAX_HOURS = 168;
const MAX_ROWS = 40_000;
/** Rows of one hour; classes of methods may take half of them. */
export const MAX_HOUR_ROWS = 5_000;
const MAX_CLASS_ROWS = MAX_HOUR_ROWS / 2;

/** An hour to write; its version is passed back when it is written. */
export type UnwrittenHour = ReturnType<HourBook["unwritten"]>[number];

/** An hour that is here. */
export interface OpenHour {
  readonly hour: number;
  /**
   * How often the clock had been set back into a closed hour when this hour began: later counts
   * must not replace the rows that are written.
   */
  readonly generation: number;
}

/** How the hours are. */
export type HourBookUse = ReturnType<HourBook["use"]>;

interface Hour {
  readonly rows: RowSums;
  readonly generation: number;
  /** Number of changes. */
  version: number;
  written: number;
}

/** The service as a whole has no name. */
export const SERVICE = { profile: "", chain: "", provider: null, class: null } as const;

/** The hours of one service. */
export class HourBook {
  readonly #hours = new Map<number, Hour>();
  /** The last hour that takes nothing more: it was written for good, or dropped. */
  #closed = Number.NEGATIVE_INFINITY;
  #generation = 0;
  #rows = 0;
  #lost = 0;
  #complete = true;

  /** The hours that are here. */
  get hours(): readonly OpenHour[] {
    return Array.from(this.#hours, ([hour, { generation }]) => ({ hour, generation }));
  }

  use(nowMs: number) {
    const present = Math.floor(nowMs / HOUR_MS);
    const late = [...this.#hours].filter(
      ([hour, { version, written }]) => hour < present && version !== written,
    );
    return {
      /** Hours that have ended and are not written. */
      late: late.length,
      /** Hours that were dropped since the start: the database was away too long. */
      lost: this.#lost,
      /** False = some hour had more rows than are kept. */
      complete: this.#complete,
    };
  }

  /** Adds what was counted in a step; what comes after its hour was closed counts in the next. */
  add({ atMs, rows }: CountedStep, nowMs: number): void {
    if (Math.floor(nowMs / HOUR_MS) <= this.#closed) {
      this.#generation++;
      this.#closed = Number.NEGATIVE_INFINITY;
    }
    const hour = this.#hour(Math.max(Math.floor(atMs / HOUR_MS), this.#closed + 1));
    for (const row of rows) {
      // Calls without a profile and chain count for the service alone.
      if (row.profile !== SERVICE.profile) this.#addRow(hour, row);
      if (row.provider === null) this.#addRow(hour, { ...SERVICE, numbers: row.numbers });
    }
    hour.version++;
    while (this.#hours.size > MAX_HOURS || this.#rows > MAX_ROWS) this.#drop();
  }

  /** The hours that changed since they were written, oldest first. */
  unwritten() {
    return [...this.#hours]
      .filter(([, { version, written }]) => version !== written)
      .map(([hour, { rows, ...of }]) => ({ ...of, hour, rows: rows.list() }))
      .sort((left, right) => left.hour - right.hour);
  }

  /** An hour was written as it was at a version; one that is over and complete is let go of. */
  written({ hour, version }: Pick<UnwrittenHour, "hour" | "version">, nowMs: number): void {
    const known = this.#hours.get(hour);
    if (known === undefined) return;
    known.written = version;
    for (const [old, each] of [...this.#hours])
      if (each.version === each.written && nowMs > (old + 1) * HOUR_MS + LATE_MS) this.#close(old);
  }

  /** The rows of an hour; none if it is not here. */
  rowsOf(hour: number): readonly CountedRow[] {
    return this.#hours.get(hour)?.rows.list() ?? [];
  }

  #hour(hour: number): Hour {
    const known = this.#hours.get(hour);
    if (known !== undefined) return known;
    const generation = this.#generation;
    const created: Hour = { rows: new RowSums(), generation, version: 0, written: 0 };
    this.#hours.set(hour, created);
    return created;
  }

  #addRow({ rows }: Hour, row: CountedRow): void {
    const before = rows.size;
    if (!rows.add(row, row.class === null ? MAX_HOUR_ROWS : MAX_CLASS_ROWS)) this.#complete = false;
    this.#rows += rows.size - before;
  }

  /** Drops the oldest hour. */
  #drop(): void {
    const oldest = Math.min(...this.#hours.keys());
    const { version, written } = this.#hour(oldest);
    if (version !== written) this.#lost++;
    this.#close(oldest);
  }

  #close(hour: number): void {
    this.#rows -= this.#hours.get(hour)?.rows.size ?? 0;
    this.#hours.delete(hour);
    this.#closed = Math.max(this.#closed, hour);
  }
}
