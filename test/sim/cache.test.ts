// Kept answers through reorganisations that the nodes see at different times: every one is compared
// with what the nodes hold. The whole run is `bench/cache.ts`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { simulateCache } from "./cache-simulation.ts";

for (const seed of [1, 2, 3]) {
  test(`no kept answer outlives its branch (seed ${seed})`, (t) => {
    const { stale, ...report } = simulateCache({
      seed,
      nodes: 3,
      blockTimeMs: 2_000,
      reorgShare: 0.3,
      blocks: 120,
      callsPerBlock: 60,
    });
    t.diagnostic(JSON.stringify(report));
    assert.deepEqual(stale.slice(0, 5), []);
    assert.ok(report.reorgs > 20 && report.hits > report.calls / 4, JSON.stringify(report));
    assert.ok(report.upstreamCalls < report.calls, JSON.stringify(report));
  });
}
