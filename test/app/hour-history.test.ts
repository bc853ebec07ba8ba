// Hours of history for 90 days, on both engines: written at the end of each hour and of a service,
// never twice; summed over the services that wrote them; kept while the database is away; read page
// by page, and removed in time.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import type { HistoryService } from "../../src/app/live/history-service.ts";
import { createHourReader, startHourWriter } from "../../src/app/live/hour-history.ts";
import { writeHistoryHour } from "../../src/hosted/operator/stored-history.ts";
import { type CountedRow, METHOD_CLASSES } from "../../src/observe/history/history-counts.ts";
import { type HistoryQuery, historyColumns } from "../../src/observe/history/history-report.ts";
import {
  ATTEMPT_ROW,
  CALL_ROW,
  hourCounts,
  parseHourCounts,
} from "../../src/observe/history/history-row.ts";
import { HourBook, MAX_HOUR_ROWS } from "../../src/observe/history/hour-book.ts";
import { ServiceHistory } from "../../src/observe/history/service-history.ts";
import { removeOld } from "../../src/shared/nodes/retention.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { callsIn, chainQuery, countingProcess } from "../fakes/history.ts";
import { fakeProvider } from "../fakes/providers.ts";
import { type SimulatedWorld, simulatedWorld } from "../fakes/runtime.ts";
import { until } from "../fakes/service-fixture.ts";
import { eachStore } from "../fakes/stores.ts";

const HOUR_MS = 3_600_000;
const STEP_MS = 10_000;

/** A service that counts and writes its hours; its database may be away. */
function service(world: SimulatedWorld, store: Store, writer: string) {
  const history = new ServiceHistory({ wallMs: world.wallMs, writer });
  const counting = countingProcess(world, (step) => history.add(step));
  const database = { isAway: false, openings: 0 };
  const end = startHourWriter({
    history,
    runtime: world,
    log: pino({ level: "silent" }),
    async store() {
      database.openings++;
      if (database.isAway) throw Object.assign(new Error("away"), { code: "ECONNREFUSED" });
      return store;
    },
  });
  const hours: HistoryService["hours"] = async (query) => {
    counting.refresh();
    return history.openHours(query) ?? "none";
  };
  const read = createHourReader({ hours }, store, world);
  return {
    ...counting,
    history,
    database,
    end,
    /** Waits until the writer has tried once more. */
    async tried(ms: number) {
      const before = database.openings;
      counting.refresh();
      world.advance(ms);
      counting.refresh();
      await until("it was tried to write", () => database.openings > before);
      await until("it was done", () => database.isAway || history.unwritten().length === 0);
    },
    async calls(provider: string | null = null, span: HistoryQuery["span"] = "90d") {
      const pairs = [{ profile: "team", chain: "test" }];
      const report = await read({ ...chainQuery(span, world.wallMs(), provider), pairs });
      assert.ok(typeof report === "object");
      const calls = callsIn(report.series);
      const [pair] = report.pairs;
      const byHour = pair?.calls.reduce<number>((sum, value) => sum + (value ?? 0), 0);
      assert.deepEqual([pair?.sums[0], byHour], [calls[""], calls[""]], "told alike in sums");
      return calls;
    },
  };
}

/** A world at the beginning of an hour. */
function worldAt(t: TestContext, seed: number): SimulatedWorld {
  t.diagnostic(`seed ${seed}`);
  const world = simulatedWorld(seed);
  world.jump(HOUR_MS - (world.wallMs() % HOUR_MS));
  return world;
}

