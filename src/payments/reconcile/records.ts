// All records of one receiving address: purchases, and settlements of channels, since both may
// receive at one address. Reads only.
import type { Store } from "../../store/store.ts";
import { purchaseRecords } from "./purchase-records.ts";
import type { Records } from "./reconcile.ts";
import { sessionRecords } from "./session-records.ts";

/** Selects the records of a receiving address in the store. */
export interface RecordsAt {
  readonly store: Store;
  readonly chainId: number;
  /** Distinguishes the chain from another one with the same number. */
  readonly network: string;
  readonly token: string;
  readonly recipient: string;
}

/** All records of a receiving address. */
export function recordsAt(at: RecordsAt): Records {
  return together([purchaseRecords(at), sessionRecords(at)]);
}

/** Several records as one. A transaction may appear in more than one of them. */
function together(all: readonly Records[]): Records {
  return {
    async recorded(txHashes) {
      const sum = new Map<string, bigint>();
      for (const records of all) {
        for (const [txHash, units] of await records.recorded(txHashes))
          sum.set(txHash, (sum.get(txHash) ?? 0n) + units);
      }
      return sum;
    },
    async total() {
      let sum = 0n;
      for (const records of all) sum += await records.total();
      return sum;
    },
    async *pages() {
      for (const records of all) yield* records.pages();
    },
    async isUnderWay(transfer) {
      for (const records of all) if (await records.isUnderWay(transfer)) return true;
      return false;
    },
  };
}
