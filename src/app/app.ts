// The composition root: builds the service from a configuration and a runtime; starts, reloads and
// closes it.

import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { reloaded, warnOfFixedSections } from "../config/reload.ts";
import { errorText } from "../core/fields.ts";
import type { Profile } from "../core/provider/profile.ts";
import { type AddressRules, bareHost } from "../core/public-address.ts";
import { type MethodTable, methodTable } from "../core/rpc/method-table.ts";
import type { Bus } from "../core/workers/bus.ts";
import { SharedHoldings } from "../core/workers/shared-holdings.ts";
import { Observer } from "../observe/observer.ts";
import { knownChain } from "../presets/chains.ts";
import type { Runtime } from "../runtime.ts";
import { serviceMark } from "../secrets/service-mark.ts";
import { storedFilters } from "../shared/nodes/stored-filters.ts";
import { batchingUpstream } from "../upstream/batch/batching-upstream.ts";
import { meteredSockets, meteredUpstream } from "../upstream/budget/metered-upstream.ts";
import { ProviderBudgets } from "../upstream/budget/provider-budget.ts";
import { CachedAnswers } from "../upstream/engine/cache/cached-answers.ts";
import { AcceptedTransactions } from "../upstream/engine/exchange/accepted-transactions.ts";
import { Router, type RouterParts } from "../upstream/engine/router.ts";
import { FilterClaims } from "../upstream/filter/filter-claims.ts";
import { Filters } from "../upstream/filter/filters.ts";
import { BufferPool } from "../upstream/http/buffer-pool.ts";
import { HTTP_LIMITS, type HttpLimits, HttpUpstream } from "../upstream/http/http-upstream.ts";
import { MemoryBudget } from "../upstream/memory-budget.ts";
import { checkProviders } from "../upstream/provider-check.ts";
import {
  CordonTable,
  ProfileRegistry,
  type ProfileRegistrySettings,
} from "../upstream/registry/profile-registry.ts";
import { SecondTier } from "../upstream/second-tier/second-tier.ts";
import { SOCKET_LIMITS, type SocketLimits } from "../upstream/socket/socket-limits.ts";
import { createSockets } from "../upstream/socket/sockets.ts";
import { SsrfGuard } from "../upstream/ssrf-guard.ts";
import { shareSockets } from "../upstream/stream/shared-sockets.ts";
import { type SubscriptionParts, Subscriptions } from "../upstream/stream/subscriptions.ts";
import { TimerWheel } from "../upstream/timer-wheel.ts";
import type { BatchUpstream, Upstream } from "../upstream/transport.ts";
import { type Api, firstServing, loadedLater } from "../web/api/operation-server.ts";
import { statusIn } from "../web/api/provider-status.ts";
import type { Documents } from "../web/discovery/documents.ts";
import type { DocumentFacts } from "../web/discovery/facts.ts";
import { type TrustedProxies, trustedProxiesOf } from "../web/http/client-address.ts";
import { originOf } from "../web/http/request-origin.ts";
import type { ServedCallers } from "../web/pages/instance.ts";
import { Pages } from "../web/pages/routes.ts";
import { LegacyForms } from "../web/rpc/answers/answer-headers.ts";
import { Compression } from "../web/rpc/answers/compression.ts";
import type { AuthenticationParts } from "../web/rpc/authenticate.ts";
import { SeenByCallers } from "../web/rpc/caller-view.ts";
import { FilterMethods } from "../web/rpc/filter-methods.ts";
import { RpcPaywall } from "../web/rpc/paid/rpc-paywall.ts";
import type { RpcParts } from "../web/rpc/parts.ts";
import { TargetResolver } from "../web/rpc/target.ts";
import { listenForMetrics } from "../web/server/metrics-listener.ts";
import { listen, type ServerParts } from "../web/server/server.ts";
import { ChainsOnDemand, type ChainsOnDemandParts } from "./chains-on-demand.ts";
import { named, openRouterNode, openServiceNode, type ServiceNode, workerOn } from "./cluster.ts";
import type { CustomServing } from "./custom-profiles.ts";
import { HealthUpdates } from "./health-updates.ts";
import type { Hosting, HostingParts } from "./hosted.ts";
import { OperatorView } from "./live/operator-view.ts";
import { createCachePurge, createOwnPurge } from "./operators/cache-purge.ts";
import { OperatorChanges } from "./operators/operator-changes.ts";
import { type OperatorConsole, openConsole } from "./operators/operator-console.ts";
import {
  type OpenOperatorProviders,
  openOperatorProviders,
} from "./operators/operator-providers.ts";
import {
  createServiceReload,
  type Reload,
  reloadOver,
  serveReload,
} from "./operators/reload-service.ts";
import { ServedChains } from "./served-chains.ts";
import {
  limitsOf,
  processIdOf,
  type ServiceParts,
  serviceAlone,
  workerOf,
} from "./service-parts.ts";
import { openProviderLimits, type ProviderLimits } from "./store/provider-limits.ts";
import { workerDocuments } from "./workers/service-readings.ts";
import { workerConfig } from "./workers/worker-limits.ts";

