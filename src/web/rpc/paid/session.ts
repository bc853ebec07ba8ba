// Serves pay-per-call requests at /rpc/session/{strategy}/{chain}: prices the calls, holds the
// price, makes the calls through the pipeline, and charges those that the table of charges lists.
// The paywall accepts the credentials.

import { isUtf8 } from "node:buffer";
import type { Interruption } from "../../../core/billing/charging.ts";
import { nanoOf } from "../../../core/billing/payment.ts";
import { type Tariff, usdText } from "../../../core/billing/price.ts";
import { ANSWERED, type CallEnd, callEndOf, interruptedEnd } from "../../../core/call-end.ts";
import { type Fault, fault } from "../../../core/faults/rpc-fault.ts";
import { isJson } from "../../../core/rpc/json.ts";
import type { PaymentHeaders } from "../../../payments/payments.ts";
import type {
  CallBill,
  Hold,
  Managed,
  RecordedAnswer,
  SessionRefusal,
} from "../../../payments/session/sessions.ts";
import { isStoreFailure } from "../../../shared/store/store-failure.ts";
import { callerAddress } from "../../http/client-address.ts";
import { renderFault } from "../../http/render-fault.ts";
import type { Headers } from "../../http/respond.ts";
import type { CallMark, CallPaywall, CallPrice } from "../../payment/call-paywall.ts";
import { fingerprintOf } from "../../payment/payment-headers.ts";
import type { PayableRequest } from "../../payment/purchase-paywall.ts";
import { addRateLimitStatus } from "../answers/answer-headers.ts";
import type { WriteListener } from "../answers/reply.ts";
import type { Authenticated, AuthenticationParts } from "../authenticate.ts";
import type { HttpExchange } from "../caller.ts";
import type { CallerMessage } from "../calls/pipeline-request.ts";
import { plannedCalls } from "../calls/range-bounds.ts";
import { NOT_JSON } from "../limits.ts";
import {
  NO_CONTENT,
  type SessionAnswer,
  SessionCalls,
  type SessionCallsParts,
} from "./session-calls.ts";
import {
  type PricedRequest,
  type Pricing,
  pricedRequest,
  VoucherPayment,
} from "./session-price.ts";

/** The paywall and the prices of pay-per-call. */
export interface PayPerCall {
  readonly paywall: Pick<CallPaywall, "collect">;
  readonly tariff: Tariff;
}

export interface SessionServingParts
  extends SessionCallsParts,
    Pick<AuthenticationParts, "proxies"> {
  readonly payPerCall: PayPerCall;
}

/** A request with its whole body; `message` says who makes its calls, and where. */
export interface SessionRequest {
  readonly exchange: HttpExchange;
  readonly message: CallerMessage;
}

/** Called once with the answer or a bug; never after a cancel. */
export interface SessionListener {
  /** `written` is told whether the answer was written completely; absent = nobody listens. */
  answered(answer: SessionAnswer, written?: WriteListener): void;
  failed(error: unknown): void;
}

/** The refusal of a pay-per-call request before its body is read; null = none. */
export function refusalOfSession(
  payPerCall: PayPerCall | null,
  { keyContext }: Pick<Authenticated, "keyContext">,
): Fault | null {
  if (payPerCall === null)
    return fault("not_found", "calls are not paid for one by one here", {
      nextAction: "create a key with POST /api/v1/agent/keys",
    });
  const nextAction = "send the request to /rpc/session/{strategy}/{chain}, or leave `session` out";
  return keyContext === null
    ? null
    : fault("invalid_request", "a call that is paid for by itself takes no key", { nextAction });
}

/** Serves a pay-per-call request. Returns a function that cancels it. */
export function serveSession(
  parts: SessionServingParts,
  request: SessionRequest,
  listener: SessionListener,
): (why: Interruption) => void {
  const paid = new PaidRequest(parts, request, listener);
  paid.serve().catch((error: unknown) => paid.fail(error));
  return (why) => paid.cancel(why);
}

/** Status recorded for calls whose caller left before the answer. */
const CLIENT_CLOSED = 499;

class PaidRequest {
  readonly #parts: SessionServingParts;
  readonly #request: SessionRequest;
  readonly #listener: SessionListener;
  readonly #pricing: Pricing;
  #cancelled = false;
  /** It is counted, or its calls were begun: each is counted at its own end. */
  #isCounted = false;
  /** Cancels the calls under way; null = no calls are under way. */
  #cancelCalls: ((why: Interruption) => void) | null = null;

