// How payments are taken, as configured. Holds secrets of rails: never log it.
import type { RailSettings } from "./rails/rails.ts";

/** Settings of payments. Holds secrets: never log it. */
export interface PaymentSettings {
  readonly rails: readonly RailSettings[];
  /** Bounds of one purchase, nano-USD. */
  readonly minN: bigint;
  readonly maxN: bigint;
  /** Price of a day of Custom access, nano-USD, and most days per purchase. */
  readonly customDayN: bigint;
  readonly maxCustomDays: number;
  /** How long a request waits for its payment to settle before it is answered `payment_pending`. */
  readonly waitMs: number;
  /** How long an offer is valid. */
  readonly offerMs: number;
}
