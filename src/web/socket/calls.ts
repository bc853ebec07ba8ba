// The requests of one client WebSocket: runs every message through the pipeline, once per batch
// item, within the limits of a socket. Knows no frames, and nothing of the connection except where
// answers go.
import { isUtf8 } from "node:buffer";
import type { Interruption } from "../../core/billing/charging.ts";
import { withErrorType } from "../../core/faults/legacy-form.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { readRequest } from "../../core/rpc/envelope.ts";
import { endOf, isJson, OPEN_ARRAY, type Span, skipSpace } from "../../core/rpc/json.ts";
import { SHORT_REQUEST_BYTES } from "../../upstream/memory-budget.ts";
import type { Subscriptions } from "../../upstream/stream/subscriptions.ts";
import { FREE_BYTES, type Room } from "../../upstream/transport.ts";
import type { Activity } from "../http/activity.ts";
import { renderFault } from "../http/render-fault.ts";
import { type CallPayment, callPaymentOf } from "../payment/call-payment.ts";
import type { Authenticated } from "../rpc/authenticate.ts";
import { planBatch, type RpcBatch, runBatch } from "../rpc/batch.ts";
import { Marks } from "../rpc/caller-marks.ts";
import { CallerView } from "../rpc/caller-view.ts";
import { NO_ROOM_FOR_REQUEST } from "../rpc/limits.ts";
import type { RpcParts } from "../rpc/parts.ts";
import { runPipeline } from "../rpc/pipeline.ts";
import { renderReply } from "../rpc/render-reply.ts";
import { type DeliveryCallback, evidenceOfReply, type Reply } from "../rpc/reply.ts";
import { streamCaller } from "../rpc/stream-caller.ts";
import type { Target } from "../rpc/target.ts";
import { ClientSubscriptions, type NotificationSink } from "./client-subscriptions.ts";
import { metaNotification } from "./notification.ts";

export interface CallParts {
  readonly rpc: RpcParts;
  readonly subscriptions: Pick<Subscriptions, "open">;
  readonly requestId: () => string;
  /** Requests under way on all listeners. */
  readonly activity: Activity;
}

/** The connection that answers are written to. */
export interface ClientConnection extends NotificationSink {
  /**
   * Sends one message; false = the connection accepts no more. `settle` is called once: true = the
   * connection took the whole message, or the caller left before.
   */
  send(pieces: readonly Buffer[], settle?: DeliveryCallback): boolean;
}

/** One message being served. */
interface UnderWay extends Room {
  cancel: ((why: Interruption) => void) | null;
  /** Bytes of the request. */
  readonly bytes: number;
  /** The caller in whose share of memory the request counts; null = in nobody's. */
  readonly requestOf: string | null;
  /** Bytes reserved for the answer. */
  gathered: number;
  /**
   * The caller in whose share they count. Remembered, because the key may move to another account.
   */
  shareOf: string;
  over: boolean;
}

/** The answer to a batch (null = none), and the settlement of its items. */
interface BatchAnswer {
  readonly body: readonly Buffer[] | null;
  readonly settle: DeliveryCallback;
}

/** A message to be sent after the answer to its batch; `answered` = that answer was sent. */
type Follower = (answered: boolean) => void;

const WAIT = { nextAction: "wait for an answer before sending the next request" };

/** All requests under way on one socket. */
export class SocketCalls {
  readonly #parts: CallParts;
  readonly #authenticated: Authenticated;
  readonly #payment: CallPayment;
  readonly #connection: ClientConnection;
  readonly #subscriptionMethods: ClientSubscriptions;
  readonly #view: CallerView;
  #target: Target | Fault;
  #revision: number;
  #underWay: Set<UnderWay> | null = null;
  #bytes = 0;
  #over = false;

