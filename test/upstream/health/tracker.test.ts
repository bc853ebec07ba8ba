// The routing state of a set: what attempts and probes do to it, what plans and reports say of it,
// what survives a reload.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Effect, Verdict } from "../../../src/core/provider/attempt.ts";
import type { Cordon } from "../../../src/core/provider/health.ts";
import type { Provider, ProviderSet, Transport } from "../../../src/core/provider/profile.ts";
import type { SelectionSettings, Strategy } from "../../../src/core/routing/strategy.ts";
import type { BlockRef } from "../../../src/core/rpc/call.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { fakeCall, fakeProvider, fakeSet, SELECTION, verdict } from "../../fakes/providers.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/runtime.ts";

const TIMEOUT: Effect = { kind: "failure", cause: "timeout" };
const BALANCE = methodOf("eth_getBalance");

interface Fixture {
  readonly runtime: SimulatedWorld;
  readonly set: ProviderSet;
  readonly tracker: Tracker;
  readonly providers: readonly [Provider, Provider, Provider];
  readonly plan: (
    method?: string,
    ask?: {
      readonly block?: BlockRef;
      readonly strategy?: Strategy;
      readonly transport?: Transport;
      readonly pin?: Provider;
    },
  ) => string[];
  readonly reasons: (method?: string, block?: BlockRef) => Record<string, string>;
  readonly hear: (
    provider: Provider,
    outcome: Effect | Verdict | null,
    about?: {
      readonly method?: string;
      readonly block?: BlockRef;
      readonly latencyMs?: number;
      readonly transport?: Transport;
    },
  ) => void;
  readonly refuse: (
    provider: Provider,
    cordon: Cordon,
    about?: { readonly transport?: Transport },
  ) => void;
  readonly probe: (
    provider: Provider,
    height: number,
    about?: {
      readonly chainId?: number;
      readonly transport?: Transport;
      readonly latencyMs?: number;
    },
  ) => void;
}

/** Three providers of falling priority, so that plans are exact. */
function createFixture(
  overrides: {
    readonly providers?: Partial<Provider>;
    readonly settings?: Partial<SelectionSettings>;
    readonly regions?: readonly (string | null)[];
    readonly set?: Partial<ProviderSet>;
  } = {},
): Fixture {
  const runtime = simulatedWorld(1);
  const make = (index: number): Provider =>
    fakeProvider(index, {
      priority: index,
      region: overrides.regions?.[index] ?? null,
      ...overrides.providers,
    });
  const providers = [make(0), make(1), make(2)] as const;
  const set = fakeSet(providers, overrides.set);
  const tracker = new Tracker(set, runtime, { ...SELECTION, ...overrides.settings });
  const planned: Fixture["plan"] = (
    method = "eth_getBalance",
    { block, strategy = "priority", transport = "http", pin } = {},
  ) =>
    tracker
      .plan(fakeCall(method, block), { strategy, transport, pin: pin ?? null })
      .candidates.map((it) => it.provider.id);
  return {
    runtime,
    set,
    tracker,
    providers,
    plan: planned,
    reasons: (method = "eth_getBalance", block) =>
      Object.fromEntries(
        tracker
          .plan(fakeCall(method, block), { strategy: "priority", transport: "http", pin: null })
          .excluded.map((it) => [it.provider.id, it.reason]),
      ),
    hear(
      provider,
      outcome,
      { method = "eth_getBalance", block, latencyMs = 10, transport = "http" } = {},
    ) {
      const heard = outcome === null || "step" in outcome ? outcome : verdict(outcome);
      tracker.record(
        methodOf(method),
        { provider, transport, latencyMs, verdict: heard, code: null },
        block,
        method,
      );
    },
    refuse(provider, cordon, { transport = "http" } = {}) {
      const result = { kind: "failed", category: "auth", cordon } as const;
      tracker.recordProbe({ provider, transport, latencyMs: 5, result });
    },
    probe(provider, height, { chainId = 1, transport = "http", latencyMs = 5 } = {}) {
      tracker.recordProbe({
        provider,
        transport,
        latencyMs,
        result: { kind: "ok", chainId, height },
      });
    },
  };
}

function openCircuit({ tracker, hear }: Fixture, provider: Provider): void {
  hear(provider, TIMEOUT);
  hear(provider, TIMEOUT);
  assert.equal(tracker.health(provider, "http").breaker, "open");
}

const REGIONS = {
  regions: ["us", "eu", null],
  settings: { region: "eu" },
} as const;

test("a node prefers providers of its own region within a health tier, where the strategy knows no better", () => {
  const it = createFixture({ ...REGIONS, providers: { priority: 1 } });
  assert.deepEqual(it.plan(), ["p1", "p2", "p0"]);
  assert.deepEqual(it.plan("eth_getBalance", { strategy: "load-balanced" }), ["p1", "p2", "p0"]);
  openCircuit(it, it.providers[1]);
  assert.deepEqual(it.plan(), ["p2", "p0"], "health comes first");
  const byPriority = createFixture(REGIONS);
  assert.deepEqual(byPriority.plan(), ["p0", "p1", "p2"], "a priority is a better reason");
});

test("`only` leaves out other regions with a reason, except for pins", () => {
  const it = createFixture({ ...REGIONS, set: { regionPreference: "only" } });
  assert.deepEqual(it.plan(), ["p1"]);
  assert.deepEqual(it.reasons(), { p0: "other_region", p2: "other_region" });
  assert.deepEqual(it.plan("eth_getBalance", { pin: it.providers[0] }), ["p0"]);
  assert.deepEqual(
    it.providers.map((provider) => it.tracker.refusalOf(provider)),
    ["other_region", null, "other_region"],
  );
});

