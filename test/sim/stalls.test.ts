// Seeded simulations of two providers of which one hangs a part of its calls and answers its
// probes: how long callers wait over a minute, by percentiles, and that it comes back once its
// calls are answered again.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HedgeSettings, Provider } from "../../src/core/provider/profile.ts";
import { DEFAULT_HEDGE } from "../../src/core/routing/hedge.ts";
import { STRATEGY_NAMES, type Strategy } from "../../src/core/routing/strategy.ts";
import { type RoutingFixture, routingFixture } from "../fakes/routing.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { namedSeed } from "../fakes/seed.ts";

const READ = "eth_getBalance";
const SEED = namedSeed(20_261_124);
const EVERY_MS = 5;
const MINUTE_MS = 60_000;

/** Two providers that answer after 4 to 12 ms; the preferred one hangs this share. */
function worldOf(share: { hung: number }, hedge: HedgeSettings | null): RoutingFixture {
  const random = seededRandom(SEED);
  const fixture = routingFixture(2, { seed: SEED, ...(hedge === null ? {} : { hedge }) });
  fixture.latencyOf = (id, method) =>
    id === "p0" && method !== "probe" && random() < share.hung ? null : 4 + random() * 8;
  return fixture;
}

/** How long the calls of so long a time took (ms). */
function timesOf(
  fixture: RoutingFixture,
  forMs: number,
  strategy: Strategy = "load-balanced",
): number[] {
  const asked = Array.from({ length: forMs / EVERY_MS }, () => {
    const routed = fixture.ask({ method: READ, strategy });
    fixture.runtime.advance(EVERY_MS);
    return routed;
  });
  fixture.runtime.advance(20_000);
  assert.ok(asked.every((routed) => routed.outcome()?.kind === "result"));
  return asked.map((routed) => routed.tookMs() ?? assert.fail());
}

function percentileOf(times: readonly number[], share: number): number {
  const sorted = times.toSorted((one, two) => one - two);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? assert.fail();
}

/** Calls that it was asked since. */
function askedOf({ sent }: RoutingFixture, from: number): number {
  return sent.slice(from).filter(({ provider, isProbe }) => !isProbe && provider === "p0").length;
}

/** From the first calls that hang on, where no hedge finds them before they are given up. */
const FOUND_MS = 3_000;

// What only hedges cure: so few make no provider worse than another.
for (const hung of [0.02, 0.3, 1])
  for (const strategy of STRATEGY_NAMES)
    for (const hedge of hung < 0.1 ? [DEFAULT_HEDGE] : [DEFAULT_HEDGE, null]) {
      const how = `${strategy}, ${hedge === null ? "without" : "with"} hedges`;
      test(`one of two hangs ${hung * 100} % of its calls: few callers wait (${how})`, (t) => {
        const share = { hung: 0 };
        const fixture = worldOf(share, hedge);
        timesOf(fixture, 10_000, strategy);
        share.hung = hung;
        const first = timesOf(fixture, FOUND_MS, strategy);
        const times = timesOf(fixture, MINUTE_MS, strategy);
        if (hedge !== null) times.push(...first);
        const p99 = percentileOf(times, 0.99);
        const late = times.filter((ms) => ms > 500).length;
        const told = `p99 ${p99.toFixed(1)} ms, ${late} of ${times.length} wait longer than 500 ms`;
        t.diagnostic(told);
        assert.ok(p99 < 60, told);
      });
    }

test("a stalled provider is asked one trial at a time, and comes back once calls are answered", () => {
  const share = { hung: 0 };
  const fixture = worldOf(share, DEFAULT_HEDGE);
  timesOf(fixture, 10_000);
  share.hung = 1;
  timesOf(fixture, FOUND_MS);
  const from = fixture.sent.length;
  timesOf(fixture, MINUTE_MS);
  const trials = askedOf(fixture, from);
  assert.ok(trials > 0 && trials <= MINUTE_MS / 10_000, `${trials} calls hung within a minute`);
  share.hung = 0;
  timesOf(fixture, 20_000);
  const back = fixture.sent.length;
  const calls = timesOf(fixture, 10_000).length;
  const partOf = askedOf(fixture, back) / calls;
  assert.ok(partOf > 0.4, `${partOf} of the calls go to it again`);
});

test("where calls hang at all providers, trials change nothing of the order", () => {
  const fixture = routingFixture(2, { seed: SEED });
  const { runtime, providers } = fixture;
  let hangs = true;
  fixture.latencyOf = (_, method) => (hangs && method !== "probe" ? null : 10);
  const hangAt = (pin: Provider): void => {
    for (let call = 0; call < 10; call++) fixture.ask({ method: READ, pin, deadlineMs: 2_000 });
    runtime.advance(2_100);
  };
  const first = (): string => {
    const routed = fixture.ask({ method: READ, strategy: "priority" });
    runtime.advance(1_000);
    return fixture.attemptsOf(routed);
  };
  const [preferred, other] = providers;
  assert.ok(preferred !== undefined && other !== undefined);
  hangAt(preferred);
  hangs = false;
  assert.equal(first(), "p1:ok", "it stands behind the other");
  runtime.advance(10_000);
  assert.equal(first(), "p0:ok", "its trial stands in its place");
  hangs = true;
  hangAt(other);
  runtime.advance(10_000);
  hangAt(preferred);
  hangs = false;
  assert.equal(first(), "p0:ok", "there the trial of the other is due");
});
