// Where the chain's head is, as the providers of one set report it, and how far behind one of them
// is. Knows no provider, only height samples.
import type { Chain } from "./chain.ts";

/** One reported height, taken at a monotonic time. */
export interface HeadSample {
  readonly height: number;
  readonly atMs: number;
  /** Asked for at intervals, so older than it looks; false = pushed by a subscription. */
  readonly polled: boolean;
}

/** The agreed head, and until when it holds if no new sample comes. */
export interface Consensus {
  readonly height: number | null;
  readonly fromMs: number;
  /** Exclusive. */
  readonly untilMs: number;
}

/** Samples as old as this say nothing any more. */
export const HEAD_FRESH_MS = 30_000;

const QUANTILE = 0.25;
/**
 * A single height this much time ahead of all others, where at least two others exist, is a false
 * report.
 */
const IMPLAUSIBLE_LEAD_MS = 3_600_000;

/** The consensus height of the fresh samples: sorted descending, the one at floor(n × 0.25). */
export function consensusOf(
  samples: readonly (HeadSample | null)[],
  chain: Chain,
  nowMs: number,
): Consensus {
  const heights: number[] = [];
  let untilMs = Number.POSITIVE_INFINITY;
  for (const sample of samples) {
    if (sample !== null && sample.atMs > nowMs) untilMs = Math.min(untilMs, sample.atMs);
    if (!isFresh(sample, nowMs)) continue;
    heights.push(sample.height);
    untilMs = Math.min(untilMs, sample.atMs + HEAD_FRESH_MS);
  }
  heights.sort((left, right) => right - left);
  const believed = withoutFalseLead(heights, chain);
  return {
    height: believed[Math.floor(believed.length * QUANTILE)] ?? null,
    fromMs: nowMs,
    untilMs,
  };
}

/**
 * Silence that is more than chance when others have a newer block: one and a half block times, at
 * least this long.
 */
const SHORTEST_QUIET_MS = 2_000;

/** How long a source of heads may be silent while others have newer blocks. */
export function quietMs({ blockTimeMs }: Chain): number {
  return Math.max(SHORTEST_QUIET_MS, 1.5 * blockTimeMs);
}

/** Most blocks by which one provider can be ahead of others and be believed. */
export function plausibleLead({ blockTimeMs }: Chain): number {
  return IMPLAUSIBLE_LEAD_MS / Math.max(1, blockTimeMs);
}

/**
 * Blocks behind the head; null where either is unknown. A polled height earns the blocks that were
 * due since it was asked for, at most 30 s worth.
 */
export function lagBlocks(
  sample: HeadSample | null,
  head: number | null,
  chain: Chain,
  nowMs: number,
): number | null {
  if (head === null || !isFresh(sample, nowMs)) return null;
  const credit =
    sample.polled && chain.blockTimeMs > 0
      ? Math.floor((nowMs - sample.atMs) / chain.blockTimeMs)
      : 0;
  return Math.max(0, head - sample.height - credit);
}

/**
 * Whether a provider whose heads are listened to cannot have a block yet that others have: it would
 * have told of it.
 */
export function lacksBlock(
  sample: HeadSample | null,
  block: number,
  head: number | null,
  nowMs: number,
): boolean {
  return head !== null && block <= head && isFresh(sample, nowMs) && sample.height < block;
}

/**
 * Whether a sample is young enough to say anything; one from the future (the clock jumped back) is
 * not.
 */
function isFresh(sample: HeadSample | null, nowMs: number): sample is HeadSample {
  if (sample === null) return false;
  const ageMs = nowMs - sample.atMs;
  return ageMs >= 0 && ageMs < HEAD_FRESH_MS;
}

/**
 * With three samples or less the consensus is the highest one: an absurd height would exclude every
 * honest provider.
 */
function withoutFalseLead(descending: readonly number[], chain: Chain): readonly number[] {
  const [first, second] = descending;
  if (first === undefined || second === undefined || descending.length < 3) return descending;
  return first - second > plausibleLead(chain) ? descending.slice(1) : descending;
}
