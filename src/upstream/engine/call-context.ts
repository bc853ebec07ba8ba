// A call of the engine: a request, how it is carried out, and what is known of it so far: its plan,
// its attempts and where its answer came from. The evidence is made of it. On its way through one
// layer it goes to the stages below, and the layer may make further calls before it answers: the
// same call again, parts of it, queries of blocks. Their attempts are evidence of the call that
// they are made for.

import type { Abandoned } from "../../core/billing/charging.ts";
import type { Attempt, Counting } from "../../core/provider/attempt.ts";
import type { Provider, Transport } from "../../core/provider/profile.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { type AnswerSource, NO_SOURCE, providerOf } from "../../core/routing/answer-source.ts";
import type { CacheUse } from "../../core/routing/cache-terms.ts";
import { type FailedAttempt, type NoAnswer, unansweredOf } from "../../core/routing/failover.ts";
import type { Plan } from "../../core/routing/plan.ts";
import { type Policy, policyOf } from "../../core/routing/policy.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import { type Call, NO_BLOCK, newCall, type View } from "../../core/rpc/call.ts";
import type { Failure } from "../../core/rpc/failure.ts";
import type { SeenBlock } from "../../core/rpc/seen.ts";
import { type Head, readHead } from "../../core/stream/chain-event.ts";
import type { Runtime } from "../../runtime.ts";
import type { Tracker } from "../health/tracker.ts";
import type { MemoryShare, Upstream } from "../transport.ts";
import type { Answer } from "./answer.ts";
import type { OwnTransactions } from "./exchange/accepted-transactions.ts";

/** One attempt, as evidence. */
export interface Trace {
  readonly attempt: Attempt;
  readonly failure: Failure | null;
}

/** What a stage is asked for. Inner stages write these members, outer stages read them. */
export class CallContext {
  readonly request: RouteRequest;
  readonly policy: Policy;
  readonly startedAtMs: number;
  /** When no stage goes on with it. */
  endsAtMs: number;
  plan: Plan = NONE.plan;
  /** Who was asked last; null = nobody. */
  lastAsked: Provider | null = null;
  traces: readonly Trace[] = NONE.traces;
  /** Attempts that ended without an answer, in that order. */
  failed: readonly FailedAttempt[] = NONE.failed;
  /** Where the answer came from; nowhere until there is one. */
  source: AnswerSource = NO_SOURCE;
  /** A half-open provider was passed over because its trial was taken. */
  trialsTaken = false;
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
  /** No provider had the block of the view, so the tag was sent as the caller wrote it. */
  isStale = false;

