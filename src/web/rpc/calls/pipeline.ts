// The path of a call, over HTTP and WebSocket alike, one request in and one reply out: it is
// admitted, served by its method (routed to providers, or answered here), and settled. Credit may
// be waited for, a profile loaded, a grant may move the call to another profile. Knows no
// connection.
import {
  type Abandoned,
  type Interruption,
  isAbandonedCharged,
  isCharged,
} from "../../../core/billing/charging.ts";
import { type CallEnd, callEndOf, interruptedEnd } from "../../../core/call-end.ts";
import { type Fault, fault } from "../../../core/faults/rpc-fault.ts";
import { isDevelopmentChain } from "../../../core/provider/chain.ts";
import type { CallerIdentity } from "../../../core/provider/silence.ts";
import { LOCAL_SOURCE, NO_SOURCE } from "../../../core/routing/answer-source.ts";
import { type Call, NO_BLOCK, readBlockAt, readBlockRef } from "../../../core/rpc/call.ts";
import type { Envelope } from "../../../core/rpc/envelope.ts";
import type { Span } from "../../../core/rpc/json.ts";
import { type Method, methodOn } from "../../../core/rpc/method.ts";
import { type WrittenRequest, writeRequest } from "../../../core/rpc/wire-request.ts";
import type { Refusal } from "../../../hosted/admission/admission.ts";
import type { Grant } from "../../../hosted/admission/grant.ts";
import type { AskedCall } from "../../../observe/feed/decision.ts";
import type { Answer, Outcome } from "../../../upstream/engine/answer.ts";
import { NOTHING_SENT } from "../../../upstream/engine/call-context.ts";
import { noRoom } from "../../../upstream/engine/refusal.ts";
import type { RoutedCall } from "../../../upstream/engine/router.ts";
import { FREE_BYTES } from "../../../upstream/transport.ts";
import { type Billing, type CallGrant, KEYLESS_GRANT } from "../../payment/call-payment.ts";
import type { Reply } from "../answers/reply.ts";
import {
  type FilterLogsQuery,
  type MethodAnswer,
  type MethodCall,
  refused,
  type ServiceMethods,
} from "../service-methods.ts";
import type { Target } from "../target.ts";
import { answerHere } from "./local-answer.ts";
import {
  type Cancel,
  type PipelineParts,
  type PipelineRequest,
  type ReplyCallback,
  SHORT_BYTES,
} from "./pipeline-request.ts";
import { countOf, plannedCalls } from "./range-bounds.ts";

/**
 * Serves one request. Calls `done` once, or never after a cancel. Returns a function that cancels
 * the request, or null if it has ended.
 */
export function runPipeline(
  parts: PipelineParts,
  request: PipelineRequest,
  done: ReplyCallback,
): Cancel | null {
  const { envelope } = request;
  if (envelope.kind === "request") return new PipelineCall(parts, request, envelope, done).begin();
  const { id, message } = envelope;
  const why = fault("invalid_request", message);
  const { target, requestId } = request;
  parts.observer.unread(callEndOf({ kind: "fault", fault: why }), target.series, requestId);
  done(refusal(request, { id, notify: false }, why));
  return null;
}

/** One request on its way to its reply. */
class PipelineCall {
  readonly #parts: PipelineParts;
  readonly #request: PipelineRequest;
  readonly #envelope: Envelope;
  readonly #done: ReplyCallback;
  readonly #method: Method;
  /** Where it is served: a grant may name another profile or strategy than its caller. */
  #target: Target;
  #grant: CallGrant = KEYLESS_GRANT;
  /** The call that reads the logs of a filter; null = the request is sent as it was written. */
  #logs: { readonly target: Target; readonly call: Call } | null = null;

  constructor(
    parts: PipelineParts,
    request: PipelineRequest,
    envelope: Envelope,
    done: ReplyCallback,
  ) {
    this.#parts = parts;
    this.#request = request;
    this.#envelope = envelope;
    this.#done = done;
    this.#target = request.target;
    const row = parts.methods().of(envelope.method);
    this.#method =
      row.handling === "blocked"
        ? methodOn(row, envelope.method, isDevelopmentChain(request.target.chain))
        : row;
  }

