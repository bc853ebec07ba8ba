// Evidence: how a request was routed, as callers see it (`svc_meta`). Managed pools show aliases
// instead of provider ids and no exclusions; addresses of providers are never shown.
import type { z } from "zod";
import type { PublicNode } from "../../../core/cluster-health.ts";
import { type Attempt, upstreamMsOf } from "../../../core/provider/attempt.ts";
import type { Chain } from "../../../core/provider/chain.ts";
import type { Profile, Provider, Transport } from "../../../core/provider/profile.ts";
import { type AnswerSource, providerOf } from "../../../core/routing/answer-source.ts";
import type { CacheUse } from "../../../core/routing/cache-terms.ts";
import type { Plan } from "../../../core/routing/plan.ts";
import type { SeenBlock } from "../../../core/routing/seen.ts";
import type { Strategy } from "../../../core/routing/strategy.ts";
import type { evidence } from "../../contract/rpc-schemas.ts";

/** Version of the `svc_meta` shape. */
const EVIDENCE_VERSION = "1.0";

/** `svc_meta` as it is shown, by its schema. */
export type Evidence = z.infer<typeof evidence>;

/** The routed request that evidence is about. */
export interface EvidenceInput {
  readonly requestId: string;
  readonly strategy: Strategy;
  readonly chain: Chain;
  readonly transport: Transport;
  readonly profile: Profile;
  readonly plan: Plan;
  readonly attempts: readonly Attempt[];
  readonly breakerState: "closed" | "half_open" | "open" | null;
  readonly endToEndMs: number;
  readonly source: AnswerSource;
  /** The block at which the answer was given; null = not known. */
  readonly block: SeenBlock | null;
  /** What is to be said of the tip; null = it is in force, or the caller wants no view. */
  readonly tip: Evidence["tip"] | null;
  /** Null = the call had no part in the cache. */
  readonly cacheUse: CacheUse | null;
  /** Compute units that are charged; null = the caller has no key. */
  readonly chargedCu: number | null;
  /** Null = it serves alone. */
  readonly node: PublicNode | null;
}

/** Most attempts that are named: only calls in parts have more. */
const MAX_ATTEMPTS = 16;

/** The evidence of one request. */
export function evidenceOf(input: EvidenceInput): Evidence {
  const { profile, plan, attempts, source } = input;
  const selected = providerOf(source);
  const shown = (provider: Provider): string => shownId(provider, profile);
  const isMerged = source.kind === "merged";
  const named = attempts.length > MAX_ATTEMPTS ? attempts.slice(0, MAX_ATTEMPTS) : attempts;
  const hedges = attempts.filter(({ hedgedAfterMs }) => hedgedAfterMs !== undefined).length;
  return {
    version: EVIDENCE_VERSION,
    request_id: input.requestId,
    strategy: input.strategy,
    chain_id: input.chain.chainId,
    transport: input.transport,
    profile: profile.slug,
    candidate_providers: plan.candidates.map(({ provider }) => shown(provider)),
    selected_provider: selected === null ? null : { id: shown(selected), ...regionOf(selected) },
    upstream_latency_ms:
      attempts.length === 0 && source.kind === "none"
        ? null
        : round(attempts.at(-1)?.latencyMs ?? 0),
    svc_overhead_ms: round(Math.max(0, input.endToEndMs - upstreamMsOf(attempts))),
    end_to_end_latency_ms: round(input.endToEndMs),
    retries: isMerged
      ? attempts.filter(({ verdict }) => verdict !== null).length
      : Math.max(0, attempts.length - 1 - hedges),
    ...(plan.panic === true ? { panic: true } : {}),
    ...(plan.lagWaived === true ? { lag_waived: true } : {}),
    circuit_breaker_state: input.breakerState,
    ...(isMerged ? { upstream_calls: attempts.length } : {}),
    attempts: named.map((attempt) => attemptEvidence(attempt, profile)),
    ...(input.cacheUse === null ? {} : { cache: cacheEvidence(input.cacheUse) }),
    ...(input.chargedCu === null ? {} : { charged_cu: input.chargedCu }),
    ...(isElsewhere(source) ? { source: source.kind } : {}),
    ...(input.block === null ? {} : { block: input.block }),
    ...(input.tip === null ? {} : { tip: input.tip }),
    ...(profile.managed
      ? {}
      : {
          excluded: plan.excluded.map(({ provider, reason }) => ({
            provider: provider.id,
            reason,
          })),
        }),
    ...(input.node === null ? {} : { node: input.node }),
  };
}

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

/** Whether nobody was asked for this very call. */
function isElsewhere(
  source: AnswerSource,
): source is Extract<AnswerSource, { readonly kind: NonNullable<Evidence["source"]> }> {
  return ELSEWHERE.has(source.kind);
}

const ELSEWHERE: ReadonlySet<AnswerSource["kind"]> = new Set([
  "shared",
  "cache",
  "merged",
  "heads",
  "accepted",
  "local",
]);

function regionOf({ region }: Provider): { readonly region?: string } {
  return region === null ? {} : { region };
}

function round(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
