// Transactions of channels in the store: each is recorded before it is sent. Knows no chain, and
// not what follows when one is done.

import type { Sealer } from "../../../secrets/sealer.ts";
import type { Tx } from "../../../shared/ledger/ledger.ts";
import type { Store } from "../../../shared/store/store.ts";
import type { SessionTransactionTable } from "../../../shared/store/tables-payments.ts";
import { type Hex, parseHex } from "../descriptor.ts";

/** A recorded, signed transaction. */
export interface WrittenTransaction {
  readonly hash: Hex;
  readonly channelId: Hex;
  readonly kind: SessionTransactionTable["kind"];
  /** Signed bytes. */
  readonly raw: Hex;
  /** The amount added to the deposit, or the total that is settled. */
  readonly units: bigint;
  readonly validUntilMs: number;
  readonly state: SessionTransactionTable["state"];
  readonly reason: string | null;
}

/** A signed transaction of a channel that is not recorded yet. */
export function writtenOf(
  channelId: Hex,
  kind: WrittenTransaction["kind"],
  {
    hash,
    raw,
    units,
    validUntilMs,
  }: Pick<WrittenTransaction, "hash" | "raw" | "units" | "validUntilMs">,
): WrittenTransaction {
  return { hash, channelId, kind, raw, units, validUntilMs, state: "written", reason: null };
}

/** How a transaction ended. */
export type TransactionEnd =
  /** `movedUnits` = what it paid to us. */
  | { readonly kind: "done"; readonly movedUnits: bigint }
  | { readonly kind: "failed"; readonly reason: string };

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
      .values(rowOf(transaction, this.#sealer, atMs))
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
    return this.#many(await openRows(db, channelId));
  }

  /** Some open transactions whose channels have ended. */
  async leftOver(db: Reader, chainId: number): Promise<readonly WrittenTransaction[]> {
    return this.#many(await leftOverRows(db, chainId));
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
      .set({ state: end.kind, ...endOf(end), ended_at: BigInt(Math.floor(atMs)) })
      .where("tx_hash", "=", hash)
      .where("ended_at", "is", null)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  /** Seals the open transactions of a channel with the present secret. */
  async reseal(tx: Tx, channelId: Hex): Promise<void> {
    for (const { hash, raw } of await this.open(tx, channelId)) {
      const sealed = this.#sealer.seal(raw, contextOf(hash));
      await tx
        .updateTable("session_transaction")
        .set({ raw: sealed })
        .where("tx_hash", "=", hash)
        .execute();
    }
  }

  #one(row: SessionTransactionTable | undefined): WrittenTransaction | null {
    return row === undefined ? null : parseTransaction(row, this.#sealer);
  }

  #many(rows: readonly SessionTransactionTable[]): readonly WrittenTransaction[] {
    return rows.map((row) => parseTransaction(row, this.#sealer));
  }
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
