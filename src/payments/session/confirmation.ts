// Confirms a recorded transaction: sends it until a block includes it or none can any more, then
// books its result in one transaction of the store. Every step is idempotent: a second process with
// the same result changes nothing.
import { nanoOf } from "../../core/billing/payment.ts";
import { pause } from "../../runtime.ts";
import { post, type Tx } from "../../shared/ledger/ledger.ts";
import { ChainFailure } from "../rails/chain.ts";
import type { ChannelEvent } from "./chain/escrow.ts";
import type { WrittenTransaction } from "./chain/transaction-record.ts";
import { greaterOf } from "./channel.ts";
import type { ChannelPatch, SessionChannel } from "./channel-record.ts";
import type { SessionRail } from "./session-rail.ts";

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
  parts: SessionRail,
  transaction: WrittenTransaction,
  send = true,
): Promise<TxStatus> {
  const { escrow, transactions, store } = parts;
  const now = await transactions.read(store.db, transaction.hash);
  if (now !== null && now.state !== "written")
    return now.state === "done" ? DONE : { kind: "failed", reason: now.reason ?? "it failed" };
  const { hash, channelId, raw, validUntilMs } = transaction;
  const taken = await escrow.taken(hash, channelId);
  const head = await escrow.head();
  if (taken === null) {
    if (head.timeMs < validUntilMs + LAG_MS) {
      if (send) await escrow.send(raw);
      return PENDING;
    }
    // Read after the block that ends its validity: its receipt exists now, or never will.
    if ((await escrow.taken(hash, channelId)) !== null) return PENDING;
    return fail(parts, transaction, "no block took the transaction before it ended");
  }
  if (taken.block > head.number) return PENDING;
  if (!taken.ok) return fail(parts, transaction, "the transaction was reverted");
  const event = taken.events.findLast((candidate) => candidate.name === EVENTS[transaction.kind]);
  if (event === undefined)
    return fail(parts, transaction, "the transaction does not do what it was sent for");
  await finish(parts, transaction, { event, block: taken.block, movedUnits: taken.movedUnits });
  return DONE;
}

/**
 * Repeats that until the transaction has ended, at most as long as a request waits. Failures of the
 * chain are retried.
 */
export async function confirmWithin(
  parts: SessionRail,
  transaction: WrittenTransaction,
): Promise<TxStatus> {
  const { runtime, waitMs } = parts;
  const endMs = runtime.now() + waitMs;
  let sendMs = runtime.now();
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(LAST_POLL_MS, pollMs * 2)) {
    const send = runtime.now() >= sendMs;
    if (send) sendMs = runtime.now() + RESEND_MS;
    const status = await confirm(parts, transaction, send).catch(pendingIfUnreachable);
    if (status.kind !== "pending" || runtime.now() + pollMs >= endMs) return status;
    await pause(runtime, pollMs);
  }
}

/** Treats a failure of the chain as undecided; throws any other error again. */
function pendingIfUnreachable(error: unknown): TxStatus {
  if (error instanceof ChainFailure) return PENDING;
  throw error;
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
  parts: SessionRail,
  { hash, kind, channelId }: WrittenTransaction,
  reason: string,
): Promise<TxStatus> {
  const { store, transactions, channels, runtime, live, log } = parts;
  const atMs = runtime.wallMs();
  const failed = await store.transaction(async (tx) => {
    const channel = await channels.lock(tx, channelId);
    if (channel === null || !(await transactions.end(tx, hash, { kind: "failed", reason }, atMs)))
      return null;
    if (kind !== "open" || channel.state !== "opening") return channel;
    const change = { state: "failed" as const, reason, endedAtMs: atMs };
    await channels.write(tx, channelId, change);
    return { ...channel, ...change };
  });
  if (failed === null) return PENDING;
  live.note(failed);
  if (kind === "settle" || kind === "close")
    log.warn(
      { channel: channelId, transaction: hash, kind, reason },
      "a transaction of pay-per-call failed",
    );
  return { kind: "failed", reason };
}

interface Finished {
  readonly event: ChannelEvent;
  readonly block: bigint;
  readonly movedUnits: bigint;
}

async function finish(
  parts: SessionRail,
  transaction: WrittenTransaction,
  finished: Finished,
): Promise<void> {
  const { store, transactions, channels, runtime, live, log } = parts;
  const atMs = runtime.wallMs();
  const written = await store.transaction(async (tx) => {
    const channel = await channels.lock(tx, transaction.channelId);
    if (
      channel === null ||
      !(await transactions.end(
        tx,
        transaction.hash,
        { kind: "done", movedUnits: finished.movedUnits },
        atMs,
      ))
    )
      return null;
    return apply(parts, tx, { channel, kind: transaction.kind, ...finished, atMs });
  });
  if (written === null) return;
  live.note(written);
  log.info(
    { channel: transaction.channelId, kind: transaction.kind, transaction: transaction.hash },
    "a channel of pay-per-call has changed on its chain",
  );
}

interface Applied extends Finished {
  readonly channel: SessionChannel;
  readonly kind: WrittenTransaction["kind"];
  readonly atMs: number;
}

function apply(
  parts: SessionRail,
  tx: Tx,
  { channel, kind, event, block, atMs }: Applied,
): Promise<SessionChannel> {
  const seen = { seenBlock: greaterOf(block, channel.seenBlock) };
  switch (kind) {
    case "open":
      return change(parts, tx, channel, {
        ...seen,
        state: "open",
        deposit: event.units,
        looks: 0,
        lookAtMs: atMs + parts.policy.watchMs,
      });
    case "top_up":
      // A payer who adds to the deposit withdraws the request to get it back.
      return change(parts, tx, channel, {
        ...seen,
        deposit: greaterOf(event.units, channel.deposit),
        closeRequestedAtMs: null,
        lookAtMs: atMs,
      });
    case "settle":
      return bookReceived(parts, tx, channel, {
        units: event.units,
        atMs,
        change: { ...seen, lookAtMs: atMs },
      });
    case "close":
      return bookReceived(parts, tx, channel, {
        units: event.units,
        atMs,
        change: { ...seen, state: "closed", endedAtMs: atMs },
      });
  }
}

/** An amount that the chain has paid out. */
export interface ReceivedSettlement {
  /** In total, since the channel was opened. */
  readonly units: bigint;
  readonly atMs: number;
  /** Other changes of the channel's row. */
  readonly change: ChannelPatch;
}

/**
 * Books what was paid out since the last time, and changes the channel. Within a transaction that
 * has locked it.
 */
export async function bookReceived(
  parts: SessionRail,
  tx: Tx,
  channel: SessionChannel,
  { units, atMs, change: other }: ReceivedSettlement,
): Promise<SessionChannel> {
  const settled = greaterOf(units, channel.settled);
  if (settled > channel.settled) {
    const amountN = nanoOf(settled - channel.settled);
    if (
      !(await post(tx, {
        kind: "session",
        idemKey: `session:${channel.id}:${settled}`,
        amountN,
        atMs,
      }))
    )
      throw new Error(
        `session ${channel.id} was booked up to ${settled} before, and its channel does not know`,
      );
  }
  // Only another holder of the wallet's key can have taken out more than was spent.
  const spent = greaterOf(settled, channel.spent);
  return change(parts, tx, channel, {
    ...other,
    settled,
    spent,
    owedSinceMs: spent > settled ? atMs : null,
  });
}

async function change(
  { channels }: SessionRail,
  tx: Tx,
  channel: SessionChannel,
  patch: ChannelPatch,
): Promise<SessionChannel> {
  await channels.write(tx, channel.id, patch);
  return { ...channel, ...patch };
}
