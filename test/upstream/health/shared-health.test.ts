// Health shared by several workers, in simulated time: probes and heads do not multiply, another
// worker takes over when the one that probes dies, and what one worker finds out is evidence for
// the others, each of which still decides alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HealthUpdates } from "../../../src/app/health-updates.ts";
import type { Consistency, Profile, Provider } from "../../../src/core/provider/profile.ts";
import { plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { AcceptedTransactions } from "../../../src/upstream/engine/exchange/accepted-transactions.ts";
import { SERVED } from "../../../src/upstream/health/health-messages.ts";
import type { Tracker } from "../../../src/upstream/health/tracker.ts";
import { ProfileRegistry } from "../../../src/upstream/registry/profile-registry.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type {
  AnswerListener,
  OutgoingRequest,
  Sockets,
  SubscriptionListener,
} from "../../../src/upstream/transport.ts";
import { testBus } from "../../cluster/bus-fixture.ts";
import { fakeProvider, fakeSet, SELECTION, verdict } from "../../fakes/providers.ts";

const IDS = ["1", "2", "3", "4"] as const;
const PROVIDERS = [fakeProvider(0), fakeProvider(1)] as const;
const SET = fakeSet(PROVIDERS);
const PUBLIC: Profile = {
  slug: "public",
  owner: null,
  managed: true,
  chains: new Map([["test", SET]]),
};
const CUSTOM: Profile = { ...PUBLIC, slug: "mine", owner: "acct", managed: false };

interface Listener extends SubscriptionListener {
  readonly worker: string;
  readonly provider: string;
  isOver: boolean;
}

function createFixture(consistency: Consistency = "off") {
  const bus = testBus(IDS);
  const { world } = bus;
  /** Probes that reached a provider, by worker. */
  const probes: { readonly worker: string; readonly provider: string; readonly atMs: number }[] =
    [];
  const listeners: Listener[] = [];
  const heads: string[] = [];
  /** Providers that were asked for a balance, by worker. */
  const balances: string[] = [];
  /** Providers that were asked for their history, by worker. */
  const histories: string[] = [];
  let isWell = true;
  let isRefusing = false;
  const workers = IDS.map((id) => {
    const registry = new ProfileRegistry([SET.chain], [PUBLIC], world, SELECTION);
    const send = ({ provider, body }: OutgoingRequest, listener: AnswerListener) => {
      const isChainId = body.includes("eth_chainId");
      if (isChainId) probes.push({ worker: id, provider: provider.id, atMs: world.now() });
      let isCut = false;
      const text = body.toString();
      const isBlock = consistency !== "off" && text.includes("eth_getBlockByNumber");
      if (text.includes("eth_getBalance")) balances.push(`${id} ${provider.id}`);
      const quantity = isChainId ? '"0x1"' : '"0x64"';
      const isHistory = text.includes("eth_capabilities");
      if (isHistory) histories.push(`${id} ${provider.id}`);
      const block = blockText(text.includes("safe") ? 90 : 100);
      const answer = Buffer.from(isHistory ? HISTORY : isBlock ? block : quantity);
      if (isWell)
        world.after(5, () => {
          if (!isCut && isRefusing)
            listener.failed({ ...plainFailure("body", "no"), httpStatus: 401 }, null);
          else if (!isCut) listener.result(answer, { start: 0, end: answer.length, idAt: null });
        });
      return {
        sent: true,
        cancel() {
          isCut = true;
        },
      };
    };
    const sockets: Sockets = {
      send,
      retain() {},
      close: () => Promise.resolve(),
      subscribe({ id: provider }, _, watcher) {
        const listener = { ...watcher, worker: id, provider, isOver: false };
        listeners.push(listener);
        watcher.started();
        return {
          sent: true,
          cancel() {
            listener.isOver = true;
          },
        };
      },
      keep(_, listener) {
        listener.up();
        return () => {};
      },
      renew() {},
      report: () => ({ state: "open", subscriptions: 1, opened: 1, strayFrames: 0 }),
    };
    const health = new HealthUpdates(
      {
        runtime: world,
        timerWheel: new TimerWheel(world),
        upstreams: { http: sockets, ws: sockets },
        registry,
        consistency: () => consistency,
        accepted: new AcceptedTransactions(world),
        subscriptions: {
          headSeen: (_, provider, head) => void heads.push(`${id} ${provider.id} ${head.number}`),
        },
      },
      { bus: bus.worker(id).bus, workers: 2 },
    );
    return { id, registry, health, tracker: trackerIn(registry, "public") };
  });
  const begin = (): void => {
    for (const { health } of workers) health.watch([]);
  };
  const push = (provider: string, number: number): void => {
    for (const listener of listeners)
      if (!listener.isOver && listener.provider === provider)
        listener.event(Buffer.from(blockText(number)));
  };
  const kill = (id: string): void => {
    workers.find((worker) => worker.id === id)?.health.close();
    bus.worker(id).end();
  };
  const setWell = (value: boolean): void => {
    isWell = value;
  };
  const setRefusing = (value: boolean): void => {
    isRefusing = value;
  };
  const setMute = (id: string, isMute: boolean): void => {
    bus.worker(id).isMute = isMute;
  };
  const seen = { probes, listeners, heads, balances, histories };
  return { bus, world, workers, ...seen, begin, push, kill, setWell, setRefusing, setMute };
}

