// Schemas of answers that concern no account: chains, prices, the instance, the operator's reports,
// and errors.
import { z } from "zod";
import { byStrategy } from "../../../core/routing/strategy.ts";
import { CATEGORIES } from "../../../core/rpc/method.ts";
import { cachedUsage } from "./cached-usage.ts";

const count = z.int().min(0);
const usd = z.string();

/** Answer of `listAgentChains`. */
export const agentChains = z
  .array(
    z
      .object({
        name: z.string().describe("As it stands in RPC paths."),
        chain_id: z.int(),
        strategies: z.array(z.string()),
      })
      .meta({ id: "AgentChain", description: "A chain and the strategies it can be called with." }),
  )
  .describe("Every chain that a new key can call without naming a profile.");

const cost = z
  .object({
    cu: count.describe("Compute units of one call."),
    usd: usd.describe("Price of one call in US dollars, as a plain decimal."),
  })
  .meta({ id: "Cost", description: "What one call costs." });
const costs = z
  .object(byStrategy(() => cost))
  .meta({ id: "CostByStrategy", description: "What one call costs, by routing strategy." });
const methodPrice = z
  .object({
    method: z.string(),
    category: z.enum(CATEGORIES),
    cu: count.describe("At load-balanced."),
    by_strategy: costs,
  })
  .meta({ id: "MethodPrice", description: "What one call of a method costs." });

/** Answer of `getPricing`. */
export const pricing = z
  .object({
    cu_per_usd: count.describe("Compute units that one US dollar buys."),
    starting_grant_cu: count.describe("Compute units that a new anonymous key starts with."),
    free_cu_per_month: count.describe(
      "Compute units that an account may use each month on public providers without paying.",
    ),
    cache_price: z
      .number()
      .min(0)
      .max(1)
      .describe(
        "The share of its compute units, rounded up, that a call costs which is answered from " +
          "the cache. It still needs credit for the whole.",
      ),
    ranges: z
      .object({
        methods: z.array(z.string()),
        rule: z.string(),
        example: z.object({
          method: z.string(),
          blocks: count,
          blocks_per_part: count.describe("Most blocks that a provider accepts."),
          parts: count,
          cu: count,
        }),
      })
      .describe("What calls over ranges of blocks cost that are asked for in parts."),
    methods: z.array(methodPrice),
    default: methodPrice.describe("Every method that is not listed."),
    notification: z
      .object({ cu: count, by_strategy: costs })
      .describe("One notification of a subscription."),
  })
  .meta({
    id: "Pricing",
    description:
      "The pricing catalogue. Calls that a provider answered are charged, and calls that were " +
      "sent to one and left before the answer.",
  });

/** Answer of `listChains`. */
export const instanceChains = z
  .object({
    chains: z.array(
      z
        .object({
          chain_id: z.string().describe("Numeric chain id as text."),
          name: z.string().describe("For people."),
          chain_name: z.string().describe("For API paths."),
          supported: z.boolean().describe("Always true: others are not listed."),
        })
        .meta({ id: "Chain", description: "A configured chain." }),
    ),
  })
  .meta({ id: "Chains", description: "The configured chains." });

/** Answer of `getHealth`. */
export const health = z
  .object({
    status: z.literal("healthy"),
    timestamp: z.iso.datetime(),
    uptime_seconds: count,
    version: z.string(),
    cluster: z.object({
      enabled: z.boolean(),
      nodes_connected: count.describe("Nodes that have joined and not left, this one included."),
      nodes_responding: count.describe("Of these, nodes that were heard of in the last seconds."),
      nodes_total: count.describe("As configured, or else nodes seen in the last hour."),
      regions: z.array(z.string()),
      status: z.enum(["standalone", "healthy", "degraded", "critical"]),
      problems: z
        .array(z.string())
        .optional()
        .describe("What an operator has to look at; only where several nodes serve together."),
    }),
  })
  .meta({ id: "Health", description: "That the instance is alive, and how its cluster is." });

/** Query of `getReadiness`. */
export const readinessQuery = z.object({
  for: z
    .literal("traffic")
    .optional()
    .describe("Whether any call can be served, even if those with keys cannot."),
});

/** Answer of `getReadiness`. */
export const readiness = z
  .object({
    ready: z.boolean().describe("It can serve all callers."),
    traffic: z.boolean().describe("It can serve some of them: what `?for=traffic` asks."),
    reasons: z.array(z.string()).describe("Why not; empty when it is."),
    chains: z.array(
      z.object({
        profile: z.string(),
        chain: z.string(),
        ready: z.boolean(),
        providers_usable: count,
        providers_total: count,
      }),
    ),
  })
  .meta({ id: "Readiness", description: "Whether the instance can serve calls." });

