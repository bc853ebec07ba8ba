// Payment at the URL of a call with a key: once the balance is used up, the refusal offers to fund
// the key, and the same call sent again carries the payment. Knows keys and calls, no payment
// protocol and no chain.
import { isUtf8 } from "node:buffer";
import { usdText } from "../../../core/billing/price.ts";
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
import { callerAddress, requestInfoBaseUrl } from "../../http/client-address.ts";
import { requestMark, withoutPayment } from "../../payment/payment-headers.ts";
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

  /** Refuses a call whose key has no balance left, with offers to fund the key. */
  exhausted(call: RefusedCall): Promise<Refusal> {
    return this.#exhausted(call).catch(storeRefusalOf);
  }

  /**
   * Takes the payment of a call; resolves once the money is credited to the key, or with a refusal.
   */
  async take(call: PayingCall): Promise<PaidPurchase | RpcPaywallRefusal> {
    const { body } = call;
    if (!isUtf8(body) || !isJson(body)) return { ...refusalBy(NOT_JSON), id: "null" };
    const taken = await this.#take(call).catch(storeRefusalOf);
    return taken.kind === "paid" ? taken : { ...taken, id: idOf(body) };
  }

  async #exhausted({ request, keyContext, body, why, paid }: RefusedCall): Promise<Refusal> {
    const payable = this.#payable(request, body, null);
    const order = this.#orderOf(request, paidKeyOf(keyContext), payable.mark);
    const collected =
      paid ?? (await this.#parts.paywall.collect<never>(payable, async () => order));
    if (collected.kind === "paid") return this.#usedUp(request, collected);
    if (collected.fault.code !== "payment_required") return this.#refusalOf(request, collected);
    const nextAction = `${SIGN}, with ${usdText(order.amountN)} USD; ${OTHER_AMOUNTS}`;
    return { ...refusalBy({ ...why, nextAction }), headers: collected.headers };
  }

  async #take({ request, body, given }: PayingCall): Promise<PaidPurchase | Refusal> {
    const payable = this.#payable(request, body, given);
    const taken = await this.#parts.paywall.collect(payable, () =>
      this.#orderOfCaller(request, payable.mark),
    );
    switch (taken.kind) {
      case "paid":
        return taken;
      case "fault":
        return refusalBy(taken);
      case "payment_refusal":
        return this.#refusalOf(request, taken);
    }
  }

  #payable(
    request: RequestInfo,
    body: Buffer,
    payment: PaymentHeaders | null,
  ): PayableRequest<RequestMark> {
    const { url, directives } = request;
    const baseUrl = this.#baseUrlOf(request);
    return {
      payment,
      address: callerAddress(request, this.#parts.proxies),
      mark: requestMark({ method: "POST", url, body, credential: directives.digest, baseUrl }),
    };
  }

  #baseUrlOf(request: RequestInfo): string {
    return this.#parts.publicUrl ?? requestInfoBaseUrl(request, this.#parts.proxies);
  }

  /** The smallest purchase on sale, for the key of the call. */
  #orderOf(request: RequestInfo, { accountId, keyId }: PaidKey, mark: RequestMark): Order {
    const amountN = this.#parts.paywall.payments.range.minN;
    return {
      purpose: { kind: "fund_key", accountId, keyId },
      amountN,
      request: mark,
      description: `${usdText(amountN)} USD for the key of this call`,
      keepsAuthorization: withoutPayment(request.header("authorization")) !== undefined,
    };
  }

  /** The order of an authenticated caller, or why there is none. */
  async #orderOfCaller(request: RequestInfo, mark: RequestMark): Promise<Order | Fault> {
    const found = await new Promise<Authenticated | Fault>((resolve) => {
      authenticate(this.#parts, request, resolve);
    });
    if (found.kind === "authenticated")
      return found.keyContext === null
        ? NO_KEY
        : this.#orderOf(request, paidKeyOf(found.keyContext), mark);
    if (found.code !== "key_revoked") return found;
    // The offer was made to a key that worked then: its account gets the money even if the key has
    // ended.
    const ended = await this.#parts.keyOf(request.directives.digest);
    return ended === null ? found : this.#orderOf(request, ended, mark);
  }

  /**
   * The refusal of a repeated payment: it was already credited, and paying again is not the remedy.
   */
  #usedUp(request: RequestInfo, { purchase }: PaidPurchase): Refusal {
    const nextAction = "send the request without this payment for a fresh challenge";
    const details = this.#purchaseAt(request, purchase.id);
    const message =
      "this payment is credited and used up, and nothing is left to pay for this call";
    return refusalBy(fault("payment_conflict", message, { nextAction, details }));
  }

  /** The same refusal as a JSON-RPC fault. */
  #refusalOf(request: RequestInfo, refusal: PaymentRefusal): Refusal {
    const { fault: why, headers, purchaseId } = refusal;
    const { message, nextAction, retryAfterMs } = why;
    const details = purchaseId === null ? {} : this.#purchaseAt(request, purchaseId);
    const after = retryAfterMs === null ? {} : { retryAfterMs };
    const shown = fault(RPC_CODES[why.code], message, { nextAction, details, ...after });
    return { ...refusalBy(shown), headers };
  }

  #purchaseAt(request: RequestInfo, id: string) {
    return { purchase_id: id, status_url: purchaseUrl(this.#baseUrlOf(request), id) };
  }
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