test("`only`: without a usable provider in its region a node is out of providers and panics there", () => {
  const it = createFixture({
    ...REGIONS,
    set: { regionPreference: "only" },
    providers: { wsUrl: null },
  });
  assert.ok(it.tracker.isUsable());
  openCircuit(it, it.providers[1]);
  assert.ok(!it.tracker.isUsable());
  const call = fakeCall("eth_getBalance");
  const selection = { strategy: "priority", transport: null, pin: null } as const;
  const plan = it.tracker.plan(call, selection);
  assert.deepEqual(
    [plan.panic, plan.candidates.map(({ provider }) => provider.id)],
    [true, ["p1"]],
  );
  assert.deepEqual(
    plan.excluded.map(({ provider, reason }) => `${provider.id} ${reason}`),
    ["p0 other_region", "p2 other_region"],
  );
  assert.equal(it.tracker.waitMs(call, selection), 0, "a panic waits for no circuit");
  const none = createFixture({
    regions: ["us", "us", null],
    settings: { region: "eu" },
    set: { regionPreference: "only" },
  });
  assert.equal(none.tracker.waitMs(call, selection), null, "waiting brings no provider nearer");
});

test("a fresh set plans every provider and knows nothing, which reads as null and never as zero", () => {
  const { plan, tracker, providers } = createFixture();
  assert.deepEqual(plan(), ["p0", "p1", "p2"]);
  assert.equal(tracker.head(), null);
  const report = tracker.health(providers[0], "http");
  const unknown = [
    report.height,
    report.lagBlocks,
    report.successRate,
    report.averageMs,
    report.p50Ms,
    report.p95Ms,
    report.p99Ms,
    report.probeMs,
    report.cordon,
    report.retryAfterMs,
  ];
  assert.deepEqual(
    unknown,
    unknown.map(() => null),
  );
  assert.deepEqual([report.breaker, report.rateLimitedForMs, report.calls], ["closed", 0, 0]);
  assert.deepEqual(tracker.methods(providers[0], "http"), []);
});

test(
  "an open circuit leaves the plan, refuses leave, and comes back half-open behind the healthy " +
    "ones",
  () => {
    const it = createFixture();
    openCircuit(it, it.providers[0]);
    assert.deepEqual(it.plan(), ["p1", "p2"]);
    assert.deepEqual(it.reasons(), { p0: "circuit_open" });
    assert.equal(it.tracker.admit(it.providers[0], "http"), false);
    const { retryAfterMs } = it.tracker.health(it.providers[0], "http");
    assert.ok(retryAfterMs !== null && retryAfterMs >= 28_500 && retryAfterMs <= 31_500);
    it.runtime.advance(retryAfterMs);
    assert.deepEqual(it.plan(), ["p1", "p2", "p0"]);
    assert.equal(it.tracker.health(it.providers[0], "http").breaker, "half_open");
  },
);

test(
  "a half-open circuit gives leave once at a time, takes it back on any outcome, and closes " +
    "after two successes",
  () => {
    const it = createFixture();
    const [first] = it.providers;
    openCircuit(it, first);
    it.runtime.advance(31_500);
    const outcomes: readonly (Effect | null)[] = [
      { kind: "ignored" },
      { kind: "cooldown", ms: 0 },
      { kind: "learn", what: "method" },
      { kind: "lag" },
      null,
      { kind: "ignored" },
      null,
    ];
    for (const outcome of outcomes) {
      assert.equal(it.tracker.health(first, "http").breaker, "half_open");
      assert.equal(it.tracker.admit(first, "http"), true);
      assert.equal(it.tracker.admit(first, "http"), false);
      assert.equal(
        it.tracker.plan(fakeCall("eth_call"), {
          strategy: "priority",
          transport: "http",
          pin: first,
        }).excluded[0]?.reason,
        "trial_in_flight",
      );
      it.hear(first, outcome);
    }
    assert.equal(it.tracker.health(first, "http").breaker, "closed");
  },
);

test("circuits, limits and readings are kept per transport", () => {
  const it = createFixture();
  openCircuit(it, it.providers[0]);
  it.hear(it.providers[0], null, { transport: "ws", latencyMs: 7 });
  assert.deepEqual(it.plan("eth_getBalance", { transport: "ws" }), ["p0", "p1", "p2"]);
  assert.equal(it.tracker.health(it.providers[0], "ws").averageMs, 7);
  assert.equal(it.tracker.health(it.providers[0], "http").averageMs, null);
});

test("a rate limit demotes a provider for its time, excludes nobody and moves no circuit", () => {
  const it = createFixture();
  for (let refusal = 0; refusal < 20; refusal++)
    it.hear(it.providers[0], { kind: "cooldown", ms: 5_000 });
  assert.deepEqual(it.plan(), ["p1", "p2", "p0"]);
  const report = it.tracker.health(it.providers[0], "http");
  assert.deepEqual(
    [report.rateLimitedForMs, report.breaker, report.outcomes.rateLimited, report.successRate],
    [5_000, "closed", 20, null],
  );
  it.runtime.advance(5_000);
  assert.deepEqual(it.plan(), ["p0", "p1", "p2"]);
});

