// Of which blocks a subscriber may not have been told all logs, though it was told of the block:
// where a source was lost in between, and where logs were dropped or taken back. Says whom to ask
// about; asks nobody.
import type { Block } from "./chain-event.ts";

/**
 * Doubts about the blocks of one subscription; changed in place, and only by the functions of this
 * file.
 */
export interface IncompleteBlocks {
  /**
   * Blocks that a source pushed, and when, until it has lived long enough to have pushed all their
   * logs. In order of time.
   */
  readonly unsure: Map<string, number>;
  /**
   * Blocks whose logs were dropped or taken back: a source that pushes such a block again may not
   * push its logs again.
   */
  readonly suspects: Set<string>;
}

/**
 * A head and its logs may come this far apart: a connection that opens or breaks in between has
 * swallowed some.
 */
export const APART_MS = 2_000;
const MAX_SUSPECTS = 1_024;

/** No doubts. */
export function createIncompleteBlocks(): IncompleteBlocks {
  return { unsure: new Map(), suspects: new Set() };
}

/**
 * A block was pushed by the source that was attached at `attachedAtMs`. Its earlier blocks are
 * complete by now, those of other sources are not.
 */
export function notePushed(
  { unsure }: IncompleteBlocks,
  hash: string,
  at: { readonly nowMs: number; readonly attachedAtMs: number; readonly window: number },
): void {
  unsure.delete(hash);
  unsure.set(hash, at.nowMs);
  for (const [old, pushedAtMs] of unsure) {
    const complete = pushedAtMs >= at.attachedAtMs && at.nowMs - pushedAtMs >= APART_MS;
    if (complete || unsure.size > at.window) unsure.delete(old);
  }
}

/**
 * A block whose logs were taken back by a source that is gone: it may be the only one to leave that
 * block.
 */
export function noteAbandoned({ unsure }: IncompleteBlocks, hash: string): void {
  unsure.set(hash, unsure.get(hash) ?? 0);
}

/** A block whose logs were dropped or taken back. */
export function suspect({ unsure, suspects }: IncompleteBlocks, hash: string): void {
  unsure.delete(hash);
  suspects.delete(hash);
  suspects.add(hash);
  const [oldest = hash] = suspects;
  if (suspects.size > MAX_SUSPECTS) suspects.delete(oldest);
}

/** All logs of a block have been asked for. */
export function settle({ unsure }: IncompleteBlocks, hash: string): void {
  unsure.delete(hash);
}

/**
 * Whether sources before the one that was attached then may not have pushed all logs of some
 * blocks.
 */
export function isOwed({ unsure }: IncompleteBlocks, attachedAtMs: number): boolean {
  const [oldestMs = attachedAtMs] = unsure.values();
  return oldestMs < attachedAtMs;
}

/**
 * Those of the blocks below a number whose logs may not all have been pushed: they are to be told
 * before those of later ones.
 */
export function unsureBelow(
  { unsure }: IncompleteBlocks,
  blocks: readonly Block[],
  number: number,
): readonly Block[] {
  return blocks.filter((block) => block.number < number && unsure.has(block.hash));
}