const HISTORY = '{"logs":{"disabled":false,"oldestBlock":"0x32"}}';

function blockText(number: number): string {
  const hash = `0x${number.toString(16).padStart(64, "0")}`;
  return JSON.stringify({ number: `0x${number.toString(16)}`, hash, parentHash: hash });
}

type Fixture = ReturnType<typeof createFixture>;

function trackerIn(registry: ProfileRegistry, id: string): Tracker {
  return registry.served(id)?.trackers.get("test") ?? assert.fail(`no profile ${id}`);
}

/** The worker that probes, once everything has come to rest. */
function ownerIn({ world, probes }: Fixture): string {
  world.advance(20_000);
  const owners = new Set(probes.splice(0).map(({ worker }) => worker));
  world.advance(60_000);
  const later = new Set(probes.splice(0).map(({ worker }) => worker));
  assert.equal(later.size, 1, `probed by ${[...later]}, before by ${[...owners]}`);
  return [...later][0] ?? "";
}

function fail(tracker: Tracker, provider: Provider, times: number): void {
  for (let n = 0; n < times; n++)
    tracker.record(methodOf("eth_call"), {
      provider,
      transport: "http",
      latencyMs: 1,
      verdict: verdict({ kind: "failure", cause: "server" }),
      code: 500,
    });
}

const breakers = ({ workers }: Fixture): string =>
  workers.map(({ tracker }) => tracker.health(PROVIDERS[0], "http").breaker).join(" ");

test("four workers probe as often as one, and all of them know what was found", () => {
  const fixture = createFixture();
  fixture.begin();
  ownerIn(fixture);
  const { world, probes, workers } = fixture;
  world.advance(120_000);
  // Two providers over two transports, every 12 s give or take a tenth.
  assert.ok(probes.length >= 36 && probes.length <= 46, `${probes.length} probes in two minutes`);
  for (const { tracker } of workers)
    for (const provider of PROVIDERS) {
      const { height, probeMs } = tracker.health(provider, "http");
      assert.deepEqual([height, probeMs], [100, 5]);
      assert.ok(world.now() - (tracker.stateOf(provider)?.ws?.probedAtMs ?? 0) < 14_000);
    }
});

test("one worker listens to heads; each hears of every head once", () => {
  const fixture = createFixture();
  fixture.begin();
  const owner = ownerIn(fixture);
  const { listeners, heads, push, workers } = fixture;
  const open = listeners.filter(({ isOver }) => !isOver);
  assert.deepEqual(
    open.map(({ worker, provider }) => `${worker} ${provider}`).toSorted(),
    PROVIDERS.map(({ id }) => `${owner} ${id}`),
  );
  push("p0", 101);
  push("p1", 102);
  assert.deepEqual(
    heads.toSorted(),
    IDS.flatMap((id) => [`${id} p0 101`, `${id} p1 102`]),
  );
  for (const { tracker } of workers) {
    assert.equal(tracker.head(), 102);
    assert.equal(tracker.pushesHeads(PROVIDERS[1]), true);
  }
});

