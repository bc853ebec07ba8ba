// Silence and slowness through the router, in simulated time: what opens a circuit, what does not,
// who counts, and where calls go meanwhile.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_BLOCK } from "../../../src/core/rpc/call.ts";
import { plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { type Routed, routingFixture } from "../../fakes/routing.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const SLOW = "debug_traceTransaction";

test(
  "one hung provider of two is benched within 1.5 s though only one caller asks, and no call " +
    "takes longer than that",
  () => {
    const it = routingFixture(2);
    for (let n = 0; n < 300; n++) {
      it.ask();
      it.runtime.advance(10);
    }
    it.latencyOf = (id) => (id === "p0" ? null : 10);
    const calls: Routed[] = [];
    for (let n = 0; n < 300; n++) {
      calls.push(it.ask());
      it.runtime.advance(10);
      if (n === 150) assert.equal(it.stateOf(0), "open", "1.5 s after it hung");
    }
    it.runtime.advance(2_000);
    const slow = calls.filter((call) => (call.tookMs() ?? Number.POSITIVE_INFINITY) > 1_500);
    assert.equal(slow.length, 0);
    assert.equal(it.tracker.health(it.providers[0] ?? assert.fail(), "http").openings.silence, 1);
  },
);

test("clients that give up make it no harder to see that a provider hangs", () => {
  const it = routingFixture(2);
  it.runtime.advance(3_000);
  it.latencyOf = (id) => (id === "p0" ? null : 10);
  const [first, second] = [it.ask({ caller: "a" }), it.ask({ caller: "b" })];
  it.runtime.advance(1_005);
  for (const { route, tookMs } of [first, second])
    if (tookMs() === null) assert.deepEqual(route.cancel(), { sent: true, countedAsTimeout: true });
  assert.equal(it.stateOf(0), "open");
});

test(
  "no caller opens a circuit by asking for slow things, however often, whether it waits or " +
    "leaves, and also with nobody else there",
  () => {
    for (const leaves of [true, false]) {
      const it = routingFixture(2);
      it.latencyOf = (_, method) => (method === SLOW ? 30_000 : 20);
      it.runtime.advance(3_000);
      for (let n = 0; n < 200; n++) {
        const { route } = it.ask({ method: SLOW, caller: `c${n % 50}`, deadlineMs: 45_000 });
        it.runtime.advance(leaves ? 1_500 : 300);
        if (leaves)
          assert.equal(
            route.cancel().countedAsTimeout,
            false,
            "it has answered our own question meanwhile",
          );
        assert.equal(it.stateOf(0), "closed", `after ${n + 1} calls`);
      }
    }
  },
);

test("one caller counts once in ten seconds for one circuit", () => {
  const it = routingFixture(1, { probed: false });
  it.latencyOf = () => null;
  for (let n = 0; n < 6; n++) {
    it.ask({ deadlineMs: 30_000 });
    it.runtime.advance(1_200);
  }
  assert.equal(it.stateOf(0), "closed", "7.2 s: one count");
  it.runtime.advance(5_000);
  it.ask({ deadlineMs: 30_000 });
  it.runtime.advance(1_200);
  assert.equal(it.stateOf(0), "open");
});

test(
  "with one caller and all providers hung the last circuit opens as the others do, and the " +
    "caller is told when to come back",
  () => {
    const it = routingFixture(3);
    it.runtime.advance(3_000);
    it.latencyOf = () => null;
    it.ask();
    it.runtime.advance(5_500);
    for (const [index] of it.providers.entries())
      assert.equal(it.stateOf(index), "open", `p${index}`);
    const calls = Array.from({ length: 5 }, () => it.ask());
    const [refused] = calls.filter(({ outcome }) => outcome() !== null);
    const outcome = refused?.outcome();
    assert.ok(outcome?.kind === "fault" && outcome.fault.retryAfterMs === 250, "the fifth at once");
    it.latencyOf = () => 10;
    it.runtime.advance(1_100);
    const after = it.ask();
    it.runtime.advance(50);
    assert.equal(after.outcome()?.kind, "result", "a second after they are back");
  },
);

test(
  "a pause of less than two seconds opens no circuit of the only provider, though calls wait " +
    "for it",
  () => {
    const it = routingFixture(1);
    it.runtime.advance(3_000);
    it.latencyOf = () => null;
    const paused = Array.from({ length: 10 }, () => it.ask());
    it.runtime.advance(1_900);
    assert.equal(it.stateOf(0), "closed");
    for (const { listener, isProbe } of it.sent) {
      const value = Buffer.from(isProbe ? '"0x1"' : "7");
      listener.result(value, { start: 0, end: value.length, idAt: null });
    }
    it.runtime.advance(2_000);
    assert.ok(paused.every(({ outcome }) => outcome()?.kind === "result"));
    assert.equal(it.stateOf(0), "closed");
  },
);

test(
  "a provider to which no connection comes about is as silent as one that does not answer: " +
    "what waits for it goes elsewhere, writes too",
  () => {
    for (const method of ["eth_gasPrice", "eth_sendRawTransaction"]) {
      const it = routingFixture(2);
      it.runtime.advance(3_000);
      it.unreachable.add("p0");
      const call = it.ask({ method });
      it.runtime.advance(1_600);
      assert.deepEqual(
        [it.stateOf(0), call.outcome()?.kind, it.attemptsOf(call)],
        ["open", "result", "p0:circuit_open p1:ok"],
      );
      assert.equal(it.tracker.health(it.providers[0] ?? assert.fail(), "http").openings.silence, 1);
    }
  },
);

test("a process that was held up holds its own lateness against no provider", () => {
  const it = routingFixture(2);
  it.runtime.advance(3_000);
  it.latencyOf = () => null;
  const calls = ["a", "b"].map((caller) => it.ask({ caller }));
  it.runtime.advance(300);
  it.runtime.stall(3_000);
  const left = it.ask({ caller: "c" });
  assert.equal(calls[1]?.route.cancel().countedAsTimeout, false, "its answer may be here");
  it.runtime.advance(5);
  assert.equal(it.stateOf(0), "closed");
  for (const { provider, listener } of it.sent) {
    const value = Buffer.from('"0x1"');
    if (provider === "p0") listener.result(value, { start: 0, end: value.length, idAt: null });
  }
  it.runtime.advance(900);
  assert.deepEqual(
    [calls[0]?.outcome()?.kind, left.outcome()?.kind, it.stateOf(0)],
    ["result", "result", "closed"],
  );
});

test(
  "an answer to anything shows that a provider is there: what is slow beside it is a reading, " +
    "not a timeout",
  () => {
    const it = routingFixture(1, { probed: false });
    it.latencyOf = (_, method) => (method === SLOW ? null : 10);
    for (let n = 0; n < 30; n++) it.ask({ caller: `warm${n}` });
    it.runtime.advance(50);
    const before = it.tracker.health(it.providers[0] ?? assert.fail(), "http").averageMs ?? 0;
    const slow = ["a", "b", "c"].map((caller) =>
      it.ask({ method: SLOW, caller, deadlineMs: 30_000 }),
    );
    for (let n = 0; n < 20; n++) {
      it.ask();
      it.runtime.advance(200);
    }
    for (const { route } of slow) assert.equal(route.cancel().countedAsTimeout, false);
    const report = it.tracker.health(it.providers[0] ?? assert.fail(), "http");
    assert.equal(report.breaker, "closed");
    assert.ok(
      (report.averageMs ?? 0) > before + 100,
      `${before} ms rose to ${report.averageMs} ms`,
    );
    assert.ok((report.p99Ms ?? 0) < 50, "what nobody waited for is no answer");
  },
);

test(
  "what waits for a connection of a provider goes to another as soon as one is free there, and " +
    "leaves when the circuit opens",
  () => {
    const it = routingFixture(2);
    it.runtime.advance(3_000);
    it.connections.set("p0", 1).set("p1", 1);
    it.latencyOf = (id, method) => (id === "p0" ? null : method === "probe" ? 10 : 400);
    const first = it.ask({ caller: "a" });
    const second = it.ask({ caller: "b" });
    const third = it.ask({ caller: "c" });
    assert.deepEqual(
      it.sent
        .filter((it) => !it.isProbe)
        .map((it) => `${it.provider} ${it.queued ? "waits" : "sent"}`),
      ["p0 sent", "p1 sent", "p0 waits"],
      "nobody waits while another provider is free",
    );
    it.runtime.advance(600);
    assert.equal(second.tookMs(), 400);
    assert.equal(
      third.route.traces.at(0)?.attempt.verdict?.category,
      "no_connection",
      "it left for p1 when that was free",
    );
    it.runtime.advance(400);
    assert.ok((third.tookMs() ?? 9_999) < 1_000, `${third.tookMs()} ms`);
    assert.equal(first.tookMs(), null);
  },
);

test("a queue of our own making is no failure of the provider", () => {
  const it = routingFixture(1);
  it.runtime.advance(3_000);
  it.connections.set("p0", 1);
  it.latencyOf = (_, method) => (method === "probe" ? 10 : 60_000);
  it.ask({ method: SLOW, caller: "a", deadlineMs: 45_000 });
  const waiting = Array.from({ length: 20 }, (_, n) =>
    it.ask({ caller: `b${n}`, deadlineMs: 2_000 }),
  );
  it.runtime.advance(3_000);
  for (const { outcome } of waiting) assert.equal(outcome()?.kind, "fault");
  assert.equal(it.stateOf(0), "closed");
});

test(
  "a slow trial keeps its caller waiting no longer than usual: the next one answers, and the " +
    "trial still counts",
  () => {
    const it = routingFixture(2, { exploreShare: 1, probed: false });
    for (let n = 0; n < 30; n++) it.ask();
    it.runtime.advance(50);
    it.failures.set("p0", { ...plainFailure("body", ""), httpStatus: 500 });
    for (let n = 0; n < 5; n++) {
      it.ask();
      it.runtime.advance(50);
    }
    assert.equal(it.stateOf(0), "open");
    it.failures.clear();
    it.latencyOf = (id) => (id === "p0" ? 300 : 10);
    it.runtime.advance(31_600);
    assert.equal(it.stateOf(0), "half_open");
    const call = it.ask();
    it.runtime.advance(100);
    assert.equal(call.outcome()?.kind, "result");
    assert.ok((call.tookMs() ?? 9_999) <= 60, `${call.tookMs()} ms`);
    assert.equal(it.attemptsOf(call), "p0:overtaken p1:ok");
    it.runtime.advance(300);
    const again = it.ask();
    it.runtime.advance(400);
    assert.equal(again.outcome()?.kind, "result");
    assert.equal(it.stateOf(0), "closed", "both trials were answered, if late");
  },
);

test("a hung trial counts as a timeout though its caller was answered by another", () => {
  const it = routingFixture(2, { exploreShare: 1, probed: false });
  it.ask();
  it.runtime.advance(50);
  it.failures.set("p0", { ...plainFailure("body", ""), httpStatus: 500 });
  for (let n = 0; n < 5; n++) {
    it.ask();
    it.runtime.advance(50);
  }
  it.runtime.advance(31_600);
  it.latencyOf = (id) => (id === "p0" ? null : 10);
  const call = it.ask();
  it.runtime.advance(1_040);
  assert.equal(call.outcome()?.kind, "result");
  it.runtime.advance(200);
  assert.equal(it.stateOf(0), "open");
  const { listener } = it.sent.filter((sent) => sent.provider === "p0").at(-1) ?? assert.fail();
  assert.equal(
    it.sent.find((sent) => sent.listener === listener)?.cancelled,
    true,
    "nobody waits for it any more",
  );
});

test("a write is never moved once it was sent", () => {
  const it = routingFixture(2);
  it.runtime.advance(3_000);
  it.latencyOf = (id) => (id === "p0" ? null : 10);
  const writes = ["a", "b"].map((caller) => it.ask({ caller, method: "eth_sendRawTransaction" }));
  it.runtime.advance(1_600);
  assert.equal(it.stateOf(0), "open");
  for (const { outcome } of writes) assert.equal(outcome(), null);
  assert.equal(it.sent.filter((sent) => !sent.isProbe && sent.provider === "p1").length, 0);
});

test("where nobody else is left, calls keep waiting for the provider whose circuit opened", () => {
  const it = routingFixture(1, { probed: false });
  it.latencyOf = () => 2_500;
  const calls = ["a", "b"].map((caller) => it.ask({ caller }));
  it.runtime.advance(1_300);
  assert.equal(it.stateOf(0), "open");
  it.runtime.advance(1_300);
  for (const { outcome } of calls) assert.equal(outcome()?.kind, "result");
});

test(
  "the watch of a set that was replaced ends with the last attempt it was told of, however " +
    "much is out on the next one",
  () => {
    const runtime = simulatedWorld(4);
    let timers = 0;
    const counted = {
      ...runtime,
      after(ms: number, run: () => void) {
        timers++;
        return runtime.after(ms, run);
      },
    };
    const set = fakeSet([fakeProvider(0, { wsUrl: null })]);
    const outOn = (tracker: Tracker) => {
      const out = {
        ...channel,
        method: methodOf("eth_getBalance"),
        caller: { key: "c" },
        counts: "all" as const,
        startedAtMs: runtime.now(),
        sent: true,
        queued: false,
        batch: null,
      };
      const began = {
        ...out,
        sentAtMs: null,
        connectingAtMs: null,
        watched: null,
        counted: false,
        before: null,
        after: null,
        moveAway: () => {},
      };
      tracker.begin(began);
      return () => {
        const attempt = {
          ...channel,
          latencyMs: runtime.now() - began.startedAtMs,
          verdict: null,
          code: null,
        };
        tracker.end(began, {
          attempt,
          call: { method: began.method, methodName: "eth_getBalance", block: NO_BLOCK },
          by: "answered",
          nowMs: runtime.now(),
        });
      };
    };
    const [provider] = set.providers;
    assert.ok(provider !== undefined);
    const channel = { provider, transport: "http" as const };
    const before = new Tracker(set, counted, SELECTION);
    const endOfOld = outOn(before);
    runtime.advance(250);
    const after = new Tracker(set, runtime, SELECTION, before);
    let end = outOn(after);
    runtime.advance(250);
    const whileOut = timers;
    assert.ok(whileOut >= 4, "its own attempt is watched on");
    endOfOld();
    for (let n = 0; n < 100; n++) {
      const next = outOn(after);
      end();
      end = next;
      runtime.advance(50);
    }
    assert.ok(
      timers <= whileOut + 2,
      `${timers - whileOut} looks after the last attempt had ended`,
    );
  },
);
