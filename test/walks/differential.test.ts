// A short differential run: conversations by chance get the same answers from every combination of
// the service's HTTP implementations. `npm run soak -- --differential N` is the long one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom } from "../fakes/runtime.ts";
import { namedSeeds } from "../fakes/seed.ts";
import { compareCombinations } from "../soak/differential.ts";

const CONVERSATIONS = 150;

for (const seed of namedSeeds(20_261, 20_262)) {
  test(`${CONVERSATIONS} conversations agree on all HTTP implementations (seed ${seed})`, async () => {
    const { conversations, answers, statuses, differences } = await compareCombinations(
      seededRandom(seed),
      CONVERSATIONS,
    );
    assert.deepEqual(differences, []);
    assert.equal(conversations, CONVERSATIONS);
    assert.ok(answers > CONVERSATIONS, `${answers} answers`);
    for (const status of ["200 OK", "204 No Content", "400 Bad Request", "404 Not Found"])
      assert.ok(statuses.has(`HTTP/1.1 ${status}`), status);
  });
}