test("what the view needs is asked by one worker, and known to all and to those that come later", () => {
  const fixture = createFixture("tip");
  fixture.begin();
  const owner = ownerIn(fixture);
  const { workers, balances, world, kill } = fixture;
  // At the start each worker may take itself for the one that asks.
  const first = balances.length;
  assert.ok(first >= 2 && first < 8, String(balances));
  const form = (tracker: Tracker, provider: Provider): string =>
    tracker.blocks.formFor(provider, methodOf("eth_getBalance"));
  for (const { tracker } of workers)
    assert.equal(tracker.blocks.view.tip?.number, 100, "the newest block was asked for");
  for (const { id } of PROVIDERS) fixture.push(id, 101);
  for (const { tracker } of workers) {
    assert.equal(tracker.blocks.view.current()?.safe, 90);
    for (const provider of PROVIDERS) assert.equal(form(tracker, provider), "hash");
  }
  const [early, late] = workers.filter(({ id }) => id !== owner);
  assert.ok(early && late);
  for (const { registry, health } of [early, late]) {
    registry.put(CUSTOM);
    health.watch([]);
    world.advance(120_000);
  }
  for (const { registry } of [early, late])
    assert.equal(form(trackerIn(registry, "acct/mine"), PROVIDERS[0]), "hash");
  assert.equal(balances.length, first + 2, "each provider of a set is asked once");
  kill(owner);
  world.advance(120_000);
  assert.equal(balances.length, first + 2, "nor asked again by the next worker that probes");
});

test("how far back a provider goes is asked by one worker, and known to all and to those that come later", () => {
  const fixture = createFixture();
  fixture.begin();
  const owner = ownerIn(fixture);
  const { workers, histories, world, kill } = fixture;
  const first = histories.length;
  assert.ok(first >= 2 && first < 8, String(histories));
  const logsOf = (tracker: Tracker) =>
    PROVIDERS.map((provider) => tracker.history(provider).logs?.oldest);
  for (const { tracker } of workers) assert.deepEqual(logsOf(tracker), [50, 50]);
  const late = workers.find(({ id }) => id !== owner) ?? assert.fail("there is one worker alone");
  late.registry.put(CUSTOM);
  late.health.watch([]);
  world.advance(120_000);
  kill(owner);
  world.advance(120_000);
  assert.ok(histories.length <= first + PROVIDERS.length, String(histories));
  assert.deepEqual(logsOf(trackerIn(late.registry, "acct/mine")), [50, 50]);
});

test("when the worker that probes dies, another one probes and listens within a second", () => {
  const fixture = createFixture();
  fixture.begin();
  const owner = ownerIn(fixture);
  const { world, listeners, probes, heads, push, kill } = fixture;
  kill(owner);
  probes.length = 0;
  world.advance(1_000);
  const heir = listeners.filter(({ isOver }) => !isOver).map(({ worker }) => worker);
  assert.equal(new Set(heir).size, 1);
  assert.notEqual(heir[0], owner);
  push("p0", 200);
  const left = IDS.filter((id) => id !== owner);
  assert.deepEqual(
    heads.filter((head) => head.endsWith("200")).toSorted(),
    left.map((id) => `${id} p0 200`),
  );
  // What was probed a moment ago is not probed anew for the change alone.
  assert.ok(probes.length <= 4, `${probes.length} probes`);
  assert.equal(ownerIn(fixture), heir[0]);
});

