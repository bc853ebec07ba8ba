// The tables of what nodes observe, as types: what each service counted in each hour of the last 90
// days, and how each process is now.

/** A row of history of an hour, as one service counted it. */
export interface HistoryHourTable {
  /** Empty, as the chain = of the whole service. */
  readonly profile: string;
  readonly chain: string;
  /** Hours since the epoch. */
  readonly hour: bigint;
  /** The id; empty = the calls of callers. */
  readonly provider: string;
  /** Class of methods; empty = all. */
  readonly class: string;
  /** Which start of a service wrote it: rows of several are added up. */
  readonly writer: string;
  /** The provider as callers of a managed pool see it; empty = this is no row of a provider. */
  readonly alias: string;
  /** The counts by name, as JSON. */
  readonly counts: string;
}

/** What a process of a node tells of itself. May be lost at any time. */
export interface NodeReportTable {
  /** As in `node`. */
  readonly node_id: string;
  /** Clock of the database. */
  readonly at: bigint;
  /** JSON. */
  readonly report: string;
}
