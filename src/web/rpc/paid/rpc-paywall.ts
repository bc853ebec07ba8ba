// Payment at the URL of a call with a key: where its balance is used up the answer offers to fund
// the key, and the payment comes with the same call sent again. Knows keys and calls, no protocol
// of payment and no chain.
import { isUtf8 } from "node:buffer";
import { usdText } from "../../../core/billing/price.ts";
import type { ApiFault } from "../../../core/faults/api-fault.ts";
import { type Fault, type FaultCode, fault } from "../../../core/faults/rpc-fault.ts";
import { readRequest } from "../../../core/rpc/envelope.ts";
import { endOf, isJson, skipSpace } from "../../../core/rpc/json.ts";
import type { KeyContext } from "../../../hosted/keys/key-context.ts";
import type {
  Order,
  PaidPurchase,
  PaymentHeaders,
  RequestMark,
} from "../../../payments/payments.ts";
import { isStoreFailure } from "../../../store/store-failure.ts";
import { addressBehind, requestInfoBaseUrl } from "../../http/client-address.ts";
import { type GivenPayment, requestMark, withoutPayment } from "../../payment/payment-headers.ts";
import {
  type PaymentCode,
  type PaymentRefusal,
  type Paywall,
  purchaseUrl,
} from "../../payment/paywall.ts";
import {
  type Authenticated,
  type AuthenticationParts,
  authenticate,
  type RequestInfo,
} from "../authenticate.ts";
import type { HttpExchange } from "../caller.ts";

/** A call whose key has nothing left. */
export interface RefusedCall {
  readonly letter: RequestInfo;
  readonly keyContext: KeyContext;
  readonly body: Buffer;
  /** What it is refused with. */
  readonly why: Fault;
  /** The payment that came with it and is credited already; null = none did. */
  readonly paid: PaidPurchase | null;
}

/** A call that carries a payment. */
export interface PayingCall {
  readonly letter: RequestInfo;
  readonly body: Buffer;
  readonly given: PaymentHeaders;
}

