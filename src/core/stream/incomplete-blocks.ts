// Which blocks a subscriber may have received without all of their logs: a source was lost between
// head and logs, or logs were dropped or removed. Names the blocks to query; sends no queries.
import { keepNewest } from "../newest.ts";
import type { Block } from "./chain-event.ts";

/**
 * Longest time between a head and its logs. A connection that opens or breaks in between may have
 * lost some of the logs.
 */
export const APART_MS = 2_000;
const MAX_SUSPECTS = 1_024;

/** The doubtful blocks of one subscription. */
export class IncompleteBlocks {
  /**
   * Blocks by hash with the time (ms) at which their head was pushed; an entry stays until its
   * source has had time to push all logs. In order of time.
   */
  readonly unsure = new Map<string, number>();
  /**
   * Blocks whose logs were dropped or removed: a source that pushes the head again may not push the
   * logs again.
   */
  readonly suspects = new Set<string>();

  /**
   * Records that the current source, attached at `attachedAtMs`, pushed a block. Its earlier blocks
   * are complete by now; blocks of earlier sources stay doubtful.
   */
  pushed(
    hash: string,
    at: { readonly nowMs: number; readonly attachedAtMs: number; readonly window: number },
  ): void {
    const { unsure } = this;
    unsure.delete(hash);
    unsure.set(hash, at.nowMs);
    for (const [old, pushedAtMs] of unsure) {
      const complete = pushedAtMs >= at.attachedAtMs && at.nowMs - pushedAtMs >= APART_MS;
      if (complete || unsure.size > at.window) unsure.delete(old);
    }
  }

  /**
   * Records a block whose logs were removed by a source that is gone: that source may have been the
   * only one to drop the block.
   */
  abandoned(hash: string): void {
    this.unsure.set(hash, this.unsure.get(hash) ?? 0);
  }

  /** Records a block whose logs were dropped or removed. */
  suspect(hash: string): void {
    this.unsure.delete(hash);
    this.suspects.delete(hash);
    this.suspects.add(hash);
    keepNewest(this.suspects, MAX_SUSPECTS);
  }

  /** Records that all logs of a block were queried. */
  settle(hash: string): void {
    this.unsure.delete(hash);
  }

  /**
   * Whether some block was pushed by a source before the current source was attached, so that its
   * logs may be missing.
   */
  isOwed(attachedAtMs: number): boolean {
    const [oldestMs = attachedAtMs] = this.unsure.values();
    return oldestMs < attachedAtMs;
  }

  /**
   * The doubtful blocks below a number: their logs must be delivered before those of later blocks.
   */
  unsureBelow(blocks: readonly Block[], number: number): readonly Block[] {
    return blocks.filter((block) => block.number < number && this.unsure.has(block.hash));
  }
}