test(
  "a rate limit of one method demotes a provider for that method alone, for its time, and is " +
    "reported by name",
  () => {
    const it = createFixture();
    it.hear(
      it.providers[0],
      { kind: "cooldown", ms: 5_000, scope: "method" },
      { method: "eth_getLogs" },
    );
    assert.deepEqual(it.plan("eth_getLogs"), ["p1", "p2", "p0"]);
    assert.deepEqual(it.plan("eth_getBalance"), ["p0", "p1", "p2"]);
    const limited = it.tracker.health(it.providers[0], "http");
    assert.deepEqual(
      [limited.rateLimitedForMs, limited.limitedMethods, limited.outcomes.rateLimited],
      [0, ["eth_getLogs"], 1],
    );
    assert.deepEqual(it.plan("eth_getLogs", { transport: "ws" }), ["p0", "p1", "p2"]);
    it.runtime.advance(5_000);
    assert.deepEqual(it.plan("eth_getLogs"), ["p0", "p1", "p2"]);
    assert.deepEqual(it.tracker.health(it.providers[0], "http").limitedMethods, []);
  },
);

test("a cordon lasts until a matching probe, however long, and failed probes do not lift it", () => {
  const it = createFixture();
  it.refuse(it.providers[0], "quota");
  it.runtime.advance(86_400_000);
  it.tracker.recordProbe({
    provider: it.providers[0],
    transport: "http",
    latencyMs: 5,
    result: { kind: "failed", category: "auth" },
  });
  assert.deepEqual(it.reasons(), { p0: "cordoned" });
  assert.equal(it.tracker.health(it.providers[0], "http").cordon, "quota");
  it.probe(it.providers[0], 100);
  assert.deepEqual(it.plan(), ["p0", "p1", "p2"]);
});

test("what calls are told makes the service ask: it excludes nobody and opens no circuit", () => {
  const it = createFixture();
  const suspected: string[] = [];
  it.tracker.attend({
    suspected: ({ provider, transport }) => suspected.push(`${provider.id} ${transport}`),
  });
  for (const reason of ["auth", "quota", "wrong_chain"] as const)
    for (const provider of it.providers)
      for (let n = 0; n < 5; n++) it.hear(provider, { kind: "cordon", reason });
  assert.equal(suspected.length, 45);
  assert.deepEqual(it.reasons(), {});
  for (const provider of it.providers) {
    const { breaker, cordon, rateLimitedForMs } = it.tracker.health(provider, "http");
    assert.deepEqual([breaker, cordon, rateLimitedForMs], ["closed", null, 0]);
  }
  for (const provider of it.providers) it.hear(provider, null);
  it.runtime.advance(30_000);
  it.hear(it.providers[0], { kind: "cordon", reason: "auth" });
  assert.deepEqual(it.plan("eth_getBalance"), ["p1", "p2", "p0"], "its method goes elsewhere");
  assert.deepEqual(it.plan("eth_call"), ["p0", "p1", "p2"]);
});

test("the cordon of a transport that nobody probes ends with a probe of the other one", () => {
  const it = createFixture();
  it.tracker.recordSocket(it.providers[0], verdict({ kind: "cordon", reason: "auth" }));
  assert.deepEqual(it.plan("eth_call", { transport: "ws" }), ["p1", "p2"]);
  it.probe(it.providers[0], 100, { transport: "http" });
  assert.deepEqual(it.plan("eth_call", { transport: "ws" }), ["p0", "p1", "p2"]);
  it.probe(it.providers[0], 100, { transport: "ws" });
  it.refuse(it.providers[0], "auth", { transport: "ws" });
  it.probe(it.providers[0], 100, { transport: "http" });
  assert.deepEqual(it.plan("eth_call", { transport: "ws" }), ["p1", "p2"]);
});

test(
  "a wrong chain excludes a provider on that transport until a matching probe, and its height " +
    "is worth nothing",
  () => {
    const it = createFixture();
    it.probe(it.providers[1], 100);
    it.probe(it.providers[0], 9_000_000, { chainId: 5 });
    assert.deepEqual(it.reasons(), { p0: "wrong_chain" });
    assert.equal(it.tracker.head(), 100);
    it.probe(it.providers[0], 100, { transport: "ws" });
    assert.deepEqual(it.reasons(), { p0: "wrong_chain" });
    it.probe(it.providers[0], 101);
    assert.deepEqual(it.reasons(), {});
  },
);

test("probes neither feed nor reset the circuit, nor count as calls", () => {
  const it = createFixture();
  const [first] = it.providers;
  it.hear(first, TIMEOUT);
  it.probe(first, 100);
  for (let failure = 0; failure < 50; failure++)
    it.tracker.recordProbe({
      provider: first,
      transport: "http",
      latencyMs: 5,
      result: { kind: "failed", category: "timeout" },
    });
  assert.deepEqual(
    [it.tracker.health(first, "http").breaker, it.tracker.health(first, "http").calls],
    ["closed", 1],
  );
  it.hear(first, TIMEOUT);
  assert.equal(it.tracker.health(first, "http").breaker, "open");
  it.probe(first, 101);
  assert.equal(it.tracker.health(first, "http").breaker, "open");
});

test(
  "a provider behind the others is left out until it caught up, and an unknown height is not " +
    "held against anyone",
  () => {
    const it = createFixture();
    it.probe(it.providers[0], 90);
    it.probe(it.providers[1], 100);
    assert.deepEqual(it.reasons(), { p0: "lagging" });
    assert.deepEqual(
      [
        it.tracker.health(it.providers[0], "http").lagBlocks,
        it.tracker.health(it.providers[2], "http").lagBlocks,
      ],
      [10, null],
    );
    it.tracker.recordHead(it.providers[0], 96);
    assert.deepEqual(it.reasons(), {});
  },
);

