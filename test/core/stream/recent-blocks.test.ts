// The blocks a subscriber knows: whatever is adopted, each is the parent of the next, no number is
// missing, and the window is kept.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Block } from "../../../src/core/stream/chain-event.ts";
import {
  adopt,
  holds,
  place,
  RecentBlocks,
  tipOf,
} from "../../../src/core/stream/recent-blocks.ts";

const block = (number: number, branch = "a", parentBranch = branch): Block => ({
  number,
  hash: `${branch}${number}`,
  parentHash: `${parentBranch}${number - 1}`,
});

/** A view of branch a. */
function viewOf(from: number, to: number, window = 64): RecentBlocks {
  const view = new RecentBlocks(window);
  for (let number = from; number <= to; number++) adopt(view, block(number));
  return view;
}

test("a block is placed by its parent, its number and what is known", () => {
  const empty = new RecentBlocks(4);
  assert.deepEqual([place(empty, block(7), 0), tipOf(empty)], ["next", null]);
  const view = viewOf(10, 15);
  assert.equal(place(view, block(12), 5), "known");
  assert.equal(place(view, block(16), 5), "next");
  assert.equal(place(view, block(13, "b", "a"), 5), "next");
  assert.equal(place(view, block(13, "b"), 5), "unlinked");
  assert.equal(place(view, block(9), 5), "old");
  assert.equal(place(view, block(21), 5), "unlinked");
  assert.equal(place(view, block(22), 5), "far");
  assert.ok(holds(view, 12, "a12") && !holds(view, 12, "b12") && !holds(view, 99, "a99"));
});

test("whatever replaces the very first block needs no parent, as long as it is still known", () => {
  const view = viewOf(10, 12, 3);
  assert.equal(place(view, block(10, "b"), 5), "next");
  assert.equal(place(view, block(9, "b"), 5), "old");
  adopt(view, block(13));
  assert.equal(place(view, block(11, "b"), 5), "old");
  const other = viewOf(10, 12);
  assert.deepEqual(
    adopt(other, block(10, "b")).map((it) => it.hash),
    ["a12", "a11", "a10"],
  );
  assert.deepEqual(
    other.blocks.map((it) => it.hash),
    ["b10"],
  );
});

test("blocks leave for a new branch newest first", () => {
  const view = viewOf(10, 15);
  assert.deepEqual(
    adopt(view, block(13, "b", "a")).map((it) => it.hash),
    ["a15", "a14", "a13"],
  );
  assert.equal(tipOf(view)?.hash, "b13");
});

test("a view stays linked, without holes and within its window, whatever comes", () => {
  const step = fc.record({
    back: fc.nat(12),
    ahead: fc.integer({ min: -2, max: 3 }),
    branch: fc.nat(1_000),
  });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.integer({ min: 1, max: 20 }),
      (steps, window) => {
        const view = new RecentBlocks(window);
        adopt(view, { number: 100, hash: "start", parentHash: "before" });
        for (const [at, { back, ahead, branch }] of steps.entries()) {
          const parent = view.blocks.at(-1 - (back % view.blocks.length)) ?? view.blocks[0];
          assert.ok(parent !== undefined);
          const next = {
            number: parent.number + 1 + ahead,
            hash: `${branch}-${at}`,
            parentHash: parent.hash,
          };
          if (place(view, next, 3) !== "next") continue;
          const before = [...view.blocks];
          const left = adopt(view, next);
          assert.deepEqual(left, before.filter((it) => it.number >= next.number).toReversed());
          assert.equal(tipOf(view)?.hash, next.hash);
          assert.ok(view.blocks.length <= window);
          for (const [n, it] of view.blocks.entries()) {
            const older = view.blocks[n - 1];
            if (older !== undefined)
              assert.ok(it.number === older.number + 1 && it.parentHash === older.hash, "a hole");
          }
        }
      },
    ),
    { numRuns: 500 },
  );
});
