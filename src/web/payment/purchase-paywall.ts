// The paywall of purchases: credit, keys and access that are bought by an order. Answers 402 with
// offers, takes payments, and limits both by address. One instance serves operations of the API and
// calls with a key; knows neither of them, no rail and no chain.

import { type AddressLimit, createAddressLimit } from "../../core/billing/address-limit.ts";
import { usdText } from "../../core/billing/price.ts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import type {
  Order,
  PaidPurchase,
  PaymentDeclined,
  PaymentHeaders,
  Payments,
  RequestMark,
} from "../../payments/payments.ts";
import type { Runtime } from "../../runtime.ts";
import type { PayableRequest, Paywall, Unpriced } from "./paywall.ts";

/** Codes of refusals that are about a payment. */
export type PaymentCode = PaymentDeclined["fault"]["code"] | "payment_required";

/** Why nothing was bought, or not yet. */
export interface PaymentRefusal {
  readonly kind: "payment_refusal";
  readonly fault: ApiFault<PaymentCode>;
  /**
   * Names and values in turn: every offer, where the payer is to sign one. A 402 has some: clients
   * of these protocols throw at one without.
   */
  readonly headers: readonly string[];
  /** Purchase that it is about; null = none was recorded, so nothing was taken. */
  readonly purchaseId: string | null;
  /** Last part of MPP's problem type. */
  readonly problem: string;
}

/** Sells what can be ordered. */
export interface PurchasePaywall extends Paywall<RequestMark, Order, PaidPurchase, PaymentRefusal> {
  readonly payments: Payments;
}

/** What the paywall works with. */
export interface PurchasePaywallParts {
  readonly payments: Payments;
  readonly runtime: Pick<Runtime, "now">;
}

/** Offers to one address. */
const OFFERS = { perSecond: 5, burst: 100 };
/** Wrong payments of one address: each costs a look at the chain. */
const INVALID = { perSecond: 0.5, burst: 20 };
/**
 * Payments of one address that come together: each counts until it was found to be right. As slow
 * as the wrong ones, or a flood every two seconds would pass.
 */
const UNCHECKED = { perSecond: 0.5, burst: 64 };
/**
 * Payments of one address that its chain was asked about in vain: they cost looks at it too, and a
 * payer can make them.
 */
const UNANSWERED = { perSecond: 1, burst: 60 };
const RETRY_MS = 5_000;

/** The paywall with its limits by address. */
interface OpenPaywall extends PurchasePaywallParts {
  readonly offers: AddressLimit;
  readonly invalid: AddressLimit;
  readonly unchecked: AddressLimit;
  readonly unanswered: AddressLimit;
}

/** A paywall whose limits are all unused. Create one for all sellers: limits count in it. */
export function createPurchasePaywall(parts: PurchasePaywallParts): PurchasePaywall {
  const paywall: OpenPaywall = {
    ...parts,
    offers: createAddressLimit(OFFERS),
    invalid: createAddressLimit(INVALID),
    unchecked: createAddressLimit(UNCHECKED),
    unanswered: createAddressLimit(UNANSWERED),
  };
  return {
    payments: parts.payments,
    collect(request, price) {
      const { payment } = request;
      return payment === null
        ? requirePayment(paywall, request, price)
        : take(paywall, { ...request, payment }, price);
    },
  };
}

/** The answer to a request without a payment. */
async function requirePayment<F extends Unpriced>(
  paywall: OpenPaywall,
  { address }: PayableRequest<RequestMark>,
  price: () => Promise<Order | F>,
): Promise<PaymentRefusal | F> {
  const order = await price();
  if (!isOrder(order)) return order;
  const retryAfterMs = paywall.offers.take(address, paywall.runtime.now());
  if (retryAfterMs > 0) return limited("this address has asked for too many offers", retryAfterMs);
  const cost = usdText(order.amountN);
  const message = `this costs ${cost} USD, and nothing has been paid yet: ${order.description}`;
  const problem = "payment-required";
  return withOffers(paywall, order, { fault: apiFault("payment_required", message), problem });
}

/** A request that carries a payment. */
interface PayingRequest extends PayableRequest<RequestMark> {
  readonly payment: PaymentHeaders;
}

/** Takes the payment of a request, within what its address may send. */
async function take<F extends Unpriced>(
  paywall: OpenPaywall,
  request: PayingRequest,
  price: () => Promise<Order | F>,
): Promise<PaidPurchase | PaymentRefusal | F> {
  const { invalid, unchecked, unanswered, runtime } = paywall;
  const { address } = request;
  const nowMs = runtime.now();
  const waitMs = Math.max(invalid.waitMs(address, nowMs), unanswered.waitMs(address, nowMs));
  const retryAfterMs = waitMs > 0 ? waitMs : unchecked.take(address, nowMs);
  if (retryAfterMs > 0)
    return limited("too many payments from this address could not be taken", retryAfterMs);
  let isWrong = false;
  let ordered: Promise<Order | F> | null = null;
  const once = (): Promise<Order | F> => {
    ordered ??= price();
    return ordered;
  };
  try {
    const taken = await paywall.payments.take(request.payment, request.mark, once);
    if (!isDeclined(taken)) return taken;
    isWrong = taken.fault.code === "payment_invalid";
    if (isWrong) invalid.take(address, runtime.now());
    if (taken.fault.code === "unavailable" && taken.purchaseId === null)
      unanswered.take(address, runtime.now());
    return await declined(paywall, taken, once);
  } finally {
    if (!isWrong) unchecked.giveBack(address);
  }
}

/** The answer to a payment that bought nothing; one to a wrong payment has fresh offers. */
async function declined<F extends Unpriced>(
  paywall: OpenPaywall,
  { fault, purchaseId, problem }: PaymentDeclined,
  price: () => Promise<Order | F>,
): Promise<PaymentRefusal | F> {
  if (fault.code !== "payment_invalid") return { ...NOTHING, fault, purchaseId, problem };
  const order = await price();
  return isOrder(order) ? withOffers(paywall, order, { fault, problem }) : order;
}

/** A refusal with an offer of every rail. */
async function withOffers(
  { payments }: OpenPaywall,
  order: Order,
  { fault, problem }: Pick<PaymentRefusal, "fault" | "problem">,
): Promise<PaymentRefusal> {
  const challenge = await payments.challenge(order);
  if (challenge !== null && challenge.headers.length > 0)
    return { ...NOTHING, fault, problem, headers: challenge.headers };
  const message = `${fault.message}; no payment can be taken right now`;
  const unavailable = apiFault("unavailable", message, { retryAfterMs: RETRY_MS });
  return { ...NOTHING, fault: unavailable, problem };
}

/** Where a purchase is read. */
export function purchaseUrl(baseUrl: string, purchaseId: string): string {
  return `${baseUrl}/api/v1/purchases/${purchaseId}`;
}

const NOTHING = { kind: "payment_refusal", headers: [], purchaseId: null } as const;

function isOrder<F extends Unpriced>(priced: Order | F): priced is Order {
  return "purpose" in priced;
}

function isDeclined<F extends Unpriced>(
  taken: PaidPurchase | PaymentDeclined | F,
): taken is PaymentDeclined {
  return taken.kind === "declined";
}

function limited(message: string, retryAfterMs: number): PaymentRefusal {
  const fault = apiFault("rate_limited", message, { retryAfterMs });
  return { ...NOTHING, fault, problem: "payment-required" };
}
