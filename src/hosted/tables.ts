// The tables of the store as types: the one description that queries are checked against. Every integer is a bigint on both engines;
// names that end in `_n` are nano-USD, in `_at` and `_until` milliseconds since the epoch.

/** Whether an account is only as old as its anonymous key, or has an owner. */
export type AccountKind = "anonymous" | "account";

/** Every table. */
export interface Tables {
  readonly account: AccountTable;
  readonly agent: AgentTable;
  readonly api_key: ApiKeyTable;
  readonly key_secret: KeySecretTable;
  readonly ledger_tx: LedgerTxTable;
  readonly ledger_entry: LedgerEntryTable;
  readonly credit_lease: CreditLeaseTable;
  readonly usage_hour: UsageHourTable;
  readonly allowance_month: AllowanceMonthTable;
  readonly node: NodeTable;
}

/** Who pays. */
export interface AccountTable {
  /** `acc_…` */
  readonly id: string;
  readonly kind: AccountKind;
  /** Money that is not leased to a node; never negative. */
  readonly balance_n: bigint;
  /** All that was ever credited, grants included. */
  readonly funded_n: bigint;
  /** When it was first credited by a payment; null = never. */
  readonly first_paid_at: bigint | null;
  /** Since when nothing is left; null = something is. */
  readonly exhausted_at: bigint | null;
  readonly merged_into: string | null;
  readonly created_at: bigint;
}

/** Who manages an account: the holder of a management token. */
export interface AgentTable {
  /** `agt_…` */
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  /** SHA-256 of the token, base64url; unique. */
  readonly token_hash: string;
  /** JSON array of slugs that it is restricted to; null = all. */
  readonly profiles: string | null;
  /** 0 or 1. */
  readonly read_only: bigint;
  readonly expires_at: bigint | null;
  readonly revoked_at: bigint | null;
  readonly created_at: bigint;
}

/** A key that callers use; its secrets stand in `key_secret`. */
export interface ApiKeyTable {
  /** `key_…` */
  readonly id: string;
  readonly account_id: string;
  /** Null for anonymous keys. */
  readonly agent_id: string | null;
  readonly name: string;
  /** How its newest secret begins, to tell keys apart. */
  readonly prefix: string;
  /** Null = `premium`. */
  readonly default_profile: string | null;
  /** JSON array of slugs; null = every profile of its account. */
  readonly allowed_profiles: string | null;
  /** Counts changes. */
  readonly revision: bigint;
  readonly created_at: bigint;
  readonly revoked_at: bigint | null;
}

/** A secret that a key answers to: two during the overlap of a rotation. */
export interface KeySecretTable {
  /** SHA-256 of the secret, base64url. */
  readonly secret_hash: string;
  readonly key_id: string;
  /** Null = until it is rotated or its key revoked. */
  readonly valid_until: bigint | null;
  readonly created_at: bigint;
}

/** One event of the ledger, never changed; its entries sum to zero. */
export interface LedgerTxTable {
  readonly id: string;
  /** What makes a repetition the same event; unique. */
  readonly idem_key: string;
  readonly kind: "grant" | "payment" | "usage" | "move";
  readonly created_at: bigint;
}

/** One line of an event. */
export interface LedgerEntryTable {
  readonly tx_id: string;
  readonly position: bigint;
  /** `account` for money of an account, else a book of the operator. */
  readonly book: "account" | "grants" | "payments" | "revenue";
  readonly account_id: string | null;
  readonly amount_n: bigint;
}

/** Money of an account that a node may spend without asking: 0 ≤ spent ≤ granted. */
export interface CreditLeaseTable {
  readonly account_id: string;
  readonly node_id: string;
  readonly epoch: bigint;
  readonly granted_n: bigint;
  readonly spent_n: bigint;
}

/** What a key used of a method in an hour. */
export interface UsageHourTable {
  readonly account_id: string;
  readonly key_id: string;
  /** Name of a row of the method table, `unknown`, or `notification`. */
  readonly method: string;
  /** Hours since the epoch. */
  readonly hour: bigint;
  readonly calls: bigint;
  readonly cu: bigint;
  readonly charge_n: bigint;
}

/** What an account used of its free allowance in a month. */
export interface AllowanceMonthTable {
  readonly account_id: string;
  /** Months since January 1970, UTC. */
  readonly month: bigint;
  readonly used_cu: bigint;
}

/** A process that leases credit. */
export interface NodeTable {
  readonly id: string;
  /** Counts its starts. */
  readonly epoch: bigint;
  readonly region: string;
  readonly state: "alive" | "left" | "dead";
  /** Counts its flushes. */
  readonly flush_seq: bigint;
  readonly heartbeat_at: bigint;
}
