// The one loop that waits: takes a call through plan, attempts and failover to an outcome. Decides
// nothing itself (core does), and knows no caller.

import type { Abandoned } from "../../core/billing/charging.ts";
import type { Fault } from "../../core/faults/rpc-fault.ts";
import type { Attempt, Channel, Verdict } from "../../core/provider/attempt.ts";
import type { Provider, Transport } from "../../core/provider/profile.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { classify } from "../../core/provider-errors/classify.ts";
import {
  bestError,
  type FailedAttempt,
  nextMove,
  unownedVerdict,
} from "../../core/routing/failover.ts";
import type { Plan } from "../../core/routing/plan.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import type { Call } from "../../core/rpc/call.ts";
import { type Failure, plainFailure } from "../../core/rpc/failure.ts";
import type { Runtime } from "../../runtime.ts";
import type { Departure } from "../health/silence-watch.ts";
import type { RoutingState } from "../health/tracker.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";
import type { AnswerStream, BorrowedBuffer, Room, Upstream } from "../transport.ts";
import { type AttemptOwner, PendingAttempt, type WholeAnswer } from "./pending-attempt.ts";
import {
  allFailed,
  mayShow,
  noProviderEligible,
  noRoom,
  outcomeUnknown,
  panicIsFull,
  rangeRefused,
  unreadRequestError,
} from "./refusal.ts";
import { answerOf, hashOf, lookupOf } from "./transaction.ts";

/** What a request is routed with. */
export interface RouteRequest {
  readonly call: Call;
  readonly tracker: RoutingState;
  readonly strategy: Strategy;
  readonly pin: Provider | null;
  /** Null = whichever of a provider's is better. */
  readonly transport: Transport | null;
  /** Whose call it is: of one caller only so much counts against a provider. */
  readonly caller: CallerIdentity;
  /** Providers that are not to be asked, whatever the plan says. */
  readonly avoid: ReadonlySet<string> | null;
  readonly deadlineMs: number;
  /** False where the caller needs the answer in one piece. */
  readonly mayStream: boolean;
  /**
   * Where an answer that is gathered is counted until it is told; left out = with the service's
   * own.
   */
  readonly room?: Room | undefined;
}

/** How a routed call ended. */
export type Outcome =
  /**
   * The result value lies in `body` at `start`..`end`. `body` is a whole upstream answer with an id
   * of ours at `idAt`; null = it is the value alone. With a `lender`, which only a request with
   * `mayStream` meets, `body` goes back to it when nobody reads it any more.
   */
  | {
      readonly kind: "result";
      readonly body: Buffer;
      readonly start: number;
      readonly end: number;
      readonly idAt: number | null;
      readonly lender?: BorrowedBuffer | undefined;
    }
  | { readonly kind: "stream"; readonly stream: AnswerStream }
  /** A provider's own error, unchanged. */
  | { readonly kind: "error"; readonly raw: Buffer }
  | { readonly kind: "fault"; readonly fault: Fault };

/** One attempt, as evidence. */
export interface Trace {
  readonly attempt: Attempt;
  readonly failure: Failure | null;
}

/** A routed call, under way or ended: what the evidence is made of. */
export interface RoutedCall {
  readonly request: RouteRequest;
  readonly plan: Plan;
  readonly traces: readonly Trace[];
  readonly startedAtMs: number;
  /** Whose result or error the outcome is; null when it is nobody's. */
  readonly answeredBy: Provider | null;
  /**
   * Ends it without an outcome, since its caller is gone, and tells what may have been carried out.
   */
  cancel(): Abandoned;
}

/** Routes calls. */
export interface Router {
  route(request: RouteRequest, done: (outcome: Outcome, route: RoutedCall) => void): RoutedCall;
}

/** What the router works with. */
export interface RouterParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly upstreams: Readonly<Partial<Record<Transport, Pick<Upstream, "send" | "isFree">>>>;
  readonly limits: () => RouterLimits;
}

/** Bounds of one routed call. */
export interface RouterLimits {
  readonly maxAttempts: number;
  /** Share of the remaining time that an attempt may use while others could follow. */
  readonly firstAttemptShare: number;
}

/** A router over these parts. */
export function createRouter(parts: RouterParts): Router {
  return {
    route(request, done) {
      const routing = new Routing(parts, request, done);
      routing.start();
      return routing;
    },
  };
}

