// One view of the chain over real sockets: a short run of `npm run soak -- --views`, one node
// before four providers that lag, fork and reorganise. With `tip` no caller sees the chain go back;
// with `off` the same callers do, so that the checker is shown to see it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { namedSeed } from "../fakes/seed.ts";
import { startReferenceSite } from "./views/reference-node.ts";
import { anomaliesOf, breachesOf, linesOf, runViews, USUAL_RUN } from "./views/soak.ts";

const SEED = namedSeed(21);
const READS = { tip: 12_000, off: 5_000, reference: 5_000 };
const LEAST_ANOMALIES = 100;
/** A tip that is not confirmed for so long is not in force: a busy machine is slow. */
const BLOCK_TIME_MS = 2_000;
/** Slow enough for some dozens of blocks. */
const HABITS = { ...USUAL_RUN.habits, pauseMs: 30 };

const PLAN = {
  ...USUAL_RUN,
  blockTimeMs: BLOCK_TIME_MS,
  habits: HABITS,
  seed: SEED,
  nodes: 1,
  settings: {},
  print: () => {},
};

test(`nothing is found where nodes know what providers hold, seed ${SEED}`, async (t) => {
  const reads = READS.reference;
  const startSite = startReferenceSite;
  const found = await runViews({ ...PLAN, nodes: 2, reads, consistency: "tip", startSite });
  for (const line of linesOf(found)) t.diagnostic(line);
  assert.equal(anomaliesOf(found.verdict), 0);
  assert.equal(found.failures.size, 0);
  assert.ok(found.reorganisations > 0, "there was nothing to find");
});

test(`with one view nobody goes back, seed ${SEED}`, async (t) => {
  const found = await runViews({ ...PLAN, reads: READS.tip, consistency: "tip" });
  for (const line of linesOf(found)) t.diagnostic(line);
  assert.deepEqual(breachesOf(found, "tip"), []);
});

test(`without one view callers go back, seed ${SEED}`, async (t) => {
  const found = await runViews({ ...PLAN, reads: READS.off, consistency: "off" });
  const anomalies = anomaliesOf(found.verdict);
  t.diagnostic(`${anomalies} anomalies in ${found.reads} reads`);
  assert.ok(anomalies > LEAST_ANOMALIES, linesOf(found).join("\n"));
});
