// Configurations of proxyd (TOML): backends in groups, and the methods that go to each group. A
// file is of one chain and does not name it. Source: proxyd/config.go and example.config.toml of
// ethereum-optimism/infra.
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
import type { Secrets } from "./secrets.ts";
import { allDeadlines, logLevelOf, metricsAddress, redisUrlOrNull } from "./service-settings.ts";

const OWN_KEYS =
  "keys of callers are made by svc itself (`hosted.enabled: true`), and none is carried over";
const HEADS = "svc follows the heads of all providers by itself: `consistency`";

/** Converts a configuration; `chainId`: the chain that its backends serve, null = not known. */
export function fromProxyd(
  file: ImportedValue,
  secrets: Secrets,
  chainId: number | null,
): ConfigDraft {
  const groups = groupsOf(file);
  const backends = file.child("backends").entries();
  const taken = new Set<string>();
  const providers = backends.flatMap(([name, backend]) => {
    const own = groups.filter((group) => group.backends.includes(name));
    const id = uniqueId(wordOf(name, "backend"), taken);
    return providerOf(backend, { id, name, secrets, chainId, groups: own, all: groups });
  });
  const main = groups[0];
  const settings = {
    ...serverOf(file),
    ...limitsOf(file),
    ...allDeadlines(timeoutMsOf(file)),
    ...cacheOf(file, secrets),
  };
  dropOfFile(file);
  const isOrdered = main?.strategy === "fallback" && !main.isWeighted;
  const sets = new Map<number, DraftSet>();
  if (chainId !== null && main !== undefined)
    sets.set(chainId, { settings: main.settings, notes: [] });
  const profile = {
    slug: "public",
    settings: { routing: { default_strategy: isOrdered ? "priority" : "load-balanced" } },
    sets,
    providers,
    vendors: [],
    notes: ["proxyd answers at `/`; svc at `/rpc/{chain}`, and `/ws/rpc/{chain}` for WebSockets"],
  };
  return {
    settings,
    chains: new Map(),
    profiles: [profile],
    servesAll: false,
    notes: file.notes(),
  };
}

interface Group {
  readonly name: string;
  readonly backends: readonly string[];
  readonly fallbacks: readonly string[];
  readonly strategy: string;
  readonly isWeighted: boolean;
  readonly maxRange: number | null;
  /** Methods that go to it. */
  readonly methods: readonly string[];
  /** Settings of its chain. */
  readonly settings: Fields;
}

/** The groups, that with the most methods first. */
function groupsOf(file: ImportedValue): readonly Group[] {
  const mappings = file.child("rpc_method_mappings").entries();
  if (mappings.length > 0)
    file.note(
      "rpc_method_mappings: proxyd refuses methods that are not named; svc serves every method " +
        "that is not for operators of nodes",
    );
  const groups = file
    .child("backend_groups")
    .entries()
    .map(([name, group]) => {
      const methods = mappings.filter(([, { value }]) => value === name).map(([method]) => method);
      return groupOf(name, group, methods);
    });
  return groups.toSorted((one, other) => other.methods.length - one.methods.length);
}

function groupOf(name: string, group: ImportedValue, methods: readonly string[]): Group {
  const isAware = group.flag("consensus_aware") === true;
  const strategy = group.text("routing_strategy") ?? (isAware ? "consensus_aware" : "fallback");
  const backends = [...group.texts("backends")];
  const maxRange = group.count("max_block_range") ?? group.count("consensus_max_block_range");
  const settings = {
    ...section("selection", { max_lag_blocks: group.count("consensus_max_block_lag") }),
    ...section("monitoring", { probe_interval_ms: group.durationMs("consensus_poller_interval") }),
  };
  if (strategy === "multicall")
    group.note("routing_strategy: multicall: svc sends a transaction to one provider at a time");
  const names = group.entries().map(([key]) => key);
  group.drop(
    HEADS,
    ...names.filter((key) => /^consensus_(?:ban|max_update|min|ha|handler)/.test(key)),
  );
  group.drop("multicall_rpc_error_check: belongs to multicall", "multicall_rpc_error_check");
  return {
    name,
    backends,
    fallbacks: group.texts("fallbacks"),
    strategy,
    isWeighted: group.flag("weighted_routing") === true,
    maxRange,
    methods,
    settings,
  };
}

