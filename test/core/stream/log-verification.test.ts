// Checks of logs: which blocks are checked, and what a check finds.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type BlockEvidence,
  differenceOf,
  matchesFilter,
  needOf,
  verificationOf,
} from "../../../src/core/stream/log-verification.ts";

const evidence: fc.Arbitrary<BlockEvidence> = fc.record({
  mayHold: fc.constantFrom("yes" as const, "no" as const, "unknown" as const),
  brought: fc.boolean(),
  alarmed: fc.boolean(),
  roomy: fc.boolean(),
  chance: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
});

function log(logIndex: number) {
  return { blockNumber: 1, blockHash: "0x1", logIndex, removed: false, raw: Buffer.alloc(0) };
}

test("property: nothing is checked where checks are off", () => {
  fc.assert(fc.property(evidence, (block) => assert.equal(needOf("off", block), "none")));
});

test("property: strict checks every block whose bloom does not rule logs out, and no other", () => {
  fc.assert(
    fc.property(evidence, (block) =>
      assert.equal(needOf("strict", block) === "none", block.mayHold === "no"),
    ),
  );
});

test("property: a block that may hold logs of which the source brought none is needed in both ways", () => {
  fc.assert(
    fc.property(evidence, (block) => {
      const left = { ...block, brought: false };
      if (left.mayHold === "no") return;
      assert.equal(needOf("strict", left), "needed");
      assert.equal(needOf("sampled", left), "needed");
    }),
  );
});

test("sampled checks one block in sixteen of those that brought logs, and all of them after an alarm", () => {
  const block = { mayHold: "yes", brought: true, alarmed: false, roomy: true } as const;
  const checked = Array.from({ length: 1_600 }, (_, n) =>
    needOf("sampled", { ...block, chance: n / 1_600 }),
  ).filter((need) => need !== "none");
  assert.equal(checked.length, 100);
  assert.equal(needOf("sampled", { ...block, alarmed: true, chance: 0.99 }), "routine");
});

test("a chain with a block a second or slower is checked strictly", () => {
  assert.deepEqual(
    [12_000, 1_000, 999, 250].map((blockTimeMs) =>
      verificationOf({ logVerification: null, chain: { blockTimeMs } }),
    ),
    ["strict", "strict", "sampled", "sampled"],
  );
});

test("property: what is missing and what is surplus add up to the difference of both sides", () => {
  const indexes = fc.uniqueArray(fc.nat({ max: 30 }));
  fc.assert(
    fc.property(indexes, indexes, (told, answered) => {
      const { missing, surplus } = differenceOf(new Set(told), answered.map(log));
      assert.deepEqual(
        missing.map(({ logIndex }) => logIndex),
        answered.filter((index) => !told.includes(index)),
      );
      assert.equal(surplus, told.length - (answered.length - missing.length));
    }),
  );
});

test("a filter matches addresses, and topics by position; an empty list matches all", () => {
  const found = { address: "0xa", topics: ["0x1", "0x2"] };
  const cases: readonly [readonly string[], readonly (readonly string[])[], boolean][] = [
    [[], [], true],
    [["0xb", "0xa"], [], true],
    [["0xb"], [], false],
    [[], [["0x1"], []], true],
    [[], [[], ["0x3", "0x2"]], true],
    [[], [["0x2"]], false],
    [[], [[], [], ["0x3"]], false],
    [[], [[], [], []], true],
  ];
  for (const [addresses, topics, wanted] of cases)
    assert.equal(
      matchesFilter({ addresses, topics }, found),
      wanted,
      JSON.stringify([addresses, topics]),
    );
});
