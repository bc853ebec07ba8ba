// Records the inputs of a plan, and reads them again: numbers in one array, and lists where they
// are not empty. Reading is for operators, recording for many calls a second.
import { CLOSED } from "../provider/breaker.ts";
import type { Reading } from "../provider/latency.ts";
import type { Considered, PlanInputs } from "./plan.ts";
import { type Draw, STRATEGIES, type Strategy } from "./strategy.ts";

/** Reads what a strategy that needs so many calls would look at in a provider. */
export type ReadingOf = (considered: Considered, minCalls: number) => Reading | null;

/** The strategies that look at readings, and how many calls these need. */
const READERS = STRATEGIES.flatMap(({ name, minCalls }) =>
  minCalls === null ? [] : [{ name, minCalls }],
);

/** Places of the numbers of a provider; then come those of a reading for each such strategy. */
const FLAGS = 0;
const REGION_RANK = 1;
const PROBE_MS = 2;
const HEARD_AT_MS = 3;
const LAG_BLOCKS = 4;
const READINGS = 5;
const NUMBERS_OF_READING = 4;
const NUMBERS = READINGS + READERS.length * NUMBERS_OF_READING;

const IS_SOCKET = 1;
const IS_LIMITED = 2;
const IS_STALLED = 4;
const IS_LACKING = 8;
const IS_UNSURE = 16;
const HAS_ANSWERED = 32;

/** What is recorded beside the providers. */
export type RecordedPlan = Pick<PlanInputs, "block" | "methodName" | "strategy" | "providers">;

/** Records plans that are drawn in one way, one after the other. */
export class PlanRecorder {
  /** The draw of the plan that is recorded. */
  readonly draw: Draw;
  /** Lists that are used again, and how much of them this plan has filled. */
  readonly #drawn: number[] = [];
  readonly #numbers: number[] = [];
  #drawnCount = 0;
  #count = 0;

  constructor({ settings, replaySafe, random }: Draw) {
    const recorded = (): number => {
      const drawn = random();
      this.#drawn[this.#drawnCount++] = drawn;
      return drawn;
    };
    this.draw = { settings, replaySafe, random: recorded };
  }

  begin(): void {
    this.#drawnCount = 0;
    this.#count = 0;
  }

  /** The inputs of the plan since `begin`; `considered` in the order of the providers. */
  inputs(
    { block, methodName, strategy, providers }: RecordedPlan,
    considered: readonly Considered[],
    readingOf: ReadingOf,
  ): PlanInputs {
    const { settings, replaySafe } = this.draw;
    let isCapable = true;
    let isClosed = true;
    for (const each of considered) {
      isCapable &&= each.reason === null;
      isClosed &&= each.breaker.kind === "closed";
      this.#addProvider(each);
      for (const { name, minCalls } of READERS) {
        const isOwn = name === strategy;
        this.#addReading(isOwn ? each.reading : readingOf(each, minCalls(settings)));
      }
    }
    const numbers = this.#numbers;
    for (let n = 0; n < this.#drawnCount; n++) numbers[this.#count++] = this.#drawn[n] ?? 0;
    return {
      block,
      methodName,
      strategy,
      replaySafe,
      settings,
      providers,
      numbers: numbers.slice(0, this.#count),
      reasons: isCapable ? null : considered.map(({ reason }) => reason),
      breakers: isClosed ? null : considered.map(({ breaker }) => breaker),
    };
  }

  #addProvider(considered: Considered): void {
    const { transport, limited, stalled, lacking, unsure, hasAnswered } = considered;
    const { regionRank, probeMs, heardAtMs, lagBlocks } = considered;
    const at = this.#count;
    const numbers = this.#numbers;
    const socket = transport === "ws" ? IS_SOCKET : 0;
    const tier = (limited ? IS_LIMITED : 0) + (stalled ? IS_STALLED : 0);
    const block = (lacking ? IS_LACKING : 0) + (unsure ? IS_UNSURE : 0);
    numbers[at + FLAGS] = socket + tier + block + (hasAnswered ? HAS_ANSWERED : 0);
    numbers[at + REGION_RANK] = regionRank;
    numbers[at + PROBE_MS] = probeMs ?? Number.NaN;
    numbers[at + HEARD_AT_MS] = heardAtMs;
    numbers[at + LAG_BLOCKS] = lagBlocks ?? Number.NaN;
    this.#count = at + READINGS;
  }

  #addReading(reading: Reading | null): void {
    const at = this.#count;
    const numbers = this.#numbers;
    numbers[at] = reading?.calls ?? Number.NaN;
    numbers[at + 1] = reading?.successRate ?? 0;
    numbers[at + 2] = reading?.latencyMs ?? Number.NaN;
    numbers[at + 3] = reading?.ageMs ?? 0;
    this.#count = at + NUMBERS_OF_READING;
  }
}

/** The random numbers that a plan took, in order. */
export function drawnOf({ numbers, providers }: PlanInputs): readonly number[] {
  return numbers.slice(providers.length * NUMBERS);
}

/** The providers of a plan as a strategy sees them. */
export function consideredOf(inputs: PlanInputs, strategy: Strategy): readonly Considered[] {
  const { providers, numbers, reasons, breakers } = inputs;
  const reader = READERS.findIndex(({ name }) => name === strategy);
  return providers.map((provider, n) => {
    const at = n * NUMBERS;
    const flags = numbers[at + FLAGS] ?? 0;
    return {
      provider,
      transport: (flags & IS_SOCKET) === 0 ? "http" : "ws",
      reason: reasons?.[n] ?? null,
      reading:
        reader === -1 ? null : readingAt(numbers, at + READINGS + reader * NUMBERS_OF_READING),
      probeMs: known(numbers[at + PROBE_MS]),
      regionRank: numbers[at + REGION_RANK] ?? 0,
      breaker: breakers?.[n] ?? CLOSED,
      limited: (flags & IS_LIMITED) !== 0,
      stalled: (flags & IS_STALLED) !== 0,
      lacking: (flags & IS_LACKING) !== 0,
      unsure: (flags & IS_UNSURE) !== 0,
      hasAnswered: (flags & HAS_ANSWERED) !== 0,
      heardAtMs: numbers[at + HEARD_AT_MS] ?? 0,
      lagBlocks: known(numbers[at + LAG_BLOCKS]),
    };
  });
}

function readingAt(numbers: readonly number[], at: number): Reading | null {
  const calls = known(numbers[at]);
  if (calls === null) return null;
  return {
    calls,
    successRate: numbers[at + 1] ?? 0,
    latencyMs: known(numbers[at + 2]),
    ageMs: numbers[at + 3] ?? 0,
  };
}

function known(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}
