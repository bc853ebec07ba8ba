// Builds the configuration from file, environment and flags: one frozen record, or all faults.
// Precedence: flag, environment, file, default. Pure: reads no file, no process environment and no
// clock. Settings and defaults are in `config/schema.ts`.
import { parse as lookUpSuffix } from "tldts";
import type { z } from "zod";
import type { BatchLimits } from "../core/provider/budget/batch-limits.ts";
import type { BudgetLimits } from "../core/provider/budget/budget-limits.ts";
import type { Chain } from "../core/provider/chain.ts";
import { operatorOf } from "../core/provider/operator.ts";
import type {
  Consistency,
  HedgeSettings,
  Profile,
  Provider,
  ProviderSet,
} from "../core/provider/profile.ts";
import type { CacheSettings } from "../core/routing/cache-terms.ts";
import type { SelectionSettings } from "../core/routing/strategy.ts";
import type { DeadlineClass } from "../core/rpc/method.ts";
import type { ConfiguredMethod } from "../core/rpc/method-table.ts";
import { usualVerification } from "../core/stream/log-verification.ts";
import { schemaOf } from "./allowed.ts";
import { type ConfigFault, pathText, type TableFault, tableFaults } from "./config-fault.ts";
import { type ConfigDocument, readDocument, type Variables } from "./document.ts";
import { type HostedConfig, hostedOf } from "./hosted.ts";
import { bytesOf } from "./kinds.ts";
import { brokenRules } from "./rules.ts";
import {
  type ConfigFile,
  configFile,
  type DEADLINES,
  environment,
  flags as flagTable,
} from "./schema.ts";
import { splitCredentials } from "./url-credentials.ts";
import { cacheWarnings, regionWarnings, saleWarnings, warningsOf } from "./warnings.ts";

/** Input of a configuration. */
export interface ConfigInput {
  /** The file's name as shown in faults. */
  readonly file: string;
  /** The file's content; bytes must be UTF-8. */
  readonly text: string | Uint8Array;
  readonly env: Variables;
  /** Values of `--port`, `--host`, `--workers`, `--log-level` as written. */
  readonly flags: Readonly<Record<string, string | undefined>>;
}

/** A configuration, or all of its faults. */
export type ConfigResult =
  /** `warnings`: settings that are valid but probably mistakes. */
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly ConfigFault[] }
  | { readonly ok: false; readonly faults: readonly ConfigFault[] };

/** Bounds on what callers may ask for. */
export interface Limits {
  readonly maxBodyBytes: number;
  readonly maxBatchItems: number;
  readonly batchConcurrency: number;
  readonly maxInFlightBytes: number;
  readonly maxCallerBytes: number;
  readonly maxAnswerBytes: number;
  readonly maxConnections: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly maxSocketRequests: number;
  readonly maxSocketBytes: number;
  readonly maxSocketSubscriptions: number;
  readonly maxLogFilters: number;
  readonly maxKeylessLogFilters: number;
  readonly maxFilters: number;
  readonly maxCallerFilters: number;
  readonly maxFilterBytes: number;
  readonly maxSocketQueueBytes: number;
  readonly socketPingMs: number;
  readonly maxAttempts: number;
  readonly firstAttemptShare: number;
}

/** How calls over ranges of blocks are asked for in parts. */
export interface LogSettings {
  readonly split: boolean;
  readonly maxBlocks: number;
  readonly maxParts: number;
  /** Of callers without a key, where others have keys. */
  readonly maxKeylessParts: number;
  readonly maxBytes: number;
}

/** Milliseconds a call may take, all attempts together, by class of method. */
export type Deadlines = Readonly<Record<DeadlineClass, number>>;

