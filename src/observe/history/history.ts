// What happened lately, in memory: 10 s steps for an hour and 1 min steps for a day, for each
// profile on a chain, each provider of it and each class of methods. Rows of whole numbers in
// arrays of fixed size, at most `maxBytes` in all: beyond it the classes of methods are dropped
// first, then the day, and then providers that are new; each says so.
import { type CountedStep, type RowSubject, subjectKey } from "./history-counts.ts";
import { addRow, layoutOfRow, type RowLayout } from "./history-row.ts";

/** The steps of a part of history, and how many there are. */
export interface Resolution {
  readonly stepMs: number;
  readonly steps: number;
}

/** The resolutions in memory, finest first. */
export const RESOLUTIONS = [
  { stepMs: 10_000, steps: 360 },
  { stepMs: 60_000, steps: 1_440 },
] as const satisfies readonly Resolution[];
const DAY = 1;

/** The bytes that history may take. */
export const MAX_HISTORY_BYTES = 64 * 1_024 * 1_024;
/** How long the history of a provider is kept that is configured no more. */
const UNSEEN_MS = 86_400_000;

/** What was dropped to keep within the bytes, and how many there are. */
export type HistoryUse = ReturnType<History["use"]>;

/** The rows of one subject in both resolutions. */
export class SeriesRows {
  readonly subject: RowSubject;
  readonly layout: RowLayout;
  /** When it was begun, and when something was known of it last (wall clock, ms). */
  sinceMs: number;
  seenMs: number;
  /** Rows by resolution; null = not kept. */
  readonly rows: (Uint32Array | null)[] = [null, null];

  constructor(subject: RowSubject, atMs: number) {
    this.subject = subject;
    this.layout = layoutOfRow(subject);
    this.sinceMs = atMs;
    this.seenMs = atMs;
  }

  /** It tells of one class of methods alone. */
  get isClass(): boolean {
    return this.subject.class !== null;
  }

  get bytes(): number {
    return this.rows.reduce((sum, each) => sum + (each?.byteLength ?? 0), 0);
  }
}

/** The steps of a service. */
export class History {
  readonly #series = new Map<string, SeriesRows>();
  readonly #maxBytes: number;
  /** The present step by resolution, as its number since the epoch. */
  readonly #steps: number[];
  #bytes = 0;
  /** False = was dropped; of `providers`: some provider or chain has no history. */
  readonly #kept = { methodClasses: true, day: true, providers: true };

  constructor(wallMs: number, maxBytes: number = MAX_HISTORY_BYTES) {
    this.#maxBytes = maxBytes;
    this.#steps = RESOLUTIONS.map(({ stepMs }) => Math.floor(wallMs / stepMs));
  }

