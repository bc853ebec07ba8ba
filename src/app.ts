// The composition root: builds the service from a configuration and the outside, and owns its beginning, its reload and its end.
import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import type { Config } from "./config.ts";
import type { Chain } from "./core/chain.ts";
import { type MethodTable, methodTable } from "./core/method-table.ts";
import type { Profile } from "./core/profile.ts";
import { type AddressRules, bareHost } from "./core/public-address.ts";
import type { Sessions } from "./hosted/payments/session/sessions.ts";
import { type Hosting, openHosting } from "./hosting.ts";
import type { CustomServing } from "./hosting-profiles.ts";
import { createObserver } from "./observe.ts";
import { checkProviders } from "./upstream/check.ts";
import { createDirectory, type Directory } from "./upstream/directory.ts";
import { createFilters } from "./upstream/filter/filters.ts";
import { createGuard } from "./upstream/guard.ts";
import { createHeadWatch } from "./upstream/head-watch.ts";
import { createHttpUpstream, HTTP_LIMITS, type HttpLimits } from "./upstream/http/http.ts";
import { MemoryBudget } from "./upstream/memory-budget.ts";
import { createProber } from "./upstream/prober.ts";
import { createRoster, type Roster } from "./upstream/roster.ts";
import { createRouter } from "./upstream/router.ts";
import type { SocketLimits } from "./upstream/socket/socket.ts";
import { createSockets, SOCKET_LIMITS } from "./upstream/socket/sockets.ts";
import { createSubscriptions } from "./upstream/stream/subscriptions.ts";
import { createWheel } from "./upstream/wheel.ts";
import { requestBaseUrl, trustedProxiesOf } from "./web/client-address.ts";
import { createDocuments } from "./web/discovery/documents.ts";
import { type Facts, factsOf } from "./web/discovery/facts.ts";
import { statusIn } from "./web/handlers/profiles-status.ts";
import { listenForMetrics } from "./web/metrics-listener.ts";
import { createOldForms } from "./web/old-forms.ts";
import { createPages, type Pages } from "./web/pages.ts";
import { createResolver } from "./web/rpc/address.ts";
import type { ArrivalParts } from "./web/rpc/arrival.ts";
import { createCompression } from "./web/rpc/compression.ts";
import { createFilterMethods } from "./web/rpc/filter-methods.ts";
import type { RpcParts } from "./web/rpc/parts.ts";
import type { PayPerCall } from "./web/rpc/session.ts";
import { createToll } from "./web/rpc/toll.ts";
import { listen, type ServerParts } from "./web/server.ts";
import type { World } from "./world.ts";

/** A running service. */
export interface App {
  readonly port: number;
  /** Serves the profiles and limits of another configuration; the chains stay. Returns why not, or null. */
  reload(config: Config): string | null;
  /** Where `server.metrics_listen` listens; null = nowhere. */
  readonly metricsPort: number | null;
  /** Finishes what was accepted, then ends. */
  close(): Promise<void>;
}

/** What the service is built with besides its configuration. */
export interface Outside {
  readonly world: World;
  readonly log: Logger;
  readonly version: string;
}

