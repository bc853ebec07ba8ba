// What rails are configured with, and how documents describe them. Settings may hold secrets: never
// log them. Loads no library of a rail: documents are made of it in every process.

import type { PaymentToken } from "../../core/billing/payment.ts";
import type { Runtime } from "../../runtime.ts";

/** What a rail needs. */
export interface RailParts {
  readonly runtime: Runtime;
  /** The realm of our challenges. */
  readonly realm: string;
}

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

/** What a kind of rail is called, and what is said of every rail of it. */
export interface RailNames {
  /** As it stands in settings and documents. */
  readonly kind: string;
  /** MPP method. */
  readonly method: string;
  /** MPP intent: `charge` = its payments are purchases, `session` = calls paid one by one. */
  readonly intent: "charge" | "session";
  /** The names of this payment in each protocol. */
  readonly offers: readonly string[];
  /** The protocol by which the stock command line pays it; null = it does not. */
  readonly stockProtocol: "mpp" | "x402" | null;
  /** What its contracts on a local chain lack; null = nothing. */
  readonly localNote: string | null;
}

/** A configured rail. */
export interface RailTerms extends RailNames {
  readonly chainId: number;
  readonly token: string;
  /** From the token's EIP-712 domain; empty where the rail does not need it. */
  readonly tokenName: string;
  readonly tokenVersion: string;
  readonly recipient: string;
  /** Suggested deposit of a channel, nano-USD; null = the rail has no channels. */
  readonly depositN: bigint | null;
  /** Money on a local chain is worth nothing. */
  readonly local: boolean;
  /**
   * A node of a local chain; null for other chains: callers know nodes of those, and the URL of
   * ours may hold a secret.
   */
  readonly rpcUrl: string | null;
}

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

/** MPP `tempo`/`charge`: the payer's wallet signs the transaction and pays its fee. */
export interface TempoRailSettings extends RailBase {
  readonly kind: "tempo";
  /**
   * `pull` = the service sends the transaction that the client signed; `push` = the client sends it
   * and shows the hash.
   */
  readonly modes: readonly ("pull" | "push")[];
}

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