class Routing implements RoutedCall, AttemptOwner {
  readonly request: RouteRequest;
  readonly startedAtMs: number;
  readonly traces: Trace[] = [];
  plan: Plan = EMPTY_PLAN;
  answeredBy: Provider | null = null;
  readonly #parts: RouterParts;
  readonly #done: (outcome: Outcome, route: RoutedCall) => void;
  readonly #failed: FailedAttempt[] = [];
  /** When its time is over, from its start. */
  #limitMs: number;
  #cursor = 0;
  /** Attempts that were begun and not taken back unsent. */
  #begun = 0;
  /** Passed over because a request would have had to wait for a connection; null = nobody was. */
  #passedOver: Channel[] | null = null;
  /** The attempt that is waited for. */
  #current: PendingAttempt | null = null;
  /** One that goes on while another is waited for. */
  #aside: PendingAttempt | null = null;
  #lookup: RoutedCall | null = null;
  /** Holds one of the places for calls while every circuit is open. */
  #panicSlot: Timer | null = null;
  #trialsTaken = false;
  #over = false;

  constructor(
    parts: RouterParts,
    request: RouteRequest,
    done: (outcome: Outcome, route: RoutedCall) => void,
  ) {
    this.#parts = parts;
    this.request = request;
    this.#limitMs = request.deadlineMs;
    this.#done = done;
    this.startedAtMs = parts.runtime.now();
  }

