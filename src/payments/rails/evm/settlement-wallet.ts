// The settlement wallet: drafts the transactions that submit authorizations, knows the wallet's
// balance, and notices a transaction that is pending for too long. Keeps no nonces: they are taken
// where purchases are written.
import type { Hex } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { greaterOf, lesserOf } from "../../../core/billing/payment.ts";
import type { Runtime } from "../../../runtime.ts";
import { ChainFailure, resultOf } from "../chain.ts";
import type { Draft, RailPurchase, Submission, WalletState } from "../rail.ts";
import {
  type Fees,
  feesFor,
  feesToReplace,
  feesWithin,
  type GasPrice,
  gasFor,
  parseSigned,
  signedBy,
  USUAL_GAS,
  type WalletTransaction,
} from "./gas.ts";
import type { EvmBlock, EvmNode } from "./node.ts";

/** A wallet and its chain. */
export interface EvmWalletParts {
  readonly node: EvmNode;
  readonly runtime: Runtime;
  readonly chainId: number;
  /** Secret. */
  readonly walletKey: string;
  readonly lowGasWei: bigint;
  /** The highest cost of one settlement's gas, in wei. */
  readonly maxGasWei: bigint;
  readonly confirmations: number;
}

/** A transaction that is next in line and pending for longer than this gets a higher fee. */
const MAX_PENDING_MS = 60_000;
const MAX_WATCHED = 1_000;

/** The wallet that pays for gas. */
export class EvmWallet {
  readonly #parts: EvmWalletParts;
  readonly #account: PrivateKeyAccount;
  readonly #id: string;
  readonly address: Hex;
  /** When transactions were first found pending; the oldest ones are forgotten. */
  readonly #pendingSinceMs = new Map<string, number>();

  constructor(parts: EvmWalletParts) {
    this.#parts = parts;
    this.#account = privateKeyToAccount(`0x${parts.walletKey.slice(2)}`);
    this.address = this.#account.address;
    this.#id = `${parts.chainId}:${this.address}`.toLowerCase();
  }

  /** Whether it can pay for one more settlement at the present fees, within the limit. */
  async canPay(head: EvmBlock): Promise<boolean> {
    const { node, maxGasWei } = this.#parts;
    const [balance, price] = await Promise.all([node.balance(this.address), priceAt(node, head)]);
    return !isDear(price, maxGasWei) && balance >= costOfOne(price, maxGasWei);
  }

