// The tables of payments as types; named and counted as in `tables.ts`. A base unit of a token is a
// thousand nano-USD.

/** A payment and what it buys. A row is never deleted. */
export interface PurchaseTable {
  /** `pur_…` */
  readonly id: string;
  /** The same for the same payment; unique. */
  readonly payment_key: string;
  /**
   * The offer that the payment answers. A repeated payment carries it again, and no chain shows
   * it.
   */
  readonly offer_id: string;
  /**
   * The same as `offer_id` while this purchase uses its offer up, so that nobody pays twice for
   * one; null = it does not. Unique.
   */
  readonly offer_claim: string | null;
  /** Of the request that it came with. */
  readonly fingerprint: string;
  /** What it buys, as JSON. */
  readonly purpose: string;
  readonly units: bigint;
  readonly amount_n: bigint;
  /** Method of the rail. */
  readonly rail: string;
  readonly protocol: "mpp" | "x402";
  readonly chain_id: bigint;
  /** Tells its chain from another one with the same number. */
  readonly network: string;
  readonly token: string;
  readonly recipient: string;
  readonly payer: string;
  /** What the rail needs of the payment, sealed. */
  readonly material: string;
  /** 0 or 1: the client has sent the money itself. */
  readonly is_sent: bigint;
  /** On the chain's clock; null = for ever. */
  readonly valid_until: bigint | null;
  readonly state: "accepted" | "submitted" | "settled" | "failed";
  /** Why it failed. */
  readonly reason: string | null;
  /** The transaction that settled it, else the newest one that was sent for it. */
  readonly tx_hash: string | null;
  /**
   * `<chain id>:<network>:<transaction>:<log>`: one movement of money pays once. Null until it has
   * settled. Unique.
   */
  readonly settled_ref: string | null;
  /** What the money did, as sealed JSON; null = nothing yet, or its beneficiary is gone. */
  readonly fulfilment: string | null;
  /** When the secret in it is taken out; null = there is none. */
  readonly blank_at: bigint | null;
  readonly created_at: bigint;
  readonly ended_at: bigint | null;
  /** When to look at its chain next, and how often that was done. */
  readonly look_at: bigint;
  readonly looks: bigint;
  /** The node that looks after it, until when; null = none does. */
  readonly lease_node: string | null;
  readonly lease_until: bigint | null;
}

/** A transaction that was sent for a purchase, written down before. */
export interface PurchaseSubmissionTable {
  readonly purchase_id: string;
  /** Counts from 0. */
  readonly position: bigint;
  readonly tx_hash: string;
  /** Signed bytes, sealed; null = the client sent it. */
  readonly raw: string | null;
  /** The wallet of ours whose nonce it has; null = none. */
  readonly wallet_id: string | null;
  readonly nonce: bigint | null;
  readonly created_at: bigint;
  /**
   * When its nonce was seen to be used up, by this transaction or another one; null = it may have
   * to be sent again.
   */
  readonly passed_at: bigint | null;
}

/** A wallet of ours that pays for gas. */
export interface SettlementWalletTable {
  /** `<chain id>:<address>:<network>` */
  readonly id: string;
  readonly next_nonce: bigint;
}
