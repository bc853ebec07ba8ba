// What the operator of a hosted service reads of accounts and money, and gives to accounts.

import { MAX_RANGE_DAYS } from "../../hosted/accounts/hour-range.ts";
import { accountId, instant, keyId } from "../../hosted/keys/key-fields.ts";
import { accountIdParams, cachedUsage, ownUsed, recent } from "./accounts.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { purchase, purchaseId } from "./payments.ts";
import {
  is,
  list,
  next,
  oneOf,
  paged,
  pattern,
  record,
  recordOrNull,
  request,
  rows,
  short,
  whole,
} from "./shapes.ts";

const hours = whole(1, 2_160, 24).describe(
  "How many hours of usage to add up, the one under way included.",
);

/** A range of whole days in place of a number of hours or days. */
const range = {
  from: is.day
    .optional()
    .describe("First day (UTC); takes the place of the number of hours or days."),
  to: is.day
    .optional()
    .describe(`Last day (UTC), included; left out = today. ${MAX_RANGE_DAYS} days at most.`),
};

const used = {
  calls: is.count,
  cu: is.count,
  ...cachedUsage,
  spent_usd: is.text.describe("Charged in these hours."),
};

/** Query of `listAccounts`. */
const accountListQuery = record({
  search: short(100)
    .optional()
    .describe("The beginning of an id of an account or key, or of a key's name or prefix."),
  sort: oneOf(["spend", "balance", "created"])
    .default("spend")
    .describe("The most first. `balance`: without what is leased to nodes."),
  hours,
  ...range,
  ...paged(is.text.max(80), 100, 50, "rows"),
});

/** Answer of `listAccounts`. */
const accountList = record({
  from: instant,
  to: instant,
  accounts: rows({
    id: is.text,
    kind: oneOf(["anonymous", "account"]),
    balance_usd: is.text,
    funded_usd: is.text.describe("All that was ever credited, grants included."),
    keys: is.count.describe("Keys that work."),
    ...used,
    recent,
    created_at: instant,
    merged_into: is.textOrNull.describe("The account that it is part of."),
  }),
  next: next(is.text),
}).meta({ id: "AccountList", description: "Accounts, by what was asked for." });

/** Query of `listAccountKeys`. */
const accountKeysQuery = record({
  hours,
  ...range,
  ...paged(keyId, 100, 50, "rows"),
});

/** Answer of `listAccountKeys`. */
const accountKeys = record({
  keys: rows({
    id: is.text,
    name: is.text,
    prefix: is.text,
    default_profile: is.textOrNull,
    created_at: instant,
    revoked_at: instant.nullable(),
    ...used,
  }).describe("Oldest first, with those that were deleted."),
  next: is.textOrNull,
}).meta({ id: "AccountKeys", description: "The keys of an account." });

/** Query of `listAllPurchases`. */
const allPurchasesQuery = record({
  state: oneOf(["accepted", "submitted", "settled", "failed"]).optional(),
  account: accountId.optional().describe("Only purchases for this account."),
  ...paged(purchaseId, 100, 50, "rows"),
});

/** Answer of `listAllPurchases`. */
const allPurchases = record({
  purchases: rows({
    ...purchase.shape,
    transactions: rows({ tx_hash: is.text, at: instant }).describe(
      "What was sent for it, in that order.",
    ),
  }).describe("The newest first."),
  counts: record({ accepted: is.count, submitted: is.count, settled: is.count, failed: is.count }),
  next: is.textOrNull,
}).meta({ id: "AllPurchases", description: "Purchases of all accounts." });

/** Answer of `listWallets`. */
const walletList = record({
  wallets: rows({
    rail: is.text,
    chain_id: is.int,
    recipient: is.text.describe("Where payments go."),
    token: is.text,
    wallet: recordOrNull({
      address: is.text,
      balance_wei: is.text,
      low: is.flag,
      empty: is.flag.describe("It cannot pay for one more settlement."),
      dear: is.flag.describe("Gas costs more than `max_gas_wei` allows."),
    }).describe("null = the rail needs none, or its chain was not reached yet."),
  }),
}).meta({ id: "WalletList", description: "The rails, and what their wallets have for gas." });

/** Query of `getRevenue`. */
const revenueQuery = record({
  days: whole(1, 90, 30).describe("How many days, today included (UTC)."),
  ...range,
});

const money = {
  calls: is.count,
  cu: is.count,
  ...cachedUsage,
  charged_usd: is.text,
  paid_in_usd: is.text.describe("Payments, and money received elsewhere."),
  granted_usd: is.text.describe("Credit given for nothing."),
};

