// Own writes over providers that lag and die: a few seeds of `npm run soak -- --sends`. Each own
// transaction is found at once, its receipt as soon as its block is told of, and no nonce is served
// twice. With `off` the same seeds show that the checker sees what is lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import { namedSeeds } from "../fakes/seed.ts";
import { startReferenceNode } from "./views/reference-node.ts";
import { simulateSends, wrongSends } from "./views/sends.ts";

const SEEDS = namedSeeds(1, 2, 3);

for (const seed of SEEDS) {
  test(`own writes are not lost, seed ${seed}`, async () => {
    const found = await simulateSends(seed, "tip");
    assert.deepEqual(wrongSends(found), [], `npm run soak -- --sends 1 --seed ${seed}`);
    assert.ok(found.accepted > 0 && found.deaths > 0);
  });
}

test("nothing is found where a node knows what was accepted", async () => {
  const [seed = 1] = SEEDS;
  const found = await simulateSends(seed, "tip", startReferenceNode);
  assert.deepEqual(wrongSends(found), [], `seed ${seed}`);
  assert.ok(found.accepted > 0 && found.deaths > 0);
});

test("what is lost without one view is found", async () => {
  const [seed = 1] = SEEDS;
  assert.notDeepEqual(wrongSends(await simulateSends(seed, "off")), []);
});
