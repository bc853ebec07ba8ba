// Upstreams and providers of eRPC: addresses, and vendors by one key.
import type { Fields } from "../../core/fields.ts";
import { VENDORS } from "../../presets/vendors.ts";
import {
  type DraftProvider,
  type DraftVendor,
  given,
  idOfUrl,
  section,
  uniqueId,
  wordOf,
} from "./draft.ts";
import { dropFailsafe } from "./erpc-failsafe.ts";
import type { ImportedValue } from "./imported-value.ts";
import { limitsOf, methodsLike, type RateRule, refusedOf } from "./methods.ts";
import { isReference, type Secrets } from "./secrets.ts";

/** What upstreams of one project share. */
export interface ErpcPlace {
  readonly secrets: Secrets;
  /** The rules of each rate limit budget. */
  readonly budgets: ReadonlyMap<string, readonly ImportedValue[]>;
  /** Ids of providers, by chain. */
  readonly used: Map<number | null, Set<string>>;
}

/** A vendor that an endpoint names, and the key behind `://`. */
interface NamedVendor {
  readonly name: string;
  /** Null = the key stands in settings. */
  readonly key: string | null;
}

/** The vendor of an endpoint such as `alchemy://KEY`; null = it is an address. */
export function vendorOf(endpoint: string): NamedVendor | null {
  const [, scheme = "", key = ""] = /^(?:evm\+)?([a-z0-9]+):\/\/(.*)$/i.exec(endpoint) ?? [];
  const name = scheme.toLowerCase();
  if (name === "" || /^(?:https?|wss?)$/.test(name)) return null;
  return { name, key };
}

/** Why no entry names a vendor; null = one can. */
export function vendorProblem(name: string): string | null {
  const vendor = VENDORS.get(name);
  if (vendor === undefined) return "svc knows no such vendor: put its address under each chain";
  return vendor.chains === "endpoints"
    ? `no rule tells its addresses: add { vendor: ${name}, endpoints: { chain: URL } }`
    : null;
}

/** A provider of one address; none where it has no address that svc can ask. */
export function providerFrom(source: ImportedValue, place: ErpcPlace): readonly DraftProvider[] {
  const { secrets } = place;
  const endpoint = source.text("endpoint") ?? "";
  const evm = source.child("evm");
  const chainId = evm.count("chainId");
  // Read for the whole chain.
  evm.durationMs("statePollerInterval");
  const taken = place.used.get(chainId) ?? new Set<string>();
  place.used.set(chainId, taken);
  const id = uniqueId(wordOf(source.text("id") ?? "", idOfUrl(endpoint, "provider")), taken);
  if (endpoint === "") return [];
  const isSocket = /^wss?:/i.test(endpoint);
  const url = secrets.url(endpoint, id, source.child("endpoint").path);
  if (isReference(url)) source.note(`endpoint: ${url} has to hold an http:// or https:// URL`);
  const rpc = source.child("jsonRpc");
  const settings = given({
    [isSocket ? "ws_url" : "url"]: url,
    backup: source.text("group") === "fallback" ? true : null,
    archival: archivalOf(evm),
    limits: limitsOf(rulesOf(source, place.budgets), source),
    batch: batchOf(rpc),
    headers: secrets.headers(rpc.child("headers"), id),
    ...methodsOf(source, evm),
  });
  dropOfUpstream(source);
  return [{ settings: { id, ...settings }, chainId, notes: source.notes() }];
}

/** An entry for a vendor, on one chain or on all that it serves. */
export function vendorFrom(
  source: ImportedValue,
  { name, key }: NamedVendor,
  { secrets, budgets }: ErpcPlace,
): DraftVendor {
  const settings = source.child("settings");
  const evm = source.child("evm");
  const [setting = ""] = ["apiKey", "clientId", "endpoint"].filter((field) => settings.has(field));
  const text = key ?? settings.text(setting) ?? "";
  const path = key === null ? settings.child(setting).path : source.child("endpoint").path;
  const chainId = evm.count("chainId");
  const networks = source
    .texts("onlyNetworks")
    .map((network) => Number(/^evm:(\d+)$/.exec(network)?.[1]));
  const chains = chainId === null ? networks.filter((id) => id > 0) : [chainId];
  source.drop("providers are called by the name of their vendor", "id", "upstreamIdTemplate");
  source.drop("name the chains that are wanted: `chains: […]`", "ignoreNetworks");
  source.drop("put a provider of its own under the chain", "overrides");
  source.drop("the row of the vendor says it", "jsonRpc", "type");
  const limits = limitsOf(rulesOf(source, budgets), source);
  dropOfUpstream(source);
  const isPublic = text === "" || text === "public";
  return {
    settings: {
      vendor: name,
      ...(isPublic ? {} : { key: secrets.key(text, `${name}_KEY`, path) }),
      ...given({ limits }),
      ...methodsOf(source, evm),
    },
    chainIds: chains,
    notes: source.notes(),
  };
}

