// The path of a call, over HTTP and WebSocket alike, one request in and one reply out: it is
// admitted, served by its method (routed to providers, or answered here), and settled. Credit may
// be waited for, a profile loaded, a grant may move the call to another profile. Knows no
// connection.
import { type Fault, fault } from "../../../core/faults/rpc-fault.ts";
import { isDevelopmentChain } from "../../../core/provider/chain.ts";
import { LOCAL_SOURCE } from "../../../core/routing/answer-source.ts";
import { type Call, NO_BLOCK, readBlockAt, readBlockRef } from "../../../core/rpc/call.ts";
import type { Envelope } from "../../../core/rpc/envelope.ts";
import type { Span } from "../../../core/rpc/json.ts";
import { type Method, methodOn } from "../../../core/rpc/method.ts";
import { type WrittenRequest, writeRequest } from "../../../core/rpc/wire-request.ts";
import type { Refusal } from "../../../hosted/admission/admission.ts";
import type { Grant } from "../../../hosted/admission/grant.ts";
import type { TokenWait } from "../pacer.ts";
import type { FilterLogsQuery, SubscriptionCall, SubscriptionMethods } from "../service-methods.ts";
import type { Target } from "../target.ts";
import { answerHere } from "./local-answer.ts";
import type {
  Cancel,
  GrantedRequest,
  PipelineParts,
  PipelineRequest,
  ReplyCallback,
  ValidRequest,
} from "./pipeline-request.ts";
import { callsOf, countOf, isCounted, maxPartsOf } from "./range-bounds.ts";
import { answered, cancelled, fitting, givenUp, refusal, settled, unserved } from "./settlement.ts";

/**
 * Serves one request. Calls `done` once, or never after a cancel. Returns a function that cancels
 * the request, or null if it has ended.
 */
export function runPipeline(
  parts: PipelineParts,
  incoming: PipelineRequest,
  done: ReplyCallback,
): Cancel | null {
  const { envelope } = incoming;
  if (envelope.kind === "invalid") {
    parts.observer.refused("invalid_request");
    done(
      refusal(
        incoming,
        { id: envelope.id, notify: false },
        fault("invalid_request", envelope.message),
      ),
    );
    return null;
  }
  const row = parts.methods().of(envelope.method);
  const method =
    row.handling === "blocked"
      ? methodOn(row, envelope.method, isDevelopmentChain(incoming.target.chain))
      : row;
  const calls = method.block?.kind === "filter" ? callsOf(parts, incoming, envelope, method) : 1;
  return admit({ parts, incoming, envelope, method, calls }, serve, done);
}

/** Dispatches an admitted request by its method. */
function serve(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  done: ReplyCallback,
): Cancel | null {
  const { target, subscriptionMethods } = incoming;
  const { method, envelope } = request;
  if (method.handling === "socket_only" && subscriptionMethods !== null)
    return serveSubscription(parts, incoming, { ...request, subscriptionMethods }, done);
  if (method.handling === "filter") return serveFilter(parts, incoming, request, done);
  const isRouted = method.handling === "route" && method.origin !== "unlisted";
  const here = isRouted ? null : answerHere(method, envelope.method, target);
  if (here === null) return route(parts, incoming, request, done);
  const answer = { outcome: here, route: null, written: null, source: LOCAL_SOURCE };
  parts.observer.local(target.series, method, answer);
  done(settled(incoming, request, answer));
  return null;
}

/** Serves an admitted request. Returns a function that cancels it, or null if it has ended. */
export type Serve = (
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  done: ReplyCallback,
) => Cancel | null;

/**
 * Admits and serves a request. Waits where credit is being refilled; `waits`: how often it has
 * waited.
 */
function admit(request: ValidRequest, serve: Serve, done: ReplyCallback, waits = 0): Cancel | null {
  const { parts, incoming, envelope, method, calls } = request;
  const { target } = incoming;
  const admitted = incoming.payment.admit(
    { profile: target.named, method, strategy: target.strategy, parts: calls },
    waits,
  );
  switch (admitted.kind) {
    case "wait": {
      let cancel: Cancel | null = null;
      const stop = admitted.refilled(() => {
        cancel = admit(request, serve, done, waits + 1);
      });
      return (why) => {
        stop();
        cancel?.(why);
      };
    }
    case "refusal": {
      if (incoming.postpone !== null && isPostponed(admitted, incoming.postpone)) return null;
      parts.observer.refused(admitted.fault.code);
      done({ ...refusal(incoming, envelope, admitted.fault), billing: admitted });
      return null;
    }
    case "grant":
      return serveAt(request, admitted, serve, done);
    case "keyless":
    case "voucher":
      return serve(parts, incoming, { envelope, method, grant: admitted }, done);
  }
}

/** Whether a call over its rate limit waits for a token instead of being refused. */
function isPostponed(
  { limit, fault: { retryAfterMs } }: Refusal,
  postpone: (token: TokenWait) => boolean,
): boolean {
  return limit !== null && postpone({ waitMs: retryAfterMs ?? 0, tokenMs: limit.tokenMs });
}

/**
 * Serves a request in the profile of its grant; first loads a Custom profile that is not in memory.
 */
