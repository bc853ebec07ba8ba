// Bounds of the service divided between workers over the book of their supervisor: never more in
// use than the bound at any moment, parts that follow demand, and what a worker had that has ended.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { divided } from "../../src/core/workers/division.ts";
import { MachineShares, machineShares } from "../../src/shared/processes/machine-shares.ts";
import { LeasedShares } from "../../src/upstream/shares.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { seedsTo } from "../fakes/seed.ts";
import { testBus } from "./bus-fixture.ts";

const IDS = ["1", "2", "3", "4"] as const;

test("nobody gets more than he wants while others want more", () => {
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

/** Steps of a round of shares, so that each answer of the book has its time. */
const STEP_MS = 10;

async function createFixture(total: number, of: readonly string[] = IDS) {
  const bus = testBus(IDS);
  const { world } = bus;
  const book = new MachineShares(world);
  book.serve(bus.hub);
  const open = (id: string) => {
    const state = { used: 0, wanted: 0 };
    const onError = (error: unknown): void => void bus.errors.push(error);
    const shares = new LeasedShares({ runtime: world, members: IDS.length, onError });
    shares.join(machineShares(bus.worker(id).bus), Number.POSITIVE_INFINITY);
    const use = { used: () => state.used, wanted: () => state.wanted };
    const share = shares.of("things", total, use);
    return { id, state, share, again: (changed: number) => shares.of("things", changed, use) };
  };
  const workers = of.map(open);
  /** Lets everybody take what he wants and may. */
  const take = (): void => {
    for (const { state, share } of workers)
      state.used = Math.max(
        Math.min(state.wanted, share.limit),
        Math.min(state.used, state.wanted),
      );
  };
  const rounds = async (count: number): Promise<void> => {
    for (let ms = 0; ms < count * 300; ms += STEP_MS) {
      take();
      world.advance(STEP_MS);
      for (let turns = 0; turns < 8; turns++) await turn();
      const used = workers.reduce((sum, { state }) => sum + state.used, 0);
      assert.ok(used <= total, `${used} of ${total} in use`);
    }
  };
  const limits = (): readonly number[] => workers.map(({ share }) => share.limit);
  await rounds(2);
  return { bus, book, workers, open, rounds, limits };
}

test("a worker that needs more gets what others do not use, and gives it back", async () => {
  const { workers, rounds, limits } = await createFixture(128);
  const [first, second] = workers;
  assert.ok(first && second);
  assert.deepEqual(limits(), [32, 32, 32, 32]);
  first.state.wanted = 500;
  await rounds(4);
  assert.deepEqual(limits(), [125, 1, 1, 1]);
  // All of it is in use: what the second gets is what the first lets go.
  second.state.wanted = 500;
  await rounds(3);
  assert.equal(second.state.used, 1);
  first.state.wanted = 60;
  await rounds(12);
  assert.ok(second.state.used >= 60, `${second.state.used}`);
});

test("a worker that has not used a bound yet finds some of it free", async () => {
  const { workers, open, rounds } = await createFixture(128, ["1"]);
  const [first] = workers;
  assert.ok(first);
  assert.equal(first.share.limit, 32);
  first.state.wanted = 500;
  await rounds(4);
  assert.equal(first.share.limit, 125);
  const second = open("2");
  assert.equal(second.share.limit, 0);
  // One question to the book, within the first step.
  await rounds(STEP_MS / 300);
  assert.equal(second.share.limit, 1);
});

test("a bound that was lowered is divided anew, not by the shares of the bound before", async () => {
  const { bus, workers, rounds, limits } = await createFixture(128);
  const [first] = workers;
  assert.ok(first);
  first.state.wanted = 500;
  await rounds(4);
  assert.deepEqual(limits(), [125, 1, 1, 1]);
  first.state.wanted = 0;
  // As a reload does: the same key, another total, everywhere.
  const lowered = workers.map(({ share, again }) => {
    share.close();
    return again(8);
  });
  assert.ok(lowered.every(({ limit }) => limit <= 8));
  await rounds(8);
  assert.equal(
    lowered.reduce((sum, { limit }) => sum + limit, 0),
    8,
  );
  assert.deepEqual(bus.errors, []);
});

test("of a bound that is less than the workers, those get it that want it", async () => {
  const { workers, rounds, limits } = await createFixture(3);
  assert.equal(
    limits().reduce((sum, limit) => sum + limit, 0),
    3,
  );
  const last = workers.find(({ share }) => share.limit === 0);
  assert.ok(last);
  last.state.wanted = 3;
  await rounds(6);
  assert.equal(last.share.limit, 3);
});

test("what a worker has stays its own while it does not answer, until its process has ended", async () => {
  const { bus, book, workers, rounds, limits } = await createFixture(128);
  const [first] = workers;
  assert.ok(first);
  bus.worker("3").isStuck = true;
  first.state.wanted = 500;
  await rounds(6);
  assert.deepEqual(limits(), [94, 1, 32, 1]);
  bus.worker("3").end();
  book.forget("3");
  await rounds(4);
  assert.deepEqual(
    limits().filter((_, n) => n !== 2),
    [125, 1, 1],
  );
});

test("never more than the bound is in use, by chance (seeds 1 to 20)", async () => {
  for (const seed of seedsTo(20)) {
    const random = seededRandom(seed);
    const { workers, rounds } = await createFixture(1 + Math.floor(random() * 60));
    for (let step = 0; step < 10; step++) {
      for (const { state } of workers)
        if (random() < 0.5) state.wanted = Math.floor(random() ** 3 * 80);
      await rounds(1);
    }
  }
});
