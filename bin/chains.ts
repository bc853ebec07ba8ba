// Writes what is known of chains (`src/presets/chains.tsv`) from `viem/chains`, with corrections. A
// test compares the committed file with it. The public addresses of `svc.yml` come first, then
// those of vendors that need no key.
import { readFileSync, writeFileSync } from "node:fs";
import type { Chain } from "viem";
import * as definitions from "viem/chains";
import { parse } from "yaml";
import { KNOWN_CHAINS_FILE, type KnownChain, wordOf } from "../src/presets/chains.ts";
import { vendorProviders } from "../src/presets/vendors.ts";

/** Names in URLs where the usual one does not follow from viem's. */
const SLUGS: Readonly<Record<string, string>> = {
  bitTorrent: "bittorrent",
  bitTorrentTestnet: "bittorrent-testnet",
  bsc: "bnb",
  bscGreenfield: "bnb-greenfield",
  bscTestnet: "bnb-testnet",
  bsquared: "b2",
  bsquaredTestnet: "b2-testnet",
  classic: "ethereum-classic",
  confluxESpace: "conflux",
  confluxESpaceTestnet: "conflux-testnet",
  coreDao: "core",
  cronoszkEVM: "cronos-zkevm",
  cronoszkEVMTestnet: "cronos-zkevm-testnet",
  curtis: "apechain-curtis",
  apeChain: "apechain",
  eduChain: "educhain",
  eduChainTestnet: "educhain-testnet",
  goChain: "gochain",
  harmonyOne: "harmony",
  hashKeyChain: "hashkey",
  hashkeyChainTestnet: "hashkey-testnet",
  hyperEvm: "hyperevm",
  hyperliquidEvmTestnet: "hyperevm-testnet",
  kairos: "kaia-kairos",
  mainnet: "ethereum",
  plume: "plume-legacy",
  plumeDevnet: "plume-devnet",
  plumeMainnet: "plume",
  plumeSepolia: "plume-testnet",
  plumeTestnet: "plume-testnet-legacy",
  qMainnet: "q",
  qTestnet: "q-testnet",
  saigon: "ronin-saigon",
  spicy: "chiliz-spicy",
  thunderTestnet: "5ire-thunder",
  fireChain: "5irechain",
  x1Testnet: "xlayer-testnet",
  zeroG: "0g-newton",
  zeroGGalileoTestnet: "0g-galileo-legacy",
  zeroGMainnet: "0g",
  zeroGTestnet: "0g-galileo",
};

/** Other names in URLs. viem's own name is one as well, where it is not the name in URLs. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  arbitrum: ["arb"],
  avalanche: ["avax"],
  "avalanche-fuji": ["fuji"],
  bnb: ["bsc"],
  ethereum: ["mainnet", "eth"],
  "ethereum-classic": ["etc"],
  fantom: ["ftm"],
  gnosis: ["xdai"],
  "gnosis-chiado": ["chiado"],
  hyperevm: ["hyperliquid"],
  optimism: ["op"],
  polygon: ["matic"],
  "polygon-amoy": ["amoy"],
  zksync: ["zksync-era"],
};

/** Names for people, where viem's says less. */
const NAMES: Readonly<Record<string, string>> = {
  ethereum: "Ethereum Mainnet",
  polygon: "Polygon PoS",
  sepolia: "Ethereum Sepolia",
};

/** Block times in milliseconds that viem lacks, or knows as they were. */
const BLOCK_TIMES: Readonly<Record<string, number>> = {
  // Since the Fermi upgrade of January 2026 (BEP-619).
  bnb: 450,
  "bnb-testnet": 450,
  // Since the Fourier upgrade of January 2026: release notes of bnb-chain/opbnb v0.5.5.
  opbnb: 250,
  "opbnb-testnet": 250,
  // SECONDS_PER_SLOT of ethereum/consensus-specs.
  holesky: 12_000,
  hoodi: 12_000,
  sepolia: 12_000,
};

