// What is known of a provider's speed and reliability: fallbacks, staleness, bounds.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  LatencyRecord,
  methodReadings,
  observe,
  observeAtLeast,
  percentiles,
  providerReading,
  reading,
  STALE_MS,
  usualMs,
} from "../../../src/core/provider/latency.ts";
import { methodOf, UNKNOWN_METHOD } from "../../../src/core/rpc/method.ts";

const BALANCE = methodOf("eth_getBalance");
const CODE = methodOf("eth_getCode");
const LOGS = methodOf("eth_getLogs");

function observed(
  entries: readonly (readonly [method: typeof BALANCE, latencyMs: number | null])[],
  nowMs = 0,
): LatencyRecord {
  const record = new LatencyRecord();
  for (const [method, latencyMs] of entries) observe(record, method, latencyMs, nowMs);
  return record;
}

test("nothing observed reads as unknown, never as zero", () => {
  const record = new LatencyRecord();
  assert.equal(reading(record, BALANCE, 1, 0), null);
  assert.equal(providerReading(record, 0), null);
  assert.deepEqual(percentiles(record), { p50Ms: null, p95Ms: null, p99Ms: null });
  assert.deepEqual(methodReadings(record, 0), []);
});

test("a method with enough calls is read by itself", () => {
  const record = observed([
    [BALANCE, 10],
    [BALANCE, 20],
    [BALANCE, 30],
    [CODE, 500],
  ]);
  assert.deepEqual(reading(record, BALANCE, 3, 5), {
    calls: 3,
    successRate: 1,
    latencyMs: 20,
    ageMs: 5,
  });
});

test("a method with too few calls falls back to its category, then to the provider", () => {
  const byCategory = observed([
    [BALANCE, 10],
    [CODE, 20],
    [CODE, 30],
    [LOGS, 1_000],
  ]);
  assert.equal(reading(byCategory, BALANCE, 3, 0)?.latencyMs, 20);
  const byProvider = observed([
    [BALANCE, 10],
    [LOGS, 20],
    [LOGS, 30],
  ]);
  assert.equal(reading(byProvider, BALANCE, 3, 0)?.latencyMs, 20);
  assert.equal(reading(byProvider, BALANCE, 3, 0)?.calls, 3);
});

test("a provider with fewer calls than asked for is still read, with its few calls", () => {
  assert.equal(reading(observed([[LOGS, 40]]), BALANCE, 3, 0)?.calls, 1);
});

test("failures lower the success rate and leave the latency alone; without a delivery it is unknown", () => {
  const record = observed([
    [BALANCE, 10],
    [BALANCE, null],
    [BALANCE, 30],
    [BALANCE, null],
  ]);
  assert.deepEqual(reading(record, BALANCE, 3, 0), {
    calls: 4,
    successRate: 0.5,
    latencyMs: 20,
    ageMs: 0,
  });
  assert.equal(reading(observed([[BALANCE, null]]), BALANCE, 1, 0)?.latencyMs, null);
});

test("observations of ten minutes are stale: unknown at once and not mixed into later ones", () => {
  const record = observed([
    [BALANCE, 10],
    [BALANCE, 10],
    [BALANCE, null],
  ]);
  assert.notEqual(reading(record, BALANCE, 3, STALE_MS - 1), null);
  assert.equal(reading(record, BALANCE, 3, STALE_MS), null);
  observe(record, BALANCE, 99, STALE_MS);
  assert.deepEqual(reading(record, BALANCE, 1, STALE_MS), {
    calls: 1,
    successRate: 1,
    latencyMs: 99,
    ageMs: 0,
  });
});

test("a stale method falls back to a provider that is fresh", () => {
  const record = observed([
    [BALANCE, 10],
    [BALANCE, 10],
    [BALANCE, 10],
  ]);
  observe(record, LOGS, 70, STALE_MS);
  assert.equal(reading(record, BALANCE, 3, STALE_MS)?.latencyMs, 70);
});

test("a clock that jumps back makes observations stale instead of eternal", () => {
  assert.equal(reading(observed([[BALANCE, 10]], 1_000_000), BALANCE, 1, 10), null);
});

test("averages follow the present: a provider that became slow reads as slow", () => {
  const record = new LatencyRecord();
  for (let call = 0; call < 1_000; call++) observe(record, BALANCE, 10, 0);
  for (let call = 0; call < 30; call++) observe(record, BALANCE, 1_000, 0);
  assert.ok((reading(record, BALANCE, 3, 0)?.latencyMs ?? 0) > 900);
});

