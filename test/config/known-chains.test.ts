// Chains of which the file says little or nothing: what is known of them fills in, what the file
// says goes before, and public addresses serve those for which no profile names a provider.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { formatFaults } from "../../src/config/config-fault.ts";
import { onDemandSets, publicProviders } from "../../src/config/provider-sets.ts";
import type { Chain } from "../../src/core/provider/chain.ts";
import { knownChain, knownChains } from "../../src/presets/chains.ts";
import { accepted, load, providers, refused } from "./config-fixture.ts";

test("a name or an id of a known chain is enough", () => {
  const { chains } = accepted("chains: { 8453: {}, arbitrum: {}, mainnet: {}, sepolia: }");
  assert.deepEqual(
    chains.map(({ chainId, chainName, name }) => [chainId, chainName, name]),
    [
      [8453, "base", "Base"],
      [42161, "arbitrum", "Arbitrum One"],
      [1, "mainnet", "Ethereum Mainnet"],
      [11155111, "sepolia", "Ethereum Sepolia"],
    ],
  );
  assert.deepEqual(byName(chains, "mainnet").aliases, ["ethereum", "eth"]);
  assert.deepEqual(
    chains.map(({ blockTimeMs }) => blockTimeMs),
    [2_000, 250, 12_000, 12_000],
  );
});

test("what the file says goes before what is known", () => {
  const { chains } = accepted(
    "chains:\n  ethereum: { name: Mine, aliases: [m], block_time_ms: 5 }\n  eth: { chain_id: 424242 }\n" +
      "  other: { chain_id: 8453 }",
  );
  const ethereum = byName(chains, "ethereum");
  assert.deepEqual([ethereum.name, ethereum.aliases, ethereum.blockTimeMs], ["Mine", ["m"], 5]);
  const taken = byName(chains, "eth");
  assert.deepEqual([taken.chainId, taken.name, taken.aliases], [424242, "eth", []]);
  const other = byName(chains, "other");
  assert.deepEqual([other.name, other.aliases, other.blockTimeMs], ["Base", [], 2_000]);
});

test("a known alias gives way to a word that the file says", () => {
  const { chains } = accepted("chains: { ethereum: {}, mainnet: { chain_id: 424242 } }");
  assert.deepEqual(byName(chains, "ethereum").aliases, ["eth"]);
});

test("the shipped file keeps its chains", () => {
  const { chains } = accepted(readFileSync("svc.yml"));
  assert.deepEqual(
    chains.map(({ chainName, chainId, name, aliases, blockTimeMs }) => [
      ...[chainName, chainId, name, aliases, blockTimeMs],
    ]),
    [
      ["ethereum", 1, "Ethereum Mainnet", ["mainnet", "eth"], 12_000],
      ["base", 8453, "Base", [], 2_000],
      ["arbitrum", 42161, "Arbitrum One", ["arb"], 250],
      ["optimism", 10, "OP Mainnet", ["op"], 2_000],
      ["polygon", 137, "Polygon PoS", ["matic"], 2_000],
      ["bnb", 56, "BNB Smart Chain", ["bsc"], 450],
      ["sepolia", 11155111, "Ethereum Sepolia", [], 12_000],
      ["base-sepolia", 84532, "Base Sepolia", [], 2_000],
    ],
  );
});

for (const [what, text, line, path, message] of [
  ["an unknown name", "chains:\n  basee: {}", 2, "chains.basee", /`chain_id`.*mean `base`/],
  ["an unknown id", "chains:\n  424242: {}", 2, "chains.424242", /must have `chain_id`/],
  ["a shared id", "chains:\n  999: {}", 2, "chains.999", /several networks.*hyperevm/],
  ["a name with a shared id", "chains:\n  hyperevm: {}", 2, "chains.hyperevm", /chain_id: 999/],
  ["one chain twice", "chains:\n  base: {}\n  8453: {}", 2, "chains.base", /the same name/],
  ["a word", "chains: each", 1, "chains", /`all` or a map/],
  ["a list", "chains: [base]", 1, "chains", /`all` or a map/],
  ["a wrong switch", "chains: { all: 1 }", 1, "chains.all", /true or false/],
  ["an alias `all`", "chains:\n  base: { aliases: [all] }", 2, "chains.base.aliases[0]", /all/],
  ["no chain but a switch", "chains: { all: false }", 1, "chains", /at least one chain/],
  [
    "a wrong setting",
    "chains:\n  base: { chainid: 1 }",
    2,
    "chains.base.chainid",
    /mean `chain_id`/,
  ],
  [
    "a chain twice in a profile",
    "chains: { base: {} }\nprofiles:\n  p:\n    chains:\n" +
      "      base: { providers: [{ id: a, url: 'http://a' }] }\n" +
      "      8453: { providers: [{ id: a, url: 'http://a' }] }",
    5,
    "profiles.p.chains.base",
    /twice/,
  ],
  [
    "no providers in a profile that is not public",
    "chains: { base: {} }\nprofiles:\n  p: { chains: { base: {} } }\n  public: {}",
    3,
    "profiles.p.chains.base",
    /must have `providers`/,
  ],
] as const)
  test(`refused: ${what}`, () => {
    const faults = refused(text);
    const fault = faults.find((each) => each.path === path);
    assert.ok(fault, formatFaults(faults));
    assert.equal(fault.line, line, formatFaults(faults));
    assert.match(fault.message, message);
  });

