// A block that certainly does not exist: where all providers push their heads, and not the next
// few, which may be on their way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type HeadSample, isFutureBlock } from "../../../src/core/provider/blocks/head.ts";
import { fakeSet } from "../../fakes/providers.ts";

const { chain } = fakeSet([]);
const NOW_MS = 100_000;
const pushed = (height: number, ageMs = 100): HeadSample => ({
  height,
  atMs: NOW_MS - ageMs,
  polled: false,
});
const isFuture = (number: number, samples: readonly (HeadSample | null)[], blockTimeMs = 12_000) =>
  isFutureBlock(number, samples, { ...chain, blockTimeMs }, NOW_MS);

test("a block is in the future when it is well above every head that was pushed", () => {
  const heads = [pushed(100), pushed(102, 5_000)];
  for (const number of [0, 102, 103, 104]) assert.equal(isFuture(number, heads), false);
  assert.equal(isFuture(105, heads), true);
  assert.equal(isFuture(105, heads, 250), false, "more are on their way where blocks are quick");
  assert.equal(isFuture(108, heads, 250), true);
});

test("nothing is in the future where somebody may have more than is known", () => {
  const number = 10_000;
  assert.equal(isFuture(number, [pushed(100), pushed(100)]), true);
  assert.equal(isFuture(number, []), false);
  assert.equal(isFuture(number, [pushed(100), null]), false, "one is unknown");
  const polled = { ...pushed(100), polled: true };
  assert.equal(isFuture(number, [pushed(100), polled]), false, "one is only polled");
  assert.equal(isFuture(number, [pushed(100), pushed(100, 31_000)]), false, "one is silent");
  assert.equal(isFuture(number, [pushed(100, 19_000)]), false, "all are silent");
  assert.equal(isFuture(number, [pushed(100, -1)]), false, "the clock went back");
});
