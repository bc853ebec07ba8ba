// Rows of the contract: what the operator sees of a running service beside its metrics.
import type { Operation } from "./operation.ts";
import * as shape from "./schemas/live.ts";
import { nodes } from "./schemas/nodes.ts";

const LIVE = {
  method: "GET",
  tag: "operator",
  auth: ["operator"],
  servedBy: "instance",
  params: null,
  query: null,
  body: null,
  idempotent: true,
} as const;

/** Faults of every operation that asks the other workers. */
const ANY = ["unauthorized", "internal", "unavailable"] as const;

/** The operations. */
export const LIVE_OPERATIONS = {
  getHistory: {
    ...LIVE,
    path: "/api/v1/history",
    summary: "Read what happened lately",
    description:
      "Calls, errors, latencies, shares, head lag and circuits in steps: 10 s for an hour, 1 min " +
      "for a day, of all workers of this instance; hours for 90 days, of all nodes that share " +
      "its database. Where `data_dir` cannot be used there are no 90 days: 503 `unavailable`. Other nodes " +
      "write their hours every ten minutes, and one that was killed lost what it had not " +
      "written. Without the operator token managed providers are shown by alias, and classes of " +
      "methods are left out. Where the status is not public, sessions of accounts read that too.",
    auth: ["none", "operator"],
    query: shape.historyQuery,
    answers: { 200: { description: "The history.", schema: shape.history } },
    faults: ["invalid_field", "not_found", ...ANY],
  },
  watchEvents: {
    ...LIVE,
    path: "/api/v1/operator/events",
    summary: "Watch what happens",
    description:
      "Server-sent events of all workers: `call` (as `CallEvent`), `circuit`, `cordon`, `head`, " +
      "`stream`, `config` and `node`; `hello` first, `beat` every 5 s, `sampled` where calls were " +
      "left out (each filter has 200 a second), `resync` where events are missing, `end` last. " +
      "Filters concern calls only, and choose before any are left out. What several workers tell " +
      "of the same change comes once. Several times a second. Ends with its credential, where that " +
      "could not be checked for 15 s, and after 12 h. At most 16 readers of a worker, and 64 " +
      "different filters: others get 503.",
    query: shape.eventsQuery,
    answers: {
      200: { description: "The events.", schema: null, contentType: "text/event-stream" },
    },
    faults: ["invalid_field", "forbidden", ...ANY],
  },
  listChanges: {
    ...LIVE,
    path: "/api/v1/operator/changes",
    summary: "List what changed lately",
    description:
      "The latest 200 events of the live feed that are no calls, of all workers, newest first; " +
      "what several workers tell of the same change counts once. Heads are looked at every 10 s.",
    query: shape.changesQuery,
    answers: { 200: { description: "The changes.", schema: shape.changes } },
    faults: ["invalid_field", ...ANY],
  },
  listNodes: {
    ...LIVE,
    path: "/api/v1/operator/nodes",
    summary: "List the nodes of the service",
    description:
      "With their load, clocks and workers, the jobs that one does for all, and how each finds the " +
      "providers. A node that serves alone is the only row.",
    answers: { 200: { description: "The nodes.", schema: nodes } },
    faults: ANY,
  },
  listDecisions: {
    ...LIVE,
    path: "/api/v1/operator/decisions",
    summary: "List the latest decisions",
    description:
      "Calls as they were routed, newest first. Where there are many only some are taken: those " +
      "that did not go well first.",
    query: shape.decisionsQuery,
    answers: { 200: { description: "The decisions.", schema: shape.decisions } },
    faults: ["invalid_field", ...ANY],
  },
  getDecision: {
    ...LIVE,
    path: "/api/v1/operator/decisions/{id}",
    summary: "Read why a call went where it went",
    description: "The plan with what decided it, and every attempt.",
    params: shape.decisionParams,
    answers: { 200: { description: "The decision.", schema: shape.decision } },
    faults: ["not_found", "invalid_field", ...ANY],
  },
  getWhatIf: {
    ...LIVE,
    path: "/api/v1/operator/decisions/{id}/what-if",
    summary: "Ask where a call would have gone",
    description: "Under another strategy, or without a provider: computed from recorded inputs.",
    params: shape.decisionParams,
    query: shape.whatIfQuery,
    answers: { 200: { description: "The other plan.", schema: shape.whatIf } },
    faults: ["not_found", "invalid_field", ...ANY],
  },
  listProviderErrors: {
    ...LIVE,
    path: "/api/v1/operator/errors",
    summary: "List the errors of providers",
    description: "By provider and category, with a redacted sample; unknown ones first.",
    query: shape.errorsQuery,
    answers: { 200: { description: "The errors.", schema: shape.providerErrors } },
    faults: ["invalid_field", ...ANY],
  },
  listStreams: {
    ...LIVE,
    path: "/api/v1/operator/streams",
    summary: "List the subscriptions upstream",
    description: "With their sources, failovers and lag, of all workers.",
    query: shape.streamsQuery,
    answers: { 200: { description: "The subscriptions.", schema: shape.streams } },
    faults: ["invalid_field", ...ANY],
  },
} as const satisfies Readonly<Record<string, Operation>>;
