// The settlement wallet: makes the transactions that carry authorizations out, knows what it holds, and whether one of its transactions waits too long.
// Keeps no nonces: those are taken where purchases are written.
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { World } from "../../../world.ts";
import { ChainTrouble } from "./chain.ts";
import { type Deed, type Fees, feesFor, feesToReplace, gasFor, parseSigned, signedBy, USUAL_GAS } from "./evm-gas.ts";
import { type EvmBlock, type EvmNode, resultOf } from "./evm-node.ts";
import type { Draft, RailPurchase, Submission, WalletState } from "./rail.ts";

/** A wallet and its chain. */
export interface EvmWalletParts {
  readonly node: EvmNode;
  readonly world: World;
  readonly chainId: number;
  /** Secret. */
  readonly walletKey: string;
  readonly lowGasWei: bigint;
  readonly confirmations: number;
}

/** The wallet that pays for gas. */
export interface EvmWallet {
  readonly address: Hex;
  /** Whether it can pay for one more settlement. */
  canPay(head: EvmBlock): Promise<boolean>;
  /** Null = the call would be reverted, or costs more than the wallet holds or ever pays. */
  draft(purchase: RailPurchase, call: Call): Promise<Draft | null>;
  /** What is to be done about the newest submission, which has not done its work as of `head`. */
  waiting(newest: Submission, head: EvmBlock): Promise<{ readonly resend: boolean; readonly replace: boolean }>;
  state(): Promise<WalletState>;
}

/** A transaction that is next in line and not taken for so long gets a higher fee. */
const MAX_PENDING_MS = 60_000;
const MAX_WATCHED = 1_000;

/** The wallet of this key. */
export function createEvmWallet(parts: EvmWalletParts): EvmWallet {
  const { node, chainId } = parts;
  const account = privateKeyToAccount(`0x${parts.walletKey.slice(2)}`);
  const id = `${chainId}:${account.address}`.toLowerCase();
  const isStuck = createPatience(parts.world);
  return {
    address: account.address,
    canPay: async (head) => (await node.balance(account.address)) >= costOfOne(await presentFees(node, head)),
    async draft({ submissions }, call) {
      const before = submissions.at(-1)?.raw ?? null;
      const [now, balance, nonce, gas] = await Promise.all([
        presentFees(node, await node.head()),
        node.balance(account.address),
        node.nonce(account.address, "pending"),
        gasOf(node, account.address, call),
      ]);
      const made = madeOf(call, gas, { before, now });
      if (made === null || balance < made.deed.gas * made.fees.maxWei) return null;
      return {
        wallet: { id, chainNonce: resultOf(nonce, "eth_getTransactionCount") },
        sign: (taken) =>
          taken === null ? Promise.reject(new Error("a settlement takes a nonce")) : signedBy(account, made.deed, { chainId, nonce: taken, fees: made.fees }),
      };
    },
    async waiting({ txHash, raw, nonce }, head) {
      if (raw === null || nonce === null) return { resend: false, replace: false };
      const [isKnown, place] = await Promise.all([node.knows(txHash), node.nonce(account.address, head.number)]);
      // Its place is taken: by another transaction, or by itself, and it was reverted.
      if (place.kind === "result" && place.value > nonce) return { resend: true, replace: false };
      const { fees } = parseSigned(raw);
      const isCheap = head.baseFeeWei !== null && fees.maxWei < head.baseFeeWei;
      const isLate = place.kind === "result" && place.value === nonce && isStuck(txHash);
      const replace = (isCheap || isLate) && feesToReplace(fees, await presentFees(node, head)) !== null;
      // What pays too little is not sent again as it is.
      return { resend: !isKnown && !replace, replace };
    },
    async state() {
      const head = await node.head();
      const [balanceWei, fees, nonce] = await Promise.all([node.balance(account.address), presentFees(node, head), nonceAtDepth(parts, account.address, head)]);
      return { id, balanceWei, low: balanceWei < parts.lowGasWei, empty: balanceWei < costOfOne(fees), nonce };
    },
  };
}

function costOfOne({ maxWei }: Fees): bigint {
  return USUAL_GAS * maxWei;
}

async function presentFees(node: EvmNode, { baseFeeWei }: EvmBlock): Promise<Fees> {
  if (baseFeeWei === null) throw new ChainTrouble("The payment chain has no base fee: the EIP-3009 rail needs a chain with EIP-1559");
  return feesFor(baseFeeWei, await node.tip());
}

interface Call {
  readonly to: Hex;
  readonly data: Hex;
}

interface Made {
  readonly deed: Deed;
  readonly fees: Fees;
}

/** The first transaction, or the same once more for more. No gas is spent on finding out that a call would be reverted; but what has a nonce needs it no more. */
function madeOf(call: Call, gas: bigint | null, { before, now }: { readonly before: string | null; readonly now: Fees }): Made | null {
  if (before === null) return gas === null ? null : { deed: { ...call, gas }, fees: now };
  const { deed, fees } = parseSigned(before);
  const raised = feesToReplace(fees, now);
  return raised === null ? null : { deed: { ...deed, gas: gas === null || gas < deed.gas ? deed.gas : gas }, fees: raised };
}

/** Null = it would be reverted. */
async function gasOf(node: EvmNode, from: Hex, call: Call): Promise<bigint | null> {
  const answer = await node.estimateGas({ from, ...call });
  return answer.kind === "node_error" && answer.reverted ? null : gasFor(resultOf(answer, "eth_estimateGas"));
}

async function nonceAtDepth({ node, confirmations }: EvmWalletParts, address: Hex, head: EvmBlock): Promise<bigint> {
  const depth = BigInt(confirmations);
  const answer = await node.nonce(address, head.number > depth ? head.number - depth : 0n);
  if (answer.kind === "result") return answer.value;
  // Nodes keep the state of some hundred blocks; the newest one is the next best.
  return resultOf(await node.nonce(address, "latest"), "eth_getTransactionCount");
}

/** Tells whether a transaction has been asked for over more than a minute. Forgets the oldest ones. */
function createPatience(world: World): (txHash: string) => boolean {
  const firstMs = new Map<string, number>();
  return (txHash) => {
    const since = firstMs.get(txHash);
    if (since !== undefined) return world.now() - since > MAX_PENDING_MS;
    const [oldest] = firstMs.keys();
    if (firstMs.size >= MAX_WATCHED && oldest !== undefined) firstMs.delete(oldest);
    firstMs.set(txHash, world.now());
    return false;
  };
}
