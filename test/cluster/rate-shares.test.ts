// Rate limits that nodes share over a store: what one takes, the others hear of, also after a pause
// and also where a node comes later.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createRateShares,
  type RateShares,
  removeOldDemand,
} from "../../src/cluster/rate-shares.ts";
import type { RateLimitSize } from "../../src/core/billing/gcra.ts";
import { type RateLimitOwner, takeToken } from "../../src/core/billing/rate-limit.ts";
import type { Store } from "../../src/store/store.ts";
import { type SimulatedWorld, simulatedWorld } from "../fakes/runtime.ts";
import { until } from "../fakes/service-fixture.ts";
import { eachStore } from "../fakes/stores.ts";

const LIMIT = { name: "managed", size: "managed" } as const;
/** Refilled so slowly that what is left depends on what was taken alone. */
const SIZE: RateLimitSize = { perSecond: 0.001, burst: 100 };

interface SimulatedNode {
  readonly shares: RateShares;
  readonly owner: RateLimitOwner;
}

function nodeOf(store: Store, runtime: SimulatedWorld, processId: string): SimulatedNode {
  const shares = createRateShares({
    store,
    runtime,
    processId,
    members: () => 3,
    onError: assert.ifError,
  });
  return { shares, owner: { fullAtMs: null, shared: null, id: "acc_1" } };
}

function taken({ shares, owner }: SimulatedNode, runtime: SimulatedWorld): number {
  let count = 0;
  while (takeToken(owner, LIMIT, { size: SIZE, nowMs: runtime.now(), sharing: shares }) === null)
    count++;
  return count;
}

eachStore(({ engine, open }) => {
  test(`nodes that come one after the other get one limit together (${engine})`, async (t) => {
    const store = await open(t);
    const runtime = simulatedWorld(1);
    const nodes = ["a", "b", "c"].map((id) => nodeOf(store, runtime, id));
    let all = 0;
    for (const node of nodes)
      await until("it takes no more", async () => {
        const now = taken(node, runtime);
        all += now;
        runtime.advance(250);
        const rows = await store.db.selectFrom("rate_demand").selectAll().execute();
        const sum = rows.reduce((total, { used }) => total + Number(used), 0);
        return now === 0 && Math.abs(sum - all) < 1;
      });
    t.diagnostic(`${all} of ${SIZE.burst}`);
    // Before it hears of the others, a node takes its unshared part and a third of the rest.
    const unheard = Math.floor(SIZE.burst / 6);
    const most = 100 + 2 * (unheard + (100 - unheard) / 3 + 1);
    assert.ok(all >= 100 && all <= most, `${all} of at most ${most}`);
    for (const node of nodes) assert.equal(taken(node, runtime), 0);
    for (const { shares } of nodes) shares.close();
  });

  test(`what says nothing any more is removed (${engine})`, async (t) => {
    const store = await open(t);
    const row = { node_id: "a", used: 1, debt: 1, demand: 1, at: 1n };
    await store.db
      .insertInto("rate_demand")
      .values([
        { ...row, scope: "old", expires_at: 1n },
        { ...row, scope: "new", expires_at: BigInt(Date.now() + 600_000) },
      ])
      .execute();
    await removeOldDemand(store);
    const left = await store.db.selectFrom("rate_demand").select("scope").execute();
    assert.deepEqual(left, [{ scope: "new" }]);
  });
});
