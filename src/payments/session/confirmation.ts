// Confirms a recorded transaction: sends it until a block includes it or none can any more, then
// books its result in one transaction of the store. Every step is idempotent: a second process with
// the same result changes nothing.
import { greaterOf, nanoOf } from "../../core/billing/payment.ts";
import { pause } from "../../runtime.ts";
import { post, type Tx } from "../../shared/ledger/ledger.ts";
import { unlessUnreachable } from "../rails/chain.ts";
import type { ChannelEvent, SettlementReceipt } from "./chain/escrow.ts";
import type { WrittenTransaction } from "./chain/transaction-record.ts";
import { wholeMs } from "./channel.ts";
import type { ChannelPatch, SessionChannel } from "./channel-record.ts";
import { changeChannel, type SessionRail } from "./session-rail.ts";

/** The status of a transaction. */
export type TxStatus =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "pending" };

/** Nodes behind one address may be behind each other by this much. */
const LAG_MS = 10_000;
const FIRST_POLL_MS = 50;
const LAST_POLL_MS = 500;
const RESEND_MS = 2_000;

/**
 * Takes the next step with a transaction, once; `send` = send it if it is not in a block. Throws
 * `ChainFailure` while the chain is not reached.
 */
export async function confirm(
  rail: SessionRail,
  transaction: WrittenTransaction,
  send = true,
): Promise<TxStatus> {
  const { escrow, transactions, store } = rail;
  const { tx_hash: hash, channel_id: id, kind, raw, valid_until } = transaction;
  const now = await transactions.read(store.db, hash);
  if (now?.state === "done") return DONE;
  if (now?.state === "failed") return { kind: "failed", reason: now.reason ?? "it failed" };
  const taken = await escrow.taken(hash, id);
  const head = await escrow.head();
  if (taken === null) {
    if (head.timeMs < Number(valid_until) + LAG_MS) {
      if (send) await escrow.send(raw);
      return PENDING;
    }
    // Read after the block that ends its validity: its receipt exists now, or never will.
    if ((await escrow.taken(hash, id)) !== null) return PENDING;
    return fail(rail, transaction, "no block took the transaction before it ended");
  }
  if (taken.block > head.number) return PENDING;
  if (!taken.ok) return fail(rail, transaction, "the transaction was reverted");
  const event = taken.events.findLast(({ name }) => name === EVENTS[kind]);
  if (event === undefined)
    return fail(rail, transaction, "the transaction does not do what it was sent for");
  await finish(rail, transaction, { ...taken, event });
  return DONE;
}

/**
 * Repeats that until the transaction has ended, at most as long as a request waits. Failures of the
 * chain are retried.
 */
export async function confirmWithin(
  rail: SessionRail,
  transaction: WrittenTransaction,
): Promise<TxStatus> {
  const { runtime, waitMs } = rail;
  const endMs = runtime.now() + waitMs;
  let sendMs = runtime.now();
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(LAST_POLL_MS, pollMs * 2)) {
    const send = runtime.now() >= sendMs;
    if (send) sendMs = runtime.now() + RESEND_MS;
    const answer = await unlessUnreachable(confirm(rail, transaction, send));
    const status = answer === "unreachable" ? PENDING : answer;
    if (status.kind !== "pending" || runtime.now() + pollMs >= endMs) return status;
    await pause(runtime, pollMs);
  }
}

const DONE: TxStatus = { kind: "done" };
const PENDING: TxStatus = { kind: "pending" };

const EVENTS: Readonly<Record<WrittenTransaction["kind"], ChannelEvent["name"]>> = {
  open: "ChannelOpened",
  top_up: "TopUp",
  settle: "Settled",
  close: "ChannelClosed",
};

