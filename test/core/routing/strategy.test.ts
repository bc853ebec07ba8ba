// The order of each strategy, and the health tiers that come after it.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Breaker, CLOSED } from "../../../src/core/provider/breaker.ts";
import type { ExclusionReason } from "../../../src/core/provider/capability.ts";
import type { Reading } from "../../../src/core/provider/latency.ts";
import type { Provider } from "../../../src/core/provider/profile.ts";
import { type Considered, planOf, tierOf } from "../../../src/core/routing/plan.ts";
import {
  type Entrant,
  order,
  type SelectionSettings,
  STRATEGY_NAMES,
  type Strategy,
  weightsOf,
} from "../../../src/core/routing/strategy.ts";
import type { BlockRef } from "../../../src/core/rpc/call.ts";
import { fakeCall, fakeProvider, SELECTION } from "../../fakes/providers.ts";
import { seededRandom } from "../../fakes/runtime.ts";

const CALL = fakeCall("eth_getBalance");
const OPEN: Breaker = { kind: "open", sinceMs: 0, waitMs: 30_000, openings: 1, probedAtMs: null };
const HALF_OPEN: Breaker = {
  kind: "half_open",
  openedAtMs: 0,
  sinceMs: 30_000,
  openings: 1,
  successes: 0,
  trialAtMs: null,
  goodProbes: 0,
  probedAtMs: null,
};

const warm = (latencyMs: number, overrides: Partial<Reading> = {}): Reading => ({
  calls: 100,
  successRate: 1,
  latencyMs,
  ageMs: 0,
  ...overrides,
});

function entrant(
  index: number,
  overrides: Partial<Considered> & { readonly priority?: number } = {},
): Considered {
  const { priority = 10, ...rest } = overrides;
  return {
    provider: fakeProvider(index, { priority }),
    transport: "http",
    reading: null,
    probeMs: null,
    regionRank: 0,
    reason: null,
    breaker: CLOSED,
    limited: false,
    stalled: false,
    lacking: false,
    unsure: false,
    preferred: false,
    hasAnswered: true,
    heardAtMs: 0,
    lagBlocks: null,
    ...rest,
  };
}

interface Ask {
  readonly strategy: Strategy;
  readonly settings?: Partial<SelectionSettings>;
  readonly replaySafe?: boolean;
  readonly seed?: number;
}

function ordered(
  entrants: readonly Entrant[],
  { strategy, settings = {}, replaySafe = true, seed = 1 }: Ask,
): number[] {
  const list = [...entrants];
  order(list, strategy, {
    settings: { ...SELECTION, ...settings },
    replaySafe,
    random: seededRandom(seed),
  });
  return list.map((it) => it.provider.index);
}

function shareFirst(index: number, entrants: readonly Entrant[], ask: Ask): number {
  const rounds = 4_000;
  const random = seededRandom(ask.seed ?? 1);
  let first = 0;
  for (let round = 0; round < rounds; round++) {
    const list = [...entrants];
    order(list, ask.strategy, {
      settings: { ...SELECTION, ...ask.settings },
      replaySafe: ask.replaySafe ?? true,
      random,
    });
    if (list[0]?.provider.index === index) first += 1;
  }
  return first / rounds;
}

function planned(
  considered: readonly Considered[],
  { strategy, settings = {}, replaySafe = true, seed = 1 }: Ask,
  block: BlockRef = { kind: "none" },
) {
  const draw = { settings: { ...SELECTION, ...settings }, replaySafe, random: seededRandom(seed) };
  const { candidates, excluded } = planOf(considered, { ...CALL, block }, strategy, draw);
  return {
    candidates: candidates.map((it) => it.provider.index),
    excluded: Object.fromEntries(excluded.map((it) => [it.provider.index, it.reason])),
  };
}

test("load-balanced gives every provider every place equally often", () => {
  const entrants = [entrant(0), entrant(1), entrant(2)];
  for (const index of [0, 1, 2])
    assert.ok(Math.abs(shareFirst(index, entrants, { strategy: "load-balanced" }) - 1 / 3) < 0.04);
});

test("load-balanced asks the own region first, then providers without a region, each equally often", () => {
  const regions = [2, 0, 1, 0];
  const entrants = regions.map((regionRank, index) => entrant(index, { regionRank }));
  const ask = { strategy: "load-balanced" } as const;
  for (let seed = 0; seed < 50; seed++)
    assert.deepEqual(ordered(entrants, { ...ask, seed }).slice(2), [2, 0]);
  for (const index of [1, 3]) assert.ok(Math.abs(shareFirst(index, entrants, ask) - 1 / 2) < 0.04);
});

