// What the API tells an operator of money, as types of its contract.
import type { AnswerOf } from "../../api/contract-types.ts";

/** Revenue and usage by day. */
export type Revenue = AnswerOf<"GET /api/v1/operator/revenue">;

/** Accounts, and one of them. */
export type AccountPage = AnswerOf<"GET /api/v1/operator/accounts">;
export type AccountRow = AccountPage["accounts"][number];

/** Keys of an account, and one of them. */
export type KeyPage = AnswerOf<"GET /api/v1/operator/accounts/{id}/keys">;
export type KeyRow = KeyPage["keys"][number];

/** States of purchases. */
export const PURCHASE_STATES = ["accepted", "submitted", "settled", "failed"] as const;
export type PurchaseState = (typeof PURCHASE_STATES)[number];

/** Purchases, and one of them with what was sent for it. */
export type Purchases = AnswerOf<"GET /api/v1/operator/purchases">;
export type PurchaseRow = Purchases["purchases"][number];

/** A rail, and its wallet. */
export type WalletRow = AnswerOf<"GET /api/v1/operator/wallets">["wallets"][number];