/** All settings of the service; frozen. Holds secrets: never log it. */
export interface Config {
  readonly server: {
    readonly host: string;
    readonly port: number;
    /** Processes that serve; `auto` = as many as the machine has cores, within a bound. */
    readonly workers: "auto" | number;
    /** Without a slash at the end; null = the address it listens on. */
    readonly publicUrl: string | null;
    /** IP addresses and ranges. */
    readonly trustedProxies: readonly string[];
    readonly compression: "auto" | "off";
    /** `off`: every connection is served by node's HTTP server. */
    readonly fastPath: "auto" | "off";
    /** Secret; null = nobody is the operator. */
    readonly operatorToken: string | null;
    /** A link that opens one session of the operator; null = none. No file can set it. */
    readonly signInLink: { readonly secretHash: string; readonly expiresAtMs: number } | null;
    /** Where `/metrics` is served on an address of its own; null = nowhere. */
    readonly metricsListen: { readonly host: string; readonly port: number } | null;
  };
  readonly upstream: {
    /** The client for plain HTTP; `https:` always uses undici. */
    readonly http: "own" | "undici";
  };
  readonly dataDir: string;
  /** Empty = embedded storage; secret otherwise. */
  readonly storageUrl: string;
  readonly logLevel: ConfigFile["log_level"];
  readonly production: boolean;
  readonly devnet: boolean;
  /** Local nodes of the devnet. */
  readonly devnetNodes: number;
  readonly chains: readonly Chain[];
  readonly profiles: readonly Profile[];
  readonly limits: Limits;
  readonly logs: LogSettings;
  readonly deadlines: Deadlines;
  readonly methods: readonly ConfiguredMethod[];
  readonly selection: SelectionSettings;
  /** How answers are kept; null = they are not. */
  readonly cache: CacheSettings | null;
  /** The server of the second tier of the cache; null = there is none. Secret. */
  readonly redisUrl: string | null;
  /** Equal reads under way share one call. */
  readonly coalesce: boolean;
  /** How reads are hedged where a profile does not say; null = not at all. */
  readonly hedge: HedgeSettings | null;
  /** Which view of the chain callers get where a profile does not say. */
  readonly consistency: Consistency;
  readonly cluster: ClusterConfig;
  readonly console: {
    /** Whether status pages are open to everyone. */
    readonly public: boolean;
  };
  /** Null = a plain router. */
  readonly hosted: HostedConfig | null;
  /** `SVC_SECRET`, at least 32 bytes; null = not set. */
  readonly secret: string | null;
  /** `SVC_SECRET_PREVIOUS`; null = not set. */
  readonly previousSecret: string | null;
}

/** This node among those that serve together. */
export interface ClusterConfig {
  readonly enabled: boolean;
  /** Empty = made up at each start. */
  readonly nodeId: string;
  readonly region: string;
  /** Null = as many as were seen lately. */
  readonly expectedNodes: number | null;
  /** Empty = the database of the service; secret otherwise. */
  readonly listenUrl: string;
}

/** Checks all settings and builds the configuration. Never throws. */
export function loadConfig(input: ConfigInput): ConfigResult {
  const production = input.env["NODE_ENV"] === "production";
  const document = readDocument(input.text, input.env);
  const file = configFile.safeParse(document.data);
  const variables = numbersRead(input.env, Object.keys(environment.shape));
  const switches = numbersRead(input.flags, Object.keys(flagTable.shape));
  const env = environment.safeParse(variables);
  const flag = flagTable.safeParse(switches);
  const needsSecret =
    production && file.data?.hosted.enabled === true && variables["SVC_SECRET"] === undefined;
  const hasDatabase = (variables["DATABASE_URL"] ?? file.data?.storage.url ?? "") !== "";
  const faults = [
    ...(file.data?.cluster.enabled === true && !hasDatabase
      ? [
          placed(input.file, document, {
            path: ["cluster", "enabled"],
            at: "value",
            message:
              "must be false without a PostgreSQL database (DATABASE_URL or storage.url): the " +
              "embedded store belongs to one machine",
          }),
        ]
      : []),
    ...(needsSecret
      ? [
          unplaced("environment", "", {
            path: ["SVC_SECRET"],
            at: "value",
            message: "must be set in production when hosted.enabled is true",
          }),
        ]
      : []),
    ...fileFaults(input.file, document, file.error?.issues, production),
    ...issueFaults(env.error?.issues, environment, variables).map((fault) =>
      unplaced("environment", "", fault),
    ),
    ...issueFaults(flag.error?.issues, flagTable, switches).map((fault) =>
      unplaced("command line", "--", fault),
    ),
  ].slice(0, MAX_FAULTS);
  if (faults.length > 0 || !file.success || !env.success || !flag.success)
    return { ok: false, faults };
  const doubts = [
    ...warningsOf(document.data),
    ...regionWarnings(file.data),
    ...cacheWarnings(file.data),
    ...saleWarnings(file.data),
  ];
  const warnings = doubts.map((doubt) => placed(input.file, document, doubt));
  return {
    ok: true,
    config: frozen(configOf(file.data, env.data, flag.data, production)),
    warnings,
  };
}

