// Rules that span several settings: uniqueness, references, exclusions. Works on data that has not
// been validated, so that it also reports where single settings are wrong. Knows no positions in
// the file, only paths, and never puts a value into a message.
import { isRecord } from "../core/fields.ts";
import { DEVNET_CHAIN } from "../core/provider/chain.ts";
import { DEFAULT_HEDGE } from "../core/routing/hedge.ts";
import { STRATEGIES, spellingsOf } from "../core/routing/strategy.ts";
import { MAX_ADDED_METHODS, mayBeConfigured, methodOf } from "../core/rpc/method.ts";
import type { TableFault } from "./config-fault.ts";
import { RESERVED_CHAIN_NAMES } from "./schema.ts";
import { splitCredentials } from "./url-credentials.ts";

type Path = TableFault["path"];

/** Reports a broken rule; `at` = whether the key or the value of the last path step is meant. */
type Report = (path: Path, message: string, at?: TableFault["at"]) => void;

/** Every broken rule of a configuration file. */
export function brokenRules(data: unknown, production: boolean): readonly TableFault[] {
  const broken: TableFault[] = [];
  const report: Report = (path, message, at = "value") => broken.push({ path, at, message });
  const chains = entriesOf(valueAt(data, "chains"));
  const profiles = entriesOf(valueAt(data, "profiles"));
  const devnet = valueAt(data, "devnet") === true;
  serviceRules(report, data, { chainCount: chains.length, devnet, production });
  chainRules(report, chains);
  methodRules(report, entriesOf(valueAt(data, "methods")));
  if (devnet) devnetRules(report, chains);
  for (const [slug, profile] of profiles)
    profileRules(report, ["profiles", slug, "chains"], { profile, chains, devnet });
  regionRules(report, data, profiles);
  cacheRules(report, data, profiles);
  hedgeRules(report, ["hedge"], valueAt(data, "hedge"));
  for (const [slug, profile] of profiles)
    hedgeRules(report, ["profiles", slug, "hedge"], valueAt(profile, "hedge"));
  return broken;
}

/** Methods whose answers could be kept, and profiles that there are. */
function cacheRules(report: Report, data: unknown, profiles: readonly Entry[]): void {
  for (const [name] of entriesOf(valueAt(data, "cache", "methods")))
    if (methodOf(name).cache === null)
      report(["cache", "methods", name], "must be a method whose answers can be kept");
  const slugs = new Set(profiles.map(([slug]) => slug));
  for (const [slug, profile] of profiles)
    for (const [index, other] of listOf(valueAt(profile, "cache", "share_with")).entries())
      if (typeof other === "string" && (!slugs.has(other) || other === slug))
        report(
          ["profiles", slug, "cache", "share_with", index],
          "must be the slug of another profile of this file",
        );
}

function hedgeRules(report: Report, path: Path, hedge: unknown): void {
  const floorMs = valueAt(hedge, "floor_ms") ?? DEFAULT_HEDGE.floorMs;
  const ceilingMs = valueAt(hedge, "ceiling_ms") ?? DEFAULT_HEDGE.ceilingMs;
  if (typeof floorMs === "number" && typeof ceilingMs === "number" && floorMs > ceilingMs)
    report(path, `must have a floor_ms (${floorMs}) not above its ceiling_ms (${ceilingMs})`);
}

interface Instance {
  readonly chainCount: number;
  readonly devnet: boolean;
  readonly production: boolean;
}

function serviceRules(
  report: Report,
  data: unknown,
  { chainCount, devnet, production }: Instance,
): void {
  const isHosted = valueAt(data, "hosted", "enabled") === true;
  if (isHosted && !devnet && valueAt(data, "profiles", "public") === undefined)
    report(
      ["hosted", "enabled"],
      "must be false without profile `public`: it serves accounts that have nothing left to pay with",
    );
  if (valueAt(data, "hosted", "allow_private_providers") === true && production)
    report(
      ["hosted", "allow_private_providers"],
      "must be false in production (NODE_ENV=production): with it, users reach into your network",
    );
  if (production && valueAt(data, "server", "public_url") === undefined)
    report(
      ["server"],
      "must have `public_url` in production (NODE_ENV=production): it goes into URLs that hold " +
        "keys, and callers choose `Host`",
    );
  for (const [name, other] of TWO_NAMES)
    if (valueAt(data, ...name) !== undefined && valueAt(data, ...other) !== undefined)
      report(other, `must not stand beside \`${name.join(".")}\`: they are one setting`);
  clusterRules(report, data);
  if (devnet && production)
    report(
      ["devnet"],
      "must be false in production (NODE_ENV=production): it starts local test nodes",
    );
  const chains = valueAt(data, "chains");
  if (!devnet && chainCount === 0 && (chains === undefined || isRecord(chains)))
    report(
      ["chains"],
      "must name at least one chain, or set `devnet: true` to try the service with local nodes",
    );
}

