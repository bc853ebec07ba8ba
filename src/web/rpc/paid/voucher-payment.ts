// Pays for the calls of one request with its voucher: admits every call, because the price of all
// was held beforehand, and sums the charges. Knows neither the hold nor the channel.
import { isCharged } from "../../../core/billing/charging.ts";
import type { SourceKind } from "../../../core/routing/answer-source.ts";
import type { AdmissionRequest } from "../../../hosted/admission/admission.ts";
import type { CallPayment, VoucherGrant } from "../../payment/call-payment.ts";
import { type Pricing, priceOf } from "./session-price.ts";

/** Pays for the calls of one request. */
export class VoucherPayment implements CallPayment {
  readonly countsParts = false;
  readonly #pricing: Pricing;
  #chargedUnits = 0n;

  constructor(pricing: Pricing) {
    this.#pricing = pricing;
  }

  /** The price of all calls settled as charged, in base units. */
  get chargedUnits(): bigint {
    return this.#chargedUnits;
  }

  admit({ method }: AdmissionRequest): VoucherGrant {
    const { units } = priceOf(method, this.#pricing);
    return {
      kind: "voucher",
      settle: (source: SourceKind) => {
        if (isCharged(source)) this.#chargedUnits += units;
        return null;
      },
      release: () => null,
    };
  }
}