/** Answer of `getRevenue`. */
const revenue = record({
  from: instant,
  to: instant,
  days: rows({ day: is.day, ...money }).describe("Oldest first."),
  totals: record(money),
}).meta({ id: "Revenue", description: "Revenue and usage by day." });

/** Query of `listChainCalls`. */
const chainCallsQuery = record({ hours, ...range });

/** Answer of `listChainCalls`. */
const chainCalls = record({
  from: instant,
  to: instant,
  chains: rows({ profile: is.text, chain: is.text, calls: is.count }).describe(
    "The most calls first; profiles of accounts are `custom`.",
  ),
}).meta({ id: "ChainCalls", description: "Calls by profile and chain." });

const auditPart = recordOrNull({
  state: oneOf(["balanced", "unbalanced", "unread"]).describe(
    "`unread`: nothing differs, and a payment chain could not be read.",
  ),
  checked_at: instant,
  run_by: oneOf(["service", "operator", "command"]).describe(
    "The service by itself, the operator by the API, or `svc audit`.",
  ),
  node: is.textOrNull.describe(
    "The node that ran it; null = the service is one node, or a command ran it.",
  ),
  problem_count: is.count.describe("Found in all; one check lists 250 at most."),
  problems: list(is.text).describe("What is wrong, in words: the first 100."),
});

/** Answer of `getLastAudit`. */
const lastAudit = record({
  state: oneOf(["balanced", "unbalanced", "never"]).describe(
    "`never`: the books were not added up yet. `unbalanced`: one of the two is.",
  ),
  books: auditPart.describe("Ledger, balances, leased credit and usage; null = never checked."),
  chains: auditPart.describe(
    "What was recorded, and what the payment chains say; null = never compared.",
  ),
}).meta({ id: "LastAudit", description: "Whether the books agreed when they were last checked." });

/** Query of `getOperatorUsage`. */
const usageQuery = record({
  hours: whole(1, 2_160, 24).describe("How many hours to look back, the one under way included."),
  ...range,
  account: accountId.optional().describe("Only this account."),
});

/** Answer of `getOperatorUsage`. */
const operatorUsage = record({
  from: instant.describe("Beginning of the first hour."),
  to: instant.describe("End of the last hour."),
  totals: record(ownUsed),
  by_method: rows({ method: is.text, ...ownUsed }).describe("Most compute units first."),
  by_key: rows({
    key_id: is.text,
    account_id: is.text,
    name: is.text,
    key_prefix: is.text,
    ...ownUsed,
  }).describe("Most compute units first, 500 at most."),
  by_hour: rows({ hour: instant, ...ownUsed }).describe(
    "Hours in which anything was used, oldest first.",
  ),
}).meta({
  id: "OperatorUsage",
  description: "What was used, as far as it is written down: some seconds late.",
});

/** Answer of `getOperatorAudit`. */
const operatorAudit = record({
  ok: is.flag.describe(
    "Whether every amount is accounted for, and every payment chain could be compared.",
  ),
  checked_at: instant,
  differences: rows({
    check: oneOf(["event", "balance", "usage", "lease", "purchase", "channel", "chain"]).describe(
      "`chain` = money that moved on a payment chain.",
    ),
    id: is.text.describe(
      "Of the ledger event, account, purchase or channel; of `chain` the transaction.",
    ),
    is_usd: is.text.describe("As it is recorded."),
    should_be_usd: is.text.describe("As the other books, or the chain, have it."),
  }).describe("What does not add up, 100 at most."),
  unread_chains: rows({ chain_id: is.int, reason: is.text }).describe(
    "Payment chains that could not be read, or not in the time there is: nothing is known of " +
      "their money. `svc audit` takes its time.",
  ),
}).meta({
  id: "OperatorAudit",
  description: "Whether ledger, balances, leased credit, usage and payment chains agree.",
});

const reference = pattern(/^[\w.:-]{1,100}$/);

const reason = short(200).optional().describe("Why, for the list of actions.");

/** Body of `grantCustomAccess`. */
const customAccessRequest = request({
  days: is.int
    .min(1)
    .max(366)
    .describe("Days to give, from now or after those that the account has."),
  reference: reference
    .optional()
    .describe("The same reference gives the days once only. Letters, digits, `.`, `:`, `-`, `_`."),
  reason,
}).meta({ id: "CustomAccessRequest", description: "Days of Custom access to give." });

/** Answer of `grantCustomAccess`. */
const customAccess = record({ account_id: is.text, from: instant, until: instant }).meta({
  id: "CustomAccess",
  description: "A time of Custom access.",
});

