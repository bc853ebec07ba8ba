// Payments as values: what they buy, the states of a purchase, and the units of tokens. Knows no
// protocol, no rail and no chain.

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

/** Nano-USD of one base unit of a token with six decimals. */
export const NANO_PER_UNIT = 1_000n;

/** An amount in base units of a token; null = it is not a whole number of them. */
export function unitsOf(nanoUsd: bigint): bigint | null {
  return nanoUsd % NANO_PER_UNIT === 0n ? nanoUsd / NANO_PER_UNIT : null;
}

/** The greater one of two amounts. */
export function greaterOf(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/** The lesser one of two amounts. */
export function lesserOf(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/** Base units of a token in nano-USD. */
export function nanoOf(units: bigint): bigint {
  return units * NANO_PER_UNIT;
}

/**
 * The client libraries of payments, in the versions that the documented steps were tested with:
 * those of `package.json`. Without a version npm may refuse them, since the newest releases do not
 * always accept each other.
 */
const CLIENT_VERSIONS = {
  mppx: "0.11.0",
  viem: "2.57.1",
  "@x402/fetch": "2.27.0",
  "@x402/evm": "2.27.0",
} as const;

/** An npm package that a paying program needs. */
export type ClientPackage = keyof typeof CLIENT_VERSIONS;

/** The packages as `npm install` takes them, with their versions. */
export function pinned(packages: readonly ClientPackage[]): readonly string[] {
  return packages.map((name) => `${name}@${CLIENT_VERSIONS[name]}`);
}

/** The standard command-line client for payments. */
export const MPPX_COMMAND = `npx -y -p ${pinned(["mppx", "viem"]).join(" -p ")} mppx`;
