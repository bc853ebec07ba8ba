// Asks the providers of a plan in turn until one answers or none is left. A slow attempt goes on
// beside the next one, and the first answer wins. Slow are a trial of a half-open circuit, an
// overdue attempt, and an attempt with a hedge. The only stage that touches the tracker. What
// follows from a failure is decided in core.
import type { Abandoned } from "../../../core/billing/charging.ts";
import type { Channel, Verdict } from "../../../core/provider/attempt.ts";
import { tipOperatorOf } from "../../../core/provider/operator.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import { SERVICE_CALLER } from "../../../core/provider/silence.ts";
import { isMissingBlock } from "../../../core/provider-errors/category.ts";
import { haveProvidersFailed, nextMove, unownedVerdict } from "../../../core/routing/failover.ts";
import { RECHECK_SHARE } from "../../../core/routing/hedge.ts";
import type { Call } from "../../../core/rpc/call.ts";
import { type Failure, plainFailure } from "../../../core/rpc/failure.ts";
import type { Span } from "../../../core/rpc/json.ts";
import {
  blockNumberOf,
  contradictionIn,
  type Extent,
  isEmptyAt,
  isNullResult,
} from "../../../core/rpc/result-block.ts";
import type { MoveReason } from "../../health/silence-watch.ts";
import type { AnswerStream } from "../../transport.ts";
import { type Answer, faultAnswer, providerAnswer, type Result, wholeResult } from "../answer.ts";
import { MAX_VALUE_BYTES } from "../cache/answer-cache.ts";
import {
  type CallContext,
  NOTHING_SENT,
  type RunningCall,
  type Stage,
  type StageListener,
} from "../call-context.ts";
import {
  CROWDED,
  exhausted,
  INTEGRITY,
  LEFT,
  OVERTAKEN,
  outcomeUnknown,
  panicIsFull,
  returned,
  shownOf,
  UNCONFIRMED,
  verdictOf,
} from "../refusal.ts";
import type { AttemptOwner, AttemptParts, PendingAttempt } from "./attempt.ts";
import { CapacityWait } from "./capacity-wait.ts";
import { OldEmpties } from "./old-empties.ts";
import { Candidates, costOf, OpenAttempts } from "./open-attempts.ts";

/** A refusal of the method by hash, which was sent instead, says nothing of the caller's method. */
function isForeignRefusal({ method }: Call, { effect }: Verdict): boolean {
  return method.byHashName !== null && effect.kind === "learn" && effect.what === "method";
}

/** The innermost stage: providers are asked here. */
export function failover(parts: AttemptParts): Stage {
  const next: Stage = (context, listener) => begun(parts, context, listener);
  const { runtime } = parts;
  const planAnew = (context: CallContext): void => plan(parts, context, runtime.now());
  const waits = { runtime, next, queue: { waiting: 0 }, plan: planAnew };
  return (context, listener) => {
    const nowMs = runtime.now();
    plan(parts, context, nowMs);
    if (context.plan.candidates.length > 0) return begun(parts, context, listener, nowMs);
    return new CapacityWait(waits, context, listener).start();
  };
}

function plan({ recording }: AttemptParts, context: CallContext, nowMs: number): void {
  const { request } = context;
  const { call, tracker, strategy, transport, pin } = request;
  // The order of a plan with preferred providers is not that of its inputs.
  const isUsual = pin === null && (request.prefer ?? null) === null;
  const isCallers = recording !== undefined && isUsual && request.caller !== SERVICE_CALLER;
  const selection =
    isCallers && recording.takes(request, context.startedAtMs)
      ? { strategy, transport, pin, record: true, view: request.view }
      : request;
  context.plan = tracker.plan(call, selection, nowMs);
}

function begun(
  parts: AttemptParts,
  context: CallContext,
  listener: StageListener,
  nowMs = parts.runtime.now(),
): RunningCall {
  const { hedge } = context.policy;
  const [first] = context.plan.candidates;
  if (first !== undefined) {
    const { tracker, call } = context.request;
    if (hedge !== null) tracker.extraCalls.fill(costOf(first.provider, call), hedge.maxExtra);
    tracker.rechecks.fill(1, RECHECK_SHARE);
  }
  const run = new FailoverRun(parts, context, listener);
  run.start(nowMs);
  return run;
}

