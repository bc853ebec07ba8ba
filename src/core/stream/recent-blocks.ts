// The last blocks of a chain as delivered to a subscriber, each the parent of the next, and where a
// further block belongs. Knows no provider.
import type { Block } from "./chain-event.ts";

/**
 * The blocks delivered to a subscriber, oldest first, without gaps. Changed in place, only by
 * `adopt`.
 */
export class RecentBlocks {
  readonly blocks: Block[] = [];
  /** Most blocks that are kept. */
  readonly window: number;
  /** The oldest block began the subscription: a replacement of it needs no known parent. */
  rooted = true;

  constructor(window: number) {
    this.window = window;
  }
}

/**
 * Where a block belongs. `known`: already in the record. `next`: its parent is in the record, or it
 * replaces the very first block. `unlinked`: its parent must be fetched first. `old`: before the
 * oldest block. `far`: too far ahead to fetch the blocks between.
 */
export type Placement = "known" | "next" | "unlinked" | "old" | "far";

const MIN_WINDOW = 64;
const MAX_WINDOW = 1_024;

/** The number of blocks to keep: as many as may be backfilled (`maxGapBlocks`), within bounds. */
export function windowFor(maxGapBlocks: number): number {
  return Math.min(MAX_WINDOW, Math.max(MIN_WINDOW, maxGapBlocks));
}

/** The newest block; null = there is none yet. */
export function tipOf(view: RecentBlocks): Block | null {
  return view.blocks.at(-1) ?? null;
}

/** Whether the record holds the block with this number and hash. */
export function holds(view: RecentBlocks, number: number, hash: string): boolean {
  const [first] = view.blocks;
  return first !== undefined && view.blocks[number - first.number]?.hash === hash;
}

/**
 * Determines where a block belongs. At most `maxGapBlocks` blocks may be missing between the tip
 * and the block.
 */
export function place(view: RecentBlocks, block: Block, maxGapBlocks: number): Placement {
  const [first] = view.blocks;
  const tip = tipOf(view);
  if (first === undefined || tip === null) return "next";
  if (holds(view, block.number, block.hash)) return "known";
  const isFirst = view.rooted && block.number === first.number;
  if (isFirst || holds(view, block.number - 1, block.parentHash)) return "next";
  if (block.number <= first.number) return "old";
  return block.number - tip.number - 1 > maxGapBlocks ? "far" : "unlinked";
}

/** Adds a block placed as `next`. Returns the blocks that leave the chain for it, newest first. */
export function adopt(view: RecentBlocks, block: Block): readonly Block[] {
  const { blocks, window } = view;
  const kept = blocks.findLastIndex(({ number }) => number < block.number);
  const left = blocks.splice(kept + 1).reverse();
  blocks.push({ number: block.number, hash: block.hash, parentHash: block.parentHash });
  if (blocks.length > window) {
    blocks.shift();
    view.rooted = false;
  }
  return left;
}
