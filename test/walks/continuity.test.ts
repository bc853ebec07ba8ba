// Subscriptions over real nodes whose providers fail one after the other while blocks and reorgs
// come: nothing is missed, told twice or out of order. The short form of `npm run soak`.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { seededRandom } from "../fakes/runtime.ts";
import { chanceSeed } from "../fakes/seed.ts";
import { play } from "../soak/act.ts";
import type { ActPlan } from "../soak/act-fixture.ts";
import { tryBounds } from "../soak/bounds.ts";
import { type LiveChain, startChain } from "../soak/chain.ts";
import { faultsOf } from "../soak/report.ts";

const SEED = chanceSeed();

describe(`continuity over three real nodes (seed ${SEED})`, () => {
  let chain: LiveChain;
  const random = seededRandom(SEED);

  before(async () => {
    chain = await startChain();
  });
  after(() => chain.close());

  it(
    "no gap, no duplicate and no disorder when all subscriptions lose their one provider " +
      "together, again and again",
    () => promised({ failovers: 6, strategy: "priority", socketHeads: true, socketsOnly: false }),
  );

  it(
    "no gap, no duplicate and no disorder when subscriptions are spread over providers that have " +
      "nothing but sockets",
    () =>
      promised({ failovers: 4, strategy: "load-balanced", socketHeads: false, socketsOnly: true }),
  );

  it("a gap past the bounds closes the sockets it concerns with 1011, and no others", async () => {
    assert.deepEqual(faultsOf([], await tryBounds(chain, random)), []);
  });

  async function promised(
    plan: Pick<ActPlan, "failovers" | "strategy" | "socketHeads" | "socketsOnly">,
  ): Promise<void> {
    const figures = await play(chain, { ...plan, random, onRound: () => {} });
    assert.deepEqual(faultsOf([figures], []), []);
    assert.ok(figures.reorgs > 0 && figures.heads > 0 && figures.logs > 0 && figures.calls > 0);
  }
});
