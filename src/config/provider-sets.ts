// The providers of profiles on one chain: those that the file names, else, in the profile that
// serves URLs without a profile, the public addresses that are known of the chain. For chains of
// the file, and for chains that are opened when somebody calls them.
import { parse as lookUpSuffix } from "tldts";
import type { Chain } from "../core/provider/chain.ts";
import { readBound } from "../core/provider/history.ts";
import { scopeOf } from "../core/provider/method-scope.ts";
import { operatorOf } from "../core/provider/operator.ts";
import type { HedgeSettings, Provider, ProviderSet } from "../core/provider/profile.ts";
import { RESOURCES } from "../core/rpc/method.ts";
import type { KnownChain } from "../presets/chains.ts";
import { chainOfFacts } from "./chains.ts";
import { named } from "./kinds.ts";
import { type ConfigFile, providerSet, provider as providerTable } from "./schema.ts";
import { splitCredentials } from "./url-credentials.ts";
import { type ProviderFile, providersOn, vendorOfDomain } from "./vendor-providers.ts";

/** The profile of URLs that name none, of those with these slugs. */
export function defaultProfile(slugs: readonly string[]): string {
  const [first = "public"] = slugs;
  return slugs.includes("public") ? "public" : first;
}

/** A profile with its settings as the file has them. Holds secrets. */
export interface ProfileSource {
  readonly slug: string;
  readonly settings: ProfileFile;
}

/** A chain whose providers are looked for. */
export interface ServedChain {
  readonly chain: Chain;
  /** What is known of it; null = nothing. */
  readonly known: KnownChain | null;
  /** Whether a name in the profiles of the file means it. */
  readonly isNamed: (name: string) => boolean;
  /** Whether answers of it may be kept. */
  readonly isCached: boolean;
}

type ProfileFile = ConfigFile["profiles"][string];
type SetFile = ProfileFile["chains"][string];

/** The providers of every profile on one chain, by slug; profiles that have none are left out. */
export function providerSets(
  profiles: readonly ProfileSource[],
  served: ServedChain,
): ReadonlyMap<string, ProviderSet> {
  const entries = profiles.map(({ slug, settings }) => {
    const name = Object.keys(settings.chains).find(served.isNamed);
    const set = name === undefined ? undefined : settings.chains[name];
    const providers = providersOn(served.chain, set?.providers ?? [], settings.providers);
    return { slug, settings, set, providers };
  });
  const ofPublic = defaultProfile(profiles.map(({ slug }) => slug));
  const areNamed = entries.some(({ providers }) => providers.length > 0);
  const sets = entries.flatMap(({ slug, settings, set = providerSet.parse({}), providers }) => {
    const usesPublic = !areNamed && slug === ofPublic;
    const found = usesPublic ? publicProviders(served.known) : providers;
    if (found.length === 0) return [];
    const sharedSettings = ofProfile(settings, served.isCached);
    const own = setOf(served.chain, set, found, settings.transactions === "relays");
    return [[slug, { ...own, ...sharedSettings }] as const];
  });
  return new Map(sets);
}

/** The providers of every profile on a known chain of which the file says nothing, by slug. */
export function onDemandSets(
  profiles: readonly ProfileSource[],
  known: KnownChain,
): ReadonlyMap<string, ProviderSet> {
  const chain = chainOfFacts(known);
  return providerSets(profiles, { chain, known, isNamed: () => false, isCached: true });
}

/** What a profile says for all its sets. */
function ofProfile({ hedge, consistency, cache }: ProfileFile, isCached: boolean) {
  const shareWith = cache === undefined || cache === "off" ? [] : cache.share_with;
  const saysOfCache = !isCached || cache !== undefined;
  return {
    ...(hedge === undefined ? {} : { hedge: hedgeOf(hedge) }),
    ...(consistency === undefined ? {} : { consistency }),
    ...(saysOfCache ? { cache: { isOn: isCached && cache !== "off", shareWith } } : {}),
  };
}

