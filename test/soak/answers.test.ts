// The real service before nodes that lag, lie and hang, over real sockets: a short run of `npm run
// soak -- --answers --live`. Nothing is told that no node could have said.
import assert from "node:assert/strict";
import { test } from "node:test";
import { namedSeed } from "../fakes/seed.ts";
import { FAULTY_WORLDS } from "../sim/faulty-worlds.ts";
import { runLive } from "./answers/live.ts";

const SEED = namedSeed(1);
const CALLS = 500;

test(`two workers before nodes at fault tell what one of these could say, seed ${SEED}`, async (t) => {
  const run = { seed: SEED, world: FAULTY_WORLDS.usual, workers: 2, hasRedis: false } as const;
  const { compared, kept, failed, findings } = await runLive(run, CALLS);
  t.diagnostic(JSON.stringify({ compared, kept: [...kept], failed: [...failed] }));
  assert.deepEqual(findings.wrong, []);
  assert.deepEqual(findings.short, []);
  assert.ok(compared.http > 0 && compared.socket > 0 && kept.size > 0);
});
