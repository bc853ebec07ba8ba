// The steps of a store that are about payments, in the order of `migrations.ts`. A step that was
// released is never changed.
import { type Kysely, sql } from "kysely";

/** Purchases, what was sent for them, and the wallets that send. */
export async function createPurchases(db: Kysely<unknown>): Promise<void> {
  await createPurchase(db);
  await createSubmissions(db);
}

async function createPurchase(db: Kysely<unknown>): Promise<void> {
  const isOpen = sql<boolean>`ended_at is null`;
  await db.schema
    .createTable("purchase")
    .addColumn("id", "text", (it) => it.primaryKey())
    .addColumn("payment_key", "text", (it) => it.notNull().unique())
    .addColumn("offer_id", "text", (it) => it.notNull())
    .addColumn("offer_claim", "text", (it) => it.unique())
    .addColumn("fingerprint", "text", (it) => it.notNull())
    .addColumn("purpose", "text", (it) => it.notNull())
    .addColumn("units", "bigint", (it) => it.notNull().check(sql`units > 0`))
    .addColumn("amount_n", "bigint", (it) => it.notNull())
    .addColumn("rail", "text", (it) => it.notNull())
    .addColumn("protocol", "text", (it) => it.notNull())
    .addColumn("chain_id", "bigint", (it) => it.notNull())
    .addColumn("network", "text", (it) => it.notNull())
    .addColumn("token", "text", (it) => it.notNull())
    .addColumn("recipient", "text", (it) => it.notNull())
    .addColumn("payer", "text", (it) => it.notNull())
    .addColumn("material", "text", (it) => it.notNull())
    .addColumn("is_sent", "bigint", (it) => it.notNull())
    .addColumn("valid_until", "bigint")
    .addColumn("state", "text", (it) => it.notNull())
    .addColumn("reason", "text")
    .addColumn("tx_hash", "text")
    .addColumn("settled_ref", "text", (it) => it.unique())
    .addColumn("fulfilment", "text")
    .addColumn("blank_at", "bigint")
    .addColumn("created_at", "bigint", (it) => it.notNull())
    .addColumn("ended_at", "bigint")
    .addColumn("look_at", "bigint", (it) => it.notNull())
    .addColumn("looks", "bigint", (it) => it.notNull())
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
    .addColumn("purchase_id", "text", (it) => it.notNull().references("purchase.id"))
    .addColumn("position", "bigint", (it) => it.notNull())
    .addColumn("tx_hash", "text", (it) => it.notNull())
    .addColumn("raw", "text")
    .addColumn("wallet_id", "text")
    .addColumn("nonce", "bigint")
    .addColumn("created_at", "bigint", (it) => it.notNull())
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
    .addColumn("id", "text", (it) => it.primaryKey())
    .addColumn("next_nonce", "bigint", (it) => it.notNull().check(sql`next_nonce >= 0`))
    .execute();
}