/** What `hosted.flush_interval_ms` and `hosted.node_timeout_ms` are without a setting. */
const FLUSH_MS = 1_000;
const NODE_TIMEOUT_MS = 30_000;
/** Heartbeats within the time after which a node counts as dead. */
const HEARTBEATS = 5;

/** Each write of usage is a node's sign of life. */
function clusterRules(report: Report, data: unknown): void {
  if (valueAt(data, "cluster", "enabled") !== true) return;
  const given = valueAt(data, "hosted", "node_timeout_ms");
  const flushMs = valueAt(data, "hosted", "flush_interval_ms") ?? FLUSH_MS;
  const timeoutMs = given ?? NODE_TIMEOUT_MS;
  if (typeof flushMs !== "number" || typeof timeoutMs !== "number") return;
  if (timeoutMs >= HEARTBEATS * flushMs) return;
  report(
    ["hosted", given === undefined ? "flush_interval_ms" : "node_timeout_ms"],
    "must leave room for 5 writes (flush_interval_ms) within the node timeout " +
      "(node_timeout_ms) where cluster.enabled is true: nodes would be taken for dead",
  );
}

/** Settings that have two names, of which only one may be given. */
const TWO_NAMES: readonly (readonly [name: readonly string[], other: readonly string[]])[] = [
  [
    ["server", "operator_token"],
    ["hosted", "operator_token"],
  ],
  ...STRATEGIES.map(spellingsOf).flatMap((spellings) =>
    spellings.flatMap((name, at) =>
      spellings.slice(at + 1).map((other) => [factorPath(name), factorPath(other)] as const),
    ),
  ),
];

function factorPath(name: string): readonly string[] {
  return ["hosted", "tariff", "factors", name];
}

type Entry = readonly [name: string, value: unknown];

/** Names, aliases and ids of chains: each must lead to one chain only. */
function chainRules(report: Report, chains: readonly Entry[]): void {
  const ids = new Map<number, string>();
  for (const [name, chain] of chains) {
    const id = valueAt(chain, "chain_id");
    if (typeof id !== "number") continue;
    const other = ids.get(id);
    if (other === undefined) ids.set(id, name);
    else
      report(["chains", name, "chain_id"], `must be unique: chain ${shown(other)} has the same id`);
  }
  const chainOfWord = new Map<string, string>();
  const take = (chain: string, word: string, path: Path, at: TableFault["at"]): void => {
    const fault = chainWordFault({ chain, word }, chainOfWord, ids);
    if (fault !== null) report(path, fault, at);
    else chainOfWord.set(word.toLowerCase(), chain);
  };
  // All names, then all aliases: a name wins over another chain's alias.
  for (const [name] of chains) take(name, name, ["chains", name], "key");
  for (const [name, chain] of chains)
    for (const [index, alias] of listOf(valueAt(chain, "aliases")).entries())
      if (typeof alias === "string") take(name, alias, ["chains", name, "aliases", index], "value");
}

/** Why a word may not lead to a chain; null = it may. */
function chainWordFault(
  { chain, word }: { readonly chain: string; readonly word: string },
  chainOfWord: ReadonlyMap<string, string>,
  ids: ReadonlyMap<number, string>,
): string | null {
  if (RESERVED_CHAIN_NAMES.has(word.toLowerCase()))
    return (
      `must not be a word of the URL grammar: ${[...RESERVED_CHAIN_NAMES].join(", ")}; ` +
      `rename it, for example to \`${word.slice(0, 64)}-chain\``
    );
  const first = chainOfWord.get(word.toLowerCase());
  if (first === chain) return "is given twice for this chain, letter case ignored";
  if (first !== undefined)
    return `must be unique, letter case ignored: chain ${shown(first)} has the same name or alias`;
  const other = /^\d+$/.test(word) ? ids.get(Number(word)) : undefined;
  return other !== undefined && other !== chain
    ? `must not be the chain id of another chain: ${shown(other)} has it`
    : null;
}

