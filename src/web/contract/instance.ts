// The instance itself: its chains, health and figures. Also the two forms of refusals.

import { z } from "zod";
import { BOUND_SOURCES } from "../../core/provider/history.ts";
import { RESOURCES } from "../../core/rpc/method.ts";
import { instant } from "../../hosted/keys/key-fields.ts";
import { PROVIDER_STATES } from "../../observe/incidents/judge.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { exactly, is, list, map, oneOf, openRecord, record, recordOrNull, rows } from "./shapes.ts";

/** Answer of `listChains`. */
const instanceChains = record({
  chains: list(
    record({
      chain_id: is.text.describe("Numeric chain id as text."),
      name: is.text.describe("For people."),
      chain_name: is.text.describe("For API paths."),
      supported: is.flag.describe("Always true: others are not listed."),
    }).meta({ id: "Chain", description: "A chain." }),
  ),
}).meta({ id: "Chains", description: "The chains that are served now." });

/** Answer of `getHealth`. */
const health = record({
  status: exactly("healthy"),
  timestamp: instant,
  uptime_seconds: is.count,
  version: is.text,
  cluster: record({
    enabled: is.flag,
    nodes_connected: is.count.describe("Nodes that have joined and not left, this one included."),
    nodes_responding: is.count.describe("Of these, nodes that were heard of in the last seconds."),
    nodes_total: is.count.describe("As configured, or else nodes seen in the last hour."),
    regions: list(is.text),
    status: oneOf(["standalone", "healthy", "degraded", "critical"]),
    problems: list(is.text)
      .optional()
      .describe("What an operator has to look at; only where several nodes serve together."),
  }),
}).meta({ id: "Health", description: "That the instance is alive, and how its cluster is." });

/** Query of `getReadiness`. */
const readinessQuery = record({
  for: exactly("traffic")
    .optional()
    .describe("Whether any call can be served, even if those with keys cannot."),
});

/** Answer of `getReadiness`. */
export const readiness = record({
  ready: is.flag.describe("It can serve all callers."),
  traffic: is.flag.describe("It can serve some of them: what `?for=traffic` asks."),
  reasons: list(is.text).describe("Why not; empty when it is."),
  chains: rows({
    profile: is.text,
    chain: is.text,
    ready: is.flag,
    providers_usable: is.count,
    providers_total: is.count,
  }),
}).meta({ id: "Readiness", description: "Whether the instance can serve calls." });

/** A JSON-RPC error, as the older pages answer it. */
export const rpcError = record({
  jsonrpc: exactly("2.0"),
  id: z
    .union([is.int, is.text, z.null()])
    .describe("The id of the call; null where it was refused before it was read."),
  error: record({
    code: is.int,
    message: is.text,
    data: openRecord({ code: is.text, next_action: is.text, retryable: is.flag }),
  }),
}).meta({ id: "RpcError", description: "A refusal in the form of JSON-RPC." });

/** The error envelope of the management API. */
export const errorEnvelope = record({
  error: record({
    code: is.text.describe("A code of the error table."),
    message: is.text.describe("What went wrong, for people."),
    next_action: is.text.describe("What to do about it."),
    docs_url: is.text.describe("Where the code is explained."),
    details: list(is.text).optional().describe("Paths of the fields that are wrong."),
    purchase_id: is.text
      .optional()
      .describe("The payment that it is about, where one was recorded."),
    status_url: is.text.optional().describe("Where that payment is read. Needs no credential."),
  }),
  type: is.text
    .optional()
    .describe("MPP's problem type, where a payment is missing or not right (RFC 9457)."),
  title: is.text.optional(),
  status: is.int.optional(),
  detail: is.text.optional(),
}).meta({ id: "Error", description: "A refusal." });

/** The path parameter of a chain. */
const chainParams = record({
  chain: is.text.describe("A chain's name or decimal id."),
});

const ratio = is.amount.max(1).nullable();

