// The status of an EIP-3009 payment on its chain: whether the chain would carry it out, and how it
// ended. Decides by the token's own state and events at the configured depth, whichever address
// sent the transaction. Writes and sends nothing.
import type { Runtime } from "../../../runtime.ts";
import { ChainFailure, chainFailureOf, type NodeError } from "../chain.ts";
import {
  type BadPayment,
  bad,
  type ChainStatus,
  type Payment,
  type RailPurchase,
} from "../rail.ts";
import { type Authorization, type EvmMaterial, parseMaterial } from "./authorization.ts";
import { type Search, searchUse } from "./authorization-search.ts";
import type { EvmBlock, EvmNode } from "./node.ts";
import type { EvmWallet } from "./settlement-wallet.ts";
import {
  type AuthorizationUse,
  balanceData,
  revertReason,
  stateData,
  transferData,
  useIn,
} from "./token.ts";

/** The node, and the depth of final blocks. */
export interface EvmStatusParts {
  readonly node: EvmNode;
  readonly runtime: Runtime;
  readonly wallet: EvmWallet;
  readonly confirmations: number;
}

const MAX_RECEIPTS = 8;

/** Checks whether the chain would carry a payment out now, or has done so. */
export async function checkPayment(
  { node, runtime, wallet }: EvmStatusParts,
  payment: Payment,
): Promise<BadPayment | null> {
  const material = parseMaterial(payment.material);
  const { authorization, token } = material;
  const head = await node.head();
  const [ended, held, hasGas, tried] = await Promise.all([
    isEnded(node, material, head),
    node.word({ to: token, data: balanceData(authorization.from) }, head.number),
    wallet.canPay(head),
    node.view({ from: wallet.address, to: token, data: transferData(authorization) }, head.number),
  ]);
  if (ended) {
    const use = await searchUse({ node, runtime, material, head });
    // It was carried out before it was shown to us: the money has arrived.
    return use?.kind === "paid"
      ? null
      : bad("verification-failed", `${HOW[use?.how ?? "before"]} Sign a fresh one.`);
  }
  if (held < authorization.value)
    return bad(
      "payment-insufficient",
      "The payer does not hold that much of the token. Fund the account, or pay from another one.",
    );
  if (tried.kind === "node_error") return refusedBy(tried);
  // Not the payer's fault; a payment that cannot be settled is not accepted.
  if (!hasGas)
    throw new ChainFailure(
      "The settlement wallet holds too little to pay for a settlement, or gas costs more than " +
        "it may: send it gas, or see max_gas_wei",
    );
  return null;
}

function refusedBy(error: NodeError): BadPayment {
  if (!error.reverted) throw chainFailureOf(error, "eth_call");
  const reason = revertReason(error.data);
  return bad(
    "verification-failed",
    "The token would not carry the authorization " +
      `out${reason === null ? "" : ` ("${reason}")`}. Correct that and sign a fresh one.`,
  );
}

/** The status of a purchase. */
export async function evmChainStatus(
  parts: EvmStatusParts,
  { payment, submissions }: RailPurchase,
): Promise<ChainStatus> {
  const { node, runtime, wallet, confirmations } = parts;
  const material = parseMaterial(payment.material);
  const head = await node.head();
  const depth = BigInt(confirmations);
  const receipts = await Promise.all(
    submissions.slice(-MAX_RECEIPTS).map((submission) => node.receipt(submission.txHash)),
  );
  const own = receipts.reduce<AuthorizationUse | null>(
    (found, receipt) =>
      found ?? (receipt === null ? null : useIn(receipt, material.token, material.authorization)),
    null,
  );
  const use =
    own ??
    ((await isEnded(node, material, head))
      ? await foundUse({ node, runtime, material, head })
      : null);
  if (use !== null)
    return use.block + depth <= head.number && (await isCanonical(node, use))
      ? statusOf(use)
      : WAIT;
  if (await isPast(node, material.authorization, { head, depth }))
    return { kind: "failed", reason: EXPIRED };
  const newest = submissions.at(-1);
  return newest === undefined ? WAIT : { kind: "open", ...(await wallet.nextStep(newest, head)) };
}

const WAIT: ChainStatus = { kind: "open", resend: false, replace: false };
const EXPIRED = "The authorization expired before the chain carried it out; no money has moved.";
const HOW = {
  before: "The authorization was used or cancelled before this offer was made.",
  cancelled: "The payer cancelled the authorization; no money has moved to the recipient.",
  elsewhere:
    "The payer spent the nonce of the authorization on another payment; no money has moved to " +
    "the recipient.",
} as const;

/**
 * The authorization was unused when the payment was accepted, or it had paid: its use must be
 * found, or there is no verdict.
 */
async function foundUse(search: Search): Promise<AuthorizationUse> {
  const use = await searchUse(search);
  if (use === null)
    throw new ChainFailure(
      "The payment chain says that an authorization is used, but its node has no event that " +
        "says how: it has to keep its logs",
    );
  return use;
}

function statusOf(use: AuthorizationUse): ChainStatus {
  return use.kind === "paid"
    ? { kind: "settled", txHash: use.txHash, block: use.block, logIndex: use.logIndex }
    : { kind: "failed", reason: HOW[use.how] };
}

/** Whether the token reports an authorization as used or cancelled. */
async function isEnded(
  node: EvmNode,
  { token, authorization }: EvmMaterial,
  head: EvmBlock,
): Promise<boolean> {
  const state = await node.word({ to: token, data: stateData(authorization) }, head.number);
  if (state > 1n)
    throw new ChainFailure(
      "The token of the payment chain does not say whether an authorization is used: it is " +
        "none with EIP-3009",
    );
  return state === 1n;
}

async function isCanonical(
  node: EvmNode,
  { block, blockHash }: AuthorizationUse,
): Promise<boolean> {
  return (await node.block(block))?.hash === blockHash;
}

/**
 * Whether no block from the final one on can carry it out. It was unused as of the newest block, so
 * no earlier one has.
 */
async function isPast(
  node: EvmNode,
  { validBefore }: Authorization,
  { head, depth }: { readonly head: EvmBlock; readonly depth: bigint },
): Promise<boolean> {
  if (head.timeS < validBefore || head.number < depth) return false;
  const deep = depth === 0n ? head : await node.block(head.number - depth);
  return deep !== null && deep.timeS >= validBefore;
}
