// What happened lately, in memory: 10 s steps for an hour and 1 min steps for a day, for each
// profile on a chain, each provider of it and each class of methods. Rows of whole numbers in
// arrays of fixed size, at most `maxBytes` in all: beyond it the classes of methods are dropped
// first, then the day, and then providers that are new; each says so.
import type { Attempt } from "../../core/provider/attempt.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { errorGroupIndex } from "../../core/provider-errors/error-group.ts";
import { upstreamMsOf } from "../../core/routing/evidence.ts";
import type { DeadlineClass, Method } from "../../core/rpc/method.ts";
import type { Outcome } from "../../upstream/engine/answer.ts";
import type { RoutedCall } from "../../upstream/engine/router.ts";
import type { ProviderSummary } from "../../upstream/health/health-report.ts";
import {
  ATTEMPT_ROW,
  addLatency,
  addOverhead,
  addRow,
  CALL_ERROR_AT,
  CALL_ROW,
  increment,
  noteState,
  type RowLayout,
} from "./history-row.ts";

/** The classes of methods, in the order of their rows. */
export const METHOD_CLASSES: readonly DeadlineClass[] = [
  "cheap",
  "standard",
  "default",
  "traceTx",
  "traceBlock",
];

/** The resolutions, finest first. */
export const RESOLUTIONS = [
  { stepMs: 10_000, steps: 360 },
  { stepMs: 60_000, steps: 1_440 },
] as const;
const DAY = 1;
const ADDED_AT = CALL_ROW.addedAt ?? 0;

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

/** The providers of a profile on a chain, as they are at the end of a step. */
export interface ChainSample {
  readonly profile: string;
  readonly chain: string;
  readonly providers: readonly ProviderSummary[];
}

/** The rows of one series in both resolutions. */
export class SeriesRows {
  readonly layout: RowLayout;
  /** It tells of one class of methods alone. */
  readonly isClass: boolean;
  /** Of the present step, not yet in the rows. */
  readonly current: Uint32Array;
  /** When it was begun (wall clock, ms). */
  sinceMs: number;
  /** Rows by resolution; null = not kept. */
  readonly rows: (Uint32Array | null)[] = [null, null];

  constructor(layout: RowLayout, sinceMs: number, isClass = false) {
    this.layout = layout;
    this.isClass = isClass;
    this.current = new Uint32Array(layout.width);
    this.sinceMs = sinceMs;
  }
}

/** One provider of a profile on a chain. */
export class ProviderHistory {
  provider: Provider;
  /** When it was last configured (wall clock, ms). */
  seenMs: number;
  readonly total: SeriesRows;
  readonly classes: readonly SeriesRows[];

  constructor(provider: Provider, sinceMs: number) {
    this.provider = provider;
    this.seenMs = sinceMs;
    this.total = new SeriesRows(ATTEMPT_ROW, sinceMs);
    this.classes = METHOD_CLASSES.map(() => new SeriesRows(ATTEMPT_ROW, sinceMs, true));
  }

  all(): readonly SeriesRows[] {
    return [this.total, ...this.classes];
  }
}

/** One profile on one chain. Counts calls at their end. */
export class ChainHistory {
  readonly profile: string;
  readonly chain: string;
  readonly calls: SeriesRows;
  readonly providers = new Map<string, ProviderHistory>();
  /** By position in the provider set; checked at each use, since a reload moves them. */
  readonly #byIndex: ProviderHistory[] = [];
  readonly #nowMs: () => number;

  constructor(profile: string, chain: string, wallMs: () => number) {
    this.profile = profile;
    this.chain = chain;
    this.#nowMs = wallMs;
    this.calls = new SeriesRows(CALL_ROW, wallMs());
  }

  /** Counts a call that was routed and took `ms`. */
  routed(
    { traces }: Pick<RoutedCall, "traces">,
    { kind }: Pick<Outcome, "kind">,
    ms: number,
  ): void {
    const { current } = this.calls;
    increment(current, 0);
    if (kind === "fault") increment(current, CALL_ERROR_AT.fault);
    else if (kind === "error") increment(current, CALL_ERROR_AT.provider_error);
    addLatency(current, CALL_ROW.latencyAt, ms);
    addOverhead(current, ADDED_AT, Math.max(0, ms - upstreamMsIn(traces)));
  }

  /** Counts a call whose caller left. */
  cancelled(): void {
    increment(this.calls.current, 0);
    increment(this.calls.current, CALL_ERROR_AT.cancelled);
  }

  /** Counts a call that the service answered by itself. */
  local({ kind }: Pick<Outcome, "kind">): void {
    increment(this.calls.current, 0);
    if (kind === "fault") increment(this.calls.current, CALL_ERROR_AT.fault);
  }

  /** Counts an attempt at a provider. */
  attempted({ provider, verdict, latencyMs }: Attempt, { deadline }: Method): void {
    const history = this.of(provider);
    const current = history?.classes[METHOD_CLASSES.indexOf(deadline)]?.current;
    if (current === undefined) return;
    increment(current, 0);
    if (verdict === null) addLatency(current, ATTEMPT_ROW.latencyAt, latencyMs);
    else increment(current, 1 + errorGroupIndex(verdict.category));
  }

  /** A circuit of a provider has opened: it counts as open in this step. */
  opened(provider: Provider): void {
    const history = this.of(provider);
    if (history !== null) noteState(history.total.current, null, "open");
  }

