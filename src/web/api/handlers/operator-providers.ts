// Handlers of what operators do with providers: cordons, waits, tests, comparisons, and the list of
// what was done.
import { createHash } from "node:crypto";
import type { AddressLimit } from "../../../core/billing/address-limit.ts";
import { type ApiFault, apiFault, limited } from "../../../core/faults/api-fault.ts";
import type { OperatorCordon } from "../../../hosted/operator/stored-records.ts";
import type { ShownError } from "../../../upstream/provider-query.ts";
import type { Handlers } from "../../contract/contract.ts";
import { reloadDetail } from "../action-log.ts";
import type { ComparedAnswer, InstanceParts, ProviderTest } from "../parts.ts";
import { instant, NO_CONTENT, ok } from "./views.ts";

type ProviderHandlers = Handlers<
  | "listCordons"
  | "cordonProvider"
  | "uncordonProvider"
  | "endProviderWait"
  | "testProvider"
  | "compareProviders"
  | "reloadConfiguration"
  | "listActions"
>;

const PER_MINUTE = 10;
const MINUTE_S = 60;
const MAX_RESULT_BYTES = 65_536;
const MAX_DEPTH = 100;

/** Creates the handlers. */
export function providerHandlers(parts: InstanceParts): ProviderHandlers {
  return { ...cordonHandlers(parts), ...callHandlers(parts), ...serviceHandlers(parts) };
}

function cordonHandlers({
  runtime,
  providers,
}: InstanceParts): Pick<ProviderHandlers, "listCordons" | "cordonProvider" | "uncordonProvider"> {
  return {
    async listCordons() {
      const cordons = (await providers.cordons()).map(cordonView);
      return ok({ cordons });
    },
    async cordonProvider({ body: { reason = null, ...ref }, caller }) {
      const { profile, chain, provider } = ref;
      const names = { profile, chain, provider };
      const cordon = { ...names, reason, actor: caller.actor, atMs: runtime.wallMs() };
      switch (await providers.cordon(cordon)) {
        case "done":
          return ok(cordonView(cordon));
        case "unknown":
          return UNKNOWN;
        case "full":
          return apiFault("unavailable", "as many providers are out of use as can be");
      }
    },
    async uncordonProvider({ query: { profile, chain, provider } }) {
      await providers.uncordon({ profile, chain, provider });
      return NO_CONTENT;
    },
  };
}

function callHandlers(
  parts: InstanceParts,
): Pick<ProviderHandlers, "endProviderWait" | "testProvider" | "compareProviders"> {
  const { runtime, providers, methods, openLimit } = parts;
  const size = { perSecond: PER_MINUTE / MINUTE_S, burst: PER_MINUTE };
  const [tests, comparisons] = [openLimit("tests", size), openLimit("comparisons", size)];
  return {
    endProviderWait({ body }) {
      const transports = providers.endWaits(body);
      if (transports === null) return UNKNOWN;
      return ok({ transports: [...transports] });
    },
    async testProvider({ body }) {
      const refusal = limitOf(tests, runtime.now());
      if (refusal !== null) return refusal;
      const tested = await providers.test(body);
      if (tested === null) return UNKNOWN;
      return ok({ results: tested.map(testView) });
    },
    async compareProviders({ body: { profile, chain, method, params } }) {
      const { replaySafe, handling } = methods().of(method);
      if (!replaySafe || handling === "filter" || handling === "socket_only")
        return apiFault(
          "invalid_field",
          `${method} is no read that can be sent to every provider`,
          {
            details: ["method"],
            nextAction: "compare a read of the method table",
          },
        );
      const refusal = limitOf(comparisons, runtime.now());
      if (refusal !== null) return refusal;
      const call = { profile, chain, method, params: JSON.stringify(params) };
      const answers = await providers.compare(call);
      if (answers === null) return UNKNOWN;
      return ok({ profile, chain, method, results: answers.map(comparedView) });
    },
  };
}

