// Routes calls: the engine, put together. Each layer is told of in its own file.

import type { Abandoned } from "../../core/billing/charging.ts";
import type { HedgeSettings, Transport } from "../../core/provider/profile.ts";
import { SERVICE_CALLER } from "../../core/provider/silence.ts";
import { BYPASS } from "../../core/routing/cache-terms.ts";
import { type Policy, policyOf } from "../../core/routing/policy.ts";
import { resolveCall } from "../../core/rpc/resolved-call.ts";
import type { Runtime } from "../../runtime.ts";
import type { TimerWheel } from "../timer-wheel.ts";
import type { Answer } from "./answer.ts";
import { failover, type PlanRecording } from "./attempts/failover.ts";
import { cache } from "./cache/cache.ts";
import type { CachedAnswers } from "./cache/cached-answers.ts";
import { AcceptedTransactions } from "./exchange/accepted-transactions.ts";
import { Job, type JobTimes } from "./job.ts";
import { coalesce } from "./layers/coalesce.ts";
import { consistency, isViewed } from "./layers/consistency.ts";
import { futureBlock } from "./layers/future-block.ts";
import { ownTransactions, ownTransactionsOf, preferredBy } from "./layers/own-transactions.ts";
import { recheckNull } from "./layers/recheck-null.ts";
import { transactions } from "./layers/transactions.ts";
import { ViewReasks } from "./layers/view-reasks.ts";
import type { SplitParts } from "./ranges/split-parts.ts";
import { splitRange } from "./ranges/split-range.ts";
import type { RouteRequest, Upstreams } from "./route-request.ts";
import { type JobListener, NOTHING_SENT, type RunningJob, type Stage, stack } from "./stage.ts";

/** A routed call, under way or ended: what the evidence is made of. */
export interface RoutedCall
  extends Readonly<
    Pick<
      Job,
      | "request"
      | "startedAtMs"
      | "plan"
      | "traces"
      | "source"
      | "overBudget"
      | "rechecked"
      | "partsSent"
      | "cacheUse"
      | "at"
      | "isStale"
    >
  > {
  /**
   * Ends it without an outcome, since its caller is gone, and tells what may have been carried out.
   */
  cancel(): Abandoned;
}

/** What the router works with. */
export interface RouterParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly upstreams: Upstreams;
  readonly limits: () => RouterLimits;
  /** How reads are hedged in sets that say nothing of it; null = not at all. */
  readonly hedge: () => HedgeSettings | null;
  /** Whether equal reads share one answer; left out = each is asked by itself. */
  readonly coalesce?: () => boolean;
  /** Whether only calls of one account are equal; left out = they need not be. */
  readonly byAccount?: () => boolean;
  /** Says of which plans the inputs are kept; left out = of none. */
  readonly recording?: PlanRecording | undefined;
  /** Kept answers; left out = nothing is kept. */
  readonly cache?: CachedAnswers | undefined;
  /** How ranges that no provider accepts whole are asked for; left out = they are refused. */
  readonly split?: Omit<SplitParts, "runtime" | "timerWheel">;
  /** Counts what is asked again for the view; left out = nobody reads it. */
  readonly reasks?: ViewReasks;
  /** What callers have handed in; left out = only this router knows it. */
  readonly accepted?: AcceptedTransactions | undefined;
}

/** Bounds of one routed call. */
export interface RouterLimits {
  readonly maxAttempts: number;
  /** Share of the remaining time that an attempt may use while others could follow. */
  readonly firstAttemptShare: number;
}

/** Routes calls. */
export class Router {
  readonly #parts: RouterParts;
  readonly #answers: CachedAnswers | null;
  readonly #accepted: AcceptedTransactions;
  readonly #engine: Stage;

