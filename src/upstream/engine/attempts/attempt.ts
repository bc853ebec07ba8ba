// One attempt under way at one provider: its request, its deadline, and its reports to the tracker.
// What becomes of the call is its owner's business.
import type { Attempt, Channel, Counting, Verdict } from "../../../core/provider/attempt.ts";
import type { Provider, Transport } from "../../../core/provider/profile.ts";
import { type CallerIdentity, SERVICE_CALLER } from "../../../core/provider/silence.ts";
import type { Call } from "../../../core/rpc/call.ts";
import { type Failure, isAnswer, lateFailure, plainFailure } from "../../../core/rpc/failure.ts";
import type { Method } from "../../../core/rpc/method.ts";
import { isResolved, requestByHash } from "../../../core/rpc/resolved-call.ts";
import type { WireRequest } from "../../../core/rpc/wire-request.ts";
import type { Runtime } from "../../../runtime.ts";
import type { MoveReason, Outstanding, WatchedChannel } from "../../health/silence-watch.ts";
import type { Tracker } from "../../health/tracker.ts";
import type { Timer, TimerWheel } from "../../timer-wheel.ts";
import type {
  AnswerListener,
  AnswerStream,
  BorrowedBuffer,
  Dispatch,
  ResultSpan,
  SentBatch,
} from "../../transport.ts";
import type { Result } from "../answer.ts";
import type { CallContext, RouteRequest, Upstreams } from "../call-context.ts";

/** The call that an attempt is made for. */
export interface AttemptOwner {
  answered(pending: PendingAttempt, answer: Result): void;
  /** `first`: what is here of the result. */
  streaming(pending: PendingAttempt, stream: AnswerStream, first: Buffer): void;
  failed(pending: PendingAttempt, failure: Failure, raw: Buffer | null): void;
  /** After `streaming`: the answer broke off. */
  brokeOff(pending: PendingAttempt, message: string): void;
  /**
   * It takes long: may ask another provider as well. Returns when (ms from now) to tell so again;
   * null = no more.
   */
  slow(pending: PendingAttempt): number | null;
  /** It may be better off elsewhere. */
  shouldMove(pending: PendingAttempt, why: MoveReason): void;
}

/** Says of which plans the inputs are kept. */
export interface PlanRecording {
  /** Whether those of the plan of a call that begins at `nowMs` are. */
  takes(request: RouteRequest, nowMs: number): boolean;
}

/** Bounds of one routed call. */
export interface RouterLimits {
  readonly maxAttempts: number;
  /** Share of the remaining time that an attempt may use while others could follow. */
  readonly firstAttemptShare: number;
}

/** What attempts are made with. */
export interface AttemptParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly upstreams: Upstreams;
  readonly limits: () => RouterLimits;
  /** Absent = no inputs of plans are kept. */
  readonly recording?: PlanRecording | undefined;
}

/** Who is asked, and for how long. */
export interface AttemptTerms {
  readonly channel: Channel;
  readonly startedAtMs: number;
  /** How long it may take. */
  readonly limitMs: number;
  /** Another provider may be asked as well while it is out. */
  readonly mayBeLate: boolean;
  /** When its owner is first told that it takes long; null = never. */
  readonly checkMs: number | null;
  /** Of a hedge: how long the attempt had taken beside which it is begun; null = it is none. */
  readonly hedgedAfterMs: number | null;
}

/** The request as a provider is asked: by the tag, the number or the hash of its block. */
function wireOf(call: Call, tracker: Tracker, provider: Provider): WireRequest {
  if (!isResolved(call)) return call;
  const form = tracker.blocks.formFor(provider, call.method);
  if (form === "tag") return call.resolution.written;
  return (form === "hash" ? requestByHash(call) : null) ?? call;
}

/** A timer that is later than this was held up: the wheel itself is up to two ticks late. */
const TIMER_SLACK_MS = 25;

