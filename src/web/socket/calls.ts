// The requests of one client WebSocket: runs every message through the pipeline, once per batch
// item, in the order of arrival. Messages beyond the limits of a socket wait for their turn. Knows
// no frames, and nothing of the connection except where answers go and that it can stop reading.
import { isUtf8 } from "node:buffer";
import type { Interruption } from "../../core/billing/charging.ts";
import { type CallEnd, callEndOf, interruptedEnd } from "../../core/call-end.ts";
import { withErrorType } from "../../core/faults/legacy-form.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { readRequest } from "../../core/rpc/envelope.ts";
import { isJson, OPEN_ARRAY, skipSpace } from "../../core/rpc/json.ts";
import type { Subscriptions } from "../../upstream/stream/subscriptions.ts";
import type { Activity } from "../http/activity.ts";
import { renderFault } from "../http/render-fault.ts";
import { type CallPayment, callPaymentOf } from "../payment/call-payment.ts";
import { evidenceOf } from "../rpc/answers/evidence.ts";
import { renderReply } from "../rpc/answers/render-reply.ts";
import type { DeliveryCallback, Reply } from "../rpc/answers/reply.ts";
import type { Authenticated } from "../rpc/authenticate.ts";
import { CallerView, SeenBlocks } from "../rpc/caller-view.ts";
import { planBatch, runBatch } from "../rpc/calls/batch.ts";
import { runPipeline } from "../rpc/calls/pipeline.ts";
import type { CallerMessage } from "../rpc/calls/pipeline-request.ts";
import { NO_ROOM_FOR_REQUEST } from "../rpc/limits.ts";
import { BATCH_DEADLINE_MS, createPacer, type Pacer, type TokenWait } from "../rpc/pacer.ts";
import type { RpcParts } from "../rpc/parts.ts";
import type { RequestMemoryParts } from "../rpc/request-memory.ts";
import type { Target } from "../rpc/target.ts";
import { ClientSubscriptions, type NotificationSink } from "./client-subscriptions.ts";
import { metaNotification } from "./notification.ts";
import { RequestQueue, SocketRequest } from "./socket-request.ts";

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
  /** Whether much of what was sent waits to be read: no waiting request is started. */
  readonly isBehind: boolean;
  /** Stops or continues reading. `isFull`: requests hold as much memory as a socket's may. */
  holdReading(isFull: boolean): void;
}

/** A message to be sent after the answer to its batch; `answered` = that answer was sent. */
type Follower = (answered: boolean) => void;

const STOPPING = fault("unavailable", "the service is stopping", {
  nextAction: "open another connection",
});