/** A running service. */
export interface App {
  readonly port: number;
  /**
   * Applies the settings of another configuration that a reload may change.
   * Returns why the configuration was rejected; null = it was applied.
   */
  reload(config: Config): string | null;
  /** The port of `server.metrics_listen`; null = not configured. */
  readonly metricsPort: number | null;
  /** Completes accepted requests, then ends. */
  close(): Promise<void>;
}

/** What the service needs besides its configuration. */
export interface Outside {
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly version: string;
  readonly service: ServiceParts;
  readonly knownChain: ChainsOnDemandParts["knownChain"];
}

/** What `build` needs besides the configuration. */
export interface Start extends Omit<Outside, "service" | "knownChain"> {
  /** What is known of chains; absent = what the package knows. */
  readonly knownChain?: ChainsOnDemandParts["knownChain"];
  /** Absent = this process is the whole service. */
  readonly service?: ServiceParts;
  /**
   * Reads the configuration file again and applies it to this process; absent = a reload is
   * refused. Workers have none: the supervisor reads the file for all its workers.
   */
  readonly reload?: Reload;
}

/**
 * Whether this process is the whole service. With several workers the supervisor logs the warnings.
 */
function isAlone({ service }: Pick<Outside, "service">): boolean {
  return service.workers === 1;
}

/**
 * State that changes while the service runs. A reload replaces the configuration and the methods.
 */
interface LiveState {
  config: Config;
  methods: MethodTable;
  isDraining: boolean;
}

/** Everything built before the service listens. */
interface Foundation extends Stored {
  /** The configuration at the start; after a reload see `live.config`. */
  readonly config: Config;
  readonly live: LiveState;
  readonly outside: Outside;
  readonly providers: ReturnType<typeof upstreamSide>;
  readonly chains: ReturnType<typeof chainsOf>;
  readonly filterClaims: FilterClaims;
  readonly operatorProviders: OpenOperatorProviders;
  readonly legacyForms: LegacyForms;
  readonly proxies: TrustedProxies;
  readonly compression: Compression | null;
  readonly view: OperatorView;
}

