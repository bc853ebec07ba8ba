// The JSON documents of the instance endpoints: chains, health, readiness and metrics of each
// provider. Unknown values are null, never 0.
import type { z } from "zod";
import type { ClusterHealth } from "../../core/cluster-health.ts";
import type { Chain } from "../../core/provider/chain.ts";
import { oldestAt } from "../../core/provider/history.ts";
import { generalOf } from "../../core/provider/method-scope.ts";
import { type Provider, type Transport, transportsOf } from "../../core/provider/profile.ts";
import { RESOURCES } from "../../core/rpc/method.ts";
import { COUNTED_KINDS } from "../../core/stream/subscription.ts";
import type { CurrentIncidents } from "../../observe/incidents/current-incidents.ts";
import type { JudgedState } from "../../observe/incidents/incident-book.ts";
import type { Observer } from "../../observe/observer.ts";
import { streamTotals, streamView } from "../../observe/operator-report.ts";
import type { StreamFacts } from "../../observe/readings.ts";
import type { Series } from "../../observe/series.ts";
import type { BudgetReport } from "../../upstream/budget/provider-budget.ts";
import type { ProviderCordon } from "../../upstream/health/provider-state.ts";
import type { Tracker } from "../../upstream/health/tracker.ts";
import type { ProfileRegistry, ServedProfile } from "../../upstream/registry/profile-registry.ts";
import type { SocketReport } from "../../upstream/transport.ts";
import type { readiness } from "../contract/instance.ts";

/** `GET /api/chains`. */
export function chainsDocument(registry: ProfileRegistry): unknown {
  const served = registry.chains.filter((chain) =>
    registry.profiles.some(({ trackers }) => trackers.has(chain.chainName)),
  );
  return {
    chains: served.map(({ chainId, name, chainName }) => ({
      chain_id: String(chainId),
      name,
      chain_name: chainName,
      supported: true,
    })),
  };
}

/** The input of `GET /api/health`. */
export interface InstanceFacts {
  readonly wallMs: number;
  readonly uptimeMs: number;
  readonly version: string;
  /** Where this node runs; empty = not stated. */
  readonly region: string;
  /** The nodes that serve together; null = this one serves alone. */
  readonly cluster: ClusterHealth | null;
}

/** `GET /api/health`: reads memory only. */
export function healthDocument({ wallMs, uptimeMs, version, region, cluster }: InstanceFacts) {
  const alone = { connected: 1, responding: 1, total: 1, status: "standalone" } as const;
  const { connected, responding, total, status } = cluster ?? alone;
  const here = region === "" ? [] : [region];
  return {
    status: "healthy",
    timestamp: new Date(wallMs).toISOString(),
    uptime_seconds: Math.floor(uptimeMs / 1000),
    version,
    cluster: {
      enabled: cluster !== null,
      nodes_connected: connected,
      nodes_responding: responding,
      nodes_total: total,
      regions: cluster?.regions ?? here,
      status,
      ...(cluster === null ? {} : { problems: cluster.problems }),
    },
  };
}

/** `GET /api/ready`. */
export type ReadyDocument = z.output<typeof readiness>;

/** Whose calls can be served, as far as that depends on the database. */
export interface ServedCallers {
  /** Those with keys, all of them. */
  readonly keys: boolean;
  /** Some: those without a key, or those whose key is known. */
  readonly some: boolean;
}

/** Ready once a provider of some configured chain has answered, and not while draining. */
export function readyDocument(
  registry: ProfileRegistry,
  draining: boolean,
  serves: ServedCallers,
): ReadyDocument {
  const chains = registry.profiles.flatMap((served) =>
    [...served.trackers.values()].map((tracker) => chainReadiness(served, tracker)),
  );
  // Where the configuration names no chain, the first call opens one.
  const configured = chains.filter(({ chain }) => !registry.isOpened(chain));
  const usable = configured.length === 0 || configured.some(({ ready }) => ready);
  const trackers = registry.profiles.flatMap((served) => [...served.trackers.values()]);
  const reasons = [
    ...(draining ? ["draining"] : []),
    ...(usable ? [] : [trackers.some(hasBeenAnswered) ? NOBODY_LEFT : NOBODY_YET]),
  ];
  const traffic = reasons.length === 0 && serves.some;
  if (!serves.keys) reasons.push(NO_KEYS);
  return { ready: reasons.length === 0, traffic, reasons, chains };
}

