// Removing kept answers everywhere: in every worker of a service and in the second tier, and what
// is told where a worker does not answer or a name is unknown.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createCachePurge,
  createOwnPurge,
  PURGE_ALL,
} from "../../src/app/operators/cache-purge.ts";
import {
  CachedAnswers,
  type PurgeSelection,
} from "../../src/upstream/engine/cache/cached-answers.ts";
import { ProfileRegistry } from "../../src/upstream/registry/profile-registry.ts";
import { testBus } from "../cluster/bus-fixture.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { simulatedWorld } from "../fakes/runtime.ts";

const SET = fakeSet([fakeProvider(0)]);
const CHAIN = { ...SET.chain, aliases: ["first"] };
const TEAM = { slug: "team", owner: null, managed: false, chains: new Map([["test", SET]]) };
const registry = new ProfileRegistry([CHAIN], [TEAM], simulatedWorld(1), SELECTION);

function service(ids: readonly string[]) {
  const bus = testBus(ids);
  const removed = new Map<string, PurgeSelection[]>(ids.map((id) => [id, []]));
  const purges = ids.map((id) =>
    createCachePurge({
      registry,
      own: (selection) => {
        removed.get(id)?.push(selection);
        return Promise.resolve(id !== "unreachable");
      },
      hasSecondTier: () => true,
      bus: bus.worker(id).bus,
      recorded: null,
    }),
  );
  return { bus, removed, purge: purges[0] ?? assert.fail() };
}

test("every worker removes what one of them is asked to remove, by the name of the chain", async () => {
  const { removed, purge } = service(["1", "2", "3"]);
  const asked = { ...PURGE_ALL, profile: "team", chain: "first", method: "eth_call" };
  assert.deepEqual(await purge(asked), {
    kind: "purged",
    chain: "test",
    isComplete: true,
    secondTier: { isGone: true },
  });
  for (const id of ["1", "2", "3"])
    assert.deepEqual(removed.get(id), [{ ...asked, chain: "test" }], id);
});

test("a worker that does not answer is told of, and one that has ended is not waited for", async () => {
  const { bus, removed, purge } = service(["1", "2", "3"]);
  bus.worker("3").end();
  bus.worker("2").isStuck = true;
  const purging = purge(PURGE_ALL);
  bus.world.advance(3_001);
  const result = await purging;
  assert.ok(result.kind === "purged" && !result.isComplete);
  assert.deepEqual([removed.get("1")?.length, removed.get("3")?.length], [1, 0]);
});

test("unknown names remove nothing, and the nodes of a cluster are told", async () => {
  const recorded: PurgeSelection[] = [];
  const own: PurgeSelection[] = [];
  const purge = createCachePurge({
    registry,
    own: (selection) => Promise.resolve(own.push(selection) < 0),
    hasSecondTier: () => false,
    bus: null,
    recorded: async (selection) => void recorded.push(selection),
  });
  assert.deepEqual(await purge({ ...PURGE_ALL, chain: "nowhere" }), {
    kind: "unknown",
    what: "chain",
  });
  assert.deepEqual(await purge({ ...PURGE_ALL, profile: "nobody" }), {
    kind: "unknown",
    what: "profile",
  });
  assert.deepEqual([own, recorded], [[], []]);
  const { kind, ...rest } = await purge({ ...PURGE_ALL, provider: "p0" });
  assert.deepEqual([kind, rest], ["purged", { chain: null, isComplete: true, secondTier: null }]);
  assert.deepEqual(recorded, [{ ...PURGE_ALL, provider: "p0" }]);
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
