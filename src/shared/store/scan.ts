// Reads large tables in bounded pages, each statement in its own turn of the event loop, because
// the embedded engine blocks the loop while it reads. Knows no meaning of a row.
import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Tables } from "./tables.ts";

/** Largest number of rows that one statement reads of a table. */
export const ROWS_PER_PAGE = 500;

/** A column of ids that is the first column of an index. */
export interface IdColumn {
  readonly table: keyof Tables;
  readonly column: string;
}

/** Ids above `after` (null = no lower end) and below `end` (null = no upper end). */
export interface IdRange {
  readonly after: string | null;
  readonly end: string | null;
}

/**
 * Divides the ids of several columns into common ranges, in order, so that no table has more than a
 * page of rows strictly between `after` and `end`. The id `end` itself may have more.
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

/** A condition: the nullable column lies strictly between the ends of a range. */
export function isBetween(column: string, { after, end }: IdRange): RawBuilder<boolean> {
  const id = sql.ref(column);
  // `>= ''` excludes nulls and uses the index.
  const isAbove = after === null ? sql<boolean>`${id} >= ''` : sql<boolean>`${id} > ${after}`;
  return end === null ? isAbove : sql<boolean>`${isAbove} and ${id} < ${end}`;
}

/** Like `isBetween`, but includes the end of the range. */
export function isWithin(column: string, { after, end }: IdRange): RawBuilder<boolean> {
  return sql<boolean>`${isBetween(column, { after, end: null })} ${end === null ? sql`` : sql`and ${sql.ref(column)} <= ${end}`}`;
}

/**
 * Reads a query page by page. `next` builds the query for the rows after a given row, in a stable
 * order and limited to a page.
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

/** Runs one statement after yielding to the event loop. */
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