interface BackendPlace {
  readonly id: string;
  readonly name: string;
  readonly secrets: Secrets;
  readonly chainId: number | null;
  /** The groups that it is in. */
  readonly groups: readonly Group[];
  /** All groups, that with the most methods first. */
  readonly all: readonly Group[];
}

function providerOf(source: ImportedValue, place: BackendPlace): readonly DraftProvider[] {
  const { id, secrets, chainId, groups, all } = place;
  const [main] = all;
  const address = (name: string): string | null => {
    const url = source.text(name);
    if (url === null) return null;
    return withLogin(secrets.url(url, id, source.child(name).path), source, secrets, id);
  };
  const url = address("rpc_url");
  const wsUrl = address("ws_url");
  dropOfBackend(source);
  if (groups.length === 0) {
    source.note("is in no backend group, and so left out");
    source.claim();
    return [];
  }
  if (url === null && wsUrl === null) return [];
  const ranges = groups.flatMap(({ maxRange }) => maxRange ?? []);
  const isBackup =
    groups.length > 0 && groups.every(({ fallbacks }) => fallbacks.includes(place.name));
  const order = main?.backends.indexOf(place.name) ?? -1;
  const rps = source.count("max_rps");
  const settings = given({
    url,
    ws_url: wsUrl,
    priority: order < 0 ? null : order + 1,
    weight: source.count("weight"),
    backup: isBackup ? true : null,
    limits: rps === null ? null : { rps },
    headers: secrets.headers(source.child("headers"), id),
    ...methodsOf(groups, all, ranges.length === 0 ? null : Math.min(...ranges)),
  });
  return [{ settings: { id, ...settings }, chainId, notes: source.notes() }];
}

/** What a backend is asked for: a group beside the main one serves the methods mapped to it. */
function methodsOf(groups: readonly Group[], all: readonly Group[], range: number | null): Fields {
  const [main] = all;
  const isMain = main !== undefined && groups.includes(main);
  const own = new Set(groups.flatMap(({ methods }) => methods));
  const others = all.flatMap(({ methods }) => methods).filter((method) => !own.has(method));
  const limits = section("limits", { max_block_range: range });
  const refused = isMain && others.length > 0 ? others : null;
  return {
    ...(isMain || own.size === 0 ? {} : { methods: [...own] }),
    ...section("capabilities", { unsupported_methods: refused, ...limits }),
  };
}

/** A URL with the name and password of the backend, as references to variables. */
function withLogin(url: string, source: ImportedValue, secrets: Secrets, id: string): string {
  const [name, password] = [source.text("username"), source.text("password")];
  if (name === null && password === null) return url;
  source.note("username, password: stand in the URL, where special characters are escaped (%40)");
  const login = [
    name === null ? "" : secrets.text(name),
    password === null ? "" : secrets.key(password, `${id}_PASSWORD`, source.child("password").path),
  ].join(":");
  return url.replace("://", `://${login}@`);
}

function dropOfBackend(source: ImportedValue): void {
  source.drop("svc trusts the authorities of the system (NODE_EXTRA_CA_CERTS)", "ca_file");
  source.drop("svc sends no client certificates", "client_cert_file", "client_key_file");
  source.drop("svc opens one WebSocket to a provider for all callers", "max_ws_conns", "ws_port");
  source.drop("addresses of callers are not passed on", "strip_trailing_xff");
  source.drop(
    "svc checks every provider by itself",
    ...["probe_url", "probe_period_seconds", "probe_timeout_seconds"],
    ...["probe_failure_threshold", "probe_success_threshold", "skip_is_syncing_check"],
    "allowed_status_codes",
  );
  source.drop(
    "svc bounds whole calls: `deadlines`",
    "response_timeout_milliseconds",
    "max_retries",
  );
  source.drop(
    HEADS,
    ...["consensus_skip_peer_count", "consensus_forced_candidate", "consensus_receipts_target"],
    ...["safe_block_drift_threshold", "finalized_block_drift_threshold"],
  );
}

