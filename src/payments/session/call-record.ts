// The charged calls of channels in the store: the newest of each channel are kept for a time, so
// that a caller who lost an answer gets it again and pays once. Knows no channel's money.
import type { Tx } from "../../shared/ledger/ledger.ts";
import type { Store } from "../../shared/store/store.ts";
import type { SessionCallTable } from "../../shared/store/tables-payments.ts";
import { type Hex, parseHex } from "./descriptor.ts";

/** Identifies a call: equal in voucher, request, and the challenge that the voucher answers. */
export interface CallKey {
  readonly channelId: Hex;
  readonly voucherUnits: bigint;
  readonly fingerprint: string;
  readonly challengeId: string;
}

/** A call that was charged. */
export interface RecordedCall extends CallKey {
  /** Number of the call within its channel. */
  readonly position: bigint;
  readonly chargedUnits: bigint;
  readonly acceptedUnits: bigint;
  readonly spentUnits: bigint;
  readonly cu: number;
  readonly status: number;
  /** The answer; null = it was too long to keep, or its caller left before there was one. */
  readonly body: string | null;
}

/** Answers up to this many bytes are kept. */
export const MAX_KEPT_BYTES = 65_536;

/**
 * Kept calls of one channel: at least as many as may be in flight at one time, at most twice as
 * many.
 */
const KEPT_CALLS = 32n;
/** How often a call whose answer was not kept is repeated for free. */
const MAX_RERUNS = 1n;
const DELETED_AT_ONCE = 500;

/** The statement that inserts charged calls; at least one. */
export function callInsertion(tx: Tx, calls: readonly RecordedCall[], atMs: number) {
  return tx.insertInto("session_call").values(calls.map((call) => rowOf(call, atMs)));
}

/** Deletes old calls of a channel, from time to time. */
export async function deleteOldCalls(
  tx: Tx,
  { channelId, position }: Pick<RecordedCall, "channelId" | "position">,
): Promise<void> {
  if (position % KEPT_CALLS !== 0n) return;
  await tx
    .deleteFrom("session_call")
    .where("channel_id", "=", channelId)
    .where("position", "<=", position - KEPT_CALLS)
    .execute();
}

/** The newest kept call of a voucher and a request; null = there is none. */
export async function findCall(
  db: Pick<Store["db"], "selectFrom">,
  { channelId, voucherUnits, fingerprint }: Omit<CallKey, "challengeId">,
): Promise<RecordedCall | null> {
  const row = await db
    .selectFrom("session_call")
    .selectAll()
    .where("channel_id", "=", channelId)
    .where("voucher_units", "=", voucherUnits)
    .where("fingerprint", "=", fingerprint)
    .orderBy("position", "desc")
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? null : parseCall(row);
}

/** Whether the very same request was charged. */
export async function isCharged(
  tx: Tx,
  { channelId, voucherUnits, fingerprint, challengeId }: CallKey,
): Promise<boolean> {
  const row = await tx
    .selectFrom("session_call")
    .select("position")
    .where("channel_id", "=", channelId)
    .where("voucher_units", "=", voucherUnits)
    .where("fingerprint", "=", fingerprint)
    .where("challenge_id", "=", challengeId)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Uses one of a call's free repetitions; false = there is none left. */
export async function takeRerun(
  tx: Tx,
  { channelId, position }: Pick<RecordedCall, "channelId" | "position">,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("session_call")
    .set((columns) => ({ reruns: columns("reruns", "+", 1n) }))
    .where("channel_id", "=", channelId)
    .where("position", "=", position)
    .where("reruns", "<", MAX_RERUNS)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Deletes calls from before `beforeMs`, a bounded number; true = there may be more. */
export async function forgetCalls(
  { transaction }: Pick<Store, "transaction">,
  beforeMs: number,
): Promise<boolean> {
  return transaction(async (tx) => {
    const old = await tx
      .selectFrom("session_call")
      .select(["channel_id", "position"])
      .where("created_at", "<", BigInt(Math.floor(beforeMs)))
      .limit(DELETED_AT_ONCE)
      .execute();
    for (const { channel_id, position } of old) {
      await tx
        .deleteFrom("session_call")
        .where("channel_id", "=", channel_id)
        .where("position", "=", position)
        .execute();
    }
    return old.length === DELETED_AT_ONCE;
  });
}

function rowOf(call: RecordedCall, atMs: number): SessionCallTable {
  return {
    channel_id: call.channelId,
    position: call.position,
    voucher_units: call.voucherUnits,
    fingerprint: call.fingerprint,
    challenge_id: call.challengeId,
    charged_units: call.chargedUnits,
    accepted_units: call.acceptedUnits,
    spent_units: call.spentUnits,
    cu: BigInt(call.cu),
    status: BigInt(call.status),
    body: call.body,
    reruns: 0n,
    created_at: BigInt(Math.floor(atMs)),
  };
}

function parseCall(row: SessionCallTable): RecordedCall {
  return {
    channelId: parseHex(row.channel_id),
    position: row.position,
    voucherUnits: row.voucher_units,
    fingerprint: row.fingerprint,
    challengeId: row.challenge_id,
    chargedUnits: row.charged_units,
    acceptedUnits: row.accepted_units,
    spentUnits: row.spent_units,
    cu: Number(row.cu),
    status: Number(row.status),
    body: row.body,
  };
}
