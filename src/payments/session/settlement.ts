// Pays what was spent of a channel to us: while it goes on, or at its end, when the rest returns to
// its payer. A channel ends at the payer's request, or because the payer has asked the chain for
// the deposit. The amount of an end is fixed in the store before anything is signed for it, and
// nothing is charged after that.
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { pause } from "../../runtime.ts";
import { ChainFailure } from "../rails/chain.ts";
import { type WrittenTransaction, writtenOf } from "./chain/transaction-record.ts";
import { refresh } from "./chain-sync.ts";
import { collectable, greaterOf, highestOf, type Voucher } from "./channel.ts";
import type { SessionChannel } from "./channel-record.ts";
import { confirmWithin } from "./confirmation.ts";
import type { Hex, SessionPayload } from "./descriptor.ts";
import type { LiveChannel } from "./live-channels.ts";
import { chainDown, invalid, pending, type Refused, refused, snapshotOf } from "./refusals.ts";
import type { SessionRail } from "./session-rail.ts";
import type { Snapshot } from "./terms.ts";
import { checkVoucher } from "./voucher-acceptor.ts";

/** A channel that is closed. */
export interface Closed {
  readonly kind: "closed";
  /** The closing transaction. */
  readonly hash: Hex;
  readonly spentUnits: bigint;
}

/** A payer's request to close a channel. */
export interface ChannelClosing {
  readonly payload: Extract<SessionPayload, { readonly signature: Hex }>;
  /** True = its challenge has expired. */
  readonly expired: boolean;
}

/** Closes a channel at its payer's request; a repeated request gets the same result. */
export async function closeForPayer(
  parts: SessionRail,
  live: LiveChannel,
  { payload, expired }: ChannelClosing,
): Promise<Closed | Refused> {
  const wrong = await checkVoucher(parts, live, payload);
  if (wrong !== null) return wrong;
  if (live.record.state === "open") {
    if (expired)
      return invalid(
        "payment-expired",
        "The challenge is over: answer a challenge of this response.",
        snapshotOf(live, 0n),
      );
    if (!(await refresh(parts, live, 0))) return chainDown();
  }
  try {
    if (live.record.state === "open" && !(await becomesIdle(parts, live)))
      return refused(stillBusy(parts.waitMs));
    const { id, state, spent } = live.record;
    if (state === "open" && payload.units < spent) {
      const reason =
        `The voucher promises ${payload.units} base units, and ${spent} were spent: sign one for ` +
        "that.";
      return invalid("session/insufficient-balance", reason, reminderOf(live));
    }
    const transaction =
      state === "closed" || state === "failed"
        ? null
        : await beginClose(parts, id).catch(asUnreachable);
    if (transaction === "unreachable") return pending(WHAT);
    return await outcome(parts, id, transaction);
  } finally {
    live.ending = false;
  }
}

/** Signs a settlement of what was spent and records it; null = the chain would not carry it out. */
export async function beginSettle(
  { settler, store, channels, transactions, runtime }: SessionRail,
  channel: SessionChannel,
): Promise<WrittenTransaction | null> {
  const voucher = collectable(channel);
  if (voucher === null) return null;
  const signed = await settler.sign({ kind: "settle", descriptor: channel.descriptor, voucher });
  if (signed.kind === "node_error") return null;
  const transaction = writtenOf(channel.id, "settle", { ...signed, units: voucher.units });
  return store.transaction(async (tx) => {
    const now = await channels.lock(tx, channel.id);
    const open = await transactions.open(tx, channel.id);
    if (
      now?.state !== "open" ||
      open.some((transaction) => transaction.kind === "settle" || transaction.kind === "close")
    )
      return null;
    return (await transactions.insert(tx, transaction, runtime.wallMs())) ? transaction : null;
  });
}

/**
 * Fixes the amount of a close and signs its transaction; null = the chain would not carry it out,
 * or another process has done so. Throws `ChainFailure` while the chain is not reached.
 */
export async function beginClose(parts: SessionRail, id: Hex): Promise<WrittenTransaction | null> {
  const { store, channels, transactions, settler, runtime, live } = parts;
  const channel = await store.transaction(async (tx) => {
    const channel = await channels.lock(tx, id);
    if (channel?.state === "open")
      await channels.write(tx, id, { state: "closing", lookAtMs: runtime.wallMs() });
    return channel?.state === "open" ? { ...channel, state: "closing" as const } : channel;
  });
  if (channel?.state !== "closing") return null;
  live.note(channel);
  const there = (await transactions.open(store.db, id)).find(
    (transaction) => transaction.kind === "close",
  );
  if (there !== undefined) return there;
  const units = greaterOf(channel.spent, channel.settled);
  // An earlier transaction has failed: this one has the same amount.
  const signed = await settler.sign({
    kind: "close",
    descriptor: channel.descriptor,
    voucher: voucherFor(channel, units),
    units,
  });
  if (signed.kind === "node_error") return null;
  const transaction = writtenOf(id, "close", { ...signed, units });
  return store.transaction(async (tx) => {
    // One at a time: of two for the same amount, one would fail.
    await channels.lock(tx, id);
    const other = (await transactions.open(tx, id)).find(
      (transaction) => transaction.kind === "close",
    );
    if (other !== undefined) return other;
    await transactions.insert(tx, transaction, runtime.wallMs());
    return transaction;
  });
}

/**
 * A voucher of at least `units`, for an amount beyond what was settled before; null = there is
 * none.
 */
function voucherFor(channel: SessionChannel, units: bigint): Voucher | null {
  if (units <= channel.settled) return null;
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
  parts: SessionRail,
  id: Hex,
  transaction: WrittenTransaction | null,
): Promise<Closed | Refused> {
  const { transactions, channels, store } = parts;
  // A failed transaction is followed by another one.
  if (transaction !== null && (await confirmWithin(parts, transaction)).kind !== "done")
    return pending(WHAT);
  const channel = await channels.read(store.db, id);
  const last = await transactions.last(store.db, id, "close");
  if (channel?.state === "closed" && last?.state === "done")
    return { kind: "closed", hash: last.hash, spentUnits: channel.spent };
  return channel?.state === "closing"
    ? pending(WHAT)
    : invalid("session/channel-finalized", "The channel was closed, and not by us.");
}

function stillBusy(retryAfterMs: number): Fault {
  return fault("unavailable", "calls on this channel are still under way", { retryAfterMs });
}

function reminderOf(live: LiveChannel): Snapshot | null {
  live.ending = false;
  return snapshotOf(live, 0n);
}

function asUnreachable(error: unknown): "unreachable" {
  if (error instanceof ChainFailure) return "unreachable";
  throw error;
}

const IDLE_PAUSE_MS = 50;

/**
 * Stops accepting calls in this process, and waits for those under way in any; false = they take
 * too long, and the channel goes on.
 */
async function becomesIdle(parts: SessionRail, live: LiveChannel): Promise<boolean> {
  const { runtime, waitMs } = parts;
  const untilMs = runtime.now() + waitMs;
  live.ending = true;
  while (!(await isIdle(parts, live.record.id))) {
    if (runtime.now() >= untilMs) return false;
    await pause(runtime, IDLE_PAUSE_MS);
  }
  return true;
}

/** Whether no process has calls of a channel under way. */
export function isIdle({ writer }: SessionRail, id: Hex): Promise<boolean> {
  return writer.run(id, async ({ holds }) => holds.length === 0);
}
