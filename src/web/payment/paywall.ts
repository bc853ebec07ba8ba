// The only port by which requests are paid: its caller passes the price and the payment that came
// with the request, and gets the result of the payment, or a refusal with offers. Used by API
// operations, calls with a key and pay-per-call. Knows no protocol and no chain.
import type { PaymentHeaders } from "../../payments/payments.ts";

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
