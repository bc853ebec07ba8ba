// The port to the beneficiaries of payments: creates keys and extends access within the transaction
// that settles the payment. Implemented in app, over keys and accounts.
import type { Tx } from "../ledger/ledger.ts";

/** Days of Custom access that a payment buys. */
export interface BoughtAccess {
  readonly accountId: string;
  readonly days: number;
  /** Idempotency key. */
  readonly source: string;
}

/** What payments need of keys and access. */
export interface Beneficiaries {
  /** Creates an anonymous key with an account of its own. */
  createKey(
    tx: Tx,
    name: string,
    atMs: number,
  ): Promise<{
    readonly id: string;
    readonly accountId: string;
    readonly secret: string;
    readonly prefix: string;
  }>;
  /** Extends the access of an existing account; throws where that is impossible. */
  grantAccess(
    tx: Tx,
    access: BoughtAccess,
    atMs: number,
  ): Promise<{ readonly fromMs: number; readonly untilMs: number }>;
}