/** Starts the service. */
export async function build(given: Config, start: Start): Promise<App> {
  const service = start.service ?? alone(start);
  const config = workerConfig(named(given, start.runtime), service.workers);
  const log = labelled(start.log, config);
  const outside: Outside = { ...start, service, log, knownChain: start.knownChain ?? knownChain };
  const { runtime } = outside;
  const live: LiveState = { config, methods: methodTable(config.methods), isDraining: false };
  const sent = openProviderLimits({ config, runtime, log, service });
  const providers = upstreamSide(config, { ...outside, sent }, live);
  const serving = servingOf({ ...providers, rules: addressRulesOf(config) });
  if (isAlone(outside)) warnOfKeyless(config, log);
  const stored = await openStored(config, {
    ...outside,
    serving,
    methods: () => live.methods,
  });
  await sent.join(stored.store, stored.cluster);
  providers.viewExchange.join(stored.cluster?.hints ?? null);
  await providers.budgets.ready();
  const { hosting } = stored;
  const closing = async (error: unknown): Promise<never> => {
    await stored.close();
    throw error;
  };
  const operators = { outside, providers, ...stored };
  const operatorProviders = await operatorProvidersOf(operators).catch(closing);
  stored.changes.begin();
  const proxies = trustedProxiesOf(config.server.trustedProxies);
  const foundation: Foundation = {
    config,
    live,
    outside,
    providers,
    chains: chainsOf({ ...outside, ...providers }, live),
    ...stored,
    filterClaims: filterClaimsOf(stored, providers, outside),
    operatorProviders,
    legacyForms: new LegacyForms(runtime, hosting?.legacyForms ?? null),
    proxies,
    compression: config.server.compression === "off" ? null : new Compression(proxies),
    view: new OperatorView({
      ...{ ...providers, ...outside, ...stored },
      store: stored.store.inMemory === true ? null : stored.store,
    }),
  };
  return appOf(foundation, await serveCallers(foundation).catch(closing));
}

/** Listens for callers, then has the providers watched. */
async function serveCallers(foundation: Foundation) {
  const { config, live, outside, providers, console, proxies } = foundation;
  const { runtime, service } = outside;
  const listening = await listenTo(config, pagesOf(foundation), {
    runtime,
    api: await apiOf(foundation),
    sessions: console.sessions,
    isStatusPublic: () => live.config.console.public,
    originOf: (request) => originOf(request, proxies, config.server.publicUrl),
    requestId: requestIds(runtime, workerOf(service)),
    otherWorkers: service.otherWorkers,
    rpc: rpcPartsOf(foundation),
    subscriptions: providers.subscriptions,
  });
  const { users, observer, subscriptions, filters, cache } = providers;
  const kept = [observer, subscriptions, filters, cache];
  providers.registry.applyTo({ ...users, callers: listening.server, kept });
  return listening;
}

/** The store, and the parts of the service that use it. */
interface Stored extends Pick<ServiceNode, "store" | "changes" | "cluster"> {
  readonly hosting: Hosting | null;
  /** The name of this process in the store. */
  readonly processName: string;
  readonly console: OperatorConsole;
  readonly operatorChanges: OperatorChanges;
  close(): Promise<void>;
}

/**
 * Opens the store and the hosted half on it. Without `hosted`, joins the other processes as a
 * router.
 */
async function openStored(
  config: Config,
  parts: Omit<HostingParts, "config" | "settings" | "console" | keyof ServiceNode>,
): Promise<Stored> {
  const { runtime, service } = parts;
  const opened = await openServiceNode({ ...parts, config });
  const { store, cluster, changes, onError } = opened;
  const node = cluster?.identity.id ?? null;
  const process = cluster?.node.id ?? processIdOf(service);
  const console = openConsole(store, { ...parts, config, node });
  const shared = { store, changes, cluster, processName: process, console };
  const operatorChanges = new OperatorChanges({ store, changes, runtime, process, node, onError });
  try {
    if (config.hosted === null) {
      const close = await openRouterNode(opened, runtime);
      return { ...shared, hosting: null, operatorChanges, close };
    }
    const { openHosting } = await import("./hosted.ts");
    const settings = config.hosted;
    const hosting = await openHosting({ ...parts, ...opened, config, settings, console });
    return { ...shared, hosting, operatorChanges, close: hosting.close };
  } catch (error) {
    await opened.cluster?.close();
    await store.close();
    throw error;
  }
}

/**
 * Records filters in the store, so that other processes can go on with them, and this process after
 * a restart.
 */
