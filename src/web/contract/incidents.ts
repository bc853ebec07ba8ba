// What was and is wrong with providers and chains.
import { z } from "zod";
import { instant } from "../../hosted/keys/key-fields.ts";
import { INCIDENT_CAUSES, PROVIDER_STATES } from "../../observe/incidents/judge.ts";
import { name } from "./live.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { idOf, is, list, next, oneOf, paged, record } from "./shapes.ts";

const incidentId = idOf("inc").describe("`inc_…`");

/** Query of `listIncidents`. */
const incidentsQuery = record({
  profile: name.optional(),
  chain: name.optional(),
  provider: name.optional().describe("By the id that is shown."),
  open: z.stringbool().default(false).describe("Only those that are not over."),
  from: instant.optional().describe("Only those that were open after this."),
  to: instant.optional().describe("Only those that had begun before this."),
  ...paged(incidentId, 200, 50, "incidents"),
});

const incident = record({
  id: incidentId,
  profile: is.text,
  chain: is.text,
  provider: is.textOrNull.describe("Null = it is of the chain."),
  cause: oneOf(INCIDENT_CAUSES),
  state: oneOf(PROVIDER_STATES).nullable().describe("Into which it puts the provider."),
  words: is.text.describe("The cause in words."),
  started_at: instant,
  ended_at: instant.nullable().describe("Null = it is open."),
  duration_s: is.count.describe("Until its end, or until now."),
  good_since: instant
    .nullable()
    .describe("Of an open one: since when all is well. It is over after five minutes."),
  attempts: is.count.describe("At the provider, while it was bad."),
  failed: is.count.describe("Of these."),
  failed_calls: is.count.describe("Calls that failed, with such an attempt."),
  users: is.count.describe(
    "Callers of these calls: by key, or else by account or address. 1,000 at most are told apart.",
  ),
}).meta({
  id: "Incident",
  description: "One cause at one provider or chain, from its beginning to its end.",
});

/** Answer of `listIncidents`. */
const incidents = record({
  incidents: list(incident).describe("Those that began last first."),
  next: next(incidentId),
}).meta({ id: "Incidents", description: "What was and is wrong." });

/** Operations on incidents. */
export const INCIDENT_OPERATIONS = operations({ tag: "operator", auth: ["operator"] }, {
  listIncidents: {
    endpoint: "GET /api/v1/incidents",
    summary: "List what was and is wrong",
    description:
      "A provider is judged every 10 s: by half a minute with at least 20 attempts (rate limits " +
      "and time-outs are failures), by its circuit and probes where there are fewer, by its " +
      "latency beside the median of its peers for the same class of methods, and by its lag. " +
      "What was bad is over after five good minutes, so that a provider that comes and goes has " +
      "one incident. A chain without a new block is `stalled`. The latest 1,000 are kept in " +
      "memory, and for 90 days in the database, of all nodes that share it: what several nodes " +
      "saw of one cause at a time is one incident. Without the operator token managed providers " +
      "are shown by alias. Where the status is not public, sessions of accounts read that too.",
    auth: ["none", "operator"],
    query: incidentsQuery,
    answers: { 200: answer("The incidents.", incidents) },
  },
} as const satisfies OperationRows);
