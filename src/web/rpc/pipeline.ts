// The pipeline: one request in, one reply out, over HTTP and on sockets alike. Reads the request,
// has it admitted, routes it, gathers the evidence and settles its price. Knows no connection.

import {
  type Abandoned,
  type Interruption,
  isAbandonedCharged,
  isCharged,
} from "../../core/billing/charging.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Transport } from "../../core/provider/profile.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import {
  type AnswerSource,
  LOCAL_SOURCE,
  NO_SOURCE,
  providerOf,
} from "../../core/routing/answer-source.ts";
import { type Evidence, evidenceOf } from "../../core/routing/evidence.ts";
import type { Plan } from "../../core/routing/plan.ts";
import { type Call, NO_BLOCK, readBlockRef } from "../../core/rpc/call.ts";
import { type Envelope, readRequest } from "../../core/rpc/envelope.ts";
import type { Span } from "../../core/rpc/json.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { MethodTable } from "../../core/rpc/method-table.ts";
import { type WireRequest, writeRequest } from "../../core/rpc/wire-request.ts";
import type { Admission, Refusal } from "../../hosted/admission/admission.ts";
import type { Grant } from "../../hosted/admission/grant.ts";
import type { Observer } from "../../observe/observer.ts";
import type { Runtime } from "../../runtime.ts";
import type { Outcome } from "../../upstream/engine/answer.ts";
import { noRoom } from "../../upstream/engine/refusal.ts";
import type { RoutedCall, Router } from "../../upstream/engine/router.ts";
import type { Room } from "../../upstream/transport.ts";
import type { Billing, CallGrant, CallPayment } from "../payment/call-payment.ts";
import { answerHere } from "./local-answer.ts";
import type { TokenWait } from "./pacer.ts";
import type { Target, TargetResolver } from "./target.ts";

/** The end of one request, before it is written for the caller. */
export interface Reply {
  /** The caller's id as JSON text; null = a notification, which gets no answer. */
  readonly id: string | null;
  readonly outcome: Outcome;
  /** Where the answer came from; what is charged follows from it. */
  readonly source: AnswerSource;
  /** Null when no provider was involved. */
  readonly route: RoutedCall | null;
  readonly target: Target;
  readonly requestId: string;
  /** How the caller is connected. */
  readonly transport: Transport;
  /** True when the evidence is wanted as a message of its own. */
  readonly notify: boolean;
  /** Waits to hear whether the reply was written as it is; null = nobody does. */
  readonly written: ((shown: boolean) => void) | null;
  /** Null for callers without a key, and for what is no valid request. */
  readonly billing: Billing | null;
  /**
   * Settles what the call cost at the end of the answer that it belongs to, once; null = it is
   * settled. Streamed answers and items of a batch have it.
   */
  readonly settle: DeliveryCallback | null;
}

/**
 * Settles what an answer cost: `delivered` = it was written to its end, or its caller left before
 * that.
 */
export type DeliveryCallback = (delivered: boolean) => void;

/** What one connection keeps for its caller beyond single requests: the subscriptions. */
export interface SubscriptionMethods {
  /** Returns the way to cancel it; null = it is over. */
  serve(request: SubscriptionCall, done: (answer: MethodAnswer) => void): (() => void) | null;
}

/** A request for a subscription of its connection. */
export interface SubscriptionCall {
  readonly methodName: string;
  readonly method: Method;
  /** JSON text; null = none were sent. */
  readonly params: string | null;
  readonly target: Target;
  /** False for a notification, whose reply nobody would see. */
  readonly answered: boolean;
  /** Charges the notifications that follow; null = they are not charged. */
  readonly grant: Grant | null;
}

/** A request that filters serve. */
export interface FilterCall extends SubscriptionCall {
  readonly caller: CallerIdentity;
}

/** Serves the methods of filters: one for all connections. */
export interface FilterMethods {
  /** Returns the way to cancel it; null = it is over. */
  serve(call: FilterCall, done: (answer: MethodAnswer) => void): (() => void) | null;
  /** Where the logs of a filter are asked for, and with which parameters; or why they are not. */
  logs(
    call: FilterCall,
  ): { readonly kind: "query"; readonly target: Target; readonly params: Buffer } | Fault;
}

