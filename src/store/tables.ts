// The tables of the store as types, against which queries are checked. Every integer is a bigint on
// both engines. Names ending in `_n` are nano-USD, names in `_at` and `_until` are milliseconds
// since the epoch.
import type { Generated, Selectable } from "kysely";
import type { Consistency } from "../core/routing/consistency.ts";
import type {
  ChangeLogTable,
  FilterTable,
  JobTable,
  ProviderQuotaTable,
  ProviderShareTable,
  RateDemandTable,
  RateLimitTable,
} from "./tables-cluster.ts";
import type { HistoryHourTable, NodeReportTable } from "./tables-history.ts";
import type {
  AuditResultTable,
  ConsoleSessionTable,
  OperatorActionTable,
  OperatorCordonTable,
  OperatorReloadTable,
} from "./tables-operator.ts";
import type {
  PurchaseSubmissionTable,
  PurchaseTable,
  SettlementWalletTable,
} from "./tables-payments.ts";
import type {
  SessionCallTable,
  SessionChannelTable,
  SessionHoldTable,
  SessionTransactionTable,
} from "./tables-sessions.ts";

/** An account created with an anonymous key, or one with an owner. */
export type AccountKind = "anonymous" | "account";

/** Every table by its name. */
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
  readonly profile_revision: ProfileRevisionTable;
  readonly custom_access: CustomAccessTable;
  readonly feedback: FeedbackTable;
  readonly old_form: LegacyFormTable;
  readonly purchase: PurchaseTable;
  readonly purchase_submission: PurchaseSubmissionTable;
  readonly settlement_wallet: SettlementWalletTable;
  readonly session_channel: SessionChannelTable;
  readonly session_transaction: SessionTransactionTable;
  readonly session_call: SessionCallTable;
  readonly session_hold: SessionHoldTable;
  readonly change_log: ChangeLogTable;
  readonly job: JobTable;
  readonly filter: FilterTable;
  readonly rate_limit: RateLimitTable;
  readonly rate_demand: RateDemandTable;
  readonly provider_share: ProviderShareTable;
  readonly provider_quota: ProviderQuotaTable;
  readonly console_session: ConsoleSessionTable;
  readonly operator_cordon: OperatorCordonTable;
  readonly operator_action: OperatorActionTable;
  readonly operator_reload: OperatorReloadTable;
  readonly audit_result: AuditResultTable;
  readonly history_hour: HistoryHourTable;
  readonly node_report: NodeReportTable;
}

/** An account with its balance. */
export interface AccountTable {
  /** `acc_…` */
  readonly id: string;
  readonly kind: AccountKind;
  /** Money not leased to a node; never negative. */
  readonly balance_n: bigint;
  /** Sum of all credits, grants included. */
  readonly funded_n: bigint;
  /** Time of the first payment; null = never paid. */
  readonly first_paid_at: bigint | null;
  /** When the balance ran out; null = it has not. */
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
  /** JSON array of the profile slugs that it is restricted to; null = all. */
  readonly profiles: string | null;
  /** 0 or 1. */
  readonly read_only: bigint;
  readonly expires_at: bigint | null;
  readonly revoked_at: bigint | null;
  readonly created_at: bigint;
}

/** An API key; its secrets are in `key_secret`. */
export interface ApiKeyTable {
  /** `key_…` */
  readonly id: string;
  readonly account_id: string;
  /** Null for anonymous keys. */
  readonly agent_id: string | null;
  readonly name: string;
  /** First characters of its newest secret, for display. */
  readonly prefix: string;
  /** Null = `premium`. */
  readonly default_profile: string | null;
  /** JSON array of slugs; null = every profile of its account. */
  readonly allowed_profiles: string | null;
  /** Which view of the chain its callers get; null = as the profile says. */
  readonly consistency: Consistency | null;
  /** Number of changes. */
  readonly revision: bigint;
  readonly created_at: bigint;
  readonly revoked_at: bigint | null;
}

/** A secret of a key; there are two during the overlap of a rotation. */
export interface KeySecretTable {
  /** SHA-256 of the secret, base64url. */
  readonly secret_hash: string;
  readonly key_id: string;
  /** Null = valid until it is rotated or its key is revoked. */
  readonly valid_until: bigint | null;
  readonly created_at: bigint;
}

