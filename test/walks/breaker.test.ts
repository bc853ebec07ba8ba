// The circuit of a provider through the router and the tracker, in simulated time: it opens, keeps
// its trial to one call, closes and reopens.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Provider } from "../../src/core/provider/profile.ts";
import type { Call } from "../../src/core/rpc/call.ts";
import type { Failure } from "../../src/core/rpc/failure.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import type { Outcome } from "../../src/upstream/engine/answer.ts";
import { type RoutedCall, Router } from "../../src/upstream/engine/router.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import type {
  AnswerListener,
  Dispatch,
  OutgoingRequest,
  Upstream,
} from "../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { type SimulatedWorld, simulatedWorld } from "../fakes/runtime.ts";

interface Sent {
  readonly provider: string;
  readonly listener: AnswerListener;
  cancelled: boolean;
}

/** What a provider does with a request: answer, fail, or let it hang. */
type Mood = "well" | "broken" | "hanging";

interface Fixture {
  readonly runtime: SimulatedWorld;
  readonly tracker: Tracker;
  readonly router: Router;
  readonly providers: readonly Provider[];
  readonly sent: Sent[];
  readonly moods: Map<string, Mood>;
  /** Routes a call and returns how it ended, or null while it has not. */
  route(options?: {
    readonly pin?: Provider;
    readonly method?: string;
    readonly caller?: string;
    readonly deadlineMs?: number;
  }): {
    readonly outcome: () => Outcome | null;
    readonly route: RoutedCall;
  };
}

const RESULT = Buffer.from('"0x1"');
const BROKEN: Failure = {
  kind: "body",
  httpStatus: 500,
  retryAfter: null,
  code: null,
  message: "",
  data: null,
};

function createFixture(count: number): Fixture {
  const runtime = simulatedWorld(7);
  const providers = Array.from({ length: count }, (_, index) =>
    fakeProvider(index, { priority: index }),
  );
  const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
  const sent: Sent[] = [];
  const moods = new Map<string, Mood>();
  const upstream: Upstream = {
    send(outgoing: OutgoingRequest, listener: AnswerListener): Dispatch {
      const one: Sent = { provider: outgoing.provider.id, listener, cancelled: false };
      sent.push(one);
      const mood = moods.get(one.provider) ?? "well";
      runtime.after(5, () => {
        if (one.cancelled || mood === "hanging") return;
        if (mood === "well") listener.result(RESULT, { start: 0, end: RESULT.length, idAt: null });
        else listener.failed(BROKEN, null);
      });
      return { sent: true, cancel: () => (one.cancelled = true) };
    },
    retain() {},
    async close() {},
  };
  const limits = () => ({ maxAttempts: 3, firstAttemptShare: 0.6 });
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    upstreams: { http: upstream },
    limits,
    hedge: () => null,
  });
  return {
    runtime,
    tracker,
    router,
    providers,
    sent,
    moods,
    route({ pin, method = "eth_gasPrice", caller = "test", deadlineMs = 1_000 } = {}) {
      let ended: Outcome | null = null;
      const call: Call = {
        methodName: method,
        method: methodOf(method),
        block: { kind: "none" },
        ...writeRequest(method, null),
      };
      const request = {
        call,
        tracker,
        strategy: "priority",
        pin: pin ?? null,
        transport: "http",
        avoid: null,
        caller: { key: caller },
        deadlineMs,
        mayStream: true,
      } as const;
      const route = router.route(request, ({ outcome }) => {
        ended = outcome;
      });
      return { outcome: () => ended, route };
    },
  };
}

function first({ providers }: Fixture): Provider {
  const [provider] = providers;
  assert.ok(provider !== undefined);
  return provider;
}

function stateOf(it: Fixture): string {
  return it.tracker.health(first(it), "http").breaker;
}

/** Lets five calls meet a first provider that has answered and is broken now. */
function openFirst(it: Fixture): void {
  it.route();
  it.runtime.advance(20);
  it.moods.set("p0", "broken");
  for (let n = 0; n < 5; n++) {
    const { outcome } = it.route();
    it.runtime.advance(20);
    assert.notEqual(outcome(), null);
  }
  assert.equal(stateOf(it), "open");
}

function faultOf(outcome: Outcome | null): { readonly code: string; readonly attempts: unknown } {
  assert.ok(outcome?.kind === "fault");
  return { code: outcome.fault.code, attempts: outcome.fault.details["upstream_attempts"] };
}

