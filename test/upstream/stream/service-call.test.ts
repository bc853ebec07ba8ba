// Every query that streams make passes the one engine of the service, as the service's own call,
// and what it comes to counts against its provider only as far as it should. In simulated time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SERVICE_CALLER } from "../../../src/core/provider/silence.ts";
import { type Failure, plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { readSubscription } from "../../../src/core/stream/subscription.ts";
import type { RouteRequest } from "../../../src/upstream/engine/call-context.ts";
import { Router } from "../../../src/upstream/engine/router.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { OpenQueries, queryProvider } from "../../../src/upstream/stream/service-call.ts";
import { Subscriptions } from "../../../src/upstream/stream/subscriptions.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { AnswerListener } from "../../../src/upstream/transport.ts";
import { fakeChain } from "../../fakes/chain.ts";
import { fakeProvider, fakeSet, SELECTION, verdict } from "../../fakes/providers.ts";
import { seededRandom, simulatedWorld } from "../../fakes/runtime.ts";
import { fakeSockets } from "../../fakes/sockets.ts";

const LIMITS = { maxAttempts: 3, firstAttemptShare: 0.5 };

/** Tells of every call that passes a router. */
function observed(
  router: Pick<Router, "route" | "reaches">,
  calls: RouteRequest[],
): Pick<Router, "route" | "reaches"> {
  return {
    reaches: (transport) => router.reaches(transport),
    route(request, done) {
      calls.push(request);
      return router.route(request, done);
    },
  };
}

/** Opens a subscription to logs, has its first provider fail, and mines meanwhile. */
async function streamed(polls: boolean) {
  const runtime = simulatedWorld(1);
  const timerWheel = new TimerWheel(runtime);
  const chain = fakeChain(seededRandom(2));
  const wsUrl = polls ? { wsUrl: null } : {};
  const providers = [0, 1, 2].map((index) => fakeProvider(index, { priority: index, ...wsUrl }));
  const sockets = fakeSockets(runtime, chain, providers);
  const nodes = providers.map((provider) => sockets.node(provider));
  const about = { chainId: 1, chainName: "sim", name: "Sim", aliases: [], blockTimeMs: 1_000 };
  const bounds = { logVerification: "strict", verificationBudget: 1_000 } as const;
  const tracker = new Tracker(fakeSet(providers, { chain: about, ...bounds }), runtime, SELECTION);
  const calls: RouteRequest[] = [];
  const upstreams = polls ? { ws: sockets, http: sockets } : { ws: sockets };
  const router = new Router({
    runtime,
    timerWheel,
    upstreams,
    limits: () => LIMITS,
    hedge: () => null,
  });
  const subscriptions = new Subscriptions({
    runtime,
    timerWheel,
    router: observed(router, calls),
    sockets,
  });
  const subscription = readSubscription(["logs", {}]);
  assert.ok(subscription.kind !== "invalid");
  const told: Buffer[] = [];
  const leave = subscriptions.open(
    {
      profile: "team",
      tracker,
      subscription,
      strategy: "priority",
      pin: null,
      caller: null,
      deadlineMs: 5_000,
    },
    {
      started() {},
      refused: () => assert.fail("refused"),
      events: (results) => void told.push(...results),
      ended: (reason) => assert.fail(reason),
    },
  );
  const pass = async (ms: number): Promise<void> => {
    for (const endMs = runtime.now() + ms; runtime.now() < endMs; ) {
      runtime.advance(10);
      await new Promise(setImmediate);
    }
  };
  const mine = (): void => {
    chain.mine();
    for (const node of nodes) node.follow(chain.tip());
  };
  await pass(500);
  mine();
  await pass(3_000);
  nodes[0]?.die();
  for (let blocks = 0; blocks < 4; blocks++) mine();
  await pass(5_000);
  mine();
  await pass(3_000);
  assert.ok(told.length > 0, "logs were delivered");
  leave();
  return { calls, asked: nodes.flatMap((node) => node.requests) };
}

const times = (names: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const name of names.toSorted()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};

test("what a stream asks, its opening and its polls included, passes the engine", async () => {
  for (const polls of [false, true]) {
    const { calls, asked } = await streamed(polls);
    const routed = calls.map(({ call }) => call.methodName);
    const opened = routed.filter((name) => name === "eth_subscribe");
    assert.ok(opened.length >= (polls ? 1 : 2), `${opened.length} openings`);
    assert.ok(asked.length > 5, `${asked.length} queries`);
    const queries = times(routed.filter((name) => name !== "eth_subscribe"));
    assert.deepEqual(queries, times(asked), `polls: ${polls}`);
    for (const name of ["eth_getBlockByNumber", "eth_getLogs"]) assert.ok(name in queries, name);
    for (const { caller } of calls) assert.equal(caller, SERVICE_CALLER);
  }
});

/** A provider whose answers the test decides, and a query to it over its socket. */
function chosen() {
  const runtime = simulatedWorld(3);
  const provider = fakeProvider(0);
  const tracker = new Tracker(fakeSet([provider]), runtime, SELECTION);
  const sent: (AnswerListener & { cancelled: boolean })[] = [];
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    limits: () => LIMITS,
    hedge: () => null,
    upstreams: {
      ws: {
        send(_, listener) {
          const one = {
            result: listener.result.bind(listener),
            stream: listener.stream.bind(listener),
            broken: listener.broken.bind(listener),
            failed: listener.failed.bind(listener),
            cancelled: false,
          };
          sent.push(one);
          return {
            sent: true,
            cancel() {
              one.cancelled = true;
            },
          };
        },
      },
    },
  });
  const channel = { provider, transport: "ws" } as const;
  const queryOf = (counts: "nothing" | "limits") => ({
    tracker,
    channel,
    counts,
    method: "eth_getLogs",
    params: "[{}]",
    deadlineMs: 1_000,
  });
  const health = () => tracker.health(provider, "ws");
  return { runtime, provider, tracker, router, sent, queryOf, health };
}

