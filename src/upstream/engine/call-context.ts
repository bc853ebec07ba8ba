// A call of the engine: a request, how it is carried out, and what is known of it so far: its plan,
// its attempts and where its answer came from. The evidence is made of it. Decides nothing.

import type { Abandoned } from "../../core/billing/charging.ts";
import type { Attempt, Counting } from "../../core/provider/attempt.ts";
import type { Provider, Transport } from "../../core/provider/profile.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { type AnswerSource, NO_SOURCE } from "../../core/routing/answer-source.ts";
import type { CacheUse } from "../../core/routing/cache-terms.ts";
import type { FailedAttempt } from "../../core/routing/failover.ts";
import type { Plan } from "../../core/routing/plan.ts";
import type { Policy } from "../../core/routing/policy.ts";
import type { SeenBlock } from "../../core/routing/seen.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import type { Call, View } from "../../core/rpc/call.ts";
import type { Failure } from "../../core/rpc/failure.ts";
import type { Tracker } from "../health/tracker.ts";
import type { MemoryShare, Upstream } from "../transport.ts";
import type { Answer } from "./answer.ts";
import type { OwnTransactions } from "./exchange/accepted-transactions.ts";

/** One attempt, as evidence. */
export interface Trace {
  readonly attempt: Attempt;
  readonly failure: Failure | null;
}

/** When a call was begun, and when no stage goes on with it. */
export interface CallTimes {
  readonly startedAtMs: number;
  readonly endsAtMs: number;
}

/** What a stage is asked for. Inner stages write these members, outer stages read them. */
export class CallContext {
  readonly request: RouteRequest;
  readonly policy: Policy;
  readonly startedAtMs: number;
  readonly endsAtMs: number;
  plan: Plan = NONE.plan;
  /** Who was asked last; null = nobody. */
  lastAsked: Provider | null = null;
  traces: readonly Trace[] = NONE.traces;
  /** Attempts that ended without an answer, in that order. */
  failed: readonly FailedAttempt[] = NONE.failed;
  /** Where the answer came from; nowhere until there is one. */
  source: AnswerSource = NO_SOURCE;
  /** A further provider would have been asked as well, and the budget for that was spent. */
  overBudget = false;
  /** What a recheck of `null` brought; null = there was none. */
  rechecked: "found" | "missing" | null = null;
  /** Parts of its range that were asked for; null = it was not cut into parts. */
  partsSent: number | null = null;
  /** How it met the cache; null = it has no part in it. */
  cacheUse: CacheUse | null = null;
  /** When what answered it was begun, if that was a call shared with others. */
  sharedSinceMs: number = Number.POSITIVE_INFINITY;
  /** The block at which it was answered; null = not known. */
  at: SeenBlock | null = null;
  /** Nobody had the block of its view, so that its tag went out as it was written. */
  isStale = false;

  constructor(request: RouteRequest, policy: Policy, { startedAtMs, endsAtMs }: CallTimes) {
    this.request = request;
    this.policy = policy;
    this.startedAtMs = startedAtMs;
    this.endsAtMs = endsAtMs;
  }

  /** Its answer contradicts its question, as those of several providers do: it is not kept. */
  isContradicted = false;

  /** An attempt is over for this call. */
  addTrace(attempt: Attempt, failure: Failure | null): void {
    const trace = { attempt, failure };
    this.traces = this.traces.length === 0 ? [trace] : [...this.traces, trace];
  }

  /** An attempt has ended without an answer. */
  addFailed(failed: FailedAttempt): void {
    this.addTrace(failed.attempt, failed.failure);
    this.failed = [...this.failed, failed];
  }

  /** Takes over what is known of a call that was carried out for this one and for others. */
  absorb(shared: CallContext): void {
    this.plan = shared.plan;
    this.sharedSinceMs = shared.startedAtMs;
    this.traces = [...this.traces, ...shared.traces];
    this.failed = [...this.failed, ...shared.failed];
    this.overBudget ||= shared.overBudget;
    this.isContradicted ||= shared.isContradicted;
    this.rechecked ??= shared.rechecked;
    this.cacheUse ??= shared.cacheUse;
    this.partsSent = shared.partsSent ?? this.partsSent;
  }
}

const NONE = {
  plan: { candidates: [], excluded: [] },
  traces: [],
  failed: [],
} as const;

/** Overrides of how requests are sent, by transport. */
export type Upstreams = Readonly<Partial<Record<Transport, Pick<Upstream, "send" | "isFree">>>>;

/** A call with its routing parameters. */
export interface RouteRequest {
  readonly call: Call;
  readonly tracker: Tracker;
  readonly strategy: Strategy;
  readonly pin: Provider | null;
  /** Null = the better transport of each provider. */
  readonly transport: Transport | null;
  /**
   * The caller, whose influence on the health of a provider is bounded. `SERVICE_CALLER` = the
   * service itself, for a stream.
   */
  readonly caller: CallerIdentity;
  /** What its outcome counts for at the providers that are asked; omitted = everything. */
  readonly counts?: Counting | undefined;
  /** Providers that must not be asked, even if the plan lists them. */
  readonly avoid: ReadonlySet<string> | null;
  readonly deadlineMs: number;
  /** True = a provider is asked for this very call: no kept or shared answer will do. */
  readonly fresh?: boolean | undefined;
  /**
   * The view at which it is answered; null = none is in force, so tags go out as written. Omitted =
   * its caller wants no view.
   */
  readonly view?: View | null | undefined;
  /** The newest block that its caller has seen, which must not be undercut; omitted = none. */
  readonly mark?: SeenBlock | null | undefined;
  /** What is known of the transactions that it hands in or asks for; set by the router. */
  readonly own?: OwnTransactions | null | undefined;
  /** Providers that are asked first where they are as well as others; set by the router. */
  readonly prefer?: ReadonlySet<string> | null | undefined;
  /** Its caller may go from one process of the service to another; omitted = it need not. */
  readonly mayRoam?: boolean | undefined;
  /** False = the caller needs the answer in one piece. */
  readonly mayStream: boolean;
  /**
   * Memory budget in which a gathered answer counts until it is delivered; omitted = the budget of
   * the service.
   */
  readonly room?: MemoryShare | undefined;
  /**
   * Most parts that are planned for a range that no provider accepts whole; omitted = as the
   * router allows.
   */
  readonly maxParts?: number | undefined;
  /** How attempts are sent, if not as ordinary requests; omitted = as the router sends them. */
  readonly upstreams?: Upstreams | undefined;
}

/** Hears how a call ended: once, or never after it was cancelled. */
export interface StageListener {
  ended(answer: Answer): void;
}

/** A call that a stage has taken. */
export interface RunningCall {
  /** Ends it without an answer, and tells what may have been carried out. Again: nothing. */
  cancel(): Abandoned;
}

/** Takes a call to its answer. Its listener may be called before the stage returns. */
export type Stage = (context: CallContext, listener: StageListener) => RunningCall;

/** A stage around a stage. */
export type Layer = (next: Stage) => Stage;

/** What a cancel tells of a call that is over, or of which nothing was sent. */
export const NOTHING_SENT: Abandoned = { sent: false, countedAsTimeout: false };

/** Of a call that was answered at once. */
export const OVER: RunningCall = { cancel: () => NOTHING_SENT };
