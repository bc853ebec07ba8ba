// How a range of blocks is cut into parts that providers accept: how many there are, where they
// begin and end, and what is refused. Knows no provider and no clock.
import type { Block } from "../stream/chain-event.ts";

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

/** Number of blocks of a range. */
export function blocksIn({ from, to }: BlockRange): number {
  return Math.max(0, to - from + 1);
}

/**
 * In how many parts a range is asked for; 1 = one provider may be asked for all of it, null = more
 * than the bounds allow. `limit`: the largest block range that a provider accepts, as the
 * difference of its ends; infinite = none is known; null = nobody can be asked.
 */
export function partsOf(
  range: BlockRange,
  limit: number | null,
  { maxBlocks, maxParts }: SplitBounds,
): number | null {
  if (limit === null || range.to - range.from <= limit) return 1;
  const count = Math.ceil(blocksIn(range) / sizeOf(limit));
  return blocksIn(range) > maxBlocks || count > maxParts ? null : count;
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

/** Most characters of an error that are read. */
const MESSAGE_CHARS = 2_048;
const NUMBER = "(0x[0-9a-f]{1,13}|\\d{1,15})";
/** "this block range should work: [0x1, 0x7d0]", "retry with the range 1-2000". */
const NAMED_RANGE = new RegExp(`(?:\\[|\\brange:? )${NUMBER}(?:, ?|-| to )${NUMBER}\\b`, "gi");

/**
 * The size of the smaller range that an error advises, from the same first block; null = it advises
 * no range.
 */
export function advisedBlocks(message: unknown, { from, to }: BlockRange): number | null {
  if (typeof message !== "string") return null;
  for (const [, first, last] of message.slice(0, MESSAGE_CHARS).matchAll(NAMED_RANGE)) {
    const advised = { from: Number(first), to: Number(last) };
    if (advised.from === from && advised.to >= from && advised.to < to) return blocksIn(advised);
  }
  return null;
}

/**
 * Cuts the first `size` blocks off a range that is longer. The rest is cut when its turn comes, by
 * what is known then.
 */
export function cutHead({ from, to }: BlockRange, size: number): readonly BlockRange[] {
  const last = from + Math.max(1, size) - 1;
  const head = { from, to: Math.min(last, to) };
  return last >= to ? [head] : [head, { from: last + 1, to }];
}

/**
 * How many blocks a part may have, by what the parts of one call turned out to hold. Refusals for
 * too many results make parts smaller. Answered parts let the size grow again: up to the refused
 * size, and beyond it only where there are few results.
 */
export class PartSize {
  /** Null = nothing was refused for its results. */
  blocks: number | null = null;
  /** This many blocks had too many results. */
  #refused = Number.POSITIVE_INFINITY;
  #mostBytes = 0;

  /** A part had too many results. `advised`: blocks that its provider advises, if it does. */
  refused(range: BlockRange, advised: number | null): void {
    const blocks = blocksIn(range);
    this.#refused = Math.min(this.#refused, blocks);
    this.blocks = Math.min(this.blocks ?? blocks, advised ?? Math.ceil(blocks / 2));
  }

  /** A part was answered with so many bytes. */
  answered(range: BlockRange, bytes: number): void {
    this.#mostBytes = Math.max(this.#mostBytes, bytes);
    if (this.blocks === null || blocksIn(range) < this.blocks) return;
    const larger = this.blocks * 2;
    const isSparse = bytes * FEW_RESULTS <= this.#mostBytes;
    if (larger >= this.#refused && !isSparse) return;
    this.blocks = larger;
    if (larger >= this.#refused) this.#refused = larger + 1;
  }
}

/** A part has few results if the longest one is so many times as long. */
const FEW_RESULTS = 2;

/**
 * The parts of a range that a provider refused as too large. `limit`: the largest range that is
 * accepted now, as far as is known. Empty = one block is too much.
 */
export function cutRefused(range: BlockRange, limit: number): readonly BlockRange[] {
  const blocks = blocksIn(range);
  if (blocks <= 1) return [];
  return cutRange(range, Math.min(sizeOf(limit), Math.ceil(blocks / 2)));
}

// The newest headers below a pinned block, linked by parent hashes: which headers are needed to
// show that a block is an ancestor of the pinned one. Asks nobody.

/** Most headers that are linked: blocks below are compared with those of another provider. */
export const MAX_LINKED_HEADERS = 256;

/** Headers from a pinned block downwards. */
export class HeaderChain {
  readonly end: Block;
  /** From the end downwards, each the parent of the one before. */
  readonly #linked: Block[];

  constructor(end: Block) {
    this.end = end;
    this.#linked = [end];
  }

  /** The lowest block whose hash is known. */
  get lowest(): number {
    return this.#oldest.number;
  }

  /** The next one below, as its child names it. */
  get next(): { readonly number: number; readonly hash: string } {
    const { number, parentHash } = this.#oldest;
    return { number: number - 1, hash: parentHash };
  }

  /** The hash of a block on the chain; null = it is not linked. */
  hashAt(number: number): string | null {
    return this.#linked[this.end.number - number]?.hash ?? null;
  }

  /** Whether a block is so near the end that it has to be linked. */
  mustLink(number: number): boolean {
    return this.end.number - number < MAX_LINKED_HEADERS;
  }

  /** Adds a header. False = it is not the next one. */
  add(header: Block): boolean {
    const { number, hash } = this.next;
    if (header.number !== number || header.hash !== hash) return false;
    this.#linked.push(header);
    return true;
  }

  get #oldest(): Block {
    return this.#linked.at(-1) ?? this.end;
  }
}