function filterClaimsOf(
  { store, cluster, processName }: Stored,
  { filters, timerWheel }: ReturnType<typeof upstreamSide>,
  { runtime, log, service }: Outside,
): FilterClaims {
  const identity = cluster?.identity ?? { id: service.id, region: "" };
  const { bus } = service;
  return new FilterClaims({
    runtime,
    timerWheel,
    filters,
    records: storedFilters(store, processName),
    bus,
    workerOf: workerOn(identity, bus),
    onError: (error) => log.warn({ problem: errorText(error) }, "filters cannot be recorded now"),
  });
}

/**
 * Opens the operators' actions on providers: applies stored cordons, and follows actions that were
 * taken at other processes.
 */
async function operatorProvidersOf({
  outside,
  providers,
  console,
  operatorChanges,
}: OperatorFoundation): Promise<OpenOperatorProviders> {
  const { runtime, log, service } = outside;
  const { bus } = service;
  const opened = await openOperatorProviders({
    ...providers,
    ...console,
    runtime,
    changes: operatorChanges,
    onError: (error) =>
      log.warn({ problem: errorText(error) }, "what operators did elsewhere cannot be read now"),
    reload: reloadOver(bus),
  });
  const ownPurge = createOwnPurge(providers);
  operatorChanges.follow((change) =>
    change.kind === "purge" ? ownPurge(change.selection) : opened.followed(change),
  );
  return opened;
}

type OperatorFoundation = Pick<Foundation, "outside" | "providers" | "console" | "operatorChanges">;

/** The service of a process without other workers: the process reloads itself. */
function alone({ runtime, log, reload = cannotReload }: Start): ServiceParts {
  const service = serviceAlone(runtime, (error) =>
    log.error({ err: error }, "bug: a message within the process was not handled"),
  );
  serveReload(service.bus, createServiceReload(runtime, runtime.now(), reload));
  return service;
}

const cannotReload: Reload = async () => ({
  problem: "this process was not started with a configuration file",
  revision: null,
});

/** The API of this instance. On a plain router its code is loaded at the first request. */
async function apiOf(foundation: Foundation): Promise<Api> {
  const { hosting } = foundation;
  if (hosting === null) return loadedLater(() => instanceApiOf(foundation));
  return firstServing([await instanceApiOf(foundation), hosting.api]);
}

/** The API that every instance has. */
async function instanceApiOf(foundation: Foundation): Promise<Api> {
  const { createInstanceApi } = await import("../web/api/instance-api.ts");
  const { config, live, outside, hosting, cluster, console, providers } = foundation;
  const { operatorProviders, operatorChanges, view } = foundation;
  const { operatorToken } = config.server;
  return createInstanceApi({
    ...console,
    runtime: outside.runtime,
    log: outside.log,
    operatorToken,
    providers: operatorProviders,
    methods: () => live.methods,
    openLimit: limitsOf(outside),
    purgeCache: createCachePurge({
      registry: providers.registry,
      own: createOwnPurge(providers),
      hasSecondTier: () => live.config.redisUrl !== null,
      changes: operatorChanges,
    }),
    live: view.live,
    summary: () => ({
      version: outside.version,
      hosted: hosting !== null,
      devnet: config.devnet,
      public: live.config.console.public,
      node: cluster?.shown.id ?? null,
    }),
  });
}

function appOf(
  { config, live, outside, providers, chains, hosting, view, close, ...foundation }: Foundation,
  { server, metrics }: Awaited<ReturnType<typeof listenTo>>,
): App {
  const { filterClaims, operatorProviders } = foundation;
  const { served, onDemand } = chains;
  return {
    port: server.port,
    metricsPort: metrics?.port ?? null,
    reload(next) {
      const problem = served.problemOf(next.chains);
      if (problem !== null) return problem;
      if (isAlone(outside)) warnOfFixedSections(outside.log, config, next);
      live.config = workerConfig(reloaded(config, next), outside.service.workers);
      live.methods = methodTable(next.methods, live.methods);
      providers.cache.secondTier?.use(live.config.redisUrl);
      onDemand.reloaded();
      hosting?.chainsChanged();
      view.reloaded(next.profiles.length);
      return null;
    },
    async close() {
      live.isDraining = true;
      chains.close();
      view.close();
      await server.drain();
      metrics?.close();
      await view.end();
      await filterClaims.close();
      operatorProviders.close();
      // Before the store closes: closing the providers returns shares of their limits in the store.
      await providers.close().finally(close);
      providers.cache.secondTier?.close();
    },
  };
}

