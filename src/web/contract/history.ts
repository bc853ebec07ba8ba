// What happened lately, what changed, errors of providers, streams, and the nodes that serve
// together.

import { z } from "zod";
import { CALL_OUTCOMES } from "../../core/call-end.ts";
import { instant } from "../../hosted/keys/key-fields.ts";
import { FEED_EVENT_TYPES } from "../../observe/feed/feed-event.ts";
import { MAX_CHANGES } from "../../observe/feed/recent-changes.ts";
import { HISTORY_RANGES } from "../../observe/history/history-report.ts";
import { CIRCUITS, streamFields } from "./instance.ts";
import { name } from "./live.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { is, list, map, oneOf, record, recordOrNull, rows, whole } from "./shapes.ts";

const circuit = oneOf([...CIRCUITS, "cordoned"]);

const known = <T extends z.ZodType>(value: T) => list(value.nullable());

/** Query of `getHistory`. */
const historyQuery = record({
  range: oneOf(HISTORY_RANGES)
    .optional()
    .describe("How far back; `hour` where neither it nor `from` is given."),
  from: instant
    .optional()
    .describe("In place of `range`: from this time, in the finest steps that are kept of it."),
  to: instant.optional().describe("With `from`: until this time; left out = until now."),
  profile: name.optional().describe("With `chain`; without both the whole service."),
  chain: name.optional().describe("Name of a chain of that profile."),
  provider: name.optional().describe("Of that profile and chain, by the id that is shown."),
  chains: oneOf(["true", "false"])
    .default("false")
    .describe("`true`: each configured profile on each chain as well, in sums."),
  points: whole(10, 1_440, 120).describe(
    "Most steps that are returned; steps are joined to whole multiples.",
  ),
});

const sumByOutcome = {
  answered: is.count,
  caller_error: is.count,
  failed: is.count,
  refused: is.count,
  cancelled: is.count,
};

const countsByOutcome = {
  answered: known(is.count),
  caller_error: known(is.count).describe("The caller's own: a revert, wrong parameters, a nonce."),
  failed: known(is.count).describe("A provider or the service caused an error."),
  refused: known(is.count).describe("By the service."),
  cancelled: known(is.count).describe("The caller left."),
};

const series = record({
  kind: oneOf(["service", "chain", "provider", "class"]),
  profile: is.textOrNull,
  chain: is.textOrNull,
  provider: is.textOrNull,
  class: is.textOrNull.describe("Class of methods, by how long their calls may take."),
  calls: known(is.count).describe("Calls of callers; of a provider the attempts at it."),
  outcomes: recordOrNull(countsByOutcome).describe(
    "How the calls of callers ended, each exactly once; null = attempts at a provider.",
  ),
  reasons: map(known(is.count)).describe(
    "Why they ended so, as `outcome.reason`; only what occurred. Earlier versions did not tell " +
      "reasons: their hours have `failed.other` and `caller_error.other`.",
  ),
  unanswered: known(is.count)
    .nullable()
    .describe("Requests without an id, which are not among the calls."),
  hidden_failures: known(is.count)
    .nullable()
    .describe("Attempts at which a provider failed and the caller did not notice."),
  errors: map(known(is.count)).describe("Of attempts at a provider, by kind; only what occurred."),
  p50_ms: known(is.amount),
  p95_ms: known(is.amount),
  p99_ms: known(is.amount),
  added_p50_ms: known(is.amount).nullable().describe("What the service itself added to a call."),
  added_p95_ms: known(is.amount).nullable(),
  share: known(is.number).nullable().describe("Of all attempts of the profile on the chain."),
  lag_blocks: known(is.count).nullable().describe("The most in the step."),
  circuit: known(circuit).nullable().describe("The worst in the step."),
}).meta({
  id: "HistorySeries",
  description: "Columns with one value for each step; null where nothing is known.",
});

/** Answer of `getHistory`. */
const history = record({
  range: oneOf(HISTORY_RANGES).nullable().describe("Null = `from` was asked for."),
  step_s: is.count.describe("Length of a step, in seconds."),
  from: instant,
  to: instant,
  times: list(is.count).describe("Beginning of each step, in seconds since the epoch."),
  series: list(series).describe("The whole first, then providers, then classes of methods."),
  chains: rows({
    profile: is.text,
    chain: is.text,
    calls: known(is.count),
    outcomes: recordOrNull(sumByOutcome).describe("In all steps; null = nothing is known."),
    p95_ms: is.amountOrNull.describe("Of all steps together."),
  })
    .nullable()
    .describe("Null = not asked for."),
  kept: record({
    bytes: is.count.describe("Memory that history takes."),
    max_bytes: is.count,
    bytes_per_provider: is.countOrNull,
    method_classes: is.flag.describe("False = dropped, for history took too much memory."),
    day: is.flag.describe("False = dropped as well."),
    providers: is.flag.describe("False = some providers have no history for that reason."),
    stored: is.flag.describe("Whether hours are kept in the database, for 90 days."),
    hours: recordOrNull({
      waiting: is.count.describe("Hours that are over and not written: it does not answer."),
      lost: is.count.describe("Hours that could not wait longer, since the start."),
      complete: is.flag.describe("False = some hour had more rows than are kept."),
    }).describe("How the hours of this node get there; null where nothing keeps them."),
  }).describe("What is kept of history."),
}).meta({ id: "History", description: "What happened lately, in steps." });

