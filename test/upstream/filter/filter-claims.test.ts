// Filters that several processes share, in simulated time over records that the test can cut off:
// answers of which nobody knows whether they were written, a database that is away, expiry.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { FilterRecord } from "../../../src/core/stream/filter-record.ts";
import { readSubscription } from "../../../src/core/stream/subscription.ts";
import { NO_SHARED_HOLDINGS } from "../../../src/core/workers/shared-holdings.ts";
import { createLocalBus } from "../../../src/shared/processes/bus-endpoint.ts";
import { FilterClaims } from "../../../src/upstream/filter/filter-claims.ts";
import { type FilterRequest, Filters } from "../../../src/upstream/filter/filters.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import type { Subscriber } from "../../../src/upstream/stream/subscriber.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { type FakeRecords, fakeRecords } from "../../fakes/filter-records.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/runtime.ts";

const OWNER = "key k1 ethereum";

/** A process whose streams tell everything from the beginning, unless a filter goes on. */
function createProcess(world: SimulatedWorld, table: FakeRecords, name: string) {
  const link = table.of(name);
  const tracker = new Tracker(fakeSet([fakeProvider(0)]), world, SELECTION);
  const subscribers = new Set<Subscriber>();
  const subscriptions = {
    open(_: unknown, subscriber: Subscriber) {
      subscribers.add(subscriber);
      subscriber.started(null);
      return () => void subscribers.delete(subscriber);
    },
  };
  const timerWheel = new TimerWheel(world);
  const filters = new Filters({
    budget: MemoryBudget.unbounded(),
    runtime: world,
    timerWheel,
    subscriptions,
    limits: () => ({
      maxFilters: 100,
      maxCallerFilters: 10,
      maxFilterBytes: 1_000_000,
      maxInFlightBytes: 400_000_000,
      maxCallerBytes: 400_000_000,
    }),
    secret: randomBytes,
    callers: NO_SHARED_HOLDINGS,
  });
  const errors: unknown[] = [];
  const open: string[] = [];
  const shared = new FilterClaims({
    runtime: world,
    filters,
    records: link.records,
    timerWheel,
    bus: createLocalBus(world, (error) => assert.fail(String(error))),
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
    method: "eth_newPendingTransactionFilter",
    params: "[]",
    named: "public",
  };
  const revival = { request: (_: FilterRecord) => request, opened() {} };
  return {
    link,
    errors,
    filters,
    shared,
    open,
    async create(kind: "pending" | "logs" = "pending"): Promise<string> {
      const method = kind === "logs" ? "eth_newFilter" : request.method;
      let created = Promise.resolve();
      let id = "";
      filters.open({ ...request, kind, method }, (opened) => {
        assert.ok(opened.kind === "opened");
        id = opened.filter.id;
        open.push(id);
        created = shared.created(opened.filter);
      });
      await pass(world, created);
      return id;
    },
    tell(text: string): void {
      for (const subscriber of subscribers) subscriber.events([Buffer.from(text)]);
    },
    poll: (id: string) => pass(world, shared.poll({ owner: OWNER, id }, revival)),
    read: (id: string) => pass(world, shared.read({ owner: OWNER, id })),
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

function createPair(delayMs = () => 2) {
  const world = simulatedWorld(1);
  const table = fakeRecords(world, delayMs);
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

test("an answer of which nothing is heard any more is waited for two seconds, also over a fast database", async () => {
  const { world, table, one, other } = createPair(() => 0);
  const id = await one.create();
  one.tell('"a"');
  await one.poll(id);
  const sinceMs = world.now();
  const moved = await other.poll(id);
  assert.equal(moved.kind, "found");
  assert.equal(table.rows.get(id)?.node, "n2");
  assert.ok(world.now() - sinceMs >= 2_000);
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

test("a record that may have been added is added again, and no answer suffers from it", async () => {
  const { world, table, one, other } = createPair();
  one.link.state = "unanswered";
  const id = await one.create();
  assert.equal(table.rows.get(id)?.node, "n1");
  one.link.state = "open";
  await waitFor(world, 3_500);
  const failures = one.errors.length;
  await waitFor(world, 5_000);
  assert.equal(one.errors.length, failures);
  one.tell('"a"');
  assert.equal(textOf(await one.poll(id)), '["a"]');
  assert.equal(table.rows.get(id)?.isAnswering, true, "its record says that an answer is open");
  assert.equal((await other.read(id)).kind, "found");
});

test("what cannot be the id of a filter never reaches the database", async () => {
  const { table, one } = createPair();
  for (const id of ["", "\u0000", "0x10", `0x${"1".repeat(33)}\u0000`, "x".repeat(100_000)]) {
    assert.equal((await one.poll(id)).kind, "none");
    assert.equal((await one.read(id)).kind, "none");
    assert.equal((await one.uninstall(id)).kind, "none");
  }
  assert.equal(table.counts.size, 0);
  assert.deepEqual(one.errors, []);
});

test("a filter of which only the logs are asked keeps its record", async () => {
  const { world, table, one } = createPair();
  const id = await one.create("logs");
  for (let n = 0; n < 3; n++) {
    world.jump(200_000);
    const read = await one.read(id);
    assert.ok(read.kind === "found");
    assert.equal(read.value.method, "eth_newFilter");
    assert.equal((await pass(world, one.shared.read({ owner: "another", id }))).kind, "none");
    await waitFor(world, 2_500);
  }
  const row = table.rows.get(id) ?? assert.fail("it is there");
  assert.ok(world.now() - row.polledAtMs < 10_000);
});

test("a poll whose time could not be written is written later", async () => {
  const { world, table, one } = createPair();
  const id = await one.create();
  world.jump(200_000);
  one.link.state = "cut";
  assert.equal(textOf(await one.poll(id)), "[]");
  const polledAtMs = world.now();
  await waitFor(world, 4_000);
  one.link.state = "open";
  await waitFor(world, 4_000);
  assert.ok((table.rows.get(id)?.polledAtMs ?? 0) >= polledAtMs - 10);
});

test("a filter that is uninstalled while its record is added leaves none", async () => {
  const delaysMs = [50];
  const { world, table, one } = createPair(() => delaysMs.shift() ?? 2);
  const creating = one.create();
  const [id] = one.open;
  assert.ok(id !== undefined);
  assert.deepEqual(await one.uninstall(id), { kind: "found", value: true });
  await creating;
  await waitFor(world, 100);
  assert.equal(table.rows.has(id), false);
});

test("where the mark of a record cannot be read, its filter does not go on with a gap", async () => {
  const { table, one, other } = createPair();
  const id = await one.create();
  table.change(id, { mark: "of a later version" });
  assert.equal((await other.poll(id)).kind, "none");
  assert.equal(table.rows.get(id)?.node, "n1");
});

test("a caller cannot fill a process with filters that move there", async () => {
  const { table, one, other } = createPair();
  const moved: string[] = [];
  for (let n = 0; n < 41; n++) {
    const id = await one.create();
    assert.notEqual(id, "");
    const answer = await other.poll(id);
    moved.push(answer.kind);
    one.filters.find(id)?.end("handed_over");
  }
  assert.deepEqual(new Set(moved.slice(0, 40)), new Set(["found"]));
  assert.equal(moved[40], "away");
  assert.equal(table.rows.size, 41, "the last one is not lost");
});

test("failures of one second are told once", async () => {
  const { world, table, one, other } = createPair();
  const id = await one.create();
  other.link.state = "cut";
  const sinceMs = world.now();
  for (let n = 0; n < 50; n++) assert.equal((await other.poll(id)).kind, "away");
  assert.ok(world.now() - sinceMs < 1_000);
  assert.equal(other.errors.length, 1);
  assert.equal(table.rows.get(id)?.node, "n1");
});