function chainReadiness(served: ServedProfile, tracker: Tracker): ReadyDocument["chains"][number] {
  const { providers, chain } = tracker.set;
  const usable = generalOf(providers, (provider) => provider).filter(
    (provider) =>
      tracker.refusalOf(provider) === null &&
      tracker.cordonOf(provider) === null &&
      transportsOf(provider).some((transport) => isUsable(tracker, provider, transport)),
  ).length;
  return {
    profile: served.profile.slug,
    chain: chain.chainName,
    ready: usable > 0,
    providers_usable: usable,
    providers_total: providers.length,
  };
}

const NO_KEYS =
  "the database does not answer: calls with a key are refused, or will be once the key's credit that " +
  "is held here is spent";
const NOBODY_YET = "no provider has answered yet";
const NOBODY_LEFT =
  "no provider can be used now: those that have answered fail, refuse the service, or were taken " +
  "out of use";

/** Whether a provider of the set has ever answered. */
function hasBeenAnswered(tracker: Tracker): boolean {
  return tracker.set.providers.some((provider) =>
    transportsOf(provider).some((transport) => hasAnswered(tracker.health(provider, transport))),
  );
}

function isUsable(tracker: Tracker, provider: Provider, transport: Transport): boolean {
  const health = tracker.health(provider, transport);
  return health.breaker !== "open" && health.cordon === null && hasAnswered(health);
}

function hasAnswered({ probeMs, outcomes }: ReturnType<Tracker["health"]>): boolean {
  return probeMs !== null || outcomes.delivered > 0;
}

/** The input of `GET /api/metrics/{chain}` besides the profiles. */
export interface MetricsFacts extends StreamFacts {
  readonly series: (profile: string, chain: string) => Series;
  /** Client WebSockets on all chains. */
  readonly openSockets: number;
  /** True = the reader is the operator, who sees the real ids of managed providers. */
  readonly realIds: boolean;
  readonly observer: Pick<Observer, "certificates">;
  /** How providers are judged. */
  readonly incidents: Pick<CurrentIncidents, "stateOf">;
}

/** `GET /api/metrics/{chain}`, for every profile that serves the chain. */
export function metricsDocument(
  registry: ProfileRegistry,
  chain: Chain,
  facts: MetricsFacts,
): Readonly<Record<string, unknown>> {
  const profiles = registry.profiles.filter(({ trackers }) => trackers.has(chain.chainName));
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
  const shown = ({ alias, id }: Provider): string => (isPublic ? alias : id);
  const total = sumOf(providers, (provider) =>
    sumOf(transportsOf(provider), (transport) => tracker.health(provider, transport).calls),
  );
  const series = facts.series(slug, chain.chainName);
  return {
    profile: slug,
    head_block: tracker.head(),
    max_lag_blocks: tracker.set.maxLagBlocks,
    calls: total,
    subscriptions: subscriptionsDocument(facts, series, shown),
    providers: providers.map((provider) => ({
      id: shown(provider),
      name: isPublic ? provider.alias : provider.name,
      region: provider.region,
      capabilities: capabilitiesDocument(tracker, provider),
      cordon: cordonDocument(tracker.cordonOf(provider), facts.realIds),
      ...stateDocument(
        facts.incidents.stateOf(slug, chain.chainName, provider.id),
        tracker.cordonOf(provider),
      ),
      ...(facts.realIds
        ? {
            limits: limitsDocument(tracker.budget(provider)),
            certificate_until: certificateUntil(provider, facts),
          }
        : {}),
      transports: transportsOf(provider).map((transport) => ({
        ...transportMetrics(tracker, provider, transport, total),
        ...(transport === "ws" ? { socket: socketDocument(facts.socketOf(provider)) } : {}),
      })),
    })),
  };
}

/** That an operator took a provider out of use; null = it is in use. */
function cordonDocument(cordon: ProviderCordon | null, isOperator: boolean): unknown {
  if (cordon === null) return null;
  const { reason, atMs, untilMs } = cordon;
  return {
    reason: isOperator ? reason : null,
    at: new Date(atMs).toISOString(),
    until: untilMs === null ? null : new Date(untilMs).toISOString(),
  };
}

/** How a provider is judged; a cordon holds at once, before the next judgement. */
function stateDocument(judged: JudgedState | null, cordon: ProviderCordon | null): object {
  const answered = { answered_share: judged?.answered ?? null };
  if (cordon !== null)
    return {
      state: "maintenance",
      state_since: new Date(cordon.atMs).toISOString(),
      cause: "cordoned by the operator",
      ...answered,
    };
  if (judged === null || judged.state === "maintenance")
    return { state: null, state_since: null, cause: null, ...answered };
  const { state, sinceMs, words } = judged;
  return { state, state_since: new Date(sinceMs).toISOString(), cause: words, ...answered };
}