test(
  "five server failures open the circuit; from then on calls go elsewhere and a pin is refused " +
    "without an attempt",
  () => {
    const it = createFixture(2);
    openFirst(it);
    const before = it.sent.length;
    const { outcome, route } = it.route();
    it.runtime.advance(20);
    assert.equal(outcome()?.kind, "result");
    assert.deepEqual(
      route.traces.map(({ attempt }) => attempt.provider.id),
      ["p1"],
    );
    const pinned = it.route({ pin: first(it) });
    assert.deepEqual(faultOf(pinned.outcome()), { code: "unavailable", attempts: 0 });
    assert.equal(it.sent.length, before + 1);
  },
);

test(
  "two callers who meet silence for a second open it, and their calls are asked of the next " +
    "provider at once",
  () => {
    const it = createFixture(2);
    it.moods.set("p0", "hanging");
    const calls = ["one", "other"].map((caller) => it.route({ caller, deadlineMs: 10_000 }));
    it.runtime.advance(950);
    assert.equal(stateOf(it), "closed");
    it.runtime.advance(250);
    assert.equal(stateOf(it), "open");
    for (const { outcome, route } of calls) {
      assert.equal(outcome()?.kind, "result");
      assert.deepEqual(
        route.traces.map(({ attempt }) => attempt.provider.id),
        ["p0", "p1"],
      );
    }
  },
);

test("attempts that end at their deadline before a second has passed open nothing", () => {
  const it = createFixture(2);
  it.moods.set("p0", "hanging");
  for (let n = 0; n < 5; n++) {
    const { outcome } = it.route({ caller: `c${n}` });
    it.runtime.advance(700);
    assert.equal(outcome()?.kind, "result", "the next provider has answered within the deadline");
  }
  assert.equal(stateOf(it), "closed");
});

test("after its wait the circuit is half-open: one trial at a time, two successes close it", () => {
  const it = createFixture(1);
  openFirst(it);
  it.runtime.advance(28_000);
  assert.equal(faultOf(it.route().outcome()).attempts, 0, "still open at 28 s");
  it.runtime.advance(4_000);
  assert.equal(stateOf(it), "half_open");
  it.moods.set("p0", "well");
  const trial = it.route();
  const beside = it.route();
  assert.deepEqual(faultOf(beside.outcome()), { code: "unavailable", attempts: 0 });
  it.runtime.advance(20);
  assert.equal(trial.outcome()?.kind, "result");
  assert.equal(stateOf(it), "half_open");
  it.route();
  it.runtime.advance(20);
  assert.equal(stateOf(it), "closed");
});

test("a failed trial reopens it for twice as long", () => {
  const it = createFixture(1);
  openFirst(it);
  it.runtime.advance(32_000);
  const { outcome } = it.route();
  it.runtime.advance(20);
  assert.notEqual(outcome(), null);
  assert.equal(stateOf(it), "open");
  it.runtime.advance(55_000);
  assert.equal(stateOf(it), "open");
  it.runtime.advance(9_000);
  assert.equal(stateOf(it), "half_open");
});

test(
  "a trial whose caller leaves gives its permit back, whether it is waiting or was never " +
    "answered",
  () => {
    const it = createFixture(1);
    openFirst(it);
    it.runtime.advance(32_000);
    it.moods.set("p0", "hanging");
    it.route().route.cancel();
    assert.equal(it.sent.at(-1)?.cancelled, true);
    it.moods.set("p0", "well");
    const { outcome } = it.route();
    it.runtime.advance(20);
    assert.equal(outcome()?.kind, "result");
    assert.equal(stateOf(it), "half_open");
  },
);

test(
  "a call that must not be sent twice never uses a half-open provider while a closed one is " +
    "there",
  () => {
    const it = createFixture(2);
    openFirst(it);
    it.runtime.advance(32_000);
    for (let n = 0; n < 50; n++) {
      const { route } = it.route({ method: "eth_sendRawTransaction" });
      it.runtime.advance(20);
      assert.deepEqual(
        route.traces.map(({ attempt }) => attempt.provider.id),
        ["p1"],
      );
    }
  },
);

test("every call ends by its deadline and leaves no timer", () => {
  const it = createFixture(3);
  const moods: readonly Mood[] = ["well", "broken", "hanging"];
  for (let n = 0; n < 300; n++) {
    for (const { id } of it.providers)
      it.moods.set(id, moods[Math.floor(it.runtime.random() * 3)] ?? "well");
    const { outcome, route } = it.route({
      method: n % 3 === 0 ? "vendor_doSomething" : "eth_gasPrice",
    });
    const cancelled = n % 7 === 0 && outcome() === null;
    if (cancelled) route.cancel();
    it.runtime.advance(n % 10 === 0 ? 40_000 : 1_050);
    assert.equal(outcome() === null, cancelled, `call ${n}`);
    assert.ok(route.traces.length <= 3);
  }
  it.runtime.advance(20_000);
  assert.equal(it.runtime.pendingTimers(), 0);
});
