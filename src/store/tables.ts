// The tables of the store as types: the one description that queries are checked against. Every
// integer is a bigint on both engines; names that end in `_n` are nano-USD, in `_at` and `_until`
// milliseconds since the epoch.
import type {
  PurchaseSubmissionTable,
  PurchaseTable,
  SettlementWalletTable,
} from "./tables-payments.ts";
import type {
  SessionCallTable,
  SessionChannelTable,
  SessionTransactionTable,
} from "./tables-sessions.ts";

/** An account made with an anonymous key, or one that has an owner. */
export type AccountKind = "anonymous" | "account";

/** Every table. */
export interface Tables {
  readonly account: AccountTable;
  readonly agent: ManagementTokenTable;
  readonly api_key: ApiKeyTable;
  readonly key_secret: KeySecretTable;
  readonly ledger_tx: LedgerTxTable;
  readonly ledger_entry: LedgerEntryTable;
  readonly credit_lease: CreditLeaseTable;
  readonly usage_hour: UsageHourTable;
  readonly allowance_month: AllowanceMonthTable;
  readonly node: NodeTable;
  readonly claim_link: ClaimLinkTable;
  readonly connection: ConnectionTable;
  readonly profile: ProfileTable;
  readonly custom_access: CustomAccessTable;
  readonly feedback: FeedbackTable;
  readonly old_form: LegacyFormTable;
  readonly purchase: PurchaseTable;
  readonly purchase_submission: PurchaseSubmissionTable;
  readonly settlement_wallet: SettlementWalletTable;
  readonly session_channel: SessionChannelTable;
  readonly session_transaction: SessionTransactionTable;
  readonly session_call: SessionCallTable;
}

/** An account: the balance that calls are charged to. */
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

/** A management token of an account. */
export interface ManagementTokenTable {
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
  readonly kind:
    | "grant"
    | "payment"
    | "usage"
    | "move"
    | "access"
    | "hold"
    | "release"
    | "release_access"
    | "session";
  readonly created_at: bigint;
}

/** One line of an event. */
export interface LedgerEntryTable {
  readonly tx_id: string;
  readonly position: bigint;
  /** `account` for money of an account, else a book of the operator. */
  readonly book: "account" | "grants" | "payments" | "revenue" | "held";
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

/** A Custom profile of an account; a deleted one keeps its name. */
export interface ProfileTable {
  /** `prf_…` */
  readonly id: string;
  readonly account_id: string;
  /** Unique within its account. */
  readonly slug: string;
  /** Counts changes, also over a deletion. */
  readonly revision: bigint;
  /** The document, sealed; null = deleted. */
  readonly sealed: string | null;
  readonly created_at: bigint;
  readonly updated_at: bigint;
}

/**
 * A time for which an account may use Custom profiles. Times that follow each other leave no gap.
 */
export interface CustomAccessTable {
  readonly account_id: string;
  /** Who gave it, and what makes a repetition the same; unique within the account. */
  readonly source: string;
  readonly from_at: bigint;
  readonly until_at: bigint;
}

/** A link by which a person makes an account part of their own. */
export interface ClaimLinkTable {
  /** SHA-256 of the token in the link, base64url. */
  readonly token_hash: string;
  readonly account_id: string;
  /** The key that the link shows. */
  readonly key_id: string;
  readonly created_at: bigint;
  readonly expires_at: bigint;
  /** Null = nobody has used it, and no later link has taken its place. */
  readonly ended: "used" | "cancelled" | null;
}

/** A request for a management token, and the decision of an account's owner. */
export interface ConnectionTable {
  /** `con_…` */
  readonly id: string;
  /** SHA-256 of what the asker polls with, base64url; unique. */
  readonly token_hash: string;
  /** SHA-256 of what opens the page, base64url; unique. */
  readonly approval_hash: string;
  readonly name: string;
  readonly state: "pending" | "approved" | "denied" | "revoked";
  readonly account_id: string | null;
  /** Made when the token is handed out; null = it was not. */
  readonly agent_id: string | null;
  /** Restrictions of the agent, as in its own table. */
  readonly profiles: string | null;
  readonly read_only: bigint;
  readonly agent_expires_at: bigint | null;
  readonly created_at: bigint;
  /** Until when it may be decided; once approved, until when the token may be fetched. */
  readonly expires_at: bigint;
  readonly decided_at: bigint | null;
  readonly polled_at: bigint | null;
}

/** A feedback report to the operator, redacted. */
export interface FeedbackTable {
  /** `fbk_…`: later ones come later in order. */
  readonly id: string;
  /** Of the credential it was sent with; null = none was. */
  readonly account_id: string | null;
  readonly category: string | null;
  readonly request_id: string | null;
  readonly operation: string | null;
  readonly message: string;
  readonly created_at: bigint;
}

/** The use of a legacy form of request. */
export interface LegacyFormTable {
  /** Name of a legacy form. */
  readonly name: string;
  readonly requests: bigint;
  /** Null = not since this is recorded. */
  readonly last_seen_at: bigint | null;
  /** For how long the service has run without a request of this form. */
  readonly quiet_ms: bigint;
}
