// A seeded simulation of health and selection: providers with hidden behaviours, random traffic,
// lost attempts and a clock that jumps, under invariants. A failure names its seed and step; the
// same seed replays it.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt, Effect, Verdict } from "../../src/core/provider/attempt.ts";
import {
  type Breaker,
  OPEN_BASE_MS,
  OPEN_CAP_MS,
  OPEN_JITTER,
  PERMIT_EXPIRY_MS,
  settled,
} from "../../src/core/provider/breaker.ts";
import { limitedForMs } from "../../src/core/provider/health.ts";
import type { Provider } from "../../src/core/provider/profile.ts";
import { type Plan, tierOf } from "../../src/core/routing/plan.ts";
import { STRATEGY_NAMES } from "../../src/core/routing/strategy.ts";
import type { Call } from "../../src/core/rpc/call.ts";
import { METHODS } from "../../src/core/rpc/method.ts";
import type { ProviderState } from "../../src/upstream/health/provider-state.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import { fakeCall, fakeProvider, fakeSet, SELECTION, verdict } from "../fakes/providers.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../fakes/runtime.ts";
import { namedSeeds } from "../fakes/seed.ts";

const STEPS = 50_000;
const BLOCK_MS = 3_000;
const PROBE_MS = 12_000;
const MAX_IN_FLIGHT = 40;
const MAX_ATTEMPTS = 3;
/** Tiers of those that never answered come after all of the others. */
const NEVER_ANSWERED = 10;
const EXPLORE_SHARE = 0.05;
const LONGEST_WAIT_MS = OPEN_CAP_MS * (1 + OPEN_JITTER);

type Behaviour =
  | "healthy"
  | "dead"
  | "recovering"
  | "flapping"
  | "limiting"
  | "erratic"
  | "lagging"
  | "boasting";

interface Actor {
  readonly provider: Provider;
  behaviour: Behaviour;
  readonly latencyMs: number;
  readonly recoversAtMs: number;
  /** Dispatches so far. */
  sent: number;
  openedAtMs: number;
  waitMs: number;
  lostAtMs: number;
}

interface Flight {
  readonly actor: Actor;
  readonly call: Call;
  readonly plan: Plan;
  readonly tried: number;
  readonly startedAtMs: number;
  /** In true time, which no jump moves. */
  readonly endsAtMs: number;
  readonly trial: boolean;
  readonly lost: boolean;
}

interface Sim {
  readonly seed: number;
  readonly runtime: SimulatedWorld;
  readonly random: () => number;
  readonly tracker: Tracker;
  readonly actors: readonly Actor[];
  readonly exploreShare: number;
  flights: Flight[];
  step: number;
  trueMs: number;
  nextProbeMs: number;
  probed: number;
  jumpedBack: number;
}

for (const seed of namedSeeds(101, 102, 103, 104, 105)) {
  const exploreShare = seed % 3 === 2 ? 0 : EXPLORE_SHARE;
  test(`health and selection keep their invariants (seed ${seed}, exploring ${exploreShare})`, () => {
    const sim = build(seed, exploreShare);
    for (; sim.step < STEPS; sim.step++) takeStep(sim);
    drain(sim);
    checkDead(sim);
    checkBounded(sim);
    checkRecovery(sim);
  });
}

function build(seed: number, exploreShare: number): Sim {
  const random = seededRandom(seed);
  const runtime = simulatedWorld(seed + 1);
  const others: readonly Behaviour[] = [
    "dead",
    "recovering",
    "flapping",
    "limiting",
    "erratic",
    "lagging",
    "boasting",
  ];
  const behaviours: Behaviour[] = ["healthy", "healthy", ...others.filter(() => random() < 0.6)];
  if (!behaviours.includes("dead")) behaviours.push("dead");
  const providers = behaviours.map((_, index) =>
    fakeProvider(index, { priority: Math.floor(random() * 3) }),
  );
  const chain = { chainId: 1, chainName: "sim", name: "Sim", aliases: [], blockTimeMs: BLOCK_MS };
  const tracker = new Tracker(fakeSet(providers, { chain }), runtime, {
    ...SELECTION,
    exploreShare,
  });
  const actors = providers.map((provider, at): Actor => {
    const latencyMs = 5 + random() * 200;
    return {
      provider,
      behaviour: behaviours[at] ?? "healthy",
      latencyMs,
      recoversAtMs: 300_000 + random() * 900_000,
      sent: 0,
      openedAtMs: 0,
      waitMs: 0,
      lostAtMs: -1e9,
    };
  });
  return {
    seed,
    runtime,
    random,
    tracker,
    actors,
    exploreShare,
    flights: [],
    step: 0,
    trueMs: 0,
    nextProbeMs: 0,
    probed: 0,
    jumpedBack: 0,
  };
}

