// Providers are judged over time: each fault is found within half a minute, with its state and
// cause, and has one incident, which ends once; whatever a provider does, no state comes and goes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CLOSE_MS } from "../../../src/observe/incidents/incident.ts";
import { namedSeed, seedsBesides } from "../../fakes/seed.ts";
import { type Behaviour, SimulatedService } from "./simulated-service.ts";

const WARM_STEPS = 6;
const CLOSE_STEPS = CLOSE_MS / 10_000;
const GOOD: Behaviour = {
  share: 0,
  failure: "HTTP 502",
  addedMs: 0,
  behind: 0,
  dead: false,
};

const FAULTS: readonly [name: string, state: string, words: RegExp, fault: Partial<Behaviour>][] = [
  ["70 % HTTP 502", "failing", /HTTP 502/, { share: 0.7 }],
  ["50 % HTTP 429", "limited", /HTTP 429/, { share: 0.5, failure: "HTTP 429" }],
  ["600 ms above its peers", "slow", /6\d\d ms, its peers \d\d ms/, { addedMs: 600 }],
  ["40 blocks behind", "lagging", /40 blocks behind/, { behind: 40 }],
];

for (const [name, state, words, fault] of FAULTS)
  test(`${name}: ${state} within 30 s, in one incident that ends once`, () => {
    const service = new SimulatedService(namedSeed(11), 4);
    service.run(WARM_STEPS);
    assert.deepEqual([service.opened, service.state(1)], [[], "good"]);
    const faultMs = service.world.wallMs();
    service.behave(1, fault);
    const foundS = service.run(6, () => service.state(1) === state);
    assert.ok(foundS <= 30, `found after ${foundS} s`);
    service.run(12);
    assert.equal(service.state(1), state);
    assert.match(service.words(1) ?? "", words);
    const answered = service.judged(1)?.answered ?? 0;
    const share = 1 - (fault.share ?? 0);
    assert.ok(answered < share + 0.15, `${answered} answered`);
    // Of the trials of an open circuit, all may fail.
    if (state !== "failing") assert.ok(answered > share - 0.15, `${answered} answered`);
    const [incident] = service.opened;
    assert.deepEqual(
      service.opened.map((each) => [each.provider?.id, each.cause]),
      [["p1", state]],
    );
    assert.ok(Math.abs((incident?.startedMs ?? 0) - faultMs) <= 30_000, "since when it was so");
    for (const other of [0, 2, 3]) assert.equal(service.state(other), "good");
    service.behave(1, GOOD);
    service.run(2 * CLOSE_STEPS);
    assert.deepEqual(
      service.closed.map(({ id }) => id),
      [incident?.id],
    );
    assert.equal(service.state(1), "good");
    assert.equal(service.opened.length, 1);
    const [ended] = service.closed;
    assert.ok((ended?.endedMs ?? 0) <= service.world.wallMs() - CLOSE_MS, "when it was good again");
  });

test("probes that are slow once open no incident", () => {
  const service = new SimulatedService(namedSeed(18), 0);
  service.run(WARM_STEPS);
  for (let n = 0; n < 6; n++) {
    service.behave(1, { addedMs: 600 });
    service.run(1);
    service.behave(1, GOOD);
    service.run(7);
  }
  assert.deepEqual(service.opened, []);
});

for (const calls of [0, 4])
  test(`a killed provider is down at ${calls * 10} calls a second, and recovered by probes`, () => {
    const service = new SimulatedService(namedSeed(12), calls);
    service.run(WARM_STEPS);
    service.behave(2, { dead: true });
    const foundS = service.run(6, () => service.state(2) === "down");
    assert.ok(foundS <= 40, `found after ${foundS} s`);
    assert.match(service.words(2) ?? "", /probes are not answered/);
    service.run(6);
    service.callsPerTick = 0;
    service.behave(2, { dead: false });
    service.run(10);
    assert.equal(service.state(2), "recovered", "nothing says that calls succeed");
    assert.equal(service.closed.length, 0);
    service.run(CLOSE_STEPS);
    assert.equal(service.closed.length, 1);
    assert.equal(service.opened.length, 1);
  });

