// The table of vendors: that every address is well formed for every chain it names, that what
// follows from a row is a valid provider, and that a row tells where it is from.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parse as lookUpSuffix } from "tldts";
import { provider as providerTable } from "../../src/config/schema.ts";
import { vendorOfDomain } from "../../src/config/vendor-providers.ts";
import { operatorOf } from "../../src/core/provider/operator.ts";
import type { Vendor } from "../../src/presets/vendor.ts";
import { VENDORS, vendorProviders } from "../../src/presets/vendors.ts";
import { vendorsReference } from "../../src/presets/vendors-reference.ts";

const DAY = /^20\d\d-[01]\d-[0-3]\d$/;
const EVERY: readonly (readonly [word: string, vendor: Vendor])[] = [...VENDORS];
/** The chains of a vendor; some numbers where it lists none. */
const chainsOf = ({ chains }: Vendor): readonly number[] =>
  typeof chains === "string" ? [1, 8_453, 888_888_888] : [...chains.keys()];

/** The addresses that a row gives for a chain, as URLs. */
function addressesOf(word: string, vendor: Vendor, chainId: number, key?: string): readonly URL[] {
  const endpoint = vendor.chains === "endpoints" ? "https://name.example.com/tok/" : undefined;
  const raw = vendorProviders({ vendor: word, key, endpoint }, { chainId });
  assert.notEqual(raw, null, `${word} serves ${chainId}`);
  const { url, ws_url } = providerTable.parse(raw);
  const texts = [url, ws_url].filter((text) => text !== undefined);
  assert.ok(texts.length > 0, `${word} has an address for ${chainId}`);
  return texts.map((text) => new URL(text));
}

describe("the table of vendors", () => {
  it("has the vendors that were asked for", () => {
    const asked =
      "alchemy infura quicknode drpc ankr chainstack blockpi tenderly onfinality dwellir nodereal " +
      "getblock 1rpc publicnode conduit thirdweb routemesh blockdaemon envio pimlico etherspot";
    assert.deepEqual(
      asked.split(" ").filter((word) => !VENDORS.has(word)),
      [],
    );
  });

  it("gives well-formed addresses over TLS for every chain it names, with any key", () => {
    const key = fc.stringMatching(/^[!-~]{1,60}$/);
    for (const [word, vendor] of EVERY)
      for (const chainId of chainsOf(vendor))
        fc.assert(
          fc.property(key, (text) => {
            const given = vendor.key === "none" ? undefined : text;
            const [http, ws] = addressesOf(word, vendor, chainId, given);
            assert.equal(http?.protocol, "https:");
            if (ws !== undefined) assert.equal(ws.protocol, "wss:");
            for (const { href, hostname } of [http, ws].filter((url) => url !== undefined)) {
              assert.doesNotMatch(decodeURI(href.replace(encodeURI(text), "")), /undefined|NaN/);
              if (vendor.chains === "endpoints") continue;
              const domain = operatorOf({ url: href, wsUrl: null }, lookUpSuffix);
              assert.equal(domain, vendor.domain, hostname);
              assert.equal(vendorOfDomain(domain), word);
            }
          }),
          { numRuns: 3 },
        );
  });

  it("carries the key in every address, or in a header; without one where that is allowed", () => {
    const key = "k3yk3yk3yk3yk3yk3y";
    for (const [word, vendor] of EVERY.filter(([, { key: need }]) => need !== "none"))
      for (const chainId of chainsOf(vendor)) {
        const endpoint = "https://name.example.com/tok";
        const keyed = JSON.stringify(vendorProviders({ vendor: word, key, endpoint }, { chainId }));
        assert.ok(keyed.includes(key), `${word} ${chainId}`);
        if (vendor.key !== "optional") continue;
        const hrefs = addressesOf(word, vendor, chainId).map(({ href }) => href);
        assert.ok(hrefs.every((href) => !href.includes("{") && !/%7B/i.test(href)));
      }
  });

  it("gives valid providers for every plan, and forgets prices that nothing counts", () => {
    for (const [word, vendor] of EVERY)
      for (const plan of [undefined, ...Object.keys(vendor.plans)])
        for (const chainId of chainsOf(vendor)) {
          const endpoint = "https://name.example.com";
          const entry = { vendor: word, key: "k3yk3yk3y", plan, endpoint };
          const { limits, price, operator } = providerTable.parse(
            vendorProviders(entry, { chainId }),
          );
          assert.equal(operator, word);
          const counts = [limits?.daily, limits?.monthly, price].some((each) => each != null);
          if (!counts) assert.deepEqual(limits?.credits ?? {}, {});
        }
  });

  it("knows what a plan allows on a chain", () => {
    const blocksOf = (vendor: string, plan: string, chainId: number): unknown => {
      const entry = { vendor, plan, key: "k3yk3yk3y", endpoint: "https://name.example.com" };
      return providerTable.parse(vendorProviders(entry, { chainId })).capabilities.limits
        .max_block_range;
    };
    // A range is the last block minus the first: ten blocks are a range of nine.
    assert.equal(blocksOf("alchemy", "free", 1), 9);
    assert.equal(blocksOf("alchemy", "payg", 1), null);
    assert.equal(blocksOf("alchemy", "payg", 80_094), 999);
    assert.equal(blocksOf("alchemy", "payg", 100), 9_999);
    assert.equal(blocksOf("quicknode", "build", 1_329), 1_999);
    assert.equal(blocksOf("chainstack", "developer", 1), 99);
  });

  it("says in every row where it is from, and when that was looked at", () => {
    for (const [word, { sources, lookedAt, sunset, domain }] of EVERY) {
      assert.ok(sources.length > 0, word);
      for (const source of sources) assert.equal(new URL(source).protocol, "https:");
      assert.match(lookedAt, DAY);
      if (sunset !== undefined) assert.match(sunset, DAY);
      assert.match(domain, /^[a-z0-9-]+\.[a-z]+$/);
    }
  });

  it("is what docs/vendors.md tells", () => {
    const file = new URL("../../docs/vendors.md", import.meta.url);
    assert.equal(readFileSync(file, "utf8"), vendorsReference(), "run `npm run docs`");
  });
});
