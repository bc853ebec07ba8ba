// How payers fund channels: the transaction that opens one, and those that add to its deposit.
// Payers sign them, and we send them: each is recorded first, found again on the chain however our
// sending ended, and has the same result when a request is repeated.
import { fault } from "../../core/faults/rpc-fault.ts";
import type { Tx } from "../../ledger/ledger.ts";
import { ChainFailure } from "../rails/chain.ts";
import type { BadPayment } from "../rails/rail.ts";
import type { SessionChannel } from "./channel-record.ts";
import type { ClientReader, ClientTransaction } from "./client-transaction.ts";
import { confirmWithin, type TxStatus } from "./confirmation.ts";
import { type Hex, type OpenPayload, signerOf, type TopUpPayload } from "./descriptor.ts";
import type { LiveChannel } from "./live-channels.ts";
import {
  busy,
  chainDown,
  failed,
  invalid,
  invalidAs,
  pending,
  type Refused,
  refused,
} from "./refusals.ts";
import type { SessionRail } from "./session-rail.ts";
import { MAX_OPEN_TRANSACTIONS, type WrittenTransaction } from "./transaction-record.ts";

/** A transaction that has added to a channel's deposit. */
export interface FundedChannel {
  readonly kind: "put_in";
  readonly hash: Hex;
}

/** Channels of one payer that may be opening at one time. */
const MAX_OPENING = 4;
const LIMIT_MS = 5_000;

/** Opens the channels of one rail, and adds to their deposits. */
export class ChannelFunding {
  readonly #session: SessionRail;
  readonly #reader: ClientReader;

  constructor(session: SessionRail, reader: ClientReader) {
    this.#session = session;
    this.#reader = reader;
  }

