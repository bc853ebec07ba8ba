// Rows of the store that say which process takes the calls of a channel, and what calls of several
// processes hold of it. Decides nothing; its callers have locked the channel.
import type { Epoch } from "../../cluster/node-rows.ts";
import type { Tx } from "../../ledger/ledger.ts";
import { databaseNow } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import type { CallKey } from "./call-record.ts";
import { type Hex, parseHex } from "./descriptor.ts";

/** A process, and how often it has shown that it lives. */
export interface ProcessSeen extends Epoch {
  /** Null = it has ended, or is taken for dead. */
  readonly flushSeq: bigint | null;
}

/** The process that takes the calls of a channel. */
export interface ChannelOwner extends ProcessSeen {
  /** True = it holds amounts in its memory, and no other process takes calls. */
  readonly isExclusive: boolean;
  /** Since when no other process took a call, on the clock of the database. */
  readonly sinceMs: number;
  /** True = another process waits until it is exclusive no more. */
  readonly isWanted: boolean;
}

/** What is written of an owner. */
export type OwnerState = Pick<ChannelOwner, "isExclusive" | "sinceMs" | "isWanted">;

/** The price of a call under way in some process. */
export interface RecordedHold extends ProcessSeen {
  readonly units: bigint;
  readonly call: Omit<CallKey, "channelId">;
}

/** Which hold: numbers are unique within an epoch of a process. */
export interface HoldKey {
  readonly channelId: Hex;
  readonly epoch: Epoch;
  readonly number: bigint;
}

/** Who takes the calls of a channel; `owner` null = nobody has yet. */
export interface OwnerRead {
  readonly owner: ChannelOwner | null;
  /** The clock of the database. */
  readonly nowMs: number;
}

/** Holds of one channel that are read: more than may be under way at one time. */
const MAX_HOLDS = 10_000;
const MAX_WANTED = 1_000;
const REMOVED_AT_ONCE = 500;

/** Reads who takes the calls of a channel. */
export async function readOwner(tx: Tx, channelId: Hex): Promise<OwnerRead> {
  const now = databaseNow(tx);
  const row = await tx
    .selectFrom("session_channel")
    .leftJoin("session_owner", "session_owner.channel_id", "session_channel.id")
    .leftJoin("node", (join) =>
      join
        .onRef("node.id", "=", "session_owner.node_id")
        .onRef("node.epoch", "=", "session_owner.epoch")
        .on("node.state", "=", "alive"),
    )
    .select([
      "session_owner.node_id",
      "session_owner.epoch",
      "session_owner.is_exclusive",
      "session_owner.since",
      "session_owner.is_wanted",
      "node.flush_seq",
    ])
    .select(now.as("now"))
    .where("session_channel.id", "=", channelId)
    .executeTakeFirstOrThrow();
  const nowMs = Number(row.now);
  if (row.node_id === null || row.epoch === null) return { owner: null, nowMs };
  return {
    owner: {
      nodeId: row.node_id,
      epoch: row.epoch,
      flushSeq: row.flush_seq,
      isExclusive: row.is_exclusive === 1n,
      sinceMs: Number(row.since ?? 0n),
      isWanted: row.is_wanted === 1n,
    },
    nowMs,
  };
}

/** Makes a process the owner of a channel, or changes what is written of it. */
export async function writeOwner(
  tx: Tx,
  channelId: Hex,
  { nodeId, epoch, ...state }: Epoch & OwnerState,
): Promise<void> {
  const columns = {
    node_id: nodeId,
    epoch,
    is_exclusive: state.isExclusive ? 1n : 0n,
    since: BigInt(state.sinceMs),
    is_wanted: state.isWanted ? 1n : 0n,
  };
  await tx
    .insertInto("session_owner")
    .values({ channel_id: channelId, ...columns })
    .onConflict((conflict) => conflict.column("channel_id").doUpdateSet(columns))
    .execute();
}

/** The channels of a process that other processes wait for, a bounded number. */
export async function wantedOf(
  { db }: Pick<Store, "db">,
  { nodeId, epoch }: Epoch,
): Promise<readonly Hex[]> {
  const rows = await db
    .selectFrom("session_owner")
    .select("channel_id")
    .where("node_id", "=", nodeId)
    .where("epoch", "=", epoch)
    .where("is_wanted", "=", 1n)
    .limit(MAX_WANTED)
    .execute();
  return rows.map((row) => parseHex(row.channel_id));
}

/** What processes hold of a channel. */
export async function readHolds(tx: Tx, channelId: Hex): Promise<readonly RecordedHold[]> {
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
    nodeId: row.node_id,
    epoch: row.epoch,
    flushSeq: row.flush_seq,
    units: row.units,
    call: {
      voucherUnits: row.voucher_units,
      fingerprint: row.fingerprint,
      challengeId: row.challenge_id,
    },
  }));
}

/** Writes holds; one that is written already stays. */
export async function insertHolds(
  tx: Tx,
  channelId: Hex,
  holds: readonly (Pick<RecordedHold, "units" | "call"> & Pick<HoldKey, "epoch" | "number">)[],
): Promise<void> {
  if (holds.length === 0) return;
  const rows = holds.map(({ epoch, number, units, call }) => ({
    channel_id: channelId,
    node_id: epoch.nodeId,
    epoch: epoch.epoch,
    number,
    units,
    voucher_units: call.voucherUnits,
    fingerprint: call.fingerprint,
    challenge_id: call.challengeId,
    created_at: databaseNow(tx),
  }));
  await tx
    .insertInto("session_hold")
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Removes a hold. */
export async function deleteHold(
  db: Pick<Store["db"], "deleteFrom">,
  { channelId, epoch: { nodeId, epoch }, number }: HoldKey,
): Promise<void> {
  await db
    .deleteFrom("session_hold")
    .where("channel_id", "=", channelId)
    .where("node_id", "=", nodeId)
    .where("epoch", "=", epoch)
    .where("number", "=", number)
    .execute();
}

/** Removes what a process holds of a channel. */
export async function deleteHoldsOf(
  tx: Tx,
  channelId: Hex,
  { nodeId, epoch }: Epoch,
): Promise<void> {
  await tx
    .deleteFrom("session_hold")
    .where("channel_id", "=", channelId)
    .where("node_id", "=", nodeId)
    .where("epoch", "=", epoch)
    .execute();
}

/** Removes holds that were written longer ago than any call lasts; true = there may be more. */
export async function forgetHolds({ db }: Pick<Store, "db">, afterMs: number): Promise<boolean> {
  const old = await db
    .selectFrom("session_hold")
    .select(["channel_id", "node_id", "epoch", "number"])
    .where("created_at", "<", (eb) => eb(databaseNow(db), "-", BigInt(afterMs)))
    .limit(REMOVED_AT_ONCE)
    .execute();
  for (const { channel_id, node_id, epoch, number } of old)
    await deleteHold(db, {
      channelId: parseHex(channel_id),
      epoch: { nodeId: node_id, epoch },
      number,
    });
  return old.length === REMOVED_AT_ONCE;
}
