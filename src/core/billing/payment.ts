// Payments as values: what they buy, the states of a purchase, the units of tokens, and the
// settings of the rails. Knows no protocol and no chain.

/** What a settled payment buys. Holds ids, never secrets. */
export type Purpose =
  /** Credits the account of a key. */
  | { readonly kind: "fund_key"; readonly accountId: string; readonly keyId: string }
  /** Creates an anonymous key with the whole amount as its balance. */
  | { readonly kind: "create_key"; readonly name: string }
  /** Credits an account. */
  | { readonly kind: "credit_account"; readonly accountId: string }
  /** Days of Custom access, bought with one key of the account. */
  | {
      readonly kind: "custom_access";
      readonly accountId: string;
      readonly keyId: string;
      readonly days: number;
    };

/** Kinds of purchases. */
export type PurposeKind = Purpose["kind"];

/**
 * The state of a purchase. Each state is written before the act that it names: `submitted` before
 * anything is sent to a chain.
 */
export type PurchaseState = "accepted" | "submitted" | "settled" | "failed";

/** The protocol of a payment. */
export type PaymentProtocol = "mpp" | "x402";

/** A token that payments are made in: a stablecoin in USD with six decimals. */
export interface PaymentToken {
  /** Address on its chain. */
  readonly address: string;
  /** Name in its EIP-712 domain; empty = the rail does not need it. */
  readonly name: string;
  readonly version: string;
}

interface RailBase {
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

/** One configured way to pay. */
export type RailSettings = TempoRailSettings | EvmRailSettings | SessionRailSettings;

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

/** Nano-USD of one base unit of a token with six decimals. */
export const NANO_PER_UNIT = 1_000n;

/** An amount in base units of a token; null = it is not a whole number of them. */
export function unitsOf(nanoUsd: bigint): bigint | null {
  return nanoUsd % NANO_PER_UNIT === 0n ? nanoUsd / NANO_PER_UNIT : null;
}

/** Base units of a token in nano-USD. */
export function nanoOf(units: bigint): bigint {
  return units * NANO_PER_UNIT;
}

/**
 * The standard command-line client for payments, in the versions that the documented steps were
 * tested with.
 */
export const MPPX_COMMAND = "npx -y -p mppx@0.11.0 -p viem@2.57.1 mppx";
