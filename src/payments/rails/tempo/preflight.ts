// Checks with the chain whether it would carry out a payment by Tempo now. A fault of the
// transaction refuses the payment; a node that cannot answer throws, and is never the payer's
// fault.
import { decodeFunctionResult, encodeFunctionData } from "viem";
import { Abis, Addresses } from "viem/tempo";
import { z } from "zod";
import { ChainFailure, chainFailureOf, type NodeError, resultOf } from "../chain.ts";
import type { EvmBlock, EvmNode, EvmReceipt } from "../evm/node.ts";
import { type BadPayment, bad } from "../rail.ts";
import type { TempoMaterial } from "./payment.ts";
import { EXPIRING_NONCE_KEY, parseTransaction, type TempoTransaction } from "./transaction.ts";
import { memoOfCalls, paidBy, type TempoCall } from "./transfer.ts";

/** Null = the chain would carry it out, or has done so. Throws while the chain is not reached. */
export async function checkMaterial(
  node: EvmNode,
  material: TempoMaterial,
): Promise<BadPayment | null> {
  const receipt = await node.receipt(material.hash);
  // In a block: the money has moved, no matter who sent it.
  if (receipt !== null) return wrongIn(receipt, material);
  if (material.kind === "pull") return checkRaw(node, material.raw);
  const calls = await node.get("eth_getTransactionByHash", [material.hash], parseCalls);
  // A transaction that does not prove its payment may stay pending for ever and be shown for many
  // challenges: it is accepted only once it is in a block.
  if (calls !== null && "memo" in memoOfCalls(calls, material.due)) return null;
  // The payer's node may be ahead of ours. A refusal would make a client pay once more.
  throw new ChainFailure(
    "The payment chain's node does not know the transaction yet, or it is in no block and does " +
      "not show that it pays",
  );
}

const callShape = z.object({
  to: z.string().nullish(),
  input: z.string().nullish(),
  data: z.string().nullish(),
});
const transactionShape = z
  .union([
    z.object({ calls: z.array(callShape).min(1) }),
    callShape.transform((call) => ({ calls: [call] })),
  ])
  .nullable();

/** The calls of a transaction as a node returns it; null = the node does not know it. */
function parseCalls(value: unknown): readonly TempoCall[] | null {
  return (
    transactionShape.parse(value)?.calls.map(({ to, input, data }) => ({
      to: to ?? undefined,
      data: input ?? data ?? undefined,
    })) ?? null
  );
}

/** Why a transaction in a block does not make the expected transfer; null = it does. */
function wrongIn(receipt: EvmReceipt, { due }: TempoMaterial): BadPayment | null {
  if (!receipt.succeeded)
    return bad("verification-failed", "The transaction reverted: nothing was paid. Pay again.");
  if (paidBy(receipt.logs, due) !== null) return null;
  return bad(
    "verification-failed",
    `The transaction has no \`transferWithMemo\` of ${due.units} base units of ${due.token} to ` +
      `${due.recipient} whose memo belongs to this challenge.`,
  );
}

/**
 * Why the chain would not carry out a transaction that a payer has signed and that was read before;
 * null = it would. Throws while the chain is not reached.
 */
export async function checkRaw(node: EvmNode, raw: string): Promise<BadPayment | null> {
  const transaction = parseTransaction(raw);
  if ("wrong" in transaction) throw new Error("what was read once cannot be read any more");
  const head = await node.head();
  return (
    wrongTime(transaction, head) ??
    (await wrongNonce(node, transaction)) ??
    (await wrongKey(node, transaction, head)) ??
    (await wrongInTrial(node, transaction))
  );
}

/** Nodes refuse a transaction that could hardly get into a block in time. */
const MIN_LEFT_S = 3;
/** The chain's bound for transactions without a nonce. */
const MAX_EXPIRING_S = 30;

function wrongTime(
  { validAfterS, validBeforeS, nonceKey }: TempoTransaction,
  head: EvmBlock,
): BadPayment | null {
  const nowS = Number(head.timeS);
  if (validBeforeS !== null && validBeforeS <= nowS + MIN_LEFT_S)
    return bad(
      "payment-expired",
      "The transaction is not valid any more, or too shortly: sign a new one.",
    );
  if (validAfterS !== null && validAfterS > nowS)
    return bad("verification-failed", "The transaction is not valid yet: sign one that is.");
  if (
    nonceKey === EXPIRING_NONCE_KEY &&
    (validBeforeS === null || validBeforeS > nowS + MAX_EXPIRING_S)
  )
    return bad(
      "verification-failed",
      `The chain takes such a transaction only with a \`validBefore\` within ${MAX_EXPIRING_S} ` +
        "seconds: sign a new one.",
    );
  return null;
}

