// One RPC request over HTTP: authenticates the caller, takes the payment that came with the
// request, runs its call or batch, and cancels it if the caller leaves. Delegates writing answers,
// counting memory and judging payments.
import { isUtf8 } from "node:buffer";
import type { Interruption } from "../../core/billing/charging.ts";
import { interruptedEnd } from "../../core/call-end.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { readRequest } from "../../core/rpc/envelope.ts";
import { OPEN_ARRAY, skipSpace } from "../../core/rpc/json.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import type { PaidPurchase, PaymentHeaders } from "../../payments/payments.ts";
import { type CallPayment, callPaymentOf, KEYLESS } from "../payment/call-payment.ts";
import { AnswerWriter } from "./answer-writer.ts";
import { addTo, type Bill } from "./answers/answer-headers.ts";
import type { Reply } from "./answers/reply.ts";
import { type Authenticated, authenticate, RequestCaller } from "./authenticate.ts";
import type { HttpExchange } from "./caller.ts";
import { CallerView, SeenBlocks } from "./caller-view.ts";
import { planBatch, type RpcBatch, runBatch } from "./calls/batch.ts";
import { runPipeline } from "./calls/pipeline.ts";
import type { CallerMessage } from "./calls/pipeline-request.ts";
import { NOT_JSON } from "./limits.ts";
import { refusalOfSession, serveSession } from "./paid/session.ts";
import type { RpcParts } from "./parts.ts";
import { RequestMemory } from "./request-memory.ts";
import type { Target } from "./target.ts";

/** One RPC request on its way from a caller to its answer. */
export class RpcRequest {
  readonly memory: RequestMemory;
  readonly #parts: RpcParts;
  readonly #exchange: HttpExchange;
  readonly #answer: AnswerWriter;
  /** Null until the target is resolved. */
  #target: Target | null = null;
  /** Null = a caller without a key. */
  #keyContext: KeyContext | null = null;
  #payment: CallPayment = KEYLESS;
  #view: CallerView = NO_VIEW;
  /** The payment for the key that came with the request, until it is taken; null = none. */
  #given: PaymentHeaders | null = null;
  /** What was bought with it; null = nothing. */
  #paid: PaidPurchase | null = null;
  /** Its body is read: its calls are counted at their ends. */
  #isServed = false;
  /** A body that waits for the caller's look-up. */
  #body: Buffer | null = null;
  /** Cancels what is under way. */
  #cancel: ((why: Interruption) => void) | null = null;

  constructor(parts: RpcParts, exchange: HttpExchange) {
    this.#parts = parts;
    this.#exchange = exchange;
    const caller = new RequestCaller(exchange, null, parts.proxies);
    this.memory = new RequestMemory({ budget: parts.budget, caller });
    this.#answer = new AnswerWriter(parts, exchange, this.memory);
  }

  /** Begins the request before its body has arrived; false = it was refused. */
  accept(): boolean {
    const { secret, payPerCall } = this.#exchange.directives;
    const takesPayment = this.#parts.rpcPaywall !== null && secret !== null && !payPerCall;
    const payment = takesPayment ? this.#exchange.payment : null;
    if (payment === null) return this.#authenticate();
    // Payments come before authentication: a repeated payment gets its first result even if the key
    // has ended.
    if (payment.kind === "payment") this.#given = payment.given;
    else this.refuse(fault("invalid_request", payment.message, { nextAction: payment.nextAction }));
    return !this.#answer.isBegun;
  }

