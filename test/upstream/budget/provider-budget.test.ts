// Limits of requests a second and at once, in simulated time: behind the real router and tracker,
// with every request counted where it is sent.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { BudgetLimits } from "../../../src/core/provider/budget/budget-limits.ts";
import type { Provider } from "../../../src/core/provider/profile.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { meteredUpstream } from "../../../src/upstream/budget/metered-upstream.ts";
import { ProviderBudgets } from "../../../src/upstream/budget/provider-budget.ts";
import type { QuotaSource } from "../../../src/upstream/budget/provider-quota.ts";
import type { Outcome } from "../../../src/upstream/engine/answer.ts";
import { Router } from "../../../src/upstream/engine/router.ts";
import { Prober } from "../../../src/upstream/health/prober.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { Upstream } from "../../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { namedSeeds } from "../../fakes/seed.ts";

const NO_LIMITS: BudgetLimits = {
  rps: null,
  concurrency: null,
  daily: null,
  monthly: null,
  resetsOn: 1,
  credits: new Map(),
};

/** Nothing here has a quota. */
const NO_QUOTAS: QuotaSource = { lease: async () => null, giveBack() {}, close: async () => {} };

interface Arrival {
  readonly provider: string;
  readonly atMs: number;
  readonly method: string;
}

function service(
  limits: readonly (Partial<BudgetLimits> | null)[],
  { latencyMs = 10, seed = 1, probed = false } = {},
) {
  const runtime = simulatedWorld(seed);
  const providers = limits.map((limit, index) =>
    fakeProvider(index, {
      wsUrl: null,
      priority: index,
      budget: limit === null ? null : { ...NO_LIMITS, ...limit },
    }),
  );
  const budgets = new ProviderBudgets({ runtime, quotas: NO_QUOTAS });
  const tracker = new Tracker(fakeSet(providers), runtime, {
    ...SELECTION,
    budgets,
  });
  const arrivals: Arrival[] = [];
  let inFlight = 0;
  let mostInFlight = 0;
  const raw: Upstream = {
    send({ provider, body }, listener) {
      const method = /"method":"(\w+)"/.exec(body.toString())?.[1] ?? "";
      arrivals.push({ provider: provider.id, atMs: runtime.now(), method });
      inFlight += 1;
      mostInFlight = Math.max(mostInFlight, inFlight);
      let isOver = false;
      runtime.after(latencyMs, () => {
        if (isOver) return;
        isOver = true;
        inFlight -= 1;
        const value = Buffer.from('"0x1"');
        listener.result(value, { start: 0, end: value.length, idAt: null });
      });
      return {
        sent: true,
        cancel() {
          if (!isOver) inFlight -= 1;
          isOver = true;
        },
      };
    },
    retain() {},
    close: async () => {},
  };
  const http = meteredUpstream(raw, { runtime, budgets });
  const timerWheel = new TimerWheel(runtime);
  const router = new Router({
    runtime,
    timerWheel,
    upstreams: { http },
    limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
    hedge: () => null,
  });
  if (probed) new Prober({ runtime, timerWheel, upstreams: { http } }).watch([tracker]);
  const outcomes: Outcome[] = [];
  const ask = (pin: Provider | null = null, methodName = "eth_gasPrice") =>
    router.route(
      {
        call: {
          methodName,
          method: methodOf(methodName),
          block: { kind: "none" },
          ...writeRequest(methodName, null),
        },
        tracker,
        strategy: "priority",
        pin,
        transport: null,
        avoid: null,
        caller: { key: "caller" },
        deadlineMs: 5_000,
        mayStream: true,
      },
      ({ outcome }) => void outcomes.push(outcome),
    );
  return {
    runtime,
    providers,
    tracker,
    budgets,
    arrivals,
    outcomes,
    ask,
    mostInFlight: () => mostInFlight,
  };
}

/** The most arrivals of a provider in any second. */
function mostInASecond(arrivals: readonly Arrival[], provider: string): number {
  const times = arrivals.filter((arrival) => arrival.provider === provider).map(({ atMs }) => atMs);
  return Math.max(
    0,
    ...times.map((start, n) => times.slice(n).filter((at) => at < start + 1_000).length),
  );
}

for (const seed of namedSeeds(1, 2, 3))
  test(`50 a second declared, 500 offered: never more, and nobody is refused (seed ${seed})`, () => {
    const it = service([{ rps: 50 }, null], { seed, probed: true });
    for (let n = 0; n < 5_000; n++) {
      it.ask();
      it.runtime.advance(4 * it.runtime.random());
    }
    it.runtime.advance(100);
    const most = mostInASecond(it.arrivals, "p0");
    assert.ok(most <= 50, `${most} requests in one second`);
    const seconds = it.runtime.now() / 1_000 - 1_000;
    const sent = it.arrivals.filter(({ provider }) => provider === "p0").length;
    assert.ok(sent >= 45 * seconds, `${sent} requests in ${seconds} s`);
    assert.equal(it.outcomes.length, 5_000);
    assert.ok(it.outcomes.every(({ kind }) => kind === "result"));
    const probes = it.arrivals.filter(({ provider, method }) => {
      return provider === "p0" && method === "eth_chainId";
    });
    assert.ok(probes.length >= 1, "its probes find room beside its calls");
  });

