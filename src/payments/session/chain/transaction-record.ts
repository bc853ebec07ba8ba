// Transactions of channels in the store: each is recorded before it is sent. Knows no chain, and
// not what follows when one is done.

import { sql } from "kysely";
import type { Sealer } from "../../../secrets/sealer.ts";
import type { Tx } from "../../../shared/ledger/ledger.ts";
import type { SealedColumn } from "../../../shared/nodes/resealing.ts";
import type { Store } from "../../../shared/store/store.ts";
import type { SessionTransactionTable } from "../../../shared/store/tables-payments.ts";
import { wholeMs } from "../channel.ts";
import { type Hex, parseHex } from "../descriptor.ts";

/** A recorded, signed transaction, with its bytes opened. */
export type WrittenTransaction = Omit<
  SessionTransactionTable,
  "raw" | "moved_units" | "created_at" | "ended_at"
> & { readonly raw: Hex };

/** Signed bytes, and what they move. */
export interface SignedBytes {
  readonly hash: Hex;
  readonly raw: Hex;
  /** The amount added to the deposit, or the total that is settled. */
  readonly units: bigint;
  readonly validUntilMs: number;
}

/** A signed transaction of a channel that is not recorded yet. */
export function writtenOf(
  channelId: Hex,
  kind: WrittenTransaction["kind"],
  { hash, raw, units, validUntilMs }: SignedBytes,
): WrittenTransaction {
  return {
    tx_hash: hash,
    channel_id: channelId,
    kind,
    raw,
    units,
    valid_until: wholeMs(validUntilMs),
    state: "written",
    reason: null,
  };
}

/** How a transaction ended. */
export type TransactionEnd =
  | { readonly state: "done"; readonly moved_units: bigint }
  | { readonly state: "failed"; readonly reason: string };

/**
 * More than a channel has open at one time: additions to its deposit, and one transaction of ours.
 */
export const MAX_OPEN_TRANSACTIONS = 8;

/** Transactions in a store. */
export class TransactionRecord {
  readonly #sealer: Sealer;

  /** `sealer` seals their bytes. */
  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** False = it is recorded already. */
  async insert(tx: Tx, transaction: WrittenTransaction, atMs: number): Promise<boolean> {
    const inserted = await tx
      .insertInto("session_transaction")
      .values({
        ...transaction,
        raw: this.#sealer.seal(transaction.raw, contextOf(transaction.tx_hash)),
        moved_units: 0n,
        created_at: wholeMs(atMs),
        ended_at: null,
      })
      .onConflict((conflict) => conflict.doNothing())
      .returning("tx_hash")
      .execute();
    return inserted.length > 0;
  }

  /** Null = there is none. */
  async read(db: Reader, hash: Hex): Promise<WrittenTransaction | null> {
    const query = db.selectFrom("session_transaction").selectAll().where("tx_hash", "=", hash);
    return this.#one(await query.executeTakeFirst());
  }

  /** Those of a channel that have not ended, the oldest first. */
  async open(db: Reader, channelId: Hex): Promise<readonly WrittenTransaction[]> {
    return this.#many(await openRows(db).where("channel_id", "=", channelId).execute());
  }

  /** Some open transactions whose channels have ended. */
  async leftOver(db: Reader, chainId: number): Promise<readonly WrittenTransaction[]> {
    const rows = openRows(db)
      .innerJoin("session_channel", "session_channel.id", "session_transaction.channel_id")
      .where("session_channel.ended_at", "is not", null)
      .where("session_channel.chain_id", "=", BigInt(chainId));
    return this.#many(await rows.execute());
  }

  /** The newest of a kind; null = there is none. */
  async last(
    db: Reader,
    channelId: Hex,
    kind: WrittenTransaction["kind"],
  ): Promise<WrittenTransaction | null> {
    const ofKind = db
      .selectFrom("session_transaction")
      .selectAll()
      .where("channel_id", "=", channelId)
      .where("kind", "=", kind);
    return this.#one(await ofKind.orderBy("created_at", "desc").limit(1).executeTakeFirst());
  }

  /** False = it had ended already, and nothing changes. */
  async end(tx: Tx, hash: Hex, end: TransactionEnd, atMs: number): Promise<boolean> {
    const { numUpdatedRows } = await tx
      .updateTable("session_transaction")
      .set({ ...end, ended_at: wholeMs(atMs) })
      .where("tx_hash", "=", hash)
      .where("ended_at", "is", null)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  #one(row: SessionTransactionTable | undefined): WrittenTransaction | null {
    return row === undefined ? null : parseTransaction(row, this.#sealer);
  }

  #many(rows: readonly SessionTransactionTable[]): readonly WrittenTransaction[] {
    return rows.map((row) => parseTransaction(row, this.#sealer));
  }
}

type Reader = Pick<Store["db"], "selectFrom">;

/** Transactions that have not ended, the oldest first; some of them. */
function openRows(db: Reader) {
  return db
    .selectFrom("session_transaction")
    .selectAll("session_transaction")
    .where("session_transaction.ended_at", "is", null)
    .orderBy("session_transaction.created_at")
    .limit(MAX_OPEN_TRANSACTIONS);
}

function contextOf(hash = ""): string {
  return `session transaction ${hash}`;
}

/** The sealed bytes of transactions; needed are those that may be sent again. */
export const SEALED_TRANSACTIONS: SealedColumn = {
  table: "session_transaction",
  column: "raw",
  key: ["tx_hash"],
  contextOf,
  needed: sql`ended_at is null and channel_id in
    (select id from session_channel where ended_at is null)`,
};

function parseTransaction(row: SessionTransactionTable, sealer: Sealer): WrittenTransaction {
  const raw = sealer.open(row.raw, contextOf(row.tx_hash));
  if (raw === null)
    throw new Error(
      `transaction ${row.tx_hash} cannot be read: it was sealed with another secret. Start svc ` +
        "with the secret that it was written with",
    );
  return { ...row, raw: parseHex(raw) };
}