test("load-balanced goes by weight, within a region", () => {
  const weights = [1, 3, 6];
  const entrants = weights.map((weight, index) => ({
    ...entrant(index),
    provider: fakeProvider(index, { weight }),
  }));
  const ask = { strategy: "load-balanced" } as const;
  for (const [index, weight] of weights.entries())
    assert.ok(Math.abs(shareFirst(index, entrants, ask) - weight / 10) < 0.04);
  const elsewhere = entrants.map((one, index) => ({ ...one, regionRank: index === 0 ? 0 : 2 }));
  assert.equal(shareFirst(0, elsewhere, ask), 1, "the nearest first, however light");
  assert.ok(Math.abs(shareFirst(1, elsewhere.slice(1), ask) - 1 / 3) < 0.04);
});

test("cheapest goes by the price of the call, undeclared ones last, alike ones as they come", () => {
  const limits = {
    rps: null,
    concurrency: null,
    daily: null,
    monthly: null,
    resetsOn: 1,
    credits: new Map([["eth_getLogs", 75]]),
  };
  const provider = (index: number, overrides: Partial<Provider>): Considered => ({
    ...entrant(index),
    provider: fakeProvider(index, overrides),
  });
  const entrants = [
    provider(0, {}),
    provider(1, { price: 0.5, budget: limits }),
    provider(2, { price: 2 }),
    provider(3, { price: 0 }),
  ];
  const by = (methodName: string): number[] => {
    const list = [...entrants];
    const draw = { settings: SELECTION, replaySafe: true, random: seededRandom(3) };
    order(list, "cheapest", draw, methodName);
    return list.map((one) => one.provider.index);
  };
  assert.deepEqual(by("eth_call"), [3, 1, 2, 0]);
  assert.deepEqual(by("eth_getLogs"), [3, 2, 1, 0], "75 credits of half a dollar");
  const free = [0, 1, 2].map((index) => provider(index, { price: 0 }));
  for (const index of [0, 1, 2])
    assert.ok(Math.abs(shareFirst(index, free, { strategy: "cheapest" }) - 1 / 3) < 0.04);
});

test("priority decides before the region, the region among providers of one priority", () => {
  const entrants = [
    entrant(0, { priority: 2, regionRank: 0 }),
    entrant(1, { priority: 1, regionRank: 2 }),
    entrant(2, { priority: 1, regionRank: 0 }),
  ];
  for (let seed = 0; seed < 50; seed++)
    assert.deepEqual(ordered(entrants, { strategy: "priority", seed }), [2, 1, 0]);
});

test("few entrants and many are put in the same order", () => {
  const random = seededRandom(11);
  for (let count = 0; count <= 40; count++) {
    const entrants = Array.from({ length: count }, (_, index) =>
      entrant(index, {
        priority: Math.floor(random() * 4),
        // Distinct, so that chance decides nothing.
        regionRank: (index * 7) % 41,
      }),
    );
    const wanted = entrants
      .toSorted((left, right) => left.regionRank - right.regionRank)
      .toSorted((left, right) => left.provider.priority - right.provider.priority)
      .map(({ provider }) => provider.index);
    assert.deepEqual(ordered(entrants, { strategy: "priority", seed: count }), wanted);
  }
});

test("fastest goes by latency wherever it is known, by region where it is not", () => {
  const entrants = [
    entrant(0, { reading: warm(40), regionRank: 0 }),
    entrant(1, { reading: warm(20), regionRank: 2 }),
    entrant(2, { probeMs: 9, regionRank: 0 }),
    entrant(3, { probeMs: 4, regionRank: 2 }),
    entrant(4, { regionRank: 2 }),
    entrant(5, { regionRank: 0 }),
    entrant(6, { regionRank: 1 }),
  ];
  for (let seed = 0; seed < 50; seed++)
    assert.deepEqual(ordered(entrants, { strategy: "fastest", seed }), [1, 0, 3, 2, 5, 6, 4]);
});