/** An answer that contradicted its question. */
interface Contradiction {
  readonly provider: Provider;
  readonly why: string;
  /** What was read of it, and whether that is all. */
  readonly said: Buffer;
  readonly isWhole: boolean;
}

/**
 * Whether two operators contradict alike: in form, or in every byte that both are known to have
 * said. No list or object is the beginning of another.
 */
function isAlike(one: Contradiction, other: Contradiction): boolean {
  if (tipOperatorOf(one.provider) === tipOperatorOf(other.provider)) return false;
  if (one.why !== other.why) return false;
  const length = one.why === "form" ? 1 : Math.min(one.said.length, other.said.length);
  return one.said.subarray(0, length).equals(other.said.subarray(0, length));
}

/** One call on its way through its providers. */
class FailoverRun implements AttemptOwner, RunningCall {
  readonly #parts: AttemptParts;
  readonly #context: CallContext;
  readonly #listener: StageListener;
  readonly #candidates: Candidates;
  readonly #open: OpenAttempts;
  readonly #contradictions: Contradiction[] = [];
  /** Null = there was no empty answer about old blocks. */
  #empties: OldEmpties | null = null;
  #over = false;

  constructor(parts: AttemptParts, context: CallContext, listener: StageListener) {
    this.#parts = parts;
    this.#context = context;
    this.#listener = listener;
    this.#candidates = new Candidates(context, context.request.upstreams ?? parts.upstreams);
    this.#open = new OpenAttempts(parts, context, this);
  }

  start(nowMs: number): void {
    const { plan } = this.#context;
    if (plan.panic === true && !this.#open.enterPanic())
      this.#finish(faultAnswer(panicIsFull(plan)));
    else this.#tryNext(nowMs);
  }

  cancel(): Abandoned {
    if (this.#over) return NOTHING_SENT;
    this.#over = true;
    this.#open.leavePanic();
    return this.#open.cancel();
  }

  answered(pending: PendingAttempt, result: Result): void {
    const { body, pool } = result;
    const why = this.#over ? null : this.#contradiction(pending, result, this.#extentOf(result));
    if (why !== null) {
      pool?.recycle(body);
      return this.#contradicted(pending, why);
    }
    if (!this.#over && this.#isDoubted(pending, result)) {
      pool?.recycle(body);
      const failure = plainFailure("body", "it may have dropped what it says there is none of");
      return this.#end(pending, UNCONFIRMED, failure, null);
    }
    if (!this.#wins(pending)) return pool?.recycle(body);
    if (!this.#context.isContradicted && !isNullResult(body, result))
      this.#noteBlock(pending.provider, result);
    this.#finish({ outcome: result, source: { kind: "provider", provider: pending.provider } });
  }

  /** Whether a result is empty since its provider may have dropped what was asked for. */
  #isDoubted(channel: Channel, { body, start, end }: Result): boolean {
    const { call } = this.#context.request;
    if (!isEmptyAt(call, body, { start, end })) {
      this.#empties?.disprove();
      return false;
    }
    this.#empties ??= new OldEmpties(this.#context, this.#candidates);
    return this.#empties.doubts(channel, Buffer.from(body.subarray(start, end)));
  }

  /** What may be kept is read to its end: a lie in the middle would be given to others. */
  #extentOf({ start, end }: Span): Extent {
    const { cache, isPart } = this.#context.policy;
    return cache && !isPart && end - start <= MAX_VALUE_BYTES ? "all" : "ends";
  }

  /**
   * What of an answer contradicts its question; null = nothing, or it is believed all the same: no
   * other operator can confirm it, or a second operator gave the same answer.
   */
  #contradiction(
    { provider }: PendingAttempt,
    { body, start, end }: Pick<Result, "body" | "start" | "end">,
    extent: Extent,
  ): string | null {
    const { tracker, call } = this.#context.request;
    const { method, resolution } = call;
    let why = contradictionIn(call, body, { start, end }, extent);
    // Asked by tag, it may have answered at another block.
    if (why !== null && resolution !== undefined)
      if (tracker.blocks.formFor(provider, method) === "tag")
        why = contradictionIn(resolution.written, body, { start, end }, extent);
    if (why === null) return null;
    const operator = tipOperatorOf(provider);
    const said = body.subarray(start, end);
    const isAlone = tracker.set.providers.every((other) => tipOperatorOf(other) === operator);
    const contradiction = { provider, why, said, isWhole: extent !== "beginning" };
    if (isAlone || this.#contradictions.some((other) => isAlike(other, contradiction))) {
      this.#context.isContradicted = true;
      return null;
    }
    this.#contradictions.push({ ...contradiction, said: Buffer.from(said) });
    return why;
  }

  /** The next provider is asked. */
  #contradicted(pending: PendingAttempt, why: string): void {
    const failure = plainFailure("body", `the answer is to another question: its ${why} differs`);
    this.#end(pending, INTEGRITY, failure, null);
  }

