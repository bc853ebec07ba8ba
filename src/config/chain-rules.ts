// Rules of chains: every name, alias and id leads to one chain, each chain is known or described,
// and profiles name only chains that are served. Works on data that has not been validated.
import { isRecord } from "../core/fields.ts";
import { DEVNET_CHAIN } from "../core/provider/chain.ts";
import { knownChain, knownChains } from "../presets/chains.ts";
import { chainWords, type NamedChain, namedChains, servesAll } from "./chains.ts";
import { isClose, type TableFault } from "./config-fault.ts";
import { defaultProfile } from "./provider-sets.ts";
import { found, type ReportFault, type RuleInput, type RulePath, shown, valueAt } from "./rule.ts";
import { RESERVED_CHAIN_NAMES, word as wordTable } from "./schema.ts";

/** Most chains that are not known for which a known one of a similar name is looked for. */
const MAX_HINTS = 20;

/** Chains that nothing is known of say their id; those that share an id say which one is meant. */
export function factRules(report: ReportFault, { data }: RuleInput): void {
  let hints = 0;
  for (const { key, known, settings } of writtenChains(data)) {
    if (known !== null || settings["chain_id"] !== undefined) continue;
    const shared = knownChain(key);
    if (shared !== null) report(["chains", key], sharedFault(shared.chainId));
    else report(["chains", key], unknownFault(hints++ < MAX_HINTS ? similarTo(key) : null));
  }
}

function sharedFault(chainId: number): string {
  const names = [...knownChains()].filter((chain) => chain.chainId === chainId);
  return (
    `must have a name and \`chain_id: ${chainId}\`, and providers under \`profiles\`: several ` +
    `networks have this id (${names.map(({ chainName }) => chainName).join(", ")})`
  );
}

function unknownFault(similar: string | null): string {
  return (
    "must have `chain_id`, and providers under `profiles`: no known chain has this name or id" +
    (similar === null ? "" : `; did you mean \`${similar}\`?`)
  );
}

/** Words shorter than this are close to everything. */
const LEAST_HINT_CHARS = 4;

function similarTo(key: string): string | null {
  if (key.length < LEAST_HINT_CHARS) return null;
  for (const { chainName } of knownChains())
    if (isClose(key.toLowerCase(), chainName)) return chainName;
  return null;
}

/** The chains under `chains`. */
function writtenChains(data: unknown): readonly NamedChain[] {
  const chains = valueAt(data, "chains");
  return namedChains(data).filter(({ key }) => isRecord(chains) && Object.hasOwn(chains, key));
}

/** Names, aliases and ids of chains: each must lead to one chain only. */
export function chainRules(report: ReportFault, { data }: RuleInput): void {
  const ids = new Map<number, string>();
  for (const { key, chainId, settings } of writtenChains(data)) {
    if (!wordTable.safeParse(key).success)
      report(["chains", key], `must be ${wordTable.meta()?.title}`, "key");
    if (chainId === null) continue;
    const other = ids.get(chainId);
    const path = ["chains", key, ...(settings["chain_id"] === undefined ? [] : ["chain_id"])];
    if (other === undefined) ids.set(chainId, key);
    else report(path, `must be unique: chain ${shown(other)} has the same id`);
  }
  const chainOfWord = new Map<string, string>();
  // All names, then all aliases: a name takes precedence over an equal alias of another chain.
  for (const { path, at, chain, word } of wordsOf(data)) {
    const fault = chainWordFault({ chain, word }, chainOfWord, ids);
    if (fault !== null) report(path, fault, at);
    else chainOfWord.set(word.toLowerCase(), chain);
  }
}

/** A name or alias that the file says. */
interface WrittenWord {
  readonly path: RulePath;
  readonly at: TableFault["at"];
  readonly word: string;
  readonly chain: string;
}

/** The names of all chains, then their aliases. The name of an id is what is known of it. */
function wordsOf(data: unknown): readonly WrittenWord[] {
  const names = writtenChains(data).flatMap(({ key, chainName }) =>
    [...new Set([key, chainName])].map((word): WrittenWord => {
      return { path: ["chains", key], at: "key", word, chain: key };
    }),
  );
  const aliases = found(data, "chains.*.aliases.[]").flatMap(({ path, value }): WrittenWord[] =>
    typeof value === "string" ? [{ path, at: "value", word: value, chain: String(path[1]) }] : [],
  );
  return [...names, ...aliases];
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

/** No configured chain may have the name or the id of the local chain. */
export function devnetRules(report: ReportFault, { data, devnet }: RuleInput): void {
  if (!devnet) return;
  const { chainName, chainId } = DEVNET_CHAIN;
  const why =
    `is taken by the local chain that \`devnet: true\` adds (${chainName}, ${chainId}); rename ` +
    "it or set `devnet: false`";
  for (const { path, at, word } of wordsOf(data)) {
    const isId = /^\d+$/.test(word) && Number(word) === chainId;
    if (isId || word.toLowerCase() === chainName) report(path, why, at);
  }
  for (const { path, value } of found(data, "chains.*.chain_id"))
    if (value === chainId) report(path, why);
}

/** Whether there is a profile `public`: the file has it, or no profile at all and known chains. */
export function servesPublic(data: unknown): boolean {
  const slugs = found(data, "profiles.*").map(({ key }) => key);
  if (slugs.length > 0) return slugs.includes("public");
  return servesAll(data) || namedChains(data).some(({ known }) => (known?.urls.length ?? 0) > 0);
}

/** Profiles name chains that are served, each once, with providers or where addresses are known. */
export function profileRules(report: ReportFault, { data, devnet }: RuleInput): void {
  const named = namedChains(data);
  const words = chainWords(named);
  const names = named.map(({ chainName }) => chainName);
  const ofPublic = defaultProfile(found(data, "profiles.*").map(({ key }) => key));
  const seen = new Set<string>();
  for (const { path, key: name, value } of found(data, "profiles.*.chains.*")) {
    const chainName = words.get(name.toLowerCase());
    const place = `${path[1]} ${chainName}`;
    if (chainName === undefined)
      report(path, unservedFault(name, { names, devnet, all: servesAll(data) }), "key");
    else if (seen.has(place)) report(path, "is given twice for this chain", "key");
    else if (valueAt(value, "providers") === undefined && isRecord(value)) {
      const known = named.find((chain) => chain.chainName === chainName)?.known;
      const isPublic = path[1] === ofPublic && (known?.urls.length ?? 0) > 0;
      if (!isPublic) report(path, "must have `providers`: no public address of it is known here");
    }
    seen.add(place);
  }
}

function unservedFault(
  name: string,
  { names, devnet, all }: { readonly names: readonly string[]; devnet: boolean; all: boolean },
): string {
  if (devnet && name === DEVNET_CHAIN.chainName)
    return "must not be configured: `devnet: true` adds its providers itself";
  const listed = names.slice(0, 50).map(shown).join(", ") || "none is configured";
  return `must be the name of a chain under \`chains\`: ${listed}${all ? ", or a known one" : ""}`;
}
