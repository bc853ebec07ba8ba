// Counts calls, sockets and state changes for `/metrics`, and logs them. Bounded: labels are
// configured profiles and chains, and rows of the method table. Knows no URLs, headers or provider
// addresses.
import type { Logger } from "pino";
import { type CallEnd, hidesFailures, isProviderFailure } from "../core/call-end.ts";
import { setNewest } from "../core/newest.ts";
import { addTo } from "../core/provider/latency.ts";
import type { Provider } from "../core/provider/profile.ts";
import type { Method } from "../core/rpc/method.ts";
import type { Runtime } from "../runtime.ts";
import { BatchCounts } from "../upstream/batch/batching-upstream.ts";
import type { Answer } from "../upstream/engine/answer.ts";
import { ViewReasks } from "../upstream/engine/layers/consistency.ts";
import { SplitCounts } from "../upstream/engine/ranges/range-run.ts";
import { OVERTAKEN } from "../upstream/engine/refusal.ts";
import type { RoutedCall } from "../upstream/engine/router.ts";
import type { HealthChange } from "../upstream/health/provider-records.ts";
import type { ProvedHost } from "../upstream/http/tls-client.ts";
import type { StreamMove } from "../upstream/stream/subscriptions.ts";
import { type CountedShape, ErrorBook, UNKNOWN_CATEGORIES, unknownIn } from "./error-book.ts";
import type { EndedCall } from "./feed/decision.ts";
import { EventFeed } from "./feed/event-feed.ts";
import { FailureCounts } from "./history/failure-counts.ts";
import { HistoryCounts } from "./history/history-counts.ts";
import { redactedMethod } from "./redacted-error.ts";
import { RepeatLimiter } from "./repeat-limiter.ts";
import { Series } from "./series.ts";

const CHANGES: Readonly<
  Record<HealthChange["event"], { readonly level: "warn" | "info"; readonly text: string }>
> = {
  circuit_opened: { level: "warn", text: "circuit opened" },
  circuit_closed: { level: "info", text: "circuit closed" },
  cordoned: { level: "warn", text: "provider cordoned" },
  cordon_lifted: { level: "info", text: "provider may be asked again" },
};

const STATES = { circuit_opened: "open", circuit_closed: "closed" } as const;

/** Close codes that are counted separately; clients can send any code. */
const CLOSE_CODES: ReadonlySet<number> = new Set([
  1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011, 1012, 1013,
]);

const RETURNED_TWICE = "the memory of an answer was returned twice: please report this defect";

/** Most attempts in one line: only calls in parts have more. */
const MAX_ATTEMPTS = 50;
const MAX_CERTIFICATES = 1_000;

/** This process among the workers of its service. */
export interface ObserverPlace {
  readonly worker: string;
  readonly workers: number;
  /** With which callers are told apart: the same at all workers. */
  readonly salt: string;
}

const ALONE: ObserverPlace = { worker: "1", workers: 1, salt: "" };

/** A call that ended, with the counters that it counts in. */
export interface CountedCall extends EndedCall {
  readonly series: Series;
  /** Null = it was not read. */
  readonly method: Method | null;
}

/** Hears of every call at its end and of every change of state. */
export class Observer {
  readonly log: Logger;
  /** Counts for history, by chain and provider. */
  readonly history = new HistoryCounts();
  /** Failures by provider, for incidents. */
  readonly failures: FailureCounts;
  /** Errors of calls by shape, for the operator. */
  readonly errors: ErrorBook;
  /** Events for those who watch the service live. */
  readonly feed: EventFeed;
  /** Calls over ranges of blocks that were asked for in parts. */
  readonly splits = new SplitCounts();
  /** Calls that were asked for again so that all callers keep one view of the chain. */
  readonly reasks = new ViewReasks();
  /** Calls that went to providers several in one request. */
  readonly batches = new BatchCounts();
  /** Client WebSockets that are open, and closed ones by close code, or as `other`. */
  readonly sockets = { open: 0, closes: new Map<string, number>() };
  /** Calls that ended before their profile and chain were known. */
  readonly unplaced: Series;
  /** Answers whose memory was returned twice. */
  returnsTwice = 0;
  /** TLS handshakes with providers. */
  readonly handshakes = { full: 0, resumed: 0 };
  /** When the certificates of hosts end, by `host:port`: of those that were proved last. */
  readonly certificates = new Map<string, number>();
  /** Pipelined requests that were sent a second time. */
  pipelinedAgain = 0;
  readonly #runtime: Runtime;
  readonly #repeats: RepeatLimiter;
  readonly #series = new Map<string, Series>();

