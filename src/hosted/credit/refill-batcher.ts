// Asks of many wallets gathered into few transactions: one at a time, no more than fifty a second.
// Knows when to ask; what an answer means to a wallet it is told.
import type { Runtime } from "../../runtime.ts";
import type { OpenWallet, Waiter } from "./wallet.ts";

/** Gathers asks. */
export interface RefillBatcher {
  /** Puts a wallet into the next round; once is enough. */
  request(wallet: OpenWallet): void;
  /**
   * Calls back once after the next round that has this wallet in it, or when the wait has lasted
   * too long.
   */
  wait(wallet: OpenWallet, run: () => void): () => void;
  /**
   * Ends: nobody is asked any more, and whoever waits is called. Resolves when a round under way is
   * over.
   */
  close(): Promise<void>;
}

/** What the rounds are made of. */
export interface RefillBatcherParts {
  readonly runtime: Runtime;
  /**
   * Asks the store for these wallets and changes them by its answer; throws when there was none.
   */
  readonly run: (wallets: readonly OpenWallet[]) => Promise<void>;
  /** There was no answer. */
  readonly failed: (wallets: readonly OpenWallet[], error: unknown) => void;
  /** A bug in someone who waited. */
  readonly onError: (error: unknown) => void;
}

/** Time between the starts of two rounds. */
export const ROUND_MS = 20;
/** The longest that somebody waits. */
export const WAIT_MS = 2_000;
/** Time to the next round after one that failed. */
const FAILED_MS = 250;
const MAX_PER_ROUND = 500;

/** Rounds over a store. */
export function createRefillBatcher(parts: RefillBatcherParts): RefillBatcher {
  return new RoundRefillBatcher(parts);
}

class RoundRefillBatcher implements RefillBatcher {
  readonly #parts: RefillBatcherParts;
  #queue: OpenWallet[] = [];
  #running: Promise<void> | null = null;
  #nextAtMs = 0;
  #cancelTimer: (() => void) | null = null;
  #isClosed = false;

  constructor(parts: RefillBatcherParts) {
    this.#parts = parts;
  }

  request(wallet: OpenWallet): void {
    if (wallet.isRefilling || !wallet.isKept || this.#isClosed) return;
    wallet.isRefilling = true;
    this.#queue.push(wallet);
    this.#schedule();
  }

  wait(wallet: OpenWallet, run: () => void): () => void {
    const { runtime } = this.#parts;
    let isDone = false;
    const once = (): void => {
      if (isDone) return;
      isDone = true;
      cancelTimer();
      run();
    };
    const cancelTimer = runtime.after(wallet.isKept && !this.#isClosed ? WAIT_MS : 0, once);
    wallet.waiters ??= [];
    wallet.waiters.push({ run: once });
    this.request(wallet);
    return () => {
      isDone = true;
      cancelTimer();
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#running;
    const left = this.#queue;
    this.#queue = [];
    for (const wallet of left) this.#call(takeWaiters(wallet));
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
    this.#nextAtMs = runtime.now() + ROUND_MS;
    // Whoever asks until this turn of the event loop is over comes along.
    await Promise.resolve();
    const taken = this.#queue.splice(0, MAX_PER_ROUND);
    const closing = taken.filter((wallet) => wallet.isClosing);
    const wallets = taken.filter((wallet) => !wallet.isClosing);
    this.#queue.push(...closing);
    if (wallets.length === 0) return;
    const waiters = wallets.flatMap(takeWaiters);
    try {
      await this.#parts.run(wallets);
    } catch (error) {
      this.#nextAtMs = runtime.now() + FAILED_MS;
      this.#parts.failed(wallets, error);
    }
    for (const wallet of wallets) {
      wallet.isRefilling = false;
      // Calls that came during the round and found too little wait for the next one.
      if (wallet.waiters !== null) this.request(wallet);
    }
    this.#call(waiters);
  }

  #call(waiters: readonly Waiter[]): void {
    for (const { run } of waiters) {
      try {
        run();
      } catch (error) {
        this.#parts.onError(error);
      }
    }
  }
}

function takeWaiters(wallet: OpenWallet): readonly Waiter[] {
  const waiters = wallet.waiters ?? [];
  wallet.waiters = null;
  return waiters;
}
