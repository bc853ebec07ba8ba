// Filters of one worker that are polled at another, over the bus and in simulated time: nothing is
// lost or told twice, whatever becomes of the poll, and ids of another owner find nothing.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { readCriteria } from "../../../src/core/stream/subscription.ts";
import { NO_SHARED_HOLDINGS } from "../../../src/core/workers/shared-holdings.ts";
import {
  type FilterAnswer,
  FilterForwarding,
} from "../../../src/upstream/filter/filter-forwarding.ts";
import { Filters, type PolledFilter } from "../../../src/upstream/filter/filters.ts";
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
      callers: NO_SHARED_HOLDINGS,
    });
    return {
      filters,
      forwarding: new FilterForwarding({
        bus: bus.worker(id).bus,
        timerWheel,
        filters,
        workerOf: (node) => node,
        pollHere: async ({ owner, id: polled }) => filters.poll(owner, polled),
      }),
    };
  });
  const [one, two] = sides;
  assert.ok(one && two);
  const criteria = readCriteria([{}]);
  assert.ok(criteria.kind === "criteria");
  const { subscription } = criteria;
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
      method: "eth_newFilter",
      params: "[{}]",
      named: "team",
    },
    (opened) => {
      assert.ok(opened.kind === "opened");
      id = opened.filter.id;
    },
  );
  for (const subscriber of subscribers) subscriber.started(null);
  const tell = (...texts: readonly string[]): void => {
    for (const subscriber of subscribers) subscriber.events(texts.map((text) => Buffer.from(text)));
  };
  /** Polls at worker 2. */
  async function poll(owner = OWNER): Promise<FilterAnswer<PolledFilter>> {
    const polled = two?.forwarding.poll("1", { owner, id });
    await turn();
    return polled ?? assert.fail("no answer");
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

test("a filter is polled at another worker; an answer that was not written is told again", async () => {
  const { tell, changes } = createFixture();
  tell('"a"', '"b"');
  assert.equal(await changes(false), '["a","b"]');
  tell('"c"');
  assert.equal(await changes(), '["a","b","c"]');
  assert.equal(await changes(), "[]");
});

test("what a worker polled that then died is told again", async () => {
  const { bus, one, id, tell, poll } = createFixture();
  tell('"a"');
  assert.equal((await poll()).kind, "found");
  bus.worker("2").end();
  await turn();
  assert.equal(one.filters.poll(OWNER, id)?.json.toString(), '["a"]');
});

test("a worker that does not answer in time keeps its filters and their changes", async () => {
  const { bus, world, two, id, tell, changes } = createFixture();
  tell('"a"');
  const owner = bus.worker("1");
  owner.isStuck = true;
  const polled = two.forwarding.poll("1", { owner: OWNER, id });
  world.advance(6_000);
  assert.equal((await polled).kind, "silent");
  owner.release();
  await turn();
  assert.equal(await changes(), '["a"]');
});

test("a dead worker's filters are gone, and filters of others are not found", async () => {
  const { bus, poll } = createFixture();
  assert.equal((await poll("key k2 test")).kind, "none");
  bus.worker("1").end();
  assert.equal((await poll()).kind, "none");
});

test("a filter is uninstalled at another worker, by its owner alone", async () => {
  const { two, id, poll } = createFixture();
  two.forwarding.uninstall("1", { owner: "key k2 test", id });
  await turn();
  assert.equal((await poll()).kind, "found");
  two.forwarding.uninstall("1", { owner: OWNER, id });
  await turn();
  assert.equal((await poll()).kind, "none");
});
