// The port to those who keep keys and accounts in memory: told of changes once they are written.

/** Who hears of changes that callers must feel at once. Called after they are written down. */
export interface Invalidations {
  /** A key was deleted, rotated, or given other profiles. */
  key(keyId: string): Promise<void> | void;
  /** An account was credited. */
  account(accountId: string): Promise<void> | void;
}