test("the consensus moves with every sample and ends when samples are old", () => {
  const it = createFixture();
  it.probe(it.providers[0], 100);
  assert.equal(it.tracker.head(), 100);
  it.runtime.advance(20_000);
  it.tracker.recordHead(it.providers[1], 102);
  assert.equal(it.tracker.head(), 102);
  it.runtime.advance(20_000);
  assert.equal(it.tracker.head(), 102);
  it.runtime.advance(20_000);
  assert.equal(it.tracker.head(), null);
  it.tracker.recordHead(it.providers[1], Number.NaN);
  assert.equal(it.tracker.head(), null);
});

test("a range is asked of those that have its last block; who lacks it only where nobody has it", () => {
  const it = createFixture({ set: { maxLagBlocks: 5 } });
  const [short, unknown, whole] = it.providers;
  it.probe(short, 97);
  it.probe(whole, 100);
  const range = (to: number) => ({ kind: "range", from: 90, to }) as const;
  const askedFor = (to: number) => it.plan("eth_getLogs", { block: range(to) });
  assert.deepEqual(askedFor(100), [whole.id, unknown.id]);
  assert.deepEqual(it.reasons("eth_getLogs", range(100)), { [short.id]: "block_missing" });
  assert.equal(askedFor(97)[0], short.id);
  assert.equal(askedFor(103).length, 3, "nobody is known to have it");
  // Its circuit says nothing of what it has: a short list is no answer instead.
  openCircuit(it, whole);
  assert.deepEqual(askedFor(100), [unknown.id]);
  it.tracker.namedBlock(short, 100);
  assert.deepEqual(askedFor(100), [short.id, unknown.id]);
});

test("a socket that trails what its provider answers to polls vouches for nothing until it does not", () => {
  const it = createFixture();
  const [provider] = it.providers;
  const hash = (number: number): string => `0x${number.toString(16).padStart(64, "0")}`;
  const push = (number: number): void =>
    it.tracker.recordHead(provider, number, {
      number,
      hash: hash(number),
      parentHash: hash(number - 1),
    });
  it.tracker.listen(provider, true);
  push(100);
  it.probe(provider, 101);
  it.probe(provider, 103);
  assert.equal(it.tracker.blocks.pushedTip(provider), 100, "it was polled between two blocks");
  it.probe(provider, 103);
  assert.equal(it.tracker.blocks.pushedTip(provider), null);
  push(101);
  assert.equal(it.tracker.blocks.pushedTip(provider), null);
  push(103);
  it.probe(provider, 104);
  push(104);
  assert.equal(it.tracker.blocks.pushedTip(provider), 104);
});

test("two providers that stand still are left out, and define no head of the one that goes on", () => {
  const it = createFixture();
  const [stuck, alsoStuck, healthy] = it.providers;
  for (let block = 0; block < 5; block++) {
    it.probe(stuck, 67);
    it.probe(alsoStuck, 122);
    it.probe(healthy, 534 + block);
    it.runtime.advance(it.set.chain.blockTimeMs);
  }
  assert.equal(it.tracker.head(), 538);
  assert.deepEqual(it.plan(), [healthy.id]);
  assert.deepEqual(it.reasons(), { [stuck.id]: "lagging", [alsoStuck.id]: "lagging" });
});

test(
  "a provider that says it is behind counts as lagging until its next head, or for thirty " +
    "seconds",
  () => {
    const it = createFixture();
    it.hear(it.providers[0], { kind: "lag" });
    assert.deepEqual(it.reasons(), { p0: "lagging" });
    it.tracker.recordHead(it.providers[0], 100);
    assert.deepEqual(it.reasons(), {});
    it.hear(it.providers[0], { kind: "lag" });
    it.runtime.advance(30_000);
    assert.deepEqual(it.reasons(), {});
  },
);

test("when all lag they are asked anyway", () => {
  const it = createFixture();
  for (const provider of it.providers) it.hear(provider, { kind: "lag" });
  assert.deepEqual(it.plan(), ["p0", "p1", "p2"]);
});

test("the largest range is that of providers that lag where these are asked", () => {
  const it = createFixture({ providers: { maxBlockRange: 500, wsUrl: null } });
  const [first, second, third] = it.providers;
  const range: BlockRef = { kind: "range", from: 1_000, to: 6_000 };
  const limits = () => it.tracker.rangeLimits(fakeCall("eth_getLogs", range));
  const about = { method: "eth_getLogs", block: range };
  it.hear(second, { kind: "learn", what: "range", maxBlockRange: 900 }, about);
  assert.deepEqual(limits(), [500], "a declared limit is the most that is learned");
  it.hear(second, { kind: "lag" });
  it.hear(third, { kind: "learn", what: "range", maxBlockRange: 200 }, about);
  it.hear(third, { kind: "lag" });
  assert.deepEqual(limits(), [500], "the first is asked, and is well");
  openCircuit(it, first);
  assert.deepEqual(it.plan("eth_getLogs", { block: { kind: "range", from: 1_000, to: 1_000 } }), [
    "p1",
    "p2",
  ]);
  assert.deepEqual(limits(), [500, 200]);
  openCircuit(it, second);
  assert.deepEqual(limits(), [200]);
});

