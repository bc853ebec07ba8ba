// Handlers of what operators do with providers: cordons, waits, tests, comparisons, and the list of
// what was done.
import { createHash } from "node:crypto";
import type { AddressLimit } from "../../../core/billing/address-limit.ts";
import { type ApiFault, apiFault, limited } from "../../../core/faults/api-fault.ts";
import { publicLabel } from "../../../core/provider/profile.ts";
import {
  type OperatorCordon,
  PLACES_TO_COME,
  type ProviderRef,
} from "../../../hosted/operator/stored-records.ts";
import { type CONSOLE_OPERATIONS, MAX_CORDON_DAYS } from "../../contract/console.ts";
import { reloadDetail } from "../action-log.ts";
import type { ComparedAnswer, InstanceHandlers, InstanceParts } from "../parts.ts";
import { instant, NO_CONTENT, ok } from "./views.ts";

/** Tests, and comparisons, that operators may ask for. */
export const QUERIES_PER_MINUTE = 10;
const MAX_RESULT_BYTES = 65_536;
const MAX_DEPTH = 100;
const MAX_CORDON_MS = MAX_CORDON_DAYS * 86_400_000;

/** The handlers. */
export const OPERATOR_PROVIDER_HANDLERS: InstanceHandlers<keyof typeof CONSOLE_OPERATIONS> = {
  async listCordons(_, { providers }) {
    return ok(cordonList(await providers.cordons()));
  },
  async cordonProvider({ body, caller }, parts) {
    const cordon = cordonOf(body, body, { atMs: parts.runtime.wallMs(), ...caller });
    return (await cordoned(parts, [cordon])) ?? ok(cordonView(cordon));
  },
  async cordonEverywhere({ body, caller }, parts) {
    const by = { atMs: parts.runtime.wallMs(), ...caller };
    const places = parts.providers.placesOf(body.provider);
    const cordons = places.map((place) => cordonOf(place, body, by));
    return (await cordoned(parts, cordons)) ?? ok(cordonList(cordons));
  },
  async uncordonEverywhere({ query: { provider } }, { providers }) {
    const cordons = await providers.cordons();
    const own = cordons.filter((each) => each.provider === provider && isConfigured(each));
    await providers.uncordon(...own);
    return NO_CONTENT;
  },
  async uncordonProvider({ query }, { providers }) {
    await providers.uncordon(query);
    return NO_CONTENT;
  },
  endProviderWait({ body }, { providers }) {
    const transports = providers.endWaits(body);
    return transports === null ? UNKNOWN : ok({ transports });
  },
  async testProvider({ body }, { providers, runtime, tests }) {
    const refusal = limitOf(tests, runtime.now());
    if (refusal !== null) return refusal;
    const results = await providers.test(body);
    return results === null ? UNKNOWN : ok({ results });
  },
  async compareProviders({ body }, { providers, methods, runtime, comparisons }) {
    const { profile, chain, method, params } = body;
    const { replaySafe, handling } = methods().of(method);
    if (!replaySafe || handling === "filter" || handling === "socket_only")
      return apiFault("invalid_field", `${method} is no read that can be sent to every provider`, {
        details: ["method"],
        nextAction: "compare a read of the method table",
      });
    const refusal = limitOf(comparisons, runtime.now());
    if (refusal !== null) return refusal;
    const call = { profile, chain, method, params: JSON.stringify(params) };
    const answers = await providers.compare(call);
    if (answers === null) return UNKNOWN;
    return ok({ profile, chain, method, results: answers.map(comparedView) });
  },
  async reloadConfiguration({ caller, address }, { providers }) {
    const outcome = await providers.reload({ actor: caller.actor, address });
    const isDone = outcome.problem === null;
    const noted = { detail: reloadDetail(outcome), isDone };
    return { ...ok({ reloaded: isDone, ...outcome }), noted };
  },
  async listActions({ query: { limit, after = null } }, { records }) {
    const page = await records.actions({ limit, after });
    const actions = page.actions.map(({ atMs, ...action }) => ({ ...action, at: instant(atMs) }));
    return ok({ actions, next: page.next });
  },
  async purgeCache({ query }, { purgeCache }) {
    const { profile = null, provider = null, method = null } = query;
    const chain = query.chain === undefined ? null : String(query.chain);
    const purged = await purgeCache({ profile, chain, provider, method });
    if (purged.kind === "unknown")
      return apiFault("not_found", `there is no such ${purged.what}`, {
        nextAction: "see GET /api/chains for chains, and the configuration for profiles",
      });
    const { chain: name, complete, redis } = purged;
    return ok({ profile, chain: name, provider, method, complete, redis });
  },
};