function serveAt(
  { parts, incoming, envelope, method }: ValidRequest,
  grant: Grant,
  serve: Serve,
  done: ReplyCallback,
): Cancel | null {
  const request: GrantedRequest = { envelope, method, grant };
  const served = servedAt(parts, incoming.target, grant);
  if (served === incoming.target) return serve(parts, incoming, request, done);
  const serveNow = (target: Target | Fault): Cancel | null => {
    if (target.kind === "target") return serve(parts, { ...incoming, target }, request, done);
    parts.observer.refused(target.code);
    done(settled(incoming, request, unserved(target)));
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

/** The target under the grant, which may name another profile or strategy. */
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

/** A granted request that a provider answers. */
interface RoutedRequest extends GrantedRequest {
  readonly call: Call;
}

/** Routes a request as its caller wrote it. */
function route(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  done: ReplyCallback,
): Cancel | null {
  const { bytes } = incoming;
  const { envelope, method, grant } = request;
  const { body, idStart, idEnd, params } = requestIn(bytes, envelope);
  const blockAt = method.block === null ? undefined : blockIn(envelope, method.block.at, params);
  const block = blockAt === undefined ? NO_BLOCK : readBlockAt(body, blockAt, method);
  const methodName = envelope.method;
  const call = { methodName, method, block, blockAt, body, idStart, idEnd, params };
  return send(parts, incoming, { envelope, method, grant, call }, done);
}

/** Where the parameter lies that names the block of a call, once its parameters lie at `params`. */
function blockIn({ elements, paramsStart }: Envelope, at: number, params: Span): Span | undefined {
  const element = elements[at];
  const shift = params.start - paramsStart;
  if (element === undefined || shift === 0) return element;
  return { start: element.start + shift, end: element.end + shift };
}

/** Routes a call to a provider. */
function send(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: RoutedRequest,
  done: ReplyCallback,
): Cancel | null {
  const { target, requestId, mayStream } = incoming;
  const { call } = request;
  const at = incoming.view.at(target);
  if ("kind" in at) {
    parts.observer.refused(at.code);
    done(settled(incoming, request, unserved(at)));
    return null;
  }
  const routed = {
    call,
    tracker: target.tracker,
    strategy: target.strategy,
    pin: target.pin,
    caller: incoming.caller,
    transport: transportOf(incoming),
    avoid: null,
    deadlineMs: parts.deadlineMs(call.method),
    mayStream,
    fresh: incoming.fresh,
    view: at.view,
    mark: at.mark,
    mayRoam: at.mayRoam,
    room: incoming.room,
    maxParts: call.block.kind === "range" ? maxPartsOf(parts, request.grant) : undefined,
  };
  const routing = parts.router.route(routed, ({ outcome, source }, finished) => {
    const given = { outcome, source, route: finished, written: null };
    const answer = fitting(incoming, call.method, given);
    parts.observer.routed(target.series, finished, answer, requestId);
    done(settled(incoming, request, answer));
  });
  return (why) =>
    cancelled(parts, incoming, request, { why, left: routing.cancel(), route: routing });
}

/**
 * A call that has passed other services says so to a user's provider, which a shared socket cannot
 * say of a single call.
 */
function transportOf({ caller, target }: PipelineRequest): "http" | null {
  for (const { guarded } of target.tracker.set.providers)
    if (guarded) return caller.passed === undefined ? null : "http";
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

/** Serves a subscription method of the connection. */
function serveSubscription(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest & { readonly subscriptionMethods: SubscriptionMethods },
  done: ReplyCallback,
): Cancel | null {
  const cancel = request.subscriptionMethods.serve(subscriptionCall(incoming, request), (answer) =>
    done(answered(parts, incoming, request, answer)),
  );
  return cancel === null ? null : givenUp(parts, incoming, request, cancel);
}

/**
 * Serves a filter method. `eth_getFilterLogs` is sent to providers as `eth_getLogs`, in the profile
 * of the filter.
 */
function serveFilter(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  done: ReplyCallback,
): Cancel | null {
  const call = { ...subscriptionCall(incoming, request), caller: incoming.caller };
  if (call.methodName !== "eth_getFilterLogs") {
    const cancel = parts.filters.serve(call, (answer) =>
      done(answered(parts, incoming, request, answer)),
    );
    return cancel === null ? null : givenUp(parts, incoming, request, cancel);
  }
  let sent: Cancel | null = null;
  const cancel = parts.filters.logs(call, (logs) => {
    if (logs.kind === "query") sent = sendLogs(parts, incoming, { ...request, logs }, done);
    else done(answered(parts, incoming, request, unserved(logs)));
  });
  if (cancel === null) return sent;
  const giveUp = givenUp(parts, incoming, request, cancel);
  return (why) => (sent ?? giveUp)(why);
}

/** Asks providers for the logs of a filter. */
function sendLogs(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest & { readonly logs: FilterLogsQuery },
  done: ReplyCallback,
): Cancel | null {
  const { target, params } = request.logs;
  const { envelope, method, grant } = request;
  const call = logsCall(parts.methods().of("eth_getLogs"), params);
  const calls =
    target.pin === null && isCounted(parts, incoming) ? countOf(parts, target.tracker, call) : 1;
  const there = { ...incoming, target };
  if (calls === 1) return send(parts, there, { ...request, call }, done);
  // Only the filter tells its range: it is admitted anew, for all of its parts.
  grant.release();
  const again = { parts, incoming, envelope, method, calls };
  const cancel = admit(
    again,
    (_parts, _incoming, granted, settled) => send(parts, there, { ...granted, call }, settled),
    done,
  );
  return (why) => cancel?.(why);
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
    notify: envelope.notify,
    grant: grant.kind === "grant" ? grant : null,
  };
}

/** An `eth_getLogs` call with the criteria of a filter. */
function logsCall(method: Method, params: Buffer): Call {
  const block = readBlockRef(params, { start: 0, end: params.length }, method);
  return { methodName: method.name, method, block, ...writeRequest(method.name, params) };
}
