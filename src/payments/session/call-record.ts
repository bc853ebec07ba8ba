// The charged calls of channels in the store: the newest of each channel are kept for a time, so
// that a caller who lost an answer gets it again and pays once. Knows no channel's money.
import type { Tx } from "../../shared/ledger/ledger.ts";
import type { Store } from "../../shared/store/store.ts";
import type { SessionCallTable } from "../../shared/store/tables-payments.ts";
import { wholeMs } from "./channel.ts";

/** A call that was charged. */
export type RecordedCall = Omit<SessionCallTable, "reruns" | "created_at">;

/** Identifies a call: equal in voucher, request, and the challenge that the voucher answers. */
export type CallKey = Pick<
  RecordedCall,
  "channel_id" | "voucher_units" | "fingerprint" | "challenge_id"
>;

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
  const created_at = wholeMs(atMs);
  return tx
    .insertInto("session_call")
    .values(calls.map((call) => ({ ...call, reruns: 0n, created_at })));
}

/** Deletes old calls of a channel, from time to time. */
export async function deleteOldCalls(
  tx: Tx,
  { channel_id, position }: Pick<RecordedCall, "channel_id" | "position">,
): Promise<void> {
  if (position % KEPT_CALLS !== 0n) return;
  await tx
    .deleteFrom("session_call")
    .where("channel_id", "=", channel_id)
    .where("position", "<=", position - KEPT_CALLS)
    .execute();
}

/** The newest kept call of a voucher and a request; null = there is none. */
export async function findCall(
  db: Pick<Store["db"], "selectFrom">,
  key: Omit<CallKey, "challenge_id">,
): Promise<RecordedCall | null> {
  return (await callsOf(db, key).executeTakeFirst()) ?? null;
}

/** Whether the very same request was charged. */
export async function isCharged(tx: Tx, key: CallKey): Promise<boolean> {
  const same = callsOf(tx, key).where("challenge_id", "=", key.challenge_id);
  return (await same.executeTakeFirst()) !== undefined;
}

function callsOf(
  db: Pick<Store["db"], "selectFrom">,
  { channel_id, voucher_units, fingerprint }: Omit<CallKey, "challenge_id">,
) {
  return db
    .selectFrom("session_call")
    .selectAll()
    .where("channel_id", "=", channel_id)
    .where("voucher_units", "=", voucher_units)
    .where("fingerprint", "=", fingerprint)
    .orderBy("position", "desc")
    .limit(1);
}

/** Uses one of a call's free repetitions; false = there is none left. */
export async function takeRerun(
  tx: Tx,
  { channel_id, position }: Pick<RecordedCall, "channel_id" | "position">,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("session_call")
    .set((columns) => ({ reruns: columns("reruns", "+", 1n) }))
    .where("channel_id", "=", channel_id)
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
      .where("created_at", "<", wholeMs(beforeMs))
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