function takeStep(sim: Sim): void {
  const { random, runtime } = sim;
  const idle = random();
  passTime(sim, idle < 0.001 ? random() * 700_000 : idle < 0.01 ? random() * 5_000 : random() * 60);
  if (random() < 0.0004) jump(sim, (random() - 0.5) * 200_000);
  if (random() < 0.8 && sim.flights.length < MAX_IN_FLIGHT) send(sim);
  if (sim.step % 5_000 === 0) drain(sim);
  must(sim, Number.isFinite(runtime.now()), "the clock broke");
}

function jump(sim: Sim, ms: number): void {
  sim.runtime.jump(ms);
  if (ms >= 0) return;
  // Waits and permits from the future are over: what was promised before the jump no longer binds.
  sim.jumpedBack += 1;
  for (const actor of sim.actors) actor.openedAtMs = Number.NEGATIVE_INFINITY;
  sim.flights = sim.flights.map((flight) => ({ ...flight, trial: false }));
}

function passTime(sim: Sim, ms: number): void {
  const untilMs = sim.trueMs + ms;
  for (;;) {
    const flight = sim.flights.reduce<Flight | null>(
      (first, it) => (first === null || it.endsAtMs < first.endsAtMs ? it : first),
      null,
    );
    const nextMs = Math.min(flight?.endsAtMs ?? untilMs, sim.nextProbeMs, untilMs);
    sim.runtime.advance(Math.max(0, nextMs - sim.trueMs));
    sim.trueMs = Math.max(sim.trueMs, nextMs);
    if (nextMs === sim.nextProbeMs) probeNext(sim);
    else if (flight !== null && nextMs === flight.endsAtMs) land(sim, flight);
    else return;
  }
}

function drain(sim: Sim): void {
  while (sim.flights.length > 0) passTime(sim, 60_000);
  for (const actor of sim.actors) {
    const { breaker } = stateOf(sim, actor.provider);
    if (sim.runtime.now() - actor.lostAtMs < PERMIT_EXPIRY_MS || breaker.kind !== "half_open")
      continue;
    must(sim, breaker.trialAtMs === null, "a permit leaked");
  }
}

function send(sim: Sim): void {
  const { random, tracker, actors } = sim;
  const call = pickCall(random);
  const strategy = STRATEGY_NAMES[Math.floor(random() * STRATEGY_NAMES.length)] ?? "load-balanced";
  const pin =
    random() < 0.03 ? (actors[Math.floor(random() * actors.length)]?.provider ?? null) : null;
  const plan = tracker.plan(call, { strategy, transport: "http", pin });
  checkPlan(sim, plan, call, pin);
  dispatch(sim, call, plan, 0, 0);
}

function pickCall(random: () => number): Call {
  const chance = random();
  if (chance < 0.5) return fakeCall("eth_getBalance");
  if (chance < 0.7) return fakeCall("eth_getLogs");
  return chance < 0.8
    ? fakeCall("eth_sendRawTransaction")
    : fakeCall(`custom_${Math.floor(random() * 10_000)}`);
}