/** When reads are hedged; null = not at all. */
export function hedgeOf(hedge: ConfigFile["hedge"]): HedgeSettings | null {
  return hedge === "off" ? null : named(hedge);
}

/**
 * The public addresses of a chain as providers, named by who runs them. A WebSocket address goes
 * with an HTTP address of the same host, else of the same operator.
 */
export function publicProviders(known: KnownChain | null): readonly ProviderFile[] {
  if (known === null) return [];
  const sockets = [...known.wsUrls];
  const take = (isFit: (wsUrl: string) => boolean): string | undefined => {
    const at = sockets.findIndex(isFit);
    return at < 0 ? undefined : sockets.splice(at, 1)[0];
  };
  const byHost = known.urls.map((url) => take((wsUrl) => hostOf(wsUrl) === hostOf(url)));
  const pairs = known.urls.map((url, index) => ({
    url,
    ws_url: byHost[index] ?? take((wsUrl) => operatorNameOf(wsUrl) === operatorNameOf(url)),
  }));
  const ids = new Map<string, number>();
  return [...pairs, ...sockets.map((ws_url) => ({ ws_url }))].map((addresses) => {
    const name = operatorNameOf("url" in addresses ? addresses.url : (addresses.ws_url ?? ""));
    const count = (ids.get(name) ?? 0) + 1;
    ids.set(name, count);
    return providerTable.parse({ id: count === 1 ? name : `${name}-${count}`, ...addresses });
  });
}

function hostOf(url: string): string {
  return URL.parse(url)?.hostname ?? "";
}

/** `publicnode` for every host below publicnode.com. */
function operatorNameOf(url: string): string {
  const [label = ""] = operatorOf({ url, wsUrl: null }, lookUpSuffix).split(".");
  return label;
}

function setOf(
  chain: Chain,
  set: SetFile,
  providers: readonly ProviderFile[],
  usesRelays: boolean,
): ProviderSet {
  const aliases = aliasesOf(providers);
  const { kinds, log_verification, ...subscriptions } = set.subscriptions;
  return {
    chain,
    ...named(set.selection),
    ...named(set.monitoring),
    ...named(subscriptions),
    logVerification: log_verification ?? null,
    subscriptionKinds: kinds,
    providers: providers.map((provider, index) => ({
      ...providerOf(provider, index, aliases[index] ?? `p${index + 1}`),
      scope: scopeOf({ ...provider, methods: provider.methods ?? null, usesRelays }),
    })),
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
  const { capabilities, limits, batch, url, ws_url, name, region, headers, ...rest } = provider;
  const { operator, kind: _, methods: __, ...plain } = rest;
  const { limits: blocks, error_rules, ...lacks } = capabilities;
  const bounds = RESOURCES.flatMap((resource) => {
    const bound = readBound(lacks[resource] ?? "");
    return bound === null ? [] : [[resource, bound] as const];
  });
  const http = url === undefined ? null : splitCredentials(url);
  const ws = ws_url === undefined ? null : splitCredentials(ws_url);
  const authorization = http?.authorization ?? ws?.authorization ?? null;
  const addresses = { url: http?.url ?? null, wsUrl: ws?.url ?? null };
  return {
    ...plain,
    ...addresses,
    ...named(blocks),
    index,
    name: name ?? plain.id,
    alias,
    operator: operator ?? vendorOfDomain(operatorOf(addresses, lookUpSuffix)),
    budget:
      limits === undefined
        ? null
        : { ...named(limits), credits: new Map(Object.entries(limits.credits)) },
    batch: batch === undefined ? null : named(batch),
    region: region ?? null,
    headers: authorization === null ? headers : { ...headers, Authorization: authorization },
    history: Object.fromEntries(bounds),
    unsupportedMethods: new Set(lacks.unsupported_methods),
    unsupportedCategories: new Set(lacks.unsupported_categories),
    blockAgeMethods: new Set(blocks.block_age_methods),
    errorRules: error_rules.map(({ code, message_contains, category }) => ({
      code,
      messageContains: message_contains.map((piece) => piece.toLowerCase()),
      category,
    })),
    guarded: false,
  };
}
