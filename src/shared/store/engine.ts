// Which engine a connection belongs to, and the clock that its statements read. Knows no table.
import { type Kysely, type RawBuilder, SqliteAdapter, sql } from "kysely";

/** Whether statements run on a PostgreSQL server; else on an embedded store. */
export function isPostgres(db: Pick<Kysely<unknown>, "getExecutor">): boolean {
  return !(db.getExecutor().adapter instanceof SqliteAdapter);
}

/** Milliseconds since the epoch by the clock of the database, as SQL. */
export function databaseNow(db: Pick<Kysely<unknown>, "getExecutor">): RawBuilder<bigint> {
  return isPostgres(db)
    ? sql<bigint>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
    : sql<bigint>`cast((julianday('now') - 2440587.5) * 86400000 as integer)`;
}
