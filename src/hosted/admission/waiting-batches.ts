// The batches of each account that wait for its rate limit, at all workers of the service: bounds
// their number, and estimates when one will have ended. A WebSocket whose requests wait counts as
// one batch. Knows no rate and no clock.
import { type Holdings, NO_SHARED_HOLDINGS } from "../../core/workers/shared-holdings.ts";
import type { AccountState } from "../keys/key-context.ts";

/** Batches of one account that may wait at one time. */
const MAX_WAITING = 2;
/** The estimate where all of them wait at other workers. */
const ELSEWHERE_MS = 1_000;

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

/** No waiting batch yet; `holdings` tells of those at other workers. */
export function createWaitingBatches(holdings: Holdings = NO_SHARED_HOLDINGS): WaitingBatches {
  const byAccount = new Map<string, Set<PacedBatch>>();
  let last = 0;

  function countOf(id: string): number {
    return (byAccount.get(id)?.size ?? 0) + holdings.elsewhere(id).size;
  }

  return {
    fullForMs({ id }) {
      const count = countOf(id);
      if (count < MAX_WAITING) return null;
      const batches = byAccount.get(id);
      if (batches === undefined) return ELSEWHERE_MS;
      // They share the tokens equally.
      return Math.min(
        ...[...batches].map(({ aloneMs, latestMs }) => Math.min(latestMs(), aloneMs() * count)),
      );
    },
    enter({ id }, batch) {
      if (countOf(id) >= MAX_WAITING) return null;
      const batches = byAccount.get(id) ?? new Set();
      byAccount.set(id, batches.add(batch));
      const name = `${holdings.worker} ${++last}`;
      holdings.add(id, name);
      return () => {
        holdings.remove(id, name);
        batches.delete(batch);
        if (batches.size === 0 && byAccount.get(id) === batches) byAccount.delete(id);
      };
    },
    get size() {
      return byAccount.size;
    },
  };
}