  begin(): Cancel | null {
    if (this.#method.block?.kind !== "filter") return this.#admit(1);
    const planned = (): number =>
      plannedCalls(this.#parts, this.#request, this.#envelope, this.#method);
    return this.#admit(this.#request.payment.partsOf(this.#envelope.start, planned));
  }

  /**
   * Admits and serves the request, which counts as so many `calls`. Waits where credit is being
   * refilled; `waits`: how often it has waited.
   */
  #admit(calls: number, waits = 0): Cancel | null {
    const { payment, postpone } = this.#request;
    const { named, strategy } = this.#target;
    const method = this.#method;
    const admitted = payment.admit({ profile: named, method, strategy, parts: calls }, waits);
    switch (admitted.kind) {
      case "wait": {
        let isWaiting = true;
        let cancel: Cancel | null = null;
        const stop = admitted.refilled(() => {
          isWaiting = false;
          cancel = this.#admit(calls, waits + 1);
        });
        return (why) => {
          if (!isWaiting) return void cancel?.(why);
          stop();
          this.#ended(null, null, interruptedEnd(why));
        };
      }
      case "refusal":
        return postpone !== null && isPostponed(admitted, postpone)
          ? null
          : this.#refuse(admitted.fault, admitted);
      case "grant":
        this.#grant = admitted;
        return this.#serveAt(admitted);
      case "keyless":
      case "voucher":
        this.#grant = admitted;
        return this.#serve();
    }
  }

  /** Serves it in the profile of its grant; first loads a Custom profile that is not in memory. */
  #serveAt(grant: Grant): Cancel | null {
    const served = this.#targetOf(grant);
    if (served.kind === "target" || served.code !== "not_prepared") return this.#serveIn(served);
    let isPreparing = true;
    let cancel: Cancel | null = null;
    const stop = grant.prepare((why) => {
      isPreparing = false;
      cancel = this.#serveIn(why ?? this.#targetOf(grant));
    });
    return (why) => {
      if (!isPreparing) return void cancel?.(why);
      stop();
      grant.release();
      this.#ended(null, null, interruptedEnd(why));
    };
  }

