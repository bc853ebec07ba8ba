// Seeded simulations of reads that are hedged: providers that hang, are slow, refuse or return,
// under a load of callers who wait or leave. What holds on every such day: no more further calls
// than the budget, writes at one provider, every call told once, nothing left out. And how quick
// the calls are. A failure names its seed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_HEDGE } from "../../src/core/routing/hedge.ts";
import { STRATEGY_NAMES } from "../../src/core/routing/strategy.ts";
import { plainFailure } from "../../src/core/rpc/failure.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { type Routed, type RoutingFixture, routingFixture } from "../fakes/routing.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { chanceSeeds } from "../fakes/seed.ts";

const READ = "eth_getBalance";
const METHOD = methodOf(READ);
const WRITE = "eth_sendRawTransaction";

/** Attempts of a call that were begun as hedges. */
function hedgesOf({ route }: Routed): number {
  return route.traces.filter(({ attempt }) => attempt.hedgedAfterMs !== undefined).length;
}

/** Calls that providers were asked, probes left out. */
function callsSent(fixture: RoutingFixture): number {
  return fixture.sent.filter(({ isProbe }) => !isProbe).length;
}

/** A day of many calls, one every so many milliseconds. */
function load(
  fixture: RoutingFixture,
  { calls, everyMs }: { readonly calls: number; readonly everyMs: number },
): readonly Routed[] {
  const asked: Routed[] = [];
  for (let call = 0; call < calls; call++) {
    asked.push(fixture.ask({ method: READ, strategy: "load-balanced" }));
    fixture.runtime.advance(everyMs);
  }
  fixture.runtime.advance(20_000);
  return asked;
}

test("of three providers one hangs 6 % of its answers for 2 s: at most 1 call in 1,000 takes 500 ms, at 5 % more calls", () => {
  const slow = { off: 0, on: 0 };
  for (const hedged of [false, true]) {
    const random = seededRandom(1);
    const fixture = routingFixture(3, hedged ? { hedge: DEFAULT_HEDGE } : {});
    fixture.latencyOf = (id) => (id === "p1" && random() < 0.06 ? 2_000 : 4 + random() * 8);
    const calls = load(fixture, { calls: 20_000, everyMs: 5 });
    assert.ok(calls.every((call) => call.outcome()?.kind === "result"));
    const late = calls.filter((call) => (call.tookMs() ?? Number.POSITIVE_INFINITY) > 500).length;
    slow[hedged ? "on" : "off"] = late;
    assert.ok(callsSent(fixture) <= 1.05 * calls.length, `${callsSent(fixture)} calls`);
  }
  assert.ok(slow.off > 0.015 * 20_000, `without hedges ${slow.off} are slow`);
  assert.ok(slow.on <= 0.001 * 20_000, `${slow.on} are slow`);
});

test("of two providers one hangs, with and without its probes: hardly any call waits, and it comes back", () => {
  for (const answersProbes of [true, false]) {
    const random = seededRandom(2);
    const fixture = routingFixture(2, { hedge: DEFAULT_HEDGE });
    let hangs = false;
    fixture.latencyOf = (id, method) =>
      id === "p1" && hangs && !(answersProbes && method === "probe") ? null : 4 + random() * 8;
    load(fixture, { calls: 2_000, everyMs: 5 });
    const before = callsSent(fixture);
    hangs = true;
    const calls = load(fixture, { calls: 6_000, everyMs: 5 });
    assert.ok(calls.every((call) => call.outcome()?.kind === "result"));
    const late = calls.filter((call) => (call.tookMs() ?? Number.POSITIVE_INFINITY) > 100).length;
    assert.ok(late <= 0.01 * calls.length, `${late} are late`);
    assert.ok(callsSent(fixture) - before <= 1.05 * calls.length, `${callsSent(fixture)} calls`);
    hangs = false;
    fixture.runtime.advance(60_000);
    const after = load(fixture, { calls: 1_000, everyMs: 5 });
    const atOne = after.filter((call) => fixture.attemptsOf(call) === "p1:ok").length;
    assert.ok(atOne > 400, `${atOne} of 1,000 go to it again`);
  }
});

