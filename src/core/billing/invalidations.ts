// The port by which caches of keys and accounts hear of changes.

/** Invalidates cached keys and accounts, after a change was written. */
export interface Invalidations {
  /** A key was deleted, rotated, or given other profiles. */
  key(keyId: string): Promise<void> | void;
  /** An account was credited. */
  account(accountId: string): Promise<void> | void;
}