/** Opens the circuit of a provider's socket. */
function openCircuit(tracker: Tracker): void {
  const [provider] = tracker.set.providers;
  assert.ok(provider !== undefined);
  const failed = verdict({ kind: "failure", cause: "network" });
  for (let n = 0; n < 5; n++)
    tracker.record(methodOf("eth_gasPrice"), {
      provider,
      transport: "ws",
      latencyMs: 1,
      verdict: failed,
      code: null,
    });
  assert.equal(tracker.health(provider, "ws").breaker, "open");
}

const NETWORK: Failure = plainFailure("network", "ECONNRESET");
const LIMITED: Failure = { ...plainFailure("error", "rate limit exceeded"), code: -32005 };

test("a source is asked even if its circuit is open, and nothing that it says counts", () => {
  const { runtime, tracker, router, sent, queryOf, health } = chosen();
  openCircuit(tracker);
  const before = { ...health().outcomes };
  const results: (string | null)[] = [];
  const ask = (): void =>
    void queryProvider(router, queryOf("nothing"), (result) => {
      results.push(result === null ? null : result.toString());
    });
  ask();
  const value = Buffer.from('{"jsonrpc":"2.0","id":1,"result":[]}');
  sent[0]?.result(value, { start: 33, end: 35, idAt: 21 });
  value.fill(0);
  ask();
  sent[1]?.failed(NETWORK, null);
  ask();
  sent[2]?.failed(LIMITED, Buffer.from('{"code":-32005,"message":"rate limit exceeded"}'));
  ask();
  runtime.advance(1_100);
  assert.deepEqual(results, ["[]", null, null, null]);
  assert.deepEqual(
    sent.map(({ cancelled }) => cancelled),
    [false, false, false, true],
    "asked once each, and what is late is given up",
  );
  assert.equal(health().breaker, "open");
  assert.deepEqual(health().outcomes, before);
});

test("a check respects the circuit, counts no failure, and remembers a rate limit", () => {
  const { tracker, router, sent, queryOf, health } = chosen();
  const ask = (): readonly (Buffer | null)[] => {
    const results: (Buffer | null)[] = [];
    queryProvider(router, queryOf("limits"), (result) => void results.push(result));
    return results;
  };
  for (let n = 0; n < 10; n++) {
    ask();
    sent.at(-1)?.failed(NETWORK, null);
  }
  assert.equal(health().breaker, "closed");
  assert.equal(health().outcomes.failed, 0);
  ask();
  sent.at(-1)?.failed(LIMITED, Buffer.from('{"code":-32005,"message":"rate limit exceeded"}'));
  assert.equal(health().outcomes.rateLimited, 1);
  openCircuit(tracker);
  const dispatched = sent.length;
  assert.deepEqual(ask(), [null], "refused without being sent");
  assert.equal(sent.length, dispatched);
});

test("a source that is closed ends its queries, and they never resolve", async () => {
  const { runtime, router, sent, queryOf } = chosen();
  const queries = new OpenQueries(router);
  let resolved = 0;
  const count = (): void => void resolved++;
  void queries.run(queryOf("nothing")).then(count);
  queries.close();
  void queries.run(queryOf("nothing")).then(count);
  assert.deepEqual(
    sent.map(({ cancelled }) => cancelled),
    [true],
  );
  runtime.advance(5_000);
  await new Promise(setImmediate);
  assert.equal(resolved, 0);
});