test("a circuit that opens at one worker leaves the others one failure to go, and no further", () => {
  const fixture = createFixture();
  fixture.begin();
  ownerIn(fixture);
  const [first, second, third] = fixture.workers;
  assert.ok(first && second && third);
  fail(first.tracker, PROVIDERS[0], 5);
  assert.equal(breakers(fixture), "open closed closed closed");
  fail(second.tracker, PROVIDERS[0], 1);
  assert.equal(breakers(fixture), "open open closed closed");
  third.tracker.record(methodOf("eth_call"), {
    provider: PROVIDERS[0],
    transport: "http",
    latencyMs: 1,
    verdict: null,
    code: null,
  });
  fail(third.tracker, PROVIDERS[0], 4);
  assert.equal(breakers(fixture), "open open closed closed");
  // A good probe, of whichever worker, makes the open ones half-open.
  fixture.world.advance(15_000);
  assert.equal(breakers(fixture), "half_open half_open closed closed");
  fixture.world.advance(28_000);
  assert.equal(breakers(fixture), "closed closed closed closed", "no call tried them");
});

test("a good probe that is told again, as workers come and go, counts once", () => {
  const fixture = createFixture();
  fixture.begin();
  const owner = ownerIn(fixture);
  const { workers, world, kill } = fixture;
  const others = workers.filter(({ id }) => id !== owner);
  const [first] = others;
  assert.ok(first !== undefined);
  fail(first.tracker, PROVIDERS[0], 5);
  world.advance(15_000);
  for (const { id } of others.slice(1)) {
    kill(id);
    world.advance(10);
  }
  assert.equal(first.tracker.health(PROVIDERS[0], "http").breaker, "half_open");
});

test("limits that a provider names to one worker are kept by all", () => {
  const fixture = createFixture();
  fixture.begin();
  ownerIn(fixture);
  const [first] = fixture.workers;
  const attempt = { provider: PROVIDERS[1], transport: "http", latencyMs: 1, code: 429 } as const;
  const limited = { ...attempt, verdict: verdict({ kind: "cooldown", ms: 9_000 }) };
  for (let n = 0; n < 50; n++) first?.tracker.record(methodOf("eth_call"), limited);
  for (const { tracker, id } of fixture.workers) {
    const { rateLimitedForMs, calls } = tracker.health(PROVIDERS[1], "http");
    assert.ok(rateLimitedForMs > 0, `worker ${id}`);
    assert.equal(calls, id === "1" ? 50 : 0);
  }
});

test("a call that one worker saw refused makes the probing one ask: all exclude the provider if it says the same", () => {
  const fixture = createFixture();
  fixture.begin();
  const owner = ownerIn(fixture);
  const { world, probes, workers, setRefusing } = fixture;
  const other = workers.find(({ id }) => id !== owner);
  assert.ok(other);
  const refused = {
    provider: PROVIDERS[1],
    transport: "http",
    latencyMs: 1,
    code: 401,
    verdict: verdict({ kind: "cordon", reason: "auth" }),
  } as const;
  const cordons = (): readonly unknown[] =>
    workers.map(({ tracker }) => tracker.health(PROVIDERS[1], "http").cordon);
  const ask = (): number => {
    probes.length = 0;
    for (let n = 0; n < 20; n++) other.tracker.record(methodOf("debug_traceCall"), refused);
    world.advance(20);
    return probes.filter(({ worker, provider }) => worker === owner && provider === "p1").length;
  };
  assert.equal(ask(), 1);
  assert.deepEqual(new Set(cordons()), new Set([null]));
  world.advance(5_000);
  setRefusing(true);
  assert.equal(ask(), 1);
  assert.deepEqual(new Set(cordons()), new Set(["auth"]));
  setRefusing(false);
  world.advance(130_000);
  assert.deepEqual(new Set(cordons()), new Set([null]));
});

test("while one worker finds no provider usable, all providers are probed every second, once", () => {
  const fixture = createFixture();
  fixture.begin();
  const owner = ownerIn(fixture);
  const { world, probes, workers, setWell } = fixture;
  const other = workers.find(({ id }) => id !== owner);
  assert.ok(other);
  // Probes hang, so that none of them makes a circuit half-open.
  setWell(false);
  for (const provider of PROVIDERS)
    for (const transport of ["http", "ws"] as const)
      for (let n = 0; n < 5; n++)
        other.tracker.record(methodOf("eth_call"), {
          provider,
          transport,
          latencyMs: 1,
          verdict: verdict({ kind: "failure", cause: "server" }),
          code: 500,
        });
  assert.equal(other.tracker.isUsable(), false);
  world.advance(500);
  probes.length = 0;
  world.advance(10_000);
  assert.deepEqual([...new Set(probes.map(({ worker }) => worker))], [owner]);
  assert.ok(probes.length >= 32 && probes.length <= 44, `${probes.length} probes in 10 s`);
  setWell(true);
  world.advance(2_000);
  assert.equal(other.tracker.isUsable(), true);
});

