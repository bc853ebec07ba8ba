// When providers are probed, in simulated time: at their interval, less often while they fail,
// every second while nobody is usable.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Provider } from "../../../src/core/provider/profile.ts";
import { plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { Prober } from "../../../src/upstream/health/prober.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { Upstream } from "../../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION, verdict } from "../../fakes/providers.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/runtime.ts";

type Mood = "well" | "hanging" | "refusing" | "elsewhere";

interface Fixture {
  readonly runtime: SimulatedWorld;
  readonly tracker: Tracker;
  readonly providers: readonly [Provider, Provider];
  readonly moods: Map<string, Mood>;
  /** When a provider was asked for its chain id, by provider. */
  readonly asked: Map<string, number[]>;
}

/**
 * Two providers over HTTP that answer probes after 10 ms while they are well, probed from now on.
 */
function createFixture(): Fixture {
  const runtime = simulatedWorld(3);
  const providers = [fakeProvider(0, { wsUrl: null }), fakeProvider(1, { wsUrl: null })] as const;
  const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
  const moods = new Map<string, Mood>();
  const asked = new Map<string, number[]>();
  const upstream: Pick<Upstream, "send"> = {
    send({ provider: { id }, body }, listener) {
      let cancelled = false;
      const isChainId = body.includes("eth_chainId");
      if (isChainId) asked.set(id, [...(asked.get(id) ?? []), runtime.now()]);
      runtime.after(10, () => {
        const mood = moods.get(id) ?? "well";
        if (cancelled || mood === "hanging") return;
        const answer = Buffer.from(
          isChainId ? (mood === "elsewhere" ? '"0x2"' : '"0x1"') : '"0x64"',
        );
        if (mood !== "refusing")
          listener.result(answer, { start: 0, end: answer.length, idAt: null });
        else listener.failed({ ...plainFailure("body", "no"), httpStatus: 401, code: null }, null);
      });
      const cancel = (): void => {
        cancelled = true;
      };
      return { sent: true, cancel };
    },
  };
  new Prober({
    runtime,
    timerWheel: new TimerWheel(runtime),
    upstreams: { http: upstream },
  }).watch([tracker]);
  return { runtime, tracker, providers, moods, asked };
}

function open({ tracker }: Fixture, provider: Provider): void {
  for (let n = 0; n < 3; n++) {
    const failed = verdict({ kind: "failure", cause: "network" });
    tracker.record(methodOf("eth_getBalance"), {
      provider,
      transport: "http",
      latencyMs: 5,
      verdict: failed,
      code: null,
    });
  }
  assert.equal(tracker.health(provider, "http").breaker, "open");
}

function gapsOf(times: readonly number[]): readonly number[] {
  return times.slice(1).map((at, n) => at - (times[n] ?? 0));
}

test("a good probe ends the wait of an open circuit", () => {
  const it = createFixture();
  const [first] = it.providers;
  it.runtime.advance(3_000);
  open(it, first);
  it.runtime.advance(15_000);
  assert.equal(it.tracker.health(first, "http").breaker, "half_open");
});

test(
  "while nobody is usable each provider is probed every second, and the first to come back is " +
    "usable within a second",
  () => {
    const it = createFixture();
    it.runtime.advance(3_000);
    for (const { id } of it.providers) it.moods.set(id, "hanging");
    for (const provider of it.providers) open(it, provider);
    assert.equal(it.tracker.isUsable(), false);
    const beganAtMs = it.runtime.now();
    it.runtime.advance(20_000);
    for (const { id } of it.providers) {
      const times = (it.asked.get(id) ?? []).filter((at) => at >= beganAtMs);
      assert.equal(times[0], beganAtMs, "the first probe of the outage does not wait");
      assert.ok(times.length >= 19, `${times.length} probes in twenty seconds`);
      assert.ok(
        gapsOf(times).every((gap) => gap >= 1_000 && gap <= 1_030),
        String(gapsOf(times)),
      );
    }
    it.moods.set("p1", "well");
    it.runtime.advance(1_060);
    assert.equal(it.tracker.isUsable(), true);
    assert.equal(it.tracker.health(it.providers[1], "http").breaker, "half_open");
  },
);

test("a provider that refuses us is left alone for two minutes, also in an outage", () => {
  const it = createFixture();
  it.runtime.advance(3_000);
  it.moods.set("p0", "refusing");
  it.moods.set("p1", "hanging");
  it.runtime.advance(15_000);
  const before = it.asked.get("p0")?.length ?? 0;
  for (const provider of it.providers) open(it, provider);
  it.runtime.advance(20_000);
  assert.equal(it.asked.get("p0")?.length, before);
});

