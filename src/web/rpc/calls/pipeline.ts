// The pipeline: one request in, one reply out, over HTTP and WebSocket alike. Reads the request,
// has it admitted, and dispatches it by its method. Knows no connection.
import { fault } from "../../../core/faults/rpc-fault.ts";
import { isDevelopmentChain } from "../../../core/provider/chain.ts";
import { LOCAL_SOURCE } from "../../../core/routing/answer-source.ts";
import { methodOn } from "../../../core/rpc/method.ts";
import { answerHere } from "./local-answer.ts";
import type {
  Cancel,
  GrantedRequest,
  PipelineParts,
  PipelineRequest,
  ReplyCallback,
} from "./pipeline-request.ts";
import { callsOf } from "./range-bounds.ts";
import { admit } from "./request-admission.ts";
import { route } from "./routed-call.ts";
import { serveFilter, serveSubscription } from "./served-call.ts";
import { refusal, settled } from "./settlement.ts";

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
  const method = methodOn(
    parts.methods().of(envelope.method),
    envelope.method,
    isDevelopmentChain(incoming.target.chain),
  );
  const calls = callsOf(parts, incoming, envelope, method);
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
  const here = answerHere(method, envelope.method, target);
  if (here === null) return route(parts, incoming, request, done);
  const answer = { outcome: here, route: null, written: null, source: LOCAL_SOURCE };
  parts.observer.local(target.series, method, answer);
  done(settled(incoming, request, answer));
  return null;
}
