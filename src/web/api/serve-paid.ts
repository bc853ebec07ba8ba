// Serves one request of a paid operation. A payment that was recorded before is looked up first, so
// that its repetition returns the first result even if key, token or price range have changed
// since.
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import type { Order, PaymentHeaders, RequestMark } from "../../payments/payments.ts";
import type { ApiCaller } from "../contract/operation.ts";
import { paymentOf, requestMark, withoutPayment } from "../payment/payment-headers.ts";
import type { PurchasePaywall } from "../payment/purchase-paywall.ts";
import type {
  AnyCall,
  AnyInput,
  AnyPaidHandler,
  AnyResult,
  OperationRequest,
} from "./operation.ts";

export interface PaidServingParts {
  /** Null = payments are disabled. */
  readonly paywall: PurchasePaywall | null;
  /**
   * Authenticates the caller. `paid` = the request carries a payment for an offer made to it, so a
   * key that has ended since is accepted.
   */
  readonly callerOf: (asked: OperationRequest, paid: boolean) => Promise<ApiCaller | ApiFault>;
  readonly inputOf: (asked: OperationRequest) => AnyInput | ApiFault;
}

/** One request with its handler. */
interface Sale {
  readonly asked: OperationRequest;
  readonly handler: AnyPaidHandler;
  /** Null = the request carries no payment. */
  readonly payment: PaymentHeaders | null;
}

const CLOSED_RETRY_MS = 3_600_000;

/** Creates the function that serves paid operations; it throws if the store fails. */
export function createPaidServing(
  parts: PaidServingParts,
): (asked: OperationRequest, handler: AnyPaidHandler) => Promise<AnyResult> {
  return async (asked, handler) => {
    const found = paymentOf(asked.request.headersDistinct);
    if (found?.kind === "unclear")
      return apiFault("invalid_request", found.message, { nextAction: found.nextAction });
    return serve(parts, { asked, handler, payment: found?.given ?? null });
  };
}

async function serve(parts: PaidServingParts, sale: Sale): Promise<AnyResult> {
  const { asked, handler, payment } = sale;
  // With a payment, the caller is authenticated only if the payment is new.
  const input = payment === null ? await callOf(parts, sale) : parts.inputOf(asked);
  if (input.kind === "api_fault") return input;
  if (handler.free?.includes(input.body) === true)
    return isCall(input) ? handler.free.serve(input) : NOT_PAID_FOR;
  if (parts.paywall === null) return closed(handler);
  const paid = await parts.paywall.collect(
    { payment, address: asked.address, mark: markOf(asked) },
    async () => {
      const call = isCall(input) ? input : await callOf(parts, sale);
      return call.kind === "api_fault" ? call : orderOf(call, sale);
    },
  );
  if (paid.kind !== "paid") return paid;
  const answer = await handler.answer(paid, input);
  return answer.kind === "answer" ? { ...answer, receipt: paid.headers } : answer;
}

const NOT_PAID_FOR = apiFault(
  "invalid_request",
  "this request is not paid for, and carries a payment",
  { nextAction: "leave the payment out" },
);

function isCall(input: AnyInput | AnyCall): input is AnyCall {
  return "caller" in input;
}

async function callOf(
  { callerOf, inputOf }: PaidServingParts,
  { asked, payment }: Sale,
): Promise<AnyCall | ApiFault> {
  const caller = await callerOf(asked, payment !== null);
  if (caller.kind === "api_fault") return caller;
  const input = inputOf(asked);
  return input.kind === "api_fault" ? input : { ...input, caller };
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
  const { method = "", url = "/" } = request;
  return requestMark({ method, url, body: bytes, credential: "", baseUrl });
}
