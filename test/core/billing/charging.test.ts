// The table of what is charged, row by row.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chargeKindOf, isAbandonedCharged, isCharged } from "../../../src/core/billing/charging.ts";
import type { AnswerSource } from "../../../src/core/routing/answer-source.ts";
import { METHODS, methodOf } from "../../../src/core/rpc/method.ts";
import { fakeProvider } from "../../fakes/providers.ts";

test("an answer is charged wherever a provider had a part in it", () => {
  const provider = fakeProvider(0);
  const sources: readonly AnswerSource[] = [
    { kind: "provider", provider },
    { kind: "cache", provider },
    { kind: "merged", providers: [provider] },
    { kind: "shared", provider: null },
    { kind: "local" },
    { kind: "none" },
  ];
  assert.deepEqual(sources.map(isCharged), [true, true, true, true, false, false]);
  assert.deepEqual(sources.map(chargeKindOf), ["full", "cached", "full", "full", "none", "none"]);
});

test(
  "a call that its caller left is charged if anything was sent, a read only while its provider " +
    "had not timed out",
  () => {
    for (const method of [...METHODS, methodOf("no_such_method")]) {
      const of = (sent: boolean, countedAsTimeout: boolean): boolean =>
        isAbandonedCharged(method, "left", { sent, countedAsTimeout });
      assert.deepEqual(
        [of(false, false), of(false, true), of(true, false), of(true, true)],
        [false, false, true, !method.replaySafe],
        method.name,
      );
    }
  },
);

test("a call that the service gave up is never charged", () => {
  for (const method of METHODS)
    assert.equal(isAbandonedCharged(method, "cut", { sent: true, countedAsTimeout: false }), false);
});
