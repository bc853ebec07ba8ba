// How fast and how reliably one provider answers on one transport: decayed averages per method,
// category and provider, and latency histograms for all calls and per deadline class. Everything is
// stored in arrays of fixed size; methods without a row in the table have no cell. Knows no clock
// and no causes of failures.
import { isFresh } from "../fresh.ts";
import {
  CATEGORIES,
  type DeadlineClass,
  METHOD_SLOTS,
  METHODS,
  type Method,
} from "../rpc/method.ts";

/** The record of one provider on one transport; changed in place by `observe`. */
export class LatencyRecord {
  /** `CELL` numbers for each method, then for each category, then for the provider. */
  readonly cells = new Float64Array(PROVIDER_CELL + CELL);
  /**
   * Delivered answers by latency bucket: first of all calls, then of each deadline class. Counts
   * are halved from time to time, so that percentiles follow the present.
   */
  readonly buckets = new Uint32Array(COUNTS * (1 + CLASSES.length));
  /** Delivered answers by latency since the start. */
  readonly histogram = new Histogram();

  constructor() {
    const { cells } = this;
    for (let at = LAST_MS; at < cells.length; at += CELL) cells[at] = Number.NEGATIVE_INFINITY;
  }
}

/** Counts of durations since the start, for Prometheus. */
export class Histogram {
  /** One count per bound in `HISTOGRAM_BOUNDS_MS` and one for longer durations; not cumulative. */
  readonly counts = new Float64Array(HISTOGRAM_BOUNDS_MS.length + 1);
  sumMs = 0;
}

/** Upper bounds (ms) of the histogram's buckets; a last bucket takes longer durations. */
export const HISTOGRAM_BOUNDS_MS: readonly number[] = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000,
];

/** The measured speed and reliability of a provider for one kind of call. */
export interface Reading {
  /** Number of calls it is based on. */
  readonly calls: number;
  /** Decayed share of calls that delivered an answer, 0 to 1. */
  readonly successRate: number;
  /** Decayed average latency of delivered answers; null = there is none. */
  readonly latencyMs: number | null;
  readonly ageMs: number;
}

/** A reading of one method. */
export interface MethodReport extends Reading {
  readonly method: Method;
}

/** Latency percentiles of delivered answers; null = unknown. */
export interface Percentiles {
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
}

/** Readings older than this are ignored. */
export const STALE_MS = 600_000;

const CALLS = 0;
const SUCCESS = 1;
const DELIVERED = 2;
const LATENCY = 3;
const LAST_MS = 4;
const CELL = 5;
const CATEGORY_START = METHOD_SLOTS * CELL;
const PROVIDER_CELL = CATEGORY_START + CATEGORIES.length * CELL;
/** By method index: the cell of its category. */
const CATEGORY_CELLS: readonly number[] = Array.from(
  { length: METHOD_SLOTS },
  (_, index) => CATEGORY_START + CATEGORIES.indexOf(METHODS[index]?.category ?? "unknown") * CELL,
);

/**
 * Weights of a new observation in the decayed averages. Latency follows faster than reliability.
 */
const LATENCY_WEIGHT = 0.1;
const SUCCESS_WEIGHT = 0.05;

const BUCKETS = 64;
const BUCKETS_PER_DOUBLING = 4;
const FIRST_BUCKET_MS = 0.5;
/** Total at which all counts are halved, so that percentiles follow the present. */
const HISTOGRAM_HALVES_AT = 4_096;

/**
 * Answers that a deadline class needs for percentiles of its own; with fewer, those of all calls
 * are used.
 */
const LEAST_OF_CLASS = 20;
const CLASSES: readonly DeadlineClass[] = ["cheap", "standard", "default", "traceTx", "traceBlock"];
/** Array slots of one set of buckets: the buckets and their sum. */
const COUNTS = BUCKETS + 1;

/** Adds one duration. */
export function addTo(histogram: Histogram, ms: number): void {
  let bucket = 0;
  while (bucket < HISTOGRAM_BOUNDS_MS.length && ms > (HISTOGRAM_BOUNDS_MS[bucket] ?? 0)) bucket++;
  histogram.counts[bucket] = (histogram.counts[bucket] ?? 0) + 1;
  histogram.sumMs += ms;
}

/** Records a call that ended at `nowMs`: delivered after `latencyMs`, or failed (null). */
export function observe(
  record: LatencyRecord,
  method: Method,
  latencyMs: number | null,
  nowMs: number,
): void {
  const delivered = latencyMs === null ? null : Math.max(0, latencyMs);
  observeCell(record.cells, method.index * CELL, delivered, nowMs);
  observeCell(record.cells, CATEGORY_CELLS[method.index] ?? PROVIDER_CELL, delivered, nowMs);
  observeCell(record.cells, PROVIDER_CELL, delivered, nowMs);
  if (delivered === null) return;
  const bucket = bucketOf(delivered);
  observeBucket(record.buckets, 0, bucket);
  observeBucket(record.buckets, countsOf(method), bucket);
  addTo(record.histogram, delivered);
}

/**
 * Records a call that was abandoned after `latencyMs`, so that it would have taken longer. Raises
 * averages, never lowers them, and does not count as a call.
 */
export function observeAtLeast(
  record: LatencyRecord,
  method: Method,
  latencyMs: number,
  nowMs: number,
): void {
  const { cells } = record;
  const category = CATEGORY_CELLS[method.index] ?? PROVIDER_CELL;
  for (const at of [method.index * CELL, category, PROVIDER_CELL]) {
    const delivered = cells[at + DELIVERED] ?? 0;
    const average = cells[at + LATENCY] ?? 0;
    if (delivered === 0 || latencyMs <= average || !isFresh(cells[at + LAST_MS], STALE_MS, nowMs))
      continue;
    cells[at + LATENCY] =
      average + (latencyMs - average) * Math.max(1 / (delivered + 1), LATENCY_WEIGHT);
  }
}