  /** Null = the call would revert, or costs more than the wallet holds or may pay. */
  async draft({ submissions }: RailPurchase, call: Call): Promise<Draft | null> {
    const { node, chainId, maxGasWei } = this.#parts;
    const before = submissions.at(-1)?.raw ?? null;
    const [now, balance, nonce, gas] = await Promise.all([
      priceAt(node, await node.head()),
      node.balance(this.address),
      node.nonce(this.address, "pending"),
      gasOf(node, this.address, call),
    ]);
    const made = madeOf(call, gas, { before, now, maxGasWei });
    if (made === null || balance < made.deed.gas * made.fees.maxWei) return null;
    return {
      wallet: { id: this.#id, chainNonce: resultOf(nonce, "eth_getTransactionCount") },
      sign: async (taken) => {
        if (taken === null) throw new Error("a settlement takes a nonce");
        return signedBy(this.#account, made.deed, { chainId, nonce: taken, fees: made.fees });
      },
    };
  }

  /** What to do about the newest submission, which has had no effect as of `head`. */
  async nextStep(
    { txHash, raw, nonce }: Submission,
    head: EvmBlock,
  ): Promise<{ readonly resend: boolean; readonly replace: boolean }> {
    if (raw === null || nonce === null) return { resend: false, replace: false };
    const { node, maxGasWei } = this.#parts;
    const [isKnown, place] = await Promise.all([
      node.knows(txHash),
      node.nonce(this.address, head.number),
    ]);
    // Its nonce is used: by another transaction, or by this one, which reverted.
    if (place.kind === "result" && place.value > nonce) return { resend: true, replace: false };
    const { deed, fees } = parseSigned(raw);
    const isCheap = head.baseFeeWei !== null && fees.maxWei < head.baseFeeWei;
    const isLate = place.kind === "result" && place.value === nonce && this.#isStuck(txHash);
    const replace =
      (isCheap || isLate) &&
      raisedFees(fees, deed.gas, { now: await priceAt(node, head), maxGasWei }) !== null;
    // A transaction that pays too little is replaced, not sent again.
    return { resend: !isKnown && !replace, replace };
  }

  async state(): Promise<WalletState> {
    const { node, maxGasWei, lowGasWei } = this.#parts;
    const head = await node.head();
    const [balanceWei, price, nonce] = await Promise.all([
      node.balance(this.address),
      priceAt(node, head),
      nonceAtDepth(this.#parts, this.address, head),
    ]);
    return {
      id: this.#id,
      balanceWei,
      low: balanceWei < lowGasWei,
      empty: balanceWei < costOfOne(price, maxGasWei),
      dear: isDear(price, maxGasWei),
      nonce,
    };
  }

  /** Whether a transaction has been pending for more than a minute. */
  #isStuck(txHash: string): boolean {
    const since = this.#pendingSinceMs;
    const nowMs = this.#parts.runtime.now();
    const firstMs = since.get(txHash);
    if (firstMs !== undefined) return nowMs - firstMs > MAX_PENDING_MS;
    const [oldest] = since.keys();
    if (since.size >= MAX_WATCHED && oldest !== undefined) since.delete(oldest);
    since.set(txHash, nowMs);
    return false;
  }
}

/** The reserve that one settlement needs; never more than it may cost. */
function costOfOne({ fees }: GasPrice, maxGasWei: bigint): bigint {
  return lesserOf(USUAL_GAS * fees.maxWei, maxGasWei);
}

/** Whether a settlement would cost more than it may. */
function isDear(price: GasPrice, maxGasWei: bigint): boolean {
  return feesWithin(price, USUAL_GAS, maxGasWei) === null;
}

async function priceAt(node: EvmNode, { baseFeeWei }: EvmBlock): Promise<GasPrice> {
  if (baseFeeWei === null)
    throw new ChainFailure(
      "The payment chain has no base fee: the EIP-3009 rail needs a chain with EIP-1559",
    );
  return { baseFeeWei, fees: feesFor(baseFeeWei, await node.tip()) };
}

interface Call {
  readonly to: Hex;
  readonly data: Hex;
}

interface Made {
  readonly deed: WalletTransaction;
  readonly fees: Fees;
}

interface Bounds {
  readonly now: GasPrice;
  readonly maxGasWei: bigint;
}

/**
 * The first transaction, or the same one with higher fees. A first one that would revert is not
 * sent; one that has its nonce already must be.
 */
function madeOf(
  call: Call,
  gas: bigint | null,
  { before, ...bounds }: Bounds & { readonly before: string | null },
): Made | null {
  if (before === null) {
    const fees = gas === null ? null : feesWithin(bounds.now, gas, bounds.maxGasWei);
    return gas === null || fees === null ? null : { deed: { ...call, gas }, fees };
  }
  const { deed, fees } = parseSigned(before);
  const enough = greaterOf(gas ?? 0n, deed.gas);
  const raised = raisedFees(fees, enough, bounds);
  return raised === null ? null : { deed: { ...deed, gas: enough }, fees: raised };
}

/** Fees that replace `before`; null = the gas would cost more than it may. */
function raisedFees(before: Fees, gas: bigint, { now, maxGasWei }: Bounds): Fees | null {
  const present = feesWithin(now, gas, maxGasWei);
  const raised = present === null ? null : feesToReplace(before, present);
  return raised === null || gas * raised.maxWei > maxGasWei ? null : raised;
}

/** Null = it would revert. */
async function gasOf(node: EvmNode, from: Hex, call: Call): Promise<bigint | null> {
  const answer = await node.estimateGas({ from, ...call });
  return answer.kind === "node_error" && answer.reverted
    ? null
    : gasFor(resultOf(answer, "eth_estimateGas"));
}

async function nonceAtDepth(
  { node, confirmations }: EvmWalletParts,
  address: Hex,
  head: EvmBlock,
): Promise<bigint> {
  const answer = await node.nonce(address, greaterOf(head.number - BigInt(confirmations), 0n));
  if (answer.kind === "result") return answer.value;
  // Nodes keep the state of some hundred blocks only; the newest one is the fallback.
  return resultOf(await node.nonce(address, "latest"), "eth_getTransactionCount");
}
