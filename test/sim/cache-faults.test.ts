// Answers through reorganisations where one node lags, another one lies and a third one stalls:
// nothing is told that an honest node would not have said, and no list ends before its range,
// and nothing that is there is told as missing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { namedSeeds } from "../fakes/seed.ts";
import { simulateCache } from "./cache-simulation.ts";

const FAULTS = [{ lagBlocks: 1 }, { lagBlocks: 2 }, { liesShare: 0.2 }, { stallShare: 0.05 }];

for (const seed of namedSeeds(1, 2, 3)) {
  test(`what a node cannot know or says of another block is not told (seed ${seed})`, (t) => {
    const { wrong, short, ...report } = simulateCache({
      seed,
      nodes: 5,
      blockTimeMs: 2_000,
      reorgShare: 0.2,
      blocks: 100,
      callsPerBlock: 60,
      faults: FAULTS,
    });
    const told = JSON.stringify(report);
    t.diagnostic(told);
    console.log(told, wrong.length, short.length);
    assert.deepEqual(wrong.slice(0, 5), []);
    assert.deepEqual(short.slice(0, 5), []);
    assert.equal(report.nulls, 0, told);
  });
}
