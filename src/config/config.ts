// Builds the configuration from file, environment and flags: one frozen record, or all faults.
// Precedence: flag, environment, file, default. Pure: reads no file, no process environment and no
// clock. Settings and defaults are in `config/schema.ts`.
import type { z } from "zod";
import type { Profile } from "../core/provider/profile.ts";
import type { CacheSettings } from "../core/routing/cache-terms.ts";
import type { SelectionSettings } from "../core/routing/strategy.ts";
import type { DeadlineClass } from "../core/rpc/method.ts";
import type { ConfiguredMethod } from "../core/rpc/method-table.ts";
import { chainOf, chainWords, namedChains, servesAll } from "./chains.ts";
import { type ConfigFault, pathText, type TableFault, tableFaults } from "./config-fault.ts";
import { ConfigDocument, type Variables } from "./document.ts";
import { hostedOf } from "./hosted.ts";
import { bytesOf, camel, named, schemaOf } from "./kinds.ts";
import { defaultProfile, hedgeOf, type ProfileSource, providerSets } from "./provider-sets.ts";
import type { RuleInput } from "./rule.ts";
import { brokenRules } from "./rules.ts";
import {
  type ConfigFile,
  configFile,
  environment,
  flags as flagTable,
  profile as profileTable,
} from "./schema.ts";
import { type VendorUse, vendorUses } from "./vendor-providers.ts";
import { warningsOf } from "./warnings.ts";

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
  | {
      readonly ok: true;
      readonly config: Config;
      readonly warnings: readonly ConfigFault[];
      /** The entries of vendors, where they stand. */
      readonly vendors: readonly (VendorUse & { readonly line: number; readonly column: number })[];
    }
  | { readonly ok: false; readonly faults: readonly ConfigFault[] };

/** Milliseconds a call may take, all attempts together, by class of method. */
export type Deadlines = Readonly<Record<DeadlineClass, number>>;

/** All settings of the service; frozen. Holds secrets: never log it. */
export type Config = Readonly<ReturnType<typeof configOf>>;

/** Checks all settings and builds the configuration. Never throws. */
export function loadConfig(input: ConfigInput): ConfigResult {
  const production = input.env["NODE_ENV"] === "production";
  const document = new ConfigDocument(input.text, input.env);
  const file = configFile.safeParse(document.data);
  const variables = numbersRead(input.env, Object.keys(environment.shape));
  const switches = numbersRead(input.flags, Object.keys(flagTable.shape));
  const env = environment.safeParse(variables);
  const flag = flagTable.safeParse(switches);
  const needsSecret =
    production && file.data?.hosted.enabled === true && variables["SVC_SECRET"] === undefined;
  const noSecret = "must be set in production when hosted.enabled is true";
  const devnet = input.flags["devnet"] !== undefined;
  const rules = { production, devnet, databaseUrl: variables["DATABASE_URL"] };
  const faults = [
    ...(needsSecret
      ? [unplaced("environment", "", { path: ["SVC_SECRET"], at: "value", message: noSecret })]
      : []),
    ...fileFaults(input.file, document, file.error?.issues, rules),
    ...issueFaults(env.error?.issues, environment, variables).map((fault) =>
      unplaced("environment", "", fault),
    ),
    ...issueFaults(flag.error?.issues, flagTable, switches).map((fault) =>
      unplaced("command line", "--", fault),
    ),
  ].slice(0, MAX_FAULTS);
  if (faults.length > 0 || !file.success || !env.success || !flag.success)
    return { ok: false, faults };
  const doubts = warningsOf(document.data, file.data);
  const warnings = doubts.map((doubt) => placed(input.file, document, doubt));
  const config = frozen(configOf(file.data, env.data, flag.data, production));
  const vendors = vendorUses(file.data, config.chains).map((use) => ({
    ...use,
    ...document.valueAt(use.path),
  }));
  return { ok: true, config, warnings, vendors };
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
  around: RuleInput["around"],
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
    ...brokenRules(document.data, around),
  ];
  const faults = found
    .filter(({ path }) => !document.isUnresolved(path))
    .map((fault) => placed(file, document, fault));
  // A setting that breaks two rules of its kind says what it may be once.
  const once = new Map([...known, ...faults].map((fault) => [JSON.stringify(fault), fault]));
  return [...once.values()].sort((a, b) => a.line - b.line || a.column - b.column);
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

/** The configuration; its parts have the names and meanings of the file. */
function configOf(file: ConfigFile, env: Environment, flag: Flags, production: boolean) {
  const { chains, profiles, sources } = servedBy(file);
  const methods: readonly ConfiguredMethod[] = Object.entries(file.methods).map(
    ([name, { kind = null, block_param: blockAt = null, cu = null, deadline }]) => {
      return { name, kind, blockAt, cu, deadline: deadline === undefined ? null : camel(deadline) };
    },
  );
  return {
    server: serverOf(file, env, flag),
    upstream: file.upstream,
    dataDir: file.data_dir,
    /** Empty = embedded storage; secret otherwise. */
    storageUrl: env.DATABASE_URL ?? file.storage.url,
    logLevel: flag["log-level"] ?? env.LOG_LEVEL ?? file.log_level,
    production,
    devnet: flag.devnet !== undefined || file.devnet,
    devnetNodes: flag["devnet-nodes"] ?? file.devnet_nodes,
    chains,
    profiles,
    /** What serves chains that are opened when they are called; null = others are not served. */
    onDemand: servesAll(file) ? { profiles: sources } : null,
    limits: {
      ...named(file.limits),
      maxAttempts: file.limits.max_attempts ?? Number.POSITIVE_INFINITY,
    },
    logs: {
      ...named(file.logs),
      split: file.logs.split !== "off",
      maxParts: file.logs.max_parts ?? (file.hosted.enabled ? CHARGED_PARTS : FREE_PARTS),
    },
    deadlines: deadlinesOf(file),
    methods,
    selection: selectionOf(file, env),
    /** How answers are kept; null = they are not. */
    cache: cacheOf(file.cache),
    /** The server of the second tier of the cache; null = there is none. Secret. */
    redisUrl: file.cache === "off" ? null : file.cache.redis_url || null,
    coalesce: file.coalesce === "on",
    /** How reads are hedged where a profile does not say; null = not at all. */
    hedge: hedgeOf(file.hedge),
    consistency: file.consistency,
    cluster: named(file.cluster),
    /** Whether status pages are open to everyone. */
    console: { public: file.console.public ?? !production },
    /** Null = a plain router. */
    hosted: hostedOf(file.hosted),
    /** `SVC_SECRET`, at least 32 bytes; null = not set. */
    secret: env.SVC_SECRET ?? null,
    previousSecret: env.SVC_SECRET_PREVIOUS ?? null,
  };
}

