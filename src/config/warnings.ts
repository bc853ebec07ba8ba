// Warnings about settings that are valid but probably mistakes. Names settings and never shows
// values, which may be secrets.
import type { TableFault } from "./config-fault.ts";
import { bytesOf } from "./kinds.ts";
import type { ConfigFile } from "./schema.ts";

/** Text that stands for a key in documentation, such as `YOUR_API_KEY` or `<api-key>`. */
const PLACEHOLDER =
  /your[-_ ]?(?:own[-_ ]?)?(?:api|project|access|app|infura|alchemy)?[-_ ]?(?:key|id|token|secret)\b|[<{]\s*(?:[a-z]+[-_ ])*(?:key|token|secret|id)\s*[>}]|(?:api|access)[-_]?key[-_]?here|\b(?:changeme|change-me|replace[-_]me)\b/i;
const MAX_WARNINGS = 100;
const MAX_DEPTH = 32;

/** Settings that the operator should check. */
export function warningsOf(data: unknown): readonly TableFault[] {
  const found: TableFault[] = [];
  collectWarnings(data, [], found);
  return found;
}

/**
 * Regions of providers that no preference can follow: this node has none, or is in none of those
 * that a set of providers names.
 */
export function regionWarnings({ cluster, profiles }: ConfigFile): readonly TableFault[] {
  const sets = Object.entries(profiles).flatMap(([slug, { chains }]) =>
    Object.entries(chains).map(([chain, set]) => ({
      path: ["profiles", slug, "chains", chain, "providers"],
      set,
    })),
  );
  return sets.flatMap(({ path, set }): readonly TableFault[] => {
    const first = set.providers.findIndex(({ region }) => region !== undefined);
    const message = regionDoubt(cluster.region, set);
    if (message === null) return [];
    return first < 0
      ? [{ path, at: "value", message }]
      : [{ path: [...path, first, "region"], at: "value", message }];
  });
}

/** What is sold although nobody but the providers of callers without credit serves it. */
export function saleWarnings({ hosted, profiles, devnet }: ConfigFile): readonly TableFault[] {
  if (!hosted.enabled || hosted.payments.rails.length === 0) return [];
  if (devnet || profiles["premium"] !== undefined) return [];
  const message =
    "sells calls that profile `public` serves: add a profile `premium` with providers of your own";
  return [{ path: ["hosted", "payments", "rails"], at: "value", message }];
}

/** Settings of the cache that have no effect beside others. */
export function cacheWarnings({ cache, profiles }: ConfigFile): readonly TableFault[] {
  const settings = cache === "off" ? null : cache;
  return [
    ...unusedSecondTier(settings, profiles),
    ...unusedSharing(settings !== null, profiles),
    ...tooLargeAccounts(settings),
  ];
}

type CacheFile = Exclude<ConfigFile["cache"], "off"> | null;

/** A second tier that no profile uses. */
function unusedSecondTier(cache: CacheFile, profiles: ConfigFile["profiles"]) {
  const all = Object.values(profiles);
  if (cache === null || cache.redis_url === "" || all.length === 0) return [];
  if (all.some((profile) => profile.cache !== "off")) return [];
  const message = "has no effect: every profile has `cache: off`";
  return [{ path: ["cache", "redis_url"], at: "value", message } as const];
}

/** Profiles that are to be given what another one keeps, where nothing is kept. */
function unusedSharing(isOn: boolean, profiles: ConfigFile["profiles"]): readonly TableFault[] {
  return Object.entries(profiles).flatMap(([slug, { cache }]) => {
    if (cache === undefined || cache === "off") return [];
    return cache.share_with.flatMap((other, index): readonly TableFault[] => {
      if (isOn && profiles[other]?.cache !== "off") return [];
      const message = isOn
        ? "has no effect: that profile has `cache: off`"
        : "has no effect beside `cache: off` at the top";
      return [{ path: ["profiles", slug, "cache", "share_with", index], at: "value", message }];
    });
  });
}

function tooLargeAccounts(cache: CacheFile): readonly TableFault[] {
  if (cache === null || bytesOf(cache.account_max_bytes) <= bytesOf(cache.max_bytes)) return [];
  const message = "is more than `max_bytes`: then the answers of one account alone are kept";
  return [{ path: ["cache", "account_max_bytes"], at: "value", message }];
}

type SetFile = ConfigFile["profiles"][string]["chains"][string];

/** What is wrong with the regions of a set of providers for a node in `own`; null = nothing. */
function regionDoubt(own: string, { selection, providers }: SetFile): string | null {
  const preference = selection.region_preference;
  if (preference === "off" || providers.some(({ region }) => region === own)) return null;
  if (preference === "only")
    return "no provider of this chain is in the region of this node (cluster.region): none is asked";
  if (providers.every(({ region }) => region === undefined)) return null;
  return own === ""
    ? "has no effect: this node has no region (cluster.region)"
    : "no provider of this chain is in the region of this node (cluster.region): is one misspelt?";
}

function collectWarnings(value: unknown, path: TableFault["path"], found: TableFault[]): void {
  if (found.length >= MAX_WARNINGS || path.length > MAX_DEPTH) return;
  if (typeof value === "string") {
    const message =
      "holds a placeholder where a key belongs: put yours there, best by the name of an " +
      "environment variable";
    if (PLACEHOLDER.test(value)) found.push({ path, at: "value", message });
  } else if (Array.isArray(value))
    for (const [index, item] of value.entries()) collectWarnings(item, [...path, index], found);
  else if (typeof value === "object" && value !== null)
    for (const [key, item] of Object.entries(value)) collectWarnings(item, [...path, key], found);
}