test("a Custom profile is probed by one of those that have it in memory", () => {
  const fixture = createFixture();
  fixture.begin();
  ownerIn(fixture);
  const { world, workers, probes } = fixture;
  const having = workers.slice(2);
  for (const { registry, health } of having) {
    registry.put(CUSTOM);
    health.watch([]);
  }
  world.advance(20_000);
  probes.length = 0;
  world.advance(120_000);
  // Twice as many sets, twice as many probes, wherever they are made.
  assert.ok(probes.length >= 72 && probes.length <= 92, `${probes.length} probes`);
  for (const { registry } of having)
    assert.equal(trackerIn(registry, "acct/mine").health(PROVIDERS[0], "http").height, 100);
});

test("a worker that begins to serve a set later is told the last probes at once", () => {
  const fixture = createFixture();
  const { world, workers, probes } = fixture;
  fixture.begin();
  const owner = ownerIn(fixture);
  const late = workers.find(({ id }) => id !== owner) ?? assert.fail("one worker");
  late.registry.replace([], []);
  late.health.watch([]);
  world.advance(20_000);
  probes.splice(0);
  late.registry.replace([SET.chain], [PUBLIC]);
  const tracker = trackerIn(late.registry, "public");
  let answers = 0;
  tracker.attend({ answered: () => answers++ });
  late.health.watch([]);
  world.advance(10);
  assert.ok(answers > 0, "a chain that it opens is known to be answered");
  assert.equal(tracker.health(PROVIDERS[0], "http").height, 100);
  world.advance(1_000);
  assert.ok(!probes.some(({ worker }) => worker === late.id), "it does not probe itself");
});

test("a message that was lost does no lasting harm: everything is told anew", () => {
  const fixture = createFixture();
  fixture.begin();
  const owner = ownerIn(fixture);
  const { bus, world, listeners, workers } = fixture;
  // What its neighbours would hear if the owner had dropped the set, and had it again since.
  const wrong = { added: [], removed: workers.map(({ tracker }) => tracker.key) };
  bus.worker(owner).bus.publish(SERVED, wrong);
  world.advance(200);
  const both = new Set(listeners.filter(({ isOver }) => !isOver).map(({ worker }) => worker));
  assert.equal(both.size, 2, "two probe a set of which they know different things");
  world.advance(11_000);
  const open = listeners.filter(({ isOver }) => !isOver);
  assert.deepEqual([...new Set(open.map(({ worker }) => worker))], [owner]);
  for (const { id } of PROVIDERS) fixture.push(id, 101);
  for (const { tracker } of workers)
    for (const provider of PROVIDERS) assert.equal(tracker.pushesHeads(provider), true);
  assert.equal(ownerIn(fixture), owner);
});

test("a set of which its owner tells nothing is probed by the next worker, until it does again", () => {
  const fixture = createFixture();
  fixture.begin();
  const owner = ownerIn(fixture);
  const { world, probes, setMute, listeners } = fixture;
  setMute(owner, true);
  world.advance(30_000);
  assert.deepEqual([...new Set(probes.splice(0).map(({ worker }) => worker))], [owner]);
  world.advance(120_000);
  const others = new Set(probes.splice(0).map(({ worker }) => worker));
  others.delete(owner);
  assert.equal(others.size, 1, "one other worker probes");
  setMute(owner, false);
  world.advance(11_000);
  probes.length = 0;
  assert.equal(ownerIn(fixture), owner);
  const open = listeners.filter(({ isOver }) => !isOver);
  assert.deepEqual([...new Set(open.map(({ worker }) => worker))], [owner]);
});
