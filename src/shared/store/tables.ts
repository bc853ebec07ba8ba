// The tables of the store: their columns, and the types of rows against which queries are checked.
// Every integer is a bigint on both engines. Names ending in `_n` are nano-USD, names in `_at` and
// `_until` are milliseconds since the epoch. What creates them stands in `migrations.ts`.
import type { Generated, Selectable } from "kysely";
import type { Consistency } from "../../core/provider/profile.ts";
import {
  checked,
  column,
  idOf,
  int,
  key,
  later,
  oneOf,
  orNull,
  type Rows,
  tally,
  text,
  unique,
} from "./column.ts";
import { CLUSTER_TABLES } from "./tables-cluster.ts";
import { PAYMENT_TABLES } from "./tables-payments.ts";

/** An account created with an anonymous key, or one with an owner. */
export type AccountKind = "anonymous" | "account";

const ACCOUNT_TABLES = {
  /** An account with its balance. */
  account: {
    /** `acc_…` */
    id: key,
    kind: oneOf<AccountKind>(),
    /** Money not leased to a node; never negative. */
    balance_n: checked(int, "balance_n >= 0"),
    /** Sum of all credits, grants included. */
    funded_n: checked(int, "funded_n >= 0"),
    /** Time of the first payment; null = never paid. */
    first_paid_at: orNull(int),
    /** When the balance ran out; null = it has not. */
    exhausted_at: orNull(int),
    merged_into: orNull(text),
    created_at: int,
  },
  /** A management token of an account. */
  agent: {
    /** `agt_…` */
    id: key,
    account_id: idOf(text, "account"),
    name: text,
    /** SHA-256 of the token, base64url; unique. */
    token_hash: unique(text),
    /** JSON array of the profile slugs that it is restricted to; null = all. */
    profiles: orNull(text),
    /** 0 or 1. */
    read_only: int,
    expires_at: orNull(int),
    revoked_at: orNull(int),
    created_at: int,
  },
  /** An API key; its secrets are in `key_secret`. */
  api_key: {
    /** `key_…` */
    id: key,
    account_id: idOf(text, "account"),
    /** Null for anonymous keys. */
    agent_id: idOf(orNull(text), "agent"),
    name: text,
    /** First characters of its newest secret, for display. */
    prefix: text,
    /** Null = `premium`. */
    default_profile: orNull(text),
    /** JSON array of slugs; null = every profile of its account. */
    allowed_profiles: orNull(text),
    /** Which view of the chain its callers get; null = as the profile says. */
    consistency: later(orNull(oneOf<Consistency>())),
    /** Number of changes. */
    revision: int,
    created_at: int,
    revoked_at: orNull(int),
  },
  /** A secret of a key; there are two during the overlap of a rotation. */
  key_secret: {
    /** SHA-256 of the secret, base64url. */
    secret_hash: key,
    key_id: idOf(text, "api_key"),
    /** Null = valid until it is rotated or its key is revoked. */
    valid_until: orNull(int),
    created_at: int,
  },
  /** An event of the ledger, never changed. Its entries sum to zero. */
  ledger_tx: {
    id: key,
    /** Idempotency key; unique. */
    idem_key: unique(text),
    kind: oneOf<
      | "grant"
      | "payment"
      | "usage"
      | "move"
      | "access"
      | "hold"
      | "release"
      | "release_access"
      | "session"
    >(),
    created_at: int,
  },
  /** One entry of an event. */
  ledger_entry: {
    tx_id: idOf(text, "ledger_tx"),
    position: int,
    /** `account` = money of an account; all others are books of the operator. */
    book: oneOf<"account" | "grants" | "payments" | "revenue" | "held">(),
    account_id: idOf(orNull(text), "account"),
    amount_n: int,
  },
  /** A process that leases credit. */
  node: {
    id: key,
    /** Number of starts. */
    epoch: int,
    region: text,
    state: oneOf<"alive" | "left" | "dead">(),
    /** Number of flushes. */
    flush_seq: int,
    heartbeat_at: int,
    /** Its clock less that of the database. */
    skew_ms: later(tally),
    /** Made up by the process that joined: it knows its own row again. Null = a version before. */
    process_id: later(column<Generated<string | null>>("text")),
  },
  /** Credit that a node may spend on its own: 0 ≤ spent ≤ granted. */
  credit_lease: {
    account_id: idOf(text, "account"),
    node_id: idOf(text, "node"),
    epoch: int,
    granted_n: int,
    spent_n: int,
  },
  /** Usage of a key per method and hour. */
  usage_hour: {
    account_id: text,
    key_id: text,
    /** Name of a row of the method table, `unknown`, or `notification`. */
    method: text,
    /** Hours since the epoch. */
    hour: int,
    calls: int,
    cu: int,
    charge_n: int,
    /** Of the calls those that were answered from the cache, and their compute units. */
    cached_calls: later(tally),
    cached_cu: later(tally),
  },
  /** Free allowance used by an account in a month. */
  allowance_month: {
    account_id: text,
    /** Months since January 1970, UTC. */
    month: int,
    used_cu: checked(int, "used_cu >= 0"),
  },
  /** A link with which a person claims an account. */
  claim_link: {
    /** SHA-256 of the token in the link, base64url. */
    token_hash: key,
    account_id: idOf(text, "account"),
    /** The key shown on the page of the link. */
    key_id: idOf(text, "api_key"),
    created_at: int,
    expires_at: int,
    /** Null = open: not used, and not replaced by a later link. */
    ended: orNull(oneOf<"used" | "cancelled">()),
  },
  /** A request for a management token, and the decision of the account's owner. */
  connection: {
    /** `con_…` */
    id: key,
    /** SHA-256 of the token with which the requesting program polls, base64url; unique. */
    token_hash: unique(text),
    /** SHA-256 of the secret in the URL of the approval page, base64url; unique. */
    approval_hash: unique(text),
    name: text,
    state: oneOf<"pending" | "approved" | "denied" | "revoked">(),
    account_id: idOf(orNull(text), "account"),
    /** Set when the token is handed out; null = not handed out. */
    agent_id: idOf(orNull(text), "agent"),
    /** Restrictions of the agent, as in the table `agent`. */
    profiles: orNull(text),
    read_only: int,
    agent_expires_at: orNull(int),
    created_at: int,
    /** Deadline of the decision; once approved, deadline for fetching the token. */
    expires_at: int,
    decided_at: orNull(int),
    polled_at: orNull(int),
  },
  /** A Custom profile of an account. The row of a deleted profile keeps its name. */
  profile: {
    /** `prf_…` */
    id: key,
    account_id: idOf(text, "account"),
    /** Unique within its account. */
    slug: text,
    /** Number of changes, not reset by a deletion. */
    revision: int,
    /** The document, sealed; null = deleted. */
    sealed: orNull(text),
    created_at: int,
    updated_at: int,
  },
  /** An earlier revision of a Custom profile. */
  profile_revision: {
    profile_id: column<string>(`${idOf(text, "profile").definition} on delete cascade`),
    /** Unique within its profile. */
    revision: int,
    /** The document without addresses and header values, sealed. */
    sealed: text,
    saved_at: int,
  },
  /** A period in which an account may use Custom profiles. Consecutive periods have no gap. */
  custom_access: {
    account_id: idOf(text, "account"),
    /** The grant's origin and idempotency key; unique within the account. */
    source: text,
    from_at: int,
    until_at: int,
  },
  /** A feedback report to the operator, redacted. */
  feedback: {
    /** `fbk_…`: ids sort by time. */
    id: key,
    /** Account of the credential sent with it; null = none was sent. */
    account_id: idOf(orNull(text), "account"),
    category: orNull(text),
    request_id: orNull(text),
    operation: orNull(text),
    message: text,
    created_at: int,
  },
  /** Usage of a legacy form of requests. */
  old_form: {
    /** Name of a legacy form. */
    name: key,
    requests: int,
    /** Null = not since recording began. */
    last_seen_at: orNull(int),
    /** Time that the service has run without a request in this form. */
    quiet_ms: checked(int, "quiet_ms >= 0"),
  },
};

