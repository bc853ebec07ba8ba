// What one process counts for history: calls of callers, and attempts at providers by class of
// methods, since they were taken last. Costs a few additions a call. Knows no time.
import type { CallEnd } from "../../core/call-end.ts";
import type { Attempt } from "../../core/provider/attempt.ts";
import { upstreamMsOf } from "../../core/provider/attempt.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { ERROR_GROUPS, errorGroupOf } from "../../core/provider-errors/category.ts";
import type { DeadlineClass, Method } from "../../core/rpc/method.ts";
import type { RoutedCall } from "../../upstream/engine/router.ts";
import type { ProviderSummary } from "../../upstream/health/provider-records.ts";
import {
  ATTEMPT_ROW,
  addLatency,
  addOverhead,
  addRow,
  CALL_ROW,
  endColumn,
  HIDDEN_AT,
  increment,
  layoutOfRow,
  noteState,
  UNANSWERED_AT,
} from "./history-row.ts";
import type { StepEvidence } from "./step-evidence.ts";

/** The classes of methods, in the order of their rows. */
export const METHOD_CLASSES: readonly DeadlineClass[] = [
  "cheap",
  "standard",
  "default",
  "traceTx",
  "traceBlock",
];

const ADDED_AT = CALL_ROW.addedAt ?? 0;

/** What is known of a provider by name. */
export type ProviderName = Pick<Provider, "id" | "alias">;

/** Whom a row tells of. */
export interface RowSubject {
  readonly profile: string;
  readonly chain: string;
  /** Null = the calls of callers. */
  readonly provider: ProviderName | null;
  /** Of attempts at a provider; null = of all classes. */
  readonly class: DeadlineClass | null;
}

/** What was counted: a row of calls, or of attempts at a provider. */
export interface CountedRow extends RowSubject {
  readonly numbers: readonly number[];
}

/** Equal for rows that tell of the same. */
export function subjectKey({ profile, chain, provider, class: of }: RowSubject): string {
  return JSON.stringify([profile, chain, provider?.id ?? null, of]);
}

/** Rows that are added up by whom they tell of. */
export class RowSums {
  readonly #rows = new Map<string, RowSubject & { readonly numbers: number[] }>();

  get size(): number {
    return this.#rows.size;
  }

