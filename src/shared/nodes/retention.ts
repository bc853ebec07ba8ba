// Removes rows that no process needs any more: changes that all have read, nodes that ended, and
// limits that nobody uses. Every service on a store does this, also one without a cluster: it
// writes such rows all the same.
import { type RawBuilder, sql } from "kysely";
import { FILTER_IDLE_MS } from "../../core/stream/filter-record.ts";
import { CHANGES_KEPT_MS } from "../changes/change-log.ts";
import { databaseNow } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import { type RepeatParts, repeatJob } from "./job-claims.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Nobody goes on with a filter that has not been polled for so much longer than it may. */
const FILTER_SLACK_MS = 60_000;

/** Which rows of a table are old. */
interface OldRows {
  /** The columns of its primary key. */
  readonly key: readonly string[];
  /** A condition, at a time of the database's clock in milliseconds. */
  readonly isOld: (now: RawBuilder<bigint>) => RawBuilder<unknown>;
}

function olderThan(column: string, ms: number): OldRows["isOld"] {
  return (now) => sql`${sql.ref(column)} < ${now} - ${sql.lit(ms)}`;
}

const OLD_ROWS = {
  change_log: { key: ["seq"], isOld: olderThan("at", CHANGES_KEPT_MS) },
  // Limits that are full, and demands of long ago.
  rate_demand: { key: ["scope", "node_id"], isOld: olderThan("at", 5_000) },
  rate_limit: { key: ["scope"], isOld: olderThan("full_at", 5_000) },
  // No process is silent for so long and comes back.
  provider_share: { key: ["scope", "process_id"], isOld: olderThan("at", HOUR_MS) },
  // Longer than any month, and the clocks of databases are off.
  provider_quota: { key: ["scope"], isOld: olderThan("month_at", 100 * DAY_MS) },
  filter: { key: ["id"], isOld: olderThan("polled_at", FILTER_IDLE_MS + FILTER_SLACK_MS) },
  node_report: { key: ["node_id"], isOld: olderThan("at", HOUR_MS) },
  // Nodes that ended long ago and hold nothing.
  node: {
    key: ["id"],
    isOld: (now) => sql`state <> 'alive' and ${olderThan("heartbeat_at", 7 * DAY_MS)(now)}
      and not exists (select 1 from credit_lease where credit_lease.node_id = node.id)`,
  },
  // A clock that was ahead wrote hours that are yet to come.
  history_hour: {
    key: ["profile", "chain", "hour", "provider", "class", "writer"],
    isOld: (now) => sql`(hour < ${now} / ${sql.lit(HOUR_MS)} - ${sql.lit(90 * 24)}
      or hour > ${now} / ${sql.lit(HOUR_MS)} + ${sql.lit(24)})`,
  },
  incident: { key: ["id"], isOld: olderThan("started_at", 90 * DAY_MS) },
} satisfies Readonly<Record<string, OldRows>>;

const REMOVED_AT_ONCE = 1_000;

/** Removes a bounded number of old rows of a table; true = there may be more. */
export async function removeOld(
  { db }: Pick<Store, "db">,
  table: keyof typeof OLD_ROWS,
): Promise<boolean> {
  const { key, isOld }: OldRows = OLD_ROWS[table];
  const columns = sql.join(key.map((column) => sql.ref(column)));
  const condition = isOld(databaseNow(db));
  // The condition stands twice: a row that became new again meanwhile stays.
  const { numAffectedRows } = await sql`delete from ${sql.table(table)}
    where ${condition} and (${columns}) in (
      select ${columns} from ${sql.table(table)} where ${condition}
      limit ${sql.lit(REMOVED_AT_ONCE)})`.execute(db);
  return numAffectedRows === BigInt(REMOVED_AT_ONCE);
}

/** From the start to the first sweep, and from one to the next. */
const SWEEP_MS = 600_000;
/** Statements of one sweep for one table. */
const MAX_STEPS = 1_000;

/** Sweeps again and again, on one process of several; the returned function ends that. */
export function startRetention(
  parts: Omit<RepeatParts, "everyMs"> & { readonly store: Store },
): () => Promise<void> {
  let isClosed = false;
  async function run(): Promise<void> {
    for (const table of parseTables(Object.keys(OLD_ROWS))) {
      let mayBeMore = true;
      for (let left = MAX_STEPS; mayBeMore && left > 0 && !isClosed; left--)
        mayBeMore = await removeOld(parts.store, table);
    }
  }
  const job = { name: "retention", everyMs: SWEEP_MS, run };
  const end = repeatJob({ ...parts, everyMs: SWEEP_MS }, job);
  return () => {
    isClosed = true;
    return end();
  };
}

function parseTables(names: readonly string[]): readonly (keyof typeof OLD_ROWS)[] {
  return names as readonly (keyof typeof OLD_ROWS)[];
}
