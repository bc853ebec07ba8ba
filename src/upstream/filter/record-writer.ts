// Writes the records of filters that this process keeps: one statement at a time, with everything
// that came up while the last one ran. Knows no filter.
import type { FilterRecords, FilterUpdate } from "../../core/stream/filter-record.ts";

/** `kept`: written; `lost`: another process keeps the filter, or it is gone. */
export type Written = "kept" | "lost" | "failed";

interface OpenWrite {
  update: FilterUpdate;
  readonly waiters: ((written: Written) => void)[];
}

/** Most records of one statement. */
const MAX_AT_ONCE = 500;

/** Writes records. */
export class RecordWriter {
  readonly #records: Pick<FilterRecords, "write">;
  readonly #onError: (error: unknown) => void;
  readonly #open = new Map<string, OpenWrite>();
  #isWriting = false;

  /** `onError` hears of statements that failed. */
  constructor(records: Pick<FilterRecords, "write">, onError: (error: unknown) => void) {
    this.#records = records;
    this.#onError = onError;
  }

  /** Always resolves. */
  write(update: FilterUpdate): Promise<Written> {
    return new Promise((resolve) => {
      const before = this.#open.get(update.id);
      if (before === undefined) this.#open.set(update.id, { update, waiters: [resolve] });
      else {
        before.update = { ...update, mark: update.mark ?? before.update.mark };
        before.waiters.push(resolve);
      }
      void this.#writeOpen();
    });
  }

  async #writeOpen(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    while (this.#open.size > 0) {
      const batch = [...this.#open.values()].slice(0, MAX_AT_ONCE);
      for (const { update } of batch) this.#open.delete(update.id);
      // In one order, so that no two processes wait for each other.
      const updates = batch.map(({ update }) => update).sort((a, b) => (a.id < b.id ? -1 : 1));
      const kept = await this.#records.write(updates).catch((error: unknown) => {
        this.#onError(error);
        return null;
      });
      for (const { update, waiters } of batch) {
        const outcome = kept?.has(update.id) === true ? "kept" : "lost";
        for (const waiter of waiters) waiter(kept === null ? "failed" : outcome);
      }
    }
    this.#isWriting = false;
  }
}
