// A call to a provider: builds its request, routes it, and settles it by the answer.
import { type Call, NO_BLOCK, readBlockRef } from "../../../core/rpc/call.ts";
import type { Envelope } from "../../../core/rpc/envelope.ts";
import { type WrittenRequest, writeRequest } from "../../../core/rpc/wire-request.ts";
import type {
  Cancel,
  GrantedRequest,
  PipelineParts,
  PipelineRequest,
  ReplyCallback,
} from "./pipeline-request.ts";
import { maxPartsOf } from "./range-bounds.ts";
import { cancelled, fitting, settled, unserved } from "./settlement.ts";

/** A granted request that a provider answers. */
interface RoutedRequest extends GrantedRequest {
  readonly call: Call;
}

/** Routes a request as its caller wrote it. */
export function route(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  done: ReplyCallback,
): Cancel | null {
  const { bytes } = incoming;
  const { envelope, method, grant } = request;
  const { body, idStart, idEnd, params } = requestIn(bytes, envelope);
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
    params,
  };
  return send(parts, incoming, { envelope, method, grant, call }, done);
}

/** Routes a call to a provider. */
export function send(
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
    maxParts: maxPartsOf(parts, request.grant),
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
  const isUsers = target.tracker.set.providers.some(({ guarded }) => guarded);
  return isUsers && caller.passed !== undefined ? "http" : null;
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
