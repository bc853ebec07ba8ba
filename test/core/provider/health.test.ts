// The health of one channel: what moves its circuit, what only counts, and that the permit of a
// trial always comes back.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Attempt, Effect } from "../../../src/core/provider/attempt.ts";
import { admitted, RUN_TO_OPEN } from "../../../src/core/provider/breaker.ts";
import { capability } from "../../../src/core/provider/capability.ts";
import {
  Health,
  isBehind,
  limitedMethods,
  methodLimitedForMs,
  recordAttempt,
  recordCut,
  recordGoodProbe,
  recordSilence,
  recordVerdict,
} from "../../../src/core/provider/health.ts";
import { historyOf } from "../../../src/core/provider/history.ts";
import { usualMs } from "../../../src/core/provider/latency.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { fakeCall, fakeProvider, verdict } from "../../fakes/providers.ts";

const METHOD = methodOf("eth_getBalance");
const WELL = {
  transport: "http",
  wrongChain: false,
  cordoned: false,
  cordonedByOperator: false,
  behind: false,
  lagBlocks: null,
  unserved: false,
} as const;
const OTHER = methodOf("eth_call");
const PROVIDER = fakeProvider(0);
const TIMEOUT: Effect = { kind: "failure", cause: "timeout" };
const SERVER: Effect = { kind: "failure", cause: "server" };
/** Effects that are about the provider's abilities or about us, never about whether it works. */
const HARMLESS: readonly Effect[] = [
  { kind: "ignored" },
  { kind: "cooldown", ms: 1_000 },
  { kind: "cooldown", ms: 1_000, scope: "method" },
  { kind: "cordon", reason: "quota" },
  { kind: "cordon", reason: "wrong_chain" },
  { kind: "learn", what: "method" },
  { kind: "learn", what: "tag" },
  { kind: "learn", what: "pruned" },
  { kind: "learn", what: "range", maxBlockRange: 100 },
  { kind: "lag" },
];

const ending = (nowMs: number) => ({
  block: { kind: "none" as const },
  head: null,
  nowMs,
  random: () => 0.5,
});

function attempt(effect: Effect | null, incident?: object): Attempt {
  return {
    provider: PROVIDER,
    transport: "http",
    latencyMs: 10,
    verdict: effect === null ? null : verdict(effect),
    code: null,
    ...(incident === undefined ? {} : { incident }),
  };
}

function record(health: Health, effect: Effect | null, nowMs = 1_000): void {
  recordAttempt(health, METHOD, attempt(effect), ending(nowMs));
}

function kindOf({ breaker }: Health): string {
  return breaker.kind;
}

/** A circuit with one trial under way. */
function onTrial(): Health {
  const health = new Health();
  health.breaker = {
    kind: "half_open",
    openedAtMs: 0,
    sinceMs: 30_000,
    probedAtMs: null,
    openings: 1,
    successes: 0,
    trialAtMs: null,
    goodProbes: 0,
  };
  health.breaker = admitted(health.breaker, 40_000) ?? assert.fail();
  return health;
}

test("property: what says nothing about whether a provider works never moves its circuit, however often", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...HARMLESS), { maxLength: 50 }), (effects) => {
      const health = new Health();
      for (const effect of effects) record(health, effect);
      assert.equal(health.breaker, new Health().breaker);
    }),
  );
});

test("every ending of a trial gives its permit back", () => {
  const at = ending(40_010);
  for (const effect of [null, TIMEOUT, ...HARMLESS]) {
    const health = onTrial();
    recordAttempt(health, METHOD, attempt(effect), at);
    const { breaker } = health;
    assert.ok(breaker.kind !== "half_open" || breaker.trialAtMs === null, effect?.kind ?? "result");
  }
  for (const silent of [true, false]) {
    const health = onTrial();
    recordCut(
      health,
      METHOD,
      { verdict: verdict(TIMEOUT), latencyMs: 10, silent, givenUp: true },
      at,
    );
    assert.equal(health.breaker.kind, "half_open");
    assert.equal(health.breaker.kind === "half_open" && health.breaker.trialAtMs, null);
  }
});