const UNKNOWN = apiFault("not_found", "this profile has no such provider on this chain", {
  nextAction: "GET /api/metrics/{chain} lists profiles and providers",
});

/** Why nothing more can be sent now; null = it can, and is counted. */
function limitOf(limit: AddressLimit, nowMs: number): ApiFault<"rate_limited"> | null {
  const retryAfterMs = limit.take("operator", nowMs);
  return limited(retryAfterMs, `more than ${QUERIES_PER_MINUTE} of these came in a minute`);
}

interface CordonTerms {
  readonly reason?: string | undefined;
  readonly until?: string | undefined;
}

function cordonOf(
  { profile, chain, provider }: ProviderRef,
  { reason, until }: CordonTerms,
  { actor, atMs }: Pick<OperatorCordon, "actor" | "atMs">,
): OperatorCordon {
  const untilMs = until === undefined ? null : Date.parse(until);
  return { profile, chain, provider, reason: reason ?? null, actor, atMs, untilMs };
}

/** Takes a provider out of use at some places; returns why not. */
async function cordoned(
  { providers }: Pick<InstanceParts, "providers">,
  cordons: readonly OperatorCordon[],
) {
  const isOutside = ({ atMs, untilMs }: OperatorCordon): boolean =>
    untilMs !== null && (untilMs <= atMs || untilMs > atMs + MAX_CORDON_MS);
  if (cordons.some(isOutside))
    return apiFault("invalid_field", `until is not within the next ${MAX_CORDON_DAYS} days`, {
      details: ["until"],
    });
  switch (await providers.cordon(...cordons)) {
    case "done":
      return null;
    case "unknown":
      return UNKNOWN;
    case "full":
      return apiFault("unavailable", "as many providers are out of use as can be");
  }
}

/** Profiles of accounts have providers of their own, whatever they are called. */
function isConfigured({ profile }: ProviderRef): boolean {
  return publicLabel(profile) === profile;
}

function cordonList(cordons: readonly OperatorCordon[]) {
  return { cordons: cordons.filter(({ profile }) => profile !== PLACES_TO_COME).map(cordonView) };
}

function cordonView({ profile, chain, provider, reason, actor, ...times }: OperatorCordon) {
  const until = times.untilMs === null ? null : instant(times.untilMs);
  return { profile, chain, provider, reason, by: actor, at: instant(times.atMs), until };
}

const NO_RESULT = { bytes: null, result: null, truncated: false, digest: null } as const;

function comparedView({ provider, alias, transport, answer }: ComparedAnswer) {
  const { kind } = answer;
  return {
    ...{ provider, alias, transport },
    outcome: kind === "result" ? ("answer" as const) : kind,
    skipped: kind === "skipped" ? answer.reason : null,
    latency_ms: kind === "skipped" ? null : answer.latencyMs,
    error: kind === "error" ? answer.error : null,
    ...(kind === "result" ? resultView(answer.result) : NO_RESULT),
  };
}

function resultView(bytes: Buffer) {
  const truncated = bytes.length > MAX_RESULT_BYTES;
  const result: unknown = truncated ? null : parsed(bytes);
  const ordered = truncated ? null : inOrder(result, MAX_DEPTH);
  const digest = createHash("sha256")
    .update(ordered === null ? bytes : JSON.stringify(ordered.value))
    .digest("base64url");
  return { bytes: bytes.length, result: ordered === null ? null : result, truncated, digest };
}

/** The transport has checked that it is JSON. */
function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return null;
  }
}

/** A value with the fields of its objects in order; null = it is nested too deeply. */
function inOrder(value: unknown, depth: number): { readonly value: unknown } | null {
  if (typeof value !== "object" || value === null) return { value };
  if (depth === 0) return null;
  const entries = Array.isArray(value) ? value.map((item, n) => [n, item]) : Object.entries(value);
  const ordered = entries.map(([name, item]) => [String(name), inOrder(item, depth - 1)] as const);
  if (ordered.some(([, item]) => item === null)) return null;
  if (Array.isArray(value)) return { value: ordered.map(([, item]) => item?.value) };
  ordered.sort(([left], [right]) => (left < right ? -1 : 1));
  return { value: Object.fromEntries(ordered.map(([name, item]) => [name, item?.value])) };
}
