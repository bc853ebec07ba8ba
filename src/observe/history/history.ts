// What happened lately, in memory: 10 s steps for an hour and 1 min steps for a day, for each
// profile on a chain, each provider of it and each class of methods. Rows of whole numbers in
// arrays of fixed size, at most `maxBytes` in all: beyond it the classes of methods are dropped
// first, then the day, and then providers that are new; each says so.
import {
  type CountedRow,
  type CountedStep,
  METHOD_CLASSES,
  type ProviderName,
} from "./history-counts.ts";
import { ATTEMPT_ROW, addRow, CALL_ROW, type RowLayout } from "./history-row.ts";

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
export interface HistoryUse {
  readonly bytes: number;
  readonly maxBytes: number;
  readonly methodClasses: boolean;
  readonly day: boolean;
  /** False = some provider or chain has no history. */
  readonly providers: boolean;
  /** Series of providers that are kept, with those of their classes. */
  readonly providerBytes: number;
  readonly providerCount: number;
}

/** The rows of one series in both resolutions. */
export class SeriesRows {
  readonly layout: RowLayout;
  /** It tells of one class of methods alone. */
  readonly isClass: boolean;
  /** When it was begun (wall clock, ms). */
  sinceMs: number;
  /** Rows by resolution; null = not kept. */
  readonly rows: (Uint32Array | null)[] = [null, null];

  constructor(layout: RowLayout, sinceMs: number, isClass = false) {
    this.layout = layout;
    this.isClass = isClass;
    this.sinceMs = sinceMs;
  }
}

/** One provider of a profile on a chain. */
export interface ProviderHistory {
  readonly name: ProviderName;
  /** When something was known of it last (wall clock, ms). */
  seenMs: number;
  readonly total: SeriesRows;
  /** In the order of `METHOD_CLASSES`. */
  readonly classes: readonly SeriesRows[];
}

/** One profile on one chain. */
export interface ChainHistory {
  readonly profile: string;
  readonly chain: string;
  readonly calls: SeriesRows;
  readonly providers: Map<string, ProviderHistory>;
}

/** The steps of a service. */
export class History {
  readonly #chains = new Map<string, ChainHistory>();
  readonly #maxBytes: number;
  /** The present step by resolution, as its number since the epoch. */
  readonly #steps: number[];
  #bytes = 0;
  #methodClasses = true;
  #day = true;
  #providers = true;

  constructor(wallMs: number, maxBytes: number = MAX_HISTORY_BYTES) {
    this.#maxBytes = maxBytes;
    this.#steps = RESOLUTIONS.map(({ stepMs }) => Math.floor(wallMs / stepMs));
  }

  /** The history of a profile on a chain; null = there is none. */
  find(profile: string, chain: string): ChainHistory | null {
    return this.#chains.get(`${profile} ${chain}`) ?? null;
  }

