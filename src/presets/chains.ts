// What is known of public chains: a list that `npm run chains` makes from `viem/chains`, read when
// a chain is first looked up. It stays in memory as bytes; the line of a chain is parsed when it is
// looked up. Knows nothing of which chains are configured.
import { readFileSync } from "node:fs";

/** One network, as the list tells of it. */
export interface KnownChain {
  /** EIP-155 chain id. */
  readonly chainId: number;
  /** Its name in URLs. */
  readonly chainName: string;
  /** Its name for people. */
  readonly name: string;
  /** Other names in URLs. */
  readonly aliases: readonly string[];
  readonly currency: { readonly name: string; readonly symbol: string; readonly decimals: number };
  /** Null = not known. */
  readonly blockTimeMs: number | null;
  /** Public JSON-RPC addresses over https and over wss; they need no key. */
  readonly urls: readonly string[];
  readonly wsUrls: readonly string[];
  /** Null = not known. */
  readonly explorer: string | null;
  readonly isTestnet: boolean;
  /** Whether several networks have its id, so that the id alone does not say which one is meant. */
  readonly isShared: boolean;
}

/** The list: one network a line, sorted by id; see its first lines. */
export const KNOWN_CHAINS_FILE: URL = new URL("./chains.tsv", import.meta.url);

const MAX_WORD_CHARS = 64;
const LINE_END = 10;

/** The list as bytes, and an index from the words for a chain to the offset of its line. */
class ChainList {
  readonly #bytes = readFileSync(KNOWN_CHAINS_FILE);
  /** A hash table with open addressing: offsets plus one; 0 = free. At most half of it is used. */
  readonly #slots: Uint32Array;

  constructor() {
    const found = [...this.#offsets()].flatMap((offset) =>
      wordsFor(this.#at(offset)).map((word): readonly [string, number] => [word, offset]),
    );
    this.#slots = new Uint32Array(2 ** Math.ceil(Math.log2(found.length * 2)));
    for (const [word, offset] of found) {
      const slot = this.#slotOf(word);
      // The first network with an id stands for it.
      if (this.#slots[slot] === 0) this.#slots[slot] = offset + 1;
    }
  }

  find(word: string): KnownChain | null {
    const offset = this.#slots[this.#slotOf(word)] ?? 0;
    return offset === 0 ? null : this.#at(offset - 1);
  }

  *all(): Iterable<KnownChain> {
    for (const offset of this.#offsets()) yield this.#at(offset);
  }

  /** Where a word stands, or where it would. */
  #slotOf(word: string): number {
    const mask = this.#slots.length - 1;
    for (let slot = hashOf(word) & mask; ; slot = (slot + 1) & mask) {
      const offset = this.#slots[slot] ?? 0;
      if (offset === 0 || wordsFor(this.#at(offset - 1)).includes(word)) return slot;
    }
  }

  #at(offset: number): KnownChain {
    return parseLine(this.#bytes.toString("utf8", offset, this.#bytes.indexOf(LINE_END, offset)));
  }

  *#offsets(): Iterable<number> {
    for (let at = 0; at < this.#bytes.length; at = this.#bytes.indexOf(LINE_END, at) + 1)
      if (this.#bytes[at] !== "#".charCodeAt(0)) yield at;
  }
}

/** Reads the list once, when it is first needed. */
class LazyChainList {
  #list: ChainList | null = null;

  get list(): ChainList {
    this.#list ??= new ChainList();
    return this.#list;
  }
}

const LIST = new LazyChainList();

/**
 * The chain with this name, alias or decimal id; null = it is not known. Letter case, `-` and `_`
 * do not count. Of an id that several networks have, the first one, whose `isShared` says so.
 */
export function knownChain(nameOrId: string): KnownChain | null {
  return nameOrId.length > MAX_WORD_CHARS ? null : LIST.list.find(wordOf(nameOrId));
}

/** Every known chain, sorted by id. */
export function knownChains(): Iterable<KnownChain> {
  return LIST.list.all();
}

/** A name as it is compared. */
export function wordOf(name: string): string {
  return name.toLowerCase().replace(/[-_]/g, "");
}

function wordsFor({ chainId, chainName, aliases }: KnownChain): readonly string[] {
  return [String(chainId), ...[chainName, ...aliases].map(wordOf)];
}

/** FNV-1a. */
function hashOf(word: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < word.length; at++)
    hash = Math.imul(hash ^ word.charCodeAt(at), 0x01000193) >>> 0;
  return hash;
}

function parseLine(line: string): KnownChain {
  const [id, chainName = "", aliases, name = "", currency, blockTime, flags, ...urls] =
    line.split("\t");
  const [symbol = "", decimals, currencyName = ""] = (currency ?? "").split(",");
  return {
    chainId: Number(id),
    chainName,
    name,
    aliases: partsOf(aliases),
    currency: { name: currencyName, symbol, decimals: Number(decimals) },
    blockTimeMs: blockTime ? Number(blockTime) : null,
    urls: partsOf(urls[0]).map((url) => `https://${url}`),
    wsUrls: partsOf(urls[1]).map((url) => `wss://${url}`),
    explorer: urls[2] ? `https://${urls[2]}` : null,
    isTestnet: flags?.includes("t") === true,
    isShared: flags?.includes("s") === true,
  };
}

function partsOf(list: string | undefined): readonly string[] {
  return list ? list.split(" ") : [];
}
