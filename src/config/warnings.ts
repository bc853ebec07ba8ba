// Warnings about settings that are valid but probably mistakes. Names settings and never shows
// values, which may be secrets.
import { VENDORS } from "../presets/vendors.ts";
import { chainOf, chainWords, namedChains } from "./chains.ts";
import type { TableFault } from "./config-fault.ts";
import { bytesOf } from "./kinds.ts";
import { publicProviders } from "./provider-sets.ts";
import type { ConfigFile } from "./schema.ts";
import { providersOn, vendorUses } from "./vendor-providers.ts";

/** Text that stands for a key in documentation, such as `YOUR_API_KEY` or `<api-key>`. */
const PLACEHOLDER =
  /your[-_ ]?(?:own[-_ ]?)?(?:api|project|access|app|infura|alchemy)?[-_ ]?(?:key|id|token|secret)\b|[<{]\s*(?:[a-z]+[-_ ])*(?:key|token|secret|id)\s*[>}]|(?:api|access)[-_]?key[-_]?here|\b(?:changeme|change-me|replace[-_]me)\b/i;
const MAX_WARNINGS = 100;
const MAX_DEPTH = 32;

type Path = TableFault["path"];
type Warn = (path: Path, message: string) => void;

/** Settings that the operator should check: of the data as it is written, and as it is read. */
export function warningsOf(data: unknown, file: ConfigFile): readonly TableFault[] {
  const found: TableFault[] = [];
  const warn: Warn = (path, message) => found.push({ path, at: "value", message });
  warnOfPlaceholders((path, message) => found.length < MAX_WARNINGS && warn(path, message), data);
  warnOfRegions(warn, file);
  warnOfCache(warn, file);
  warnOfSales(warn, file);
  warnOfFailover(warn, file);
  warnOfVendors(warn, file);
  return found;
}

function warnOfPlaceholders(warn: Warn, value: unknown, path: Path = []): void {
  if (path.length > MAX_DEPTH) return;
  if (typeof value === "string" && PLACEHOLDER.test(value))
    warn(
      path,
      "holds a placeholder where a key belongs: put yours there, best by the name of an " +
        "environment variable",
    );
  if (typeof value !== "object" || value === null) return;
  const members = Array.isArray(value) ? value.entries() : Object.entries(value);
  for (const [step, member] of members) warnOfPlaceholders(warn, member, [...path, step]);
}

/**
 * Regions of providers that no preference can follow: this node has none, or is in none of those
 * that a set of providers names.
 */
function warnOfRegions(warn: Warn, { cluster, profiles }: ConfigFile): void {
  for (const [slug, { chains }] of Object.entries(profiles))
    for (const [chain, set] of Object.entries(chains)) {
      const message = regionDoubt(cluster.region, set);
      if (message === null) continue;
      const path = ["profiles", slug, "chains", chain, "providers"];
      const first = (set.providers ?? []).findIndex(({ region }) => region !== undefined);
      warn(first < 0 ? path : [...path, first, "region"], message);
    }
}

type SetFile = ConfigFile["profiles"][string]["chains"][string];

/** What is wrong with the regions of a set of providers for a node in `own`; null = nothing. */
function regionDoubt(own: string, { selection, providers = [] }: SetFile): string | null {
  const preference = selection.region_preference;
  if (preference === "off" || providers.some(({ region }) => region === own)) return null;
  if (preference === "only")
    return "no provider of this chain is in the region of this node (cluster.region): none is asked";
  if (providers.every(({ region }) => region === undefined)) return null;
  return own === ""
    ? "has no effect: this node has no region (cluster.region)"
    : "no provider of this chain is in the region of this node (cluster.region): is one misspelt?";
}

/** Settings of the cache that have no effect beside others. */
function warnOfCache(warn: Warn, { cache, profiles }: ConfigFile): void {
  const all = Object.values(profiles);
  if (cache !== "off" && cache.redis_url !== "" && all.length > 0)
    if (all.every((profile) => profile.cache === "off"))
      warn(["cache", "redis_url"], "has no effect: every profile has `cache: off`");
  for (const [slug, profile] of Object.entries(profiles)) {
    const shared =
      profile.cache === undefined || profile.cache === "off" ? [] : profile.cache.share_with;
    for (const [index, other] of shared.entries()) {
      const path = ["profiles", slug, "cache", "share_with", index];
      if (cache === "off") warn(path, "has no effect beside `cache: off` at the top");
      else if (profiles[other]?.cache === "off")
        warn(path, "has no effect: that profile has `cache: off`");
    }
  }
  if (cache !== "off" && bytesOf(cache.account_max_bytes) > bytesOf(cache.max_bytes))
    warn(
      ["cache", "account_max_bytes"],
      "is more than `max_bytes`: then the answers of one account alone are kept",
    );
}

/** What is sold although nobody but the providers of callers without credit serves it. */
function warnOfSales(warn: Warn, { hosted, profiles, devnet }: ConfigFile): void {
  const sells = hosted.enabled && hosted.payments.rails.length > 0;
  if (sells && !devnet && profiles["premium"] === undefined)
    warn(
      ["hosted", "payments", "rails"],
      "sells calls that profile `public` serves: add a profile `premium` with providers of your own",
    );
}

/** Chains that are served by the one public address that is known of them. */
function warnOfFailover(warn: Warn, file: ConfigFile): void {
  const named = namedChains(file);
  const words = chainWords(named);
  const provided = new Set(
    Object.values(file.profiles).flatMap(({ chains, providers: joining }) => [
      ...Object.entries(chains).flatMap(([name, { providers }]) =>
        providers === undefined ? [] : [words.get(name.toLowerCase())],
      ),
      ...named.flatMap((each) =>
        providersOn(chainOf(each, words), [], joining).length === 0 ? [] : [each.chainName],
      ),
    ]),
  );
  for (const { key, chainName, known } of named)
    if (!provided.has(chainName) && publicProviders(known).length === 1)
      warn(
        ["chains", key],
        "has no failover: one public address is known of it, and no profile names a provider",
      );
}

/** What is not known of the vendors that a profile names, and where they join nothing. */
function warnOfVendors(warn: Warn, file: ConfigFile): void {
  const named = namedChains(file);
  const words = chainWords(named);
  const chains = named.map((each) => chainOf(each, words));
  for (const { path, vendor: word, isNarrow, lacks } of vendorUses(file, chains)) {
    const vendor = VENDORS.get(word);
    if (vendor === undefined || isNarrow) continue;
    const { name } = vendor;
    if (vendor.chains === "any")
      warn(path, `joins every chain: which ones ${name} serves is not known; \`chains\` says it`);
    else if (vendor.chains === "endpoints" && lacks.length > 0)
      warn(path, `joins no chain without an address: it has none for ${namesOf(lacks)}`);
    else if (lacks.length === chains.length && chains.length > 0)
      warn(path, `has no effect: ${name} serves no chain of this file, as far as is known`);
  }
}

const MAX_NAMES = 20;

function namesOf(names: readonly string[]): string {
  return names.slice(0, MAX_NAMES).join(", ") + (names.length > MAX_NAMES ? ", …" : "");
}
