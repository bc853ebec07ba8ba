// What an EIP-3009 rail is configured with. Holds a secret: never log it.
import type { RailBase } from "../rail-settings.ts";

/**
 * EIP-3009 authorizations, as MPP `evm`/`charge` and x402 `exact`: a wallet of the service submits
 * them and pays for gas.
 */
export interface EvmRailSettings extends RailBase {
  readonly kind: "evm";
  /** Private key of the settlement wallet, 0x and 64 hex digits. Secret. */
  readonly walletKey: string;
  /** Balance of the settlement wallet (wei) below which the operator is alerted. */
  readonly lowGasWei: bigint;
  /** Most wei that the gas of one settlement may cost. */
  readonly maxGasWei: bigint;
}
