// Incidents in the store, on both engines: what a service saw outlives it, what several nodes saw
// of one cause is one incident, and a service that was killed leaves none open.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import {
  type HistoryService,
  historyOver,
  serveHistory,
} from "../../src/app/live/history-service.ts";
import {
  createIncidentReader,
  INCIDENT_VIEW,
  IncidentService,
} from "../../src/app/live/incident-service.ts";
import type { CountedStep } from "../../src/observe/history/history-counts.ts";
import { ServiceHistory } from "../../src/observe/history/service-history.ts";
import { type Incident, joinIncidents } from "../../src/observe/incidents/incident.ts";
import type { IncidentView } from "../../src/observe/incidents/incident-book.ts";
import { removeOld } from "../../src/shared/nodes/retention.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { testBus } from "../cluster/bus-fixture.ts";
import { type SimulatedWorld, simulatedWorld } from "../fakes/runtime.ts";
import { eachStore } from "../fakes/stores.ts";

const STEP_MS = 10_000;
const DAY_MS = 86_400_000;

/** A service with one provider, which is as it is told. */
function service(world: SimulatedWorld, store: Store | null) {
  const views: IncidentView[] = [];
  const database = { isAway: false };
  const incidents = new IncidentService({
    runtime: world,
    log: pino({ level: "silent" }),
    bus: { publish: () => {} },
    store: async () => {
      if (database.isAway || store === null)
        throw Object.assign(new Error("away"), { code: "ECONNREFUSED" });
      return store;
    },
    hear: (view) => void views.push(view),
  });
  const read = createIncidentReader({ incidents: async () => incidents.list() }, store, world);
  return {
    incidents,
    database,
    views,
    async run(steps: number, isDead: boolean): Promise<void> {
      for (let step = 0; step < steps; step++) {
        world.advance(STEP_MS);
        incidents.add(stepOf(world, isDead));
        incidents.evaluate();
      }
      // Ends nothing: what was to be written is written.
      await incidents.close();
    },
    async read(): Promise<readonly Incident[]> {
      // What was read a while ago is not given again.
      world.advance(STEP_MS + 1);
      return (await read()) ?? [];
    },
  };
}

function stepOf({ wallMs }: SimulatedWorld, isDead: boolean): CountedStep {
  const evidence = {
    ...{ provider: { id: "a", alias: "A" }, exclusion: null, hasAnswered: true },
    ...{ isLastProbeGood: !isDead, probeMs: 20, isLimited: false },
  };
  const of = { profile: "team", chain: "test", head: null, stalledMs: 240_000, maxLagBlocks: 5 };
  const failed = {
    ...{ profile: "team", chain: "test", provider: "a", calls: 1, callers: ["x", "y"] },
    labels: [{ label: "HTTP 502", isLimit: false, count: 3 }],
  };
  return {
    atMs: wallMs(),
    rows: [],
    evidence: { chains: [{ ...of, providers: [evidence] }], failures: isDead ? [failed] : [] },
  };
}

