// Which heights no reorganisation has touched since a given count.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  BranchChanges,
  REMEMBERED_CHANGES,
} from "../../../src/core/provider/blocks/branch-view.ts";

test("a height is touched by a reorganisation that reaches down to it, and stays so", () => {
  const changes = new BranchChanges();
  assert.ok(changes.isUntouched(10, 0));
  changes.abandon(8);
  assert.ok(changes.isUntouched(7, 0));
  assert.ok(!changes.isUntouched(8, 0));
  assert.ok(changes.isUntouched(8, 1), "what was found after it is not touched");
  changes.abandon(12);
  assert.ok(!changes.isUntouched(9, 0));
  assert.ok(changes.isUntouched(11, 1));
});

test("property: it says untouched exactly where no reorganisation reached, as far as it remembers", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40), { maxLength: 200 }), fc.nat(40), (heights, height) => {
      const changes = new BranchChanges();
      for (const lowest of heights) changes.abandon(lowest);
      for (let epoch = 0; epoch <= heights.length; epoch++) {
        const reached = heights.slice(epoch).some((lowest) => lowest <= height);
        const isRemembered = heights.length - epoch <= REMEMBERED_CHANGES;
        assert.equal(changes.isUntouched(height, epoch), isRemembered && !reached);
      }
    }),
  );
});
