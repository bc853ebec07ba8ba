// The timer wheel on a simulated clock: never early, at most two ticks late, never after it was
// cleared, and nothing left over.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Timer, TimerWheel } from "../../src/upstream/timer-wheel.ts";
import { simulatedWorld } from "../fakes/runtime.ts";

const TICK_MS = 10;
const LATEST_MS = 2 * TICK_MS;

type Action =
  | { readonly kind: "set"; readonly ms: number }
  | { readonly kind: "clear"; readonly which: number }
  | { readonly kind: "wait"; readonly ms: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({
    kind: fc.constant("set" as const),
    ms: fc.oneof(fc.nat(200), fc.nat(60_000), fc.double({ min: 0, max: 100, noNaN: true })),
  }),
  fc.record({ kind: fc.constant("clear" as const), which: fc.nat(50) }),
  fc.record({
    kind: fc.constant("wait" as const),
    ms: fc.oneof(fc.nat(30), fc.nat(3_000), fc.double({ min: 0, max: 50, noNaN: true })),
  }),
);

interface Set {
  readonly timer: Timer;
  readonly atMs: number;
  readonly ms: number;
  rangAtMs: number | null;
  clearedAtMs: number | null;
}

test(
  "every alarm rings once, never early, at most two ticks late, and never after it was " +
    "cleared; the wheel ends empty",
  () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const runtime = simulatedWorld(1);
        const timerWheel = new TimerWheel(runtime);
        const sets: Set[] = [];
        for (const it of actions) {
          if (it.kind === "wait") runtime.advance(it.ms);
          else if (it.kind === "clear") clear(sets[it.which]);
          else set(it.ms);
          assert.equal(
            timerWheel.size,
            sets.filter((one) => one.rangAtMs === null && one.clearedAtMs === null).length,
          );
        }
        runtime.advance(70_000);
        for (const { atMs, ms, rangAtMs, clearedAtMs } of sets) {
          if (clearedAtMs !== null && rangAtMs === null) continue;
          assert.ok(
            rangAtMs !== null && rangAtMs >= atMs + ms && rangAtMs <= atMs + ms + LATEST_MS,
            `set at ${atMs} for ${ms}, rang at ${rangAtMs}`,
          );
          assert.ok(clearedAtMs === null || clearedAtMs >= rangAtMs, "rang after it was cleared");
        }
        assert.equal(timerWheel.size, 0);
        runtime.advance(100);
        assert.equal(runtime.pendingTimers(), 0, "an empty wheel needs no timer");

        function set(ms: number): void {
          const one: Set = {
            timer: timerWheel.set(ms, () => {
              assert.equal(one.rangAtMs, null, "rang twice");
              one.rangAtMs = runtime.now();
            }),
            atMs: runtime.now(),
            ms,
            rangAtMs: null,
            clearedAtMs: null,
          };
          sets.push(one);
        }
        function clear(one: Set | undefined): void {
          if (one === undefined) return;
          one.timer.clear();
          one.clearedAtMs ??= runtime.now();
        }
      }),
      { numRuns: 400 },
    );
  },
);

test("an alarm may set and clear others while it rings", () => {
  const runtime = simulatedWorld(1);
  const timerWheel = new TimerWheel(runtime);
  const heard: string[] = [];
  const doomed: Timer[] = [];
  timerWheel.set(50, () => {
    heard.push("first");
    for (const it of doomed) it.clear();
    timerWheel.set(0, () => heard.push("chained"));
  });
  for (const ms of [50, 50, 51, 60]) doomed.push(timerWheel.set(ms, () => heard.push("doomed")));
  timerWheel.set(10_240 + 50, () => heard.push("a turn later"));
  runtime.advance(200);
  const inSlot = heard.filter((it) => it === "doomed").length;
  assert.ok(inSlot <= 2, "only those of the same tick may ring before the one that clears them");
  assert.deepEqual(
    heard.filter((it) => it !== "doomed"),
    ["first", "chained"],
  );
  runtime.advance(11_000);
  assert.deepEqual(heard.at(-1), "a turn later");
  assert.equal(timerWheel.size, 0);
});

test("clearing twice, or after it rang, changes nothing", () => {
  const runtime = simulatedWorld(1);
  const timerWheel = new TimerWheel(runtime);
  const rang = timerWheel.set(10, () => {});
  const kept = timerWheel.set(1_000, () => {});
  runtime.advance(100);
  for (let n = 0; n < 3; n++) rang.clear();
  assert.equal(timerWheel.size, 1);
  kept.clear();
  kept.clear();
  assert.equal(timerWheel.size, 0);
});

test("a process that slept rings what is due at once, in spite of the gap, and keeps the rest", () => {
  const runtime = simulatedWorld(1);
  const timerWheel = new TimerWheel(runtime);
  const heard: number[] = [];
  for (const ms of [100, 5_000, 20_000, 40_000]) timerWheel.set(ms, () => heard.push(ms));
  runtime.advance(50);
  runtime.jump(15_000);
  runtime.advance(30);
  assert.deepEqual(heard, [100, 5_000]);
  runtime.advance(40_000);
  assert.deepEqual(heard, [100, 5_000, 20_000, 40_000]);
});

test("a clock that runs backwards delays alarms, and never wedges or rings them early", () => {
  const runtime = simulatedWorld(1);
  const timerWheel = new TimerWheel(runtime);
  let rangAtMs = 0;
  const startedAtMs = runtime.now();
  timerWheel.set(100, () => {
    rangAtMs = runtime.now();
  });
  runtime.advance(20);
  runtime.jump(-5_000);
  runtime.advance(4_000);
  assert.equal(rangAtMs, 0);
  runtime.advance(2_000);
  assert.ok(rangAtMs >= startedAtMs + 100 && timerWheel.size === 0);
  let second = false;
  timerWheel.set(10, () => {
    second = true;
  });
  runtime.advance(40);
  assert.ok(second, "and the next alarm is on time again");
});

test(
  "a hundred thousand alarms that are set and cleared leave nothing behind, and one real timer " +
    "serves them all",
  () => {
    const runtime = simulatedWorld(1);
    const timerWheel = new TimerWheel(runtime);
    for (let n = 0; n < 100_000; n++) timerWheel.set(10_000, () => assert.fail("cleared")).clear();
    assert.equal(timerWheel.size, 0);
    assert.equal(runtime.pendingTimers(), 1);
    runtime.advance(11_000);
    assert.equal(runtime.pendingTimers(), 0);
  },
);

test("an alarm set by one that rings late, after the process slept, is still never early", () => {
  const runtime = simulatedWorld(1);
  const timerWheel = new TimerWheel(runtime);
  const waited: number[] = [];
  for (const at of [20, 500, 3_000]) {
    timerWheel.set(at, () => {
      const setAtMs = runtime.now();
      timerWheel.set(100, () => waited.push(runtime.now() - setAtMs));
    });
  }
  runtime.advance(5);
  runtime.jump(4_000);
  runtime.advance(500);
  assert.equal(waited.length, 3);
  for (const ms of waited) assert.ok(ms >= 100 && ms <= 100 + LATEST_MS, `rang after ${ms} ms`);
});