function serviceHandlers({
  providers,
  records,
}: InstanceParts): Pick<ProviderHandlers, "reloadConfiguration" | "listActions"> {
  return {
    async reloadConfiguration({ caller, address }) {
      const reloaded = await providers.reload({ actor: caller.actor, address });
      const { problem, revision, node, areOthersAsked } = reloaded;
      const isDone = problem === null;
      const body = { reloaded: isDone, problem, revision, node, others_asked: areOthersAsked };
      const noted = { detail: reloadDetail(reloaded), isDone };
      return { kind: "answer", status: 200, body, noted };
    },
    async listActions({ query: { limit, after = null } }) {
      const page = await records.actions({ limit, after });
      const actions = page.actions.map(({ atMs, ...action }) => ({ ...action, at: instant(atMs) }));
      return ok({ actions, next: page.next });
    },
  };
}

const UNKNOWN = apiFault("not_found", "this profile has no such provider on this chain", {
  nextAction: "GET /api/metrics/{chain} lists profiles and providers",
});

/** Why nothing more can be sent now; null = it can, and is counted. */
function limitOf(limit: AddressLimit, nowMs: number): ApiFault<"rate_limited"> | null {
  const retryAfterMs = limit.take("operator", nowMs);
  return limited(retryAfterMs, `more than ${PER_MINUTE} of these came in a minute`);
}

function cordonView({ profile, chain, provider, reason, actor, atMs }: OperatorCordon) {
  return { profile, chain, provider, reason, by: actor, at: instant(atMs) };
}

function testView({ transport, latencyMs, chainId, height, error }: ProviderTest) {
  return {
    transport,
    ok: error === null && chainId !== null && height !== null,
    latency_ms: rounded(latencyMs),
    chain_id: chainId,
    block_height: height,
    error: error === null ? null : errorView(error),
  };
}

function errorView({ category, code, httpStatus, message }: ShownError) {
  return { category, code, http_status: httpStatus, message };
}

const NO_RESULT = { bytes: null, result: null, truncated: false, digest: null } as const;

function comparedView({ provider, alias, transport, answer }: ComparedAnswer) {
  const of = { provider, alias, transport };
  switch (answer.kind) {
    case "skipped": {
      const nothing = { ...NO_RESULT, latency_ms: null, error: null };
      return { ...of, ...nothing, outcome: "skipped" as const, skipped: answer.reason };
    }
    case "error": {
      const error = errorView(answer.error);
      const latency_ms = rounded(answer.latencyMs);
      return { ...of, ...NO_RESULT, outcome: "error" as const, skipped: null, latency_ms, error };
    }
    case "result": {
      const latency_ms = rounded(answer.latencyMs);
      const shown = resultView(answer.result);
      return {
        ...of,
        ...shown,
        outcome: "answer" as const,
        skipped: null,
        latency_ms,
        error: null,
      };
    }
  }
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

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}

type CacheHandlers = Handlers<"purgeCache">;

/** Creates the handler. */
export function cacheHandlers({ purgeCache }: InstanceParts): CacheHandlers {
  return {
    async purgeCache({ query }) {
      const { profile = null, provider = null, method = null } = query;
      const chain = query.chain === undefined ? null : String(query.chain);
      const purged = await purgeCache({ profile, chain, provider, method });
      if (purged.kind === "unknown")
        return apiFault("not_found", `there is no such ${purged.what}`, {
          nextAction: "see GET /api/chains for chains, and the configuration for profiles",
        });
      const { secondTier, isComplete } = purged;
      return ok({
        profile,
        chain: purged.chain,
        provider,
        method,
        complete: isComplete,
        redis: redisOf(secondTier),
      });
    },
  };
}

function redisOf(secondTier: { readonly isGone: boolean } | null): "none" | "purged" | "pending" {
  if (secondTier === null) return "none";
  return secondTier.isGone ? "purged" : "pending";
}
