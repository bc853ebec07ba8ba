// Schemas of what the operator reads of money: accounts, keys, purchases, wallets, revenue.
import { z } from "zod";
import { cachedUsage } from "./cached-usage.ts";
import { purchase } from "./payments.ts";

const instant = z.iso.datetime();
const count = z.int().min(0);
const usd = z.string();
const limit = z.int().min(1).max(100).default(50).describe("Most rows in one answer.");
const hours = z
  .int()
  .min(1)
  .max(2_160)
  .default(24)
  .describe("How many hours of usage to add up, the one under way included.");
const used = {
  calls: count,
  cu: count,
  ...cachedUsage,
  spent_usd: usd.describe("Charged in these hours."),
};
const accountId = z.string().regex(/^acc_[0-9a-z]{20}$/);

/** Query of `listAccounts`. */
export const accountListQuery = z.object({
  search: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe("The beginning of an id of an account or key, or of a key's name or prefix."),
  sort: z
    .enum(["spend", "balance", "created"])
    .default("spend")
    .describe("The most first. `balance`: without what is leased to nodes."),
  hours,
  limit,
  after: z.string().max(80).optional().describe("`next` of the answer before."),
});

/** Answer of `listAccounts`. */
export const accountList = z
  .object({
    from: instant,
    to: instant,
    accounts: z.array(
      z.object({
        id: z.string(),
        kind: z.enum(["anonymous", "account"]),
        balance_usd: usd,
        funded_usd: usd.describe("All that was ever credited, grants included."),
        keys: count.describe("Keys that work."),
        ...used,
        created_at: instant,
        merged_into: z.string().nullable().describe("The account that it is part of."),
      }),
    ),
    next: z.string().nullable().describe("Pass it as `after` to read on; null = that was all."),
  })
  .meta({ id: "AccountList", description: "Accounts, by what was asked for." });

/** Query of `listAccountKeys`. */
export const accountKeysQuery = z.object({
  hours,
  limit,
  after: z
    .string()
    .regex(/^key_[0-9a-z]{20}$/)
    .optional()
    .describe("`next` of the answer before."),
});

/** Answer of `listAccountKeys`. */
export const accountKeys = z
  .object({
    keys: z
      .array(
        z.object({
          id: z.string(),
          name: z.string(),
          prefix: z.string(),
          default_profile: z.string().nullable(),
          created_at: instant,
          revoked_at: instant.nullable(),
          ...used,
        }),
      )
      .describe("Oldest first, with those that were deleted."),
    next: z.string().nullable(),
  })
  .meta({ id: "AccountKeys", description: "The keys of an account." });

/** Query of `listAllPurchases`. */
export const allPurchasesQuery = z.object({
  state: z.enum(["accepted", "submitted", "settled", "failed"]).optional(),
  account: accountId.optional().describe("Only purchases for this account."),
  limit,
  after: z
    .string()
    .regex(/^pur_[0-9a-z]{20}$/)
    .optional()
    .describe("`next` of the answer before."),
});

/** Answer of `listAllPurchases`. */
export const allPurchases = z
  .object({
    purchases: z
      .array(
        z.object({
          ...purchase.shape,
          transactions: z
            .array(z.object({ tx_hash: z.string(), at: instant }))
            .describe("What was sent for it, in that order."),
        }),
      )
      .describe("The newest first."),
    counts: z.object({ accepted: count, submitted: count, settled: count, failed: count }),
    next: z.string().nullable(),
  })
  .meta({ id: "AllPurchases", description: "Purchases of all accounts." });

/** Answer of `listWallets`. */
export const walletList = z
  .object({
    wallets: z.array(
      z.object({
        rail: z.string(),
        chain_id: z.int(),
        recipient: z.string().describe("Where payments go."),
        token: z.string(),
        wallet: z
          .object({
            address: z.string(),
            balance_wei: z.string(),
            low: z.boolean(),
            empty: z.boolean().describe("It cannot pay for one more settlement."),
            dear: z.boolean().describe("Gas costs more than `max_gas_wei` allows."),
          })
          .nullable()
          .describe("null = the rail needs none, or its chain was not reached yet."),
      }),
    ),
  })
  .meta({ id: "WalletList", description: "The rails, and what their wallets have for gas." });

/** Query of `getRevenue`. */
export const revenueQuery = z.object({
  days: z.int().min(1).max(90).default(30).describe("How many days, today included (UTC)."),
});

const money = {
  calls: count,
  cu: count,
  ...cachedUsage,
  charged_usd: usd,
  paid_in_usd: usd.describe("Payments, and money received elsewhere."),
  granted_usd: usd.describe("Credit given for nothing."),
};

/** Answer of `getRevenue`. */
export const revenue = z
  .object({
    from: instant,
    to: instant,
    days: z.array(z.object({ day: z.iso.date(), ...money })).describe("Oldest first."),
    totals: z.object(money),
  })
  .meta({ id: "Revenue", description: "Revenue and usage by day." });

const auditPart = z
  .object({
    state: z
      .enum(["balanced", "unbalanced", "unread"])
      .describe("`unread`: nothing differs, and a payment chain could not be read."),
    checked_at: instant,
    run_by: z
      .enum(["service", "operator", "command"])
      .describe("The service by itself, the operator by the API, or `svc audit`."),
    node: z
      .string()
      .nullable()
      .describe("The node that ran it; null = the service is one node, or a command ran it."),
    problem_count: count.describe("Found in all; one check lists 250 at most."),
    problems: z.array(z.string()).describe("What is wrong, in words: the first 100."),
  })
  .nullable();

/** Answer of `getLastAudit`. */
export const lastAudit = z
  .object({
    state: z
      .enum(["balanced", "unbalanced", "never"])
      .describe("`never`: the books were not added up yet. `unbalanced`: one of the two is."),
    books: auditPart.describe("Ledger, balances, leased credit and usage; null = never checked."),
    chains: auditPart.describe(
      "What was recorded, and what the payment chains say; null = never compared.",
    ),
  })
  .meta({ id: "LastAudit", description: "Whether the books agreed when they were last checked." });
