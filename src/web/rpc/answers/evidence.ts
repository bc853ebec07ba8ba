// Evidence: how a request was routed, as callers see it (`svc_meta`). Managed pools show aliases
// instead of provider ids and no exclusions; addresses of providers are never shown.
import type { z } from "zod";
import { isCharged } from "../../../core/billing/charging.ts";
import type { PublicNode } from "../../../core/cluster-health.ts";
import { type Attempt, upstreamMsOf } from "../../../core/provider/attempt.ts";
import type { Profile, Provider } from "../../../core/provider/profile.ts";
import { providerOf } from "../../../core/routing/answer-source.ts";
import type { CacheUse } from "../../../core/routing/cache-terms.ts";
import type { Plan } from "../../../core/routing/plan.ts";
import { newCall } from "../../../core/rpc/call.ts";
import type { Runtime } from "../../../runtime.ts";
import type { RoutedCall } from "../../../upstream/engine/router.ts";
import type { evidence } from "../../contract/rpc-schemas.ts";
import type { Reply } from "./reply.ts";

/** Version of the `svc_meta` shape. */
const EVIDENCE_VERSION = "1.0";

/** `svc_meta` as it is shown, by its schema. */
export type Evidence = z.infer<typeof evidence>;

/** What evidence is made with. */
export interface EvidenceParts {
  readonly runtime: Pick<Runtime, "now">;
  /** Null = it serves alone. */
  readonly node: PublicNode | null;
}

/** Most attempts that are named: only calls in parts have more. */
const MAX_ATTEMPTS = 16;

/** The evidence of a reply. */
export function evidenceOf(reply: Reply, { runtime, node }: EvidenceParts): Evidence {
  const { route, source, target, requestId, transport } = reply;
  const { profile, tracker } = target;
  const plan = planOf(reply);
  const attempts = route?.traces.map(({ attempt }) => attempt) ?? [];
  const selected = providerOf(source);
  const shown = (provider: Provider): string => shownId(provider, profile);
  const isMerged = source.kind === "merged";
  const hedges = attempts.filter(({ hedgedAfterMs }) => hedgedAfterMs !== undefined).length;
  const lastOn = attempts.at(-1)?.transport ?? "http";
  const endToEndMs = route === null ? 0 : runtime.now() - route.startedAtMs;
  const tip = route === null ? null : tipStateOf(route);
  const cu = chargedCuOf(reply);
  const elsewhere = ELSEWHERE.find((kind) => kind === source.kind);
  return {
    version: EVIDENCE_VERSION,
    request_id: requestId,
    strategy: target.strategy,
    chain_id: target.chain.chainId,
    transport,
    profile: profile.slug,
    candidate_providers: plan.candidates.map(({ provider }) => shown(provider)),
    selected_provider: selected === null ? null : { id: shown(selected), ...regionOf(selected) },
    upstream_latency_ms:
      attempts.length === 0 && source.kind === "none"
        ? null
        : round(attempts.at(-1)?.latencyMs ?? 0),
    svc_overhead_ms: round(Math.max(0, endToEndMs - upstreamMsOf(attempts))),
    end_to_end_latency_ms: round(endToEndMs),
    retries: isMerged
      ? attempts.filter(({ verdict }) => verdict !== null).length
      : Math.max(0, attempts.length - 1 - hedges),
    ...(plan.panic === true ? { panic: true } : {}),
    ...(plan.lagWaived === true ? { lag_waived: true } : {}),
    circuit_breaker_state: selected === null ? null : tracker.health(selected, lastOn).breaker,
    ...(isMerged ? { upstream_calls: attempts.length } : {}),
    attempts: attempts.slice(0, MAX_ATTEMPTS).map((attempt) => attemptEvidence(attempt, profile)),
    ...(route === null || route.cacheUse === null ? {} : { cache: cacheEvidence(route.cacheUse) }),
    ...(cu === null ? {} : { charged_cu: cu }),
    ...(elsewhere === undefined ? {} : { source: elsewhere }),
    ...(route === null || route.at === null ? {} : { block: route.at }),
    ...(tip === null ? {} : { tip }),
    ...(profile.managed
      ? {}
      : {
          excluded: plan.excluded.map(({ provider, reason }) => ({
            provider: provider.id,
            reason,
          })),
        }),
    ...(node === null ? {} : { node }),
  };
}

/** The plan of a call; of an answer that no provider was asked for, the one of now. */
function planOf({ route, source, target: { tracker, strategy, pin } }: Reply): Plan {
  const isAsked = route !== null && route.traces.length > 0;
  if (isAsked || source.kind === "none") return route?.plan ?? NO_PLAN;
  return route === null
    ? tracker.plan(ANY_CALL, { strategy, transport: null, pin })
    : tracker.plan(route.request.call, route.request);
}

/** What is to be said of the tip; null = it is in force, or the caller wants no view. */
function tipStateOf({ request: { view }, isStale }: RoutedCall): Evidence["tip"] | null {
  if (view === undefined) return null;
  if (view === null || isStale) return "stale";
  return view.isAlone ? "alone" : null;
}

/** Compute units that are charged; null = the caller has no key. */
function chargedCuOf({ billing, source }: Reply): number | null {
  if (billing === null || !("grant" in billing)) return null;
  return isCharged(source) ? billing.cu : 0;
}

const NO_PLAN: Plan = { candidates: [], excluded: [] };
/** A call that every provider can be asked. */
const ANY_CALL = newCall("eth_chainId", "[]");

function shownId({ id, alias }: Provider, { managed }: Profile): string {
  return managed ? alias : id;
}

function attemptEvidence(
  { provider, transport, verdict, code, latencyMs, hedgedAfterMs, batched }: Attempt,
  profile: Profile,
): Evidence["attempts"][number] {
  return {
    provider: shownId(provider, profile),
    ...regionOf(provider),
    transport,
    outcome: verdict === null ? "success" : "error",
    category: verdict?.category ?? null,
    code,
    latency_ms: round(latencyMs),
    ...(hedgedAfterMs === undefined ? {} : { hedged_after_ms: round(hedgedAfterMs) }),
    ...(batched === undefined || profile.managed ? {} : { batched }),
  };
}

function cacheEvidence(use: CacheUse): NonNullable<Evidence["cache"]> {
  return use.result === "hit"
    ? { result: "hit", age_ms: round(use.ageMs), class: use.class, tier: use.tier }
    : { result: use.result };
}

/** Sources of answers for which nobody was asked this very call. */
const ELSEWHERE = ["shared", "cache", "merged", "heads", "accepted", "local"] as const;

function regionOf({ region }: Provider): { readonly region?: string } {
  return region === null ? {} : { region };
}

function round(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
