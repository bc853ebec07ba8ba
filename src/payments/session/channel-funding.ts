// How payers fund channels: transactions that open a channel or add to its deposit. Payers sign
// them and the service sends them. Each transaction is recorded before it is sent, is found again
// on the chain however sending ended, and gives a repeated request the same result.
import { fault } from "../../core/faults/rpc-fault.ts";
import type { Tx } from "../../shared/ledger/ledger.ts";
import { unlessUnreachable } from "../rails/chain.ts";
import type { ClientReader } from "./chain/client-transaction.ts";
import {
  MAX_OPEN_TRANSACTIONS,
  type SignedBytes,
  type WrittenTransaction,
  writtenOf,
} from "./chain/transaction-record.ts";
import { wholeMs } from "./channel.ts";
import type { SessionChannel } from "./channel-record.ts";
import { confirmWithin, type TxStatus } from "./confirmation.ts";
import { descriptorText, type Hex, type OpenPayload, type TopUpPayload } from "./descriptor.ts";
import type { LiveChannel } from "./live-channels.ts";
import {
  chainDown,
  failed,
  invalid,
  invalidAs,
  pending,
  type Refused,
  refused,
} from "./refusals.ts";
import type { SessionRail } from "./session-rail.ts";
import { wrongSignature } from "./voucher-acceptor.ts";

/** A channel that a transaction has changed. */
export interface ChannelChanged {
  readonly kind: "changed";
  readonly hash: Hex;
  /** Of a channel that was closed. */
  readonly spentUnits?: bigint;
}

/** Channels of one payer that may be opening at one time. */
const MAX_OPENING = 4;
const LIMIT_MS = 5_000;

/** Opens the channels of one rail, and adds to their deposits. */
export class ChannelFunding {
  readonly #session: SessionRail;
  readonly #reader: Pick<ClientReader, keyof ClientReader>;

  constructor(session: SessionRail, reader: Pick<ClientReader, keyof ClientReader>) {
    this.#session = session;
    this.#reader = reader;
  }