/** The answer to a subscription or filter method. */
export type MethodAnswer = Pick<Reply, "outcome" | "source" | "route" | "written">;

/** What the pipeline works with. */
export interface PipelineParts {
  readonly runtime: Runtime;
  readonly router: Router;
  readonly observer: Observer;
  readonly resolver: TargetResolver;
  /** Null = no keys: everyone is served, and nothing is charged. */
  readonly admission: Admission | null;
  /** The method table as it is configured now. */
  readonly methods: () => MethodTable;
  readonly filters: FilterMethods;
  /** How long a method may take, in milliseconds. */
  readonly deadlineMs: (method: Method) => number;
}

/** One request of a caller; `bytes` within `span` are known to be valid JSON. */
export interface PipelineRequest {
  readonly bytes: Buffer;
  readonly span: Span;
  readonly target: Target;
  /** Admits the request, and pays for it. */
  readonly payment: CallPayment;
  readonly caller: CallerIdentity;
  readonly requestId: string;
  /** False where the reply is needed in one piece. */
  readonly mayStream: boolean;
  /** True where the reply is a part of a longer answer, and is charged when that was written. */
  readonly settlesLater: boolean;
  /** How the caller is connected. */
  readonly transport: Transport;
  /** Null where the connection is not kept. */
  readonly subscriptionMethods: SubscriptionMethods | null;
  /**
   * Asked where a rate limit stands in the way: true = the request is put off, not answered, and
   * comes again. Null = it is refused.
   */
  readonly postpone: ((token: TokenWait) => boolean) | null;
  /** Where an answer that is gathered is counted until it is told. */
  readonly room: Room;
  /** An answer up to this size is told though there is no room. */
  readonly freeBytes: number;
}

/**
 * Ends a request before its answer: its grant is settled or released by the table of charges.
 */
export type Cancel = (why: Interruption) => void;

/**
 * Serves one request. Returns the way to cancel it; `done` is called once, or never after a cancel.
 */
export function runPipeline(
  parts: PipelineParts,
  incoming: PipelineRequest,
  done: Done,
): Cancel | null {
  const { bytes, span, target, requestId, transport } = incoming;
  const envelope = readRequest(bytes, span.start, span.end);
  if (envelope.kind === "invalid") {
    parts.observer.refused("invalid_request");
    const outcome: Outcome = { kind: "fault", fault: fault("invalid_request", envelope.message) };
    done({ ...NO_ANSWER, id: envelope.id, outcome, target, requestId, transport, notify: false });
    return null;
  }
  const method = parts.methods().of(envelope.method);
  return admit({ parts, incoming, envelope, method }, done, false);
}

const NO_ANSWER = {
  source: NO_SOURCE,
  route: null,
  written: null,
  billing: null,
  settle: null,
} as const;

type Done = (reply: Reply) => void;

/** A valid request with its grant. */
interface GrantedRequest {
  readonly envelope: Envelope;
  readonly method: Method;
  readonly grant: CallGrant;
}

/** A granted request that goes to a provider. */
interface RoutedRequest extends GrantedRequest {
  readonly call: Call;
}

/** A valid request that has yet to be granted. */
interface ValidRequest {
  readonly parts: PipelineParts;
  readonly incoming: PipelineRequest;
  readonly envelope: Envelope;
  readonly method: Method;
}

