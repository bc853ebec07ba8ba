// What a rail of pay-per-call is configured with. Holds a secret: never log it.
import type { RailBase } from "../rail-settings.ts";

/**
 * MPP `tempo`/`session`: a payment channel opened by the payer, and a cumulative voucher with every
 * call.
 */
export interface SessionRailSettings extends RailBase {
  readonly kind: "session";
  /**
   * Private key of the wallet that settles and closes channels; it is `recipient` or authorised by
   * it. Secret.
   */
  readonly walletKey: string;
  /** Address of the channel contract; null = the precompile of the chain. */
  readonly escrow: string | null;
  /** Deposit that is suggested to clients, nano-USD. */
  readonly depositN: bigint;
  /** A channel is settled once this much is owed (nano-USD), or after this time. */
  readonly settleN: bigint;
  readonly settleMs: number;
}
