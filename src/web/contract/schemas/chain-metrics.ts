// Schema of `GET /api/metrics/{chain}`: how each provider of a chain does, and the subscriptions.
// Null where nothing is known, never 0.
import { z } from "zod";
import { RESOURCES } from "../../../core/rpc/method.ts";

const count = z.int().min(0);
const ratio = z.number().min(0).max(1).nullable();
const ms = z.number().min(0).nullable();

const socket = z.object({
  state: z.string().describe("`idle`, `connecting`, `open` or `waiting` to reconnect."),
  subscriptions: count,
  opened: count.describe("How often it connected."),
  stray_frames: count.describe("Frames that belonged to nothing."),
});

const transport = z
  .looseObject({
    transport: z.enum(["http", "ws"]),
    circuit_breaker_state: z
      .enum(["closed", "recovered", "never_answered", "half_open", "open"])
      .describe(
        "`recovered`: closed by good probes, which calls have not confirmed yet; " +
          "`never_answered`: neither a probe nor a call was answered since the start or the last " +
          "change of the provider.",
      ),
    circuit_opened: z.record(z.string(), count).describe("How often each cause opened it."),
    half_open_in_ms: ms.describe("Until the next trial of an open circuit."),
    rate_limited_for_ms: z.number().min(0).describe("0 = not limited."),
    rate_limited_methods: z.array(z.string()),
    cordoned: z.string().nullable().describe("`auth`, `quota` or `wrong_chain`; null = it is not."),
    block_height: z.int().nullable(),
    lag_blocks: z.int().nullable(),
    calls: count.describe("Attempts since the start, without cancelled ones."),
    outcomes: z.object({
      delivered: count,
      failed: count,
      rate_limited: count,
      neutral: count,
      cancelled: count,
    }),
    learned: z.object({
      unsupported_methods: z.array(z.string()),
      max_block_range: z.int().nullable(),
      pruned: z.boolean().describe("It does not have all of old blocks."),
      pruned_resources: z
        .array(z.enum(RESOURCES))
        .describe("What it does not have of old blocks; nothing is concluded of the others."),
      requests_per_second: z.number().nullable(),
    }),
    share: ratio.describe("Of the calls of the profile on this chain."),
    success_rate: ratio.describe("A recent average; null after 10 minutes without a call."),
    latency_ms: z.object({ average: ms, p50: ms, p95: ms, p99: ms, probe: ms }),
    methods: z.array(
      z.object({
        method: z.string(),
        calls: z.number(),
        success_rate: ratio,
        latency_ms: ms,
        age_ms: z.number(),
      }),
    ),
    socket: socket.optional().describe("Of the transport `ws`."),
  })
  .meta({ id: "TransportMetrics", description: "How a provider does on one transport." });

const used = z.object({ limit: z.number(), in_use: z.number() }).nullable();
const credits = z
  .object({ limit: z.number(), spent: z.number(), left: z.number(), resets_in_ms: z.number() })
  .nullable();

const provider = z
  .looseObject({
    id: z.string(),
    name: z.string(),
    region: z.string().nullable().describe("Where it is; null = not stated."),
    limits: z
      .object({
        rps: used,
        concurrency: used,
        daily: credits,
        monthly: credits,
        ahead_of_pace: z.boolean(),
      })
      .nullish()
      .describe(
        "What was sent of what may be sent: `in_use` by this node, `spent` and `left` of all " +
          "nodes together. The operator sees it; null = no limit.",
      ),
    cordon: z
      .object({ reason: z.string().nullable(), at: z.iso.datetime() })
      .nullish()
      .describe("Set by the operator: it gets no calls. Only the operator reads the reason."),
    transports: z.array(transport),
  })
  .meta({ id: "ProviderMetrics", description: "How a provider does." });

const stream = z.object({
  kind: z.string(),
  state: z.enum(["opening", "live", "recovering"]),
  provider: z.string().nullable().describe("The source; null = none now."),
  pinned: z.boolean(),
  subscribers: count,
  block_height: z.int().nullable(),
  blocks_behind: z.int().nullable(),
  events: count,
  failovers: count,
  blocks_filled: count,
});

const subscriptions = z
  .object({
    open: count,
    subscribers: count,
    failovers: z.record(z.string(), count).describe("By reason."),
    blocks_filled: count,
    ended: count.describe("Subscriptions that could not go on without a gap."),
    log_checks: z.record(z.string(), count).describe("Checks of logs, by result."),
    notifications: z.record(z.string(), count).describe("Events sent to callers, by kind."),
    streams: z.array(stream).describe("100 at most."),
  })
  .meta({ id: "SubscriptionMetrics", description: "The subscriptions of a profile on a chain." });

/** Answer of `getChainMetrics`. */
export const chainMetrics = z
  .object({
    chain_id: z.string(),
    chain_name: z.string(),
    name: z.string(),
    open_sockets: count.describe("WebSockets of callers, of all chains."),
    profiles: z
      .array(
        z.object({
          profile: z.string(),
          head_block: z.int().nullable(),
          max_lag_blocks: count,
          calls: count,
          subscriptions,
          providers: z.array(provider),
        }),
      )
      .describe("Null where nothing is known, never 0."),
  })
  .meta({ id: "ChainMetrics", description: "How each provider of a chain does, by profile." });
