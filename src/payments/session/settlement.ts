// Pays what was spent of a channel to us: while it goes on, or at its end, when the rest returns to
// its payer. A channel ends at the payer's request, or because the payer has asked the chain for
// the deposit. The amount of an end is fixed in the store before anything is signed for it, and
// nothing is charged after that.
import { greaterOf } from "../../core/billing/payment.ts";
import { fault } from "../../core/faults/rpc-fault.ts";
import { pause } from "../../runtime.ts";
import { unlessUnreachable } from "../rails/chain.ts";
import { type WrittenTransaction, writtenOf } from "./chain/transaction-record.ts";
import { refresh } from "./chain-sync.ts";
import { collectable, highestOf, type Voucher, wholeMs } from "./channel.ts";
import type { ChannelChanged } from "./channel-funding.ts";
import type { SessionChannel } from "./channel-record.ts";
import { confirmWithin } from "./confirmation.ts";
import type { Hex } from "./descriptor.ts";
import type { LiveChannel } from "./live-channels.ts";
import type { VoucherCredential } from "./paid-calls.ts";
import { chainDown, invalid, pending, type Refused, refused, snapshotOf } from "./refusals.ts";
import { changeChannel, type SessionRail } from "./session-rail.ts";
import { checkVoucher } from "./voucher-acceptor.ts";

/** Closes a channel at its payer's request; a repeated request gets the same result. */
export async function closeForPayer(
  rail: SessionRail,
  live: LiveChannel,
  { payload, expired }: Pick<VoucherCredential, "payload" | "expired">,
): Promise<ChannelChanged | Refused> {
  const wrong = await checkVoucher(rail, live, payload);
  if (wrong !== null) return wrong;
  if (live.record.state === "open") {
    if (expired)
      return invalid(
        "payment-expired",
        "The challenge is over: answer a challenge of this response.",
        snapshotOf(live, 0n),
      );
    if (!(await refresh(rail, live, 0))) return chainDown();
  }
  try {
    if (live.record.state === "open" && !(await becomesIdle(rail, live)))
      return refused(
        fault("unavailable", "calls on this channel are still under way", {
          retryAfterMs: rail.waitMs,
        }),
      );
    return await closeIdle(rail, live, payload.units);
  } finally {
    live.ending = false;
  }
}

/** Closes a channel without calls under way for a payer who has promised `units`. */
async function closeIdle(
  rail: SessionRail,
  live: LiveChannel,
  units: bigint,
): Promise<ChannelChanged | Refused> {
  const { id, state, spent_units: spent } = live.record;
  if (state === "open" && units < spent) {
    const promised = `The voucher promises ${units} base units`;
    const reason = `${promised}, and ${spent} were spent: sign one for that.`;
    return invalid(
      "session/insufficient-balance",
      reason,
      snapshotOf({ ...live, ending: false }, 0n),
    );
  }
  if (state === "closed" || state === "failed") return outcome(rail, id, null);
  const transaction = await unlessUnreachable(beginClose(rail, id));
  return transaction === "unreachable" ? pending(WHAT) : outcome(rail, id, transaction);
}

/** Signs a settlement of what was spent and records it; null = the chain would not carry it out. */
export async function beginSettle(
  { settler, store, channels, transactions, runtime }: SessionRail,
  { id, descriptor, ...money }: SessionChannel,
): Promise<WrittenTransaction | null> {
  const voucher = collectable(money);
  if (voucher === null) return null;
  const { units } = voucher;
  const signed = await settler.sign({ kind: "settle", descriptor, voucher, units });
  if (signed === null) return null;
  const transaction = writtenOf(id, "settle", signed);
  return store.transaction(async (tx) => {
    const now = await channels.lock(tx, id);
    const open = await transactions.open(tx, id);
    if (now?.state !== "open" || open.some(({ kind }) => kind === "settle" || kind === "close"))
      return null;
    return (await transactions.insert(tx, transaction, runtime.wallMs())) ? transaction : null;
  });
}

/**
 * Fixes the amount of a close and signs its transaction; null = the chain would not carry it out,
 * or another process has done so. Throws `ChainFailure` while the chain is not reached.
 */
export async function beginClose(rail: SessionRail, id: Hex): Promise<WrittenTransaction | null> {
  const { store, channels, transactions, settler, runtime } = rail;
  const channel = await changeChannel(rail, id, async (tx, channel) =>
    channel.state === "open"
      ? channels.change(tx, channel, { state: "closing", look_at: wholeMs(runtime.wallMs()) })
      : channel,
  );
  if (channel?.state !== "closing") return null;
  const openClose = async (db: Parameters<typeof transactions.open>[0]) =>
    (await transactions.open(db, id)).find(({ kind }) => kind === "close");
  const there = await openClose(store.db);
  if (there !== undefined) return there;
  const units = greaterOf(channel.spent_units, channel.settled_units);
  // An earlier transaction has failed: this one has the same amount.
  const { descriptor } = channel;
  const voucher = voucherFor(channel, units);
  const signed = await settler.sign({ kind: "close", descriptor, voucher, units });
  if (signed === null) return null;
  const transaction = writtenOf(id, "close", signed);
  return store.transaction(async (tx) => {
    // One at a time: of two for the same amount, one would fail.
    await channels.lock(tx, id);
    const other = await openClose(tx);
    if (other === undefined) await transactions.insert(tx, transaction, runtime.wallMs());
    return other ?? transaction;
  });
}

/**
 * A voucher of at least `units`, for an amount beyond what was settled before; null = there is
 * none.
 */
function voucherFor(channel: SessionChannel, units: bigint): Voucher | null {
  if (units <= channel.settled_units) return null;
  const highest = highestOf(channel);
  if (highest === null || highest.units < units)
    throw new Error(`channel ${channel.id} has no voucher for what was spent of it`);
  return highest;
}

const WHAT = "the transaction that closes the channel";

/**
 * The result of a closing; `transaction` null = the channel was closed before, or we cannot close
 * it.
 */
async function outcome(
  rail: SessionRail,
  id: Hex,
  transaction: WrittenTransaction | null,
): Promise<ChannelChanged | Refused> {
  const { transactions, channels, store } = rail;
  // A failed transaction is followed by another one.
  if (transaction !== null && (await confirmWithin(rail, transaction)).kind !== "done")
    return pending(WHAT);
  const channel = await channels.read(store.db, id);
  const last = await transactions.last(store.db, id, "close");
  if (channel !== null) rail.live.note(channel);
  if (channel?.state === "closed" && last?.state === "done")
    return { kind: "changed", hash: last.tx_hash, spentUnits: channel.spent_units };
  return channel?.state === "closing"
    ? pending(WHAT)
    : invalid("session/channel-finalized", "The channel was closed, and not by us.");
}

const IDLE_PAUSE_MS = 50;

/**
 * Stops accepting calls in this process, and waits for those under way in any; false = they take
 * too long, and the channel goes on.
 */
async function becomesIdle(rail: SessionRail, live: LiveChannel): Promise<boolean> {
  const { runtime, waitMs } = rail;
  const untilMs = runtime.now() + waitMs;
  live.ending = true;
  while (!(await isIdle(rail, live.record.id))) {
    if (runtime.now() >= untilMs) return false;
    await pause(runtime, IDLE_PAUSE_MS);
  }
  return true;
}

/** Whether no process has calls of a channel under way. */
export function isIdle({ writer }: SessionRail, id: Hex): Promise<boolean> {
  return writer.run(id, async ({ holds }) => holds.length === 0);
}
