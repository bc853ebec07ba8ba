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
  readonly request: RequestInfo;
  readonly keyContext: KeyContext;
  readonly body: Buffer;
  /** What it is refused with. */
  readonly why: Fault;
  /** The payment that came with it and is credited already; null = none did. */
  readonly paid: PaidPurchase | null;
}

/** A call that carries a payment. */
export interface PayingCall {
  readonly request: RequestInfo;
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
  /** The answer to a call whose key has nothing left. */
  exhausted(call: RefusedCall): Promise<Refusal>;
  /** Takes the payment of a call; once it has settled, the key has it. */
  take(call: PayingCall): Promise<PaidPurchase | RpcPaywallRefusal>;
}

/** A key that money is for. */
export interface PaidKey {
  readonly accountId: string;
  readonly keyId: string;
}

/** What payments at the URLs of calls need. */
export interface RpcPaywallParts extends AuthenticationParts {
  readonly paywall: Paywall;
  /** Whose a secret is or was, by its digest: also one that has ended. */
  readonly keyOf: (digest: string) => Promise<PaidKey | null>;
  /** Null = the address that callers use. */
  readonly publicUrl: string | null;
}

const SESSIONS = "/rpc/session/";

/** Payment at the URLs of calls, over the one paywall. */
export function createRpcPaywall(parts: RpcPaywallParts): RpcPaywall {
  const { paywall, proxies } = parts;
  const addressOf = (request: RequestInfo): string =>
    addressBehind(request.address, request.header("x-forwarded-for") ?? "", proxies);
  const baseUrlOf = (request: RequestInfo): string =>
    parts.publicUrl ?? requestInfoBaseUrl(request, proxies);

  function markOf(request: RequestInfo, body: Buffer): RequestMark {
    const path = request.url.split("?", 1)[0] ?? "/";
    return requestMark({
      method: "POST",
      path,
      body,
      credential: request.credential.digest,
      baseUrl: baseUrlOf(request),
    });
  }

  /** The smallest purchase there is, for the key of the call. */
  function orderOf(request: RequestInfo, { accountId, keyId }: PaidKey, mark: RequestMark): Order {
    const amountN = paywall.payments.range.minN;
    const keepsAuthorization = withoutPayment(request.header("authorization")) !== undefined;
    const description = `${usdText(amountN)} USD for the key of this call`;
    return {
      purpose: { kind: "fund_key", accountId, keyId },
      amountN,
      request: mark,
      description,
      keepsAuthorization,
    };
  }

  /** The order of a caller who is looked up first, or why there is none. */
  async function ordered(request: RequestInfo, mark: RequestMark): Promise<Order | Fault> {
    const found = await new Promise<Authenticated | Fault>((resolve) => {
      authenticate(parts, request, resolve);
    });
    if (found.kind === "authenticated")
      return found.keyContext === null
        ? NO_KEY
        : orderOf(request, paidKeyOf(found.keyContext), mark);
    // The offer was made to a key that worked: its money is taken, and the account of the key has
    // it.
    const ended =
      found.code === "key_revoked" ? await parts.keyOf(request.credential.digest) : null;
    return ended === null ? found : orderOf(request, ended, mark);
  }

  return {
    paymentOf(request) {
      if (request.url.startsWith(SESSIONS)) return null;
      const { payment } = request;
      return payment === null || request.credential.secret === null ? null : payment;
    },
    async exhausted({ request, keyContext, body, why, paid }) {
      const baseUrl = baseUrlOf(request);
      if (paid !== null) return usedUp(paid, baseUrl);
      try {
        const order = orderOf(request, paidKeyOf(keyContext), markOf(request, body));
        const asked = await paywall.ask(order, addressOf(request));
        if (asked.fault.code !== "payment_required") return refusalOf(asked, baseUrl);
        const nextAction = `${SIGN}, with ${usdText(order.amountN)} USD; ${OTHER_AMOUNTS}`;
        return {
          kind: "rpc_paywall_refusal",
          fault: { ...why, nextAction },
          headers: asked.headers,
        };
      } catch (error) {
        return storeRefusalOf(error);
      }
    },
    async take({ request, body, given }) {
      if (!isUtf8(body) || !isJson(body))
        return { ...refusalBy(fault("parse_error", "the body is not valid JSON")), id: "null" };
      const id = idOf(body);
      const mark = markOf(request, body);
      try {
        const taken = await paywall.take(
          given,
          { request: mark, address: addressOf(request) },
          () => ordered(request, mark),
        );
        if (taken.kind === "paid") return taken;
        return {
          ...(taken.kind === "fault" ? refusalBy(taken) : refusalOf(taken, baseUrlOf(request))),
          id,
        };
      } catch (error) {
        return { ...storeRefusalOf(error), id };
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

function paidKeyOf({ account, keyId }: KeyContext): PaidKey {
  return { accountId: account.id, keyId };
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

function storeRefusalOf(error: unknown): Refusal {
  if (!isStoreFailure(error)) throw error;
  return refusalBy(fault("unavailable", "payments cannot be looked up right now"));
}