test("property: every attempt is counted exactly once, by what became of it", () => {
  const effects = fc.constantFrom(null, TIMEOUT, SERVER, ...HARMLESS);
  fc.assert(
    fc.property(fc.array(effects, { maxLength: 60 }), (all) => {
      const health = new Health();
      for (const [index, effect] of all.entries()) record(health, effect, 1_000 + index);
      const { delivered, failed, rateLimited, neutral, cancelled } = health.outcomes;
      assert.equal(delivered + failed + rateLimited + neutral + cancelled, all.length);
      assert.equal(delivered, all.filter((effect) => effect === null).length);
      assert.equal(failed, all.filter((effect) => effect?.kind === "failure").length);
      assert.equal(rateLimited, all.filter((effect) => effect?.kind === "cooldown").length);
    }),
  );
});

test("an attempt that we ended moves no circuit, however many there are", () => {
  const health = new Health();
  for (let n = 0; n < 100; n++)
    recordCut(
      health,
      METHOD,
      { verdict: verdict(TIMEOUT), latencyMs: 5_000, silent: n % 2 === 0, givenUp: true },
      ending(n * 10),
    );
  assert.equal(health.breaker.kind, "closed");
  assert.equal(health.outcomes.failed, 100);
});

test("an attempt that was given up late counts as one that hung, and one that its caller left does not", () => {
  const cut = (givenUp: boolean, latencyMs: number) => ({
    verdict: verdict({ kind: "ignored" }),
    latencyMs,
    silent: false,
    givenUp,
  });
  const health = new Health();
  for (let n = 0; n < 100; n++) record(health, null, n);
  const usual = usualMs(health.latency, METHOD, 0.95) ?? assert.fail();
  const giveUp = (times: number, how = cut(true, usual + 50)): void => {
    for (let n = 0; n < times; n++) recordCut(health, METHOD, how, ending(1_000));
  };
  giveUp(20, cut(true, usual / 2));
  giveUp(20, cut(false, usual + 50));
  assert.equal(
    health.stall.isStalled(1_000),
    false,
    "early ones and callers who leave say nothing",
  );
  giveUp(5);
  assert.equal(health.stall.isStalled(1_000), false);
  giveUp(1);
  assert.equal(health.stall.isStalled(1_000), true);
  assert.equal(health.breaker.kind, "closed", "the circuit is not concerned");
  for (let n = 0; n < 44; n++) record(health, null, 1_001);
  assert.equal(health.stall.isStalled(1_001), true, "six of the last fifty");
  record(health, null, 1_001);
  assert.equal(health.stall.isStalled(1_001), false, "five of the last fifty");
});

test("a trial that is answered after its call was answered elsewhere counts as one that hung", () => {
  const health = new Health();
  for (let n = 0; n < 100; n++) record(health, null, n);
  const late: Attempt = { ...attempt(null), latencyMs: 500, overtaken: true };
  for (let n = 0; n < 6; n++) recordAttempt(health, METHOD, late, ending(1_000));
  assert.equal(health.stall.isStalled(1_000), true);
});

test("one caller's silent attempts open no circuit by themselves within ten seconds; those of several do", () => {
  const health = new Health();
  const counts = Array.from({ length: 50 }, (_, n) =>
    recordSilence(health, "one", 1_500, ending(10_000 + n)),
  );
  assert.deepEqual(counts.indexOf(true), 0);
  assert.equal(counts.filter((counted) => counted).length, 1);
  assert.equal(health.breaker.kind, "closed");
  recordSilence(health, "another", 1_500, ending(10_100));
  assert.equal(RUN_TO_OPEN.timeout, 2);
  assert.equal(health.breaker.kind, "open");
  assert.equal(health.openings.silence, 1, "and it is told by what it was opened");
  assert.equal(health.openings.timeout, 0);
});