  /**
   * Opens a channel unless it was opened before; `units` = the price of the first call. Null = it
   * is, or was, open.
   */
  open(payload: OpenPayload, units: bigint): Promise<Refused | null> {
    return open(this.#session, { payload, units, reader: this.#reader });
  }

  /** Adds to the deposit of a channel. */
  topUp(live: LiveChannel, payload: TopUpPayload): Promise<FundedChannel | Refused> {
    return topUp(this.#session, { live, payload, reader: this.#reader });
  }
}

interface Opening {
  readonly payload: OpenPayload;
  readonly units: bigint;
  readonly reader: ClientReader;
}

async function open(
  session: SessionRail,
  { payload, units, reader }: Opening,
): Promise<Refused | null> {
  const { channelId } = payload;
  const there = await session.channels.read(session.store.db, channelId);
  if (there !== null) return opened(session, there);
  const read = reader.opening(payload, session.runtime.wallMs());
  if (read.kind === "bad_payment") return invalidAs(read);
  const wrong =
    (await wrongVoucher(session, { payload, units, deposit: read.units })) ??
    refusalOf(await reader.trial(read).catch(asUnreachable));
  if (wrong !== null) return wrong;
  const network = await session.escrow.network().catch(asUnreachable);
  if (network === "unreachable") return chainDown();
  const channel = channelOf(session, payload, { network, atMs: session.runtime.wallMs() });
  const written = await session.store.transaction((tx) =>
    writeOpening(session, tx, { channel, transaction: writtenOf(channelId, "open", read) }),
  );
  if (written === "too many")
    return refused(
      fault("rate_limit_exceeded", "this payer opens too many channels at one time", {
        retryAfterMs: LIMIT_MS,
      }),
    );
  return opened(session, channel);
}

/** The result of opening a channel that is in the store already. */
async function opened(
  session: SessionRail,
  { id, state, reason }: SessionChannel,
): Promise<Refused | null> {
  if (state === "failed")
    return failed(
      "the transaction that opens the channel",
      reason ?? "the chain did not carry it out",
    );
  if (state !== "opening") return null;
  const transaction = await session.transactions.last(session.store.db, id, "open");
  if (transaction === null) throw new Error(`channel ${id} is being opened by no transaction`);
  return refusalIn(
    await confirmWithin(session, transaction),
    "the transaction that opens the channel",
  );
}

interface FirstVoucher {
  readonly payload: Opening["payload"];
  readonly units: bigint;
  readonly deposit: bigint;
}

/**
 * The first voucher has to be valid before anything is sent: a channel that cannot pay is of no use
 * to anybody.
 */
async function wrongVoucher(
  { vouchers, terms }: SessionRail,
  { payload, units, deposit }: FirstVoucher,
): Promise<Refused | null> {
  const { channelId, descriptor, signature } = payload;
  if (payload.units < units)
    return invalid(
      "session/insufficient-balance",
      `The voucher promises ${payload.units} base units, and the call costs ${units}.`,
    );
  if (payload.units > deposit)
    return invalid(
      "session/amount-exceeds-deposit",
      `The voucher promises more than the deposit of ${deposit} base units.`,
    );
  const { chainId, escrow } = terms;
  const signed = await vouchers.isSigned({
    chainId,
    escrow,
    channelId,
    units: payload.units,
    signature,
    signer: signerOf(descriptor),
  });
  if (signed === null) return busy("too many vouchers are being checked");
  return signed
    ? null
    : invalid("session/invalid-signature", "The voucher is not signed by the channel's signer.");
}

interface WrittenOpening {
  readonly channel: SessionChannel;
  readonly transaction: WrittenTransaction;
}

/** If another request has recorded the same opening meanwhile, that record counts. */
async function writeOpening(
  { channels, transactions, runtime }: SessionRail,
  tx: Tx,
  { channel, transaction }: WrittenOpening,
): Promise<"written" | "too many"> {
  const { count } = await tx
    .selectFrom("session_channel")
    .select((columns) => columns.fn.countAll<bigint>().as("count"))
    .where("payer", "=", channel.descriptor.payer)
    .where("ended_at", "is", null)
    .where("state", "=", "opening")
    .executeTakeFirstOrThrow();
  if (BigInt(count) >= MAX_OPENING) return "too many";
  const atMs = runtime.wallMs();
  if (await channels.insert(tx, channel, atMs)) await transactions.insert(tx, transaction, atMs);
  return "written";
}

function channelOf(
  { terms }: SessionRail,
  { channelId, descriptor }: Opening["payload"],
  { network, atMs }: { readonly network: string; readonly atMs: number },
): SessionChannel {
  return {
    id: channelId,
    chainId: terms.chainId,
    network,
    descriptor,
    state: "opening",
    reason: null,
    deposit: 0n,
    spent: 0n,
    settled: 0n,
    vouchers: [],
    calls: 0n,
    owedSinceMs: null,
    closeRequestedAtMs: null,
    seenBlock: 0n,
    lookAtMs: atMs,
    looks: 0,
  };
}

interface ToppingUp {
  readonly live: LiveChannel;
  readonly payload: TopUpPayload;
  readonly reader: ClientReader;
}

async function topUp(
  session: SessionRail,
  { live, payload, reader }: ToppingUp,
): Promise<FundedChannel | Refused> {
  const { transactions, store } = session;
  const read = reader.topUp(payload, session.runtime.wallMs());
  if (read.kind === "bad_payment") return invalidAs(read);
  const there = await transactions.read(store.db, read.hash);
  if (there === null) {
    if (live.record.state !== "open")
      return invalid(
        "session/channel-finalized",
        "The channel is closed, or about to be: open another one.",
      );
    const wrong = refusalOf(await reader.trial(read).catch(asUnreachable));
    if (wrong !== null) return wrong;
    if (
      !(await store.transaction((tx) =>
        writeTopUp(session, tx, writtenOf(live.record.id, "top_up", read)),
      ))
    )
      return refused(
        fault("rate_limit_exceeded", "too much is being put into this channel", {
          retryAfterMs: LIMIT_MS,
        }),
      );
  }
  const transaction = there ?? (await transactions.read(store.db, read.hash));
  if (transaction === null) throw new Error(`transaction ${read.hash} was not written`);
  return (
    refusalIn(
      await confirmWithin(session, transaction),
      "the transaction that tops up the channel",
    ) ?? { kind: "put_in", hash: read.hash }
  );
}

/**
 * Records an addition; false = too many are in flight. The channel is locked, so that concurrent
 * ones are counted one after the other.
 */
async function writeTopUp(
  { channels, transactions, runtime }: SessionRail,
  tx: Tx,
  transaction: WrittenTransaction,
): Promise<boolean> {
  await channels.lock(tx, transaction.channelId);
  if ((await transactions.open(tx, transaction.channelId)).length >= MAX_OPEN_TRANSACTIONS - 1)
    return false;
  await transactions.insert(tx, transaction, runtime.wallMs());
  return true;
}

function writtenOf(
  channelId: Hex,
  kind: WrittenTransaction["kind"],
  { hash, raw, units, validUntilMs }: ClientTransaction,
): WrittenTransaction {
  return { hash, channelId, kind, raw, units, validUntilMs, state: "written", reason: null };
}

function refusalOf(tried: BadPayment | null | "unreachable"): Refused | null {
  if (tried === "unreachable") return chainDown();
  return tried === null ? null : invalidAs(tried);
}

function refusalIn(status: TxStatus, what: string): Refused | null {
  switch (status.kind) {
    case "done":
      return null;
    case "pending":
      return pending(what);
    case "failed":
      return failed(what, status.reason);
  }
}

function asUnreachable(error: unknown): "unreachable" {
  if (error instanceof ChainFailure) return "unreachable";
  throw error;
}
