// The port to those who get what a payment buys: new keys and days of access, within the
// transaction that settles the payment. Implemented where keys and accounts are known.
import type { Tx } from "../ledger/ledger.ts";

/** Days of Custom access that a payment buys. */
export interface BoughtAccess {
  readonly accountId: string;
  readonly days: number;
  /** What makes a repetition the same. */
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
  /** Gives days of access to an account that exists; throws where it takes none. */
  grantAccess(
    tx: Tx,
    access: BoughtAccess,
    atMs: number,
  ): Promise<{ readonly fromMs: number; readonly untilMs: number }>;
}
