// Copies an embedded store into a PostgreSQL server: every row in one transaction there, followed
// by an audit. Changes the embedded store only by settling leases of processes that have ended.
import { sql } from "kysely";
import { ROWS_PER_STATEMENT, type Tx } from "../../shared/ledger/ledger.ts";
import type { Store } from "../../shared/store/store.ts";
import { TABLES } from "../../shared/store/tables.ts";
import { closeEnded, creditOn } from "../credit/credit-store.ts";
import { audit } from "./audit.ts";

/**
 * The tables by which processes work together hold for minutes, or have no rows in an embedded
 * store: a copy begins without them.
 */
const LEFT_OUT = [
  "job",
  "rate_limit",
  "rate_demand",
  "provider_share",
  "provider_quota",
  "filter",
  "session_hold",
  "console_session",
  "node_report",
  "operator_reload",
] as const;

type ExportedTable = Exclude<keyof typeof TABLES, (typeof LEFT_OUT)[number]>;

/** All tables; referenced tables come first. */
const EXPORTED = Object.keys(TABLES).filter(isExported);

/**
 * Copies a store into an empty one; returns the number of rows by table. Throws, and leaves the
 * target unchanged, if the target contains accounts or the audit finds a difference.
 */
export async function exportStore(
  from: Store,
  to: Store,
  wallMs: number,
): Promise<ReadonlyMap<string, bigint>> {
  if (from.engine !== "sqlite" || to.engine !== "postgres")
    throw new Error("The export goes from the embedded store into a PostgreSQL server.");
  // The lock on the data directory proves that no other process is alive.
  await from.db.updateTable("node").set({ state: "dead" }).where("state", "=", "alive").execute();
  await closeEnded(creditOn(from), wallMs);
  await refuseFaults(from, "The embedded store");
  const counts = await to.transaction(async (tx) => {
    await refuseFull(tx);
    const copied = new Map<string, bigint>();
    for (const table of EXPORTED) copied.set(table, await copyTable(from, tx, table));
    return copied;
  });
  await refuseFaults(to, "The copy");
  return counts;
}

async function refuseFull(tx: Tx): Promise<void> {
  const account = await tx.selectFrom("account").select("id").limit(1).executeTakeFirst();
  if (account !== undefined)
    throw new Error(
      "The PostgreSQL database holds accounts already. Export into an empty one: nothing was " +
        "changed.",
    );
  for (const table of EXPORTED.toReversed()) await sql`delete from ${sql.table(table)}`.execute(tx);
}

async function copyTable(from: Store, tx: Tx, table: ExportedTable): Promise<bigint> {
  let afterRow = 0n;
  let copied = 0n;
  // The embedded store does not change during the copy, because this process holds its lock.
  for (const total = await countRows(from.db, table); copied < total; ) {
    const { rows } = await sql<
      Readonly<Record<string, unknown>>
    >`select rowid as page_row, * from ${sql.table(table)} where rowid > ${afterRow} order by rowid limit ${ROWS_PER_STATEMENT}`.execute(
      from.db,
    );
    if (rows.length === 0)
      throw new Error(
        `Table ${table} has fewer rows than it counts. Nothing was copied: check the disk.`,
      );
    const columns = Object.keys(rows[0] ?? {}).filter((name) => name !== "page_row");
    const lines = rows.map((row) => sql`(${sql.join(columns.map((name) => row[name]))})`);
    await sql`insert into ${sql.table(table)} (${sql.join(columns.map((name) => sql.ref(name)))}) values ${sql.join(lines)}`.execute(
      tx,
    );
    copied += BigInt(rows.length);
    afterRow = parseRow(rows.at(-1)?.["page_row"]);
  }
  const arrived = await countRows(tx, table);
  if (arrived !== copied)
    throw new Error(
      `Table ${table} has ${copied} rows, but ${arrived} arrived. Nothing was copied: try again.`,
    );
  return copied;
}

async function countRows(db: Store["db"], table: ExportedTable): Promise<bigint> {
  const { rows } = await sql<{
    readonly count: bigint;
  }>`select count(*) as count from ${sql.table(table)}`.execute(db);
  return rows[0]?.count ?? 0n;
}

async function refuseFaults(store: Store, name: string): Promise<void> {
  const [first, ...rest] = await audit(store);
  if (first === undefined) return;
  const more = rest.length === 0 ? "" : `, and ${rest.length} more`;
  throw new Error(
    `${name} does not add up: ${first.check} of ${first.id} is ${first.isN}, should be ` +
      `${first.shouldN} nano-USD${more}.`,
  );
}

function isExported(name: string): name is ExportedTable {
  return !LEFT_OUT.some((left) => left === name);
}

function parseRow(value: unknown): bigint {
  if (typeof value !== "bigint") throw new TypeError("a row without a number");
  return value;
}