eachStore(({ engine, open }) => {
  test(`hours add up over restarts and nodes, and nothing counts twice (${engine})`, async (t) => {
    const store = await open(t);
    const world = worldAt(t, 1);
    const first = service(world, store, "first");
    const node = service(world, store, "node 2");
    for (let n = 0; n < 5; n++) first.call(n % 2);
    node.call();
    assert.deepEqual(await first.calls(), { "": 5, p0: 3, p1: 2 }, "the present hour is told");
    // Written within the hour, again at its end, and read beside what is in memory.
    await first.tried(700_000);
    first.call();
    await first.tried(HOUR_MS);
    await node.tried(1_000_000);
    first.call(1);
    world.advance(STEP_MS * 2);
    assert.deepEqual(await first.calls(), { "": 8, p0: 5, p1: 3 });
    await first.end();
    await first.end();
    const again = service(world, store, "again");
    again.call(1);
    assert.deepEqual(await again.calls(), { "": 9, p0: 5, p1: 4 });
    const p1 = await again.calls("p1");
    assert.deepEqual(p1, { "": 9, p1: 4, "p1 standard": 4 });
    await again.end();
    await node.end();
    const rows = await store.db.selectFrom("history_hour").select("hour").distinct().execute();
    assert.equal(rows.length, 2);
  });

  test(`hours wait while the database is away, and are written later (${engine})`, async (t) => {
    const store = await open(t);
    const world = worldAt(t, 2);
    const one = service(world, store, "one");
    one.database.isAway = true;
    for (let hour = 0; hour < 5; hour++) {
      one.call();
      await one.tried(HOUR_MS);
    }
    assert.deepEqual(one.history.use().hours, { late: 5, lost: 0, complete: true });
    assert.deepEqual(await one.calls(), { "": 5, p0: 5 });
    one.database.isAway = false;
    await one.tried(120_000);
    assert.deepEqual(one.history.use().hours, { late: 0, lost: 0, complete: true });
    const other = service(world, store, "other");
    assert.deepEqual(await other.calls(), { "": 5, p0: 5 });
    const report = await createHourReader(
      { hours: async () => ({ hours: [], use: one.history.use() }) },
      store,
      world,
    )({ ...chainQuery("90d", world.wallMs()), chain: null });
    assert.ok(typeof report === "object");
    assert.deepEqual(callsIn(report.series), { "": 5 }, "the whole service has rows of its own");
    const [whole] = historyColumns(report.series);
    assert.equal(whole?.calls.at(0), null, "nothing is known of 90 days ago, not even 0");
    assert.ok((whole?.p50_ms.find((ms) => ms !== null) ?? 0) > 20);
    await one.end();
    await other.end();
  });

  test(`a clock that is set back by minutes counts nothing twice (${engine})`, async (t) => {
    const store = await open(t);
    const world = worldAt(t, 5);
    let minutes = 0;
    const wallMs = (): number => world.wallMs() + minutes * 60_000;
    const history = new ServiceHistory({ wallMs, writer: "w" });
    const counting = countingProcess({ wallMs }, (step) => history.add(step));
    const log = pino({ level: "silent" });
    const write = startHourWriter({
      history,
      runtime: { after: world.after, wallMs },
      log,
      store: async () => store,
    });
    // Set back after the first hour was let go of, and with a part of the second one written.
    for (const at of [10, 65, 50, 70]) {
      minutes = at;
      counting.refresh();
      counting.call();
      counting.refresh();
      await write();
    }
    const hours = async (query: HistoryQuery) => history.openHours(query) ?? ("none" as const);
    const other = new ServiceHistory({ wallMs, writer: "other" });
    const otherHours = async (query: HistoryQuery) => other.openHours(query) ?? ("none" as const);
    for (const service of [{ hours }, { hours: otherHours }]) {
      const report = await createHourReader(service, store, world)(chainQuery("90d", wallMs()));
      assert.ok(typeof report === "object");
      assert.deepEqual(callsIn(report.series), { "": 4, p0: 4 });
    }
  });

  test(`pages, and what is older than 90 days is removed (${engine})`, async (t) => {
    const store = await open(t);
    const now = Math.floor(Date.now() / HOUR_MS);
    const counts = hourCounts(CALL_ROW, [1]);
    const row = { profile: "team", chain: "test", provider: "", class: "", alias: "", counts };
    const rows = Array.from({ length: 30 }, (_, n) => ({ ...row, provider: `p${n}`, alias: "a" }));
    for (let hour = now - 50; hour < now; hour++)
      await writeHistoryHour(store, { hour, writer: "w" }, [row, ...rows]);
    const old = [now - 90 * 24 - 2, now - 90 * 24 - 1, now + 30];
    for (const hour of old) await writeHistoryHour(store, { hour, writer: "w" }, [row]);
    await writeHistoryHour(store, { hour: now - 90 * 24 + 10, writer: "w" }, [row]);
    const history = new ServiceHistory({ wallMs: Date.now, writer: "x" });
    const hours = async (query: HistoryQuery) => history.openHours(query) ?? ("none" as const);
    const read = createHourReader({ hours }, store, simulatedWorld(3));
    const report = await read(chainQuery("90d", now * HOUR_MS));
    assert.ok(typeof report === "object");
    const calls = callsIn(report.series);
    assert.equal(calls[""], 51);
    assert.equal(Object.keys(calls).length, 31);
    assert.ok(Object.values(calls).every((each) => each >= 50));
    assert.equal(await removeOld(store, "history_hour"), false);
    const { rows: left } = await store.db
      .selectFrom("history_hour")
      .select(({ fn }) => fn.countAll<bigint>().as("rows"))
      .executeTakeFirstOrThrow();
    assert.equal(left, 50n * 31n + 1n);
  });

  test(`a silent database is told of, and readers wait in turn (${engine})`, async (t) => {
    const store = await open(t);
    const world = worldAt(t, 4);
    const history = new ServiceHistory({ wallMs: world.wallMs, writer: "w" });
    const hours = async (query: HistoryQuery) => history.openHours(query) ?? ("none" as const);
    assert.equal(await createHourReader({ hours }, null, world)(chainQuery("90d", 0)), "no_store");
    const read = createHourReader({ hours }, store, world);
    const all = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        read({ ...chainQuery("90d", world.wallMs()), provider: `p${n}` }),
      ),
    );
    assert.equal(all.filter((answer) => answer === "busy").length, 4);
    const failing = {
      ...store,
      get db(): Store["db"] {
        throw Object.assign(new Error("away"), { code: "ECONNREFUSED" });
      },
    };
    const unread = createHourReader({ hours }, failing, world);
    assert.equal(await unread(chainQuery("90d", world.wallMs())), "store_silent");
  });
});

