// All records of one receiving address: purchases, and settlements of channels, since both may
// receive at one address. Reads only.
import { type RawBuilder, sql } from "kysely";
import { chunks } from "../../shared/ledger/ledger.ts";
import { pagesOf, ROWS_PER_PAGE } from "../../shared/store/scan.ts";
import type { Store } from "../../shared/store/store.ts";
import type { IncomingTransfer, Records } from "./reconcile.ts";

/** Selects the records of a receiving address in the store. */
export interface RecordsAt {
  readonly store: Store;
  readonly chainId: number;
  /** Distinguishes the chain from another one with the same number. */
  readonly network: string;
  readonly token: string;
  readonly recipient: string;
}

/** Rows that record transfers, as SQL. */
interface RecordRows {
  readonly table: RawBuilder<unknown>;
  /** The transaction in lower case, its base units, and who was paid for by it. */
  readonly hash: RawBuilder<string>;
  readonly units: RawBuilder<bigint>;
  readonly id: RawBuilder<string>;
  /** What identifies a row. */
  readonly position: RawBuilder<string>;
  /** Whether the money of a row has arrived at the address. */
  readonly isPaid: RawBuilder<boolean>;
  /** Whether a row may explain a transfer that is not recorded yet. */
  readonly mayExplain: (transfer: IncomingTransfer) => RawBuilder<boolean>;
}

/** All records of a receiving address. A transaction may be in more than one of the tables. */
export function recordsAt(at: RecordsAt): Records {
  const all = [recordsIn(at.store, purchases(at)), recordsIn(at.store, channels(at))];
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

/** Settled purchases by the transaction that paid; open ones may be paid by a transfer. */
function purchases(at: RecordsAt): RecordRows {
  const isHere = sql<boolean>`chain_id = ${BigInt(at.chainId)} and network = ${at.network}
    and lower(token) = ${at.token.toLowerCase()} and lower(recipient) = ${at.recipient.toLowerCase()}`;
  return {
    table: sql`purchase`,
    hash: sql`lower(tx_hash)`,
    units: sql`units`,
    id: sql`id`,
    position: sql`id`,
    isPaid: sql`state = 'settled' and ${isHere}`,
    mayExplain: ({ txHash, units, from }) =>
      sql`state in ('accepted', 'submitted') and ${isHere} and (lower(tx_hash) = ${txHash}
        or (lower(payer) = ${from} and units = ${units}))`,
  };
}

/** Settlements of channels, by the transaction of ours that took them out. */
function channels(at: RecordsAt): RecordRows {
  const isHere = sql<boolean>`chain_id = ${BigInt(at.chainId)} and network = ${at.network}
    and descriptor like ${`%"payee":"${at.recipient.toLowerCase()}"%`}
    and descriptor like ${`%"token":"${at.token.toLowerCase()}"%`}`;
  return {
    table: sql`session_transaction join session_channel on session_channel.id = channel_id`,
    hash: sql`tx_hash`,
    units: sql`moved_units`,
    id: sql`channel_id`,
    position: sql`tx_hash`,
    isPaid: sql`moved_units > 0 and ${isHere}`,
    mayExplain: ({ txHash }) =>
      sql`tx_hash = ${txHash} and session_transaction.state = 'written' and ${isHere}`,
  };
}

interface PaidRow {
  readonly position: string;
  readonly hash: string;
  readonly units: bigint;
  readonly id: string;
}

function recordsIn({ db }: Store, rows: RecordRows): Records {
  const { table, hash, units, id, position, isPaid } = rows;
  return {
    async recorded(txHashes) {
      const found = new Map<string, bigint>();
      for (const some of chunks(txHashes)) {
        const sums = await sql<Pick<PaidRow, "hash" | "units">>`
          select ${hash} as hash, cast(sum(${units}) as bigint) as units from ${table}
          where ${hash} in (${sql.join(some)}) and ${isPaid} group by ${hash}`.execute(db);
        for (const sum of sums.rows) found.set(sum.hash, sum.units);
      }
      return found;
    },
    async total() {
      const sum = await sql<{ readonly units: bigint | null }>`
        select cast(sum(${units}) as bigint) as units from ${table} where ${isPaid}`.execute(db);
      return sum.rows[0]?.units ?? 0n;
    },
    async *pages() {
      const next = (last: PaidRow | null) => sql<PaidRow>`
        select ${position} as position, ${hash} as hash, ${units} as units, ${id} as id
        from ${table} where ${isPaid} and ${position} > ${last?.position ?? ""}
        order by ${position} limit ${ROWS_PER_PAGE}`;
      for await (const page of pagesOf(db, next)) yield mergedOf(page);
    },
    async isUnderWay(transfer) {
      const found = await sql`
        select ${id} from ${table} where ${rows.mayExplain(transfer)} limit 1`.execute(db);
      return found.rows.length > 0;
    },
  };
}

/** One transaction may have paid several purchases. */
function mergedOf(rows: readonly PaidRow[]) {
  return [...Map.groupBy(rows, (row) => row.hash)].map(([txHash, its]) => ({
    txHash,
    units: its.reduce((sum, row) => sum + row.units, 0n),
    ids: its.map((row) => row.id),
  }));
}
