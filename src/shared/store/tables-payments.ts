// The tables of payments, with the conventions of `tables.ts`. Names ending in `_units` are base
// units of a channel's token: a base unit is a thousand nano-USD.
import {
  checked,
  idOf,
  int,
  key,
  keyOneOf,
  oneOf,
  orNull,
  type Row,
  text,
  unique,
} from "./column.ts";

/** 0x and hex digits. */
export type Hex = `0x${string}`;

export const PAYMENT_TABLES = {
  /** A payment and what it buys. Rows are never deleted. */
  purchase: {
    /** `pur_…` */
    id: key,
    /** Identifies the payment: equal for its repetitions; unique. */
    payment_key: unique(text),
    /**
     * The offer that the payment answers. Repetitions of the payment carry it, too; it does not
     * appear on a chain.
     */
    offer_id: text,
    /**
     * Equal to `offer_id` while this purchase uses its offer, so that an offer is paid only once;
     * null = it does not. Unique.
     */
    offer_claim: unique(orNull(text)),
    /** Hash of the request that carried the payment. */
    fingerprint: text,
    /** What the payment buys, as JSON. */
    purpose: text,
    units: checked(int, "units > 0"),
    amount_n: int,
    /** Payment method of the rail. */
    rail: text,
    protocol: oneOf<"mpp" | "x402">(),
    chain_id: int,
    /** Distinguishes chains with the same chain id. */
    network: text,
    token: text,
    recipient: text,
    payer: text,
    /** The data of the payment that its rail needs, sealed. */
    material: text,
    /** 0 or 1: the client has sent the transaction itself. */
    is_sent: int,
    /** On the chain's clock; null = unlimited. */
    valid_until: orNull(int),
    state: oneOf<"accepted" | "submitted" | "settled" | "failed">(),
    /** Why the purchase failed. */
    reason: orNull(text),
    /** The transaction that settled the purchase, else the newest one sent. */
    tx_hash: orNull(text),
    /**
     * `<chain id>:<network>:<transaction>:<log>`: each transfer on the chain pays once. Null until
     * it has settled. Unique.
     */
    settled_ref: unique(orNull(text)),
    /**
     * The result of the purchase, as sealed JSON; null = none yet, or the beneficiary no longer
     * exists.
     */
    fulfilment: orNull(text),
    /** When the secret in `fulfilment` is to be removed; null = it has none. */
    blank_at: orNull(int),
    created_at: int,
    ended_at: orNull(int),
    /** When the chain is to be checked next, and how many checks were made. */
    look_at: int,
    looks: int,
    /** The node that advances the purchase, and until when; null = none. */
    lease_node: orNull(text),
    lease_until: orNull(int),
  },
  /** A transaction for a purchase, stored before it is sent. */
  purchase_submission: {
    purchase_id: idOf(text, "purchase"),
    /** Position in the purchase, from 0. */
    position: int,
    tx_hash: text,
    /** Signed bytes, sealed; null = the client sent it. */
    raw: orNull(text),
    /** The service's wallet whose nonce it uses; null = none. */
    wallet_id: orNull(text),
    nonce: orNull(int),
    created_at: int,
    /**
     * When its nonce was found to be used, by this or another transaction; null = it may have to be
     * sent again.
     */
    passed_at: orNull(int),
  },
  /** A wallet of the service that pays for gas. */
  settlement_wallet: {
    /** `<chain id>:<address>:<network>` */
    id: key,
    next_nonce: checked(int, "next_nonce >= 0"),
  },
  /** A payer's payment channel. Rows are never deleted. */
  session_channel: {
    /** Channel id on the chain, in lower case. */
    id: keyOneOf<Hex>(),
    chain_id: int,
    /** Distinguishes chains with the same chain id. */
    network: text,
    payer: text,
    /** The parameters from which its id is derived, as JSON. */
    descriptor: text,
    /**
     * `opening`: its transaction is recorded and perhaps sent. `closing`: the amount of the close
     * is fixed, and nothing more is charged. `failed`: it was never opened.
     */
    state: oneOf<"opening" | "open" | "closing" | "closed" | "failed">(),
    /** Why it failed, or ended in another way than by a close of the service. */
    reason: orNull(text),
    deposit_units: int,
    spent_units: int,
    settled_units: int,
    /** Vouchers that are still needed, as sealed JSON. */
    vouchers: text,
    /** Number of charged calls. */
    calls: int,
    /** Since when spent money is not settled; null = everything is settled. */
    owed_since: orNull(int),
    /**
     * When the payer asked the chain to return the deposit, on the chain's clock; null = not asked.
     */
    close_requested_at: orNull(int),
    /** The block at which the chain was last read. */
    seen_block: int,
    /** When the chain is to be checked next, and how many checks in a row failed. */
    look_at: int,
    looks: int,
    created_at: int,
    ended_at: orNull(int),
  },
  /** A transaction on a channel, stored before it is sent. */
  session_transaction: {
    tx_hash: keyOneOf<Hex>(),
    channel_id: idOf(oneOf<Hex>(), "session_channel"),
    /** Sent by the payer (`open`, `top_up`) or by the service (`settle`, `close`). */
    kind: oneOf<"open" | "top_up" | "settle" | "close">(),
    /** Signed bytes, sealed. */
    raw: text,
    /** The amount deposited, or the cumulative amount taken out. */
    units: int,
    /** The amount that the service received; 0 until it is done. */
    moved_units: checked(int, "moved_units >= 0"),
    /** Expiry of the transaction, on the chain's clock. */
    valid_until: int,
    state: oneOf<"written" | "done" | "failed">(),
    reason: orNull(text),
    created_at: int,
    ended_at: orNull(int),
  },
  /** A charged call, kept for some time so that a caller who lost the answer can get it again. */
  session_call: {
    channel_id: idOf(oneOf<Hex>(), "session_channel"),
    /** Position of the call in its channel. */
    position: int,
    /** Cumulative amount of the voucher that came with the call. */
    voucher_units: int,
    /** Hash of the request. */
    fingerprint: text,
    challenge_id: text,
    charged_units: int,
    accepted_units: int,
    spent_units: int,
    cu: int,
    /** HTTP status of the answer. */
    status: int,
    /** Null = the answer was too long to be stored. */
    body: orNull(text),
    /** How often a call without a stored answer was repeated free of charge. */
    reruns: int,
    created_at: int,
  },
  /** The price of a call under way. */
  session_hold: {
    channel_id: idOf(oneOf<Hex>(), "session_channel"),
    /** The process that makes the call. */
    node_id: text,
    epoch: int,
    /** Number of the hold within its process. */
    number: int,
    units: checked(int, "units >= 0"),
    /** What identifies the request, as in `session_call`. */
    voucher_units: int,
    fingerprint: text,
    challenge_id: text,
    /** Clock of the database. */
    created_at: int,
  },
};
export type PurchaseTable = Row<typeof PAYMENT_TABLES.purchase>;
export type PurchaseSubmissionTable = Row<typeof PAYMENT_TABLES.purchase_submission>;
export type SessionCallTable = Row<typeof PAYMENT_TABLES.session_call>;
export type SessionChannelTable = Row<typeof PAYMENT_TABLES.session_channel>;
export type SessionTransactionTable = Row<typeof PAYMENT_TABLES.session_transaction>;
export type SessionHoldTable = Row<typeof PAYMENT_TABLES.session_hold>;