/** Starts the service. */
export async function build(config: Config, { world, log, version }: Outside): Promise<App> {
  let live = config;
  let table = methodTable(config.methods);
  const methods = (): MethodTable => table;
  const providers = upstreamSide(config, { world, log }, () => live);
  const { wheel, observer, directory, router, roster, subscriptions, filters, sockets, budget, check } = providers;
  const serving = servingOf({ roster, directory, rules: addressRulesOf(config), check });
  warnOfKeyless(config, log);
  const hosting = config.hosted === null ? null : await openHosting({ config, settings: config.hosted, world, log, serving, methods });
  const oldForms = createOldForms(world, hosting?.oldForms ?? null);
  const proxies = trustedProxiesOf(config.server.trustedProxies);
  const compression = config.server.compression === "off" ? null : createCompression(proxies);
  const arrival = { resolver: createResolver(directory, observer), gate: hosting?.gate ?? null, proxies };
  const deadlineMs: RpcParts["deadlineMs"] = (method) => live.deadlines[method.deadline];
  const rpc: RpcParts = {
    ...arrival,
    filters: createFilterMethods({ ...arrival, filters, directory, deadlineMs, limits: () => live.limits }),
    world,
    wheel,
    router,
    observer,
    budget,
    oldForms,
    compression,
    ...payingOf(hosting, config, arrival),
    methods,
    deadlineMs,
    get limits() {
      return live.limits;
    },
  };
  const state = { draining: false };
  const facts = { subscriptions, filters, socketOf: sockets.report, ...gaugesOf(hosting) };
  const documents = createDocuments(factsIn(() => live, config.hosted, version));
  const metricsApart = config.server.metricsListen !== null;
  const about = { metricsApart, documents, isDraining: () => state.draining };
  const pages = createPages({ world, directory, observer, budget, version, compression, oldForms, methods, ...about, ...facts });
  const listening = await listenTo(config, pages, {
    world,
    api: hosting?.api ?? null,
    baseUrl: (request) => config.server.publicUrl ?? requestBaseUrl(request, proxies),
    requestId: requestIds(world),
    rpc,
    subscriptions,
  }).catch(async (error: unknown) => {
    await hosting?.close();
    throw error;
  });
  roster.begin();

  return {
    port: listening.server.port,
    metricsPort: listening.metrics?.port ?? null,
    reload(next) {
      if (chainsOf(next.chains) !== chainsOf(config.chains)) return "the chains differ, and chains are fixed until restart";
      if (!isDeepStrictEqual(next.hosted, config.hosted)) log.warn("`hosted` differs, and takes effect at restart; the rest is reloaded");
      live = next;
      table = methodTable(next.methods, table);
      roster.replace(next.profiles);
      return null;
    },
    async close() {
      state.draining = true;
      await listening.server.drain();
      listening.metrics?.close();
      await hosting?.close();
      await providers.close();
    },
  };
}

function warnOfKeyless({ production, hosted }: Config, log: Logger): void {
  if (production && hosted?.keyless === true) log.warn("hosted.keyless is true: whoever can reach this port is served without a key and unmetered");
}

/** Everything that talks to providers, and hears of what it does. */
function upstreamSide(config: Config, { world, log }: Pick<Outside, "world" | "log">, live: () => Config) {
  const wheel = createWheel(world);
  const guard = createGuard({ rules: addressRulesOf(config) });
  const budget = new MemoryBudget(() => live().limits);
  const sockets = createSockets({ world, wheel, guard, budget, limits: socketLimits(live) });
  const upstreams = { http: createHttpUpstream(world, httpLimits(live), guard, { budget, wheel }), ws: sockets };
  const observer = createObserver(log, world);
  const directory = createDirectory(config.chains, config.profiles, world, { ...config.selection, onChange: observer.channelChanged });
  const router = createRouter({ world, wheel, upstreams, limits: () => live().limits });
  const prober = createProber({ world, wheel, upstreams });
  const subscriptions = createSubscriptions({
    world,
    wheel,
    sockets,
    onMove: observer.streamMoved,
    http: upstreams.http,
    limits: () => live().limits,
    log,
  });
  const headWatch = createHeadWatch({ world, wheel, sockets, headSeen: subscriptions.headSeen });
  const filters = createFilters({ world, wheel, subscriptions, limits: () => live().limits, secret: randomBytes });
  const roster = createRoster({ directory, prober, headWatch, subscriptions, upstreams: Object.values(upstreams) });
  return {
    wheel,
    budget,
    observer,
    directory,
    router,
    roster,
    subscriptions,
    filters,
    sockets,
    check: (profile: Profile) => checkProviders({ world, wheel, guard }, profile),
    async close(): Promise<void> {
      prober.close();
      headWatch.close();
      subscriptions.close();
      await Promise.all(Object.values(upstreams).map((it) => it.close()));
    },
  };
}

