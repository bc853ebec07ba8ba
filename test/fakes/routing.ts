// Providers behind the real router, tracker and prober, in simulated time: how long each takes for
// what, how many connections it has and how it fails is the test's to say.
import assert from "node:assert/strict";
import type { HedgeSettings, Provider } from "../../src/core/provider/profile.ts";
import type { Strategy } from "../../src/core/routing/strategy.ts";
import type { Call } from "../../src/core/rpc/call.ts";
import type { Failure } from "../../src/core/rpc/failure.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import type { Outcome } from "../../src/upstream/engine/answer.ts";
import { type RoutedCall, Router } from "../../src/upstream/engine/router.ts";
import { Prober } from "../../src/upstream/health/prober.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import type { AnswerListener, OutgoingRequest, Upstream } from "../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "./providers.ts";
import { type SimulatedWorld, simulatedWorld } from "./runtime.ts";

const ANSWER = Buffer.from('"0x1"');
const QUICK = "eth_gasPrice";

/** One request that reached a provider, or waits for a connection to it. */
export interface Sent {
  readonly provider: string;
  readonly atMs: number;
  readonly isProbe: boolean;
  readonly method: string;
  readonly listener: AnswerListener;
  cancelled: boolean;
  answered: boolean;
  /** As a transport says it. */
  sent: boolean;
  queued: boolean;
}

/** What is asked. */
export interface Ask {
  readonly caller?: string;
  readonly method?: string;
  readonly pin?: Provider;
  readonly deadlineMs?: number;
  readonly strategy?: Strategy;
}

/** A call under way or over. */
export interface Routed {
  readonly route: RoutedCall;
  readonly outcome: () => Outcome | null;
  /** How often its end was told. */
  readonly endings: () => number;
  /** How long it took; null = it is still under way. */
  readonly tookMs: () => number | null;
}

/** The providers, and the way to ask them. */
export interface RoutingFixture {
  readonly runtime: SimulatedWorld;
  readonly tracker: Tracker;
  readonly providers: readonly Provider[];
  readonly sent: readonly Sent[];
  /** How long a provider takes for a method; null = it never answers. */
  latencyOf: (provider: string, method: string) => number | null;
  /** Connections that a provider has in all. */
  readonly connections: Map<string, number>;
  /** Providers to which no connection comes about: nothing is sent, and nothing fails. */
  readonly unreachable: Set<string>;
  /** What a provider fails with; none = it answers well. */
  readonly failures: Map<string, Failure>;
  /** Those whose failures meet probes as well. */
  readonly failingProbes: Set<string>;
  ask(about?: Ask): Routed;
  stateOf(index: number): string;
  attemptsOf(routed: Routed): string;
}

/** Settings of a fixture. */
export interface RoutingFixtureOptions {
  readonly exploreShare?: number;
  /** False = nobody probes. */
  readonly probed?: boolean;
  readonly seed?: number;
  /** How reads are hedged; absent = not at all. */
  readonly hedge?: HedgeSettings;
  /** Blocks that a provider may be behind; absent = as in every fake set. */
  readonly maxLagBlocks?: number;
}

/** Providers by falling priority that answer everything after 10 ms, probed every 12 s. */
export function routingFixture(count: number, options: RoutingFixtureOptions = {}): RoutingFixture {
  const runtime = simulatedWorld(options.seed ?? 11);
  const providers = Array.from({ length: count }, (_, index) =>
    fakeProvider(index, { priority: index, wsUrl: null }),
  );
  const { maxLagBlocks } = options;
  const set = fakeSet(providers, maxLagBlocks === undefined ? {} : { maxLagBlocks });
  const tracker = new Tracker(set, runtime, {
    ...SELECTION,
    exploreShare: options.exploreShare ?? 0,
  });
  const sent: Sent[] = [];
  const connections = new Map<string, number>();
  const unreachable = new Set<string>();
  const failures = new Map<string, Failure>();
  const failingProbes = new Set<string>();
  /** Requests that use a connection, by provider. */
  const busy = new Map<string, number>();
  const use = (id: string, more: number): void => void busy.set(id, (busy.get(id) ?? 0) + more);
  const it: RoutingFixture = {
    runtime,
    tracker,
    providers,
    sent,
    connections,
    unreachable,
    failures,
    failingProbes,
    latencyOf: () => 10,
    stateOf: (index) => tracker.health(providers[index] ?? assert.fail(), "http").breaker,
    attemptsOf: ({ route }) =>
      route.traces
        .map(({ attempt }) => `${attempt.provider.id}:${attempt.verdict?.category ?? "ok"}`)
        .join(" "),
    ask({
      caller = "caller",
      method = QUICK,
      pin,
      deadlineMs = 10_000,
      strategy = "priority",
    } = {}) {
      const startedAtMs = runtime.now();
      let ended: Outcome | null = null;
      let endings = 0;
      let tookMs: number | null = null;
      const call: Call = {
        methodName: method,
        method: methodOf(method),
        block: { kind: "none" },
        ...writeRequest(method, null),
      };
      const who = { caller: { key: caller }, pin: pin ?? null, avoid: null, transport: null };
      const route = router.route(
        { call, tracker, strategy, deadlineMs, mayStream: true, ...who },
        ({ outcome }) => {
          ended = outcome;
          endings++;
          tookMs = runtime.now() - startedAtMs;
        },
      );
      return { route, outcome: () => ended, endings: () => endings, tookMs: () => tookMs };
    },
  };
  const upstream: Pick<Upstream, "send" | "isFree"> = {
    isFree: ({ id }) => (busy.get(id) ?? 0) < (connections.get(id) ?? Number.POSITIVE_INFINITY),
    send(outgoing: OutgoingRequest, listener: AnswerListener) {
      const { id } = outgoing.provider;
      const isProbe = /eth_chainId|eth_blockNumber/.test(outgoing.body.toString());
      const free = upstream.isFree?.(outgoing.provider) === true;
      const method = isProbe
        ? "probe"
        : (/"method":"(\w+)"/.exec(outgoing.body.toString())?.[1] ?? "");
      const connects = free && !unreachable.has(id);
      const one: Sent = {
        provider: id,
        atMs: runtime.now(),
        isProbe,
        method,
        listener,
        cancelled: false,
        answered: false,
        sent: connects,
        queued: !free,
      };
      sent.push(one);
      if (connects) use(id, 1);
      const latencyMs = it.latencyOf(id, method);
      const failure = failures.get(id);
      if (connects && latencyMs !== null) {
        runtime.after(latencyMs, () => {
          if (one.cancelled) return;
          one.answered = true;
          use(id, -1);
          const fails = failure !== undefined && (!isProbe || failingProbes.has(id));
          if (fails) listener.failed(failure, null);
          else listener.result(ANSWER, { start: 0, end: ANSWER.length, idAt: null });
        });
      }
      return {
        get sent() {
          return one.sent;
        },
        get queued() {
          return one.queued;
        },
        cancel() {
          if (one.sent && !one.cancelled && !one.answered) use(id, -1);
          one.cancelled = true;
        },
      };
    },
  };
  const timerWheel = new TimerWheel(runtime);
  const router = new Router({
    runtime,
    timerWheel,
    upstreams: { http: upstream },
    limits: () => ({ maxAttempts: Number.POSITIVE_INFINITY, firstAttemptShare: 0.6 }),
    hedge: () => options.hedge ?? null,
  });
  if (options.probed !== false)
    new Prober({ runtime, timerWheel, upstreams: { http: upstream } }).watch([tracker]);
  return it;
}