/** Networks that viem has under several names, with the one that stays. */
const ONE_NETWORK: Readonly<Record<number, string>> = {
  166: "nomina",
  1001: "kairos",
  1874: "whitechainSepolia",
  8217: "kaia",
  9496: "loadAlphanet",
  59140: "lineaGoerli",
  200810: "bitlayerTestnet",
  200901: "bitlayer",
};

/** Vendors that serve a list of chains without a key. */
const KEYLESS_VENDORS = ["publicnode", "1rpc"];

const TEST_WORDS = /\b(?:testnet|devnet|sepolia|goerli|holesky|hoodi|previewnet)\b/i;
const ROOT = new URL("../", import.meta.url);

/** One network with the names that viem has for it, the one that stays first. */
interface Network {
  readonly names: readonly string[];
  readonly chain: Chain;
}

/** A chain before it is known which words others have. */
interface Draft extends Network {
  readonly slug: string;
}

/** The text of the data file. */
export function chainList(): string {
  const drafts = slugged(networks());
  const taken = new Set(drafts.map(({ slug }) => wordOf(slug)));
  const configured = configuredUrls();
  const lines = drafts
    .map((draft) =>
      knownOf(draft, drafts, {
        taken,
        urls: [...(configured.get(draft.slug) ?? []), ...vendorUrls(draft.chain)],
      }),
    )
    .sort((a, b) => a.chainId - b.chainId || (a.chainName < b.chainName ? -1 : 1))
    .map(lineOf);
  return `${HEADER}${lines.join("\n")}\n`;
}

const HEADER =
  "# Written by `npm run chains`. Columns: id, name in URLs, aliases, name, currency, block time in\n" +
  "# ms, `t` = testnet and `s` = several networks have the id, and without their scheme: addresses\n" +
  "# of https, of wss, and the explorer's.\n";

/** Every network that others can reach, once. */
function networks(): readonly Network[] {
  const byChain = new Map<Chain, string[]>();
  for (const [name, chain] of Object.entries(viemChains())) {
    // Addresses for preconfirmed blocks: the same networks, told differently.
    if (name.endsWith("Preconf") || isLocal(chain)) continue;
    byChain.set(chain, [...(byChain.get(chain) ?? []), name]);
  }
  const found = [...byChain].map(([chain, names]) => ({ names: names.sort(), chain }));
  return found
    .filter(({ names, chain }) => names.includes(ONE_NETWORK[chain.id] ?? names[0] ?? ""))
    .map((network) => {
      if (ONE_NETWORK[network.chain.id] === undefined) return network;
      const others = found.filter(({ chain }) => chain.id === network.chain.id);
      return { ...network, names: [...new Set([network, ...others].flatMap((n) => n.names))] };
    });
}

function viemChains(): Readonly<Record<string, Chain>> {
  return definitions as unknown as Readonly<Record<string, Chain>>;
}

/** Whether a chain runs on one's own machine only. */
function isLocal(chain: Chain): boolean {
  const urls = urlsOf(chain, "http");
  return urls.length > 0 && urls.every((url) => isOwnHost(new URL(url).hostname));
}

function isOwnHost(host: string): boolean {
  return /^(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\])$/.test(host);
}

function urlsOf(chain: Chain, kind: "http" | "webSocket"): readonly string[] {
  return Object.values(chain.rpcUrls).flatMap((urls) => urls[kind] ?? []);
}

/** The networks with their names in URLs: `-mainnet` is left out where no other has the rest. */
function slugged(all: readonly Network[]): readonly Draft[] {
  const names = new Set(all.map(({ names: [name = ""] }) => SLUGS[name] ?? kebab(name)));
  return all.map((network) => {
    const [name = ""] = network.names;
    const slug = SLUGS[name] ?? kebab(name);
    const short = slug.replace(/-mainnet$/, "").replace(/-sepolia-testnet$/, "-sepolia");
    return { ...network, slug: names.has(short) ? slug : short };
  });
}

/** `polygonZkEvmCardona` as `polygon-zkevm-cardona`. */
function kebab(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1-$2")
    .toLowerCase()
    .replace(/(^|-)(zk|op|in|[a-z])-/g, "$1$2");
}