test("latency-weighted draws by what it has read, and takes nearer regions first of those unread", () => {
  const [far, near] = [{ regionRank: 2 }, { regionRank: 0 }];
  const unread = [entrant(0, far), entrant(1, near), entrant(2, { regionRank: 1 })];
  const ask = { strategy: "latency-weighted" } as const;
  for (let seed = 0; seed < 50; seed++)
    assert.deepEqual(ordered(unread, { ...ask, seed }), [1, 2, 0]);
  const read = [
    entrant(0, { ...far, reading: warm(30) }),
    entrant(1, { ...near, reading: warm(60) }),
  ];
  const alike = read.map((it) => ({ ...it, regionRank: 0 }));
  assert.ok(Math.abs(shareFirst(0, read, ask) - shareFirst(0, alike, ask)) < 0.02);
});

test("property: regions change the order only between providers that a strategy knows alike", () => {
  const one = fc.record({
    reading: fc.option(fc.nat(500).map((ms) => warm(ms))),
    probeMs: fc.option(fc.nat(50)),
    priority: fc.nat(2),
    regionRank: fc.nat(2),
  });
  const isRead = ({ reading }: Considered): boolean => reading !== null;
  const known = {
    "load-balanced": () => true,
    priority: (left, right) => left.provider.priority === right.provider.priority,
    cheapest: () => true,
    fastest: (left, right) =>
      left.reading?.latencyMs === right.reading?.latencyMs &&
      (isRead(left) || left.probeMs === right.probeMs),
    "latency-weighted": (left, right) => !isRead(left) && !isRead(right),
  } satisfies Record<Strategy, (left: Considered, right: Considered) => boolean>;
  fc.assert(
    fc.property(
      fc.array(one, { maxLength: 8 }),
      fc.constantFrom(...STRATEGY_NAMES),
      fc.integer(),
      (parts, strategy, seed) => {
        const entrants = parts.map((part, index) => entrant(index, part));
        const list = ordered(entrants, { strategy, seed }).map(
          (index) => entrants[index] ?? assert.fail(),
        );
        const areAlike: (left: Considered, right: Considered) => boolean = known[strategy];
        for (const [at, left] of list.entries())
          for (const right of list.slice(at + 1))
            if (areAlike(left, right)) assert.ok(left.regionRank <= right.regionRank);
        // What the strategy knows stands as it would without regions.
        if (strategy !== "fastest" && strategy !== "priority") return;
        const flat = entrants.map((it) => ({ ...it, regionRank: 0 }));
        const keyOf = ({ provider, reading, probeMs }: Considered): unknown =>
          strategy === "priority" ? provider.priority : (reading?.latencyMs ?? `probe ${probeMs}`);
        assert.deepEqual(
          list.map(keyOf),
          ordered(flat, { strategy, seed }).map((index) => keyOf(flat[index] ?? assert.fail())),
        );
      },
    ),
  );
});

test("priority goes from low to high and shuffles ties", () => {
  const entrants = [
    entrant(0, { priority: 20 }),
    entrant(1, { priority: 5 }),
    entrant(2, { priority: 20 }),
  ];
  assert.equal(shareFirst(1, entrants, { strategy: "priority" }), 1);
  const seconds = new Set(
    Array.from({ length: 50 }, (_, seed) => ordered(entrants, { strategy: "priority", seed })[1]),
  );
  assert.deepEqual(seconds, new Set([0, 2]));
});

test("fastest puts warm providers by latency, then cold ones by probe latency, then the unknown", () => {
  const entrants = [
    entrant(0),
    entrant(1, { probeMs: 9 }),
    entrant(2, { reading: warm(80) }),
    entrant(3, { probeMs: 4 }),
    entrant(4, { reading: warm(20) }),
  ];
  for (let seed = 0; seed < 20; seed++)
    assert.deepEqual(ordered(entrants, { strategy: "fastest", seed }), [4, 2, 3, 1, 0]);
});

test("fastest treats too few calls, too many failures and no delivery as cold", () => {
  const cold = [
    warm(1, { calls: 2 }),
    warm(1, { successRate: 0.89 }),
    warm(1, { latencyMs: null }),
  ];
  for (const reading of cold)
    assert.deepEqual(
      ordered([entrant(0, { reading }), entrant(1, { reading: warm(900) })], {
        strategy: "fastest",
      }),
      [1, 0],
    );
  const enough = warm(1, { calls: 3, successRate: 0.9 });
  assert.deepEqual(
    ordered([entrant(0, { reading: enough }), entrant(1, { reading: warm(900) })], {
      strategy: "fastest",
    }),
    [0, 1],
  );
});