const socket = record({
  state: is.text.describe("`idle`, `connecting`, `open` or `waiting` to reconnect."),
  subscriptions: is.count,
  opened: is.count.describe("How often it connected."),
  stray_frames: is.count.describe("Frames that belonged to nothing."),
});

/** States of circuits, the worst last. */
export const CIRCUITS = ["closed", "recovered", "never_answered", "half_open", "open"] as const;

const transport = openRecord({
  transport: oneOf(["http", "ws"]),
  circuit_breaker_state: oneOf(CIRCUITS).describe(
    "`recovered`: closed by good probes, which calls have not confirmed yet; `never_answered`: " +
      "neither a probe nor a call was answered since the start or the last change of the " +
      "provider.",
  ),
  circuit_opened: map(is.count).describe("How often each cause opened it."),
  half_open_in_ms: is.amountOrNull.describe("Until the next trial of an open circuit."),
  rate_limited_for_ms: is.amount.describe("0 = not limited."),
  rate_limited_methods: list(is.text),
  cordoned: is.textOrNull.describe("`auth`, `quota` or `wrong_chain`; null = it is not."),
  block_height: is.intOrNull,
  lag_blocks: is.intOrNull,
  calls: is.count.describe("Attempts since the start, without cancelled ones."),
  outcomes: record({
    delivered: is.count,
    failed: is.count,
    rate_limited: is.count,
    neutral: is.count,
    cancelled: is.count,
  }),
  learned: record({
    unsupported_methods: list(is.text),
    max_block_range: is.intOrNull,
    pruned: is.flag.describe("It does not have all of old blocks."),
    pruned_resources: list(oneOf(RESOURCES)).describe(
      "What it does not have of old blocks; nothing is concluded of the others.",
    ),
    requests_per_second: is.number.nullable(),
  }),
  share: ratio.describe("Of the calls of the profile on this chain."),
  success_rate: ratio.describe("A recent average; null after 10 minutes without a call."),
  latency_ms: record({
    average: is.amountOrNull,
    p50: is.amountOrNull,
    p95: is.amountOrNull,
    p99: is.amountOrNull,
    probe: is.amountOrNull,
  }),
  methods: rows({
    method: is.text,
    calls: is.number,
    success_rate: ratio,
    latency_ms: is.amountOrNull,
    age_ms: is.number,
  }),
  socket: socket.optional().describe("Of the transport `ws`."),
}).meta({ id: "TransportMetrics", description: "How a provider does on one transport." });

const used = recordOrNull({ limit: is.number, in_use: is.number });

const credits = recordOrNull({
  limit: is.number,
  spent: is.number,
  left: is.number,
  resets_in_ms: is.number,
});

const provider = openRecord({
  id: is.text,
  name: is.text,
  region: is.textOrNull.describe("Where it is; null = not stated."),
  capabilities: rows({
    resource: oneOf(RESOURCES),
    disabled: is.flag.describe("It has none."),
    oldest_block: is.intOrNull.describe("The oldest one that it has; null = not known."),
    window_blocks: is.intOrNull.describe(
      "How many blocks behind the head it keeps; null = none is dropped with time.",
    ),
    source: oneOf(BOUND_SOURCES).describe(
      "Where that is known from: its refusals, the configuration, its own `eth_capabilities`, or " +
        "`archival`.",
    ),
  }).describe("How far back it has what calls read; a resource that is left out is not known."),
  limits: record({
    rps: used,
    concurrency: used,
    daily: credits,
    monthly: credits,
    ahead_of_pace: is.flag,
  })
    .nullish()
    .describe(
      "What was sent of what may be sent: `in_use` by this node, `spent` and `left` of all nodes " +
        "together. The operator sees it; null = no limit.",
    ),
  certificate_until: instant
    .nullish()
    .describe(
      "When the certificate of its HTTP address ends, of the last full handshake over HTTP/1.1; " +
        "null = there was none. The operator sees it.",
    ),
  cordon: record({ reason: is.textOrNull, at: instant, until: instant.nullable() })
    .nullish()
    .describe(
      "Set by the operator: it gets no calls, until its end if it has one. Only the operator " +
        "reads the reason.",
    ),
  state: oneOf(PROVIDER_STATES)
    .nullable()
    .describe(
      "Judged over time, as incidents are. `recovered`: its probes are good, and no call has " +
        "tried it since; `maintenance`: cordoned by the operator; null = not judged yet.",
    ),
  state_since: instant.nullable(),
  cause: is.textOrNull.describe("In words; null = there is nothing to say."),
  answered_share: ratio.describe(
    "Of the attempts of the last minute: rate limits and time-outs count as not answered, errors " +
      "of the caller do not; null = there were none.",
  ),
  transports: list(transport),
}).meta({ id: "ProviderMetrics", description: "How a provider does." });