  /** The target under a grant, which may name another profile or strategy. */
  #targetOf({ service, strategy, keyContext }: Grant): Target | Fault {
    const target = this.#target;
    const isThere =
      service.profile === target.named &&
      (service.access === "custom") === (target.profile.owner !== null);
    const served = isThere
      ? target
      : this.#parts.resolver.resolve(
          { ...target.input, within: service.profile },
          keyContext.account,
        );
    const isServed = served.kind === "fault" || served.strategy === strategy;
    return isServed ? served : { ...served, strategy };
  }

  #serveIn(target: Target | Fault): Cancel | null {
    if (target.kind === "fault") return this.#refuse(target, this.#grant.settle(NO_SOURCE));
    this.#target = target;
    return this.#serve();
  }

  /** Serves the admitted request by its method. */
  #serve(): Cancel | null {
    if (this.#logs !== null) {
      this.#target = this.#logs.target;
      return this.#send(this.#logs.call);
    }
    const { subscriptionMethods } = this.#request;
    const { handling, origin } = this.#method;
    if (handling === "socket_only" && subscriptionMethods !== null)
      return this.#serveBy(subscriptionMethods);
    if (handling === "filter") return this.#filter();
    const isRouted = handling === "route" && origin !== "unlisted";
    const here = isRouted ? null : answerHere(this.#method, this.#envelope.method, this.#target);
    if (here === null) return this.#route();
    this.#answer({ outcome: here, route: null, written: null, source: LOCAL_SOURCE });
    return null;
  }

  /** Sends the request as its caller wrote it. */
  #route(): Cancel | null {
    const envelope = this.#envelope;
    const { block: parameter } = this.#method;
    const { body, idStart, idEnd, params } = requestIn(this.#request.bytes, envelope);
    const blockAt = parameter === null ? undefined : blockIn(envelope, parameter.at, params);
    const block = blockAt === undefined ? NO_BLOCK : readBlockAt(body, blockAt, this.#method);
    const { method: methodName } = envelope;
    const method = this.#method;
    return this.#send({ methodName, method, block, blockAt, body, idStart, idEnd, params });
  }

  /** Routes a call to a provider. */
  #send(call: Call): Cancel | null {
    const { caller, fresh, room, delivery } = this.#request;
    const target = this.#target;
    const at = this.#request.view.at(target);
    if ("kind" in at) return this.#refuse(at, this.#grant.settle(NO_SOURCE));
    const routed = {
      call,
      tracker: target.tracker,
      strategy: target.strategy,
      pin: target.pin,
      caller,
      transport: transportOf(caller, target),
      avoid: null,
      deadlineMs: this.#parts.deadlineMs(call.method),
      mayStream: delivery === "streamed",
      fresh,
      view: at.view,
      mark: at.mark,
      mayRoam: at.mayRoam,
      room,
      maxParts: call.block.kind === "range" ? this.#maxParts() : undefined,
    };
    const routing = this.#parts.router.route(routed, ({ outcome, source }, route) =>
      this.#answer({ outcome, source, route, written: null }),
    );
    return (why) => this.#cancelled(why, routing.cancel(), routing);
  }

  /** Most parts of a call over a range of blocks; undefined = as the router allows. */
  #maxParts(): number | undefined {
    const { admission, logs } = this.#parts;
    const grant = this.#grant;
    if (grant.kind === "voucher") return grant.maxParts;
    return grant.kind === "grant" || admission === null ? undefined : logs().maxKeylessParts;
  }

  /** Serves a filter method. `eth_getFilterLogs` is sent to providers as `eth_getLogs`. */
  #filter(): Cancel | null {
    const { filters } = this.#parts;
    if (this.#envelope.method !== "eth_getFilterLogs") return this.#serveBy(filters);
    let sent: Cancel | null = null;
    const cancel = filters.logs(this.#methodCall(), (logs) => {
      if (logs.kind === "query") sent = this.#sendLogs(logs);
      else this.#answer(refused(logs));
    });
    const giveUp = this.#givingUp(cancel);
    return (why) => (sent ?? giveUp)(why);
  }

  /** Asks providers for the logs of a filter, in the profile of the filter. */
  #sendLogs({ target, params }: FilterLogsQuery): Cancel | null {
    const { admission, methods } = this.#parts;
    const method = methods().of("eth_getLogs");
    const block = readBlockRef(params, { start: 0, end: params.length }, method);
    const { name } = method;
    const call = { methodName: name, method, block, ...writeRequest(name, params) };
    const isCounted = admission !== null && this.#request.payment.countsParts;
    const calls = isCounted && target.pin === null ? countOf(this.#parts, target.tracker, call) : 1;
    this.#logs = { target, call };
    if (calls === 1) return this.#serve();
    // Only the filter tells its range: it is admitted anew, for all of its parts.
    this.#grant.release();
    const cancel = this.#admit(calls);
    return (why) => cancel?.(why);
  }

  /** Has the service's own methods answer the request. */
  #serveBy(methods: ServiceMethods): Cancel | null {
    const cancel = methods.serve(this.#methodCall(), (answer) => this.#answer(answer));
    return cancel === null ? null : this.#givingUp(cancel);
  }

  #methodCall(): MethodCall {
    const { bytes, caller } = this.#request;
    const { id, method: methodName, notify, paramsStart, paramsEnd } = this.#envelope;
    return {
      methodName,
      method: this.#method,
      params: paramsStart === -1 ? null : bytes.toString("utf8", paramsStart, paramsEnd),
      target: this.#target,
      caller,
      answered: id !== null,
      notify,
      grant: this.#grant.kind === "grant" ? this.#grant : null,
    };
  }

  /**
   * A subscription or filter without an answer has delivered nothing and counts as not sent: other
   * callers may share its upstream subscription.
   */
  #givingUp(cancel: () => void): Cancel {
    return (why) => {
      cancel();
      this.#cancelled(why, NOTHING_SENT, null);
    };
  }

  /** Settles the cancelled call: it may be charged if it reached a provider. */
  #cancelled(why: Interruption, left: Abandoned, route: RoutedCall | null): void {
    if (isAbandonedCharged(this.#method, why, left))
      this.#grant.settle({ kind: "provider" }, route?.partsSent ?? null);
    else this.#grant.release();
    this.#ended(route, null, interruptedEnd(why));
  }

  #refuse(why: Fault, billing: Billing | null): null {
    const reply = { ...refusal(this.#request, this.#envelope, why), target: this.#target, billing };
    this.#ended(null, reply, callEndOf(reply.outcome));
    this.#done(reply);
    return null;
  }

  /** Counts the call at its end; `ms`: how long it took until its answer, if that is not now. */
  #ended(
    route: RoutedCall | null,
    answer: Answer | null,
    end: CallEnd,
    ms: number | null = null,
  ): void {
    const { requestId } = this.#request;
    const { series } = this.#target;
    const isNotification = this.#envelope.id === null;
    const asked = route === null ? this.#asked() : null;
    const method = this.#method;
    const call = { series, method, route, answer, end, requestId, isNotification, ms, asked };
    this.#parts.observer.ended(call);
  }

  #asked(): AskedCall {
    const { caller } = this.#request;
    const { method, start, end } = this.#envelope;
    const { strategy, pin } = this.#target;
    return {
      methodName: method,
      strategy,
      keyId: caller.keyId ?? null,
      pinned: pin !== null,
      requestBytes: end - start,
    };
  }

  /** Counts a call once its answer has been streamed, with the time until the answer began. */
  #whenStreamed(answer: MethodAnswer): NonNullable<Reply["ended"]> {
    const { route } = answer;
    const nowMs = this.#parts.runtime.now();
    const ms = route === null ? null : Math.max(0, nowMs - route.startedAtMs);
    return (end) => this.#ended(route, answer, end, ms);
  }

  /**
   * Counts the answer and replies. Settles the grant now, or hands its settlement to the reply if
   * the answer is still to be written.
   */
  #answer(given: MethodAnswer): void {
    const { requestId, transport, delivery } = this.#request;
    const { id, notify } = this.#envelope;
    const target = this.#target;
    const grant = this.#grant;
    const answer = fitting(this.#request, this.#method, given);
    const { outcome, source, route, written } = answer;
    const ended = outcome.kind === "stream" && id !== null ? this.#whenStreamed(answer) : null;
    if (ended === null) this.#ended(route, answer, callEndOf(outcome));
    const isOpen =
      grant.kind !== "keyless" &&
      (outcome.kind === "stream" || (delivery === "item" && isCharged(source)));
    this.#done({
      id,
      outcome,
      source,
      route,
      target,
      requestId,
      transport,
      notify,
      written,
      ended,
      billing: isOpen ? expectedCharge(grant, answer) : grant.settle(source, partsSentOf(route)),
      settle: isOpen
        ? (delivered) =>
            void (delivered ? grant.settle(source, partsSentOf(route)) : grant.release())
        : null,
    });
  }
}

