// The paywall of purchases: credit, keys and access that are sold as orders. Answers 402 with
// offers, takes payments, and limits both by address. API operations and calls with a key share one
// instance; it knows neither, nor rails or chains.
import type { AddressLimit } from "../../core/billing/address-limit.ts";
import { usdText } from "../../core/billing/price.ts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import {
  type OpenAddressLimit,
  openAddressLimit,
} from "../../core/workers/shared-address-limits.ts";
import type {
  Order,
  PaidPurchase,
  PaymentDeclined,
  PaymentHeaders,
  Payments,
  RequestMark,
} from "../../payments/payments.ts";
import type { Runtime } from "../../runtime.ts";

/** Codes of refusals that concern a payment. */
export type PaymentCode = PaymentDeclined["fault"]["code"] | "payment_required";

/** Why nothing was bought, or not yet. */
export interface PaymentRefusal {
  readonly kind: "payment_refusal";
  readonly fault: ApiFault<PaymentCode>;
  /**
   * Header names and values in turn: an offer of every rail if the payer is to sign a payment. A
   * 402 always has some, because clients of these protocols throw on a 402 without offers.
   */
  readonly headers: readonly string[];
  /** The recorded purchase; null = none was recorded, so no money was taken. */
  readonly purchaseId: string | null;
  /** Last segment of the MPP problem type. */
  readonly problem: string;
}

export interface PurchasePaywallParts {
  readonly payments: Payments;
  readonly runtime: Pick<Runtime, "now">;
  /** Opens the limits by address; absent = those of one process. */
  readonly openLimit?: OpenAddressLimit;
}

/** Offers per address. */
const OFFERS = { perSecond: 5, burst: 100 };
/** Invalid payments per address; checking each one costs a request to the chain. */
const INVALID = { perSecond: 0.5, burst: 20 };
/**
 * Concurrent payments per address; each counts until it was found valid. Refills no faster than the
 * limit of invalid payments, so that a flood cannot bypass that limit.
 */
const UNCHECKED = { perSecond: 0.5, burst: 64 };
/**
 * Payments per address that could not be checked because the chain did not answer. They cost
 * requests to the chain, too, and a payer can cause them.
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

/** Sells everything that can be ordered. */
export class PurchasePaywall implements Paywall<RequestMark, Order, PaidPurchase, PaymentRefusal> {
  readonly payments: Payments;
  readonly #paywall: OpenPaywall;

  /**
   * Creates a paywall with unused limits. Create one for all sellers: the limits count within it.
   */
  constructor(parts: PurchasePaywallParts) {
    const { payments, openLimit = openAddressLimit } = parts;
    this.payments = payments;
    this.#paywall = {
      ...parts,
      offers: openLimit("offers", OFFERS),
      invalid: openLimit("invalid payments", INVALID),
      unchecked: openLimit("unchecked payments", UNCHECKED),
      unanswered: openLimit("unanswered payments", UNANSWERED),
    };
  }

  collect<F extends Unpriced>(
    request: PayableRequest<RequestMark>,
    price: () => Promise<Order | F>,
  ): Promise<PaidPurchase | PaymentRefusal | F> {
    const { payment } = request;
    return payment === null
      ? requirePayment(this.#paywall, request, price)
      : take(this.#paywall, { ...request, payment }, price);
  }
}

/** Answers a request without a payment. */
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

/** Takes the payment of a request, within the limits of its address. */
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

/** Answers a payment that bought nothing; an invalid payment gets new offers. */
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

/** URL at which the state of a purchase can be read. */
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

/** A request that has a price. */
export interface PayableRequest<Mark> {
  /** The payment credential of the request; null = none. */
  readonly payment: PaymentHeaders | null;
  /** IP address of the sender. */
  readonly address: string;
  /** What a payment for this request is bound to. */
  readonly mark: Mark;
}

/** Why a request cannot be priced; carries the answer to it. */
export interface Unpriced {
  readonly kind: string;
}

/** Collects the price of requests. `Paid` is the result of a payment. */
export interface Paywall<Mark, Price, Paid, Refusal> {
  /**
   * Takes the payment of a request, or refuses a request without one and offers ways to pay.
   * `price` is called at most once, and not for a payment that was recorded before.
   */
  collect<F extends Unpriced>(
    request: PayableRequest<Mark>,
    price: () => Promise<Price | F>,
  ): Promise<Paid | Refusal | F>;
}
