// The settlement wallet: drafts the transactions that submit authorizations, knows the wallet's
// balance, and notices a transaction that is pending for too long. Keeps no nonces: they are taken
// where purchases are written.
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Runtime } from "../../../runtime.ts";
import { ChainFailure } from "../chain.ts";
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
import { type EvmBlock, type EvmNode, resultOf } from "./node.ts";

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

/** The wallet that pays for gas. */
export interface EvmWallet {
  readonly address: Hex;
  /** Whether it can pay for one more settlement at the present fees, within the limit. */
  canPay(head: EvmBlock): Promise<boolean>;
  /** Null = the call would revert, or costs more than the wallet holds or may pay. */
  draft(purchase: RailPurchase, call: Call): Promise<Draft | null>;
  /** What to do about the newest submission, which has had no effect as of `head`. */
  nextStep(
    newest: Submission,
    head: EvmBlock,
  ): Promise<{ readonly resend: boolean; readonly replace: boolean }>;
  state(): Promise<WalletState>;
}

/** A transaction that is next in line and pending for longer than this gets a higher fee. */
const MAX_PENDING_MS = 60_000;
const MAX_WATCHED = 1_000;

/** The wallet of this key. */
export function createEvmWallet(parts: EvmWalletParts): EvmWallet {
  const { node, chainId, maxGasWei } = parts;
  const account = privateKeyToAccount(`0x${parts.walletKey.slice(2)}`);
  const id = `${chainId}:${account.address}`.toLowerCase();
  const isStuck = createPatience(parts.runtime);
  return {
    address: account.address,
    async canPay(head) {
      const [balance, price] = await Promise.all([
        node.balance(account.address),
        priceAt(node, head),
      ]);
      return !isDear(price, maxGasWei) && balance >= costOfOne(price, maxGasWei);
    },
    async draft({ submissions }, call) {
      const before = submissions.at(-1)?.raw ?? null;
      const [now, balance, nonce, gas] = await Promise.all([
        priceAt(node, await node.head()),
        node.balance(account.address),
        node.nonce(account.address, "pending"),
        gasOf(node, account.address, call),
      ]);
      const made = madeOf(call, gas, { before, now, maxGasWei });
      if (made === null || balance < made.deed.gas * made.fees.maxWei) return null;
      return {
        wallet: { id, chainNonce: resultOf(nonce, "eth_getTransactionCount") },
        sign: (taken) =>
          taken === null
            ? Promise.reject(new Error("a settlement takes a nonce"))
            : signedBy(account, made.deed, { chainId, nonce: taken, fees: made.fees }),
      };
    },
    nextStep: (newest, head) =>
      actionFor({ ...parts, address: account.address, isStuck }, newest, head),
    async state() {
      const head = await node.head();
      const [balanceWei, price, nonce] = await Promise.all([
        node.balance(account.address),
        priceAt(node, head),
        nonceAtDepth(parts, account.address, head),
      ]);
      const empty = balanceWei < costOfOne(price, maxGasWei);
      return {
        id,
        balanceWei,
        low: balanceWei < parts.lowGasWei,
        empty,
        dear: isDear(price, maxGasWei),
        nonce,
      };
    },
  };
}

interface PendingParts extends EvmWalletParts {
  readonly address: Hex;
  readonly isStuck: (txHash: string) => boolean;
}

/** Whether a transaction without effect is to be sent again or replaced. */
async function actionFor(
  { node, maxGasWei, address, isStuck }: PendingParts,
  { txHash, raw, nonce }: Submission,
  head: EvmBlock,
): Promise<{ readonly resend: boolean; readonly replace: boolean }> {
  if (raw === null || nonce === null) return { resend: false, replace: false };
  const [isKnown, place] = await Promise.all([
    node.knows(txHash),
    node.nonce(address, head.number),
  ]);
  // Its nonce is used: by another transaction, or by this one, which reverted.
  if (place.kind === "result" && place.value > nonce) return { resend: true, replace: false };
  const { deed, fees } = parseSigned(raw);
  const isCheap = head.baseFeeWei !== null && fees.maxWei < head.baseFeeWei;
  const isLate = place.kind === "result" && place.value === nonce && isStuck(txHash);
  const replace =
    (isCheap || isLate) &&
    raisedFees(fees, deed.gas, { now: await priceAt(node, head), maxGasWei }) !== null;
  // A transaction that pays too little is replaced, not sent again.
  return { resend: !isKnown && !replace, replace };
}

/** The reserve that one settlement needs; never more than it may cost. */
function costOfOne({ fees }: GasPrice, maxGasWei: bigint): bigint {
  const cost = USUAL_GAS * fees.maxWei;
  return cost < maxGasWei ? cost : maxGasWei;
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
  const enough = gas === null || gas < deed.gas ? deed.gas : gas;
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
  const depth = BigInt(confirmations);
  const answer = await node.nonce(address, head.number > depth ? head.number - depth : 0n);
  if (answer.kind === "result") return answer.value;
  // Nodes keep the state of some hundred blocks only; the newest one is the fallback.
  return resultOf(await node.nonce(address, "latest"), "eth_getTransactionCount");
}

/** Whether a transaction has been pending for more than a minute. Forgets the oldest ones. */
function createPatience(runtime: Runtime): (txHash: string) => boolean {
  const firstMs = new Map<string, number>();
  return (txHash) => {
    const since = firstMs.get(txHash);
    if (since !== undefined) return runtime.now() - since > MAX_PENDING_MS;
    const [oldest] = firstMs.keys();
    if (firstMs.size >= MAX_WATCHED && oldest !== undefined) firstMs.delete(oldest);
    firstMs.set(txHash, runtime.now());
    return false;
  };
}