function knownOf(
  { names, chain, slug }: Draft,
  all: readonly Draft[],
  { taken, urls }: { readonly taken: Set<string>; readonly urls: readonly string[] },
): KnownChain {
  const words = [...(ALIASES[slug] ?? []), ...names.map(kebab)];
  const aliases = words.filter((word) => !taken.has(wordOf(word)) && taken.add(wordOf(word)));
  const { name, symbol, decimals } = chain.nativeCurrency;
  const explorer = chain.blockExplorers?.default.url ?? "";
  return {
    chainId: chain.id,
    chainName: slug,
    name: NAMES[slug] ?? plain(chain.name),
    aliases,
    currency: { name: plain(name), symbol: plain(symbol), decimals },
    blockTimeMs: BLOCK_TIMES[slug] ?? chain.blockTime ?? null,
    urls: publicUrls("https:", [...urls, ...urlsOf(chain, "http")]),
    wsUrls: publicUrls("wss:", [...urls, ...urlsOf(chain, "webSocket")]),
    explorer: publicUrls("https:", [explorer])[0] ?? null,
    isTestnet: chain.testnet === true || TEST_WORDS.test(chain.name),
    isShared: all.some((other) => other.chain.id === chain.id && other.slug !== slug),
  };
}

/** Addresses of that scheme that are neither local nor need a key, each once. */
function publicUrls(scheme: string, urls: readonly string[]): readonly string[] {
  const found = urls.filter((url) => {
    const parsed = URL.parse(url);
    return parsed?.protocol === scheme && !isOwnHost(parsed.hostname) && !/[\s{}<>$]/.test(url);
  });
  return [...new Set(found.map((url) => url.replace(/\/+$/, "")))];
}

/** The addresses of profile `public` in the shipped configuration, by the name of the chain. */
function configuredUrls(): ReadonlyMap<string, readonly string[]> {
  const { profiles } = parseShipped(parse(readFileSync(new URL("svc.yml", ROOT), "utf8")));
  return new Map(
    Object.entries(profiles.public.chains).map(([slug, { providers }]) => [
      slug,
      providers.flatMap(({ url, ws_url }) => [url ?? "", ws_url ?? ""]),
    ]),
  );
}

/** The addresses of vendors that need no key. */
function vendorUrls({ id: chainId }: Chain): readonly string[] {
  return KEYLESS_VENDORS.flatMap((vendor) => {
    const { url, ws_url } = vendorProviders({ vendor }, { chainId }) ?? {};
    return [url, ws_url].filter((address) => typeof address === "string");
  });
}

/** What is read of the shipped configuration. */
interface Shipped {
  readonly profiles: {
    readonly public: {
      readonly chains: Readonly<
        Record<string, { readonly providers: readonly { url?: string; ws_url?: string }[] }>
      >;
    };
  };
}

function parseShipped(file: unknown): Shipped {
  return file as Shipped;
}

function plain(text: string): string {
  return text.replace(/[\s,]+/g, " ").trim();
}

function lineOf(chain: KnownChain): string {
  const { currency, blockTimeMs, explorer, isTestnet, isShared } = chain;
  const bare = (urls: readonly string[]): string =>
    urls.map((url) => url.replace(/^\w+:\/\//, "")).join(" ");
  return [
    chain.chainId,
    chain.chainName,
    chain.aliases.join(" "),
    chain.name,
    `${currency.symbol},${currency.decimals},${currency.name}`,
    blockTimeMs ?? "",
    `${isTestnet ? "t" : ""}${isShared ? "s" : ""}`,
    bare(chain.urls),
    bare(chain.wsUrls),
    bare(explorer === null ? [] : [explorer]),
  ].join("\t");
}

if (import.meta.main) {
  writeFileSync(KNOWN_CHAINS_FILE, chainList());
  console.log(`wrote ${KNOWN_CHAINS_FILE.pathname.split("/").at(-1)}`);
}