  chains(): readonly ChainHistory[] {
    return [...this.#chains.values()];
  }

  use(): HistoryUse {
    const all = this.chains().flatMap(({ providers }) => [...providers.values()]);
    return {
      bytes: this.#bytes,
      maxBytes: this.#maxBytes,
      methodClasses: this.#methodClasses,
      day: this.#day,
      providers: this.#providers,
      providerBytes: all.flatMap(seriesOf).reduce((sum, each) => sum + bytesOf(each), 0),
      providerCount: all.length,
    };
  }

  /** Adds what a process counted in a step; what is older than the oldest step is not kept. */
  add({ atMs, rows }: CountedStep): void {
    if (Math.floor(atMs / RESOLUTIONS[0].stepMs) > this.lastStep(0)) this.advance(atMs);
    for (const row of rows) {
      const series = this.#seriesOf(row, atMs);
      series.sinceMs = Math.min(series.sinceMs, atMs);
      this.#allocate(series);
      for (const [resolution, { stepMs, steps }] of RESOLUTIONS.entries()) {
        const kept = series.rows[resolution] ?? null;
        const step = Math.floor(atMs / stepMs);
        const last = this.lastStep(resolution);
        if (kept === null || step > last || step <= last - steps) continue;
        const at = (step % steps) * series.layout.width;
        addRow(series.layout, kept, at, { numbers: row.numbers, at: 0 });
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
      for (const series of this.#series()) series.sinceMs = Math.min(series.sinceMs, nowMs);
    }
    this.#forget(nowMs);
  }

  /** The last step of a resolution, as its number since the epoch. */
  lastStep(resolution: number): number {
    return this.#steps[resolution] ?? 0;
  }

  /** Where the row of a step begins in the rows of a series; null = nothing is known of it. */
  rowAt(series: SeriesRows, resolution: number, step: number): number | null {
    const { stepMs, steps } = RESOLUTIONS[resolution] ?? RESOLUTIONS[0];
    const last = this.lastStep(resolution);
    if (series.rows[resolution] == null || step > last || step <= last - steps) return null;
    if (step < Math.floor(series.sinceMs / stepMs)) return null;
    return (step % steps) * series.layout.width;
  }

  #seriesOf({ profile, chain, provider, class: of }: CountedRow, atMs: number): SeriesRows {
    const key = `${profile} ${chain}`;
    let known = this.#chains.get(key);
    if (known === undefined) {
      const calls = new SeriesRows(CALL_ROW, atMs);
      known = { profile, chain, calls, providers: new Map() };
      this.#chains.set(key, known);
    }
    if (provider === null) return known.calls;
    const history = known.providers.get(provider.id) ?? newProvider(provider, atMs);
    known.providers.set(provider.id, history);
    history.seenMs = Math.max(history.seenMs, atMs);
    return (of === null ? null : history.classes[METHOD_CLASSES.indexOf(of)]) ?? history.total;
  }

  /** Forgets the providers that are configured no more. */
  #forget(nowMs: number): void {
    for (const { providers } of this.#chains.values())
      for (const [id, provider] of [...providers]) {
        if (nowMs - provider.seenMs <= UNSEEN_MS) continue;
        for (const series of seriesOf(provider)) this.#free(series);
        providers.delete(id);
      }
  }

  #clear(resolution: number, slot: number): void {
    for (const { layout, rows } of this.#series())
      rows[resolution]?.fill(0, slot * layout.width, (slot + 1) * layout.width);
  }

  /** Takes the memory of a series that has none, as far as there is room. */
  #allocate(series: SeriesRows): void {
    if (series.rows[0] !== null) return;
    while (!(series.isClass && !this.#methodClasses) && !this.#hasRoom(series)) {
      if (this.#methodClasses) this.#dropClasses();
      else if (this.#day) this.#dropDay();
      else {
        this.#providers = false;
        return;
      }
    }
    if (series.isClass && !this.#methodClasses) return;
    for (const [resolution, { steps }] of RESOLUTIONS.entries()) {
      if (resolution === DAY && !this.#day) continue;
      const rows = new Uint32Array(steps * series.layout.width);
      series.rows[resolution] = rows;
      this.#bytes += rows.byteLength;
    }
  }

  #hasRoom({ layout }: SeriesRows): boolean {
    const steps = RESOLUTIONS.reduce(
      (sum, each, resolution) => sum + (resolution === DAY && !this.#day ? 0 : each.steps),
      0,
    );
    return this.#bytes + steps * layout.width * Uint32Array.BYTES_PER_ELEMENT <= this.#maxBytes;
  }

  #dropClasses(): void {
    this.#methodClasses = false;
    for (const series of this.#series()) if (series.isClass) this.#free(series);
  }

  #dropDay(): void {
    this.#day = false;
    for (const { rows } of this.#series()) {
      this.#bytes -= rows[DAY]?.byteLength ?? 0;
      rows[DAY] = null;
    }
  }

  #free(series: SeriesRows): void {
    this.#bytes -= bytesOf(series);
    series.rows.fill(null);
  }

  #series(): readonly SeriesRows[] {
    return this.chains().flatMap(({ calls, providers }) => [
      calls,
      ...[...providers.values()].flatMap(seriesOf),
    ]);
  }
}

function newProvider(name: ProviderName, atMs: number): ProviderHistory {
  return {
    name,
    seenMs: atMs,
    total: new SeriesRows(ATTEMPT_ROW, atMs),
    classes: METHOD_CLASSES.map(() => new SeriesRows(ATTEMPT_ROW, atMs, true)),
  };
}

function seriesOf({ total, classes }: ProviderHistory): readonly SeriesRows[] {
  return [total, ...classes];
}

function bytesOf({ rows }: SeriesRows): number {
  return rows.reduce((sum, each) => sum + (each?.byteLength ?? 0), 0);
}