test("failed attempts are told with their share, and how many there were", () => {
  const service = new SimulatedService(namedSeed(13), 20);
  service.run(WARM_STEPS);
  service.behave(0, { share: 1 });
  service.run(6);
  const [incident] = service.view?.open ?? [];
  assert.equal(incident?.cause, "failing");
  assert.ok((incident?.failed ?? 0) >= 5 && (incident?.failed ?? 0) <= (incident?.attempts ?? 0));
});

test("a cordon is maintenance, ends what was wrong, and is no incident", () => {
  const service = new SimulatedService(namedSeed(14), 4);
  service.behave(3, { share: 0.7 });
  service.run(WARM_STEPS);
  assert.equal(service.opened.length, 1);
  const [, , , provider] = service.providers;
  assert.ok(provider);
  service.tracker.setCordon(provider, { reason: null, atMs: 0, untilMs: null });
  service.run(3);
  assert.deepEqual([service.state(3), service.closed.length], ["maintenance", 1]);
  assert.equal(service.words(3), "cordoned by the operator");
});

test("one that never answered says so, and is no good provider", () => {
  const service = new SimulatedService(namedSeed(15), 4);
  service.behave(1, { dead: true });
  service.run(WARM_STEPS);
  assert.equal(service.state(1), "never_answered");
  assert.deepEqual(
    service.opened.map(({ cause }) => cause),
    ["failing"],
  );
});

test("a chain without a new block is an incident of the chain", () => {
  const service = new SimulatedService(namedSeed(16), 1);
  service.run(WARM_STEPS);
  service.isMining = false;
  service.run(30);
  assert.deepEqual(
    service.opened.map(({ provider, cause }) => [provider, cause]),
    [[null, "stalled"]],
  );
  service.isMining = true;
  service.run(CLOSE_STEPS + 6);
  assert.equal(service.closed.length, 1);
});

test("what belongs to a provider that is configured no more ends", () => {
  const service = new SimulatedService(namedSeed(17), 4);
  service.behave(0, { share: 1 });
  service.run(WARM_STEPS);
  assert.equal(service.view?.open.length, 1);
  let nowMs = service.world.wallMs();
  for (let step = 0; step < 8; step++) {
    nowMs += 10_000;
    service.view = service.book.evaluate(nowMs);
  }
  assert.deepEqual([service.view?.open, service.view?.providers], [[], []]);
  assert.equal(service.book.list().length, 1);
});

for (const seed of seedsBesides(21, 22, 23))
  test(`whatever providers do, no state comes and goes (seed ${seed})`, () => {
    const service = new SimulatedService(seed, 3);
    const { random } = service.world;
    const choose = <T>(...values: readonly T[]): T =>
      values[Math.floor(random() * values.length)] as T;
    service.run(WARM_STEPS);
    for (let round = 0; round < 60; round++) {
      const share = choose(0, 0, 0.1, 0.5, 0.7, 1);
      const failure = choose("HTTP 502", "HTTP 429");
      const addedMs = choose(0, 0, 600);
      service.behave(1, {
        ...{ share, failure, addedMs },
        behind: choose(0, 0, 40),
        dead: random() < 0.2,
      });
      service.run(1 + Math.floor(random() * 8));
    }
    const causes = Map.groupBy(
      [...service.closed, ...(service.view?.open ?? [])],
      ({ cause, provider }) => `${provider?.id} ${cause}`,
    );
    assert.ok(causes.size > 0);
    for (const [subject, incidents] of causes) {
      assert.match(subject, /^p1 /, "the others were good");
      const ordered = incidents.toSorted((left, right) => left.startedMs - right.startedMs);
      for (const [at, { startedMs }] of ordered.entries()) {
        const before = ordered[at - 1];
        if (before === undefined) continue;
        const pauseMs = startedMs - (before.endedMs ?? 0);
        assert.ok(pauseMs >= CLOSE_MS - 30_000, `${subject}: again after ${pauseMs} ms`);
      }
    }
  });

test("a service whose providers are good has no incident in an hour of little or much traffic", () => {
  for (const calls of [0, 1, 4]) {
    const service = new SimulatedService(namedSeed(31), calls);
    for (let at = 0; at < 4; at++) service.behave(at, { share: 0.01 });
    service.run(360);
    assert.deepEqual(service.opened, []);
  }
});
