// When calls hang at a provider by its last fifty attempts, and when it gets a trial.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { StallRecord } from "../../../src/core/provider/stall.ts";

/** A record after so many attempts that hung at once. */
function recordAfter(hung: number, nowMs = 0) {
  const record = new StallRecord();
  for (let n = 0; n < hung; n++) record.overtaken(nowMs);
  return record;
}

test("a provider is stalled while more than a tenth of its last fifty attempts hung", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 200 }), (attempts) => {
      const record = new StallRecord();
      for (const [at, hung] of attempts.entries()) {
        if (hung) record.overtaken(at);
        else record.ended();
        const last = attempts.slice(Math.max(0, at - 49), at + 1);
        assert.equal(record.isStalled(at), last.filter((each) => each).length > 5);
      }
    }),
  );
});

test("ten seconds after the last attempt that hung one trial begins, and another once it is over", () => {
  const record = recordAfter(6);
  const [trial, next, third] = [{}, {}, {}];
  record.begin(trial, 9_999);
  assert.equal(record.isTrialDue(9_999), false);
  assert.equal(record.isTrialDue(10_000), true);
  record.begin(trial, 10_000);
  assert.equal(record.isTrialDue(10_000), false);
  record.begin(next, 10_001);
  record.end(next);
  assert.equal(record.isTrialDue(30_000), false, "it was none");
  record.end(trial);
  record.ended();
  assert.equal(record.isTrialDue(10_020), true, "well, so that the next may follow at once");
  record.begin(third, 10_020);
  record.end(third);
  record.overtaken(12_000);
  assert.equal(record.isTrialDue(21_999), false);
  assert.equal(record.isTrialDue(22_000), true);
});

test("what hung ten minutes ago says nothing, and no trial is due of what is well", () => {
  const record = recordAfter(20, 1_000);
  assert.equal(record.isStalled(600_999), true);
  assert.equal(record.isStalled(601_000), false);
  assert.equal(record.isTrialDue(601_000), false);
  record.overtaken(601_000);
  assert.equal(record.isStalled(601_000), false, "one alone");
  assert.equal(recordAfter(5).isTrialDue(20_000), false);
});

test("a clock that jumps back leaves no provider waiting for its trial", () => {
  const record = recordAfter(6, 1_000_000);
  assert.equal(record.isTrialDue(5), true);
});
