// Handler of history: an hour and a day from the memory of all workers, 90 days from the store.
import { apiFault } from "../../../core/faults/api-fault.ts";
import type { HistoryUse } from "../../../observe/history/history.ts";
import { historyColumns, historyRange } from "../../../observe/history/history-report.ts";
import type { CONTRACT } from "../../contract/contract.ts";
import type { ApiHandlers } from "../../contract/operation.ts";
import type { InstanceParts, LiveView } from "../instance-parts.ts";
import { silent } from "./live.ts";

type HistoryHandlers = Pick<ApiHandlers<typeof CONTRACT, "instance">, "getHistory">;
type Input = Parameters<HistoryHandlers["getHistory"]>[0];
type Result = Awaited<ReturnType<HistoryHandlers["getHistory"]>>;

/** What the handler reads. */
type HistoryParts = Pick<LiveView, "runtime" | "reports" | "registry"> &
  Pick<InstanceParts, "summary">;

const RESOLUTION = { hour: 0, day: 1 } as const;

/** Creates the handler. */
export function historyHandlers(parts: HistoryParts): HistoryHandlers {
  return { getHistory: (input) => history(parts, input) };
}

async function history(parts: HistoryParts, { query, caller }: Input): Promise<Result> {
  const { reports, runtime } = parts;
  const realIds = caller.kind === "operator";
  if (!realIds && !parts.summary().isPublic)
    return apiFault("unauthorized", "the status of this service is for its operator", {
      nextAction: "send the operator token as Authorization: Bearer <token>",
    });
  const scope = scopeOf(parts, query, realIds);
  if ("code" in scope) return scope;
  if (query.range === "90d")
    return apiFault("unavailable", "nothing is kept for 90 days yet", {
      nextAction: "ask for range=day; Prometheus keeps more",
    });
  const range = historyRange(RESOLUTION[query.range], query.points, runtime.wallMs());
  const found = await reports.read({ kind: "history", query: { ...range, ...scope, realIds } });
  if (found === null) return silent();
  const stepMs = range.stepMs * range.joined;
  const firstMs = range.firstStep * range.stepMs;
  const times = Array.from({ length: range.count }, (_, n) => (firstMs + n * stepMs) / 1_000);
  const body = {
    range: query.range,
    step_s: stepMs / 1_000,
    from: new Date(firstMs).toISOString(),
    to: new Date(firstMs + range.count * stepMs).toISOString(),
    times,
    series: historyColumns(found.series),
    kept: keptOf(found.uses),
  };
  return { kind: "answer", status: 200, body };
}

interface Scope {
  readonly chain: { readonly profile: string; readonly chain: string } | null;
  readonly provider: string | null;
}

/** Whose history is asked for. */
function scopeOf(
  { registry }: HistoryParts,
  { profile, chain, provider }: Input["query"],
  realIds: boolean,
) {
  if (profile === undefined && chain === undefined && provider === undefined)
    return { chain: null, provider: null } satisfies Scope;
  if (profile === undefined || chain === undefined)
    return apiFault("invalid_field", "`profile` and `chain` belong together", {
      details: [profile === undefined ? "profile" : "chain"],
    });
  const served = registry.profile(profile);
  const set = served?.profile.chains.get(chain);
  // Calls of Custom profiles are counted together, without their providers.
  if (profile !== "custom" && set === undefined)
    return apiFault("not_found", "no configured profile of this name serves such a chain");
  const isPublic = served?.profile.managed === true && !realIds;
  const ids = set?.providers.map(({ id, alias }) => (isPublic ? alias : id)) ?? [];
  if (provider !== undefined && !ids.includes(provider))
    return apiFault("not_found", "this profile has no such provider on this chain");
  return { chain: { profile, chain }, provider: provider ?? null } satisfies Scope;
}

/** What the workers keep, as one. */
function keptOf(uses: readonly HistoryUse[]) {
  const sum = (of: (use: HistoryUse) => number): number =>
    uses.reduce((total, use) => total + of(use), 0);
  // Each worker has a row of its own for the same provider.
  const providers = Math.max(0, ...uses.map(({ providerCount }) => providerCount));
  return {
    bytes: sum(({ bytes }) => bytes),
    max_bytes: sum(({ maxBytes }) => maxBytes),
    bytes_per_provider:
      providers === 0 ? null : Math.round(sum(({ providerBytes }) => providerBytes) / providers),
    method_classes: uses.every(({ methodClasses }) => methodClasses),
    day: uses.every(({ day }) => day),
    providers: uses.every((use) => use.providers),
    stored: false,
  };
}
