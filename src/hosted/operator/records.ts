// What the console keeps of an instance: sessions, providers that an operator took out of use, and
// a line for each action. Knows no place where it is kept.

/** A session in the console; `used_link` = a sign-in link, which opens nothing any more. */
export interface ConsoleSession {
  /** SHA-256 of the id in the cookie, base64url. */
  readonly idHash: string;
  readonly role: "operator" | "account" | "used_link";
  /** What it ends with: the SHA-256 of the operator token, or the id of a management token. */
  readonly tokenRef: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** A provider of a profile on a chain, by its real id. */
export interface ProviderRef {
  /** The id of the profile: a slug, or `<account>/<slug>`. */
  readonly profile: string;
  readonly chain: string;
  readonly provider: string;
}

/** A provider that an operator took out of use. */
export interface OperatorCordon extends ProviderRef {
  readonly reason: string | null;
  /** Who did it. */
  readonly actor: string;
  readonly atMs: number;
}

/** What an operator did. */
export interface OperatorAction {
  readonly id: string;
  readonly atMs: number;
  readonly actor: string;
  /** IP address of the caller. */
  readonly address: string;
  /** The id of the operation. */
  readonly action: string;
  readonly target: string | null;
  readonly detail: string | null;
  readonly outcome: "done" | "refused";
  /** Null = the service is one node. */
  readonly node: string | null;
}

/** Some of the actions, the newest first. */
export interface ActionPage {
  readonly actions: readonly OperatorAction[];
  /** Where the next page begins; null = there is none. */
  readonly next: string | null;
}

/** Selects actions: those older than `after`. */
export interface ActionQuery {
  readonly limit: number;
  readonly after: string | null;
}

/** Keeps all of it. A call that fails throws as a store does. */
export interface OperatorRecords {
  /**
   * Adds a session; the oldest of the same token beyond the bound end. False = there is one with
   * this id.
   */
  addSession(session: ConsoleSession): Promise<boolean>;
  /** Null = unknown, ended or expired. */
  session(idHash: string, nowMs: number): Promise<ConsoleSession | null>;
  endSession(idHash: string): Promise<void>;
  cordons(): Promise<readonly OperatorCordon[]>;
  /** Adds or replaces a cordon. False = there are as many as may be. */
  cordon(cordon: OperatorCordon): Promise<boolean>;
  /** False = there was none. */
  uncordon(ref: ProviderRef): Promise<boolean>;
  /** Adds an action; the oldest beyond the bound are dropped. */
  addAction(action: OperatorAction): Promise<void>;
  actions(query: ActionQuery): Promise<ActionPage>;
}

/** Bounds of what is kept. */
export const RECORD_LIMITS = {
  /** Sessions opened with one token. */
  sessionsPerToken: 20,
  sessions: 10_000,
  cordons: 1_000,
  actions: 10_000,
} as const;