/** What the router does: the first candidate from `from` on that gives leave. */
function dispatch(sim: Sim, call: Call, plan: Plan, from: number, tried: number): void {
  for (const { provider } of plan.candidates.slice(from)) {
    const actor = sim.actors[provider.index];
    if (actor === undefined) continue;
    const before = stateOf(sim, provider).breaker;
    const leave = sim.tracker.admit(provider, "http");
    must(sim, leave || before.kind !== "closed", "a closed circuit refused leave");
    if (!leave) continue;
    must(
      sim,
      before.kind !== "open" && sim.runtime.now() >= actor.openedAtMs + actor.waitMs - 1e-6,
      "an open circuit gave leave before its time",
    );
    const trial = before.kind === "half_open";
    if (trial) checkTrial(sim, actor);
    const lost = sim.random() < 0.000_5;
    actor.sent += 1;
    if (lost) actor.lostAtMs = sim.runtime.now();
    const { latencyMs } = actor;
    const endsAtMs =
      sim.trueMs +
      (actor.behaviour === "dead" ? 20 + sim.random() * 3_000 : latencyMs * (0.5 + sim.random()));
    const flight = {
      actor,
      call,
      plan,
      tried: tried + 1,
      startedAtMs: sim.runtime.now(),
      endsAtMs,
      trial,
      lost,
    };
    sim.flights.push(flight);
    return;
  }
}

function land(sim: Sim, flight: Flight): void {
  sim.flights = sim.flights.filter((it) => it !== flight);
  if (flight.lost) return;
  const { actor, call, plan } = flight;
  const heard = behave(sim, actor);
  const attempt: Attempt = {
    provider: actor.provider,
    transport: "http",
    latencyMs: sim.runtime.now() - flight.startedAtMs,
    verdict: heard,
    code: null,
  };
  const before = stateOf(sim, actor.provider).breaker;
  sim.tracker.record(call.method, attempt, call.block);
  const after = stateOf(sim, actor.provider).breaker;
  if (heard !== null && heard.effect.kind !== "failure")
    must(sim, sameCounts(before, after), "an ignored outcome moved a circuit");
  if (after.kind === "open" && before.kind !== "open") {
    actor.openedAtMs = sim.runtime.now();
    actor.waitMs = sim.tracker.health(actor.provider, "http").retryAfterMs ?? 0;
    must(
      sim,
      actor.waitMs >= OPEN_BASE_MS * (1 - OPEN_JITTER) && actor.waitMs <= LONGEST_WAIT_MS,
      `a circuit opened for ${actor.waitMs} ms`,
    );
  }
  if (
    heard !== null &&
    heard.step === "next" &&
    call.method.replaySafe &&
    flight.tried < MAX_ATTEMPTS
  ) {
    dispatch(
      sim,
      call,
      plan,
      plan.candidates.findIndex((it) => it.provider === actor.provider) + 1,
      flight.tried,
    );
  }
}

function behave({ random, trueMs }: Sim, actor: Actor): Verdict | null {
  const chance = random();
  const fail = (): Verdict =>
    verdict(
      chance < 0.5
        ? { kind: "failure", cause: "timeout" }
        : { kind: "failure", cause: chance < 0.8 ? "network" : "server" },
    );
  switch (actor.behaviour) {
    case "dead":
      return fail();
    case "recovering":
      return trueMs < actor.recoversAtMs ? fail() : null;
    case "flapping":
      return Math.floor(trueMs / 120_000) % 2 === 0 ? null : fail();
    case "limiting":
      return chance < 0.4 ? verdict({ kind: "cooldown", ms: chance * 200_000 }) : null;
    case "erratic":
      return chance < 0.2 ? fail() : neutral(random());
    case "healthy":
    case "lagging":
    case "boasting":
      return chance < 0.3 ? neutral(random()) : null;
  }
}

function neutral(chance: number): Verdict {
  const effects: readonly Effect[] = [
    { kind: "ignored" },
    { kind: "learn", what: "range", maxBlockRange: null },
    { kind: "learn", what: "subscription" },
  ];
  const effect = effects[Math.floor(chance * 5)] ?? { kind: "ignored" };
  return chance > 0.8
    ? { category: "cancelled", step: "return", effect: { kind: "ignored" } }
    : verdict(effect, chance > 0.5 ? "return" : "next");
}