test("one event that failed many requests counts once", () => {
  const health = new Health();
  const incident = {};
  for (let n = 0; n < 20; n++)
    recordAttempt(health, METHOD, attempt(SERVER, incident), ending(1_000 + n));
  assert.equal(health.breaker.kind === "closed" && health.breaker.failures, 1);
  recordVerdict(
    health,
    METHOD,
    { verdict: verdict(SERVER), latencyMs: 0, incident: {} },
    ending(2_000),
  );
  assert.equal(health.breaker.kind === "closed" && health.breaker.failures, 2);
  assert.equal(health.outcomes.failed, 20, "a verdict about a connection is no attempt");
});

test("a rate limit of one method holds up that method alone, one of the provider all of them", () => {
  const health = new Health();
  record(health, { kind: "cooldown", ms: 5_000, scope: "method" });
  assert.deepEqual(
    [METHOD, OTHER].map((method) => methodLimitedForMs(health, method, 2_000)),
    [4_000, 0],
  );
  assert.deepEqual(limitedMethods(health, 2_000), [METHOD.name]);
  record(health, { kind: "cooldown", ms: 9_000 });
  assert.deepEqual(
    [METHOD, OTHER].map((method) => methodLimitedForMs(health, method, 2_000)),
    [8_000, 8_000],
  );
  assert.deepEqual(limitedMethods(health, 6_000), []);
});

test("a provider is behind for thirty seconds after it said so, and not before a clock that jumped back", () => {
  const health = new Health();
  assert.equal(isBehind(health, 0), false);
  record(health, { kind: "lag" }, 100_000);
  assert.deepEqual(
    [99_999, 100_000, 129_999, 130_000].map((nowMs) => isBehind(health, nowMs)),
    [false, true, true, false],
  );
});

test("no call begins a cordon or ends one: its method is avoided for 30 s, and no circuit opens", () => {
  const health = new Health();
  for (const reason of ["auth", "quota", "wrong_chain"] as const)
    for (let n = 0; n < 5; n++) record(health, { kind: "cordon", reason }, 1_000);
  assert.deepEqual([health.cordon, kindOf(health), health.throttle], [null, "closed", null]);
  assert.deepEqual(limitedMethods(health, 30_999), [METHOD.name]);
  assert.deepEqual(limitedMethods(health, 31_000), []);
  health.cordon = "auth";
  record(health, null, 2_000);
  assert.equal(health.cordon, "auth");
});

test("what a caller's words may have taught holds for their method alone, and for 30 s", () => {
  const health = new Health();
  const learn = (what: "pruned" | "method"): void =>
    record(health, { kind: "learn", what, brief: true }, 1_000);
  const provider = fakeProvider(0, { archival: true });
  const reasonAt = (nowMs: number, name = METHOD.name): string | null =>
    capability(
      provider,
      fakeCall(name, { kind: "number", number: 5 }),
      { nowMs, head: 1_000_000, archivalThreshold: 128, maxLagBlocks: 5 },
      { ...WELL, facts: health.facts, history: historyOf(provider, 128, null) },
    );
  for (const [what, reason] of [
    ["pruned", "archival_required"],
    ["method", "method_unsupported"],
  ] as const) {
    learn(what);
    assert.equal(reasonAt(30_999), reason);
    assert.equal(reasonAt(30_999, "eth_call"), null);
    assert.equal(reasonAt(31_000), null);
  }
});

test("a good probe makes an open circuit half-open, and no other", () => {
  const health = new Health();
  recordGoodProbe(health, 5, 1_000);
  assert.equal(kindOf(health), "closed");
  for (let n = 0; n < 2; n++) record(health, TIMEOUT, 2_000 + n);
  assert.equal(kindOf(health), "open");
  recordGoodProbe(health, 5, 3_000);
  assert.equal(kindOf(health), "half_open");
});