test("refusals teach methods, tags, ranges and pruned state, and never count against the provider", () => {
  const it = createFixture({ providers: { archival: true } });
  const [first] = it.providers;
  const tag: BlockRef = { kind: "tag", tag: "safe" };
  const range: BlockRef = { kind: "range", from: 1_000, to: 6_000 };
  it.hear(first, { kind: "learn", what: "method" }, { method: "eth_feeHistory" });
  it.hear(first, { kind: "learn", what: "tag" }, { block: tag });
  it.hear(
    first,
    { kind: "learn", what: "range", maxBlockRange: null },
    { method: "eth_getLogs", block: range },
  );
  it.hear(first, { kind: "learn", what: "pruned" });
  assert.deepEqual(it.reasons("eth_feeHistory"), { p0: "method_unsupported" });
  assert.deepEqual(it.reasons("eth_getBalance", tag), { p0: "tag_unsupported" });
  assert.deepEqual(it.reasons("eth_getLogs", range), { p0: "block_range_limit" });
  assert.deepEqual(it.reasons("eth_getBalance", { kind: "earliest" }), { p0: "archival_required" });
  const report = it.tracker.health(first, "http");
  assert.deepEqual(report.learned, {
    methods: ["eth_feeHistory"],
    maxBlockRange: 3_750,
    pruned: ["state"],
    requestsPerSecond: null,
  });
  assert.deepEqual(
    [report.breaker, report.successRate, report.outcomes.neutral],
    ["closed", null, 4],
  );
  it.hear(first, null, { method: "eth_feeHistory" });
  assert.deepEqual(it.reasons("eth_feeHistory"), {});
});

test("a provider beyond the rate that it was learned to bear is asked after others", () => {
  const it = createFixture();
  const [first = assert.fail()] = it.providers;
  it.hear(first, { kind: "cooldown", ms: 100 });
  assert.equal(it.tracker.health(first, "http").learned.requestsPerSecond, 1);
  it.hear(first, { kind: "cooldown", ms: 100, scope: "method" });
  assert.deepEqual(it.reasons("eth_call"), {}, "it is never excluded for that");
});

test(
  "a refused trace range teaches nothing about logs, and a refused subscription nothing about " +
    "others",
  () => {
    const it = createFixture();
    it.hear(
      it.providers[0],
      { kind: "learn", what: "range", maxBlockRange: 10 },
      { method: "trace_filter" },
    );
    it.hear(it.providers[0], { kind: "learn", what: "subscription" }, { method: "eth_subscribe" });
    assert.deepEqual(it.tracker.health(it.providers[0], "http").learned, {
      methods: [],
      maxBlockRange: null,
      pruned: [],
      requestsPerSecond: null,
    });
  },
);

test(
  "success rates: results and the caller's own errors deliver, counted failures fail, " +
    "everything else is neither",
  () => {
    const it = createFixture();
    const [first] = it.providers;
    const rows: readonly (Effect | Verdict | null)[] = [
      null,
      verdict({ kind: "ignored" }, "return"),
      { kind: "failure", cause: "server" },
      verdict({ kind: "ignored" }, "next"),
      { kind: "cooldown", ms: 1 },
      { kind: "lag" },
      { category: "cancelled", step: "return", effect: { kind: "ignored" } },
    ];
    for (const outcome of rows) it.hear(first, outcome);
    const report = it.tracker.health(first, "http");
    assert.deepEqual(report.outcomes, {
      delivered: 2,
      failed: 1,
      rateLimited: 1,
      neutral: 2,
      cancelled: 1,
    });
    assert.equal(report.calls, 6);
    assert.ok(Math.abs((report.successRate ?? 0) - 2 / 3) < 1e-9);
    assert.deepEqual(
      it.tracker.methods(first, "http").map(({ method, calls }) => [method.name, calls]),
      [["eth_getBalance", 3]],
    );
  },
);

test(
  "fastest reads the call's own method, and a provider that is slow for one may be fast for " +
    "another",
  () => {
    const it = createFixture();
    for (let call = 0; call < 3; call++) {
      it.hear(it.providers[0], null, { method: "eth_getLogs", latencyMs: 900 });
      it.hear(it.providers[0], null, { latencyMs: 10 });
      it.hear(it.providers[1], null, { method: "eth_getLogs", latencyMs: 100 });
      it.hear(it.providers[1], null, { latencyMs: 50 });
    }
    assert.deepEqual(it.plan("eth_getBalance", { strategy: "fastest" }), ["p0", "p1", "p2"]);
    assert.deepEqual(it.plan("eth_getLogs", { strategy: "fastest" }), ["p1", "p0", "p2"]);
  },
);

test("cold providers go by probe latency", () => {
  const it = createFixture();
  for (const [at, latencyMs] of [30, 10, 20].entries())
    it.tracker.recordProbe({
      provider: it.set.providers[at] ?? it.providers[0],
      transport: "http",
      latencyMs,
      result: { kind: "ok", chainId: 1, height: 1 },
    });
  assert.deepEqual(it.plan("eth_call", { strategy: "fastest" }), ["p1", "p2", "p0"]);
});

test(
  "a pin yields its provider alone: limits and lag do not matter, the circuit, the chain and " +
    "the transport do",
  () => {
    const it = createFixture({ providers: { unsupportedMethods: new Set(["eth_getBalance"]) } });
    const [first] = it.providers;
    it.hear(first, { kind: "lag" });
    assert.deepEqual(it.plan("eth_getBalance", { pin: first, block: { kind: "earliest" } }), [
      "p0",
    ]);
    openCircuit(it, first);
    assert.deepEqual(it.plan("eth_getBalance", { pin: first }), []);
    it.probe(it.providers[1], 1, { chainId: 9 });
    assert.deepEqual(it.plan("eth_getBalance", { pin: it.providers[1] }), []);
    const httpOnly = createFixture({ providers: { wsUrl: null } });
    assert.deepEqual(
      httpOnly.plan("eth_call", { pin: httpOnly.providers[0], transport: "ws" }),
      [],
    );
    assert.equal(httpOnly.tracker.admit(httpOnly.providers[0], "ws"), false);
  },
);