  start(): void {
    const { tracker, call, strategy, transport, pin } = this.request;
    this.plan = tracker.plan(call, { strategy, transport, pin });
    if (this.plan.panic === true && !this.#enterPanic())
      return this.#finish({ kind: "fault", fault: panicIsFull(this.plan) });
    this.#tryNext();
  }

  cancel(): Abandoned {
    if (this.#over) return NOTHING_SENT;
    this.#over = true;
    this.#leavePanic();
    this.#lookup?.cancel();
    const out = [this.#current, this.#aside].filter((it) => it !== null);
    // Read first: a request that was given up before it was sent never will be.
    const sent = out.filter((it) => it.sent);
    for (const pending of out) this.#trace(pending.cut(CANCELLED), null);
    if (sent.length > 0) return { sent: true, countedAsTimeout: sent.every((it) => it.silent) };
    const before = this.#failed.findLast((it) => it.failure.kind !== "unsent");
    return { sent: before !== undefined, countedAsTimeout: before?.failure.kind === "timeout" };
  }

  answered(pending: PendingAttempt, answer: WholeAnswer): void {
    const attempt = pending.end(null, null);
    if (this.#wins(pending, attempt)) {
      const { body, start, end, idAt, lender } = answer;
      this.#finish({ kind: "result", body, start, end, idAt, lender }, pending.provider);
    } else answer.lender?.recycle(answer.body);
  }

  streaming(pending: PendingAttempt, stream: AnswerStream): void {
    const attempt = pending.end(null, null);
    if (this.#wins(pending, attempt)) this.#finish({ kind: "stream", stream }, pending.provider);
    else stream.cut();
  }

  /** The answer counted as a success when it began; what it became counts as well. */
  brokeOff({ attempt, provider }: PendingAttempt, message: string): void {
    if (attempt === null) return;
    const { call, tracker } = this.request;
    tracker.record(
      call.method,
      { ...attempt, verdict: this.#judge(plainFailure("network", message), provider) },
      call.block,
      call.methodName,
    );
  }

  failed(pending: PendingAttempt, failure: Failure, raw: Buffer | null): void {
    const { provider } = pending;
    const { verdict, shown } =
      failure.crowded === true
        ? { verdict: CROWDED, shown: null }
        : this.#judgeAnswer(failure, raw, provider);
    const attempt =
      failure.kind === "timeout" ? pending.cut(verdict) : pending.end(verdict, failure);
    if (this.#over) return;
    this.#trace(attempt, failure);
    this.#failed.push({
      attempt,
      verdict,
      failure,
      raw: shown !== null && mayShow(provider, verdict, shown) ? shown : null,
    });
    const isAside = this.#letGo(pending);
    // Beside one that is waited for, a failure says nothing new, unless it is the caller's own
    // answer.
    if (!isAside || verdict.step === "return") this.#proceed();
  }

  /**
   * A trial is slower than its provider usually is: the next one is asked as well, and whoever
   * answers first has answered.
   */
  late(pending: PendingAttempt): void {
    if (this.#over || pending !== this.#current || this.#aside !== null || !this.#hasNext()) return;
    this.#aside = pending;
    this.#current = null;
    this.#tryNext();
  }

  departs(pending: PendingAttempt, why: Departure): void {
    // A trial that nobody waits for any more.
    if (this.#over) return why === "queued" ? undefined : void pending.cut(OVERTAKEN);
    const isMovable = !pending.sent || (why === "silence" && this.request.call.method.replaySafe);
    if (!isMovable || (why === "queued" && !this.#mayPassOver())) return;
    if (pending === this.#aside) {
      if (why === "queued") return;
      this.#aside = null;
      return this.#take(pending, why);
    }
    if (pending !== this.#current || !this.#hasNext()) return;
    // The next one is asked first: where there is none after all, this one may still be answered.
    const aside = this.#aside;
    this.#aside = aside ?? pending;
    this.#current = null;
    if (aside !== null) this.#take(pending, why);
    this.#tryNext();
    if (aside !== null || this.#over || this.#aside !== pending) return;
    this.#aside = null;
    this.#take(pending, why);
  }

  /** Takes an attempt back from its provider. */
  #take(pending: PendingAttempt, why: Departure): void {
    if (!pending.sent) {
      this.#begun--;
      return this.#trace(pending.cut(why === "queued" ? CROWDED : LEFT), null);
    }
    const failure = plainFailure("timeout", "the provider is silent");
    const verdict = this.#judge(failure, pending.provider);
    const attempt = pending.cut(verdict);
    this.#trace(attempt, failure);
    this.#failed.push({ attempt, verdict, failure, raw: null });
  }

  /** True = it went on beside the one that is waited for. */
  #letGo(pending: PendingAttempt): boolean {
    const isAside = pending === this.#aside;
    if (isAside) this.#aside = null;
    else this.#current = null;
    return isAside && this.#current !== null;
  }

  /** Takes an answer into account; false = the call has been answered already. */
  #wins(winner: PendingAttempt, attempt: Attempt): boolean {
    if (this.#over) return false;
    if (winner === this.#current) this.#current = null;
    else this.#aside = null;
    this.#overtake();
    this.#trace(attempt, null);
    return true;
  }

  /** What is out is not waited for any more. It ends, but for trials: their outcome counts. */
  #overtake(): void {
    for (const pending of [this.#aside, this.#current]) {
      if (pending === null) continue;
      const { provider, transport, ageMs: latencyMs } = pending;
      this.#trace(
        pending.isTrial
          ? { provider, transport, latencyMs, verdict: OVERTAKEN, code: null }
          : pending.cut(OVERTAKEN),
        null,
      );
    }
    this.#aside = null;
    this.#current = null;
  }

  #trace(attempt: Attempt, failure: Failure | null): void {
    this.traces.push({ attempt, failure });
  }

  /** What is made of a failure, and what of it a caller could be shown. */
  #judgeAnswer(
    failure: Failure,
    raw: Buffer | null,
    provider: Provider,
  ): { readonly verdict: Verdict; readonly shown: Buffer | null } {
    if (failure.kind === "no_room") return { verdict: NO_ROOM, shown: null };
    const verdict = this.#judge(failure, provider);
    const isUnowned = failure.kind === "error" && raw === null;
    return isUnowned
      ? {
          verdict: unownedVerdict(verdict, this.request.call.method),
          shown: unreadRequestError(failure),
        }
      : { verdict, shown: raw };
  }

  #judge(failure: Failure, provider: Provider): Verdict {
    const { methodName, method, block } = this.request.call;
    return classify(failure, method, {
      methodName,
      rules: provider.errorRules,
      wallMs: this.#parts.runtime.wallMs(),
      block,
    });
  }

  #proceed(): void {
    const move = nextMove({ maxAttempts: this.#parts.limits().maxAttempts, failed: this.#failed });
    switch (move) {
      case "next":
        return this.#tryNext();
      case "known":
        return this.#answerKnown();
      case "verify":
        return this.#verify();
      case "stop":
        return this.#finish({
          kind: "fault",
          fault: outcomeUnknown(this.#failed, hashOf(this.request.call)),
        });
      case "return":
        return this.#returned(this.#failed.at(-1));
      case "exhausted":
        return this.#noneLeft();
    }
  }

  #tryNext(): void {
    const { tracker, avoid } = this.request;
    for (;;) {
      const channel = this.#remainingMs() > 0 ? this.#nextChannel() : null;
      if (channel === null) return this.#noneLeft();
      if (avoid?.has(channel.provider.id) === true) continue;
      if (this.plan.panic === true || tracker.admit(channel.provider, channel.transport))
        return this.#attempt(channel);
      this.#trialsTaken = true;
    }
  }

  /**
   * The next candidate; one with a free connection before those where a request would have to wait
   * for one.
   */
  #nextChannel(): Channel | null {
    for (
      let channel = this.plan.candidates[this.#cursor++];
      channel !== undefined;
      channel = this.plan.candidates[this.#cursor++]
    ) {
      if (this.#isFree(channel) || !this.#mayPassOver()) return channel;
      this.#passedOver ??= [];
      this.#passedOver.push(channel);
    }
    const waiting = this.#passedOver ?? [];
    return (
      waiting.splice(
        Math.max(
          0,
          waiting.findIndex((it) => this.#isFree(it)),
        ),
        1,
      )[0] ?? null
    );
  }

  #isFree({ provider, transport }: Channel): boolean {
    return this.#parts.upstreams[transport]?.isFree?.(provider) ?? true;
  }

  /**
   * Whether a request that may be sent anywhere need not wait for a connection, since another
   * candidate has a free one.
   */
  #mayPassOver(): boolean {
    if (!this.request.call.method.replaySafe) return false;
    const { candidates } = this.plan;
    for (let at = this.#cursor; at < candidates.length; at++) {
      const channel = candidates[at];
      if (channel !== undefined && this.#isFree(channel)) return true;
    }
    return this.#passedOver?.some((it) => this.#isFree(it)) === true;
  }

  #attempt(channel: Channel): void {
    const { call, mayStream, room, deadlineMs, caller, tracker } = this.request;
    const { runtime, timerWheel, upstreams } = this.#parts;
    const { provider, transport } = channel;
    this.#begun++;
    const isPlain = this.plan.panic === true || !call.method.replaySafe;
    const patienceMs = isPlain ? null : tracker.trialPatienceMs(provider, transport, call.method);
    const request = {
      channel,
      call,
      caller,
      mayStream,
      room,
      deadlineMs,
      limitMs: this.#attemptLimitMs(),
      patienceMs,
    };
    const pending = new PendingAttempt({ runtime, timerWheel, tracker }, request, this);
    this.#current = pending;
    pending.start(upstreams[transport]);
  }

  /** While another provider could follow, one attempt may not use up all the time. */
  #attemptLimitMs(): number {
    const remainingMs = this.#remainingMs();
    return !this.#hasNext() || !this.request.call.method.replaySafe
      ? remainingMs
      : remainingMs * this.#parts.limits().firstAttemptShare;
  }

  #remainingMs(): number {
    return this.#limitMs - (this.#parts.runtime.now() - this.startedAtMs);
  }

  /** Whether another provider could be asked beside those that were. */
  #hasNext(): boolean {
    if (this.#begun >= this.#parts.limits().maxAttempts || this.#remainingMs() <= 0) return false;
    return this.#cursor < this.plan.candidates.length || (this.#passedOver?.length ?? 0) > 0;
  }

  /** Nobody is left to be asked: one that went on aside is waited for, if there is one. */
  #noneLeft(): void {
    const aside = this.#aside;
    if (aside === null) return this.#exhausted();
    this.#aside = null;
    this.#current = aside;
  }

  /**
   * Every circuit is open: a few calls at once may ask all the same, each for a short time. A write
   * is sent and waited for as ever.
   */
  #enterPanic(): boolean {
    if (!this.request.tracker.takePanicSlot()) return false;
    this.#panicSlot = this.#parts.timerWheel.set(PANIC_SLOT_MS, () => this.#leavePanic());
    if (this.request.call.method.replaySafe) this.#limitMs = Math.min(this.#limitMs, PANIC_SLOT_MS);
    return true;
  }

  #leavePanic(): void {
    if (this.#panicSlot === null) return;
    this.#panicSlot.clear();
    this.#panicSlot = null;
    this.request.tracker.freePanicSlot();
  }

  /**
   * The last failure ends the call. An answer that could not be gathered has been given all the
   * same: what it did is done.
   */
  #returned(last: FailedAttempt | undefined): void {
    if (last?.failure.kind !== "no_room") return this.#tell(last);
    this.#finish({
      kind: "fault",
      fault: this.request.call.method.replaySafe
        ? noRoom()
        : outcomeUnknown(this.#failed, hashOf(this.request.call)),
    });
  }

  /** A provider's error is the answer, if it may be shown. */
  #tell(it: FailedAttempt | undefined): void {
    if (it === undefined || it.raw === null) this.#exhausted();
    else this.#finish({ kind: "error", raw: it.raw }, it.attempt.provider);
  }

  #exhausted(): void {
    const verdict = bestError(this.#failed);
    switch (verdict.kind) {
      case "error":
        return this.#tell(verdict.best);
      case "range":
        return this.#finish({ kind: "fault", fault: rangeRefused(verdict.worst.failure) });
      case "none":
        return this.#finish({
          kind: "fault",
          fault: this.#failed.length === 0 ? this.#nobody() : this.#allFailed(),
        });
    }
  }

  #nobody(): Fault {
    return noProviderEligible({
      plan: this.plan,
      trialsTaken: this.#trialsTaken,
      pinned: this.request.pin !== null,
      waitMs: this.#waitMs(),
    });
  }

  #allFailed(): Fault {
    return allFailed(this.#failed, { late: this.#remainingMs() <= 0, waitMs: this.#waitMs() });
  }

  /** How long until somebody may be asked; null = waiting cannot help. */
  #waitMs(): number | null {
    const { tracker, call, strategy, transport, pin } = this.request;
    return tracker.waitMs(call, { strategy, transport, pin });
  }

  /**
   * The node has this very transaction: that is what the caller wanted, except where it waits for
   * the receipt.
   */
  #answerKnown(): void {
    const hash = hashOf(this.request.call);
    const wanted = answerOf(this.request.call);
    if (wanted === "receipt") return this.#verify();
    if (hash === null || wanted === null) return this.#tell(this.#failed.at(-1));
    this.#finish(resultOf(`"${hash}"`), this.#failed.at(-1)?.attempt.provider ?? null);
  }

  /**
   * A nonce that was used: by this very transaction, which is a success, or by another. The node
   * that says so is the one that knows.
   */
  #verify(): void {
    const hash = hashOf(this.request.call);
    const pin = this.#failed.at(-1)?.attempt.provider ?? null;
    const deadlineMs = Math.min(this.#remainingMs(), LOOKUP_MS);
    const wanted = answerOf(this.request.call);
    if (hash === null || wanted === null || deadlineMs <= 0) return this.#tell(this.#failed.at(-1));
    const lookup = new Routing(
      this.#parts,
      { ...this.request, call: lookupOf(hash, wanted), pin, deadlineMs, mayStream: false },
      (outcome) => {
        this.#lookup = null;
        const found =
          outcome.kind === "result"
            ? outcome.body.toString("utf8", outcome.start, outcome.end)
            : "";
        if (!found.toLowerCase().includes(hash)) return this.#tell(this.#failed.at(-1));
        if (wanted === "hash") this.#answerKnown();
        else this.#finish(resultOf(found), pin);
      },
    );
    this.#lookup = lookup;
    lookup.start();
  }

  #finish(outcome: Outcome, answeredBy: Provider | null = null): void {
    if (this.#over) return;
    this.#over = true;
    this.#leavePanic();
    this.#overtake();
    this.answeredBy = answeredBy;
    this.#done(outcome, this);
  }
}

const LOOKUP_MS = 3_000;
const NOTHING_SENT: Abandoned = { sent: false, countedAsTimeout: false };
const EMPTY_PLAN: Plan = { candidates: [], excluded: [] };
const PANIC_SLOT_MS = 1_000;
const NO_ROOM: Verdict = { category: "no_room", step: "return", effect: { kind: "ignored" } };
const CANCELLED: Verdict = { category: "cancelled", step: "return", effect: { kind: "ignored" } };
/** Another provider has answered first. */
const OVERTAKEN: Verdict = { category: "overtaken", step: "next", effect: { kind: "ignored" } };
/** No connection was free. */
const CROWDED: Verdict = { category: "no_connection", step: "next", effect: { kind: "ignored" } };
/** The circuit of the provider opened before it was sent. */
const LEFT: Verdict = { category: "circuit_open", step: "next", effect: { kind: "ignored" } };

/** A result of our own making. */
function resultOf(json: string): Outcome {
  const body = Buffer.from(json);
  return { kind: "result", body, start: 0, end: body.length, idAt: null };
}
