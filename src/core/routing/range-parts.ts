// How a range of blocks is cut into parts that providers accept: how many there are, where they
// begin and end, and what is refused. Knows no provider and no clock.

/** Blocks by number; both ends belong to it. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
}

/** The bounds of one split call. */
export interface SplitBounds {
  /** Most blocks. */
  readonly maxBlocks: number;
  /** Most parts planned at its start. */
  readonly maxParts: number;
}

/** What becomes of a call over a range of blocks. */
export type SplitDecision =
  /** One provider may be asked for all of it. */
  | { readonly kind: "whole" }
  /** Cut into `count` parts of at most `size` blocks. */
  | { readonly kind: "parts"; readonly size: number; readonly count: number }
  /** More than the bounds allow; `maxBlocks` would be served. */
  | { readonly kind: "too_many"; readonly maxBlocks: number };

/** Number of blocks of a range. */
export function blocksIn({ from, to }: BlockRange): number {
  return Math.max(0, to - from + 1);
}

/**
 * Decides about a range. `limit`: the largest block range that a provider accepts, as the
 * difference of its ends; infinite = none is known; null = nobody can be asked.
 */
export function decideSplit(
  range: BlockRange,
  limit: number | null,
  bounds: SplitBounds,
): SplitDecision {
  if (limit === null || range.to - range.from <= limit) return WHOLE;
  const size = sizeOf(limit);
  const count = Math.ceil(blocksIn(range) / size);
  const maxBlocks = mostBlocks(limit, bounds);
  return blocksIn(range) > bounds.maxBlocks || count > bounds.maxParts
    ? { kind: "too_many", maxBlocks }
    : { kind: "parts", size, count };
}

/** The largest range that is served where providers accept `limit`. */
export function mostBlocks(limit: number, { maxBlocks, maxParts }: SplitBounds): number {
  return Math.min(maxBlocks, maxParts * sizeOf(limit));
}

/**
 * Blocks of one part. Some providers count both ends of a range and some the difference: `limit`
 * blocks are within both.
 */
export function sizeOf(limit: number): number {
  return Math.max(1, limit);
}

/**
 * Cuts a range into parts of at most `size` blocks, in order. No part lies on both sides of
 * `finalized`; null = it is not known.
 */
export function cutRange(
  range: BlockRange,
  size: number,
  finalized: number | null = null,
): readonly BlockRange[] {
  const parts: BlockRange[] = [];
  for (let from = range.from; from <= range.to; ) {
    const last = Math.min(range.to, from + size - 1);
    const to = finalized !== null && from <= finalized ? Math.min(last, finalized) : last;
    parts.push({ from, to });
    from = to + 1;
  }
  return parts;
}

/**
 * The parts of a range that a provider refused as too large. `limit`: the largest range that is
 * accepted now, as far as is known. Empty = one block is too much.
 */
export function cutRefused(range: BlockRange, limit: number): readonly BlockRange[] {
  const blocks = blocksIn(range);
  if (blocks <= 1) return [];
  return cutRange(range, Math.min(sizeOf(limit), Math.ceil(blocks / 2)));
}

const WHOLE: SplitDecision = { kind: "whole" };