  constructor(log: Logger, runtime: Runtime, place: ObserverPlace = ALONE) {
    this.log = log;
    this.#runtime = runtime;
    this.unplaced = new Series(this.history.chain("", ""));
    this.failures = new FailureCounts(place.salt);
    this.errors = new ErrorBook(runtime);
    this.feed = new EventFeed({ runtime, worker: place.worker, workers: place.workers });
    this.#repeats = new RepeatLimiter(runtime, (cause, held) =>
      log.warn({ cause, held }, "more like this in the last minute"),
    );
  }

  /** The counters of a profile on a chain. */
  series(profile: string, chain: string): Series {
    const key = `${profile} ${chain}`;
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    const created = new Series(this.history.chain(profile, chain));
    this.#series.set(key, created);
    return created;
  }

  /** Forgets the counters of chains that are served no more. */
  forgetChains(names: ReadonlySet<string>): void {
    for (const [key, { chain }] of this.#series) if (names.has(chain)) this.#series.delete(key);
    this.history.forgetChains(names);
  }

  /** Calls on a chain that have ended, of all profiles. */
  callsOf(chain: string): number {
    return this.allSeries()
      .filter((series) => series.chain === chain)
      .reduce((sum, { ends, unanswered }) => sum + unanswered + sumOf(ends), 0);
  }

  allSeries(): readonly Series[] {
    return [...this.#series.values()];
  }

  /** Counts and logs a call at its end. */
  ended(call: CountedCall): void {
    const { series, method, route, answer, end } = call;
    const nowMs = this.#runtime.now();
    if (answer !== null) series.sources[answer.source.kind]++;
    if (call.isNotification) series.countUnanswered();
    else {
      series.count(method, end);
      if (end.outcome === "failed" || end.outcome === "caller_error")
        this.#tellUnknown(series, this.errors.answered(call, end.outcome));
    }
    if (route !== null) this.#routed(call, route, nowMs);
    this.feed.ended(call, nowMs);
  }

  /** Counts a request that ended before it was read as calls; `series` null = nor was its chain. */
  unread(end: CallEnd, series: Series | null, requestId: string | null): void {
    const unknown = { method: null, route: null, answer: null, ms: null, asked: null };
    const counted = series ?? this.unplaced;
    this.ended({ ...unknown, series: counted, end, requestId, isNotification: false });
  }

  /** Counts what only routed calls have, and logs them. */
  #routed(call: CountedCall, route: RoutedCall, nowMs: number): void {
    const { series, answer } = call;
    const { traces, plan, overBudget, rechecked, cacheUse } = route;
    if (plan.panic === true) countPanic(series, route);
    if (traces.length > 1 || overBudget || rechecked !== null) countFurther(series, route);
    if (answer === null) return;
    const ms = call.ms ?? Math.max(0, nowMs - route.startedAtMs);
    addTo(series.durations, ms);
    if (!call.isNotification) series.history.answered(traces, ms);
    if (cacheUse !== null) series.cacheUses[cacheUse.result]++;
    this.#finished(call, route, answer);
  }

  /** Counts a TLS handshake, and keeps what it proved. */
  shookHands(isResumed: boolean, proved: ProvedHost | null): void {
    this.handshakes[isResumed ? "resumed" : "full"]++;
    if (proved !== null && Number.isFinite(proved.validToMs))
      setNewest(this.certificates, proved.host, proved.validToMs, MAX_CERTIFICATES);
  }

  /** Counts and logs an answer whose memory was returned twice: a defect of ours. */
  returnedTwice(): void {
    this.returnsTwice++;
    if (this.#repeats.mayLog("", RETURNED_TWICE)) this.log.error(RETURNED_TWICE);
  }

  /** Logs that a circuit opened or closed, or that a provider was cordoned or released. */
  channelChanged(profile: string, chain: string, change: HealthChange): void {
    const { provider, transport, event, cause } = change;
    if (event === "circuit_opened") this.history.chain(profile, chain).opened(provider);
    const about = { profile, chain, provider: provider.id, transport, cause };
    this.feed.emit(
      event === "circuit_opened" || event === "circuit_closed"
        ? { type: "circuit", data: { ...about, state: STATES[event] } }
        : { type: "cordon", data: { ...about, cordoned: event === "cordoned" } },
    );
    const repeated = `${event}: ${profile} on ${chain}: ${provider.id} ${transport}`;
    if (!this.#repeats.mayLog(profile, repeated)) return;
    const { level, text } = CHANGES[event];
    this.log[level]({ profile, chain, provider: provider.id, transport, cause }, text);
  }

  /** Logs that a subscription continues at another provider. */
  streamMoved({ profile, chain, kind, to, reason }: StreamMove): void {
    this.feed.emit({ type: "stream", data: { profile, chain, kind, to, reason } });
    const repeated = `subscription moved: ${profile} on ${chain}: ${kind} ${to} ${reason}`;
    if (!this.#repeats.mayLog(profile, repeated)) return;
    this.log.warn({ profile, chain, kind, to, reason }, "subscription moved to another provider");
  }

  /** Logs that a provider takes no more calls than `most` in one request. */
  batchRefused({ id: provider }: Provider, most: number): void {
    const text = "the provider refused a batch; smaller ones, or none, follow";
    this.log.warn({ provider, most }, text);
  }

  /** Logs a routed call at its end, and counts failures of its providers. */
  #finished(call: CountedCall, route: RoutedCall, answer: Answer): void {
    const { series: to, end } = call;
    let failures = 0;
    for (const { attempt, failure } of route.traces) {
      if (attempt.verdict === null) continue;
      if (isProviderFailure(attempt.verdict.category)) failures++;
      if (attempt.provider.guarded) continue;
      this.failures.attempt(to, attempt, failure?.httpStatus ?? 0);
      if (failure !== null && UNKNOWN_CATEGORIES.has(attempt.verdict.category)) to.unknown++;
    }
    if (failures > 0 && end.outcome === "failed") this.failures.call(to, route);
    if (failures > 0 && !call.isNotification && hidesFailures(end)) this.#hid(call, route);
    const isFault = answer.outcome.kind === "fault";
    if ((isFault || isRetried(route)) && this.log.isLevelEnabled("warn")) {
      const text = isFault ? "request failed" : "request took more than one attempt";
      const cause = `${text}: ${to.profile} on ${to.chain}: ${whyOf(route)}`;
      if (this.#repeats.mayLog(to.profile, cause))
        this.log.warn({ cause, ...lineOf(call, route, answer) }, text);
    }
    if (this.log.isLevelEnabled("debug")) this.log.debug(lineOf(call, route, answer), "request");
  }

  /** Counts the attempts that providers failed, and that the caller did not notice. */
  #hid(call: CountedCall, { traces }: RoutedCall): void {
    for (const trace of traces) {
      const { verdict, provider } = trace.attempt;
      if (verdict === null || !isProviderFailure(verdict.category)) continue;
      call.series.countHidden(provider);
      this.#tellUnknown(call.series, this.errors.hid(call, trace));
    }
  }

  /** Logs an error that no rule knows, where it is the first of its shape. */
  #tellUnknown({ profile, chain }: Series, shape: CountedShape): void {
    const unknown = shape.count === 1 ? unknownIn(shape) : null;
    if (unknown?.sample == null) return;
    const [place] = shape.providers.rows.values();
    const provider = place?.of.provider ?? null;
    const [method] = shape.methods.rows.values();
    if (!this.#repeats.mayLog(profile, `unknown error of ${provider}`)) return;
    this.log.warn(
      { profile, chain, provider, method: method?.of, ...unknown },
      "a provider error that no rule knows; `error_rules` can say what it means",
    );
  }

  socketOpened(): void {
    this.sockets.open++;
  }

  socketClosed(code: number): void {
    const { sockets } = this;
    sockets.open--;
    const label = CLOSE_CODES.has(code) ? String(code) : "other";
    sockets.closes.set(label, (sockets.closes.get(label) ?? 0) + 1);
  }
}

function sumOf(counts: Float64Array): number {
  return counts.reduce((sum, count) => sum + count, 0);
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
  for (const { attempt } of traces) {
    if (attempt.hedgedAfterMs === undefined) continue;
    if (attempt.verdict === null) hedges.won++;
    else hedges.lost++;
  }
}

/**
 * Whether a provider failed, or was left for another. A hedge, or a recheck of `null`,
 * is nothing to warn of.
 */
function isRetried({ traces }: RoutedCall): boolean {
  if (traces.length < 2) return false;
  const isHedged = traces.some(({ attempt }) => attempt.hedgedAfterMs !== undefined);
  return traces.some(
    ({ attempt: { verdict } }) =>
      verdict !== null && !(isHedged && verdict.category === OVERTAKEN.category),
  );
}

/** The result of the first attempt, or why there was none. */
function whyOf({ traces, plan }: RoutedCall): string {
  const [first] = traces;
  if (first === undefined)
    return `no provider to ask (${plan.excluded.map(({ reason }) => reason).join(", ")})`;
  return `${first.attempt.provider.id} ${first.attempt.verdict?.category ?? "answered"}`;
}

function lineOf(
  { end, requestId }: CountedCall,
  { request, traces, plan }: RoutedCall,
  { source }: Answer,
) {
  return {
    request_id: requestId,
    chain: request.tracker.set.chain.chainName,
    // What callers write may be anything, a key pasted into the wrong place as well.
    method: redactedMethod(request.call.methodName),
    strategy: request.strategy,
    outcome: end.outcome,
    reason: end.reason,
    /** Where the answer came from. */
    source: source.kind,
    attempts: traces.slice(0, MAX_ATTEMPTS).map(({ attempt }) => ({
      provider: attempt.provider.id,
      category: attempt.verdict?.category ?? null,
      code: attempt.code,
      latency_ms: Math.round(attempt.latencyMs),
    })),
    excluded: plan.excluded.map(({ provider, reason }) => `${provider.id}: ${reason}`),
  };
}
