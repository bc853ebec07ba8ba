// Routed calls at their end, without providers: what the live feed is told, for tests of it.
import { CANCELLED, callEndOf } from "../../../src/core/call-end.ts";
import type { Verdict } from "../../../src/core/provider/attempt.ts";
import type { Provider } from "../../../src/core/provider/profile.ts";
import type { EventFeed } from "../../../src/observe/feed/event-feed.ts";
import type { Outcome } from "../../../src/upstream/engine/answer.ts";
import type { RouteRequest } from "../../../src/upstream/engine/call-context.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { fakeCall, fakeProvider, fakeSet, SELECTION, verdict } from "../../fakes/providers.ts";
import { fakeRoutedCall } from "../../fakes/routed-call.ts";
import type { SimulatedWorld } from "../../fakes/runtime.ts";

/** How a call went; what is left out went as most do. */
export interface CallStory {
  readonly method?: string;
  readonly keyId?: string;
  readonly ms?: number;
  /** True = the first provider failed, and the second answered. */
  readonly failedOver?: boolean;
  /** What the provider that failed said. */
  readonly message?: string;
  /** Null = the caller left. */
  readonly outcome?: Outcome | null;
}

/** Makes calls end at a feed. */
export interface CallMaker {
  requestOf(story: CallStory): RouteRequest;
  /** A call that ends now; returns its request id. */
  call(feed: EventFeed, story?: CallStory): string;
}

const GOOD: Outcome = { kind: "error", category: "revert", raw: Buffer.from("{}") };
const FAILED: Verdict = { ...verdict({ kind: "failure", cause: "server" }), category: "server" };

/** Calls of one profile on a chain with such providers, or some of these ids. */
export function createCallMaker(
  world: SimulatedWorld,
  given: readonly (string | Provider)[] = ["p0", "p1", "p2"],
  series = { profile: "team", chain: "test" },
): CallMaker {
  const providers = given.map((each, index) =>
    typeof each === "string" ? fakeProvider(index, { id: each }) : each,
  );
  const tracker = new Tracker(fakeSet(providers), world, SELECTION);
  let calls = 0;
  const requestOf = ({ method = "eth_getBalance", keyId = "key_1" }: CallStory): RouteRequest => ({
    call: fakeCall(method),
    tracker,
    strategy: "load-balanced",
    transport: null,
    pin: null,
    caller: { key: "account 1", keyId },
    avoid: null,
    deadlineMs: 1_000,
    mayStream: false,
  });
  return {
    requestOf,
    call(feed, story = {}) {
      const { ms = 12, message = "it is out of order" } = story;
      const startedAtMs = world.now() - ms;
      const request = requestOf(story);
      const record = feed.takes(request, startedAtMs);
      const plan = tracker.plan(request.call, record ? { ...request, record } : request);
      const [first, second] = plan.candidates;
      if (first === undefined || second === undefined) throw new Error("two can be asked");
      const shape = { kind: "error", httpStatus: 500, retryAfter: null, code: -32_000 } as const;
      const failure = { ...shape, message, data: null };
      const failed = { ...first, startedAtMs, latencyMs: ms / 4, verdict: FAILED, code: -32_000 };
      const isFailedOver = story.failedOver === true;
      const { provider, transport } = isFailedOver ? second : first;
      const good = {
        provider,
        transport,
        startedAtMs,
        latencyMs: ms / 2,
        verdict: null,
        code: null,
      };
      const requestId = `req-${++calls}`;
      const route = fakeRoutedCall({
        request,
        startedAtMs,
        plan,
        traces: [
          ...(isFailedOver ? [{ attempt: failed, failure }] : []),
          { attempt: good, failure: null },
        ],
        source: { kind: "provider", provider },
      });
      const outcome = story.outcome === undefined ? GOOD : story.outcome;
      const answer = outcome === null ? null : { outcome, source: route.source };
      const end = outcome === null ? CANCELLED : callEndOf(outcome);
      const ended = { series, route, answer, end, requestId };
      feed.ended({ ...ended, isNotification: false, ms: null, asked: null }, world.now());
      return requestId;
    },
  };
}
