// Filters that several processes share, in simulated time over records that the test can cut off:
// answers of which nobody knows whether they were written, a database that is away, expiry.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { FilterRecord } from "../../../src/core/stream/filter-record.ts";
import { readSubscription } from "../../../src/core/stream/subscription.ts";
import { createFilters, type FilterRequest } from "../../../src/upstream/filter/filters.ts";
import { createSharedFilters } from "../../../src/upstream/filter/shared-filters.ts";
import { createTracker } from "../../../src/upstream/health/tracker.ts";
import type { Subscriber } from "../../../src/upstream/stream/subscriber.ts";
import { createTimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { type FakeRecords, fakeRecords } from "../../fakes/filter-records.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/runtime.ts";

const OWNER = "key k1 ethereum";

/** A process whose streams tell everything from the beginning, unless a filter goes on. */
function createProcess(world: SimulatedWorld, table: FakeRecords, name: string) {
  const link = table.of(name);
  const tracker = createTracker(fakeSet([fakeProvider(0)]), world, SELECTION);
  const subscribers = new Set<Subscriber>();
  const subscriptions = {
    open(_: unknown, subscriber: Subscriber) {
      subscribers.add(subscriber);
      subscriber.started(null);
      return () => void subscribers.delete(subscriber);
    },
  };
  const filters = createFilters({
    runtime: world,
    timerWheel: createTimerWheel(world),
    subscriptions,
    limits: () => ({ maxFilters: 10, maxCallerFilters: 10, maxFilterBytes: 1_000_000 }),
    secret: randomBytes,
  });
  const errors: unknown[] = [];
  const shared = createSharedFilters({
    runtime: world,
    filters,
    records: link.records,
    remote: null,
    workerOf: () => null,
    onError: (error) => errors.push(error),
  });
  const subscription = readSubscription(["newPendingTransactions"]);
  assert.ok(subscription.kind !== "invalid");
  const request: FilterRequest = {
    profile: "public",
    tracker,
    subscription,
    strategy: "priority",
    pin: null,
    deadlineMs: 1_000,
    caller: { id: "one", maxLogFilters: 10 },
    kind: "pending",
    owner: OWNER,
    query: null,
  };
  const revival = { request: (_: FilterRecord) => request, opened() {} };
  return {
    link,
    errors,
    filters,
    async create(): Promise<string> {
      let id = "";
      filters.open(request, (opened) => {
        assert.ok(opened.kind === "opened");
        id = opened.id;
      });
      const origin = { id, owner: OWNER, method: "eth_newPendingTransactionFilter" } as const;
      const place = { profile: "public", named: "public", chain: "ethereum", pin: null } as const;
      await pass(
        world,
        shared.created({ ...origin, ...place, params: "[]", strategy: "priority" }),
      );
      return id;
    },
    tell(text: string): void {
      for (const subscriber of subscribers) subscriber.events([Buffer.from(text)]);
    },
    poll: (id: string) => pass(world, shared.poll({ owner: OWNER, id }, revival)),
    uninstall: (id: string) => pass(world, shared.uninstall({ owner: OWNER, id })),
  };
}

/** Lets time pass until a promise has resolved. */
async function pass<T>(world: SimulatedWorld, promise: Promise<T>): Promise<T> {
  let isDone = false;
  const done = promise.finally(() => {
    isDone = true;
  });
  for (let steps = 0; !isDone && steps < 10_000; steps++) {
    world.advance(1);
    await new Promise(setImmediate);
  }
  assert.ok(isDone, "it never resolves");
  return done;
}

function waitFor(world: SimulatedWorld, ms: number): Promise<void> {
  return pass(world, new Promise<void>((resolve) => void world.after(ms, resolve)));
}

function createPair() {
  const world = simulatedWorld(1);
  const table = fakeRecords(world, () => 2);
  const [one, other] = [createProcess(world, table, "n1"), createProcess(world, table, "n2")];
  return { world, table, one, other };
}

function textOf(answer: Awaited<ReturnType<ReturnType<typeof createProcess>["poll"]>>): string {
  assert.ok(answer.kind === "found", answer.kind);
  return answer.value.json.toString();
}

test("another process waits for the outcome of an answer, and no longer than two seconds", async () => {
  const { world, table, one, other } = createPair();
  const id = await one.create();
  one.tell('"a"');
  const answer = await one.poll(id);
  assert.equal(textOf(answer), '["a"]');
  assert.equal(table.rows.get(id)?.isAnswering, true);
  const sinceMs = world.now();
  const moving = other.poll(id);
  await waitFor(world, 300);
  assert.equal(table.rows.get(id)?.node, "n1", "it is not taken while the answer is open");
  assert.ok(answer.kind === "found");
  answer.value.settle(true);
  await moving;
  assert.ok(world.now() - sinceMs < 600);
  assert.equal(table.rows.get(id)?.node, "n2");
  other.tell('"b"');
  assert.equal(textOf(await other.poll(id)), '["b"]');
  await waitFor(world, 1_200);
  other.link.state = "dead";
  const deadMs = world.now();
  await one.poll(id);
  assert.equal(table.rows.get(id)?.node, "n1", "a dead process is not waited for");
  assert.ok(world.now() - deadMs >= 2_000);
});

test("a poll that has nothing to tell writes nothing; all polls of a second are one statement", async () => {
  const { world, table, one } = createPair();
  const ids = [await one.create(), await one.create(), await one.create()];
  await waitFor(world, 1_500);
  const before = table.counts.get("write") ?? 0;
  for (const id of ids) for (let n = 0; n < 3; n++) assert.equal(textOf(await one.poll(id)), "[]");
  assert.equal(table.counts.get("write") ?? 0, before);
  await waitFor(world, 1_100);
  // The first of three goes at once, the others together.
  assert.ok((table.counts.get("write") ?? 0) - before <= 2);
});

test("without the database polls go on where a filter is kept, and elsewhere it is not said to be gone", async () => {
  const { world, table, one, other } = createPair();
  const id = await one.create();
  one.link.state = "cut";
  other.link.state = "cut";
  one.tell('"a"');
  assert.equal(textOf(await one.poll(id)), '["a"]');
  assert.equal((await other.poll(id)).kind, "away");
  assert.equal((await other.uninstall(id)).kind, "away");
  other.link.state = "stalled";
  const sinceMs = world.now();
  assert.equal((await other.poll(id)).kind, "away");
  assert.ok(world.now() - sinceMs < 3_500, "it waits within bounds");
  const created = await one.create();
  assert.equal(table.rows.has(created), false);
  one.link.state = "open";
  other.link.state = "open";
  await waitFor(world, 2_500);
  assert.equal(table.rows.get(created)?.node, "n1", "it is recorded when the database is back");
  assert.equal(textOf(await other.poll(created)), "[]");
  assert.ok(one.errors.length > 0);
});

test("the process that kept a filter drops it when another has taken it, or removed it", async () => {
  const { world, one, other } = createPair();
  const [moved, removed] = [await one.create(), await one.create()];
  await other.poll(moved);
  assert.deepEqual(await other.uninstall(removed), { kind: "found", value: true });
  await waitFor(world, 1_200);
  assert.equal(one.filters.counts()[0]?.open.pending, 0);
  assert.equal(one.filters.counts()[0]?.ended.handed_over, 2);
  assert.equal((await one.poll(removed)).kind, "none");
  assert.deepEqual(await one.uninstall(removed), { kind: "found", value: false });
});

test("five minutes without a poll end a filter and its record; a poll elsewhere keeps it", async () => {
  const { world, table, one, other } = createPair();
  const id = await one.create();
  await waitFor(world, 4_000);
  world.jump(200_000);
  assert.equal(textOf(await other.poll(id)), "[]");
  world.jump(299_000);
  await waitFor(world, 3_000);
  assert.equal(table.rows.has(id), false);
  assert.equal((await one.poll(id)).kind, "none");
});
