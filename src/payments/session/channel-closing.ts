// The end of a channel: what was spent is paid to us, the rest returns to its payer. At the payer's
// request, or because the payer has asked the chain for the deposit. The amount is fixed in the
// store before anything is signed for it, and nothing is charged after that.
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { ChainFailure } from "../rails/chain.ts";
import { refresh } from "./chain-sync.ts";
import { greaterOf, highestOf, type Voucher } from "./channel.ts";
import type { SessionChannel } from "./channel-record.ts";
import { confirmWithin } from "./confirmation.ts";
import type { Hex, SessionPayload } from "./descriptor.ts";
import type { LiveChannel } from "./live-channels.ts";
import { pause } from "./pause.ts";
import { chainDown, invalid, pending, type Refused, refused, snapshotOf } from "./refusals.ts";
import type { SessionRail } from "./session-rail.ts";
import type { Snapshot } from "./terms.ts";
import type { WrittenTransaction } from "./transaction-record.ts";
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
    if (
      live.record.state === "open" &&
      !((await becomesIdle(parts, live)) && (await becomesQuiet(parts, live)))
    )
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
  const { hash, raw, validUntilMs } = signed;
  const transaction: WrittenTransaction = {
    hash,
    channelId: id,
    kind: "close",
    raw,
    units,
    validUntilMs,
    state: "written",
    reason: null,
  };
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

const QUIET_PAUSE_MS = 50;

/**
 * Stops accepting calls, and waits for those in flight; false = they take too long, and the channel
 * goes on.
 */
async function becomesIdle({ runtime, waitMs }: SessionRail, live: LiveChannel): Promise<boolean> {
  live.ending = true;
  if (live.underWay.size === 0) return true;
  const idle = Promise.withResolvers<boolean>();
  const run = (): void => idle.resolve(true);
  live.idle.add(run);
  const cancel = runtime.after(waitMs, () => idle.resolve(false));
  const isIdle = await idle.promise;
  cancel();
  live.idle.delete(run);
  if (!isIdle) live.ending = false;
  return isIdle;
}

/** Waits for calls of other processes; false = they take too long. */
async function becomesQuiet(
  { runtime, waitMs, ownership }: SessionRail,
  live: LiveChannel,
): Promise<boolean> {
  const untilMs = runtime.now() + waitMs;
  while (!(await ownership.isQuiet(live.record.id))) {
    if (runtime.now() >= untilMs) return false;
    await pause(runtime, QUIET_PAUSE_MS);
  }
  return true;
}
