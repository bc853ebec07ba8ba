// Bounds on filters that hold for the service: what callers have at other workers counts, also for
// a worker that started later, and not after a worker is gone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CallerFilters } from "../../../src/upstream/filter/caller-filters.ts";
import { testBus } from "../../cluster/bus-fixture.ts";

/** Sets how many filters a caller has at a worker. */
function set(filters: CallerFilters, caller: string, count: number): void {
  for (let n = 0; n < count; n++) filters.add(caller, 1);
}

function createFixture() {
  const bus = testBus(["1", "2", "3"]);
  const counts = ["1", "2", "3"].map((id) => new CallerFilters(bus.world, bus.worker(id).bus));
  const [one, two, three] = counts;
  assert.ok(one && two && three);
  return { bus, world: bus.world, one, two, three };
}

test("what a caller has at other workers is known a moment later", () => {
  const { world, one, two, three } = createFixture();
  set(one, "ann", 2);
  set(two, "ann", 3);
  set(two, "bob", 1);
  world.advance(30);
  assert.deepEqual(
    [one, two, three].map((filters) => [filters.of("ann"), filters.allElsewhere]),
    [
      [5, 4],
      [5, 2],
      [5, 6],
    ],
  );
  for (let n = 0; n < 3; n++) two.add("ann", -1);
  world.advance(30);
  assert.deepEqual([one.of("ann"), one.of("bob"), three.allElsewhere], [2, 1, 3]);
});

test("the filters of a worker that is gone do not count, and the others tell theirs again", () => {
  const { bus, world, one, two, three } = createFixture();
  set(one, "ann", 2);
  set(two, "ann", 3);
  world.advance(30);
  bus.worker("2").end();
  assert.deepEqual([one.of("ann"), three.of("ann")], [2, 2]);
  const late = new CallerFilters(world, bus.worker("3").bus);
  assert.equal(late.of("ann"), 0);
  world.advance(30);
  assert.equal(late.of("ann"), 2);
});

test("a worker that did not read for a while hears the last numbers", () => {
  const { bus, world, one, three } = createFixture();
  bus.worker("3").isStuck = true;
  for (let count = 1; count <= 50; count++) {
    one.add("ann", 1);
    world.advance(30);
  }
  bus.worker("3").release();
  assert.equal(three.of("ann"), 50);
});

test("more callers than fit into one message are told in several", () => {
  const { world, one, two } = createFixture();
  for (let n = 0; n < 2_500; n++) one.add(`caller ${n}`, 1);
  world.advance(100);
  assert.equal(two.allElsewhere, 2_500);
});