/** One try that has begun. Ends once: by `end` or `cut`. */
export class PendingAttempt implements AnswerListener, Outstanding {
  readonly provider: Provider;
  readonly transport: Transport;
  readonly method: Method;
  readonly caller: CallerIdentity;
  readonly counts: Counting;
  readonly startedAtMs: number;
  /**
   * It is the trial of a half-open circuit, or of a stalled provider, and another may be asked
   * beside it.
   */
  isTrial = false;
  watched: WatchedChannel | null = null;
  sentAtMs: number | null = null;
  connectingAtMs: number | null = null;
  counted = false;
  before: Outstanding | null = null;
  after: Outstanding | null = null;
  /** Its call was answered by another provider, while this one goes on. */
  isOvertaken = false;
  /** Its provider was silent, once it has ended. */
  silent = false;
  /** What it was, once it has ended. */
  attempt: Attempt | null = null;
  readonly #parts: AttemptParts;
  readonly #context: CallContext;
  readonly #terms: AttemptTerms;
  readonly #owner: AttemptOwner;
  #dispatch: Dispatch | null = null;
  /** Runs out when its owner is told that it takes long, and at last with its time. */
  #timer: Timer | null = null;

  constructor(parts: AttemptParts, context: CallContext, terms: AttemptTerms, owner: AttemptOwner) {
    this.provider = terms.channel.provider;
    this.transport = terms.channel.transport;
    this.method = context.request.call.method;
    this.caller = context.request.caller;
    this.counts = context.request.counts ?? "all";
    this.startedAtMs = terms.startedAtMs;
    this.#parts = parts;
    this.#context = context;
    this.#terms = terms;
    this.#owner = owner;
  }

  get sent(): boolean {
    return this.#dispatch?.sent === true;
  }

  get isHedge(): boolean {
    return this.#terms.hedgedAfterMs !== null;
  }

  get queued(): boolean {
    return this.#dispatch?.queued === true;
  }

  get batch(): SentBatch | null {
    return this.#dispatch?.batch ?? null;
  }

