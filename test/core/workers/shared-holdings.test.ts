// Bounds on what callers hold count what they hold at other workers: each thing once, also after a
// lost message, a worker that starts later and one that is gone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { countElsewhere, SharedHoldings } from "../../../src/core/workers/shared-holdings.ts";
import { WaitingBatches } from "../../../src/hosted/admission/waiting-batches.ts";
import { FilterQuota } from "../../../src/upstream/stream/filter-quota.ts";
import type { Subscriber } from "../../../src/upstream/stream/subscriber.ts";
import { testBus } from "../../cluster/bus-fixture.ts";

function createFixture() {
  const bus = testBus(["1", "2", "3"]);
  const holdings = ["1", "2", "3"].map(
    (id) => new SharedHoldings<number>(bus.worker(id).bus, bus.world, "test"),
  );
  const [one, two, three] = holdings;
  assert.ok(one && two && three);
  return { bus, world: bus.world, holdings, one, two, three };
}

test("what a caller holds at other workers is known a moment later", () => {
  const { world, one, two, three } = createFixture();
  one.tell("ann", 1);
  two.tell("ann", 2);
  two.tell("bob", 1);
  world.advance(5);
  assert.deepEqual(three.elsewhere("ann"), [1, 2]);
  assert.deepEqual(one.elsewhere("bob"), [1]);
  two.tell("ann", 1);
  two.tell("bob", null);
  world.advance(5);
  assert.equal(countElsewhere(three, "ann"), 2);
  assert.deepEqual(one.elsewhere("bob"), []);
});

test("what was told only once too few times is told again; what is not is forgotten", () => {
  const { bus, world, one, two, three } = createFixture();
  bus.worker("1").isMute = true;
  one.tell("ann", 1);
  world.advance(5);
  assert.deepEqual(two.elsewhere("ann"), []);
  bus.worker("1").isMute = false;
  world.advance(10_100);
  assert.deepEqual(two.elsewhere("ann"), [1]);
  bus.worker("1").isMute = true;
  one.tell("ann", null);
  world.advance(30_000);
  assert.deepEqual(three.elsewhere("ann"), [1]);
  world.advance(10_000);
  assert.deepEqual(three.elsewhere("ann"), []);
  // Nothing is held: nothing is told again.
  const before = world.pendingTimers();
  world.advance(60_000);
  assert.ok(world.pendingTimers() <= before);
});

test("what a silent worker holds counts, what a dead one held does not", () => {
  const { bus, world, one, two } = createFixture();
  two.tell("ann", 3);
  world.advance(5);
  bus.worker("2").setSilent(true);
  assert.deepEqual(one.elsewhere("ann"), [3]);
  bus.worker("2").end();
  assert.deepEqual(one.elsewhere("ann"), []);
});

test("a worker that starts later, or did not read for a while, hears the last numbers", () => {
  const { bus, world, one, two, three } = createFixture();
  bus.worker("3").isStuck = true;
  for (let count = 1; count <= 50; count++) {
    one.tell("ann", count);
    world.advance(30);
  }
  bus.worker("3").release();
  assert.deepEqual(three.elsewhere("ann"), [50]);
  two.tell("bob", 2);
  bus.worker("1").end();
  const late = new SharedHoldings<number>(bus.worker("3").bus, world, "test");
  world.advance(30);
  assert.deepEqual(late.elsewhere("bob"), [2]);
});

test("more holders than fit into one message are told in several", () => {
  const { world, one, two } = createFixture();
  for (let n = 0; n < 1_200; n++) one.tell(`caller ${n}`, 1);
  world.advance(20);
  for (const n of [0, 499, 500, 1_199]) assert.deepEqual(two.elsewhere(`caller ${n}`), [1]);
});

const SUBSCRIBER: Subscriber = { started() {}, refused() {}, events() {}, ended() {} };

test("a caller has so many different log filters over all workers; the same filter counts once", () => {
  const { bus, world } = createFixture();
  const quotas = ["1", "2", "3"].map(
    (id) => new FilterQuota(new SharedHoldings(bus.worker(id).bus, world, "log filters")),
  );
  const ann = { id: "ann", maxLogFilters: 3 };
  const hold = (worker: number, key: string): (() => void) | null => {
    const quota = quotas[worker];
    assert.ok(quota);
    if (!quota.allows(ann, key)) return null;
    const leave = quota.hold(ann, key, SUBSCRIBER, () => () => {});
    world.advance(5);
    return leave;
  };
  const leaves = [hold(0, "a"), hold(1, "b"), hold(2, "c")];
  for (const leave of leaves) assert.ok(leave);
  for (const worker of [0, 1, 2]) assert.equal(hold(worker, "d"), null);
  const again = hold(0, "c");
  assert.ok(again, "a filter that is open elsewhere is not one more");
  leaves[2]?.();
  world.advance(5);
  assert.equal(hold(1, "d"), null);
  again();
  world.advance(5);
  assert.ok(hold(1, "d"));
  assert.ok(quotas[0]?.allows({ id: "bob", maxLogFilters: 1 }, "x"));
});

test("an account has two waiting batches over all workers", () => {
  const { world, holdings } = createFixture();
  const [one, two, three] = holdings.map((each) => new WaitingBatches(each));
  assert.ok(one && two && three);
  const account = { id: "acct", kind: "account", paid: null, own: null, fullAtMs: null } as const;
  const batch = { aloneMs: () => 400, latestMs: () => 30_000 };
  const leave = one.enter(account, batch);
  assert.ok(leave && two.enter(account, batch));
  world.advance(5);
  assert.deepEqual(
    [one, two, three].map((batches) => batches.enter(account, batch)),
    [null, null, null],
  );
  // Both share the tokens of the account; where none of them waits, an estimate has to do.
  assert.deepEqual(
    [one, two, three].map((batches) => batches.fullForMs(account)),
    [800, 800, 1_000],
  );
  leave();
  world.advance(5);
  assert.equal(three.fullForMs(account), null);
  assert.ok(three.enter(account, batch));
});
