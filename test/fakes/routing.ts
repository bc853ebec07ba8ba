// Providers behind the real router, tracker and prober, in simulated time: how long each takes for what, how many connections it has and how it fails is
// the test's to say.
import assert from "node:assert/strict";
import type { Failure, Strategy } from "../../src/core/attempt.ts";
import type { Call } from "../../src/core/call.ts";
import { methodOf } from "../../src/core/method.ts";
import type { Provider } from "../../src/core/profile.ts";
import { writeRequest } from "../../src/core/wire-request.ts";
import { createProber } from "../../src/upstream/prober.ts";
import { createRouter, type Outcome, type Route } from "../../src/upstream/router.ts";
import { createTracker, type Tracker } from "../../src/upstream/tracker.ts";
import type { Listener, Outgoing, Upstream } from "../../src/upstream/transport.ts";
import { createWheel } from "../../src/upstream/wheel.ts";
import { fakeProvider, fakeSet, SELECTION } from "./providers.ts";
import { type SimulatedWorld, simulatedWorld } from "./world.ts";

const ANSWER = Buffer.from('{"jsonrpc":"2.0","id":1,"result":"0x1"}');
const QUICK = "eth_gasPrice";

/** One request that reached a provider, or waits for a connection to it. */
export interface Sent {
  readonly provider: string;
  readonly atMs: number;
  readonly isProbe: boolean;
  readonly method: string;
  readonly listener: Listener;
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
  readonly route: Route;
  readonly outcome: () => Outcome | null;
  /** How long it took; null = it is still under way. */
  readonly tookMs: () => number | null;
}

/** The providers, and the way to ask them. */
export interface RoutingBench {
  readonly world: SimulatedWorld;
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
  ask(about?: Ask): Routed;
  stateOf(index: number): string;
  attemptsOf(routed: Routed): string;
}

/** Settings of a bench. */
export interface BenchOptions {
  readonly exploreShare?: number;
  /** False = nobody probes. */
  readonly probed?: boolean;
  readonly seed?: number;
}

/** Providers by falling priority that answer everything after 10 ms, probed every 12 s. */
export function routingBench(count: number, options: BenchOptions = {}): RoutingBench {
  const world = simulatedWorld(options.seed ?? 11);
  const providers = Array.from({ length: count }, (_, index) => fakeProvider(index, { priority: index, wsUrl: null }));
  const tracker = createTracker(fakeSet(providers), world, { ...SELECTION, exploreShare: options.exploreShare ?? 0 });
  const sent: Sent[] = [];
  const connections = new Map<string, number>();
  const unreachable = new Set<string>();
  const failures = new Map<string, Failure>();
  /** Requests that use a connection, by provider. */
  const busy = new Map<string, number>();
  const use = (id: string, more: number): void => void busy.set(id, (busy.get(id) ?? 0) + more);
  const it: RoutingBench = {
    world,
    tracker,
    providers,
    sent,
    connections,
    unreachable,
    failures,
    latencyOf: () => 10,
    stateOf: (index) => tracker.health(providers[index] ?? assert.fail(), "http").breaker,
    attemptsOf: ({ route }) => route.traces.map(({ attempt }) => `${attempt.provider.id}:${attempt.verdict?.category ?? "ok"}`).join(" "),
    ask({ caller = "caller", method = QUICK, pin, deadlineMs = 10_000, strategy = "priority" } = {}) {
      const startedAtMs = world.now();
      let ended: Outcome | null = null;
      let tookMs: number | null = null;
      const call: Call = { methodName: method, method: methodOf(method), block: { kind: "none" }, ...writeRequest(method, null) };
      const who = { caller: { key: caller }, pin: pin ?? null, avoid: null, transport: null };
      const route = router.route({ call, tracker, strategy, deadlineMs, mayStream: true, ...who }, (outcome) => {
        ended = outcome;
        tookMs = world.now() - startedAtMs;
      });
      return { route, outcome: () => ended, tookMs: () => tookMs };
    },
  };
  const upstream: Pick<Upstream, "send" | "isFree"> = {
    isFree: ({ id }) => (busy.get(id) ?? 0) < (connections.get(id) ?? Number.POSITIVE_INFINITY),
    send(outgoing: Outgoing, listener: Listener) {
      const { id } = outgoing.provider;
      const isProbe = /eth_chainId|eth_blockNumber/.test(outgoing.body.toString());
      const free = upstream.isFree?.(outgoing.provider) === true;
      const method = isProbe ? "probe" : (/"method":"(\w+)"/.exec(outgoing.body.toString())?.[1] ?? "");
      const connects = free && !unreachable.has(id);
      const one: Sent = { provider: id, atMs: world.now(), isProbe, method, listener, cancelled: false, answered: false, sent: connects, queued: !free };
      sent.push(one);
      if (connects) use(id, 1);
      const latencyMs = it.latencyOf(id, method);
      const failure = failures.get(id);
      if (connects && latencyMs !== null) {
        world.after(latencyMs, () => {
          if (one.cancelled) return;
          one.answered = true;
          use(id, -1);
          const value = isProbe ? Buffer.from('"0x1"') : ANSWER;
          if (failure !== undefined && !isProbe) listener.failed(failure, null);
          else listener.result(value, { start: 0, end: value.length, idAt: null });
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
  const wheel = createWheel(world);
  const router = createRouter({ world, wheel, upstreams: { http: upstream }, limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }) });
  if (options.probed !== false) createProber({ world, wheel, upstreams: { http: upstream } }).watch([tracker]);
  return it;
}
