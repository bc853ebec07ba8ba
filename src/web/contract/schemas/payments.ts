// Schemas of paid operations and purchases. Operations are rows of `payments.ts`.
import { z } from "zod";

const instant = z.iso.datetime();
const usd = z.string();
/** A price or an amount in USD. */
export const amountUsd = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,9})?$/)
  .meta({ title: 'a decimal in text, such as "0.1"' })
  .describe(
    "An amount in US dollars, as a plain decimal with at most six places. `payments` in " +
      "/agent.json tells the range.",
  );
const keyId = z.string().regex(/^key_[0-9a-z]{20}$/);
const accountId = z.string().regex(/^acc_[0-9a-z]{20}$/);
const purchaseId = z.string().regex(/^pur_[0-9a-z]{20}$/);
const count = z.int().min(0);
const MOST_DAYS = 100_000;

/** The path parameter of a purchase. */
export const purchaseParams = z.object({
  id: purchaseId.describe("Id of a purchase, as an answer or its `status_url` told it."),
});

/** Body of `fundAgentKey`. */
export const fundRequest = z
  .strictObject({ amount_usd: amountUsd })
  .meta({ id: "FundRequest", description: "An amount to pay in." });
/** Body of `buyCredit`. */
export const creditPurchase = z
  .strictObject({ usd: amountUsd })
  .meta({ id: "CreditPurchase", description: "Credit to buy for an account." });
/** Body of `buyCustomAccess`. */
export const accessPurchase = z
  .strictObject({
    days: z
      .int()
      .min(0)
      .max(MOST_DAYS)
      .describe("`payments` in /agent.json tells the range and the price of a day."),
    key_id: keyId.describe("A key of the account that works."),
  })
  .meta({ id: "CustomAccessPurchase", description: "Days of Custom access to buy." });

const protocol = z.enum(["mpp", "x402"]);
const transaction = z.string().nullable();

const receipt = z
  .object({
    protocol,
    rail: z.string().describe("Method of the payment, like `tempo` or `evm`."),
    chain_id: z.int(),
    tx_hash: transaction.describe("The transaction that moved the money."),
    payer: z.string().describe("Address that paid."),
    amount_usd: usd,
    settled_at: instant.nullable(),
  })
  .meta({
    id: "PaymentDetails",
    description:
      "The payment as its chain has it. The receipt of its protocol stands in " +
      "`Payment-Receipt` or `PAYMENT-RESPONSE`.",
  });

/** Answer of `fundAgentKey`. The amounts are those at the time of the credit. */
export const fundedKey = z
  .object({
    key_prefix: z.string().describe("How the key begins."),
    balance_cu: z.int(),
    balance_usd: usd,
    estimated_requests: z.object({ cheap_reads: count, standard_reads: count, heavy_reads: count }),
    funded_cu: z.int().describe("What this payment added."),
    funded_usd: usd,
    purchase_id: purchaseId,
    receipt,
  })
  .meta({ id: "FundedKey", description: "A key that was paid in for, as it was then." });

/** Answer of `buyCredit`. */
export const boughtCredit = z
  .object({
    purchase_id: purchaseId,
    credited_usd: usd,
    balance_usd: usd.describe("Right after it was credited."),
    receipt,
  })
  .meta({ id: "BoughtCredit", description: "Credit that was bought." });

/** Answer of `buyCustomAccess`. */
export const boughtAccess = z
  .object({
    purchase_id: purchaseId,
    days: count,
    from: instant,
    until: instant,
    balance_usd: usd.describe("As it is now: days are not paid from it."),
    receipt,
  })
  .meta({ id: "BoughtCustomAccess", description: "Days of Custom access that were bought." });

/** The public state of a purchase, shown without a token. */
const publicPurchase = z.object({
  state: z
    .enum(["accepted", "submitted", "settled", "failed"])
    .describe(
      "`accepted` = recorded; `submitted` = given to its chain; `settled` = the money has " +
        "arrived; `failed` = it never will, and nothing was taken.",
    ),
  reason: z.string().nullable().describe("Why it failed."),
});

const details = z.object({
  id: purchaseId,
  buys: z.enum(["fund_key", "create_key", "credit_account", "custom_access"]),
  account_id: accountId.nullable().describe("Null for a key that was made by it."),
  key_id: keyId.nullable(),
  days: count.nullable().describe("Of Custom access; null for anything else."),
  amount_usd: usd,
  protocol,
  rail: z.string(),
  chain_id: z.int(),
  payer: z.string(),
  tx_hash: transaction.describe("Null until something was sent."),
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

/** Query of `listPurchases`. */
export const purchaseListQuery = z.object({
  limit: z.int().min(1).max(100).default(50).describe("Most purchases in one answer."),
  after: purchaseId.optional().describe("`next` of the answer before."),
});

/** Answer of `listPurchases`. */
export const purchaseList = z
  .object({
    purchases: z.array(purchase),
    next: purchaseId.nullable().describe("Pass it as `after` to read on; null = that was all."),
  })
  .meta({
    id: "PurchaseList",
    description:
      "The payments for an account, newest first. Not those that made a key: they are for no " +
      "account, and read by their id.",
  });
