// Cordons and ended waits at several workers of one service, over records that they share.
import assert from "node:assert/strict";
import { test } from "node:test";
import { OperatorInbox } from "../../src/app/operators/operator-changes.ts";
import { openOperatorProviders } from "../../src/app/operators/operator-providers.ts";
import { createReloadAsked, type ReloadAsked } from "../../src/app/operators/reload-service.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import type { Bus } from "../../src/core/workers/bus.ts";
import type {
  OperatorCordon,
  OperatorRecords,
  ProviderRef,
} from "../../src/hosted/operator/stored-records.ts";
import type { AskedReload } from "../../src/shared/changes/asked-reloads.ts";
import { CordonTable, ProfileRegistry } from "../../src/upstream/registry/profile-registry.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import type { RecordAction } from "../../src/web/api/parts.ts";
import { testBus } from "../cluster/bus-fixture.ts";
import { SELECTION, verdict } from "../fakes/providers.ts";
import type { SimulatedWorld } from "../fakes/runtime.ts";
import { configOf, configText } from "../fakes/service.ts";

const REF = { profile: "team", chain: "ethereum", provider: "a" };
const CORDON = { ...REF, reason: null, actor: "operator token", atMs: 1 };

/** The reload that another node was asked for, as all workers of the service find it. */
interface Asked {
  reload: AskedReload | null;
  readonly once: ReloadAsked;
}

async function openWorker(
  runtime: SimulatedWorld,
  bus: Bus,
  records: OperatorRecords,
  asked: Asked = { reload: null, once: async () => null },
) {
  const inbox = new OperatorInbox();
  const actions: Parameters<RecordAction>[0][] = [];
  const { chains, profiles } = configOf(configText([{ id: "a", url: "http://127.0.0.1:9" }]));
  const cordons = new CordonTable();
  const settings = { ...SELECTION, cordons };
  const registry = new ProfileRegistry(chains, profiles, runtime, settings);
  const errors: unknown[] = [];
  const send = () => ({ sent: false, cancel: () => {} });
  const operator = await openOperatorProviders({
    runtime,
    timerWheel: new TimerWheel(runtime),
    upstreams: { http: { send }, ws: { send } },
    registry,
    cordons,
    records,
    subscriptions: { rebind: () => {} },
    bus,
    isShared: false,
    onError: (error) => void errors.push(error),
    changes: { ...inbox.changes(null), reloadOfOthers: async () => asked.reload },
    recordAction: async (action) => void actions.push(action),
    reload: async () => ({ problem: null, revision: null }),
    reloadAsked: asked.once,
  });
  const tracker = registry.profile("team")?.trackers.get("ethereum");
  const provider = tracker?.set.providers[0];
  assert.ok(tracker !== undefined && provider !== undefined);
  const heard = async (change: object): Promise<void> => {
    inbox.heard(JSON.stringify({ node: "n2", ...change }));
    await settled();
  };
  const followed = { inbox, heard, actions };
  return { operator, registry, tracker, provider, errors, profiles, ...followed };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a reading of the cordons that began before a new one does not take it back", async () => {
  const { world, worker } = testBus(["1"]);
  const kept = cordonRecords();
  const slow = Promise.withResolvers<void>();
  let readings = 0;
  const records: OperatorRecords = {
    ...kept,
    async cordons() {
      const found = await kept.cordons();
      if (++readings === 2) await slow.promise;
      return found;
    },
  };
  const one = await openWorker(world, worker("1").bus, records);
  await one.heard({ kind: "cordons" });
  assert.equal(await one.operator.cordon(CORDON), "done");
  slow.resolve();
  await settled();
  assert.notEqual(one.tracker.cordonOf(one.provider), null);
  one.operator.close();
});

test("a cordon holds at every worker at once, at one that starts later, and after a reload", async () => {
  const { world, worker } = testBus(["1", "2", "3"]);
  const records = cordonRecords();
  const one = await openWorker(world, worker("1").bus, records);
  const two = await openWorker(world, worker("2").bus, records);
  assert.equal(await one.operator.cordon({ ...CORDON, provider: "nobody" }), "unknown");
  assert.equal(await one.operator.cordon(CORDON), "done");
  world.advance(10);
  await settled();
  for (const { tracker, provider } of [one, two])
    assert.deepEqual(tracker.cordonOf(provider), { reason: null, atMs: 1 });
  const three = await openWorker(world, worker("3").bus, records);
  assert.notEqual(three.tracker.cordonOf(three.provider), null);
  two.registry.replace(two.profiles);
  const after = two.registry.profile("team")?.trackers.get("ethereum");
  assert.notEqual(after?.cordonOf(two.provider), null);
  await two.operator.uncordon(REF);
  world.advance(10);
  await settled();
  for (const { tracker, provider } of [one, three]) assert.equal(tracker.cordonOf(provider), null);
});

