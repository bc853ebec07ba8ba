// Schemas of JSON-RPC requests, answers and evidence, for documents only: requests are validated by
// hand-written code.

import { z } from "zod";
import { STRATEGY_NAMES } from "../../core/routing/strategy.ts";

const nothing = z.object({});
const params = z
  .union([z.array(z.unknown()), nothing, z.null()])
  .describe("Mostly an array. Null or left out = none.");
const method = z.string().min(1).describe("Name of the method, for example `eth_blockNumber`.");
const version = z.literal("2.0");
const id = z.union([z.int(), z.string(), z.null()]);

const rpcRequest = z
  .object({
    jsonrpc: version,
    id: id.describe("Comes back as it was sent."),
    method,
    params: params.optional(),
  })
  .meta({
    id: "JsonRpcRequest",
    description: "A JSON-RPC 2.0 call.",
    examples: [{ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] }],
  });
const notification = z.object({ jsonrpc: version, method, params: params.optional() }).meta({
  id: "JsonRpcNotification",
  description: "A call without an id: it is executed, and the answer is 204 without a body.",
});

/** The body of a POST. */
export const rpcBody = z
  .union([rpcRequest, notification, z.array(z.union([rpcRequest, notification])).min(1)])
  .meta({
    id: "JsonRpcBody",
    description:
      "A call, or a batch of them. Each item of a batch is limited and charged for itself; " +
      "items beyond the rate wait.",
  });

const strategy = z.enum(STRATEGY_NAMES);
const ms = z.number().min(0).describe("Milliseconds.");
const region = z.string().optional().describe("Where the provider is, if that is stated.");
const attempt = z.object({
  provider: z.string(),
  region,
  transport: z.enum(["http", "ws"]),
  outcome: z.enum(["success", "error"]),
  category: z.string().nullable().describe("Kind of failure; null on success."),
  code: z.int().nullable().describe("The provider's own error code; null where it sent none."),
  latency_ms: ms,
  hedged_after_ms: ms
    .optional()
    .describe(
      "Of a hedge: the attempt before it had taken this long and went on beside it; the one that " +
        "was slower is `overtaken`.",
    ),
  batched: z
    .int()
    .min(2)
    .optional()
    .describe(
      "Of an attempt that went in one request with other calls: how many they were. Not in " +
        "managed pools.",
    ),
});
const evidence = z
  .object({
    version: z.string().describe("Of this shape."),
    request_id: z.string(),
    strategy: strategy.describe("The one that was used."),
    chain_id: z.int(),
    transport: z.enum(["http", "ws"]).describe("How the caller is connected."),
    profile: z.string(),
    candidate_providers: z
      .array(z.string())
      .describe(
        "Who could be asked, in order; of an answer that no provider was asked for, who could be " +
          "asked now. Not a list of attempts.",
      ),
    selected_provider: z
      .object({ id: z.string(), region })
      .nullable()
      .describe(
        "Whose answer it is, or once was (`source` of a kept or shared one); null = no provider's, " +
          "or no longer known whose.",
      ),
    upstream_latency_ms: ms
      .nullable()
      .describe("0 = no provider was asked for the answer; null = there is no answer either."),
    svc_overhead_ms: ms,
    end_to_end_latency_ms: ms,
    retries: z.int().min(0).describe("Attempts after the first, hedges left out."),
    panic: z
      .literal(true)
      .optional()
      .describe("Every circuit of the chain was open, and the least bad providers were asked."),
    lag_waived: z
      .literal(true)
      .optional()
      .describe(
        "Providers that lag were asked, since no other one could be, or was known to be well.",
      ),
    circuit_breaker_state: z.enum(["closed", "half_open", "open"]).nullable(),
    upstream_calls: z
      .int()
      .min(0)
      .optional()
      .describe("Of an answer joined from parts: the calls made for it until it began to be sent."),
    attempts: z.array(attempt).describe("At most 16."),
    cache: z
      .object({
        result: z
          .enum(["hit", "miss", "bypass"])
          .describe(
            "`hit`: a kept answer; `miss`: a provider was asked, and its answer may be kept; " +
              "`bypass`: asked all the same, for a pin, `Cache-Control: no-cache` or " +
              "`X-Svc-Cache: bypass`.",
          ),
        age_ms: ms.optional().describe("Of a hit: how long ago it was asked for."),
        class: z
          .enum(["immutable", "block", "head", "tag", "hash"])
          .optional()
          .describe(
            "Of a hit: of a finalized block, of a younger block that keeps its hash, of the " +
              "newest block, of the block of a tag, or of a block by its hash.",
          ),
        tier: z
          .enum(["memory", "redis"])
          .optional()
          .describe("Of a hit: kept in memory, or on the server that several nodes share."),
      })
      .optional()
      .describe("Only of methods whose answers are kept."),
    charged_cu: z
      .int()
      .min(0)
      .optional()
      .describe("Compute units that were charged for the call. Only with a key."),
    source: z
      .enum(["shared", "cache", "merged", "heads", "accepted", "local"])
      .optional()
      .describe(
        "`shared`: no provider was asked for this very call; its answer came from a filter, or " +
          "from another call or subscription that was there already. `merged`: its range of blocks was asked " +
          "for in parts, of several providers. `cache`: it was kept. `heads`: what the providers " +
          "told of their newest blocks. `accepted`: no provider that was asked finds the " +
          "transaction, which a provider has accepted from this very caller. `local`: the service " +
          "knows it, as the id of a chain.",
      ),
    block: z
      .object({ number: z.int().min(0), hash: z.string().nullable() })
      .optional()
      .describe("The block at which the answer was given. Only where it is known."),
    tip: z
      .enum(["stale", "alone"])
      .optional()
      .describe(
        "`stale`: no tip was in force, so `latest`, `safe` and `finalized` went to the provider as " +
          "they were written. `alone`: one operator alone defines the tip, although others are " +
          "configured.",
      ),
    excluded: z
      .array(z.object({ provider: z.string(), reason: z.string() }))
      .optional()
      .describe("Who could not be asked, and why. Not on managed profiles."),
    node: z
      .object({ id: z.string(), region: z.string() })
      .optional()
      .describe("The node that served the call, where several serve together."),
  })
  .meta({
    id: "SvcMeta",
    description: "How a call was routed. Providers of managed profiles are shown by alias.",
  });

const rpcFailure = z
  .object({
    code: z.int(),
    message: z.string(),
    data: z
      .unknown()
      .optional()
      .describe(
        "Errors of the service itself: an object with `code`, `next_action`, `retryable`. " +
          "Others are the provider's, unchanged.",
      ),
  })
  .meta({
    id: "JsonRpcError",
    description: "An error of a provider, unchanged, or of the service.",
  });
const rpcAnswer = z
  .object({
    jsonrpc: version,
    id,
    result: z.unknown().optional(),
    error: rpcFailure.optional(),
    svc_meta: evidence.optional().describe("With `include_meta=body`."),
  })
  .meta({ id: "JsonRpcResponse", description: "Either `result` or `error`." });

/** What is answered. */
export const rpcAnswers = z
  .union([rpcAnswer, z.array(rpcAnswer)])
  .meta({ id: "JsonRpcAnswer", description: "An answer, or one per call of a batch." });
