// Cordons, ended waits and reloads at several workers of one service over a store that they share.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { openOperatorProviders } from "../../src/app/operators/operator-providers.ts";
import { createServiceReload, type ServiceReload } from "../../src/app/operators/reload-service.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { OperatorRecords } from "../../src/hosted/operator/stored-records.ts";
import { requestReload } from "../../src/shared/changes/asked-reloads.ts";
import { recordChange } from "../../src/shared/changes/change-log.ts";
import { IN_MEMORY } from "../../src/shared/store/sqlite.ts";
import { openStore, type Store } from "../../src/shared/store/store.ts";
import { CordonTable, ProfileRegistry } from "../../src/upstream/registry/profile-registry.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import type { RecordAction } from "../../src/web/api/parts.ts";
import { type TestBus, testBus } from "../cluster/bus-fixture.ts";
import { openWorkerChanges } from "../fakes/operator-changes.ts";
import { SELECTION, verdict } from "../fakes/providers.ts";
import { quiet } from "../fakes/quiet.ts";
import { configOf, configText } from "../fakes/service.ts";

const REF = { profile: "team", chain: "ethereum", provider: "a" };
const CORDON = { ...REF, reason: null, actor: "operator token", atMs: 1, untilMs: null };

async function openWorker(
  t: TestContext,
  { world, worker }: TestBus,
  { store, id, once = async () => null, records = new OperatorRecords(store) }: WorkerParts,
) {
  const actions: Parameters<RecordAction>[0][] = [];
  const { chains, profiles } = configOf(configText([{ id: "a", url: "http://127.0.0.1:9" }]));
  const cordons = new CordonTable();
  const registry = new ProfileRegistry(chains, profiles, world, { ...SELECTION, cordons });
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const ofWorker = { store, runtime: world, bus: worker(id).bus, node: "n1", onError };
  const { changes, operatorChanges } = await openWorkerChanges(ofWorker);
  const send = () => ({ sent: false, cancel: () => {} });
  const operator = await openOperatorProviders({
    runtime: world,
    timerWheel: new TimerWheel(world),
    upstreams: { http: { send }, ws: { send } },
    registry,
    cordons,
    records,
    subscriptions: { rebind: () => {} },
    onError,
    changes: operatorChanges,
    recordAction: async (action) => void actions.push(action),
    reload: once,
  });
  operatorChanges.follow(async (change) => change.kind !== "purge" && operator.followed(change));
  changes.begin();
  t.after(() => changes.close());
  const tracker = registry.profile("team")?.trackers.get("ethereum");
  const provider = tracker?.set.providers[0];
  assert.ok(tracker !== undefined && provider !== undefined);
  return { operator, cordons, registry, tracker, provider, errors, profiles, actions };
}

interface WorkerParts {
  readonly store: Store;
  readonly id: string;
  /** Reloads as another node was asked for it. */
  readonly once?: ServiceReload;
  readonly records?: OperatorRecords;
}

async function storeOf(t: TestContext): Promise<Store> {
  const store = await openStore({ url: "", dataDir: IN_MEMORY });
  t.after(() => store.close());
  return store;
}

/** Writes what another node did, and has the workers read it. */
async function heard({ world }: TestBus, store: Store, ...refs: readonly string[]): Promise<void> {
  const changes = refs.map((ref) => ({ topic: "operator", ref }) as const);
  await store.transaction((tx) => recordChange(tx, ...changes));
  world.advance(1_000);
  await quiet();
}

const atNode2 = (change: object): string => JSON.stringify({ from: "n2", ...change });

test("a reading of the cordons that began before a new one does not take it back", async (t) => {
  const bus = testBus(["1"]);
  const store = await storeOf(t);
  const slow = Promise.withResolvers<void>();
  let readings = 0;
  class SlowRecords extends OperatorRecords {
    override async cordons() {
      const found = await super.cordons();
      if (++readings === 2) await slow.promise;
      return found;
    }
  }
  const records = new SlowRecords(store);
  const one = await openWorker(t, bus, { store, id: "1", records });
  await heard(bus, store, atNode2({ kind: "cordons" }));
  assert.equal(await one.operator.cordon(CORDON), "done");
  slow.resolve();
  await quiet();
  assert.notEqual(one.tracker.cordonOf(one.provider), null);
});