/** How far back a provider has what calls read, as far as that is known. */
function capabilitiesDocument(tracker: Tracker, provider: Provider): readonly unknown[] {
  const history = tracker.history(provider);
  const head = tracker.head();
  return RESOURCES.flatMap((resource) => {
    const bound = history[resource];
    if (bound === null) return [];
    const { oldest, window, source } = bound;
    const isFixed = window === Number.POSITIVE_INFINITY;
    const disabled = oldest === Number.POSITIVE_INFINITY;
    const oldestBlock = head === null ? oldest : oldestAt(bound, head);
    return {
      resource,
      disabled,
      oldest_block: disabled || (head === null && !isFixed) ? null : oldestBlock,
      window_blocks: isFixed ? null : window,
      source,
    };
  });
}

/** When the certificate of a provider ends, as HTTP/1.1 last proved it; null = it proved none. */
function certificateUntil({ url }: Provider, { observer }: MetricsFacts): string | null {
  if (url === null) return null;
  const { hostname, port } = new URL(url);
  const endsMs = observer.certificates.get(`${hostname.replace(/[[\]]/g, "")}:${port || 443}`);
  return endsMs === undefined ? null : new Date(endsMs).toISOString();
}

/** What was sent of what may be sent to a provider; null = no limit is declared. */
function limitsDocument(budget: BudgetReport | null): unknown {
  if (budget === null) return null;
  const { rps, concurrency, daily, monthly } = budget;
  return {
    rps: rps === null ? null : { limit: rps.limit, in_use: rps.used },
    concurrency:
      concurrency === null ? null : { limit: concurrency.limit, in_use: concurrency.used },
    daily: quotaDocument(daily),
    monthly: quotaDocument(monthly),
    ahead_of_pace: budget.aheadOfPace,
  };
}

function quotaDocument(credits: BudgetReport["daily"]): unknown {
  if (credits === null) return null;
  const { limit, used, resetsInMs } = credits;
  return { limit, spent: used, left: Math.max(0, limit - used), resets_in_ms: resetsInMs };
}

function transportMetrics(
  tracker: Tracker,
  provider: Provider,
  transport: Transport,
  total: number,
): object {
  const health = tracker.health(provider, transport);
  const { rateLimited, ...outcomes } = health.outcomes;
  return {
    transport,
    circuit_breaker_state: health.circuit,
    circuit_opened: health.openings,
    half_open_in_ms: health.retryAfterMs,
    rate_limited_for_ms: health.rateLimitedForMs,
    rate_limited_methods: health.limitedMethods,
    cordoned: health.cordon,
    block_height: health.height,
    lag_blocks: health.lagBlocks,
    calls: health.calls,
    outcomes: { ...outcomes, rate_limited: rateLimited },
    learned: {
      unsupported_methods: health.learned.methods,
      max_block_range: health.learned.maxBlockRange,
      pruned: health.learned.pruned.length > 0,
      pruned_resources: health.learned.pruned,
      requests_per_second: health.learned.requestsPerSecond,
    },
    share: total === 0 ? null : health.calls / total,
    success_rate: health.successRate,
    latency_ms: {
      average: health.averageMs,
      p50: health.p50Ms,
      p95: health.p95Ms,
      p99: health.p99Ms,
      probe: health.probeMs,
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

const MAX_SHOWN = 100;

/** The subscriptions of one profile on one chain; `shown` returns the public id of a provider. */
function subscriptionsDocument(
  { subscriptions }: StreamFacts,
  series: Series,
  shown: (provider: Provider) => string,
): unknown {
  const own = ({ profile, chain }: { readonly profile: string; readonly chain: string }): boolean =>
    profile === series.profile && chain === series.chain;
  const open = subscriptions.reports().filter(own);
  const checks = subscriptions.checks().filter(own);
  const totals = streamTotals(open, subscriptions.counts().filter(own), checks);
  return {
    ...totals,
    open: open.length,
    log_checks: { ...totals.log_checks, calls: sumOf(checks, ({ calls }) => calls) },
    notifications: Object.fromEntries(
      COUNTED_KINDS.map((kind, i) => [kind, series.notifications[i] ?? 0]),
    ),
    streams: open.slice(0, MAX_SHOWN).map((stream) => ({
      ...streamView(stream),
      provider: stream.provider === null ? null : shown(stream.provider),
    })),
  };
}

/** The WebSocket to a provider. */
function socketDocument({ state, subscriptions, opened, strayFrames }: SocketReport): unknown {
  return { state, subscriptions, opened, stray_frames: strayFrames };
}

function sumOf<T>(list: readonly T[], amountOf: (item: T) => number): number {
  return list.reduce((sum, item) => sum + amountOf(item), 0);
}
