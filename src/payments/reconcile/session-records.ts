// The transfers that channels have recorded at one receiving address, by our transaction that took
// them out. Reads only; implements the same interface as the records of purchases.
import { sql } from "kysely";
import { chunks } from "../../ledger/ledger.ts";
import { pagesOf, ROWS_PER_PAGE } from "../../store/scan.ts";
import type { Store } from "../../store/store.ts";
import type { Records } from "./reconcile.ts";

/** Selects the channels of one recipient on one chain. */
export interface ChannelsAt {
  readonly store: Store;
  readonly chainId: number;
  /** Distinguishes the chain from another one with the same number. */
  readonly network: string;
  readonly token: string;
  readonly recipient: string;
}

interface MovedUnits {
  readonly tx_hash: string;
  readonly channel_id: string;
  readonly moved_units: bigint;
}

/** Settlements of channels as records of a receiving address. */
export function sessionRecords(at: ChannelsAt): Records {
  const { db } = at.store;
  const isHere = sql<boolean>`chain_id = ${BigInt(at.chainId)} and network = ${at.network}
    and descriptor like ${`%"payee":"${at.recipient.toLowerCase()}"%`} and descriptor like ${`%"token":"${at.token.toLowerCase()}"%`}`;
  const transactions = sql`session_transaction join session_channel on session_channel.id = channel_id`;
  return {
    async recorded(txHashes) {
      const found = new Map<string, bigint>();
      for (const some of chunks(txHashes)) {
        const { rows } =
          await sql<MovedUnits>`select tx_hash, channel_id, moved_units from ${transactions}
          where tx_hash in (${sql.join(some)}) and moved_units > 0 and ${isHere}`.execute(db);
        for (const { tx_hash, moved_units } of rows) found.set(tx_hash, moved_units);
      }
      return found;
    },
    async total() {
      const { rows } = await sql<{
        readonly units: bigint | null;
      }>`select cast(sum(moved_units) as bigint) as units from ${transactions} where ${isHere}`.execute(
        db,
      );
      return rows[0]?.units ?? 0n;
    },
    async *pages() {
      const next = (
        last: MovedUnits | null,
      ) => sql<MovedUnits>`select tx_hash, channel_id, moved_units from ${transactions}
        where moved_units > 0 and ${isHere} and tx_hash > ${last?.tx_hash ?? ""} order by tx_hash limit ${ROWS_PER_PAGE}`;
      for await (const rows of pagesOf(db, next))
        yield rows.map((row) => ({
          txHash: row.tx_hash,
          units: row.moved_units,
          ids: [row.channel_id],
        }));
    },
    async isUnderWay({ txHash }) {
      const { rows } =
        await sql`select tx_hash from ${transactions} where tx_hash = ${txHash} and state = 'written' and ${isHere} limit 1`.execute(
          db,
        );
      return rows.length > 0;
    },
  };
}
