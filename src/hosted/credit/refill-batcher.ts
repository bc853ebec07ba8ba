// Gathers the refills of many wallets into few transactions: one at a time, at most fifty a second.
// Decides when to refill; its parts say how.
import { type PendingRun, type Runtime, runWithin } from "../../runtime.ts";
import { RECALL_MS } from "./recall.ts";
import type { Wallet } from "./wallet.ts";

/** What a batcher needs. */
export interface RefillBatcherParts {
  readonly runtime: Runtime;
  /**
   * Refills these wallets from the store; throws when the store does not answer. Calls of a wallet
   * that is recalling afterwards go on waiting.
   */
  readonly run: (wallets: readonly Wallet[]) => Promise<void>;
  /** Called when the store failed. */
  readonly failed: (wallets: readonly Wallet[], error: unknown) => void;
  /** Called when a callback threw: a bug. */
  readonly onError: (error: unknown) => void;
}

/** Time between the starts of two rounds. */
export const ROUND_MS = 20;
/** The longest wait for a refill. */
export const WAIT_MS = 2_000;
/** Time to the next round after one that failed. */
const FAILED_MS = 250;
const MAX_PER_ROUND = 500;

/** Batches refills. */
export class RefillBatcher {
  readonly #parts: RefillBatcherParts;
  #queue: Wallet[] = [];
  #running: Promise<void> | null = null;
  #nextAtMs = 0;
  #startedAtMs = 0;
  /** A round took too long in vain, and none has been answered since. */
  #isSilent = false;
  #cancelTimer: (() => void) | null = null;
  #isClosed = false;

  constructor(parts: RefillBatcherParts) {
    this.#parts = parts;
  }

  /** Adds a wallet to the next round; repetitions change nothing. */
  request(wallet: Wallet): void {
    if (wallet.isRefilling || wallet.isRecalling || !wallet.isKept || this.#isClosed) return;
    wallet.isRefilling = true;
    this.#queue.push(wallet);
    this.#schedule();
  }

  /**
   * Calls back once after the next round that includes this wallet, or after the longest wait. A
   * store that is silent is waited for once: until it answers again, it calls back at once.
   */
  wait(wallet: Wallet, run: () => void): () => void {
    const waitMs = wallet.isKept && !this.#isClosed ? this.#longestWaitMs() : 0;
    const waiter = runWithin(this.#parts.runtime, waitMs, run);
    wallet.waiters ??= [];
    wallet.waiters.push(waiter);
    this.request(wallet);
    return waiter.cancel;
  }

  /** The store answers again, as a flush has shown: it is waited for as before. */
  heard(): void {
    this.#isSilent = false;
  }

  /**
   * Starts no further round and calls back every waiter. Resolves when the round in flight has
   * ended.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#running;
    const left = this.#queue;
    this.#queue = [];
    for (const wallet of left) this.#call(takeWaiters(wallet));
  }

  #longestWaitMs(): number {
    if (this.#isSilent) return 0;
    return this.#running === null ? WAIT_MS : Math.max(0, WAIT_MS - this.#roundMs());
  }

  /** How long the last round has taken so far. */
  #roundMs(): number {
    return this.#parts.runtime.now() - this.#startedAtMs;
  }

  #schedule(): void {
    if (
      this.#running !== null ||
      this.#cancelTimer !== null ||
      this.#queue.length === 0 ||
      this.#isClosed
    )
      return;
    const waitMs = this.#nextAtMs - this.#parts.runtime.now();
    if (waitMs <= 0) {
      this.#start();
      return;
    }
    this.#cancelTimer = this.#parts.runtime.after(waitMs, () => {
      this.#cancelTimer = null;
      this.#start();
    });
  }

  #start(): void {
    this.#running = this.#round().finally(() => {
      this.#running = null;
      this.#schedule();
    });
  }

  async #round(): Promise<void> {
    const { runtime } = this.#parts;
    this.#startedAtMs = runtime.now();
    this.#nextAtMs = this.#startedAtMs + ROUND_MS;
    // Requests until the end of this turn of the event loop join the round.
    await Promise.resolve();
    const taken = this.#queue.splice(0, MAX_PER_ROUND);
    const closing = taken.filter((wallet) => wallet.isClosing);
    const wallets = taken.filter((wallet) => !wallet.isClosing);
    this.#queue.push(...closing);
    if (wallets.length === 0) return;
    const waiters = new Map(wallets.map((wallet) => [wallet, takeWaiters(wallet)]));
    try {
      await this.#parts.run(wallets);
      this.#isSilent = false;
    } catch (error) {
      // One that fails at once says nothing new: the store has not answered.
      if (this.#roundMs() >= WAIT_MS) this.#isSilent = true;
      this.#nextAtMs = runtime.now() + FAILED_MS;
      this.#parts.failed(wallets, error);
    }
    for (const wallet of wallets) {
      wallet.isRefilling = false;
      if (wallet.isRecalling) this.#keepWaiting(wallet, waiters);
      // Calls that came during the round and found too little wait for the next one.
      if (wallet.waiters !== null) this.request(wallet);
    }
    for (const run of waiters.values()) this.#call(run);
  }

  /** What others have of its account comes back, or does not: until then its calls wait. */
  #keepWaiting(wallet: Wallet, waiters: Map<Wallet, readonly PendingRun[]>): void {
    wallet.waiters = [...(waiters.get(wallet) ?? []), ...(wallet.waiters ?? [])];
    waiters.delete(wallet);
    this.#parts.runtime.after(RECALL_MS, () => {
      if (!wallet.isRecalling) return;
      wallet.isRecalling = false;
      this.request(wallet);
    });
  }

  #call(waiters: readonly PendingRun[]): void {
    for (const { run } of waiters) {
      try {
        run();
      } catch (error) {
        this.#parts.onError(error);
      }
    }
  }
}

function takeWaiters(wallet: Wallet): readonly PendingRun[] {
  const waiters = wallet.waiters ?? [];
  wallet.waiters = null;
  return waiters;
}
