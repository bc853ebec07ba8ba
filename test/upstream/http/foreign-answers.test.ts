// No caller ever gets another caller's answer: every shape of hostile answer against callers who
// each wait for a secret of their own. `npm run soak` makes many more calls. The seed is printed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom } from "../../fakes/runtime.ts";
import { chanceSeed } from "../../fakes/seed.ts";
import { attack, trustedIdentity, waysOf } from "../../soak/foreign.ts";
import { SHAPES } from "../../soak/hostile-answers.ts";

const CALLS = 50;
const CONNECTIONS = 8;

for (const way of waysOf(trustedIdentity())) {
  test(
    `${SHAPES.length} shapes of hostile answers, ${CALLS} callers each, ${way.name}: nobody ` +
      "sees a byte that is not theirs",
    async (t) => {
      const seed = chanceSeed();
      t.diagnostic(`seed ${seed}`);
      const random = seededRandom(seed);
      let own = 0;
      for (const shape of SHAPES) {
        const damage = await attack({ shape, way, calls: CALLS, connections: CONNECTIONS, random });
        assert.deepEqual(damage.foreign, [], `${shape.name}, seed ${seed}`);
        assert.equal(damage.own + damage.failed, CALLS, shape.name);
        assert.ok(damage.played > 0, `${shape.name} was not played, seed ${seed}`);
        own += damage.own;
      }
      assert.ok(own > 0, "every call failed: nothing was tried");
      t.diagnostic(`${own} of ${CALLS * SHAPES.length} calls had their own answer`);
    },
  );
}