/** A JSON-RPC error, as the older pages answer it. */
export const rpcError = z
  .object({
    jsonrpc: z.literal("2.0"),
    id: z
      .union([z.int(), z.string(), z.null()])
      .describe("The id of the call; null where it was refused before it was read."),
    error: z.object({
      code: z.int(),
      message: z.string(),
      data: z.looseObject({ code: z.string(), next_action: z.string(), retryable: z.boolean() }),
    }),
  })
  .meta({ id: "RpcError", description: "A refusal in the form of JSON-RPC." });

/** The error envelope of the management API. */
export const errorEnvelope = z
  .object({
    error: z.object({
      code: z.string().describe("A code of the error table."),
      message: z.string().describe("What went wrong, for people."),
      next_action: z.string().describe("What to do about it."),
      docs_url: z.string().describe("Where the code is explained."),
      details: z.array(z.string()).optional().describe("Paths of the fields that are wrong."),
      purchase_id: z
        .string()
        .optional()
        .describe("The payment that it is about, where one was recorded."),
      status_url: z
        .string()
        .optional()
        .describe("Where that payment is read. Needs no credential."),
    }),
    type: z
      .string()
      .optional()
      .describe("MPP's problem type, where a payment is missing or not right (RFC 9457)."),
    title: z.string().optional(),
    status: z.int().optional(),
    detail: z.string().optional(),
  })
  .meta({ id: "Error", description: "A refusal." });

const used = {
  calls: count,
  cu: count,
  usd: usd.describe("Charged, in US dollars."),
  ...cachedUsage,
};

/** Answer of `getOperatorUsage`. */
export const operatorUsage = z
  .object({
    from: z.iso.datetime().describe("Beginning of the first hour."),
    to: z.iso.datetime().describe("End of the last hour."),
    totals: z.object(used),
    by_method: z
      .array(z.object({ method: z.string(), ...used }))
      .describe("Most compute units first."),
    by_key: z
      .array(
        z.object({
          key_id: z.string(),
          account_id: z.string(),
          name: z.string(),
          key_prefix: z.string(),
          ...used,
        }),
      )
      .describe("Most compute units first, 500 at most."),
    by_hour: z
      .array(z.object({ hour: z.iso.datetime(), ...used }))
      .describe("Hours in which anything was used, oldest first."),
  })
  .meta({
    id: "OperatorUsage",
    description: "What was used, as far as it is written down: some seconds late.",
  });

const purgedName = z.string().min(1).max(200).optional();

/** Query of `purgeCache`: a mistyped name must not remove more than was meant. */
export const purgeQuery = z.strictObject({
  profile: purgedName.describe("By slug; of an account by `<account>/<slug>`."),
  chain: z
    .union([z.int().min(1), z.string().min(1).max(200)])
    .optional()
    .describe("By id, name or alias."),
  provider: purgedName.describe("By id: what it has answered."),
  method: purgedName,
});

/** Answer of `purgeCache`. */
export const purgedCache = z
  .object({
    profile: z.string().nullable().describe("`null` = of all profiles."),
    chain: z.string().nullable().describe("By name; `null` = of all chains."),
    provider: z.string().nullable(),
    method: z.string().nullable(),
    complete: z
      .boolean()
      .describe("False: a worker has not confirmed it within 3 s. Repeat the request."),
    redis: z
      .enum(["none", "purged", "pending"])
      .describe(
        "The second tier. `pending`: its server cannot be reached; this process uses nothing of " +
          "what it has until that is removed.",
      ),
  })
  .meta({ id: "PurgedCache", description: "Which kept answers were removed." });

/** Answer of `getOperatorAudit`. */
export const operatorAudit = z
  .object({
    ok: z
      .boolean()
      .describe(
        "Whether every amount is accounted for, and every payment chain could be compared.",
      ),
    checked_at: z.iso.datetime(),
    differences: z
      .array(
        z.object({
          check: z
            .enum(["event", "balance", "usage", "lease", "purchase", "channel", "chain"])
            .describe("`chain` = money that moved on a payment chain."),
          id: z
            .string()
            .describe(
              "Of the ledger event, account, purchase or channel; of `chain` the transaction.",
            ),
          is_usd: usd.describe("As it is recorded."),
          should_be_usd: usd.describe("As the other books, or the chain, have it."),
        }),
      )
      .describe("What does not add up, 100 at most."),
    unread_chains: z
      .array(z.object({ chain_id: z.int(), reason: z.string() }))
      .describe(
        "Payment chains that could not be read, or not in the time there is: nothing is known " +
          "of their money. `svc audit` takes its time.",
      ),
  })
  .meta({
    id: "OperatorAudit",
    description: "Whether ledger, balances, leased credit, usage and payment chains agree.",
  });
