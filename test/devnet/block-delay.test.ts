// Which blocks a node of the local chain may copy by when.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BlockDelay } from "../../src/devnet/block-delay.ts";

test("a block is held back for the delay, and one at a time where they come slowly", () => {
  const delay = new BlockDelay(100);
  assert.deepEqual([delay.release(7, 0), delay.waitMs(0)], [7, Number.POSITIVE_INFINITY]);
  assert.deepEqual([delay.release(8, 10), delay.waitMs(10)], [7, 100]);
  assert.deepEqual([delay.release(9, 60), delay.waitMs(60)], [7, 50]);
  assert.deepEqual([delay.release(9, 110), delay.waitMs(110)], [8, 50]);
  assert.deepEqual([delay.release(9, 500), delay.waitMs(500)], [9, Number.POSITIVE_INFINITY]);
});

test("no more than two blocks are held back", () => {
  const delay = new BlockDelay(1_000);
  const released = [1, 2, 3, 4, 9].map((height, n) => delay.release(height, n));
  assert.deepEqual(released, [1, 1, 1, 2, 7]);
});

test("after the leader's chain became shorter nothing of it is held back", () => {
  const delay = new BlockDelay(100);
  for (const height of [10, 11, 12]) delay.release(height, 0);
  assert.deepEqual([delay.release(9, 1), delay.waitMs(1)], [9, Number.POSITIVE_INFINITY]);
  assert.equal(delay.release(10, 2), 9);
});