/** Has a request admitted; waits once for credit that is on its way. */
function admit(request: ValidRequest, done: Done, final: boolean): Cancel | null {
  const { parts, incoming, envelope, method } = request;
  const { target } = incoming;
  const admitted = incoming.payment.admit(
    { profile: target.named, method, strategy: target.strategy },
    final,
  );
  switch (admitted.kind) {
    case "wait": {
      let cancel: Cancel | null = null;
      const stop = admitted.refilled(() => {
        cancel = admit(request, done, true);
      });
      return (why) => {
        stop();
        cancel?.(why);
      };
    }
    case "refusal": {
      if (incoming.postpone !== null && isPostponed(admitted, incoming.postpone)) return null;
      parts.observer.refused(admitted.fault.code);
      done({
        ...replyOf(incoming, envelope),
        outcome: { kind: "fault", fault: admitted.fault },
        billing: admitted,
      });
      return null;
    }
    case "grant":
      return serveAt(request, admitted, servedAt(parts, target, admitted), done);
    case "keyless":
    case "voucher":
      return serve(parts, incoming, { envelope, method, grant: admitted }, done);
  }
}

/** Whether a call beyond its rate limit waits for a token instead of being refused. */
function isPostponed(
  { limit, fault: { retryAfterMs } }: Refusal,
  postpone: (token: TokenWait) => boolean,
): boolean {
  return limit !== null && postpone({ waitMs: retryAfterMs ?? 0, tokenMs: limit.tokenMs });
}

/** Serves a request where its grant allows it; loads a Custom profile that is not in memory. */
function serveAt(
  { parts, incoming, envelope, method }: ValidRequest,
  grant: Grant,
  served: Target | Fault,
  done: Done,
): Cancel | null {
  const request: GrantedRequest = { envelope, method, grant };
  const serveNow = (target: Target | Fault): Cancel | null => {
    if (target.kind === "target")
      return serve(
        parts,
        target === incoming.target ? incoming : { ...incoming, target: target },
        request,
        done,
      );
    parts.observer.refused(target.code);
    done(
      settled(incoming, request, {
        outcome: { kind: "fault", fault: target },
        route: null,
        written: null,
        source: NO_SOURCE,
      }),
    );
    return null;
  };
  if (served.kind === "target" || served.code !== "not_prepared") return serveNow(served);
  let isPreparing = true;
  let cancel: Cancel | null = null;
  const stop = grant.prepare((why) => {
    isPreparing = false;
    cancel = serveNow(why ?? servedAt(parts, incoming.target, grant));
  });
  return (why) => {
    if (!isPreparing) return void cancel?.(why);
    stop();
    grant.release();
  };
}

/**
 * The address as the grant allows it: perhaps in another profile, perhaps with another strategy.
 */
function servedAt(
  { resolver }: PipelineParts,
  target: Target,
  { service, strategy, keyContext }: Grant,
): Target | Fault {
  const isThere =
    service.profile === target.named &&
    (service.access === "custom") === (target.profile.owner !== null);
  const served = isThere
    ? target
    : resolver.resolve({ ...target.input, within: service.profile }, keyContext.account);
  return served.kind === "fault" || served.strategy === strategy ? served : { ...served, strategy };
}

function serve(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  done: Done,
): Cancel | null {
  const { target, subscriptionMethods } = incoming;
  const { method, envelope } = request;
  if (method.handling === "socket_only" && subscriptionMethods !== null)
    return serveSubscription(parts, incoming, { ...request, subscriptionMethods }, done);
  if (method.handling === "filter") return serveFilter(parts, incoming, request, done);
  const here = answerHere(method, envelope.method, target);
  if (here === null) return route(parts, incoming, request, done);
  parts.observer.local(target.series, method, here.kind);
  done(
    settled(incoming, request, {
      outcome: here,
      route: null,
      written: null,
      source: LOCAL_SOURCE,
    }),
  );
  return null;
}

/**
 * An answer that is kept beside others needs room, from every source: without room it is refused
 * before it is charged, and what is charged is told. What wrote something is always told.
 */
function fitting(
  { mayStream, room, freeBytes }: PipelineRequest,
  { replaySafe }: Method,
  answer: MethodAnswer,
): MethodAnswer {
  const bytes = mayStream || !replaySafe ? 0 : bytesOf(answer.outcome);
  if (bytes <= freeBytes) return answer;
  const wanted = bytes + ENVELOPE_BYTES;
  if (room.take(wanted)) {
    // The one that keeps the answer takes the same room at once.
    room.giveBack(wanted);
    return answer;
  }
  answer.written?.(false);
  return {
    outcome: { kind: "fault", fault: noRoom() },
    route: answer.route,
    written: null,
    source: NO_SOURCE,
  };
}

