// Writes the records of filters that this process keeps: one statement at a time, with everything
// that came up while the last one ran. Knows no filter.
import type { FilterRecords, FilterUpdate } from "../../core/stream/filter-record.ts";

/** `kept`: written; `lost`: another process keeps the filter, or it is gone. */
export type Written = "kept" | "lost" | "failed";

/** Writes records. */
export interface RecordWriter {
  /** Always resolves. */
  write(update: FilterUpdate): Promise<Written>;
}

interface OpenWrite {
  update: FilterUpdate;
  readonly waiters: ((written: Written) => void)[];
}

/** Most records of one statement. */
const MAX_AT_ONCE = 500;

/** Creates a writer. `onError` hears of statements that failed. */
export function createRecordWriter(
  records: Pick<FilterRecords, "write">,
  onError: (error: unknown) => void,
): RecordWriter {
  const open = new Map<string, OpenWrite>();
  let isWriting = false;

  async function writeOpen(): Promise<void> {
    if (isWriting) return;
    isWriting = true;
    while (open.size > 0) {
      const batch = [...open.values()].slice(0, MAX_AT_ONCE);
      for (const { update } of batch) open.delete(update.id);
      // In one order, so that no two processes wait for each other.
      const updates = batch.map(({ update }) => update).sort((a, b) => (a.id < b.id ? -1 : 1));
      const kept = await records.write(updates).catch((error: unknown) => {
        onError(error);
        return null;
      });
      for (const { update, waiters } of batch) {
        const outcome = kept?.has(update.id) === true ? "kept" : "lost";
        for (const waiter of waiters) waiter(kept === null ? "failed" : outcome);
      }
    }
    isWriting = false;
  }

  return {
    write: (update) =>
      new Promise((resolve) => {
        const before = open.get(update.id);
        if (before === undefined) open.set(update.id, { update, waiters: [resolve] });
        else {
          before.update = { ...update, mark: update.mark ?? before.update.mark };
          before.waiters.push(resolve);
        }
        void writeOpen();
      }),
  };
}
