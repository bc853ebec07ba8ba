// The rate-limit state: it ends, it is bounded, and the longer limit wins.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  DEFAULT_COOLDOWN_MS,
  limitedForMs,
  MAX_COOLDOWN_MS,
  throttled,
} from "../../../src/core/provider/health.ts";

test("a provider is limited until the named time and not after it", () => {
  const throttle = throttled(null, 5_000, 100);
  assert.equal(limitedForMs(throttle, 100), 5_000);
  assert.equal(limitedForMs(throttle, 5_099), 1);
  assert.equal(limitedForMs(throttle, 5_100), 0);
  assert.equal(limitedForMs(null, 100), 0);
});

test("of two limits the one that ends later stays", () => {
  const long = throttled(null, 60_000, 0);
  assert.equal(limitedForMs(throttled(long, 1_000, 10), 10), 59_990);
  assert.equal(limitedForMs(throttled(long, 90_000, 10), 10), 90_000);
});

test("no limit is believed beyond ten minutes, and an unreadable one is the default", () => {
  assert.equal(limitedForMs(throttled(null, Number.POSITIVE_INFINITY, 0), 0), MAX_COOLDOWN_MS);
  assert.equal(limitedForMs(throttled(null, Number.NaN, 0), 0), DEFAULT_COOLDOWN_MS);
  assert.equal(limitedForMs(throttled(null, -5, 0), 0), 0);
});

test("a clock that jumps back ends a limit instead of prolonging it", () => {
  assert.equal(limitedForMs(throttled(null, 30_000, 1_000_000), 10), 0);
});

test("property: a limit never lasts longer than ten minutes from the latest refusal", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.double(), fc.integer({ min: -100_000, max: 100_000 })), {
        minLength: 1,
      }),
      (refusals) => {
        let nowMs = 1_000_000;
        let throttle = null;
        for (const [ms, gapMs] of refusals) {
          nowMs += gapMs;
          throttle = throttled(throttle, ms, nowMs);
          assert.ok(limitedForMs(throttle, nowMs) <= MAX_COOLDOWN_MS);
        }
        assert.equal(limitedForMs(throttle, nowMs + MAX_COOLDOWN_MS), 0);
      },
    ),
  );
});
