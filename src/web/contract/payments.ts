// Operations paid for with the request itself, and the purchases that result.

import { accountId, instant, keyId } from "../../hosted/keys/key-fields.ts";
import { accountIdParams } from "./accounts.ts";
import { estimatedRequests, secretParams } from "./keys.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { idOf, is, list, next, oneOf, paged, pattern, record, request } from "./shapes.ts";

/** A price or an amount in USD. */
export const amountUsd = pattern(/^\d{1,9}(\.\d{1,9})?$/)
  .meta({ title: 'a decimal in text, such as "0.1"' })
  .describe(
    "An amount in US dollars, as a plain decimal with at most six places. `payments` in " +
      "/agent.json tells the range.",
  );

export const purchaseId = idOf("pur");

const MOST_DAYS = 100_000;

/** The path parameter of a purchase. */
const purchaseParams = record({
  id: purchaseId.describe("Id of a purchase, as an answer or its `status_url` told it."),
});

/** Body of `fundAgentKey`. */
const fundRequest = request({ amount_usd: amountUsd }).meta({
  id: "FundRequest",
  description: "An amount to pay in.",
});

/** Body of `buyCredit`. */
const creditPurchase = request({ usd: amountUsd }).meta({
  id: "CreditPurchase",
  description: "Credit to buy for an account.",
});

/** Body of `buyCustomAccess`. */
const accessPurchase = request({
  days: is.int
    .min(0)
    .max(MOST_DAYS)
    .describe("`payments` in /agent.json tells the range and the price of a day."),
  key_id: keyId.describe("A key of the account that works."),
}).meta({ id: "CustomAccessPurchase", description: "Days of Custom access to buy." });

const protocol = oneOf(["mpp", "x402"]);

const receipt = record({
  protocol,
  rail: is.text.describe("Method of the payment, like `tempo` or `evm`."),
  chain_id: is.int,
  tx_hash: is.textOrNull.describe("The transaction that moved the money."),
  payer: is.text.describe("Address that paid."),
  amount_usd: is.text,
  settled_at: instant.nullable(),
}).meta({
  id: "PaymentDetails",
  description:
    "The payment as its chain has it. The receipt of its protocol stands in `Payment-Receipt` or " +
    "`PAYMENT-RESPONSE`.",
});

/** Answer of `fundAgentKey`. The amounts are those at the time of the credit. */
const fundedKey = record({
  key_prefix: is.text.describe("How the key begins."),
  balance_cu: is.int,
  balance_usd: is.text,
  estimated_requests: estimatedRequests,
  funded_cu: is.int.describe("What this payment added."),
  funded_usd: is.text,
  purchase_id: purchaseId,
  receipt,
}).meta({ id: "FundedKey", description: "A key that was paid in for, as it was then." });

/** Answer of `buyCredit`. */
const boughtCredit = record({
  purchase_id: purchaseId,
  credited_usd: is.text,
  balance_usd: is.text.describe("Right after it was credited."),
  receipt,
}).meta({ id: "BoughtCredit", description: "Credit that was bought." });

/** Answer of `buyCustomAccess`. */
const boughtAccess = record({
  purchase_id: purchaseId,
  days: is.count,
  from: instant,
  until: instant,
  balance_usd: is.text.describe("As it is now: days are not paid from it."),
  receipt,
}).meta({ id: "BoughtCustomAccess", description: "Days of Custom access that were bought." });

/** The public state of a purchase, shown without a token. */
const publicPurchase = record({
  state: oneOf(["accepted", "submitted", "settled", "failed"]).describe(
    "`accepted` = recorded; `submitted` = given to its chain; `settled` = the money has arrived; " +
      "`failed` = it never will, and nothing was taken.",
  ),
  reason: is.textOrNull.describe("Why it failed."),
});

const details = record({
  id: purchaseId,
  buys: oneOf(["fund_key", "create_key", "credit_account", "custom_access"]),
  account_id: accountId.nullable().describe("Null for a key that was made by it."),
  key_id: keyId.nullable(),
  days: is.count.nullable().describe("Of Custom access; null for anything else."),
  amount_usd: is.text,
  protocol,
  rail: is.text,
  chain_id: is.int,
  payer: is.text,
  tx_hash: is.textOrNull.describe("Null until something was sent."),
  created_at: instant,
  ended_at: instant
    .nullable()
    .describe("When it settled or failed; null = it is under way: ask again in some seconds."),
});

/** Answer of `getPurchase`. */
export const purchase = publicPurchase.extend(details.partial().shape).meta({
  id: "Purchase",
  description:
    "A payment that was recorded. It goes on in the background, whether or not anyone asks. " +
    "Without the management token of the account that it is for: `state` and `reason`, nothing " +
    "else.",
});

/** Answer of `listPurchases`. */
const purchaseList = record({
  purchases: list(purchase),
  next: next(purchaseId),
}).meta({
  id: "PurchaseList",
  description:
    "The payments for an account, newest first. Not those that made a key: they are for no " +
    "account, and read by their id.",
});

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

const AGAIN = "The same request with the same payment gets its first result again.";

/** Operations of payments. */
export const PAYMENT_OPERATIONS = operations({ tag: "accounts", auth: ["management_token"] }, {
  fundAgentKey: {
    idempotent: true,
    tag: "agent",
    endpoint: "POST /api/v1/agent/keys/{key}/fund",
    summary: "Pay in for a key",
    description: `Needs no account: a payment with the request is enough. ${AGAIN}`,
    auth: ["key_in_path"],
    params: secretParams,
    body: fundRequest,
    answers: { 200: answer("The payment has settled and is credited.", fundedKey) },
    faults: [...PAYING],
    pays: "fund_key",
  },
  buyCredit: {
    idempotent: true,
    endpoint: "POST /api/v1/accounts/{id}/credit",
    summary: "Pay in for an account",
    description:
      "With the management token of the account and a payment; the token alone pays nothing. " +
      `${AGAIN}`,
    params: accountIdParams,
    body: creditPurchase,
    answers: { 200: answer("The payment has settled and is credited.", boughtCredit) },
    faults: ["already_claimed", ...PAYING],
    pays: "credit_account",
  },
  buyCustomAccess: {
    idempotent: true,
    endpoint: "POST /api/v1/accounts/{id}/custom-access",
    summary: "Buy days of Custom access",
    description:
      "They follow those that the account has. With the management token of the account and a " +
      `payment. ${AGAIN}`,
    params: accountIdParams,
    body: accessPurchase,
    answers: { 200: answer("The payment has settled and the days are given.", boughtAccess) },
    faults: ["already_claimed", "already_subscribed", "key_revoked", ...PAYING],
    pays: "custom_access",
  },
  listPurchases: {
    endpoint: "GET /api/v1/purchases",
    summary: "List the payments for the account",
    description: "Those under way and those that failed, too; newest first, by pages.",
    query: record(paged(purchaseId, 100, 50, "purchases")),
    answers: { 200: answer("The purchases.", purchaseList) },
  },
  getPurchase: {
    endpoint: "GET /api/v1/purchases/{id}",
    summary: "Read how a payment stands",
    description:
      "Without a credential it tells the state and the reason of a failure, and not who paid " +
      "what for whom. With the management token of the account it tells everything, and " +
      "purchases for other accounts are not there.",
    auth: ["none", "management_token"],
    params: purchaseParams,
    answers: { 200: answer("The purchase.", purchase) },
  },
} as const satisfies OperationRows);