test(
  "fastest explores an under-observed provider with the given share of replay-safe calls, and " +
    "never with others",
  () => {
    const entrants = [
      entrant(0, { reading: warm(10) }),
      entrant(1, { reading: warm(1, { successRate: 0 }) }),
      entrant(2),
    ];
    const ask = { strategy: "fastest", settings: { exploreShare: 0.1 } } as const;
    const share = shareFirst(2, entrants, ask);
    assert.ok(share > 0.07 && share < 0.13, `explored ${share}`);
    assert.equal(shareFirst(1, entrants, ask), 0, "an unreliable one is no unknown one");
    assert.equal(shareFirst(2, entrants, { ...ask, replaySafe: false }), 0);
    assert.equal(shareFirst(2, entrants, { ...ask, settings: { exploreShare: 0 } }), 0);
  },
);

test("latency-weighted: weights follow the formula relative to the floor", () => {
  const full = warm(10, { calls: 1_000 });
  const near = (readings: readonly (Reading | null)[], wanted: readonly number[]): void => {
    const found = weightsOf(readings, SELECTION);
    for (const [at, weight] of wanted.entries())
      assert.ok(Math.abs((found[at] ?? 0) - weight) < 1e-9, `${found} is not ${wanted}`);
  };
  near([full, warm(60, { calls: 1_000 })], [1, 1 / 8]);
  near([full, { ...full, calls: 1 }, { ...full, calls: 10 }], [1, 0.5 / 3, 0.5 + 0.5 / 3]);
  near(
    [
      full,
      { ...full, successRate: 0.9 },
      { ...full, successRate: 0.849 },
      { ...full, latencyMs: null },
      null,
    ],
    [1, 0.9, 0.05, 0.05, 0.05],
  );
  near([full, warm(3_000)], [1, 0.05]);
});

test("latency-weighted: where all are slow the best one sets the scale, so that order still shows", () => {
  const [best, twice] = weightsOf(
    [warm(600, { calls: 1_000 }), warm(1_200, { calls: 1_000 })],
    SELECTION,
  );
  assert.ok(best === 1 && twice === 1 / 8);
});

test(
  "latency-weighted draws first places in proportion to the weights, and the floor keeps " +
    "everyone in play",
  () => {
    const entrants = [
      entrant(0, { reading: warm(10, { calls: 1_000 }) }),
      entrant(1, { reading: warm(60, { calls: 1_000 }) }),
      entrant(2),
    ];
    const total = 1 + 1 / 8 + 0.05;
    for (const [index, weight] of [1, 1 / 8, 0.05].entries()) {
      const share = shareFirst(index, entrants, { strategy: "latency-weighted" });
      assert.ok(Math.abs(share - weight / total) < 0.03, `${index}: ${share}`);
    }
  },
);

test("latency-weighted with a floor of zero still orders everyone, whatever chance gives", () => {
  const list = [entrant(0), entrant(1, { reading: warm(10) }), entrant(2)];
  order(list, "latency-weighted", {
    settings: { ...SELECTION, lwExploreFloor: 0 },
    replaySafe: true,
    random: () => 0,
  });
  assert.equal(list[0]?.provider.index, 1);
});

test("tiers: closed, closed and limited, half-open, half-open and limited; open ones are left out", () => {
  const considered = [
    entrant(0, { breaker: OPEN, priority: 1 }),
    entrant(1, { breaker: HALF_OPEN, limited: true, priority: 2 }),
    entrant(2, { breaker: HALF_OPEN, priority: 3 }),
    entrant(3, { limited: true, priority: 4 }),
    entrant(4, { priority: 5 }),
  ];
  for (const strategy of STRATEGY_NAMES)
    assert.deepEqual(planned(considered, { strategy }), {
      candidates: [4, 3, 2, 1],
      excluded: { 0: "circuit_open" },
    });
});

test("the partition is stable: within a tier the strategy's order stays", () => {
  const considered = [
    entrant(0, { limited: true, priority: 1 }),
    entrant(1, { priority: 2 }),
    entrant(2, { limited: true, priority: 3 }),
    entrant(3, { priority: 4 }),
  ];
  assert.deepEqual(planned(considered, { strategy: "priority" }).candidates, [1, 3, 0, 2]);
});

test("a half-open provider whose trial is taken is left out", () => {
  const taken: Breaker = { ...HALF_OPEN, trialAtMs: 1 };
  assert.deepEqual(
    planned([entrant(0, { breaker: taken }), entrant(1)], { strategy: "priority" }),
    { candidates: [1], excluded: { 0: "trial_in_flight" } },
  );
});

