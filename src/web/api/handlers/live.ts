// Handlers of what the operator sees of a running service: the live feed, decisions, errors of
// providers and streams.
import { apiFault } from "../../../core/faults/api-fault.ts";
import { errorReport } from "../../../observe/error-report.ts";
import type { CallFilter } from "../../../observe/feed/call-filter.ts";
import { MAX_FILTERS, UNWATCHED_PER_S, WATCHED_PER_S } from "../../../observe/feed/event-feed.ts";
import { type HubRefusal, MAX_READERS } from "../../../observe/feed/feed-hub.ts";
import type { DecisionUse } from "../../../observe/feed/kept-decisions.ts";
import { DECISION, DECISIONS, ERRORS, STREAMS, WHAT_IF } from "../../../observe/operator-report.ts";
import type { LIVE_OPERATIONS } from "../../contract/live.ts";
import type { ApiInput } from "../../contract/operation.ts";
import { EventStream } from "../../http/event-stream.ts";
import type { InstanceHandlers } from "../parts.ts";
import { instant, ok } from "./views.ts";

const RETRY_MS = 5_000;

/** The handlers. */
export const LIVE_HANDLERS: InstanceHandlers<
  keyof typeof LIVE_OPERATIONS | "listProviderErrors" | "listStreams"
> = {
  watchEvents({ query, lastEventId, caller, cookie }, { live }) {
    const { runtime, hub, version, worker, workers } = live;
    if (caller.sessionHash !== null && !cookie.isSameOrigin)
      return apiFault("forbidden", "a page of another origin may not watch", {
        nextAction: "send the operator token as Authorization: Bearer <token>",
      });
    const filter = filterOf(query);
    const refusal = hub.refusal(filter);
    if (refusal !== null)
      return apiFault("unavailable", REFUSALS[refusal], { retryAfterMs: RETRY_MS });
    const now = instant(runtime.wallMs());
    const hello = { now, version, worker, workers, limit_per_s: WATCHED_PER_S };
    return {
      ...{ kind: "answer", status: 200, body: null },
      stream: (response, isStillAllowed) => {
        const stream = new EventStream({ runtime, hello, isStillAllowed }, response);
        const lastId = query.last_event_id ?? lastEventId;
        const reading = hub.join(stream, { filter, lastId });
        if (reading === null) response.destroy();
        else stream.begin(reading);
      },
    };
  },
  async listDecisions({ query }, { live }) {
    const { from, to, limit, id, ...filters } = query;
    const ended = {
      fromMs: from === undefined ? 0 : Date.parse(from),
      toMs: to === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(to),
    };
    const asked = { filter: filterOf(filters), ended, requestId: id, limit };
    const found = await live.report(DECISIONS, asked);
    if (found === null) return silent();
    return ok({
      decisions: found.calls.slice(0, limit),
      kept: keptOf(found.uses),
      per_second: WATCHED_PER_S,
      unwatched_per_second: UNWATCHED_PER_S,
    });
  },
  async getDecision({ params }, { live }) {
    const decision = await live.report(DECISION, params.id);
    return decision === null ? NOT_KEPT : ok(decision);
  },
  async getWhatIf({ params: { id }, query }, { live }) {
    const decision = await live.report(DECISION, id);
    if (decision === null) return NOT_KEPT;
    const { strategy = decision.strategy, without = null } = query;
    const other =
      strategy === null ? null : await live.report(WHAT_IF, { id, change: { strategy, without } });
    if (other === null || other === "unrecorded")
      return apiFault("not_found", "the inputs of the plan of this call were not recorded", {
        nextAction: "ask of a decision whose `what_if` is true",
      });
    if (other === "unknown_provider")
      return apiFault("invalid_field", "`without` names no provider of this decision", {
        details: ["without"],
      });
    return ok(other);
  },
  async listProviderErrors({ query }, { live }) {
    const found = await live.report(ERRORS, {});
    if (found === null) return silent();
    const report = errorReport(found, live.runtime.wallMs());
    const listed = (shapes: typeof report.seen) =>
      shapes
        .filter(({ providers }) =>
          providers.some((each) =>
            PLACE.every((name) => (query[name] ?? each[name]) === each[name]),
          ),
        )
        .slice(0, query.limit);
    return ok({ ...report, seen: listed(report.seen), hidden: listed(report.hidden) });
  },
  async listStreams({ query }, { live }) {
    const found = await live.report(STREAMS, {});
    if (found === null) return silent();
    const streams = found.streams.filter(
      ({ profile, chain }) =>
        (query.profile ?? profile) === profile && (query.chain ?? chain) === chain,
    );
    return ok({ ...found, streams });
  },
};

const PLACE = ["profile", "chain", "provider"] as const;
const NOT_KEPT = apiFault("not_found", "this decision is not in memory, or no longer", {
  nextAction: "GET /api/v1/operator/decisions lists those that are",
});

/** What all workers keep. */
function keptOf(uses: readonly DecisionUse[]) {
  const sum = (of: (use: DecisionUse) => number): number =>
    uses.reduce((total, use) => total + of(use), 0);
  // Nothing that is younger was dropped by any of them.
  const since = (of: (use: DecisionUse) => number | null): string | null => {
    const latestMs = Math.max(...uses.map((use) => of(use) ?? Number.NEGATIVE_INFINITY));
    return Number.isFinite(latestMs) ? instant(latestMs) : null;
  };
  return {
    decisions: sum(({ decisions }) => decisions),
    bytes: sum(({ bytes }) => bytes),
    max_bytes: sum(({ maxBytes }) => maxBytes),
    good_since: since(({ goodSinceMs }) => goodSinceMs),
    notable_since: since(({ notableSinceMs }) => notableSinceMs),
  };
}

/** The other workers do not answer. */
export function silent() {
  return apiFault("unavailable", "the workers of this service do not answer", {
    retryAfterMs: RETRY_MS,
  });
}

/** Why nobody else can watch. */
const REFUSALS: Readonly<Record<HubRefusal, string>> = {
  too_many_readers: `${MAX_READERS} readers watch already`,
  too_many_filters: `readers watch with ${MAX_FILTERS} different filters already`,
};

type FilterQuery = ApiInput<(typeof LIVE_OPERATIONS)["watchEvents"]>["query"];

function filterOf({
  min_ms: minMs,
  failovers,
  ...filter
}: Omit<FilterQuery, "last_event_id">): CallFilter {
  return { ...filter, minMs, failovers: failovers === "true" };
}