/**
 * What stands around a result or an error in an answer, beside an unusually long id or evidence.
 */
const ENVELOPE_BYTES = 1_024;

function bytesOf(outcome: Outcome): number {
  switch (outcome.kind) {
    case "result":
      return outcome.body.length;
    case "error":
      return outcome.raw.length;
    case "stream":
    case "fault":
      return 0;
  }
}

/**
 * Settles a request, unless its answer has yet to be written: then that is done at the end of the
 * answer.
 */
function settled(
  incoming: PipelineRequest,
  { envelope, grant }: GrantedRequest,
  answer: MethodAnswer,
): Reply {
  const { outcome, route, written, source } = answer;
  const { target, requestId, transport } = incoming;
  const { id, notify } = envelope;
  const reply = { id, outcome, source, route, target, requestId, transport, notify, written };
  if (grant.kind === "keyless") return { ...reply, billing: null, settle: null };
  const isOpen = outcome.kind === "stream" || (incoming.settlesLater && isCharged(source));
  if (!isOpen) return { ...reply, billing: grant.settle(source), settle: null };
  return {
    ...reply,
    billing: grant.kind === "grant" ? { grant, chargeN: grant.heldN } : null,
    settle: (delivered) => void (delivered ? grant.settle(source) : grant.release()),
  };
}

/** A reply to which its outcome has yet to be added. */
function replyOf(
  { target, requestId, transport }: PipelineRequest,
  { id, notify }: Envelope,
): Omit<Reply, "outcome"> {
  return { ...NO_ANSWER, id, target, requestId, transport, notify };
}

/** The evidence of a reply. */
export function evidenceOfReply(reply: Reply, now: number): Evidence {
  const { route, target } = reply;
  const selected = providerOf(reply.source);
  return evidenceOf({
    requestId: reply.requestId,
    strategy: target.strategy,
    chain: target.chain,
    transport: reply.transport,
    profile: target.profile,
    plan: route?.plan ?? EMPTY_PLAN,
    attempts: route?.traces.map(({ attempt }) => attempt) ?? [],
    breakerState:
      selected === null
        ? null
        : target.tracker.health(selected, route?.traces.at(-1)?.attempt.transport ?? "http")
            .breaker,
    source: reply.source,
    endToEndMs: route === null ? 0 : now - route.startedAtMs,
  });
}

const EMPTY_PLAN: Plan = { candidates: [], excluded: [] };

function serveSubscription(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest & { readonly subscriptionMethods: SubscriptionMethods },
  done: Done,
): Cancel | null {
  const cancel = request.subscriptionMethods.serve(subscriptionCall(incoming, request), (answer) =>
    done(answered(parts, incoming, request, answer)),
  );
  return cancel === null ? null : givenUp(parts, incoming, request, cancel);
}

/**
 * A filter is served by the service itself; its logs are asked of providers as `eth_getLogs`, where
 * the filter is.
 */
function serveFilter(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  done: Done,
): Cancel | null {
  const call = { ...subscriptionCall(incoming, request), caller: incoming.caller };
  if (call.methodName !== "eth_getFilterLogs") {
    const cancel = parts.filters.serve(call, (answer) =>
      done(answered(parts, incoming, request, answer)),
    );
    return cancel === null ? null : givenUp(parts, incoming, request, cancel);
  }
  const logs = parts.filters.logs(call);
  if (logs.kind === "query")
    return send(
      parts,
      { ...incoming, target: logs.target },
      { ...request, call: logsCall(parts.methods().of("eth_getLogs"), logs.params) },
      done,
    );
  done(
    answered(parts, incoming, request, {
      outcome: { kind: "fault", fault: logs },
      route: null,
      written: null,
      source: NO_SOURCE,
    }),
  );
  return null;
}

