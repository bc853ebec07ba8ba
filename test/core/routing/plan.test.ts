// Plans: that nobody is asked who may not be, that nobody is forgotten, and that health comes
// before the order of a strategy.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Breaker } from "../../../src/core/provider/breaker.ts";
import type { ExclusionReason } from "../../../src/core/provider/capability.ts";
import {
  betterOf,
  type Considered,
  panicPlanOf,
  planOf,
  tierOf,
  waitOf,
  withReserveAsked,
} from "../../../src/core/routing/plan.ts";
import { STRATEGY_NAMES } from "../../../src/core/routing/strategy.ts";
import { fakeCall, fakeProvider, SELECTION } from "../../fakes/providers.ts";
import { seededRandom } from "../../fakes/runtime.ts";

const CALL = fakeCall("eth_getBalance");
const CLOSED: Breaker = { kind: "closed", failures: 0, cause: null, causeRun: 0 };
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
const ON_TRIAL: Breaker = { ...HALF_OPEN, trialAtMs: 30_000 };
const NEVER_ASKED: readonly ExclusionReason[] = [
  "transport_missing",
  "wrong_chain",
  "cordoned",
  "other_region",
];
const REASONS: readonly (ExclusionReason | null)[] = [
  null,
  null,
  "method_unsupported",
  "block_range_limit",
  "lagging",
  ...NEVER_ASKED,
];

function considered(index: number, overrides: Partial<Considered> = {}): Considered {
  return {
    provider: fakeProvider(index),
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
    ...overrides,
  };
}

const sets = fc
  .array(
    fc.record({
      reason: fc.constantFrom(...REASONS),
      breaker: fc.constantFrom(CLOSED, OPEN, HALF_OPEN, ON_TRIAL),
      limited: fc.boolean(),
      stalled: fc.boolean(),
      heardAtMs: fc.integer({ min: 0, max: 100_000 }),
      regionRank: fc.nat(2),
      lagBlocks: fc.option(fc.nat(9)),
    }),
    { maxLength: 8 },
  )
  .map((states) => states.map((state, index) => considered(index, state)));
const draws = fc.record({
  strategy: fc.constantFrom(...STRATEGY_NAMES),
  exploreShare: fc.constantFrom(0, 1),
  replaySafe: fc.boolean(),
  seed: fc.nat(),
});

function planFor(
  set: readonly Considered[],
  { strategy, exploreShare, replaySafe, seed }: Draws,
): ReturnType<typeof planOf> {
  const settings = { ...SELECTION, exploreShare };
  return planOf(set, CALL, strategy, { settings, replaySafe, random: seededRandom(seed) });
}

type Draws = typeof draws extends fc.Arbitrary<infer T> ? T : never;

function stateOf(set: readonly Considered[], index: number): Considered {
  return set[index] ?? assert.fail();
}

test("property: every provider stands in a plan exactly once, as a candidate or with a reason", () => {
  fc.assert(
    fc.property(sets, draws, (set, draw) => {
      const { candidates, excluded } = planFor(set, draw);
      const indexes = [...candidates, ...excluded].map(({ provider }) => provider.index);
      assert.deepEqual(
        indexes.sort((left, right) => left - right),
        set.map((_, index) => index),
      );
    }),
  );
});

test("property: no plan asks a provider with an open circuit, a trial under way, a wrong chain or a cordon", () => {
  fc.assert(
    fc.property(sets, draws, (set, draw) => {
      for (const { provider } of planFor(set, draw).candidates) {
        const { breaker, reason } = stateOf(set, provider.index);
        assert.ok(breaker !== OPEN && breaker !== ON_TRIAL);
        assert.ok(reason === null || !NEVER_ASKED.includes(reason));
      }
    }),
  );
});

test("property: a limit is set aside only where nobody is without one, lag only where no circuit of the others is closed", () => {
  fc.assert(
    fc.property(sets, draws, (set, draw) => {
      const reasons = set.map(({ reason }) => reason);
      const isLimit = (reason: ExclusionReason | null): boolean =>
        reason === "method_unsupported" || reason === "block_range_limit";
      const isPreferred = (reason: ExclusionReason | null): boolean =>
        reasons.includes(null) ? reason === null : isLimit(reason);
      const { candidates, lagWaived } = planFor(set, draw);
      const chosen = candidates.map(({ provider }) => stateOf(set, provider.index));
      for (const { reason } of chosen) if (isLimit(reason)) assert.ok(!reasons.includes(null));
      const preferred = set.filter(({ reason }) => isPreferred(reason));
      const isSure = preferred.some(({ breaker }) => breaker === CLOSED);
      const lagging = chosen.filter(({ reason }) => reason === "lagging");
      assert.equal(lagWaived === true, lagging.length > 0, "the plan says so");
      if (isSure) return assert.equal(lagging.length, 0);
      const askable = set.filter(
        ({ reason, breaker }) => reason === "lagging" && breaker !== OPEN && breaker !== ON_TRIAL,
      );
      assert.equal(lagging.length, askable.length, "all of those that can be asked");
      assert.deepEqual(
        chosen.map(({ reason }) => reason === "lagging"),
        chosen.map((_, at) => at >= chosen.length - lagging.length),
        "behind the others",
      );
    }),
  );
});

