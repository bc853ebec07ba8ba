// In which order a strategy would ask providers. Knows what was measured, not who is healthy: the
// health tiers come after it.

import type { Reading } from "../provider/latency.ts";
import type { Provider } from "../provider/profile.ts";

/** The settings of the strategies; rates and shares lie between 0 and 1. */
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
}

/** A provider that may be asked, and what is known of it for this call. */
export interface Entrant {
  readonly provider: Provider;
  /** Null = nothing fresh. */
  readonly reading: Reading | null;
  /** Latency of the latest successful probe; null = none. */
  readonly probeMs: number | null;
}

/** What an order depends on beside the providers. */
export interface Draw {
  readonly settings: SelectionSettings;
  readonly replaySafe: boolean;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Whether a strategy looks at readings at all. */
export function needsReadings(strategy: Strategy): boolean {
  return strategy === "fastest" || strategy === "latency-weighted";
}

/** Calls that a reading needs before a strategy prefers it to a coarser one. */
export function minCallsOf(strategy: Strategy, settings: SelectionSettings): number {
  return strategy === "fastest" ? settings.fastestMinCalls : settings.lwMinCalls;
}

/** Puts the entrants in the order of the strategy, in place. */
export function order(entrants: Entrant[], strategy: Strategy, draw: Draw): void {
  shuffle(entrants, draw.random);
  switch (strategy) {
    case "load-balanced":
      return;
    case "priority":
      entrants.sort((left, right) => left.provider.priority - right.provider.priority);
      return;
    case "fastest":
      return orderByLatency(entrants, draw);
    case "latency-weighted":
      return orderByWeight(entrants, draw);
  }
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
  for (const it of readings) {
    if (it !== null && it.latencyMs !== null && it.successRate >= settings.lwMinSuccessRate)
      bestMs = Math.min(bestMs, it.latencyMs);
  }
  const unitMs = Math.max(bestMs, settings.lwMsFloor);
  return readings.map((it) => weightOf(it, unitMs, settings));
}

function shuffle(entrants: Entrant[], random: () => number): void {
  for (let last = entrants.length - 1; last > 0; last--)
    swap(entrants, last, Math.floor(random() * (last + 1)));
}

function swap(entrants: Entrant[], left: number, right: number): void {
  const a = entrants[left];
  const b = entrants[right];
  if (a === undefined || b === undefined) return;
  entrants[left] = b;
  entrants[right] = a;
}

/**
 * Warm ones by latency, then cold ones by probe latency, then the rest as shuffled; now and then an
 * under-observed one first.
 */
function orderByLatency(entrants: Entrant[], draw: Draw): void {
  const { settings } = draw;
  const explored =
    draw.replaySafe && settings.exploreShare > 0 && draw.random() < settings.exploreShare
      ? entrants.find((it) => it.reading === null || it.reading.calls < settings.fastestMinCalls)
      : undefined;
  entrants.sort((left, right) => {
    if (left === explored) return -1;
    if (right === explored) return 1;
    const leftMs = warmMs(left, settings);
    const rightMs = warmMs(right, settings);
    if (leftMs !== null || rightMs !== null) return ascending(leftMs, rightMs);
    return ascending(left.probeMs, right.probeMs);
  });
}

function warmMs({ reading }: Entrant, settings: SelectionSettings): number | null {
  if (
    reading === null ||
    reading.calls < settings.fastestMinCalls ||
    reading.successRate < settings.fastestMinSuccessRate
  )
    return null;
  return reading.latencyMs;
}

/** Unknown ones last. */
function ascending(left: number | null, right: number | null): number {
  if (left === null || right === null) return left === right ? 0 : left === null ? 1 : -1;
  return left - right;
}

/** Draws without replacement: whoever's exponential clock of rate `weight` rings first. */
function orderByWeight(entrants: Entrant[], { settings, random }: Draw): void {
  const weights = weightsOf(
    entrants.map((it) => it.reading),
    settings,
  );
  const race = entrants.map((entrant, at) => {
    const weight = weights[at] ?? 0;
    return { entrant, ringsAt: weight > 0 ? -Math.log(1 - random()) / weight : Number.MAX_VALUE };
  });
  race.sort((left, right) => left.ringsAt - right.ringsAt);
  for (const [at, { entrant }] of race.entries()) entrants[at] = entrant;
}

function weightOf(reading: Reading | null, unitMs: number, settings: SelectionSettings): number {
  if (
    reading === null ||
    reading.latencyMs === null ||
    reading.successRate < settings.lwMinSuccessRate
  )
    return settings.lwExploreFloor;
  const relative = Math.max(reading.latencyMs, unitMs) / unitMs;
  const confidence = 0.5 + 0.5 * Math.min(1, Math.log10(Math.max(1, reading.calls)) / 3);
  const callsScale = Math.min(1, reading.calls / Math.max(1, settings.lwMinCalls));
  return Math.max(
    settings.lwExploreFloor,
    relative ** -settings.lwBeta * reading.successRate * confidence * callsScale,
  );
}

/** The strategies that order providers. */
export type Strategy = "load-balanced" | "latency-weighted" | "fastest" | "priority";