test("once somebody is usable again, probes go back to their interval", () => {
  const it = createFixture();
  it.runtime.advance(3_000);
  for (const { id } of it.providers) it.moods.set(id, "hanging");
  for (const provider of it.providers) open(it, provider);
  it.runtime.advance(5_000);
  for (const { id } of it.providers) it.moods.set(id, "well");
  it.runtime.advance(2_000);
  assert.equal(it.tracker.isUsable(), true);
  const before = it.asked.get("p0")?.length ?? 0;
  it.runtime.advance(40_000);
  const more = (it.asked.get("p0")?.length ?? 0) - before;
  assert.ok(more >= 2 && more <= 5, `${more} probes in forty seconds`);
});

test(
  "providers that turn out to be on another chain are each probed once a second, however often " +
    "that happens",
  () => {
    const it = createFixture();
    it.runtime.advance(3_000);
    for (let n = 0; n < 5; n++) {
      for (const { id } of it.providers) it.moods.set(id, "elsewhere");
      it.runtime.advance(40_000);
      assert.equal(it.tracker.isUsable(), false);
      if (n < 4) for (const { id } of it.providers) it.moods.set(id, "well");
      if (n < 4) it.runtime.advance(40_000);
    }
    for (const [id, times] of it.asked) {
      const recent = times.filter((at) => at > it.runtime.now() - 10_000);
      assert.ok(recent.length <= 11, `${id} was asked ${recent.length} times in ten seconds`);
      assert.ok(recent.length >= 9, `${id} was asked ${recent.length} times in ten seconds`);
    }
  },
);

test(
  "a provider that is silent on a socket that takes no more requests is asked whether it is " +
    "there without harm",
  () => {
    const runtime = simulatedWorld(5);
    const provider = fakeProvider(0, { url: null });
    const tracker = new Tracker(fakeSet([provider]), runtime, SELECTION);
    let refused = 0;
    const full: Pick<Upstream, "send"> = {
      send(_, listener) {
        refused++;
        listener.failed(
          { ...plainFailure("unsent", "too many requests wait on this socket"), crowded: true },
          null,
        );
        return { sent: false, cancel() {} };
      },
    };
    const prober = new Prober({
      runtime,
      timerWheel: new TimerWheel(runtime),
      upstreams: { ws: full },
    });
    prober.watch([tracker]);
    runtime.advance(500);
    const probes = refused;
    const about = {
      provider,
      transport: "ws" as const,
      method: methodOf("eth_getBalance"),
      caller: { key: "c" },
      counts: "all" as const,
      startedAtMs: runtime.now(),
    };
    tracker.begin({
      ...about,
      sent: true,
      queued: false,
      batch: null,
      sentAtMs: runtime.now(),
      connectingAtMs: null,
      watched: null,
      counted: false,
      before: null,
      after: null,
      moveAway: () => {},
    });
    runtime.advance(1_400);
    assert.ok(refused > probes, "it was asked");
    assert.equal(
      tracker.health(provider, "ws").breaker,
      "closed",
      "what was not sent says nothing",
    );
    prober.close();
  },
);

function refuse({ tracker }: Fixture, provider: Provider): void {
  tracker.record(methodOf("debug_traceCall"), {
    provider,
    transport: "http",
    latencyMs: 5,
    verdict: verdict({ kind: "cordon", reason: "auth" }),
    code: null,
  });
}

test(
  "a refused call makes its provider be probed at once, every 5 s at most, and excluded only " +
    "where the probe is refused as well",
  () => {
    const it = createFixture();
    const [first, second] = it.providers;
    it.runtime.advance(3_000);
    it.asked.clear();
    it.moods.set(second.id, "refusing");
    const beganAtMs = it.runtime.now();
    for (let n = 0; n < 80; n++) {
      refuse(it, first);
      if (n === 0) refuse(it, second);
      it.runtime.advance(50);
    }
    assert.deepEqual(it.asked.get(first.id), [beganAtMs], "80 refusals in 4 s");
    assert.deepEqual(
      it.providers.map((provider) => it.tracker.health(provider, "http").cordon),
      [null, "auth"],
    );
    it.runtime.advance(1_000);
    refuse(it, first);
    assert.equal(it.asked.get(first.id)?.length, 2);
    it.moods.set(second.id, "well");
    it.runtime.advance(120_000);
    assert.equal(it.tracker.health(second, "http").cordon, null);
  },
);

test("a refused probe alone excludes nobody: a provider may refuse what only probes ask", () => {
  const it = createFixture();
  const [first] = it.providers;
  it.runtime.advance(3_000);
  it.moods.set(first.id, "refusing");
  it.runtime.advance(120_000);
  assert.equal(it.tracker.health(first, "http").cordon, null);
  refuse(it, first);
  it.runtime.advance(20);
  assert.equal(it.tracker.health(first, "http").cordon, "auth");
});
