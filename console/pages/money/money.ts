// What the API tells an operator of money.

/** Revenue and usage by day. */
export interface Revenue {
  readonly days: readonly (Money & { readonly day: string })[];
  readonly totals: Money;
}

interface Money {
  readonly calls: number;
  readonly cu: number;
  readonly charged_usd: string;
  readonly paid_in_usd: string;
  readonly granted_usd: string;
}

interface Spent {
  readonly calls: number;
  readonly cu: number;
  readonly spent_usd: string;
}

/** An account and what it spent. */
export interface AccountRow extends Spent {
  readonly id: string;
  readonly kind: "anonymous" | "account";
  readonly balance_usd: string;
  readonly funded_usd: string;
  readonly keys: number;
  readonly created_at: string;
  readonly merged_into: string | null;
}

/** A key of an account. */
export interface KeyRow extends Spent {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly created_at: string;
  readonly revoked_at: string | null;
}

/** States of purchases. */
export const PURCHASE_STATES = ["accepted", "submitted", "settled", "failed"] as const;
export type PurchaseState = (typeof PURCHASE_STATES)[number];

/** A purchase with what was sent for it. */
export interface PurchaseRow {
  readonly id: string;
  readonly state: PurchaseState;
  readonly reason: string | null;
  readonly buys: string;
  readonly account_id: string | null;
  readonly amount_usd: string;
  readonly rail: string;
  readonly chain_id: number;
  readonly payer: string;
  readonly created_at: string;
  readonly transactions: readonly { readonly tx_hash: string; readonly at: string }[];
}

/** A rail, and its wallet. */
export interface WalletRow {
  readonly rail: string;
  readonly chain_id: number;
  readonly recipient: string;
  readonly token: string;
  readonly wallet: {
    readonly address: string;
    readonly balance_wei: string;
    readonly low: boolean;
    readonly empty: boolean;
    readonly dear: boolean;
  } | null;
}
