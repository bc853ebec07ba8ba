// Configurations of eRPC (`erpc.yaml`): projects with networks and upstreams, and shared budgets.
// Source: docs.erpc.cloud/config and common/config.go of erpc/erpc.
import { type Fields, isRecord } from "../../core/fields.ts";
import type {
  ConfigDraft,
  DraftChain,
  DraftProfile,
  DraftProvider,
  DraftSet,
  DraftVendor,
} from "./draft.ts";
import { given, section, uniqueId, wordOf } from "./draft.ts";
import { attemptsOf, hedgeOf, timeoutMsOf, traceTimeoutMsOf } from "./erpc-failsafe.ts";
import {
  type ErpcPlace,
  providerFrom,
  vendorFrom,
  vendorOf,
  vendorProblem,
} from "./erpc-upstream.ts";
import type { ImportedValue } from "./imported-value.ts";
import type { Secrets } from "./secrets.ts";
import { allDeadlines, logLevelOf, metricsAddress, redisUrlOrNull } from "./service-settings.ts";

const OWN_KEYS =
  "keys of callers are made by svc itself (`hosted.enabled: true`), and none is carried over";
const CALLERS = "callers are limited by `hosted`, where there are keys";

const PUBLIC_LIST = "`chains: { all: true }` serves known chains by their public endpoints";
/** Upstreams that are no providers, and what takes their place. */
const LISTS: Readonly<Record<string, string>> = {
  repository: PUBLIC_LIST,
  superchain: PUBLIC_LIST,
  erpc: "an instance of eRPC is a provider like any other: put its URL under each chain",
};

/** Converts a configuration. */
export function fromErpc(file: ImportedValue, secrets: Secrets): ConfigDraft {
  const budgets = new Map(
    file
      .child("rateLimiters")
      .child("budgets")
      .items()
      .map((budget) => [budget.text("id") ?? "", budget.child("rules").items()]),
  );
  const projects = file.child("projects").items();
  const chains = new Map<number, DraftChain>();
  const slugs = new Set<string>();
  const converted = projects.map((project) => {
    const id = project.text("id") ?? "main";
    const slug = uniqueId(projects.length === 1 ? "public" : wordOf(id, "project"), slugs);
    return projectOf(project, { slug, id, chains, place: { secrets, budgets, used: new Map() } });
  });
  file.drop(`${OWN_KEYS}; an operator has \`server.operator_token\``, "admin");
  file.drop("`/api/health` and `/api/ready` tell the health", "healthCheck");
  file.drop("svc sends no traces", "tracing");
  file.drop("svc reaches providers without a proxy", "proxyPools");
  file.child("rateLimiters").claim();
  file.drop("nodes are told apart by their database: `cluster`", "clusterKey");
  const metrics = file.child("metrics");
  const settings = {
    ...serverOf(file.child("server"), metrics),
    ...given({ log_level: logLevelOf(file.text("logLevel")) }),
    ...section("limits", { max_attempts: most(converted.map(({ attempts }) => attempts)) }),
    ...allDeadlines(
      most(converted.map(({ timeoutMs }) => timeoutMs)),
      most(converted.map(({ traceTimeoutMs }) => traceTimeoutMs)),
    ),
    ...cacheOf(file.child("database"), secrets),
  };
  const profiles = converted.map(({ profile }) => profile);
  const servesAll = converted.some((project) => project.servesAll);
  return { settings, chains, profiles, servesAll, notes: file.notes() };
}