for (const strategy of STRATEGY_NAMES) {
  for (const seed of chanceSeeds(5)) {
    test(`on any day calls are told once, and further ones keep to the budget (${strategy}, seed ${seed})`, () => {
      const random = seededRandom(seed);
      const fixture = routingFixture(2 + Math.floor(random() * 3), {
        seed: seed + 1,
        exploreShare: 0.02,
        hedge: DEFAULT_HEDGE,
      });
      const moods = new Map<string, number>();
      fixture.latencyOf = (id) => {
        const mood = moods.get(id) ?? 0;
        if (random() < mood) return random() < 0.5 ? null : 500 + random() * 4_000;
        return 3 + random() * 60;
      };
      const calls: { readonly routed: Routed; readonly write: boolean; left: boolean }[] = [];
      for (let step = 0; step < 2_000; step++) {
        if (step % 200 === 0)
          for (const { id } of fixture.providers) {
            moods.set(id, random() < 0.5 ? 0 : random() ** 2);
            if (random() < 0.1)
              fixture.failures.set(id, plainFailure("network", "connection reset"));
            else fixture.failures.delete(id);
          }
        const write = random() < 0.1;
        const deadlineMs = 1_000 + random() * 9_000;
        const method = write ? WRITE : READ;
        const caller = `caller ${step % 7}`;
        const routed = fixture.ask({ method, strategy, caller, deadlineMs });
        calls.push({ routed, write, left: false });
        const leaver = calls[Math.floor(random() * calls.length)];
        if (random() < 0.1 && leaver !== undefined && leaver.routed.endings() === 0) {
          leaver.routed.route.cancel();
          leaver.left = true;
        }
        fixture.runtime.advance(random() * 40);
      }
      fixture.runtime.advance(60_000);
      const reads = calls.filter(({ write }) => !write).length;
      const hedges = calls.reduce((sum, { routed }) => sum + hedgesOf(routed), 0);
      assert.ok(hedges <= DEFAULT_HEDGE.maxExtra * reads + 1e-6, `${hedges} of ${reads} reads`);
      for (const { routed, write, left } of calls) {
        assert.equal(routed.endings(), left ? 0 : 1);
        if (write) assert.equal(hedgesOf(routed), 0, "a write is never hedged");
      }
      for (const one of fixture.sent)
        assert.ok(one.isProbe || one.answered || one.cancelled, "nothing stays out");
      const traced = calls.reduce((sum, { routed }) => sum + routed.route.traces.length, 0);
      assert.equal(traced, callsSent(fixture), "every attempt is evidence");
    });
  }
}

test("a hedge goes to a provider in the best health alone", () => {
  for (const [why, spoil] of [
    ["limited", (at: RoutingFixture) => limit(at, 1)],
    ["circuit", (at: RoutingFixture) => open(at, 1)],
  ] as const) {
    const fixture = routingFixture(2, { hedge: { ...DEFAULT_HEDGE, maxExtra: 1 }, probed: false });
    for (let call = 0; call < 50; call++) {
      fixture.ask({ method: READ });
      fixture.runtime.advance(20);
    }
    spoil(fixture);
    fixture.latencyOf = (id) => (id === "p0" ? 900 : 10);
    const routed = fixture.ask({ method: READ });
    fixture.runtime.advance(1_500);
    assert.equal(fixture.attemptsOf(routed), "p0:ok", why);
  }
});

/** A provider has said that it is asked too often. */
function limit({ tracker, providers }: RoutingFixture, index: number): void {
  const provider = providers[index] ?? assert.fail();
  const verdict = {
    category: "rate_limit",
    step: "next",
    effect: { kind: "cooldown", ms: 60_000 },
  } as const;
  tracker.record(METHOD, { provider, transport: "http", latencyMs: 1, verdict, code: 429 });
}

/** The circuit of a provider has opened, and is half-open. */
function open({ tracker, providers, runtime, stateOf }: RoutingFixture, index: number): void {
  const provider = providers[index] ?? assert.fail();
  const effect = { kind: "failure", cause: "server" } as const;
  const verdict = { category: "server", step: "next", effect } as const;
  for (let n = 0; n < 5; n++)
    tracker.record(METHOD, { provider, transport: "http", latencyMs: 1, verdict, code: 500 });
  assert.equal(stateOf(index), "open");
  runtime.advance(40_000);
}