/**
 * The most specific fresh reading with at least `minCalls` calls: of the method, else of its
 * category, else of the provider; null = there is none.
 */
export function reading(
  record: LatencyRecord,
  method: Method,
  minCalls: number,
  nowMs: number,
): Reading | null {
  const { cells } = record;
  if (hasCalls(cells, method.index * CELL, minCalls, nowMs))
    return readCell(cells, method.index * CELL, nowMs);
  const category = CATEGORY_CELLS[method.index] ?? PROVIDER_CELL;
  return hasCalls(cells, category, minCalls, nowMs)
    ? readCell(cells, category, nowMs)
    : providerReading(record, nowMs);
}

/** The reading over all methods; null = there is no fresh one. */
export function providerReading(record: LatencyRecord, nowMs: number): Reading | null {
  return hasCalls(record.cells, PROVIDER_CELL, 1, nowMs)
    ? readCell(record.cells, PROVIDER_CELL, nowMs)
    : null;
}

/** The fresh readings of single methods. */
export function methodReadings(record: LatencyRecord, nowMs: number): readonly MethodReport[] {
  const { cells } = record;
  const measured = METHODS.filter(({ index }) => hasCalls(cells, index * CELL, 1, nowMs));
  return measured.map((method) => ({ method, ...readCell(cells, method.index * CELL, nowMs) }));
}

/** Percentiles over the latest few thousand delivered answers, accurate to about a fifth. */
export function percentiles(record: LatencyRecord): Percentiles {
  const { buckets } = record;
  return {
    p50Ms: percentile(buckets, 0, 0.5),
    p95Ms: percentile(buckets, 0, 0.95),
    p99Ms: percentile(buckets, 0, 0.99),
  };
}

/**
 * The latency (ms) within which the given share of answers to such calls arrived; null = unknown.
 */
export function usualMs({ buckets }: LatencyRecord, method: Method, share: number): number | null {
  const own = countsOf(method);
  return percentile(buckets, (buckets[own + BUCKETS] ?? 0) >= LEAST_OF_CLASS ? own : 0, share);
}

function observeCell(
  cells: Float64Array,
  at: number,
  latencyMs: number | null,
  nowMs: number,
): void {
  if (!isFresh(cells[at + LAST_MS], STALE_MS, nowMs)) cells.fill(0, at, at + CELL);
  const calls = (cells[at + CALLS] ?? 0) + 1;
  const success = cells[at + SUCCESS] ?? 0;
  cells[at + CALLS] = calls;
  cells[at + SUCCESS] =
    success + ((latencyMs === null ? 0 : 1) - success) * Math.max(1 / calls, SUCCESS_WEIGHT);
  cells[at + LAST_MS] = nowMs;
  if (latencyMs === null) return;
  const delivered = (cells[at + DELIVERED] ?? 0) + 1;
  const average = cells[at + LATENCY] ?? 0;
  cells[at + DELIVERED] = delivered;
  cells[at + LATENCY] = average + (latencyMs - average) * Math.max(1 / delivered, LATENCY_WEIGHT);
}

function countsOf({ deadline }: Method): number {
  return COUNTS * (1 + CLASSES.indexOf(deadline));
}

function bucketOf(latencyMs: number): number {
  const doublings = latencyMs > FIRST_BUCKET_MS ? Math.log2(latencyMs / FIRST_BUCKET_MS) : 0;
  return Math.min(BUCKETS - 1, Math.floor(doublings * BUCKETS_PER_DOUBLING));
}

function observeBucket(buckets: Uint32Array, from: number, bucket: number): void {
  buckets[from + bucket] = (buckets[from + bucket] ?? 0) + 1;
  const total = (buckets[from + BUCKETS] ?? 0) + 1;
  buckets[from + BUCKETS] = total;
  if (total >= HISTOGRAM_HALVES_AT) halve(buckets, from);
}

function halve(buckets: Uint32Array, from: number): void {
  let total = 0;
  for (let at = from; at < from + BUCKETS; at++) {
    const half = (buckets[at] ?? 0) >>> 1;
    buckets[at] = half;
    total += half;
  }
  buckets[from + BUCKETS] = total;
}

function percentile(buckets: Uint32Array, from: number, share: number): number | null {
  const total = buckets[from + BUCKETS] ?? 0;
  if (total === 0) return null;
  const rank = Math.ceil(share * total);
  let seen = 0;
  let bucket = 0;
  for (; bucket < BUCKETS - 1; bucket++) {
    seen += buckets[from + bucket] ?? 0;
    if (seen >= rank) break;
  }
  return FIRST_BUCKET_MS * 2 ** ((bucket + 0.5) / BUCKETS_PER_DOUBLING);
}

function hasCalls(cells: Float64Array, at: number, minCalls: number, nowMs: number): boolean {
  const hasEnough = (cells[at + CALLS] ?? 0) >= Math.max(1, minCalls);
  return hasEnough && isFresh(cells[at + LAST_MS], STALE_MS, nowMs);
}

function readCell(cells: Float64Array, at: number, nowMs: number): Reading {
  return {
    calls: cells[at + CALLS] ?? 0,
    successRate: cells[at + SUCCESS] ?? 0,
    latencyMs: (cells[at + DELIVERED] ?? 0) > 0 ? (cells[at + LATENCY] ?? 0) : null,
    ageMs: nowMs - (cells[at + LAST_MS] ?? 0),
  };
}
