// A filter as the nodes of a service share it, and the port to where such records are kept. A
// record names its caller by an id, never by a secret.

/** What a filter was created with. */
export interface FilterOrigin {
  readonly id: string;
  /** Equal only for the same caller. */
  readonly owner: string;
  /** The method that created it, and its params as JSON. */
  readonly method: string;
  readonly params: string;
  /** The `profileId` that serves it, and the slug of the profile that was asked for. */
  readonly profile: string;
  readonly named: string;
  readonly chain: string;
  readonly strategy: string;
  /** Id of the pinned provider; null = none. */
  readonly pin: string | null;
}

/** A filter as it is recorded. */
export interface FilterRecord extends FilterOrigin {
  /** The process that keeps it, and how often that has changed. */
  readonly node: string;
  readonly claim: number;
  /** Changes are in an answer of which it is not known yet whether it was written. */
  readonly isAnswering: boolean;
  /** What its caller has been told, as the text of a mark; null = the kind has none. */
  readonly mark: string | null;
  /** Time since the last poll (ms). */
  readonly idleMs: number;
}

/** Names a record that a process keeps. */
export interface ClaimedFilter {
  readonly id: string;
  readonly claim: number;
}

/** What a process writes into the record of a filter that it keeps. */
export interface FilterUpdate extends ClaimedFilter {
  readonly isAnswering: boolean;
  /** Null = as it is. */
  readonly mark: string | null;
  readonly idleMs: number;
}

/** Keeps records. Every function may fail: the database can be away. */
export interface FilterRecords {
  /**
   * Adds a record that this process keeps, under its first claim. May be repeated where it is not
   * known whether it was added; a record that another process has taken by then stays as it is.
   */
  add(origin: FilterOrigin, mark: string | null): Promise<void>;
  /** Null = there is none. */
  read(id: string): Promise<FilterRecord | null>;
  /** Takes a record over; false = another process was faster. */
  take(filter: ClaimedFilter): Promise<boolean>;
  /** Writes what this process still keeps; returns the ids of those. */
  write(updates: readonly FilterUpdate[]): Promise<ReadonlySet<string>>;
  /** The ids of those that this process still keeps. */
  kept(filters: readonly ClaimedFilter[]): Promise<ReadonlySet<string>>;
  /** Notes a poll. */
  touch(id: string): Promise<void>;
  /** Removes the record of an owner at any process; null = there is none, else who kept it. */
  remove(id: string, owner: string): Promise<string | null>;
  /** Removes a record that this process keeps; `idleMs`: only if it was not polled for so long. */
  removeKept(filter: ClaimedFilter, idleMs: number): Promise<void>;
}

/** A filter ends when it is not polled for this long. */
export const FILTER_IDLE_MS = 300_000;