  streaming(pending: PendingAttempt, stream: AnswerStream, first: Buffer): void {
    const beginning = { body: first, start: 0, end: first.length };
    const why = this.#over ? null : this.#contradiction(pending, beginning, "beginning");
    if (why !== null) {
      stream.cut();
      this.#contradicted(pending, why);
    } else if (this.#wins(pending)) {
      this.#empties?.disprove();
      this.#finish(providerAnswer({ kind: "stream", stream }, pending.provider));
    } else stream.cut();
  }

  /** The answer counted as a success when it began; what it became counts as well. */
  brokeOff({ attempt, provider }: PendingAttempt, message: string): void {
    if (attempt === null) return;
    const { call, tracker } = this.#context.request;
    const verdict = this.#verdictOn(provider, plainFailure("network", message));
    tracker.record(call.method, { ...attempt, verdict }, call.block, call.methodName);
  }

  failed(pending: PendingAttempt, failure: Failure, raw: Buffer | null): void {
    const { provider } = pending;
    const own = this.#verdictOn(provider, failure);
    const isUnowned = failure.kind === "error" && raw === null;
    const verdict = isUnowned ? unownedVerdict(own, pending.method) : own;
    const shown = shownOf(failure, raw, provider, verdict);
    this.#end(pending, this.#atView(provider, verdict), failure, shown);
  }

  /** An attempt has ended without an answer that counts. */
  #end(pending: PendingAttempt, verdict: Verdict, failure: Failure, shown: Buffer | null): void {
    const attempt =
      failure.kind === "timeout" ? pending.cut(verdict) : pending.end(verdict, failure);
    if (this.#over) return;
    this.#context.addFailed({ attempt, verdict, failure, raw: shown });
    if (failure.kind === "unsent") this.#open.unsent();
    const wasBeside = this.#open.isBeside(pending);
    this.#open.drop(pending);
    // A failure does not end the call while another attempt runs, unless it is an answer for the
    // caller; nor does the failure of a hedge.
    if (verdict.step === "return") return this.#proceed();
    if (wasBeside && this.#open.awaited !== null) return;
    if (!wasBeside && pending.isHedge && this.#open.waitForBeside())
      return this.#open.awaited?.checkProgress();
    this.#proceed();
  }

  /** A provider that answers at a block has it. */
  #noteBlock(provider: Provider, result: Result): void {
    const { tracker, call } = this.#context.request;
    const { resolution } = call;
    const number = blockNumberOf(call, result.body, result);
    if (number !== null) tracker.namedBlock(provider, number);
    if (resolution === undefined || tracker.blocks.formFor(provider, call.method) === "tag") return;
    tracker.hasBlock(provider, resolution.number);
  }

  /** To lack the block of a view is no fault of a provider, and says nothing of its archive. */
  #atView(provider: Provider, verdict: Verdict): Verdict {
    const { tracker, call } = this.#context.request;
    const isMissing = isMissingBlock(verdict.category) || isForeignRefusal(call, verdict);
    if (call.resolution === undefined || !isMissing) return verdict;
    tracker.lacksBlock(provider, call.resolution.number);
    return { ...verdict, effect: { kind: "ignored" } };
  }

