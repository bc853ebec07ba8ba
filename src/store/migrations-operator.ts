// The steps of a store that are about the operators of an instance: sessions in the console,
// cordons, actions and reloads; results of audits. A step that was released is never changed.
import type { Kysely } from "kysely";

/** Sessions in the console, cordoned providers, and the actions of operators. */
export async function createOperator(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("console_session")
    .addColumn("id_hash", "text", (column) => column.primaryKey())
    .addColumn("role", "text", (column) => column.notNull())
    .addColumn("token_ref", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex("console_session_of_token")
    .on("console_session")
    .columns(["token_ref", "created_at"])
    .execute();
  await db.schema
    .createIndex("console_session_by_end")
    .on("console_session")
    .column("expires_at")
    .execute();
  await db.schema
    .createTable("operator_cordon")
    .addColumn("profile", "text", (column) => column.notNull())
    .addColumn("chain", "text", (column) => column.notNull())
    .addColumn("provider", "text", (column) => column.notNull())
    .addColumn("reason", "text")
    .addColumn("actor", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("operator_cordon_key", ["profile", "chain", "provider"])
    .execute();
  await db.schema
    .createTable("operator_action")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("actor", "text", (column) => column.notNull())
    .addColumn("address", "text", (column) => column.notNull())
    .addColumn("action", "text", (column) => column.notNull())
    .addColumn("target", "text")
    .addColumn("detail", "text")
    .addColumn("outcome", "text", (column) => column.notNull())
    .addColumn("node", "text")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
  // Money by day is read of the newest events only.
  await db.schema.createIndex("ledger_tx_by_time").on("ledger_tx").column("created_at").execute();
}

/** The last results of audits. */
export async function createAuditResults(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("audit_result")
    .addColumn("part", "text", (column) => column.primaryKey())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("problem_count", "bigint", (column) => column.notNull())
    .addColumn("problems", "text", (column) => column.notNull())
    .addColumn("runner", "text", (column) => column.notNull())
    .addColumn("node", "text")
    .addColumn("checked_at", "bigint", (column) => column.notNull())
    .execute();
}

/** The last reload that every node was asked for. */
export async function createOperatorReload(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("operator_reload")
    .addColumn("slot", "text", (column) => column.primaryKey())
    .addColumn("id", "text", (column) => column.notNull())
    .addColumn("node", "text", (column) => column.notNull())
    .addColumn("actor", "text", (column) => column.notNull())
    .addColumn("address", "text", (column) => column.notNull())
    .addColumn("asked_at", "bigint", (column) => column.notNull())
    .execute();
}
