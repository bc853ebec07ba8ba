// Rules that span several settings: uniqueness, references, exclusions. Works on data that has not
// been validated, so that broken rules are reported together with invalid settings. Knows paths,
// not positions in the file. A value may be a secret: messages show no values but aliases of chains
// and the times of hedges. Rules of chains are in `chain-rules.ts`.
import { isRecord } from "../core/fields.ts";
import { DEFAULT_HEDGE } from "../core/routing/hedge.ts";
import { STRATEGIES, spellingsOf } from "../core/routing/strategy.ts";
import { MAX_ADDED_METHODS, mayBeConfigured, methodOf } from "../core/rpc/method.ts";
import { chainRules, devnetRules, factRules, profileRules, servesPublic } from "./chain-rules.ts";
import { namedChains, servesAll } from "./chains.ts";
import type { TableFault } from "./config-fault.ts";
import { found, type ReportFault, type RuleInput, type RulePath, valueAt } from "./rule.ts";
import { splitCredentials } from "./url-credentials.ts";
import { isVendorEntry, vendorRules } from "./vendor-rules.ts";

/** Every broken rule of a configuration file. */
export function brokenRules(data: unknown, around: RuleInput["around"]): readonly TableFault[] {
  const broken: TableFault[] = [];
  const report: ReportFault = (path, message, at = "value") => broken.push({ path, at, message });
  const devnet = around.devnet || valueAt(data, "devnet") === true;
  const input = { data, around, devnet };
  for (const rule of RULES) rule(report, input);
  return broken;
}

const RULES: readonly ((report: ReportFault, input: RuleInput) => void)[] = [
  serviceRules,
  productionRules,
  clusterRules,
  factRules,
  chainRules,
  devnetRules,
  methodRules,
  profileRules,
  providerRules,
  vendorRules,
  cacheRules,
  hedgeRules,
];

function serviceRules(report: ReportFault, { data, devnet }: RuleInput): void {
  const isHosted = valueAt(data, "hosted.enabled") === true;
  if (isHosted && !devnet && !servesPublic(data))
    report(
      ["hosted", "enabled"],
      "must be false without profile `public`: it serves accounts that have nothing left to pay with",
    );
  for (const [name, other] of TWO_NAMES)
    if (valueAt(data, name) !== undefined && valueAt(data, other) !== undefined)
      report(other.split("."), `must not stand beside \`${name}\`: they are one setting`);
  const chains = valueAt(data, "chains") ?? {};
  if (!devnet && isRecord(chains) && !servesAll(data) && namedChains(data).length === 0)
    report(
      ["chains"],
      "must name at least one chain or be `all`, or set `devnet: true` to try the service with " +
        "local nodes",
    );
  if ((valueAt(data, "cluster.region") ?? "") !== "") return;
  for (const { path, value } of found(data, "profiles.*.chains.*.selection.region_preference"))
    if (value === "only")
      report(path, "must not be `only` without `cluster.region`: no provider could be asked");
}

function productionRules(report: ReportFault, { data, devnet, around }: RuleInput): void {
  if (!around.production) return;
  if (valueAt(data, "hosted.allow_private_providers") === true)
    report(
      ["hosted", "allow_private_providers"],
      "must be false in production (NODE_ENV=production): with it, users reach into your network",
    );
  if (valueAt(data, "server.public_url") === undefined)
    report(
      ["server"],
      "must have `public_url` in production (NODE_ENV=production): it goes into URLs that hold " +
        "keys, and callers choose `Host`",
    );
  if (devnet)
    report(
      ["devnet"],
      "must be false in production (NODE_ENV=production): it starts local test nodes",
    );
}

/** Settings that have two names, of which only one may be given. */
const TWO_NAMES: readonly (readonly [name: string, other: string])[] = [
  ["server.operator_token", "hosted.operator_token"],
  ...STRATEGIES.map(spellingsOf).flatMap((spellings) =>
    spellings.flatMap((name, at) =>
      spellings.slice(at + 1).map((other) => [factorPath(name), factorPath(other)] as const),
    ),
  ),
];

function factorPath(name: string): string {
  return `hosted.tariff.factors.${name}`;
}

