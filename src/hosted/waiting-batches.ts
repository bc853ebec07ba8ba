// Counts the batches of each account that wait for its rate limit, and bounds them. Knows no rate and no clock.
import type { Payer } from "./holder.ts";

/** Batches of one account that may wait at one time. */
const MAX_WAITING = 2;

/** The batches that wait. */
export interface WaitingBatches {
  /** Whether an account has as many as it may. */
  isFull(payer: Payer): boolean;
  /** Counts one; the returned function ends that. Null = there are as many as there may be. */
  enter(payer: Payer): (() => void) | null;
  /** Accounts with waiting batches. */
  readonly size: number;
}

/** No batch waits yet. */
export function createWaitingBatches(): WaitingBatches {
  const counts = new Map<string, number>();
  const isFull = ({ id }: Payer): boolean => (counts.get(id) ?? 0) >= MAX_WAITING;
  return {
    isFull,
    enter(payer) {
      if (isFull(payer)) return null;
      const { id } = payer;
      counts.set(id, (counts.get(id) ?? 0) + 1);
      let left = false;
      return () => {
        if (left) return;
        left = true;
        const count = (counts.get(id) ?? 0) - 1;
        if (count > 0) counts.set(id, count);
        else counts.delete(id);
      };
    },
    get size() {
      return counts.size;
    },
  };
}
