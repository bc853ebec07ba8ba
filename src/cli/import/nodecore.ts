// Configurations of nodecore (`nodecore.yml`). Source: docs/nodecore/01-config.md to
// 07-app-storages.md of drpcorg/nodecore.
import type { Fields } from "../../core/fields.ts";
import {
  type ConfigDraft,
  type DraftProvider,
  type DraftSet,
  given,
  section,
  uniqueId,
  wordOf,
} from "./draft.ts";
import type { ImportedValue } from "./imported-value.ts";
import { limitsOf, type RateRule, refusedOf } from "./methods.ts";
import type { Secrets } from "./secrets.ts";
import { metricsAddress, redisUrlOrNull } from "./service-settings.ts";

/** What the converter has to know beside the file. */
export interface NodecoreParts {
  readonly secrets: Secrets;
  /** The id of a chain by its name in drpcorg/public `chains.yaml`; null = not known. */
  readonly chainIdOf: (name: string) => number | null;
}

/** The setting that takes the address of a connector. */
const ADDRESSES: Readonly<Record<string, "url" | "ws_url">> = {
  "json-rpc": "url",
  websocket: "ws_url",
};
const LEARNED = "svc learns it from the provider's answers";

/** Converts a configuration. */
export function fromNodecore(file: ImportedValue, parts: NodecoreParts): ConfigDraft {
  const config = file.child("upstream-config");
  const own = ownChains(file.child("chain-settings"));
  const chainIdOf = (name: string): number | null => own.get(name) ?? parts.chainIdOf(name);
  const budgets = budgetsOf(file.child("rate-limit"));
  const taken = new Set<string>();
  const providers = config
    .child("upstreams")
    .items()
    .flatMap((source) => providerOf(source, { ...parts, chainIdOf, budgets, taken }));
  const failsafe = config.child("failsafe-config");
  const retry = failsafe.child("retry");
  const hedge = failsafe.child("hedge");
  const delayMs = hedge.durationMs("delay");
  retry.drop("svc asks the next provider at once", "delay", "max-delay", "jitter");
  hedge.drop("svc asks one further provider", "max");
  const settings = {
    ...serverOf(file.child("server")),
    ...section("limits", { max_attempts: retry.count("attempts") }),
    ...(delayMs === null ? {} : { hedge: { floor_ms: delayMs, ceiling_ms: delayMs } }),
    ...cacheOf(file, parts.secrets),
  };
  config.drop("svc orders by measured latency: strategy `fastest`", "score-policy-config");
  config.drop("no caller is shown an older block: `consistency`", "integrity");
  config.drop("svc has one mode", "mode");
  file.drop(
    "keys of callers are made by svc itself (`hosted.enabled: true`), and none is carried over",
    "auth",
  );
  file.drop("keys that dRPC manages are not known to svc", "integration");
  const profile = {
    slug: "public",
    settings: { routing: { default_strategy: "fastest" } },
    sets: setsOf(config, providers, chainIdOf),
    providers,
    vendors: [],
    notes: [],
  };
  file.child("rate-limit").claim();
  const notes = [
    ...file.notes(),
    "`/queries/{chain}` of nodecore is here `/rpc/{chain}`, and `/ws/rpc/{chain}` for WebSockets",
  ];
  return { settings, chains: new Map(), profiles: [profile], servesAll: false, notes };
}

function serverOf(server: ImportedValue): Fields {
  const metrics = server.count("metrics-port");
  server.drop("put a proxy that ends TLS in front of svc", "tls");
  server.drop("svc reaches no hidden services", "tor-url");
  server.note("host: nodecore listens on all addresses, svc on this machine alone (server.host)");
  return section("server", {
    port: server.count("port"),
    metrics_listen: metrics === null ? null : metricsAddress(null, metrics),
  });
}

/** Chains that the file itself defines, by their short names. */
function ownChains(settings: ImportedValue): ReadonlyMap<string, number> {
  const protocols = settings.child("protocols").items();
  const chains = protocols.flatMap((protocol) => {
    protocol.text("type");
    return protocol.child("chains").items();
  });
  return new Map(
    chains.flatMap((chain) => {
      const id = Number(chain.text("chain-id") ?? "");
      return Number.isSafeInteger(id) && id > 0
        ? chain.texts("short-names").map((name): [string, number] => [name, id])
        : [];
    }),
  );
}

function setsOf(
  config: ImportedValue,
  providers: readonly DraftProvider[],
  chainIdOf: NodecoreParts["chainIdOf"],
): ReadonlyMap<number, DraftSet> {
  const sets = new Map<number, DraftSet>();
  for (const [name, chain] of config.child("chain-defaults").entries()) {
    const chainId = chainIdOf(name);
    const pollMs = chain.durationMs("poll-interval");
    chain.drop("svc checks every provider by itself", "options");
    if (chainId === null || !providers.some((provider) => provider.chainId === chainId)) continue;
    const settings = section("monitoring", { probe_interval_ms: pollMs });
    sets.set(chainId, { settings, notes: chain.notes() });
  }
  return sets;
}

