// Ranges of blocks in parts, for any range, limit and finalized height: the parts are the range, in
// order, each within the limit and on one side of the finalized height; no cut goes on for ever.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  advisedBlocks,
  type BlockRange,
  blocksIn,
  cutHead,
  cutRange,
  cutRefused,
  mostBlocks,
  PartSize,
  partsOf,
  sizeOf,
} from "../../../src/core/routing/range-parts.ts";

const HEAD = 2_000_000;
const range = fc
  .tuple(fc.nat(HEAD), fc.nat(5_000))
  .map(([from, more]): BlockRange => ({ from, to: from + more }));
const limit = fc.integer({ min: 1, max: 6_000 });

/** The parts follow each other, and are the whole range. */
function assertWhole(parts: readonly BlockRange[], { from, to }: BlockRange): void {
  assert.equal(parts[0]?.from, from);
  assert.equal(parts.at(-1)?.to, to);
  for (const [at, part] of parts.entries()) {
    assert.ok(part.from <= part.to);
    if (at > 0) assert.equal(part.from, (parts[at - 1]?.to ?? 0) + 1);
  }
}

test("the parts of a range are the range, as few as can be, and none is larger than allowed", () => {
  fc.assert(
    fc.property(range, limit, fc.option(fc.nat(HEAD)), (whole, most, finalized) => {
      const parts = cutRange(whole, sizeOf(most), finalized);
      assertWhole(parts, whole);
      for (const part of parts) {
        assert.ok(blocksIn(part) <= most, "within a limit that counts both ends");
        if (finalized !== null) assert.ok(part.to <= finalized || part.from > finalized);
      }
      const fewest = Math.ceil(blocksIn(whole) / most);
      assert.ok(parts.length <= fewest + (finalized === null ? 0 : 1));
    }),
  );
});

test("a range is planned in parts only where no provider accepts it, and within the bounds", () => {
  fc.assert(
    fc.property(range, limit, fc.integer({ min: 1, max: 40 }), (whole, most, maxParts) => {
      const bounds = { maxBlocks: 4_000, maxParts };
      const count = partsOf(whole, most, bounds);
      const isAccepted = whole.to - whole.from <= most;
      if (isAccepted) return assert.equal(count, 1);
      if (count !== null) {
        assert.ok(count <= maxParts && blocksIn(whole) <= bounds.maxBlocks);
        assert.equal(count, cutRange(whole, sizeOf(most)).length);
        return;
      }
      const most1 = { from: whole.from, to: whole.from + mostBlocks(most, bounds) - 1 };
      assert.notEqual(partsOf(most1, most, bounds), null, "what is told is served");
    }),
  );
  assert.equal(partsOf({ from: 0, to: HEAD }, null, { maxBlocks: 1, maxParts: 1 }), 1);
  const unlimited = Number.POSITIVE_INFINITY;
  const bounds = { maxBlocks: 1, maxParts: 1 };
  assert.equal(partsOf({ from: 0, to: HEAD }, unlimited, bounds), 1);
});

test("a refused range becomes smaller with every cut, down to one block, which is not cut", () => {
  fc.assert(
    fc.property(range, fc.option(limit), (whole, accepted) => {
      const most = accepted ?? Number.POSITIVE_INFINITY;
      const parts = cutRefused(whole, most);
      if (blocksIn(whole) === 1) return assert.deepEqual(parts, []);
      assertWhole(parts, whole);
      assert.ok(parts.length >= 2);
      for (const part of parts) assert.ok(blocksIn(part) < blocksIn(whole));
    }),
  );
});

test("an error's advice counts where it begins with the refused range and is smaller", () => {
  const refused = { from: 16, to: 100_000 };
  const advised = (message: unknown): number | null => advisedBlocks(message, refused);
  assert.equal(advised("this block range should work: [0x10, 0x7df]"), 2_000);
  assert.equal(advised("query exceeds max results 20000, retry with the range 16-1015"), 1_000);
  assert.equal(advised("more than 10000 results. Try with this block range [0x10, 0x10]."), 1);
  for (const message of [
    "this block range should work: [0x11, 0x7df]",
    "this block range should work: [0x10, 0xfffffff]",
    "this block range should work: [0x10, 0xf]",
    "query returned more than 10000 results",
    `${" ".repeat(4_000)}[0x10, 0x7df]`,
    { advice: "[0x10, 0x7df]" },
    null,
  ])
    assert.equal(advised(message), null, JSON.stringify(message).slice(0, 80));
});

test("the head of a range and its rest are the range", () => {
  fc.assert(
    fc.property(range, fc.integer({ min: 0, max: 6_000 }), (whole, size) => {
      const parts = cutHead(whole, size);
      assertWhole(parts, whole);
      assert.ok(parts.length <= 2);
      const [head] = parts;
      assert.ok(head !== undefined && blocksIn(head) <= Math.max(1, size));
    }),
  );
});

/** Calls for `blocks` blocks where a call for more than `accepted(first block)` is refused. */
function callsFor(blocks: number, accepted: (from: number) => number, advice: number | null) {
  const size = new PartSize();
  let [answered, refused] = [0, 0];
  const queue: BlockRange[] = [{ from: 0, to: blocks - 1 }];
  for (let part = queue.shift(); part !== undefined; part = queue.shift()) {
    const [head = part, rest] = cutHead(part, size.blocks ?? blocks);
    if (rest !== undefined) queue.unshift(rest);
    if (blocksIn(head) > accepted(head.from)) {
      refused++;
      size.refused(head, advice);
      queue.unshift(head);
    } else {
      answered++;
      size.answered(head, Math.ceil((1_000 * blocksIn(head)) / accepted(head.from)));
    }
  }
  return { answered, refused };
}

test("a size that is found is kept: refusals do not go on, advised well, badly or not at all", () => {
  for (const advice of [2_000, 2, null]) {
    const { answered, refused } = callsFor(200_000, () => 2_000, advice);
    assert.ok(answered <= 220 && refused <= 12, `${advice}: ${answered} and ${refused}`);
  }
});

test("behind a few blocks that are full of results, parts become large again", () => {
  const accepted = (from: number): number => (from < 1_000 ? 10 : 50_000);
  const { answered, refused } = callsFor(200_000, accepted, null);
  assert.ok(answered <= 210, `${answered} calls`);
  assert.ok(refused <= 40, `${refused} refusals`);
});
