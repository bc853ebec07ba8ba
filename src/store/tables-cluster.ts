// The tables by which the nodes of a service work together, as types: changes that other nodes have
// to hear of, jobs that one node does for all, and how much each node takes of a shared rate limit.
import type { Generated } from "kysely";
import type { FilterOrigin } from "../core/stream/filter-record.ts";

/** A change that every node has to hear of. Rows are removed after an hour. */
export interface ChangeLogTable {
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

/** A job that one node does for all. */
export interface JobTable {
  readonly name: string;
  /** The node that does it or did it last. */
  readonly node_id: string;
  /** When it is due again; clock of the database. */
  readonly due_at: bigint;
  /** Until when nobody else starts it: moved on while it runs. */
  readonly claimed_until: bigint;
}

/** A rate limit that the nodes share: what of it is granted. May be lost at any time. */
export interface RateLimitTable {
  /** Digest of the name of the limit and of its holder. */
  readonly scope: string;
  /** When it is full; clock of the database. */
  readonly full_at: number;
  /** What the statement was asked for that wrote the row first. */
  readonly step_ms: number;
  readonly burst: number;
  readonly wanted: number;
  readonly owed: number;
  readonly part: number;
  /** What the last statement granted. */
  readonly granted: number;
}

/** A filter that any node can go on with. Rows are removed when nobody has polled for long. */
export interface FilterTable extends FilterOrigin {
  /** The process that keeps it, and how often that has changed. */
  readonly node_id: string;
  readonly claim: bigint;
  /** 1 = changes may be on their way to the caller, beyond `mark`. */
  readonly answering: bigint;
  /** What its caller has been told. */
  readonly mark: string | null;
  /** Clock of the database. */
  readonly polled_at: bigint;
}

/** What a node wanted last of a rate limit that the nodes share. May be lost at any time. */
export interface RateDemandTable {
  readonly scope: string;
  readonly node_id: string;
  readonly wanted: number;
  /** Clock of the database. */
  readonly at: bigint;
}

/** What a process has of a limit of a provider that the nodes share. May be lost at any time. */
export interface ProviderShareTable {
  /** Which limit of which provider. */
  readonly scope: string;
  readonly process_id: string;
  /** What it may use. */
  readonly share: number;
  readonly used: number;
  /** Null = the process has left. */
  readonly wanted: number | null;
  /** Clock of the database. */
  readonly at: bigint;
}

/** What was handed out of the credits of a provider, to be spent. */
export interface ProviderQuotaTable {
  /** The provider, its profile and chain. */
  readonly scope: string;
  /** When the day began, and what was handed out since. */
  readonly day_at: bigint;
  readonly day_spent: bigint;
  readonly month_at: bigint;
  readonly month_spent: bigint;
}
