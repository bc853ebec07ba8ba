// The tables of pay-per-call as types; named and counted as in `tables.ts`. Columns that end in
// `_units` are base units of a channel's token: a base unit is a thousand nano-USD.

/** A payer's channel. A row is never deleted. */
export interface SessionChannelTable {
  /** Its id on the chain, 0x… in lower case. */
  readonly id: string;
  readonly chain_id: bigint;
  /** Tells its chain from another one with the same number. */
  readonly network: string;
  readonly payer: string;
  /** What its id is made of, as JSON. */
  readonly descriptor: string;
  readonly state: "opening" | "open" | "closing" | "closed" | "failed";
  /** Why it failed, or ended otherwise than by a close of ours. */
  readonly reason: string | null;
  readonly deposit_units: bigint;
  readonly spent_units: bigint;
  readonly settled_units: bigint;
  /** Promises of the payer's that are still of use, as sealed JSON. */
  readonly vouchers: string;
  /** Calls that were charged. */
  readonly calls: bigint;
  /** Since when something is spent and not settled; null = nothing is. */
  readonly owed_since: bigint | null;
  /** When the payer told the chain to give the deposit back, on the chain's clock; null = not. */
  readonly close_requested_at: bigint | null;
  /** The block at which the chain was last asked for it. */
  readonly seen_block: bigint;
  /** When to look at the chain next, and how often that was in vain. */
  readonly look_at: bigint;
  readonly looks: bigint;
  readonly created_at: bigint;
  readonly ended_at: bigint | null;
}

/** A transaction about a channel, written down before it is sent. */
export interface SessionTransactionTable {
  readonly tx_hash: string;
  readonly channel_id: string;
  /** The payer's (`open`, `top_up`), or ours. */
  readonly kind: "open" | "top_up" | "settle" | "close";
  /** Signed bytes, sealed. */
  readonly raw: string;
  /** What it puts in, or what it takes out in all. */
  readonly units: bigint;
  /** What came to us by it; 0 until it is done. */
  readonly moved_units: bigint;
  /** From when on the chain takes it no more, on the chain's clock. */
  readonly valid_until: bigint;
  readonly state: "written" | "done" | "failed";
  readonly reason: string | null;
  readonly created_at: bigint;
  readonly ended_at: bigint | null;
}

/** A charged call: kept for some time, so that a caller who lost the answer gets it again. */
export interface SessionCallTable {
  readonly channel_id: string;
  /** Counts the calls of its channel. */
  readonly position: bigint;
  /** What the voucher promised that it came with. */
  readonly voucher_units: bigint;
  /** Of the request. */
  readonly fingerprint: string;
  readonly challenge_id: string;
  readonly charged_units: bigint;
  readonly accepted_units: bigint;
  readonly spent_units: bigint;
  readonly cu: bigint;
  /** HTTP status of the answer. */
  readonly status: bigint;
  /** Null = the answer was too long to be kept. */
  readonly body: string | null;
  /** How often a call whose answer was not kept was made again without a charge. */
  readonly reruns: bigint;
  readonly created_at: bigint;
}
