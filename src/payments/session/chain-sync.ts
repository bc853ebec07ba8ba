// Brings the chain's state of channels into the store: money that came out, deposits, payers who
// want the deposit back, channels that have ended.
import { ChainFailure } from "../rails/chain.ts";
import type { ChannelEvent, EscrowBlock, EscrowState } from "./chain/escrow.ts";
import { greaterOf, lesserOf } from "./channel.ts";
import type { ChannelPatch, SessionChannel } from "./channel-record.ts";
import { bookReceived } from "./confirmation.ts";
import type { Hex } from "./descriptor.ts";
import type { LiveChannel } from "./live-channels.ts";
import type { SessionRail } from "./session-rail.ts";

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
  parts: SessionRail,
  live: LiveChannel,
  maxAgeMs: number,
): Promise<boolean> {
  if (parts.runtime.now() - live.checkedMs < maxAgeMs) return true;
  live.checking ??= look(parts, live).finally(() => {
    live.checking = null;
  });
  return live.checking;
}

async function look(parts: SessionRail, live: LiveChannel): Promise<boolean> {
  try {
    const head = await parts.escrow.head();
    const [onChain] = await parts.escrow.states([live.record.id], head.number);
    if (onChain !== undefined) await syncWithChain(parts, live.record.id, { onChain, head });
    return true;
  } catch (error) {
    if (error instanceof ChainFailure) return false;
    throw error;
  }
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
  parts: SessionRail,
  id: Hex,
  { onChain, head }: Seen,
): Promise<SessionChannel | null> {
  const { store, channels, live, runtime } = parts;
  const before = await channels.read(store.db, id);
  if (
    before === null ||
    before.state === "closed" ||
    before.state === "failed" ||
    before.state === "opening"
  )
    return before;
  const checkedMs = runtime.now();
  const after =
    onChain.deposit === 0n
      ? await end(parts, before, head)
      : await update(parts, before, { onChain, head });
  live.note(after);
  const there = live.peek(id);
  if (there !== null) there.checkedMs = checkedMs;
  return after;
}

async function update(
  parts: SessionRail,
  before: SessionChannel,
  { onChain, head }: Seen,
): Promise<SessionChannel> {
  const { settled, deposit, closeRequestedAtMs } = onChain;
  const isNews =
    settled > before.settled ||
    deposit > before.deposit ||
    closeRequestedAtMs !== before.closeRequestedAtMs;
  const wasLie = isFarAbove(before.seenBlock, head);
  if (
    !wasLie &&
    (head.number < before.seenBlock || (!isNews && head.number - before.seenBlock < MAX_UNSEEN))
  )
    return before;
  if (closeRequestedAtMs !== null && before.closeRequestedAtMs === null)
    parts.log.info(
      { channel: before.id },
      "the payer of a channel wants the deposit back: it is closed",
    );
  return write(parts, before.id, (channel) => ({
    units: settled,
    change: {
      deposit: greaterOf(deposit, channel.deposit),
      closeRequestedAtMs,
      seenBlock: isFarAbove(channel.seenBlock, head)
        ? head.number
        : greaterOf(head.number, channel.seenBlock),
    },
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
  parts: SessionRail,
  before: SessionChannel,
  head: EscrowBlock,
): Promise<SessionChannel> {
  const { transactions, store, runtime, log } = parts;
  // One of our transactions may have closed it: then its receipt tells what came in.
  const ours = await transactions.open(store.db, before.id);
  if (ours.some((transaction) => transaction.kind === "close" && transaction.state === "written"))
    return before;
  // The state is from before the channel was opened.
  if (head.number <= before.seenBlock && !isFarAbove(before.seenBlock, head)) return before;
  const ended = await findEnd(parts, before, head);
  const lost = before.spent - ended.units;
  if (lost > 0n)
    log.error(
      { channel: before.id, lost_units: String(lost) },
      "a deposit was withdrawn before all that was spent of it was taken out",
    );
  return write(parts, before.id, () => ({
    units: ended.units,
    change: {
      state: "closed",
      reason: "its payer has withdrawn the deposit",
      endedAtMs: runtime.wallMs(),
    },
  }));
}

/**
 * Searches for the end of a channel, a bounded number of blocks at a time; the position is kept, so
 * that the next search continues there.
 */
async function findEnd(
  parts: SessionRail,
  before: SessionChannel,
  head: EscrowBlock,
): Promise<ChannelEvent> {
  const { escrow } = parts;
  const latest = head.number - BLOCKS_AT_ONCE * MAX_QUESTIONS;
  let from = isFarAbove(before.seenBlock, head) ? greaterOf(latest, 0n) : before.seenBlock;
  for (let questions = 0n; questions < MAX_QUESTIONS && from <= head.number; questions++) {
    const to = lesserOf(from + BLOCKS_AT_ONCE - 1n, head.number);
    const ended = await escrow.ended(before.id, from, to);
    if (ended !== null) return ended;
    from = to + 1n;
    // A node may not have the logs of its newest blocks yet: the next search reads those again.
    const seenBlock = lesserOf(from, greaterOf(head.number - MAX_UNSEEN, 0n));
    if (seenBlock > before.seenBlock || isFarAbove(before.seenBlock, head))
      await write(parts, before.id, () => ({ units: 0n, change: { seenBlock } }));
  }
  throw new ChainFailure(
    "The payment chain does not say how a channel ended, as far as it was asked: the next look " +
      "goes on",
  );
}

async function write(
  parts: SessionRail,
  id: Hex,
  news: (channel: SessionChannel) => { readonly units: bigint; readonly change: ChannelPatch },
): Promise<SessionChannel> {
  const { store, channels, runtime } = parts;
  return store.transaction(async (tx) => {
    const channel = await channels.lock(tx, id);
    if (channel === null) throw new Error(`channel ${id} is gone from the store`);
    if (channel.state === "closed") return channel;
    const { units, change } = news(channel);
    if (units > channel.settled)
      return bookReceived(parts, tx, channel, { units, atMs: runtime.wallMs(), change });
    await channels.write(tx, id, change);
    return { ...channel, ...change };
  });
}
