// What another plan would have been: made of recorded inputs alone, it repeats the plan that was
// really made, for every strategy and any state of the providers; and it changes when it should.
import assert from "node:assert/strict";
import { test } from "node:test";
import { STRATEGY_NAMES } from "../../../src/core/routing/strategy.ts";
import { alternativePlan, positionReason } from "../../../src/core/routing/what-if.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { fakeCall, fakeProvider, fakeSet, SELECTION, verdict } from "../../fakes/providers.ts";
import { seededRandom, simulatedWorld } from "../../fakes/runtime.ts";

const CALL = fakeCall("eth_getBalance", { kind: "number", number: 100 });
const SEEDS = 60;

/** A tracker whose providers have done well and badly, as a seed has it. */
function lived(seed: number, exploreShare = 0.3) {
  const runtime = simulatedWorld(seed);
  const chance = seededRandom(seed + 1_000);
  const providers = Array.from({ length: 2 + Math.floor(chance() * 6) }, (_, index) =>
    fakeProvider(index, {
      weight: 1 + Math.floor(chance() * 3),
      priority: Math.floor(chance() * 4),
      price: chance() < 0.5 ? null : chance(),
      backup: chance() < 0.2,
    }),
  );
  const settings = { ...SELECTION, exploreShare };
  const tracker = new Tracker(fakeSet(providers), runtime, settings);
  for (let n = 0; n < 200; n++) {
    const provider = providers[Math.floor(chance() * providers.length)];
    if (provider === undefined) continue;
    const isBad = chance() < 0.1 * provider.index;
    const effect = { kind: "failure", cause: "network" } as const;
    const attempt = {
      provider,
      transport: "http",
      latencyMs: 5 + chance() * 100 * (1 + provider.index),
      verdict: isBad ? verdict(effect) : null,
      code: null,
    } as const;
    tracker.record(CALL.method, attempt);
    runtime.advance(50);
  }
  return { tracker, providers };
}

test("the recorded inputs give the plan that was made, for every strategy", () => {
  let random = 0;
  for (let seed = 1; seed <= SEEDS; seed++)
    for (const strategy of STRATEGY_NAMES) {
      const { tracker } = lived(seed);
      const selection = { strategy, transport: null, pin: null } as const;
      const plan = tracker.plan(CALL, { ...selection, record: true });
      assert.ok(plan.inputs !== undefined);
      const again = alternativePlan(plan.inputs, { strategy, without: null });
      const ids = again.candidates.map(({ considered }) => considered.provider.id);
      assert.deepEqual(
        [ids, again.excluded, again.panic],
        [plan.candidates.map(({ provider }) => provider.id), plan.excluded, plan.panic],
        `seed ${seed}, ${strategy}`,
      );
      const shares = again.candidates.reduce((sum, { firstShare }) => sum + firstShare, 0);
      assert.ok(ids.length === 0 || Math.abs(shares - 1) < 1e-9, `seed ${seed}: somebody is first`);
      if (again.isRandom) random++;
      assert.equal(tracker.plan(CALL, selection).inputs, undefined, "recorded only where asked");
    }
  assert.ok(random > SEEDS, `${random} orders depend on chance`);
});

test("another strategy and a missing provider give the plans that they would have given", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { tracker, providers } = lived(seed, 0);
    const selection = { strategy: "load-balanced", transport: null, pin: null } as const;
    const { inputs } = tracker.plan(CALL, { ...selection, record: true });
    assert.ok(inputs !== undefined);
    // An order without chance can be compared with the one that the tracker makes.
    const strategy = "cheapest";
    const really = tracker.plan(CALL, { ...selection, strategy });
    const other = alternativePlan(inputs, { strategy, without: null });
    const firstPrice = (id: string | undefined) => providers.find((each) => each.id === id)?.price;
    assert.equal(
      firstPrice(other.candidates[0]?.considered.provider.id),
      firstPrice(really.candidates[0]?.provider.id),
      `seed ${seed}`,
    );
    for (const { considered } of other.candidates)
      assert.ok(
        positionReason(considered, strategy, {
          entrants: other.candidates.map((each) => each.considered),
          settings: inputs.settings,
        }).length > 0,
      );
    const without = other.candidates[0]?.considered.provider.id ?? "p0";
    const rest = alternativePlan(inputs, { strategy, without });
    const named = [...rest.candidates.map(({ considered }) => considered), ...rest.excluded];
    assert.ok(!named.some(({ provider }) => provider.id === without), `seed ${seed}`);
  }
});

test("a reading that decided is the one of the moment of the plan", () => {
  const runtime = simulatedWorld(7);
  const providers = [fakeProvider(0), fakeProvider(1)];
  const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
  const answer = (index: 0 | 1, latencyMs: number): void => {
    const provider = providers[index] ?? fakeProvider(index);
    for (let n = 0; n < 20; n++)
      tracker.record(CALL.method, {
        provider,
        transport: "http",
        latencyMs,
        verdict: null,
        code: null,
      });
  };
  answer(0, 10);
  answer(1, 50);
  const selection = {
    strategy: "load-balanced",
    transport: null,
    pin: null,
    record: true,
  } as const;
  const { inputs } = tracker.plan(CALL, selection);
  assert.ok(inputs !== undefined);
  answer(0, 5_000);
  const fastest = alternativePlan(inputs, { strategy: "fastest", without: null });
  assert.deepEqual(
    fastest.candidates.map(({ considered, firstShare }) => [
      considered.provider.id,
      Math.round(considered.reading?.latencyMs ?? 0),
      firstShare,
    ]),
    [
      ["p0", 10, 1],
      ["p1", 50, 0],
    ],
  );
  assert.equal(fastest.isRandom, false);
});