function subscriptionCall(
  { bytes, target }: PipelineRequest,
  { envelope, method, grant }: GrantedRequest,
): SubscriptionCall {
  const params =
    envelope.paramsStart === -1
      ? null
      : bytes.toString("utf8", envelope.paramsStart, envelope.paramsEnd);
  return {
    methodName: envelope.method,
    method,
    params,
    target,
    answered: envelope.id !== null,
    grant: grant.kind === "grant" ? grant : null,
  };
}

function answered(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  methodAnswer: MethodAnswer,
): Reply {
  const { series } = incoming.target;
  const answer = fitting(incoming, request.method, methodAnswer);
  if (answer.route === null) parts.observer.local(series, request.method, answer.outcome.kind);
  else parts.observer.routed(series, answer.route, answer.outcome.kind, incoming.requestId);
  return settled(incoming, request, answer);
}

/** The way to cancel what a subscription or filter method has under way. */
function givenUp(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  cancel: () => void,
): Cancel {
  // A subscription that nobody was told of yet was not delivered, and is no call that has been
  // made: others may join it.
  return (why) => {
    cancel();
    return cancelled(parts, incoming, request, { why, left: NOTHING_SENT, route: null });
  };
}

const NOTHING_SENT: Abandoned = { sent: false, countedAsTimeout: false };

/** `eth_getLogs` with the criteria of a filter. */
function logsCall(method: Method, params: Buffer): Call {
  const block = readBlockRef(params, { start: 0, end: params.length }, method);
  return { methodName: method.name, method, block, ...writeRequest(method.name, params) };
}

function route(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  done: Done,
): Cancel {
  const { bytes, span } = incoming;
  const { envelope, method } = request;
  const { body, idStart, idEnd } = requestIn(bytes, span, envelope);
  const call = {
    methodName: envelope.method,
    method,
    block:
      method.block === null
        ? NO_BLOCK
        : readBlockRef(bytes, { start: envelope.paramsStart, end: envelope.paramsEnd }, method),
    body,
    idStart,
    idEnd,
  };
  return send(parts, incoming, { ...request, call }, done);
}

/** Routes a call to a provider. */
function send(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: RoutedRequest,
  done: Done,
): Cancel {
  const { target, requestId, mayStream } = incoming;
  const { call } = request;
  const routed = {
    call,
    tracker: target.tracker,
    strategy: target.strategy,
    pin: target.pin,
    caller: incoming.caller,
    transport: null,
    avoid: null,
    deadlineMs: parts.deadlineMs(call.method),
    mayStream,
    room: incoming.room,
  };
  const routing = parts.router.route(routed, ({ outcome, source }, finished) => {
    const answer = fitting(incoming, call.method, {
      outcome,
      route: finished,
      written: null,
      source,
    });
    parts.observer.routed(target.series, finished, answer.outcome.kind, requestId);
    done(settled(incoming, request, answer));
  });
  return (why) =>
    cancelled(parts, incoming, request, { why, left: routing.cancel(), route: routing });
}

/** The request for a provider: as the caller wrote it where that is plain, else written anew. */
function requestIn(bytes: Buffer, { start, end }: Span, envelope: Envelope): WireRequest {
  const { method, plain, idStart, idEnd, paramsStart, paramsEnd } = envelope;
  if (!plain)
    return writeRequest(method, paramsStart === -1 ? null : bytes.subarray(paramsStart, paramsEnd));
  if (start === 0 && end === bytes.length) return { body: bytes, idStart, idEnd };
  return { body: bytes.subarray(start, end), idStart: idStart - start, idEnd: idEnd - start };
}

/** Settles a call that has ended before its answer: what reached a provider may be charged. */
function cancelled(
  parts: PipelineParts,
  { target }: PipelineRequest,
  { method, grant }: GrantedRequest,
  {
    why,
    left,
    route,
  }: { readonly why: Interruption; readonly left: Abandoned; readonly route: RoutedCall | null },
): void {
  const charged = isAbandonedCharged(method, why, left);
  if (charged) grant.settle({ kind: "provider" });
  else grant.release();
  parts.observer.cancelled(target.series, method, route);
}