test("an id that several networks have is configured by name and id", () => {
  const { chains } = accepted(
    "chains: { hyperevm: { chain_id: 999 }, foo: { chain_id: 9999999999 } }",
  );
  assert.equal(byName(chains, "hyperevm").name, "HyperEVM");
  const unnamed = accepted("chains: { mine: { chain_id: 999 } }");
  assert.deepEqual(unnamed.chains[0]?.name, "mine");
  assert.equal(unnamed.profiles.length, 0);
});

test("public addresses serve the chains for which no profile names a provider", () => {
  const config = accepted(
    "chains: { base: {}, ethereum: {}, mine: { chain_id: 424242 } }\nprofiles:\n" +
      "  own: { chains: { ethereum: { providers: [{ id: a, url: 'http://a' }] } } }\n" +
      "  public: {}",
  );
  const found = providers(config, "public", "base");
  assert.ok(found.some(({ id, url }) => id === "base" && url === "https://mainnet.base.org"));
  assert.deepEqual(found[0]?.alias, "p1");
  assert.deepEqual(providers(config, "public", "ethereum"), []);
  assert.deepEqual(providers(config, "own", "base"), []);
  assert.deepEqual(
    config.profiles.map(({ slug, managed, chains }) => [slug, managed, [...chains.keys()]]),
    [
      ["own", false, ["ethereum"]],
      ["public", true, ["base"]],
    ],
  );
  assert.equal(config.onDemand, null);
});

test("public addresses belong to the profile of URLs that name none", () => {
  const profile = "{ chains: { ethereum: { providers: [{ id: a, url: 'http://a' }] } } }";
  const { profiles } = accepted(
    `chains: { base: {}, ethereum: {} }\nprofiles: { one: ${profile}, two: ${profile} }`,
  );
  assert.deepEqual(
    profiles.map(({ slug, chains }) => [slug, [...chains.keys()]]),
    [
      ["one", ["base", "ethereum"]],
      ["two", ["ethereum"]],
    ],
  );
  const alone = accepted("chains: { base: {} }");
  assert.deepEqual(
    alone.profiles.map(({ slug }) => slug),
    ["public"],
  );
});

test("settings of public addresses come from profile `public`", () => {
  const config = accepted(
    "chains: { base: {} }\nprofiles: { public: { hedge: off, chains: { 8453: { selection: " +
      "{ max_lag_blocks: 77 } } } } }",
  );
  const set = config.profiles[0]?.chains.get("base");
  assert.equal(set?.maxLagBlocks, 77);
  assert.equal(set?.hedge, null);
  assert.ok((set?.providers.length ?? 0) > 1);
});

test("every chain: by a word, beside named ones, and with profiles that name known ones", () => {
  const all = accepted("chains: all");
  assert.deepEqual([all.chains, all.profiles.map(({ slug }) => slug)], [[], ["public"]]);
  assert.deepEqual(
    all.onDemand?.profiles.map(({ slug }) => slug),
    ["public"],
  );
  const beside = accepted("chains: { all: true, mine: { chain_id: 424242 } }");
  assert.deepEqual(
    beside.chains.map(({ chainName }) => chainName),
    ["mine"],
  );
  assert.notEqual(beside.onDemand, null);
  const named = accepted(
    "chains: all\nprofiles: { own: { chains: { 8453: { providers: [{ id: a, url: 'http://a' }] } } } }",
  );
  assert.deepEqual(
    named.chains.map(({ chainName }) => chainName),
    ["base"],
  );
  assert.equal(providers(named, "own", "base").length, 1);
  assert.equal(load("chains: all\nhosted: { enabled: true }").ok, true);
});

test("a chain that nobody configured has the providers that its public addresses are", () => {
  const { onDemand } = accepted("chains: all");
  const known = knownChain("gnosis");
  assert.ok(onDemand !== null && known !== null);
  const sets = onDemandSets(onDemand.profiles, known);
  assert.deepEqual([...sets.keys()], ["public"]);
  const set = sets.get("public");
  assert.deepEqual(
    [set?.chain.chainId, set?.chain.chainName, set?.chain.blockTimeMs],
    [100, "gnosis", 5_000],
  );
  assert.deepEqual(
    set?.providers.map(({ url }) => url),
    known.urls,
  );
});

test("public providers of every known chain are valid and named by their operators, each once", () => {
  for (const known of knownChains()) {
    const found = publicProviders(known);
    const ids = found.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length, known.chainName);
    assert.equal(found.filter(({ url }) => url !== undefined).length, known.urls.length);
    assert.equal(found.filter(({ ws_url }) => ws_url !== undefined).length, known.wsUrls.length);
    assert.ok(!ids.some((id) => id.startsWith("own")), ids.join());
  }
  const ethereum = publicProviders(knownChain("ethereum"));
  const publicnode = ethereum.find(({ id }) => id === "publicnode");
  assert.equal(publicnode?.url, "https://ethereum-rpc.publicnode.com");
  assert.equal(publicnode?.ws_url, "wss://ethereum-rpc.publicnode.com");
});

test("a chain with one known address says so at start", () => {
  const result = load("chains:\n  gnosis: {}\n  ethereum: {}\n  polygon-zkevm: {}");
  assert.ok(result.ok);
  const lines = result.warnings.map(({ line, path, message }) => `${line} ${path} ${message}`);
  const single = [...knownChains()].filter((known) => publicProviders(known).length === 1);
  for (const [at, name] of ["gnosis", "ethereum", "polygon-zkevm"].entries())
    assert.equal(
      lines.some((line) => line.startsWith(`${at + 2} chains.${name} has no failover`)),
      single.some(({ chainName }) => chainName === name),
      lines.join("\n"),
    );
});

function byName(chains: readonly Chain[], name: string): Chain {
  const found = chains.find(({ chainName }) => chainName === name);
  assert.ok(found, name);
  return found;
}