  /** Serves the complete body. */
  serve(bytes: Buffer): void {
    if (this.#answer.isBegun) return;
    if (this.#given !== null) return this.#pay(this.#given, bytes);
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

  /** Refuses the request. `id` is the id of the call as JSON text. */
  refuse(why: Fault, id = "null"): void {
    this.memory.release();
    this.#answer.refuse(why, id);
  }

  /** Ends the request: the answer was delivered, or `why` says what interrupted it. */
  closed(why: Interruption): void {
    this.memory.release();
    if (!this.#answer.isBegun && !this.#isServed)
      this.#parts.observer.unread(
        interruptedEnd(why),
        this.#target?.series ?? null,
        this.#exchange.requestId,
      );
    this.#cancel?.(why);
    this.#cancel = null;
    this.#answer.close(why);
  }

  /** Handles a bug: logs it and fails this request only. */
  fail(error: unknown): void {
    const { requestId } = this.#exchange;
    this.#parts.observer.log.error({ request_id: requestId, err: error }, "bug");
    this.#answer.abandon();
    if (this.#answer.isBegun) this.#exchange.destroy();
    else this.refuse(fault("internal", "the service failed to serve this request"));
  }

  /** Authenticates the request; false = it was refused. */
  #authenticate(): boolean {
    if (this.#exchange.directives.compressed) this.refuse(COMPRESSED_BODY);
    else
      this.#cancel = authenticate(this.#parts, this.#exchange, (found) =>
        this.#authenticated(found),
      );
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
      (target.payPerCall ? refusalOfSession(this.#parts.payPerCall, found) : null) ??
      (target.legacyForms === null ? null : this.#parts.legacyForms.used(target.legacyForms));
    if (why !== null) return this.refuse(why);
    this.#target = target;
    this.#keyContext = keyContext;
    this.#view = this.#viewOf(found);
    this.#payment = callPaymentOf(this.#parts.admission, keyContext);
    this.memory.caller = caller;
    this.#answer.target = target;
    if (body !== null) this.serve(body);
  }

  #viewOf({ wishes, keyContext }: Authenticated): CallerView {
    const { consistency, marks } = this.#parts;
    return new CallerView({
      wishes,
      key: keyContext,
      usual: consistency,
      marks: () =>
        keyContext === null
          ? marks.ofConnection(this.#exchange.connection)
          : marks.ofKey(keyContext.keyId),
    });
  }

  /** Takes the payment for the key, then continues like a request without payment. */
  #pay(given: PaymentHeaders, body: Buffer): void {
    if (this.#exchange.directives.compressed) return this.refuse(COMPRESSED_BODY);
    this.#given = null;
    this.#parts.rpcPaywall?.take({ request: this.#exchange, body, given }).then(
      (taken) => {
        if (this.#answer.isBegun || !this.#exchange.open) return;
        if (taken.kind === "rpc_paywall_refusal") {
          this.#answer.offers = taken.headers;
          return this.refuse(taken.fault, taken.id);
        }
        this.#paid = taken;
        this.#answer.receipt = taken.headers;
        if (this.#authenticate()) this.serve(body);
      },
      (error: unknown) => this.fail(error),
    );
  }

  #serve(bytes: Buffer, target: Target): void {
    this.#isServed = true;
    if (target.payPerCall) return this.#session(bytes, target);
    const start = skipSpace(bytes, 0, bytes.length);
    if (!isUtf8(bytes)) return this.refuse(NOT_JSON);
    if (bytes[start] === OPEN_ARRAY) return this.#batch(bytes, start, target);
    const envelope = readRequest(bytes, start, bytes.length);
    if (envelope.kind === "invalid" && !envelope.isJson) return this.refuse(NOT_JSON);
    const message = this.#message(bytes, target);
    const incoming = { ...message, envelope, delivery: "streamed" as const, postpone: null };
    const cancel = runPipeline(this.#parts, incoming, (reply) => this.#replied(reply, bytes));
    if (!this.#answer.isBegun) this.#cancel = cancel;
  }

  #message(bytes: Buffer, target: Target): CallerMessage {
    return {
      bytes,
      target,
      payment: this.#payment,
      caller: this.memory.caller,
      requestId: this.#exchange.requestId,
      view: this.#view,
      fresh: this.#exchange.directives.fresh,
      transport: "http",
      subscriptionMethods: null,
      room: this.memory,
    };
  }

  #batch(bytes: Buffer, start: number, target: Target): void {
    const plan = planBatch(this.#parts, bytes, start, this.#keyContext);
    if (plan.kind === "fault") return this.refuse(plan);
    let bill: Bill | null = null;
    const batch: RpcBatch = {
      ...this.#message(bytes, target),
      ...plan,
      heard: ({ billing, written }, shown) => {
        if (billing !== null) bill = addTo(bill, billing);
        if (written !== null) this.#answer.whenWritten((whole) => written(whole && shown));
      },
    };
    const cancel = runBatch(this.#parts, batch, (body, settle) => {
      this.#cancel = null;
      this.#answer.seen = this.#view.seen(target);
      this.#answer.batch(body, bill, settle);
    });
    if (!this.#answer.isBegun) this.#cancel = cancel;
  }

  /** Serves a pay-per-call request. */
  #session(bytes: Buffer, target: Target): void {
    const { payPerCall } = this.#parts;
    if (payPerCall === null) return;
    const request = { exchange: this.#exchange, message: this.#message(bytes, target) };
    this.#cancel = serveSession({ ...this.#parts, payPerCall }, request, {
      answered: (answer, written) => {
        this.#cancel = null;
        if (written !== undefined) this.#answer.whenWritten(written);
        this.#answer.whole(answer);
      },
      failed: (error) => this.fail(error),
    });
  }

  #replied(reply: Reply, body: Buffer): void {
    const { outcome } = reply;
    this.#cancel = null;
    this.#view.answered(reply);
    this.#answer.seen = this.#view.seen(reply.target);
    this.#answer.settle = reply.settle;
    try {
      const why = outcome.kind === "fault" ? outcome.fault : null;
      if (why?.code === "balance_exhausted" && reply.id !== null)
        this.#offerToPay(reply, why, body);
      else this.#answer.reply(reply);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Refuses a call whose key has no balance left, with offers to fund the key. */
  #offerToPay(reply: Reply, why: Fault, body: Buffer): void {
    const { rpcPaywall } = this.#parts;
    if (rpcPaywall === null || this.#keyContext === null) return this.#answer.reply(reply);
    const refused = {
      request: this.#exchange,
      keyContext: this.#keyContext,
      body,
      why,
      paid: this.#paid,
    };
    rpcPaywall.exhausted(refused).then(
      ({ fault: refusal, headers }) => {
        if (this.#answer.isBegun) return;
        this.#answer.offers = headers;
        this.#answer.reply({ ...reply, outcome: { kind: "fault", fault: refusal } });
      },
      (error: unknown) => this.fail(error),
    );
  }
}

/** Of a request that is not authenticated yet. */
const NO_VIEW = new CallerView({
  wishes: { consistency: "off", seen: null },
  key: null,
  usual: () => "off",
  marks: () => new SeenBlocks(),
});
const COMPRESSED_BODY = fault("unsupported_media_type", "the body is compressed");
