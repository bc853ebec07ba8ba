// Brings the chain's state of channels into the store: money that came out, deposits, payers who
// want the deposit back, channels that have ended.
import { greaterOf, lesserOf } from "../../core/billing/payment.ts";
import { ChainFailure, unlessUnreachable } from "../rails/chain.ts";
import type { ChannelEvent, EscrowBlock, EscrowState } from "./chain/escrow.ts";
import { wholeMs } from "./channel.ts";
import type { ChannelPatch, SessionChannel } from "./channel-record.ts";
import { bookReceived } from "./confirmation.ts";
import type { Hex } from "./descriptor.ts";
import type { LiveChannel } from "./live-channels.ts";
import { changeChannel, type SessionRail } from "./session-rail.ts";

/**
 * How long the last state read from the chain is good enough to serve a call: far shorter than a
 * payer has to wait for a deposit.
 */
export const FRESH_MS = 60_000;
/** Blocks that are searched for the end of a channel, unless it was not checked for a long time. */
const MAX_UNSEEN = 1_000n;
/** Blocks of one log query, and queries of one search. */
const BLOCKS_AT_ONCE = 5_000n;
const MAX_QUESTIONS = 20n;
/** The same if a deposit may have grown meanwhile. */
export const FRESH_DEPOSIT_MS = 1_000;

/**
 * Reads the state of an open or closing channel if the last read is older than `maxAgeMs`. False =
 * the chain is not reached.
 */
export async function refresh(
  rail: SessionRail,
  live: LiveChannel,
  maxAgeMs: number,
): Promise<boolean> {
  if (rail.runtime.now() - live.checkedMs < maxAgeMs) return true;
  live.checking ??= unlessUnreachable(look(rail, live.record.id))
    .then((answer) => answer !== "unreachable")
    .finally(() => {
      live.checking = null;
    });
  return live.checking;
}

async function look(rail: SessionRail, id: Hex): Promise<void> {
  const head = await rail.escrow.head();
  const [onChain] = await rail.escrow.states([id], head.number);
  if (onChain !== undefined) await syncWithChain(rail, id, { onChain, head });
}

/** The state of a channel at a block. */
export interface Seen {
  readonly onChain: EscrowState;
  readonly head: EscrowBlock;
}

/**
 * Writes a new state; returns the channel after it. Throws `ChainFailure` if the channel has ended
 * and the chain cannot tell how.
 */
export async function syncWithChain(
  rail: SessionRail,
  id: Hex,
  { onChain, head }: Seen,
): Promise<SessionChannel | null> {
  const { store, channels, live, runtime } = rail;
  const before = await channels.read(store.db, id);
  if (before?.state !== "open" && before?.state !== "closing") return before;
  const checkedMs = runtime.now();
  const after =
    onChain.deposit === 0n
      ? await end(rail, before, head)
      : await update(rail, before, { onChain, head });
  live.note(after);
  const there = live.peek(id);
  if (there !== null) there.checkedMs = checkedMs;
  return after;
}

async function update(
  rail: SessionRail,
  before: SessionChannel,
  { onChain, head }: Seen,
): Promise<SessionChannel> {
  const { settled, deposit, closeRequestedAtMs } = onChain;
  const close_requested_at = closeRequestedAtMs === null ? null : wholeMs(closeRequestedAtMs);
  const isNews =
    settled > before.settled_units ||
    deposit > before.deposit_units ||
    close_requested_at !== before.close_requested_at;
  const wasLie = isFarAbove(before.seen_block, head);
  if (
    !wasLie &&
    (head.number < before.seen_block || (!isNews && head.number - before.seen_block < MAX_UNSEEN))
  )
    return before;
  if (close_requested_at !== null && before.close_requested_at === null)
    rail.log.info(
      { channel: before.id },
      "the payer of a channel wants the deposit back: it is closed",
    );
  return write(rail, before, settled, ({ deposit_units, seen_block }) => ({
    deposit_units: greaterOf(deposit, deposit_units),
    close_requested_at,
    seen_block: isFarAbove(seen_block, head) ? head.number : greaterOf(head.number, seen_block),
  }));
}

/** No node lags by this much: the block number that was seen before was false. */
function isFarAbove(seenBlock: bigint, head: EscrowBlock): boolean {
  return seenBlock - head.number > MAX_UNSEEN;
}

/**
 * Ends a channel that the chain no longer has, and that no known transaction of ours has closed.
 */
async function end(
  rail: SessionRail,
  before: SessionChannel,
  head: EscrowBlock,
): Promise<SessionChannel> {
  const { transactions, store, runtime, log } = rail;
  // One of our transactions may have closed it: then its receipt tells what came in.
  const ours = await transactions.open(store.db, before.id);
  if (ours.some(({ kind }) => kind === "close")) return before;
  // The state is from before the channel was opened.
  if (head.number <= before.seen_block && !isFarAbove(before.seen_block, head)) return before;
  const { units } = await findEnd(rail, before, head);
  const lost = before.spent_units - units;
  if (lost > 0n)
    log.error(
      { channel: before.id, lost_units: String(lost) },
      "a deposit was withdrawn before all that was spent of it was taken out",
    );
  return write(rail, before, units, () => ({
    state: "closed",
    reason: "its payer has withdrawn the deposit",
    ended_at: wholeMs(runtime.wallMs()),
  }));
}

/**
 * Searches for the end of a channel, a bounded number of blocks at a time; the position is kept, so
 * that the next search continues there.
 */
async function findEnd(
  rail: SessionRail,
  before: SessionChannel,
  head: EscrowBlock,
): Promise<ChannelEvent> {
  const latest = head.number - BLOCKS_AT_ONCE * MAX_QUESTIONS;
  const wasLie = isFarAbove(before.seen_block, head);
  let from = wasLie ? greaterOf(latest, 0n) : before.seen_block;
  for (let questions = 0n; questions < MAX_QUESTIONS && from <= head.number; questions++) {
    const to = lesserOf(from + BLOCKS_AT_ONCE - 1n, head.number);
    const ended = await rail.escrow.ended(before.id, from, to);
    if (ended !== null) return ended;
    from = to + 1n;
    // A node may not have the logs of its newest blocks yet: the next search reads those again.
    const seen_block = lesserOf(from, greaterOf(head.number - MAX_UNSEEN, 0n));
    if (seen_block > before.seen_block || wasLie)
      await write(rail, before, 0n, () => ({ seen_block }));
  }
  throw new ChainFailure(
    "The payment chain does not say how a channel ended, as far as it was asked: the next look " +
      "goes on",
  );
}

/** Changes a channel that has not ended; `units` = paid out by the chain in total. */
async function write(
  rail: SessionRail,
  { id }: SessionChannel,
  units: bigint,
  changeOf: (channel: SessionChannel) => ChannelPatch,
): Promise<SessionChannel> {
  const written = await changeChannel(rail, id, async (tx, channel) => {
    if (channel.state === "closed") return channel;
    const change = changeOf(channel);
    return units > channel.settled_units
      ? bookReceived(rail, tx, { channel, units, change })
      : rail.channels.change(tx, channel, change);
  });
  if (written === null) throw new Error(`channel ${id} is gone from the store`);
  return written;
}
