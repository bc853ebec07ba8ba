// The rows of nodes in the store: a node joins, shows that it lives, leaves, or is found dead by
// the others. Knows no credit.
import { type SqlBool, sql } from "kysely";
import type { Runtime } from "../../runtime.ts";
import { databaseNow } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import type { NodeIdentity } from "./identity.ts";

/** One start of a node. */
export interface Epoch {
  readonly nodeId: string;
  readonly epoch: bigint;
}

/** The signs of life of this process. */
export interface Presence {
  readonly epoch: Epoch;
  /** When the last one that was written began, on the monotonic clock. */
  readonly heardAtMs: number;
}

/** How often a node has shown that it lives: another reading that differs is a sign of life. */
export interface NodeHeartbeat {
  readonly epoch: bigint;
  readonly flushSeq: bigint;
}

/**
 * What prevents joining under this id. `any`: nothing, since a living row was left behind. A
 * heartbeat: a living row with another heartbeat. Null: any living row.
 */
export type MayReplace = "any" | NodeHeartbeat | null;

/** How a process joins. */
export interface Joining {
  readonly wallMs: number;
  readonly replaces: MayReplace;
  /**
   * Chosen by this process, or by the supervisor for the successive processes of one place, of
   * which one lives at a time: a row with this value belongs to them alone.
   */
  readonly processId: string;
}

const CHANCE = 36 ** 8;

/** What a process is known by in its row. */
export function newProcessId({ wallMs, random }: Pick<Runtime, "wallMs" | "random">): string {
  return `${Math.floor(wallMs()).toString(36)}-${Math.floor(random() * CHANCE).toString(36)}`;
}

/** Starts a new epoch of a node; null = another process lives under this id. */
export async function join(
  store: Store,
  { id, region }: NodeIdentity,
  { wallMs, replaces, processId }: Joining,
): Promise<Epoch | null> {
  const at = BigInt(Math.floor(wallMs));
  const fresh = {
    region,
    state: "alive",
    flush_seq: 0n,
    heartbeat_at: at,
    skew_ms: 0n,
    process_id: processId,
  } as const;
  const row = await store.transaction((tx) =>
    tx
      .insertInto("node")
      // Rows of nodes are removed some time after their end: an epoch of its own also then.
      .values({ id, epoch: at, ...fresh })
      .onConflict((conflict) =>
        conflict
          .column("id")
          .doUpdateSet({ epoch: sql<bigint>`node.epoch + 1`, ...fresh })
          .where(mayReplace(replaces, processId)),
      )
      .returning("epoch")
      .executeTakeFirst(),
  );
  return row === undefined ? null : { nodeId: id, epoch: row.epoch };
}

function mayReplace(replaces: MayReplace, processId: string) {
  if (replaces === "any") return sql<SqlBool>`1 = 1`;
  const isFree = sql`(node.state <> 'alive' or node.process_id = ${processId})`;
  if (replaces === null) return sql<SqlBool>`${isFree}`;
  return sql<SqlBool>`(${isFree} or
    (node.epoch = ${replaces.epoch} and node.flush_seq = ${replaces.flushSeq}))`;
}

/** The heartbeat of a node; null = no process but the given one lives under this id. */
export async function heartbeatOf(
  store: Store,
  id: string,
  processId: string,
): Promise<NodeHeartbeat | null> {
  const row = await store.db
    .selectFrom("node")
    .select(["epoch", "flush_seq"])
    .where("id", "=", id)
    .where("state", "=", "alive")
    .where("process_id", "!=", processId)
    .executeTakeFirst();
  return row === undefined ? null : { epoch: row.epoch, flushSeq: row.flush_seq };
}

/** Shows that a node lives that writes nothing else; false = this epoch is over. */
export async function beat(store: Store, epoch: Epoch, wallMs: number): Promise<boolean> {
  const { numUpdatedRows } = await store.db
    .updateTable("node")
    .set((eb) => ({
      flush_seq: eb("flush_seq", "+", 1n),
      heartbeat_at: BigInt(Math.floor(wallMs)),
    }))
    .where("id", "=", epoch.nodeId)
    .where("epoch", "=", epoch.epoch)
    .where("state", "=", "alive")
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Marks a node as left; what it still holds is taken back by the next sweep. */
export async function leave(store: Store, { nodeId, epoch }: Epoch): Promise<void> {
  await store.db
    .updateTable("node")
    .set({ state: "left" })
    .where("id", "=", nodeId)
    .where("epoch", "=", epoch)
    .execute();
}

/**
 * Marks the rows of processes that have ended as left; what they still hold is taken back by the
 * next sweep.
 */
export async function leaveEnded(
  { db }: Pick<Store, "db">,
  processIds: readonly string[],
): Promise<void> {
  await db
    .updateTable("node")
    .set({ state: "left" })
    .where("process_id", "in", processIds)
    .where("state", "=", "alive")
    .execute();
}

/** The nodes that count as alive, but one. */
export async function othersAlive(
  store: Store,
  nodeId: string,
): Promise<ReadonlyMap<string, NodeHeartbeat>> {
  const rows = await store.db
    .selectFrom("node")
    .select(["id", "epoch", "flush_seq"])
    .where("state", "=", "alive")
    .where("id", "!=", nodeId)
    .execute();
  return new Map(rows.map((row) => [row.id, { epoch: row.epoch, flushSeq: row.flush_seq }]));
}

/** Marks a node as dead, unless it was heard of since it was seen last. */
export async function markDead(
  store: Store,
  nodeId: string,
  { epoch, flushSeq }: NodeHeartbeat,
): Promise<void> {
  await store.db
    .updateTable("node")
    .set({ state: "dead" })
    .where("id", "=", nodeId)
    .where("epoch", "=", epoch)
    .where("flush_seq", "=", flushSeq)
    .where("state", "=", "alive")
    .execute();
}

/** A node as its row tells. */
export interface NodeRow extends NodeHeartbeat {
  readonly id: string;
  readonly region: string;
  readonly state: "alive" | "left" | "dead";
  readonly heartbeatAtMs: number;
  /** Its clock less that of the database. */
  readonly skewMs: number;
}

/** More nodes than this are not looked at. */
const MAX_NODES = 10_000;

/** Reads the clock of the database, and the nodes that live or did in the last `sinceMs`. */
export async function readNodes(
  { db }: Store,
  sinceMs: number,
): Promise<{ readonly databaseMs: number; readonly nodes: readonly NodeRow[] }> {
  const now = databaseNow(db);
  const rows = await db
    .selectFrom("node")
    .selectAll()
    .select(now.as("now"))
    .where((eb) =>
      eb.or([
        eb("state", "=", "alive"),
        sql<SqlBool>`heartbeat_at - skew_ms > ${now} - ${BigInt(sinceMs)}`,
      ]),
    )
    .limit(MAX_NODES)
    .execute();
  return {
    databaseMs: Number(rows[0]?.now ?? 0n),
    nodes: rows.map((row) => ({
      id: row.id,
      region: row.region,
      state: row.state,
      epoch: row.epoch,
      flushSeq: row.flush_seq,
      heartbeatAtMs: Number(row.heartbeat_at),
      skewMs: Number(row.skew_ms),
    })),
  };
}

/** Notes how far the clock of a node is from that of the database. */
export async function noteSkew(store: Store, id: string, skewMs: number): Promise<void> {
  await store.db
    .updateTable("node")
    .set({ skew_ms: BigInt(Math.round(skewMs)) })
    .where("id", "=", id)
    .where("state", "=", "alive")
    .execute();
}