function dropOfUpstream(source: ImportedValue): void {
  dropFailsafe(source);
  source.drop("the vendor is known by the address", "vendorName", "type");
  if (source.text("group") !== "fallback")
    source.drop("svc has one group beside the others, `backup: true`", "group");
  source.drop("svc tells operators of providers apart by their addresses", "cohort");
  source.drop("svc learns it from the provider's answers", "rateLimitAutoTune");
  source.drop("svc learns it from the provider's answers", "autoIgnoreUnsupportedMethods");
  source.drop("svc sends no copies of calls", "shadow");
  source.drop("svc orders by measured latency: strategy `fastest`", "routing");
}

function archivalOf(evm: ImportedValue): boolean | null {
  const lower = evm.child("blockAvailability").child("lower");
  const first = lower.child("exactBlock").value ?? lower.child("earliestBlockPlus").value;
  const type = evm.text("nodeType");
  if (type === "archive" || first === 0) return true;
  return type === "full" ? false : null;
}

function batchOf(rpc: ImportedValue): Fields | null {
  const isOn = rpc.flag("supportsBatch");
  const max = rpc.count("batchMaxSize");
  const waitMs = rpc.durationMs("batchMaxWait");
  rpc.drop("svc reaches providers without a proxy", "proxyPool");
  rpc.drop("requests are sent as they are", "enableGzip");
  if (isOn !== true) return null;
  const most = 50;
  return given({
    max: max === null ? null : Math.max(2, Math.min(max, 1_000)),
    wait_ms: waitMs === null ? null : Math.min(waitMs, most),
  });
}

function methodsOf(source: ImportedValue, evm: ImportedValue): Fields {
  const allowed = source.texts("allowMethods");
  const { methods, categories, unknown } = refusedOf(source.texts("ignoreMethods"));
  // In eRPC an allow-list ignores everything else, unless something else is ignored.
  const isAllowList =
    allowed.length > 0 && (methods.length + categories.length === 0 || unknown.includes("*"));
  const named = allowed
    .flatMap((list) => list.split("|"))
    .flatMap((name) => methodsLike(name.trim()));
  if (unknown.some((pattern) => pattern !== "*"))
    source.note("ignoreMethods: patterns that name no method known to svc");
  if (allowed.length > 0 && !isAllowList)
    source.note("allowMethods: exceptions of ignoreMethods; svc takes plain names");
  const behind = evm.child("blockAvailability").child("lower").count("latestBlockMinus");
  evm.child("blockAvailability").drop("svc asks nobody for blocks above its head", "upper");
  evm.drop("svc learns it from the provider's answers", "skipWhenSyncing", "integrity");
  evm.drop("svc takes it from the block time", "statePollerDebounce");
  const range =
    evm.count("getLogsMaxAllowedRange") ??
    evm.count("getLogsMaxBlockRange") ??
    evm.count("getLogsAutoSplittingRangeThreshold");
  return {
    ...(isAllowList && named.length > 0 ? { methods: [...new Set(named)] } : {}),
    ...section("capabilities", {
      unsupported_methods: isAllowList || methods.length === 0 ? null : methods,
      unsupported_categories: isAllowList || categories.length === 0 ? null : categories,
      ...section("limits", {
        max_block_range: range,
        max_block_age: behind ?? evm.count("maxAvailableRecentBlocks"),
      }),
    }),
  };
}

const PERIODS_MS: Readonly<Record<string, number>> = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  month: 30 * 86_400_000,
};

function rulesOf(source: ImportedValue, budgets: ErpcPlace["budgets"]): readonly RateRule[] {
  const budget = source.text("rateLimitBudget");
  if (budget === null) return [];
  const rules = budgets.get(budget) ?? [];
  if (rules.length > 0)
    source.note(
      `rateLimitBudget: all upstreams of ${wordOf(budget, "it")} shared it; here each has it`,
    );
  return rules.flatMap((rule) => {
    const method = rule.text("method") ?? "*";
    const count = rule.count("maxCount");
    const periodMs = PERIODS_MS[rule.text("period") ?? ""] ?? rule.durationMs("period");
    const isShared = ["perIP", "perUser", "perNetwork"].every((name) => rule.flag(name) !== true);
    if (count === null || periodMs === null) return [];
    if (method === "*" && isShared) return [{ count, periodMs }];
    source.note(
      `rateLimitBudget: a limit of ${method}; svc limits all methods and callers together`,
    );
    return [];
  });
}
