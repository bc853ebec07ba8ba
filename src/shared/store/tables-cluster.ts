// The tables by which the nodes of a service work together, those of its operators, and those of
// what nodes observe, with the conventions of `tables.ts`.
import { int, key, keyOneOf, later, oneOf, orNull, type Row, real, text } from "./column.ts";

export const CLUSTER_TABLES = {
  /** A job that one node does for all. */
  job: {
    name: key,
    /** The node that does it or did it last. */
    node_id: text,
    /** When it is due again; clock of the database. */
    due_at: int,
    /** Until when nobody else starts it: moved on while it runs. */
    claimed_until: int,
  },
  /** A filter that any node can go on with. Rows are removed when nobody has polled for long. */
  filter: {
    id: key,
    /** Equal only for the same caller. */
    owner: text,
    /** The method that created it, and its params as JSON. */
    method: text,
    params: text,
    /** The `profileId` that serves it, and the slug of the profile that was asked for. */
    profile: text,
    named: text,
    chain: text,
    strategy: text,
    /** Id of the pinned provider; null = none. */
    pin: orNull(text),
    /** The process that keeps it, and how often that has changed. */
    node_id: text,
    claim: int,
    /** 1 = changes may be on their way to the caller, beyond `mark`. */
    answering: int,
    /** What its caller has been told. */
    mark: orNull(text),
    /** Clock of the database. */
    polled_at: int,
  },
  /** A rate limit that the nodes share: what of it is granted. May be lost at any time. */
  rate_limit: {
    /** Digest of the name of the limit and of its holder. */
    scope: key,
    /** When it is full; clock of the database. */
    full_at: real,
    /** What the statement was asked for that wrote the row first. */
    step_ms: real,
    burst: real,
    wanted: real,
    owed: real,
    part: real,
    /** What the last statement granted. */
    granted: real,
  },
  /** What a node wanted last of a rate limit that the nodes share. May be lost at any time. */
  rate_demand: {
    scope: text,
    node_id: text,
    wanted: real,
    /** Clock of the database. */
    at: int,
  },
  /** What a process has of a limit of a provider that the nodes share. May be lost at any time. */
  provider_share: {
    /** Which limit of which provider. */
    scope: text,
    process_id: text,
    /** What it may use. */
    share: real,
    used: real,
    /** Null = the process has left. */
    wanted: orNull(real),
    /** Clock of the database. */
    at: int,
  },
  /** What was handed out of the credits of a provider, to be spent. */
  provider_quota: {
    /** The provider, its profile and chain. */
    scope: key,
    /** When the day began, and what was handed out since. */
    day_at: int,
    day_spent: int,
    month_at: int,
    month_spent: int,
  },
  /** A session in the console, or a sign-in link that was used. */
  console_session: {
    /** SHA-256 of the id in the cookie, base64url. */
    id_hash: key,
    /** `used_link` = a sign-in link; it opens nothing. */
    role: oneOf<"operator" | "account" | "used_link">(),
    /** What it ends with: the SHA-256 of the operator token, or the id of a management token. */
    token_ref: text,
    created_at: int,
    expires_at: int,
  },
  /** A provider that an operator took out of use. */
  operator_cordon: {
    profile: text,
    chain: text,
    provider: text,
    reason: orNull(text),
    actor: text,
    created_at: int,
    /** When it ends by itself; null = never. */
    until_at: later(orNull(int)),
  },
  /** What an operator did. */
  operator_action: {
    /** `act_…`, later ones later in order. */
    id: key,
    actor: text,
    /** IP address of the caller. */
    address: text,
    /** The id of the operation. */
    action: text,
    target: orNull(text),
    detail: orNull(text),
    outcome: oneOf<"done" | "refused">(),
    /** The node that did it; null = the service is one node. */
    node: orNull(text),
    created_at: int,
  },
  /** The last reload of the configuration that every node was asked for: one row. */
  operator_reload: {
    slot: keyOneOf<"last">(),
    /** `rld_…` */
    id: text,
    /** The node at which it was asked for. */
    node: text,
    actor: text,
    /** IP address of the caller. */
    address: text,
    /** By the clock of the database. */
    asked_at: int,
  },
  /** How one part of the last audit ended. */
  audit_result: {
    part: keyOneOf<"books" | "chains">(),
    state: oneOf<"balanced" | "unbalanced" | "unread">(),
    problem_count: int,
    /** JSON array of texts: the first problems. */
    problems: text,
    runner: oneOf<"service" | "operator" | "command">(),
    /** Null = the service is one node, or a command ran it. */
    node: orNull(text),
    checked_at: int,
  },
  /** A row of history of an hour, as one service counted it. */
  history_hour: {
    /** Empty, as the chain = of the whole service. */
    profile: text,
    chain: text,
    /** Hours since the epoch. */
    hour: int,
    /** The id; empty = the calls of callers. */
    provider: text,
    /** Class of methods; empty = all. */
    class: text,
    /** Which start of a service wrote it: rows of several are added up. */
    writer: text,
    /** The provider as callers of a managed pool see it; empty = this is no row of a provider. */
    alias: text,
    /** The counts by name, as JSON. */
    counts: text,
  },
  /** What was wrong with a provider or a chain, as one service saw it. */
  incident: {
    id: key,
    profile: text,
    chain: text,
    /** The id, and how callers of a managed pool see it; empty = it is of the chain. */
    provider: text,
    alias: text,
    cause: text,
    /** Empty = it is of the chain. */
    state: text,
    words: text,
    started_at: int,
    /** Null = it was open when it was written. */
    ended_at: orNull(int),
    /** Null = all was not well then. */
    good_since: orNull(int),
    /** When it was written last: a service that ended cannot say that an incident is over. */
    seen_at: int,
    attempts: int,
    failed: int,
    failed_calls: int,
    users: int,
  },
  /** What a process of a node tells of itself. May be lost at any time. */
  node_report: {
    /** As in `node`. */
    node_id: key,
    /** Clock of the database. */
    at: int,
    /** JSON. */
    report: text,
  },
};
export type AuditResultTable = Row<typeof CLUSTER_TABLES.audit_result>;
export type HistoryHourTable = Row<typeof CLUSTER_TABLES.history_hour>;
export type IncidentTable = Row<typeof CLUSTER_TABLES.incident>;
export type OperatorActionTable = Row<typeof CLUSTER_TABLES.operator_action>;
export type ProviderShareTable = Row<typeof CLUSTER_TABLES.provider_share>;
