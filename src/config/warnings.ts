// Warnings about settings that are valid but probably mistakes. Names settings and never shows
// values, which may be secrets.
import type { TableFault } from "./config-fault.ts";
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

/** A second tier of the cache that no profile uses. */
export function cacheWarnings({ cache, profiles }: ConfigFile): readonly TableFault[] {
  if (cache === "off" || cache.redis_url === "") return [];
  const all = Object.values(profiles);
  if (all.length === 0 || all.some((profile) => profile.cache !== "off")) return [];
  const message = "has no effect: every profile has `cache: off`";
  return [{ path: ["cache", "redis_url"], at: "value", message }];
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
