// What the processes of nodes tell of themselves, in the store, and the jobs that one does for all.
// Knows nothing of what is told.
import { type SqlBool, sql } from "kysely";
import { databaseNow } from "../store/engine.ts";
import type { Store } from "../store/store.ts";

/** What a process told last. */
export interface StoredReport {
  readonly nodeId: string;
  /** JSON. */
  readonly report: string;
}

/** A job that one process does for all. */
export interface StoredJob {
  readonly name: string;
  /** That does it, or did it last. */
  readonly nodeId: string;
  readonly isRunning: boolean;
  readonly dueAtMs: number;
}

/** More than that are not read. */
const MAX_REPORTS = 1_000;
const MAX_JOBS = 100;
/** A process that told nothing for so long is not known to be as it told. */
const FRESH_MS = 30_000;

/** Writes what a process tells, in the place of what it told before. */
export async function writeReport({ db }: Store, nodeId: string, report: string): Promise<void> {
  await sql`insert into node_report (node_id, at, report)
    values (${nodeId}, ${databaseNow(db)}, ${report})
    on conflict (node_id) do update set at = excluded.at, report = excluded.report`.execute(db);
}

/** Reads what processes told lately, and what they do for all. */
export async function readReports({ db }: Store): Promise<{
  readonly reports: readonly StoredReport[];
  readonly jobs: readonly StoredJob[];
}> {
  const rows = await db
    .selectFrom("node_report")
    .select(["node_id", "report"])
    .where(sql<SqlBool>`at >= ${databaseNow(db)} - ${BigInt(FRESH_MS)}`)
    .orderBy("at", "desc")
    .limit(MAX_REPORTS)
    .execute();
  const jobs = await db
    .selectFrom("job")
    .selectAll()
    .select(databaseNow(db).as("now"))
    .orderBy("name")
    .limit(MAX_JOBS)
    .execute();
  return {
    reports: rows.map(({ node_id: nodeId, report }) => ({ nodeId, report })),
    jobs: jobs.map(({ name, node_id: nodeId, due_at: dueAt, claimed_until: until, now }) => ({
      name,
      nodeId,
      isRunning: until > now,
      dueAtMs: Number(dueAt),
    })),
  };
}
