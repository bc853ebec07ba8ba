// Counts calls, sockets and state changes for `/metrics`, and logs them. Bounded: labels are
// configured profiles and chains, and rows of the method table. Knows no URLs, headers or provider
// addresses.
import type { Logger } from "pino";
import type { FaultCode } from "../core/faults/rpc-fault.ts";
import { addTo } from "../core/provider/latency.ts";
import type { Provider } from "../core/provider/profile.ts";
import type { Method } from "../core/rpc/method.ts";
import type { Runtime } from "../runtime.ts";
import { type BatchCounts, newBatchCounts } from "../upstream/batch/batching-upstream.ts";
import type { Answer, Outcome } from "../upstream/engine/answer.ts";
import type { RoutedCall } from "../upstream/engine/router.ts";
import { newSplitCounts, type SplitCounts } from "../upstream/engine/split-parts.ts";
import { ViewReasks } from "../upstream/engine/view-reasks.ts";
import type { HealthChange } from "../upstream/health/tracker.ts";
import type { StreamMove } from "../upstream/stream/subscriptions.ts";
import { createCallLog } from "./call-log.ts";
import { EventFeed, type UnplacedEvent } from "./feed/event-feed.ts";
import { HistoryCounts } from "./history/history-counts.ts";
import { createRepeatLimiter, type RepeatLimiter } from "./repeat-limiter.ts";
import { newSeries, OUTCOMES, type Series } from "./series.ts";

/** Counts of client WebSockets. */
export interface SocketCounts {
  open: number;
  /** Closed sockets by close code; unknown codes count as `other`. */
  readonly closes: Map<string, number>;
}