test(
  "the time to wait is that of the soonest who could serve this very call: of the pinned one, " +
    "of an archive, of a transport",
  () => {
    const it = createFixture({ providers: { wsUrl: null } });
    const [first, second, third] = it.providers;
    const ask = (
      method: string,
      about: { readonly block?: BlockRef; readonly pin?: Provider } = {},
    ): number | null =>
      it.tracker.waitMs(fakeCall(method, about.block), {
        strategy: "priority",
        transport: null,
        pin: about.pin ?? null,
      });
    assert.equal(ask("eth_call"), 0);
    openCircuit(it, first);
    it.runtime.advance(1_000);
    openCircuit(it, second);
    const waitOf = (provider: Provider): number =>
      it.tracker.health(provider, "http").retryAfterMs ?? 0;
    assert.equal(ask("eth_call"), 0, "the third may be asked at once");
    assert.equal(ask("eth_call", { pin: second }), waitOf(second));
    openCircuit(it, third);
    assert.equal(
      ask("eth_call"),
      0,
      "every circuit is open, so that the next call asks all the same",
    );
    assert.equal(ask("eth_call", { pin: third }), waitOf(third), "a pin never panics");
    assert.equal(
      ask("eth_call", { block: { kind: "earliest" } }),
      null,
      "nobody here ever has an archive",
    );
    assert.equal(
      it.tracker.waitMs(fakeCall("eth_call"), { strategy: "priority", transport: "ws", pin: null }),
      null,
      "nobody here has a socket",
    );
    it.runtime.advance(waitOf(first));
    assert.equal(ask("eth_call", { pin: first }), 0);
  },
);

test(
  "the time to wait for an archive is that of the archive's circuit, and a cordoned provider " +
    "is waited for until its next probe",
  () => {
    const runtime = simulatedWorld(1);
    const archive = fakeProvider(0, { archival: true, wsUrl: null });
    const plain = fakeProvider(1, { wsUrl: null });
    const tracker = new Tracker(fakeSet([archive, plain]), runtime, SELECTION);
    const selection = { strategy: "priority", transport: null, pin: null } as const;
    for (let n = 0; n < 2; n++)
      tracker.record(BALANCE, {
        provider: archive,
        transport: "http",
        latencyMs: 5,
        verdict: verdict(TIMEOUT),
        code: null,
      });
    const open = tracker.health(archive, "http").retryAfterMs;
    assert.ok(open !== null && open > 25_000);
    assert.equal(tracker.waitMs(fakeCall("eth_call", { kind: "earliest" }), selection), open);
    assert.equal(tracker.waitMs(fakeCall("eth_call"), selection), 0);
    tracker.recordProbe({
      provider: plain,
      transport: "http",
      latencyMs: 5,
      result: { kind: "failed", category: "auth", cordon: "auth" },
    });
    assert.equal(tracker.waitMs(fakeCall("eth_call"), { ...selection, pin: plain }), 120_000);
    runtime.advance(20_000);
    assert.equal(tracker.waitMs(fakeCall("eth_call"), { ...selection, pin: plain }), 100_000);
  },
);

test(
  "a reload keeps the health of providers whose id and URL stay, wherever they now stand, and " +
    "of no others",
  () => {
    const it = createFixture();
    const [first, second, third] = it.providers;
    for (const provider of it.providers) openCircuit(it, provider);
    it.probe(first, 500);
    const moved = { ...first, index: 1 };
    const changed = { ...second, index: 0, url: "http://elsewhere.test/" };
    const fresh = fakeProvider(2, { id: "p9" });
    const next = new Tracker(fakeSet([changed, moved, fresh]), it.runtime, SELECTION, it.tracker);
    const states = [moved, changed, fresh].map((provider) => next.health(provider, "http").breaker);
    assert.deepEqual(states, ["open", "closed", "closed"]);
    assert.equal(next.head(), 500);
    assert.equal(
      next.health(third, "http").breaker,
      "closed",
      "a provider that is gone is unknown",
    );
  },
);

test("an attempt that was under way during a reload still reports to the provider it was sent to", () => {
  const it = createFixture();
  const [first] = it.providers;
  openCircuit(it, first);
  it.runtime.advance(31_500);
  assert.equal(it.tracker.admit(first, "http"), true);
  const moved = { ...first, index: 1 };
  const next = new Tracker(
    fakeSet([fakeProvider(0, { id: "new" }), moved]),
    it.runtime,
    SELECTION,
    it.tracker,
  );
  assert.equal(next.admit(moved, "http"), false);
  it.tracker.record(BALANCE, {
    provider: first,
    transport: "http",
    latencyMs: 5,
    verdict: null,
    code: null,
  });
  assert.equal(next.admit(moved, "http"), true);
  next.record(BALANCE, {
    provider: first,
    transport: "http",
    latencyMs: 5,
    verdict: null,
    code: null,
  });
  assert.equal(next.health(moved, "http").breaker, "closed");
  assert.equal(
    next.health(fakeProvider(0, { id: "new" }), "http").calls,
    0,
    "its place in the old set means nothing in the new one",
  );
});