interface ProviderParts extends NodecoreParts {
  readonly budgets: ReadonlyMap<string, readonly ImportedValue[]>;
  readonly taken: Set<string>;
}

function providerOf(source: ImportedValue, parts: ProviderParts): readonly DraftProvider[] {
  const id = uniqueId(wordOf(source.text("id") ?? "", "provider"), parts.taken);
  const name = source.text("chain") ?? "";
  const chainId = parts.chainIdOf(name);
  if (chainId === null) {
    source.note(`chain \`${name}\`: svc does not know its id`);
    source.claim();
    return [];
  }
  const connectors = source.child("connectors").items();
  const urls: { url?: string; ws_url?: string } = {};
  let headers: Fields = {};
  for (const connector of connectors) {
    const type = connector.text("type");
    const url = connector.text("url");
    const key = ADDRESSES[type ?? ""];
    connector.drop("svc trusts the authorities of the system (NODE_EXTRA_CA_CERTS)", "ca");
    if (key === undefined || url === null) {
      source.note(`connector ${type ?? "?"}: svc speaks JSON-RPC over HTTP and WebSocket`);
      continue;
    }
    urls[key] = parts.secrets.url(url, id, connector.child("url").path);
    headers = { ...headers, ...parts.secrets.headers(connector.child("headers"), id) };
  }
  if (urls.url === undefined && urls.ws_url === undefined) return [];
  const settings = given({
    ...urls,
    limits: limitsOf(rulesOf(source, parts.budgets), source),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...methodsOf(source.child("methods")),
  });
  source.drop("heads come by WebSocket where there is one", "head-connector");
  source.drop("it is set for a whole chain: monitoring.probe_interval_ms", "poll-interval");
  source.drop("svc checks every provider by itself", "options");
  source.drop("svc asks the next provider at once: `limits.max_attempts`", "failsafe-config");
  source.drop(LEARNED, "rate-limit-auto-tune");
  return [{ settings: { id, ...settings }, chainId, notes: source.notes() }];
}

function methodsOf(methods: ImportedValue): Fields {
  const { methods: names, categories, unknown } = refusedOf(methods.texts("disable"));
  if (unknown.length > 0) methods.note("disable: patterns that name no method known to svc");
  methods.drop("every method is asked of a provider until it refuses it", "enable");
  methods.drop(LEARNED, "ban-duration");
  return section("capabilities", {
    unsupported_methods: names.length === 0 ? null : names,
    unsupported_categories: categories.length === 0 ? null : categories,
  });
}

function budgetsOf(groups: ImportedValue): ReadonlyMap<string, readonly ImportedValue[]> {
  const budgets = groups.items().flatMap((group) => group.child("budgets").items());
  return new Map(
    budgets.map((budget) => [
      budget.text("name") ?? "",
      budget.child("config").child("rules").items(),
    ]),
  );
}

/** The rules that hold for all methods; those of some methods are noted. */
function rulesOf(source: ImportedValue, budgets: ProviderParts["budgets"]): readonly RateRule[] {
  const name = source.text("rate-limit-budget");
  const shared = name === null ? [] : (budgets.get(name) ?? []);
  const rules = [...shared, ...source.child("rate-limit").child("rules").items()];
  return rules.flatMap((rule) => {
    const [method, pattern] = [rule.text("method"), rule.text("pattern")];
    const count = rule.count("requests");
    const periodMs = rule.durationMs("period");
    if (count === null || periodMs === null) return [];
    if (method === null && /^\^?\.[*+]\$?$/.test(pattern ?? "")) return [{ count, periodMs }];
    source.note(`a rate limit of ${method ?? "some methods"}: svc limits all methods together`);
    return [];
  });
}

function cacheOf(file: ImportedValue, secrets: Secrets): Fields {
  const storages = file.child("app-storages").items();
  const redis = storages.map((storage) => storage.child("redis")).find(({ isRecord }) => isRecord);
  const url = redis?.text("full-url") ?? null;
  if (!file.has("cache")) return {};
  file.drop("svc keeps what cannot change, and says for how long (`cache`)", "cache");
  if (url === null) return {};
  const kept = redisUrlOrNull(url, secrets, redis?.child("full-url").path ?? "");
  file.drop(
    "only the address of a Redis server is carried over, to cache.redis_url",
    "app-storages",
  );
  return section("cache", { redis_url: kept });
}
