// The migrations that create the tables of a store, in order, with the same SQL on both engines. A
// released migration is never changed. Defines tables and constraints; `tables.ts` says what they
// mean.
import { type Kysely, sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { createCluster, createFilters, createProviderLimits } from "./migrations-cluster.ts";
import { createHistory, createNodeReports } from "./migrations-history.ts";
import { createAuditResults, createOperator, createOperatorReload } from "./migrations-operator.ts";
import { createPurchases, indexPurchaseAccounts } from "./migrations-payments.ts";
import {
  createSessionOwnership,
  createSessions,
  removeSessionOwnership,
} from "./migrations-sessions.ts";
import type { Tables } from "./tables.ts";

/** Every migration by name, in the order of names. */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "001_accounts": { up: createAccounts },
  "002_ledger": { up: createLedger },
  "003_usage": { up: createUsage },
  "004_entries_in_order": { up: orderEntries },
  "005_profiles": { up: createProfiles },
  "006_claims": { up: createClaims },
  "007_feedback": { up: createFeedback },
  "008_purchases": { up: createPurchases },
  "009_sessions": { up: createSessions },
  "010_cluster": { up: createCluster },
  "011_session_owners": { up: createSessionOwnership },
  "012_operator": { up: createOperator },
  "014_purchase_accounts": { up: indexPurchaseAccounts },
  "019_profile_revisions": { up: createProfileRevisions },
  "020_cached_usage": { up: addCachedUsage },
  "021_audit_results": { up: createAuditResults },
  "022_history": { up: createHistory },
  "023_provider_limits": { up: createProviderLimits },
  "024_filters": { up: createFilters },
  "025_node_reports": { up: createNodeReports },
  "026_operator_reload": { up: createOperatorReload },
  "027_key_consistency": { up: addKeyConsistency },
  "028_no_session_owners": { up: removeSessionOwnership },
};

/**
 * Runs the migrations that a store lacks; another process may do so concurrently. Returns why it
 * failed if the store is newer than this program.
 */
export async function migrate(db: Kysely<Tables>): Promise<string | null> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } });
  const { error } = await migrator.migrateToLatest();
  if (error === undefined) return null;
  const newer = (await stepsTaken(db)).find((name) => !(name in MIGRATIONS));
  if (newer === undefined) throw error;
  return (
    `The store was last used by a newer version of svc (it has step ${newer}). Start that ` +
    "version, or go back to a backup from before it."
  );
}

/** Whether a store has exactly the migrations of this program. */
export async function isMigrated(db: Kysely<Tables>): Promise<boolean> {
  const taken = new Set(await stepsTaken(db));
  const steps = Object.keys(MIGRATIONS);
  return taken.size === steps.length && steps.every((name) => taken.has(name));
}

async function stepsTaken(db: Kysely<Tables>): Promise<readonly string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === "kysely_migration")) return [];
  const { rows } = await sql<{ readonly name: string }>`select name from kysely_migration`.execute(
    db,
  );
  return rows.map(({ name }) => name);
}

async function createAccounts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("account")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("kind", "text", (column) => column.notNull())
    .addColumn("balance_n", "bigint", (column) => column.notNull().check(sql`balance_n >= 0`))
    .addColumn("funded_n", "bigint", (column) => column.notNull().check(sql`funded_n >= 0`))
    .addColumn("first_paid_at", "bigint")
    .addColumn("exhausted_at", "bigint")
    .addColumn("merged_into", "text")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("agent")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("account_id", "text", (column) => column.notNull().references("account.id"))
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("token_hash", "text", (column) => column.notNull().unique())
    .addColumn("profiles", "text")
    .addColumn("read_only", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint")
    .addColumn("revoked_at", "bigint")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("agent_of_account").on("agent").column("account_id").execute();
  await createKeys(db);
}