  series(): readonly SeriesRows[] {
    return [...this.#series.values()];
  }

  use() {
    const ofProviders = this.series().filter(({ subject }) => subject.provider !== null);
    return {
      bytes: this.#bytes,
      maxBytes: this.#maxBytes,
      ...this.#kept,
      /** Series of providers that are kept, with those of their classes. */
      providerBytes: ofProviders.reduce((sum, { bytes }) => sum + bytes, 0),
      providerCount: ofProviders.filter(({ isClass }) => !isClass).length,
    };
  }

  /** Adds what a process counted in a step; what is older than the oldest step is not kept. */
  add({ atMs, rows }: CountedStep): void {
    if (Math.floor(atMs / RESOLUTIONS[0].stepMs) > this.lastStep(0)) this.advance(atMs);
    for (const { numbers, ...subject } of rows) {
      const series = this.#seriesOf(subject, atMs);
      series.sinceMs = Math.min(series.sinceMs, atMs);
      series.seenMs = Math.max(series.seenMs, atMs);
      this.#allocate(series);
      for (const [resolution, { stepMs }] of RESOLUTIONS.entries()) {
        const row = this.#rowAt(series, resolution, Math.floor(atMs / stepMs));
        if (row !== null) addRow(series.layout, row, numbers);
      }
    }
  }

  /** Goes on to the step of now; the rows of the steps that begin are emptied. */
  advance(nowMs: number): void {
    for (const [resolution, { stepMs, steps }] of RESOLUTIONS.entries()) {
      const before = this.lastStep(resolution);
      const now = Math.floor(nowMs / stepMs);
      if (now === before) continue;
      this.#steps[resolution] = now;
      // Where the clock was set back, the steps that were ahead are no more.
      const [from, to] = now > before ? [before + 1, now] : [now, before];
      for (let step = Math.max(from, to - steps + 1); step <= to; step++)
        this.#clear(resolution, step % steps);
      for (const series of this.#series.values()) series.sinceMs = Math.min(series.sinceMs, nowMs);
    }
    this.#forget(nowMs);
  }

  /** The last step of a resolution, as its number since the epoch. */
  lastStep(resolution: number): number {
    return this.#steps[resolution] ?? 0;
  }

  /** The row of a step of a series; null = nothing is known of it. */
  rowAt(series: SeriesRows, resolution: number, step: number): Uint32Array | null {
    const { stepMs } = RESOLUTIONS[resolution] ?? RESOLUTIONS[0];
    const isKnown = step >= Math.floor(series.sinceMs / stepMs);
    return isKnown ? this.#rowAt(series, resolution, step) : null;
  }

  /** The place of a step in the rows of a series; null = it has none. */
  #rowAt({ rows, layout }: SeriesRows, resolution: number, step: number): Uint32Array | null {
    const { steps } = RESOLUTIONS[resolution] ?? RESOLUTIONS[0];
    const last = this.lastStep(resolution);
    if (step > last || step <= last - steps) return null;
    const at = (step % steps) * layout.width;
    return rows[resolution]?.subarray(at, at + layout.width) ?? null;
  }

  #seriesOf(subject: RowSubject, atMs: number): SeriesRows {
    const key = subjectKey(subject);
    const series = this.#series.get(key) ?? new SeriesRows(subject, atMs);
    this.#series.set(key, series);
    return series;
  }

  /** Forgets the providers that are configured no more. */
  #forget(nowMs: number): void {
    for (const [key, series] of [...this.#series]) {
      if (series.subject.provider === null || nowMs - series.seenMs <= UNSEEN_MS) continue;
      this.#free(series);
      this.#series.delete(key);
    }
  }

  #clear(resolution: number, slot: number): void {
    for (const { layout, rows } of this.#series.values())
      rows[resolution]?.fill(0, slot * layout.width, (slot + 1) * layout.width);
  }

  /** Takes the memory of a series that has none, as far as there is room. */
  #allocate(series: SeriesRows): void {
    if (series.rows[0] !== null) return;
    while (!(series.isClass && !this.#kept.methodClasses) && !this.#hasRoom(series)) {
      if (this.#kept.methodClasses) this.#dropClasses();
      else if (this.#kept.day) this.#dropDay();
      else {
        this.#kept.providers = false;
        return;
      }
    }
    if (series.isClass && !this.#kept.methodClasses) return;
    for (const [resolution, { steps }] of RESOLUTIONS.entries()) {
      if (resolution === DAY && !this.#kept.day) continue;
      const rows = new Uint32Array(steps * series.layout.width);
      series.rows[resolution] = rows;
      this.#bytes += rows.byteLength;
    }
  }

  #hasRoom({ layout }: SeriesRows): boolean {
    const steps = RESOLUTIONS.reduce(
      (sum, each, resolution) => sum + (resolution === DAY && !this.#kept.day ? 0 : each.steps),
      0,
    );
    return this.#bytes + steps * layout.width * Uint32Array.BYTES_PER_ELEMENT <= this.#maxBytes;
  }

  #dropClasses(): void {
    this.#kept.methodClasses = false;
    for (const series of this.#series.values()) if (series.isClass) this.#free(series);
  }

  #dropDay(): void {
    this.#kept.day = false;
    for (const { rows } of this.#series.values()) {
      this.#bytes -= rows[DAY]?.byteLength ?? 0;
      rows[DAY] = null;
    }
  }

  #free(series: SeriesRows): void {
    this.#bytes -= series.bytes;
    series.rows.fill(null);
  }
}
