// How many different log filters a caller may have open, and how long all of them together.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { NO_SHARED_HOLDINGS } from "../../../src/core/workers/shared-holdings.ts";
import {
  FilterQuota,
  MAX_CALLER_CHARS,
  SHORT_CHARS,
} from "../../../src/upstream/stream/filter-quota.ts";

const SUBSCRIBER = { started() {}, events() {}, refused() {}, ended() {} };

test("filters of a caller are bounded in length, short ones in number alone", () => {
  const quota = new FilterQuota(NO_SHARED_HOLDINGS);
  const caller = { id: "one", maxLogFilters: 100 };
  const keyOf = (n: number): string => String(n).padStart(MAX_CALLER_CHARS / 8, "x");
  const leave = Array.from({ length: 8 }, (_, n) => {
    assert.ok(quota.allows(caller, keyOf(n)), `${n}`);
    return quota.hold(caller, keyOf(n), SUBSCRIBER, () => () => {});
  });
  assert.ok(!quota.allows(caller, keyOf(8)));
  assert.ok(quota.allows(caller, keyOf(3)), "an equal one costs nothing");
  assert.ok(quota.allows(caller, "x".repeat(SHORT_CHARS)));
  assert.ok(quota.allows({ ...caller, id: "two" }, keyOf(8)));
  leave[0]?.();
  assert.ok(quota.allows(caller, keyOf(8)));
});

test("the key of an equal filter is not kept", () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const quota = new FilterQuota(NO_SHARED_HOLDINGS);
  const caller = { id: "one", maxLogFilters: 1 };
  const hold = () => {
    const key = Buffer.alloc(1_000_000, "x").toString("latin1");
    return quota.hold(caller, key, SUBSCRIBER, () => () => {});
  };
  collect();
  const before = process.memoryUsage().heapUsed;
  const leave = Array.from({ length: 100 }, hold);
  collect();
  const kept = process.memoryUsage().heapUsed - before;
  assert.ok(kept < 10_000_000, `${kept} bytes of ${leave.length} keys`);
});
