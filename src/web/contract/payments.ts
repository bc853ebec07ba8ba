// Rows of the contract: operations paid for with the request itself, and the purchases that result.
import type { Operation } from "./operation.ts";
import { accountIdParams, secretParams } from "./schemas/keys.ts";
import * as shape from "./schemas/payments.ts";

const ANY = ["internal", "unavailable"] as const;
const BODY = [
  "invalid_request",
  "body_too_large",
  "unsupported_media_type",
  "invalid_field",
  "unknown_field",
] as const;
const KNOWN = ["unauthorized", "rate_limited"] as const;

/** Additional faults of paid operations. */
export const PAYING = [
  "payment_required",
  "payment_invalid",
  "payment_conflict",
  "payment_failed",
  "payment_pending",
  "beneficiary_conflict",
  "amount_out_of_range",
] as const;

const PAID = { method: "POST", query: null, servedBy: "api", idempotent: true } as const;
const AGAIN = "The same request with the same payment gets its first result again.";

/** Operations of payments. */
export const PAYMENT_OPERATIONS = {
  fundAgentKey: {
    ...PAID,
    tag: "agent",
    path: "/api/v1/agent/keys/{key}/fund",
    summary: "Pay in for a key",
    description: `Needs no account: a payment with the request is enough. ${AGAIN}`,
    auth: ["key_in_path"],
    params: secretParams,
    body: shape.fundRequest,
    answers: {
      200: { description: "The payment has settled and is credited.", schema: shape.fundedKey },
    },
    faults: [...BODY, "not_found", "rate_limited", ...PAYING, ...ANY],
    pays: "fund_key",
  },
  buyCredit: {
    ...PAID,
    tag: "accounts",
    path: "/api/v1/accounts/{id}/credit",
    summary: "Pay in for an account",
    description:
      "With the management token of the account and a payment; the token alone pays nothing. " +
      `${AGAIN}`,
    auth: ["management_token"],
    params: accountIdParams,
    body: shape.creditPurchase,
    answers: {
      200: { description: "The payment has settled and is credited.", schema: shape.boughtCredit },
    },
    faults: [...BODY, ...KNOWN, "forbidden", "not_found", "already_claimed", ...PAYING, ...ANY],
    pays: "credit_account",
  },
  buyCustomAccess: {
    ...PAID,
    tag: "accounts",
    path: "/api/v1/accounts/{id}/custom-access",
    summary: "Buy days of Custom access",
    description:
      "They follow those that the account has. With the management token of the account and a " +
      `payment. ${AGAIN}`,
    auth: ["management_token"],
    params: accountIdParams,
    body: shape.accessPurchase,
    answers: {
      200: {
        description: "The payment has settled and the days are given.",
        schema: shape.boughtAccess,
      },
    },
    faults: [
      ...BODY,
      ...KNOWN,
      "forbidden",
      "not_found",
      "already_claimed",
      "already_subscribed",
      "key_revoked",
      ...PAYING,
      ...ANY,
    ],
    pays: "custom_access",
  },
  listPurchases: {
    method: "GET",
    tag: "accounts",
    path: "/api/v1/purchases",
    summary: "List the payments for the account",
    description: "Those under way and those that failed, too; newest first, by pages.",
    auth: ["management_token"],
    params: null,
    query: shape.purchaseListQuery,
    body: null,
    servedBy: "api",
    answers: { 200: { description: "The purchases.", schema: shape.purchaseList } },
    faults: [...KNOWN, "invalid_field", ...ANY],
    idempotent: true,
  },
  getPurchase: {
    method: "GET",
    tag: "accounts",
    path: "/api/v1/purchases/{id}",
    summary: "Read how a payment stands",
    description:
      "Without a credential it tells the state and the reason of a failure, and not who paid " +
      "what for whom. With the management token of the account it tells everything, and " +
      "purchases for other accounts are not there.",
    auth: ["none", "management_token"],
    params: shape.purchaseParams,
    query: null,
    body: null,
    servedBy: "api",
    answers: { 200: { description: "The purchase.", schema: shape.purchase } },
    faults: [...KNOWN, "not_found", "invalid_field", ...ANY],
    idempotent: true,
  },
} as const satisfies Readonly<Record<string, Operation>>;
