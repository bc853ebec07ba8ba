// Who noticed that a provider failed: callers of calls that failed with an attempt at it, each
// once, by their keys or else by account or address, and never in clear.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallerIdentity } from "../../src/core/provider/silence.ts";
import { FailureCounts, MAX_CALLERS } from "../../src/observe/history/failure-counts.ts";
import type { RoutedCall } from "../../src/upstream/engine/router.ts";
import { fakeProvider, verdict } from "../fakes/providers.ts";

const AT = { profile: "team", chain: "test" };
const FAILED = { ...verdict({ kind: "failure", cause: "server" }), category: "server" };

function callOf(
  caller: CallerIdentity,
  ...attempts: readonly (readonly [provider: number, category: string | null, guarded?: boolean])[]
) {
  const traces = attempts.map(([index, category, guarded = false]) => ({
    attempt: {
      ...{
        provider: fakeProvider(index, { guarded }),
        transport: "http",
        latencyMs: 1,
        code: null,
      },
      verdict: category === null ? null : { ...FAILED, category },
    },
    failure: null,
  }));
  return { traces, request: { caller } } as unknown as RoutedCall;
}

test("callers of failed calls are counted once for each provider that failed them", () => {
  const counts = new FailureCounts("salt");
  const mine = { key: "account acc_1", keyId: "key_1" };
  counts.call(AT, callOf(mine, [0, "server"], [1, "timeout"]));
  counts.call(AT, callOf(mine, [0, "server"], [2, "revert"]));
  counts.call(AT, callOf({ ...mine, keyId: "key_2" }, [0, "rate_limit"]));
  counts.call(AT, callOf({ key: "203.0.113.7" }, [0, "unsent"], [3, "server", true]));
  const taken = counts.take();
  assert.deepEqual(
    taken.map(({ provider, calls, callers }) => [provider, calls, callers.length]),
    [
      ["p0", 4, 3],
      ["p1", 1, 1],
    ],
  );
  assert.doesNotMatch(JSON.stringify(taken), /key_|acc_|203\.0/);
  assert.deepEqual(counts.take(), []);
  const elsewhere = new FailureCounts("salt");
  elsewhere.call(AT, callOf(mine, [0, "server"]));
  assert.equal(elsewhere.take()[0]?.callers[0], taken[0]?.callers[0], "the same at each worker");
  const other = new FailureCounts("other");
  other.call(AT, callOf(mine, [0, "server"]));
  assert.notEqual(other.take()[0]?.callers[0], taken[0]?.callers[0]);
});

test("failures are told apart by HTTP status or kind, and callers are bounded", () => {
  const counts = new FailureCounts("salt");
  const provider = fakeProvider(0);
  for (const [category, status] of [
    ["server", 502],
    ["server", 502],
    ["rate_limit", 429],
    ["timeout", 0],
    ["revert", 200],
  ] as const)
    counts.attempt(AT, { provider, verdict: { ...FAILED, category } }, status);
  for (let n = 0; n < MAX_CALLERS + 5; n++)
    counts.call(AT, callOf({ key: `caller ${n}` }, [0, "server"]));
  const [taken] = counts.take();
  assert.deepEqual(taken?.labels, [
    { label: "HTTP 502", isLimit: false, count: 2 },
    { label: "HTTP 429", isLimit: true, count: 1 },
    { label: "time-outs", isLimit: false, count: 1 },
  ]);
  assert.deepEqual([taken?.calls, taken?.callers.length], [MAX_CALLERS + 5, MAX_CALLERS]);
});
