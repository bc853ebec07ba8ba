// One RPC request over HTTP: finds its caller, takes the payment that came with it, has its call or
// batch served, and ends what is under way when its caller leaves. How an answer is written, how
// memory is counted and what a payment is worth is left to others.
import { isUtf8 } from "node:buffer";
import type { Interruption } from "../../core/billing/charging.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { endOf, isJson, OPEN_ARRAY, skipSpace } from "../../core/rpc/json.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import { FREE_BYTES } from "../../upstream/transport.ts";
import { type CallPayment, callPaymentOf, KEYLESS } from "../payment/call-payment.ts";
import { AnswerWriter } from "./answer-writer.ts";
import { type Authenticated, authenticate } from "./authenticate.ts";
import { planBatch, type RpcBatch, runBatch } from "./batch.ts";
import { addTo, type Bill } from "./billing-headers.ts";
import { type HttpExchange, isPlain } from "./caller.ts";
import { KeyPurchase } from "./paid/key-purchase.ts";
import { refusalOfSession, serveSession } from "./paid/session.ts";
import type { SessionAnswer } from "./paid/session-answer.ts";
import type { RpcParts } from "./parts.ts";
import { runPipeline } from "./pipeline.ts";
import type { PipelineRequest } from "./pipeline-request.ts";
import type { Reply } from "./reply.ts";
import { RequestMemory } from "./request-memory.ts";
import type { Target } from "./target.ts";
import type { WriteListener } from "./write-listeners.ts";

/** One RPC request on its way from a caller to its answer. */
export class RpcRequest {
  readonly memory: RequestMemory;
  readonly #parts: RpcParts;
  readonly #exchange: HttpExchange;
  readonly #answer: AnswerWriter;
  /** Null until it is known where the request is bound for. */
  #target: Target | null = null;
  /** Null = a caller without a key. */
  #keyContext: KeyContext | null = null;
  #payment: CallPayment = KEYLESS;
  /** Nobody, until the request is authenticated. */
  #identity: CallerIdentity = UNKNOWN;
  /** The payment for its key that came with the request; null = none did. */
  #purchase: KeyPurchase | null = null;
  /** A body that waits until its caller has been looked up. */
  #body: Buffer | null = null;
  /** Ends what is under way. */
  #cancel: ((why: Interruption) => void) | null = null;

  constructor(parts: RpcParts, exchange: HttpExchange) {
    this.#parts = parts;
    this.#exchange = exchange;
    this.memory = new RequestMemory(parts, exchange);
    this.#answer = new AnswerWriter(parts, exchange, this.memory);
  }