test("profiles are independent: the same URL in two sets has two healths", () => {
  const one = createFixture();
  const other = createFixture();
  openCircuit(one, one.providers[0]);
  assert.deepEqual(other.plan(), ["p0", "p1", "p2"]);
});

test("ten thousand method names leave no more behind than one", () => {
  const it = createFixture();
  for (let name = 0; name < 10_000; name++) {
    it.hear(it.providers[0], { kind: "learn", what: "method" }, { method: `custom_${name}` });
    it.hear(it.providers[0], null, { method: `other_${name}` });
  }
  assert.equal(it.tracker.methods(it.providers[0], "http").length, 1);
  assert.deepEqual(it.tracker.health(it.providers[0], "http").learned.methods, []);
  assert.deepEqual(it.plan("custom_5"), ["p0", "p1", "p2"]);
});

test(
  "a read of a block that somebody has told of is not sent to a provider that is listened to " +
    "and has not come that far",
  () => {
    const it = createFixture();
    const [first, second, third] = it.providers;
    it.probe(first, 100);
    it.tracker.listen(first, true);
    it.probe(second, 100);
    it.tracker.recordHead(second, 101);
    it.probe(third, 99);
    const plan = (number: number): readonly string[] =>
      it.plan("eth_getBlockByNumber", { block: { kind: "number", number } });
    assert.deepEqual(
      plan(101),
      ["p1", "p2"],
      "a height that was only polled may be older than the provider is",
    );
    assert.deepEqual(plan(100), ["p0", "p1", "p2"]);
    assert.deepEqual(
      plan(102),
      ["p0", "p1", "p2"],
      "nobody has told of it: that is for a provider to say",
    );
    it.tracker.recordHead(first, 101);
    assert.deepEqual(plan(101), ["p0", "p1", "p2"]);
    it.tracker.recordHead(second, 102);
    it.tracker.listen(first, false);
    assert.deepEqual(plan(102), ["p1", "p0", "p2"], "it may have come on unheard");
  },
);

const UNSERVED: Effect = { kind: "learn", what: "method" };

test(
  "an unlisted method is learned by its own name and forgotten after ten minutes; other names " +
    "are asked as before",
  () => {
    const { hear, plan, providers, reasons, runtime, tracker } = createFixture();
    const [first, second, third] = providers;
    hear(first, UNSERVED, { method: "zks_estimateFee" });
    hear(second, null, { method: "zks_estimateFee" });
    hear(third, null);
    assert.deepEqual(plan("zks_estimateFee"), ["p1", "p2"]);
    assert.deepEqual(reasons("zks_estimateFee"), { p0: "method_unsupported" });
    assert.deepEqual(plan("zks_estimateGas"), ["p0", "p1", "p2"]);
    assert.deepEqual(tracker.health(first, "http").learned.methods, ["zks_estimateFee"]);
    runtime.advance(600_000);
    assert.deepEqual(plan("zks_estimateFee"), ["p0", "p1", "p2"]);
  },
);

test("names that callers make up neither drive out methods that somebody serves nor show in reports", () => {
  const { hear, plan, providers, tracker } = createFixture();
  const [first, second, third] = providers;
  hear(first, UNSERVED, { method: "vendor_real" });
  hear(second, null, { method: "vendor_real" });
  for (let n = 0; n < 10_000; n++)
    for (const provider of [first, second, third])
      hear(provider, UNSERVED, { method: `made_up${n}` });
  assert.deepEqual(plan("vendor_real"), ["p1", "p2"]);
  assert.deepEqual(tracker.health(first, "http").learned.methods, ["vendor_real"]);
  const { real, doubtful } = tracker.inherit(first)?.unserved ?? {
    real: new Map(),
    doubtful: new Map(),
  };
  assert.ok(
    real.size === 1 && doubtful.size > 0 && doubtful.size <= 64,
    `${real.size} and ${doubtful.size}`,
  );
});

test("a provider that serves an unlisted method after all is asked for it at once", () => {
  const { hear, plan, providers } = createFixture();
  hear(providers[0], UNSERVED, { method: "vendor_real" });
  hear(providers[1], null, { method: "vendor_real" });
  hear(providers[0], null, { method: "vendor_real" });
  assert.deepEqual(plan("vendor_real"), ["p0", "p1", "p2"]);
});

test("what becomes of circuits and cordons is told once each, with its cause", () => {
  const it = createFixture();
  const [provider] = it.providers;
  const told: string[] = [];
  it.tracker.attend({
    changed: ({ provider: of, transport, event, cause }) =>
      told.push(`${of.id} ${transport} ${event} ${cause}`),
  });
  openCircuit(it, provider);
  it.hear(provider, TIMEOUT);
  assert.deepEqual(told.splice(0), [`${provider.id} http circuit_opened failure`]);
  it.runtime.advance(32_000);
  it.probe(provider, 100);
  for (let n = 0; n < 2; n++) {
    assert.ok(it.tracker.admit(provider, "http"));
    it.runtime.advance(20);
    it.hear(provider, null);
  }
  assert.deepEqual(told.splice(0), [`${provider.id} http circuit_closed success`]);
  it.probe(provider, 100, { chainId: 5 });
  it.probe(provider, 100, { chainId: 5 });
  it.probe(provider, 100);
  it.probe(provider, 100);
  assert.deepEqual(told, [
    `${provider.id} http cordoned wrong_chain`,
    `${provider.id} http cordon_lifted probe`,
  ]);
});

const CORDON = { reason: "slow", atMs: 1, untilMs: null };

