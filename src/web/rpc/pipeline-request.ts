// One request on its way through the pipeline: as its caller sent it, as it was read, and with its
// grant.
import type { Interruption } from "../../core/billing/charging.ts";
import type { Transport } from "../../core/provider/profile.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { Envelope } from "../../core/rpc/envelope.ts";
import type { Span } from "../../core/rpc/json.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { MethodTable } from "../../core/rpc/method-table.ts";
import type { Admission } from "../../hosted/admission/admission.ts";
import type { Observer } from "../../observe/observer.ts";
import type { Runtime } from "../../runtime.ts";
import type { Router } from "../../upstream/engine/router.ts";
import type { Room } from "../../upstream/transport.ts";
import type { CallGrant, CallPayment } from "../payment/call-payment.ts";
import type { TokenWait } from "./pacer.ts";
import type { Reply } from "./reply.ts";
import type { FilterMethods, SubscriptionMethods } from "./service-methods.ts";
import type { Target, TargetResolver } from "./target.ts";

/** What the pipeline works with. */
export interface PipelineParts {
  readonly runtime: Runtime;
  readonly router: Router;
  readonly observer: Observer;
  readonly resolver: TargetResolver;
  /** Null = no keys: everyone is served, and nothing is charged. */
  readonly admission: Admission | null;
  /** The method table as it is configured now. */
  readonly methods: () => MethodTable;
  readonly filters: FilterMethods;
  /** How long a method may take, in milliseconds. */
  readonly deadlineMs: (method: Method) => number;
}

/** One request of a caller; `bytes` within `span` are known to be valid JSON. */
export interface PipelineRequest {
  readonly bytes: Buffer;
  readonly span: Span;
  readonly target: Target;
  /** Admits the request, and pays for it. */
  readonly payment: CallPayment;
  readonly caller: CallerIdentity;
  readonly requestId: string;
  /** False where the reply is needed in one piece. */
  readonly mayStream: boolean;
  /** True where the reply is a part of a longer answer, and is charged when that was written. */
  readonly settlesLater: boolean;
  /** How the caller is connected. */
  readonly transport: Transport;
  /** Null where the connection is not kept. */
  readonly subscriptionMethods: SubscriptionMethods | null;
  /**
   * Asked where a rate limit stands in the way: true = the request is put off, not answered, and
   * comes again. Null = it is refused.
   */
  readonly postpone: ((token: TokenWait) => boolean) | null;
  /** Where an answer that is gathered is counted until it is told. */
  readonly room: Room;
  /** An answer up to this size is told though there is no room. */
  readonly freeBytes: number;
}

/**
 * Ends a request before its answer: its grant is settled or released by the table of charges.
 */
export type Cancel = (why: Interruption) => void;

/** Hears the end of a request. */
export type ReplyCallback = (reply: Reply) => void;

/** A valid request that has yet to be granted. */
export interface ValidRequest {
  readonly parts: PipelineParts;
  readonly incoming: PipelineRequest;
  readonly envelope: Envelope;
  readonly method: Method;
}

/** A valid request with its grant. */
export interface GrantedRequest {
  readonly envelope: Envelope;
  readonly method: Method;
  readonly grant: CallGrant;
}
