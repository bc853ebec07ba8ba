// Subscriptions at providers over several workers: one worker subscribes, each event reaches each
// worker that joined once and in order, and what goes wrong ends as the loss of a socket would.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Profile, Provider } from "../../../src/core/provider/profile.ts";
import { plainFailure } from "../../../src/core/rpc/failure.ts";
import { ProfileRegistry } from "../../../src/upstream/registry/profile-registry.ts";
import { shareSockets } from "../../../src/upstream/stream/shared-sockets.ts";
import type { SubscriptionListener } from "../../../src/upstream/transport.ts";
import { testBus } from "../../cluster/bus-fixture.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";

const IDS = ["1", "2", "3"] as const;
const HEADS = '["newHeads"]';
const PROVIDER = fakeProvider(0);
const SET = fakeSet([PROVIDER]);
const PUBLIC: Profile = {
  slug: "public",
  owner: null,
  managed: true,
  chains: new Map([["test", SET]]),
};

interface Upstream {
  readonly worker: string;
  readonly params: string;
  readonly listener: SubscriptionListener;
  isLeft: boolean;
}

type Answer = "started" | "refused" | "nothing";

function createFixture() {
  const bus = testBus(IDS);
  const upstreams: Upstream[] = [];
  const state = { answer: "started" as Answer };
  const workers = IDS.map((id) => {
    const registry = new ProfileRegistry([SET.chain], [PUBLIC], bus.world, SELECTION);
    const sockets = shareSockets({
      bus: bus.worker(id).bus,
      runtime: bus.world,
      registry,
      sockets: {
        report: () => ({ state: "open", subscriptions: 0, opened: 0, strayFrames: 0 }),
        subscribe(_, params, listener) {
          const upstream = { worker: id, params, listener, isLeft: false };
          upstreams.push(upstream);
          if (state.answer === "started") listener.started();
          if (state.answer === "refused")
            listener.refused(plainFailure("network", "refused"), null);
          return {
            sent: true,
            cancel() {
              upstream.isLeft = true;
            },
          };
        },
      },
    });
    const provider = registry.served("public")?.trackers.get("test")?.set.providers[0];
    assert.ok(provider);
    return { id, sockets, provider };
  });
  const owner = bus.worker("1").bus.ownerOf("public test");
  const others = workers.filter(({ id }) => id !== owner);
  const open = (): readonly string[] =>
    upstreams.filter(({ isLeft }) => !isLeft).map(({ worker }) => worker);
  const push = (text: string): void => {
    for (const { isLeft, listener } of upstreams) if (!isLeft) listener.event(Buffer.from(text));
  };
  return { bus, world: bus.world, workers, upstreams, state, owner, others, open, push };
}

type Worker = ReturnType<typeof createFixture>["workers"][number];

/** Subscribes at a worker and keeps what it is told. */
function subscribe({ sockets, provider }: Worker, of: Provider = provider) {
  const heard: string[] = [];
  const events: Buffer[] = [];
  const dispatch = sockets.subscribe(of, HEADS, {
    started: () => void heard.push("started"),
    refused: () => void heard.push("refused"),
    event(raw) {
      heard.push(raw.toString());
      events.push(raw);
    },
    lost: () => void heard.push("lost"),
  });
  return { heard, events, dispatch };
}

/** Lets messages between workers arrive. */
async function settle(): Promise<void> {
  for (let n = 0; n < 20; n++) await turn();
}

test("one worker subscribes for all, and each hears each event once and in order", async () => {
  const { workers, owner, upstreams, push } = createFixture();
  const all = workers.map((worker) => subscribe(worker));
  await settle();
  assert.deepEqual([...new Set(upstreams.map(({ worker }) => worker))], [owner]);
  for (let n = 0; n < 500; n++) {
    push(String(n));
    if (n % 7 === 0) await turn();
  }
  await settle();
  const due = ["started", ...Array.from({ length: 500 }, (_, n) => String(n))];
  for (const { heard } of all) assert.deepEqual(heard, due);
});

test("an event of another worker does not keep the message that brought it", async () => {
  const { others, push } = createFixture();
  const [other] = others;
  assert.ok(other);
  const { events } = subscribe(other);
  await settle();
  push("small");
  push("large".repeat(100_000));
  await settle();
  assert.equal(events.length, 2);
  assert.ok((events[0]?.buffer.byteLength ?? 0) < 100_000);
});

