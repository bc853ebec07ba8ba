// The payment for a key that comes with an RPC request: taken once the body is here, before the
// caller is looked up. Knows no protocol of payment.
import type { PaidPurchase, PaymentHeaders } from "../../../payments/payments.ts";
import type { RequestInfo } from "../authenticate.ts";
import type { RpcPaywall, RpcPaywallRefusal } from "./rpc-paywall.ts";

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

  /** The purchase; null = it is not credited. */
  get paid(): PaidPurchase | null {
    return this.#paid;
  }

  /** Takes the payment; the key has the money once it has settled. Rejects only for a bug. */
  async take(body: Buffer): Promise<PaidPurchase | RpcPaywallRefusal> {
    this.#isTaken = true;
    const taken = await this.#paywall.take({ request: this.#request, body, given: this.#given });
    if (taken.kind === "paid") this.#paid = taken;
    return taken;
  }
}
