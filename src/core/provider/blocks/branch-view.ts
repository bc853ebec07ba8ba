// The hashes of a chain's recent blocks as one provider pushed them: they tell its branch. Several
// views together say whether the providers agree on a block. Sends nothing, and knows nothing of
// what lies in a block.

import type { Block } from "../../stream/chain-event.ts";

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
export function pushBlock(view: BranchView, { number, hash, parentHash }: Block): number | null {
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
function lowestAbandoned(view: BranchView, { number, hash, parentHash }: Block): number | null {
  if (number > view.tip + 1) return null;
  const parent = number - 1;
  if (parent >= view.lowest && hashAt(view, parent) !== parentHash) return view.lowest;
  if (number < view.lowest) return number;
  if (hashAt(view, number) === hash) return number < view.tip ? number + 1 : null;
  return number > view.tip ? null : number;
}

/** Stands for a hash where views differ. */
const DISPUTED = Symbol("disputed");

/** The hash that the views with a height have there; null = no view has the height. */
function commonHash(views: Iterable<BranchView>, number: number): string | typeof DISPUTED | null {
  let common: string | null = null;
  for (const view of views) {
    const hash = hashAt(view, number);
    if (hash === null) continue;
    if (common !== null && common !== hash) return DISPUTED;
    common = hash;
  }
  return common;
}

/** Whether two views have different blocks at a height. */
export function isDisputed(views: Iterable<BranchView>, number: number): boolean {
  return commonHash(views, number) === DISPUTED;
}

/**
 * The hash of a height if all views with that height agree on it; null = no view has the height, or
 * views differ.
 */
export function agreedHash(views: Iterable<BranchView>, number: number): string | null {
  const common = commonHash(views, number);
  return common === DISPUTED ? null : common;
}

// Since when a recent block has been the only one that any provider told of at its height.

interface Heard {
  readonly hash: string;
  readonly atMs: number;
}

/** The blocks that the providers of one set have told of, by height. */
export class AgreedSince {
  /** By number modulo `BRANCH_BLOCKS`; hashes tell one turn from another. */
  readonly #heard: Heard[] = [];

  /** Since when (ms); Infinity = it was not heard of, or another one was heard of later. */
  since(number: number, hash: string): number {
    const heard = this.#heard[number % BRANCH_BLOCKS];
    return heard?.hash === hash ? heard.atMs : Number.POSITIVE_INFINITY;
  }

  /** A provider has told of a block. `abandoned`: the lowest one that it has left; null = none. */
  hear({ number, hash, parentHash }: Block, abandoned: number | null, nowMs: number): void {
    // There was more than one block at these heights until now.
    const lowest = Math.max(abandoned ?? number, number - BRANCH_BLOCKS + 1);
    for (let at = lowest; at < number; at++) {
      const heard = this.#heard[at % BRANCH_BLOCKS];
      if (heard !== undefined) this.#heard[at % BRANCH_BLOCKS] = { hash: heard.hash, atMs: nowMs };
    }
    if (number > 0) this.#hear(number - 1, parentHash, nowMs);
    if (abandoned !== null && abandoned <= number) delete this.#heard[number % BRANCH_BLOCKS];
    this.#hear(number, hash, nowMs);
  }

  #hear(number: number, hash: string, atMs: number): void {
    const at = number % BRANCH_BLOCKS;
    if (this.#heard[at]?.hash !== hash) this.#heard[at] = { hash, atMs };
  }
}

// Counts the reorganisations of a chain, and tells which heights none of them has touched since a
// given count: facts about a block hold only until its height is touched, even if its branch comes
// back.

/** How many reorganisations are remembered; facts that are older count as touched. */
export const REMEMBERED_CHANGES = 64;

/** The reorganisations that the providers of one set have told of. */
export class BranchChanges {
  #epoch = 0;
  /** By count modulo `REMEMBERED_CHANGES`: the lowest height touched since then. */
  readonly #lowest: number[] = [];

  /** How many there have been. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Blocks from this height on may have been abandoned. */
  abandon(height: number): void {
    this.#lowest[this.#epoch % REMEMBERED_CHANGES] = height;
    for (const [slot, lowest] of this.#lowest.entries())
      if (height < lowest) this.#lowest[slot] = height;
    this.#epoch += 1;
  }

  /** Whether nothing at or below this height was abandoned since the count was `epoch`. */
  isUntouched(height: number, epoch: number): boolean {
    if (epoch === this.#epoch) return true;
    if (this.#epoch - epoch > REMEMBERED_CHANGES) return false;
    return height < (this.#lowest[epoch % REMEMBERED_CHANGES] ?? 0);
  }
}