test("a provider that dies ahead of the others leaves the call to the freshest of them", () => {
  const behind = (index: number, lagBlocks: number | null, more: Partial<Considered> = {}) =>
    considered(index, { reason: "lagging", lagBlocks, ...more });
  const plan = planFor(
    [
      considered(0, { breaker: OPEN }),
      behind(1, 9),
      behind(2, null),
      behind(3, 4),
      behind(4, 3, { limited: true }),
      behind(5, 3, { breaker: OPEN }),
    ],
    { strategy: "priority", exploreShare: 0, replaySafe: true, seed: 1 },
  );
  assert.deepEqual(
    plan.candidates.map(({ provider }) => provider.index),
    [3, 1, 2, 4],
  );
  assert.equal(plan.lagWaived, true);
  assert.deepEqual(
    plan.excluded.map(({ provider, reason }) => [provider.index, reason]),
    [
      [5, "lagging"],
      [0, "circuit_open"],
    ],
  );
  const trial = planFor([considered(0, { breaker: HALF_OPEN }), behind(1, 3)], {
    strategy: "priority",
    exploreShare: 0,
    replaySafe: true,
    seed: 1,
  });
  assert.deepEqual(
    trial.candidates.map(({ provider }) => provider.index),
    [0, 1],
    "its trial comes first, and somebody follows",
  );
});

test("property: better tiers come first under every strategy; a trial stands before them only for a call that may be replayed", () => {
  fc.assert(
    fc.property(sets, draws, (set, draw) => {
      const { candidates, lagWaived } = planFor(set, draw);
      if (lagWaived === true) return;
      const states = candidates.map(({ provider }) => stateOf(set, provider.index));
      const tiers = states.map(({ breaker, limited, stalled }) =>
        tierOf(breaker, limited || stalled),
      );
      const sorted = [...tiers].sort((left, right) => left - right);
      const toTry = states.map(
        ({ breaker, limited, stalled }) => breaker.kind === "half_open" && !limited && !stalled,
      );
      const explores = draw.replaySafe && draw.exploreShare === 1 && toTry.includes(true);
      if (!explores) return assert.deepEqual(tiers, sorted);
      assert.equal(toTry[0], true, "one that may be well again, and is not rate-limited, is first");
      const [first = 0, ...others] = tiers;
      assert.deepEqual(
        others,
        sorted.toSpliced(sorted.indexOf(first), 1),
        "the others keep their order",
      );
    }),
  );
});

test("property: a backup stands after every other candidate, and is never tried before them", () => {
  const backups = fc.array(fc.boolean(), { minLength: 8, maxLength: 8 });
  fc.assert(
    fc.property(sets, backups, draws, (plain, isBackup, draw) => {
      const set = plain.map((state, index) => ({
        ...state,
        provider: { ...state.provider, backup: isBackup[index] === true },
      }));
      const { candidates, lagWaived } = planFor(set, draw);
      if (lagWaived === true) return;
      const order = candidates.map(({ provider }) => provider.backup);
      assert.deepEqual(order, [...order].sort(), "no backup before another");
      const tiers = candidates
        .filter(({ provider }) => provider.backup)
        .map(({ provider }) => stateOf(set, provider.index))
        .map(({ breaker, limited, stalled }) => tierOf(breaker, limited || stalled));
      assert.deepEqual(tiers, [...tiers].sort());
      const asked = (panicPlanOf(set, CALL)?.candidates ?? []).map(({ provider }) => provider);
      for (const isLagging of [false, true]) {
        const panic = asked
          .filter(({ index }) => (stateOf(set, index).reason === "lagging") === isLagging)
          .map(({ backup }) => backup);
        assert.deepEqual(panic, [...panic].sort());
      }
    }),
  );
});

test("property: a panic asks those who could serve the call, rate-limited ones last, the latest heard first, and then those that lag", () => {
  fc.assert(
    fc.property(sets, (set) => {
      const plan = panicPlanOf(set, CALL);
      if (plan === null)
        return assert.ok(
          set.every(({ reason }) => reason !== null && NEVER_ASKED.includes(reason)),
          "there is a plan unless every provider is out of the question",
        );
      assert.equal(plan.panic, true);
      const states = plan.candidates.map(({ provider }) => stateOf(set, provider.index));
      for (const { reason } of states) assert.ok(reason === null || !NEVER_ASKED.includes(reason));
      for (const [at, state] of states.slice(1).entries()) {
        const before = states[at] ?? assert.fail();
        assert.ok(before.reason !== "lagging" || state.reason === "lagging");
        if ((before.reason === "lagging") !== (state.reason === "lagging")) continue;
        assert.ok(Number(before.limited) <= Number(state.limited));
        if (before.limited === state.limited) assert.ok(before.heardAtMs >= state.heardAtMs);
      }
      const lagging = set.filter(({ reason }) => reason === "lagging").length;
      assert.equal(states.filter(({ reason }) => reason === "lagging").length, lagging);
      assert.equal(plan.lagWaived === true, lagging > 0, "the plan says so");
      assert.equal(plan.candidates.length + plan.excluded.length, set.length, "each once");
    }),
  );
});

