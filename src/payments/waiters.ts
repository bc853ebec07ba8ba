// Who may wait for a purchase that was recorded before: some for each and some in all, so that
// whoever repeats payments keeps nobody from paying. Knows no purchase but its id.

/** Bounds of waiting. */
export interface WaiterLimits {
  readonly each: number;
  readonly all: number;
}

/** Those who wait. */
export interface Waiters {
  /** Runs `wait` where there is a place for one more at this purchase; null = there is none. */
  at<T>(purchaseId: string, wait: () => Promise<T>): Promise<T | null>;
}

/** Nobody waits yet. */
export function createWaiters({ each, all }: WaiterLimits): Waiters {
  const counts = new Map<string, number>();
  let inAll = 0;
  return {
    async at(purchaseId, wait) {
      const count = counts.get(purchaseId) ?? 0;
      if (count >= each || inAll >= all) return null;
      counts.set(purchaseId, count + 1);
      inAll++;
      try {
        return await wait();
      } finally {
        inAll--;
        const left = (counts.get(purchaseId) ?? 1) - 1;
        if (left > 0) counts.set(purchaseId, left);
        else counts.delete(purchaseId);
      }
    },
  };
}
