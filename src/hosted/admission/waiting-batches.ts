// The batches of each account that wait for its rate limit: bounds them, and says when one is
// expected to be through. Knows no rate and no clock.
import type { AccountState } from "../keys/key-context.ts";

/** Batches of one account that may wait at one time. */
const MAX_WAITING = 2;

/** A batch that waits. */
export interface PacedBatch {
  /**
   * Milliseconds until it waits no more: if it got every token of its account, and at the latest.
   */
  readonly aloneMs: () => number;
  readonly latestMs: () => number;
}

/** The batches that wait. */
export interface WaitingBatches {
  /**
   * Milliseconds until one of an account's is expected to wait no more; null = another one may wait
   * now.
   */
  fullForMs(account: AccountState): number | null;
  /** Counts one; the returned function ends that. Null = there are as many as there may be. */
  enter(account: AccountState, batch: PacedBatch): (() => void) | null;
  /** Accounts with waiting batches. */
  readonly size: number;
}

/** No batch waits yet. */
export function createWaitingBatches(): WaitingBatches {
  const byAccount = new Map<string, Set<PacedBatch>>();
  return {
    fullForMs({ id }) {
      const batches = byAccount.get(id);
      if (batches === undefined || batches.size < MAX_WAITING) return null;
      // They share the tokens as they come.
      return Math.min(
        ...[...batches].map(({ aloneMs, latestMs }) =>
          Math.min(latestMs(), aloneMs() * batches.size),
        ),
      );
    },
    enter({ id }, batch) {
      const batches = byAccount.get(id) ?? new Set();
      if (batches.size >= MAX_WAITING) return null;
      byAccount.set(id, batches.add(batch));
      return () => {
        batches.delete(batch);
        if (batches.size === 0 && byAccount.get(id) === batches) byAccount.delete(id);
      };
    },
    get size() {
      return byAccount.size;
    },
  };
}
