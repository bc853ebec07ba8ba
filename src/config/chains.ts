// Which chains a file names, each completed by what is known of it: what the file says goes before.
// Reads settings before and after they were validated, so that rules and the configuration agree.
import { isRecord } from "../core/fields.ts";
import { DEFAULT_FINALITY_DEPTH } from "../core/provider/blocks/finality.ts";
import type { Chain } from "../core/provider/chain.ts";
import { type KnownChain, knownChain } from "../presets/chains.ts";

/** A chain that a file names. */
export interface NamedChain {
  /** Its key under `chains`, or in a profile where every chain is served. */
  readonly key: string;
  readonly chainName: string;
  /** As written; may be invalid or absent. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Null = neither the file nor the list says it. */
  readonly chainId: number | null;
  /** What is known of it; null = nothing, or several networks may be meant. */
  readonly known: KnownChain | null;
}

/** Its block time is where learning begins. */
const LEARNED = { learnsBlockTime: true } as const;

/** Block time of a chain of which nothing is known. */
export const DEFAULT_BLOCK_TIME_MS = 12_000;

const DECIMAL = /^\d+$/;

/** Whether every known chain is served, beside those that are named. */
export function servesAll(data: unknown): boolean {
  const chains = isRecord(data) ? data["chains"] : undefined;
  return chains === "all" || (isRecord(chains) && chains["all"] === true);
}

/**
 * The chains of a file, in its order. Where every chain is served, a profile may name one of which
 * `chains` says nothing.
 */
export function namedChains(data: unknown): readonly NamedChain[] {
  if (!isRecord(data)) return [];
  const { chains, profiles } = data;
  const written = isRecord(chains) ? Object.entries(chains) : [];
  const named = written
    .filter(([key]) => key !== "all")
    .map(([key, settings]) => namedChain(key, isRecord(settings) ? settings : {}));
  if (!servesAll(data)) return named;
  const words = new Set(chainWords(named).keys());
  const added = new Map<number, NamedChain>();
  for (const profile of Object.values(isRecord(profiles) ? profiles : {}))
    for (const key of Object.keys(recordAt(profile, "chains"))) {
      const chain = namedChain(key, {});
      if (chain.known !== null && chain.chainId !== null && !words.has(key.toLowerCase()))
        added.set(chain.chainId, added.get(chain.chainId) ?? chain);
    }
  const ids = new Set(named.map(({ chainId }) => chainId));
  return [...named, ...[...added.values()].filter(({ chainId }) => !ids.has(chainId))];
}

function recordAt(value: unknown, key: string): Readonly<Record<string, unknown>> {
  const member = isRecord(value) ? value[key] : undefined;
  return isRecord(member) ? member : {};
}

function namedChain(key: string, settings: NamedChain["settings"]): NamedChain {
  const chainId = settings["chain_id"];
  const known = factsOf(key, chainId);
  return {
    key,
    chainName: DECIMAL.test(key) && known?.chainId === Number(key) ? known.chainName : key,
    settings,
    chainId: typeof chainId === "number" ? chainId : (known?.chainId ?? null),
    known,
  };
}

/** What is known of a chain with this key and, if the file says it, this id. */
function factsOf(key: string, chainId: unknown): KnownChain | null {
  const byKey = knownChain(key);
  const isOne = byKey !== null && !byKey.isShared;
  if (chainId === undefined) return isOne ? byKey : null;
  // A name says which of the networks that share an id is meant; the id does not.
  if (byKey?.chainId === chainId && (isOne || !DECIMAL.test(key))) return byKey;
  const byId = typeof chainId === "number" ? knownChain(String(chainId)) : null;
  return byId === null || byId.isShared ? null : byId;
}

/** The words that lead to each chain, in lower case: names before aliases, those before ids. */
export function chainWords(named: readonly NamedChain[]): ReadonlyMap<string, string> {
  const words = new Map<string, string>();
  const lead = (word: string, { chainName }: NamedChain): void => {
    if (!words.has(word.toLowerCase())) words.set(word.toLowerCase(), chainName);
  };
  for (const chain of named) for (const word of [chain.key, chain.chainName]) lead(word, chain);
  for (const chain of named) for (const alias of writtenAliases(chain) ?? []) lead(alias, chain);
  for (const chain of named) if (chain.chainId !== null) lead(String(chain.chainId), chain);
  for (const chain of named) for (const alias of knownAliases(chain)) lead(alias, chain);
  return words;
}

/** The aliases that the file says; null = it says nothing of them. */
function writtenAliases({ settings }: NamedChain): readonly string[] | null {
  const { aliases } = settings;
  return Array.isArray(aliases) ? aliases.filter((alias) => typeof alias === "string") : null;
}

/** The aliases that the list knows, of a chain whose key is one of its words. */
function knownAliases(chain: NamedChain): readonly string[] {
  const { key, chainName, known } = chain;
  if (writtenAliases(chain) !== null || known === null) return [];
  if (knownChain(key)?.chainName !== known.chainName) return [];
  return [known.chainName, ...known.aliases].filter((alias) => alias !== chainName.toLowerCase());
}

/** A chain of a valid file. An alias of the list gives way to a word that the file says. */
export function chainOf(chain: NamedChain, words: ReadonlyMap<string, string>): Chain {
  const { chainName, known } = chain;
  const { name, block_time_ms, finality_depth } = parseChain(chain.settings);
  return {
    chainId: chain.chainId ?? 0,
    chainName,
    name: name ?? known?.name ?? chainName,
    aliases:
      writtenAliases(chain) ??
      knownAliases(chain).filter((alias) => words.get(alias) === chainName),
    blockTimeMs: block_time_ms ?? known?.blockTimeMs ?? DEFAULT_BLOCK_TIME_MS,
    ...(block_time_ms === undefined ? LEARNED : {}),
    finalityDepth: finality_depth ?? DEFAULT_FINALITY_DEPTH,
  };
}

/** The chain that is served where no file says more of it. */
export function chainOfFacts({
  chainId,
  chainName,
  name,
  aliases,
  blockTimeMs,
}: KnownChain): Chain {
  const block = { blockTimeMs: blockTimeMs ?? DEFAULT_BLOCK_TIME_MS, ...LEARNED };
  return { chainId, chainName, name, aliases, ...block, finalityDepth: DEFAULT_FINALITY_DEPTH };
}

interface ChainSettings {
  readonly name?: string;
  readonly block_time_ms?: number;
  readonly finality_depth?: number;
}

/** The schema has validated them. */
function parseChain(settings: NamedChain["settings"]): ChainSettings {
  return settings;
}