/** Query of `listChanges`. */
const changesQuery = record({
  limit: z.coerce.number().int().min(1).max(MAX_CHANGES).default(MAX_CHANGES),
});

/** Answer of `listChanges`. */
const changes = record({
  changes: rows({
    type: oneOf(FEED_EVENT_TYPES).exclude(["call"]),
    at: instant,
    data: map(is.anything).describe("As in the live feed."),
  }),
}).meta({ id: "Changes", description: "What changed lately, newest first." });

/** Query of `listProviderErrors`. */
const errorsQuery = record({
  profile: name.optional(),
  chain: name.optional(),
  provider: name.optional(),
  limit: z.coerce.number().int().min(1).max(500).default(200),
});

const shownError = {
  category: is.text.describe("Of a provider's error; of one of the service its code."),
  code: is.intOrNull,
  http_status: is.intOrNull.describe("Null also where it was a good one."),
  sample: is.textOrNull.describe("The first one, redacted."),
};

const errorShape = record({
  outcome: oneOf(CALL_OUTCOMES).describe("What a call comes to that ends so."),
  reason: is.textOrNull,
  ...shownError,
  behind: recordOrNull(shownError).describe(
    "What a provider had failed with before the service answered.",
  ),
  unknown: is.flag.describe("No rule knows it."),
  count: is.count.describe("Calls; of hidden failures attempts."),
  first_seen: instant,
  last_seen: instant,
  trend: list(is.count).describe("Of each two minutes of the last hour, the present ones last."),
  providers: rows({
    profile: is.text,
    chain: is.text,
    provider: is.textOrNull.describe("Null = none, or one of a user's own."),
    count: is.count,
  }).describe("Those that failed so: a call counts at each of them."),
  methods: rows({ method: is.text, count: is.count }),
  keys: rows({ key_id: is.text, count: is.count }).describe("Ten at most."),
  more_keys: is.count.describe("Further keys that are known."),
  users: is.countOrNull.describe("Callers that are told apart: keys, else addresses."),
  others: record({ providers: is.count, methods: is.count, users: is.count }).describe(
    "Beyond 24 providers, 20 methods and 100 users of a process.",
  ),
  rule: recordOrNull({ yaml: is.text, entry: map(is.anything) }).describe(
    "The entry of `error_rules` that would classify it; only of unknown ones.",
  ),
}).meta({ id: "ErrorShape", description: "Errors alike, of all providers and chains." });

const errorCounts = record({ failed: is.count, caller_error: is.count, hidden: is.count });

/** Answer of `listProviderErrors`. */
const providerErrors = record({
  totals: errorCounts.describe("All errors, for every query."),
  others: errorCounts.describe("Those of shapes that are not kept: a process keeps 100 a kind."),
  seen: list(errorShape).describe("What users saw: unknown ones, then those of failed calls."),
  hidden: list(errorShape).describe("What failover hid: unknown ones first."),
}).meta({ id: "ProviderErrors", description: "The errors of calls, by shape." });

/** Answer of `listStreams`. */
const streams = record({
  totals: record({
    streams: is.count,
    subscribers: is.count,
    events: is.count,
    failovers: map(is.count).describe("By reason."),
    blocks_filled: is.count,
    ended: is.count.describe("Streams that could not go on without a gap."),
    log_checks: map(is.count).describe("Checks for logs left out, by result."),
  }).describe("Of the whole service, for every query."),
  streams: rows({
    profile: is.text,
    chain: is.text,
    ...streamFields,
    lag_ms: is.amountOrNull.describe("Average time from the provider's event to its callers."),
    worker: is.text,
  }).describe("The most subscribed first, 500 at most of a worker."),
  truncated: is.flag,
}).meta({ id: "Streams", description: "The subscriptions upstream." });

/** What one process tells of itself; also kept in the database, where other versions read it. */
const processReport = record({
  version: is.text,
  worker: is.textOrNull.describe("Null = this process is the whole node."),
  started_at: instant,
  draining: is.flag,
  calls_per_s: is.amountOrNull.describe("Calls of callers; null = not measured yet."),
  cpu_cores: is.amountOrNull.describe("Processor time, in cores; null = not measured yet."),
  event_loop_busy: is.amountOrNull.describe("0 to 1: 1 = everything waits."),
  memory_bytes: is.count,
});

