// The paywall: answers 402 with offers, takes payments, and limits both by address. One instance
// stands before operations of the API and calls with a key alike; knows neither, no rail, no chain.

import { createAddressLimit } from "../../core/billing/address-limit.ts";
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

/** A request that carries a payment. */
export interface PayingClient {
  readonly request: RequestMark;
  /** IP address. */
  readonly address: string;
}

/** Sells: offers, and takes payments. */
export interface Paywall {
  readonly payments: Payments;
  /** The 402 response to a request without a payment. */
  ask(order: Order, address: string): Promise<PaymentRefusal>;
  /**
   * Takes a payment. `order` is asked only where it was not seen before, and where a fresh offer
   * has to be made; what it refuses is the answer.
   */
  take<F extends { readonly kind: string }>(
    given: PaymentHeaders,
    payer: PayingClient,
    order: () => Promise<Order | F>,
  ): Promise<PaidPurchase | PaymentRefusal | F>;
}

/** What the paywall works with. */
export interface PaywallParts {
  readonly payments: Payments;
  readonly runtime: Runtime;
}

/** Offers that one address may ask for. */
const OFFERS = { perSecond: 5, burst: 100 };
/** Payments that are not right which one address may send: each costs a look at the chain. */
const INVALID = { perSecond: 0.5, burst: 20 };
/**
 * Payments of which the chain says nothing yet: those cost looks at it too, and a payer can make
 * them.
 */
const UNTOLD = { perSecond: 1, burst: 60 };
const RETRY_MS = 5_000;

/** A paywall whose limits are all unused. Create one, for every seller: limits count in it. */
export function createPaywall({ payments, runtime }: PaywallParts): Paywall {
  const offers = createAddressLimit(OFFERS);
  const invalid = createAddressLimit(INVALID);
  const untold = createAddressLimit(UNTOLD);

  /** `why` with an offer beside it. */
  async function offered(
    order: Order,
    why: Pick<PaymentRefusal, "fault" | "problem">,
  ): Promise<PaymentRefusal> {
    const challenge = await payments.challenge(order);
    if (challenge !== null && challenge.headers.length > 0)
      return { ...NOTHING, ...why, headers: challenge.headers };
    const fault = apiFault(
      "unavailable",
      `${why.fault.message}; no payment can be taken right now`,
      { retryAfterMs: RETRY_MS },
    );
    return { ...NOTHING, fault, problem: why.problem };
  }

  return {
    payments,
    ask(order, address) {
      const retryAfterMs = offers.take(address, runtime.now());
      if (retryAfterMs > 0)
        return Promise.resolve(limited("this address has asked for too many offers", retryAfterMs));
      return offered(order, {
        fault: apiFault(
          "payment_required",
          `this costs ${usdText(order.amountN)} USD, and nothing has been paid yet: ` +
            `${order.description}`,
        ),
        problem: "payment-required",
      });
    },
    async take<F extends { readonly kind: string }>(
      given: PaymentHeaders,
      { request, address }: PayingClient,
      order: () => Promise<Order | F>,
    ) {
      const retryAfterMs = Math.max(
        invalid.waitMs(address, runtime.now()),
        untold.waitMs(address, runtime.now()),
      );
      if (retryAfterMs > 0)
        return limited("too many payments from this address could not be taken", retryAfterMs);
      let ordered: Promise<Order | F> | null = null;
      const once = (): Promise<Order | F> => {
        ordered ??= order();
        return ordered;
      };
      const taken = await payments.take(given, request, once);
      if (!isUnpaid(taken)) return taken;
      const why = {
        ...NOTHING,
        fault: taken.fault,
        purchaseId: taken.purchaseId,
        problem: taken.problem,
      };
      if (taken.fault.code === "unavailable" && taken.purchaseId === null)
        untold.take(address, runtime.now());
      if (taken.fault.code !== "payment_invalid") return why;
      invalid.take(address, runtime.now());
      const asked = await once();
      return "purpose" in asked ? offered(asked, why) : asked;
    },
  };
}

/** Where a purchase is read. */
export function purchaseUrl(baseUrl: string, purchaseId: string): string {
  return `${baseUrl}/api/v1/purchases/${purchaseId}`;
}

const NOTHING = { kind: "payment_refusal", headers: [], purchaseId: null } as const;

function isUnpaid<F extends { readonly kind: string }>(
  taken: PaidPurchase | PaymentDeclined | F,
): taken is PaymentDeclined {
  return taken.kind === "declined";
}

function limited(message: string, retryAfterMs: number): PaymentRefusal {
  return {
    ...NOTHING,
    fault: apiFault("rate_limited", message, { retryAfterMs }),
    problem: "payment-required",
  };
}