test(
  "a half-open provider is asked first with the exploring share of replay-safe calls: else it " +
    "would never recover beside healthy ones",
  () => {
    const considered = [entrant(0), entrant(1, { breaker: HALF_OPEN })];
    const firsts = (ask: Ask): number =>
      Array.from(
        { length: 1_000 },
        (_, seed) => planned(considered, { ...ask, seed }).candidates[0],
      ).filter((it) => it === 1).length;
    const explored = firsts({ strategy: "load-balanced", settings: { exploreShare: 0.1 } });
    assert.ok(explored > 60 && explored < 140, `explored ${explored}`);
    assert.equal(
      firsts({ strategy: "load-balanced", settings: { exploreShare: 0.1 }, replaySafe: false }),
      0,
    );
    assert.equal(firsts({ strategy: "load-balanced" }), 0);
  },
);

test("limits are set aside when they leave nobody, and only then", () => {
  const limited = entrant(0, { reason: "method_unsupported" });
  const wrong = entrant(1, { reason: "wrong_chain" });
  assert.deepEqual(planned([limited, wrong, entrant(2)], { strategy: "priority" }), {
    candidates: [2],
    excluded: { 0: "method_unsupported", 1: "wrong_chain" },
  });
  assert.deepEqual(planned([limited, wrong], { strategy: "priority" }), {
    candidates: [0],
    excluded: { 1: "wrong_chain" },
  });
  assert.deepEqual(planned([wrong], { strategy: "priority" }), {
    candidates: [],
    excluded: { 1: "wrong_chain" },
  });
});

test("a capable provider with an open circuit is no reason to ask one that cannot serve", () => {
  const considered = [entrant(0, { breaker: OPEN }), entrant(1, { reason: "method_unsupported" })];
  assert.deepEqual(planned(considered, { strategy: "priority" }), {
    candidates: [],
    excluded: { 0: "circuit_open", 1: "method_unsupported" },
  });
});

test("lag is set aside only after limits, and the earliest block never goes where no archive is", () => {
  const lagging = entrant(0, { reason: "lagging" });
  const noArchive = entrant(1, { reason: "archival_required" });
  assert.deepEqual(planned([lagging, noArchive], { strategy: "priority" }).candidates, [1]);
  assert.deepEqual(planned([lagging], { strategy: "priority" }).candidates, [0]);
  assert.deepEqual(planned([noArchive], { strategy: "priority" }, { kind: "earliest" }), {
    candidates: [],
    excluded: { 1: "archival_required" },
  });
});

test("property: a plan names every provider exactly once, candidates in tier order, open ones never", () => {
  const reason = fc.option(
    fc.constantFrom<ExclusionReason>(
      "method_unsupported",
      "lagging",
      "wrong_chain",
      "block_range_limit",
      "cordoned",
    ),
    { freq: 3 },
  );
  const one = fc.record({
    reason,
    breaker: fc.constantFrom(CLOSED, OPEN, HALF_OPEN, { ...HALF_OPEN, trialAtMs: 5 }),
    limited: fc.boolean(),
    reading: fc.option(
      fc.record({
        calls: fc.nat(50),
        successRate: fc.double({ min: 0, max: 1, noNaN: true }),
        latencyMs: fc.option(fc.nat(5_000)),
        ageMs: fc.nat(),
      }),
    ),
    probeMs: fc.option(fc.nat(1_000)),
    priority: fc.nat(3),
  });
  fc.assert(
    fc.property(
      fc.array(one, { maxLength: 10 }),
      fc.constantFrom(...STRATEGY_NAMES),
      fc.integer(),
      (parts, strategy, seed) => {
        const considered = parts.map((it, index) => entrant(index, it));
        const { candidates, excluded } = planned(considered, { strategy, seed });
        assert.deepEqual(
          [...candidates, ...Object.keys(excluded).map(Number)].sort((a, b) => a - b),
          considered.map((_, index) => index),
        );
        const tiers = candidates.map((index) =>
          tierOf(considered[index]?.breaker ?? OPEN, considered[index]?.limited ?? false),
        );
        const behindFrom = candidates.findIndex((index) => parts[index]?.reason === "lagging");
        const split = behindFrom === -1 ? tiers.length : behindFrom;
        for (const part of [tiers.slice(0, split), tiers.slice(split)])
          assert.deepEqual(
            part,
            [...part].sort((a, b) => a - b),
          );
        assert.ok(tiers.every((tier) => tier < 5));
      },
    ),
  );
});
