// The last blocks of a chain as a subscriber has been told of them: each the parent of the next.
// Says where a further block belongs. Knows no provider.
import type { Block } from "./chain-event.ts";

/**
 * The blocks a subscriber knows, oldest first, without holes; changed in place, and only by
 * `adopt`.
 */
export interface RecentBlocks {
  readonly blocks: Block[];
  /** How many are kept. */
  readonly window: number;
  /** The oldest block is the one it began with: a block that replaces it needs no parent here. */
  rooted: boolean;
}

/**
 * Where a block belongs. `known`: it is in the view. `next`: its parent is in the view, or it takes
 * the place of the very first block. `unlinked`: its parent must be found first. `old`: it lies
 * before everything known. `far`: too far ahead to be reached by asking block by block.
 */
export type Placement = "known" | "next" | "unlinked" | "old" | "far";

const MIN_WINDOW = 64;
const MAX_WINDOW = 1_024;

/** How many blocks are worth keeping: as many as may be asked for, within reason. */
export function windowFor(reach: number): number {
  return Math.min(MAX_WINDOW, Math.max(MIN_WINDOW, reach));
}

/** A view without blocks. */
export function createRecentBlocks(window: number): RecentBlocks {
  return { blocks: [], window, rooted: true };
}

/** The newest block; null = none yet. */
export function tipOf(view: RecentBlocks): Block | null {
  return view.blocks.at(-1) ?? null;
}

/** Whether the view holds this very block. */
export function holds(view: RecentBlocks, number: number, hash: string): boolean {
  return blockAt(view, number)?.hash === hash;
}

/** Where a block belongs; `reach` is how many blocks may lie between the tip and it. */
export function place(view: RecentBlocks, block: Block, reach: number): Placement {
  const [first] = view.blocks;
  const tip = tipOf(view);
  if (first === undefined || tip === null) return "next";
  if (holds(view, block.number, block.hash)) return "known";
  if (
    holds(view, block.number - 1, block.parentHash) ||
    (view.rooted && block.number === first.number)
  )
    return "next";
  if (block.number <= first.number) return "old";
  return block.number - tip.number - 1 > reach ? "far" : "unlinked";
}

/** Adds a block that is `next`. Returns the blocks that leave the chain for it, newest first. */
export function adopt(view: RecentBlocks, block: Block): readonly Block[] {
  const { blocks, window } = view;
  const left: Block[] = [];
  for (
    let last = blocks.at(-1);
    last !== undefined && last.number >= block.number;
    last = blocks.at(-1)
  ) {
    left.push(last);
    blocks.pop();
  }
  blocks.push({ number: block.number, hash: block.hash, parentHash: block.parentHash });
  if (blocks.length > window) {
    blocks.shift();
    view.rooted = false;
  }
  return left;
}

function blockAt(view: RecentBlocks, number: number): Block | undefined {
  const [first] = view.blocks;
  return first === undefined ? undefined : view.blocks[number - first.number];
}