test("a worker that leaves is sent nothing more, and the last one ends the subscription", async () => {
  const { others, open, push } = createFixture();
  const joined = others.map((worker) => subscribe(worker));
  await settle();
  assert.equal(open().length, 2);
  joined[0]?.dispatch.cancel();
  await settle();
  push("a");
  await settle();
  assert.deepEqual(
    joined.map(({ heard }) => heard),
    [["started"], ["started", "a"]],
  );
  joined[1]?.dispatch.cancel();
  await settle();
  assert.deepEqual(open(), []);
});

test("one that leaves before the answer is not subscribed for", async () => {
  const { others, state, open, upstreams } = createFixture();
  state.answer = "nothing";
  const [worker] = others;
  assert.ok(worker);
  const { heard, dispatch } = subscribe(worker);
  await settle();
  dispatch.cancel();
  await settle();
  upstreams[0]?.listener.started();
  await settle();
  assert.deepEqual([open(), heard], [[], []]);
});

test("where the other worker cannot subscribe, or is gone or silent, a worker does so itself", async () => {
  const { bus, others, owner, state, upstreams } = createFixture();
  const [one, two] = others;
  assert.ok(one && two);
  state.answer = "refused";
  const refused = subscribe(one);
  await settle();
  assert.deepEqual(
    upstreams.map(({ worker }) => worker),
    [owner, one.id],
  );
  assert.deepEqual(refused.heard, ["refused"]);
  state.answer = "started";
  bus.worker(owner).isStuck = true;
  const waiting = subscribe(two);
  await settle();
  assert.deepEqual(waiting.heard, []);
  bus.worker(owner).setSilent(true);
  await settle();
  assert.deepEqual(waiting.heard, ["started"]);
  assert.equal(upstreams.at(-1)?.worker, two.id);
});

test("a lost provider, a dead worker and one that fell silent end what was joined", async () => {
  for (const end of ["provider", "dead", "silent"] as const) {
    const { bus, others, owner, upstreams, push } = createFixture();
    const joined = others.map((worker) => subscribe(worker));
    await settle();
    push("a");
    await settle();
    if (end === "provider") for (const { listener } of upstreams) listener.lost("closed");
    if (end === "dead") bus.worker(owner).end();
    if (end === "silent") bus.worker(owner).setSilent(true);
    await settle();
    for (const { heard } of joined) assert.deepEqual(heard, ["started", "a", "lost"], end);
  }
});

test("a worker that does not take events is left; it finds out once it answers again", async () => {
  const { bus, world, others, open, push } = createFixture();
  const [one, two] = others;
  assert.ok(one && two);
  const slow = subscribe(one);
  const fast = subscribe(two);
  await settle();
  bus.worker(one.id).isStuck = true;
  push("a");
  await settle();
  push("b");
  world.advance(5_000);
  await settle();
  push("c");
  await settle();
  assert.equal(open().length, 1);
  assert.deepEqual(fast.heard, ["started", "a", "b", "c"]);
  bus.worker(one.id).release();
  await settle();
  assert.deepEqual(slow.heard, ["started", "a"]);
  world.advance(6_000);
  await settle();
  assert.deepEqual(slow.heard, ["started", "a", "lost"]);
});

test("more than may wait for a slow worker ends its subscriptions, and takes no more memory", async () => {
  const { bus, others, open, push } = createFixture();
  const [one] = others;
  assert.ok(one);
  const slow = subscribe(one);
  await settle();
  bus.worker(one.id).isStuck = true;
  push("a");
  await settle();
  for (let n = 0; n < 20_001; n++) push("b");
  assert.deepEqual(open(), []);
  bus.worker(one.id).release();
  await settle();
  assert.deepEqual(slow.heard, ["started", "a", "lost"]);
});

test("a provider that no set here has is subscribed to by the worker itself", async () => {
  const { others, upstreams } = createFixture();
  const [one] = others;
  assert.ok(one);
  const { heard } = subscribe(one, fakeProvider(7));
  assert.deepEqual([heard, upstreams.map(({ worker }) => worker)], [["started"], [one.id]]);
});