  constructor(parts: SessionServingParts, request: SessionRequest, listener: SessionListener) {
    this.#parts = parts;
    this.#request = request;
    this.#listener = listener;
    const { strategy, pin } = request.message.target;
    this.#pricing = {
      tariff: parts.payPerCall.tariff,
      methods: parts.methods(),
      strategy,
      pinned: pin !== null,
      maxBatchItems: parts.limits.maxBatchItems,
      partsOf: (envelope, method) => plannedCalls(parts, request.message, envelope, method),
    };
  }

  async serve(): Promise<void> {
    const { bytes } = this.#request.message;
    const { payment } = this.#request.exchange;
    const isEmpty = bytes.length === 0;
    if (!isEmpty && (!isUtf8(bytes) || !isJson(bytes))) return this.#refuse(NOT_JSON, "null");
    const priced = isEmpty ? null : pricedRequest(bytes, this.#pricing);
    if (priced?.kind === "refused") return this.#refuse(priced.fault, priced.id);
    if (payment?.kind === "unclear") {
      const { message, nextAction } = payment;
      return this.#refuse(fault("invalid_request", message, { nextAction }), idOf(priced));
    }
    // A request that costs nothing needs no payment, not even to be refused.
    if (priced !== null && priced.units === 0n && payment === null) return this.#call(priced, null);
    return this.#pay(priced, payment?.given ?? null);
  }

  /** Cancels the calls under way; the table of charges decides which of them are charged. */
  cancel(why: Interruption): void {
    this.#cancelled = true;
    this.#count(interruptedEnd(why));
    this.#cancelCalls?.(why);
    this.#cancelCalls = null;
  }

  fail(error: unknown): void {
    if (this.#cancelled) return;
    if (isStoreFailure(error))
      return this.#refuse(fault("unavailable", "channels cannot be looked up right now"), "null");
    // Who answers for the bug counts it.
    this.#isCounted = true;
    this.#listener.failed(error);
  }

  /**
   * Takes the payment of a request, then makes its calls. `priced` null = the request contains no
   * call.
   */
  async #pay(priced: PricedRequest | null, payment: PaymentHeaders | null): Promise<void> {
    const { paywall } = this.#parts.payPerCall;
    const price = priced === null ? null : priceToPay(priced);
    const taken = await paywall.collect(this.#payable(payment), price);
    if (this.#cancelled) return void (taken.kind === "hold" && taken.release());
    switch (taken.kind) {
      case "hold":
        return priced === null ? taken.release() : this.#call(priced, taken);
      case "recorded":
        this.#count(ANSWERED);
        return this.#listener.answered(recordedAnswer(taken));
      case "managed":
        // Its channel was opened, topped up or closed: that is no call.
        this.#isCounted = true;
        return this.#listener.answered(managedAnswer(taken));
      case "refusal":
        return this.#refused(taken, idOf(priced));
    }
  }

  #payable(payment: PaymentHeaders | null): PayableRequest<CallMark> {
    const { exchange, message } = this.#request;
    const { url } = exchange;
    return {
      payment,
      address: callerAddress(exchange, this.#parts.proxies),
      mark: {
        fingerprint: fingerprintOf({ method: "POST", url, body: message.bytes, credential: "" }),
        channelHint: exchange.header("payment-session") ?? null,
      },
    };
  }

  /**
   * Makes the calls, then charges them; `hold` null = they cost nothing. Releases the hold if a bug
   * stops them from starting.
   */
  #call(priced: PricedRequest, hold: Hold | null): void {
    this.#isCounted = true;
    const payment = new VoucherPayment(this.#pricing, priced.parts);
    const calls = new SessionCalls(this.#parts, this.#request.message, priced, payment);
    try {
      const isUnderWay = calls.make((answer) => {
        this.#cancelCalls = null;
        if (hold === null) this.#listener.answered(freeAnswer(answer, priced.cu), calls.written);
        else this.#charge(hold, calls, answer).catch((error: unknown) => this.fail(error));
      });
      if (isUnderWay) this.#cancelCalls = (why) => this.#abandon(hold, calls, why);
    } catch (error) {
      hold?.release();
      throw error;
    }
  }

  /** Cancels the calls and charges those that are charged without an answer. */
  #abandon(hold: Hold | null, calls: SessionCalls, why: Interruption): void {
    calls.cancel(why);
    const { units, cu } = calls;
    if (hold === null || units === 0n) return hold?.release();
    hold
      .settle({ units, cu, status: CLIENT_CLOSED, body: null, abandoned: true })
      .catch((error: unknown) => {
        const { requestId } = this.#request.exchange;
        this.#parts.observer.log.error({ request_id: requestId, err: error }, "bug");
      });
  }

  async #charge(hold: Hold, calls: SessionCalls, answer: SessionAnswer): Promise<void> {
    const { status, body } = answer;
    const { units, cu, priced } = calls;
    const end = { units, cu, status, body, abandoned: false };
    const settled = await hold.settle(end).catch((error: unknown) => {
      calls.written(false);
      throw error;
    });
    if (this.#cancelled || settled.kind !== "bill") calls.written(false);
    if (this.#cancelled) return;
    switch (settled.kind) {
      case "refusal":
        return this.#refused(settled, idOf(priced));
      case "recorded":
        return this.#listener.answered(recordedAnswer(settled));
      case "bill":
        return this.#listener.answered(chargedAnswer(answer, settled), calls.written);
    }
  }

  /** Counts the request as one call, unless its calls were begun. */
  #count(end: CallEnd): void {
    if (this.#isCounted) return;
    this.#isCounted = true;
    const { exchange, message } = this.#request;
    this.#parts.observer.unread(end, message.target.series, exchange.requestId);
  }

  #refused(refusal: Pick<SessionRefusal, "fault" | "headers">, id: string): void {
    this.#count(callEndOf({ kind: "fault", fault: refusal.fault }));
    this.#listener.answered(refusedAnswer(refusal, id));
  }

  #refuse(why: Fault, id: string): void {
    this.#refused({ fault: why, headers: [] }, id);
  }
}

function priceToPay({ units, tokens, items }: PricedRequest): CallPrice {
  return { units, tokens, calls: items.length };
}

function idOf(priced: PricedRequest | null): string {
  return priced?.id ?? "null";
}

const PAYMENT_REQUIRED = 402;
/** From this status on, the request was not served. */
const REFUSED = 300;

/** The answer to charged calls. */
function chargedAnswer(answer: SessionAnswer, bill: CallBill): SessionAnswer {
  return { ...answer, headers: [...answer.headers, ...billHeaders(bill, answer.status)] };
}

/** The answer to calls that cost nothing. */
function freeAnswer(answer: SessionAnswer, cu: number): SessionAnswer {
  return { ...answer, headers: [...answer.headers, "x-svc-cu", String(cu), "x-svc-usd", "0"] };
}

/** The recorded answer to a request that was already charged. */
function recordedAnswer({ status, body: text, bill }: RecordedAnswer): SessionAnswer {
  const body = status === NO_CONTENT ? null : Buffer.from(text);
  return { status, fault: null, headers: billHeaders(bill, status), body };
}

/** The answer to a credential that came without a call. */
function managedAnswer({ headers }: Managed): SessionAnswer {
  const all = [...headers, "Cache-Control", "private"];
  return { status: NO_CONTENT, fault: null, headers: all, body: null };
}

/** The answer to a refused request. `id` is the id of the call as JSON text. */
function refusedAnswer(
  { fault: why, headers }: Pick<SessionRefusal, "fault" | "headers">,
  id: string,
): SessionAnswer {
  const noStore = why.status === PAYMENT_REQUIRED ? ["Cache-Control", "no-store"] : [];
  const body = renderFault(why, id);
  return { status: why.status, fault: why, headers: [...headers, ...noStore], body };
}

function billHeaders(
  { cu, chargedUnits, leftUnits, rateLimitStatus, headers: receipt }: CallBill,
  status: number,
): Headers {
  const headers = ["x-svc-access", "premium", "x-svc-cu", String(cu)];
  headers.push("x-svc-usd", usdText(nanoOf(chargedUnits)));
  headers.push("x-svc-balance-usd", usdText(nanoOf(leftUnits)));
  addRateLimitStatus(headers, rateLimitStatus);
  // A client would take a receipt as proof that its call was served.
  if (status < REFUSED) headers.push(...receipt);
  headers.push("Cache-Control", "private");
  return headers;
}