  constructor(parts: CallParts, connection: ClientConnection, authenticated: Authenticated) {
    this.#parts = parts;
    this.#connection = connection;
    this.#authenticated = authenticated;
    this.#payment = callPaymentOf(parts.rpc.admission, authenticated.keyContext);
    this.#target = authenticated.target;
    const marks = new Marks();
    const { wishes, keyContext: key } = authenticated;
    const { consistency: usual } = parts.rpc;
    this.#view = new CallerView({ wishes, key, usual, marks: () => marks });
    this.#revision = parts.rpc.resolver.revision;
    this.#subscriptionMethods = new ClientSubscriptions(parts, connection, () =>
      streamCaller(authenticated.caller, authenticated.keyContext !== null, parts.rpc.limits),
    );
  }

  /** Serves one message. */
  serve(bytes: Buffer, binary: boolean): void {
    if (this.#over) return;
    try {
      // Clients also send JSON in binary messages. Text messages are known to be UTF-8, because
      // `ws` closes a socket that sends invalid text.
      if (binary && !isUtf8(bytes))
        this.#sendFault("null", fault("parse_error", "the binary message is not UTF-8 text"));
      else if (isJson(bytes)) this.#serve(bytes, skipSpace(bytes, 0, bytes.length));
      else this.#sendFault("null", fault("parse_error", "the message is not valid JSON"));
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Ends all calls and subscriptions: the caller left, or was disconnected. */
  close(why: Interruption): void {
    this.#over = true;
    for (const call of this.#underWay ?? []) {
      call.cancel?.(why);
      this.#end(call);
    }
    this.#subscriptionMethods.close();
  }

  #serve(bytes: Buffer, start: number): void {
    const target = this.#refreshed();
    if (target.kind === "fault") return this.#refuse(bytes, start, target);
    const why = this.#beyond(bytes.length);
    if (why !== null) return this.#refuse(bytes, start, why);
    if (bytes[start] === OPEN_ARRAY) return this.#batch(bytes, start, target);
    const call = this.#begin(bytes.length);
    if (call === null) return this.#refuse(bytes, start, NO_ROOM_FOR_REQUEST);
    const span: Span = { start, end: endOf(bytes) };
    const incoming = {
      bytes,
      span,
      target,
      payment: this.#payment,
      caller: this.#authenticated.caller,
      view: this.#view,
      requestId: this.#parts.requestId(),
      mayStream: false,
      settlesLater: false,
      transport: "ws" as const,
      subscriptionMethods: this.#subscriptionMethods,
      postpone: null,
      room: call,
      freeBytes: FREE_BYTES,
    };
    const cancel = runPipeline(this.#parts.rpc, incoming, (reply) => this.#replied(call, reply));
    if (!call.over) call.cancel = cancel;
  }

  /** The target of the socket under the current profiles. */
  #refreshed(): Target | Fault {
    const { resolver } = this.#parts.rpc;
    if (this.#revision === resolver.revision && this.#target.kind === "target") return this.#target;
    this.#revision = resolver.revision;
    this.#target = resolver.resolve(
      this.#authenticated.target.input,
      this.#authenticated.keyContext?.account ?? null,
    );
    if (this.#target.kind === "fault") this.#prepare(this.#target);
    return this.#target;
  }

  /** Loads a Custom profile that is no longer in memory, for later messages. */
  #prepare({ code, details }: Fault): void {
    const { keyContext } = this.#authenticated;
    const profile = details["profile"];
    if (code === "not_prepared" && keyContext !== null && typeof profile === "string")
      this.#parts.rpc.admission?.prepare(keyContext, profile, () => {});
  }

  /** The refusal of a message that exceeds the limits of the socket; null = accepted. */
  #beyond(bytes: number): Fault | null {
    const { activity, rpc } = this.#parts;
    const { limits } = rpc;
    if (activity.draining)
      return fault("unavailable", "the service is stopping", {
        nextAction: "open another connection",
      });
    if ((this.#underWay?.size ?? 0) >= limits.maxSocketRequests)
      return fault(
        "rate_limit_exceeded",
        `${limits.maxSocketRequests} requests are in flight on this connection`,
        WAIT,
      );
    return this.#bytes + bytes > limits.maxSocketBytes
      ? fault(
          "rate_limit_exceeded",
          "too many request bytes are in flight on this connection",
          WAIT,
        )
      : null;
  }

  /** Refuses a message with the id of its request; a batch is refused as a whole. */
  #refuse(bytes: Buffer, start: number, why: Fault): void {
    const request = readRequest(bytes, start, endOf(bytes));
    if (request.id !== null) this.#sendFault(request.id, why);
  }

  #sendFault(id: string, why: Fault): void {
    this.#parts.rpc.observer.refused(why.code);
    this.#connection.send([
      renderFault(this.#authenticated.target.legacyForms === null ? why : withErrorType(why), id),
    ]);
  }

  #replied(call: UnderWay, reply: Reply): void {
    if (this.#over) return reply.written?.(false);
    this.#view.answered(reply);
    try {
      this.#write(call, reply);
    } catch (error) {
      this.#fail(error);
    }
  }

  #write(call: UnderWay, reply: Reply): void {
    this.#end(call);
    const { id, target, written } = reply;
    if (id === null) return written?.(false);
    const meta =
      reply.notify || target.meta === "body" ? evidenceOfReply(reply, this.#parts.rpc) : null;
    const isSent = this.#connection.send(renderReply(reply, target.meta === "body" ? meta : null));
    if (reply.notify && meta !== null) this.#connection.send([metaNotification(id, meta)]);
    written?.(isSent && !this.#over);
  }

  #batch(bytes: Buffer, start: number, target: Target): void {
    const { rpc, requestId } = this.#parts;
    const plan = planBatch(rpc, bytes, start, this.#authenticated.keyContext);
    if (plan.kind === "fault") return this.#sendFault("null", plan);
    const call = this.#begin(bytes.length);
    if (call === null) return this.#sendFault("null", NO_ROOM_FOR_REQUEST);
    const followers: Follower[] = [];
    const batch: RpcBatch = {
      ...plan,
      bytes,
      target,
      payment: this.#payment,
      caller: this.#authenticated.caller,
      view: this.#view.forBatch(),
      requestId: requestId(),
      transport: "ws",
      subscriptionMethods: this.#subscriptionMethods,
      room: call,
      heard: (reply, shown) => this.#follow(followers, reply, shown),
    };
    const cancel = runBatch(rpc, batch, (body, settle) =>
      this.#answered(call, { body, settle }, followers),
    );
    if (call.over) return;
    call.cancel = (why) => {
      cancel(why);
      for (const follow of followers) follow(false);
    };
  }

  /** Keeps the messages that an item of a batch sends after the answer. */
  #follow(followers: Follower[], reply: Reply, shown: boolean): void {
    const { id, notify, written } = reply;
    if (notify && id !== null) {
      const meta = metaNotification(id, evidenceOfReply(reply, this.#parts.rpc));
      followers.push(() => this.#connection.send([meta]));
    }
    if (written !== null) followers.push((answered) => written(answered && shown));
  }

  #answered(call: UnderWay, { body, settle }: BatchAnswer, followers: readonly Follower[]): void {
    if (this.#over) return settle(false);
    try {
      this.#end(call);
      if (body === null) settle(true);
      const isSent = body === null || this.#connection.send(body, settle);
      for (const follow of followers) follow(isSent && !this.#over);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Counts a message in the memory budget; null = the budget is used up. */
  #begin(bytes: number): UnderWay | null {
    const { budget } = this.#parts.rpc;
    const requestOf = bytes > SHORT_REQUEST_BYTES ? this.#authenticated.caller.key : null;
    if (!(requestOf === null ? budget.takeForAll(bytes) : budget.take(requestOf, bytes)))
      return null;
    const call: UnderWay = {
      cancel: null,
      bytes,
      requestOf,
      gathered: 0,
      shareOf: "",
      over: false,
      take: (more) => this.#take(call, more),
      giveBack: (back) => this.#giveBack(call, back),
    };
    this.#underWay ??= new Set();
    this.#underWay.add(call);
    this.#bytes += bytes;
    this.#parts.activity.active++;
    return call;
  }

  #end(call: UnderWay): void {
    if (call.over) return;
    const { activity, rpc } = this.#parts;
    call.over = true;
    this.#underWay?.delete(call);
    this.#bytes -= call.bytes;
    if (call.requestOf === null) rpc.budget.used -= call.bytes;
    else rpc.budget.giveBack(call.requestOf, call.bytes);
    this.#giveBack(call, call.gathered);
    activity.active--;
    activity.lastMs = rpc.runtime.now();
  }

  #take(call: UnderWay, bytes: number): boolean {
    if (call.gathered === 0) call.shareOf = this.#authenticated.caller.key;
    if (call.over || !this.#parts.rpc.budget.take(call.shareOf, bytes)) return false;
    call.gathered += bytes;
    return true;
  }

  #giveBack(call: UnderWay, bytes: number): void {
    const back = Math.min(bytes, call.gathered);
    call.gathered -= back;
    if (back > 0) this.#parts.rpc.budget.giveBack(call.shareOf, back);
  }

  /** Handles a bug: logs it and fails this socket only. */
  #fail(error: unknown): void {
    this.#parts.rpc.observer.log.error({ err: error }, "bug");
    this.#connection.close(1011, "internal error");
  }
}
