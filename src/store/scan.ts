// Large tables read a bounded number of rows at a time, each statement in a turn of the event loop
// of its own: the embedded engine holds the loop up while it reads. Knows no meaning of a row.
import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Tables } from "./tables.ts";

/** Rows that one statement reads of one table at most. */
export const ROWS_PER_PAGE = 500;

/** A column of ids, with an index that begins with it. */
export interface IdColumn {
  readonly table: keyof Tables;
  readonly column: string;
}

/** Ids above `after` (null = all) and below `end` (null = all). */
export interface IdRange {
  readonly after: string | null;
  readonly end: string | null;
}

/**
 * Cuts the ids of some columns together into ranges, in order: between `after` and `end` no table
 * has more rows than a page. `end` itself may have more.
 */
export async function* rangesOf(
  db: Kysely<Tables>,
  columns: readonly IdColumn[],
): AsyncGenerator<IdRange> {
  for (let after: string | null = null; ; ) {
    const end: string | null = await borderAfter(db, columns, after);
    yield { after, end };
    if (end === null) return;
    after = end;
  }
}

/** Whether a column, which may be null, lies between the ends of a range. */
export function isBetween(column: string, { after, end }: IdRange): RawBuilder<boolean> {
  const id = sql.ref(column);
  // `>= ''` leaves out what is null, by the index.
  const isAbove = after === null ? sql<boolean>`${id} >= ''` : sql<boolean>`${id} > ${after}`;
  return end === null ? isAbove : sql<boolean>`${isAbove} and ${id} < ${end}`;
}

/** As `isBetween`, the end of the range included. */
export function isWithin(column: string, { after, end }: IdRange): RawBuilder<boolean> {
  return sql<boolean>`${isBetween(column, { after, end: null })} ${end === null ? sql`` : sql`and ${sql.ref(column)} <= ${end}`}`;
}

/**
 * Reads the rows of a query page by page; `next` asks for those after a row, in an order, and no
 * more than a page.
 */
export async function* pagesOf<T>(
  db: Kysely<Tables>,
  next: (last: T | null) => RawBuilder<T>,
): AsyncGenerator<readonly T[]> {
  for (let last: T | null = null; ; ) {
    const rows: readonly T[] = await rowsOf(db, next(last));
    yield rows;
    last = rows.at(-1) ?? null;
    if (rows.length < ROWS_PER_PAGE) return;
  }
}

/** Runs one statement after the event loop had its turn. */
export async function rowsOf<T>(db: Kysely<Tables>, query: RawBuilder<T>): Promise<readonly T[]> {
  await new Promise(setImmediate);
  return (await query.execute(db)).rows;
}

/** The lowest id at which one of the columns has filled a page; null = none does. */
async function borderAfter(
  db: Kysely<Tables>,
  columns: readonly IdColumn[],
  after: string | null,
): Promise<string | null> {
  const borders = columns.map(
    ({ table, column }) => sql`select id from (
      select ${sql.ref(column)} as id from ${sql.table(table)} where ${isBetween(column, { after, end: null })}
      order by ${sql.ref(column)} limit 1 offset ${ROWS_PER_PAGE - 1}) ids`,
  );
  const [row] = await rowsOf(
    db,
    sql<{
      readonly id: string | null;
    }>`select min(id) as id from (${sql.join(borders, sql` union all `)}) borders`,
  );
  return row?.id ?? null;
}
