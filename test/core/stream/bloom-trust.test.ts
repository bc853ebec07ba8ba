// Trust in the blooms of a chain: earned by a hundred blocks, lost by one, for a day.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type BloomTrust,
  disproved,
  NO_TRUST,
  proven,
  trustAt,
} from "../../../src/core/stream/log-bloom.ts";

const DAY_MS = 86_400_000;

function after(blocks: number, trust: BloomTrust = NO_TRUST): BloomTrust {
  return Array.from({ length: blocks }).reduce<BloomTrust>((sum) => proven(sum), trust);
}

test("a hundred blocks that were right earn trust, ninety-nine do not", () => {
  assert.equal(after(99).kind, "learning");
  assert.equal(after(100).kind, "trusted");
  assert.equal(after(1_000).kind, "trusted");
});

test("one bloom that was wrong ends it for a day, and blocks of that day earn nothing", () => {
  const off = disproved(5_000);
  assert.equal(after(1_000, off), off);
  assert.equal(trustAt(off, 5_000 + DAY_MS - 1).kind, "off");
  assert.deepEqual(trustAt(off, 5_000 + DAY_MS), NO_TRUST, "then it is earned from the start");
});

test("property: there is no trust unless the last hundred observations were all right", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 150 }), { maxLength: 8 }), (runs) => {
      let trust = NO_TRUST;
      let nowMs = 0;
      for (const [index, right] of runs.entries()) {
        trust = after(right, trustAt(trust, nowMs));
        assert.equal(trust.kind === "trusted", right >= 100, `run ${index}`);
        trust = disproved(nowMs);
        nowMs += DAY_MS;
      }
    }),
  );
});