/** Hears of every finished request and every change of state. */
export interface Observer {
  readonly log: Logger;
  /** What is counted for history, by chain and provider. */
  readonly history: HistoryCounts;
  /** What happens now, for those who watch. */
  readonly feed: EventFeed;
  /** The counters of a profile on a chain. */
  series(profile: string, chain: string): Series;
  allSeries(): readonly Series[];
  /** Counts a request answered without a provider. */
  local(series: Series, method: Method, answer: Answer): void;
  /** Counts and logs a routed request at its end. */
  routed(series: Series, route: RoutedCall, answer: Answer, requestId: string): void;
  /** Counts a request whose caller left; `route` null = it was not routed. */
  cancelled(series: Series, method: Method, route: RoutedCall | null, requestId: string): void;
  /** Counts a request refused before its chain was known. */
  refused(code: FaultCode): void;
  refusals(): ReadonlyMap<FaultCode, number>;
  /** Counts and logs an answer whose memory was returned twice: a defect of ours. */
  returnedTwice(): void;
  returnsTwice(): number;
  /** Logs that a circuit opened or closed, or that a provider was cordoned or released. */
  channelChanged(profile: string, chain: string, change: HealthChange): void;
  /** Logs that a subscription continues at another provider. */
  streamMoved(move: StreamMove): void;
  /** Calls over ranges of blocks that were asked for in parts. */
  readonly splits: SplitCounts;
  /** Calls that were asked for again so that all callers keep one view of the chain. */
  readonly reasks: ViewReasks;
  /** Calls that went to providers several in one request. */
  readonly batches: BatchCounts;
  /** Logs that a provider takes no more calls than `most` in one request. */
  batchRefused(provider: Provider, most: number): void;
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

/** Close codes that are counted separately; clients can send any code. */
const CLOSE_CODES: ReadonlySet<number> = new Set([
  1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011, 1012, 1013,
]);

const RETURNED_TWICE = "the memory of an answer was returned twice: please report this defect";

/** This process among the workers of its service. */
export interface ObserverPlace {
  readonly worker: string;
  readonly workers: number;
}

const ALONE: ObserverPlace = { worker: "1", workers: 1 };

/** An observer that logs to `log`. */
export function createObserver(
  log: Logger,
  runtime: Runtime,
  place: ObserverPlace = ALONE,
): Observer {
  const history = new HistoryCounts();
  const feed = new EventFeed({ runtime, ...place });
  const series = new Map<string, Series>();
  const repeats = createRepeatLimiter(runtime, (cause, held) =>
    log.warn({ cause, held }, "more like this in the last minute"),
  );
  const calls = createCallLog(log, runtime, repeats);
  return {
    log,
    history,
    feed,
    series(profile, chain) {
      const key = `${profile} ${chain}`;
      const known = series.get(key);
      if (known !== undefined) return known;
      const created = newSeries(history.chain(profile, chain));
      series.set(key, created);
      return created;
    },
    allSeries: () => [...series.values()],
    local(to, method, answer) {
      countAnswer(to, method, answer);
      to.history.local(answer.outcome);
    },
    routed(to, route, answer, requestId) {
      countAnswer(to, route.request.call.method, answer);
      const nowMs = runtime.now();
      const ms = Math.max(0, nowMs - route.startedAtMs);
      addTo(to.durations, ms);
      to.history.routed(route, answer.outcome, ms);
      if (route.plan.panic === true) countPanic(to, route);
      countFurther(to, route);
      if (route.cacheUse !== null) to.cacheUses[route.cacheUse.result]++;
      calls.finished(to, route, answer, requestId);
      feed.ended({ route, outcome: answer.outcome, requestId, series: to }, nowMs);
    },
    cancelled(to, method, route, requestId) {
      count(to, method, 3);
      to.history.cancelled();
      if (route?.plan.panic === true) countPanic(to, route);
      if (route === null) return;
      countFurther(to, route);
      feed.ended({ route, outcome: null, requestId, series: to }, runtime.now());
    },
    splits: newSplitCounts(),
    reasks: new ViewReasks(),
    batches: newBatchCounts(),
    batchRefused: ({ id: provider }, most) =>
      log.warn({ provider, most }, "the provider refused a batch; smaller ones, or none, follow"),
    ...countRefusals(log, repeats),
    ...stateChanges({ log, repeats, history, feed }),
    ...countSockets(),
  };
}

interface ChangeParts extends Pick<Observer, "log" | "history" | "feed"> {
  readonly repeats: RepeatLimiter;
}

/** Hears of changes of state: logs them, and passes them on to those who watch. */
function stateChanges({
  log,
  repeats,
  history,
  feed,
}: ChangeParts): Pick<Observer, "channelChanged" | "streamMoved"> {
  return {
    channelChanged(profile, chain, change) {
      const { provider, transport, event, cause } = change;
      if (event === "circuit_opened") history.chain(profile, chain).opened(provider);
      feed.emit(feedEventOf(profile, chain, change));
      const repeated = `${event}: ${profile} on ${chain}: ${provider.id} ${transport}`;
      if (!repeats.mayLog(profile, repeated)) return;
      const { level, text } = CHANGES[event];
      log[level]({ profile, chain, provider: provider.id, transport, cause }, text);
    },
    streamMoved({ profile, chain, kind, to, reason }) {
      feed.emit({ type: "stream", data: { profile, chain, kind, to, reason } });
      const repeated = `subscription moved: ${profile} on ${chain}: ${kind} ${to} ${reason}`;
      if (!repeats.mayLog(profile, repeated)) return;
      log.warn({ profile, chain, kind, to, reason }, "subscription moved to another provider");
    },
  };
}

function feedEventOf(
  profile: string,
  chain: string,
  { provider, transport, event, cause }: HealthChange,
): UnplacedEvent {
  const about = { profile, chain, provider: provider.id, transport, cause };
  switch (event) {
    case "circuit_opened":
      return { type: "circuit", data: { ...about, state: "open" } };
    case "circuit_closed":
      return { type: "circuit", data: { ...about, state: "closed" } };
    case "cordoned":
    case "cordon_lifted":
      return { type: "cordon", data: { ...about, cordoned: event === "cordoned" } };
  }
}

function countRefusals(
  log: Logger,
  repeats: RepeatLimiter,
): Pick<Observer, "refused" | "refusals" | "returnedTwice" | "returnsTwice"> {
  const refusals = new Map<FaultCode, number>();
  let returnsTwice = 0;
  return {
    refused(code) {
      refusals.set(code, (refusals.get(code) ?? 0) + 1);
    },
    refusals: () => refusals,
    returnedTwice() {
      returnsTwice++;
      if (repeats.mayLog("", RETURNED_TWICE)) log.error(RETURNED_TWICE);
    },
    returnsTwice: () => returnsTwice,
  };
}

function countSockets(): Pick<Observer, "sockets" | "socketOpened" | "socketClosed"> {
  const sockets: SocketCounts = { open: 0, closes: new Map() };
  return {
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
}

function countPanic({ panics }: Series, { traces }: RoutedCall): void {
  if (traces.length > 0) panics.sent++;
  else panics.refused++;
}

/** Counts the further calls that were made for a call. */
function countFurther(
  { hedges, rechecked: rechecks }: Series,
  { traces, overBudget, rechecked }: RoutedCall,
): void {
  if (overBudget) hedges.over_budget++;
  if (rechecked !== null) rechecks[rechecked]++;
  if (traces.length < 2) return;
  for (const { attempt } of traces) {
    if (attempt.hedgedAfterMs === undefined) continue;
    if (attempt.verdict === null) hedges.won++;
    else hedges.lost++;
  }
}

function countAnswer(to: Series, method: Method, { outcome, source }: Answer): void {
  count(to, method, labelOf(outcome.kind));
  to.sources[source.kind]++;
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