/** The mark on requests to users' providers, by which the service recognises its own requests. */
function markOf({ secret, server: { publicUrl, port }, dataDir }: Config): string {
  const place = publicUrl ?? `${hostname()} ${port} ${dataDir}`;
  return serviceMark(secret, place);
}

/** The parts that serve JSON-RPC. */
function rpcPartsOf(foundation: Foundation): RpcParts {
  const { config, live, outside, providers, hosting } = foundation;
  const { registry, observer, timerWheel, router, budget, filters } = providers;
  const opener = foundation.chains.onDemand;
  const authentication = {
    opener,
    resolver: new TargetResolver(registry, observer, opener),
    admission: hosting?.admission ?? null,
    proxies: foundation.proxies,
    mark: markOf(config),
  };
  const deadlineMs: RpcParts["deadlineMs"] = (method) => live.config.deadlines[method.deadline];
  return {
    ...authentication,
    filters: new FilterMethods({
      ...authentication,
      filters,
      claims: foundation.filterClaims,
      registry,
      deadlineMs,
      limits: () => live.config.limits,
    }),
    runtime: outside.runtime,
    node: foundation.cluster?.shown ?? null,
    timerWheel,
    router,
    observer,
    budget,
    legacyForms: foundation.legacyForms,
    compression: foundation.compression,
    ...payingOf(hosting, config, authentication),
    methods: () => live.methods,
    logs: () => live.config.logs,
    consistency: () => live.config.consistency,
    marks: new SeenByCallers(),
    deadlineMs,
    get limits() {
      return live.config.limits;
    },
  };
}

/** The pages and documents that answer GET. Each worker answers for the whole service. */
function pagesOf({ config, live, outside, providers, hosting, ...foundation }: Foundation): Pages {
  const { runtime, service, version } = outside;
  const { compression, legacyForms, cluster } = foundation;
  const pages: Pages = new Pages({
    ...providers,
    runtime,
    service: isAlone(outside) ? null : workerDocuments(service.bus, (query) => pages.own(query)),
    uptimeBeforeMs: Math.max(0, runtime.wallMs() - service.startedWallMs),
    version,
    compression,
    legacyForms,
    methods: () => live.methods,
    metricsApart: config.server.metricsListen !== null,
    documents: documentsOf(live, config.hosted, version),
    isDraining: () => live.isDraining,
    serves: () => servedBy(hosting),
    node: cluster?.identity ?? null,
    publicNode: cluster?.shown ?? null,
    region: config.cluster.region,
    cluster: () => cluster?.membership.health() ?? null,
    incidents: foundation.view.incidents,
    socketOf: providers.sockets.report,
    cache: () => providers.cache.report(),
    payments: () => hosting?.paywall?.payments.gauges() ?? null,
    sessions: () => hosting?.sessions?.gauges() ?? null,
    metered: () => hosting?.credit.metered() ?? null,
  });
  return pages;
}

/** Which callers are served now. Callers with a key need the database. */
function servedBy(hosting: Hosting | null): ServedCallers {
  const contact = hosting?.admission.keyCache.contact ?? "heard";
  const some = contact !== "cut_off" || hosting?.admission.keyless === true;
  const keys = contact === "heard" && hosting?.credit.maySpend() !== false;
  return { keys, some };
}

/** Adds the node to each log line, since the logs of several nodes end in one place. */
function labelled(log: Logger, { cluster }: Config): Logger {
  return cluster.enabled ? log.child({ node: cluster.nodeId, region: cluster.region }) : log;
}