function most(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((number) => number !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function serverOf(server: ImportedValue, metrics: ImportedValue): Fields {
  const host = server.text("httpHostV4");
  const port = server.count("httpPortV4") ?? server.count("httpPort");
  const proxies = server.texts("trustedIPForwarders");
  if (host === null)
    server.note(
      "httpHostV4: eRPC listens on all addresses, svc on this machine alone (server.host)",
    );
  server.drop("svc listens on one address: server.host", "httpHostV6", "httpPortV6", "listenV6");
  server.drop("svc listens on one address: server.host", "listenV4");
  server.drop("svc speaks no gRPC", "grpcEnabled", "grpcHostV4", "grpcPortV4");
  server.drop("put a proxy that ends TLS in front of svc", "tls");
  server.drop("each call has the time that `deadlines` gives its method", "maxTimeout");
  server.drop("svc compresses long answers by itself: server.compression", "enableGzip");
  server.drop(
    "`limits.drain_timeout_ms` bounds the end",
    "waitBeforeShutdown",
    "waitAfterShutdown",
  );
  server.drop("names and addresses of chains are `chains` and their aliases", "aliasing");
  const isOn = metrics.flag("enabled") !== false;
  const address = metricsAddress(
    metrics.text("hostV4") ?? metrics.text("host"),
    metrics.count("port"),
  );
  return section("server", {
    host,
    port,
    trusted_proxies: proxies.length === 0 ? null : proxies,
    metrics_listen: isOn ? address : null,
  });
}

function cacheOf(database: ImportedValue, secrets: Secrets): Fields {
  database.drop("nodes share what they know by `cluster` and PostgreSQL", "sharedState");
  const cache = database.child("evmJsonRpcCache");
  if (!cache.isRecord) {
    if (isRecord(database.value) && database.value["evmJsonRpcCache"] === null)
      return { cache: "off" };
    return {};
  }
  const connectors = cache.child("connectors").items();
  const url = (connector: ImportedValue): string | null => {
    const redis = connector.child("redis");
    const name = redis.has("uri") ? "uri" : "addr";
    const text = redis.text(name);
    return text === null ? null : redisUrlOrNull(text, secrets, redis.child(name).path);
  };
  const redis = connectors.map(url).find((text) => text !== null) ?? null;
  const memory = connectors
    .map((connector) => connector.child("memory"))
    .find(({ isRecord: isOne }) => isOne);
  const size = /^(\d+)\s*([KMG])i?B$/i.exec(memory?.text("maxTotalSize") ?? "");
  cache.drop("svc keeps what cannot change, and says for how long (`cache`)", "policies");
  cache.drop("svc keeps answers in memory, and on a Redis or Valkey server", "connectors");
  cache.drop("answers are kept as they came", "compression");
  return section("cache", {
    max_bytes: size === null ? null : `${size[1]}${size[2]?.toUpperCase()}iB`,
    redis_url: redis,
  });
}

interface ProjectParts {
  readonly slug: string;
  readonly id: string;
  readonly chains: Map<number, DraftChain>;
  readonly place: ErpcPlace;
}

interface Converted {
  readonly profile: DraftProfile;
  readonly attempts: number | null;
  readonly timeoutMs: number | null;
  readonly traceTimeoutMs: number | null;
  readonly servesAll: boolean;
}

function projectOf(project: ImportedValue, { slug, id, chains, place }: ProjectParts): Converted {
  const upstreams = project.child("upstreams").items();
  const defaults = project.child("upstreamDefaults").claim();
  const full = upstreams.map((each) => each.replacedBy(withDefaults(each.value, defaults)));
  const { providers, vendors, others } = entriesOf(full, project.child("providers").items(), place);
  const pollMs = new Map<number, number>();
  for (const upstream of full) {
    const evm = upstream.child("evm");
    const [chainId, ms] = [evm.count("chainId"), evm.durationMs("statePollerInterval")];
    if (chainId !== null && ms !== null)
      pollMs.set(chainId, Math.min(ms, pollMs.get(chainId) ?? ms));
  }
  const networks = networksOf(project, { chains, pollMs });
  project.drop(OWN_KEYS, "auth");
  project.drop(CALLERS, "rateLimitBudget");
  project.drop("every origin may call: keys are what protects", "cors");
  project.drop(
    "svc refuses what is for operators of nodes: `methods`",
    "ignoreMethods",
    "allowMethods",
  );
  const was = `\`/${id}/evm/1\` of eRPC is here \`/rpc/${slug === "public" ? "" : `profile/${slug}/`}1\``;
  return {
    attempts: networks.attempts,
    timeoutMs: networks.timeoutMs,
    traceTimeoutMs: networks.traceTimeoutMs,
    profile: {
      slug,
      settings: {
        routing: { default_strategy: "fastest" },
        ...(networks.hedge === null ? {} : { hedge: networks.hedge }),
      },
      sets: networks.sets,
      providers,
      vendors,
      notes: [was, ...others, ...project.notes()],
    },
    // eRPC opens a chain of a vendor, or of the public list, when it is first asked for.
    servesAll: others.some(isPublicList) || vendors.some(({ chainIds }) => chainIds.length === 0),
  };
}

interface Entries {
  readonly providers: readonly DraftProvider[];
  readonly vendors: readonly DraftVendor[];
  /** Notes of what is no provider, or a vendor that no entry can name. */
  readonly others: readonly string[];
}

/** The entries that upstreams and providers of eRPC become. */
function entriesOf(
  upstreams: readonly ImportedValue[],
  sources: readonly ImportedValue[],
  place: ErpcPlace,
): Entries {
  const providers: DraftProvider[] = [];
  const vendors: DraftVendor[] = [];
  const others: string[] = [];
  for (const upstream of upstreams) {
    const vendor = vendorOf(upstream.text("endpoint") ?? "");
    const reason = LISTS[vendor?.name ?? ""] ?? vendorProblem(vendor?.name ?? "");
    if (vendor === null) providers.push(...providerFrom(upstream, place));
    else if (reason === null) vendors.push(vendorFrom(upstream, vendor, place));
    else {
      others.push(`upstream ${vendor.name}://: ${reason}`);
      upstream.claim();
    }
  }
  for (const source of sources) {
    const name = source.text("vendor") ?? "";
    const reason = vendorProblem(name);
    if (reason === null) vendors.push(vendorFrom(source, { name, key: null }, place));
    else {
      others.push(`provider ${name}: ${reason}`);
      source.claim();
    }
  }
  return { providers, vendors, others };
}

/** Whether a note is of a list of public endpoints. */
function isPublicList(note: string): boolean {
  return note.includes(PUBLIC_LIST);
}

/** A record with the members of another one where it has none. */
function withDefaults(value: unknown, defaults: unknown): unknown {
  if (!isRecord(value) || !isRecord(defaults)) return value;
  const below = (name: string): Fields =>
    isRecord(value[name]) && isRecord(defaults[name])
      ? { [name]: { ...defaults[name], ...value[name] } }
      : {};
  return { ...defaults, ...value, ...below("evm"), ...below("jsonRpc") };
}

interface NetworkParts {
  readonly chains: Map<number, DraftChain>;
  readonly pollMs: ReadonlyMap<number, number>;
}

interface Networks {
  readonly sets: ReadonlyMap<number, DraftSet>;
  readonly attempts: number | null;
  readonly timeoutMs: number | null;
  readonly traceTimeoutMs: number | null;
  readonly hedge: Fields | null;
}

function networksOf(project: ImportedValue, { chains, pollMs }: NetworkParts): Networks {
  const sets = new Map<number, DraftSet>();
  const defaults = project.child("networkDefaults");
  const networks = project.child("networks").items();
  const failsafes = [...networks, defaults];
  const attempts = failsafes.map(attemptsOf);
  const timeouts = failsafes.map(timeoutMsOf);
  const traceTimeouts = failsafes.map(traceTimeoutMsOf);
  const hedges = failsafes.map(hedgeOf).filter((hedge) => hedge !== null);
  for (const [chainId, ms] of pollMs)
    sets.set(chainId, { settings: { monitoring: { probe_interval_ms: ms } }, notes: [] });
  for (const network of [...networks, defaults]) dropOfNetwork(network);
  for (const network of networks) {
    const evm = network.child("evm");
    const chainId = evm.count("chainId");
    if (network.text("architecture") === "svm" || chainId === null) continue;
    const alias = network.text("alias");
    chains.set(chainId, {
      ...(alias === null ? {} : { name: wordOf(alias, `chain-${chainId}`) }),
      settings: given({ finality_depth: evm.count("fallbackFinalityDepth") }),
      notes: [],
    });
    const read = ["chainId", "fallbackFinalityDepth"];
    const others = evm
      .entries()
      .map(([name]) => name)
      .filter((name) => !read.includes(name));
    evm.drop("svc sees to it by itself, or has it for all chains alike", ...others);
    sets.set(chainId, { settings: sets.get(chainId)?.settings ?? {}, notes: network.notes() });
  }
  return {
    sets,
    attempts: most(attempts),
    timeoutMs: most(timeouts),
    traceTimeoutMs: most(traceTimeouts),
    hedge: hedges[0] ?? null,
  };
}

function dropOfNetwork(network: ImportedValue): void {
  network.drop(CALLERS, "rateLimitBudget");
  network.drop("svc orders by measured latency: strategy `fastest`", "selectionPolicy");
  network.drop("wishes of callers come by header: docs/routing.md", "directiveDefaults");
  network.drop("svc answers each call from a provider or its cache", "staticResponses");
  network.drop("equal calls share one answer: `coalesce`", "multiplexing");
}