test("a cordon holds at every worker at once, at one that starts later, and after a reload", async (t) => {
  const bus = testBus(["1", "2", "3"]);
  const store = await storeOf(t);
  const one = await openWorker(t, bus, { store, id: "1" });
  const two = await openWorker(t, bus, { store, id: "2" });
  assert.equal(await one.operator.cordon({ ...CORDON, provider: "nobody" }), "unknown");
  assert.equal(await one.operator.cordon(CORDON), "done");
  for (const { tracker, provider } of [one, two])
    assert.deepEqual(tracker.cordonOf(provider), { reason: null, atMs: 1, untilMs: null });
  const three = await openWorker(t, bus, { store, id: "3" });
  assert.notEqual(three.tracker.cordonOf(three.provider), null);
  two.registry.replace(two.registry.chains, two.profiles);
  const after = two.registry.profile("team")?.trackers.get("ethereum");
  assert.notEqual(after?.cordonOf(two.provider), null);
  await two.operator.uncordon(REF);
  for (const { tracker, provider } of [one, three]) assert.equal(tracker.cordonOf(provider), null);
});

test("a cordon everywhere holds where a reload adds the provider, until it ends anywhere", async (t) => {
  const bus = testBus(["1", "2"]);
  const store = await storeOf(t);
  const one = await openWorker(t, bus, { store, id: "1" });
  const two = await openWorker(t, bus, { store, id: "2" });
  assert.deepEqual(one.operator.placesOf("nobody"), []);
  const cordons = one.operator.placesOf("a").map((place) => ({ ...CORDON, ...place }));
  assert.equal(await one.operator.cordon(...cordons), "done");
  const [team] = two.profiles;
  assert.ok(team !== undefined);
  const cordonIn = (slug: string) => {
    two.registry.replace(two.registry.chains, [team, { ...team, slug }]);
    const tracker = two.registry.profile(slug)?.trackers.get("ethereum");
    assert.ok(tracker !== undefined);
    return tracker.cordonOf(two.provider);
  };
  assert.notEqual(cordonIn("second"), null);
  const users = { ...two.provider, guarded: true };
  assert.equal(two.cordons.of("account/slug ethereum", users), null);
  await one.operator.uncordon(REF);
  for (const slug of ["team", "third"]) assert.equal(cordonIn(slug), null);
});

test("a cordon ends by itself at every worker, and holds at a restart until then", async (t) => {
  const bus = testBus(["1", "2", "3", "4"]);
  const store = await storeOf(t);
  const { world } = bus;
  const one = await openWorker(t, bus, { store, id: "1" });
  const two = await openWorker(t, bus, { store, id: "2" });
  const untilMs = world.wallMs() + 3_600_000;
  assert.equal(await one.operator.cordon({ ...CORDON, untilMs }), "done");
  world.advance(3_599_999);
  const three = await openWorker(t, bus, { store, id: "3" });
  for (const { tracker, provider } of [one, two, three])
    assert.equal(tracker.cordonOf(provider)?.untilMs, untilMs);
  world.advance(1);
  for (const { tracker, provider } of [one, two, three])
    assert.equal(tracker.cordonOf(provider), null);
  assert.deepEqual(await two.operator.cordons(), []);
  const four = await openWorker(t, bus, { store, id: "4" });
  assert.equal(four.tracker.cordonOf(four.provider), null);
});

test("a worker that cannot be reached reads a cordon a second later", async (t) => {
  const bus = testBus(["1", "2"]);
  const store = await storeOf(t);
  const one = await openWorker(t, bus, { store, id: "1" });
  const two = await openWorker(t, bus, { store, id: "2" });
  bus.worker("1").isMute = true;
  const cordoned = one.operator.cordon(CORDON);
  await quiet();
  assert.equal(two.tracker.cordonOf(two.provider), null);
  bus.world.advance(1_000);
  await quiet();
  assert.equal(await cordoned, "done");
  assert.notEqual(two.tracker.cordonOf(two.provider), null);
});