  /** Begins the request, whose body may have yet to come; false = it has been refused. */
  accept(): boolean {
    const { rpcPaywall } = this.#parts;
    const payment = rpcPaywall === null ? null : rpcPaywall.paymentOf(this.#exchange);
    if (payment === null || rpcPaywall === null) return this.#authenticate();
    // A payment comes before authentication: a repeated one gets its first result even if the key
    // is gone by now.
    if (payment.kind === "payment")
      this.#purchase = new KeyPurchase(rpcPaywall, this.#exchange, payment.given);
    else this.refuse(fault("invalid_request", payment.message, { nextAction: payment.nextAction }));
    return !this.#answer.isBegun;
  }

  /** Serves a complete body. */
  serve(bytes: Buffer): void {
    if (this.#answer.isBegun) return;
    if (this.#purchase?.isTaken === false) return this.#pay(this.#purchase, bytes);
    if (this.#target === null) {
      this.#body = bytes;
      return;
    }
    try {
      this.#serve(bytes, this.#target);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Refuses the request; `id`: of the call, as JSON text. */
  refuse(why: Fault, id = "null"): void {
    this.memory.release();
    this.#answer.refuse(why, id);
  }

  /** Its caller has the answer, or else `why` tells how the request ended. */
  closed(why: Interruption): void {
    this.memory.release();
    this.#cancel?.(why);
    this.#cancel = null;
    this.#answer.close(why);
  }

  /** A throw is a bug: it is logged and costs this request, nothing else. */
  fail(error: unknown): void {
    const { requestId } = this.#exchange;
    this.#parts.observer.log.error({ request_id: requestId, err: error }, "bug");
    this.#answer.abandon();
    if (this.#answer.isBegun) this.#exchange.destroy();
    else this.refuse(fault("internal", "the service failed to serve this request"));
  }

  /** Finds out who calls, and where to; false = the request has been refused. */
  #authenticate(): boolean {
    if (isPlain(this.#exchange))
      this.#cancel = authenticate(this.#parts, this.#exchange, (found) =>
        this.#authenticated(found),
      );
    else this.refuse(COMPRESSED_BODY);
    return !this.#answer.isBegun;
  }

  #authenticated(found: Authenticated | Fault): void {
    this.#cancel = null;
    const body = this.#body;
    this.#body = null;
    if (this.#answer.isBegun) return;
    if (found.kind === "fault") return this.refuse(found);
    const { target, keyContext, caller } = found;
    const why =
      refusalOfSession(this.#parts.payPerCall, found) ??
      (target.old === null ? null : this.#parts.legacyForms.used(target.old));
    if (why !== null) return this.refuse(why);
    this.#target = target;
    this.#keyContext = keyContext;
    this.#payment = callPaymentOf(this.#parts.admission, keyContext);
    this.#identity = caller;
    this.memory.countFor(caller);
    this.#answer.bindTo(target);
    if (body !== null) this.serve(body);
  }

  /** Takes the payment for its key, then goes on as without one. */
  #pay(purchase: KeyPurchase, body: Buffer): void {
    if (!isPlain(this.#exchange)) return this.refuse(COMPRESSED_BODY);
    purchase.take(body).then(
      (taken) => {
        if (this.#answer.isBegun || !this.#exchange.open) return;
        if (taken.kind === "rpc_paywall_refusal") {
          this.#answer.addOffers(taken.headers);
          return this.refuse(taken.fault, taken.id);
        }
        this.#answer.addReceipt(taken.headers);
        if (this.#authenticate()) this.serve(body);
      },
      (error: unknown) => this.fail(error),
    );
  }

  #serve(bytes: Buffer, target: Target): void {
    if (target.payPerCall) return this.#session(bytes, target);
    if (!isUtf8(bytes) || !isJson(bytes))
      return this.refuse(fault("parse_error", "the body is not valid JSON"));
    const start = skipSpace(bytes, 0, bytes.length);
    if (bytes[start] === OPEN_ARRAY) return this.#batch(bytes, start, target);
    const incoming: PipelineRequest = {
      bytes,
      span: { start, end: endOf(bytes) },
      target: target,
      payment: this.#payment,
      caller: this.#identity,
      requestId: this.#exchange.requestId,
      mayStream: true,
      settlesLater: false,
      transport: "http",
      subscriptionMethods: null,
      postpone: null,
      room: this.memory,
      freeBytes: FREE_BYTES,
    };
    const cancel = runPipeline(this.#parts, incoming, (reply) => this.#replied(reply, bytes));
    if (!this.#answer.isBegun) this.#cancel = cancel;
  }

  #batch(bytes: Buffer, start: number, target: Target): void {
    const plan = planBatch(this.#parts, bytes, start, this.#keyContext);
    if (plan.kind === "fault") return this.refuse(plan);
    let bill: Bill | null = null;
    const batch: RpcBatch = {
      ...plan,
      bytes,
      target: target,
      payment: this.#payment,
      caller: this.#identity,
      requestId: this.#exchange.requestId,
      room: this.memory,
      transport: "http",
      subscriptionMethods: null,
      heard: ({ billing, written }, shown) => {
        if (billing !== null) bill = addTo(bill, billing);
        if (written !== null) this.#answer.whenWritten((whole) => written(whole && shown));
      },
    };
    const cancel = runBatch(this.#parts, batch, (body, settle) => {
      this.#cancel = null;
      this.#answer.batch(body, bill, settle);
    });
    if (!this.#answer.isBegun) this.#cancel = cancel;
  }

  /** Serves calls that are paid for with a voucher. */
  #session(bytes: Buffer, target: Target): void {
    const { payPerCall } = this.#parts;
    if (payPerCall === null) return;
    const request = {
      caller: this.#exchange,
      identity: this.#identity,
      bytes,
      target: target,
      room: this.memory,
      whenWritten: (listener: WriteListener) => this.#answer.whenWritten(listener),
    };
    this.#cancel = serveSession({ ...this.#parts, payPerCall }, request, {
      answered: (answer: SessionAnswer) => {
        this.#cancel = null;
        this.#answer.whole(answer);
      },
      failed: (error: unknown) => this.fail(error),
    });
  }

  #replied(reply: Reply, body: Buffer): void {
    const { outcome } = reply;
    this.#cancel = null;
    this.#answer.settleWith(reply.settle);
    try {
      const why = outcome.kind === "fault" ? outcome.fault : null;
      if (why?.code === "balance_exhausted" && reply.id !== null)
        this.#offerToPay(reply, why, body);
      else this.#answer.reply(reply);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Nothing is left to pay for the call: refuses it with offers to fund its key. */
  #offerToPay(reply: Reply, why: Fault, body: Buffer): void {
    const { rpcPaywall } = this.#parts;
    if (rpcPaywall === null || this.#keyContext === null) return this.#answer.reply(reply);
    const paid = this.#purchase?.paid ?? null;
    const refused = { request: this.#exchange, keyContext: this.#keyContext, body, why, paid };
    rpcPaywall.exhausted(refused).then(
      ({ fault: refusal, headers }) => {
        if (this.#answer.isBegun) return;
        this.#answer.addOffers(headers);
        this.#answer.reply({ ...reply, outcome: { kind: "fault", fault: refusal } });
      },
      (error: unknown) => this.fail(error),
    );
  }
}

const UNKNOWN: CallerIdentity = { key: "unknown" };
const COMPRESSED_BODY = fault("unsupported_media_type", "the body is compressed");