test("percentiles are exact to a fifth", () => {
  const record = new LatencyRecord();
  for (let ms = 1; ms <= 1_000; ms++) observe(record, BALANCE, ms, 0);
  const { p50Ms, p95Ms, p99Ms } = percentiles(record);
  for (const [found, wanted] of [
    [p50Ms, 500],
    [p95Ms, 950],
    [p99Ms, 990],
  ] as const)
    assert.ok(
      found !== null && Math.abs(found / wanted - 1) < 0.2,
      `${found} is not near ${wanted}`,
    );
});

test("percentiles follow the present and extreme latencies stay in bounds", () => {
  const record = new LatencyRecord();
  for (let call = 0; call < 5_000; call++) observe(record, BALANCE, 2, 0);
  for (let call = 0; call < 20_000; call++) observe(record, BALANCE, 800, 0);
  assert.ok((percentiles(record).p50Ms ?? 0) > 600);
  for (const ms of [0, -5, 1e12]) observe(record, BALANCE, ms, 0);
  assert.ok((percentiles(record).p99Ms ?? Number.POSITIVE_INFINITY) < 1e6);
});

test("methods are reported one by one", () => {
  const reports = methodReadings(
    observed([
      [BALANCE, 10],
      [LOGS, null],
    ]),
    7,
  );
  assert.deepEqual(
    reports.map(({ method, calls, successRate, latencyMs, ageMs }) => [
      method.name,
      calls,
      successRate,
      latencyMs,
      ageMs,
    ]),
    [
      ["eth_getBalance", 1, 1, 10, 7],
      ["eth_getLogs", 1, 0, null, 7],
    ],
  );
});

test("ten thousand unlisted names share one cell", () => {
  const record = new LatencyRecord();
  const sizes = [record.cells.byteLength, record.buckets.byteLength];
  for (let name = 0; name < 10_000; name++) observe(record, methodOf(`custom_method${name}`), 5, 0);
  assert.deepEqual([record.cells.byteLength, record.buckets.byteLength], sizes);
  assert.equal(reading(record, UNKNOWN_METHOD, 3, 0)?.calls, 10_000);
  assert.equal(methodReadings(record, 0).length, 1);
});

test(
  "property: rates stay between 0 and 1 and averages between the extremes, and the provider " +
    "counts every call",
  () => {
    const entry = fc.tuple(
      fc.constantFrom(BALANCE, CODE, LOGS, UNKNOWN_METHOD),
      fc.option(fc.double({ min: 0, max: 1e6, noNaN: true })),
    );
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 200 }), (entries) => {
        const record = observed(entries);
        const found = providerReading(record, 0);
        const delivered = entries.map(([, ms]) => ms).filter((ms) => ms !== null);
        assert.ok(
          found !== null &&
            found.calls === entries.length &&
            found.successRate >= -1e-9 &&
            found.successRate <= 1 + 1e-9,
        );
        assert.equal(found.latencyMs === null, delivered.length === 0);
        if (found.latencyMs !== null)
          assert.ok(
            found.latencyMs >= Math.min(...delivered) - 1e-6 &&
              found.latencyMs <= Math.max(...delivered) + 1e-6,
          );
      }),
    );
  },
);

test("what is usual is that of calls with the same deadline, once there are enough of them", () => {
  const trace = methodOf("debug_traceBlockByNumber");
  const record = observed([
    ...Array.from({ length: 100 }, () => [BALANCE, 10] as const),
    ...Array.from({ length: 19 }, () => [trace, 9_000] as const),
  ]);
  assert.ok((usualMs(record, BALANCE, 0.99) ?? 0) < 15, "slow traces do not make slow reads usual");
  observe(record, trace, 9_000, 0);
  assert.ok((usualMs(record, trace, 0.5) ?? 0) > 7_000);
  assert.equal(usualMs(new LatencyRecord(), trace, 0.99), null);
});

test(
  "a latency of at least so long raises averages, lowers none, counts as no call and enters no " +
    "percentile",
  () => {
    const record = observed([
      [BALANCE, 10],
      [BALANCE, 10],
    ]);
    const before = percentiles(record);
    observeAtLeast(record, BALANCE, 1_000, 0);
    assert.ok((reading(record, BALANCE, 1, 0)?.latencyMs ?? 0) > 300);
    assert.equal(reading(record, BALANCE, 1, 0)?.calls, 2);
    assert.deepEqual(percentiles(record), before);
    const slow = reading(record, BALANCE, 1, 0);
    observeAtLeast(record, BALANCE, 5, 0);
    assert.deepEqual(reading(record, BALANCE, 1, 0), slow);
    observeAtLeast(record, CODE, 1_000, 0);
    assert.equal(
      reading(record, CODE, 1, 0)?.calls,
      2,
      "of one never answered nothing is known: its category speaks for it",
    );
  },
);
