// Rows of the contract: what the operator of a hosted service reads of accounts and money.
import type { Operation } from "./operation.ts";
import { accountIdParams } from "./schemas/keys.ts";
import * as shape from "./schemas/operator-money.ts";

const READ = {
  method: "GET",
  tag: "operator",
  servedBy: "api",
  auth: ["operator"],
  params: null,
  query: null,
  body: null,
  idempotent: true,
} as const;
const FAULTS = ["unauthorized", "invalid_field", "internal", "unavailable"] as const;

/** Operations of money for the operator. */
export const OPERATOR_MONEY_OPERATIONS = {
  listAccounts: {
    ...READ,
    path: "/api/v1/operator/accounts",
    summary: "List accounts by what they spent",
    description: "Or by balance or age; by pages, also those that begin with what is searched.",
    query: shape.accountListQuery,
    answers: { 200: { description: "The accounts.", schema: shape.accountList } },
    faults: FAULTS,
  },
  listAccountKeys: {
    ...READ,
    path: "/api/v1/operator/accounts/{id}/keys",
    summary: "List the keys of an account",
    description: "With what each has used.",
    params: accountIdParams,
    query: shape.accountKeysQuery,
    answers: { 200: { description: "The keys.", schema: shape.accountKeys } },
    faults: [...FAULTS, "not_found"],
  },
  listAllPurchases: {
    ...READ,
    path: "/api/v1/operator/purchases",
    summary: "List purchases of all accounts",
    description: "The newest first, with their transactions, and how many there are by state.",
    query: shape.allPurchasesQuery,
    answers: { 200: { description: "The purchases.", schema: shape.allPurchases } },
    faults: FAULTS,
  },
  listWallets: {
    ...READ,
    path: "/api/v1/operator/wallets",
    summary: "Read what the wallets have for gas",
    description: "As this process saw them last: every rail, and its wallet if it has one.",
    answers: { 200: { description: "The wallets.", schema: shape.walletList } },
    faults: ["unauthorized", "internal", "unavailable"],
  },
  getLastAudit: {
    ...READ,
    path: "/api/v1/operator/audit/last",
    summary: "Read the result of the last audit",
    description:
      "Changes and checks nothing. The service adds its books up every hour; " +
      "`GET /api/v1/operator/audit` and, with PostgreSQL, `svc audit` also compare them with the " +
      "payment chains. Each result stands until the next one.",
    answers: { 200: { description: "What is known.", schema: shape.lastAudit } },
    faults: ["unauthorized", "internal", "unavailable"],
  },
  getRevenue: {
    ...READ,
    path: "/api/v1/operator/revenue",
    summary: "Read revenue and usage by day",
    description: "What was charged, paid in and granted, also on days without anything.",
    query: shape.revenueQuery,
    answers: { 200: { description: "The days.", schema: shape.revenue } },
    faults: FAULTS,
  },
} as const satisfies Readonly<Record<string, Operation>>;