/** Bounds of answers over HTTP, with the longest of the configuration that is live. */
function httpLimits(live: () => Config): HttpLimits {
  return {
    ...HTTP_LIMITS,
    get maxAnswerBytes() {
      return live().limits.maxAnswerBytes;
    },
  };
}

/** The same over sockets, where an answer is a message. */
function socketLimits(live: () => Config): SocketLimits {
  return {
    ...SOCKET_LIMITS,
    get maxFrameBytes() {
      return Math.min(SOCKET_LIMITS.maxFrameBytes, live().limits.maxAnswerBytes);
    },
  };
}

/** Listens for callers and, where that has an address of its own, for scrapers. */
async function listenTo({ limits, server }: Config, pages: Pages, parts: Omit<ServerParts, "limits" | "page" | "operatorToken">) {
  const { host, port, operatorToken, metricsListen } = server;
  const metrics = metricsListen === null ? null : await listenForMetrics({ ...metricsListen, text: pages.operatorMetrics });
  try {
    return { metrics, server: await listen({ ...parts, limits, page: pages.page, operatorToken }, host, port) };
  } catch (error) {
    metrics?.close();
    throw error;
  }
}

/** How payments stand. */
function gaugesOf(hosting: Hosting | null) {
  return { payments: () => hosting?.paywall?.payments.gauges() ?? null, sessions: () => hosting?.sessions?.gauges() ?? null };
}

/** How calls are paid for: at their URLs, or by themselves; null = not so. */
function payingOf(hosting: Hosting | null, { server, hosted }: Config, arrival: ArrivalParts) {
  if (hosting === null) return { toll: null, payPerCall: null };
  const { paywall, sessions, keyOf } = hosting;
  const toll = paywall === null ? null : createToll({ ...arrival, keyOf, paywall, publicUrl: server.publicUrl });
  return { toll, payPerCall: payPerCallOf(sessions, hosted) };
}

/** Calls that are paid for by themselves; null = there are none. */
function payPerCallOf(sessions: Sessions | null, hosted: Config["hosted"]): PayPerCall | null {
  return sessions === null || hosted === null ? null : { sessions, tariff: hosted.tariff };
}

/** The facts of the configuration that is live, but for `hosted`, which a reload leaves alone; the same record while that is the same. */
function factsIn(live: () => Config, hosted: Config["hosted"], version: string): () => Facts {
  let of: Config | null = null;
  let facts: Facts | null = null;
  return () => {
    const config = live();
    if (facts === null || config !== of) facts = factsOf({ ...config, hosted }, version);
    of = config;
    return facts;
  };
}

function chainsOf(chains: readonly Chain[]): string {
  return JSON.stringify(chains);
}

/** The side of providers for Custom profiles. */
function servingOf({
  roster,
  directory,
  ...rest
}: { readonly roster: Roster; readonly directory: Directory } & Pick<CustomServing, "rules" | "check">): CustomServing {
  const shelf = { put: roster.put, remove: roster.remove, has: (id: string) => directory.served(id) !== undefined };
  // As addresses are resolved: where `premium` is not configured, `public` serves it.
  const servedBy = (slug: string) => directory.profile(slug) ?? (slug === "premium" ? directory.profile("public") : undefined);
  const servedChains = (slug: string): readonly string[] => [...(servedBy(slug)?.trackers.keys() ?? [])];
  return { ...rest, shelf, status: statusIn(directory), servedChains };
}

/** Where users' providers may be: on the internet, and not at this service itself. */
function addressRulesOf({ hosted, server }: Config): AddressRules {
  const own = server.publicUrl === null ? undefined : URL.parse(server.publicUrl)?.hostname;
  return { allowPrivate: hosted?.allowPrivateProviders ?? false, ownHost: own === undefined ? null : bareHost(own) };
}

/** Unique per request: when the process started, a part by chance, and a count. */
function requestIds(world: World): () => string {
  const prefix = `req-${Math.floor(world.wallMs()).toString(36)}${Math.floor(world.random() * 36 ** 4).toString(36)}-`;
  let count = 0;
  return () => prefix + (++count).toString(36);
}