const MAX_FAULTS = 1_000;

type Environment = z.output<typeof environment>;
type Flags = z.output<typeof flagTable>;

/** The given settings, with numbers parsed; empty texts count as absent. */
function numbersRead(settings: Variables, names: readonly string[]): GivenSettings {
  const given = names.flatMap((name): readonly (readonly [string, string | number])[] => {
    const text = Object.hasOwn(settings, name) ? settings[name] : undefined;
    if (text === undefined || text === "") return [];
    return [[name, /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text]];
  });
  return Object.fromEntries(given);
}

type GivenSettings = Readonly<Record<string, string | number>>;

/** What the validator has against a table's input; undefined = nothing. */
type Issues = readonly z.core.$ZodIssue[] | undefined;

/** The faults of a table's input. Its JSON Schema is made only where there is a fault to tell. */
function issueFaults(issues: Issues, table: z.ZodType, data: unknown): readonly TableFault[] {
  return issues === undefined ? [] : tableFaults(issues, schemaOf(table), data);
}

function fileFaults(
  file: string,
  document: ConfigDocument,
  issues: Issues,
  production: boolean,
): readonly ConfigFault[] {
  const known = document.problems.map(({ place, path, message }) => ({
    file,
    ...place,
    path: pathText(path),
    message,
  }));
  if (document.data === null) return known;
  const found: readonly TableFault[] = [
    ...issueFaults(issues, configFile, document.data),
    ...brokenRules(document.data, production),
  ];
  const faults = found
    .filter(({ path }) => !document.isUnresolved(path))
    .map((fault) => placed(file, document, fault));
  return toldOnce([...known, ...faults]).sort((a, b) => a.line - b.line || a.column - b.column);
}

/** A setting that breaks two rules of its kind says what it may be once. */
function toldOnce(faults: readonly ConfigFault[]): ConfigFault[] {
  const textOf = ({ line, column, path, message }: ConfigFault): string =>
    JSON.stringify([line, column, path, message]);
  return [...new Map(faults.map((fault) => [textOf(fault), fault])).values()];
}

function placed(
  file: string,
  document: ConfigDocument,
  { path, at, message }: TableFault,
): ConfigFault {
  return {
    file,
    ...(at === "key" ? document.keyAt(path) : document.valueAt(path)),
    path: pathText(path),
    message,
  };
}

function unplaced(file: string, prefix: string, { path, message }: TableFault): ConfigFault {
  return { file, line: 0, column: 0, path: `${prefix}${pathText(path)}`, message };
}

function configOf(file: ConfigFile, env: Environment, flag: Flags, production: boolean): Config {
  const chains = Object.entries(file.chains).map(([chainName, chain]) => chainOf(chainName, chain));
  return {
    server: serverOf(file, env, flag),
    upstream: file.upstream,
    dataDir: file.data_dir,
    storageUrl: env.DATABASE_URL ?? file.storage.url,
    logLevel: flag["log-level"] ?? env.LOG_LEVEL ?? file.log_level,
    production,
    devnet: file.devnet,
    devnetNodes: flag["devnet-nodes"] ?? file.devnet_nodes,
    chains,
    profiles: Object.entries(file.profiles).map(([slug, profile]) =>
      profileOf(slug, profile, { chains, file }),
    ),
    limits: limitsOf(file),
    logs: logSettingsOf(file),
    deadlines: deadlinesOf(file),
    methods: Object.entries(file.methods).map(([name, method]) => methodConfigOf(name, method)),
    selection: selectionOf(file, env),
    cache: cacheOf(file.cache),
    redisUrl: file.cache === "off" ? null : file.cache.redis_url || null,
    coalesce: file.coalesce === "on",
    hedge: hedgeOf(file.hedge),
    consistency: file.consistency,
    cluster: {
      enabled: file.cluster.enabled,
      nodeId: file.cluster.node_id,
      region: file.cluster.region,
      expectedNodes: file.cluster.expected_nodes,
      listenUrl: file.cluster.listen_url,
    },
    console: { public: file.console.public ?? !production },
    hosted: hostedOf(file.hosted),
    secret: env.SVC_SECRET ?? null,
    previousSecret: env.SVC_SECRET_PREVIOUS ?? null,
  };
}

