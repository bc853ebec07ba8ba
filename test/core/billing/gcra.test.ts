// Rate limits: never more than the burst and the rate let through, never less, whatever the order
// and the clock.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FULL_MS, remaining, take, waitMs } from "../../../src/core/billing/gcra.ts";

const SIZE = { perSecond: 100, burst: 200 };

test("a full bucket lets its burst through at once, then its rate", () => {
  let at = FULL_MS;
  let passed = 0;
  for (let i = 0; i < 1_000; i++) {
    const next = take(at, SIZE, 5_000);
    if (next !== null) {
      at = next;
      passed++;
    }
  }
  assert.equal(passed, 200);
  assert.equal(remaining(at, SIZE, 5_000), 0);
  assert.equal(Math.round(waitMs(at, SIZE, 5_000)), 10);
  assert.equal(take(at, SIZE, 5_009), null);
  assert.ok(take(at, SIZE, 5_010.001) !== null);
});

test("over any time no more passes than burst plus rate, and one who waits as told passes", () => {
  const sizes = fc.record({
    perSecond: fc.integer({ min: 1, max: 2_000 }),
    burst: fc.integer({ min: 1, max: 4_000 }),
  });
  fc.assert(
    fc.property(
      sizes,
      fc.array(fc.double({ min: 0, max: 50, noNaN: true }), { maxLength: 300 }),
      (size, gaps) => {
        let at = FULL_MS;
        let now = 1_000_000;
        const begin = now;
        let passed = 0;
        for (const gap of gaps) {
          now += gap;
          const left = remaining(at, size, now);
          const next = take(at, size, now);
          assert.equal(
            next !== null,
            left > 0 || waitMs(at, size, now) === 0,
            "what is left is what passes",
          );
          if (next === null) {
            assert.ok(take(at, size, now + waitMs(at, size, now) + 1e-3) !== null);
            continue;
          }
          at = next;
          passed++;
        }
        assert.ok(passed <= size.burst + ((now - begin) * size.perSecond) / 1_000 + 1);
      },
    ),
  );
});

test("a clock that steps back locks nobody out", () => {
  let at = FULL_MS;
  for (let n = 0; n < 200; n++) at = take(at, SIZE, 1_000_000) ?? at;
  assert.equal(take(at, SIZE, 1_000_000), null);
  assert.deepEqual([remaining(at, SIZE, 0), waitMs(at, SIZE, 0), take(at, SIZE, 0)], [200, 0, 10]);
});
