// The changes that every node has to hear of: written in the transaction of the change, read by
// snapshots of transactions. Numbers in the order of writing would lose those of a transaction that
// commits late. Knows no receiver.
import { type Kysely, sql, type Transaction } from "kysely";
import { databaseNow, isPostgres } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import type { Tables } from "../store/tables.ts";

/** What a change is about; `ref` of each. */
export type ChangeTopic =
  /** A key was revoked, rotated or changed: its id. */
  | "key"
  /** An account was credited, merged or given access, or its keys moved: its id. */
  | "account"
  /** A Custom profile was replaced or removed: `<account>/<slug>`. */
  | "profile"
  /** A node has too little of a balance, and others have some of it idle: the account's id. */
  | "recall"
  /** Idle credit came back to a balance: the account's id. */
  | "returned"
  /** An operator did something that concerns every node: what, as JSON. */
  | "operator";

/** One change. */
export interface Change {
  readonly topic: ChangeTopic;
  readonly ref: string;
}

/** The channel on which PostgreSQL tells that there is something to read. */
export const CHANNEL = "svc_changes";

/**
 * Writes a change into the transaction that makes it, and has the other nodes read it when that
 * commits. Rare changes only: telling makes commits wait for each other.
 */
export async function recordChange(
  tx: Transaction<Tables>,
  ...changes: readonly Change[]
): Promise<void> {
  if (changes.length === 0) return;
  const rows = changes.map(({ topic, ref }) => sql`(${topic}, ${ref})`);
  await sql`insert into change_log (topic, ref) values ${sql.join(rows)}`.execute(tx);
  if (isPostgres(tx)) await sql`select pg_notify(${CHANNEL}, '')`.execute(tx);
}

/** How far a node has read. */
export interface ChangePosition {
  /** PostgreSQL: the snapshot of the last reading; embedded: the last number. */
  readonly snapshot: string;
  /** Clock of the database. */
  readonly databaseMs: number;
}

/** What was read; `all` = too much has happened since: everything may have changed. */
export type ChangesRead =
  | { readonly kind: "some"; readonly changes: readonly Change[] }
  | { readonly kind: "all" };

/** For how long changes are kept. */
export const CHANGES_KEPT_MS = 3_600_000;
/** A node that read longer ago than this may have missed some that are gone. */
const SAFE_MS = CHANGES_KEPT_MS - 300_000;
/** Changes that are told one by one; more are told as "everything". */
const MAX_CHANGES = 10_000;

/**
 * Where a node begins to read: a starting node knows nothing, so earlier changes do not concern it.
 */
export async function currentPosition({ db }: Pick<Store, "db">): Promise<ChangePosition> {
  const now = databaseNow(db);
  const { rows } = await (isPostgres(db)
    ? sql<PositionRow>`select pg_current_snapshot()::text as snapshot, ${now} as now`
    : sql<PositionRow>`select cast(coalesce(max(seq), 0) as text) as snapshot, ${now} as now
        from change_log`
  ).execute(db);
  return positionOf(rows[0]);
}

/** Reads what was committed since a position; returns it with the position after it. */
export async function readChanges(
  { db }: Pick<Store, "db">,
  since: ChangePosition,
): Promise<{ readonly position: ChangePosition; readonly read: ChangesRead }> {
  const { rows } = await (isPostgres(db) ? newInServer(db, since) : newInFile(db, since));
  const [row] = rows;
  const position = positionOf(row);
  const changes = parseChanges(row?.changes);
  const isTooMuch =
    row?.rewound === true ||
    changes.length > MAX_CHANGES ||
    position.databaseMs - since.databaseMs > SAFE_MS;
  return { position, read: isTooMuch ? { kind: "all" } : { kind: "some", changes } };
}

interface PositionRow {
  readonly snapshot: string;
  readonly now: bigint;
}

interface ChangesRow extends PositionRow {
  /** The server knows less than it did: it was restored, or a replica took over. */
  readonly rewound: boolean;
  readonly changes: unknown;
}

/** One statement, so that the rows and the snapshot are of one moment. */
function newInServer(db: Kysely<Tables>, { snapshot }: ChangePosition) {
  const before = sql`cast(${snapshot} as pg_snapshot)`;
  return sql<ChangesRow>`select pg_current_snapshot()::text as snapshot, ${databaseNow(db)} as now,
    pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax(${before}) as rewound,
    (select coalesce(json_agg(json_build_array(topic, ref) order by seq), '[]')
      from (select seq, topic, ref from change_log
        where xid >= pg_snapshot_xmin(${before}) and not pg_visible_in_snapshot(xid, ${before})
          -- Restored rows may have numbers that this server has not given out yet.
          and xid < pg_snapshot_xmax(pg_current_snapshot())
        order by seq limit ${sql.lit(MAX_CHANGES + 1)}) as new_change) as changes`.execute(db);
}

/** An embedded store writes one transaction after the other: their numbers are their order. */
function newInFile(db: Kysely<Tables>, { snapshot }: ChangePosition) {
  return sql<ChangesRow>`select cast(coalesce(max(seq), ${snapshot}) as text) as snapshot,
    ${databaseNow(db)} as now, false as rewound,
    coalesce(json_group_array(json_array(topic, ref)) filter (where seq is not null), '[]')
      as changes
    from (select seq, topic, ref from change_log where seq > cast(${snapshot} as integer)
      order by seq limit ${sql.lit(MAX_CHANGES + 1)})`.execute(db);
}

function positionOf(row: PositionRow | undefined): ChangePosition {
  if (row === undefined) throw new Error("the store did not say where its changes stand");
  return { snapshot: row.snapshot, databaseMs: Number(row.now) };
}

/** What the statements above built, as text in an embedded store. */
function parseChanges(value: unknown): readonly Change[] {
  const list: unknown = typeof value === "string" ? JSON.parse(value) : value;
  // A topic of a later version is followed by nobody.
  return ((list ?? []) as readonly (readonly [ChangeTopic, string])[]).map(([topic, ref]) => ({
    topic,
    ref,
  }));
}
