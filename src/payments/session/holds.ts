// The prices of calls under way, as rows beside their channel, so that every process sees what the
// others hold. Read and written under the lock of the channel. What a process held that has ended
// holds nothing any more.
import { sql } from "kysely";
import type { Runtime } from "../../runtime.ts";
import type { Tx } from "../../shared/ledger/ledger.ts";
import type { Epoch, Presence } from "../../shared/nodes/node-rows.ts";
import { databaseNow } from "../../shared/store/engine.ts";
import type { Store } from "../../shared/store/store.ts";
import type { Hex, SessionHoldTable } from "../../shared/store/tables-payments.ts";

/** The price of a call under way. `number` is unique within an epoch of its process. */
export type CallHold = Omit<SessionHoldTable, "created_at">;

/** What identifies a hold. */
type HoldKey = Pick<CallHold, "channel_id" | "node_id" | "epoch" | "number">;

/** A hold, and how often its process has shown that it lives; null = it has ended. */
export type ReadHold = CallHold & { readonly flush_seq: bigint | null };

/** This process among those on one store. */
export interface SessionProcess {
  /** Null = it is not among the living right now. */
  readonly presence: () => Presence | null;
  /** Between two signs of life of a process. */
  readonly heartbeatMs: number;
}

/** Holds of one channel that are read: more than may be under way at one time. */
const MAX_HOLDS = 10_000;
/** Processes whose signs of life are remembered. */
const MAX_SEEN = 1_000;
/** Signs of life that a process may miss before it counts as ended. */
const GONE_BEATS = 5;
const LEAST_GONE_MS = 5_000;
const FORGOTTEN_AFTER_MS = 86_400_000;
const FORGOTTEN_AT_ONCE = 500;

/** Signs of life of another process. */
interface Observation {
  readonly flushSeq: bigint;
  /** Since when they are the same. */
  readonly sinceMs: number;
  readonly readMs: number;
  /** Whether one came between two readings. */
  readonly isAlive: boolean;
}

/** Which processes live, as one process sees the holds of all. */
export class CallProcesses {
  readonly #runtime: Pick<Runtime, "now">;
  readonly #process: SessionProcess;
  readonly #seen = new Map<string, Observation>();

  constructor(runtime: Pick<Runtime, "now">, process: SessionProcess) {
    this.#runtime = runtime;
    this.#process = process;
  }

  /** Null = others would take this process for ended. */
  get ownEpoch(): Epoch | null {
    return this.#process.presence()?.epoch ?? null;
  }

  /**
   * Whether the process of a hold lives: `doubtful` = it was not seen to live yet. A process
   * without a recent sign of life counts as ended.
   */
  stateOf(hold: ReadHold): "lives" | "doubtful" | "ended" {
    const own = this.ownEpoch;
    if (own !== null && keyOf(hold) === keyOf({ node_id: own.nodeId, epoch: own.epoch }))
      return "lives";
    if (!this.#lives(hold)) return "ended";
    return this.#seen.get(keyOf(hold))?.isAlive === true ? "lives" : "doubtful";
  }

  #lives(hold: ReadHold): boolean {
    const { flush_seq: flushSeq } = hold;
    if (flushSeq === null) return false;
    const readMs = this.#runtime.now();
    const goneMs = Math.max(LEAST_GONE_MS, GONE_BEATS * this.#process.heartbeatMs);
    const before = this.#seen.get(keyOf(hold));
    const isSilent = before?.flushSeq === flushSeq;
    if (before === undefined && this.#seen.size >= MAX_SEEN) this.#seen.clear();
    this.#seen.set(keyOf(hold), {
      flushSeq,
      sinceMs: isSilent ? before.sinceMs : readMs,
      readMs,
      isAlive: isSilent ? before.isAlive : before !== undefined && readMs - before.readMs <= goneMs,
    });
    return !isSilent || readMs - before.sinceMs < goneMs;
  }
}

/** Removes holds that were written longer ago than any call lasts; true = there may be more. */
export async function forgetHolds({ db }: Pick<Store, "db">): Promise<boolean> {
  const old = await db
    .selectFrom("session_hold")
    .select(["channel_id", "node_id", "epoch", "number"])
    .where("created_at", "<", (eb) => eb(databaseNow(db), "-", BigInt(FORGOTTEN_AFTER_MS)))
    .limit(FORGOTTEN_AT_ONCE)
    .execute();
  if (old.length > 0) await holdDeletion(old).execute(db);
  return old.length === FORGOTTEN_AT_ONCE;
}

/** The holds of channels, each with the signs of life of its process. */
export function readHolds(tx: Tx, channelIds: readonly Hex[]): Promise<readonly ReadHold[]> {
  return tx
    .selectFrom("session_hold")
    .leftJoin("node", (join) =>
      join
        .onRef("node.id", "=", "session_hold.node_id")
        .onRef("node.epoch", "=", "session_hold.epoch")
        .on("node.state", "=", "alive"),
    )
    .selectAll("session_hold")
    .select("node.flush_seq")
    .where("session_hold.channel_id", "in", channelIds)
    .limit(MAX_HOLDS * channelIds.length)
    .execute();
}

/** The statement that inserts holds; at least one. */
export function holdInsertion(tx: Tx, holds: readonly CallHold[]) {
  const rows = holds.map((hold) => ({ ...hold, created_at: databaseNow(tx) }));
  return tx.insertInto("session_hold").values(rows);
}

/** The statement that deletes holds; at least one. */
export function holdDeletion(holds: readonly HoldKey[]) {
  const names = holds.map(
    ({ channel_id, node_id, epoch, number }) =>
      sql`(cast(${channel_id} as text), cast(${node_id} as text), cast(${epoch} as bigint),
        cast(${number} as bigint))`,
  );
  return sql`delete from session_hold
    where (channel_id, node_id, epoch, number) in (values ${sql.join(names)})`;
}

function keyOf({ node_id, epoch }: Pick<CallHold, "node_id" | "epoch">): string {
  return `${epoch} ${node_id}`;
}
