// Incomplete blocks: that no block is forgotten whose logs may be missing, and that memory for them
// is bounded.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { APART_MS, IncompleteBlocks } from "../../../src/core/stream/incomplete-blocks.ts";

const hash = (number: number): string => `0x${number}`;
const block = (number: number) => ({ number, hash: hash(number), parentHash: hash(number - 1) });

test("a block is complete once its source has lived on for long enough", () => {
  const blocks = new IncompleteBlocks();
  blocks.pushed(hash(1), { nowMs: 1_000, attachedAtMs: 0, window: 10 });
  blocks.pushed(hash(2), { nowMs: 1_000 + APART_MS - 1, attachedAtMs: 0, window: 10 });
  assert.deepEqual([...blocks.unsure.keys()], [hash(1), hash(2)]);
  blocks.pushed(hash(3), { nowMs: 1_000 + APART_MS, attachedAtMs: 0, window: 10 });
  assert.deepEqual([...blocks.unsure.keys()], [hash(2), hash(3)]);
});

test("a source that comes later completes no block of the one before it", () => {
  const blocks = new IncompleteBlocks();
  blocks.pushed(hash(1), { nowMs: 1_000, attachedAtMs: 0, window: 10 });
  blocks.pushed(hash(2), { nowMs: 90_000, attachedAtMs: 5_000, window: 10 });
  assert.ok(blocks.unsure.has(hash(1)));
  assert.equal(blocks.isOwed(5_000), true);
  blocks.settle(hash(1));
  assert.equal(blocks.isOwed(5_000), false, "its logs were asked for");
});

test("a block that was left by a source that is gone is owed to every source after it", () => {
  const blocks = new IncompleteBlocks();
  assert.equal(blocks.isOwed(1), false);
  blocks.abandoned(hash(1));
  assert.equal(blocks.isOwed(1), true);
});

test("property: no block that was pushed within two seconds before a source was lost is forgotten", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 3_000 }), { minLength: 1, maxLength: 60 }),
      (gapsMs) => {
        const blocks = new IncompleteBlocks();
        const pushedAtMs: number[] = [];
        let nowMs = 0;
        for (const [number, gapMs] of gapsMs.entries()) {
          nowMs += gapMs;
          pushedAtMs.push(nowMs);
          blocks.pushed(hash(number), { nowMs, attachedAtMs: 0, window: 1_000 });
        }
        for (const [number, atMs] of pushedAtMs.entries())
          assert.equal(blocks.unsure.has(hash(number)), nowMs - atMs < APART_MS);
      },
    ),
  );
});

test("property: what is kept of blocks never exceeds the window, and of suspects 1,024", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ max: 100, min: 0 }),
      (window, count) => {
        const blocks = new IncompleteBlocks();
        for (let number = 0; number < count; number++)
          blocks.pushed(hash(number), { nowMs: number, attachedAtMs: 0, window });
        assert.equal(blocks.unsure.size, Math.min(window, count));
        if (count > 0) assert.ok(blocks.unsure.has(hash(count - 1)), "the oldest goes first");
      },
    ),
  );
  const blocks = new IncompleteBlocks();
  for (let number = 0; number < 3_000; number++) blocks.suspect(hash(number));
  assert.equal(blocks.suspects.size, 1_024);
  assert.ok(blocks.suspects.has(hash(2_999)) && !blocks.suspects.has(hash(0)));
});

test("a block whose logs were taken back is a suspect, and no longer one that may be complete", () => {
  const blocks = new IncompleteBlocks();
  blocks.pushed(hash(1), { nowMs: 0, attachedAtMs: 0, window: 10 });
  blocks.suspect(hash(1));
  assert.deepEqual([blocks.unsure.size, blocks.suspects.has(hash(1))], [0, true]);
});

test("logs of earlier blocks are to be told before those of a later one", () => {
  const blocks = new IncompleteBlocks();
  const chain = [1, 2, 3, 4].map(block);
  for (const { hash: pushed } of chain.slice(1))
    blocks.pushed(pushed, { nowMs: 0, attachedAtMs: 0, window: 10 });
  assert.deepEqual(
    blocks.unsureBelow(chain, 4).map(({ number }) => number),
    [2, 3],
  );
});
