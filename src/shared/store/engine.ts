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

const TYPES: Readonly<Record<string, string>> = { string: "text", number: "double precision" };

/** Rows behind `values`, each value cast: PostgreSQL infers no types of parameters there. */
export function valueRows(
  rows: readonly (readonly (string | number | bigint | null)[])[],
): RawBuilder<unknown> {
  const typed = (value: unknown) =>
    sql`cast(${value} as ${sql.raw(TYPES[typeof value] ?? "bigint")})`;
  return sql.join(rows.map((row) => sql`(${sql.join(row.map(typed))})`));
}