function serverOf({ server, hosted }: ConfigFile, env: Environment, flag: Flags): Config["server"] {
  return {
    host: flag.host ?? env.HOST ?? server.host,
    port: flag.port ?? env.PORT ?? server.port,
    workers: flag.workers ?? env.SVC_WORKERS ?? server.workers ?? 1,
    publicUrl: server.public_url?.replace(/\/+$/, "") ?? null,
    trustedProxies: server.trusted_proxies.flatMap((text) =>
      text.split(",").map((range) => range.trim()),
    ),
    compression: server.compression,
    fastPath: server.fast_path,
    operatorToken: server.operator_token ?? hosted.operator_token ?? null,
    signInLink: null,
    metricsListen: server.metrics_listen === undefined ? null : addressOf(server.metrics_listen),
  };
}

/** Most parts of a call where nothing is charged, and where each part is. */
const FREE_PARTS = 200;
const CHARGED_PARTS = 20;

function logSettingsOf({ logs, hosted }: ConfigFile): LogSettings {
  return {
    split: logs.split !== "off",
    maxBlocks: logs.max_blocks,
    maxParts: logs.max_parts ?? (hosted.enabled ? CHARGED_PARTS : FREE_PARTS),
    maxKeylessParts: logs.max_keyless_parts,
    maxBytes: logs.max_bytes,
  };
}

function limitsOf({ limits }: ConfigFile): Limits {
  return {
    maxBodyBytes: limits.max_body_bytes,
    maxBatchItems: limits.max_batch_items,
    batchConcurrency: limits.batch_concurrency,
    maxInFlightBytes: limits.max_in_flight_bytes,
    maxCallerBytes: limits.max_caller_bytes,
    maxAnswerBytes: limits.max_answer_bytes,
    maxConnections: limits.max_connections,
    headersTimeoutMs: limits.headers_timeout_ms,
    requestTimeoutMs: limits.request_timeout_ms,
    keepAliveTimeoutMs: limits.keep_alive_timeout_ms,
    drainTimeoutMs: limits.drain_timeout_ms,
    maxSocketRequests: limits.max_socket_requests,
    maxSocketBytes: limits.max_socket_bytes,
    maxSocketSubscriptions: limits.max_socket_subscriptions,
    maxLogFilters: limits.max_log_filters,
    maxKeylessLogFilters: limits.max_keyless_log_filters,
    maxFilters: limits.max_filters,
    maxCallerFilters: limits.max_caller_filters,
    maxFilterBytes: limits.max_filter_bytes,
    maxSocketQueueBytes: limits.max_socket_queue_bytes,
    socketPingMs: limits.socket_ping_ms,
    maxAttempts: limits.max_attempts ?? Number.POSITIVE_INFINITY,
    firstAttemptShare: limits.first_attempt_share,
  };
}

function deadlinesOf({ deadlines }: ConfigFile): Deadlines {
  return {
    cheap: deadlines.cheap_ms,
    standard: deadlines.standard_ms,
    default: deadlines.default_ms,
    traceTx: deadlines.trace_tx_ms,
    traceBlock: deadlines.trace_block_ms,
  };
}

/** `host:port`, the host of an IPv6 address without its brackets. */
function addressOf(text: string): { readonly host: string; readonly port: number } {
  const colon = text.lastIndexOf(":");
  return {
    host: text.slice(0, colon).replace(/^\[|\]$/g, ""),
    port: Number(text.slice(colon + 1)),
  };
}

