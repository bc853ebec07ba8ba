// The table of strategies: their names, what they cost and in which order each would ask providers.
// A new strategy is a row of it. Knows what was measured, not who is healthy: the health tiers come
// after it.

import { creditsOf } from "../provider/budget/budget-limits.ts";
import type { Reading } from "../provider/latency.ts";
import type { Provider } from "../provider/profile.ts";

/** The settings by which a node selects; rates and shares lie between 0 and 1. */
export interface SelectionSettings {
  /** Calls below which `fastest` treats a provider as cold. */
  readonly fastestMinCalls: number;
  readonly fastestMinSuccessRate: number;
  /** Exponent by which latency lowers a weight. */
  readonly lwBeta: number;
  /** Latencies below this count as this (ms). */
  readonly lwMsFloor: number;
  /** The least weight of any provider, where the best possible is 1. */
  readonly lwExploreFloor: number;
  readonly lwMinCalls: number;
  readonly lwMinSuccessRate: number;
  /** Share of replay-safe calls that go first to a provider about which too little is known. */
  readonly exploreShare: number;
  /** Region of this node; null = it has none. */
  readonly region: string | null;
}

/** A provider that may be asked, and what is known of it for this call. */
export interface Entrant {
  readonly provider: Provider;
  /** Null = nothing fresh. */
  readonly reading: Reading | null;
  /** Latency of the latest successful probe; null = none. */
  readonly probeMs: number | null;
  /** Lower is nearer to this node; see `regionPlacement`. */
  readonly regionRank: number;
}