function serverOf(file: ImportedValue): Fields {
  const server = file.child("server");
  const metrics = file.child("metrics");
  const isOn = metrics.flag("enabled") === true;
  const address = metricsAddress(metrics.text("host"), metrics.count("port"));
  const level = logLevelOf(server.text("log_level"));
  const host = server.text("rpc_host");
  if (host === null) server.note("rpc_host: svc listens on this machine alone (server.host)");
  server.drop("svc serves WebSockets on the port of calls", "ws_host", "ws_port");
  server.drop("`limits.max_in_flight_bytes` bounds what is under way", "max_concurrent_rpcs");
  server.drop(
    "calls are put together by the setting `batch` of a provider",
    "max_upstream_batch_size",
  );
  server.drop(
    "svc writes no bodies of calls into its log",
    "enable_request_log",
    "max_request_body_log_len",
  );
  return {
    ...section("server", {
      host,
      port: server.count("rpc_port"),
      metrics_listen: isOn ? address : null,
    }),
    ...given({ log_level: level }),
  };
}

const LEAST_BYTES = 1_024;

function limitsOf(file: ImportedValue): Fields {
  const server = file.child("server");
  const body = server.count("max_body_size_bytes");
  const answer = file.child("backend").count("max_response_size_bytes");
  const batch = file.child("batch");
  batch.drop("svc says it in its own words", "error_message");
  return section("limits", {
    max_body_bytes: body === null ? null : Math.max(LEAST_BYTES, body),
    max_answer_bytes: answer === null ? null : Math.max(LEAST_BYTES, answer),
    max_batch_items: batch.count("max_size"),
  });
}

function timeoutMsOf(file: ImportedValue): number | null {
  const backend = file.child("backend");
  const whole = file.child("server").count("timeout_seconds");
  const seconds = backend.count("response_timeout_seconds");
  const ms =
    backend.count("response_timeout_milliseconds") ?? (seconds === null ? null : seconds * 1_000);
  backend.drop(
    "svc asks every provider once, one after the other (`limits.max_attempts` bounds it)",
    "max_retries",
  );
  backend.drop(
    "svc measures every provider and has circuit breakers of its own",
    ...["out_of_service_seconds", "max_latency_threshold", "max_degraded_latency_threshold"],
    "max_error_rate_threshold",
  );
  return whole === null ? ms : whole * 1_000;
}

function cacheOf(file: ImportedValue, secrets: Secrets): Fields {
  const cache = file.child("cache");
  const redis = file.child("redis");
  cache.drop("svc keeps what cannot change, and says for how long (`cache`)", "ttl");
  redis.drop("svc takes one address of a server", "read_url", "redis_cluster", "namespace");
  redis.drop("svc keeps answers in memory as well", "fallback_to_memory");
  const url = redis.text("url");
  if (cache.flag("enabled") !== true || url === null) return {};
  return section("cache", { redis_url: redisUrlOrNull(url, secrets, redis.child("url").path) });
}

function dropOfFile(file: ImportedValue): void {
  file.text("ws_backend_group");
  file.drop("svc serves over WebSocket what it serves over HTTP", "ws_method_whitelist");
  file.drop("svc says it in its own words", "whitelist_error_message");
  file.drop(OWN_KEYS, "authentication");
  file.drop(
    "callers are limited by `hosted`, where there are keys",
    "rate_limit",
    "sender_rate_limit",
  );
  file.drop(
    "svc checks no transactions before it sends them",
    "interop_validation",
    "tx_validation_middleware",
  );
  file.drop("svc asks providers alone", "ingress_rpc");
}