/** Warns in production if callers without a key are served without limits of a key. */
export function warnOfKeyless({ production, hosted }: Config, log: Logger): void {
  if (production && hosted?.keyless === true)
    log.warn(
      "hosted.keyless is true: callers without a key are served unmetered; keep this port private",
    );
}

/**
 * HTTP to providers: in batches where providers accept them, and within the limits of providers.
 */
function limitedHttp(
  http: BatchUpstream,
  parts: { readonly runtime: Runtime; readonly budgets: ProviderBudgets },
  observer: Observer,
): Pick<Upstream, "send"> {
  const { runtime, budgets } = parts;
  const batching = batchingUpstream(http, {
    runtime,
    counts: observer.batches,
    countAgain: ({ provider, methodName = "" }) =>
      (budgets.find(provider)?.takeAgain(methodName) ?? null) === null,
    onRefused: (provider, most) => observer.batchRefused(provider, most),
  });
  return meteredUpstream(batching, parts);
}

/** Everything that talks to providers, with its observer. */
function upstreamSide(
  config: Config,
  { runtime, log, service, sent }: Outside & { readonly sent: ProviderLimits },
  live: Pick<LiveState, "config">,
) {
  const shares = sent.ofMachine;
  const timerWheel = new TimerWheel(runtime);
  const guard = new SsrfGuard({ rules: addressRulesOf(config), mark: markOf(config) });
  const budget = new MemoryBudget(() => live.config.limits);
  const budgets = new ProviderBudgets({ ...sent, runtime });
  const socketParts = { runtime, timerWheel, guard, budget, limits: socketLimits(live) };
  const sockets = meteredSockets(createSockets(socketParts), { runtime, budgets });
  const { bus, workers, id } = service;
  const observer = new Observer(log, runtime, { worker: bus.self, workers, salt: id });
  const buffers = new BufferPool(() => observer.returnedTwice());
  const httpParts = { budget, timerWheel, client: config.upstream.http, shares, buffers };
  const http = new HttpUpstream(runtime, httpLimits(live), guard, {
    ...httpParts,
    onAgain: (requests) => {
      observer.pipelinedAgain += requests;
    },
    onHandshake: (isResumed, proved) => observer.shookHands(isResumed, proved),
    limited: (direct) => limitedHttp(direct, { runtime, budgets }, observer),
  });
  const upstreams = { http, ws: sockets };
  const cordons = new CordonTable();
  const registry = registryOf(config, { runtime, observer, shares, budgets, cordons });
  const limits = (): Config["limits"] => live.config.limits;
  const parts = { runtime, timerWheel, upstreams, limits, log, buffers };
  const { router, cache, accepted } = liveRouter(parts, observer, live);
  const common = { runtime, timerWheel, registry, consistency: () => live.config.consistency };
  const streams = streamSide(bus, {
    ...{ ...common, router, sockets, shares, limits, log, budget, workers },
    onMove: (move) => observer.streamMoved(move),
  });
  const { subscriptions } = streams;
  const health = new HealthUpdates({ ...common, upstreams, subscriptions, accepted }, service);
  return {
    timerWheel,
    budget,
    budgets,
    observer,
    registry,
    cordons,
    upstreams,
    router,
    cache,
    users: { health, subscriptions, upstreams: [http, sockets, budgets] },
    viewExchange: health.viewExchange,
    ...streams,
    sockets,
    check: (profile: Profile) => checkProviders({ runtime, timerWheel, guard }, profile),
    async close(): Promise<void> {
      health.close();
      subscriptions.close();
      await Promise.all(Object.values(upstreams).map((upstream) => upstream.close()));
      budgets.close();
      await sent.close();
    },
  };
}

