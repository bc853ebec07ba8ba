// Transactions of channels in the store: each is recorded before it is sent. Knows no chain, and
// not what follows when one is done.
import type { Tx } from "../../ledger/ledger.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import type { Store } from "../../store/store.ts";
import type { SessionTransactionTable } from "../../store/tables-sessions.ts";
import { type Hex, parseHex } from "./descriptor.ts";

/** A recorded, signed transaction. */
export interface WrittenTransaction {
  readonly hash: Hex;
  readonly channelId: Hex;
  readonly kind: SessionTransactionTable["kind"];
  /** Signed bytes. */
  readonly raw: Hex;
  /** What it adds to the deposit, or what it settles in total. */
  readonly units: bigint;
  readonly validUntilMs: number;
  readonly state: SessionTransactionTable["state"];
  readonly reason: string | null;
}

/** How a transaction ended. */
export type TransactionEnd =
  /** `movedUnits` = what it paid to us. */
  | { readonly kind: "done"; readonly movedUnits: bigint }
  | { readonly kind: "failed"; readonly reason: string };

/** Reads and writes transactions. */
export interface TransactionRecord {
  /** False = it is recorded already. */
  insert(tx: Tx, transaction: WrittenTransaction, atMs: number): Promise<boolean>;
  /** Null = there is none. */
  read(db: Pick<Store["db"], "selectFrom">, hash: Hex): Promise<WrittenTransaction | null>;
  /** Those of a channel that have not ended, the oldest first. */
  open(db: Pick<Store["db"], "selectFrom">, channelId: Hex): Promise<readonly WrittenTransaction[]>;
  /** Some open transactions whose channels have ended. */
  leftOver(
    db: Pick<Store["db"], "selectFrom">,
    chainId: number,
  ): Promise<readonly WrittenTransaction[]>;
  /** The newest of a kind; null = there is none. */
  last(
    db: Pick<Store["db"], "selectFrom">,
    channelId: Hex,
    kind: WrittenTransaction["kind"],
  ): Promise<WrittenTransaction | null>;
  /** False = it had ended already, and nothing changes. */
  end(tx: Tx, hash: Hex, end: TransactionEnd, atMs: number): Promise<boolean>;
  /** Seals the open transactions of a channel with the present secret. */
  reseal(tx: Tx, channelId: Hex): Promise<void>;
}

/**
 * More than a channel has open at one time: additions to its deposit, and one transaction of ours.
 */
export const MAX_OPEN_TRANSACTIONS = 8;

/** Transactions in a store; `sealer` seals their bytes. */
export function createTransactionRecord(sealer: Sealer): TransactionRecord {
  const one = (row: SessionTransactionTable | undefined): WrittenTransaction | null =>
    row === undefined ? null : parseTransaction(row, sealer);
  const many = (rows: readonly SessionTransactionTable[]): readonly WrittenTransaction[] =>
    rows.map((row) => parseTransaction(row, sealer));
  return {
    async insert(tx, transaction, atMs) {
      const inserted = await tx
        .insertInto("session_transaction")
        .values(rowOf(transaction, sealer, atMs))
        .onConflict((conflict) => conflict.doNothing())
        .returning("tx_hash")
        .execute();
      return inserted.length > 0;
    },
    read: async (db, hash) =>
      one(
        await db
          .selectFrom("session_transaction")
          .selectAll()
          .where("tx_hash", "=", hash)
          .executeTakeFirst(),
      ),
    open: async (db, channelId) => many(await openRows(db, channelId)),
    leftOver: async (db, chainId) => many(await leftOverRows(db, chainId)),
    async last(db, channelId, kind) {
      const ofKind = db
        .selectFrom("session_transaction")
        .selectAll()
        .where("channel_id", "=", channelId)
        .where("kind", "=", kind);
      return one(await ofKind.orderBy("created_at", "desc").limit(1).executeTakeFirst());
    },
    async end(tx, hash, end, atMs) {
      const { numUpdatedRows } = await tx
        .updateTable("session_transaction")
        .set({ state: end.kind, ...endOf(end), ended_at: BigInt(Math.floor(atMs)) })
        .where("tx_hash", "=", hash)
        .where("ended_at", "is", null)
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    },
    async reseal(tx, channelId) {
      for (const { hash, raw } of many(await openRows(tx, channelId))) {
        const sealed = sealer.seal(raw, contextOf(hash));
        await tx
          .updateTable("session_transaction")
          .set({ raw: sealed })
          .where("tx_hash", "=", hash)
          .execute();
      }
    },
  };
}

type Reader = Pick<Store["db"], "selectFrom">;

function openRows(db: Reader, channelId: Hex): Promise<readonly SessionTransactionTable[]> {
  return db
    .selectFrom("session_transaction")
    .selectAll()
    .where("channel_id", "=", channelId)
    .where("ended_at", "is", null)
    .orderBy("created_at")
    .limit(MAX_OPEN_TRANSACTIONS)
    .execute();
}

function leftOverRows(db: Reader, chainId: number): Promise<readonly SessionTransactionTable[]> {
  return db
    .selectFrom("session_transaction")
    .innerJoin("session_channel", "session_channel.id", "session_transaction.channel_id")
    .selectAll("session_transaction")
    .where("session_transaction.ended_at", "is", null)
    .where("session_channel.ended_at", "is not", null)
    .where("session_channel.chain_id", "=", BigInt(chainId))
    .orderBy("session_transaction.created_at")
    .limit(MAX_OPEN_TRANSACTIONS)
    .execute();
}

function rowOf(
  transaction: WrittenTransaction,
  sealer: Sealer,
  atMs: number,
): SessionTransactionTable {
  return {
    tx_hash: transaction.hash,
    channel_id: transaction.channelId,
    kind: transaction.kind,
    raw: sealer.seal(transaction.raw, contextOf(transaction.hash)),
    units: transaction.units,
    moved_units: 0n,
    valid_until: BigInt(Math.floor(transaction.validUntilMs)),
    state: transaction.state,
    reason: transaction.reason,
    created_at: BigInt(Math.floor(atMs)),
    ended_at: null,
  };
}

function endOf(end: TransactionEnd): Pick<SessionTransactionTable, "reason" | "moved_units"> {
  return end.kind === "failed"
    ? { reason: end.reason, moved_units: 0n }
    : { reason: null, moved_units: end.movedUnits };
}

function contextOf(hash: string): string {
  return `session transaction ${hash}`;
}

function parseTransaction(row: SessionTransactionTable, sealer: Sealer): WrittenTransaction {
  const raw = sealer.open(row.raw, contextOf(row.tx_hash));
  if (raw === null)
    throw new Error(
      `transaction ${row.tx_hash} cannot be read: it was sealed with another secret. Start svc ` +
        "with the secret that it was written with",
    );
  return {
    hash: parseHex(row.tx_hash),
    channelId: parseHex(row.channel_id),
    kind: row.kind,
    raw: parseHex(raw),
    units: row.units,
    validUntilMs: Number(row.valid_until),
    state: row.state,
    reason: row.reason,
  };
}
