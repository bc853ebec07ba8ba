// The handler of incidents: what was and is wrong with providers and chains.
import { type Incident, selectIncidents } from "../../../observe/incidents/incident.ts";
import type { InstanceHandlers, LiveView } from "../parts.ts";
import { isStatusShown, STATUS_HIDDEN } from "./history.ts";
import { silent } from "./live.ts";
import { instant, instantOrNull, ok } from "./views.ts";

/** The handler. */
export const INCIDENT_HANDLERS: InstanceHandlers<"listIncidents"> = {
  async listIncidents({ query, caller }, { summary, live }) {
    if (!isStatusShown(caller, summary)) return STATUS_HIDDEN;
    const { profile = null, chain = null, provider = null, open, limit, after } = query;
    const kept = await live.incidents();
    if (kept === null) return silent();
    const known = caller.kind === "operator" ? kept : kept.flatMap((each) => shown(each, live));
    const found = selectIncidents(known, {
      ...{ profile, chain, provider, open },
      fromMs: query.from === undefined ? 0 : Date.parse(query.from),
      toMs: query.to === undefined ? Number.POSITIVE_INFINITY : Date.parse(query.to),
    });
    const first = after === undefined ? 0 : found.findIndex(({ id }) => id === after) + 1;
    const page = after !== undefined && first === 0 ? [] : found.slice(first, first + limit);
    const hasMore = first + page.length < found.length && page.length > 0;
    const nowMs = live.runtime.wallMs();
    return ok({
      incidents: page.map((incident) => incidentView(incident, nowMs)),
      next: hasMore ? (page.at(-1)?.id ?? null) : null,
    });
  },
};

/** An incident as others than the operator see it: managed providers by alias. */
function shown(incident: Incident, { registry }: LiveView): readonly Incident[] {
  const served = registry.profile(incident.profile);
  // Whether a profile of the past was managed is not known.
  if (served === undefined) return [];
  const { provider } = incident;
  if (provider === null || !served.profile.managed) return [incident];
  return [{ ...incident, provider: { ...provider, id: provider.alias } }];
}

function incidentView(incident: Incident, nowMs: number) {
  const { id, profile, chain, provider, cause, state, words, attempts, failed, users } = incident;
  const { startedMs, endedMs, goodSinceMs, failedCalls } = incident;
  return {
    ...{ id, profile, chain, cause, state, words, attempts, failed, users },
    provider: provider?.id ?? null,
    started_at: instant(startedMs),
    ended_at: instantOrNull(endedMs),
    duration_s: Math.max(0, Math.round(((endedMs ?? nowMs) - startedMs) / 1_000)),
    good_since: instantOrNull(goodSinceMs),
    failed_calls: failedCalls,
  };
}