/** How a node finds a provider. */
const seenProvider = record({
  circuit: circuit.describe("The worst transport."),
  success_rate: is.number.nullable(),
  latency_ms: is.amountOrNull,
  lag_blocks: is.countOrNull,
});

/** The providers of a node, as it tells of them. */
export const providerReports = list(
  seenProvider.extend({ profile: is.text, chain: is.text, provider: is.text }),
);

/** What a process tells other nodes. */
export const nodeReport = processReport.extend({ providers: providerReports });

const node = record({
  id: is.text,
  alias: is.textOrNull.describe("As callers see it; null where one node serves alone."),
  this: is.flag.describe("Whether it is the node that answers."),
  region: is.textOrNull,
  state: oneOf(["live", "draining", "silent", "gone"]).describe(
    "`silent`: no heartbeat lately; `gone`: it left, or was found dead.",
  ),
  version: is.textOrNull,
  started_at: instant.nullable(),
  last_heartbeat_at: instant
    .nullable()
    .describe("By the clock of the database; null where one node serves alone."),
  clock_ahead_ms: is.intOrNull.describe("Its clock less that of the database."),
  calls_per_s: is.amountOrNull.describe("Of all its workers."),
  cpu_cores: is.amountOrNull,
  memory_bytes: is.countOrNull.describe("Of its workers, without their supervisor."),
  workers: list(processReport),
  jobs: list(is.text).describe("What it does for all nodes, or did last."),
}).meta({ id: "ServiceNode", description: "A node of the service. Null = unknown." });

/** Answer of `listNodes`. */
export const nodes = record({
  clustered: is.flag.describe("False = one node serves alone, and does every job."),
  nodes: list(node),
  jobs: rows({
    name: is.text,
    node: is.text.describe("That does it, or did it last."),
    running: is.flag,
    due_at: instant,
  }),
  providers: rows({
    profile: is.text,
    chain: is.text,
    provider: is.text,
    seen: list(seenProvider.extend({ node: is.text })),
  }).describe("The same providers as each node finds them, at most 500 of a node."),
  problems: list(is.text).describe("What cannot be told of, and why; clocks apart."),
}).meta({
  id: "Nodes",
  description:
    "The nodes that serve together. Those of other nodes are observations that they write every " +
    "five seconds; after half a minute without one their load is unknown.",
});

/** Operations on what is recorded. */
export const HISTORY_OPERATIONS = operations({ tag: "operator", auth: ["operator"] }, {
  getHistory: {
    endpoint: "GET /api/v1/history",
    summary: "Read what happened lately",
    description:
      "Calls, errors, latencies, shares, head lag and circuits in steps: 10 s for an hour, 1 min " +
      "for a day, of all workers of this instance; hours for 90 days, of all nodes that share " +
      "its database. `range`, or `from` and `to`, says of when. Where `data_dir` cannot be used there are no 90 days: 503 `unavailable`. " +
      "Other nodes write their hours every ten minutes, and one that was killed lost what it " +
      "had not written. Without the operator token managed providers are shown by alias, and " +
      "classes of methods are left out. Where the status is not public, sessions of accounts " +
      "read that too.",
    auth: ["none", "operator"],
    query: historyQuery,
    answers: { 200: answer("The history.", history) },
    faults: ["not_found"],
  },
  listChanges: {
    endpoint: "GET /api/v1/operator/changes",
    summary: "List what changed lately",
    description:
      "The latest 200 events `incident`, `config` and `node` of the live feed, and cordons by " +
      "operators, of all workers, newest first; what several workers tell of the same change " +
      "counts once.",
    query: changesQuery,
    answers: { 200: answer("The changes.", changes) },
  },
  listNodes: {
    endpoint: "GET /api/v1/operator/nodes",
    summary: "List the nodes of the service",
    description:
      "With their load, clocks and workers, the jobs that one does for all, and how each finds " +
      "the providers. A node that serves alone is the only row.",
    answers: { 200: answer("The nodes.", nodes) },
  },
  listProviderErrors: {
    endpoint: "GET /api/v1/operator/errors",
    summary: "List the errors of calls",
    description:
      "By shape: category, code, HTTP status and words, of all providers and chains, since the " +
      "start of each worker. First what users got, then failures of providers that failover hid. " +
      "Filters select shapes by where some of their errors come from.",
    query: errorsQuery,
    answers: { 200: answer("The errors.", providerErrors) },
  },
  listStreams: {
    endpoint: "GET /api/v1/operator/streams",
    summary: "List the subscriptions upstream",
    description: "With their sources, failovers and lag, of all workers.",
    query: record({ profile: name.optional(), chain: name.optional() }),
    answers: { 200: answer("The subscriptions.", streams) },
  },
} as const satisfies OperationRows);