const DEADLINE_CLASS: Readonly<Record<(typeof DEADLINES)[number], DeadlineClass>> = {
  cheap: "cheap",
  standard: "standard",
  default: "default",
  trace_tx: "traceTx",
  trace_block: "traceBlock",
};

function methodConfigOf(
  name: string,
  { kind, block_param, cu, deadline }: ConfigFile["methods"][string],
): ConfiguredMethod {
  return {
    name,
    kind: kind ?? null,
    blockAt: block_param ?? null,
    cu: cu ?? null,
    deadline: deadline === undefined ? null : DEADLINE_CLASS[deadline],
  };
}

function selectionOf({ strategies, cluster }: ConfigFile, env: Environment): SelectionSettings {
  return {
    fastestMinCalls: env.FASTEST_MIN_CALLS ?? strategies.fastest_min_calls,
    fastestMinSuccessRate: env.FASTEST_MIN_SUCCESS_RATE ?? strategies.fastest_min_success_rate,
    lwBeta: env.LW_BETA ?? strategies.lw_beta,
    lwMsFloor: env.LW_MS_FLOOR ?? strategies.lw_ms_floor,
    lwExploreFloor: env.LW_EXPLORE_FLOOR ?? strategies.lw_explore_floor,
    lwMinCalls: env.LW_MIN_CALLS ?? strategies.lw_min_calls,
    lwMinSuccessRate: env.LW_MIN_SR ?? strategies.lw_min_success_rate,
    exploreShare: strategies.explore_share,
    region: cluster.region === "" ? null : cluster.region,
  };
}

function cacheOf(cache: ConfigFile["cache"]): CacheSettings | null {
  if (cache === "off") return null;
  const methods = Object.entries(cache.methods).map(([name, method]): [string, number] => [
    name,
    method === "off" ? 0 : method.ttl_ms,
  ]);
  return {
    maxBytes: bytesOf(cache.max_bytes),
    accountMaxBytes: bytesOf(cache.account_max_bytes),
    byAccount: cache.scope === "account",
    methods: new Map(methods),
  };
}

function setCacheOf(chain: ConfigFile["chains"][string] | undefined, cache: ProfileFile["cache"]) {
  if (chain?.cache !== "off" && cache === undefined) return {};
  const isOn = chain?.cache !== "off" && cache !== "off";
  const shareWith = cache === undefined || cache === "off" ? [] : cache.share_with;
  return { cache: { isOn, shareWith } };
}

function hedgeOf(hedge: ConfigFile["hedge"]): HedgeSettings | null {
  if (hedge === "off") return null;
  const { max_extra: maxExtra, floor_ms: floorMs, ceiling_ms: ceilingMs } = hedge;
  return { maxExtra, floorMs, ceilingMs };
}

function chainOf(chainName: string, chain: ConfigFile["chains"][string]): Chain {
  return {
    chainId: chain.chain_id,
    chainName,
    name: chain.name ?? chainName,
    aliases: chain.aliases,
    blockTimeMs: chain.block_time_ms,
    finalityDepth: chain.finality_depth,
  };
}

type ProfileFile = ConfigFile["profiles"][string];
type SetFile = ProfileFile["chains"][string];
type ProviderFile = SetFile["providers"][number];

function profileOf(
  slug: string,
  profile: ProfileFile,
  { chains, file }: { readonly chains: readonly Chain[]; readonly file: ConfigFile },
): Profile {
  const hedge = profile.hedge === undefined ? {} : { hedge: hedgeOf(profile.hedge) };
  const consistency = profile.consistency === undefined ? {} : { consistency: profile.consistency };
  const sets = chains.flatMap((chain): readonly (readonly [string, ProviderSet])[] => {
    const set = profile.chains[chain.chainName];
    if (set === undefined) return [];
    const cache = setCacheOf(file.chains[chain.chainName], profile.cache);
    return [[chain.chainName, { ...setOf(chain, set), ...hedge, ...consistency, ...cache }]];
  });
  return {
    slug,
    owner: null,
    managed: slug === "public" || slug === "premium",
    defaultStrategy: profile.routing.default_strategy ?? file.routing.default_strategy,
    chains: new Map(sets),
  };
}

