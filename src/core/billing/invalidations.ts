// The port to caches of keys and accounts: invalidated after a change was written.

/** Invalidates cached keys and accounts after a change was written. */
export interface Invalidations {
  /** A key was deleted, rotated, or given other profiles. */
  key(keyId: string): Promise<void> | void;
  /** An account was credited. */
  account(accountId: string): Promise<void> | void;
}
