// Group commit: changes that are asked for at the same time share one transaction of the store.
// Knows no table.
import type { Transaction } from "kysely";
import type { Store } from "./store.ts";
import type { Tables } from "./tables.ts";

const MAX_AT_ONCE = 64;

interface QueuedChange {
  /** The row that it locks. */
  readonly lock: string;
  /** Runs the change, and keeps its result. */
  readonly run: (tx: Transaction<Tables>) => Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Writes changes, those under one lock in the order in which they were asked for. */
export class GroupCommit {
  readonly #store: Pick<Store, "transaction">;
  readonly #queue: QueuedChange[] = [];
  #isWriting = false;

  constructor(store: Pick<Store, "transaction">) {
    this.#store = store;
  }

  /**
   * Runs a change under one lock. Rejects if the store fails, or if a change in the same
   * transaction throws: then nothing was written. The store may run it again.
   */
  run<T>(lock: string, change: (tx: Transaction<Tables>) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let result: { readonly value: T } | null = null;
      this.#queue.push({
        lock,
        run: async (tx) => {
          result = { value: await change(tx) };
        },
        resolve: () => {
          if (result === null) reject(new Error(`no change under ${lock} was run`));
          else resolve(result.value);
        },
        reject,
      });
      if (!this.#isWriting) void this.#writeAll();
    });
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    while (this.#queue.length > 0) {
      // All changes that are asked for by now share one commit.
      await new Promise(setImmediate);
      const group = inOrder(this.#queue.splice(0, MAX_AT_ONCE));
      try {
        await this.#store.transaction(async (tx) => {
          for (const { run } of group) await run(tx);
        });
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#isWriting = false;
  }
}

/** In the order in which every process locks rows, so that no two wait for each other. */
function inOrder(list: readonly QueuedChange[]): readonly QueuedChange[] {
  return list.toSorted(({ lock: a }, { lock: b }) => {
    if (a === b) return 0;
    return a < b ? -1 : 1;
  });
}
