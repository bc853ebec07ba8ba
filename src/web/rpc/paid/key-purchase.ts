// Takes the payment for a key that comes with an RPC request, once its body has arrived and before
// the caller is looked up. Knows no payment protocol.
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

  /** The purchase; null = not taken, or not credited. */
  get paid(): PaidPurchase | null {
    return this.#paid;
  }

  /**
   * Takes the payment; resolves once the money is credited to the key, or with a refusal. Rejects
   * only for a bug.
   */
  async take(body: Buffer): Promise<PaidPurchase | RpcPaywallRefusal> {
    this.#isTaken = true;
    const taken = await this.#paywall.take({ request: this.#request, body, given: this.#given });
    if (taken.kind === "paid") this.#paid = taken;
    return taken;
  }
}
