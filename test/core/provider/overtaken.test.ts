// Sources that are overtaken: a source that keeps up is never blamed, one that does not is noticed.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  isLate,
  isSilentBehind,
  overtakenBy,
  quietMs,
} from "../../../src/core/provider/blocks/head.ts";
import { fakeSet } from "../../fakes/providers.ts";

const { chain } = fakeSet([]);
const QUIET_MS = quietMs(chain);

test("property: a source that has what is known elsewhere lacks nothing", () => {
  const height = fc.nat({ max: 1_000 });
  fc.assert(
    fc.property(height, height, (known, source) => {
      const lacking = overtakenBy(null, known, source, 5);
      assert.deepEqual(lacking, known > source ? { height: known, sinceMs: 5 } : null);
    }),
  );
  assert.equal(overtakenBy(null, null, 1, 5), null);
  assert.equal(overtakenBy(null, 1, null, 5), null, "a source that has told of nothing yet");
});

test("the height that it lacks stays the same until it has reached it, however far others go", () => {
  const first = overtakenBy(null, 10, 9, 1_000);
  const later = overtakenBy(first, 50, 9, 9_000);
  assert.deepEqual(later, { height: 10, sinceMs: 1_000 });
  assert.deepEqual(overtakenBy(later, 50, 10, 9_500), { height: 50, sinceMs: 9_500 });
  assert.equal(overtakenBy(later, 50, 50, 9_500), null);
});

test("silence counts only while others have been ahead for a second and the source for a block and a half", () => {
  const lacking = { height: 10, sinceMs: 100_000 };
  assert.equal(isSilentBehind(lacking, QUIET_MS, chain, 101_000), true);
  assert.equal(isSilentBehind(lacking, QUIET_MS - 1, chain, 101_000), false);
  assert.equal(isSilentBehind(lacking, QUIET_MS, chain, 100_999), false);
});

test("a source that tells of old blocks is late a second after it would have been silent", () => {
  const lacking = { height: 10, sinceMs: 100_000 };
  assert.equal(isLate(lacking, chain, 100_000 + QUIET_MS + 999), false);
  assert.equal(isLate(lacking, chain, 100_000 + QUIET_MS + 1_000), true);
});
