// The finalized height: no single provider moves it if there are several.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  DEFAULT_FINALITY_DEPTH,
  FINALITY_FRESH_MS,
  type FinalitySample,
  finalizedHeightOf,
} from "../../../src/core/provider/blocks/finality.ts";

const at = (height: number, atMs = 0): FinalitySample => ({ height, atMs });

function finalized(
  reports: readonly (FinalitySample | null)[],
  other: { servedTip?: number | null; previous?: number | null; nowMs?: number } = {},
): number | null {
  const { servedTip = 1_000, previous = null, nowMs = 0 } = other;
  const finalityDepth = DEFAULT_FINALITY_DEPTH;
  return finalizedHeightOf({ reports, servedTip, previous, nowMs, finalityDepth });
}

test("the finalized height is the second highest report, and a single one counts less a margin", () => {
  assert.equal(finalized([]), null);
  assert.equal(finalized([at(900), at(890), at(100)]), 890);
  assert.equal(finalized([at(900), null]), 900 - DEFAULT_FINALITY_DEPTH);
  assert.equal(finalized([at(10)]), null, "the margin reaches below the first block");
});

test("the finalized height never passes the served tip and never goes back", () => {
  assert.equal(finalized([at(900), at(890)], { servedTip: 880 }), 880);
  assert.equal(finalized([at(900), at(890)], { servedTip: null }), null);
  assert.equal(finalized([at(900), at(890)], { previous: 895 }), 895);
  assert.equal(finalized([], { previous: 895, servedTip: null }), 895);
});

test("an old report and one from the future do not count", () => {
  const reports = [at(900, 0), at(890, 1)];
  const nowMs = FINALITY_FRESH_MS;
  assert.equal(finalized(reports, { nowMs }), 890 - DEFAULT_FINALITY_DEPTH);
  assert.equal(finalized([at(900, 5), at(890, 0)], { nowMs: 1 }), 890 - DEFAULT_FINALITY_DEPTH);
});

test("property: one liar among honest providers moves the finalized height at most to theirs", () => {
  const heights = fc.array(fc.nat(10_000), { minLength: 2, maxLength: 8 });
  fc.assert(
    fc.property(heights, fc.nat(2 ** 40), (honest, lie) => {
      const best = Math.max(...honest);
      const found = finalized(
        [...honest, lie].map((height) => at(height)),
        { servedTip: 20_000 },
      );
      assert.ok(found !== null && found <= best);
    }),
  );
});

test("property: over any sequence of reports it only grows and stays at or below the tip", () => {
  const height = fc.option(fc.nat(1_000), { nil: null });
  const step = fc.record({ reports: fc.array(height, { maxLength: 4 }), tip: fc.nat(50) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      let previous: number | null = null;
      let highestTip = 0;
      for (const [index, { reports, tip }] of steps.entries()) {
        highestTip += tip;
        const found: number | null = finalized(
          reports.map((known) => (known === null ? null : at(known, index))),
          { previous, servedTip: highestTip, nowMs: index },
        );
        if (previous !== null) assert.ok(found !== null && found >= previous);
        assert.ok(found === null || found <= highestTip);
        previous = found;
      }
    }),
  );
});
