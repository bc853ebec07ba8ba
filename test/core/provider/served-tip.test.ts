// The served tip: two operators make it, it goes back only when they report another branch, and
// neither a lie nor a height that stands still moves it.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BranchView, pushBlock } from "../../../src/core/provider/blocks/branch-view.ts";
import {
  confirms,
  findTip,
  type TipReport,
  tipMove,
} from "../../../src/core/provider/blocks/served-tip.ts";

const BLOCK_MS = 1_000;

/** A branch of blocks `<letter><number>`; from `forkAt` on with another letter. */
function branchTo(height: number, letter = "a", forkAt = Number.POSITIVE_INFINITY): BranchView {
  const view = new BranchView();
  const hashOf = (number: number): string => `${number >= forkAt ? letter : "a"}${number}`;
  for (let number = Math.max(1, height - 20); number <= height; number++)
    pushBlock(view, { number, hash: hashOf(number), parentHash: hashOf(number - 1) });
  return view;
}

function report(operator: string, height: number, more: Partial<TipReport> = {}): TipReport {
  const branch = more.branch ?? branchTo(height);
  return { operator, height, branch, roseAtMs: 0, atMs: 0, isPushed: true, ...more };
}

const found = (reports: readonly TipReport[], nowMs = 0) => {
  const tip = findTip(reports, BLOCK_MS, nowMs);
  return tip === null ? null : [tip.number, tip.hash, tip.isAlone];
};

test("the tip is the highest block of two operators; one operator alone defines its own", () => {
  assert.equal(found([]), null);
  assert.deepEqual(found([report("x", 100)]), [100, "a100", true]);
  assert.deepEqual(found([report("x", 100), report("y", 98)]), [98, "a98", false]);
  assert.deepEqual(found([report("x", 100), report("y", 98), report("z", 99)]), [99, "a99", false]);
  const twice = [report("x", 100), report("x", 100), report("y", 97)];
  assert.deepEqual(found(twice), [97, "a97", false], "two providers of one operator are one voice");
});

test("operators on two branches agree on the block before the fork", () => {
  const forked = report("y", 100, { branch: branchTo(100, "b", 99) });
  assert.deepEqual(found([report("x", 100), forked]), [98, "a98", false]);
  const third = report("z", 100, { branch: branchTo(100, "b", 99) });
  assert.deepEqual(found([report("x", 100), forked, third]), [100, "b100", false]);
});

test("a block whose hash only one of two has told has no hash, unless others agree on one", () => {
  const polled = report("y", 100, { branch: new BranchView(), isPushed: false });
  const forked = report("x", 100, { branch: branchTo(100, "b", 99) });
  assert.deepEqual(found([forked, polled]), [100, null, false]);
  assert.deepEqual(found([forked, polled, report("z", 100), report("w", 100)]), [
    100,
    "a100",
    false,
  ]);
});

test("a height that stands still for three block times defines nothing while another goes on", () => {
  const stuck = [report("x", 67), report("y", 122)];
  const healthy = report("z", 534, { roseAtMs: 4_000 });
  assert.equal(found([...stuck, healthy], 2_900), null, "none vouches for a block of another");
  assert.deepEqual(found([...stuck, healthy], 4_000), [534, "a534", true]);
});

test("a height that was polled long ago defines nothing while others are pushed", () => {
  const old = report("y", 90, { isPushed: false, branch: new BranchView(), roseAtMs: 4_900 });
  const pushed = report("x", 100, { roseAtMs: 4_900 });
  assert.deepEqual(found([pushed, old], 5_000), [100, "a100", true]);
  assert.deepEqual(found([old], 5_000), [90, null, true], "but it is better than nothing");
});

test("no single liar moves the tip of two honest operators beyond what they have", () => {
  fc.assert(
    fc.property(fc.integer({ min: 30, max: 90 }), fc.nat(3), fc.nat(2 ** 30), (head, lag, lie) => {
      const honest = [report("x", head), report("y", head - lag)];
      const liar = report("z", lie, { branch: branchTo(Math.min(lie, 200), "c", 0) });
      const tip = findTip([...honest, liar], BLOCK_MS, 0);
      assert.ok(tip !== null && tip.number <= head);
      assert.ok(tip.hash === null || tip.hash === `a${tip.number}`);
    }),
  );
});

test("the tip goes forward, stays below a slower pair, and follows a reorganisation", () => {
  const served = branchTo(100);
  const tip = { number: 100, hash: "a100" };
  const next = { number: 101, hash: "a101", isAlone: false, branch: branchTo(101) };
  assert.equal(tipMove(served, tip, next).kind, "forward");
  const slower = { number: 98, hash: "a98", isAlone: false, branch: branchTo(98) };
  assert.equal(tipMove(served, tip, slower).kind, "stays");
  for (const height of [99, 100, 103]) {
    const branch = branchTo(height, "b", 98);
    const other = { number: height, hash: `b${height}`, isAlone: false, branch };
    assert.deepEqual(
      tipMove(served, tip, other),
      { kind: "reorganised", ancestor: 97 },
      `${height}`,
    );
  }
});

test("a tip is confirmed by a pushed head on its branch, or a height polled a moment ago", () => {
  const tip = { number: 100, hash: "a100" };
  const sure = (one: TipReport, nowMs: number) => confirms(one, tip, BLOCK_MS, nowMs);
  assert.ok(sure(report("x", 101), 60_000));
  assert.ok(!sure(report("x", 99), 0));
  assert.ok(!sure(report("x", 101, { branch: branchTo(101, "b", 100) }), 0));
  const polled = report("x", 100, { isPushed: false, branch: new BranchView() });
  assert.ok(sure(polled, BLOCK_MS) && !sure(polled, BLOCK_MS + 1));
});