  /** How long it has been out. */
  get ageMs(): number {
    return Math.max(0, this.#parts.runtime.now() - this.startedAtMs);
  }

  /** Sends it. A transport that fails at once has ended it when this returns. */
  start(): void {
    const { provider } = this;
    const { call, mayStream, room, deadlineMs, tracker, upstreams } = this.#context.request;
    const { limitMs, checkMs, mayBeLate } = this.#terms;
    const upstream = (upstreams ?? this.#parts.upstreams)[this.transport];
    const trialMs = tracker.begin(this);
    this.isTrial = mayBeLate && trialMs !== null;
    if (upstream === undefined)
      return this.failed(plainFailure("unsent", "transport not available"), null);
    this.#wait(this.isTrial ? trialMs : checkMs, limitMs, this.startedAtMs);
    const { methodName } = call;
    const { body, idStart, idEnd } = wireOf(call, tracker, provider);
    const passed = provider.guarded ? this.caller.passed : undefined;
    const isShared = provider.batch !== null || provider.pipelining;
    const mayShare = isShared && passed === undefined && this.#mayShare();
    const request = { provider, methodName, body, idStart, idEnd, mayStream, room, mayShare };
    const dispatch = upstream.send({ ...request, deadlineMs, passed }, this);
    if (this.attempt !== null) return;
    this.#dispatch = dispatch;
    if (dispatch.sent) this.sentAtMs = this.startedAtMs;
    else if (!dispatch.queued) this.connectingAtMs = this.startedAtMs;
  }

  /**
   * Whether it may share a request or a connection with other calls. A second try goes alone: what
   * failed the batch of the first one must not fail all of them again.
   */
  #mayShare(): boolean {
    const { isTrial, isHedge, method, caller } = this;
    const { failed, plan } = this.#context;
    return (
      method.batch &&
      !isTrial &&
      !isHedge &&
      failed.length === 0 &&
      plan.panic !== true &&
      caller !== SERVICE_CALLER
    );
  }

  result(body: Buffer, { start, end, idAt }: ResultSpan, pool?: BorrowedBuffer): void {
    if (this.attempt === null)
      this.#owner.answered(this, { kind: "result", body, start, end, idAt, pool });
    else pool?.recycle(body);
  }

  stream(stream: AnswerStream, first: Buffer): void {
    if (this.attempt === null) this.#owner.streaming(this, stream, first);
    else stream.cut();
  }

  heard(): void {
    if (this.counts === "nothing") return;
    this.#context.request.tracker.heard(this.provider, this.transport);
  }

  broken(message: string): void {
    this.#owner.brokeOff(this, message);
  }

  failed(failure: Failure, raw: Buffer | null): void {
    if (this.attempt === null) this.#owner.failed(this, failure, raw);
  }

  /** It is waited for again: tells its owner that it takes long, if it does. */
  checkProgress(): void {
    this.#timer?.clear();
    this.#timer = null;
    const leftMs = this.#terms.limitMs - this.ageMs;
    if (leftMs <= 0) return this.#timedOut();
    const checkMs = this.#owner.slow(this);
    // Unless it has ended, or was looked at again meanwhile.
    if (this.attempt === null && this.#timer === null) this.#wait(checkMs, leftMs);
  }

  moveAway(why: MoveReason): void {
    if (this.attempt === null) this.#owner.shouldMove(this, why);
  }

  /** It has ended: answered (null), or failed with what the classifier made of it. */
  end(verdict: Verdict | null, failure: Failure | null): Attempt {
    return this.#end(
      verdict,
      failure,
      verdict === null || (failure !== null && isAnswer(failure.kind)) ? "answered" : "failed",
    );
  }

  /** Ends it from here, without another word of its provider. */
  cut(verdict: Verdict): Attempt {
    this.#dispatch?.cancel();
    return this.#end(verdict, null, "cut");
  }

  #end(
    verdict: Verdict | null,
    failure: Failure | null,
    by: "answered" | "failed" | "cut",
  ): Attempt {
    const { provider, transport } = this;
    this.#timer?.clear();
    const code = failure?.code ?? (failure?.httpStatus || null);
    const incident = failure?.incident;
    const { startedAtMs } = this;
    const nowMs = this.#parts.runtime.now();
    const latencyMs = Math.max(0, nowMs - startedAtMs);
    const plain: Attempt = { provider, transport, startedAtMs, latencyMs, verdict, code };
    const { hedgedAfterMs } = this.#terms;
    const { batch } = this;
    const alone = incident === undefined ? plain : { ...plain, incident };
    const known = batch === null ? alone : { ...alone, batched: batch.size };
    const timed: Attempt = this.isOvertaken ? { ...known, overtaken: true } : known;
    const attempt = hedgedAfterMs === null ? timed : { ...timed, hedgedAfterMs };
    this.attempt = attempt;
    this.silent = this.#context.request.tracker.end(this, {
      attempt,
      call: this.#context.request.call,
      by,
      nowMs,
    });
    return attempt;
  }

  /** Waits for its answer: for `leftMs` in all, or until its owner is told that it takes long. */
  #wait(checkMs: number | null, leftMs: number, nowMs?: number): void {
    const { timerWheel } = this.#parts;
    this.#timer =
      checkMs !== null && checkMs < leftMs
        ? timerWheel.set(checkMs, () => this.checkProgress(), nowMs)
        : timerWheel.set(leftMs, () => this.#timedOut(), nowMs);
  }

  /**
   * Its time is over. Where the event loop was held up, an answer may have come meanwhile that
   * nobody has read: the sockets get one more turn before this is a timeout.
   */
  #timedOut(): void {
    const isHeldUp = this.ageMs - this.#terms.limitMs > TIMER_SLACK_MS;
    if (isHeldUp) this.#parts.runtime.atTurnEnd(() => this.#judgeTimeout());
    else this.#judgeTimeout();
  }

  #judgeTimeout(): void {
    if (this.attempt !== null) return;
    const { sent } = this;
    if (!sent) this.#dispatch?.cancel();
    this.#owner.failed(this, lateFailure(sent, this.queued), null);
  }
}
