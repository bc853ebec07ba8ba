// Ports to the methods that the service answers itself: subscriptions of a connection, and filters.
import type { Fault } from "../../core/faults/rpc-fault.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Grant } from "../../hosted/admission/grant.ts";
import type { StreamCaller } from "../../upstream/stream/subscriber.ts";
import type { Reply } from "./answers/reply.ts";
import type { RpcLimits } from "./limits.ts";
import type { Target } from "./target.ts";

/** Serves the subscription methods of one connection. */
export interface SubscriptionMethods {
  /** Serves a call. Returns a function that cancels it; null = it has ended. */
  serve(request: SubscriptionCall, done: (answer: MethodAnswer) => void): (() => void) | null;
}

/** A call of a subscription method. */
export interface SubscriptionCall {
  readonly methodName: string;
  readonly method: Method;
  /** JSON text; null = the call has no params. */
  readonly params: string | null;
  readonly target: Target;
  /** False for a notification, whose reply is not sent. */
  readonly answered: boolean;
  /** The caller wants to be told how the subscription is served: `"svc_meta":"notify"`. */
  readonly notify: boolean;
  /** Charges the notifications that follow; null = they are free. */
  readonly grant: Grant | null;
}

/** A call of a filter method. */
export interface FilterCall extends SubscriptionCall {
  readonly caller: CallerIdentity;
}

/** Serves the filter methods; one instance for all connections. */
export interface FilterMethods {
  /** Serves a call. Returns a function that cancels it; null = it has ended. */
  serve(call: FilterCall, done: (answer: MethodAnswer) => void): (() => void) | null;
  /**
   * Finds the query that reads the logs of a filter. Returns a function that cancels; null = it is
   * done.
   */
  logs(call: FilterCall, done: (logs: FilterLogsQuery | Fault) => void): (() => void) | null;
}

/** An `eth_getLogs` query with the criteria of a filter. */
export interface FilterLogsQuery {
  readonly kind: "query";
  readonly target: Target;
  readonly params: Buffer;
}

/** The answer to a subscription or filter method. */
export type MethodAnswer = Pick<Reply, "outcome" | "source" | "route" | "written">;

/** The identity under which streams are limited, over all connections of the caller. */
export function streamCaller(
  { key }: CallerIdentity,
  keyed: boolean,
  { maxLogFilters, maxKeylessLogFilters }: RpcLimits,
): StreamCaller {
  return { id: key, maxLogFilters: keyed ? maxLogFilters : maxKeylessLogFilters };
}