test("the time to wait is that of the first who can serve the call, not of one who cannot", () => {
  assert.equal(
    waitOf(
      [
        { reason: null, waitMs: 900 },
        { reason: null, waitMs: 300 },
        { reason: "method_unsupported", waitMs: 1 },
        { reason: "wrong_chain", waitMs: 0 },
      ],
      CALL,
    ),
    300,
  );
  assert.equal(
    waitOf(
      [
        { reason: "lagging", waitMs: 5 },
        { reason: "block_range_limit", waitMs: 70 },
      ],
      CALL,
    ),
    5,
    "those that lag are asked while the others are not",
  );
  assert.equal(waitOf([{ reason: "cordoned", waitMs: 0 }], CALL), null, "waiting cannot help");
  assert.equal(waitOf([], CALL), null);
});

test("of two transports of one provider the healthier is taken, the first where they are alike", () => {
  const http = considered(0);
  const ws = considered(0, { transport: "ws" });
  assert.equal(betterOf(http, ws, CALL), http);
  assert.equal(betterOf({ ...http, limited: true }, ws, CALL), ws);
  const excluded = considered(0, { reason: "cordoned" });
  const lagging = considered(0, { reason: "lagging" });
  const open = considered(0, { breaker: OPEN });
  assert.equal(betterOf(excluded, lagging, CALL), lagging, "lag may be set aside, a cordon not");
  assert.equal(betterOf(lagging, open, CALL), open, "an open circuit closes again");
});

test("those that never answered stand after all that have, and before every backup", () => {
  const random = seededRandom(1);
  const draw = { settings: SELECTION, replaySafe: false, random };
  const backup = { provider: fakeProvider(4, { backup: true }) };
  const set = [
    considered(0, { hasAnswered: false }),
    considered(1, { breaker: HALF_OPEN, limited: true }),
    considered(2),
    considered(3, { hasAnswered: false, breaker: HALF_OPEN }),
    considered(4, backup),
  ];
  for (const strategy of STRATEGY_NAMES)
    assert.deepEqual(
      planOf(set, CALL, strategy, draw).candidates.map(({ provider }) => provider.id),
      ["p2", "p1", "p0", "p3", "p4"],
    );
});

test("those that have the block come first, those that lack it last, the others between", () => {
  const draw = { settings: SELECTION, replaySafe: false, random: seededRandom(1) };
  const set = [
    considered(0, { lacking: true }),
    considered(1, { unsure: true }),
    considered(2, { breaker: HALF_OPEN }),
    considered(3, { provider: fakeProvider(3, { backup: true }) }),
  ];
  assert.deepEqual(
    planOf(set, CALL, "priority", draw).candidates.map(({ provider }) => provider.id),
    ["p2", "p1", "p3", "p0"],
  );
});

test("beside a closed circuit those that lag are kept in reserve, unless they lack the block", () => {
  const draw = { settings: SELECTION, replaySafe: true, random: seededRandom(1) };
  const lagging = (index: number, about: Partial<Considered> = {}): Considered =>
    considered(index, { reason: "lagging", lagBlocks: 9 - index, ...about });
  const set = [considered(0), lagging(1), lagging(2), lagging(3, { lacking: true })];
  const plan = planOf(set, CALL, "priority", draw);
  assert.deepEqual(
    plan.reserve?.map(({ provider }) => provider.id),
    ["p2", "p1"],
  );
  assert.equal(plan.lagWaived, undefined);
  assert.equal(plan.excluded.length, 3);
  const asked = withReserveAsked(plan, plan.reserve ?? []);
  assert.deepEqual(
    asked.candidates.map(({ provider }) => provider.id),
    ["p0", "p2", "p1"],
  );
  assert.deepEqual(
    [asked.excluded.map(({ provider }) => provider.id), asked.lagWaived],
    [["p3"], true],
  );
  assert.equal(planOf([considered(0)], CALL, "priority", draw).reserve, undefined);
});

test("an open circuit is worse than a transport that has not answered yet", () => {
  const open = considered(0, { breaker: OPEN });
  const fresh = considered(0, { hasAnswered: false, transport: "ws" });
  const answered = considered(0, { breaker: HALF_OPEN, limited: true });
  assert.equal(betterOf(open, fresh, CALL), fresh);
  assert.equal(betterOf(fresh, answered, CALL), answered);
});
