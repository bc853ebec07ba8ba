// The steps of a store that are about several nodes on one database, in the order of
// `migrations.ts`. They only add: nodes of the version before go on beside them. A step that was
// released is never changed.
import { type Kysely, sql } from "kysely";
import { isPostgres } from "./engine.ts";

/** Clocks of nodes, the change log, jobs, and shared rate limits. */
export async function createCluster(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable("node")
    .addColumn("skew_ms", "bigint", (column) => column.notNull().defaultTo(0))
    .execute();
  await db.schema.alterTable("node").addColumn("process_id", "text").execute();
  await createChangeLog(db);
  await db.schema
    .createTable("job")
    .addColumn("name", "text", (column) => column.primaryKey())
    .addColumn("node_id", "text", (column) => column.notNull())
    .addColumn("due_at", "bigint", (column) => column.notNull())
    .addColumn("claimed_until", "bigint", (column) => column.notNull())
    .execute();
  // Lost in a crash of the server, which is right for numbers that hold for seconds.
  const unlogged = isPostgres(db) ? sql`unlogged` : sql``;
  await sql`create ${unlogged} table rate_limit (
    scope text primary key, full_at double precision not null, step_ms double precision not null,
    burst double precision not null, wanted double precision not null,
    owed double precision not null, part double precision not null,
    granted double precision not null)`.execute(db);
  await db.schema.createIndex("rate_limit_by_end").on("rate_limit").column("full_at").execute();
  await sql`create ${unlogged} table rate_demand (
    scope text not null, node_id text not null, wanted double precision not null,
    at bigint not null, primary key (scope, node_id))`.execute(db);
  await db.schema.createIndex("rate_demand_by_time").on("rate_demand").column("at").execute();
}

/** Filters that nodes share. */
export async function createFilters(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("filter")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("owner", "text", (column) => column.notNull())
    .addColumn("method", "text", (column) => column.notNull())
    .addColumn("params", "text", (column) => column.notNull())
    .addColumn("profile", "text", (column) => column.notNull())
    .addColumn("named", "text", (column) => column.notNull())
    .addColumn("chain", "text", (column) => column.notNull())
    .addColumn("strategy", "text", (column) => column.notNull())
    .addColumn("pin", "text")
    .addColumn("node_id", "text", (column) => column.notNull())
    .addColumn("claim", "bigint", (column) => column.notNull())
    .addColumn("answering", "bigint", (column) => column.notNull())
    .addColumn("mark", "text")
    .addColumn("polled_at", "bigint", (column) => column.notNull())
    .execute();
}

async function createChangeLog(db: Kysely<unknown>): Promise<void> {
  if (isPostgres(db))
    await sql`create table change_log (
      seq bigint generated always as identity primary key,
      xid xid8 not null default pg_current_xact_id(),
      at bigint not null default (extract(epoch from clock_timestamp()) * 1000)::bigint,
      topic text not null, ref text not null)`.execute(db);
  else
    await sql`create table change_log (
      seq integer primary key autoincrement, xid text not null default '0',
      at bigint not null default (cast((julianday('now') - 2440587.5) * 86400000 as integer)),
      topic text not null, ref text not null)`.execute(db);
  await db.schema.createIndex("change_log_by_xid").on("change_log").column("xid").execute();
  await db.schema.createIndex("change_log_by_time").on("change_log").column("at").execute();
}

/** What nodes may send to providers. */
export async function createProviderLimits(db: Kysely<unknown>): Promise<void> {
  const unlogged = isPostgres(db) ? sql`unlogged` : sql``;
  await sql`create ${unlogged} table provider_share (
    scope text not null, process_id text not null, share double precision not null,
    used double precision not null, wanted double precision, at bigint not null,
    primary key (scope, process_id))`.execute(db);
  await db.schema.createIndex("provider_share_by_time").on("provider_share").column("at").execute();
  await db.schema
    .createTable("provider_quota")
    .addColumn("scope", "text", (column) => column.primaryKey())
    .addColumn("day_at", "bigint", (column) => column.notNull())
    .addColumn("day_spent", "bigint", (column) => column.notNull())
    .addColumn("month_at", "bigint", (column) => column.notNull())
    .addColumn("month_spent", "bigint", (column) => column.notNull())
    .execute();
}