  /**
   * Opens a channel unless it was opened before; `units` = the price of the first call. Null = it
   * is, or was, open.
   */
  async open(payload: OpenPayload, units: bigint): Promise<Refused | null> {
    const { channels, store, runtime, escrow } = this.#session;
    const { channelId } = payload;
    const there = await channels.read(store.db, channelId);
    if (there !== null) return this.#opened(there);
    const read = this.#reader.opening(payload, runtime.wallMs());
    if ("kind" in read) return invalidAs(read);
    // A channel that cannot pay is of no use to anybody: nothing is sent without a valid voucher.
    const wrong =
      wrongPromise(payload.units, units, read.units) ??
      (await wrongSignature(this.#session, payload)) ??
      (await this.#wrongInTrial(read));
    if (wrong !== null) return wrong;
    const network = await unlessUnreachable(escrow.network());
    if (network === "unreachable") return chainDown();
    const channel = this.#channelOf(payload, network);
    const transaction = writtenOf(channelId, "open", read);
    const written = await store.transaction((tx) => this.#writeOpening(tx, channel, transaction));
    return written
      ? this.#opened(channel)
      : tooMany("this payer opens too many channels at one time");
  }

  /** Adds to the deposit of a channel. */
  async topUp(live: LiveChannel, payload: TopUpPayload): Promise<ChannelChanged | Refused> {
    const { transactions, store, runtime } = this.#session;
    if (descriptorText(payload.descriptor) !== live.descriptor)
      return invalid("session/channel-not-found", "The descriptor is not the one of this channel.");
    const read = this.#reader.topUp(payload, runtime.wallMs());
    if ("kind" in read) return invalidAs(read);
    const there = await transactions.read(store.db, read.hash);
    const refusal = there === null ? await this.#recordTopUp(live, read) : null;
    if (refusal !== null) return refusal;
    const transaction = there ?? (await transactions.read(store.db, read.hash));
    if (transaction === null) throw new Error(`transaction ${read.hash} was not written`);
    return (
      refusalIn(
        await confirmWithin(this.#session, transaction),
        "the transaction that tops up the channel",
      ) ?? { kind: "changed", hash: read.hash }
    );
  }

  /** The result of opening a channel that is in the store already. */
  async #opened({ id, state, reason }: SessionChannel): Promise<Refused | null> {
    const what = "the transaction that opens the channel";
    if (state === "failed") return failed(what, reason ?? "the chain did not carry it out");
    if (state !== "opening") return null;
    const { transactions, store } = this.#session;
    const transaction = await transactions.last(store.db, id, "open");
    if (transaction === null) throw new Error(`channel ${id} is being opened by no transaction`);
    return refusalIn(await confirmWithin(this.#session, transaction), what);
  }

  async #wrongInTrial(read: SignedBytes): Promise<Refused | null> {
    const tried = await unlessUnreachable(this.#reader.trial(read));
    if (tried === "unreachable") return chainDown();
    return tried === null ? null : invalidAs(tried);
  }

  /**
   * Records an opening; false = the payer opens too many. If another request has recorded the same
   * opening meanwhile, that record counts.
   */
  async #writeOpening(
    tx: Tx,
    channel: SessionChannel,
    transaction: WrittenTransaction,
  ): Promise<boolean> {
    const { channels, transactions, runtime } = this.#session;
    const { count } = await tx
      .selectFrom("session_channel")
      .select((columns) => columns.fn.countAll<bigint>().as("count"))
      .where("payer", "=", channel.descriptor.payer)
      .where("ended_at", "is", null)
      .where("state", "=", "opening")
      .executeTakeFirstOrThrow();
    if (BigInt(count) >= MAX_OPENING) return false;
    if (await channels.insert(tx, channel))
      await transactions.insert(tx, transaction, runtime.wallMs());
    return true;
  }

  #channelOf({ channelId, descriptor }: OpenPayload, network: string): SessionChannel {
    const now = wholeMs(this.#session.runtime.wallMs());
    return {
      id: channelId,
      chain_id: BigInt(this.#session.terms.chainId),
      network,
      payer: descriptor.payer,
      descriptor,
      state: "opening",
      reason: null,
      deposit_units: 0n,
      spent_units: 0n,
      settled_units: 0n,
      vouchers: [],
      calls: 0n,
      owed_since: null,
      close_requested_at: null,
      seen_block: 0n,
      look_at: now,
      looks: 0n,
      created_at: now,
      ended_at: null,
    };
  }

  /** Records an addition; null = it is recorded. */
  async #recordTopUp({ record }: LiveChannel, read: SignedBytes): Promise<Refused | null> {
    const { channels, transactions, store, runtime } = this.#session;
    if (record.state !== "open")
      return invalid(
        "session/channel-finalized",
        "The channel is closed, or about to be: open another one.",
      );
    const wrong = await this.#wrongInTrial(read);
    if (wrong !== null) return wrong;
    return store.transaction(async (tx) => {
      // Locked, so that concurrent additions are counted one after the other.
      await channels.lock(tx, record.id);
      if ((await transactions.open(tx, record.id)).length >= MAX_OPEN_TRANSACTIONS - 1)
        return tooMany("too much is being put into this channel");
      await transactions.insert(tx, writtenOf(record.id, "top_up", read), runtime.wallMs());
      return null;
    });
  }
}

/** Why a first voucher does not fit; null = it does. */
function wrongPromise(promised: bigint, units: bigint, deposit: bigint): Refused | null {
  if (promised < units)
    return invalid(
      "session/insufficient-balance",
      `The voucher promises ${promised} base units, and the call costs ${units}.`,
    );
  return promised > deposit
    ? invalid(
        "session/amount-exceeds-deposit",
        `The voucher promises more than the deposit of ${deposit} base units.`,
      )
    : null;
}

function tooMany(message: string): Refused {
  return refused(fault("rate_limit_exceeded", message, { retryAfterMs: LIMIT_MS }));
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
