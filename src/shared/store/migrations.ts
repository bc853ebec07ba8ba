// The steps that create the tables of a store, in order, with the same SQL on both engines. What a
// released step does is never changed. `tables.ts` says what the tables mean.
import { type Kysely, sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { additionsTo, creationOf } from "./column.ts";
import { isPostgres } from "./engine.ts";
import { TABLES, type Tables } from "./tables.ts";

/** A statement, or one for each engine. */
type Statement = string | { readonly postgres: string; readonly sqlite: string };

/** Every step by name, in the order of names. */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "001_accounts": step(
    table("account"),
    table("agent"),
    "create index agent_of_account on agent (account_id)",
    table("api_key"),
    "create index api_key_of_account on api_key (account_id)",
    table("key_secret"),
    "create index key_secret_of_key on key_secret (key_id)",
  ),
  "002_ledger": step(
    table("ledger_tx"),
    table(
      "ledger_entry",
      "constraint ledger_entry_pk primary key (tx_id, position)",
      "constraint ledger_entry_account check ((book = 'account') = (account_id is not null))",
    ),
    "create index ledger_entry_of_account on ledger_entry (account_id)",
    table("node"),
    table(
      "credit_lease",
      "constraint credit_lease_pk primary key (account_id, node_id, epoch)",
      "constraint credit_lease_spent check (spent_n >= 0 and spent_n <= granted_n)",
    ),
    "create index credit_lease_of_node on credit_lease (node_id, epoch)",
  ),
  "003_usage": step(
    table("usage_hour", "constraint usage_hour_pk primary key (account_id, hour, key_id, method)"),
    "create index usage_hour_of_key on usage_hour (key_id, hour)",
    table("allowance_month", "constraint allowance_month_pk primary key (account_id, month)"),
  ),
  // Accounts with many entries can be read in pages.
  "004_entries_in_order": step(
    "create index ledger_entry_in_order on ledger_entry (account_id, tx_id, position)",
    "drop index ledger_entry_of_account",
  ),
  "005_profiles": step(
    table("profile", "constraint profile_of_account unique (account_id, slug)"),
    table(
      "custom_access",
      "constraint custom_access_pk primary key (account_id, source)",
      "constraint custom_access_time check (until_at > from_at)",
    ),
  ),
  "006_claims": step(
    "create index account_merged on account (merged_into) where merged_into is not null",
    table("claim_link"),
    "create index claim_link_of_account on claim_link (account_id)",
    table("connection"),
    "create index connection_of_account on connection (account_id)",
    "create index connection_by_state on connection (state, expires_at)",
  ),
  "007_feedback": step(table("feedback"), table("old_form")),
  "008_purchases": step(
    table(
      "purchase",
      "constraint purchase_amount check (amount_n = units * 1000)",
      "constraint purchase_ended check ((ended_at is not null) = (state in ('settled', 'failed')))",
      "constraint purchase_settled check ((settled_ref is not null) = (state = 'settled'))",
      "constraint purchase_failed check ((reason is not null) = (state = 'failed'))",
      "constraint purchase_fulfilled check (fulfilment is null or state = 'settled')",
    ),
    "create index purchase_due on purchase (look_at, id) where ended_at is null",
    "create index purchase_of_transaction on purchase (lower(tx_hash))",
    "create index purchase_of_offer on purchase (offer_id)",
    "create index purchase_open_of_payer on purchase (payer) where ended_at is null",
    "create index purchase_held on purchase (id) where state = 'settled' and fulfilment is null",
    "create index purchase_to_blank on purchase (blank_at) where blank_at is not null",
    table(
      "purchase_submission",
      "constraint purchase_submission_pk primary key (purchase_id, position)",
      "constraint purchase_submission_nonce check ((wallet_id is not null) = (nonce is not null))",
    ),
    "create index purchase_submission_unpassed on purchase_submission (wallet_id, nonce) " +
      "where wallet_id is not null and passed_at is null",
    "create index purchase_submission_of_wallet on purchase_submission (wallet_id, nonce)",
    table("settlement_wallet"),
  ),
  "009_sessions": step(
    table(
      "session_channel",
      "constraint session_channel_money check (0 <= settled_units and " +
        "settled_units <= spent_units and spent_units <= deposit_units)",
      "constraint session_channel_ended " +
        "check ((ended_at is not null) = (state in ('closed', 'failed')))",
    ),
    "create index session_channel_due on session_channel (look_at, id) where ended_at is null",
    "create index session_channel_of_payer on session_channel (payer) where ended_at is null",
    table(
      "session_transaction",
      "constraint session_transaction_ended check ((ended_at is null) = (state = 'written'))",
    ),
    "create index session_transaction_open on session_transaction (created_at) " +
      "where ended_at is null",
    "create index session_transaction_of_channel on session_transaction (channel_id)",
    table("session_call", "constraint session_call_pk primary key (channel_id, position)"),
    "create index session_call_by_age on session_call (created_at)",
  ),
  "010_cluster": step(
    ...added("node"),
    {
      postgres:
        "create table change_log (seq bigint generated always as identity primary key, " +
        "xid xid8 not null default pg_current_xact_id(), at bigint not null default " +
        "(extract(epoch from clock_timestamp()) * 1000)::bigint, " +
        "topic text not null, ref text not null)",
      sqlite:
        "create table change_log (seq integer primary key autoincrement, " +
        "xid text not null default '0', at bigint not null default " +
        "(cast((julianday('now') - 2440587.5) * 86400000 as integer)), " +
        "topic text not null, ref text not null)",
    },
    "create index change_log_by_xid on change_log (xid)",
    "create index change_log_by_time on change_log (at)",
    table("job"),
    unlogged("rate_limit"),
    "create index rate_limit_by_end on rate_limit (full_at)",
    unlogged("rate_demand", "primary key (scope, node_id)"),
    "create index rate_demand_by_time on rate_demand (at)",
  ),
  "011_session_owners": step(
    "create table session_owner (channel_id text primary key references session_channel (id), " +
      "node_id text not null, epoch bigint not null, is_exclusive bigint not null, " +
      "since bigint not null, is_wanted bigint not null)",
    "create index session_owner_wanted on session_owner (node_id, epoch) where is_wanted = 1",
    table(
      "session_hold",
      "constraint session_hold_pk primary key (channel_id, node_id, epoch, number)",
    ),
    "create index session_hold_by_age on session_hold (created_at)",
  ),
  "012_operator": step(
    table("console_session"),
    "create index console_session_of_token on console_session (token_ref, created_at)",
    "create index console_session_by_end on console_session (expires_at)",
    table(
      "operator_cordon",
      "constraint operator_cordon_key primary key (profile, chain, provider)",
    ),
    table("operator_action"),
    // Money by day is read of the newest events only.
    "create index ledger_tx_by_time on ledger_tx (created_at)",
  ),
  // The purchases of an account are listed by it.
  "014_purchase_accounts": step({
    postgres: "create index purchase_of_account on purchase ((purpose::jsonb ->> 'accountId'), id)",
    sqlite:
      "create index purchase_of_account on purchase (json_extract(purpose, '$.accountId'), id)",
  }),
  "019_profile_revisions": step(
    table("profile_revision", "constraint profile_revision_pk primary key (profile_id, revision)"),
  ),
  "020_cached_usage": step(...added("usage_hour")),
  "021_audit_results": step(table("audit_result")),
  "022_history": step(
    table(
      "history_hour",
      "constraint history_hour_pk primary key (profile, chain, hour, provider, class, writer)",
    ),
    "create index history_hour_by_time on history_hour (hour)",
  ),
  "023_provider_limits": step(
    unlogged("provider_share", "primary key (scope, process_id)"),
    "create index provider_share_by_time on provider_share (at)",
    table("provider_quota"),
  ),
  "024_filters": step(table("filter")),
  "025_node_reports": step(unlogged("node_report")),
  "026_operator_reload": step(table("operator_reload")),
  "027_key_consistency": step(...added("api_key")),
  "028_no_session_owners": step("drop table session_owner"),
  "029_incidents": step(
    table("incident"),
    "create index incident_by_start on incident (started_at)",
  ),
  "030_cordon_ends": step(...added("operator_cordon")),
};

function step(...statements: readonly Statement[]): Migration {
  return {
    async up(db) {
      const engine = isPostgres(db) ? "postgres" : "sqlite";
      for (const statement of statements)
        await sql.raw(typeof statement === "string" ? statement : statement[engine]).execute(db);
    },
  };
}

function table(name: keyof typeof TABLES, ...rules: readonly string[]): string {
  return `create ${creationOf(name, TABLES[name], rules)}`;
}

/** Lost in a crash of the server, which is right for what holds for seconds. */
function unlogged(name: keyof typeof TABLES, ...rules: readonly string[]): Statement {
  const creation = creationOf(name, TABLES[name], rules);
  return { postgres: `create unlogged ${creation}`, sqlite: `create ${creation}` };
}

function added(name: keyof typeof TABLES): readonly string[] {
  return additionsTo(name, TABLES[name]);
}

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
