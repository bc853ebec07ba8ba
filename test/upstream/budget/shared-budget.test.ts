// Limits that several workers share, over the real bus and the real division, in simulated time:
// together they never send more than the limit in any second, wherever callers are.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { MachineShares, machineShares } from "../../../src/shared/processes/machine-shares.ts";
import { ProviderBudgets } from "../../../src/upstream/budget/provider-budget.ts";
import { LeasedShares } from "../../../src/upstream/shares.ts";
import { testBus } from "../../cluster/bus-fixture.ts";
import { fakeProvider } from "../../fakes/providers.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { namedSeeds } from "../../fakes/seed.ts";

const IDS = ["1", "2", "3", "4"] as const;
const RPS = 50;
const CONCURRENCY = 12;
const STEP_MS = 4;

for (const seed of namedSeeds(1, 2, 3))
  test(`four workers share ${RPS} requests a second and ${CONCURRENCY} at once (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const { world, hub, worker, errors } = testBus(IDS);
    new MachineShares(world).serve(hub);
    const limits = {
      rps: RPS,
      concurrency: CONCURRENCY,
      daily: null,
      monthly: null,
      resetsOn: 1,
      credits: new Map<string, number>(),
    };
    const budgets = IDS.map((id) => {
      const onError = (error: unknown): void => void errors.push(error);
      const shares = new LeasedShares({ runtime: world, members: IDS.length, onError });
      shares.join(machineShares(worker(id).bus), Number.POSITIVE_INFINITY);
      const quotas = { lease: async () => null, giveBack() {}, close: async () => {} };
      const all = new ProviderBudgets({ runtime: world, shares, quotas });
      return all.open("set", fakeProvider(0, { budget: limits })) ?? assert.fail();
    });
    const sentAt: number[] = [];
    let inFlight = 0;
    let busiest = 0;
    for (let step = 0; step < 5_000; step++) {
      // The callers move from worker to worker.
      if (step % 700 === 0) busiest = Math.floor(random() * IDS.length);
      const at = random() < 0.8 ? busiest : Math.floor(random() * IDS.length);
      const budget = budgets[at] ?? assert.fail();
      for (let n = 0; n < 2; n++) {
        if (budget.take("eth_call") !== null) continue;
        sentAt.push(world.now());
        inFlight += 1;
        world.after(100 * random(), () => {
          inFlight -= 1;
          budget.release();
        });
        assert.ok(inFlight <= CONCURRENCY, `${inFlight} at once`);
      }
      world.advance(STEP_MS);
      if (step % 5 === 0) await turn();
    }
    for (const [n, atMs] of sentAt.entries()) {
      const before = sentAt[n - RPS];
      assert.ok(before === undefined || atMs - before >= 1_000, `more than ${RPS} in a second`);
    }
    const seconds = (5_000 * STEP_MS) / 1_000;
    assert.ok(sentAt.length >= 0.6 * RPS * seconds, `${sentAt.length} in ${seconds} s`);
    assert.deepEqual(errors, []);
  });