/** A subscription upstream. */
export const streamFields = {
  kind: is.text,
  state: oneOf(["opening", "live", "recovering"]),
  provider: is.textOrNull.describe("The source; null = none now."),
  pinned: is.flag,
  subscribers: is.count,
  block_height: is.countOrNull,
  blocks_behind: is.countOrNull,
  events: is.count,
  failovers: is.count,
  blocks_filled: is.count,
};

const subscriptions = record({
  open: is.count,
  subscribers: is.count,
  failovers: map(is.count).describe("By reason."),
  blocks_filled: is.count,
  ended: is.count.describe("Subscriptions that could not go on without a gap."),
  log_checks: map(is.count).describe("Checks of logs, by result."),
  notifications: map(is.count).describe("Events sent to callers, by kind."),
  streams: rows(streamFields).describe("100 at most."),
}).meta({ id: "SubscriptionMetrics", description: "The subscriptions of a profile on a chain." });

/** Answer of `getChainMetrics`. */
const chainMetrics = record({
  chain_id: is.text,
  chain_name: is.text,
  name: is.text,
  open_sockets: is.count.describe("WebSockets of callers, of all chains."),
  profiles: rows({
    profile: is.text,
    head_block: is.intOrNull,
    max_lag_blocks: is.count,
    calls: is.count,
    subscriptions,
    providers: list(provider),
  }).describe("Null where nothing is known, never 0."),
}).meta({ id: "ChainMetrics", description: "How each provider of a chain does, by profile." });

/** Operations of the instance. */
export const INSTANCE_OPERATIONS = operations({ tag: "instance", auth: ["none"] }, {
  listChains: {
    endpoint: "GET /api/chains",
    summary: "List the chains",
    description:
      "Those of the configuration, as of the last reload, and those that were opened on demand by " +
      "the process that answers.",
    answers: { 200: answer("The chains.", instanceChains) },
  },
  getHealth: {
    endpoint: "GET /api/health",
    summary: "Ask whether the instance is alive",
    description: "Reads memory only and answers at once.",
    answers: { 200: answer("It is.", health) },
  },
  getReadiness: {
    endpoint: "GET /api/ready",
    query: readinessQuery,
    summary: "Ask whether the instance can serve calls",
    description:
      "Ready once a provider of some chain has answered, while nothing is being drained and, " +
      "with keys, the database answers. With `?for=traffic`: as long as any call can be served.",
    answers: {
      200: answer("It can.", readiness),
      503: answer("It cannot; `reasons` says why.", readiness),
    },
  },
  getChainMetrics: {
    endpoint: "GET /api/metrics/{chain}",
    summary: "Read how the providers of a chain do",
    description:
      "Every profile that serves the chain. Managed providers are shown by alias. With the " +
      "operator token also samples of provider errors that no rule knows.",
    params: chainParams,
    answers: {
      200: answer("The figures.", chainMetrics),
      401: answer("With `console.public: false`: the caller has not signed in.", rpcError),
      404: answer("No such chain.", rpcError),
    },
  },
} as const satisfies OperationRows);
