// Fees and signing of the settlement wallet's transactions: EIP-1559, with bounds on every number,
// so that a lying node costs a bounded amount. Calls no chain.
import { type Hex, keccak256, parseTransaction } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { greaterOf, lesserOf } from "../../../core/billing/payment.ts";
import type { Submission } from "../rail.ts";

/** Fees per unit of gas, in wei. */
export interface Fees {
  /** Base fee and tip together, at most. */
  readonly maxWei: bigint;
  readonly tipWei: bigint;
}

/** The contents of a transaction. */
export interface WalletTransaction {
  readonly to: Hex;
  readonly data: Hex;
  readonly gas: bigint;
}

/** Gas of a settlement where no estimate is available; known tokens need less. */
export const USUAL_GAS = 120_000n;

const GWEI = 1_000_000_000n;
const MAX_FEE_WEI = 2_000n * GWEI;
const MAX_TIP_WEI = 100n * GWEI;
const DEFAULT_TIP_WEI = GWEI;
const MAX_GAS = 1_000_000n;

/**
 * Fees for inclusion soon, even if the base fee doubles. `tipWei` null = the node gives no
 * estimate.
 */
export function feesFor(baseFeeWei: bigint, tipWei: bigint | null): Fees {
  const tip = lesserOf(tipWei ?? DEFAULT_TIP_WEI, MAX_TIP_WEI);
  const maxWei = lesserOf(2n * baseFeeWei + tip, MAX_FEE_WEI);
  return { maxWei, tipWei: lesserOf(tip, maxWei) };
}

/**
 * Fees that nodes accept for a replacement of `before` (an eighth more), or higher ones if the
 * chain needs them; null = above our limit.
 */
export function feesToReplace(before: Fees, now: Fees): Fees | null {
  const maxWei = greaterOf(raised(before.maxWei), now.maxWei);
  const tipWei = greaterOf(raised(before.tipWei), now.tipWei);
  return maxWei <= MAX_FEE_WEI && tipWei <= lesserOf(maxWei, MAX_TIP_WEI)
    ? { maxWei, tipWei }
    : null;
}

/** The price of gas in the present block. */
export interface GasPrice {
  readonly baseFeeWei: bigint;
  /** Fees for inclusion soon. */
  readonly fees: Fees;
}

/** Fees at which this much gas costs `mostWei` at most; null = the base fee alone exceeds it. */
export function feesWithin(
  { baseFeeWei, fees }: GasPrice,
  gas: bigint,
  mostWei: bigint,
): Fees | null {
  if (gas * baseFeeWei > mostWei) return null;
  const maxWei = lesserOf(fees.maxWei, mostWei / gas);
  return { maxWei, tipWei: lesserOf(fees.tipWei, maxWei) };
}

/** The gas limit for an estimate: state may change before the transaction runs. */
export function gasFor(estimate: bigint): bigint {
  return lesserOf((estimate * 5n) / 4n + 10_000n, MAX_GAS);
}

/** A signed transaction of the wallet. Its bytes are secret until they are sent. */
export async function signedBy(
  account: PrivateKeyAccount,
  deed: WalletTransaction,
  place: { readonly chainId: number; readonly nonce: bigint; readonly fees: Fees },
) {
  const raw = await account.signTransaction({
    type: "eip1559",
    chainId: place.chainId,
    nonce: Number(place.nonce),
    to: deed.to,
    data: deed.data,
    gas: deed.gas,
    value: 0n,
    maxFeePerGas: place.fees.maxWei,
    maxPriorityFeePerGas: place.fees.tipWei,
  });
  return { txHash: keccak256(raw), raw, nonce: place.nonce } satisfies Submission;
}

/** Reads a transaction that was signed here; throws on any other. */
export function parseSigned(raw: string): {
  readonly deed: WalletTransaction;
  readonly fees: Fees;
} {
  const {
    type,
    to,
    data = "0x",
    gas,
    maxFeePerGas,
    maxPriorityFeePerGas = 0n,
  } = parseTransaction(`0x${raw.slice(2)}`);
  if (type !== "eip1559" || !to || gas === undefined || maxFeePerGas === undefined)
    throw new Error("no transaction of the settlement wallet");
  return { deed: { to, data, gas }, fees: { maxWei: maxFeePerGas, tipWei: maxPriorityFeePerGas } };
}

function raised(wei: bigint): bigint {
  return wei + wei / 8n + 1n;
}