/** What an order depends on beside the providers. */
export interface Draw {
  readonly settings: SelectionSettings;
  readonly replaySafe: boolean;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** One strategy. */
export interface StrategyRow<Name extends string = Strategy> {
  /** As it stands in paths, documents, settings and evidence. */
  readonly name: Name;
  /** Names that it had before; callers may still write them. */
  readonly formerNames: readonly string[];
  /** Which providers it asks first, in a sentence. */
  readonly summary: string;
  /** By how much it multiplies the compute units of a call, unless the settings say otherwise. */
  readonly factor: number;
  /** It reads settings that only operators make: profiles of accounts do not have it. */
  readonly operatorOnly?: true;
  /**
   * Calls that a reading needs before this strategy prefers it to a coarser one; null = it looks at
   * no readings.
   */
  readonly minCalls: ((settings: SelectionSettings) => number) | null;
  /**
   * Orders entrants in place: they come shuffled, nearer regions first, and stay as they came
   * where the strategy knows no difference. Null = they stay so altogether.
   */
  readonly order: ((entrants: Entrant[], draw: Draw, methodName: string) => void) | null;
  /** What it looked at in one of the entrants, in a few words. */
  readonly reason: (entrant: Entrant, among: Entrants) => string;
}

/** All entrants of an order, and the settings by which they were ordered. */
export interface Entrants {
  readonly entrants: readonly Entrant[];
  readonly settings: SelectionSettings;
}

const TABLE = [
  {
    name: "load-balanced",
    formerNames: ["round-robin"],
    summary: "All providers in a random order, each as often first as its `weight` says.",
    factor: 1,
    minCalls: null,
    order: orderByShare,
    reason: ({ provider }, { entrants }) => {
      const total = entrants.reduce((sum, each) => sum + each.provider.weight, 0);
      return `random, weight ${provider.weight} of ${total}`;
    },
  },
  {
    name: "latency-weighted",
    formerNames: [],
    summary: "A random order in which fast and reliable providers tend to come first.",
    factor: 1.5,
    minCalls: (settings) => settings.lwMinCalls,
    order: orderByWeight,
    reason: (entrant, among) => {
      const weight = latencyWeights(among).get(entrant.provider.id) ?? 0;
      return `random, weight ${weight.toFixed(3)} by ${readingText(entrant)}`;
    },
  },
  {
    name: "fastest",
    formerNames: [],
    summary: "The provider that answers the method fastest.",
    factor: 2,
    minCalls: (settings) => settings.fastestMinCalls,
    order: orderByLatency,
    reason: (entrant) => {
      if (entrant.reading !== null || entrant.probeMs === null) return readingText(entrant);
      return `probe ${entrant.probeMs.toFixed(1)} ms`;
    },
  },
  {
    name: "priority",
    formerNames: [],
    summary: "The provider with the lowest configured `priority`.",
    factor: 1,
    minCalls: null,
    order: orderByPriority,
    reason: ({ provider }) => `priority ${provider.priority}`,
  },
  {
    name: "cheapest",
    formerNames: [],
    summary: "The provider with the lowest declared `price` of the call; undeclared ones last.",
    factor: 1,
    operatorOnly: true,
    minCalls: null,
    order: orderByPrice,
    reason: ({ provider: { price } }) => (price === null ? "no price declared" : `price ${price}`),
  },
] as const satisfies readonly StrategyRow<string>[];

/** The name of a strategy. */
export type Strategy = (typeof TABLE)[number]["name"];

/** The strategies. */
export const STRATEGIES: readonly StrategyRow[] = TABLE;

/** The names of the strategies, the default one first. */
export const STRATEGY_NAMES: readonly Strategy[] = TABLE.map(({ name }) => name);

/** The strategy of calls that name none. */
export const DEFAULT_STRATEGY: Strategy = TABLE[0].name;

/** A record with a value for every strategy. */
export function byStrategy<T>(valueFor: (row: StrategyRow) => T): Readonly<Record<Strategy, T>> {
  // Each row gives one entry, so that no strategy is missing.
  return Object.fromEntries(STRATEGIES.map((row) => [row.name, valueFor(row)])) as Record<
    Strategy,
    T
  >;
}

/** The present and former names of a strategy. */
export function namesOf({ name, formerNames }: StrategyRow): readonly string[] {
  return [name, ...formerNames];
}

/** Every way to write the name of a strategy: its names, with hyphens or underscores. */
export function spellingsOf(row: StrategyRow): readonly string[] {
  return [...new Set(namesOf(row).flatMap((name) => [name, name.replaceAll("-", "_")]))];
}

/** Every way to write the name of any strategy. */
export const STRATEGY_SPELLINGS: ReadonlyMap<string, Strategy> = new Map(
  STRATEGIES.flatMap((row) => spellingsOf(row).map((spelling) => [spelling, row.name])),
);

const ROWS = byStrategy((row) => row);

/**
 * Calls that a reading needs before a strategy prefers it to a coarser one; null = the strategy
 * looks at no readings.
 */
export function minCallsOf(strategy: Strategy, settings: SelectionSettings): number | null {
  const { minCalls } = ROWS[strategy];
  return minCalls === null ? null : minCalls(settings);
}

/**
 * Puts the entrants in the order of the strategy, in place. Those between which it has no reason to
 * choose stand by region, and within a region in a random order. A method without a name costs one
 * credit.
 */
export function order(entrants: Entrant[], strategy: Strategy, draw: Draw, methodName = ""): void {
  shuffle(entrants, draw.random);
  sortByRegion(entrants);
  ROWS[strategy].order?.(entrants, draw, methodName);
}

/** What a strategy looked at in one of the entrants, in a few words. */
export function orderReason(entrant: Entrant, strategy: Strategy, among: Entrants): string {
  return ROWS[strategy].reason(entrant, among);
}

/** The weights with which `latency-weighted` draws, by provider id. */
export function latencyWeights({ entrants, settings }: Entrants): ReadonlyMap<string, number> {
  const readings = entrants.map(({ reading }) => reading);
  const weights = weightsOf(readings, settings);
  return new Map(entrants.map(({ provider }, at) => [provider.id, weights[at] ?? 0]));
}

function readingText({ reading }: Entrant): string {
  if (reading === null || reading.latencyMs === null) return "no reading";
  const calls = `${Math.round(reading.calls)} calls`;
  const good = `${(reading.successRate * 100).toFixed(1)} % good`;
  return `${reading.latencyMs.toFixed(1)} ms over ${calls}, ${good}`;
}

/**
 * The weights of `latency-weighted`, in the order given: relative to the best latency among the
 * reliable, or to the floor where that is slower.
 */
export function weightsOf(
  readings: readonly (Reading | null)[],
  settings: SelectionSettings,
): readonly number[] {
  let bestMs = Number.POSITIVE_INFINITY;
  for (const reading of readings) {
    if (reading?.latencyMs != null && reading.successRate >= settings.lwMinSuccessRate)
      bestMs = Math.min(bestMs, reading.latencyMs);
  }
  const unitMs = Math.max(bestMs, settings.lwMsFloor);
  return readings.map((reading) => weightOf(reading, unitMs, settings));
}

function shuffle(entrants: Entrant[], random: () => number): void {
  for (let last = entrants.length - 1; last > 0; last--) {
    const at = Math.floor(random() * (last + 1));
    const [left, right] = [entrants[last], entrants[at]];
    if (left === undefined || right === undefined) return;
    entrants[at] = left;
    entrants[last] = right;
  }
}

/** Nearer regions first; keeps the order within a region. Almost always there is nothing to do. */
function sortByRegion(entrants: Entrant[]): void {
  const first = entrants[0]?.regionRank;
  for (const { regionRank } of entrants) {
    if (regionRank === first) continue;
    return sortStable(entrants, (left, right) => left.regionRank - right.regionRank);
  }
}

/** Above this number `Array.sort` is faster. */
const MANY = 16;

/** Sorts in place and keeps the order of equals; a few several times faster than `Array.sort`. */
function sortStable<T>(list: T[], compare: (left: T, right: T) => number): void {
  if (list.length > MANY) return void list.sort(compare);
  for (let next = 1; next < list.length; next++) {
    const placed = list[next];
    if (placed === undefined) return;
    let at = next;
    for (; at > 0; at--) {
      const before = list[at - 1];
      if (before === undefined || compare(before, placed) <= 0) break;
      list[at] = before;
    }
    list[at] = placed;
  }
}

function orderByPriority(entrants: Entrant[]): void {
  sortStable(entrants, (left, right) => left.provider.priority - right.provider.priority);
}

/**
 * Warm ones by latency, then cold ones by probe latency, then the rest as shuffled; now and then an
 * under-observed one first.
 */
function orderByLatency(entrants: Entrant[], draw: Draw): void {
  const { settings } = draw;
  const minCalls = settings.fastestMinCalls;
  const explored =
    draw.replaySafe && settings.exploreShare > 0 && draw.random() < settings.exploreShare
      ? entrants.find(({ reading }) => reading === null || reading.calls < minCalls)
      : undefined;
  sortStable(entrants, (left, right) => {
    if (left === explored) return -1;
    if (right === explored) return 1;
    const leftMs = warmMs(left, settings);
    const rightMs = warmMs(right, settings);
    if (leftMs !== null || rightMs !== null) return ascending(leftMs, rightMs);
    return ascending(left.probeMs, right.probeMs);
  });
}

function warmMs({ reading }: Entrant, settings: SelectionSettings): number | null {
  if (reading === null || reading.calls < settings.fastestMinCalls) return null;
  return reading.successRate < settings.fastestMinSuccessRate ? null : reading.latencyMs;
}

/** Unknown ones last. */
function ascending(left: number | null, right: number | null): number {
  if (left === right) return 0;
  if (left === null) return 1;
  if (right === null) return -1;
  return left - right;
}

/** The cheapest call first. */
function orderByPrice(entrants: Entrant[], _draw: Draw, methodName: string): void {
  sortStable(entrants, (left, right) =>
    ascending(priceOf(left.provider, methodName), priceOf(right.provider, methodName)),
  );
}

/** What a call of a method costs at a provider; null = not declared. */
function priceOf({ price, budget }: Provider, methodName: string): number | null {
  if (price === null) return null;
  return price * (budget === null ? 1 : creditsOf(budget, methodName));
}

/** Whether only profiles of the operator have a strategy. */
export function isOperatorOnly(strategy: Strategy): boolean {
  return ROWS[strategy].operatorOnly === true;
}

/** Draws without replacement by configured weights, nearer regions first. */
function orderByShare(entrants: Entrant[], { random }: Draw): void {
  if (areWeightsEqual(entrants)) return;
  const weights = entrants.map(({ provider }) => provider.weight);
  replace(entrants, drawnFrom(entrants, weights, random));
  sortByRegion(entrants);
}

/** Draws without replacement, by weight: the smallest of exponential times of rate `weight`. */
function drawnFrom(
  entrants: readonly Entrant[],
  weights: readonly number[],
  random: () => number,
): readonly Entrant[] {
  const race = entrants.map((entrant, at) => {
    const weight = weights[at] ?? 0;
    return { entrant, time: weight > 0 ? -Math.log(1 - random()) / weight : Number.MAX_VALUE };
  });
  sortStable(race, (left, right) => left.time - right.time);
  return race.map(({ entrant }) => entrant);
}

function replace(entrants: Entrant[], ordered: readonly Entrant[]): void {
  for (const [at, entrant] of ordered.entries()) entrants[at] = entrant;
}

/** Almost always: then the order in which they came will do. */
function areWeightsEqual(entrants: readonly Entrant[]): boolean {
  const first = entrants[0]?.provider.weight;
  for (const { provider } of entrants) if (provider.weight !== first) return false;
  return true;
}

/** Draws by weight. Those without a reading share the places that they draw, by region. */
function orderByWeight(entrants: Entrant[], { settings, random }: Draw): void {
  const weights = weightsOf(
    entrants.map(({ reading }) => reading),
    settings,
  );
  const unread = entrants.filter(isUnread);
  let next = 0;
  const ordered = drawnFrom(entrants, weights, random).map((entrant) =>
    isUnread(entrant) ? (unread[next++] ?? entrant) : entrant,
  );
  replace(entrants, ordered);
}

function isUnread({ reading }: Entrant): boolean {
  return reading === null || reading.latencyMs === null;
}

function weightOf(reading: Reading | null, unitMs: number, settings: SelectionSettings): number {
  if (reading === null || reading.latencyMs === null) return settings.lwExploreFloor;
  if (reading.successRate < settings.lwMinSuccessRate) return settings.lwExploreFloor;
  const relative = Math.max(reading.latencyMs, unitMs) / unitMs;
  const confidence = 0.5 + 0.5 * Math.min(1, Math.log10(Math.max(1, reading.calls)) / 3);
  const callsScale = Math.min(1, reading.calls / Math.max(1, settings.lwMinCalls));
  return Math.max(
    settings.lwExploreFloor,
    relative ** -settings.lwBeta * reading.successRate * confidence * callsScale,
  );
}
