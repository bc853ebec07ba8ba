// Settles requests: checks that a gathered answer fits into memory, charges or releases the grant,
// counts the request, and makes its reply.
import {
  type Abandoned,
  type Interruption,
  isAbandonedCharged,
  isCharged,
} from "../../../core/billing/charging.ts";
import type { Fault } from "../../../core/faults/rpc-fault.ts";
import { NO_SOURCE } from "../../../core/routing/answer-source.ts";
import type { Envelope } from "../../../core/rpc/envelope.ts";
import type { Method } from "../../../core/rpc/method.ts";
import type { Outcome } from "../../../upstream/engine/answer.ts";
import { NOTHING_SENT } from "../../../upstream/engine/call-context.ts";
import { noRoom } from "../../../upstream/engine/refusal.ts";
import type { RoutedCall } from "../../../upstream/engine/router.ts";
import type { Billing, CallGrant } from "../../payment/call-payment.ts";
import type { DeliveryCallback, Reply } from "../answers/reply.ts";
import type { MethodAnswer } from "../service-methods.ts";
import type { Cancel, GrantedRequest, PipelineParts, PipelineRequest } from "./pipeline-request.ts";

/** The reply to a request that has an outcome; counts it. */
export function answered(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  methodAnswer: MethodAnswer,
): Reply {
  const { series } = incoming.target;
  const answer = fitting(incoming, request.method, methodAnswer);
  if (answer.route === null) parts.observer.local(series, request.method, answer);
  else parts.observer.routed(series, answer.route, answer, incoming.requestId);
  return settled(incoming, request, answer);
}

/**
 * The reply to a granted request. Settles the grant now, or hands its settlement to the reply if
 * the answer is still to be written.
 */
export function settled(
  incoming: PipelineRequest,
  { envelope, grant }: GrantedRequest,
  answer: MethodAnswer,
): Reply {
  const { outcome, route, written, source } = answer;
  const { target, requestId, transport } = incoming;
  const isOpen =
    grant.kind !== "keyless" &&
    (outcome.kind === "stream" || (incoming.settlesLater && isCharged(source)));
  return {
    id: envelope.id,
    outcome,
    source,
    route,
    target,
    requestId,
    transport,
    notify: envelope.notify,
    written,
    billing: isOpen ? expectedCharge(grant, answer) : grant.settle(source, partsSentOf(route)),
    settle: isOpen ? settlementOf(grant, answer) : null,
  };
}

/** What a call will be charged once its answer is delivered; of a stream, what is held for it. */
function expectedCharge(
  grant: CallGrant,
  { source, route, outcome }: Pick<MethodAnswer, "source" | "route" | "outcome">,
): Billing | null {
  if (grant.kind !== "grant") return null;
  return grant.chargeFor(source, outcome.kind === "stream" ? null : partsSentOf(route));
}

function settlementOf(
  grant: CallGrant,
  { source, route }: Pick<MethodAnswer, "source" | "route">,
): DeliveryCallback {
  return (delivered) =>
    void (delivered ? grant.settle(source, partsSentOf(route)) : grant.release());
}

function partsSentOf(route: RoutedCall | null): number | null {
  return route?.partsSent ?? null;
}

/**
 * Refuses a gathered answer that does not fit into the memory budget, before it is charged. The
 * answer to a call with side effects is never refused.
 */
export function fitting(
  { mayStream, room, freeBytes }: PipelineRequest,
  { replaySafe }: Method,
  answer: MethodAnswer,
): MethodAnswer {
  const bytes = mayStream || !replaySafe ? 0 : bytesOf(answer.outcome);
  if (bytes <= freeBytes) return answer;
  const wanted = bytes + ENVELOPE_BYTES;
  if (room.take(wanted)) {
    // Only a check: the code that keeps the answer reserves the same room right after.
    room.giveBack(wanted);
    return answer;
  }
  answer.written?.(false);
  return { ...unserved(noRoom()), route: answer.route };
}

/** Room for the envelope around a result or error, including an unusually long id and evidence. */
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

/** Settles a cancelled call: it may be charged if it reached a provider. */
export function cancelled(
  parts: PipelineParts,
  { target, requestId }: PipelineRequest,
  { method, grant }: GrantedRequest,
  {
    why,
    left,
    route,
  }: { readonly why: Interruption; readonly left: Abandoned; readonly route: RoutedCall | null },
): void {
  const charged = isAbandonedCharged(method, why, left);
  if (charged) grant.settle({ kind: "provider" }, partsSentOf(route));
  else grant.release();
  parts.observer.cancelled(target.series, method, route, requestId);
}

/** Makes the cancel function of a subscription or filter method. */
export function givenUp(
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  cancel: () => void,
): Cancel {
  // A subscription or filter without an answer has delivered nothing and counts as not sent: other
  // callers may share its upstream subscription.
  return (why) => {
    cancel();
    return cancelled(parts, incoming, request, { why, left: NOTHING_SENT, route: null });
  };
}

/** The reply to a request that is refused before admission. */
export function refusal(
  { target, requestId, transport }: PipelineRequest,
  { id, notify }: Pick<Envelope, "id" | "notify">,
  why: Fault,
): Reply {
  return {
    id,
    notify,
    target,
    requestId,
    transport,
    outcome: { kind: "fault", fault: why },
    source: NO_SOURCE,
    route: null,
    written: null,
    billing: null,
    settle: null,
  };
}

/** The refusal of a granted request. */
export function unserved(why: Fault): MethodAnswer {
  return {
    outcome: { kind: "fault", fault: why },
    route: null,
    written: null,
    source: NO_SOURCE,
  };
}
