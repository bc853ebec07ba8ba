// The directory while single profiles come, change and go beside the configured ones: nobody sees a
// half, nobody finds what is not theirs, health stays.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Profile,
  type Provider,
  profileId,
  publicLabel,
} from "../../../src/core/provider/profile.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { Prober } from "../../../src/upstream/health/prober.ts";
import type { Tracker } from "../../../src/upstream/health/tracker.ts";
import {
  ProfileRegistry,
  type ProviderUsers,
} from "../../../src/upstream/registry/profile-registry.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { AnswerListener, OutgoingRequest } from "../../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const { chain } = fakeSet([]);

/** A profile with these providers; an id with a mark behind it has another URL. */
function profile(owner: string | null, slug: string, ids: readonly string[] = ["a", "b"]): Profile {
  const providers = ids.map((id, index) =>
    fakeProvider(index, {
      id: id.slice(0, 1),
      url: `http://${id}.test/`,
      wsUrl: null,
      guarded: owner !== null,
    }),
  );
  return {
    slug,
    owner,
    managed: slug === "public",
    chains: new Map([["test", fakeSet(providers)]]),
  };
}

function directoryOf(profiles: readonly Profile[]): ProfileRegistry {
  return new ProfileRegistry([chain], profiles, simulatedWorld(1), SELECTION);
}

/** Users that do nothing. */
const NO_USERS: ProviderUsers = {
  callers: { forgetChains() {} },
  health: { watch() {} },
  subscriptions: { rebind() {} },
  upstreams: [],
  kept: [],
};

function trackerOf(registry: ProfileRegistry, id: string): Tracker {
  const tracker = registry.served(id)?.trackers.get("test");
  assert.ok(tracker, id);
  return tracker;
}

function probe(tracker: Tracker, id: string, height: number): void {
  const provider = tracker.set.providers.find((it) => it.id === id) ?? fakeProvider(9);
  tracker.recordProbe({
    provider,
    transport: "http",
    latencyMs: 5,
    result: { kind: "ok", chainId: 1, height },
  });
}

function heightsOf(tracker: Tracker): readonly (number | null)[] {
  return tracker.set.providers.map((it) => tracker.health(it, "http").height);
}

test(
  "a profile of an account is found by its id only: no slug in a URL leads to it, and two " +
    "accounts may use one slug",
  () => {
    const registry = directoryOf([profile(null, "public"), profile(null, "team")]);
    const [one, two] = [profile("acct_1", "mine"), profile("acct_2", "mine", ["c"])];
    registry.put(one);
    registry.put(two);
    assert.equal(registry.served("acct_1/mine")?.profile, one);
    assert.equal(registry.served("acct_2/mine")?.profile, two);
    for (const slug of ["mine", "acct_1/mine", "acct_1%2Fmine"])
      assert.equal(registry.profile(slug), undefined, slug);
    assert.deepEqual(
      registry.profiles.map((it) => it.profile.slug),
      ["public", "team"],
    );
    assert.equal(registry.defaultProfile?.profile.slug, "public");
    assert.equal(registry.served("team"), registry.profile("team"));
    assert.equal(registry.trackers().length, 4);
    assert.deepEqual(
      [profileId(one), publicLabel(profileId(one)), publicLabel("team")],
      ["acct_1/mine", "custom", "team"],
    );
  },
);

test(
  "a new version keeps the health of providers that stay the same, and of no others; what was " +
    "handed out before stays as it was",
  () => {
    const registry = directoryOf([profile(null, "public")]);
    registry.put(profile("acct_1", "mine", ["a", "b", "c"]));
    const before = trackerOf(registry, "acct_1/mine");
    for (const id of ["a", "b", "c"]) probe(before, id, 100);
    const { revision } = registry;
    registry.put(profile("acct_1", "mine", ["c", "b-moved", "d", "a"]));
    const after = trackerOf(registry, "acct_1/mine");
    assert.ok(registry.revision > revision);
    assert.deepEqual(heightsOf(after), [100, null, null, 100]);
    assert.deepEqual(heightsOf(before), [100, 100, 100]);
    assert.equal(before.set.providers.length, 3);
    // A call that was under way at the old set still teaches the new one.
    before.record(methodOf("eth_call"), {
      provider: before.set.providers[0] ?? fakeProvider(0),
      transport: "http",
      latencyMs: 7,
      verdict: null,
      code: null,
    });
    const kept = after.set.providers[3] ?? fakeProvider(3);
    assert.equal(after.health(kept, "http").calls, 1);
  },
);

