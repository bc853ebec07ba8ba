// The live feed, decisions, errors of providers and streams.

import { z } from "zod";
import { CALL_OUTCOMES } from "../../core/call-end.ts";
import { STRATEGY_NAMES } from "../../core/routing/strategy.ts";
import { instant } from "../../hosted/keys/key-fields.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { is, list, oneOf, record, recordOrNull, rows, short } from "./shapes.ts";

export const name = short(100);

const transport = oneOf(["http", "ws"]);

const circuit = oneOf(["closed", "half_open", "open"]);

/** Filters of calls. */
export const callFilters = {
  profile: name.optional(),
  chain: name.optional(),
  method: name.optional(),
  provider: name.optional().describe("That answered, or failed last."),
  key: name.optional().describe("Id of a key."),
  outcome: oneOf(CALL_OUTCOMES).optional(),
  failovers: oneOf(["true", "false"])
    .default("false")
    .describe("`true`: only calls with a failed attempt, or several."),
  min_ms: z.coerce.number().min(0).max(3_600_000).optional().describe("Only calls this slow."),
};

/** Query of `watchEvents`. */
const eventsQuery = record({
  ...callFilters,
  last_event_id: is.text
    .max(100)
    .optional()
    .describe("Goes on after this event; as the header `Last-Event-ID`."),
});

/** Query of `listDecisions`. */
const decisionsQuery = record({
  ...callFilters,
  id: name
    .optional()
    .describe("Only the call of this `X-Svc-Request-Id`; of a batch, all of its calls."),
  from: instant.optional().describe("Only calls that ended at this time or later."),
  to: instant.optional().describe("Only calls that ended before this time."),
  limit: z.coerce.number().int().min(1).max(200).default(50),
});

/** A call at its end: an event of the live feed, and an item of `listDecisions`. */
export const callEvent = record({
  id: is.text.describe("Of its decision."),
  at: instant.describe("When it ended."),
  worker: is.text,
  request_id: is.textOrNull,
  profile: is.textOrNull.describe(
    "`custom` for every profile of an account; null = it ended before that was known.",
  ),
  chain: is.textOrNull,
  method: is.textOrNull,
  strategy: oneOf(STRATEGY_NAMES).nullable(),
  key_id: is.textOrNull,
  request_bytes: is.countOrNull,
  answer_bytes: is.count.nullable().describe("Null = it was passed on while it arrived, or none."),
  notification: is.flag.describe("It has no id, gets no answer, and is in no count of calls."),
  total_ms: is.amountOrNull.describe("Until its answer; null = it was not routed."),
  upstream_ms: is.amountOrNull,
  added_ms: is.amountOrNull.describe("What the service itself added."),
  outcome: oneOf(CALL_OUTCOMES),
  reason: is.textOrNull.describe("Why it ended so, in the words of history and metrics."),
  cause: is.textOrNull.describe("Code of the refusal, or category of the provider's error."),
  source: oneOf([
    "provider",
    "cache",
    "merged",
    "shared",
    "heads",
    "accepted",
    "local",
    "refused",
    "none",
  ]),
  provider: is.textOrNull.describe("Whose answer it is."),
  attempts: is.count,
  failovers: is.count,
  hedged: is.flag,
  pinned: is.flag,
  panic: is.flag,
  error: recordOrNull({
    provider: is.text,
    category: is.text,
    code: is.intOrNull,
    message: is.textOrNull.describe("Redacted."),
  }).describe("Of the last attempt that failed."),
  what_if: is.flag.describe("Whether the inputs of its plan were recorded."),
}).meta({ id: "CallEvent", description: "A call at its end." });

/** Answer of `listDecisions`. */
const decisions = record({
  decisions: list(callEvent).describe("Newest first."),
  kept: record({
    decisions: is.count,
    bytes: is.count.describe("Memory that they take, about."),
    max_bytes: is.count,
    good_since: instant.nullable().describe("Older ones were dropped; null = none were."),
    notable_since: instant
      .nullable()
      .describe("The same of calls that failed, took several attempts, or a second and more."),
  }).describe("What is kept of decisions, by all workers."),
  per_second: is.count.describe("Most that are taken a second for the readers of one filter."),
  unwatched_per_second: is.count.describe("Most that are taken a second while nobody watches."),
}).meta({ id: "Decisions", description: "The latest decisions, as far as they were taken." });

const candidateFields = {
  provider: is.text,
  transport,
  tier: is.int.describe(
    "1 closed, 2 limited or stalled, 3 and 4 half-open; 5 more if it is not known to have the " +
      "block, 10 more if it never answered, 20 more of a backup, 40 more if it lacks the block.",
  ),
  circuit,
  limited: is.flag,
  stalled: is.flag,
  backup: is.flag,
  weight: is.number,
  priority: is.number,
  price: is.number.nullable(),
  region_rank: is.number,
  reading: recordOrNull({
    calls: is.number,
    success_rate: is.number,
    latency_ms: is.amountOrNull,
    age_ms: is.number,
  }).describe("What the strategy looked at."),
  latency_weight: is.number.nullable().describe("Only of `latency-weighted`."),
  probe_ms: is.amountOrNull,
  decided_by: is.text.describe("Why it stands where it stands."),
};

