// What is known of chains: the committed list is what the script writes, every line is well-formed,
// and look-ups are by name, alias and id.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { test } from "node:test";
import { chainList } from "../../bin/chains.ts";
import { RESERVED_CHAIN_NAMES } from "../../src/config/schema.ts";
import { readUserUrl } from "../../src/core/public-address.ts";
import {
  KNOWN_CHAINS_FILE,
  type KnownChain,
  knownChain,
  knownChains,
  wordOf,
} from "../../src/presets/chains.ts";

const ALL = [...knownChains()];
/** Bytes of the index for each chain: four a slot, and up to four slots for each of its words. */
const INDEX_BYTES = 40;
const MAX_BYTES = 200;

test("the list is what `npm run chains` writes from the installed viem", () => {
  assert.equal(readFileSync(KNOWN_CHAINS_FILE, "utf8"), chainList());
});

test(`a chain that nobody uses costs at most ${MAX_BYTES} bytes`, () => {
  assert.ok(ALL.length > 650, `${ALL.length} chains`);
  const bytes = statSync(KNOWN_CHAINS_FILE).size / ALL.length + INDEX_BYTES;
  assert.ok(bytes <= MAX_BYTES, `${bytes} bytes a chain`);
});

test("every line is well-formed", () => {
  for (const chain of ALL) {
    const { chainId, chainName, name, aliases, currency, blockTimeMs } = chain;
    assert.ok(Number.isSafeInteger(chainId) && chainId > 0, chainName);
    for (const word of [chainName, ...aliases]) {
      assert.match(word, /^[a-z0-9]+(?:-[a-z0-9]+)*$/);
      assert.ok(!RESERVED_CHAIN_NAMES.has(word), word);
      assert.equal(knownChain(word)?.chainName, chainName, `${word} is of two chains`);
    }
    assert.ok(name.length > 0 && name.length <= 60, chainName);
    assert.ok(currency.name.length > 0 && /^\S{1,16}$/.test(currency.symbol), chainName);
    assert.ok(Number.isInteger(currency.decimals) && currency.decimals <= 30, chainName);
    if (blockTimeMs !== null) assert.ok(blockTimeMs >= 50 && blockTimeMs <= 60_000, chainName);
    for (const url of urlsOf(chain)) assert.equal(readUserUrl(url).kind, "url", url);
    for (const url of chain.urls) assert.ok(url.startsWith("https://"), url);
    for (const url of chain.wsUrls) assert.ok(url.startsWith("wss://"), url);
  }
});

test("an id that several networks have says so, and no other does", () => {
  const counts = new Map<number, number>();
  for (const { chainId } of ALL) counts.set(chainId, (counts.get(chainId) ?? 0) + 1);
  for (const { chainId, chainName, isShared } of ALL)
    assert.equal(isShared, counts.get(chainId) !== 1, chainName);
  assert.equal(knownChain("999")?.isShared, true);
  assert.equal(knownChain("hyperevm")?.chainId, 999);
});

test("a chain is found by name, alias and id, letter case and hyphens aside", () => {
  for (const [word, id] of [
    ["ethereum", 1],
    ["mainnet", 1],
    ["ETH", 1],
    ["1", 1],
    ["base", 8453],
    ["8453", 8453],
    ["baseSepolia", 84532],
    ["base-sepolia", 84532],
    ["arb", 42161],
    ["op", 10],
    ["matic", 137],
    ["bsc", 56],
    ["bnb", 56],
    ["sepolia", 11155111],
    ["gnosis", 100],
    ["avalanche", 43114],
    ["polygon-zkevm", 1101],
    ["apeChain", 33139],
    ["0g", 16661],
    ["plume", 98866],
  ] as const)
    assert.equal(knownChain(word)?.chainId, id, word);
});

test("development chains are left out, and unknown words find nothing", () => {
  for (const word of [
    ...["31337", "1337", "anvil", "hardhat", "localhost", "", "-", "#", "toString", "__proto__"],
    ...["08453", "0x2105", "base\tBase", "\n", "x".repeat(65), "x".repeat(1_000_000), "ethereum "],
  ])
    assert.equal(knownChain(word), null, word.slice(0, 70));
});

test("facts that the shipped configuration states", () => {
  const ethereum = knownChain("ethereum");
  assert.deepEqual(
    [ethereum?.name, ethereum?.aliases, ethereum?.blockTimeMs, ethereum?.currency],
    [
      "Ethereum Mainnet",
      ["mainnet", "eth"],
      12_000,
      { name: "Ether", symbol: "ETH", decimals: 18 },
    ],
  );
  assert.ok((ethereum?.urls.length ?? 0) > 1);
  assert.equal(knownChain("bnb")?.blockTimeMs, 450);
  assert.equal(knownChain("sepolia")?.isTestnet, true);
  assert.equal(wordOf("Base_Sepolia"), "basesepolia");
});

function urlsOf({ urls, wsUrls, explorer }: KnownChain): readonly string[] {
  return [...urls, ...wsUrls, ...(explorer === null ? [] : [explorer])];
}