test(
  "a reload changes the configured profiles and leaves those of accounts alone; a configured " +
    "one can be put and removed as well",
  () => {
    const registry = directoryOf([profile(null, "public"), profile(null, "team")]);
    registry.put(profile("acct_1", "mine"));
    const mine = registry.served("acct_1/mine");
    registry.replace([chain], [profile(null, "public", ["z"])]);
    assert.equal(registry.served("acct_1/mine"), mine);
    assert.equal(registry.profile("team"), undefined);
    registry.put(profile(null, "team"));
    assert.equal(registry.profile("team")?.profile.slug, "team");
    registry.remove("team");
    registry.remove("acct_1/mine");
    registry.remove("acct_1/mine");
    assert.deepEqual(
      [registry.profile("team"), registry.served("acct_1/mine"), registry.custom],
      [undefined, undefined, []],
    );
    assert.equal(registry.trackers().length, 1);
  },
);

test("each change takes effect everywhere that holds on to providers, after the directory has it", () => {
  const registry = directoryOf([profile(null, "public", ["a"])]);
  const told: string[] = [];
  const served = (): string => registry.custom.map((it) => it.profile.slug).join();
  const users = {
    ...NO_USERS,
    health: {
      watch: (trackers: readonly Tracker[]) =>
        void told.push(`health ${trackers.length} ${served()}`),
    },
    subscriptions: { rebind: (it: ProfileRegistry) => void told.push(`rebind ${it === registry}`) },
    upstreams: [
      {
        retain: (providers: readonly Provider[]) =>
          void told.push(`retain ${providers.map((it) => it.id).join("")}`),
      },
    ],
  };
  const heard = (): string => told.splice(0).join("; ");
  assert.equal(heard(), "");
  registry.applyTo(users);
  assert.equal(heard(), "health 1 ; rebind true; retain a");
  registry.put(profile("acct_1", "mine", ["b", "c"]));
  assert.equal(heard(), "health 2 mine; rebind true; retain abc");
  registry.replace([chain], []);
  assert.equal(heard(), "health 1 mine; rebind true; retain bc");
  registry.remove("acct_1/mine");
  assert.equal(heard(), "health 0 ; rebind true; retain ");
});

test("probing goes on undisturbed for profiles that a change does not touch", () => {
  const runtime = simulatedWorld(3);
  const registry = new ProfileRegistry(
    [chain],
    [profile(null, "public", ["a"])],
    runtime,
    SELECTION,
  );
  const asked: string[] = [];
  const http = {
    send({ provider }: OutgoingRequest, listener: AnswerListener) {
      asked.push(provider.id);
      const body = Buffer.from('"0x1"');
      runtime.after(1, () => listener.result(body, { start: 0, end: body.length, idAt: null }));
      return { sent: true, cancel() {} };
    },
  };
  const prober = new Prober({
    runtime,
    timerWheel: new TimerWheel(runtime),
    upstreams: { http },
  });
  registry.applyTo({ ...NO_USERS, health: prober });
  // A change every 100 ms: if each of them began anew, `a` would be asked each time; if each put it
  // off, never.
  for (let n = 0; n < 600; n++) {
    runtime.advance(100);
    registry.put(profile("acct_1", "mine", n % 2 === 0 ? ["b"] : ["c"]));
  }
  const count = asked.filter((it) => it === "a").length;
  assert.ok(count >= 8 && count <= 14, `${count} questions in a minute`);
  registry.remove("acct_1/mine");
  asked.length = 0;
  runtime.advance(60_000);
  assert.deepEqual(new Set(asked), new Set(["a"]), "who is gone is not asked");
  prober.close();
  asked.length = 0;
  runtime.advance(60_000);
  assert.deepEqual(asked, []);
});
