// The transfers that purchases have recorded at one receiving address: settled purchases by the
// transaction that paid, open ones as under way. Reads only.
import { sql } from "kysely";
import { chunks } from "../../ledger/ledger.ts";
import { pagesOf, ROWS_PER_PAGE } from "../../store/scan.ts";
import type { Store } from "../../store/store.ts";
import type { Records } from "./reconcile.ts";

/** Selects the purchases of one token and recipient on one chain. */
export interface PurchasesAt {
  readonly store: Store;
  readonly chainId: number;
  /** Distinguishes the chain from another one with the same number. */
  readonly network: string;
  readonly token: string;
  readonly recipient: string;
}

interface Paid {
  readonly txHash: string;
  readonly units: bigint;
  readonly ids: readonly string[];
}

/** Purchases as records of a receiving address. */
export function purchaseRecords(at: PurchasesAt): Records {
  const { store } = at;
  const isHere = sql<boolean>`chain_id = ${BigInt(at.chainId)} and network = ${at.network}
    and lower(token) = ${at.token.toLowerCase()} and lower(recipient) = ${at.recipient.toLowerCase()}`;
  return {
    async recorded(txHashes) {
      const found = new Map<string, bigint>();
      for (const some of chunks(txHashes)) {
        const { rows } = await sql<{ readonly tx_hash: string; readonly units: bigint }>`
          select lower(tx_hash) as tx_hash, cast(sum(units) as bigint) as units from purchase
          where lower(tx_hash) in (${sql.join(some)}) and state = 'settled' and ${isHere} group by lower(tx_hash)`.execute(
          store.db,
        );
        for (const { tx_hash, units } of rows) found.set(tx_hash, units);
      }
      return found;
    },
    async total() {
      const { rows } = await sql<{ readonly units: bigint | null }>`
        select cast(sum(units) as bigint) as units from purchase where state = 'settled' and ${isHere}`.execute(
        store.db,
      );
      return rows[0]?.units ?? 0n;
    },
    async *pages() {
      const next = (last: { readonly id: string } | null) => sql<{
        readonly id: string;
        readonly tx_hash: string | null;
        readonly units: bigint;
      }>`
        select id, tx_hash, units from purchase where state = 'settled' and ${isHere} and id > ${last?.id ?? ""} order by id limit ${ROWS_PER_PAGE}`;
      for await (const rows of pagesOf(store.db, next)) yield mergedOf(rows);
    },
    async isUnderWay({ txHash, units, from }) {
      const open = sql<boolean>`state in ('accepted', 'submitted') and ${isHere}`;
      const { rows } = await sql<{ readonly id: string }>`select id from purchase
        where ${open} and (lower(tx_hash) = ${txHash} or (lower(payer) = ${from} and units = ${units})) limit 1`.execute(
        store.db,
      );
      return rows.length > 0;
    },
  };
}

/** One transaction may have paid several purchases. */
function mergedOf(
  rows: readonly { readonly id: string; readonly tx_hash: string | null; readonly units: bigint }[],
): readonly Paid[] {
  const byTx = Map.groupBy(rows, (row) => row.tx_hash?.toLowerCase() ?? "");
  return [...byTx].map(([txHash, its]) => ({
    txHash,
    units: its.reduce((sum, row) => sum + row.units, 0n),
    ids: its.map((row) => row.id),
  }));
}
