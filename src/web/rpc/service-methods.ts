// The methods that the service answers itself, subscriptions of a connection and filters: the port
// through which calls reach them.
import type { Fault } from "../../core/faults/rpc-fault.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { NO_SOURCE } from "../../core/routing/answer-source.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Grant } from "../../hosted/admission/grant.ts";
import type { StreamCaller } from "../../upstream/stream/subscriber.ts";
import type { Reply } from "./answers/reply.ts";
import type { RpcLimits } from "./limits.ts";
import type { Target } from "./target.ts";

/** Serves such methods: those of one connection, or the filter methods. */
export interface ServiceMethods {
  /** Serves a call. Returns a function that cancels it; null = it has ended. */
  serve(call: MethodCall, done: (answer: MethodAnswer) => void): (() => void) | null;
}

/** A call of such a method. */
export interface MethodCall {
  readonly methodName: string;
  readonly method: Method;
  /** JSON text; null = the call has no params. */
  readonly params: string | null;
  readonly target: Target;
  readonly caller: CallerIdentity;
  /** False for a notification, whose reply is not sent. */
  readonly answered: boolean;
  /** The caller wants to be told how the subscription is served: `"svc_meta":"notify"`. */
  readonly notify: boolean;
  /** Charges the notifications that follow; null = they are free. */
  readonly grant: Grant | null;
}

/** An `eth_getLogs` query with the criteria of a filter. */
export interface FilterLogsQuery {
  readonly kind: "query";
  readonly target: Target;
  readonly params: Buffer;
}

/** The answer to a subscription or filter method. */
export type MethodAnswer = Pick<Reply, "outcome" | "source" | "route" | "written">;

/** The answer to a call that is refused. */
export function refused(why: Fault): MethodAnswer {
  return { outcome: { kind: "fault", fault: why }, route: null, written: null, source: NO_SOURCE };
}

/** The identity under which streams are limited, over all connections of the caller. */
export function streamCaller(
  { key }: CallerIdentity,
  keyed: boolean,
  { maxLogFilters, maxKeylessLogFilters }: RpcLimits,
): StreamCaller {
  return { id: key, maxLogFilters: keyed ? maxLogFilters : maxKeylessLogFilters };
}
