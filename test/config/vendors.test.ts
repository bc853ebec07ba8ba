// Entries of vendors in a configuration: what they become on each chain, what goes before what, and
// what is refused.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { stringify } from "yaml";
import { accepted, load, providers, refused } from "./config-fixture.ts";

const KEY = "k3yk3yk3yk3yk3y1";
const CHAINS = {
  ethereum: { chain_id: 1, aliases: ["mainnet"] },
  base: { chain_id: 8_453 },
  odd: { chain_id: 999_999_999_999 },
};

function file(entries: readonly unknown[], own: Record<string, readonly unknown[]> = {}): string {
  const chains = Object.entries(own).map(([name, list]) => [name, { providers: list }]);
  const profile = { providers: entries, chains: Object.fromEntries(chains) };
  return stringify({ chains: CHAINS, profiles: { public: profile } });
}

/** The messages of all faults, each behind the end of its path. */
function faultsOf(entries: readonly unknown[], own?: Record<string, readonly unknown[]>): string {
  return refused(file(entries, own))
    .map(({ path, message }) => `${path.replace(/^.*?providers/, "")} ${message}`)
    .join("\n");
}

describe("entries of vendors", () => {
  it("join every chain that the vendor serves, behind the providers of the chain", () => {
    const node = { id: "node", url: "http://127.0.0.1:1" };
    const config = accepted(file([{ vendor: "alchemy", key: KEY }], { base: [node] }));
    const idsOn = (chain: string) => providers(config, "public", chain).map(({ id }) => id);
    assert.deepEqual(idsOn("ethereum"), ["alchemy"]);
    assert.deepEqual(idsOn("base"), ["node", "alchemy"]);
    assert.deepEqual(idsOn("odd"), []);
    const [{ url, wsUrl, operator, name } = assert.fail()] = providers(config);
    assert.equal(url, `https://eth-mainnet.g.alchemy.com/v2/${KEY}`);
    assert.equal(wsUrl, `wss://eth-mainnet.g.alchemy.com/v2/${KEY}`);
    assert.deepEqual([operator, name], ["alchemy", "Alchemy"]);
  });

  it("join the named chains alone, by name, alias or id; and a chain by its own list", () => {
    const config = accepted(
      file([{ vendor: "infura", key: KEY, chains: ["MAINNET", "8453"] }], {
        ethereum: [{ vendor: "envio" }],
      }),
    );
    assert.deepEqual(
      providers(config).map(({ id }) => id),
      ["envio", "infura"],
    );
    assert.equal(providers(config, "public", "base")[0]?.id, "infura");
  });

  it("count the limits of an account once for all their chains", () => {
    const entry = { vendor: "alchemy", key: KEY, plan: "free" };
    const config = accepted(file([entry], { base: [{ ...entry, id: "other" }] }));
    const accountsOn = (chain: string) =>
      providers(config, "public", chain).map(({ account }) => account);
    assert.deepEqual(accountsOn("ethereum"), ["alchemy"]);
    assert.deepEqual(accountsOn("base"), [undefined, "alchemy"]);
  });

  it("say more than the vendor's row, down to single limits", () => {
    const entry = {
      ...{ vendor: "alchemy", key: KEY, plan: "free", id: "own", weight: 7, backup: false },
      limits: { rps: 5, monthly: 1_000_000 },
      capabilities: { limits: { max_block_age: 64 } },
    };
    const [provider = assert.fail()] = providers(accepted(file([entry])));
    assert.deepEqual([provider.id, provider.weight, provider.priority], ["own", 7, 100]);
    assert.deepEqual([provider.maxBlockRange, provider.maxBlockAge], [9, 64]);
    const { budget } = provider;
    assert.deepEqual(
      [budget?.rps, budget?.monthly, budget?.credits.get("eth_call"), budget?.defaultCredits],
      [5, 1_000_000, 26, 20],
    );
  });

  it("take addresses that no rule tells from the file, with what is known of the vendor", () => {
    const endpoints = { mainnet: "https://a-b.quiknode.pro/TOKEN/" };
    const conduit = "https://rpc-x.t.conduit.xyz";
    const config = accepted(
      file([{ vendor: "quicknode", endpoints }], {
        base: [
          { vendor: "quicknode", url: "https://c-d.base-mainnet.quiknode.pro/TOKEN" },
          { vendor: "conduit", key: KEY, url: conduit },
          { vendor: "blockdaemon", key: KEY },
        ],
      }),
    );
    assert.deepEqual(
      [providers(config)[0]?.url, providers(config)[0]?.wsUrl],
      ["https://a-b.quiknode.pro/TOKEN", "wss://a-b.quiknode.pro/TOKEN"],
    );
    const [quicknode, second, third] = providers(config, "public", "base");
    assert.equal(quicknode?.wsUrl, "wss://c-d.base-mainnet.quiknode.pro/TOKEN");
    assert.equal(second?.url, `${conduit}/${KEY}`);
    assert.deepEqual(third?.headers, { Authorization: `Bearer ${KEY}` });
  });

  it("make a plain address of the same vendor the same operator", () => {
    const url = "https://base-mainnet.g.alchemy.com/v2/other";
    const config = accepted(
      file([{ vendor: "alchemy", key: KEY }], { base: [{ id: "plain", url }] }),
    );
    const operators = providers(config, "public", "base").map(({ operator }) => operator);
    assert.deepEqual(operators, ["alchemy", "alchemy"]);
  });

  it("give bundlers and log services the methods that they serve", () => {
    const config = accepted(file([{ vendor: "pimlico" }, { vendor: "envio" }]));
    const [bundler, logs] = providers(config);
    const methods = bundler?.scope?.only;
    assert.deepEqual(
      [methods?.has("eth_sendUserOperation"), methods?.has("eth_call")],
      [true, false],
    );
    assert.equal(logs?.scope?.first, "logs");
  });

  it("are refused where vendor, key, plan or chain is not known, without a word of the key", () => {
    const said = faultsOf([
      { vendor: "alchemi", key: KEY },
      { vendor: "alchemy" },
      { vendor: "alchemy", id: "b", key: KEY, plan: "gold" },
      { vendor: "alchemy", id: "c", key: KEY, chains: ["odd", "nowhere"] },
      { vendor: "quicknode" },
      { vendor: "publicnode", key: KEY },
      { vendor: "blastapi", key: KEY },
      { vendor: "infura", id: "d", key: `${KEY} ` },
      { vendor: "getblock", endpoints: { nowhere: "https://go.getblock.io/x" } },
      { vendor: "infura", id: "e", key: KEY, url: "https://example.com" },
      { vendor: "infura", id: "f", key: KEY, wieght: 1 },
    ]);
    for (const expected of [
      "[0].vendor must be one of 1rpc, alchemy, ankr",
      "[1] must have `key`",
      "[2].plan must be a plan of Alchemy: free, payg, enterprise",
      "[3].chains[0] must be a chain that Alchemy serves",
      "[3].chains[1] must be the name of a chain under `chains`: ethereum, base, odd",
      "[4] must have an address for each chain under `endpoints`",
      "[5].key must not be set",
      "[6].vendor must be another one: Blast API closed on 2025-10-31",
      "[7].key must be 1 to 1000 characters of ASCII without spaces",
      "[8].endpoints.nowhere must be for a chain under `chains`",
      "[9] must name one chain under `chains` where it has `url`",
      "[10].wieght is not a known setting; did you mean `weight`?",
    ])
      assert.ok(said.includes(expected), `${expected}\nnot in\n${said}`);
    assert.ok(!said.includes(KEY));
  });

  it("need ids of their own where two of one vendor meet on a chain", () => {
    const twice = [
      { vendor: "infura", key: KEY, chains: ["base"] },
      { vendor: "infura", key: KEY },
    ];
    assert.match(faultsOf(twice), /^\[1\] must be unique per chain and profile/);
    accepted(file([twice[0], { ...twice[1], id: "infura-2" }]));
    accepted(file([twice[0], { ...twice[1], chains: ["ethereum"] }]));
  });

  it("are refused at a chain with what is for profiles, and with the faults of their own form", () => {
    const said = faultsOf([], {
      ethereum: [
        { vendor: "infura", key: KEY, chains: ["base"], weight: 0 },
        { vendor: "getblock" },
        { id: "plain", url: "http://127.0.0.1:1", kind: "nod", methods: [] },
      ],
    });
    for (const expected of [
      "[0].chains must not stand here",
      "[0].weight must be a whole number from 1 to 1000",
      "[1] must have an address for ethereum under `endpoints`",
      "[2].kind must be one of node, bundler, relay, logs",
      "[2].methods must be a list of 1 to 500 method names",
    ])
      assert.ok(said.includes(expected), `${expected}\nnot in\n${said}`);
  });

  it("warn of what is not known", () => {
    const result = load(
      file([
        { vendor: "thirdweb" },
        { vendor: "chainstack", endpoints: { base: "https://b.example.com/x" } },
        { vendor: "nodereal", key: KEY, chains: ["ethereum"] },
      ]),
    );
    assert.ok(result.ok);
    const said = result.warnings.map(({ path, message }) => `${path} ${message}`).join("\n");
    assert.match(said, /providers\[0\] joins every chain: which ones thirdweb serves is not known/);
    assert.match(
      said,
      /providers\[1\] joins no chain without an address: it has none for ethereum/,
    );
    assert.doesNotMatch(said, /providers\[2\]/);
  });
});
