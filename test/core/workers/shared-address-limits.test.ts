// Rate limits by address over several workers: together they allow what one process allows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedAddressLimits } from "../../../src/core/workers/shared-address-limits.ts";
import { testBus } from "../../cluster/bus-fixture.ts";

const SIZE = { perSecond: 1, burst: 10 };
const ADDRESSES = ["198.51.100.7", "2001:db8::1"] as const;

function createFixture() {
  const bus = testBus(["1", "2", "3", "4"]);
  const limits = ["1", "2", "3", "4"].map((id) =>
    sharedAddressLimits(bus.worker(id).bus, bus.world)("creations", SIZE),
  );
  return { bus, world: bus.world, limits };
}

for (const address of ADDRESSES)
  test(`four workers allow an address what one allows (${address})`, () => {
    const { world, limits } = createFixture();
    let taken = 0;
    for (let step = 0; step < 4_000; step++) {
      const limit = limits[step % limits.length];
      if (limit?.take(address, world.now()) === 0) taken++;
      world.advance(5);
    }
    // Ten at once, and one a second for twenty seconds.
    assert.ok(taken >= 29 && taken <= 31, `${taken} taken`);
  });

test("what is given back at one worker is there at the others", () => {
  const { world, limits } = createFixture();
  const [one, two] = limits;
  assert.ok(one && two);
  for (let n = 0; n < 10; n++) assert.equal(one.take(ADDRESSES[0], world.now()), 0);
  world.advance(10);
  assert.ok(two.waitMs(ADDRESSES[0], world.now()) > 0);
  one.giveBack(ADDRESSES[0]);
  world.advance(10);
  assert.equal(two.take(ADDRESSES[0], world.now()), 0);
  assert.equal(two.take("198.51.100.8", world.now()), 0);
});
