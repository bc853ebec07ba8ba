// The one sink of what happened: counters and a latency histogram for /metrics, and sampled log
// lines. Bounded: labels are profiles and chains of the configuration and rows of the method table.
// Knows no URL, header or provider address.
import type { Logger } from "pino";
import type { FaultCode } from "../core/faults/rpc-fault.ts";
import { addTo, createHistogram, type Histogram } from "../core/provider/latency.ts";
import {
  createUnknownErrors,
  noteUnknown,
  type UnknownErrors,
} from "../core/provider-errors/unknown-errors.ts";
import { REDACTED, redact } from "../core/redact/redact.ts";
import type { Strategy } from "../core/routing/strategy.ts";
import { METHOD_SLOTS, type Method } from "../core/rpc/method.ts";
import { SUBSCRIPTION_KINDS } from "../core/stream/subscription.ts";
import type { Runtime } from "../runtime.ts";
import { repeatsSecret } from "../upstream/engine/refusal.ts";
import type { Outcome, RoutedCall } from "../upstream/engine/router.ts";
import type { HealthChange } from "../upstream/health/tracker.ts";
import type { StreamMove } from "../upstream/stream/subscriptions.ts";
import { createRepeatLimiter } from "./repeat-limiter.ts";

/** How a request ended, as a label. */
export const OUTCOMES = ["success", "provider_error", "fault", "cancelled"] as const;

/** Counts of one profile on one chain. */
export interface Series {
  readonly profile: string;
  readonly chain: string;
  /** By method row × outcome: `method.index * OUTCOMES.length + outcome`. */
  readonly requests: Float64Array;
  readonly durations: Histogram;
  /** Notifications delivered, by position in `SUBSCRIPTION_KINDS`. */
  readonly notifications: Float64Array;
  /**
   * Calls while every circuit was open: sent all the same, or refused because as many were under
   * way as may be.
   */
  readonly panics: { sent: number; refused: number };
  /** Errors of the operator's providers that no rule knows. */
  readonly unknown: UnknownErrors;
}

/** Counts of the callers' sockets. */
export interface SocketCounts {
  open: number;
  /** By close code, as far as the code is a known one. */
  readonly closes: Map<string, number>;
}

/** Hears of every finished exchange. */
export interface Observer {
  readonly log: Logger;
  /** The counters of a profile on a chain; the same ones each time. */
  series(profile: string, chain: string): Series;
  allSeries(): readonly Series[];
  /** A request that was answered without a provider. */
  local(series: Series, method: Method, outcome: Outcome["kind"]): void;
  /** A routed request that came to its end. */
  routed(series: Series, route: RoutedCall, outcome: Outcome["kind"], requestId: string): void;
  /** A request whose caller left; `route` null = it was not routed. */
  cancelled(series: Series, method: Method, route: RoutedCall | null): void;
  /** A request that was refused before it was bound for a chain. */
  refused(code: FaultCode): void;
  refusals(): ReadonlyMap<FaultCode, number>;
  /**
   * A circuit opened or closed, or a provider was cordoned or may be asked again: one line each.
   */
  channelChanged(profile: string, chain: string, change: HealthChange): void;
  /** A subscription went on at another provider: one line. */
  streamMoved(move: StreamMove): void;
  readonly sockets: SocketCounts;
  socketOpened(): void;
  socketClosed(code: number): void;
}

const CHANGES: Readonly<
  Record<HealthChange["event"], { readonly level: "warn" | "info"; readonly text: string }>
> = {
  circuit_opened: { level: "warn", text: "circuit opened" },
  circuit_closed: { level: "info", text: "circuit closed" },
  cordoned: { level: "warn", text: "provider cordoned" },
  cordon_lifted: { level: "info", text: "provider may be asked again" },
};

/** Close codes that are counted by themselves; a client can send any. */
const CLOSE_CODES: ReadonlySet<number> = new Set([
  1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011, 1012, 1013,
]);

/** What an error is judged to be when no words of it were known. */
const UNKNOWN_CATEGORIES: ReadonlySet<string> = new Set(["unknown", "tx_rejected"]);

