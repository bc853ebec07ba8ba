// Migrations for payments, run by `migrations.ts`. A released migration is never changed.
import { type Kysely, sql } from "kysely";
import { isPostgres } from "./engine.ts";

/** Creates the tables of purchases, their transactions, and the wallets that send them. */
export async function createPurchases(db: Kysely<unknown>): Promise<void> {
  await createPurchase(db);
  await indexPurchases(db);
  await createSubmissions(db);
}

async function createPurchase(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("purchase")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("payment_key", "text", (column) => column.notNull().unique())
    .addColumn("offer_id", "text", (column) => column.notNull())
    .addColumn("offer_claim", "text", (column) => column.unique())
    .addColumn("fingerprint", "text", (column) => column.notNull())
    .addColumn("purpose", "text", (column) => column.notNull())
    .addColumn("units", "bigint", (column) => column.notNull().check(sql`units > 0`))
    .addColumn("amount_n", "bigint", (column) => column.notNull())
    .addColumn("rail", "text", (column) => column.notNull())
    .addColumn("protocol", "text", (column) => column.notNull())
    .addColumn("chain_id", "bigint", (column) => column.notNull())
    .addColumn("network", "text", (column) => column.notNull())
    .addColumn("token", "text", (column) => column.notNull())
    .addColumn("recipient", "text", (column) => column.notNull())
    .addColumn("payer", "text", (column) => column.notNull())
    .addColumn("material", "text", (column) => column.notNull())
    .addColumn("is_sent", "bigint", (column) => column.notNull())
    .addColumn("valid_until", "bigint")
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("reason", "text")
    .addColumn("tx_hash", "text")
    .addColumn("settled_ref", "text", (column) => column.unique())
    .addColumn("fulfilment", "text")
    .addColumn("blank_at", "bigint")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("ended_at", "bigint")
    .addColumn("look_at", "bigint", (column) => column.notNull())
    .addColumn("looks", "bigint", (column) => column.notNull())
    .addColumn("lease_node", "text")
    .addColumn("lease_until", "bigint")
    .addCheckConstraint("purchase_amount", sql`amount_n = units * 1000`)
    .addCheckConstraint(
      "purchase_ended",
      sql`(ended_at is not null) = (state in ('settled', 'failed'))`,
    )
    .addCheckConstraint("purchase_settled", sql`(settled_ref is not null) = (state = 'settled')`)
    .addCheckConstraint("purchase_failed", sql`(reason is not null) = (state = 'failed')`)
    .addCheckConstraint("purchase_fulfilled", sql`fulfilment is null or state = 'settled'`)
    .execute();
}

async function indexPurchases(db: Kysely<unknown>): Promise<void> {
  const isOpen = sql<boolean>`ended_at is null`;
  await db.schema
    .createIndex("purchase_due")
    .on("purchase")
    .columns(["look_at", "id"])
    .where(isOpen)
    .execute();
  await db.schema
    .createIndex("purchase_of_transaction")
    .on("purchase")
    .expression(sql`lower(tx_hash)`)
    .execute();
  await db.schema.createIndex("purchase_of_offer").on("purchase").column("offer_id").execute();
  await db.schema
    .createIndex("purchase_open_of_payer")
    .on("purchase")
    .column("payer")
    .where(isOpen)
    .execute();
  await db.schema
    .createIndex("purchase_held")
    .on("purchase")
    .column("id")
    .where(sql<boolean>`state = 'settled' and fulfilment is null`)
    .execute();
  await db.schema
    .createIndex("purchase_to_blank")
    .on("purchase")
    .column("blank_at")
    .where(sql<boolean>`blank_at is not null`)
    .execute();
}

async function createSubmissions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("purchase_submission")
    .addColumn("purchase_id", "text", (column) => column.notNull().references("purchase.id"))
    .addColumn("position", "bigint", (column) => column.notNull())
    .addColumn("tx_hash", "text", (column) => column.notNull())
    .addColumn("raw", "text")
    .addColumn("wallet_id", "text")
    .addColumn("nonce", "bigint")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("passed_at", "bigint")
    .addPrimaryKeyConstraint("purchase_submission_pk", ["purchase_id", "position"])
    .addCheckConstraint(
      "purchase_submission_nonce",
      sql`(wallet_id is not null) = (nonce is not null)`,
    )
    .execute();
  await db.schema
    .createIndex("purchase_submission_unpassed")
    .on("purchase_submission")
    .columns(["wallet_id", "nonce"])
    .where(sql<boolean>`wallet_id is not null and passed_at is null`)
    .execute();
  await db.schema
    .createIndex("purchase_submission_of_wallet")
    .on("purchase_submission")
    .columns(["wallet_id", "nonce"])
    .execute();
  await db.schema
    .createTable("settlement_wallet")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("next_nonce", "bigint", (column) => column.notNull().check(sql`next_nonce >= 0`))
    .execute();
}

/** Adds an index on the account that a purchase names: its purchases are listed by it. */
export async function indexPurchaseAccounts(db: Kysely<unknown>): Promise<void> {
  const account = isPostgres(db)
    ? sql`(purpose::jsonb ->> 'accountId')`
    : sql`json_extract(purpose, '$.accountId')`;
  await sql`create index purchase_of_account on purchase (${account}, id)`.execute(db);
}