async function fail(
  rail: SessionRail,
  { tx_hash, kind, channel_id }: WrittenTransaction,
  reason: string,
): Promise<TxStatus> {
  const { transactions, channels, runtime, log } = rail;
  const atMs = runtime.wallMs();
  const failed = { state: "failed", reason } as const;
  const changed = await changeChannel(rail, channel_id, async (tx, channel) => {
    if (!(await transactions.end(tx, tx_hash, failed, atMs))) return null;
    if (kind !== "open" || channel.state !== "opening") return channel;
    return channels.change(tx, channel, { ...failed, ended_at: wholeMs(atMs) });
  });
  if (changed === null) return PENDING;
  if (kind === "settle" || kind === "close")
    log.warn(
      { channel: channel_id, transaction: tx_hash, kind, reason },
      "a transaction of pay-per-call failed",
    );
  return { kind: "failed", reason };
}

interface Finished extends Pick<SettlementReceipt, "block" | "movedUnits"> {
  readonly event: ChannelEvent;
}

async function finish(
  rail: SessionRail,
  { tx_hash, channel_id, kind }: WrittenTransaction,
  finished: Finished,
): Promise<void> {
  const done = { state: "done", moved_units: finished.movedUnits } as const;
  const written = await changeChannel(rail, channel_id, async (tx, channel) =>
    (await rail.transactions.end(tx, tx_hash, done, rail.runtime.wallMs()))
      ? apply(rail, tx, { channel, kind, ...finished })
      : null,
  );
  if (written !== null)
    rail.log.info(
      { channel: channel_id, kind, transaction: tx_hash },
      "a channel of pay-per-call has changed on its chain",
    );
}

interface Applied extends Finished {
  readonly channel: SessionChannel;
  readonly kind: WrittenTransaction["kind"];
}

function apply(
  rail: SessionRail,
  tx: Tx,
  { channel, kind, event: { units }, block }: Applied,
): Promise<SessionChannel> {
  const { channels, runtime, policy } = rail;
  const now = wholeMs(runtime.wallMs());
  const seen = { seen_block: greaterOf(block, channel.seen_block), look_at: now };
  switch (kind) {
    case "open": {
      const look_at = now + BigInt(policy.watchMs);
      const opened = { state: "open", deposit_units: units, looks: 0n } as const;
      return channels.change(tx, channel, { ...seen, ...opened, look_at });
    }
    case "top_up": {
      // A payer who adds to the deposit withdraws the request to get it back.
      const deposit_units = greaterOf(units, channel.deposit_units);
      return channels.change(tx, channel, { ...seen, deposit_units, close_requested_at: null });
    }
    case "settle":
      return bookReceived(rail, tx, { channel, units, change: seen });
    case "close": {
      const change = { ...seen, state: "closed", ended_at: now } as const;
      return bookReceived(rail, tx, { channel, units, change });
    }
  }
}

/** An amount that the chain has paid out. */
export interface ReceivedSettlement {
  readonly channel: SessionChannel;
  /** In total, since the channel was opened. */
  readonly units: bigint;
  /** Other changes of the channel's row. */
  readonly change: ChannelPatch;
}

/**
 * Books what was paid out since the last time, and changes the channel. Within a transaction that
 * has locked it.
 */
export async function bookReceived(
  { channels, runtime }: SessionRail,
  tx: Tx,
  { channel, units, change }: ReceivedSettlement,
): Promise<SessionChannel> {
  const atMs = runtime.wallMs();
  const settled = greaterOf(units, channel.settled_units);
  if (settled > channel.settled_units) {
    const amountN = nanoOf(settled - channel.settled_units);
    const idemKey = `session:${channel.id}:${settled}`;
    if (!(await post(tx, { kind: "session", idemKey, amountN, atMs })))
      throw new Error(
        `session ${channel.id} was booked up to ${settled} before, and its channel does not know`,
      );
  }
  // Only another holder of the wallet's key can have taken out more than was spent.
  const spent = greaterOf(settled, channel.spent_units);
  return channels.change(tx, channel, {
    ...change,
    settled_units: settled,
    spent_units: spent,
    owed_since: spent > settled ? wholeMs(atMs) : null,
  });
}
