// The consensus height and the lag of a provider.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  consensusOf as consensusOfReports,
  HEAD_FRESH_MS,
  type HeadReport,
  type HeadSample,
  lagBlocks,
  stillMs,
} from "../../../src/core/provider/blocks/head.ts";
import type { Chain } from "../../../src/core/provider/chain.ts";
import { isHeight } from "../../../src/core/rpc/call.ts";
import { fakeSet } from "../../fakes/providers.ts";

const { chain } = fakeSet([]);
const polled = (height: number, atMs = 0): HeadSample => ({ height, atMs, polled: true });
/** The consensus where every height rose when it was last reported. */
const consensusOf = (samples: readonly (HeadSample | null)[], of: Chain, nowMs: number) =>
  consensusOfReports(
    samples.map((sample) => ({ sample, roseAtMs: sample?.atMs ?? 0 })),
    of,
    nowMs,
  );
const headOf = (...heights: readonly number[]): number | null =>
  consensusOf(
    heights.map((height) => polled(height)),
    chain,
    0,
  ).height;

test("the consensus is the sample at a quarter from the top", () => {
  assert.equal(headOf(), null);
  assert.equal(headOf(7), 7);
  assert.equal(headOf(90, 100), 100);
  assert.equal(headOf(100, 90, 80), 100);
  assert.equal(headOf(100, 99, 98, 97), 99);
  assert.equal(headOf(1, 8, 3, 6, 5, 4, 7, 2), 6);
});

test("samples of thirty seconds and more do not count, and the consensus knows when it ends", () => {
  const consensus = consensusOf([polled(100, 1_000), polled(200, 0), null], chain, HEAD_FRESH_MS);
  assert.equal(consensus.height, 100);
  assert.equal(consensus.untilMs, 1_000 + HEAD_FRESH_MS);
  assert.equal(consensusOf([polled(100, 0)], chain, HEAD_FRESH_MS).height, null);
});

test("samples from the future, after the clock jumped back, do not count", () => {
  assert.equal(consensusOf([polled(100, 50_000), polled(90, 10)], chain, 20).height, 90);
  assert.equal(lagBlocks(polled(80, 50_000), 90, chain, 20), null);
});

test("a consensus found after the clock jumped back ends when a sample from the future comes of age", () => {
  const samples = [polled(100, 5_000), polled(90, 10)];
  assert.equal(consensusOf(samples, chain, 20).untilMs, 5_000);
  assert.equal(consensusOf(samples, chain, 5_000).height, 100);
});

test("one absurd height among three does not make the honest ones lag", () => {
  assert.equal(headOf(1_000_000, 100, 99), 100);
  assert.equal(headOf(400, 100, 99), 400, "an hour of blocks is the bound: less is believed");
  assert.equal(headOf(1_000_000, 100), 1_000_000, "of two nobody can tell who is right");
});

test("an unknown height or head is no lag", () => {
  assert.equal(lagBlocks(null, 100, chain, 0), null);
  assert.equal(lagBlocks(polled(100), null, chain, 0), null);
  assert.equal(lagBlocks(polled(1), 100, chain, HEAD_FRESH_MS), null);
});

test("a polled height earns the blocks due since it was asked for, a pushed one none", () => {
  assert.equal(lagBlocks(polled(90), 100, chain, 0), 10);
  assert.equal(lagBlocks(polled(90), 100, chain, 25_000), 8);
  assert.equal(lagBlocks({ height: 90, atMs: 0, polled: false }, 100, chain, 25_000), 10);
  assert.equal(lagBlocks(polled(99), 100, chain, 29_000), 0, "never negative");
});

test("the credit does not move the consensus", () => {
  assert.equal(consensusOf([polled(90, 0), polled(89, 20_000)], chain, 20_000).height, 90);
});

test("heights that cannot be one are refused", () => {
  for (const height of [Number.NaN, -1, 1.5, 2 ** 60, Number.POSITIVE_INFINITY])
    assert.equal(isHeight(height), false);
  assert.ok(isHeight(0));
});

test(
  "property: at least one provider with a fresh height is never lagging, whatever the others " +
    "report",
  () => {
    const sample = fc.record({
      height: fc.nat({ max: 2 ** 50 }),
      atMs: fc.integer({ min: 0, max: 60_000 }),
      polled: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(fc.option(sample), { minLength: 1, maxLength: 12 }), (samples) => {
        const { height } = consensusOf(samples, chain, 40_000);
        const lags = samples
          .map((it) => lagBlocks(it, height, chain, 40_000))
          .filter((lag) => lag !== null);
        assert.ok(height === null ? lags.length === 0 : lags.includes(0));
      }),
    );
  },
);

test("property: one false height among four or more never lifts the consensus above the honest ones", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1_000, max: 1_005 }), { minLength: 3, maxLength: 10 }),
      fc.nat({ max: 2 ** 50 }),
      (honest, lie) => {
        assert.ok((headOf(lie, ...honest) ?? 0) <= Math.max(...honest));
      },
    ),
  );
});

const STILL_MS = stillMs(chain.blockTimeMs);

test("heights that stand still define no head while another goes on, however far behind", () => {
  const nowMs = 1_000_000;
  const report = (height: number, roseMsAgo: number) => ({
    sample: polled(height, nowMs),
    roseAtMs: nowMs - roseMsAgo,
  });
  const head = (...reports: readonly HeadReport[]) =>
    consensusOfReports(reports, chain, nowMs).height;
  const [stuck, alsoStuck] = [report(67, 2 * STILL_MS), report(122, 2 * STILL_MS)];
  assert.equal(head(stuck, alsoStuck, report(534, 10)), 534);
  assert.equal(head(stuck, alsoStuck, report(121, STILL_MS + 1), report(534, 10)), 534);
  // Nobody goes on: the highest counts alone, unless it is absurd.
  assert.equal(head(stuck, alsoStuck, report(534, 2 * STILL_MS)), 122);
  assert.equal(head(stuck, alsoStuck, report(124, 2 * STILL_MS), report(123, 2 * STILL_MS)), 124);
  assert.equal(head(stuck, alsoStuck, report(99_000_000, 2 * STILL_MS)), 122);
});

test("a polled height stands still only as long as it was confirmed", () => {
  const unasked = { sample: polled(100, 0), roseAtMs: 0 };
  const others = [101, 102, 103].map((height) => ({ sample: polled(height, 20_000), roseAtMs: 0 }));
  assert.equal(stillMs(1_000), 3_000);
  const fast = { ...chain, blockTimeMs: 1_000 };
  assert.equal(consensusOfReports([unasked, ...others], fast, 20_000).height, 103);
  const rising = others.map((report) => ({ ...report, roseAtMs: 19_000 }));
  const four = consensusOfReports([unasked, ...rising], fast, 20_000);
  assert.equal(four.height, 102, "four of four count");
});

test("a consensus ends when a pushed height begins to stand still", () => {
  const pushed = { sample: { height: 100, atMs: 0, polled: false }, roseAtMs: 0 };
  const consensus = consensusOfReports([pushed], { ...chain, blockTimeMs: 1_000 }, 10);
  assert.equal(consensus.untilMs, 3_001);
});