  constructor(request: RouteRequest, policy: Policy, startedAtMs: number) {
    this.request = request;
    this.policy = policy;
    this.startedAtMs = startedAtMs;
    this.endsAtMs = startedAtMs + request.deadlineMs;
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

/** What a layer works with. */
export interface LayerParts {
  readonly runtime: Pick<Runtime, "now" | "after">;
  /** The stages below. */
  readonly next: Stage;
}

/** A call to be made for a call: its policy, and what differs from the request of the call. */
export interface FurtherCall extends Partial<RouteRequest> {
  readonly policy: Policy;
  readonly deadlineMs: number;
  /** Its attempts are no evidence of the call. */
  readonly isAside?: true;
}

/** A block to ask for. */
export interface HeaderQuery {
  /** A number in hex, a tag or a hash. */
  readonly block: string;
  /** The only one to ask; omitted = any. */
  readonly pin?: Provider;
  /** Ids of providers that are not asked beside those that the call avoids. */
  readonly avoid?: ReadonlySet<string> | null;
}

/** One call in one layer. */
export abstract class LayerRun<Parts extends LayerParts = LayerParts>
  implements StageListener, RunningCall
{
  protected readonly parts: Parts;
  protected readonly context: CallContext;
  protected readonly listener: StageListener;
  /** The stages below have answered the call itself. */
  protected hasAnswer = false;
  protected isOver = false;
  /** The call itself, while it is under way below. */
  protected running: RunningCall | null = null;
  /** Null = no further call was made. */
  #further: Map<CallContext, RunningCall> | null = null;
  /** Null = no timer was set. */
  #timers: Set<() => void> | null = null;

  constructor(parts: Parts, context: CallContext, listener: StageListener) {
    this.parts = parts;
    this.context = context;
    this.listener = listener;
  }

  start(): RunningCall {
    const running = this.parts.next(this.context, this);
    if (!this.hasAnswer) this.running = running;
    return this;
  }

  ended(answer: Answer): void {
    this.hasAnswer = true;
    this.running = null;
    if (!this.isOver) this.judge(answer);
  }

  /** When no further block is waited for. */
  protected get endsAtMs(): number {
    return this.context.endsAtMs;
  }

  /** Decides what follows from the answer of the stages below. */
  protected abstract judge(answer: Answer): void;

  cancel(): Abandoned {
    if (this.isOver) return NOTHING_SENT;
    return this.abandoned(this.close());
  }

  /** What its caller is told who has left: before the further calls there was an answer. */
  protected abandoned(left: Abandoned): Abandoned {
    return this.hasAnswer ? { sent: true, countedAsTimeout: false } : left;
  }

  protected finish(answer: Answer): void {
    if (this.isOver) return;
    this.close();
    this.listener.ended(answer);
  }

  /** Ends what is out, and tells what of it may have been carried out. */
  protected close(): Abandoned {
    this.isOver = true;
    const left = this.running?.cancel() ?? NOTHING_SENT;
    if (this.#timers !== null) for (const cancel of this.#timers) cancel();
    const further = this.#further === null ? NOTHING_SENT : this.#closeFurther(this.#further);
    return left.sent ? left : further;
  }

  #closeFurther(calls: Map<CallContext, RunningCall>): Abandoned {
    const left: Abandoned[] = [];
    for (const [call, running] of calls) {
      left.push(running.cancel());
      this.#absorb(call);
    }
    calls.clear();
    const sent = left.filter((abandoned) => abandoned.sent);
    if (sent.length === 0) return NOTHING_SENT;
    return { sent: true, countedAsTimeout: sent.every((one) => one.countedAsTimeout) };
  }

  /**
   * Makes a further call, which avoids the providers that the call itself avoids as well. Calls
   * back once, or never after the end; returns null after that.
   */
  protected callFurther(
    { policy, isAside, ...changes }: FurtherCall,
    done: (answer: Answer, further: CallContext) => void,
  ): CallContext | null {
    if (this.isOver) return null;
    const { request } = this.context;
    const avoid = together(request.avoid, changes.avoid ?? null);
    const asked = { ...request, mayStream: false, ...changes, avoid };
    const further = new CallContext(asked, policy, this.parts.runtime.now());
    let hasEnded = false;
    const running = this.parts.next(further, {
      ended: (answer) => {
        hasEnded = true;
        this.#further?.delete(further);
        if (isAside === undefined) this.#absorb(further);
        if (!this.isOver) done(answer, further);
      },
    });
    if (hasEnded) return further;
    this.#further ??= new Map();
    this.#further.set(further, running);
    return further;
  }

  /** Asks for a block; null = nobody gave it, and why. Never calls back after the end. */
  protected queryHeader(
    { block, ...whom }: HeaderQuery,
    done: (head: Head | null, why: NoAnswer) => void,
  ): void {
    const { request, policy } = this.context;
    const method = block.length === HASH_CHARS ? "eth_getBlockByHash" : "eth_getBlockByNumber";
    const number = HEX.test(block)
      ? ({ kind: "number", number: Number(block) } as const)
      : NO_BLOCK;
    const call = newCall(method, `["${block}",false]`, number);
    const settings = { ...policy, coalesce: false, hedge: null, split: false };
    const leftMs = this.endsAtMs - this.parts.runtime.now();
    const query = {
      call,
      policy: policyOf(call.method, NO_BLOCK, settings),
      deadlineMs: Math.max(1, Math.min(request.deadlineMs, leftMs)),
    };
    this.callFurther({ ...query, ...whom }, (answer, further) => {
      const { outcome } = answer;
      const head =
        outcome.kind === "result"
          ? readHead(outcome.body.subarray(outcome.start, outcome.end))
          : null;
      done(head, whyUnanswered(answer, further));
    });
  }

  /** Calls `run` later, unless it is over then; the returned function cancels. */
  protected after(ms: number, run: () => void): () => void {
    const cancel = this.parts.runtime.after(ms, () => {
      this.#timers?.delete(cancel);
      run();
    });
    this.#timers ??= new Set();
    this.#timers.add(cancel);
    return cancel;
  }

  /** The plan of the call stays that of the first call that had one. */
  #absorb(further: CallContext): void {
    const { plan } = this.context;
    this.context.absorb(further);
    if (plan.candidates.length > 0) this.context.plan = plan;
  }
}

const HASH_CHARS = 66;
/** A number, as it is asked for; a hash is longer. */
const HEX = /^0x[0-9a-f]{1,13}$/;

/** All of these ids; null = there are none. */
export function together(
  some: ReadonlySet<string> | null,
  more: ReadonlySet<string> | null,
): ReadonlySet<string> | null {
  return some === null || more === null ? (some ?? more) : some.union(more);
}

/** Why a call has no answer that tells something. A provider that answered it cannot tell more. */
export function whyUnanswered(
  { source }: Answer,
  { plan, failed, request }: CallContext,
): NoAnswer {
  const answering = providerOf(source);
  const { unable, isForNow } = unansweredOf(plan, failed, request.avoid);
  return { unable: answering === null ? unable : [...unable, answering.id], isForNow };
}
