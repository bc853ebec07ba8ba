// Removing kept answers everywhere: in every worker of a service and in the second tier, and what
// is told where a worker does not answer or a name is unknown.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  createCachePurge,
  createOwnPurge,
  type OwnPurge,
} from "../../src/app/operators/cache-purge.ts";
import { PURGE_ALL } from "../../src/app/operators/operator-changes.ts";
import { recordChange } from "../../src/shared/changes/change-log.ts";
import { IN_MEMORY } from "../../src/shared/store/sqlite.ts";
import { openStore } from "../../src/shared/store/store.ts";
import {
  CachedAnswers,
  type PurgeSelection,
} from "../../src/upstream/engine/cache/cached-answers.ts";
import { ProfileRegistry } from "../../src/upstream/registry/profile-registry.ts";
import type { PurgeCache } from "../../src/web/api/parts.ts";
import { testBus } from "../cluster/bus-fixture.ts";
import { openWorkerChanges } from "../fakes/operator-changes.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { quiet } from "../fakes/quiet.ts";
import { simulatedWorld } from "../fakes/runtime.ts";

const SET = fakeSet([fakeProvider(0)]);
const CHAIN = { ...SET.chain, aliases: ["first"] };
const TEAM = { slug: "team", owner: null, managed: false, chains: new Map([["test", SET]]) };
const registry = new ProfileRegistry([CHAIN], [TEAM], simulatedWorld(1), SELECTION);

async function service(t: TestContext, ids: readonly string[]) {
  const bus = testBus(ids);
  const store = await openStore({ url: "", dataDir: IN_MEMORY });
  t.after(() => store.close());
  const removed = new Map<string, PurgeSelection[]>(ids.map((id) => [id, []]));
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const purges: PurgeCache[] = [];
  for (const id of ids) {
    const ofWorker = { store, runtime: bus.world, bus: bus.worker(id).bus, onError };
    const { changes, operatorChanges } = await openWorkerChanges(ofWorker);
    const own: OwnPurge = async (selection) => {
      removed.get(id)?.push(selection);
      return id !== "unreachable";
    };
    operatorChanges.follow(async (change) => change.kind === "purge" && own(change.selection));
    changes.begin();
    t.after(() => changes.close());
    const parts = { registry, own, hasSecondTier: () => true, changes: operatorChanges };
    purges.push(createCachePurge(parts));
  }
  return { bus, store, removed, errors, purge: purges[0] ?? assert.fail() };
}

test("every worker removes what one of them is asked to remove, by the name of the chain", async (t) => {
  const { bus, removed, purge } = await service(t, ["1", "2", "3"]);
  const asked = { ...PURGE_ALL, profile: "team", chain: "first", method: "eth_call" };
  assert.deepEqual(await purge(asked), {
    kind: "purged",
    chain: "test",
    complete: true,
    redis: "purged",
  });
  bus.world.advance(1_000);
  await quiet();
  for (const id of ["1", "2", "3"])
    assert.deepEqual(removed.get(id), [{ ...asked, chain: "test" }], `worker ${id}, once`);
});

test("a worker that does not answer is told of, and one that has ended is not waited for", async (t) => {
  const { bus, removed, purge } = await service(t, ["1", "2", "3"]);
  bus.worker("3").end();
  bus.worker("2").isStuck = true;
  const purging = purge(PURGE_ALL);
  await quiet();
  bus.world.advance(1_001);
  const result = await purging;
  assert.ok(result.kind === "purged" && !result.complete);
  assert.equal(removed.get("1")?.length, 1);
});

test("unknown names remove nothing, and what a later version removes is taken for everything", async (t) => {
  const { bus, store, removed, errors, purge } = await service(t, ["1"]);
  assert.deepEqual(await purge({ ...PURGE_ALL, chain: "nowhere" }), {
    kind: "unknown",
    what: "chain",
  });
  assert.deepEqual(await purge({ ...PURGE_ALL, profile: "nobody" }), {
    kind: "unknown",
    what: "profile",
  });
  assert.deepEqual(removed.get("1"), []);
  const ref = JSON.stringify({ from: "n2", kind: "purge", selection: { blocks: [1, 2] } });
  await store.transaction((tx) => recordChange(tx, { topic: "operator", ref }));
  bus.world.advance(1_000);
  await quiet();
  assert.deepEqual([removed.get("1"), errors], [[PURGE_ALL], []]);
});

test("this process removes of every profile, also of those that nobody has asked for", async () => {
  const settings = {
    maxBytes: 1_048_576,
    accountMaxBytes: 0,
    byAccount: false,
    methods: new Map<string, number>(),
  };
  const cache = new CachedAnswers(() => settings);
  assert.equal(cache.sharedWith("team", "test"), null);
  assert.equal(await createOwnPurge({ cache, registry })(PURGE_ALL), true);
  assert.equal(cache.sharedWith("team", "test")?.purges, 1);
});
