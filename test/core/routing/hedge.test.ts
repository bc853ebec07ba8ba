// When a second provider is asked as well, when an attempt is overdue, and what the budget allows.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DEFAULT_HEDGE,
  ExtraCalls,
  hedgeAfterMs,
  MAX_SAVED_CREDITS,
  overdueAfterMs,
} from "../../../src/core/routing/hedge.ts";

test("a hedge comes after the smaller of the provider's p95 and three medians of the next one", () => {
  const after = (askedP95Ms: number | null, targetP50Ms: number | null) =>
    hedgeAfterMs(askedP95Ms, targetP50Ms, DEFAULT_HEDGE);
  assert.equal(after(80, 100), 80);
  assert.equal(after(400, 50), 150);
  assert.equal(after(5, 50), 20, "never before the floor");
  assert.equal(after(9_000, 4_000), 1_000, "never after the ceiling");
  assert.equal(after(null, null), 1_000, "where nothing is known, at the ceiling");
  assert.equal(after(null, 10), 30);
  assert.equal(after(300, null), 300);
});

test("an attempt is overdue after three times the 99th percentile, at the least two seconds", () => {
  assert.equal(overdueAfterMs(5), 2_000);
  assert.equal(overdueAfterMs(700), 2_100);
});

test("the budget begins empty, gives its share and no more, and saves no more than its bound", () => {
  const budget = new ExtraCalls();
  assert.equal(budget.take(1), false);
  for (let call = 0; call < 20; call++) budget.fill(1, 0.05);
  assert.equal(budget.take(1), true, "twenty shares of 0.05 are one");
  assert.equal(budget.take(1), false);
  for (let call = 0; call < 100_000; call++) budget.fill(1, 0.05);
  let taken = 0;
  while (budget.take(1)) taken++;
  assert.equal(taken, MAX_SAVED_CREDITS);
});

test("what is owed is earned before anything is taken, and is bounded", () => {
  const budget = new ExtraCalls();
  for (let call = 0; call < 1_000; call++) budget.takeAnyway(1);
  let calls = 0;
  for (; !budget.take(1); calls++) budget.fill(1, 0.05);
  assert.ok(Math.abs(calls - 20 * (MAX_SAVED_CREDITS + 1)) <= 1, `${calls} calls`);
});
