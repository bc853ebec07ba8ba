// Calls that the service answers itself: subscriptions and filters. Only `eth_getFilterLogs` asks
// providers.
import { type Call, readBlockRef } from "../../../core/rpc/call.ts";
import type { Method } from "../../../core/rpc/method.ts";
import { writeRequest } from "../../../core/rpc/wire-request.ts";
import type { FilterLogsQuery, SubscriptionCall, SubscriptionMethods } from "../service-methods.ts";
import type {
  Cancel,
  GrantedRequest,
  PipelineParts,
  PipelineRequest,
  ReplyCallback,
} from "./pipeline-request.ts";
import { countOf, isCounted } from "./range-bounds.ts";
import { admit } from "./request-admission.ts";
import { send } from "./routed-call.ts";
import { answered, givenUp, unserved } from "./settlement.ts";

/** Serves a subscription method of the connection. */
export function serveSubscription(
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
export function serveFilter(
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
