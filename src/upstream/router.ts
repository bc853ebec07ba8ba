// The one loop that waits: takes a call through plan, attempts and failover to an outcome. Decides nothing itself (core does), and knows no caller.
import { type Attempt, type Channel, type Failure, type Plan, plainFailure, type Strategy, type Verdict } from "../core/attempt.ts";
import type { Call } from "../core/call.ts";
import type { Abandoned } from "../core/charging.ts";
import { classify } from "../core/classify.ts";
import { bestError, type FailedAttempt, nextMove, unownedVerdict } from "../core/failover.ts";
import type { Fault } from "../core/fault.ts";
import type { Provider, Transport } from "../core/profile.ts";
import type { World } from "../world.ts";
import { allFailed, mayShow, nobodyToAsk, outcomeUnknown, rangeRefused, unreadRequestError } from "./refusal.ts";
import type { RoutingState } from "./tracker.ts";
import { hashOf, lookupOf } from "./transaction.ts";
import type { AnswerStream, Dispatch, Lender, Listener, ResultSpan, Upstream } from "./transport.ts";
import type { Alarm, Wheel } from "./wheel.ts";

/** What a request is routed with. */
export interface RouteRequest {
  readonly call: Call;
  readonly tracker: RoutingState;
  readonly strategy: Strategy;
  readonly pin: Provider | null;
  /** Null = whichever of a provider's is better. */
  readonly transport: Transport | null;
  /** Providers that are not to be asked, whatever the plan says. */
  readonly avoid: ReadonlySet<string> | null;
  readonly deadlineMs: number;
  /** False where the caller needs the answer in one piece. */
  readonly mayStream: boolean;
}

