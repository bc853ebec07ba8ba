// The one port by which a request is paid: its caller states the price and the payment that came
// with the request, and gets what was paid for, or a refusal with offers. Used by operations of the
// API, calls with a key and calls that are paid one by one. Knows no protocol and no chain.
import type { PaymentHeaders } from "../../payments/payments.ts";

/** A request that costs something. */
export interface PayableRequest<Mark> {
  /** The payment that it carries; null = none. */
  readonly payment: PaymentHeaders | null;
  /** IP address of its sender. */
  readonly address: string;
  /** What a payment for the request is bound to. */
  readonly mark: Mark;
}

/** Why a request has no price: the answer to it. */
export interface Unpriced {
  readonly kind: string;
}

/** Collects what requests cost. `Paid`: what a payment gives the request that carries it. */
export interface Paywall<Mark, Price, Paid, Refusal> {
  /**
   * Takes the payment of a request; refuses a request without one, and offers ways to pay. `price`
   * is called once at most, and not for a payment that was taken before.
   */
  collect<F extends Unpriced>(
    request: PayableRequest<Mark>,
    price: () => Promise<Price | F>,
  ): Promise<Paid | Refusal | F>;
}
