// Hours of history in the store: written whole under the name of the service that counted them,
// read a page at a time, removed after 90 days. Knows nothing of what is counted.
import { type SqlBool, sql } from "kysely";
import type { Store } from "../../shared/store/store.ts";
import type { HistoryHourTable } from "../../shared/store/tables-cluster.ts";
import type { HourRange } from "../accounts/hour-range.ts";

/** Rows of one statement: each holds other statements of an embedded store up for a moment. */
const ROWS_PER_STATEMENT = 200;
const ROWS_PER_PAGE = 500;

/** A row of an hour. */
export type HistoryHourRow = Omit<HistoryHourTable, "hour" | "writer">;

/** Writes what a service counted in an hour; what it wrote of the hour before is replaced. */
export async function writeHistoryHour(
  { db }: Store,
  { hour, writer }: { readonly hour: number; readonly writer: string },
  rows: readonly HistoryHourRow[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT)
    await db
      .insertInto("history_hour")
      .values(
        rows
          .slice(from, from + ROWS_PER_STATEMENT)
          .map((row) => ({ ...row, hour: BigInt(hour), writer })),
      )
      .onConflict((conflict) =>
        conflict
          .columns(["profile", "chain", "hour", "provider", "class", "writer"])
          .doUpdateSet((eb) => ({
            alias: eb.ref("excluded.alias"),
            counts: eb.ref("excluded.counts"),
          })),
      )
      .execute();
}

/** What callers of a profile on a chain asked for in an hour. */
export interface ChainHour {
  readonly profile: string;
  readonly chain: string;
  readonly hour: bigint;
  /** The service that counted. */
  readonly writer: string;
  /** The counts by name, as JSON. */
  readonly counts: string;
}

/**
 * The calls of callers of some profiles on some chains, a page at a time. Each row is found by its
 * key: those of providers and classes of methods, which are many more, are not read.
 */
export async function* chainHours(
  { db }: Store,
  pairs: readonly Pick<ChainHour, "profile" | "chain">[],
  { firstHour, endHour }: HourRange,
): AsyncGenerator<readonly ChainHour[]> {
  const hours = Array.from({ length: endHour - firstHour }, (_, n) => BigInt(firstHour + n));
  for (const { profile, chain } of pairs)
    for (let from = 0; from < hours.length; from += ROWS_PER_PAGE)
      yield await db
        .selectFrom("history_hour")
        .select(["profile", "chain", "hour", "writer", "counts"])
        .where("profile", "=", profile)
        .where("chain", "=", chain)
        .where("provider", "=", "")
        .where("class", "=", "")
        .where("hour", "in", hours.slice(from, from + ROWS_PER_PAGE))
        .execute();
}

/** Which rows are read. */
export interface HistoryHourQuery {
  readonly profile: string;
  readonly chain: string;
  /** Null = those of all providers. */
  readonly provider: string | null;
  readonly classes: boolean;
  readonly fromHour: number;
}

/** The rows of a query, in the order of their hours, a page at a time. */
export async function* historyHours(
  { db }: Store,
  { profile, chain, provider, classes, fromHour }: HistoryHourQuery,
): AsyncGenerator<readonly HistoryHourTable[]> {
  let after = { hour: BigInt(fromHour) - 1n, provider: "", class: "", writer: "" };
  for (;;) {
    const rows = await db
      .selectFrom("history_hour")
      .selectAll()
      .where("profile", "=", profile)
      .where("chain", "=", chain)
      .where("hour", ">=", BigInt(fromHour))
      .where(
        sql<SqlBool>`(hour, provider, class, writer) >
          (${after.hour}, ${after.provider}, ${after.class}, ${after.writer})`,
      )
      .where((eb) =>
        eb.and([
          ...(provider === null ? [] : [eb("provider", "in", ["", provider])]),
          ...(classes ? [] : [eb("class", "=", "")]),
        ]),
      )
      .orderBy("hour")
      .orderBy("provider")
      .orderBy("class")
      .orderBy("writer")
      .limit(ROWS_PER_PAGE)
      .execute();
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < ROWS_PER_PAGE) return;
    after = last;
  }
}
