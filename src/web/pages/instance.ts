// The instance endpoints: which chains, is it alive, is it usable, and how each provider does. Null
// where nothing is known, never 0.
import type { Chain } from "../../core/provider/chain.ts";
import type { Provider, Transport } from "../../core/provider/profile.ts";
import { unknownShapes } from "../../core/provider-errors/unknown-errors.ts";
import type { Series } from "../../observe/observer.ts";
import type { Tracker } from "../../upstream/health/tracker.ts";
import type { ProfileRegistry, ServedProfile } from "../../upstream/registry/profile-registry.ts";
import { type StreamFacts, socketDocument, subscriptionsDocument } from "./stream-metrics.ts";

const TRANSPORTS: readonly Transport[] = ["http", "ws"];

/** `GET /api/chains`. */
export function chainsDocument(directory: ProfileRegistry): unknown {
  const served = directory.chains.filter((chain) =>
    directory.profiles.some((it) => it.trackers.has(chain.chainName)),
  );
  return {
    chains: served.map((it) => ({
      chain_id: String(it.chainId),
      name: it.name,
      chain_name: it.chainName,
      supported: true,
    })),
  };
}

/** Facts of the instance that `GET /api/health` tells. */
export interface InstanceFacts {
  readonly wallMs: number;
  readonly uptimeMs: number;
  readonly version: string;
}

/** `GET /api/health`: reads memory only. */
export function healthDocument(facts: InstanceFacts): unknown {
  return {
    status: "healthy",
    timestamp: new Date(facts.wallMs).toISOString(),
    uptime_seconds: Math.floor(facts.uptimeMs / 1000),
    version: facts.version,
    cluster: {
      enabled: false,
      nodes_connected: 1,
      nodes_responding: 1,
      nodes_total: 1,
      regions: [],
      status: "standalone",
    },
  };
}

/**
 * `GET /api/ready`: usable once a provider of some chain has answered and nothing is being drained.
 */
export function readyDocument(
  directory: ProfileRegistry,
  draining: boolean,
): { readonly ready: boolean; readonly document: unknown } {
  const chains = directory.profiles.flatMap((served) =>
    [...served.trackers.values()].map((tracker) => chainReadiness(served, tracker)),
  );
  const usable = chains.some((it) => it.ready);
  const reasons = [
    ...(draining ? ["draining"] : []),
    ...(usable ? [] : ["no provider has answered yet"]),
  ];
  const ready = reasons.length === 0;
  return { ready, document: { ready, reasons, chains } };
}

function chainReadiness(served: ServedProfile, tracker: Tracker) {
  const { providers, chain } = tracker.set;
  const usable = providers.filter((it) =>
    TRANSPORTS.some((transport) => isUsable(tracker, it, transport)),
  ).length;
  return {
    profile: served.profile.slug,
    chain: chain.chainName,
    ready: usable > 0,
    providers_usable: usable,
    providers_total: providers.length,
  };
}

function isUsable(tracker: Tracker, provider: Provider, transport: Transport): boolean {
  const health = tracker.health(provider, transport);
  return (
    health.breaker !== "open" &&
    health.cordon === null &&
    (health.probeMs !== null || health.outcomes.delivered > 0)
  );
}

/** What `GET /api/metrics/{chain}` tells of besides. */
export interface MetricsFacts extends StreamFacts {
  readonly series: (profile: string, chain: string) => Series;
  /** WebSockets of callers, of all chains. */
  readonly openSockets: number;
  /** True = the operator asks, who sees the ids of managed pools. */
  readonly realIds: boolean;
}

/** `GET /api/metrics/{chain}`: every profile that serves the chain. */
export function metricsDocument(
  directory: ProfileRegistry,
  chain: Chain,
  facts: MetricsFacts,
): unknown {
  const profiles = directory.profiles.filter((it) => it.trackers.has(chain.chainName));
  return {
    chain_id: String(chain.chainId),
    chain_name: chain.chainName,
    name: chain.name,
    open_sockets: facts.openSockets,
    profiles: profiles.map((served) =>
      profileMetrics(served, served.trackers.get(chain.chainName), facts),
    ),
  };
}

function profileMetrics(
  served: ServedProfile,
  tracker: Tracker | undefined,
  facts: MetricsFacts,
): unknown {
  if (tracker === undefined) return null;
  const { managed, slug } = served.profile;
  const { providers, chain } = tracker.set;
  const isPublic = managed && !facts.realIds;
  const shown = (it: Provider): string => (isPublic ? it.alias : it.id);
  const total = providers.reduce(
    (sum, it) =>
      sum + TRANSPORTS.reduce((n, transport) => n + tracker.health(it, transport).calls, 0),
    0,
  );
  return {
    profile: slug,
    head_block: tracker.head(),
    max_lag_blocks: tracker.set.maxLagBlocks,
    calls: total,
    subscriptions: subscriptionsDocument(facts, facts.series(slug, chain.chainName), shown),
    ...(facts.realIds
      ? { unknown_errors: unknownErrors(facts.series(slug, chain.chainName)) }
      : {}),
    providers: providers.map((provider) => ({
      id: shown(provider),
      name: isPublic ? provider.alias : provider.name,
      transports: TRANSPORTS.filter(
        (it) => (it === "http" ? provider.url : provider.wsUrl) !== null,
      ).map((transport) => ({
        ...transportMetrics(tracker, provider, transport, total),
        ...(transport === "ws" ? { socket: socketDocument(facts.socketOf(provider)) } : {}),
      })),
    })),
  };
}

/**
 * Provider errors that no rule knows: for the operator, who can say in `error_rules` what they
 * mean.
 */
function unknownErrors({ unknown }: Series): unknown {
  const shapes = unknownShapes(unknown).map(
    ({ provider, method, code, httpStatus, sample, count, lastMs }) => {
      return {
        provider,
        method,
        code,
        http_status: httpStatus,
        sample,
        count,
        last_seen: new Date(lastMs).toISOString(),
      };
    },
  );
  return { total: unknown.total, shapes };
}

function transportMetrics(
  tracker: Tracker,
  provider: Provider,
  transport: Transport,
  total: number,
): object {
  const it = tracker.health(provider, transport);
  return {
    transport,
    circuit_breaker_state: it.breaker,
    circuit_opened: it.openings,
    half_open_in_ms: it.retryAfterMs,
    rate_limited_for_ms: it.rateLimitedForMs,
    rate_limited_methods: it.limitedMethods,
    cordoned: it.cordon,
    block_height: it.height,
    lag_blocks: it.lagBlocks,
    calls: it.calls,
    outcomes: {
      delivered: it.outcomes.delivered,
      failed: it.outcomes.failed,
      rate_limited: it.outcomes.rateLimited,
      neutral: it.outcomes.neutral,
      cancelled: it.outcomes.cancelled,
    },
    learned: {
      unsupported_methods: it.learned.methods,
      max_block_range: it.learned.maxBlockRange,
      pruned: it.learned.pruned,
    },
    share: total === 0 ? null : it.calls / total,
    success_rate: it.successRate,
    latency_ms: {
      average: it.averageMs,
      p50: it.p50Ms,
      p95: it.p95Ms,
      p99: it.p99Ms,
      probe: it.probeMs,
    },
    methods: tracker.methods(provider, transport).map((reading) => ({
      method: reading.method.name,
      calls: reading.calls,
      success_rate: reading.successRate,
      latency_ms: reading.latencyMs,
      age_ms: Math.round(reading.ageMs),
    })),
  };
}