async function createKeys(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("api_key")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("account_id", "text", (column) => column.notNull().references("account.id"))
    .addColumn("agent_id", "text", (column) => column.references("agent.id"))
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("prefix", "text", (column) => column.notNull())
    .addColumn("default_profile", "text")
    .addColumn("allowed_profiles", "text")
    .addColumn("revision", "bigint", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("revoked_at", "bigint")
    .execute();
  await db.schema.createIndex("api_key_of_account").on("api_key").column("account_id").execute();
  await db.schema
    .createTable("key_secret")
    .addColumn("secret_hash", "text", (column) => column.primaryKey())
    .addColumn("key_id", "text", (column) => column.notNull().references("api_key.id"))
    .addColumn("valid_until", "bigint")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("key_secret_of_key").on("key_secret").column("key_id").execute();
}

async function createLedger(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("ledger_tx")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("idem_key", "text", (column) => column.notNull().unique())
    .addColumn("kind", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("ledger_entry")
    .addColumn("tx_id", "text", (column) => column.notNull().references("ledger_tx.id"))
    .addColumn("position", "bigint", (column) => column.notNull())
    .addColumn("book", "text", (column) => column.notNull())
    .addColumn("account_id", "text", (column) => column.references("account.id"))
    .addColumn("amount_n", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("ledger_entry_pk", ["tx_id", "position"])
    .addCheckConstraint("ledger_entry_account", sql`(book = 'account') = (account_id is not null)`)
    .execute();
  await db.schema
    .createIndex("ledger_entry_of_account")
    .on("ledger_entry")
    .column("account_id")
    .execute();
  await db.schema
    .createTable("node")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("epoch", "bigint", (column) => column.notNull())
    .addColumn("region", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("flush_seq", "bigint", (column) => column.notNull())
    .addColumn("heartbeat_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("credit_lease")
    .addColumn("account_id", "text", (column) => column.notNull().references("account.id"))
    .addColumn("node_id", "text", (column) => column.notNull().references("node.id"))
    .addColumn("epoch", "bigint", (column) => column.notNull())
    .addColumn("granted_n", "bigint", (column) => column.notNull())
    .addColumn("spent_n", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("credit_lease_pk", ["account_id", "node_id", "epoch"])
    .addCheckConstraint("credit_lease_spent", sql`spent_n >= 0 and spent_n <= granted_n`)
    .execute();
  await db.schema
    .createIndex("credit_lease_of_node")
    .on("credit_lease")
    .columns(["node_id", "epoch"])
    .execute();
}

async function createUsage(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("usage_hour")
    .addColumn("account_id", "text", (column) => column.notNull())
    .addColumn("key_id", "text", (column) => column.notNull())
    .addColumn("method", "text", (column) => column.notNull())
    .addColumn("hour", "bigint", (column) => column.notNull())
    .addColumn("calls", "bigint", (column) => column.notNull())
    .addColumn("cu", "bigint", (column) => column.notNull())
    .addColumn("charge_n", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("usage_hour_pk", ["account_id", "hour", "key_id", "method"])
    .execute();
  await db.schema
    .createIndex("usage_hour_of_key")
    .on("usage_hour")
    .columns(["key_id", "hour"])
    .execute();
  await db.schema
    .createTable("allowance_month")
    .addColumn("account_id", "text", (column) => column.notNull())
    .addColumn("month", "bigint", (column) => column.notNull())
    .addColumn("used_cu", "bigint", (column) => column.notNull().check(sql`used_cu >= 0`))
    .addPrimaryKeyConstraint("allowance_month_pk", ["account_id", "month"])
    .execute();
}

/** Counts calls answered from the cache apart; earlier versions of the program write none. */
async function addCachedUsage(db: Kysely<unknown>): Promise<void> {
  for (const name of ["cached_calls", "cached_cu"])
    await db.schema
      .alterTable("usage_hour")
      .addColumn(name, "bigint", (column) => column.notNull().defaultTo(0))
      .execute();
}

/** Adds an index on ledger entries, so that accounts with many entries can be read in pages. */
async function orderEntries(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createIndex("ledger_entry_in_order")
    .on("ledger_entry")
    .columns(["account_id", "tx_id", "position"])
    .execute();
  await db.schema.dropIndex("ledger_entry_of_account").execute();
}

async function createProfiles(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("profile")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("account_id", "text", (column) => column.notNull().references("account.id"))
    .addColumn("slug", "text", (column) => column.notNull())
    .addColumn("revision", "bigint", (column) => column.notNull())
    .addColumn("sealed", "text")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .addUniqueConstraint("profile_of_account", ["account_id", "slug"])
    .execute();
  await db.schema
    .createTable("custom_access")
    .addColumn("account_id", "text", (column) => column.notNull().references("account.id"))
    .addColumn("source", "text", (column) => column.notNull())
    .addColumn("from_at", "bigint", (column) => column.notNull())
    .addColumn("until_at", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("custom_access_pk", ["account_id", "source"])
    .addCheckConstraint("custom_access_time", sql`until_at > from_at`)
    .execute();
}

async function createProfileRevisions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("profile_revision")
    // A program that does not know of revisions removes profiles as well.
    .addColumn("profile_id", "text", (column) =>
      column.notNull().references("profile.id").onDelete("cascade"),
    )
    .addColumn("revision", "bigint", (column) => column.notNull())
    .addColumn("sealed", "text", (column) => column.notNull())
    .addColumn("saved_at", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("profile_revision_pk", ["profile_id", "revision"])
    .execute();
}

async function createClaims(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createIndex("account_merged")
    .on("account")
    .column("merged_into")
    .where("merged_into", "is not", null)
    .execute();
  await db.schema
    .createTable("claim_link")
    .addColumn("token_hash", "text", (column) => column.primaryKey())
    .addColumn("account_id", "text", (column) => column.notNull().references("account.id"))
    .addColumn("key_id", "text", (column) => column.notNull().references("api_key.id"))
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint", (column) => column.notNull())
    .addColumn("ended", "text")
    .execute();
  await db.schema
    .createIndex("claim_link_of_account")
    .on("claim_link")
    .column("account_id")
    .execute();
  await db.schema
    .createTable("connection")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("token_hash", "text", (column) => column.notNull().unique())
    .addColumn("approval_hash", "text", (column) => column.notNull().unique())
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("account_id", "text", (column) => column.references("account.id"))
    .addColumn("agent_id", "text", (column) => column.references("agent.id"))
    .addColumn("profiles", "text")
    .addColumn("read_only", "bigint", (column) => column.notNull())
    .addColumn("agent_expires_at", "bigint")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint", (column) => column.notNull())
    .addColumn("decided_at", "bigint")
    .addColumn("polled_at", "bigint")
    .execute();
  await db.schema
    .createIndex("connection_of_account")
    .on("connection")
    .column("account_id")
    .execute();
  await db.schema
    .createIndex("connection_by_state")
    .on("connection")
    .columns(["state", "expires_at"])
    .execute();
}

async function createFeedback(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("feedback")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("account_id", "text", (column) => column.references("account.id"))
    .addColumn("category", "text")
    .addColumn("request_id", "text")
    .addColumn("operation", "text")
    .addColumn("message", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("old_form")
    .addColumn("name", "text", (column) => column.primaryKey())
    .addColumn("requests", "bigint", (column) => column.notNull())
    .addColumn("last_seen_at", "bigint")
    .addColumn("quiet_ms", "bigint", (column) => column.notNull().check(sql`quiet_ms >= 0`))
    .execute();
}

/** Lets a key say which view of the chain it gets; earlier versions of the program write none. */
async function addKeyConsistency(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("api_key").addColumn("consistency", "text").execute();
}
