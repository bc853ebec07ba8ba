// The prices of calls under way, as rows beside their channel, so that every process sees what the
// others hold. Read and written under the lock of the channel. What a process held that has ended
// holds nothing any more.
import type { Epoch, Presence } from "../../cluster/node-rows.ts";
import type { Tx } from "../../ledger/ledger.ts";
import type { Runtime } from "../../runtime.ts";
import { databaseNow } from "../../store/engine.ts";
import type { GroupCommit } from "../../store/group-commit.ts";
import type { Store } from "../../store/store.ts";
import type { CallKey } from "./call-record.ts";
import type { Hex } from "./descriptor.ts";

/** The price of a call under way. */
export interface CallHold extends CallKey, Epoch {
  /** Unique within an epoch of its process. */
  readonly number: bigint;
  readonly units: bigint;
}

/** What calls under way hold of a channel. */
export interface HeldCalls {
  readonly calls: readonly CallHold[];
  /** The sum. */
  readonly units: bigint;
  /** The part of it whose processes may have ended: they were not seen to live yet. */
  readonly doubtfulUnits: bigint;
}

/** A channel without calls under way. */
const NOTHING_HELD: HeldCalls = { calls: [], units: 0n, doubtfulUnits: 0n };

/** This process among those on one store. */
export interface SessionProcess {
  /** Null = it is not among the living right now. */
  readonly presence: () => Presence | null;
  /** Between two signs of life of a process. */
  readonly heartbeatMs: number;
}

export interface HoldsParts extends SessionProcess {
  readonly runtime: Pick<Runtime, "now">;
  readonly writer: GroupCommit;
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

/** A hold, and how often its process has shown that it lives; null = it has ended. */
type ReadHold = CallHold & { readonly flushSeq: bigint | null };

/** The holds of channels, seen by one process. */
export class Holds {
  readonly #parts: HoldsParts;
  readonly #seen = new Map<string, Observation>();
  /** Own holds whose calls have ended, and whose rows may still be there. */
  readonly #ended = new Set<CallHold>();
  #count = 0n;

  constructor(parts: HoldsParts) {
    this.#parts = parts;
  }

  /** What is held of a channel; removes what processes held that have ended. */
  async read(tx: Tx, channelId: Hex): Promise<HeldCalls> {
    const all = await readHolds(tx, channelId);
    if (all.length === 0) return NOTHING_HELD;
    const me = this.#parts.presence()?.epoch;
    const isOwn = (hold: Epoch): boolean => me !== undefined && isSame(hold, me);
    const calls = all.filter((hold) => isOwn(hold) || this.#lives(hold));
    for (const hold of all) if (!calls.includes(hold)) await deleteHold(tx, hold);
    const doubtful = calls.filter(
      (hold) => !isOwn(hold) && this.#seen.get(keyOf(hold))?.isAlive !== true,
    );
    return { calls, units: sumOf(calls), doubtfulUnits: sumOf(doubtful) };
  }

  /** Holds the price of a call; null = others would take this process for ended. */
  async add(
    tx: Tx,
    { units, ...call }: CallKey & Pick<CallHold, "units">,
  ): Promise<CallHold | null> {
    const presence = this.#parts.presence();
    if (presence === null) return null;
    const hold = { ...call, ...presence.epoch, number: ++this.#count, units };
    await insertHold(tx, hold);
    return hold;
  }

  /** Removes the hold of a call that is charged. */
  remove(tx: Tx, hold: CallHold): Promise<void> {
    return deleteHold(tx, hold);
  }

  /** Removes the hold of a call that has ended; a failure is repeated later. */
  async release(hold: CallHold): Promise<void> {
    this.#ended.add(hold);
    try {
      await this.#parts.writer.run(hold.channelId, (tx) => deleteHold(tx, hold));
      this.#ended.delete(hold);
    } catch {
      // The store fails, which others report.
    }
  }

  /** Repeats removals that have failed. */
  async releaseAgain(): Promise<void> {
    await Promise.all([...this.#ended].map((hold) => this.release(hold)));
  }

  /** A process that has not shown for a while that it lives counts as ended. */
  #lives(hold: ReadHold): boolean {
    const { runtime, heartbeatMs } = this.#parts;
    const { flushSeq } = hold;
    if (flushSeq === null) return false;
    const readMs = runtime.now();
    const goneMs = Math.max(LEAST_GONE_MS, GONE_BEATS * heartbeatMs);
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
  for (const { channel_id, node_id, epoch, number } of old)
    await deleteHold(db, { channelId: channel_id, nodeId: node_id, epoch, number });
  return old.length === FORGOTTEN_AT_ONCE;
}

/** The holds of a channel, each with the signs of life of its process. */
async function readHolds(tx: Tx, channelId: Hex): Promise<readonly ReadHold[]> {
  const rows = await tx
    .selectFrom("session_hold")
    .leftJoin("node", (join) =>
      join
        .onRef("node.id", "=", "session_hold.node_id")
        .onRef("node.epoch", "=", "session_hold.epoch")
        .on("node.state", "=", "alive"),
    )
    .select([
      "session_hold.node_id",
      "session_hold.epoch",
      "session_hold.number",
      "session_hold.units",
      "session_hold.voucher_units",
      "session_hold.fingerprint",
      "session_hold.challenge_id",
      "node.flush_seq",
    ])
    .where("session_hold.channel_id", "=", channelId)
    .limit(MAX_HOLDS)
    .execute();
  return rows.map((row) => ({
    channelId,
    nodeId: row.node_id,
    epoch: row.epoch,
    number: row.number,
    units: row.units,
    voucherUnits: row.voucher_units,
    fingerprint: row.fingerprint,
    challengeId: row.challenge_id,
    flushSeq: row.flush_seq,
  }));
}

async function insertHold(tx: Tx, hold: CallHold): Promise<void> {
  await tx
    .insertInto("session_hold")
    .values({
      channel_id: hold.channelId,
      node_id: hold.nodeId,
      epoch: hold.epoch,
      number: hold.number,
      units: hold.units,
      voucher_units: hold.voucherUnits,
      fingerprint: hold.fingerprint,
      challenge_id: hold.challengeId,
      created_at: databaseNow(tx),
    })
    .execute();
}

async function deleteHold(
  db: Pick<Store["db"], "deleteFrom">,
  hold: Epoch & { readonly channelId: string; readonly number: bigint },
): Promise<void> {
  await db
    .deleteFrom("session_hold")
    .where("channel_id", "=", hold.channelId)
    .where("node_id", "=", hold.nodeId)
    .where("epoch", "=", hold.epoch)
    .where("number", "=", hold.number)
    .execute();
}

function sumOf(holds: readonly CallHold[]): bigint {
  return holds.reduce((sum, { units }) => sum + units, 0n);
}

function isSame(a: Epoch, b: Epoch): boolean {
  return a.nodeId === b.nodeId && a.epoch === b.epoch;
}

function keyOf({ nodeId, epoch }: Epoch): string {
  return `${epoch} ${nodeId}`;
}
