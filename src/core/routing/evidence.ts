// Evidence: how a request was routed, as callers see it (`svc_meta`). Managed pools show aliases
// instead of provider ids and no exclusions; addresses of providers are never shown.
import type { Attempt } from "../provider/attempt.ts";
import type { Chain } from "../provider/chain.ts";
import type { Profile, Provider, Transport } from "../provider/profile.ts";
import { type AnswerSource, providerOf } from "./answer-source.ts";
import type { CacheClass, CacheTier, CacheUse } from "./cache-terms.ts";
import type { Plan } from "./plan.ts";
import type { SeenBlock } from "./seen.ts";
import type { Strategy } from "./strategy.ts";

/** Version of the `svc_meta` shape. */
const EVIDENCE_VERSION = "1.0";

/** A node as callers see it. */
export interface PublicNode {
  /** A short alias: it tells nodes apart, and nothing of the machine. */
  readonly id: string;
  readonly region: string;
}

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
  readonly tip: TipState | null;
  /** Null = the call had no part in the cache. */
  readonly cacheUse: CacheUse | null;
  /** Compute units that are charged; null = the caller has no key. */
  readonly chargedCu: number | null;
  /** Null = it serves alone. */
  readonly node: PublicNode | null;
}

/** `svc_meta` as it is shown; latencies in milliseconds. */
export interface Evidence {
  readonly version: string;
  readonly request_id: string;
  readonly strategy: Strategy;
  readonly chain_id: number;
  readonly transport: Transport;
  readonly profile: string;
  /** Of an answer that no provider was asked for: who could be asked now. */
  readonly candidate_providers: readonly string[];
  readonly selected_provider: EvidenceProvider | null;
  /** 0 = no provider was asked for the answer; null = none was asked, and there is no answer. */
  readonly upstream_latency_ms: number | null;
  readonly svc_overhead_ms: number;
  readonly end_to_end_latency_ms: number;
  readonly retries: number;
  /** Every circuit of the provider set was open, and the call was tried all the same. */
  readonly panic?: true;
  /** Providers that lag were asked: no other one could be, or was known to be well. */
  readonly lag_waived?: true;
  readonly circuit_breaker_state: "closed" | "half_open" | "open" | null;
  /** Only of an answer joined from parts: calls made for it until it began to be sent. */
  readonly upstream_calls?: number;
  /** The first of them, where there are very many. */
  readonly attempts: readonly EvidenceAttempt[];
  /**
   * Only where the answer is not one provider's answer to this very call. `shared`: it came from a
   * filter, or from a subscription that was already running.
   */
  readonly source?: "shared" | "cache" | "merged" | "heads" | "accepted" | "local";
  /** The block at which the answer was given; only where it is known. */
  readonly block?: SeenBlock;
  /** Only where it is not the block that two operators agree on. */
  readonly tip?: TipState;
  /** Only of methods whose answers are kept. */
  readonly cache?: CacheEvidence;
  /** Compute units that are charged; only of callers with a key. */
  readonly charged_cu?: number;
  readonly excluded?: readonly { readonly provider: string; readonly reason: string }[];
  /** The node that served the call, where several serve together. */
  readonly node?: PublicNode;
}

/**
 * What is unusual of the tip under which a call was answered. `stale`: none was in force, so its
 * tags went out as they were written. `alone`: one operator alone defined it.
 */
export type TipState = "stale" | "alone";

/** How a call met the cache, as it is shown. */
export interface CacheEvidence {
  readonly result: CacheUse["result"];
  /** How long ago the answer was asked for; only of a hit. */
  readonly age_ms?: number;
  /** Why it may still be given; only of a hit. */
  readonly class?: CacheClass;
  /** Where it was kept; only of a hit. */
  readonly tier?: CacheTier;
}

/** A provider as it is shown. */
export interface EvidenceProvider {
  readonly id: string;
  /** Only where its region is stated. */
  readonly region?: string;
}

/** One attempt as it is shown. */
export interface EvidenceAttempt {
  readonly provider: string;
  /** Only where the provider's region is stated. */
  readonly region?: string;
  readonly transport: Transport;
  readonly outcome: "success" | "error";
  /** Row of the classification table; null on success. */
  readonly category: string | null;
  readonly code: number | null;
  readonly latency_ms: number;
  /**
   * Only of a hedge: the attempt before it had taken this long, and went on beside it. One of the
   * two then has the category `overtaken`.
   */
  readonly hedged_after_ms?: number;
  /**
   * Only of an attempt that was sent as one of several calls in one request: how many. Not in
   * managed pools, since it tells of other callers.
   */
  readonly batched?: number;
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
): EvidenceAttempt {
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

/** For how long providers were asked: a hedge is asked beside another, not after it. */
export function upstreamMsOf(attempts: readonly Attempt[]): number {
  let inTurnMs = 0;
  let besideMs = 0;
  for (const { latencyMs, hedgedAfterMs } of attempts) {
    if (hedgedAfterMs === undefined) inTurnMs += latencyMs;
    else besideMs = Math.max(besideMs, hedgedAfterMs + latencyMs);
  }
  return Math.max(inTurnMs, besideMs);
}

function cacheEvidence(use: CacheUse): CacheEvidence {
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
