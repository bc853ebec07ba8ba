// Bounds on filters that hold for the service: what callers have at other workers counts, also for
// a worker that started later, and not after a worker is gone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCallerFilters } from "../../../src/upstream/filter/caller-filters.ts";
import { testBus } from "../../cluster/bus-fixture.ts";

function createFixture() {
  const bus = testBus(["1", "2", "3"]);
  const counts = ["1", "2", "3"].map((id) => createCallerFilters(bus.worker(id).bus, bus.world));
  const [one, two, three] = counts;
  assert.ok(one && two && three);
  return { bus, world: bus.world, one, two, three };
}

test("what a caller has at other workers is known a moment later", () => {
  const { world, one, two, three } = createFixture();
  one.set("ann", 2);
  two.set("ann", 3);
  two.set("bob", 1);
  world.advance(30);
  assert.deepEqual(
    [one, two, three].map((filters) => [filters.elsewhere("ann"), filters.allElsewhere()]),
    [
      [3, 4],
      [2, 2],
      [5, 6],
    ],
  );
  two.set("ann", 0);
  world.advance(30);
  assert.deepEqual([one.elsewhere("ann"), one.elsewhere("bob"), three.allElsewhere()], [0, 1, 3]);
});

test("the filters of a worker that is gone do not count, and the others tell theirs again", () => {
  const { bus, world, one, two, three } = createFixture();
  one.set("ann", 2);
  two.set("ann", 3);
  world.advance(30);
  bus.worker("2").end();
  assert.deepEqual([one.elsewhere("ann"), three.elsewhere("ann")], [0, 2]);
  const late = createCallerFilters(bus.worker("3").bus, world);
  assert.equal(late.elsewhere("ann"), 0);
  world.advance(30);
  assert.equal(late.elsewhere("ann"), 2);
});

test("a worker that did not read for a while hears the last numbers", () => {
  const { bus, world, one, three } = createFixture();
  bus.worker("3").isStuck = true;
  for (let count = 1; count <= 50; count++) {
    one.set("ann", count);
    world.advance(30);
  }
  bus.worker("3").release();
  assert.equal(three.elsewhere("ann"), 50);
});

test("more callers than fit into one message are told in several", () => {
  const { world, one, two } = createFixture();
  for (let n = 0; n < 2_500; n++) one.set(`caller ${n}`, 1);
  world.advance(100);
  assert.equal(two.allElsewhere(), 2_500);
});
