// Seals stored texts anew after the secret of the service has changed, so that the previous one can
// be removed. One node does it for all. Knows no meaning of a row.

import { type RawBuilder, sql } from "kysely";
import type { Logger } from "pino";
import type { Sealer } from "../../secrets/sealer.ts";
import { pagesOf, ROWS_PER_PAGE } from "../store/scan.ts";
import type { Store } from "../store/store.ts";
import type { Tables } from "../store/tables.ts";
import type { JobClaims } from "./job-claims.ts";

/** A column of sealed texts. */
export interface SealedColumn {
  readonly table: keyof Tables;
  readonly column: string;
  /** The columns that identify a row, in the order of their index. */
  readonly key: readonly string[];
  /** What the text of a row belongs to, by the values of its key. */
  readonly contextOf: (...key: readonly string[]) => string;
  /**
   * The rows that are sealed anew: each of them has to open, or the service must not start. Absent
   * = all rows, and those that no known secret opens stay as they are.
   */
  readonly needed?: RawBuilder<boolean>;
}

interface ResealingParts {
  readonly store: Pick<Store, "db">;
  readonly claims: JobClaims;
  readonly log: Pick<Logger, "info">;
  readonly sealer: Sealer;
}

/**
 * Seals columns anew, once for all nodes, if there was another secret before. Throws where the
 * store does, and if no known secret opens a text that is needed.
 */
export async function resealOnce(
  { store, claims, log, sealer }: ResealingParts,
  name: string,
  columns: readonly SealedColumn[],
): Promise<void> {
  const run = async () =>
    log.info(
      { resealed: await reseal(store, sealer, columns) },
      `${name} are sealed with the present secret`,
    );
  if (sealer.hasPrevious) await claims.runIfDue({ name: `reseal_${name}`, everyMs: 0, run });
}

/** Returns how many texts were sealed anew; throws as `resealOnce`. */
export async function reseal(
  { db }: Pick<Store, "db">,
  sealer: Sealer,
  columns: readonly SealedColumn[],
): Promise<number> {
  let resealed = 0;
  for (const { table, column, key, contextOf, needed } of columns) {
    const sealed = sql.ref(column);
    const names = sql.join(key.map((name) => sql.ref(name)));
    const keyOf = (row: SealedRow) => sql.join(key.map((name) => row[name]));
    const next = (last: SealedRow | null) => sql<SealedRow>`
      select ${names}, ${sealed} as sealed from ${sql.table(table)}
      where ${sealed} is not null and ${needed ?? sql`true`}
      ${last === null ? sql`` : sql`and (${names}) > (${keyOf(last)})`}
      order by ${names} limit ${ROWS_PER_PAGE}`;
    for await (const page of pagesOf(db, next))
      for (const row of page) {
        if (sealer.isCurrent(row.sealed)) continue;
        const context = contextOf(...key.map((name) => String(row[name])));
        const text = sealer.open(row.sealed, context);
        if (text === null && needed !== undefined)
          throw new Error(
            `${context} cannot be read: it was sealed with another secret. Start svc with the ` +
              "secret that it was written with",
          );
        if (text === null) continue;
        await sql`update ${sql.table(table)} set ${sealed} = ${sealer.seal(text, context)}
          where (${names}) = (${keyOf(row)}) and ${sealed} = ${row.sealed}`.execute(db);
        resealed++;
      }
  }
  return resealed;
}

type SealedRow = Readonly<Record<string, unknown>> & { readonly sealed: string };
