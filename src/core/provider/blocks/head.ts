// The consensus head of a chain from the heights that the providers of one set report, and how far
// one provider lags behind. Knows no providers, only height samples.
import { isFresh } from "../../fresh.ts";
import type { Chain } from "../chain.ts";

/** One reported height and when it was reported (monotonic ms). */
export interface HeadSample {
  readonly height: number;
  readonly atMs: number;
  /** True = polled, so it may be older than it looks; false = pushed by a subscription. */
  readonly polled: boolean;
}

/** What one provider reports of its head. */
export interface HeadReport {
  /** Null = nothing, so far. */
  readonly sample: HeadSample | null;
  /** When its height last grew (monotonic ms). */
  readonly roseAtMs: number;
}

/** The consensus head and the period in which it is valid unless a new sample arrives. */
export interface Consensus {
  readonly height: number | null;
  readonly fromMs: number;
  /** Exclusive. */
  readonly untilMs: number;
}

/** Samples older than this are ignored. */
export const HEAD_FRESH_MS = 30_000;

const QUANTILE = 0.25;
/**
 * A height that is this much block time ahead of all others, while at least two others exist, is
 * ignored as false.
 */
const IMPLAUSIBLE_LEAD_MS = 3_600_000;

/** A height that has stood still for so many block times does not count while others go on. */
const STILL_BLOCKS = 3;
/** The same in milliseconds, at least: short block times vary by more than themselves. */
const SHORTEST_STILL_MS = 1_500;

/** How long (ms) a height may stand still before it does not count. */
export function stillMs(blockTimeMs: number): number {
  return Math.max(SHORTEST_STILL_MS, STILL_BLOCKS * blockTimeMs);
}

/**
 * The consensus height: the fresh samples sorted descending, the one at index floor(n × 0.25).
 * Heights that stand still below the highest do not count, unless that one is implausible and
 * stands still as well.
 */
export function consensusOf(
  reports: readonly HeadReport[],
  chain: Chain,
  nowMs: number,
): Consensus {
  const heights: number[] = [];
  const rising: number[] = [];
  let untilMs = Number.POSITIVE_INFINITY;
  for (const { sample, roseAtMs } of reports) {
    if (sample !== null && sample.atMs > nowMs) untilMs = Math.min(untilMs, sample.atMs);
    if (!isRecent(sample, nowMs)) continue;
    heights.push(sample.height);
    untilMs = Math.min(untilMs, sample.atMs + HEAD_FRESH_MS);
    // A polled height is known to stand still only as long as it was confirmed.
    const stoodMs = (sample.polled ? sample.atMs : nowMs) - roseAtMs;
    if (stoodMs > stillMs(chain.blockTimeMs)) continue;
    rising.push(sample.height);
    if (!sample.polled) untilMs = Math.min(untilMs, roseAtMs + stillMs(chain.blockTimeMs) + 1);
  }
  heights.sort(descending);
  const believed = withoutFalseLead(counting(heights, rising.sort(descending), chain), chain);
  return {
    height: believed[Math.floor(believed.length * QUANTILE)] ?? null,
    fromMs: nowMs,
    untilMs,
  };
}

/**
 * Least silence that means a source has stalled while others have a newer block; one and a half
 * block times if that is longer.
 */
const SHORTEST_QUIET_MS = 2_000;

/** How long (ms) a source of heads may be silent while others have newer blocks. */
export function quietMs({ blockTimeMs }: Chain): number {
  return Math.max(SHORTEST_QUIET_MS, 1.5 * blockTimeMs);
}

/** Most blocks by which a single provider may plausibly be ahead of all others. */
export function plausibleLead({ blockTimeMs }: Chain): number {
  return IMPLAUSIBLE_LEAD_MS / Math.max(1, blockTimeMs);
}

/**
 * Blocks behind the head; null = either height is unknown. A polled height is credited with the
 * blocks that were due since it was polled, for at most 30 s.
 */
export function lagBlocks(
  sample: HeadSample | null,
  head: number | null,
  chain: Chain,
  nowMs: number,
): number | null {
  if (head === null || !isRecent(sample, nowMs)) return null;
  const credit =
    sample.polled && chain.blockTimeMs > 0
      ? Math.floor((nowMs - sample.atMs) / chain.blockTimeMs)
      : 0;
  return Math.max(0, head - sample.height - credit);
}

/**
 * Whether a provider certainly lacks a block of the others: it pushes its heads, and did not push
 * this one.
 */
export function lacksBlock(
  sample: HeadSample | null,
  block: number,
  head: number | null,
  nowMs: number,
): boolean {
  return head !== null && block <= head && isRecent(sample, nowMs) && sample.height < block;
}