/**
 * The columns of every table but `change_log`, whose statement differs between the engines. Tables
 * come after those that they refer to.
 */
export const TABLES = { ...ACCOUNT_TABLES, ...PAYMENT_TABLES, ...CLUSTER_TABLES };

/** A change that every node has to hear of. Rows are removed after an hour. */
interface ChangeLogTable {
  /** In the order of writing; not the order in which transactions commit. */
  readonly seq: Generated<bigint>;
  /** Of the transaction that wrote it, PostgreSQL's `xid8` as text; "0" in an embedded store. */
  readonly xid: Generated<string>;
  /** Clock of the database. */
  readonly at: Generated<bigint>;
  readonly topic: string;
  /** What has changed: an id, or an account and a slug. Never a secret. */
  readonly ref: string;
}

/** The rows of every table by its name. */
export interface Tables extends Rows<typeof TABLES> {
  readonly change_log: ChangeLogTable;
}

/** A row of usage, as it is read and written. */
export type UsageHourRow = Selectable<Tables["usage_hour"]>;
export type AccountTable = Tables["account"];
export type AllowanceMonthTable = Tables["allowance_month"];
export type ApiKeyTable = Tables["api_key"];
export type ClaimLinkTable = Tables["claim_link"];
export type ConnectionTable = Tables["connection"];
export type CreditLeaseTable = Tables["credit_lease"];
export type FeedbackTable = Tables["feedback"];
export type LedgerEntryTable = Tables["ledger_entry"];
export type LedgerTxTable = Tables["ledger_tx"];
export type ManagementTokenTable = Tables["agent"];
export type ProfileTable = Tables["profile"];
export type UsageHourTable = Tables["usage_hour"];
