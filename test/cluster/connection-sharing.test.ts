// Who serves a new connection: the one that accepted it, unless it is well ahead of another.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionSharing } from "../../src/shared/processes/connection-sharing.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { seedsTo } from "../fakes/seed.ts";
import { testBus } from "./bus-fixture.ts";

/** Opens connections that the kernel gives to workers as `accept` says; counts those served. */
function share(count: number, accept: (n: number) => number, stepMs: number): readonly number[] {
  const { world, worker } = testBus(["1", "2"]);
  const sharing = ["1", "2"].map((id) => new ConnectionSharing(worker(id).bus, world));
  for (let n = 0; n < count; n++) {
    const own = sharing[accept(n)];
    assert.ok(own);
    const other = own.otherFor();
    (other === null ? own : sharing[Number(other) - 1])?.opened();
    world.advance(stepMs);
  }
  return sharing.map((each) => each.count);
}

for (const stepMs of [0, 0.05, 20])
  test(`64 connections, one each ${stepMs} ms, are shared though one worker accepts all`, () => {
    for (const worker of [0, 1])
      for (const served of share(64, () => worker, stepMs))
        assert.ok(served >= 23 && served <= 41, `${served} of 64`);
  });

test("64 connections that are given by chance are shared, for every seed", () => {
  for (const seed of seedsTo(50)) {
    const random = seededRandom(seed);
    const bias = random();
    for (const served of share(64, () => Number(random() < bias), 1))
      assert.ok(served >= 23 && served <= 41, `seed ${seed}: ${served} of 64`);
  }
});

test("short connections stay where they were accepted", () => {
  const { world, worker } = testBus(["1", "2"]);
  const sharing = new ConnectionSharing(worker("1").bus, world);
  for (let n = 0; n < 1_000; n++) {
    assert.equal(sharing.otherFor(), null);
    sharing.opened()();
  }
});

test("connections that are passed on are bounded: 512 at once, 50 a second", () => {
  const { world, worker } = testBus(["1", "2"]);
  const sharing = new ConnectionSharing(worker("1").bus, world);
  const passed = (): number => {
    let n = 0;
    for (let i = 0; i < 5_000; i++) {
      if (sharing.otherFor() === null) sharing.opened();
      else n++;
    }
    return n;
  };
  assert.equal(passed(), 512);
  world.advance(1_000);
  assert.equal(passed(), 50);
});

test("nothing is passed on where there is nobody else", () => {
  const { world, worker } = testBus(["1", "2"]);
  const sharing = new ConnectionSharing(worker("1").bus, world);
  worker("2").end();
  for (let n = 0; n < 100; n++) {
    assert.equal(sharing.otherFor(), null);
    sharing.opened();
  }
});
