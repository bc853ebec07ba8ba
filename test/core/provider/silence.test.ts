// The rule of silence: when a provider counts as silent, when it is only slow, and how often one
// caller counts.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { silenceOf, takeCount } from "../../../src/core/provider/silence.ts";

const NEVER = Number.NEGATIVE_INFINITY;

test(
  "a provider is silent once an attempt is out for longer than usual, and for longer than a " +
    "second",
  () => {
    const at = (outMs: number, usualMs: number | null) =>
      silenceOf({ askedAtMs: 0, heardAtMs: NEVER, usualMs }, outMs);
    assert.deepEqual(
      [at(300, null), at(301, null), at(1_000, null), at(1_001, null)],
      ["early", "quiet", "quiet", "silent"],
      "where nothing is known of its latency",
    );
    assert.deepEqual([at(250, 20), at(251, 20), at(1_001, 20)], ["early", "quiet", "silent"]);
    assert.deepEqual(
      [at(2_999, 3_000), at(3_001, 3_000)],
      ["early", "silent"],
      "what is usual may be slow",
    );
  },
);

test(
  "one that has answered anything since is not silent, however long an attempt is out; one " +
    "that answered before is",
  () => {
    assert.equal(silenceOf({ askedAtMs: 100, heardAtMs: 101, usualMs: 20 }, 60_000), "heard");
    assert.equal(silenceOf({ askedAtMs: 100, heardAtMs: 100, usualMs: 20 }, 60_000), "silent");
    assert.equal(silenceOf({ askedAtMs: 100, heardAtMs: 99, usualMs: 20 }, 60_000), "silent");
  },
);

test("what has not been sent says nothing", () => {
  assert.equal(silenceOf({ askedAtMs: null, heardAtMs: NEVER, usualMs: 20 }, 60_000), "early");
});

test(
  "property: an answer after the sending always clears a provider, and nothing is said before " +
    "a quarter of a second",
  () => {
    const time = fc.integer({ min: 0, max: 1_000_000 });
    fc.assert(
      fc.property(
        time,
        time,
        time,
        fc.option(time, { nil: null }),
        (askedAtMs, heardAtMs, nowMs, usualMs) => {
          const silence = silenceOf({ askedAtMs, heardAtMs, usualMs }, nowMs);
          if (heardAtMs > askedAtMs && heardAtMs <= nowMs) assert.equal(silence, "heard");
          else if (nowMs - askedAtMs <= 250) assert.equal(silence, "early");
          if (silence === "silent") assert.ok(nowMs - askedAtMs > Math.max(1_000, usualMs ?? 0));
        },
      ),
    );
  },
);

test(
  "one caller counts once in ten seconds, others beside it, and a clock that jumps back holds " +
    "nobody off",
  () => {
    const counted = new Map<string, number>();
    assert.deepEqual(
      [
        takeCount(counted, "a", 0),
        takeCount(counted, "a", 9_999),
        takeCount(counted, "b", 9_999),
        takeCount(counted, "a", 10_000),
      ],
      [true, false, true, true],
    );
    assert.equal(takeCount(counted, "a", 5_000), true);
  },
);

test("ten thousand callers leave a bounded number behind", () => {
  const counted = new Map<string, number>();
  for (let n = 0; n < 10_000; n++) takeCount(counted, `c${n}`, n);
  assert.equal(counted.size, 64);
  assert.equal(
    takeCount(counted, "c9999", 10_000),
    false,
    "the latest are the ones that are known",
  );
});