/**
 * Checks the nonce that an account's ordinary transactions share: others may be pending before this
 * one, but none may be missing.
 */
async function wrongNonce(
  node: EvmNode,
  { nonceKey, nonce, payer }: TempoTransaction,
): Promise<BadPayment | null> {
  if (nonceKey !== 0n) return null;
  const [next, last] = await Promise.all([
    node.nonce(payer, "latest"),
    node.nonce(payer, "pending"),
  ]);
  const first = resultOf(next, "eth_getTransactionCount");
  if (nonce >= first && nonce <= resultOf(last, "eth_getTransactionCount")) return null;
  return bad(
    "verification-failed",
    `The transaction has nonce ${nonce}, but its account's next one is ${first}: sign a new one.`,
  );
}

async function wrongKey(
  node: EvmNode,
  { accessKey, bringsKey, payer }: TempoTransaction,
  head: EvmBlock,
): Promise<BadPayment | null> {
  if (accessKey === null || bringsKey) return null;
  const view = { abi: Abis.accountKeychain, functionName: "getKey" } as const;
  const data = encodeFunctionData({ ...view, args: [hexOf(payer), hexOf(accessKey)] });
  const read = (result: unknown) => decodeFunctionResult({ ...view, data: hexOf(String(result)) });
  const answer = await node.call(
    "eth_call",
    [{ to: Addresses.accountKeychain, data }, "latest"],
    read,
  );
  if (answer.kind === "node_error" && !answer.reverted) throw chainFailureOf(answer, "eth_call");
  if (answer.kind === "result" && !answer.value.isRevoked && answer.value.expiry > head.timeS)
    return null;
  return bad(
    "verification-failed",
    "The key that signed the transaction has no leave of its account.",
  );
}

function hexOf(text: string): `0x${string}` {
  return `0x${text.slice(2)}`;
}

/**
 * Simulates the transaction twice: as a whole, to see whether it may be sent and can pay its fee,
 * and its only call alone, since not every node executes calls when it simulates a transaction.
 */
async function wrongInTrial(
  node: EvmNode,
  { request, calls, payer }: TempoTransaction,
): Promise<BadPayment | null> {
  const [call] = calls;
  const trials = [
    request,
    ...(calls.length === 1 && call !== undefined
      ? [{ from: payer, to: call.to, data: call.data }]
      : []),
  ];
  for (const answer of await Promise.all(
    trials.map((trial) => node.call("eth_call", [trial, "latest"], (result) => result)),
  )) {
    if (answer.kind === "node_error") return wrongOf(answer);
  }
  return null;
}

/** First bytes of the error with which a TIP-20 token reverts when a balance is too low. */
const INSUFFICIENT_BALANCE = "0x832f98b5";
const SELECTOR_CHARS = 10;

/**
 * Errors by which nodes refuse a transaction, and what they mean for the payer. Any other error is
 * the node's own.
 */
const REFUSALS: readonly {
  readonly words: RegExp;
  readonly problem: string;
  readonly reason: string;
}[] = [
  {
    words: /insufficient (?:funds|fee token balance|balance|liquidity)/i,
    problem: "payment-insufficient",
    reason: "The payer cannot pay the transaction's fee.",
  },
  {
    words: /valid.?before|transaction expired/i,
    problem: "payment-expired",
    reason: "The transaction is not valid any more: sign a new one.",
  },
  {
    words: /valid.?after|not valid yet/i,
    problem: "verification-failed",
    reason: "The transaction is not valid yet: sign one that is.",
  },
  {
    words: /intrinsic gas|gas too low|gascostmorethangaslimit/i,
    problem: "verification-failed",
    reason: "The transaction has too little gas: sign one with more.",
  },
  {
    words: /max fee per gas less|fee ?cap less|feetoolow/i,
    problem: "verification-failed",
    reason: "The transaction offers too low a fee: sign one with a higher fee.",
  },
  {
    words: /nonce too (?:low|high)|replay/i,
    problem: "verification-failed",
    reason: "The transaction's nonce is used up: sign a new one.",
  },
];

function wrongOf(error: NodeError): BadPayment {
  if (error.reverted) {
    if (error.data?.startsWith(INSUFFICIENT_BALANCE))
      return bad("payment-insufficient", "The payer holds less of the token than is to be paid.");
    return bad(
      "verification-failed",
      "The transaction would revert " +
        `(${error.data?.slice(0, SELECTOR_CHARS) ?? "without a reason"}): nothing would be paid.`,
    );
  }
  const refusal = REFUSALS.find((candidate) => candidate.words.test(error.message));
  if (refusal === undefined) throw chainFailureOf(error, "eth_call");
  return bad(refusal.problem, refusal.reason);
}