/** How a routed call ended. */
export type Outcome =
  /**
   * The result value lies in `body` at `start`..`end`. `body` is a whole upstream answer with an id of ours at `idAt`; null = it is the value alone. With a
   * `lender`, which only a request with `mayStream` meets, `body` goes back to it when nobody reads it any more.
   */
  | {
      readonly kind: "result";
      readonly body: Buffer;
      readonly start: number;
      readonly end: number;
      readonly idAt: number | null;
      readonly lender?: Lender | undefined;
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
export interface Route {
  readonly request: RouteRequest;
  readonly plan: Plan;
  readonly traces: readonly Trace[];
  readonly startedAtMs: number;
  /** Whose result or error the outcome is; null when it is nobody's. */
  readonly answeredBy: Provider | null;
  /** Ends it without an outcome, since its caller is gone, and tells what may have been carried out. */
  cancel(): Abandoned;
}

/** Routes calls. */
export interface Router {
  route(request: RouteRequest, done: (outcome: Outcome, route: Route) => void): Route;
}

/** What the router works with. */
export interface RouterParts {
  readonly world: World;
  readonly wheel: Wheel;
  readonly upstreams: Readonly<Partial<Record<Transport, Pick<Upstream, "send">>>>;
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

class Routing implements Route, Listener {
  readonly request: RouteRequest;
  readonly startedAtMs: number;
  readonly traces: Trace[] = [];
  plan: Plan = NOBODY;
  answeredBy: Provider | null = null;
  readonly #parts: RouterParts;
  readonly #done: (outcome: Outcome, route: Route) => void;
  readonly #failed: FailedAttempt[] = [];
  #cursor = 0;
  #channel: Channel | null = null;
  #attemptAtMs = 0;
  #dispatch: Dispatch | null = null;
  #alarm: Alarm | null = null;
  #lookup: Route | null = null;
  #trialsTaken = false;
  #over = false;

  constructor(parts: RouterParts, request: RouteRequest, done: (outcome: Outcome, route: Route) => void) {
    this.#parts = parts;
    this.request = request;
    this.#done = done;
    this.startedAtMs = parts.world.now();
  }

  start(): void {
    const { tracker, call, strategy, transport, pin } = this.request;
    this.plan = tracker.plan(call, { strategy, transport, pin });
    this.#tryNext();
  }

  cancel(): Abandoned {
    if (this.#over) return NOTHING_SENT;
    this.#over = true;
    // Read first: a request that was given up before it was sent never will be.
    const sent = this.#dispatch?.sent === true;
    this.#lookup?.cancel();
    this.#alarm?.clear();
    this.#dispatch?.cancel();
    if (this.#channel !== null) this.#record(this.#channel, CANCELLED, null);
    if (sent) return { sent, countedAsTimeout: false };
    const before = this.#failed.findLast((it) => it.failure.kind !== "unsent");
    return { sent: before !== undefined, countedAsTimeout: before?.failure.kind === "timeout" };
  }

  result(body: Buffer, { start, end, idAt }: ResultSpan, lender?: Lender): void {
    if (this.#channel === null) return lender?.recycle(body);
    const { provider } = this.#record(this.#channel, null, null);
    this.#finish({ kind: "result", body, start, end, idAt, lender }, provider);
  }

  stream(stream: AnswerStream): void {
    if (this.#channel === null) return stream.cut();
    const { provider } = this.#record(this.#channel, null, null);
    this.#finish({ kind: "stream", stream }, provider);
  }

  /** The answer counted as a success when it began; what it became counts as well. */
  broken(message: string): void {
    const begun = this.traces.at(-1)?.attempt;
    if (begun === undefined) return;
    const failure = plainFailure("network", message);
    const { call, tracker } = this.request;
    tracker.record(call.method, { ...begun, verdict: this.#judge(failure, begun.provider) }, call.block, call.methodName);
  }

  failed(failure: Failure, raw: Buffer | null): void {
    const channel = this.#channel;
    if (channel === null || this.#over) return;
    const { provider } = channel;
    const isUnowned = failure.kind === "error" && raw === null;
    const judged = this.#judge(failure, provider);
    const verdict = isUnowned ? unownedVerdict(judged, this.request.call.method) : judged;
    const shown = isUnowned ? unreadRequestError(failure) : raw;
    const attempt = this.#record(channel, verdict, failure);
    this.#failed.push({ attempt, verdict, failure, raw: shown !== null && mayShow(provider, verdict, shown) ? shown : null });
    this.#proceed();
  }

  #judge(failure: Failure, provider: Provider): Verdict {
    const { methodName, method, block } = this.request.call;
    return classify(failure, method, { methodName, rules: provider.errorRules, wallMs: this.#parts.world.wallMs(), block });
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
        return this.#finish({ kind: "fault", fault: outcomeUnknown(this.#failed, hashOf(this.request.call)) });
      case "return":
        return this.#tell(this.#failed.at(-1));
      case "exhausted":
        return this.#exhausted();
    }
  }

  #tryNext(): void {
    const { tracker, avoid } = this.request;
    for (;;) {
      const channel = this.plan.candidates[this.#cursor++];
      if (channel === undefined) return this.#exhausted();
      if (this.#remainingMs() <= 0) return this.#exhausted();
      if (avoid?.has(channel.provider.id) === true) continue;
      if (tracker.admit(channel.provider, channel.transport)) return this.#attempt(channel);
      this.#trialsTaken = true;
    }
  }

  #attempt(channel: Channel): void {
    const { call, mayStream } = this.request;
    const { body, idStart, idEnd } = call;
    const upstream = this.#parts.upstreams[channel.transport];
    this.#channel = channel;
    this.#attemptAtMs = this.#parts.world.now();
    if (upstream === undefined) return this.failed(plainFailure("unsent", "transport not available"), null);
    this.#alarm = this.#parts.wheel.set(this.#attemptLimitMs(), () => this.#timedOut());
    const dispatch = upstream.send({ provider: channel.provider, body, idStart, idEnd, mayStream }, this);
    // A transport that fails at once has already moved this routing on to its next attempt.
    if (this.#channel === channel) this.#dispatch = dispatch;
  }

  /** While another provider could follow, one attempt may not use up all the time. */
  #attemptLimitMs(): number {
    const remainingMs = this.#remainingMs();
    const last = this.#failed.length + 1 >= this.#parts.limits().maxAttempts || this.#cursor >= this.plan.candidates.length;
    return last || !this.request.call.method.replaySafe ? remainingMs : remainingMs * this.#parts.limits().firstAttemptShare;
  }

  #remainingMs(): number {
    return this.request.deadlineMs - (this.#parts.world.now() - this.startedAtMs);
  }

  #timedOut(): void {
    const dispatch = this.#dispatch;
    dispatch?.cancel();
    this.failed(plainFailure(dispatch?.sent === false ? "unsent" : "timeout", "no answer in time"), null);
  }

  #record({ provider, transport }: Channel, verdict: Verdict | null, failure: Failure | null): Attempt {
    const { tracker, call } = this.request;
    this.#alarm?.clear();
    this.#alarm = null;
    this.#channel = null;
    this.#dispatch = null;
    const latencyMs = Math.max(0, this.#parts.world.now() - this.#attemptAtMs);
    const code = failure === null ? null : (failure.code ?? (failure.httpStatus === 0 ? null : failure.httpStatus));
    const attempt: Attempt = { provider, transport, latencyMs, verdict, code };
    tracker.record(call.method, attempt, call.block, call.methodName);
    this.traces.push({ attempt, failure });
    return attempt;
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
        return this.#finish({ kind: "fault", fault: this.#failed.length === 0 ? this.#nobody() : allFailed(this.#failed, this.#remainingMs() <= 0) });
    }
  }

  #nobody(): Fault {
    const { tracker, transport, pin } = this.request;
    return nobodyToAsk({ plan: this.plan, trialsTaken: this.#trialsTaken, pinned: pin !== null, waitMs: tracker.retryAfterMs(transport) });
  }

  /** The node has this very transaction: that is what the caller wanted. */
  #answerKnown(): void {
    const hash = hashOf(this.request.call);
    if (hash === null) return this.#tell(this.#failed.at(-1));
    this.#finish(resultOf(`"${hash}"`), this.#failed.at(-1)?.attempt.provider ?? null);
  }

  /** A nonce that was used: by this very transaction, which is a success, or by another. The node that says so is the one that knows. */
  #verify(): void {
    const hash = hashOf(this.request.call);
    const pin = this.#failed.at(-1)?.attempt.provider ?? null;
    const deadlineMs = Math.min(this.#remainingMs(), LOOKUP_MS);
    if (hash === null || deadlineMs <= 0) return this.#tell(this.#failed.at(-1));
    const lookup = new Routing(this.#parts, { ...this.request, call: lookupOf(hash), pin, deadlineMs, mayStream: false }, (outcome) => {
      this.#lookup = null;
      const known = outcome.kind === "result" && outcome.body.toString("latin1", outcome.start, outcome.end).toLowerCase().includes(hash);
      if (known) this.#answerKnown();
      else this.#tell(this.#failed.at(-1));
    });
    this.#lookup = lookup;
    lookup.start();
  }

  #finish(outcome: Outcome, answeredBy: Provider | null = null): void {
    if (this.#over) return;
    this.#over = true;
    this.answeredBy = answeredBy;
    this.#done(outcome, this);
  }
}

const LOOKUP_MS = 3_000;
const NOTHING_SENT: Abandoned = { sent: false, countedAsTimeout: false };
const NOBODY: Plan = { candidates: [], excluded: [] };
const CANCELLED: Verdict = { category: "cancelled", step: "return", effect: { kind: "ignored" } };

/** A result of our own making. */
function resultOf(json: string): Outcome {
  const body = Buffer.from(json);
  return { kind: "result", body, start: 0, end: body.length, idAt: null };
}
