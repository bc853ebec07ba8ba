// Payment at the URL of a call with a key: once the balance is used up, the refusal offers to fund
// the key, and the same call sent again carries the payment. Knows keys and calls, no payment
// protocol and no chain.
import { isUtf8 } from "node:buffer";
import { usdText } from "../../../core/billing/price.ts";
import type { ApiFault } from "../../../core/faults/api-fault.ts";
import { type Fault, type FaultCode, fault } from "../../../core/faults/rpc-fault.ts";
import { readRequest } from "../../../core/rpc/envelope.ts";
import { isJson, skipSpace } from "../../../core/rpc/json.ts";
import type { KeyContext } from "../../../hosted/keys/key-context.ts";
import type {
  Order,
  PaidPurchase,
  PaymentHeaders,
  RequestMark,
} from "../../../payments/payments.ts";
import { isStoreFailure } from "../../../shared/store/store-failure.ts";
import { addressBehind, requestInfoBaseUrl } from "../../http/client-address.ts";
import { type GivenPayment, requestMark, withoutPayment } from "../../payment/payment-headers.ts";
import {
  type PayableRequest,
  type PaymentCode,
  type PaymentRefusal,
  type PurchasePaywall,
  purchaseUrl,
} from "../../payment/purchase-paywall.ts";
import {
  type Authenticated,
  type AuthenticationParts,
  authenticate,
  type RequestInfo,
} from "../authenticate.ts";
import type { HttpExchange } from "../caller.ts";
import { NOT_JSON } from "../limits.ts";

/** A call whose key has no balance left. */
export interface RefusedCall {
  readonly request: RequestInfo;
  readonly keyContext: KeyContext;
  readonly body: Buffer;
  /** The refusal without payment offers. */
  readonly why: Fault;
  /** The payment that came with the call and was already credited; null = none. */
  readonly paid: PaidPurchase | null;
}

/** A call that carries a payment. */
export interface PayingCall {
  readonly request: RequestInfo;
  readonly body: Buffer;
  readonly given: PaymentHeaders;
}

/** A refusal with its headers. */
interface Refusal {
  readonly kind: "rpc_paywall_refusal";
  readonly fault: Fault;
  /** Header names and values in turn. */
  readonly headers: readonly string[];
}

/** The refusal of a call that brought a payment. */
export interface RpcPaywallRefusal extends Refusal {
  /** Id of the call as JSON text; `null` for a batch. */
  readonly id: string;
}

/** The key that a payment funds. */
export interface PaidKey {
  readonly accountId: string;
  readonly keyId: string;
}

export interface RpcPaywallParts extends AuthenticationParts {
  readonly paywall: PurchasePaywall;
  /** Finds a key by the digest of its secret, including a key that has ended. */
  readonly keyOf: (digest: string) => Promise<PaidKey | null>;
  /** Null = the base URL of the request. */
  readonly publicUrl: string | null;
}

/** Takes payments at the URLs of calls with a key. */
export class RpcPaywall {
  readonly #parts: RpcPaywallParts;

  constructor(parts: RpcPaywallParts) {
    this.#parts = parts;
  }

  /** The payment in a request for its key; null = the request carries none, or names no key. */
  paymentOf({
    payment,
    directives,
  }: Pick<HttpExchange, "directives" | "payment">): GivenPayment | null {
    return directives.payPerCall || directives.secret === null ? null : payment;
  }

