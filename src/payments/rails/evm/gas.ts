// What a transaction of the settlement wallet offers for its place in a block, and how one is
// signed: EIP-1559, with bounds on every number, so that a node that lies costs a bounded amount.
// Asks no chain.
import { type Hex, keccak256, parseTransaction } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import type { Submission } from "../rail.ts";

/** What is offered for a unit of gas, in wei. */
export interface Fees {
  /** At most, base fee and tip together. */
  readonly maxWei: bigint;
  readonly tipWei: bigint;
}

/** What a transaction does. */
export interface WalletTransaction {
  readonly to: Hex;
  readonly data: Hex;
  readonly gas: bigint;
}

/** Gas of a settlement, where it was not estimated: those of known tokens need less. */
export const USUAL_GAS = 120_000n;

const GWEI = 1_000_000_000n;
const MAX_FEE_WEI = 2_000n * GWEI;
const MAX_TIP_WEI = 100n * GWEI;
const DEFAULT_TIP_WEI = GWEI;
const MAX_GAS = 1_000_000n;

/**
 * Fees that are taken soon: the base fee may double meanwhile. `tipWei` null = the node cannot say.
 */
export function feesFor(baseFeeWei: bigint, tipWei: bigint | null): Fees {
  const tip = least(tipWei ?? DEFAULT_TIP_WEI, MAX_TIP_WEI);
  const maxWei = least(2n * baseFeeWei + tip, MAX_FEE_WEI);
  return { maxWei, tipWei: least(tip, maxWei) };
}

/**
 * Fees that nodes take instead of `before` (an eighth more), or more than that where the chain asks
 * for it; null = they would be above what we ever pay.
 */
export function feesToReplace(before: Fees, now: Fees): Fees | null {
  const maxWei = most(raised(before.maxWei), now.maxWei);
  const tipWei = most(raised(before.tipWei), now.tipWei);
  return maxWei <= MAX_FEE_WEI && tipWei <= least(maxWei, MAX_TIP_WEI) ? { maxWei, tipWei } : null;
}

/** What a block asks for now. */
export interface GasPrice {
  readonly baseFeeWei: bigint;
  /** Fees that are taken soon. */
  readonly fees: Fees;
}

/** Fees at which so much gas costs `mostWei` at most; null = the base fee alone makes it dearer. */
export function feesWithin(
  { baseFeeWei, fees }: GasPrice,
  gas: bigint,
  mostWei: bigint,
): Fees | null {
  if (gas * baseFeeWei > mostWei) return null;
  const maxWei = least(fees.maxWei, mostWei / gas);
  return { maxWei, tipWei: least(fees.tipWei, maxWei) };
}

/** Gas for what was estimated: state may change before it runs. */
export function gasFor(estimate: bigint): bigint {
  return least((estimate * 5n) / 4n + 10_000n, MAX_GAS);
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

/**
 * What a transaction that was signed here does, and what it offers; throws when it is none of ours.
 */
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

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function most(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
