// Bounds how many requests wait for recorded purchases, for each and in all, so that repeated
// payments do not keep others from paying. Knows no purchase but its id.

/** How many may wait. */
export interface WaiterLimits {
  readonly each: number;
  readonly all: number;
}

/** Requests that wait. */
export class Waiters {
  readonly #limits: WaiterLimits;
  readonly #counts = new Map<string, number>();
  #inAll = 0;

  constructor(limits: WaiterLimits) {
    this.#limits = limits;
  }

  /** Runs `wait` if one more may wait for this purchase; null = none may. */
  async at<T>(purchaseId: string, wait: () => Promise<T>): Promise<T | null> {
    const { each, all } = this.#limits;
    const count = this.#counts.get(purchaseId) ?? 0;
    if (count >= each || this.#inAll >= all) return null;
    this.#counts.set(purchaseId, count + 1);
    this.#inAll++;
    try {
      return await wait();
    } finally {
      this.#inAll--;
      const left = (this.#counts.get(purchaseId) ?? 1) - 1;
      if (left > 0) this.#counts.set(purchaseId, left);
      else this.#counts.delete(purchaseId);
    }
  }
}
