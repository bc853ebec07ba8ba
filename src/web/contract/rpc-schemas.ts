// Schemas of JSON-RPC requests, answers and evidence, for documents only: requests are validated by
// hand-written code.

import { z } from "zod";
import { STRATEGY_NAMES } from "../../core/routing/strategy.ts";
import { exactly, is, list, oneOf, record, recordOrNull, rows } from "./shapes.ts";

const nothing = record({});
const params = z
  .union([list(is.anything), nothing, z.null()])
  .describe("Mostly an array. Null or left out = none.");
const method = is.text.min(1).describe("Name of the method, for example `eth_blockNumber`.");
const version = exactly("2.0");
const id = z.union([is.int, is.text, z.null()]);

const rpcRequest = record({
  jsonrpc: version,
  id: id.describe("Comes back as it was sent."),
  method,
  params: params.optional(),
}).meta({
  id: "JsonRpcRequest",
  description: "A JSON-RPC 2.0 call.",
  examples: [{ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] }],
});
const notification = record({ jsonrpc: version, method, params: params.optional() }).meta({
  id: "JsonRpcNotification",
  description: "A call without an id: it is executed, and the answer is 204 without a body.",
});

/** The body of a POST. */
export const rpcBody = z
  .union([rpcRequest, notification, list(z.union([rpcRequest, notification])).min(1)])
  .meta({
    id: "JsonRpcBody",
    description:
      "A call, or a batch of them. Each item of a batch is limited and charged for itself; items " +
      "beyond the rate wait.",
  });

const strategy = oneOf(STRATEGY_NAMES);
const ms = z.number().min(0).describe("Milliseconds.");
const region = is.text.optional().describe("Where the provider is, if that is stated.");
const attempt = record({
  provider: is.text,
  region,
  transport: oneOf(["http", "ws"]),
  outcome: oneOf(["success", "error"]),
  category: is.textOrNull.describe("Kind of failure; null on success."),
  code: is.intOrNull.describe("The provider's own error code; null where it sent none."),
  latency_ms: ms,
  hedged_after_ms: ms
    .optional()
    .describe(
      "Of a hedge: the attempt before it had taken this long and went on beside it; the one that " +
        "was slower is `overtaken`.",
    ),
  batched: is.int
    .min(2)
    .optional()
    .describe(
      "Of an attempt that went in one request with other calls: how many they were. Not in " +
        "managed pools.",
    ),
});
/** How a call was routed. */
export const evidence = record({
  version: is.text.describe("Of this shape."),
  request_id: is.text,
  strategy: strategy.describe("The one that was used."),
  chain_id: is.int,
  transport: oneOf(["http", "ws"]).describe("How the caller is connected."),
  profile: is.text,
  candidate_providers: list(is.text).describe(
    "Who could be asked, in order; of an answer that no provider was asked for, who could be " +
      "asked now. Not a list of attempts.",
  ),
  selected_provider: recordOrNull({ id: is.text, region }).describe(
    "Whose answer it is, or once was (`source` of a kept or shared one); null = no provider's, " +
      "or no longer known whose.",
  ),
  upstream_latency_ms: ms
    .nullable()
    .describe("0 = no provider was asked for the answer; null = there is no answer either."),
  svc_overhead_ms: ms,
  end_to_end_latency_ms: ms,
  retries: is.int.min(0).describe("Attempts after the first, hedges left out."),
  panic: exactly(true)
    .optional()
    .describe("Every circuit of the chain was open, and the least bad providers were asked."),
  lag_waived: exactly(true)
    .optional()
    .describe(
      "Providers that lag were asked, since no other one could be, or was known to be well.",
    ),
  circuit_breaker_state: oneOf(["closed", "half_open", "open"]).nullable(),
  upstream_calls: is.int
    .min(0)
    .optional()
    .describe("Of an answer joined from parts: the calls made for it until it began to be sent."),
  attempts: list(attempt).describe("At most 16."),
  cache: record({
    result: oneOf(["hit", "miss", "bypass"]).describe(
      "`hit`: a kept answer; `miss`: a provider was asked, and its answer may be kept; `bypass`: " +
        "asked all the same, for a pin, `Cache-Control: no-cache` or `X-Svc-Cache: bypass`.",
    ),
    age_ms: ms.optional().describe("Of a hit: how long ago it was asked for."),
    class: oneOf(["immutable", "block", "head", "tag", "hash"])
      .optional()
      .describe(
        "Of a hit: of a finalized block, of a younger block that keeps its hash, of the newest " +
          "block, of the block of a tag, or of a block by its hash.",
      ),
    tier: oneOf(["memory", "redis"])
      .optional()
      .describe("Of a hit: kept in memory, or on the server that several nodes share."),
  })
    .optional()
    .describe("Only of methods whose answers are kept."),
  charged_cu: is.int
    .min(0)
    .optional()
    .describe("Compute units that were charged for the call. Only with a key."),
  source: oneOf(["shared", "cache", "merged", "heads", "accepted", "local"])
    .optional()
    .describe(
      "`shared`: no provider was asked for this very call; its answer came from a filter, or " +
        "from another call or subscription that was there already. `merged`: its range of blocks " +
        "was asked for in parts, of several providers. `cache`: it was kept. `heads`: what the " +
        "providers told of their newest blocks. `accepted`: no provider that was asked finds the " +
        "transaction, which a provider has accepted from this very caller. `local`: the service " +
        "knows it, as the id of a chain.",
    ),
  block: record({ number: is.int.min(0), hash: is.textOrNull })
    .optional()
    .describe("The block at which the answer was given. Only where it is known."),
  tip: oneOf(["stale", "alone"])
    .optional()
    .describe(
      "`stale`: no tip was in force, so `latest`, `safe` and `finalized` went to the provider as " +
        "they were written. `alone`: one operator alone defines the tip, although others are " +
        "configured.",
    ),
  excluded: rows({ provider: is.text, reason: is.text })
    .optional()
    .describe("Who could not be asked, and why. Not on managed profiles."),
  node: record({ id: is.text, region: is.text })
    .optional()
    .describe("The node that served the call, where several serve together."),
}).meta({
  id: "SvcMeta",
  description: "How a call was routed. Providers of managed profiles are shown by alias.",
});

const rpcFailure = record({
  code: is.int,
  message: is.text,
  data: is.anything
    .optional()
    .describe(
      "Errors of the service itself: an object with `code`, `next_action`, `retryable`. Others " +
        "are the provider's, unchanged.",
    ),
}).meta({
  id: "JsonRpcError",
  description: "An error of a provider, unchanged, or of the service.",
});
const rpcAnswer = record({
  jsonrpc: version,
  id,
  result: is.anything.optional(),
  error: rpcFailure.optional(),
  svc_meta: evidence.optional().describe("With `include_meta=body`."),
}).meta({ id: "JsonRpcResponse", description: "Either `result` or `error`." });

/** What is answered. */
export const rpcAnswers = z
  .union([rpcAnswer, list(rpcAnswer)])
  .meta({ id: "JsonRpcAnswer", description: "An answer, or one per call of a batch." });