  /** Refuses a call whose key has no balance left, with offers to fund the key. */
  exhausted(call: RefusedCall): Promise<Refusal> {
    return exhausted(this.#parts, call).catch(storeRefusalOf);
  }

  /**
   * Takes the payment of a call; resolves once the money is credited to the key, or with a refusal.
   */
  async take(call: PayingCall): Promise<PaidPurchase | RpcPaywallRefusal> {
    const { body } = call;
    if (!isUtf8(body) || !isJson(body)) return { ...refusalBy(NOT_JSON), id: "null" };
    const taken = await take(this.#parts, call).catch(storeRefusalOf);
    return taken.kind === "paid" ? taken : { ...taken, id: idOf(body) };
  }
}

async function exhausted(
  parts: RpcPaywallParts,
  { request, keyContext, body, why, paid }: RefusedCall,
): Promise<Refusal> {
  const payable = payableRequest(parts, { request, body, payment: null });
  const order = orderOf(parts, { request, key: paidKeyOf(keyContext), mark: payable.mark });
  const collected = paid ?? (await parts.paywall.collect<never>(payable, async () => order));
  const baseUrl = baseUrlOf(parts, request);
  if (collected.kind === "paid") return usedUp(collected, baseUrl);
  if (collected.fault.code !== "payment_required") return refusalOf(collected, baseUrl);
  const nextAction = `${SIGN}, with ${usdText(order.amountN)} USD; ${OTHER_AMOUNTS}`;
  return {
    kind: "rpc_paywall_refusal",
    fault: { ...why, nextAction },
    headers: collected.headers,
  };
}

async function take(
  parts: RpcPaywallParts,
  { request, body, given }: PayingCall,
): Promise<PaidPurchase | Refusal> {
  const payable = payableRequest(parts, { request, body, payment: given });
  const taken = await parts.paywall.collect(payable, () =>
    orderOfCaller(parts, request, payable.mark),
  );
  switch (taken.kind) {
    case "paid":
      return taken;
    case "fault":
      return refusalBy(taken);
    case "payment_refusal":
      return refusalOf(taken, baseUrlOf(parts, request));
  }
}

/** A call as a payable request. */
function payableRequest(
  parts: RpcPaywallParts,
  {
    request,
    body,
    payment,
  }: {
    readonly request: RequestInfo;
    readonly body: Buffer;
    readonly payment: PaymentHeaders | null;
  },
): PayableRequest<RequestMark> {
  const forwardedFor = request.header("x-forwarded-for") ?? "";
  return {
    payment,
    address: addressBehind(request.address, forwardedFor, parts.proxies),
    mark: requestMark({
      method: "POST",
      url: request.url,
      body,
      credential: request.directives.digest,
      baseUrl: baseUrlOf(parts, request),
    }),
  };
}

function baseUrlOf({ publicUrl, proxies }: RpcPaywallParts, request: RequestInfo): string {
  return publicUrl ?? requestInfoBaseUrl(request, proxies);
}

/** The smallest purchase on sale, for the key of the call. */
function orderOf(
  { paywall }: RpcPaywallParts,
  {
    request,
    key: { accountId, keyId },
    mark,
  }: { readonly request: RequestInfo; readonly key: PaidKey; readonly mark: RequestMark },
): Order {
  const amountN = paywall.payments.range.minN;
  return {
    purpose: { kind: "fund_key", accountId, keyId },
    amountN,
    request: mark,
    description: `${usdText(amountN)} USD for the key of this call`,
    keepsAuthorization: withoutPayment(request.header("authorization")) !== undefined,
  };
}

/** The order of an authenticated caller, or why there is none. */
async function orderOfCaller(
  parts: RpcPaywallParts,
  request: RequestInfo,
  mark: RequestMark,
): Promise<Order | Fault> {
  const found = await new Promise<Authenticated | Fault>((resolve) => {
    authenticate(parts, request, resolve);
  });
  if (found.kind === "authenticated")
    return found.keyContext === null
      ? NO_KEY
      : orderOf(parts, { request, key: paidKeyOf(found.keyContext), mark });
  // The offer was made to a key that worked then: its account gets the money even if the key has
  // ended.
  const ended = found.code === "key_revoked" ? await parts.keyOf(request.directives.digest) : null;
  return ended === null ? found : orderOf(parts, { request, key: ended, mark });
}

function refusalBy(why: Fault): Refusal {
  return { kind: "rpc_paywall_refusal", fault: why, headers: [] };
}

function idOf(body: Buffer): string {
  return readRequest(body, skipSpace(body, 0, body.length), body.length).id ?? "null";
}

const NO_KEY = fault("unauthorized", "a call without a key cannot be paid for here");

function paidKeyOf({ account, keyId }: KeyContext): PaidKey {
  return { accountId: account.id, keyId };
}

const SIGN =
  "sign one challenge of WWW-Authenticate or PAYMENT-REQUIRED and send the same request again " +
  "with it: it funds the key";
const OTHER_AMOUNTS = "POST /api/v1/agent/keys/{key}/fund takes other amounts";

/**
 * The refusal of a repeated payment: it was already credited, and paying again is not the remedy.
 */
function usedUp({ purchase }: PaidPurchase, baseUrl: string): Refusal {
  const nextAction = "send the request without this payment for a fresh challenge";
  const details = { purchase_id: purchase.id, status_url: purchaseUrl(baseUrl, purchase.id) };
  const why = fault(
    "payment_conflict",
    "this payment is credited and used up, and nothing is left to pay for this call",
    { nextAction, details },
  );
  return refusalBy(why);
}

function refusalOf({ fault: why, headers, purchaseId }: PaymentRefusal, baseUrl: string): Refusal {
  const details =
    purchaseId === null
      ? {}
      : { purchase_id: purchaseId, status_url: purchaseUrl(baseUrl, purchaseId) };
  return { kind: "rpc_paywall_refusal", fault: rpcFaultOf(why, details), headers };
}

/** The same refusal as a JSON-RPC fault. */
function rpcFaultOf(
  { code, message, nextAction, retryAfterMs }: ApiFault<PaymentCode>,
  details: Readonly<Record<string, unknown>>,
): Fault {
  return fault(RPC_CODES[code], message, {
    nextAction,
    details,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
  });
}

const RPC_CODES: Readonly<Record<PaymentCode, FaultCode>> = {
  payment_required: "balance_exhausted",
  payment_invalid: "payment_invalid",
  payment_conflict: "payment_conflict",
  payment_failed: "payment_failed",
  payment_pending: "payment_pending",
  beneficiary_conflict: "beneficiary_conflict",
  rate_limited: "rate_limit_exceeded",
  unavailable: "unavailable",
};

function storeRefusalOf(error: unknown): Refusal {
  if (!isStoreFailure(error)) throw error;
  return refusalBy(fault("unavailable", "payments cannot be looked up right now"));
}

/** The payment for the key of one request. */
export class KeyPurchase {
  readonly #paywall: RpcPaywall;
  readonly #request: RequestInfo;
  readonly #given: PaymentHeaders;
  #isTaken = false;
  #paid: PaidPurchase | null = null;

  constructor(paywall: RpcPaywall, request: RequestInfo, given: PaymentHeaders) {
    this.#paywall = paywall;
    this.#request = request;
    this.#given = given;
  }

  /** False until `take` was called. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  /** The purchase; null = not taken, or not credited. */
  get paid(): PaidPurchase | null {
    return this.#paid;
  }

  /**
   * Takes the payment; resolves once the money is credited to the key, or with a refusal. Rejects
   * only for a bug.
   */
  async take(body: Buffer): Promise<PaidPurchase | RpcPaywallRefusal> {
    this.#isTaken = true;
    const taken = await this.#paywall.take({ request: this.#request, body, given: this.#given });
    if (taken.kind === "paid") this.#paid = taken;
    return taken;
  }
}
