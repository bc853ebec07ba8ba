// What the operator sees of a running service, for tests of the API: a profile with two providers,
// one decision that was recorded, and no other worker.
import { pino } from "pino";
import { OperatorView } from "../../src/app/live/operator-view.ts";
import { serviceAlone } from "../../src/app/service-parts.ts";
import { ANSWERED } from "../../src/core/call-end.ts";
import { Observer } from "../../src/observe/observer.ts";
import type { Runtime } from "../../src/runtime.ts";
import type { RoutedCall } from "../../src/upstream/engine/router.ts";
import type { Tracker } from "../../src/upstream/health/tracker.ts";
import { ProfileRegistry } from "../../src/upstream/registry/profile-registry.ts";
import type { LiveView } from "../../src/web/api/parts.ts";
import { fakeCall, fakeProvider, fakeSet, SELECTION, verdict } from "./providers.ts";
import { fakeRoutedCall } from "./routed-call.ts";

/** A call that was routed: the first provider failed, the second answered. */
function fakeRoute(tracker: Tracker, startedAtMs: number, method = "eth_call"): RoutedCall {
  const call = fakeCall(method);
  const plan = tracker.plan(call, {
    strategy: "load-balanced",
    transport: null,
    pin: null,
    record: true,
  });
  const [first, second] = plan.candidates;
  if (first === undefined || second === undefined) throw new Error("two providers can be asked");
  const failure = {
    kind: "error",
    httpStatus: 500,
    retryAfter: null,
    code: -32_000,
    message: `no state for 0x${"ab".repeat(20)}`,
    data: null,
  } as const;
  const failed = { ...verdict({ kind: "ignored" }), category: "server" };
  const traces = [
    { attempt: { ...first, startedAtMs, latencyMs: 4, verdict: failed, code: -32_000 }, failure },
    {
      attempt: { ...second, startedAtMs: startedAtMs + 4, latencyMs: 6, verdict: null, code: null },
      failure: null,
    },
  ];
  return fakeRoutedCall({
    request: {
      call,
      tracker,
      strategy: "load-balanced",
      pin: null,
      transport: null,
      caller: { key: "account acc_1", keyId: "key_1" },
      avoid: null,
      deadlineMs: 1_000,
      mayStream: false,
    },
    startedAtMs,
    plan,
    traces,
    source: { kind: "provider", provider: second.provider },
  });
}

/** The live parts of an API. */
export function testLive(runtime: Runtime): LiveView {
  const log = pino({ level: "silent" });
  const observer = new Observer(log, runtime);
  const set = fakeSet([fakeProvider(0), fakeProvider(1)]);
  const profile = {
    slug: "team",
    owner: null,
    managed: false,
    chains: new Map([["test", set]]),
  };
  const registry = new ProfileRegistry([set.chain], [profile], runtime, SELECTION);
  const subscriptions = { reports: () => [], counts: () => [], checks: () => [] };
  const tracker = registry.profile("team")?.trackers.get("test");
  if (tracker === undefined) throw new Error("the profile serves the chain");
  const route = fakeRoute(tracker, runtime.now() - 10);
  const series = observer.series("team", "test");
  const body = Buffer.from("{}");
  const outcome = { kind: "result", body, start: 0, end: 2, idAt: null } as const;
  observer.ended({
    series,
    method: route.request.call.method,
    route,
    answer: { outcome, source: route.source },
    end: ANSWERED,
    requestId: "req-1",
    isNotification: false,
    ms: null,
    asked: null,
  });
  return new OperatorView({
    runtime,
    log,
    observer,
    registry,
    subscriptions,
    version: "0.0.0-test",
    store: null,
    cluster: null,
    service: serviceAlone(runtime, (error) => {
      throw error;
    }),
  }).live;
}
