// Migrations for pay-per-call, run by `migrations.ts`. A released migration is never changed.
import { type Kysely, sql } from "kysely";

/** Creates the tables of channels, their transactions, and the calls they paid for. */
export async function createSessions(db: Kysely<unknown>): Promise<void> {
  await createChannels(db);
  await createTransactions(db);
  await createCalls(db);
}

async function createChannels(db: Kysely<unknown>): Promise<void> {
  const isOpen = sql<boolean>`ended_at is null`;
  await db.schema
    .createTable("session_channel")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("chain_id", "bigint", (column) => column.notNull())
    .addColumn("network", "text", (column) => column.notNull())
    .addColumn("payer", "text", (column) => column.notNull())
    .addColumn("descriptor", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("reason", "text")
    .addColumn("deposit_units", "bigint", (column) => column.notNull())
    .addColumn("spent_units", "bigint", (column) => column.notNull())
    .addColumn("settled_units", "bigint", (column) => column.notNull())
    .addColumn("vouchers", "text", (column) => column.notNull())
    .addColumn("calls", "bigint", (column) => column.notNull())
    .addColumn("owed_since", "bigint")
    .addColumn("close_requested_at", "bigint")
    .addColumn("seen_block", "bigint", (column) => column.notNull())
    .addColumn("look_at", "bigint", (column) => column.notNull())
    .addColumn("looks", "bigint", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("ended_at", "bigint")
    .addCheckConstraint(
      "session_channel_money",
      sql`0 <= settled_units and settled_units <= spent_units and spent_units <= deposit_units`,
    )
    .addCheckConstraint(
      "session_channel_ended",
      sql`(ended_at is not null) = (state in ('closed', 'failed'))`,
    )
    .execute();
  await db.schema
    .createIndex("session_channel_due")
    .on("session_channel")
    .columns(["look_at", "id"])
    .where(isOpen)
    .execute();
  await db.schema
    .createIndex("session_channel_of_payer")
    .on("session_channel")
    .column("payer")
    .where(isOpen)
    .execute();
}

async function createTransactions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("session_transaction")
    .addColumn("tx_hash", "text", (column) => column.primaryKey())
    .addColumn("channel_id", "text", (column) => column.notNull().references("session_channel.id"))
    .addColumn("kind", "text", (column) => column.notNull())
    .addColumn("raw", "text", (column) => column.notNull())
    .addColumn("units", "bigint", (column) => column.notNull())
    .addColumn("moved_units", "bigint", (column) => column.notNull().check(sql`moved_units >= 0`))
    .addColumn("valid_until", "bigint", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("reason", "text")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("ended_at", "bigint")
    .addCheckConstraint("session_transaction_ended", sql`(ended_at is null) = (state = 'written')`)
    .execute();
  const isOpen = sql<boolean>`ended_at is null`;
  await db.schema
    .createIndex("session_transaction_open")
    .on("session_transaction")
    .column("created_at")
    .where(isOpen)
    .execute();
  await db.schema
    .createIndex("session_transaction_of_channel")
    .on("session_transaction")
    .column("channel_id")
    .execute();
}

async function createCalls(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("session_call")
    .addColumn("channel_id", "text", (column) => column.notNull().references("session_channel.id"))
    .addColumn("position", "bigint", (column) => column.notNull())
    .addColumn("voucher_units", "bigint", (column) => column.notNull())
    .addColumn("fingerprint", "text", (column) => column.notNull())
    .addColumn("challenge_id", "text", (column) => column.notNull())
    .addColumn("charged_units", "bigint", (column) => column.notNull())
    .addColumn("accepted_units", "bigint", (column) => column.notNull())
    .addColumn("spent_units", "bigint", (column) => column.notNull())
    .addColumn("cu", "bigint", (column) => column.notNull())
    .addColumn("status", "bigint", (column) => column.notNull())
    .addColumn("body", "text")
    .addColumn("reruns", "bigint", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("session_call_pk", ["channel_id", "position"])
    .execute();
  await db.schema
    .createIndex("session_call_by_age")
    .on("session_call")
    .column("created_at")
    .execute();
}

/** Creates the tables by which processes share the calls of channels. */
export async function createSessionOwnership(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("session_owner")
    .addColumn("channel_id", "text", (column) =>
      column.primaryKey().references("session_channel.id"),
    )
    .addColumn("node_id", "text", (column) => column.notNull())
    .addColumn("epoch", "bigint", (column) => column.notNull())
    .addColumn("is_exclusive", "bigint", (column) => column.notNull())
    .addColumn("since", "bigint", (column) => column.notNull())
    .addColumn("is_wanted", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex("session_owner_wanted")
    .on("session_owner")
    .columns(["node_id", "epoch"])
    .where(sql<boolean>`is_wanted = 1`)
    .execute();
  await db.schema
    .createTable("session_hold")
    .addColumn("channel_id", "text", (column) => column.notNull().references("session_channel.id"))
    .addColumn("node_id", "text", (column) => column.notNull())
    .addColumn("epoch", "bigint", (column) => column.notNull())
    .addColumn("number", "bigint", (column) => column.notNull())
    .addColumn("units", "bigint", (column) => column.notNull().check(sql`units >= 0`))
    .addColumn("voucher_units", "bigint", (column) => column.notNull())
    .addColumn("fingerprint", "text", (column) => column.notNull())
    .addColumn("challenge_id", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("session_hold_pk", ["channel_id", "node_id", "epoch", "number"])
    .execute();
  await db.schema
    .createIndex("session_hold_by_age")
    .on("session_hold")
    .column("created_at")
    .execute();
}

/** Removes what said which process had a channel to itself: none has any more. */
export async function removeSessionOwnership(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable("session_owner").execute();
}
