// Three nodes over one PostgreSQL under a few seeded schedules of kills, stops and broken links:
// money is conserved, nothing acknowledged is lost, nothing counts twice. `npm run soak --
// --cluster` runs a hundred, and checks times and rates as well.
import assert from "node:assert/strict";
import { test } from "node:test";
import { postgresAvailability } from "../fakes/postgres.ts";
import { runSchedule } from "./cluster/schedule.ts";
import { startSite, USUAL_SITE } from "./cluster/site.ts";

/** Between them: a killed node, a killed worker, a stop, a broken link, the end of the database. */
const SEEDS = [2, 4];
const postgres = postgresAvailability();

test("three nodes keep their promises under seeded faults", {
  skip: postgres.kind === "no" && postgres.reason,
}, async (t) => {
  const site = await startSite(USUAL_SITE);
  t.after(() => site.close());
  for (const seed of SEEDS) {
    const { wrong, faults, answered } = await runSchedule(site, seed);
    t.diagnostic(`seed ${seed}: ${faults.join(", ")}; ${answered} calls answered`);
    assert.deepEqual(wrong, [], `npm run soak -- --cluster 1 --seed ${seed}`);
  }
});