/** Defaults of `hosted.flush_interval_ms` and `hosted.node_timeout_ms`. */
const FLUSH_MS = 1_000;
const NODE_TIMEOUT_MS = 30_000;
/** Least number of heartbeats within the time after which a node counts as dead. */
const HEARTBEATS = 5;

/**
 * A cluster needs a shared database, and time for several heartbeats before a node counts as dead.
 * Each write of usage is a heartbeat.
 */
function clusterRules(report: ReportFault, { data, around }: RuleInput): void {
  if (valueAt(data, "cluster.enabled") !== true) return;
  if ((around.databaseUrl ?? valueAt(data, "storage.url") ?? "") === "")
    report(
      ["cluster", "enabled"],
      "must be false without a PostgreSQL database (DATABASE_URL or storage.url): the embedded " +
        "store belongs to one machine",
    );
  const given = valueAt(data, "hosted.node_timeout_ms");
  const flushMs = valueAt(data, "hosted.flush_interval_ms") ?? FLUSH_MS;
  const timeoutMs = given ?? NODE_TIMEOUT_MS;
  if (typeof flushMs !== "number" || typeof timeoutMs !== "number") return;
  if (timeoutMs >= HEARTBEATS * flushMs) return;
  report(
    ["hosted", given === undefined ? "flush_interval_ms" : "node_timeout_ms"],
    "must leave room for 5 writes (flush_interval_ms) within the node timeout " +
      "(node_timeout_ms) where cluster.enabled is true: nodes would be taken for dead",
  );
}

/**
 * Rules of configured methods: a write cannot become a read, and a method answered by the service
 * itself cannot be routed.
 */
function methodRules(report: ReportFault, { data }: RuleInput): void {
  let added = 0;
  for (const { path, key: name, value } of found(data, "methods.*")) {
    const { handling, replaySafe } = methodOf(name);
    const kind = valueAt(value, "kind");
    if (mayBeConfigured(name)) {
      if (kind === undefined) report(path, "must have `kind`: it is not in the built-in table");
      if (++added === MAX_ADDED_METHODS + 1)
        report(
          path,
          `must be one of at most ${MAX_ADDED_METHODS} that are not in the built-in table`,
          "key",
        );
    } else if (handling !== "route")
      report(path, "must not be a method that the service answers or refuses itself", "key");
    else if (kind === "read" && !replaySafe)
      report(
        [...path, "kind"],
        "must not be `read`: it changes something, or has state at one node",
      );
  }
}

function providerRules(report: ReportFault, { data }: RuleInput): void {
  for (const { path, value } of found(data, "profiles.*.chains.*.providers")) {
    const providers = Array.isArray(value) ? value : [];
    if (providers.length > 0 && providers.every((each) => valueAt(each, "backup") === true))
      report(
        [...path, 0, "backup"],
        "must be false for one provider of the chain at least: backups stand in for others",
      );
    nameRules(report, path, providers);
    for (const [index, provider] of providers.entries()) {
      if (!isRecord(provider) || isVendorEntry(provider)) continue;
      endpointRules(report, [...path, index], provider);
      limitRules(report, [...path, index, "limits"], provider);
    }
  }
}

/** Ids and aliases of the providers of one chain. */
function nameRules(report: ReportFault, path: RulePath, providers: readonly unknown[]): void {
  const ids = new Map<unknown, number>();
  for (const { path: at, value: id } of found(providers, "[].id")) {
    const first = ids.get(id);
    const why = `must be unique per chain and profile: providers[${first}] has the same id`;
    if (first !== undefined) report([...path, ...at], why);
    else if (typeof id === "string") ids.set(id, Number(at[0]));
  }
  const aliases = new Map<unknown, number>();
  for (const { path: at, value: alias } of found(providers, "[].alias")) {
    if (typeof alias !== "string") continue;
    const index = Number(at[0]);
    const other = aliases.get(alias) ?? ids.get(alias) ?? index;
    const why = `must be unique: providers[${other}] has it as id or alias`;
    if (other !== index) report([...path, ...at], why);
    if (!aliases.has(alias)) aliases.set(alias, index);
  }
}

