// Handlers of history: an hour and a day from the memory of the service, 90 days from the store;
// what changed lately; the nodes.
import { type ApiFault, apiFault } from "../../../core/faults/api-fault.ts";
import {
  type ChainPair,
  chainColumns,
  type HistoryQuery,
  type HistoryRange,
  historyColumns,
  historyInterval,
  historyRange,
  type SeriesReport,
  SPANS,
  sortedSeries,
} from "../../../observe/history/history-report.ts";
import type {
  HoursFailure,
  ServiceHistoryUse,
  StepsReport,
} from "../../../observe/history/service-history.ts";
import type { HISTORY_OPERATIONS } from "../../contract/history.ts";
import type { ApiInput } from "../../contract/operation.ts";
import type { InstanceHandlers, InstanceParts, LiveView } from "../parts.ts";
import { silent } from "./live.ts";
import { instant, ok } from "./views.ts";

/** The handlers. */
export const HISTORY_HANDLERS: InstanceHandlers<"getHistory" | "listChanges" | "listNodes"> = {
  async getHistory({ query, caller }, { summary, live }) {
    const realIds = caller.kind === "operator";
    if (!isStatusShown(caller, summary)) return STATUS_HIDDEN;
    const scope = scopeOf(live, query, realIds);
    if ("code" in scope) return scope;
    const { byAlias, ...asked } = scope;
    const range = rangeOf(query, live.runtime.wallMs());
    if ("code" in range) return range;
    const pairs = query.chains === "true" ? pairsOf(live) : null;
    const every = pairs === null ? {} : { pairs };
    const found = await read(live, { ...range, ...asked, ...every, classes: realIds });
    if (found === null) return silent();
    if (typeof found === "string") return UNREADABLE[found];
    const { stepMs } = SPANS[range.span];
    const shownMs = stepMs * range.joined;
    const firstMs = range.firstStep * stepMs;
    const times = Array.from({ length: range.count }, (_, n) => (firstMs + n * shownMs) / 1_000);
    return ok({
      range: query.from === undefined ? (query.range ?? "hour") : null,
      step_s: shownMs / 1_000,
      from: instant(firstMs),
      to: instant(firstMs + range.count * shownMs),
      times,
      series: historyColumns(byAlias ? aliased(found.series) : found.series),
      chains: pairs === null ? null : found.pairs.map(chainColumns),
      kept: keptOf(found.use),
    });
  },
  listNodes: async (_, { live }) => ok(await live.nodes()),
  async listChanges({ query }, { live }) {
    const found = (await live.history.changes())?.slice(0, query.limit);
    const changes = found?.map(({ type, data }) => ({ type, at: data.at, data: { ...data } }));
    return changes === undefined ? silent() : ok({ changes });
  },
};

/** Whether a caller may read how the service is. */
export function isStatusShown(
  caller: { readonly kind: string; readonly isSignedIn?: boolean },
  summary: InstanceParts["summary"],
): boolean {
  return caller.kind === "operator" || caller.isSignedIn === true || summary().public;
}

/** The answer to those who may not. */
export const STATUS_HIDDEN = apiFault(
  "unauthorized",
  "the status of this service is for its operator",
  { nextAction: "send the operator token as Authorization: Bearer <token>" },
);

function read(
  { history: { steps, hours } }: LiveView,
  query: HistoryQuery,
): Promise<StepsReport | HoursFailure | null> {
  return query.span === "90d" ? hours(query) : steps(query);
}

/** The steps that are asked for. */
function rangeOf(
  { range, from, to, points }: HistoryRequest,
  wallMs: number,
): HistoryRange | ApiFault<"invalid_field"> {
  if (from === undefined && to === undefined) return historyRange(range ?? "hour", points, wallMs);
  if (from === undefined || range !== undefined)
    return apiFault("invalid_field", "`from`, with or without `to`, stands in place of `range`", {
      details: [from === undefined ? "from" : "range"],
    });
  const interval = { fromMs: Date.parse(from), toMs: to === undefined ? wallMs : Date.parse(to) };
  return (
    historyInterval(interval, points, wallMs) ??
    apiFault("invalid_field", "nothing is kept between `from` and `to`", {
      details: ["from", "to"],
      nextAction: "ask for a time of the last 90 days, with `from` before `to`",
    })
  );
}

const RETRY_MS = 10_000;

/** Why 90 days cannot be told of. */
const UNREADABLE: Readonly<Record<HoursFailure, ApiFault<"unavailable">>> = {
  no_store: apiFault(
    "unavailable",
    "this service keeps its data in memory: data_dir cannot be used",
    { nextAction: "ask for range=day, or give the service a data_dir of its own" },
  ),
  store_silent: apiFault(
    "unavailable",
    "the database does not answer: hours that are not written wait in memory",
    { retryAfterMs: RETRY_MS, nextAction: "ask for range=day, or later" },
  ),
  busy: apiFault("unavailable", "too many read 90 days at this moment", {
    retryAfterMs: RETRY_MS,
  }),
  no_answer: silent(),
};

/** The configured profiles on their chains. */
function pairsOf({ registry }: LiveView): readonly ChainPair[] {
  return registry.profiles.flatMap(({ profile: { slug, chains } }) =>
    Array.from(chains.keys(), (chain) => ({ profile: slug, chain })),
  );
}

type HistoryRequest = ApiInput<(typeof HISTORY_OPERATIONS)["getHistory"]>["query"];

interface Scope extends Pick<HistoryQuery, "chain" | "provider"> {
  /** Whether providers are shown by alias. */
  readonly byAlias: boolean;
}

/** Whose history is asked for. */
function scopeOf(
  { registry }: LiveView,
  { profile, chain, provider }: HistoryRequest,
  realIds: boolean,
) {
  if (profile === undefined && chain === undefined && provider === undefined)
    return { chain: null, provider: null, byAlias: false } satisfies Scope;
  if (profile === undefined || chain === undefined)
    return apiFault("invalid_field", "`profile` and `chain` belong together", {
      details: [profile === undefined ? "profile" : "chain"],
    });
  const served = registry.profile(profile);
  const set = served?.profile.chains.get(chain);
  // Calls of Custom profiles are counted together, without their providers.
  if (profile !== "custom" && set === undefined)
    return apiFault("not_found", "no configured profile of this name serves such a chain");
  const byAlias = served?.profile.managed === true && !realIds;
  const named = set?.providers.find(({ id, alias }) => (byAlias ? alias : id) === provider);
  if (provider !== undefined && named === undefined)
    return apiFault("not_found", "this profile has no such provider on this chain");
  return { chain: { profile, chain }, provider: named?.id ?? null, byAlias } satisfies Scope;
}

/** Providers under the names that callers know. */
function aliased(series: readonly SeriesReport[]): readonly SeriesReport[] {
  return sortedSeries(series.map((each) => ({ ...each, provider: each.alias })));
}

/** What is kept. */
function keptOf({ hours, ...use }: ServiceHistoryUse) {
  const { bytes, maxBytes, methodClasses, day, providers, providerBytes, providerCount } = use;
  return {
    bytes,
    max_bytes: maxBytes,
    bytes_per_provider: providerCount === 0 ? null : Math.round(providerBytes / providerCount),
    method_classes: methodClasses,
    day,
    providers,
    stored: hours !== null,
    hours:
      hours === null ? null : { waiting: hours.late, lost: hours.lost, complete: hours.complete },
  };
}
