// Filters of one worker that are polled at another, over the bus and in simulated time: nothing is
// lost or told twice, whatever becomes of the poll, and ids of another owner find nothing.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { readCriteria } from "../../../src/core/stream/subscription.ts";
import { Filters, type PolledFilter } from "../../../src/upstream/filter/filters.ts";
import {
  idByteOf,
  type RemoteAnswer,
  RemoteFilters,
} from "../../../src/upstream/filter/remote-filters.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import type { Subscriber } from "../../../src/upstream/stream/subscriber.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { testBus } from "../../cluster/bus-fixture.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";

const OWNER = "key k1 test";

function createFixture() {
  const bus = testBus(["1", "2"]);
  const { world } = bus;
  const subscribers = new Set<Subscriber>();
  const sides = ["1", "2"].map((id) => {
    const timerWheel = new TimerWheel(world);
    const filters = new Filters({
      budget: MemoryBudget.unbounded(),
      runtime: world,
      timerWheel,
      subscriptions: {
        open(_, subscriber) {
          subscribers.add(subscriber);
          return () => void subscribers.delete(subscriber);
        },
      },
      limits: () => ({
        maxFilters: 10,
        maxCallerFilters: 10,
        maxFilterBytes: 1_000_000,
        maxInFlightBytes: 400_000_000,
        maxCallerBytes: 400_000_000,
      }),
      secret: randomBytes,
      idByte: idByteOf(id),
    });
    return {
      filters,
      remote: new RemoteFilters({ bus: bus.worker(id).bus, timerWheel, filters }),
    };
  });
  const [one, two] = sides;
  assert.ok(one && two);
  const criteria = readCriteria([{}]);
  assert.ok(criteria.kind === "criteria");
  const { subscription, query } = criteria;
  let id = "";
  one.filters.open(
    {
      kind: "logs",
      profile: "team",
      tracker: new Tracker(fakeSet([fakeProvider(0)]), world, SELECTION),
      subscription,
      strategy: "priority",
      pin: null,
      deadlineMs: 1_000,
      owner: OWNER,
      caller: { id: "caller", maxLogFilters: 10 },
      query,
    },
    (opened) => {
      assert.ok(opened.kind === "opened");
      id = opened.id;
    },
  );
  for (const subscriber of subscribers) subscriber.started(null);
  const tell = (...texts: readonly string[]): void => {
    for (const subscriber of subscribers) subscriber.events(texts.map((text) => Buffer.from(text)));
  };
  /** Polls at worker 2. */
  async function poll(owner = OWNER): Promise<RemoteAnswer<PolledFilter>> {
    const heard: RemoteAnswer<PolledFilter>[] = [];
    two?.remote.poll("1", { owner, id }, (answer) => void heard.push(answer));
    await turn();
    return heard[0] ?? assert.fail("no answer");
  }
  async function changes(written = true): Promise<string> {
    const polled = await poll();
    assert.ok(polled.kind === "found");
    polled.value.settle(written);
    await turn();
    return polled.value.json.toString();
  }
  return { bus, world, one, two, id, tell, poll, changes };
}

test("an id names its worker, and is a quantity of one length that nobody can guess", () => {
  const { one, two, id } = createFixture();
  assert.match(id, /^0x11[0-9a-f]{32}$/);
  assert.deepEqual([one.remote.keeperOf(id), two.remote.keeperOf(id)], [null, "1"]);
  for (const other of ["", "0x1", `0x13${"0".repeat(32)}`, `0x00${"0".repeat(32)}`, `${id}0`])
    assert.equal(two.remote.keeperOf(other), null, other);
});

test("a filter is polled at another worker; an answer that was not written is told again", async () => {
  const { tell, changes } = createFixture();
  tell('"a"', '"b"');
  assert.equal(await changes(false), '["a","b"]');
  tell('"c"');
  assert.equal(await changes(), '["a","b","c"]');
  assert.equal(await changes(), "[]");
});

test("a poll that its caller left is told again", async () => {
  const { two, id, tell, changes } = createFixture();
  tell('"a"');
  const cancel = two.remote.poll("1", { owner: OWNER, id }, () => assert.fail("cancelled"));
  cancel();
  await turn();
  await turn();
  assert.equal(await changes(), '["a"]');
});

test("what a worker polled that then died is told again", async () => {
  const { bus, one, id, tell, poll } = createFixture();
  tell('"a"');
  assert.equal((await poll()).kind, "found");
  bus.worker("2").end();
  assert.equal(one.filters.poll(OWNER, id)?.json.toString(), '["a"]');
});

test("a worker that does not answer in time keeps its filters and their changes", async () => {
  const { bus, world, two, id, tell, changes } = createFixture();
  tell('"a"');
  const owner = bus.worker("1");
  owner.isStuck = true;
  const heard: string[] = [];
  two.remote.poll("1", { owner: OWNER, id }, ({ kind }) => void heard.push(kind));
  world.advance(6_000);
  await turn();
  assert.deepEqual(heard, ["silent"]);
  owner.release();
  await turn();
  assert.equal(await changes(), '["a"]');
});

test("a dead worker's filters are gone, and filters of others are not found", async () => {
  const { bus, two, id, poll } = createFixture();
  assert.equal((await poll("key k2 test")).kind, "none");
  bus.worker("1").end();
  assert.equal(two.remote.keeperOf(id), null);
  assert.equal((await poll()).kind, "none");
});

test("the place of a filter is found, and it is uninstalled once, at another worker", async () => {
  const { two, id } = createFixture();
  const heard: unknown[] = [];
  two.remote.place("1", { owner: OWNER, id }, (place) => void heard.push(place));
  await turn();
  two.remote.uninstall("1", { owner: OWNER, id }, (ended) => void heard.push(ended));
  two.remote.uninstall("1", { owner: OWNER, id }, (ended) => void heard.push(ended));
  await turn();
  assert.deepEqual(heard, [
    { kind: "found", value: { profile: "team", chain: "test", pin: null, query: "[{}]" } },
    { kind: "found", value: true },
    { kind: "found", value: false },
  ]);
});
