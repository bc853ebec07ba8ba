// The block time that heights tell: close to the true one from few heights, however they are heard.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BlockPace, isOtherPace, middleOf } from "../../../src/core/provider/blocks/block-time.ts";

test("property: heights that are pushed or polled tell the block time, within an eighth", () => {
  const of = fc.record({
    blockTimeMs: fc.integer({ min: 100, max: 60_000 }),
    pollMs: fc.integer({ min: 1, max: 60_000 }),
    phaseMs: fc.integer({ min: 0, max: 60_000 }),
  });
  fc.assert(
    fc.property(of, ({ blockTimeMs, pollMs, phaseMs }) => {
      const pace = new BlockPace();
      const heightAt = (ms: number): number => 1_000 + Math.floor((phaseMs + ms) / blockTimeMs);
      const longMs = Math.max(20_000, 12 * blockTimeMs, 12 * pollMs);
      for (let ms = 0; ms <= longMs; ms += pollMs) pace.see(heightAt(ms), ms);
      const found = pace.blockTimeMs();
      assert.ok(found !== null);
      // A poll hears of a block late by one interval at most, and of a height by one block.
      const error = Math.max(blockTimeMs, Math.min(pollMs, 2 * blockTimeMs)) / 8;
      assert.ok(Math.abs(found - blockTimeMs) <= error + 1, `${found} for ${blockTimeMs}`);
    }),
  );
});

test("little tells nothing: few blocks, a short time, or a height that stays", () => {
  const few = new BlockPace();
  for (let n = 0; n < 8; n++) few.see(n, n * 12_000);
  assert.equal(few.blockTimeMs(), null);
  few.see(8, 96_000);
  assert.equal(few.blockTimeMs(), 12_000);
  const short = new BlockPace();
  for (let n = 0; n < 100; n++) short.see(n, n * 99);
  assert.equal(short.blockTimeMs(), null);
  const still = new BlockPace();
  for (let n = 0; n < 100; n++) still.see(7, n * 12_000);
  assert.equal(still.blockTimeMs(), null);
});

test("a pace that changes is followed, and a chain that begins anew is begun anew", () => {
  const pace = new BlockPace();
  let [height, atMs] = [0, 0];
  const pass = (blocks: number, everyMs: number): void => {
    for (let n = 0; n < blocks; n++) {
      height += 1;
      atMs += everyMs;
      pace.see(height, atMs);
    }
  };
  pass(200, 12_000);
  assert.equal(pace.blockTimeMs(), 12_000);
  pass(2_000, 2_000);
  assert.equal(pace.blockTimeMs(), 2_000);
  pace.see(3, atMs);
  assert.equal(pace.blockTimeMs(), null);
});

test("one provider among several changes nothing; half as much again is another pace", () => {
  assert.equal(middleOf([]), null);
  assert.equal(middleOf([12_000]), 12_000);
  assert.equal(middleOf([50, 12_000, 11_900]), 11_900);
  assert.deepEqual(
    [isOtherPace(12_000, 12_900), isOtherPace(12_000, 8_000), isOtherPace(2_000, 250)],
    [false, true, true],
  );
});
