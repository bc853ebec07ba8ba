// The steps of a store that are about what nodes observe. One that was released is never changed.
import { type Kysely, sql } from "kysely";
import { isPostgres } from "./engine.ts";

/** Hours of history. */
export async function createHistory(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("history_hour")
    .addColumn("profile", "text", (column) => column.notNull())
    .addColumn("chain", "text", (column) => column.notNull())
    .addColumn("hour", "bigint", (column) => column.notNull())
    .addColumn("provider", "text", (column) => column.notNull())
    .addColumn("class", "text", (column) => column.notNull())
    .addColumn("writer", "text", (column) => column.notNull())
    .addColumn("alias", "text", (column) => column.notNull())
    .addColumn("counts", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("history_hour_pk", [
      "profile",
      "chain",
      "hour",
      "provider",
      "class",
      "writer",
    ])
    .execute();
  await db.schema.createIndex("history_hour_by_time").on("history_hour").column("hour").execute();
}

/** How each process of the nodes is now. */
export async function createNodeReports(db: Kysely<unknown>): Promise<void> {
  // Lost in a crash of the server, which is right for what is written every few seconds.
  const unlogged = isPostgres(db) ? sql`unlogged` : sql``;
  await sql`create ${unlogged} table node_report (
    node_id text primary key, at bigint not null, report text not null)`.execute(db);
}
