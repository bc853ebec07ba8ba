// Schemas of what the operator sees of a running service beside its metrics: history, the live
// feed, decisions, errors of providers and streams.
import { z } from "zod";
import { ERROR_CATEGORIES } from "../../../core/provider-errors/category.ts";
import { STRATEGY_NAMES } from "../../../core/routing/strategy.ts";
import { FEED_EVENT_TYPES } from "../../../observe/feed/feed-event.ts";
import { MAX_CHANGES } from "../../../observe/feed/recent-changes.ts";
import { HISTORY_SPANS } from "../../../observe/history/history-report.ts";

const count = z.int().min(0);
const name = z.string().min(1).max(100);
const ms = z.number().min(0);
const known = <T extends z.ZodType>(value: T) => z.array(value.nullable());
const transport = z.enum(["http", "ws"]);
const circuit = z.enum(["closed", "half_open", "open"]);

/** Query of `getHistory`. */
export const historyQuery = z.object({
  range: z.enum(HISTORY_SPANS).default("hour").describe("How far back."),
  profile: name.optional().describe("With `chain`; without both the whole service."),
  chain: name.optional().describe("Name of a chain of that profile."),
  provider: name.optional().describe("Of that profile and chain, by the id that is shown."),
  points: z.coerce
    .number()
    .int()
    .min(10)
    .max(1_440)
    .default(120)
    .describe("Most steps that are returned; steps are joined to whole multiples."),
});

const series = z
  .object({
    kind: z.enum(["service", "chain", "provider", "class"]),
    profile: z.string().nullable(),
    chain: z.string().nullable(),
    provider: z.string().nullable(),
    class: z.string().nullable().describe("Class of methods, by how long their calls may take."),
    calls: known(count).describe("Calls of callers; of a provider the attempts at it."),
    errors: z.record(z.string(), known(count)).describe("By kind of error; only what occurred."),
    p50_ms: known(ms),
    p95_ms: known(ms),
    p99_ms: known(ms),
    added_p50_ms: known(ms).nullable().describe("What the service itself added to a call."),
    added_p95_ms: known(ms).nullable(),
    share: known(z.number()).nullable().describe("Of all attempts of the profile on the chain."),
    lag_blocks: known(count).nullable().describe("The most in the step."),
    circuit: known(
      z.enum(["closed", "recovered", "never_answered", "half_open", "open", "cordoned"]),
    )
      .nullable()
      .describe("The worst in the step."),
  })
  .meta({
    id: "HistorySeries",
    description: "Columns with one value for each step; null where nothing is known.",
  });

/** Answer of `getHistory`. */
export const history = z
  .object({
    range: z.enum(HISTORY_SPANS),
    step_s: count.describe("Length of a step, in seconds."),
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    times: z.array(count).describe("Beginning of each step, in seconds since the epoch."),
    series: z.array(series).describe("The whole first, then providers, then classes of methods."),
    kept: z
      .object({
        bytes: count.describe("Memory that history takes."),
        max_bytes: count,
        bytes_per_provider: count.nullable(),
        method_classes: z.boolean().describe("False = dropped, for history took too much memory."),
        day: z.boolean().describe("False = dropped as well."),
        providers: z.boolean().describe("False = some providers have no history for that reason."),
        stored: z.boolean().describe("Whether hours are kept in the database, for 90 days."),
        hours: z
          .object({
            waiting: count.describe("Hours that are over and not written: it does not answer."),
            lost: count.describe("Hours that could not wait longer, since the start."),
            complete: z.boolean().describe("False = some hour had more rows than are kept."),
          })
          .nullable()
          .describe("How the hours of this node get there; null where nothing keeps them."),
      })
      .describe("What is kept of history."),
  })
  .meta({ id: "History", description: "What happened lately, in steps." });

/** Filters of calls. */
const callFilters = {
  profile: name.optional(),
  chain: name.optional(),
  method: name.optional(),
  provider: name.optional().describe("That answered, or failed last."),
  key: name.optional().describe("Id of a key."),
  outcome: z.enum(["result", "error", "fault", "cancelled"]).optional(),
  failovers: z
    .enum(["true", "false"])
    .default("false")
    .describe("`true`: only calls with a failed attempt, or several."),
  min_ms: z.coerce.number().min(0).max(3_600_000).optional().describe("Only calls this slow."),
};

/** Query of `watchEvents`. */
export const eventsQuery = z.object({
  ...callFilters,
  last_event_id: z
    .string()
    .max(100)
    .optional()
    .describe("Goes on after this event; as the header `Last-Event-ID`."),
});

