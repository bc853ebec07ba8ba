// The hashes of the recent blocks of a chain, as one provider has pushed them: which branch it is
// on. Several views together say whether the providers agree on a block. Sends nothing, and knows
// nothing of what lies in a block.

/** A block as a provider pushed it. */
export interface PushedBlock {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
}

/** Recent blocks of one provider; changed in place by `pushBlock` and `clearBranch`. */
export class BranchView {
  /** Hashes by number modulo `BRANCH_BLOCKS`. */
  readonly hashes: (string | null)[] = [];
  /** The newest block; -1 = none is known. */
  tip = -1;
  /** The lowest block that is known without a gap up to the tip. */
  lowest = 0;
}

/** Most blocks that are remembered of one provider. */
export const BRANCH_BLOCKS = 1_024;

/** Forgets all blocks, because the provider does not push them any more. */
export function clearBranch(view: BranchView): void {
  view.hashes.length = 0;
  view.tip = -1;
  view.lowest = 0;
}

/** The hash that the provider has at a height; null = unknown. */
export function hashAt(view: BranchView, number: number): string | null {
  if (number > view.tip || number < view.lowest) return null;
  return view.hashes[number % BRANCH_BLOCKS] ?? null;
}

/**
 * Takes a pushed block over. What it shows to be abandoned, or no longer connected, is forgotten.
 * Returns the lowest block that may have been abandoned; null = none was.
 */
export function pushBlock(
  view: BranchView,
  { number, hash, parentHash }: PushedBlock,
): number | null {
  const parent = number - 1;
  const abandoned = lowestAbandoned(view, { number, hash, parentHash });
  if (hashAt(view, parent) !== parentHash) view.lowest = Math.max(0, parent);
  view.tip = number;
  if (parent >= 0) view.hashes[parent % BRANCH_BLOCKS] = parentHash;
  view.hashes[number % BRANCH_BLOCKS] = hash;
  view.lowest = Math.max(view.lowest, number - BRANCH_BLOCKS + 1);
  return abandoned;
}

/** A parent that differs does not say how deep the branch was left: then all are suspect. */
function lowestAbandoned(
  view: BranchView,
  { number, hash, parentHash }: PushedBlock,
): number | null {
  if (number > view.tip + 1) return null;
  const parent = number - 1;
  if (parent >= view.lowest && hashAt(view, parent) !== parentHash) return view.lowest;
  if (number < view.lowest) return number;
  if (hashAt(view, number) === hash) return number < view.tip ? number + 1 : null;
  return number > view.tip ? null : number;
}

/** Whether two views have different blocks at a height. */
export function isDisputed(views: Iterable<BranchView>, number: number): boolean {
  let known: string | null = null;
  for (const view of views) {
    const hash = hashAt(view, number);
    if (hash === null) continue;
    if (known !== null && known !== hash) return true;
    known = hash;
  }
  return false;
}

/** The hash on which all views agree that know the height; null = none knows it, or they differ. */
export function agreedHash(views: Iterable<BranchView>, number: number): string | null {
  let agreed: string | null = null;
  for (const view of views) {
    const hash = hashAt(view, number);
    if (hash === null) continue;
    if (agreed !== null && agreed !== hash) return null;
    agreed = hash;
  }
  return agreed;
}
