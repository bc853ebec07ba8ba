// When calls hang at a provider by its last fifty attempts, and when it gets a trial.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  beginTrial,
  endTrial,
  isStalled,
  isTrialDue,
  noteEnded,
  noteHung,
  StallRecord,
} from "../../../src/core/provider/stall.ts";

/** A record after so many attempts that hung at once. */
function recordAfter(hung: number, nowMs = 0) {
  const record = new StallRecord();
  for (let n = 0; n < hung; n++) noteHung(record, nowMs);
  return record;
}

test("a provider is stalled while more than a tenth of its last fifty attempts hung", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 200 }), (attempts) => {
      const record = new StallRecord();
      for (const [at, hung] of attempts.entries()) {
        if (hung) noteHung(record, at);
        else noteEnded(record);
        const last = attempts.slice(Math.max(0, at - 49), at + 1);
        assert.equal(isStalled(record, at), last.filter((each) => each).length > 5);
      }
    }),
  );
});

test("ten seconds after the last attempt that hung one trial begins, and another once it is over", () => {
  const record = recordAfter(6);
  const [trial, next, third] = [{}, {}, {}];
  beginTrial(record, trial, 9_999);
  assert.equal(isTrialDue(record, 9_999), false);
  assert.equal(isTrialDue(record, 10_000), true);
  beginTrial(record, trial, 10_000);
  assert.equal(isTrialDue(record, 10_000), false);
  beginTrial(record, next, 10_001);
  endTrial(record, next);
  assert.equal(isTrialDue(record, 30_000), false, "it was none");
  endTrial(record, trial);
  noteEnded(record);
  assert.equal(isTrialDue(record, 10_020), true, "well, so that the next may follow at once");
  beginTrial(record, third, 10_020);
  endTrial(record, third);
  noteHung(record, 12_000);
  assert.equal(isTrialDue(record, 21_999), false);
  assert.equal(isTrialDue(record, 22_000), true);
});

test("what hung ten minutes ago says nothing, and no trial is due of what is well", () => {
  const record = recordAfter(20, 1_000);
  assert.equal(isStalled(record, 600_999), true);
  assert.equal(isStalled(record, 601_000), false);
  assert.equal(isTrialDue(record, 601_000), false);
  noteHung(record, 601_000);
  assert.equal(isStalled(record, 601_000), false, "one alone");
  assert.equal(isTrialDue(recordAfter(5), 20_000), false);
});

test("a clock that jumps back leaves no provider waiting for its trial", () => {
  const record = recordAfter(6, 1_000_000);
  assert.equal(isTrialDue(record, 5), true);
});
