// Days and months of credits: the calendar against the platform's, and money that is conserved.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  bindingQuota,
  creditsLeft,
  dayOf,
  monthOf,
  onPaceAtMs,
  type QuotaLimits,
  type QuotaRecord,
  recordAt,
  returned,
  spent,
} from "../../../src/core/provider/budget/quota.ts";

const DAY_MS = 86_400_000;
const at = (text: string): number => Date.parse(text);

test("property: months begin where the calendar says, on any day from 1 to 28", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: at("2400-01-01T00:00:00Z") }),
      fc.integer({ min: 1, max: 28 }),
      (wallMs, resetsOn) => {
        const { startMs, endMs } = monthOf(wallMs, resetsOn);
        assert.ok(startMs <= wallMs && wallMs < endMs);
        const start = new Date(startMs);
        assert.deepEqual([start.getUTCDate(), Math.abs(startMs % DAY_MS)], [resetsOn, 0]);
        const next = Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, resetsOn);
        assert.equal(endMs, next);
        assert.equal(new Date(dayOf(wallMs).startMs).toISOString().slice(10), "T00:00:00.000Z");
      },
    ),
  );
});

test("months at the turn of years and in leap years", () => {
  const month = (text: string, resetsOn: number): string[] => {
    const { startMs, endMs } = monthOf(at(text), resetsOn);
    return [startMs, endMs].map((ms) => new Date(ms).toISOString().slice(0, 10));
  };
  assert.deepEqual(month("2024-02-29T23:59:59.999Z", 1), ["2024-02-01", "2024-03-01"]);
  assert.deepEqual(month("2026-12-31T23:59:59Z", 1), ["2026-12-01", "2027-01-01"]);
  assert.deepEqual(month("2027-01-14T00:00:00Z", 15), ["2026-12-15", "2027-01-15"]);
  assert.deepEqual(month("2027-01-15T00:00:00Z", 15), ["2027-01-15", "2027-02-15"]);
  assert.deepEqual(month("2000-03-01T00:00:00Z", 28), ["2000-02-28", "2000-03-28"]);
});

test("a day ends and its month goes on; a clock set back begins nothing anew", () => {
  const noon = at("2026-11-22T12:00:00Z");
  const record = spent(recordAt(null, noon, 1), 40);
  const tomorrow = recordAt(record, noon + DAY_MS, 1);
  assert.deepEqual([tomorrow.daySpent, tomorrow.monthSpent], [0, 40]);
  const later = spent(tomorrow, 5);
  const back = recordAt(later, noon, 1);
  assert.deepEqual([back.daySpent, back.monthSpent], [5, 45], "what was counted still counts");
  const ahead = recordAt(recordAt(null, at("2031-01-01T00:00:00Z"), 1), noon, 1);
  assert.equal(ahead.dayMs, dayOf(noon).startMs, "a clock that was years ahead blocks nothing");
  const december = recordAt(later, at("2026-12-01T00:00:00Z"), 1);
  assert.deepEqual([december.daySpent, december.monthSpent], [0, 0]);
});

test("what is returned is of the day and the month in which it was handed out", () => {
  const record = spent(recordAt(null, at("2026-11-30T12:00:00Z"), 1), 100);
  assert.deepEqual(returned(record, 30, record), { ...record, daySpent: 70, monthSpent: 70 });
  const december = spent(recordAt(record, at("2026-12-01T12:00:00Z"), 1), 10);
  assert.deepEqual(returned(december, 30, record), december);
  const sameMonth: QuotaRecord = { ...december, dayMs: december.dayMs - DAY_MS };
  assert.equal(returned(december, 4, sameMonth).monthSpent, 6);
  assert.equal(returned(december, 4, sameMonth).daySpent, 10);
});

test("the quota that binds is named, the month before the day", () => {
  const limits: QuotaLimits = { daily: 10, monthly: 15, resetsOn: 1 };
  const record = { dayMs: 0, daySpent: 10, monthMs: 0, monthSpent: 12 };
  assert.equal(creditsLeft(record, limits), 0);
  assert.equal(bindingQuota(record, limits, 1), "daily_limit");
  assert.equal(bindingQuota({ ...record, monthSpent: 15 }, limits, 1), "monthly_limit");
  assert.equal(bindingQuota({ ...record, daySpent: 5 }, limits, 3), null);
  assert.equal(bindingQuota({ ...record, daySpent: 5 }, limits, 4), "monthly_limit");
});

test("a month is paced with one day ahead", () => {
  const month = monthOf(at("2026-11-01T00:00:00Z"), 1);
  const limits: QuotaLimits = { daily: null, monthly: 3_000, resetsOn: 1 };
  const paceAt = (monthSpent: number): number =>
    (onPaceAtMs({ dayMs: 0, daySpent: 0, monthMs: month.startMs, monthSpent }, limits) -
      month.startMs) /
    DAY_MS;
  assert.ok(Math.abs(paceAt(100)) < 1e-6, "a thirtieth may be spent at once");
  assert.ok(Math.abs(paceAt(1_600) - 15) < 1e-6, "half of it by the middle and a day");
  assert.equal(
    onPaceAtMs({ dayMs: 0, daySpent: 0, monthMs: 0, monthSpent: 9 }, { ...limits, monthly: null }),
    Number.NEGATIVE_INFINITY,
  );
});