/** Waiting requests that are started in one turn of the event loop. */
const STARTS_PER_TURN = 1_000;

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
  readonly #memory: RequestMemoryParts;
  /** Requests in flight. */
  #underWay: Set<SocketRequest> | null = null;
  /** Requests that wait for their turn; null until one had to. */
  #queue: RequestQueue | null = null;
  /** Lets requests over the caller's rate wait; null until one was. */
  #pacer: Pacer | null = null;
  #messages = 0;
  /** Bytes reserved for requests, in flight and waiting. */
  #held = 0;
  #isFull = false;
  #starting = false;
  #over = false;

  constructor(parts: CallParts, connection: ClientConnection, authenticated: Authenticated) {
    this.#parts = parts;
    this.#connection = connection;
    this.#authenticated = authenticated;
    this.#memory = { budget: parts.rpc.budget, caller: authenticated.caller };
    this.#payment = callPaymentOf(parts.rpc.admission, authenticated.keyContext);
    this.#target = authenticated.target;
    let marks: SeenBlocks | null = null;
    const { wishes, keyContext: key } = authenticated;
    const { consistency: usual } = parts.rpc;
    this.#view = new CallerView({
      wishes,
      key,
      usual,
      marks() {
        marks ??= new SeenBlocks();
        return marks;
      },
    });
    this.#revision = parts.rpc.resolver.revision;
    this.#subscriptionMethods = new ClientSubscriptions(parts, connection);
  }

  /** The name of the chain that it was opened for. */
  get chainName(): string {
    return this.#authenticated.target.chain.chainName;
  }

  /** Serves one message. */
  serve(bytes: Buffer, binary: boolean): void {
    if (this.#over) return;
    this.#guarded(() => {
      // Clients also send JSON in binary messages. Text messages are known to be UTF-8, because
      // `ws` closes a socket that sends invalid text.
      if (binary && !isUtf8(bytes))
        this.#sendFault("null", fault("parse_error", "the binary message is not UTF-8 text"));
      else if (isJson(bytes)) this.#accept(bytes, skipSpace(bytes, 0, bytes.length));
      else this.#sendFault("null", fault("parse_error", "the message is not valid JSON"));
    });
  }

  /** Starts requests that wait; to be called when something may have made room for them. */
  resume(): void {
    const queue = this.#queue;
    // An answer may come synchronously: the loop that is already running starts the next request.
    if (queue === null || queue.size === 0 || this.#starting) return;
    this.#starting = true;
    this.#guarded(() => this.#startSome(queue));
    this.#starting = false;
    if (queue.size === 0) this.#pacer?.stop();
  }

  /** Starts as many as may be started; those that are answered at once could be very many. */
  #startSome(queue: RequestQueue): void {
    for (let n = 0; queue.first !== null && this.#mayStart(); n++) {
      if (n === STARTS_PER_TURN) return this.#parts.rpc.runtime.atTurnEnd(() => this.resume());
      const { first } = queue;
      queue.remove(first);
      this.#start(first);
    }
  }

  /** Refuses requests that wait: the service stops. */
  refuseWaiting(): void {
    this.#guarded(() => this.#clearQueue((request) => this.#endRefused(request, STOPPING)));
  }

  /** Ends all calls and subscriptions: the caller left, or was disconnected. */
  close(why: Interruption): void {
    this.#over = true;
    for (const request of this.#underWay ?? []) {
      request.cancel?.(why);
      this.#end(request);
    }
    this.#clearQueue((request) => {
      this.#end(request);
      this.#countUnread(interruptedEnd(why));
    });
    this.#subscriptionMethods.close();
  }

  /** Ends every wait. */
  #clearQueue(end: (request: SocketRequest) => void): void {
    const queue = this.#queue;
    if (queue === null) return;
    for (let next = queue.first; next !== null; next = queue.first) {
      queue.remove(next);
      end(next);
    }
    this.#pacer?.stop();
  }

  /** Accepts a message: starts its requests, or queues them behind earlier ones. */
  #accept(bytes: Buffer, start: number): void {
    if (this.#parts.activity.draining) return this.#refuse({ bytes, start }, STOPPING);
    const request = new SocketRequest(this.#memory, bytes, start, this.#messages++);
    const mustWait = (this.#queue?.size ?? 0) > 0 || !this.#mayStart();
    if (!(mustWait ? request.reserveWait() : request.takeBody(bytes.length)))
      return this.#refuse(request, NO_ROOM_FOR_REQUEST);
    this.#parts.activity.active++;
    this.#held += request.held;
    this.#watchMemory();
    if (mustWait) this.#wait(request);
    else this.#start(request);
  }

  /** Whether the limits allow one more request in flight now. */
  #mayStart(): boolean {
    return (
      (this.#underWay?.size ?? 0) < this.#parts.rpc.limits.maxSocketRequests &&
      this.#pacer?.isWaiting !== true &&
      !this.#connection.isBehind &&
      !this.#over
    );
  }

  #wait(request: SocketRequest): void {
    const { runtime } = this.#parts.rpc;
    this.#queue ??= new RequestQueue();
    this.#queue.add(request);
    request.waitsSinceMs ??= runtime.now();
    request.patienceMs = this.#deadlineMs(request);
    this.#watchWait(request, request.waitsSinceMs);
  }

  /** The deadline of a request's method; a batch and what is no request have that of a batch. */
  #deadlineMs({ bytes, start }: SocketRequest): number {
    if (bytes[start] === OPEN_ARRAY) return BATCH_DEADLINE_MS;
    const envelope = readRequest(bytes, start, bytes.length);
    if (envelope.kind === "invalid") return BATCH_DEADLINE_MS;
    const { methods, deadlineMs } = this.#parts.rpc;
    return deadlineMs(methods().of(envelope.method));
  }

  /** Refuses a waiting request at its deadline; while the socket is paced, at that of a batch. */
  #watchWait(request: SocketRequest, sinceMs: number): void {
    const { runtime, timerWheel } = this.#parts.rpc;
    const longestMs = this.#pacer?.isPacing === true ? BATCH_DEADLINE_MS : 0;
    const leftMs = sinceMs + Math.max(request.patienceMs, longestMs) - runtime.now();
    if (leftMs > 0) request.timer = timerWheel.set(leftMs, () => this.#watchWait(request, sinceMs));
    else this.#giveUp(request, runtime.now() - sinceMs);
  }

  #giveUp(request: SocketRequest, waitedMs: number): void {
    this.#queue?.remove(request);
    this.#guarded(() => this.#endRefused(request, waitedTooLong(waitedMs)));
    if (this.#queue?.size === 0) this.#pacer?.stop();
  }

  /** Has a request over the caller's rate wait for a token; false = it may not wait any longer. */
  #postpone(request: SocketRequest, token: TokenWait): boolean {
    const { rpc } = this.#parts;
    this.#pacer ??= createPacer(rpc, this.#authenticated.keyContext);
    const sinceMs = request.waitsSinceMs ?? rpc.runtime.now();
    const deadlineMs = sinceMs + BATCH_DEADLINE_MS;
    const { held } = request;
    if (this.#pacer === null || !request.reserveWait()) return false;
    this.#held += request.held - held;
    this.#watchMemory();
    const itemsLeft = (): number => this.#queue?.size ?? 0;
    if (!this.#pacer.wait(token, { deadlineMs, itemsLeft }, () => this.resume())) return false;
    request.cancel = null;
    this.#underWay?.delete(request);
    this.#wait(request);
    return true;
  }

  #start(request: SocketRequest): void {
    this.#underWay ??= new Set();
    this.#underWay.add(request);
    const target = this.#refreshed();
    if (target.kind === "fault") return this.#endRefused(request, target);
    const { bytes, start } = request;
    if (bytes[start] === OPEN_ARRAY) return this.#batch(request, target);
    const { keyContext } = this.#authenticated;
    const incoming = {
      ...this.#message(request, target),
      envelope: readRequest(bytes, start, bytes.length),
      delivery: "whole" as const,
      postpone: keyContext === null ? null : (token: TokenWait) => this.#postpone(request, token),
    };
    const cancel = runPipeline(this.#parts.rpc, incoming, (reply) => this.#replied(request, reply));
    if (!request.isOver) request.cancel = cancel;
  }

  #message(request: SocketRequest, target: Target): CallerMessage {
    return {
      bytes: request.bytes,
      target,
      payment: this.#payment,
      caller: this.#authenticated.caller,
      view: this.#view,
      requestId: this.#parts.requestId(),
      transport: "ws",
      subscriptionMethods: this.#subscriptionMethods,
      room: request,
    };
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

  /** Refuses a message with the id of its request; a batch is refused as a whole. */
  #refuse({ bytes, start }: Pick<SocketRequest, "bytes" | "start">, why: Fault): void {
    const request = readRequest(bytes, start, bytes.length);
    if (request.id !== null) this.#sendFault(request.id, why);
  }

  #endRefused(request: SocketRequest, why: Fault): void {
    this.#end(request);
    this.#refuse(request, why);
  }

  #sendFault(id: string, why: Fault): void {
    this.#countUnread(callEndOf({ kind: "fault", fault: why }));
    this.#connection.send([
      renderFault(this.#authenticated.target.legacyForms === null ? why : withErrorType(why), id),
    ]);
  }

  /** Counts a message that ended before its calls were read. */
  #countUnread(end: CallEnd): void {
    this.#parts.rpc.observer.unread(end, this.#authenticated.target.series, null);
  }

  #replied(request: SocketRequest, reply: Reply): void {
    if (this.#over) return reply.written?.(false);
    this.#view.answered(reply);
    this.#guarded(() => this.#write(request, reply));
    this.resume();
  }

  #write(request: SocketRequest, reply: Reply): void {
    this.#end(request);
    const { id, target, written } = reply;
    if (id === null) return written?.(false);
    const meta = reply.notify || target.meta === "body" ? evidenceOf(reply, this.#parts.rpc) : null;
    const isSent = this.#connection.send(renderReply(reply, target.meta === "body" ? meta : null));
    if (reply.notify && meta !== null) this.#connection.send([metaNotification(id, meta)]);
    written?.(isSent && !this.#over);
  }

  #batch(request: SocketRequest, target: Target): void {
    const { rpc } = this.#parts;
    const { bytes, start } = request;
    const plan = planBatch(rpc, bytes, start, this.#authenticated.keyContext);
    if (plan.kind === "fault") return this.#endRefused(request, plan);
    const followers: Follower[] = [];
    const heard = (reply: Reply, shown: boolean): void => this.#follow(followers, reply, shown);
    const batch = { ...plan, ...this.#message(request, target), heard };
    const cancel = runBatch(rpc, batch, (body, settle) => {
      if (this.#over) return settle(false);
      this.#guarded(() => {
        this.#end(request);
        if (body === null) settle(true);
        const isSent = body === null || this.#connection.send(body, settle);
        for (const follow of followers) follow(isSent && !this.#over);
      });
      this.resume();
    });
    if (request.isOver) return;
    request.cancel = (why) => {
      cancel(why);
      for (const follow of followers) follow(false);
    };
  }

  /** Keeps the messages that an item of a batch sends after the answer. */
  #follow(followers: Follower[], reply: Reply, shown: boolean): void {
    const { id, notify, written } = reply;
    if (notify && id !== null) {
      const meta = metaNotification(id, evidenceOf(reply, this.#parts.rpc));
      followers.push(() => this.#connection.send([meta]));
    }
    if (written !== null) followers.push((answered) => written(answered && shown));
  }

  #end(request: SocketRequest): void {
    if (request.isOver) return;
    const { activity, rpc } = this.#parts;
    this.#underWay?.delete(request);
    this.#held -= request.held;
    request.release();
    this.#watchMemory();
    activity.active--;
    activity.lastMs = rpc.runtime.now();
  }

  /** Stops reading while the requests of the socket hold as much memory as they may. */
  #watchMemory(): void {
    const isFull = this.#held >= this.#parts.rpc.limits.maxSocketBytes;
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    this.#connection.holdReading(isFull);
  }

  /** Handles a bug: logs it and fails this socket only. */
  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#parts.rpc.observer.log.error({ err: error }, "bug");
      this.#connection.close(1011, "internal error");
    }
  }
}

function waitedTooLong(waitedMs: number): Fault {
  return fault(
    "rate_limit_exceeded",
    `the request waited ${Math.round(waitedMs)} ms for others on this connection ` +
      "(limits.max_socket_requests)",
    { nextAction: "send it again, or open another connection" },
  );
}