/** Probes are staggered: one provider at a time, each every 12 s. */
function probeNext(sim: Sim): void {
  const { actors, tracker } = sim;
  sim.nextProbeMs = sim.trueMs + PROBE_MS / actors.length;
  const actor = actors[sim.probed % actors.length];
  sim.probed += 1;
  if (actor === undefined) return;
  const { provider, behaviour, latencyMs } = actor;
  const height = 1_000_000 + Math.floor(sim.trueMs / BLOCK_MS) + errorOf(behaviour);
  if (behaviour === "dead")
    return tracker.recordProbe({
      provider,
      transport: "http",
      latencyMs,
      result: { kind: "failed", category: "timeout" },
    });
  const before = stateOf(sim, provider).breaker;
  tracker.recordProbe({
    provider,
    transport: "http",
    latencyMs,
    result: { kind: "ok", chainId: 1, height },
  });
  checkProbe(sim, actor, before, stateOf(sim, provider).breaker);
}

/**
 * A good probe ends a wait; where calls opened the circuit again after that, at most once per wait.
 * Some of them close a half-open circuit that no call tries. Else it changes no circuit.
 */
function checkProbe(sim: Sim, actor: Actor, before: Breaker, after: Breaker): void {
  if (before.kind === "half_open" && after.kind === "closed")
    return must(sim, before.goodProbes !== null, "probes closed a circuit that a call has tried");
  if (before.kind !== "open")
    return must(
      sim,
      before === after || sameCounts(before, after),
      "a probe moved a circuit that is not open",
    );
  if (after.kind === "open") return;
  must(sim, after.kind === "half_open" && after.successes === 0, "a probe closed a circuit");
  const nowMs = sim.runtime.now();
  const sinceMs = before.probedAtMs === null ? Number.POSITIVE_INFINITY : nowMs - before.probedAtMs;
  must(
    sim,
    sinceMs < 0 || sinceMs >= before.waitMs,
    "probes made a circuit half-open twice within one wait",
  );
  actor.waitMs = 0;
}

function errorOf(behaviour: Behaviour): number {
  return behaviour === "lagging" ? -1_000 : behaviour === "boasting" ? 1e9 : 0;
}

function checkPlan(
  sim: Sim,
  { candidates: channels, excluded }: Plan,
  call: Call,
  pin: Provider | null,
): void {
  const candidates = channels.map((it) => it.provider);
  const seen = new Set([...candidates, ...excluded.map((it) => it.provider)]);
  must(sim, seen.size === candidates.length + excluded.length, "a provider is named twice");
  must(
    sim,
    seen.size === (pin === null ? sim.actors.length : 1),
    "a provider is neither candidate nor excluded",
  );
  const tiers = candidates.map((provider) => {
    const { breaker, limited, hasAnswered } = stateOf(sim, provider);
    return tierOf(breaker, limited) + (hasAnswered ? 0 : NEVER_ANSWERED);
  });
  const isHalfOpen = (tiers[0] ?? 0) % NEVER_ANSWERED === 3;
  const explored = sim.exploreShare > 0 && call.method.replaySafe && isHalfOpen;
  for (let at = explored ? 2 : 1; at < tiers.length; at++)
    must(sim, (tiers[at - 1] ?? 0) <= (tiers[at] ?? 0), `tiers are out of order: ${tiers}`);
  must(sim, !tiers.some((tier) => tier % NEVER_ANSWERED === 5), "an open circuit is a candidate");
  if (pin !== null) return;
  for (const { provider, behaviour } of sim.actors) {
    if (behaviour === "healthy")
      must(
        sim,
        candidates.includes(provider) || headIsBoasted(sim),
        "a healthy provider is excluded",
      );
    if (behaviour === "lagging" && candidates.includes(provider))
      must(sim, !isKnownToLag(sim, provider), "a lagging provider is a candidate");
  }
}

function checkTrial(sim: Sim, actor: Actor): void {
  const under = sim.flights.filter(
    (it) =>
      it.trial &&
      !it.lost &&
      it.actor === actor &&
      sim.runtime.now() - it.startedAtMs < PERMIT_EXPIRY_MS,
  );
  must(sim, under.length === 0, "two trials at once");
}

/**
 * Of two fresh heights, after a jump made the others old, nobody can tell which one is false: the
 * consensus is then the higher one, by definition.
 */
