// One view of the chain over real sockets: a short run of `npm run soak -- --views`, one node before
// four providers that lag, fork and reorganise. With `tip` nobody goes back; with `off` the same
// callers do, so that the checker is shown to see it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { namedSeed } from "../fakes/seed.ts";
import { knowsConsistency } from "./views/site.ts";
import { anomaliesOf, breachesOf, linesOf, runViews, USUAL_RUN } from "./views/soak.ts";

const SEED = namedSeed(21);
const READS = { tip: 20_000, off: 5_000 };
const LEAST_ANOMALIES = 100;
/** Slow enough for some dozens of blocks. */
const HABITS = { ...USUAL_RUN.habits, pauseMs: 30 };

const run = (consistency: "tip" | "off") =>
  runViews({
    ...USUAL_RUN,
    habits: HABITS,
    seed: SEED,
    nodes: 1,
    reads: READS[consistency],
    consistency,
    settings: {},
    print: () => {},
  });

test(`with one view nobody goes back, seed ${SEED}`, {
  skip: !knowsConsistency() && "the service has no setting `consistency`",
}, async (t) => {
  const found = await run("tip");
  for (const line of linesOf(found)) t.diagnostic(line);
  assert.deepEqual(breachesOf(found, "tip"), []);
});

test(`without one view callers go back, seed ${SEED}`, async (t) => {
  const found = await run("off");
  const anomalies = anomaliesOf(found.verdict);
  t.diagnostic(`${anomalies} anomalies in ${found.reads} reads`);
  assert.ok(anomalies > LEAST_ANOMALIES, linesOf(found).join("\n"));
});