/** Whether a call over its rate limit waits for a token instead of being refused. */
function isPostponed(
  { limit, fault: { retryAfterMs } }: Refusal,
  postpone: NonNullable<PipelineRequest["postpone"]>,
): boolean {
  return limit !== null && postpone({ waitMs: retryAfterMs ?? 0, tokenMs: limit.tokenMs });
}

/** Where the parameter lies that names the block of a call, once its parameters lie at `params`. */
function blockIn({ elements, paramsStart }: Envelope, at: number, params: Span): Span | undefined {
  const element = elements[at];
  const shift = params.start - paramsStart;
  if (element === undefined || shift === 0) return element;
  return { start: element.start + shift, end: element.end + shift };
}

/**
 * A call that has passed other services says so to a user's provider, which a shared socket cannot
 * say of a single call.
 */
function transportOf({ passed }: CallerIdentity, { tracker }: Target): "http" | null {
  for (const { guarded } of tracker.set.providers)
    if (guarded) return passed === undefined ? null : "http";
  return null;
}

/**
 * The request as JSON: the caller's own bytes if they can be passed on unchanged, else rewritten.
 */
function requestIn(bytes: Buffer, envelope: Envelope): WrittenRequest {
  const { start, end, method, plain, idStart, idEnd, paramsStart, paramsEnd } = envelope;
  if (!plain)
    return writeRequest(method, paramsStart === -1 ? null : bytes.subarray(paramsStart, paramsEnd));
  const params = { start: paramsStart - start, end: paramsEnd - start };
  if (start === 0 && end === bytes.length) return { body: bytes, idStart, idEnd, params };
  const body = bytes.subarray(start, end);
  return { body, idStart: idStart - start, idEnd: idEnd - start, params };
}

/** What a call will be charged once its answer is delivered; of a stream, what is held for it. */
function expectedCharge(
  grant: CallGrant,
  { source, route, outcome }: MethodAnswer,
): Billing | null {
  if (grant.kind !== "grant") return null;
  return grant.chargeFor(source, outcome.kind === "stream" ? null : partsSentOf(route));
}

function partsSentOf(route: RoutedCall | null): number | null {
  return route?.partsSent ?? null;
}

/**
 * Refuses a gathered answer that does not fit into the memory budget, before it is charged. The
 * answer to a call with side effects is never refused.
 */
function fitting(
  { delivery, room }: PipelineRequest,
  { replaySafe }: Method,
  answer: MethodAnswer,
): MethodAnswer {
  const bytes = delivery === "streamed" || !replaySafe ? 0 : bytesOf(answer.outcome);
  if (bytes <= (delivery === "item" ? SHORT_BYTES : FREE_BYTES)) return answer;
  const wanted = bytes + ENVELOPE_BYTES;
  if (room.take(wanted)) {
    // Only a check: the code that keeps the answer reserves the same room right after.
    room.giveBack(wanted);
    return answer;
  }
  answer.written?.(false);
  return { ...refused(noRoom()), route: answer.route };
}

/** Room for the envelope around a result or error, including an unusually long id and evidence. */
const ENVELOPE_BYTES = 1_024;

function bytesOf(outcome: Outcome): number {
  if (outcome.kind === "result") return outcome.body.length;
  return outcome.kind === "error" ? outcome.raw.length : 0;
}

/** The reply to a request that is refused before admission. */
function refusal(
  { target, requestId, transport }: PipelineRequest,
  { id, notify }: Pick<Envelope, "id" | "notify">,
  why: Fault,
): Reply {
  const ends = { billing: null, settle: null, ended: null };
  return { id, notify, target, requestId, transport, ...refused(why), ...ends };
}