function setOf(chain: Chain, set: SetFile): ProviderSet {
  const aliases = aliasesOf(set.providers);
  return {
    chain,
    maxLagBlocks: set.selection.max_lag_blocks,
    archivalThreshold: set.selection.archival_threshold,
    regionPreference: set.selection.region_preference,
    probeIntervalMs: set.monitoring.probe_interval_ms,
    socketHeads: set.monitoring.socket_heads,
    newHeadsTimeoutMs: set.subscriptions.new_heads_timeout_ms,
    maxBackfillBlocks: set.subscriptions.max_backfill_blocks,
    backfillTimeoutMs: set.subscriptions.backfill_timeout_ms,
    logVerification: set.subscriptions.log_verification ?? usualVerification(chain.blockTimeMs),
    verificationBudget: set.subscriptions.verification_budget,
    subscriptionKinds: set.subscriptions.kinds,
    providers: set.providers.map((provider, index) =>
      providerOf(provider, index, aliases[index] ?? `p${index + 1}`),
    ),
  };
}

/**
 * The configured alias of each provider, else pN by position; an N that would collide with another
 * provider's word is replaced by the next free number.
 */
function aliasesOf(providers: readonly ProviderFile[]): readonly string[] {
  const taken = new Set(
    providers.flatMap(({ id, alias }) => (alias === undefined ? [id] : [id, alias])),
  );
  let spare = providers.length;
  return providers.map(({ id, alias }, index) => {
    if (alias !== undefined) return alias;
    let choice = `p${index + 1}`;
    while (taken.has(choice) && choice !== id) choice = `p${++spare}`;
    return choice;
  });
}

function providerOf(provider: ProviderFile, index: number, alias: string): Provider {
  const { limits, ...capabilities } = provider.capabilities;
  const http = provider.url === undefined ? null : splitCredentials(provider.url);
  const ws = provider.ws_url === undefined ? null : splitCredentials(provider.ws_url);
  const authorization = http?.authorization ?? ws?.authorization ?? null;
  const addresses = { url: http?.url ?? null, wsUrl: ws?.url ?? null };
  return {
    index,
    id: provider.id,
    name: provider.name ?? provider.id,
    alias,
    ...addresses,
    operator: operatorOf(addresses, lookUpSuffix),
    priority: provider.priority,
    weight: provider.weight,
    backup: provider.backup,
    budget: provider.limits === undefined ? null : budgetOf(provider.limits),
    batch: provider.batch === undefined ? null : batchOf(provider.batch),
    price: provider.price,
    archival: provider.archival,
    region: provider.region ?? null,
    headers:
      authorization === null
        ? provider.headers
        : { ...provider.headers, Authorization: authorization },
    unsupportedMethods: new Set(capabilities.unsupported_methods),
    unsupportedCategories: new Set(capabilities.unsupported_categories),
    maxBlockRange: limits.max_block_range,
    maxBlockAge: limits.max_block_age,
    blockAgeMethods: new Set(limits.block_age_methods),
    errorRules: capabilities.error_rules.map(({ code, message_contains, category }) => ({
      code,
      messageContains: message_contains.map((piece) => piece.toLowerCase()),
      category,
    })),
    guarded: false,
  };
}

function batchOf({ max, wait_ms: waitMs }: NonNullable<ProviderFile["batch"]>): BatchLimits {
  return { max, waitMs };
}

function budgetOf(limits: NonNullable<ProviderFile["limits"]>): BudgetLimits {
  return {
    rps: limits.rps,
    concurrency: limits.concurrency,
    daily: limits.daily,
    monthly: limits.monthly,
    resetsOn: limits.resets_on,
    credits: new Map(Object.entries(limits.credits)),
  };
}

/** Freezes records and lists all the way down; sets and maps are read-only by type. */
export function frozen<T>(value: T): T {
  if (value instanceof Map) value.forEach(frozen);
  else if (Array.isArray(value)) value.forEach(frozen);
  else if (typeof value === "object" && value !== null) Object.values(value).forEach(frozen);
  return Object.freeze(value);
}
