// Pays for the calls of one request with its voucher: admits every call, because the price of all
// was held beforehand, and sums the charges. Knows neither the hold nor the channel.
import { type ChargeKind, chargedParts, chargeKindOf } from "../../../core/billing/charging.ts";
import { cachedCuOf } from "../../../core/billing/price.ts";
import type { SourceKind } from "../../../core/routing/answer-source.ts";
import type { AdmissionRequest } from "../../../hosted/admission/admission.ts";
import type { CallPayment, VoucherGrant } from "../../payment/call-payment.ts";
import {
  type PartsByStart,
  type Pricing,
  priceOf,
  type UnitPrice,
  unitsOf,
} from "./session-price.ts";

/** Pays for the calls of one request. */
export class VoucherPayment implements CallPayment {
  readonly countsParts = false;
  readonly #pricing: Pick<Pricing, "tariff" | "strategy" | "pinned">;
  readonly #parts: PartsByStart;
  #chargedUnits = 0n;
  #savedCu = 0;

  constructor(
    pricing: Pick<Pricing, "tariff" | "strategy" | "pinned">,
    parts: PartsByStart = new Map(),
  ) {
    this.#pricing = pricing;
    this.#parts = parts;
  }

  /** The price of all calls settled as charged, in base units. */
  get chargedUnits(): bigint {
    return this.#chargedUnits;
  }

  /** Compute units that calls cost less than was held: from the cache, or for parts not sent. */
  get savedCu(): number {
    return this.#savedCu;
  }

  /** As they were planned when the price was held; what is known by now changes nothing. */
  partsOf(start: number): number {
    return this.#parts.get(start) ?? 1;
  }

  admit({ method, parts = 1 }: AdmissionRequest): VoucherGrant {
    const held = priceOf(method, this.#pricing, parts);
    return {
      kind: "voucher",
      // The range of a filter is not known when the price is held.
      maxParts: method.handling === "filter" ? 1 : undefined,
      settle: (source: SourceKind, partsSent: number | null = null) => {
        const sent = priceOf(method, this.#pricing, chargedParts(parts, partsSent));
        const kind = chargeKindOf(source);
        if (kind !== "none") this.#savedCu += held.cu - sent.cu;
        this.#charge(sent, kind);
        return null;
      },
      release: () => null,
    };
  }

  #charge({ units, cu }: UnitPrice, kind: ChargeKind): void {
    const { tariff } = this.#pricing;
    switch (kind) {
      case "full":
        this.#chargedUnits += units;
        break;
      case "cached": {
        const cachedCu = cachedCuOf(tariff, cu);
        this.#chargedUnits += unitsOf(tariff, cachedCu);
        this.#savedCu += cu - cachedCu;
        break;
      }
      case "none":
        break;
    }
  }
}