/** An event of the ledger, never changed. Its entries sum to zero. */
export interface LedgerTxTable {
  readonly id: string;
  /** Idempotency key; unique. */
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

/** One entry of an event. */
export interface LedgerEntryTable {
  readonly tx_id: string;
  readonly position: bigint;
  /** `account` = money of an account; all others are books of the operator. */
  readonly book: "account" | "grants" | "payments" | "revenue" | "held";
  readonly account_id: string | null;
  readonly amount_n: bigint;
}

/** Credit that a node may spend on its own: 0 ≤ spent ≤ granted. */
export interface CreditLeaseTable {
  readonly account_id: string;
  readonly node_id: string;
  readonly epoch: bigint;
  readonly granted_n: bigint;
  readonly spent_n: bigint;
}

/** Usage of a key per method and hour. */
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
  /** Of the calls those that were answered from the cache, and their compute units. */
  readonly cached_calls: Generated<bigint>;
  readonly cached_cu: Generated<bigint>;
}

/** A row of usage, as it is read and written. */
export type UsageHourRow = Selectable<UsageHourTable>;

/** Free allowance used by an account in a month. */
export interface AllowanceMonthTable {
  readonly account_id: string;
  /** Months since January 1970, UTC. */
  readonly month: bigint;
  readonly used_cu: bigint;
}

/** A process that leases credit. */
export interface NodeTable {
  readonly id: string;
  /** Number of starts. */
  readonly epoch: bigint;
  readonly region: string;
  readonly state: "alive" | "left" | "dead";
  /** Number of flushes. */
  readonly flush_seq: bigint;
  readonly heartbeat_at: bigint;
  /** Its clock less that of the database. */
  readonly skew_ms: Generated<bigint>;
  /** Made up by the process that joined: it knows its own row again. Null = a version before. */
  readonly process_id: Generated<string | null>;
}

/** A Custom profile of an account. The row of a deleted profile keeps its name. */
export interface ProfileTable {
  /** `prf_…` */
  readonly id: string;
  readonly account_id: string;
  /** Unique within its account. */
  readonly slug: string;
  /** Number of changes, not reset by a deletion. */
  readonly revision: bigint;
  /** The document, sealed; null = deleted. */
  readonly sealed: string | null;
  readonly created_at: bigint;
  readonly updated_at: bigint;
}

/** An earlier revision of a Custom profile. */
export interface ProfileRevisionTable {
  readonly profile_id: string;
  /** Unique within its profile. */
  readonly revision: bigint;
  /** The document without addresses and header values, sealed. */
  readonly sealed: string;
  readonly saved_at: bigint;
}

/** A period in which an account may use Custom profiles. Consecutive periods have no gap. */
export interface CustomAccessTable {
  readonly account_id: string;
  /** The grant's origin and idempotency key; unique within the account. */
  readonly source: string;
  readonly from_at: bigint;
  readonly until_at: bigint;
}

/** A link with which a person claims an account. */
export interface ClaimLinkTable {
  /** SHA-256 of the token in the link, base64url. */
  readonly token_hash: string;
  readonly account_id: string;
  /** The key shown on the page of the link. */
  readonly key_id: string;
  readonly created_at: bigint;
  readonly expires_at: bigint;
  /** Null = open: not used, and not replaced by a later link. */
  readonly ended: "used" | "cancelled" | null;
}

/** A request for a management token, and the decision of the account's owner. */
export interface ConnectionTable {
  /** `con_…` */
  readonly id: string;
  /** SHA-256 of the token with which the requesting program polls, base64url; unique. */
  readonly token_hash: string;
  /** SHA-256 of the secret in the URL of the approval page, base64url; unique. */
  readonly approval_hash: string;
  readonly name: string;
  readonly state: "pending" | "approved" | "denied" | "revoked";
  readonly account_id: string | null;
  /** Set when the token is handed out; null = not handed out. */
  readonly agent_id: string | null;
  /** Restrictions of the agent, as in the table `agent`. */
  readonly profiles: string | null;
  readonly read_only: bigint;
  readonly agent_expires_at: bigint | null;
  readonly created_at: bigint;
  /** Deadline of the decision; once approved, deadline for fetching the token. */
  readonly expires_at: bigint;
  readonly decided_at: bigint | null;
  readonly polled_at: bigint | null;
}

/** A feedback report to the operator, redacted. */
export interface FeedbackTable {
  /** `fbk_…`: ids sort by time. */
  readonly id: string;
  /** Account of the credential sent with it; null = none was sent. */
  readonly account_id: string | null;
  readonly category: string | null;
  readonly request_id: string | null;
  readonly operation: string | null;
  readonly message: string;
  readonly created_at: bigint;
}

/** Usage of a legacy form of requests. */
export interface LegacyFormTable {
  /** Name of a legacy form. */
  readonly name: string;
  readonly requests: bigint;
  /** Null = not since recording began. */
  readonly last_seen_at: bigint | null;
  /** Time that the service has run without a request in this form. */
  readonly quiet_ms: bigint;
}