/** Limits of a provider that contradict each other, or have no effect. */
function limitRules(report: ReportFault, path: RulePath, provider: unknown): void {
  const limits = valueAt(provider, "limits");
  const [daily, monthly] = [valueAt(limits, "daily") ?? null, valueAt(limits, "monthly") ?? null];
  if (typeof daily === "number" && typeof monthly === "number" && daily > monthly)
    report([...path, "daily"], "must not be above `monthly`, which would end within a day");
  if (monthly === null && valueAt(limits, "resets_on") !== undefined)
    report([...path, "resets_on"], "must stand beside `monthly`: nothing else begins on a day");
  const least = [daily, monthly].filter((limit) => typeof limit === "number");
  const prices = found(limits, "credits.*");
  if (least.length === 0 && typeof valueAt(provider, "price") !== "number" && prices.length > 0)
    report(
      [...path, "credits"],
      "must stand beside `daily`, `monthly` or `price`: nothing else counts credits",
    );
  for (const { path: at, value: price } of prices)
    if (least.some((limit) => typeof price === "number" && price > limit))
      report([...path, ...at], "must not be above `daily` or `monthly`: it could never be asked");
}

function endpointRules(report: ReportFault, path: RulePath, provider: unknown): void {
  const [url, wsUrl] = [valueAt(provider, "url"), valueAt(provider, "ws_url")];
  if (url === undefined && wsUrl === undefined)
    report(path, "must have `url` (http, https), `ws_url` (ws, wss) or both");
  if (url === undefined && valueAt(provider, "pipelining") === true)
    report(
      [...path, "pipelining"],
      "must not be true without `url`: it is for HTTP, and sockets need none",
    );
  if (url === undefined && valueAt(provider, "batch") !== undefined)
    report(
      [...path, "batch"],
      "must not be set without `url`: batches go over HTTP, and sockets need none",
    );
  const names = new Set<string>();
  for (const { path: at, key } of found(provider, "headers.*")) {
    const name = key.toLowerCase();
    if (names.has(name)) report([...path, ...at], "is given twice, letter case ignored", "key");
    names.add(name);
  }
  const carried = new Set<string>();
  for (const [key, value] of Object.entries({ url, ws_url: wsUrl })) {
    const authorization =
      typeof value === "string" ? (splitCredentials(value)?.authorization ?? null) : null;
    if (authorization === null) continue;
    carried.add(authorization);
    const why = names.has("authorization")
      ? "must not carry credentials when `headers` has `Authorization`; keep one of them"
      : "must carry the same credentials as `url`; use two providers otherwise";
    if (names.has("authorization") || carried.size > 1) report([...path, key], why);
  }
  for (const { path: at, value: rule } of found(provider, "capabilities.error_rules.[]"))
    if (isRecord(rule) && (valueAt(rule, "code") ?? null) === null && !hasPieces(rule))
      report([...path, ...at], "must have `code`, `message_contains` or both");
}

function hasPieces(rule: unknown): boolean {
  const pieces = valueAt(rule, "message_contains");
  return pieces !== undefined && (!Array.isArray(pieces) || pieces.length > 0);
}

/**
 * Only methods whose answers can be kept have cache settings, and only other profiles of the file
 * can share answers.
 */
function cacheRules(report: ReportFault, { data }: RuleInput): void {
  for (const { path, key: name } of found(data, "cache.methods.*"))
    if (methodOf(name).cache === null) report(path, "must be a method whose answers can be kept");
  const slugs = new Set<unknown>(found(data, "profiles.*").map(({ key }) => key));
  for (const { path, value: other } of found(data, "profiles.*.cache.share_with.[]"))
    if (typeof other === "string" && (!slugs.has(other) || other === path[1]))
      report(path, "must be the slug of another profile of this file");
}

function hedgeRules(report: ReportFault, { data }: RuleInput): void {
  for (const { path, value } of [...found(data, "hedge"), ...found(data, "profiles.*.hedge")]) {
    const floorMs = valueAt(value, "floor_ms") ?? DEFAULT_HEDGE.floorMs;
    const ceilingMs = valueAt(value, "ceiling_ms") ?? DEFAULT_HEDGE.ceilingMs;
    if (typeof floorMs === "number" && typeof ceilingMs === "number" && floorMs > ceilingMs)
      report(path, `must have a floor_ms (${floorMs}) not above its ceiling_ms (${ceilingMs})`);
  }
}
