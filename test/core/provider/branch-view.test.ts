// What a provider's pushed blocks say of the branch that it is on.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  agreedHash,
  BRANCH_BLOCKS,
  BranchView,
  clearBranch,
  hashAt,
  pushBlock,
} from "../../../src/core/provider/blocks/branch-view.ts";

const push = (view: BranchView, number: number, hash: string, parentHash: string): number | null =>
  pushBlock(view, { number, hash, parentHash });

test("a block is known with its parent, and others are not", () => {
  const view = new BranchView();
  assert.equal(hashAt(view, 0), null);
  push(view, 10, "a10", "a9");
  assert.deepEqual(
    [8, 9, 10, 11].map((number) => hashAt(view, number)),
    [null, "a9", "a10", null],
  );
});

test("a reorganisation told block by block forgets exactly the abandoned blocks", () => {
  const view = new BranchView();
  for (let number = 1; number <= 10; number++) push(view, number, `a${number}`, `a${number - 1}`);
  assert.equal(push(view, 8, "b8", "a7"), 8);
  assert.deepEqual(
    [6, 7, 8, 9, 10].map((number) => hashAt(view, number)),
    ["a6", "a7", "b8", null, null],
  );
});

test("a block that is not connected to those before makes them unknown", () => {
  const view = new BranchView();
  for (let number = 1; number <= 10; number++) push(view, number, `a${number}`, `a${number - 1}`);
  assert.equal(push(view, 11, "b11", "b10"), 0, "how deep it was is not told");
  assert.deepEqual(
    [9, 10, 11].map((number) => hashAt(view, number)),
    [null, "b10", "b11"],
  );
  assert.equal(push(view, 20, "b20", "b19"), null);
  assert.deepEqual(
    [11, 18, 19, 20].map((number) => hashAt(view, number)),
    [null, null, "b19", "b20"],
  );
});

test("only the newest blocks are kept, and all are forgotten when the provider falls silent", () => {
  const view = new BranchView();
  for (let number = 1; number <= BRANCH_BLOCKS + 5; number++)
    push(view, number, `a${number}`, `a${number - 1}`);
  assert.equal(hashAt(view, 5), null);
  assert.equal(hashAt(view, 6), "a6");
  assert.equal(view.hashes.length, BRANCH_BLOCKS);
  clearBranch(view);
  assert.equal(hashAt(view, BRANCH_BLOCKS), null);
});

test("providers agree where all that know a height have the same hash", () => {
  const [one, other, silent] = [new BranchView(), new BranchView(), new BranchView()];
  push(one, 10, "a10", "a9");
  push(other, 11, "b11", "a10");
  assert.equal(agreedHash([one, other, silent], 10), "a10");
  assert.equal(agreedHash([one, other, silent], 11), "b11");
  push(one, 11, "a11", "a10");
  assert.equal(agreedHash([one, other, silent], 11), null);
  assert.equal(agreedHash([silent], 10), null);
});

test("property: what is known is always the chain that the provider was on", () => {
  const move = fc.record({ back: fc.nat(6), blocks: fc.integer({ min: 1, max: 4 }) });
  fc.assert(
    fc.property(fc.array(move, { maxLength: 40 }), (moves) => {
      const view = new BranchView();
      const chain: string[] = ["genesis"];
      let made = 0;
      let isKnown = false;
      for (const { back, blocks } of moves) {
        const old = [...chain];
        chain.length = Math.max(1, chain.length - back);
        let lowest: number | null = null;
        for (let n = 0; n < blocks; n++) {
          const parentHash = chain.at(-1) ?? assert.fail();
          const hash = `block ${++made}`;
          const abandoned = push(view, chain.length, hash, parentHash);
          lowest = abandoned === null ? lowest : Math.min(lowest ?? abandoned, abandoned);
          chain.push(hash);
        }
        if (isKnown && chain.length - blocks < old.length)
          assert.equal(lowest, chain.length - blocks, "exactly the abandoned branch");
        isKnown ||= blocks > 0;
        for (let number = 0; number < chain.length + 8; number++) {
          const known = hashAt(view, number);
          assert.ok(known === null || known === chain[number]);
        }
        assert.equal(hashAt(view, chain.length - 1), chain.at(-1));
      }
    }),
  );
});
