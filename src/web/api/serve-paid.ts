// Serves one request of an operation that is paid for. A payment that was seen before is looked up
// first: repeating it returns its first result, even if key, token or range have changed meanwhile.
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import type { Order, PaymentHeaders, RequestMark } from "../../payments/payments.ts";
import type { ApiCaller } from "../contract/operation.ts";
import { paymentOf, requestMark, withoutPayment } from "../payment/payment-headers.ts";
import type { Paywall } from "../payment/paywall.ts";
import type {
  AnyCall,
  AnyInput,
  AnyPaidHandler,
  AnyResult,
  OperationRequest,
} from "./operation.ts";

/** What paid operations are served with. */
export interface PaidServingParts {
  /** Null = payments are not taken. */
  readonly paywall: Paywall | null;
  /**
   * Who sent a request. `paid` = it carries a payment for an offer that was made to it: a key that
   * has ended since will do.
   */
  readonly callerOf: (asked: OperationRequest, paid: boolean) => Promise<ApiCaller | ApiFault>;
  readonly inputOf: (asked: OperationRequest) => AnyInput | ApiFault;
}

/** One request with who serves it. */
interface Sale {
  readonly asked: OperationRequest;
  readonly handler: AnyPaidHandler;
}

const CLOSED_RETRY_MS = 3_600_000;

/** Serves requests of operations that are paid for; throws where the store does. */
export function createPaidServing({
  paywall,
  callerOf,
  inputOf,
}: PaidServingParts): (asked: OperationRequest, handler: AnyPaidHandler) => Promise<AnyResult> {
  async function callOf(asked: OperationRequest, paid: boolean): Promise<AnyCall | ApiFault> {
    const caller = await callerOf(asked, paid);
    if (caller.kind === "api_fault") return caller;
    const input = inputOf(asked);
    return input.kind === "api_fault" ? input : { ...input, caller };
  }

  async function withoutPaying(sale: Sale): Promise<AnyResult> {
    const { asked, handler } = sale;
    const call = await callOf(asked, false);
    if (call.kind === "api_fault") return call;
    if (handler.free?.includes(call.body) === true) return handler.free.serve(call);
    if (paywall === null) return closed(handler);
    const order = await orderOf(call, sale);
    return "kind" in order ? order : paywall.ask(order, asked.address);
  }

  async function paying(sale: Sale, given: PaymentHeaders): Promise<AnyResult> {
    const { asked, handler } = sale;
    const input = inputOf(asked);
    if (input.kind === "api_fault") return input;
    if (handler.free?.includes(input.body) === true)
      return apiFault("invalid_request", "this request is not paid for, and carries a payment", {
        nextAction: "leave the payment out",
      });
    if (paywall === null) return closed(handler);
    const taken = await paywall.take(
      given,
      { request: markOf(asked), address: asked.address },
      async () => {
        const call = await callOf(asked, true);
        return call.kind === "api_fault" ? call : orderOf(call, sale);
      },
    );
    if (taken.kind !== "paid") return taken;
    const answer = await handler.answer(taken, input);
    return answer.kind === "answer" ? { ...answer, receipt: taken.headers } : answer;
  }

  return async (asked, handler) => {
    const payment = paymentOf(asked.request.headersDistinct);
    if (payment === null) return withoutPaying({ asked, handler });
    if (payment.kind === "payment") return paying({ asked, handler }, payment.given);
    return apiFault("invalid_request", payment.message, { nextAction: payment.nextAction });
  };
}

function closed({ instead }: AnyPaidHandler): ApiFault {
  return apiFault("unavailable", "payments are not taken here", {
    nextAction: instead,
    retryAfterMs: CLOSED_RETRY_MS,
  });
}

async function orderOf(call: AnyCall, { asked, handler }: Sale): Promise<Order | ApiFault> {
  const terms = await handler.order(call);
  const keepsAuthorization = withoutPayment(asked.request.headers.authorization) !== undefined;
  return "kind" in terms ? terms : { ...terms, request: markOf(asked), keepsAuthorization };
}

function markOf({ request, bytes, baseUrl }: OperationRequest): RequestMark {
  const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
  return requestMark({ method: request.method ?? "", path, body: bytes, credential: "", baseUrl });
}