/** Body of `creditAccount`. */
const creditRequest = request({
  usd: pattern(/^\d{1,6}(\.\d{1,9})?$/)
    .refine((sent) => /[1-9]/.test(sent))
    .describe("An amount in US dollars, as a plain decimal above 0."),
  reference: reference.describe(
    "Of the payment: the same reference credits once only. Letters, digits, `.`, `:`, `-`, `_`.",
  ),
  kind: oneOf(["payment", "grant"])
    .default("payment")
    .describe("`payment` = money that came in elsewhere; `grant` = credit given for nothing."),
  reason,
}).meta({ id: "CreditRequest", description: "Credit for an account." });

/** Answer of `creditAccount`. */
const credited = record({
  account_id: is.text,
  credited: is.flag.describe("false = this reference was credited before."),
  balance_usd: is.text,
}).meta({ id: "Credited", description: "An account after a credit." });

/** Operations of the operator of a hosted service. */
export const OPERATOR_OPERATIONS = operations({ tag: "operator", auth: ["operator"] }, {
  grantCustomAccess: {
    params: accountIdParams,
    endpoint: "POST /api/v1/operator/accounts/{id}/custom-access",
    summary: "Give an account days of Custom access",
    description:
      "For the operator of the instance. With a `reference`, repeating it gives nothing more.",
    body: customAccessRequest,
    answers: { 200: answer("The time that was given.", customAccess) },
    faults: ["account_merged"],
  },
  creditAccount: {
    params: accountIdParams,
    endpoint: "POST /api/v1/operator/accounts/{id}/credit",
    summary: "Credit an account with money that came in, or for nothing",
    description:
      "For the operator of the instance. Once for each `reference`: with the same account, " +
      "amount and kind it is a repetition, with others it is refused.",
    body: creditRequest,
    answers: { 200: answer("The account's balance.", credited) },
    faults: ["account_merged"],
    idempotent: true,
  },
  getOperatorUsage: {
    endpoint: "GET /api/v1/operator/usage",
    summary: "Read what was used, by method, key and hour",
    description: "For the operator of the instance: needs the configured operator token.",
    query: usageQuery,
    answers: { 200: answer("The usage.", operatorUsage) },
  },
  listAccounts: {
    endpoint: "GET /api/v1/operator/accounts",
    summary: "List accounts by what they spent",
    description: "Or by balance or age; by pages, also those that begin with what is searched.",
    query: accountListQuery,
    answers: { 200: answer("The accounts.", accountList) },
  },
  listAccountKeys: {
    endpoint: "GET /api/v1/operator/accounts/{id}/keys",
    summary: "List the keys of an account",
    description: "With what each has used.",
    params: accountIdParams,
    query: accountKeysQuery,
    answers: { 200: answer("The keys.", accountKeys) },
  },
  listAllPurchases: {
    endpoint: "GET /api/v1/operator/purchases",
    summary: "List purchases of all accounts",
    description: "The newest first, with their transactions, and how many there are by state.",
    query: allPurchasesQuery,
    answers: { 200: answer("The purchases.", allPurchases) },
  },
  listWallets: {
    endpoint: "GET /api/v1/operator/wallets",
    summary: "Read what the wallets have for gas",
    description: "As this process saw them last: every rail, and its wallet if it has one.",
    answers: { 200: answer("The wallets.", walletList) },
  },
  getLastAudit: {
    endpoint: "GET /api/v1/operator/audit/last",
    summary: "Read the result of the last audit",
    description:
      "Changes and checks nothing. The service adds its books up every hour; `GET " +
      "/api/v1/operator/audit` and, with PostgreSQL, `svc audit` also compare them with the " +
      "payment chains. Each result stands until the next one.",
    answers: { 200: answer("What is known.", lastAudit) },
  },
  getRevenue: {
    endpoint: "GET /api/v1/operator/revenue",
    summary: "Read revenue and usage by day",
    description: "What was charged, paid in and granted, also on days without anything.",
    query: revenueQuery,
    answers: { 200: answer("The days.", revenue) },
  },
  listChainCalls: {
    endpoint: "GET /api/v1/operator/chain-calls",
    summary: "Count calls by chain",
    description:
      "Of all callers, also without a key, on configured chains: from the hours of history, which " +
      "are written every ten minutes and kept for 90 days.",
    query: chainCallsQuery,
    answers: { 200: answer("The chains.", chainCalls) },
  },
  getOperatorAudit: {
    endpoint: "GET /api/v1/operator/audit",
    summary: "Check the books",
    description:
      "Compares ledger, balances, leased credit and usage with each other, and what was recorded " +
      "with what the payment chains say: what `svc audit` does. Where reading the chains takes " +
      "longer than a request may it goes on, and the answer is 503 `unavailable` until it is " +
      "done. Needs the configured operator token.",
    answers: { 200: answer("What was found.", operatorAudit) },
  },
} as const satisfies OperationRows);