/**
 * Whether a provider has a block: `lacks` = its head was lower lately, even with the blocks that
 * were due since it was polled.
 */
export function presenceOf(
  sample: HeadSample | null,
  block: number,
  { blockTimeMs }: Chain,
  nowMs: number,
): "has" | "unknown" | "lacks" {
  if (sample !== null && sample.height >= block) return "has";
  if (!isRecent(sample, nowMs)) return "unknown";
  const due = sample.polled ? Math.ceil((nowMs - sample.atMs) / Math.max(1, blockTimeMs)) : 0;
  return sample.height + due < block ? "lacks" : "unknown";
}

/** Whether a sample is recent. */
function isRecent(sample: HeadSample | null, nowMs: number): sample is HeadSample {
  return sample !== null && isFresh(sample.atMs, HEAD_FRESH_MS, nowMs);
}

/** The heights that count, highest first. */
function counting(
  heights: readonly number[],
  rising: readonly number[],
  chain: Chain,
): readonly number[] {
  const [best] = heights;
  if (best === undefined || rising[0] === best) return rising;
  const [, second = best] = heights;
  return best - second > plausibleLead(chain) ? heights : [best, ...rising];
}

function descending(left: number, right: number): number {
  return right - left;
}

/**
 * Drops a false lead: with three samples or fewer the consensus is the highest height, and an
 * absurd one would exclude every honest provider.
 */
function withoutFalseLead(heights: readonly number[], chain: Chain): readonly number[] {
  const [first, second] = heights;
  if (first === undefined || second === undefined || heights.length < 3) return heights;
  return first - second > plausibleLead(chain) ? heights.slice(1) : heights;
}

// Whether a block certainly does not exist yet, so that nobody need be asked for it. Only where all
// providers push their heads: what one of them has would be known. Knows no providers, only
// heights.

/** How much newer than the heads that were pushed a block may be that somebody has. */
const MAY_BE_ON_ITS_WAY_MS = 1_000;

/** Whether no provider can have a block of this number. */
export function isFutureBlock(
  number: number,
  samples: readonly (HeadSample | null)[],
  chain: Chain,
  nowMs: number,
): boolean {
  let highest = -1;
  let newestMs = Number.NEGATIVE_INFINITY;
  for (const sample of samples) {
    // One that is only polled, or not heard of, may have more blocks than are known.
    if (sample === null || sample.polled) return false;
    const { height, atMs } = sample;
    if (atMs > nowMs || nowMs - atMs > HEADS_MS) return false;
    highest = Math.max(highest, height);
    newestMs = Math.max(newestMs, atMs);
  }
  if (highest === -1 || nowMs - newestMs > quietMs(chain)) return false;
  const onItsWay = 1 + Math.ceil(MAY_BE_ON_ITS_WAY_MS / Math.max(1, chain.blockTimeMs));
  return number > highest + onItsWay;
}

/** A provider that has pushed nothing for so long may have lost its subscription. */
const HEADS_MS = 30_000;

// Whether a source of heads lags behind other providers: it has gone silent, or it reports blocks
// that the others reported long before. Knows no clock and no provider.

/** A height that other providers have reported and the source has not. */
export interface Overtaken {
  readonly height: number;
  /** When the lag was first noticed. */
  readonly sinceMs: number;
}

/** Least time for which others must have been ahead. */
const LEAST_AHEAD_MS = 1_000;

/**
 * The height that the source lacks now; null = it lacks none. `before` is the result of the last
 * call: its height is kept until the source has reached it. `known` is the highest height that
 * other providers reported.
 */
export function overtakenBy(
  before: Overtaken | null,
  known: number | null,
  source: number | null,
  nowMs: number,
): Overtaken | null {
  if (known === null || source === null || known <= source) return null;
  return before !== null && source < before.height ? before : { height: known, sinceMs: nowMs };
}

/**
 * Whether the source has been silent for longer than block times vary while others had a newer
 * block. `silentMs` is the time since it last reported a new block.
 */
export function isSilentBehind(
  { sinceMs }: Overtaken,
  silentMs: number,
  chain: Chain,
  nowMs: number,
): boolean {
  return silentMs >= quietMs(chain) && nowMs - sinceMs >= LEAST_AHEAD_MS;
}

/** Whether the source reports heads, but only long after others did. */
export function isLate({ sinceMs }: Overtaken, chain: Chain, nowMs: number): boolean {
  return nowMs - sinceMs >= quietMs(chain) + LEAST_AHEAD_MS;
}
