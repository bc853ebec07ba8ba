// Bounds of the service divided between workers: never more in use than the bound at any moment,
// parts that follow demand, and equal parts again when workers come or go.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { divided, equalPart } from "../../src/core/workers/division.ts";
import { WorkerShares } from "../../src/upstream/worker-shares.ts";
import { testBus } from "../cluster/bus-fixture.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { seedsTo } from "../fakes/seed.ts";

const IDS = ["1", "2", "3", "4"] as const;

test("equal parts add up, and nobody gets more than he wants while others want more", () => {
  const parts = [0, 1, 2].map((index) => equalPart(128, { index, of: 3 }));
  assert.deepEqual(parts, [43, 43, 42]);
  assert.deepEqual(divided(4, [0, 0, 0, 0, 0, 0, 0, 9]), [0, 0, 0, 0, 0, 0, 0, 4]);
  assert.deepEqual(divided(100, [200, 10, 0, 0]), [88, 10, 1, 1]);
  assert.deepEqual(divided(100, [200, 200, 0, 0]), [49, 49, 1, 1]);
  assert.deepEqual(divided(8, [1, 1, 1, 1]), [2, 2, 2, 2]);
  assert.deepEqual(divided(8, []), []);
});

test("division by chance: whole, complete, and fair (seeds 1 to 200)", () => {
  for (const seed of seedsTo(200)) {
    const random = seededRandom(seed);
    const total = Math.floor(random() * 300);
    const wanted = Array.from({ length: 1 + Math.floor(random() * 8) }, () =>
      Math.floor(random() * 120),
    );
    const parts = divided(total, wanted);
    const context = `seed ${seed}: ${total} by ${wanted} = ${parts}`;
    assert.equal(
      parts.reduce((sum, part) => sum + part, 0),
      total,
      context,
    );
    assert.ok(
      parts.every((part) => Number.isInteger(part) && part >= 0),
      context,
    );
    const lacking = parts.filter((part, n) => part < (wanted[n] ?? 0));
    const least = Math.min(...lacking);
    for (const [n, part] of parts.entries())
      if (part > (wanted[n] ?? 0)) assert.ok(part <= least + 1 || part <= 1, context);
  }
});

function createFixture(total: number) {
  const bus = testBus(IDS);
  const { world } = bus;
  const workers = IDS.map((id) => {
    const state = { used: 0, wanted: 0 };
    const shares = new WorkerShares({ bus: bus.worker(id).bus, runtime: world, workers: 4 });
    const share = shares.of("things", total, {
      used: () => state.used,
      wanted: () => state.wanted,
    });
    const again = (changed: number) =>
      shares.of("things", changed, { used: () => state.used, wanted: () => state.wanted });
    return { id, state, share, again };
  });
  /** Lets everybody take what he wants and may, and say so where that is not enough. */
  const take = (): void => {
    for (const { state, share } of workers) {
      state.used = Math.max(
        Math.min(state.wanted, share.limit),
        Math.min(state.used, state.wanted),
      );
      if (state.wanted > share.limit) share.short();
    }
  };
  const rounds = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      take();
      world.advance(250);
      for (let turns = 0; turns < 20; turns++) {
        await turn();
        const used = workers.reduce((sum, { state }) => sum + state.used, 0);
        assert.ok(used <= total, `${used} of ${total} in use`);
      }
    }
  };
  const limits = (): readonly number[] => workers.map(({ share }) => share.limit);
  return { bus, world, workers, rounds, take, limits };
}

test("a worker that needs more gets what others do not use, and gives it back", async () => {
  const { workers, rounds, limits } = createFixture(128);
  const [first, second] = workers;
  assert.ok(first && second);
  assert.deepEqual(limits(), [32, 32, 32, 32]);
  first.state.wanted = 500;
  await rounds(2);
  assert.deepEqual(limits(), [125, 1, 1, 1]);
  // All of it is in use: what the second gets is what the first lets go.
  second.state.wanted = 500;
  await rounds(2);
  assert.equal(second.state.used, 1);
  first.state.wanted = 60;
  await rounds(3);
  assert.ok(second.state.used >= 60, `${second.state.used}`);
});

test("a bound that was lowered is divided anew, not by the parts of the bound before", async () => {
  const { bus, workers, rounds, limits } = createFixture(128);
  const [first] = workers;
  assert.ok(first);
  first.state.wanted = 500;
  await rounds(2);
  assert.deepEqual(limits(), [125, 1, 1, 1]);
  // As a reload does: the same key, another total, everywhere.
  const lowered = workers.map(({ share, again }) => {
    share.close();
    return again(8);
  });
  assert.deepEqual(
    lowered.map(({ limit }) => limit),
    [2, 2, 2, 2],
  );
  assert.deepEqual(bus.errors, []);
});

test("of a bound that is less than the workers, those get it that want it", async () => {
  const { workers, rounds, limits } = createFixture(3);
  assert.deepEqual(limits(), [1, 1, 1, 0]);
  const last = workers[3];
  assert.ok(last);
  last.state.wanted = 3;
  await rounds(2);
  assert.deepEqual(limits(), [0, 0, 0, 3]);
});

test("nothing is moved while a worker does not answer; parts are equal when it is gone", async () => {
  const { bus, workers, rounds, limits } = createFixture(128);
  const [first] = workers;
  assert.ok(first);
  bus.worker("3").isStuck = true;
  first.state.wanted = 500;
  await rounds(6);
  assert.deepEqual(limits(), [32, 32, 32, 32]);
  bus.worker("3").end();
  await rounds(8);
  assert.deepEqual(
    limits().filter((_, n) => n !== 2),
    [126, 1, 1],
  );
});

test("never more than the bound is in use, by chance (seeds 1 to 20)", async () => {
  for (const seed of seedsTo(20)) {
    const random = seededRandom(seed);
    const { workers, rounds } = createFixture(1 + Math.floor(random() * 60));
    for (let step = 0; step < 10; step++) {
      for (const { state } of workers)
        if (random() < 0.5) state.wanted = Math.floor(random() ** 3 * 80);
      await rounds(1);
    }
  }
});
