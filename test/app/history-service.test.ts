// History of a service of several workers is gathered in one process: whichever is asked tells of
// all, nothing counts twice though answers are lost, and what a worker counted outlives it.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type HistoryService,
  historyOver,
  serveHistory,
} from "../../src/app/live/history-service.ts";
import { serviceAlone } from "../../src/app/service-parts.ts";
import type { ChangeEvent } from "../../src/observe/feed/feed-event.ts";
import { ServiceHistory } from "../../src/observe/history/service-history.ts";
import { MAX_STEPS } from "../../src/observe/history/step-outbox.ts";
import { testBus } from "../cluster/bus-fixture.ts";
import { type CountingProcess, callsIn, chainQuery, countingProcess } from "../fakes/history.ts";
import { simulatedWorld } from "../fakes/runtime.ts";

const STEP_MS = 10_000;

/** A turn of the event loop, so that what was asked over the bus is answered. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function opened(atMs: number, provider = "p0", worker = "1"): ChangeEvent {
  const at = new Date(atMs).toISOString();
  const about = { at, worker, profile: "team", chain: "test", provider } as const;
  return { type: "circuit", data: { ...about, transport: "http", state: "open", cause: "x" } };
}

/** Workers on a bus that count calls, and the supervisor that gathers them. */
function gathering(ids: readonly string[]) {
  const bus = testBus(ids);
  const { world } = bus;
  serveHistory(bus.hub, world, new ServiceHistory({ wallMs: world.wallMs, writer: "service" }));
  const start = (id: string) => {
    const changes: ChangeEvent[] = [];
    const counting: CountingProcess = countingProcess(world, (step) => service.add(step));
    const service: HistoryService = historyOver(bus.worker(id).bus, `process ${id}`, {
      refresh: () => counting.refresh(),
      takeChanges: () => changes.splice(0),
    });
    return { ...counting, service, changes };
  };
  const workers = new Map(ids.map((id) => [id, start(id)]));
  const at = (id: string) => {
    const worker = workers.get(id);
    assert.ok(worker);
    return worker;
  };
  const calls = async (id: string): Promise<number | null> => {
    const report = await at(id).service.steps(chainQuery("hour", world.wallMs()));
    return report === null ? null : (callsIn(report.series)[""] ?? 0);
  };
  return { ...bus, at, calls };
}

test("whichever worker is asked tells of all, up to this moment", async () => {
  const { at, calls, world } = gathering(["1", "2"]);
  for (let n = 0; n < 3; n++) at("1").call();
  for (let n = 0; n < 4; n++) at("2").call(1);
  assert.deepEqual([await calls("1"), await calls("2")], [7, 7]);
  at("1").call();
  world.advance(STEP_MS);
  await turn();
  at("2").call(1);
  const report = await at("1").service.steps(chainQuery("hour", world.wallMs(), "p1"));
  assert.deepEqual(callsIn(report?.series ?? []), { "": 9, p1: 5, "p1 standard": 5 });
});

test("a worker is told the hours that the database does not have, with their names and rows", async () => {
  const { at, world } = gathering(["1", "2"]);
  at("1").call();
  at("2").call(1);
  const open = await at("2").service.hours(chainQuery("90d", world.wallMs()));
  assert.ok(open !== null && open !== "none");
  const [hour] = open.hours;
  assert.deepEqual([open.hours.length, hour?.writer], [1, "service.0"]);
  assert.equal(hour?.hour, Math.floor(world.wallMs() / 3_600_000));
  const calls = hour?.rows.flatMap(({ provider, class: of, numbers }) =>
    of === null ? [[provider?.id ?? "", numbers[0]]] : [],
  );
  assert.deepEqual(calls?.sort(), [
    ["", 2],
    ["p0", 1],
    ["p1", 1],
  ]);
});

test("what a worker handed over stays when it is killed", async () => {
  const { at, calls, worker, world } = gathering(["1", "2", "3"]);
  for (let n = 0; n < 4; n++) at("2").call();
  at("1").call();
  // Nobody asks: the supervisor gathers by itself.
  world.advance(STEP_MS);
  await turn();
  worker("2").end();
  assert.equal(await calls("1"), 5);
  at("3").call();
  await at("3").service.end();
  worker("3").end();
  assert.equal(await calls("1"), 6, "one that ends in order hands over what it counted last");
});

test("a batch whose answer was lost comes again and counts once", async () => {
  const { at, calls, worker, world } = gathering(["1", "2"]);
  at("2").call();
  worker("2").isMute = true;
  for (let round = 0; round < 3; round++) {
    at("2").call();
    world.advance(STEP_MS);
    await turn();
  }
  worker("2").isMute = false;
  // Longer than the supervisor waits for the answers that were lost.
  world.advance(2 * STEP_MS);
  await turn();
  world.advance(2 * STEP_MS);
  await turn();
  assert.equal(await calls("1"), 4);
  assert.equal(await calls("1"), 4);
});

test("steps that nobody takes are added up, and none is lost", async () => {
  const { at, calls, worker, world } = gathering(["1", "2"]);
  worker("2").isMute = true;
  for (let n = 0; n < 5 * MAX_STEPS; n++) {
    at("2").call(n % 2);
    at("2").refresh();
    world.advance(STEP_MS);
    await turn();
  }
  worker("2").isMute = false;
  for (let n = 0; n < 3; n++) {
    world.advance(STEP_MS);
    await turn();
  }
  assert.equal(await calls("1"), 5 * MAX_STEPS);
});

test("changes are kept for those who come later, and one that all workers tell of once", async () => {
  const { at, worker, world } = gathering(["1", "2"]);
  const atMs = world.wallMs();
  at("1").changes.push(opened(atMs), opened(atMs + 1, "p1"));
  at("2").changes.push(opened(atMs + 400, "p0", "2"));
  world.advance(STEP_MS);
  await turn();
  worker("2").end();
  at("1").changes.push(opened(atMs + 60_000));
  const changes = await at("1").service.changes();
  const names = changes?.map(({ data }) => [Date.parse(data.at) - atMs, "provider" in data]);
  assert.equal(names?.length, 3);
  assert.equal(names?.[0]?.[0], 60_000, "the latest first; what happens again is another change");
  for (let n = 0; n < 400; n++) at("1").changes.push(opened(atMs + n * 20_000, `p${n}`));
  assert.equal((await at("1").service.changes())?.length, 200);
});

test("a process alone answers for itself", async () => {
  const world = simulatedWorld(1);
  const { bus } = serviceAlone(world, (error) => assert.fail(String(error)));
  serveHistory(bus, world, new ServiceHistory({ wallMs: world.wallMs, writer: null }));
  const counting = countingProcess(world, (step) => service.add(step));
  const service: HistoryService = historyOver(bus, "process", {
    refresh: () => counting.refresh(),
    takeChanges: () => [],
  });
  counting.call();
  const report = await service.steps(chainQuery("hour", world.wallMs()));
  assert.equal(callsIn(report?.series ?? [])[""], 1);
  assert.equal(await service.hours(chainQuery("90d", world.wallMs())), "none");
});