  /** `most` rows in all; false = there is no room for this one. */
  add({ numbers, ...subject }: CountedRow, most = Number.POSITIVE_INFINITY): boolean {
    const key = subjectKey(subject);
    const known = this.#rows.get(key);
    if (known === undefined) {
      if (this.#rows.size >= most) return false;
      this.#rows.set(key, { ...subject, numbers: [...numbers] });
    } else addRow(layoutOfRow(subject), known.numbers, numbers);
    return true;
  }

  list(): readonly CountedRow[] {
    return Array.from(this.#rows.values(), (row) => ({ ...row, numbers: [...row.numbers] }));
  }
}

/** What was counted in one step. */
export interface CountedStep {
  /** A moment within the step (wall clock, ms). */
  readonly atMs: number;
  readonly rows: readonly CountedRow[];
  /** By which providers are judged; absent = they are not. */
  readonly evidence?: StepEvidence;
}

/** The providers of a profile on a chain, as they are at the end of a step. */
export interface ChainSample {
  readonly profile: string;
  readonly chain: string;
  readonly providers: readonly Pick<ProviderSummary, "provider" | "lagBlocks" | "circuit">[];
}

/** Counts of one provider of a profile on a chain. */
class ProviderCounts {
  provider: Provider;
  /** How it is; calls are counted by class. */
  readonly state = new Uint32Array(ATTEMPT_ROW.width);
  readonly classes = METHOD_CLASSES.map(() => new Uint32Array(ATTEMPT_ROW.width));

  constructor(provider: Provider) {
    this.provider = provider;
  }
}

/** Counts of one profile on one chain. Hears of calls at their end. */
export class ChainCounts {
  readonly profile: string;
  readonly chain: string;
  readonly #calls = new Uint32Array(CALL_ROW.width);
  readonly #providers = new Map<string, ProviderCounts>();
  /** By position in the provider set; checked at each use, since a reload moves them. */
  readonly #byIndex: ProviderCounts[] = [];

  constructor(profile: string, chain: string) {
    this.profile = profile;
    this.chain = chain;
  }

  /** Counts a call at its end. */
  ended({ outcome, reasonIndex }: CallEnd): void {
    const calls = this.#calls;
    calls[0] = (calls[0] ?? 0) + 1;
    if (outcome !== "answered") increment(calls, endColumn(outcome, reasonIndex));
  }

  /** Counts for how long a routed call took until its answer. */
  answered(traces: RoutedCall["traces"], ms: number): void {
    addLatency(this.#calls, CALL_ROW.latencyAt, ms);
    addOverhead(this.#calls, ADDED_AT, Math.max(0, ms - upstreamMsIn(traces)));
  }

  /** Counts a request without an id, which gets no answer. */
  unanswered(): void {
    increment(this.#calls, UNANSWERED_AT);
  }

  /** Counts failures of providers that a caller did not notice. */
  hidden(failures: number): void {
    this.#calls[HIDDEN_AT] = (this.#calls[HIDDEN_AT] ?? 0) + failures;
  }

  /** Counts an attempt at a provider. */
  attempted({ provider, verdict, latencyMs }: Attempt, { deadline }: Method): void {
    const counts = this.#of(provider)?.classes[METHOD_CLASSES.indexOf(deadline)];
    if (counts === undefined) return;
    increment(counts, 0);
    if (verdict === null) addLatency(counts, ATTEMPT_ROW.latencyAt, latencyMs);
    else increment(counts, 1 + ERROR_GROUPS.indexOf(errorGroupOf(verdict.category)));
  }

  /** A circuit of a provider has opened: it counts as open in this step. */
  opened(provider: Provider): void {
    const counts = this.#of(provider);
    if (counts !== null) noteState(counts.state, null, "open");
  }

  /** Notes how the configured providers are. */
  note(providers: ChainSample["providers"]): void {
    for (const { provider, lagBlocks, circuit } of providers) {
      const counts = this.#of(provider);
      if (counts !== null) noteState(counts.state, lagBlocks, circuit);
    }
  }

  /** The rows that were counted since the last time; providers of which nothing is known go. */
  take(): readonly CountedRow[] {
    const { profile, chain } = this;
    const rows: CountedRow[] = [
      { profile, chain, provider: null, class: null, numbers: taken(this.#calls) },
    ];
    for (const [id, counts] of this.#providers) {
      const { alias } = counts.provider;
      const subject = { profile, chain, provider: { id, alias } };
      const classes = counts.classes.flatMap((numbers, at): readonly CountedRow[] => {
        if (numbers[0] === 0) return [];
        addRow(ATTEMPT_ROW, counts.state, numbers);
        return [{ ...subject, class: METHOD_CLASSES[at] ?? null, numbers: taken(numbers) }];
      });
      if (classes.length === 0 && counts.state.every((value) => value === 0)) this.#forget(counts);
      else rows.push({ ...subject, class: null, numbers: taken(counts.state) }, ...classes);
    }
    return rows;
  }

  /** The counts of a provider, begun if it is new. Users' own providers have none. */
  #of(provider: Provider): ProviderCounts | null {
    const known = this.#byIndex[provider.index];
    if (known !== undefined && known.provider === provider) return known;
    if (provider.guarded) return null;
    const counts = this.#providers.get(provider.id) ?? new ProviderCounts(provider);
    counts.provider = provider;
    this.#providers.set(provider.id, counts);
    this.#byIndex[provider.index] = counts;
    return counts;
  }

  #forget(counts: ProviderCounts): void {
    this.#providers.delete(counts.provider.id);
    const at = this.#byIndex.indexOf(counts);
    if (at !== -1) delete this.#byIndex[at];
  }
}

/** For how long providers were asked. */
function upstreamMsIn(traces: RoutedCall["traces"]): number {
  const first = traces[0]?.attempt;
  if (first === undefined) return 0;
  if (traces.length === 1) return first.latencyMs;
  return upstreamMsOf(traces.map(({ attempt }) => attempt));
}

function taken(counts: Uint32Array): readonly number[] {
  const numbers = Array.from(counts);
  counts.fill(0);
  return numbers;
}

/** Counts of the whole process. */
export class HistoryCounts {
  readonly #chains = new Map<string, ChainCounts>();
  /** Counts of chains that are served no more, until they have been taken. */
  #gone: ChainCounts[] = [];

  /** The counts of a profile on a chain, begun if it is new. */
  chain(profile: string, chain: string): ChainCounts {
    const key = `${profile} ${chain}`;
    const known = this.#chains.get(key);
    if (known !== undefined) return known;
    const created = new ChainCounts(profile, chain);
    this.#chains.set(key, created);
    return created;
  }

  /** Forgets chains that are served no more; what was counted last is taken once more. */
  forgetChains(names: ReadonlySet<string>): void {
    for (const [key, counts] of this.#chains)
      if (names.has(counts.chain)) {
        this.#gone.push(counts);
        this.#chains.delete(key);
      }
  }

  /** What was counted since the last time. `samples`: how the configured providers are. */
  take(samples: readonly ChainSample[]): readonly CountedRow[] {
    for (const { profile, chain, providers } of samples) this.chain(profile, chain).note(providers);
    const gone = this.#gone;
    this.#gone = [];
    return [...gone, ...this.#chains.values()].flatMap((chain) => chain.take());
  }
}
