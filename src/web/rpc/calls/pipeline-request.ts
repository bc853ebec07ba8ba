// A request in the pipeline, and the services that it meets there.
import type { Interruption } from "../../../core/billing/charging.ts";
import type { PublicNode } from "../../../core/cluster-health.ts";
import type { Transport } from "../../../core/provider/profile.ts";
import type { CallerIdentity } from "../../../core/provider/silence.ts";
import type { Envelope, InvalidRequest } from "../../../core/rpc/envelope.ts";
import type { Method } from "../../../core/rpc/method.ts";
import type { MethodTable } from "../../../core/rpc/method-table.ts";
import type { Admission } from "../../../hosted/admission/admission.ts";
import type { Observer } from "../../../observe/observer.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Router } from "../../../upstream/engine/router.ts";
import type { MemoryShare } from "../../../upstream/transport.ts";
import type { CallPayment } from "../../payment/call-payment.ts";
import type { Reply } from "../answers/reply.ts";
import type { CallerView } from "../caller-view.ts";
import type { FilterMethods } from "../filter-methods.ts";
import type { LogBounds } from "../limits.ts";
import type { TokenWait } from "../pacer.ts";
import type { ServiceMethods } from "../service-methods.ts";
import type { Target, TargetResolver } from "../target.ts";

/** The services that the pipeline is built from. */
export interface PipelineParts {
  readonly runtime: Runtime;
  readonly router: Pick<Router, "route">;
  readonly observer: Observer;
  readonly resolver: TargetResolver;
  /** Null = the service has no keys: every caller is served, and nothing is charged. */
  readonly admission: Admission | null;
  /** The method table of the current configuration. */
  readonly methods: () => MethodTable;
  readonly filters: Pick<FilterMethods, "serve" | "logs">;
  /** This node in evidence; null = it serves alone. */
  readonly node: PublicNode | null;
  /** How calls over ranges of blocks are asked for in parts. */
  readonly logs: () => LogBounds;
  /** The deadline of a method, in milliseconds. */
  readonly deadlineMs: (method: Method) => number;
}

/** What is the same for all calls in one message of a caller. */
export interface CallerMessage {
  readonly bytes: Buffer;
  readonly target: Target;
  /** Admits the request and pays for it. */
  readonly payment: CallPayment;
  readonly caller: CallerIdentity;
  readonly requestId: string;
  /** The view of the chain at which it is answered. */
  readonly view: CallerView;
  /** True = a provider is asked for this very request; absent = a kept answer will do. */
  readonly fresh?: boolean;
  /** The transport between caller and service. */
  readonly transport: Transport;
  /** Null = the transport has no subscriptions. */
  readonly subscriptionMethods: ServiceMethods | null;
  /** Memory budget in which a gathered answer counts until it is delivered. */
  readonly room: MemoryShare;
}

/** One request of a caller. */
export interface PipelineRequest extends CallerMessage {
  /** What was read of `bytes`. */
  readonly envelope: Envelope | InvalidRequest;
  /**
   * How the reply reaches the caller: as a stream or in one piece, in one piece, or as an item of a
   * longer answer, which is settled when that answer was delivered or lost.
   */
  readonly delivery: "streamed" | "whole" | "item";
  /**
   * Called when the rate limit refuses the request: true = the request is postponed without an
   * answer, and is run again later. Null = refused at once.
   */
  readonly postpone: ((token: TokenWait) => boolean) | null;
}

/** Cancels a request; its grant is settled or released by the table of charges. */
export type Cancel = (why: Interruption) => void;

/** Called with the reply to a request. */
export type ReplyCallback = (reply: Reply) => void;

/** An item up to this size is shown even if the budget is used up: a refusal is no shorter. */
export const SHORT_BYTES = 1_024;