function devnetRules(report: Report, chains: readonly Entry[]): void {
  const why =
    `is taken by the local chain that \`devnet: true\` adds (${DEVNET_CHAIN.chainName}, ` +
    `${DEVNET_CHAIN.chainId}); rename it or set \`devnet: false\``;
  for (const [name, chain] of chains) {
    if (isDevnetName(name)) report(["chains", name], why, "key");
    if (valueAt(chain, "chain_id") === DEVNET_CHAIN.chainId)
      report(["chains", name, "chain_id"], why);
    for (const [index, alias] of listOf(valueAt(chain, "aliases")).entries())
      if (typeof alias === "string" && isDevnetName(alias))
        report(["chains", name, "aliases", index], why);
  }
}

function isDevnetName(name: string): boolean {
  return (
    name.toLowerCase() === DEVNET_CHAIN.chainName ||
    (/^\d+$/.test(name) && Number(name) === DEVNET_CHAIN.chainId)
  );
}

/**
 * Rules of configured methods: a write cannot become a read, and a method answered by the service
 * itself cannot be routed.
 */
function methodRules(report: Report, methods: readonly Entry[]): void {
  let added = 0;
  for (const [name, settings] of methods) {
    const { handling, replaySafe } = methodOf(name);
    const kind = valueAt(settings, "kind");
    if (mayBeConfigured(name)) {
      if (kind === undefined)
        report(["methods", name], "must have `kind`: it is not in the built-in table");
      if (++added === MAX_ADDED_METHODS + 1)
        report(
          ["methods", name],
          `must be one of at most ${MAX_ADDED_METHODS} that are not in the built-in table`,
          "key",
        );
    } else if (handling !== "route")
      report(
        ["methods", name],
        "must not be a method that the service answers or refuses itself",
        "key",
      );
    else if (kind === "read" && !replaySafe)
      report(
        ["methods", name, "kind"],
        "must not be `read`: it changes something, or has state at one node",
      );
  }
}

interface ProfileToCheck {
  readonly profile: unknown;
  readonly chains: readonly Entry[];
  readonly devnet: boolean;
}

function profileRules(
  report: Report,
  path: Path,
  { profile, chains, devnet }: ProfileToCheck,
): void {
  const known = chains.map(([name]) => name);
  for (const [name, set] of entriesOf(valueAt(profile, "chains"))) {
    if (!known.includes(name))
      report(
        [...path, name],
        devnet && name === DEVNET_CHAIN.chainName
          ? "must not be configured: `devnet: true` adds its providers itself"
          : "must be the name of a chain under `chains`: " +
              `${known.slice(0, 50).map(shown).join(", ") || "none is configured"}`,
        "key",
      );
    providerRules(report, [...path, name, "providers"], listOf(valueAt(set, "providers")));
  }
}

/** `region_preference: only` says whom to ask, so it needs the region of this node. */
function regionRules(report: Report, data: unknown, profiles: readonly Entry[]): void {
  if ((valueAt(data, "cluster", "region") ?? "") !== "") return;
  for (const [slug, profile] of profiles)
    for (const [chain, set] of entriesOf(valueAt(profile, "chains")))
      if (valueAt(set, "selection", "region_preference") === "only")
        report(
          ["profiles", slug, "chains", chain, "selection", "region_preference"],
          "must not be `only` without `cluster.region`: no provider could be asked",
        );
}

