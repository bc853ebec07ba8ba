// What serves the methods that are answered by the service itself: subscriptions of a connection,
// and filters. Ports only.
import type { Fault } from "../../core/faults/rpc-fault.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Grant } from "../../hosted/admission/grant.ts";
import type { Reply } from "./reply.ts";
import type { Target } from "./target.ts";

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
  /** The query by which the logs of a filter are read. */
  logs(call: FilterCall): FilterLogsQuery | Fault;
}

/** An `eth_getLogs` call with the criteria of a filter. */
export interface FilterLogsQuery {
  readonly kind: "query";
  readonly target: Target;
  readonly params: Buffer;
}

/** The answer to a subscription or filter method. */
export type MethodAnswer = Pick<Reply, "outcome" | "source" | "route" | "written">;
