// What follows from the answer to a request, or from its end before one: whether there is room for
// it, what it costs, what is counted, and the reply.
import {
  type Abandoned,
  type Interruption,
  isAbandonedCharged,
  isCharged,
} from "../../core/billing/charging.ts";
import type { Fault } from "../../core/faults/rpc-fault.ts";
import { NO_SOURCE } from "../../core/routing/answer-source.ts";
import type { Envelope } from "../../core/rpc/envelope.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Outcome } from "../../upstream/engine/answer.ts";
import { noRoom } from "../../upstream/engine/refusal.ts";
import type { RoutedCall } from "../../upstream/engine/router.ts";
import { NOTHING_SENT } from "../../upstream/engine/stage.ts";
import type { Cancel, GrantedRequest, PipelineParts, PipelineRequest } from "./pipeline-request.ts";
import type { Reply } from "./reply.ts";
import type { MethodAnswer } from "./service-methods.ts";

/** The reply to a request by what it was answered, which is counted. */
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
 * Settles a request, unless its answer has yet to be written: then that is done at the end of the
 * answer.
 */
export function settled(
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

/**
 * An answer that is kept beside others needs room, from every source: without room it is refused
 * before it is charged, and what is charged is told. What wrote something is always told.
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
    // The one that keeps the answer takes the same room at once.
    room.giveBack(wanted);
    return answer;
  }
  answer.written?.(false);
  return { ...unserved(noRoom()), route: answer.route };
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

/** Settles a call that has ended before its answer: what reached a provider may be charged. */
export function cancelled(
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

/** The way to cancel what a subscription or filter method has under way. */
export function givenUp(
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

/** The reply to a request that is refused before it has a grant. */
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

/** What a request with a grant is answered where nobody serves it. */
export function unserved(why: Fault): MethodAnswer {
  return {
    outcome: { kind: "fault", fault: why },
    route: null,
    written: null,
    source: NO_SOURCE,
  };
}
