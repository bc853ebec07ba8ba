// What agents without an account use: anonymous keys, chains and prices.

import { z } from "zod";
import { byStrategy } from "../../core/routing/strategy.ts";
import { CATEGORIES } from "../../core/rpc/method.ts";
import { keyName, slug } from "../../hosted/keys/key-fields.ts";
import { cu, estimatedRequests, key, rpcUrl, secret, secretParams, usd } from "./keys.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { amountUsd, PAYING } from "./payments.ts";
import { is, list, oneOf, record, request } from "./shapes.ts";

/** Answer of `listAgentChains`. */
const agentChains = list(
  record({
    name: is.text.describe("As it stands in RPC paths."),
    chain_id: is.int,
    strategies: list(is.text),
  }).meta({ id: "AgentChain", description: "A chain and the strategies it can be called with." }),
).describe("Every chain that a new key can call without naming a profile.");

const cost = record({
  cu: is.count.describe("Compute units of one call."),
  usd: is.text.describe("Price of one call in US dollars, as a plain decimal."),
}).meta({ id: "Cost", description: "What one call costs." });

const costs = record(byStrategy(() => cost)).meta({
  id: "CostByStrategy",
  description: "What one call costs, by routing strategy.",
});

const methodPrice = record({
  method: is.text,
  category: oneOf(CATEGORIES),
  cu: is.count.describe("At load-balanced."),
  by_strategy: costs,
}).meta({ id: "MethodPrice", description: "What one call of a method costs." });

/** Answer of `getPricing`. */
export const pricing = record({
  cu_per_usd: is.count.describe("Compute units that one US dollar buys."),
  starting_grant_cu: is.count.describe("Compute units that a new anonymous key starts with."),
  free_cu_per_month: is.count.describe(
    "Compute units that an account may use each month on public providers without paying.",
  ),
  cache_price: z
    .number()
    .min(0)
    .max(1)
    .describe(
      "The share of its compute units, rounded up, that a call costs which is answered from the " +
        "cache. It still needs credit for the whole.",
    ),
  ranges: record({
    methods: list(is.text),
    rule: is.text,
    example: record({
      method: is.text,
      blocks: is.count,
      blocks_per_part: is.count.describe("Most blocks that a provider accepts."),
      parts: is.count,
      cu: is.count,
    }),
  }).describe("What calls over ranges of blocks cost that are asked for in parts."),
  methods: list(methodPrice),
  default: methodPrice.describe("Every method that is not listed."),
  notification: record({ cu: is.count, by_strategy: costs }).describe(
    "One notification of a subscription.",
  ),
}).meta({
  id: "Pricing",
  description:
    "The pricing catalogue. Calls that a provider answered are charged, and calls that were sent " +
    "to one and left before the answer.",
});

/** Body of `createAgentKey`. */
const agentKeyRequest = request({
  name: keyName.optional(),
  initial_fund_usd: amountUsd
    .optional()
    .describe(
      "The key is paid for and has this amount, and no free grant. `payments` in /agent.json " +
        "tells the range. Leave it out for the free grant.",
    ),
}).meta({ id: "AgentKeyRequest", description: "An anonymous key to create." });

/** Answer of `createAgentKey`. */
const createdAgentKey = record({
  key: secret,
  endpoint: rpcUrl,
  balance_cu: cu,
  profile: slug,
  key_prefix: is.text,
  estimated_requests: estimatedRequests,
  balance_usd: usd,
  purchase_id: is.text.optional().describe("The payment that made it."),
}).meta({ id: "CreatedAgentKey", description: "A new anonymous key." });

/** Operations without an account. */
export const AGENT_OPERATIONS = operations({ tag: "agent", auth: ["none"] }, {
  listAgentChains: {
    endpoint: "GET /api/v1/agent/chains",
    summary: "List chains and strategies",
    description: "What can be put into `/rpc/k/{key}/{strategy}/{chain}`.",
    answers: { 200: answer("The chains.", agentChains) },
  },
  createAgentKey: {
    endpoint: "POST /api/v1/agent/keys",
    summary: "Create an anonymous key with a free grant, or one that is paid for",
    description:
      "Needs no credential. The key is shown once. Repeating it creates another key; with " +
      "`initial_fund_usd` and the same payment, the same key is shown again for 7 days.",
    body: agentKeyRequest,
    answers: { 201: answer("The key and a URL that is ready to use.", createdAgentKey) },
    faults: ["rate_limited", ...PAYING],
    pays: "create_key",
  },
  getAgentKey: {
    endpoint: "GET /api/v1/agent/keys/{key}",
    summary: "Read a key by its secret",
    description: "Balance and profile of the key in the path.",
    auth: ["key_in_path"],
    params: secretParams,
    answers: { 200: answer("The key.", key) },
  },
  getPricing: {
    endpoint: "GET /api/v1/agent/pricing",
    summary: "Read the pricing catalogue",
    description: "Compute units and price of every method by strategy.",
    answers: { 200: answer("The catalogue.", pricing) },
  },
} as const satisfies OperationRows);
