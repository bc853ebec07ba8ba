// The log under a storm of failures: a few lines a minute for each cause and one line with the rest counted; no cause is lost, no map grows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRepeatLimiter } from "../src/observe-repeats.ts";
import { simulatedWorld } from "./fakes/world.ts";

test("three lines a minute pass for each cause; the rest is counted once the minute is over", () => {
  const world = simulatedWorld(1);
  const reports: (readonly [string, number])[] = [];
  const limiter = createRepeatLimiter(world, (cause, held) => reports.push([cause, held]));
  const passed = { a: 0, b: 0 };
  for (let n = 0; n < 1_000; n++) if (limiter.mayLog("a")) passed.a++;
  for (let n = 0; n < 2; n++) if (limiter.mayLog("b")) passed.b++;
  assert.deepEqual([passed, reports], [{ a: 3, b: 2 }, []]);
  world.advance(60_000);
  assert.deepEqual(reports, [["a", 997]], "what was not held back is not reported");
  assert.ok(limiter.mayLog("a"), "the next minute begins anew");
  world.advance(60_000);
  assert.equal(world.pendingTimers(), 0);
});

test("made-up causes do not grow the memory", () => {
  const world = simulatedWorld(2);
  const limiter = createRepeatLimiter(world, () => {});
  for (let n = 0; n < 10_000; n++) limiter.mayLog(`cause ${n}`);
  assert.ok(world.pendingTimers() <= 501, `${world.pendingTimers()} minutes under way`);
});