/** An observer that logs to `log`. */
export function createObserver(log: Logger, runtime: Runtime): Observer {
  const series = new Map<string, Series>();
  const refusals = new Map<FaultCode, number>();
  const sockets: SocketCounts = { open: 0, closes: new Map() };
  const repeats = createRepeatLimiter(runtime, (cause, held) =>
    log.warn({ cause, held }, "more like this in the last minute"),
  );

  return {
    log,
    series(profile, chain) {
      const key = `${profile} ${chain}`;
      let it = series.get(key);
      if (it === undefined) {
        const notifications = new Float64Array(SUBSCRIPTION_KINDS.length);
        const requests = new Float64Array(METHOD_SLOTS * OUTCOMES.length);
        it = {
          profile,
          chain,
          requests,
          durations: createHistogram(),
          notifications,
          panics: { sent: 0, refused: 0 },
          unknown: createUnknownErrors(),
        };
        series.set(key, it);
      }
      return it;
    },
    allSeries: () => [...series.values()],
    local(to, method, outcome) {
      count(to, method, labelOf(outcome));
    },
    routed(to, route, outcome, requestId) {
      count(to, route.request.call.method, labelOf(outcome));
      addTo(to.durations, Math.max(0, runtime.now() - route.startedAtMs));
      if (route.plan.panic === true) notePanic(to, route);
      noteUnknowns(to, route);
      if (route.traces.length > 1 || outcome === "fault") warn(to, route, outcome, requestId);
      if (log.isLevelEnabled("debug")) log.debug(lineOf(route, outcome, requestId), "request");
    },
    cancelled(to, method, route) {
      count(to, method, 3);
      if (route?.plan.panic === true) notePanic(to, route);
    },
    refused(code) {
      refusals.set(code, (refusals.get(code) ?? 0) + 1);
    },
    refusals: () => refusals,
    channelChanged(profile, chain, { provider, transport, event, cause }) {
      if (!repeats.mayLog(profile, `${event}: ${profile} on ${chain}: ${provider.id} ${transport}`))
        return;
      const { level, text } = CHANGES[event];
      log[level]({ profile, chain, provider: provider.id, transport, cause }, text);
    },
    streamMoved({ profile, chain, kind, to, reason }) {
      if (
        !repeats.mayLog(
          profile,
          `subscription moved: ${profile} on ${chain}: ${kind} ${to} ${reason}`,
        )
      )
        return;
      log.warn({ profile, chain, kind, to, reason }, "subscription moved to another provider");
    },
    sockets,
    socketOpened() {
      sockets.open++;
    },
    socketClosed(code) {
      sockets.open--;
      const label = CLOSE_CODES.has(code) ? String(code) : "other";
      sockets.closes.set(label, (sockets.closes.get(label) ?? 0) + 1);
    },
  };

  /**
   * What no rule knows is kept as a sample. What users' own providers say is not the operator's.
   */
  function noteUnknowns(to: Series, { traces, request }: RoutedCall): void {
    for (const { attempt, failure } of traces) {
      if (
        failure === null ||
        !UNKNOWN_CATEGORIES.has(attempt.verdict?.category ?? "") ||
        attempt.provider.guarded
      )
        continue;
      const { provider } = attempt;
      const { code, httpStatus, message } = failure;
      const occurrence = {
        provider: provider.id,
        method: request.call.methodName,
        code,
        httpStatus,
        message: String(message),
      };
      const shape = noteUnknown(
        to.unknown,
        {
          ...occurrence,
          redact: (text) => (repeatsSecret(provider, text) ? REDACTED : redact(text)),
        },
        runtime.wallMs(),
      );
      if (shape === null || !repeats.mayLog(to.profile, `unknown error of ${provider.id}`))
        continue;
      log.warn(
        { profile: to.profile, chain: to.chain, ...shape },
        "a provider error that no rule knows; `error_rules` can say what it means",
      );
    }
  }

  function warn(
    { profile, chain }: Series,
    route: RoutedCall,
    outcome: Outcome["kind"],
    requestId: string,
  ): void {
    if (!log.isLevelEnabled("warn")) return;
    const said = outcome === "fault" ? "request failed" : "request took more than one attempt";
    const cause = `${said}: ${profile} on ${chain}: ${whyOf(route)}`;
    if (repeats.mayLog(profile, cause))
      log.warn({ cause, ...lineOf(route, outcome, requestId) }, said);
  }
}

function notePanic({ panics }: Series, { traces }: RoutedCall): void {
  if (traces.length > 0) panics.sent++;
  else panics.refused++;
}

function count(to: Series, method: Method, outcome: number): void {
  const at = method.index * OUTCOMES.length + outcome;
  to.requests[at] = (to.requests[at] ?? 0) + 1;
}

function labelOf(outcome: Outcome["kind"]): number {
  switch (outcome) {
    case "result":
    case "stream":
      return 0;
    case "error":
      return 1;
    case "fault":
      return 2;
  }
}

interface Line {
  readonly request_id: string;
  readonly chain: string;
  readonly method: string;
  readonly strategy: Strategy;
  readonly outcome: Outcome["kind"];
  readonly attempts: readonly {
    readonly provider: string;
    readonly category: string | null;
    readonly code: number | null;
    readonly latency_ms: number;
  }[];
  readonly excluded: readonly string[];
}

/** What the first attempt met, or why there was none. */
function whyOf({ traces, plan }: RoutedCall): string {
  const [first] = traces;
  if (first === undefined)
    return `no provider to ask (${plan.excluded.map(({ reason }) => reason).join(", ")})`;
  return `${first.attempt.provider.id} ${first.attempt.verdict?.category ?? "answered"}`;
}

function lineOf(route: RoutedCall, outcome: Outcome["kind"], requestId: string): Line {
  const { request, traces, plan } = route;
  return {
    request_id: requestId,
    chain: request.tracker.set.chain.chainName,
    method: request.call.methodName,
    strategy: request.strategy,
    outcome,
    attempts: traces.map(({ attempt }) => ({
      provider: attempt.provider.id,
      category: attempt.verdict?.category ?? null,
      code: attempt.code,
      latency_ms: Math.round(attempt.latencyMs),
    })),
    excluded: plan.excluded.map((it) => `${it.provider.id}: ${it.reason}`),
  };
}