  constructor(parts: RouterParts) {
    const { runtime, timerWheel, limits, split } = parts;
    const { cache: answers = null, reasks = new ViewReasks() } = parts;
    const accepted = parts.accepted ?? new AcceptedTransactions(runtime);
    const firstAttemptShare = (): number => limits().firstAttemptShare;
    this.#parts = parts;
    this.#answers = answers;
    this.#accepted = accepted;
    this.#engine = stack(
      failover({ ...parts, firstAttemptShare }),
      transactions(runtime),
      recheckNull(runtime),
      ...(split === undefined ? [] : [splitRange({ ...split, runtime, timerWheel })]),
      futureBlock(),
      coalesce(parts),
      cache({ runtime, cache: answers }),
      ownTransactions({ runtime, accepted, reasks }),
      consistency({ runtime, timerWheel, reasks }),
    );
  }

  route(asked: RouteRequest, done: Done): RoutedCall {
    const { runtime, limits, split } = this.#parts;
    const answers = this.#answers;
    const request = withOwn(atView(asked), this.#accepted);
    const { method, block, resolution } = request.call;
    const { maxAttempts } = limits();
    const isFree = isUnrestricted(request);
    const isShareable = isFree && request.fresh !== true && request.caller !== SERVICE_CALLER;
    const coalesce = isShareable && this.#parts.coalesce?.() === true;
    const hedge = isFree ? hedgeOf(request, this.#parts.hedge) : null;
    const isSplit = split?.splitLimits().split === true && mayBeSplit(request);
    const cacheable = answers !== null && isCacheable(request, answers);
    const cache = cacheable && isFree && request.fresh !== true;
    const hasView = request.view !== null && request.view !== undefined;
    const view = hasView && (resolution !== undefined || isViewed(method));
    const own = (request.own ?? null) !== null;
    const settings = { maxAttempts, cache, coalesce, hedge, split: isSplit, view, own };
    const usual = policyOf(method, block, settings);
    const policy = (request.counts ?? "all") === "all" ? usual : aloneOf(usual);
    const startedAtMs = runtime.now();
    const times = { startedAtMs, endsAtMs: startedAtMs + request.deadlineMs };
    const routed = new RoutedJob(request, policy, times, done);
    if (cacheable && !cache) routed.cacheUse = BYPASS;
    routed.start(this.#engine);
    return routed;
  }

  /** Whether it can ask providers over a transport at all. */
  reaches(transport: Transport): boolean {
    return this.#parts.upstreams[transport] !== undefined;
  }
}

/** The call at the block of its view, if it has one and names such a block. */
function atView(request: RouteRequest): RouteRequest {
  const { view, call } = request;
  if (view === null || view === undefined) return request;
  const resolved = resolveCall(call, view);
  return resolved === null ? request : { ...request, call: resolved };
}

/** The call with what is known of the transactions that it is about. */
function withOwn(request: RouteRequest, accepted: AcceptedTransactions): RouteRequest {
  const own = ownTransactionsOf(request, accepted);
  return own === null ? request : { ...request, own, prefer: preferredBy(own, request) };
}

/** Answers to such calls are kept: calls of the service itself want to know what is so now. */
function isCacheable({ call, tracker, caller }: RouteRequest, answers: CachedAnswers): boolean {
  return caller !== SERVICE_CALLER && answers.isOn(tracker, call.method);
}

/** Any provider may be asked, in the usual way: an answer to another caller would do. */
function isUnrestricted({ pin, avoid, upstreams }: RouteRequest): boolean {
  return pin === null && avoid === null && upstreams === undefined;
}

/** How a call may be hedged: the service's own calls, which nobody waits for, are not. */
function hedgeOf(
  { tracker, caller }: RouteRequest,
  usual: RouterParts["hedge"],
): HedgeSettings | null {
  const { hedge } = tracker.set;
  if (caller === SERVICE_CALLER) return null;
  return hedge === undefined ? usual() : hedge;
}

/** Where little counts, one provider is asked at a time, and its answer stands. */
function aloneOf(policy: Policy): Policy {
  return { ...policy, lanes: 1, recheckNull: false };
}

/** Its parts may be asked of any provider, in the usual way. */
function mayBeSplit({ pin, upstreams }: RouteRequest): boolean {
  return pin === null && upstreams === undefined;
}

/** Hears how a routed call ended. */
type Done = (answer: Answer, route: RoutedCall) => void;

/** A call on its way through the engine. */
class RoutedJob extends Job implements RoutedCall, JobListener {
  readonly #done: Done;
  #running: RunningJob | null = null;

  constructor(request: RouteRequest, policy: Policy, times: JobTimes, done: Done) {
    super(request, policy, times);
    this.#done = done;
  }

  start(engine: Stage): void {
    this.#running = engine(this, this);
  }

  ended(answer: Answer): void {
    this.source = answer.source;
    this.#done(answer, this);
  }

  cancel(): Abandoned {
    return this.#running?.cancel() ?? NOTHING_SENT;
  }
}
