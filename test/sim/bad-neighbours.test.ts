// Five providers of which any four are dead, hung, slow or refusing from the start, in every
// combination: once the fifth has answered a probe, no read is lost, and none waits for those that
// never answered.
import assert from "node:assert/strict";
import { test } from "node:test";
import { STRATEGY_NAMES } from "../../src/core/routing/strategy.ts";
import { plainFailure } from "../../src/core/rpc/failure.ts";
import { type Routed, type RoutingFixture, routingFixture } from "../fakes/routing.ts";
import { namedSeed } from "../fakes/seed.ts";

const SEED = namedSeed(20_261_124);
const MOODS = ["dead", "hung", "slow", "refusing"] as const;
type Mood = (typeof MOODS)[number];
const PROVIDERS = 5;
/** Deadline of cheap reads. */
const DEADLINE_MS = 2_000;
/** Even in every order of the others, four attempts leave the fifth this much of the deadline. */
const SLOW_MS = 1_900;
const EVERY_MS = 500;
/** Reads at the start, and again once the first waits of circuits are over. */
const SPANS_MS = [
  [0, 6_000],
  [33_000, 36_000],
] as const;

function worldOf(moods: readonly (Mood | "well")[], seed: number): RoutingFixture {
  const fixture = routingFixture(PROVIDERS, { seed, exploreShare: 0.02 });
  const moodOf = (id: string): Mood | "well" => moods[Number(id.slice(1))] ?? "well";
  fixture.latencyOf = (id) => {
    switch (moodOf(id)) {
      case "hung":
        return null;
      case "slow":
        return SLOW_MS;
      case "dead":
        return 1;
      default:
        return 10;
    }
  };
  for (const { id } of fixture.providers) {
    const mood = moodOf(id);
    if (mood !== "dead" && mood !== "refusing") continue;
    fixture.failingProbes.add(id);
    fixture.failures.set(
      id,
      mood === "dead"
        ? plainFailure("unsent", "ECONNREFUSED")
        : { ...plainFailure("body", "<html>"), httpStatus: 503 },
    );
  }
  return fixture;
}

/** The reads that were sent after the fifth had answered its first probe. */
function readsOf(fixture: RoutingFixture, well: number, choice: number): readonly Routed[] {
  const { runtime, tracker, providers } = fixture;
  const fifth = providers[well] ?? assert.fail();
  const strategy = STRATEGY_NAMES[choice % STRATEGY_NAMES.length] ?? "load-balanced";
  const reads: Routed[] = [];
  const beganAtMs = runtime.now();
  const aliveMs = (): number => runtime.now() - beganAtMs;
  for (const [fromMs, toMs] of SPANS_MS) {
    runtime.advance(Math.max(0, fromMs - aliveMs()));
    while (aliveMs() < toMs) {
      const isProven = tracker.health(fifth, "http").probeMs !== null;
      const caller = `caller ${reads.length % 3}`;
      const read = fixture.ask({ strategy, deadlineMs: DEADLINE_MS, caller });
      if (isProven) reads.push(read);
      runtime.advance(EVERY_MS);
    }
    runtime.advance(DEADLINE_MS);
  }
  return reads;
}

for (let well = 0; well < PROVIDERS; well++)
  test(`no read is lost where all but provider ${well} are bad from the start (seed ${SEED})`, () => {
    const combinations = MOODS.length ** (PROVIDERS - 1);
    for (let combination = 0; combination < combinations; combination++) {
      const bad = Array.from(
        { length: PROVIDERS - 1 },
        (_, n) => MOODS[Math.floor(combination / MOODS.length ** n) % MOODS.length] ?? "dead",
      );
      const moods = [...bad.slice(0, well), "well" as const, ...bad.slice(well)];
      const fixture = worldOf(moods, SEED + combination);
      const reads = readsOf(fixture, well, combination);
      const about = `${moods.join(" ")}, seed ${SEED + combination}`;
      assert.ok(reads.length > 10, about);
      const lost = reads.filter((read) => read.outcome()?.kind !== "result");
      assert.deepEqual(lost.map(fixture.attemptsOf), [], about);
      if (moods.includes("slow")) continue;
      // At most a trial of a half-open circuit is waited for first.
      const kept = reads.filter((read) => (read.tookMs() ?? 0) > 1_100);
      assert.deepEqual(kept.map(fixture.attemptsOf), [], about);
    }
  });