  slow(pending: PendingAttempt): number | null {
    const open = this.#open;
    if (this.#over || pending !== open.awaited || !this.#hasNext()) return null;
    if (open.besideCount + 1 >= this.#context.policy.maxOpen) return null;
    const isAlone = open.besideCount === 0;
    const move = this.#candidates.stepWhenSlow(pending, isAlone);
    switch (move.kind) {
      case "wait":
        return move.ms;
      case "next":
        open.stepAside();
        this.#tryNext();
        return null;
      case "hedge":
        open.stepAside();
        this.#candidates.takeOut(move.target);
        this.#begin(move.target, this.#parts.runtime.now(), pending.ageMs);
        return null;
    }
  }

  shouldMove(pending: PendingAttempt, why: MoveReason): void {
    // A trial that nobody waits for any more.
    if (this.#over) return why === "queued" ? undefined : void pending.cut(OVERTAKEN);
    const mayMove =
      !pending.sent || (why === "silence" && this.#context.request.call.method.replaySafe);
    if (!mayMove || (why === "queued" && !this.#candidates.isAnyFree())) return;
    const open = this.#open;
    if (open.isBeside(pending)) return why === "queued" ? undefined : this.#take(pending, why);
    if (pending !== open.awaited) return;
    if (!this.#hasNext() && (why === "queued" || !this.#addReserve())) return;
    // The next one is asked first: where there is none after all, this one may still be answered.
    const isAlone = open.besideCount === 0;
    if (isAlone) open.stepAside();
    else this.#take(pending, why);
    this.#tryNext();
    if (isAlone && !this.#over && open.isBeside(pending)) this.#take(pending, why);
  }

  /** Takes an attempt back from its provider. */
  #take(pending: PendingAttempt, why: MoveReason): void {
    if (pending.sent) return this.#open.giveUp(pending);
    this.#open.takeBack(pending, why === "queued" ? CROWDED : LEFT);
  }

  /** Takes an answer into account; false = the call has been answered already. */
  #wins(winner: PendingAttempt): boolean {
    const attempt = winner.end(null, null);
    if (this.#over) return false;
    this.#open.drop(winner);
    this.#open.overtake();
    this.#context.addTrace(attempt, null);
    return true;
  }

  #proceed(): void {
    const { policy, failed } = this.#context;
    switch (nextMove({ maxAttempts: policy.maxAttempts, isPart: policy.isPart, failed })) {
      case "next":
        return this.#tryNext();
      case "stop":
        return this.#finish(faultAnswer(outcomeUnknown(failed, null)));
      case "known":
      case "verify":
      case "return":
        return this.#finish(returned(this.#context, this.#open.isLate));
      case "exhausted":
        return this.#noneLeft();
    }
  }

  #tryNext(startedAtMs = this.#parts.runtime.now()): void {
    const isLate = startedAtMs >= this.#open.endsAtMs;
    const channel = isLate ? null : this.#candidates.next();
    if (channel === null) this.#noneLeft();
    else this.#begin(channel, startedAtMs, null);
  }

  #begin(channel: Channel, startedAtMs: number, hedgedAfterMs: number | null): void {
    const couldFollow = this.#candidates.any || this.#candidates.hasReserve;
    this.#open.begin(channel, startedAtMs, couldFollow, hedgedAfterMs);
  }

  /** Whether another provider could be asked beside those that were. */
  #hasNext(): boolean {
    return this.#open.mayTryMore && this.#candidates.any;
  }

  /**
   * No candidate is left. If an attempt is still running beside, it is waited for; else providers
   * that lag are asked, if there are some.
   */
  #noneLeft(): void {
    if (this.#open.waitForBeside()) return;
    if (this.#addReserve()) this.#tryNext();
    else
      this.#finish(
        this.#unusual() ?? this.#empties?.answer() ?? exhausted(this.#context, this.#open.isLate),
      );
  }

  /** An answer of another form than usual, which nobody has corrected; null = there is none. */
  #unusual(): Answer | null {
    const unusual = this.#contradictions.find(({ why, isWhole }) => why === "form" && isWhole);
    if (unusual === undefined) return null;
    this.#context.isContradicted = true;
    return providerAnswer(wholeResult(unusual.said), unusual.provider);
  }

  /**
   * Those that lag are asked as well, where all others failed by themselves, or found nothing and
   * may have dropped it.
   */
  #addReserve(): boolean {
    const isDoubtful = this.#empties?.any === true;
    if (!this.#open.mayTryMore) return false;
    if (!isDoubtful && !haveProvidersFailed(this.#context.failed)) return false;
    return this.#candidates.addReserve();
  }

  #verdictOn(provider: Provider, failure: Failure): Verdict {
    return verdictOf(failure, this.#context.request.call, provider, this.#parts.runtime.wallMs());
  }

  #finish(answer: Answer): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#context.plan.panic === true) this.#open.leavePanic();
    if (this.#open.awaited !== null || this.#open.besideCount > 0) this.#open.overtake();
    this.#listener.ended(answer);
  }
}
