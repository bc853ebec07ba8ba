// The tables of payments as types, with the conventions of `tables.ts`. A base unit of a token is a
// thousand nano-USD.

/** A payment and what it buys. Rows are never deleted. */
export interface PurchaseTable {
  /** `pur_…` */
  readonly id: string;
  /** Identifies the payment: equal for its repetitions; unique. */
  readonly payment_key: string;
  /**
   * The offer that the payment answers. Repetitions of the payment carry it, too; it does not
   * appear on a chain.
   */
  readonly offer_id: string;
  /**
   * Equal to `offer_id` while this purchase uses its offer, so that an offer is paid only once;
   * null = it does not. Unique.
   */
  readonly offer_claim: string | null;
  /** Hash of the request that carried the payment. */
  readonly fingerprint: string;
  /** What the payment buys, as JSON. */
  readonly purpose: string;
  readonly units: bigint;
  readonly amount_n: bigint;
  /** Payment method of the rail. */
  readonly rail: string;
  readonly protocol: "mpp" | "x402";
  readonly chain_id: bigint;
  /** Distinguishes chains with the same chain id. */
  readonly network: string;
  readonly token: string;
  readonly recipient: string;
  readonly payer: string;
  /** The data of the payment that its rail needs, sealed. */
  readonly material: string;
  /** 0 or 1: the client has sent the transaction itself. */
  readonly is_sent: bigint;
  /** On the chain's clock; null = unlimited. */
  readonly valid_until: bigint | null;
  readonly state: "accepted" | "submitted" | "settled" | "failed";
  /** Why the purchase failed. */
  readonly reason: string | null;
  /** The transaction that settled it, else the newest one sent for it. */
  readonly tx_hash: string | null;
  /**
   * `<chain id>:<network>:<transaction>:<log>`: each transfer on the chain pays once. Null until it
   * has settled. Unique.
   */
  readonly settled_ref: string | null;
  /**
   * The result of the purchase, as sealed JSON; null = none yet, or the beneficiary no longer
   * exists.
   */
  readonly fulfilment: string | null;
  /** When the secret in `fulfilment` is to be removed; null = it has none. */
  readonly blank_at: bigint | null;
  readonly created_at: bigint;
  readonly ended_at: bigint | null;
  /** When the chain is to be checked next, and how many checks were made. */
  readonly look_at: bigint;
  readonly looks: bigint;
  /** The node that advances the purchase, and until when; null = none. */
  readonly lease_node: string | null;
  readonly lease_until: bigint | null;
}

/** A transaction for a purchase, stored before it is sent. */
export interface PurchaseSubmissionTable {
  readonly purchase_id: string;
  /** Position in the purchase, from 0. */
  readonly position: bigint;
  readonly tx_hash: string;
  /** Signed bytes, sealed; null = the client sent it. */
  readonly raw: string | null;
  /** The service's wallet whose nonce it uses; null = none. */
  readonly wallet_id: string | null;
  readonly nonce: bigint | null;
  readonly created_at: bigint;
  /**
   * When its nonce was found to be used, by this or another transaction; null = it may have to be
   * sent again.
   */
  readonly passed_at: bigint | null;
}

/** A wallet of the service that pays for gas. */
export interface SettlementWalletTable {
  /** `<chain id>:<address>:<network>` */
  readonly id: string;
  readonly next_nonce: bigint;
}
