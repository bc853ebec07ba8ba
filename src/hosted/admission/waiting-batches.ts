// The batches of each account that wait for its rate limit: bounds their number, and estimates when
// one will have ended. Knows no rate and no clock.
import type { AccountState } from "../keys/key-context.ts";

/** Batches of one account that may wait at one time. */
const MAX_WAITING = 2;

/** A waiting batch. */
export interface PacedBatch {
  /** Milliseconds until it has ended: if it got every token of its account, and at the latest. */
  readonly aloneMs: () => number;
  readonly latestMs: () => number;
}

/** The waiting batches of all accounts. */
export interface WaitingBatches {
  /**
   * Milliseconds until one of the account's batches is expected to end; null = another one may wait
   * now.
   */
  fullForMs(account: AccountState): number | null;
  /**
   * Adds a batch; the returned function removes it. Null = the account has as many as it may have.
   */
  enter(account: AccountState, batch: PacedBatch): (() => void) | null;
  /** Accounts with waiting batches. */
  readonly size: number;
}

/** No waiting batch yet. */
export function createWaitingBatches(): WaitingBatches {
  const byAccount = new Map<string, Set<PacedBatch>>();
  return {
    fullForMs({ id }) {
      const batches = byAccount.get(id);
      if (batches === undefined || batches.size < MAX_WAITING) return null;
      // They share the tokens equally.
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