function headIsBoasted(sim: Sim): boolean {
  const known = sim.actors.filter(
    ({ provider }) => sim.tracker.health(provider, "http").lagBlocks !== null,
  );
  return known.length < 3 && known.some((it) => it.behaviour === "boasting");
}

function isKnownToLag(sim: Sim, provider: Provider): boolean {
  return (sim.tracker.health(provider, "http").lagBlocks ?? 0) > 100;
}

/**
 * A dead provider is sent what opens its circuit, what was under way then, and one trial each time
 * a wait is over.
 */
function checkDead(sim: Sim): void {
  let trials = 1;
  for (
    let waitedMs = 0, waitMs = OPEN_BASE_MS;
    waitedMs < sim.trueMs + 5e6;
    waitMs = Math.min(OPEN_CAP_MS, waitMs * 2)
  ) {
    waitedMs += waitMs * (1 - OPEN_JITTER);
    trials += 1;
  }
  for (const actor of sim.actors) {
    if (actor.behaviour !== "dead") continue;
    const mostly = MAX_IN_FLIGHT + 5 + trials + sim.jumpedBack;
    must(
      sim,
      actor.sent > 0 && actor.sent <= mostly,
      `a dead provider was sent ${actor.sent} of at most ${mostly}`,
    );
  }
}

function checkBounded(sim: Sim): void {
  for (const { provider } of sim.actors) {
    const providerState = stationOf(sim, provider);
    const bytes =
      (providerState.http?.latency.cells.byteLength ?? 0) +
      (providerState.http?.latency.buckets.byteLength ?? 0) +
      (providerState.http?.facts?.methodAtMs.byteLength ?? 0);
    must(sim, bytes < 64 * METHODS.length + 2_000, `${bytes} bytes of observations`);
    must(
      sim,
      sim.tracker.methods(provider, "http").length <= 4,
      "methods outside the traffic were observed",
    );
  }
}

/**
 * When everyone is well again, everyone is in use again: after the longest wait, and as many calls
 * as it takes to be explored.
 */
function checkRecovery(sim: Sim): void {
  for (const actor of sim.actors) actor.behaviour = "healthy";
  passTime(sim, LONGEST_WAIT_MS + PERMIT_EXPIRY_MS);
  drain(sim);
  const before = sim.actors.map((actor) => actor.sent);
  for (let call = 0; call < 2_000; call++) {
    passTime(sim, 20);
    const pin =
      sim.exploreShare > 0 ? null : (sim.actors[call % sim.actors.length]?.provider ?? null);
    const plan = sim.tracker.plan(fakeCall("eth_getBalance"), {
      strategy: "load-balanced",
      transport: "http",
      pin,
    });
    dispatch(sim, fakeCall("eth_getBalance"), plan, 0, 0);
  }
  drain(sim);
  for (const [at, actor] of sim.actors.entries()) {
    must(
      sim,
      stateOf(sim, actor.provider).breaker.kind === "closed",
      `${actor.provider.id} did not close again`,
    );
    must(sim, actor.sent - (before[at] ?? 0) >= 20, `${actor.provider.id} is not in use again`);
  }
}

function stationOf(sim: Sim, provider: Provider): ProviderState {
  const providerState = sim.tracker.inherit(provider);
  assert.ok(providerState !== null);
  return providerState;
}

function stateOf(sim: Sim, provider: Provider) {
  const health = stationOf(sim, provider).http;
  assert.ok(health !== null);
  const nowMs = sim.runtime.now();
  return {
    breaker: settled(health.breaker, nowMs),
    limited: limitedForMs(health.throttle, nowMs) > 0,
    hasAnswered: health.hasAnswered,
  };
}

function sameCounts(
  before: ReturnType<typeof settled>,
  after: ReturnType<typeof settled>,
): boolean {
  if (before.kind === "closed" && after.kind === "closed")
    return before.failures === after.failures && before.causeRun === after.causeRun;
  if (before.kind === "half_open" && after.kind === "half_open")
    return before.successes === after.successes && before.openings === after.openings;
  return before === after;
}

function must(sim: Sim, holds: boolean, what: string): void {
  if (!holds)
    assert.fail(`seed ${sim.seed}, step ${sim.step}, ${Math.round(sim.trueMs)} ms: ${what}`);
}
