// What every kind of rail is configured with. Knows no kind.
import type { PaymentToken } from "../../core/billing/payment.ts";

/** The settings that all rails have. */
export interface RailBase {
  readonly kind: string;
  /** URL of a node of the payment chain. May hold a secret: never log or show it. */
  readonly rpcUrl: string;
  readonly chainId: number;
  readonly token: PaymentToken;
  /** Address that receives payments. */
  readonly recipient: string;
  /** Number of confirmations after which a payment counts as received; 0 = none. */
  readonly confirmations: number;
  /** True = the chain exists only as long as this process, and its money is worth nothing. */
  readonly local: boolean;
}
