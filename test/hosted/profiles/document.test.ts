// What a Custom profile's document becomes for routing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PUBLIC_ONLY } from "../../../src/core/public-address.ts";
import {
  type ChainDocument,
  type ProfileDocument,
  readDocument,
} from "../../../src/hosted/profiles/document.ts";

const CHAINS = [
  {
    chainId: 1,
    chainName: "ethereum",
    name: "Ethereum",
    aliases: ["mainnet"],
    blockTimeMs: 12_000,
  },
];
const LIMITS = { archival: false, logs_span: null, methods_blocked: [] };

function lagOf(chain: Partial<ChainDocument>): number | undefined {
  const providers = [
    { name: "mine", url: "https://eth.example.com/x", headers: {}, limits: LIMITS },
  ];
  const profile = readDocument(
    { chains: CHAINS, rules: PUBLIC_ONLY },
    { accountId: "acc_a", slug: "mine" },
    { chains: { mainnet: { max_lag_blocks: 5, block_protection: false, providers, ...chain } } },
  );
  assert.ok(!("kind" in profile));
  return profile.chains.get("ethereum")?.maxLagBlocks;
}

test("a provider may state its region; nodes prefer their own, and no profile of an account says otherwise", () => {
  const own = { url: "https://eth.example.com/x", headers: {}, limits: LIMITS };
  const profile = readDocument(
    { chains: CHAINS, rules: PUBLIC_ONLY },
    { accountId: "acc_a", slug: "mine" },
    {
      chains: {
        mainnet: {
          max_lag_blocks: 5,
          block_protection: false,
          providers: [
            { ...own, name: "near", region: "eu-west" },
            { ...own, name: "somewhere" },
          ],
        },
      },
    },
  );
  assert.ok(!("kind" in profile));
  const set = profile.chains.get("ethereum");
  assert.deepEqual(
    set?.providers.map(({ region }) => region),
    ["eu-west", null],
  );
  assert.equal(set?.regionPreference, "prefer");
  assert.deepEqual(
    set?.providers.map(({ operator }) => operator),
    ["example.com", "example.com"],
  );
});

test("block protection leaves out providers a block behind, also where more lag is allowed", () => {
  assert.deepEqual(
    [
      lagOf({}),
      lagOf({ max_lag_blocks: 9 }),
      lagOf({ max_lag_blocks: 9, block_protection: false }),
      lagOf({ max_lag_blocks: 9, block_protection: true }),
    ],
    [5, 9, 9, 0],
  );
});

test("a profile says which view of the chain its callers get, on each of its chains", () => {
  const setOf = (more: Pick<ProfileDocument, "consistency">) => {
    const providers = [
      { name: "mine", url: "https://eth.example.com/x", headers: {}, limits: LIMITS },
    ];
    const profile = readDocument(
      { chains: CHAINS, rules: PUBLIC_ONLY },
      { accountId: "acc_a", slug: "mine" },
      { ...more, chains: { mainnet: { max_lag_blocks: 5, block_protection: false, providers } } },
    );
    assert.ok(!("kind" in profile));
    return profile.chains.get("ethereum");
  };
  assert.equal(setOf({ consistency: "caller" })?.consistency, "caller");
  assert.ok(!Object.hasOwn(setOf({}) ?? {}, "consistency"), "as the service says");
});
