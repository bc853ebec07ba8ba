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

/** Sells everything that can be ordered. */
export class PurchasePaywall {
  readonly payments: Payments;
  readonly #runtime: Pick<Runtime, "now">;
  readonly #offers: AddressLimit;
  readonly #invalid: AddressLimit;
  readonly #unchecked: AddressLimit;
  readonly #unanswered: AddressLimit;

  /**
   * Creates a paywall with unused limits. Create one for all sellers: the limits count within it.
   */
  constructor({ payments, runtime, openLimit = openAddressLimit }: PurchasePaywallParts) {
    this.payments = payments;
    this.#runtime = runtime;
    this.#offers = openLimit("offers", OFFERS);
    this.#invalid = openLimit("invalid payments", INVALID);
    this.#unchecked = openLimit("unchecked payments", UNCHECKED);
    this.#unanswered = openLimit("unanswered payments", UNANSWERED);
  }

  /**
   * Takes the payment of a request, or refuses a request without one and offers ways to pay.
   * `price` is called at most once, and not for a payment that was recorded before.
   */
  async collect<F extends Unpriced>(
    { payment, address, mark }: PayableRequest<RequestMark>,
    price: () => Promise<Order | F>,
  ): Promise<PaidPurchase | PaymentRefusal | F> {
    if (payment !== null) return this.#take(payment, address, mark, price);
    const order = await price();
    if (!isOrder(order)) return order;
    const waitMs = this.#offers.take(address, this.#runtime.now());
    if (waitMs > 0) return tooMany("this address has asked for too many offers", waitMs);
    const cost = usdText(order.amountN);
    const message = `this costs ${cost} USD, and nothing has been paid yet: ${order.description}`;
    return this.#offer(order, apiFault("payment_required", message), "payment-required");
  }

  /** Takes the payment of a request, within the limits of its address. */
  async #take<F extends Unpriced>(
    payment: PaymentHeaders,
    address: string,
    mark: RequestMark,
    price: () => Promise<Order | F>,
  ): Promise<PaidPurchase | PaymentRefusal | F> {
    const nowMs = this.#runtime.now();
    const waitMs =
      Math.max(this.#invalid.waitMs(address, nowMs), this.#unanswered.waitMs(address, nowMs)) ||
      this.#unchecked.take(address, nowMs);
    if (waitMs > 0)
      return tooMany("too many payments from this address could not be taken", waitMs);
    let isWrong = false;
    let ordered: Promise<Order | F> | null = null;
    const once = (): Promise<Order | F> => {
      ordered ??= price();
      return ordered;
    };
    try {
      const taken = await this.payments.take(payment, mark, once);
      if (!isDeclined(taken)) return taken;
      const { fault, purchaseId, problem } = taken;
      isWrong = fault.code === "payment_invalid";
      if (isWrong) this.#invalid.take(address, this.#runtime.now());
      if (fault.code === "unavailable" && purchaseId === null)
        this.#unanswered.take(address, this.#runtime.now());
      if (!isWrong) return { ...NOTHING, fault, purchaseId, problem };
      const order = await once();
      return isOrder(order) ? await this.#offer(order, fault, problem) : order;
    } finally {
      if (!isWrong) this.#unchecked.giveBack(address);
    }
  }

  /** A refusal with an offer of every rail. */
  async #offer(
    order: Order,
    fault: PaymentRefusal["fault"],
    problem: string,
  ): Promise<PaymentRefusal> {
    const challenge = await this.payments.challenge(order);
    if (challenge !== null && challenge.headers.length > 0)
      return { ...NOTHING, fault, problem, headers: challenge.headers };
    const message = `${fault.message}; no payment can be taken right now`;
    const unavailable = apiFault("unavailable", message, { retryAfterMs: RETRY_MS });
    return { ...NOTHING, fault: unavailable, problem };
  }
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

function tooMany(message: string, retryAfterMs: number): PaymentRefusal {
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
