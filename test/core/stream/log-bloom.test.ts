// Blooms: against one of a known block, against plain sets, and what cannot be believed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak_256 } from "@noble/hashes/sha3.js";
import fc from "fast-check";
import {
  covers,
  disproved,
  filterBits,
  headerBloom,
  mayHold,
  NO_TRUST,
  proven,
  trustAt,
} from "../../../src/core/stream/log-bloom.ts";
import {
  matchesFilter,
  needOf,
  verificationOf,
} from "../../../src/core/stream/log-verification.ts";
import { addToBloom, BLOOM_BYTES } from "../../fakes/chain.ts";

const hexOf = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((it) => `0x${Buffer.from(it).toString("hex")}`);
const logs = fc.record({ address: hexOf(20), topics: fc.array(hexOf(32), { maxLength: 4 }) });

function bloomOf(texts: readonly string[]): Buffer {
  const bloom = Buffer.alloc(BLOOM_BYTES);
  for (const it of texts) addToBloom(bloom, it);
  return bloom;
}

test("an address sets the three bits that the yellow paper says", () => {
  const bloom = bloomOf(["0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"]);
  const hash = Buffer.from(
    keccak_256(Buffer.from("c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2", "hex")),
  );
  const bits = [0, 2, 4].map((at) => hash.readUInt16BE(at) % 2048);
  const number = BigInt(`0x${bloom.toString("hex")}`);
  assert.equal(
    number,
    [...new Set(bits)].reduce((sum, bit) => sum + (1n << BigInt(bit)), 0n),
  );
});

test("a block's bloom covers its logs, and a filter that matches a log may match the bloom", () => {
  fc.assert(
    fc.property(fc.array(logs, { minLength: 1, maxLength: 8 }), fc.nat(), (all, chosen) => {
      const bloom = bloomOf(all.flatMap((it) => [it.address, ...it.topics]));
      const log = all[chosen % all.length];
      assert.ok(log !== undefined);
      assert.ok(covers(bloom, log, keccak_256));
      const filter = { addresses: [log.address], topics: log.topics.map((it) => [it]) };
      assert.ok(matchesFilter(filter, log));
      assert.ok(mayHold(bloom, filterBits(filter, keccak_256)));
      assert.ok(mayHold(bloom, filterBits({ addresses: [], topics: [] }, keccak_256)));
    }),
  );
});

test(
  "an empty bloom matches nothing, one address among many matches, and a list that is too long " +
    "says nothing",
  () => {
    const [first, second] = [`0x${"11".repeat(20)}`, `0x${"22".repeat(20)}`];
    const empty = Buffer.alloc(BLOOM_BYTES);
    for (const addresses of [[], [first], [first, second]])
      assert.equal(mayHold(empty, filterBits({ addresses, topics: [] }, keccak_256)), false);
    const bloom = bloomOf([second]);
    assert.equal(
      mayHold(bloom, filterBits({ addresses: [first, second], topics: [] }, keccak_256)),
      true,
    );
    assert.equal(mayHold(bloom, filterBits({ addresses: [first], topics: [] }, keccak_256)), false);
    assert.equal(
      mayHold(
        bloom,
        filterBits({ addresses: [second], topics: [[`0x${"33".repeat(32)}`]] }, keccak_256),
      ),
      false,
    );
    const many = Array.from({ length: 65 }, (_, n) => `0x${n.toString(16).padStart(40, "0")}`);
    assert.equal(mayHold(bloom, filterBits({ addresses: many, topics: [] }, keccak_256)), true);
  },
);

test("a header without a bloom, with a broken one, or with none although gas was used, says nothing", () => {
  const zero = `0x${"0".repeat(512)}`;
  const hasBloom = (header: unknown): boolean =>
    headerBloom(Buffer.from(JSON.stringify(header))) !== null;
  assert.ok(hasBloom({ logsBloom: zero, gasUsed: "0x0" }));
  assert.ok(hasBloom({ logsBloom: `0x1${"0".repeat(511)}`, gasUsed: "0x5208" }));
  for (const header of [
    {},
    { logsBloom: zero },
    { logsBloom: zero, gasUsed: "0x5208" },
    { logsBloom: "0x00", gasUsed: "0x0" },
    { logsBloom: 1 },
    [],
    null,
  ])
    assert.ok(!hasBloom(header));
  assert.equal(headerBloom(Buffer.from("{")), null);
});

test("blooms are trusted after a hundred blocks, and not for a day after one that was wrong", () => {
  let trust = NO_TRUST;
  for (let n = 0; n < 99; n++) trust = proven(trust);
  assert.equal(trust.kind, "learning");
  trust = proven(trust);
  assert.equal(trust.kind, "trusted");
  trust = disproved(1_000);
  assert.deepEqual(
    [trustAt(trust, 86_400_999).kind, proven(trust).kind, trustAt(trust, 86_401_000)],
    ["off", "off", NO_TRUST],
  );
});

test("what is checked under each of the ways", () => {
  const base = { alarmed: false, roomy: true, chance: 0.5 };
  const need = (
    mode: "strict" | "sampled" | "off",
    mayHold: "yes" | "no" | "unknown",
    brought: boolean,
    more = {},
  ): string => needOf(mode, { ...base, mayHold, brought, ...more });
  assert.deepEqual(
    [
      need("strict", "yes", true),
      need("strict", "yes", false),
      need("strict", "unknown", false),
      need("strict", "no", false),
    ],
    ["routine", "needed", "needed", "none"],
  );
  assert.deepEqual(
    [
      need("sampled", "yes", true),
      need("sampled", "yes", false),
      need("sampled", "unknown", false),
      need("sampled", "no", false),
    ],
    ["none", "needed", "needed", "none"],
  );
  assert.deepEqual(
    [
      need("sampled", "yes", true, { chance: 0.06 }),
      need("sampled", "no", false, { chance: 0.06 }),
      need("sampled", "yes", true, { alarmed: true }),
    ],
    ["routine", "routine", "routine"],
  );
  const scarce = { roomy: false };
  assert.deepEqual(
    [
      need("strict", "yes", true, scarce),
      need("strict", "yes", true, { ...scarce, chance: 0.06 }),
      need("strict", "yes", true, { ...scarce, alarmed: true }),
      need("strict", "no", true, { ...scarce, chance: 0.06 }),
    ],
    ["routine", "needed", "needed", "none"],
    "without room strict takes a sample of blocks that brought logs",
  );
  assert.deepEqual(
    [need("off", "yes", false), need("off", "unknown", false, { alarmed: true, chance: 0 })],
    ["none", "none"],
  );
  const modes = [1_000, 999].map((blockTimeMs) =>
    verificationOf({ logVerification: null, chain: { blockTimeMs } }),
  );
  assert.deepEqual(modes, ["strict", "sampled"]);
});