/** Query of `listChanges`. */
export const changesQuery = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_CHANGES).default(MAX_CHANGES),
});

/** Answer of `listChanges`. */
export const changes = z
  .object({
    changes: z.array(
      z.object({
        type: z.enum(FEED_EVENT_TYPES).exclude(["call"]),
        at: z.iso.datetime(),
        data: z.record(z.string(), z.unknown()).describe("As in the live feed."),
      }),
    ),
  })
  .meta({ id: "Changes", description: "What changed lately, newest first." });

/** Query of `listDecisions`. */
export const decisionsQuery = z.object({
  ...callFilters,
  limit: z.coerce.number().int().min(1).max(200).default(50),
});

/** A call at its end: an event of the live feed, and an item of `listDecisions`. */
const callEvent = z
  .object({
    id: z.string().describe("Of its decision."),
    at: z.iso.datetime().describe("When it ended."),
    worker: z.string(),
    request_id: z.string(),
    profile: z.string().describe("`custom` for every profile of an account."),
    chain: z.string(),
    method: z.string(),
    strategy: z.enum(STRATEGY_NAMES),
    key_id: z.string().nullable(),
    request_bytes: count,
    answer_bytes: count.nullable().describe("Null = it was passed on while it arrived, or none."),
    total_ms: ms,
    upstream_ms: ms.nullable(),
    added_ms: ms.nullable().describe("What the service itself added."),
    outcome: z.enum(["result", "error", "fault", "cancelled"]),
    fault: z.string().nullable().describe("Code of the refusal."),
    source: z.enum([
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
    provider: z.string().nullable().describe("Whose answer it is."),
    attempts: count,
    failovers: count,
    hedged: z.boolean(),
    pinned: z.boolean(),
    panic: z.boolean(),
    error: z
      .object({
        provider: z.string(),
        category: z.string(),
        code: z.int().nullable(),
        message: z.string().nullable().describe("Redacted."),
      })
      .nullable()
      .describe("Of the last attempt that failed."),
    what_if: z.boolean().describe("Whether the inputs of its plan were recorded."),
  })
  .meta({ id: "CallEvent", description: "A routed call at its end." });

/** Answer of `listDecisions`. */
export const decisions = z
  .object({
    decisions: z.array(callEvent).describe("Newest first."),
    kept: z
      .object({
        decisions: count,
        bytes: count.describe("Memory that they take, about."),
        max_bytes: count,
        good_since: z.iso
          .datetime()
          .nullable()
          .describe("Older ones were dropped; null = none were."),
        notable_since: z.iso
          .datetime()
          .nullable()
          .describe("The same of calls that failed, took several attempts, or a second and more."),
      })
      .describe("What is kept of decisions, by all workers."),
    per_second: count.describe("Most that are taken a second for the readers of one filter."),
  })
  .meta({ id: "Decisions", description: "The latest decisions, as far as they were taken." });

const candidateFields = {
  provider: z.string(),
  transport,
  tier: z
    .int()
    .describe(
      "1 closed, 2 limited or stalled, 3 and 4 half-open; 5 more if it is not known to have the " +
        "block, 10 more if it never answered, 20 more of a backup, 40 more if it lacks the block.",
    ),
  circuit,
  limited: z.boolean(),
  stalled: z.boolean(),
  backup: z.boolean(),
  weight: z.number(),
  priority: z.number(),
  price: z.number().nullable(),
  region_rank: z.number(),
  reading: z
    .object({
      calls: z.number(),
      success_rate: z.number(),
      latency_ms: ms.nullable(),
      age_ms: z.number(),
    })
    .nullable()
    .describe("What the strategy looked at."),
  latency_weight: z.number().nullable().describe("Only of `latency-weighted`."),
  probe_ms: ms.nullable(),
  decided_by: z.string().describe("Why it stands where it stands."),
};
const candidate = z.object(candidateFields).meta({
  id: "Candidate",
  description: "A provider that could be asked for a call.",
});
const excluded = z
  .object({
    provider: z.string(),
    reason: z.string(),
    transport: transport.nullable(),
    circuit: circuit.nullable(),
  })
  .meta({ id: "ExcludedProvider", description: "A provider that could not be asked, and why." });

export const decisionParams = z.object({ id: z.string().min(1).max(100) });

/** Answer of `getDecision`. */
export const decision = callEvent
  .extend({
    order: z.array(z.string()).describe("The candidates in the order of the plan."),
    candidates: z
      .array(candidate)
      .describe("The same with what decided; empty where `what_if` is false."),
    excluded: z.array(excluded),
    timeline: z
      .array(
        z.object({
          provider: z.string(),
          transport,
          started_ms: ms.nullable().describe("Since the call began."),
          latency_ms: ms,
          outcome: z.enum(["success", "error"]),
          category: z.string().nullable(),
          step: z.string().nullable().describe("What followed."),
          effect: z.string().nullable().describe("What it changed in the health of the provider."),
          code: z.int().nullable(),
          message: z.string().nullable().describe("Redacted."),
          hedged_after_ms: ms.nullable(),
          batched: count
            .nullable()
            .describe("Calls in the request that it was sent in; null = it was sent alone."),
        }),
      )
      .describe("The attempts, in the order in which they ended."),
    cache: z
      .object({
        result: z.enum(["hit", "miss", "bypass"]),
        age_ms: ms.nullable(),
        class: z.string().nullable(),
      })
      .nullable(),
    coalesced: z.boolean().describe("The answer was shared with another call."),
    hedge_over_budget: z.boolean(),
    lag_waived: z
      .boolean()
      .describe("Candidates that lag follow the others, or there are no others."),
    rechecked: z.enum(["found", "missing"]).nullable(),
    strategies: z.array(z.enum(STRATEGY_NAMES)).describe("Those of which can be asked what if."),
  })
  .meta({ id: "Decision", description: "A call with the plan it was routed by." });

/** Query of `getWhatIf`. */
export const whatIfQuery = z.object({
  strategy: z.enum(STRATEGY_NAMES).optional().describe("Left out = its own."),
  without: name.optional().describe("A provider that is left out."),
});

/** Answer of `getWhatIf`. */
export const whatIf = z
  .object({
    id: z.string(),
    strategy: z.enum(STRATEGY_NAMES),
    without: z.string().nullable(),
    candidates: z.array(
      z.object({
        ...candidateFields,
        first_share: z.number().describe("In how many of 500 drawings it comes first, 0 to 1."),
      }),
    ),
    excluded: z.array(excluded),
    random: z.boolean().describe("Whether the order depends on chance."),
    same_first: z.boolean().describe("Whether the one that was really first would be so again."),
  })
  .meta({
    id: "WhatIf",
    description:
      "Another plan of a call, made of the inputs that were recorded with it. The order is the " +
      "one that the random numbers of the call give.",
  });

/** Query of `listProviderErrors`. */
export const errorsQuery = z.object({
  profile: name.optional(),
  chain: name.optional(),
  provider: name.optional(),
  category: z.enum(ERROR_CATEGORIES).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(200),
});

/** Answer of `listProviderErrors`. */
export const providerErrors = z
  .object({
    total: count.describe("Errors that the shapes stand for."),
    shapes: z
      .array(
        z.object({
          profile: z.string(),
          chain: z.string(),
          provider: z.string(),
          method: z.string(),
          category: z.string(),
          group: z.string(),
          code: z.int().nullable(),
          http_status: z.int().nullable(),
          sample: z.string().nullable().describe("Redacted."),
          count,
          first_seen: z.iso.datetime().nullable(),
          last_seen: z.iso.datetime(),
          rule: z
            .object({ yaml: z.string(), entry: z.record(z.string(), z.unknown()) })
            .nullable()
            .describe("The entry of `error_rules` that would classify it; only of unknown ones."),
        }),
      )
      .describe("Unknown ones first, each part newest first."),
  })
  .meta({ id: "ProviderErrors", description: "The errors of providers, by shape." });

/** Query of `listStreams`. */
export const streamsQuery = z.object({ profile: name.optional(), chain: name.optional() });

/** Answer of `listStreams`. */
export const streams = z
  .object({
    totals: z
      .object({
        streams: count,
        subscribers: count,
        events: count,
        failovers: z.record(z.string(), count).describe("By reason."),
        blocks_filled: count,
        ended: count.describe("Streams that could not go on without a gap."),
        log_checks: z.record(z.string(), count).describe("Checks for logs left out, by result."),
      })
      .describe("Of the whole service, for every query."),
    streams: z
      .array(
        z.object({
          profile: z.string(),
          chain: z.string(),
          kind: z.string(),
          state: z.enum(["opening", "live", "recovering"]),
          provider: z.string().nullable(),
          pinned: z.boolean(),
          subscribers: count,
          block_height: count.nullable(),
          blocks_behind: count.nullable(),
          events: count,
          failovers: count,
          blocks_filled: count,
          lag_ms: ms.nullable().describe("Average time from the provider's event to its callers."),
          worker: z.string(),
        }),
      )
      .describe("The most subscribed first, 500 at most of a worker."),
    truncated: z.boolean(),
  })
  .meta({ id: "Streams", description: "The subscriptions upstream." });
