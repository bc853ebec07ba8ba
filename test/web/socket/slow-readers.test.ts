// Memory of sockets whose clients do not read: bounded for all of them together, and the one that
// has been behind for the longest goes first.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import { type SlowReader, SlowReaders } from "../../../src/web/socket/slow-readers.ts";
import { until } from "../../fakes/service-fixture.ts";
import { bare, call, createFixture, frame, open } from "./socket-fixture.ts";

const LIMITS = { maxInFlightBytes: 1_000, maxCallerBytes: 1_000 };

function createBook() {
  const budget = new MemoryBudget(() => LIMITS);
  const slowReaders = new SlowReaders(budget, () => LIMITS);
  const events: string[] = [];
  const reader = (name: string): SlowReader => {
    const own: SlowReader = {
      tellTooSlow() {
        events.push(`${name} told`);
        slowReaders.closing(own);
      },
      cutOff() {
        events.push(`${name} cut`);
        slowReaders.count(own, 0);
      },
    };
    return own;
  };
  return { budget, slowReaders, events, reader };
}

test("beyond a quarter of the budget the one that is behind for the longest is told", () => {
  const { slowReaders, events, reader, budget } = createBook();
  const [first, second, third] = [reader("first"), reader("second"), reader("third")];
  slowReaders.count(first, 80);
  slowReaders.count(second, 80);
  slowReaders.count(third, 80);
  slowReaders.count(first, 0);
  slowReaders.count(first, 90);
  assert.deepEqual(events, [], "one that caught up is the newest again");
  slowReaders.count(third, 120);
  assert.deepEqual(events, ["second told"]);
  slowReaders.count(first, 120);
  assert.deepEqual(events, ["second told"], "one that was told does not count any more");
  assert.equal(budget.used, 320);
});

test("beyond half of the budget the longest behind are cut off, and what they held is free", () => {
  const { slowReaders, events, reader, budget } = createBook();
  for (let n = 0; n < 9; n++) slowReaders.count(reader(`${n}`), 100);
  assert.deepEqual(
    events.filter((event) => event.endsWith("cut")),
    ["0 cut", "1 cut", "2 cut", "3 cut"],
  );
  assert.equal(budget.used, 500);
});

test("where calls use up the budget, what waits for slow readers is given up for them", () => {
  const { slowReaders, events, reader, budget } = createBook();
  const [first, second] = [reader("first"), reader("second")];
  budget.used = 850;
  slowReaders.count(first, 100);
  slowReaders.count(second, 70);
  assert.deepEqual(events, ["first told"]);
  slowReaders.count(second, 80);
  assert.deepEqual(events, ["first told", "first cut"]);
  assert.equal(budget.used, 930);
});

test("any number of subscribers that never read hold half of the budget, and others get all", async (t) => {
  const most = 8_000_000;
  const it = await createFixture(t, {
    max_in_flight_bytes: most,
    max_caller_bytes: most,
    max_socket_queue_bytes: 2_000_000,
  });
  const fast = await open(t, it.port);
  fast.send(call(1, "eth_subscribe", ["newHeads"]));
  for (let n = 0; n < 12; n++) {
    const slow = await bare(t, it.port);
    slow.pause();
    slow.write(frame(1, JSON.stringify(call(1, "eth_subscribe", ["newHeads"]))));
  }
  await until("all", () => it.asked.length === 13);
  for (const { subscriber } of it.asked) subscriber.started(null);
  await fast.next();
  let [held, sent] = [0, 0];
  for (; it.asked.filter(({ left }) => left).length < 12 && sent < 400; sent++) {
    const head = [Buffer.from(`"${String(sent).padStart(100_000, "x")}"`)];
    for (const { subscriber } of it.asked) subscriber.events(head);
    held = Math.max(held, it.budget.used);
    assert.equal((await fast.next()).params.result.length, 100_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(held > most / 8, `they held ${held} bytes`);
  assert.ok(held <= most / 2, `they held ${held} bytes`);
  await until("the closes", () => (it.observer.sockets.closes.get("1013") ?? 0) > 0);
  assert.equal(it.observer.sockets.closes.get("1011"), undefined);
  assert.deepEqual([...it.observer.sockets.closes.keys()], ["1013"]);
});