eachStore(({ engine, open }) => {
  test(`what a service saw is read after it ended, and goes on as one (${engine})`, async (t) => {
    const store = await open(t);
    const world = simulatedWorld(1);
    const first = service(world, store);
    await first.run(6, true);
    const [seen, ...others] = await first.read();
    assert.deepEqual(
      [seen?.cause, seen?.state, seen?.endedMs, others],
      ["failing", "down", null, []],
    );
    assert.deepEqual([seen?.users, seen?.failedCalls], [2, 6]);
    assert.match(seen?.words ?? "", /HTTP 502, probes are not answered/);
    const next = service(world, store);
    await next.run(6, true);
    await next.run(40, false);
    const after = await next.read();
    assert.equal(after.length, 1, "one incident, begun before the restart");
    assert.equal(after[0]?.id, seen?.id);
    assert.equal(after[0]?.startedMs, seen?.startedMs);
    assert.ok((after[0]?.endedMs ?? 0) > (seen?.startedMs ?? 0));
    assert.deepEqual([after[0]?.users, after[0]?.failedCalls], [2, 12]);
  });

  test(`a service that was killed leaves no incident open (${engine})`, async (t) => {
    const store = await open(t);
    const world = simulatedWorld(2);
    await service(world, store).run(6, true);
    const killedMs = world.wallMs();
    const next = service(world, store);
    assert.equal((await next.read())[0]?.endedMs, null, "it may still be there");
    world.advance(600_000);
    assert.equal((await next.read())[0]?.endedMs, killedMs);
  });

  test(`what cannot be written waits, and 90 days are kept (${engine})`, async (t) => {
    const store = await open(t);
    const world = simulatedWorld(3);
    const here = service(world, store);
    here.database.isAway = true;
    await here.run(6, true);
    await here.run(40, false);
    const elsewhere = service(world, store);
    assert.deepEqual(await elsewhere.read(), []);
    here.database.isAway = false;
    await here.run(1, false);
    const [late] = await elsewhere.read();
    assert.ok(late?.endedMs);
    await store.db
      .updateTable("incident")
      .set({ started_at: BigInt(Date.now() - 91 * DAY_MS) })
      .execute();
    await removeOld(store, "incident");
    assert.deepEqual(await elsewhere.read(), []);
  });
});

test("every worker hears how the providers are, by what all of them counted", async () => {
  const bus = testBus(["1", "2"]);
  const { world } = bus;
  const log = pino({ level: "silent" });
  const incidents = new IncidentService({ runtime: world, log, bus: bus.hub, store: null });
  const history = new ServiceHistory({ wallMs: world.wallMs, writer: null });
  serveHistory(bus.hub, world, history, incidents);
  const views: IncidentView[] = [];
  const [first] = ["1", "2"].map((id) => {
    const worker = bus.worker(id).bus;
    worker.subscribe(INCIDENT_VIEW, (view) => void views.push(view));
    const service: HistoryService = historyOver(worker, `process ${id}`, {
      refresh: () => service.add(stepOf(world, true)),
      takeChanges: () => [],
    });
    return service;
  });
  for (let step = 0; step < 6; step++) {
    world.advance(STEP_MS);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const latest = views.slice(-2).map(({ providers }) => providers.map(({ state }) => state));
  assert.deepEqual(latest, [["down"], ["down"]]);
  const [seen] = (await first?.incidents()) ?? [];
  assert.equal(seen?.users, 2, "callers are the same at each worker");
  assert.ok((seen?.failedCalls ?? 0) >= 6, "calls of both count");
});

test("several nodes that see one cause at a time tell of one incident", () => {
  const incident = (id: string, startedMs: number, endedMs: number | null, users = 1) =>
    ({
      ...{ id, profile: "team", chain: "test", provider: { id: "a", alias: "A" } },
      ...{ cause: "slow" as const, state: "slow" as const, words: id },
      ...{ startedMs, endedMs, goodSinceMs: null },
      ...{ attempts: 10, failed: 2, failedCalls: 1, users },
    }) satisfies Incident;
  const minuteMs = 60_000;
  const joined = joinIncidents([
    incident("b", 2 * minuteMs, 5 * minuteMs, 4),
    incident("a", 1 * minuteMs, 3 * minuteMs),
    incident("d", 60 * minuteMs, null),
    incident("c", 30 * minuteMs, 31 * minuteMs),
    { ...incident("e", 30 * minuteMs, 31 * minuteMs), cause: "lagging" },
  ]);
  const shown = joined
    .filter(({ cause }) => cause === "slow")
    .map(({ id, startedMs, endedMs, attempts, users }) => [
      id,
      startedMs / minuteMs,
      endedMs === null ? null : endedMs / minuteMs,
      attempts,
      users,
    ]);
  assert.deepEqual(shown, [
    ["a", 1, 5, 20, 4],
    ["c", 30, 31, 10, 1],
    ["d", 60, null, 10, 1],
  ]);
  assert.equal(joined.length, 4);
});
