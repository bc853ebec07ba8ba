// The batches of each account that wait for its rate limit, at all workers of the service: bounds
// their number, and estimates when one will have ended. A WebSocket whose requests wait counts as
// one batch. Knows no rate and no clock.
import {
  countElsewhere,
  type Holdings,
  NO_SHARED_HOLDINGS,
} from "../../core/workers/shared-holdings.ts";
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
export class WaitingBatches {
  readonly #holdings: Holdings<number>;
  readonly #byAccount = new Map<string, Set<PacedBatch>>();

  /** No waiting batch yet; `holdings` tells of those at other workers. */
  constructor(holdings: Holdings<number> = NO_SHARED_HOLDINGS) {
    this.#holdings = holdings;
  }

  /**
   * Milliseconds until one of the account's batches is expected to end; null = another one may wait
   * now.
   */
  fullForMs({ id }: AccountState): number | null {
    const count = this.#countOf(id);
    if (count < MAX_WAITING) return null;
    const batches = this.#byAccount.get(id);
    if (batches === undefined) return ELSEWHERE_MS;
    // They share the tokens equally.
    return Math.min(
      ...[...batches].map(({ aloneMs, latestMs }) => Math.min(latestMs(), aloneMs() * count)),
    );
  }

  /**
   * Adds a batch; the returned function removes it. Null = the account has as many as it may have.
   */
  enter({ id }: AccountState, batch: PacedBatch): (() => void) | null {
    if (this.#countOf(id) >= MAX_WAITING) return null;
    const batches = this.#byAccount.get(id) ?? new Set();
    this.#byAccount.set(id, batches.add(batch));
    this.#holdings.tell(id, batches.size);
    return () => {
      batches.delete(batch);
      if (batches.size === 0 && this.#byAccount.get(id) === batches) this.#byAccount.delete(id);
      this.#holdings.tell(id, this.#byAccount.get(id)?.size ?? null);
    };
  }

  /** Accounts with waiting batches. */
  get size(): number {
    return this.#byAccount.size;
  }

  #countOf(id: string): number {
    return (this.#byAccount.get(id)?.size ?? 0) + countElsewhere(this.#holdings, id);
  }
}
