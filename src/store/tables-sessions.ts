// The tables of pay-per-call as types, with the conventions of `tables.ts`. Columns ending in
// `_units` are base units of a channel's token: a base unit is a thousand nano-USD.

/** A payer's payment channel. Rows are never deleted. */
export interface SessionChannelTable {
  /** Channel id on the chain, 0x… in lower case. */
  readonly id: string;
  readonly chain_id: bigint;
  /** Distinguishes chains with the same chain id. */
  readonly network: string;
  readonly payer: string;
  /** The parameters from which its id is derived, as JSON. */
  readonly descriptor: string;
  readonly state: "opening" | "open" | "closing" | "closed" | "failed";
  /** Why it failed, or ended in another way than by a close of the service. */
  readonly reason: string | null;
  readonly deposit_units: bigint;
  readonly spent_units: bigint;
  readonly settled_units: bigint;
  /** Vouchers that are still needed, as sealed JSON. */
  readonly vouchers: string;
  /** Number of charged calls. */
  readonly calls: bigint;
  /** Since when spent money is not settled; null = everything is settled. */
  readonly owed_since: bigint | null;
  /**
   * When the payer asked the chain to return the deposit, on the chain's clock; null = not asked.
   */
  readonly close_requested_at: bigint | null;
  /** The block at which the chain was last read. */
  readonly seen_block: bigint;
  /** When the chain is to be checked next, and how many checks in a row failed. */
  readonly look_at: bigint;
  readonly looks: bigint;
  readonly created_at: bigint;
  readonly ended_at: bigint | null;
}

/** A transaction on a channel, stored before it is sent. */
export interface SessionTransactionTable {
  readonly tx_hash: string;
  readonly channel_id: string;
  /** Sent by the payer (`open`, `top_up`) or by the service (`settle`, `close`). */
  readonly kind: "open" | "top_up" | "settle" | "close";
  /** Signed bytes, sealed. */
  readonly raw: string;
  /** The amount deposited, or the cumulative amount taken out. */
  readonly units: bigint;
  /** The amount that the service received; 0 until it is done. */
  readonly moved_units: bigint;
  /** Expiry of the transaction, on the chain's clock. */
  readonly valid_until: bigint;
  readonly state: "written" | "done" | "failed";
  readonly reason: string | null;
  readonly created_at: bigint;
  readonly ended_at: bigint | null;
}

/** A charged call, kept for some time so that a caller who lost the answer can get it again. */
export interface SessionCallTable {
  readonly channel_id: string;
  /** Position of the call in its channel. */
  readonly position: bigint;
  /** Cumulative amount of the voucher that came with the call. */
  readonly voucher_units: bigint;
  /** Hash of the request. */
  readonly fingerprint: string;
  readonly challenge_id: string;
  readonly charged_units: bigint;
  readonly accepted_units: bigint;
  readonly spent_units: bigint;
  readonly cu: bigint;
  /** HTTP status of the answer. */
  readonly status: bigint;
  /** Null = the answer was too long to be stored. */
  readonly body: string | null;
  /** How often a call without a stored answer was repeated free of charge. */
  readonly reruns: bigint;
  readonly created_at: bigint;
}

/** The price of a call under way. */
export interface SessionHoldTable {
  readonly channel_id: string;
  /** The process that makes the call. */
  readonly node_id: string;
  readonly epoch: bigint;
  /** Number of the hold within its process. */
  readonly number: bigint;
  readonly units: bigint;
  /** What identifies the request, as in `session_call`. */
  readonly voucher_units: bigint;
  readonly fingerprint: string;
  readonly challenge_id: string;
  /** Clock of the database. */
  readonly created_at: bigint;
}