test("waits end at every worker", async (t) => {
  const bus = testBus(["1", "2"]);
  const store = await storeOf(t);
  const workers = [
    await openWorker(t, bus, { store, id: "1" }),
    await openWorker(t, bus, { store, id: "2" }),
  ];
  for (const worker of workers) fail(worker);
  const ended = workers[0]?.operator.endWaits(REF);
  assert.deepEqual(ended, [{ transport: "http", was: "open", now: "half_open" }]);
  await quiet();
  for (const { tracker, provider } of workers)
    assert.equal(tracker.health(provider, "http").breaker, "half_open");
  assert.equal(workers[0]?.operator.endWaits({ ...REF, chain: "nowhere" }), null);
});

test("what an operator does at another node is followed, and nothing that is not one", async (t) => {
  const bus = testBus(["1", "2"]);
  const store = await storeOf(t);
  const one = await openWorker(t, bus, { store, id: "1" });
  const two = await openWorker(t, bus, { store, id: "2" });
  for (const worker of [one, two]) fail(worker);
  await heard(bus, store, atNode2({ kind: "waits_ended", provider: REF }));
  for (const { tracker, provider } of [one, two])
    assert.equal(tracker.health(provider, "http").breaker, "half_open");
  await new OperatorRecords(store).cordon(CORDON);
  const unknown = [{}, { kind: "later" }, { kind: "waits_ended" }].map(atNode2);
  await heard(bus, store, "", "null", "[]", "{", '{"from":7}', ...unknown);
  for (const { tracker, provider } of [one, two]) assert.notEqual(tracker.cordonOf(provider), null);
  assert.deepEqual([one.errors, two.errors], [[], []]);
});

test("a reload asked for at another node is followed once a node, also if no worker heard of it", async (t) => {
  const bus = testBus(["1", "2"]);
  const { world } = bus;
  const store = await storeOf(t);
  let reloads = 0;
  const reload = async () => {
    reloads++;
    return { problem: reloads === 1 ? "no file" : null, revision: "0123456789ab" };
  };
  const startedAtMs = world.now() - 3_600_000;
  const once = createServiceReload(world, startedAtMs, reload);
  const one = await openWorker(t, bus, { store, id: "1", once });
  const two = await openWorker(t, bus, { store, id: "2", once });
  const lines = () => [...one.actions.splice(0), ...two.actions.splice(0)];
  const ask = (ref: string): Promise<void> => {
    const by = { node: "n2", actor: "operator token", address: "192.0.2.1" };
    return requestReload(store, by, { ref, wallMs: world.wallMs() });
  };
  await ask(atNode2({ kind: "reload" }));
  await heard(bus, store);
  const line = { actor: "operator token", address: "192.0.2.1", target: null };
  const action = "reloadConfiguration";
  assert.deepEqual(lines(), [
    {
      ...line,
      action,
      detail: "asked at n2; revision 0123456789ab: no file",
      outcome: "refused",
    },
  ]);
  await heard(bus, store, atNode2({ kind: "reload" }));
  assert.deepEqual([lines(), reloads], [[], 1], "the same is not asked for again");
  await ask("");
  await heard(bus, store, ...Array.from({ length: 10_000 }, () => ""));
  assert.deepEqual(lines(), [
    { ...line, action, detail: "asked at n2; revision 0123456789ab", outcome: "done" },
  ]);
  assert.deepEqual([one.errors, two.errors], [[], []]);
});

/** Opens the breaker of the provider. */
function fail({ tracker, provider }: Awaited<ReturnType<typeof openWorker>>): void {
  const failed = verdict({ kind: "failure", cause: "timeout" });
  const attempt = {
    provider,
    transport: "http",
    latencyMs: 1,
    verdict: failed,
    code: null,
  } as const;
  for (let i = 0; i < 2; i++) tracker.record(methodOf("eth_getBalance"), attempt);
}