/** The chains of a file, and its profiles with the providers of each. */
function servedBy(file: ConfigFile) {
  const namedInFile = namedChains(file);
  const words = chainWords(namedInFile);
  const sources = sourcesOf(file);
  const served = namedInFile.map((each) => {
    const { chainName, settings, known } = each;
    const chain = chainOf(each, words);
    const isNamed = (name: string): boolean => words.get(name.toLowerCase()) === chainName;
    const isCached = settings["cache"] !== "off";
    return { chain, sets: providerSets(sources, { chain, known, isNamed, isCached }) };
  });
  const profiles = sources.map(({ slug, settings }): Profile => {
    const own = served.flatMap(({ chain, sets }) => {
      const set = sets.get(slug);
      return set === undefined ? [] : [[chain.chainName, set] as const];
    });
    return {
      slug,
      owner: null,
      managed: slug === "public" || slug === "premium",
      defaultStrategy: settings.routing.default_strategy ?? file.routing.default_strategy,
      chains: new Map(own),
    };
  });
  const isServing = ({ slug, chains }: Profile): boolean =>
    chains.size > 0 || servesAll(file) || file.profiles[slug] !== undefined;
  return {
    chains: served.map(({ chain }) => chain),
    profiles: profiles.filter(isServing),
    sources,
  };
}

/** The profiles of a file; where it has none, the one that serves URLs without a profile. */
function sourcesOf({ profiles }: ConfigFile): readonly ProfileSource[] {
  const sources = Object.entries(profiles).map(([slug, settings]) => ({ slug, settings }));
  return sources.length === 0
    ? [{ slug: defaultProfile([]), settings: profileTable.parse({}) }]
    : sources;
}

/** Most parts of a call where nothing is charged, and where each part is. */
const FREE_PARTS = 200;
const CHARGED_PARTS = 20;

/** A link that opens one session of the operator. */
interface SignInLink {
  readonly secretHash: string;
  readonly expiresAtMs: number;
}

/** No file can set one. */
const NO_LINK: { readonly signInLink: SignInLink | null } = { signInLink: null };

function serverOf({ server, hosted }: ConfigFile, env: Environment, flag: Flags) {
  const trustedProxies: readonly string[] = server.trusted_proxies.flatMap((text) =>
    text.split(",").map((range) => range.trim()),
  );
  return {
    host: flag.host ?? env.HOST ?? server.host,
    port: flag.port ?? env.PORT ?? server.port,
    /** Processes that serve; `auto` = as many as the machine has cores, within a bound. */
    workers: flag.workers ?? env.SVC_WORKERS ?? server.workers ?? 1,
    /** Without a slash at the end; null = the address it listens on. */
    publicUrl: server.public_url?.replace(/\/+$/, "") ?? null,
    /** IP addresses and ranges. */
    trustedProxies,
    compression: server.compression,
    fastPath: server.fast_path,
    /** Secret; null = nobody is the operator. */
    operatorToken: server.operator_token ?? hosted.operator_token ?? null,
    ...NO_LINK,
    /** Where `/metrics` is served on an address of its own; null = nowhere. */
    metricsListen: server.metrics_listen === undefined ? null : addressOf(server.metrics_listen),
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

function selectionOf({ strategies, cluster }: ConfigFile, env: Environment): SelectionSettings {
  const file = named(strategies);
  return {
    ...file,
    fastestMinCalls: env.FASTEST_MIN_CALLS ?? file.fastestMinCalls,
    fastestMinSuccessRate: env.FASTEST_MIN_SUCCESS_RATE ?? file.fastestMinSuccessRate,
    lwBeta: env.LW_BETA ?? file.lwBeta,
    lwMsFloor: env.LW_MS_FLOOR ?? file.lwMsFloor,
    lwExploreFloor: env.LW_EXPLORE_FLOOR ?? file.lwExploreFloor,
    lwMinCalls: env.LW_MIN_CALLS ?? file.lwMinCalls,
    lwMinSuccessRate: env.LW_MIN_SR ?? file.lwMinSuccessRate,
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

/** Freezes records and lists all the way down; sets and maps are read-only by type. */
export function frozen<T>(value: T): T {
  if (value instanceof Map) value.forEach(frozen);
  else if (Array.isArray(value)) value.forEach(frozen);
  else if (typeof value === "object" && value !== null) Object.values(value).forEach(frozen);
  return Object.freeze(value);
}