function providerRules(report: Report, path: Path, providers: readonly unknown[]): void {
  if (providers.length > 0 && providers.every((provider) => valueAt(provider, "backup") === true))
    report(
      [...path, 0, "backup"],
      "must be false for one provider of the chain at least: backups stand in for others",
    );
  const ids = new Map<unknown, number>();
  for (const [index, provider] of providers.entries()) {
    const id = valueAt(provider, "id");
    const first = ids.get(id);
    if (first !== undefined)
      report(
        [...path, index, "id"],
        `must be unique per chain and profile: providers[${first}] has the same id`,
      );
    else if (typeof id === "string") ids.set(id, index);
    if (valueAt(provider, "batch") !== undefined && valueAt(provider, "url") === undefined)
      report(
        [...path, index, "batch"],
        "must not be set without `url`: batches go over HTTP, and sockets need none",
      );
  }
  const aliases = new Map<unknown, number>();
  for (const [index, provider] of providers.entries()) {
    const alias = valueAt(provider, "alias");
    if (typeof alias === "string") {
      const other = aliases.get(alias) ?? ids.get(alias) ?? index;
      if (other !== index)
        report(
          [...path, index, "alias"],
          `must be unique: providers[${other}] has it as id or alias`,
        );
      if (!aliases.has(alias)) aliases.set(alias, index);
    }
    if (!isRecord(provider)) continue;
    endpointRules(report, [...path, index], provider);
    limitRules(report, [...path, index, "limits"], provider);
  }
}

/** Limits of a provider that contradict each other, or count nothing. */
function limitRules(report: Report, path: Path, provider: unknown): void {
  const limits = valueAt(provider, "limits");
  const [daily, monthly] = [valueAt(limits, "daily") ?? null, valueAt(limits, "monthly") ?? null];
  if (typeof daily === "number" && typeof monthly === "number" && daily > monthly)
    report([...path, "daily"], "must not be above `monthly`, which would end within a day");
  if (monthly === null && valueAt(limits, "resets_on") !== undefined)
    report([...path, "resets_on"], "must stand beside `monthly`: nothing else begins on a day");
  const least = [daily, monthly].filter((limit) => typeof limit === "number");
  const hasPrice = typeof valueAt(provider, "price") === "number";
  const prices = entriesOf(valueAt(limits, "credits"));
  if (least.length === 0 && !hasPrice && prices.length > 0)
    report(
      [...path, "credits"],
      "must stand beside `daily`, `monthly` or `price`: nothing else counts credits",
    );
  for (const [method, price] of prices)
    if (least.some((limit) => typeof price === "number" && price > limit))
      report(
        [...path, "credits", method],
        "must not be above `daily` or `monthly`: it could never be asked",
      );
}

function endpointRules(report: Report, path: Path, provider: unknown): void {
  const urls = ["url", "ws_url"].map((key) => ({ key, value: valueAt(provider, key) }));
  if (urls.every(({ value }) => value === undefined))
    report(path, "must have `url` (http, https), `ws_url` (ws, wss) or both");
  const headers = entriesOf(valueAt(provider, "headers")).map(([name]) => name);
  const hasAuthorization = headers.some((name) => name.toLowerCase() === "authorization");
  const found = new Set<string>();
  for (const { key, value } of urls) {
    const split = typeof value === "string" ? splitCredentials(value) : null;
    if (split === null || split.authorization === null) continue;
    found.add(split.authorization);
    if (hasAuthorization)
      report(
        [...path, key],
        "must not carry credentials when `headers` has `Authorization`; keep one of them",
      );
    else if (found.size > 1)
      report(
        [...path, key],
        "must carry the same credentials as `url`; use two providers otherwise",
      );
  }
  const names = new Set<string>();
  for (const name of headers) {
    if (names.has(name.toLowerCase()))
      report([...path, "headers", name], "is given twice, letter case ignored", "key");
    names.add(name.toLowerCase());
  }
  const rules = listOf(valueAt(provider, "capabilities", "error_rules"));
  for (const [index, rule] of rules.entries())
    if (isRecord(rule) && (valueAt(rule, "code") ?? null) === null && !hasPieces(rule))
      report(
        [...path, "capabilities", "error_rules", index],
        "must have `code`, `message_contains` or both",
      );
}

function hasPieces(rule: unknown): boolean {
  const pieces = valueAt(rule, "message_contains");
  return pieces !== undefined && (!Array.isArray(pieces) || pieces.length > 0);
}

/** A key as shown in a message; keys never come from variables. */
function shown(key: string): string {
  return `\`${key.slice(0, 64)}\``;
}

/** The value of a setting; undefined = it is not there. */
function valueAt(data: unknown, ...path: readonly string[]): unknown {
  return path.reduce(
    (value, key) =>
      isRecord(value) && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined,
    data,
  );
}

function entriesOf(value: unknown): readonly Entry[] {
  return isRecord(value) ? Object.entries(value) : [];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
