// The status of a payment on a Tempo chain: paid when its transfer is in a block that is deep
// enough, failed when no block can include its transaction any more. Decides by blocks and receipts
// alone, never by what a node answered to a sent transaction.
import { greaterOf, lesserOf } from "../../../core/billing/payment.ts";
import { ChainFailure, resultOf } from "../chain.ts";
import { type EvmBlock, type EvmNode, type EvmReceipt, topicOf } from "../evm/node.ts";
import type { ChainStatus } from "../rail.ts";
import type { PullMaterial, PushMaterial, TempoMaterial } from "./payment.ts";
import { paidBy, TRANSFER_WITH_MEMO } from "./transfer.ts";

/** The node, and the depth of final blocks. */
export interface TempoStatusParts {
  readonly node: EvmNode;
  readonly confirmations: number;
}

/** Reads the status of a payment. Throws while the chain is not reached. */
export async function tempoChainStatus(
  parts: TempoStatusParts,
  material: TempoMaterial,
): Promise<ChainStatus> {
  const receipt = await parts.node.receipt(material.hash);
  if (receipt !== null) return statusOf(parts, receipt, material);
  return material.kind === "pull" ? absentPull(parts, material) : absentPush(parts, material);
}

/** The status of a transaction that is in a block. */
async function statusOf(
  { node, confirmations }: TempoStatusParts,
  receipt: EvmReceipt,
  { due }: TempoMaterial,
): Promise<ChainStatus> {
  const [block, head] = await Promise.all([
    node.block(receipt.block),
    confirmations === 0 ? null : node.head(),
  ]);
  // The block was reorganised away; the next look decides.
  if (block?.hash !== receipt.blockHash) return STILL_OPEN;
  if (head !== null && head.number - receipt.block < BigInt(confirmations)) return STILL_OPEN;
  if (!receipt.succeeded)
    return { kind: "failed", reason: "the transaction reverted: nothing was paid" };
  const log = paidBy(receipt.logs, due);
  if (log === null)
    return { kind: "failed", reason: "the transaction does not pay what its challenge asks for" };
  return { kind: "settled", txHash: receipt.txHash, block: receipt.block, logIndex: log.logIndex };
}

const STILL_OPEN: ChainStatus = { kind: "open", resend: false, replace: false };

/** Nodes behind one address may be behind each other by this much. */
const LAG_S = 10n;
const LAG_BLOCKS = 10n;
const MS_PER_S = 1_000;
/**
 * How long after its challenge a transaction is awaited. Pull: the service sends it, and it is
 * valid until its nonce is used. Push: the payer sends it.
 */
const PATIENCE_PULL_S = 86_400;
const PATIENCE_PUSH_S = 3_600;

async function absentPull(parts: TempoStatusParts, material: PullMaterial): Promise<ChainStatus> {
  const { node } = parts;
  const [known, deep] = await Promise.all([node.knows(material.hash), deepBlock(parts)]);
  const over = await overBy(node, material, deep);
  if (over === null) return { kind: "open", resend: !known, replace: false };
  // Read after the block that ends its validity: its receipt exists now, or never will.
  const late = (await node.receipt(material.hash)) ?? (await otherReceipt(node, material, deep));
  return late === null ? { kind: "failed", reason: over } : statusOf(parts, late, material);
}

/** Why no block after `deep` can include the transaction; null = one can. */
async function overBy(
  node: EvmNode,
  { validBeforeS, nonce, payer, expiresAtMs }: PullMaterial,
  deep: EvmBlock,
): Promise<string | null> {
  if (validBeforeS !== null)
    return deep.timeS >= BigInt(validBeforeS) + LAG_S
      ? "the transaction was not taken into a block before it ended"
      : null;
  const at = greaterOf(deep.number - LAG_BLOCKS, 0n);
  const next = resultOf(await node.nonce(payer, at), "eth_getTransactionCount");
  if (nonce !== null && next > nonce)
    return "another transaction of the payer's has used the nonce of this one";
  return Number(deep.timeS) >= expiresAtMs / MS_PER_S + PATIENCE_PULL_S
    ? "the transaction was not taken into a block within a day"
    : null;
}

async function absentPush(
  parts: TempoStatusParts,
  { expiresAtMs }: PushMaterial,
): Promise<ChainStatus> {
  const deep = await deepBlock(parts);
  if (Number(deep.timeS) < expiresAtMs / MS_PER_S + PATIENCE_PUSH_S) return STILL_OPEN;
  return { kind: "failed", reason: "the transaction is not on the chain" };
}

/** The newest block that is deep enough. */
async function deepBlock({ node, confirmations }: TempoStatusParts): Promise<EvmBlock> {
  const head = await node.head();
  if (confirmations === 0) return head;
  const number = head.number - BigInt(confirmations);
  return (number < 0n ? null : await node.block(number)) ?? { ...head, timeS: 0n, number: 0n };
}

const LIMITS = { maxBlocks: 5_000n, maxQuestions: 20 };
/** More than any Tempo chain makes. */
const MAX_BLOCKS_PER_S = 4n;
const MARGIN_S = 60n;

/**
 * A payer who signs the same payment twice makes two transactions, of which the chain carries out
 * one. This finds the other one: by payer, recipient and memo, from the time when the payment was
 * shown, within a bounded number of calls.
 */
async function otherReceipt(
  node: EvmNode,
  { due, payer, memo, readAtMs }: PullMaterial,
  deep: EvmBlock,
): Promise<EvmReceipt | null> {
  const sinceS = deep.timeS - BigInt(Math.floor(readAtMs / MS_PER_S)) + MARGIN_S;
  const blocks = lesserOf(
    greaterOf(sinceS, MARGIN_S) * MAX_BLOCKS_PER_S,
    LIMITS.maxBlocks * BigInt(LIMITS.maxQuestions) - 1n,
  );
  const query = {
    address: due.token,
    topics: [TRANSFER_WITH_MEMO, topicOf(payer), topicOf(due.recipient), memo],
    fromBlock: greaterOf(deep.number - blocks, 0n),
    toBlock: deep.number,
  };
  for await (const { logs } of node.logRanges(query, LIMITS)) {
    const log = paidBy(logs, due);
    if (log !== null) return (await node.receipt(log.txHash)) ?? missing();
  }
  return null;
}

function missing(): never {
  throw new ChainFailure(
    "The payment chain's node has an event, but not the receipt that it stands in",
  );
}
