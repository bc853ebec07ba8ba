// The tables by which the nodes of a service work together, as types: changes that other nodes have
// to hear of, jobs that one node does for all, and how much each node takes of a shared rate limit.
import type { Generated } from "kysely";

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

/** What a node takes of a rate limit that the nodes share. May be lost at any time. */
export interface RateDemandTable {
  /** Which limit, and of whom, as a digest. */
  readonly scope: string;
  readonly node_id: string;
  /** Tokens taken since this node began to count. */
  readonly used: number;
  /** Tokens that all nodes took and that are not refilled yet, as far as this one knows. */
  readonly debt: number;
  /** Tokens asked for in a second, lately. */
  readonly demand: number;
  /** Clock of the database. */
  readonly at: bigint;
  /** When the debt is refilled and the row says nothing more. */
  readonly expires_at: bigint;
}