/** A refusal with what is told beside it. */
interface Refusal {
  readonly kind: "rpc_paywall_refusal";
  readonly fault: Fault;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

/** One of a call that was read here only. */
export interface RpcPaywallRefusal extends Refusal {
  /**
   * Of the call, as JSON text; `null` where it has none that can be answered to, as a batch has.
   */
  readonly id: string;
}

/** Takes payments for calls with a key. */
export interface RpcPaywall {
  /** The payment that a call carries for its key; null = it carries none, or names no key. */
  paymentOf(request: Pick<HttpExchange, "url" | "credential" | "payment">): GivenPayment | null;
  /** What a call is answered whose key has nothing left. */
  exhausted(call: RefusedCall): Promise<Refusal>;
  /** Takes the payment of a call: when it has settled, the key has it. */
  take(call: PayingCall): Promise<PaidPurchase | RpcPaywallRefusal>;
}

/** A key that money is for. */
export interface PaidKey {
  readonly accountId: string;
  readonly keyId: string;
}

/** What it works with. */
export interface RpcPaywallParts extends AuthenticationParts {
  readonly paywall: Paywall;
  /** Whose a secret is or was, by its digest: also one that has ended. */
  readonly keyOf: (digest: string) => Promise<PaidKey | null>;
  /** Null = the address that callers use. */
  readonly publicUrl: string | null;
}

const SESSIONS = "/rpc/session/";

/** A toll. */
export function createRpcPaywall(parts: RpcPaywallParts): RpcPaywall {
  const { paywall, proxies } = parts;
  const addressOf = (letter: RequestInfo): string =>
    addressBehind(letter.address, letter.header("x-forwarded-for") ?? "", proxies);
  const baseUrlOf = (letter: RequestInfo): string =>
    parts.publicUrl ?? requestInfoBaseUrl(letter, proxies);

  function markOf(letter: RequestInfo, body: Buffer): RequestMark {
    const path = letter.url.split("?", 1)[0] ?? "/";
    return requestMark({
      method: "POST",
      path,
      body,
      credential: letter.credential.digest,
      baseUrl: baseUrlOf(letter),
    });
  }

  /** The smallest purchase there is, for the key of the call. */
  function orderOf(
    letter: RequestInfo,
    { accountId, keyId }: PaidKey,
    request: RequestMark,
  ): Order {
    const amountN = paywall.payments.range.minN;
    const keepsAuthorization = withoutPayment(letter.header("authorization")) !== undefined;
    const description = `${usdText(amountN)} USD for the key of this call`;
    return {
      purpose: { kind: "fund_key", accountId, keyId },
      amountN,
      request,
      description,
      keepsAuthorization,
    };
  }

  /** The order of a caller who is looked up first, or why there is none. */
  async function ordered(letter: RequestInfo, request: RequestMark): Promise<Order | Fault> {
    const it = await new Promise<Authenticated | Fault>((resolve) => {
      authenticate(parts, letter, resolve);
    });
    if (it.kind === "arrival")
      return it.keyContext === null ? NO_KEY : orderOf(letter, paidKeyOf(it.keyContext), request);
    // It was offered to a key that worked: whoever has sent the money for it has paid, and its
    // account has it.
    const ended = it.code === "key_revoked" ? await parts.keyOf(letter.credential.digest) : null;
    return ended === null ? it : orderOf(letter, ended, request);
  }

  return {
    paymentOf(request) {
      if (request.url.startsWith(SESSIONS)) return null;
      const { payment } = request;
      return payment === null || request.credential.secret === null ? null : payment;
    },
    async exhausted({ letter, keyContext, body, why, paid }) {
      const baseUrl = baseUrlOf(letter);
      if (paid !== null) return usedUp(paid, baseUrl);
      try {
        const order = orderOf(letter, paidKeyOf(keyContext), markOf(letter, body));
        const asked = await paywall.ask(order, addressOf(letter));
        if (asked.fault.code !== "payment_required") return refusalOf(asked, baseUrl);
        const nextAction = `${SIGN}, with ${usdText(order.amountN)} USD; ${OTHER_AMOUNTS}`;
        return {
          kind: "rpc_paywall_refusal",
          fault: { ...why, nextAction },
          headers: asked.headers,
        };
      } catch (error) {
        return troubleOf(error);
      }
    },
    async take({ letter, body, given }) {
      if (!isUtf8(body) || !isJson(body))
        return { ...refusalBy(fault("parse_error", "the body is not valid JSON")), id: "null" };
      const id = idOf(body);
      const request = markOf(letter, body);
      try {
        const taken = await paywall.take(given, { request, address: addressOf(letter) }, () =>
          ordered(letter, request),
        );
        if (taken.kind === "paid") return taken;
        return {
          ...(taken.kind === "fault" ? refusalBy(taken) : refusalOf(taken, baseUrlOf(letter))),
          id,
        };
      } catch (error) {
        return { ...troubleOf(error), id };
      }
    },
  };
}

function refusalBy(why: Fault): Refusal {
  return { kind: "rpc_paywall_refusal", fault: why, headers: [] };
}

function idOf(body: Buffer): string {
  return readRequest(body, skipSpace(body, 0, body.length), endOf(body)).id ?? "null";
}

const NO_KEY = fault("unauthorized", "a call without a key cannot be paid for here");

function paidKeyOf({ payer, keyId }: KeyContext): PaidKey {
  return { accountId: payer.id, keyId };
}

const SIGN =
  "sign one challenge of WWW-Authenticate or PAYMENT-REQUIRED and send the same request again " +
  "with it: it funds the key";
const OTHER_AMOUNTS = "POST /api/v1/agent/keys/{key}/fund takes other amounts";

/**
 * A payment buys once: it is not taken for the next one, and no other one is asked for while its
 * owner may think that it counts.
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

/** The same refusal as JSON-RPC tells it. */
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

function troubleOf(error: unknown): Refusal {
  if (!isStoreFailure(error)) throw error;
  return refusalBy(fault("unavailable", "payments cannot be looked up right now"));
}
