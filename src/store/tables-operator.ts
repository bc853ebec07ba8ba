// The tables of the operators of an instance, as types: sessions in the console, providers that are
// cordoned, a line for each action, the last reload that all nodes were asked for, and the last
// results of audits.

/** A session in the console, or a sign-in link that was used. */
export interface ConsoleSessionTable {
  /** SHA-256 of the id in the cookie, base64url. */
  readonly id_hash: string;
  /** `used_link` = a sign-in link; it opens nothing. */
  readonly role: "operator" | "account" | "used_link";
  /** What it ends with: the SHA-256 of the operator token, or the id of a management token. */
  readonly token_ref: string;
  readonly created_at: bigint;
  readonly expires_at: bigint;
}

/** A provider that an operator took out of use. */
export interface OperatorCordonTable {
  readonly profile: string;
  readonly chain: string;
  readonly provider: string;
  readonly reason: string | null;
  readonly actor: string;
  readonly created_at: bigint;
}

/** What an operator did. */
export interface OperatorActionTable {
  /** `act_…`, later ones later in order. */
  readonly id: string;
  readonly actor: string;
  /** IP address of the caller. */
  readonly address: string;
  /** The id of the operation. */
  readonly action: string;
  readonly target: string | null;
  readonly detail: string | null;
  readonly outcome: "done" | "refused";
  /** The node that did it; null = the service is one node. */
  readonly node: string | null;
  readonly created_at: bigint;
}

/** The last reload of the configuration that every node was asked for: one row. */
export interface OperatorReloadTable {
  readonly slot: "last";
  /** `rld_…` */
  readonly id: string;
  /** The node at which it was asked for. */
  readonly node: string;
  readonly actor: string;
  /** IP address of the caller. */
  readonly address: string;
  /** By the clock of the database. */
  readonly asked_at: bigint;
}

/** How one part of the last audit ended. */
export interface AuditResultTable {
  readonly part: "books" | "chains";
  readonly state: "balanced" | "unbalanced" | "unread";
  readonly problem_count: bigint;
  /** JSON array of texts: the first problems. */
  readonly problems: string;
  readonly runner: "service" | "operator" | "command";
  /** Null = the service is one node, or a command ran it. */
  readonly node: string | null;
  readonly checked_at: bigint;
}