test("a lost hint is made up for by the next reading", async () => {
  const { world, worker } = testBus(["1", "2"]);
  const records = cordonRecords();
  const one = await openWorker(world, worker("1").bus, records);
  const two = await openWorker(world, worker("2").bus, records);
  worker("1").isMute = true;
  await one.operator.cordon(CORDON);
  assert.equal(two.tracker.cordonOf(two.provider), null);
  world.advance(2_000);
  await settled();
  assert.notEqual(two.tracker.cordonOf(two.provider), null);
  two.operator.close();
});

test("waits end at every worker", async () => {
  const { world, worker } = testBus(["1", "2"]);
  const records = cordonRecords();
  const workers = [
    await openWorker(world, worker("1").bus, records),
    await openWorker(world, worker("2").bus, records),
  ];
  const failure = verdict({ kind: "failure", cause: "timeout" });
  for (const { tracker, provider } of workers)
    for (let i = 0; i < 2; i++)
      tracker.record(methodOf("eth_getBalance"), {
        provider,
        transport: "http",
        latencyMs: 1,
        verdict: failure,
        code: null,
      });
  const ended = workers[0]?.operator.endWaits(REF);
  assert.deepEqual(ended, [{ transport: "http", was: "open", now: "half_open" }]);
  world.advance(10);
  await settled();
  for (const { tracker, provider } of workers)
    assert.equal(tracker.health(provider, "http").breaker, "half_open");
  assert.equal(workers[0]?.operator.endWaits({ ...REF, chain: "nowhere" }), null);
});

test("what an operator does at another node is followed, and nothing that is not one", async () => {
  const { world, worker } = testBus(["1", "2"]);
  const records = cordonRecords();
  const one = await openWorker(world, worker("1").bus, records);
  const two = await openWorker(world, worker("2").bus, records);
  const failure = verdict({ kind: "failure", cause: "timeout" });
  const failed = { transport: "http", latencyMs: 1, verdict: failure, code: null } as const;
  for (const { tracker, provider } of [one, two])
    for (let i = 0; i < 2; i++) tracker.record(methodOf("eth_getBalance"), { provider, ...failed });
  await records.cordon(CORDON);
  for (const { heard, tracker, provider } of [one, two]) {
    await heard({ kind: "waits_ended", provider: REF });
    assert.equal(tracker.health(provider, "http").breaker, "half_open");
    await heard({ kind: "cordons" });
    assert.notEqual(tracker.cordonOf(provider), null);
    for (const change of [{}, { kind: "later" }, { kind: "waits_ended" }]) await heard(change);
  }
  for (const ref of ["", "null", "[]", "{", '{"node":7}']) one.inbox.heard(ref);
  await records.uncordon(REF);
  one.inbox.missed();
  await settled();
  assert.equal(one.tracker.cordonOf(one.provider), null);
  assert.deepEqual([one.errors, two.errors], [[], []]);
});

test("a reload asked for at another node is followed once a node, also if no worker heard of it", async () => {
  const { world, worker } = testBus(["1", "2"]);
  const records = cordonRecords();
  let reloads = 0;
  const reload = async () => {
    reloads++;
    return { problem: reloads === 1 ? "no file" : null, revision: "0123456789ab" };
  };
  const asked: Asked = { reload: null, once: createReloadAsked(world, world.now(), reload) };
  const one = await openWorker(world, worker("1").bus, records, asked);
  const two = await openWorker(world, worker("2").bus, records, asked);
  world.advance(10);
  const ask = (id: string): void => {
    asked.reload = { id, ageMs: 1, node: "n2", actor: "operator token", address: "192.0.2.1" };
  };
  const lines = () => [...one.actions.splice(0), ...two.actions.splice(0)];
  ask("rld_1");
  await two.heard({ kind: "reload" });
  await one.heard({ kind: "reload" });
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
  world.advance(20_000);
  await settled();
  assert.deepEqual(lines(), [], "the same is not asked for again");
  ask("rld_2");
  world.advance(2_000);
  await settled();
  assert.deepEqual(lines(), [
    { ...line, action, detail: "asked at n2; revision 0123456789ab", outcome: "done" },
  ]);
  ask("rld_3");
  one.inbox.missed();
  await settled();
  assert.deepEqual([lines().length, reloads], [1, 3]);
  assert.deepEqual([one.errors, two.errors], [[], []]);
  for (const { operator } of [one, two]) operator.close();
});

/** Cordons in memory; nothing else is kept. */
function cordonRecords(): OperatorRecords {
  const kept = new Map<string, OperatorCordon>();
  const keyOf = ({ profile, chain, provider }: ProviderRef) => `${profile} ${chain} ${provider}`;
  const unused = () => assert.fail("only cordons are kept here");
  return {
    cordons: async () => [...kept.values()],
    cordon: async (cordon) => kept.set(keyOf(cordon), cordon).size > 0,
    uncordon: async (ref) => kept.delete(keyOf(ref)),
    addSession: unused,
    session: unused,
    endSession: unused,
    addAction: unused,
    actions: unused,
  };
}