/** The served chains, and what opens more of them. */
function chainsOf(
  {
    observer,
    subscriptions,
    ...parts
  }: Pick<Outside, "runtime" | "log" | "knownChain"> & {
    readonly registry: ProfileRegistry;
    readonly observer: Observer;
    readonly subscriptions: Subscriptions;
  },
  live: Pick<LiveState, "config">,
) {
  const config = (): Config => live.config;
  const served = new ServedChains({ ...parts, config });
  const onDemand = new ChainsOnDemand({
    ...parts,
    config,
    served,
    callsOf: (chain) => observer.callsOf(chain),
    subscribed: () => subscriptions.subscribedChains(),
  });
  const close = (): void => {
    onDemand.end();
    served.end();
  };
  return { served, onDemand, close };
}

/**
 * The registry of the served profiles. The observer is told of every attempt, and of changes in the
 * health of providers.
 */
function registryOf(
  { chains, profiles, selection }: Config,
  {
    runtime,
    observer,
    ...settings
  }: Pick<ProfileRegistrySettings, "shares" | "budgets" | "cordons"> & {
    readonly runtime: Runtime;
    readonly observer: Observer;
  },
): ProfileRegistry {
  return new ProfileRegistry(chains, profiles, runtime, {
    ...selection,
    ...settings,
    onChange: (profile, chain, change) => observer.channelChanged(profile, chain, change),
    attemptsOf: (profile, chain) => {
      const of = observer.history.chain(profile, chain);
      return (attempt, method) => of.attempted(attempt, method);
    },
  });
}

/** The router with its cache; both follow the live configuration. */
function liveRouter(
  parts: Pick<RouterParts, "runtime" | "timerWheel" | "upstreams" | "limits"> &
    Pick<Outside, "log"> & { readonly buffers: BufferPool },
  { splits, reasks, feed }: Observer,
  live: Pick<LiveState, "config">,
) {
  const { secret, redisUrl } = live.config;
  const secondTier = new SecondTier({ ...parts, secret });
  secondTier.use(redisUrl);
  const cache = new CachedAnswers(() => live.config.cache, secondTier, parts.buffers);
  const accepted = new AcceptedTransactions(parts.runtime);
  const router = new Router({
    ...parts,
    cache,
    accepted,
    recording: feed,
    hedge: () => live.config.hedge,
    split: { splitLimits: () => live.config.logs, counts: splits },
    reasks,
    coalesce: () => live.config.coalesce,
    byAccount: () => live.config.cache?.byAccount === true,
  });
  return { router, cache, accepted };
}

/** Subscriptions and filters. */
function streamSide(
  bus: Bus,
  parts: SubscriptionParts & {
    readonly limits: () => Config["limits"];
    readonly registry: ProfileRegistry;
    readonly budget: MemoryBudget;
  },
) {
  const { runtime, timerWheel, limits, budget } = parts;
  const sockets = parts.workers === 1 ? parts.sockets : shareSockets({ ...parts, bus });
  const logFilters = new SharedHoldings<readonly string[]>(bus, runtime, "log filters");
  const subscriptions = new Subscriptions({ ...parts, sockets, logFilters });
  const filters = new Filters({
    runtime,
    timerWheel,
    subscriptions,
    limits,
    budget,
    secret: randomBytes,
    callers: new SharedHoldings<number>(bus, runtime, "filters"),
  });
  return { subscriptions, filters };
}

/** Limits of provider answers over HTTP, from the live configuration. */
function httpLimits(live: Pick<LiveState, "config">): HttpLimits {
  return {
    ...HTTP_LIMITS,
    get maxAnswerBytes() {
      return live.config.limits.maxAnswerBytes;
    },
  };
}

/** Limits of provider answers over sockets, where one message is one answer. */
function socketLimits(live: Pick<LiveState, "config">): SocketLimits {
  return {
    ...SOCKET_LIMITS,
    get maxFrameBytes() {
      return Math.min(SOCKET_LIMITS.maxFrameBytes, live.config.limits.maxAnswerBytes);
    },
  };
}