test("a row is the same after it was kept, and rows of other versions fit", () => {
  for (const layout of [CALL_ROW, ATTEMPT_ROW]) {
    const numbers = Array.from({ length: layout.width }, (_, n) => (n % 3 === 0 ? 0 : n));
    if (layout.stateAt !== null) numbers[layout.stateAt + 1] = 3;
    assert.deepEqual(parseHourCounts(layout, hourCounts(layout, numbers)), numbers);
  }
  const other = '{"calls":9,"latency.25":4,"latency.90000":1,"error.unheard_of":2,"circuit.new":1}';
  const parsed = parseHourCounts(ATTEMPT_ROW, other) ?? [];
  const [p50] = historyColumns([
    {
      kind: "provider",
      profile: "",
      chain: "",
      provider: "",
      alias: "",
      class: null,
      rows: [parsed],
    },
  ]).map(({ p50_ms }) => p50_ms[0] ?? 0);
  assert.ok(p50 !== undefined && p50 > 20 && p50 <= 30);
  assert.equal(
    parsed.reduce((sum, value) => sum + value, 0),
    14,
  );
  // An earlier version told neither refusals from failures, nor these from reverts.
  const earlier = '{"calls":9,"error.fault":2,"error.provider_error":3,"error.cancelled":1}';
  const rows = [parseHourCounts(CALL_ROW, earlier) ?? []];
  const subject = { profile: null, chain: null, provider: null, alias: null, class: null };
  const [read] = historyColumns([{ kind: "service", ...subject, rows }]);
  const { answered, caller_error, failed, refused, cancelled } = read?.outcomes ?? {};
  assert.deepEqual([answered, caller_error, failed, refused, cancelled].flat(), [3, 3, 2, 0, 1]);
  assert.deepEqual(Object.keys(read?.reasons ?? {}), ["caller_error.other", "failed.other"]);
  for (const bad of ["", "[]", "1", '{"calls":-1}', '{"calls":"1"}', "{"])
    assert.equal(parseHourCounts(CALL_ROW, bad), null);
});

test("hours are bounded in rows and in number; classes go first, and what is lost is told", () => {
  const atMs = 1_000 * HOUR_MS;
  const step = (hour: number, providers: number) => ({
    atMs: atMs + hour * HOUR_MS,
    rows: Array.from({ length: providers }, (_, n): readonly CountedRow[] => {
      const { id, alias } = fakeProvider(n);
      const numbers = Array.from({ length: ATTEMPT_ROW.width }, () => 1);
      const row = { profile: "team", chain: "test", provider: { id, alias }, numbers };
      return [
        { ...row, class: null },
        { ...row, class: METHOD_CLASSES[0] ?? null },
      ];
    }).flat(),
  });
  const book = new HourBook();
  const add = (hour: number, providers: number, now = hour): void =>
    book.add(step(hour, providers), atMs + now * HOUR_MS);
  add(0, 4_000);
  const rows = book.rowsOf(1_000) ?? [];
  assert.ok(rows.length <= MAX_HOUR_ROWS);
  const ofClasses = rows.filter((row) => row.class !== null).length;
  assert.ok(ofClasses <= MAX_HOUR_ROWS / 2 && ofClasses > 0, `${ofClasses} rows of classes`);
  assert.equal(book.use(atMs).complete, false);
  for (let hour = 1; hour < 400; hour++) add(hour, 10);
  const { late, lost } = book.use(atMs + 400 * HOUR_MS);
  assert.deepEqual([late, lost], [168, 232]);
  // What comes for an hour that was dropped counts in the oldest one that is here.
  add(0, 1, 400);
  assert.equal(book.hours.length, 168);
  const [oldest] = book.unwritten();
  assert.equal(oldest?.rows[0]?.numbers[0], 2);
});

test("an hour that was closed begins anew when the clock is set back to it, others go on", () => {
  const book = new HourBook();
  const add = (hour: number): void => book.add({ atMs: hour * HOUR_MS, rows: [] }, hour * HOUR_MS);
  add(0);
  add(1);
  for (const hour of book.unwritten()) book.written(hour, 1.5 * HOUR_MS);
  assert.deepEqual(book.hours, [{ hour: 1, generation: 0 }]);
  add(0);
  assert.deepEqual(book.hours, [
    { hour: 1, generation: 0 },
    { hour: 0, generation: 1 },
  ]);
});