test("a cordoned provider is asked by nobody, not by pins and not in a panic, and its head does not count", () => {
  const it = createFixture({ providers: { wsUrl: null } });
  const [first, second, third] = it.providers;
  const changes: string[] = [];
  it.tracker.attend({ changed: ({ event, cause }) => void changes.push(`${event} ${cause}`) });
  it.probe(first, 200);
  it.probe(second, 150);
  it.probe(third, 150);
  it.tracker.setCordon(first, CORDON);
  assert.deepEqual(it.tracker.cordonOf(first), CORDON);
  assert.deepEqual(it.plan(), ["p1", "p2"]);
  assert.equal(it.reasons()["p0"], "cordoned_by_operator");
  assert.deepEqual(it.plan("eth_getBalance", { pin: first }), []);
  assert.equal(it.tracker.head(), 150);
  it.probe(first, 300);
  it.tracker.recordHead(first, 300);
  assert.equal(it.tracker.head(), 150, "what it tells of its blocks does not count");
  openCircuit(it, second);
  assert.ok(it.tracker.isUsable());
  openCircuit(it, third);
  assert.ok(!it.tracker.isUsable());
  const selection = { strategy: "priority", transport: null, pin: null } as const;
  const plan = it.tracker.plan(fakeCall("eth_getBalance"), selection);
  assert.deepEqual(
    [plan.panic, plan.candidates.map(({ provider }) => provider.id).sort()],
    [true, ["p1", "p2"]],
  );
  it.tracker.setCordon(first, { ...CORDON, reason: "still slow" });
  it.tracker.setCordon(first, null);
  assert.deepEqual(it.plan()[0], "p0");
  assert.deepEqual(
    changes.filter((change) => change.endsWith("operator")),
    ["cordoned operator", "cordon_lifted operator"],
  );
});

test("a tracker that follows knows the cordons from its first call on", () => {
  const { set, runtime, providers } = createFixture();
  const of = (_: string, { id }: Provider) => (id === providers[1].id ? CORDON : null);
  const tracker = new Tracker(set, runtime, { ...SELECTION, cordons: { of } });
  assert.deepEqual(
    providers.map((provider) => tracker.cordonOf(provider)),
    [null, CORDON, null],
  );
});

test("the waits of a provider end: its circuit is half-open, no limit and no refusal holds", () => {
  const it = createFixture({ providers: { wsUrl: null } });
  const [first, second] = it.providers;
  openCircuit(it, first);
  it.refuse(second, "auth");
  it.hear(second, { kind: "cooldown", ms: 60_000 });
  assert.deepEqual(it.plan(), ["p2"]);
  it.tracker.endWaits(first);
  it.tracker.endWaits(second);
  assert.equal(it.tracker.health(first, "http").breaker, "half_open");
  assert.equal(it.tracker.health(second, "http").rateLimitedForMs, 0);
  assert.deepEqual(it.plan().toSorted(), ["p0", "p1", "p2"]);
});

test("a circuit that no call tries closes by good probes of its own transport, and says so", () => {
  const it = createFixture();
  const [first] = it.providers;
  const told: string[] = [];
  it.tracker.attend({ changed: ({ event, cause }) => void told.push(`${event} ${cause}`) });
  const state = (): string => it.tracker.health(first, "http").circuit;
  assert.equal(state(), "never_answered");
  it.probe(first, 100);
  assert.equal(state(), "closed");
  openCircuit(it, first);
  assert.equal(state(), "open");
  it.runtime.advance(100);
  it.probe(first, 101);
  for (let n = 0; n < 5; n++) it.probe(first, 102, { transport: "ws" });
  assert.equal(state(), "half_open", "those of the other transport do not count");
  it.probe(first, 102);
  it.tracker.recordProbe({
    provider: first,
    transport: "http",
    latencyMs: 5,
    result: { kind: "failed", category: "timeout" },
  });
  it.probe(first, 103);
  it.probe(first, 104);
  assert.equal(state(), "half_open", "one in between failed");
  it.probe(first, 105);
  assert.deepEqual([state(), it.tracker.summary(first).circuit], ["recovered", "recovered"]);
  assert.deepEqual(told, ["circuit_opened failure", "circuit_closed probe"]);
  it.hear(first, null);
  assert.equal(state(), "recovered");
  it.hear(first, null);
  assert.equal(state(), "closed");
});

test("a hint of another worker is no good probe", () => {
  const it = createFixture();
  const [first] = it.providers;
  openCircuit(it, first);
  it.runtime.advance(100);
  for (let n = 0; n < 5; n++) it.tracker.recordHint(first, "http", { kind: "closed" });
  assert.equal(it.tracker.health(first, "http").breaker, "half_open");
});

test("who is known to have a block is asked for it first, who is known to lack it last", () => {
  const it = createFixture();
  const [first, second, third] = it.providers;
  it.probe(first, 99);
  it.probe(second, 100);
  it.tracker.recordHead(third, 102);
  it.probe(third, 102);
  const plan = (number: number): readonly string[] =>
    it.plan("eth_getBalance", { block: { kind: "number", number } });
  assert.deepEqual(plan(102), ["p2", "p0", "p1"]);
  assert.deepEqual(plan(99), ["p0", "p1", "p2"]);
  it.runtime.advance(12_100);
  assert.deepEqual(plan(102), ["p2", "p1", "p0"], "two blocks may have come since p1 was polled");
  assert.deepEqual(plan(200), ["p0", "p1", "p2"], "nobody is known to have it");
});