const candidate = record(candidateFields).meta({
  id: "Candidate",
  description: "A provider that could be asked for a call.",
});

const excluded = record({
  provider: is.text,
  reason: is.text,
  transport: transport.nullable(),
  circuit: circuit.nullable(),
}).meta({ id: "ExcludedProvider", description: "A provider that could not be asked, and why." });

const decisionParams = record({ id: name });

/** Answer of `getDecision`. */
const decision = callEvent
  .extend({
    order: list(is.text).describe("The candidates in the order of the plan."),
    candidates: list(candidate).describe(
      "The same with what decided; empty where `what_if` is false.",
    ),
    excluded: list(excluded),
    timeline: rows({
      provider: is.text,
      transport,
      started_ms: is.amountOrNull.describe("Since the call began."),
      latency_ms: is.amount,
      outcome: oneOf(["success", "error"]),
      category: is.textOrNull,
      provider_failed: is.flag.describe("Whether that counts against its provider."),
      step: is.textOrNull.describe("What followed."),
      effect: is.textOrNull.describe("What it changed in the health of the provider."),
      code: is.intOrNull,
      message: is.textOrNull.describe("Redacted."),
      hedged_after_ms: is.amountOrNull,
      batched: is.count
        .nullable()
        .describe("Calls in the request that it was sent in; null = it was sent alone."),
    }).describe("The attempts, in the order in which they ended."),
    cache: recordOrNull({
      result: oneOf(["hit", "miss", "bypass"]),
      age_ms: is.amountOrNull,
      class: is.textOrNull,
    }),
    coalesced: is.flag.describe("The answer was shared with another call."),
    hedge_over_budget: is.flag,
    lag_waived: is.flag.describe("Candidates that lag follow the others, or there are no others."),
    rechecked: oneOf(["found", "missing"]).nullable(),
    strategies: list(oneOf(STRATEGY_NAMES)).describe("Those of which can be asked what if."),
  })
  .meta({ id: "Decision", description: "A call with the plan it was routed by." });

/** Query of `getWhatIf`. */
const whatIfQuery = record({
  strategy: oneOf(STRATEGY_NAMES).optional().describe("Left out = its own."),
  without: name.optional().describe("A provider that is left out."),
});

/** Answer of `getWhatIf`. */
const whatIf = record({
  id: is.text,
  strategy: oneOf(STRATEGY_NAMES),
  without: is.textOrNull,
  candidates: rows({
    ...candidateFields,
    first_share: is.number.describe("In how many of 500 drawings it comes first, 0 to 1."),
  }),
  excluded: list(excluded),
  random: is.flag.describe("Whether the order depends on chance."),
  same_first: is.flag.describe("Whether the one that was really first would be so again."),
}).meta({
  id: "WhatIf",
  description:
    "Another plan of a call, made of the inputs that were recorded with it. The order is the one " +
    "that the random numbers of the call give.",
});

/** Operations on calls under way. */
export const LIVE_OPERATIONS = operations({ tag: "operator", auth: ["operator"] }, {
  watchEvents: {
    endpoint: "GET /api/v1/operator/events",
    summary: "Watch what happens",
    description:
      "Server-sent events of all workers: `call` (as `CallEvent`), `circuit`, `cordon`, `head`, " +
      "`incident`, `stream`, `config` and `node`; `hello` first, `beat` every 5 s, `sampled` where calls " +
      "were left out (each filter has 200 a second), `resync` where events are missing, `end` " +
      "last. Filters concern calls only, and choose before any are left out. What several " +
      "workers tell of the same change comes once. Several times a second. Ends with its " +
      "credential, where that could not be checked for 15 s, and after 12 h. At most 16 " +
      "readers of a worker, and 64 different filters: others get 503.",
    query: eventsQuery,
    answers: {
      200: { description: "The events.", schema: null, contentType: "text/event-stream" },
    },
    faults: ["forbidden"],
  },
  listDecisions: {
    endpoint: "GET /api/v1/operator/decisions",
    summary: "List the latest decisions",
    description:
      "Calls as they ended, newest first. Where there are many only some are taken: those " +
      "that failed first.",
    query: decisionsQuery,
    answers: { 200: answer("The decisions.", decisions) },
  },
  getDecision: {
    endpoint: "GET /api/v1/operator/decisions/{id}",
    summary: "Read why a call went where it went",
    description: "The plan with what decided it, and every attempt.",
    params: decisionParams,
    answers: { 200: answer("The decision.", decision) },
  },
  getWhatIf: {
    endpoint: "GET /api/v1/operator/decisions/{id}/what-if",
    summary: "Ask where a call would have gone",
    description: "Under another strategy, or without a provider: computed from recorded inputs.",
    params: decisionParams,
    query: whatIfQuery,
    answers: { 200: answer("The other plan.", whatIf) },
  },
} as const satisfies OperationRows);
