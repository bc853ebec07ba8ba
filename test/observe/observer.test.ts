// The log under a storm of failures: a few lines a minute for each cause and one line with the rest
// counted; no cause is lost, no map grows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RepeatLimiter } from "../../src/observe/repeat-limiter.ts";
import { simulatedWorld } from "../fakes/runtime.ts";

test("three lines a minute pass for each cause; the rest is counted once the minute is over", () => {
  const runtime = simulatedWorld(1);
  const reports: (readonly [string, number])[] = [];
  const limiter = new RepeatLimiter(runtime, (cause, held) => reports.push([cause, held]));
  const passed = { a: 0, b: 0 };
  for (let n = 0; n < 1_000; n++) if (limiter.mayLog("team", "a")) passed.a++;
  for (let n = 0; n < 2; n++) if (limiter.mayLog("team", "b")) passed.b++;
  assert.deepEqual([passed, reports], [{ a: 3, b: 2 }, []]);
  runtime.advance(60_000);
  assert.deepEqual(reports, [["a", 997]], "what was not held back is not reported");
  assert.ok(limiter.mayLog("team", "a"), "the next minute begins anew");
  runtime.advance(60_000);
  assert.equal(runtime.pendingTimers(), 0);
});

test("made-up causes of one profile grow no memory, and cost no other profile its lines", () => {
  const runtime = simulatedWorld(2);
  const reports: string[] = [];
  const limiter = new RepeatLimiter(runtime, (cause) => void reports.push(cause));
  for (let n = 0; n < 10_000; n++) limiter.mayLog("custom", `provider ${n} is broken`);
  assert.ok(runtime.pendingTimers() <= 101, `${runtime.pendingTimers()} minutes under way`);
  const passed = ["one", "two", "one", "two", "one", "one", "two"].filter((cause) =>
    limiter.mayLog("team", cause),
  );
  assert.deepEqual(passed, ["one", "two", "one", "two", "one", "two"], "three lines each");
  runtime.advance(60_000);
  assert.deepEqual(reports, ["other causes of custom", "one"]);
  assert.equal(runtime.pendingTimers(), 0);
});
