// Bounds how many requests wait for recorded purchases, for each and in all, so that repeated
// payments do not keep others from paying. Knows no purchase but its id.

/** How many may wait. */
export interface WaiterLimits {
  readonly each: number;
  readonly all: number;
}

/** Requests that wait. */
export interface Waiters {
  /** Runs `wait` if one more may wait for this purchase; null = none may. */
  at<T>(purchaseId: string, wait: () => Promise<T>): Promise<T | null>;
}

/** A bound on waiting requests. */
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