  /** The history of a provider, begun if it is new. Users' own providers have none. */
  of(provider: Provider): ProviderHistory | null {
    const known = this.#byIndex[provider.index];
    if (known !== undefined && known.provider === provider) return known;
    if (provider.guarded) return null;
    const same = this.providers.get(provider.id);
    const history = same ?? new ProviderHistory(provider, this.#nowMs());
    history.provider = provider;
    this.providers.set(provider.id, history);
    this.#byIndex[provider.index] = history;
    return history;
  }

  /** Forgets the providers that are configured no more, and returns them. */
  forget(nowMs: number): readonly ProviderHistory[] {
    const gone = [...this.providers.values()].filter(({ seenMs }) => nowMs - seenMs > UNSEEN_MS);
    for (const history of gone) {
      this.providers.delete(history.provider.id);
      const at = this.#byIndex.indexOf(history);
      if (at !== -1) delete this.#byIndex[at];
    }
    return gone;
  }
}

/** For how long providers were asked. */
function upstreamMsIn(traces: RoutedCall["traces"]): number {
  const first = traces[0]?.attempt;
  if (first === undefined) return 0;
  if (traces.length === 1) return first.latencyMs;
  return upstreamMsOf(traces.map(({ attempt }) => attempt));
}

/** History of the whole process. */
export class History {
  readonly #chains = new Map<string, ChainHistory>();
  readonly #wallMs: () => number;
  readonly #maxBytes: number;
  /** The present step by resolution, as its number since the epoch. */
  readonly #steps: number[];
  #bytes = 0;
  #methodClasses = true;
  #day = true;
  #providers = true;

  constructor(wallMs: () => number, maxBytes: number = MAX_HISTORY_BYTES) {
    this.#wallMs = wallMs;
    this.#maxBytes = maxBytes;
    this.#steps = RESOLUTIONS.map(({ stepMs }) => Math.floor(wallMs() / stepMs));
  }

  /** The history of a profile on a chain, begun if it is new. */
  chain(profile: string, chain: string): ChainHistory {
    const key = `${profile} ${chain}`;
    const known = this.#chains.get(key);
    if (known !== undefined) return known;
    const created = new ChainHistory(profile, chain, this.#wallMs);
    this.#chains.set(key, created);
    return created;
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
    const series = all.flatMap((provider) => provider.all());
    return {
      bytes: this.#bytes,
      maxBytes: this.#maxBytes,
      methodClasses: this.#methodClasses,
      day: this.#day,
      providers: this.#providers,
      providerBytes: series.reduce((sum, each) => sum + bytesOf(each), 0),
      providerCount: all.length,
    };
  }

  /**
   * Writes what was counted into the rows of the step in which it was counted, and goes on to the
   * step of now. `samples`: how the configured providers are.
   */
  flush(samples: readonly ChainSample[]): void {
    const nowMs = this.#wallMs();
    for (const sample of samples) this.#note(sample, nowMs);
    for (const chain of this.#chains.values()) {
      for (const gone of chain.forget(nowMs)) for (const series of gone.all()) this.#free(series);
      this.#write(chain.calls);
      for (const provider of chain.providers.values()) this.#writeProvider(provider);
    }
    this.#advance(nowMs);
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

  #note({ profile, chain, providers }: ChainSample, nowMs: number): void {
    const known = this.chain(profile, chain);
    for (const { provider, lagBlocks, circuit } of providers) {
      const history = known.of(provider);
      if (history === null) continue;
      history.seenMs = nowMs;
      noteState(history.total.current, lagBlocks, circuit);
    }
  }

  #writeProvider({ total, classes }: ProviderHistory): void {
    for (const series of classes) {
      if (series.current[0] === 0) continue;
      addRow(series.layout, total.current, 0, { numbers: series.current, at: 0 });
      this.#write(series);
    }
    this.#write(total);
  }

  /** Adds the present row of a series to its rows, and begins it anew. */
  #write(series: SeriesRows): void {
    this.#allocate(series);
    const { layout, current } = series;
    for (const [resolution, { steps }] of RESOLUTIONS.entries()) {
      const rows = series.rows[resolution] ?? null;
      const at = (this.lastStep(resolution) % steps) * layout.width;
      if (rows !== null) addRow(layout, rows, at, { numbers: current, at: 0 });
    }
    current.fill(0);
  }

  /** Goes on to the step of now; the rows of the steps that begin are emptied. */
  #advance(nowMs: number): void {
    for (const [resolution, { stepMs, steps }] of RESOLUTIONS.entries()) {
      const before = this.lastStep(resolution);
      const now = Math.floor(nowMs / stepMs);
      if (now === before) continue;
      this.#steps[resolution] = now;
      // Where the clock was set back, this step begins anew.
      if (now < before)
        for (const series of this.#series()) series.sinceMs = Math.min(series.sinceMs, nowMs);
      const first = now > before ? Math.max(before + 1, now - steps + 1) : now;
      for (let step = first; step <= now; step++) this.#clear(resolution, step % steps);
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
      ...[...providers.values()].flatMap((provider) => provider.all()),
    ]);
  }
}

function bytesOf({ rows }: SeriesRows): number {
  return rows.reduce((sum, each) => sum + (each?.byteLength ?? 0), 0);
}