/** Listens for clients and, if configured, for metric scrapers. */
async function listenTo(
  { limits, server }: Config,
  pages: Pages,
  parts: Omit<ServerParts, "limits" | "page" | "fastPath">,
) {
  const { host, port, metricsListen, fastPath } = server;
  const metrics =
    metricsListen === null
      ? null
      : await listenForMetrics({ ...metricsListen, text: (use) => pages.operatorMetrics(use) });
  try {
    return {
      metrics,
      server: await listen(
        { ...parts, limits, page: (path) => pages.page(path), fastPath },
        host,
        port,
      ),
    };
  } catch (error) {
    metrics?.close();
    throw error;
  }
}

/** How calls are paid: by funding a key, or per call; null = not available. */
function payingOf(
  hosting: Hosting | null,
  { server, hosted }: Config,
  authentication: AuthenticationParts,
) {
  if (hosting === null) return { rpcPaywall: null, payPerCall: null };
  const { paywall, callPaywall, keyOf } = hosting;
  const rpcPaywall =
    paywall === null
      ? null
      : new RpcPaywall({ ...authentication, keyOf, paywall, publicUrl: server.publicUrl });
  const hasCalls = callPaywall !== null && hosted !== null;
  const payPerCall = hasCalls ? { paywall: callPaywall, tariff: hosted.tariff } : null;
  return { rpcPaywall, payPerCall };
}

/**
 * The documents of the live configuration, except `hosted`, which a reload does not change. Their
 * renderers are loaded at the first request.
 */
function documentsOf(
  live: Pick<LiveState, "config">,
  hosted: Config["hosted"],
  version: string,
): () => Promise<Documents> {
  let documents: Promise<Documents> | null = null;
  const open = async (): Promise<Documents> => {
    const [{ Documents }, { factsOf }] = await Promise.all([
      import("../web/discovery/documents.ts"),
      import("../web/discovery/facts.ts"),
    ]);
    let of: Config | null = null;
    let facts: DocumentFacts | null = null;
    return new Documents(() => {
      const { config } = live;
      if (facts === null || config !== of) facts = factsOf({ ...config, hosted }, version);
      of = config;
      return facts;
    });
  };
  return () => {
    documents ??= open();
    return documents;
  };
}

/** The provider side of Custom profiles. */
function servingOf({
  registry,
  ...rest
}: { readonly registry: ProfileRegistry } & Pick<CustomServing, "rules" | "check">): CustomServing {
  const served = {
    put: (profile: Profile) => registry.put(profile),
    remove: (...ids: readonly string[]) => registry.remove(...ids),
    has: (id: string) => registry.served(id) !== undefined,
  };
  // As in URL resolution: `public` stands in for `premium` if `premium` is not configured.
  const servedBy = (slug: string) =>
    registry.profile(slug) ?? (slug === "premium" ? registry.profile("public") : undefined);
  const servedChains = (slug: string): readonly string[] => [
    ...(servedBy(slug)?.trackers.keys() ?? []),
  ];
  const chains = () => registry.configuredChains;
  return { ...rest, chains, served, status: statusIn(registry), servedChains };
}

/** Allowed addresses of user-supplied providers: the public internet, but not this service. */
function addressRulesOf({ hosted, server }: Config): AddressRules {
  const own = server.publicUrl === null ? undefined : URL.parse(server.publicUrl)?.hostname;
  return {
    allowPrivate: hosted?.allowPrivateProviders ?? false,
    ownHost: own === undefined ? null : bareHost(own),
  };
}

/**
 * Creates unique request ids: start time, a random part, the worker if there are several, and a
 * counter.
 */
function requestIds(runtime: Runtime, worker: string | null): () => string {
  const start = Math.floor(runtime.wallMs()).toString(36);
  const chance = Math.floor(runtime.random() * 36 ** 4).toString(36);
  const prefix = `req-${start}${chance}-${worker === null ? "" : `${worker}-`}`;
  let count = 0;
  return () => prefix + (++count).toString(36);
}
