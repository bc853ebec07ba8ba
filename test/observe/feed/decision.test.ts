// What operators are shown of one decision, beside what lists of calls show.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CANCELLED } from "../../../src/core/call-end.ts";
import type { Attempt } from "../../../src/core/provider/attempt.ts";
import type { Plan } from "../../../src/core/routing/plan.ts";
import { decisionOf, decisionView } from "../../../src/observe/feed/decision.ts";
import { fakeProvider } from "../../fakes/providers.ts";
import { fakeRoutedCall } from "../../fakes/routed-call.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { createCallMaker } from "./feed-fixture.ts";

/** The view of a call that one provider answered. */
function viewOf(batched: number | null, plan: Partial<Plan>): ReturnType<typeof decisionView> {
  const world = simulatedWorld(1);
  const request = createCallMaker(world).requestOf({});
  const provider = fakeProvider(0);
  const plain: Attempt = { provider, transport: "http", latencyMs: 5, verdict: null, code: null };
  const attempt = batched === null ? plain : { ...plain, batched };
  const route = fakeRoutedCall({
    request,
    startedAtMs: world.now(),
    plan: { candidates: [attempt], excluded: [], ...plan },
    traces: [{ attempt, failure: null }],
    source: { kind: "provider", provider },
  });
  const ended = {
    series: { profile: "team", chain: "test" },
    route,
    answer: null,
    end: CANCELLED,
    requestId: "req-1",
    isNotification: false,
    ms: null,
    asked: null,
  };
  const origin = { worker: "0", idPrefix: "a-" };
  return decisionView(
    decisionOf(ended, { origin, number: 1, wallMs: world.wallMs(), nowMs: world.now() }),
  );
}

test("a decision tells whether lag was waived, and with how many calls an attempt was sent", () => {
  const plain = viewOf(null, {});
  assert.equal(plain.lag_waived, false);
  assert.deepEqual(
    plain.timeline.map(({ batched }) => batched),
    [null],
  );
  const shared = viewOf(3, { lagWaived: true });
  assert.equal(shared.lag_waived, true);
  assert.deepEqual(
    shared.timeline.map(({ batched }) => batched),
    [3],
  );
});