test("requests at once are bounded, and end with their answers", () => {
  const it = service([{ concurrency: 3 }], { latencyMs: 5 });
  for (let n = 0; n < 9; n++) it.ask();
  assert.equal(it.arrivals.length, 3);
  it.runtime.advance(6);
  it.runtime.advance(6);
  it.runtime.advance(20);
  assert.equal(it.mostInFlight(), 3);
  assert.equal(it.outcomes.length, 9);
  const answered = it.outcomes.filter(({ kind }) => kind === "result").length;
  assert.equal(answered, 9, "a place that is free within milliseconds is waited for");
});

test("a caller who leaves frees its place; a waiting one asks nobody", () => {
  const it = service([{ concurrency: 1 }], { latencyMs: 1_000 });
  const first = it.ask();
  const second = it.ask();
  it.runtime.advance(3);
  second.cancel();
  first.cancel();
  it.runtime.advance(50);
  assert.equal(it.arrivals.length, 1);
  it.ask();
  assert.equal(it.arrivals.length, 2);
  assert.equal(it.outcomes.length, 0);
});

test("who finds no room anywhere is told when there will be some", () => {
  const it = service([{ rps: 2 }]);
  for (let n = 0; n < 3; n++) it.ask();
  it.runtime.advance(100);
  const fault = it.outcomes.find(({ kind }) => kind === "fault") ?? assert.fail();
  assert.equal(fault.kind, "fault");
  if (fault.kind !== "fault") return;
  assert.match(fault.fault.message, /rps_limit/);
  const waitMs = fault.fault.retryAfterMs ?? 0;
  assert.ok(waitMs > 800 && waitMs <= 1_100, `${waitMs}`);
  it.runtime.advance(waitMs - 100);
  it.ask();
  it.runtime.advance(50);
  assert.equal(it.outcomes.filter(({ kind }) => kind === "result").length, 3);
});

test("a pin does not go beyond the limits of its provider", () => {
  const it = service([{ rps: 1 }, null]);
  const pinned = it.providers[0] ?? assert.fail();
  it.ask(pinned);
  it.ask(pinned);
  it.runtime.advance(100);
  assert.equal(it.arrivals.filter(({ provider }) => provider === "p0").length, 1);
  assert.deepEqual(it.outcomes.map(({ kind }) => kind).sort(), ["fault", "result"]);
});

test("a reload changes the limit, and what was sent still counts", () => {
  const it = service([{ rps: 5 }]);
  for (let n = 0; n < 4; n++) it.ask();
  const [before = assert.fail()] = it.providers;
  const after = { ...before, budget: { ...NO_LIMITS, rps: 6 } };
  const budget = it.budgets.open(it.tracker.key, after) ?? assert.fail();
  assert.deepEqual(budget.report().rps, { limit: 6, used: 4 });
  assert.equal(budget.take("eth_gasPrice"), null);
  assert.equal(budget.take("eth_gasPrice"), null);
  assert.equal(budget.take("eth_gasPrice"), "rps_limit");
  it.budgets.retain([]);
  const anew = it.budgets.open(it.tracker.key, { ...after }) ?? assert.fail();
  assert.equal(anew.report().rps?.used, 0, "a provider that was removed is forgotten");
});

test("a call that is sent again counts again, in the place that it has", () => {
  const runtime = simulatedWorld(1);
  const budgets = new ProviderBudgets({ runtime, quotas: NO_QUOTAS });
  const provider = fakeProvider(0, { budget: { ...NO_LIMITS, rps: 3, concurrency: 1 } });
  const budget = budgets.open("set", provider) ?? assert.fail();
  assert.equal(budget.take("eth_call"), null);
  assert.equal(budget.take("eth_call"), "concurrency_limit");
  assert.equal(budget.takeAgain("eth_call"), null, "its place is its own");
  assert.equal(budget.takeAgain("eth_call"), null);
  assert.equal(budget.takeAgain("eth_call"), "rps_limit");
  assert.deepEqual(budget.report().concurrency, { limit: 1, used: 1 });
  assert.deepEqual(budget.report().rps, { limit: 3, used: 3 });
  budget.release();
  assert.equal(budget.report().concurrency?.used, 0);
});

test("providers of one account share its limits, in one profile and on all its chains", () => {
  const runtime = simulatedWorld(1);
  const budgets = new ProviderBudgets({ runtime, quotas: NO_QUOTAS });
  const limits = { budget: { ...NO_LIMITS, rps: 2 } };
  const shared = [0, 1].map((index) => ({ ...fakeProvider(index, limits), account: "vendor" }));
  const [first, second] = shared.map((each, n) => budgets.open(`team chain${n}`, each));
  assert.equal(first, second);
  assert.deepEqual([first?.take("eth_call"), second?.take("eth_call")], [null, null]);
  assert.equal(second?.take("eth_call"), "rps_limit");
  const [one = assert.fail()] = shared;
  assert.notEqual(budgets.open("other chain0", one), first, "another profile");
  assert.notEqual(budgets.open("team chain0", fakeProvider(0, limits)), first, "without account");
});
