// Answers through reorganisations that the nodes see at different times: every one is compared with
// what the nodes hold. The whole run is `bench/cache.ts`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { namedSeeds } from "../fakes/seed.ts";
import { simulateCache } from "./cache-simulation.ts";

for (const seed of namedSeeds(1, 2, 3)) {
  test(`no answer outlives its branch (seed ${seed})`, (t) => {
    const { findings, ...report } = simulateCache({
      seed,
      nodes: 3,
      blockTimeMs: 2_000,
      reorgShare: 0.3,
      blocks: 120,
      callsPerBlock: 60,
    });
    const told = JSON.stringify(report);
    t.diagnostic(told);
    assert.deepEqual(findings.wrong.slice(0, 5), []);
    const { head, old, logs } = report.kinds;
    const calls = head.calls + old.calls + logs.calls;
    assert.ok(report.reorgs > 20 && report.compared > 0.98 * calls, told);
    for (const kind of [head, old, logs]) {
      assert.ok(kind.hits > kind.calls / 10, told);
      assert.ok(kind.upstreamCalls < kind.calls, told);
    }
  });
}
