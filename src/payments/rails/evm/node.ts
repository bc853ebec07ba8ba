// The RPC calls of EIP-3009 payments, typed: blocks, receipts, logs, contract calls, the wallet.
// Knows no purchase and decides nothing.
import type { Hex } from "viem";
import { z } from "zod";
import {
  ChainFailure,
  chainFailureOf,
  type NodeError,
  type NodeResult,
  type PaymentChain,
  parseQuantity,
} from "../chain.ts";

/** Filters events by contract, topics and blocks. */
export interface LogQuery {
  readonly address: string;
  readonly topics: readonly (string | readonly string[] | null)[];
  readonly fromBlock: bigint;
  readonly toBlock: bigint;
}

/** A call of a contract that changes no state. */
export interface ContractCall {
  readonly from?: string;
  readonly to: string;
  readonly data: Hex;
}

/** Calls one node; every method throws `ChainFailure` while it is not reached. */
export interface EvmNode {
  network(): Promise<string>;
  /** Null = the chain has no such block yet, or the node does not have it. */
  block(at: bigint | "latest"): Promise<EvmBlock | null>;
  head(): Promise<EvmBlock>;
  receipt(txHash: string): Promise<EvmReceipt | null>;
  /** Whether the node has the transaction, pending or in a block. */
  knows(txHash: string): Promise<boolean>;
  logs(query: LogQuery): Promise<NodeResult<readonly EvmLog[]> | NodeError>;
  call(call: ContractCall, at: bigint | "latest"): Promise<NodeResult<Hex> | NodeError>;
  /** The one number that a call returns; throws on any other return value. */
  word(call: ContractCall, at: bigint | "latest"): Promise<bigint>;
  estimateGas(call: ContractCall): Promise<NodeResult<bigint> | NodeError>;
  balance(address: string): Promise<bigint>;
  nonce(
    address: string,
    at: bigint | "latest" | "pending",
  ): Promise<NodeResult<bigint> | NodeError>;
  /** The usual tip, in wei; null = the node gives no estimate. */
  tip(): Promise<bigint | null>;
  /** Ignores errors that the node answers. */
  send(raw: string): Promise<void>;
}

/** The node of a payment chain. */
export function createEvmNode(chain: PaymentChain): EvmNode {
  const block: EvmNode["block"] = (at) =>
    chain.get("eth_getBlockByNumber", [tagOf(at), false], parseBlock);
  return {
    network: () => chain.network(),
    block,
    async head() {
      const head = await block("latest");
      if (head === null) throw new ChainFailure("The payment chain's node has no newest block");
      return head;
    },
    receipt: (txHash) => chain.get("eth_getTransactionReceipt", [txHash], parseReceipt),
    knows: (txHash) =>
      chain.get("eth_getTransactionByHash", [txHash], (transaction) => transaction !== null),
    logs: ({ fromBlock, toBlock, ...filter }) =>
      chain.call(
        "eth_getLogs",
        [{ ...filter, fromBlock: tagOf(fromBlock), toBlock: tagOf(toBlock) }],
        parseLogs,
      ),
    call: (call, at) => chain.call("eth_call", [call, tagOf(at)], parseHex),
    word: (call, at) => chain.get("eth_call", [call, tagOf(at)], parseWord),
    estimateGas: (call) => chain.call("eth_estimateGas", [call], parseQuantity),
    balance: (address) => chain.get("eth_getBalance", [address, "latest"], parseQuantity),
    nonce: (address, at) =>
      chain.call("eth_getTransactionCount", [address, tagOf(at)], parseQuantity),
    async tip() {
      const answer = await chain.call("eth_maxPriorityFeePerGas", [], parseQuantity);
      return answer.kind === "result" ? answer.value : null;
    },
    async send(raw) {
      await chain.call("eth_sendRawTransaction", [raw], (result) => result);
    },
  };
}

/** The result; throws an error of the node as `ChainFailure`. */
export function resultOf<T>(answer: NodeResult<T> | NodeError, method: string): T {
  if (answer.kind === "node_error") throw chainFailureOf(answer, method);
  return answer.value;
}

/**
 * The first block that is not older than `timeS`, by bisection, or the oldest one that the node
 * has. `check` is called before each question, and may throw.
 */
export async function firstBlockSince(
  node: EvmNode,
  timeS: bigint,
  head: bigint,
  check = (): void => {},
): Promise<bigint> {
  let low = 0n;
  let high = head;
  while (low < high) {
    check();
    const middle = (low + high) / 2n;
    const block = await node.block(middle);
    if (block === null || block.timeS < timeS) low = middle + 1n;
    else high = middle;
  }
  return low;
}

function tagOf(at: bigint | "latest" | "pending"): string {
  return typeof at === "bigint" ? `0x${at.toString(16)}` : at;
}

const MAX_DATA_DIGITS = 200_000;
const quantity = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,64}$/)
  .transform((text) => BigInt(text));
const topic = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/)
  .transform((text): Hex => `0x${text.slice(2).toLowerCase()}`);
const hash: z.ZodType<string> = topic;
const hex = z
  .string()
  .regex(/^0x[0-9a-fA-F]*$/)
  .max(MAX_DATA_DIGITS)
  .transform((text): Hex => `0x${text.slice(2).toLowerCase()}`);
const contract: z.ZodType<string> = hex;
const blockShape = z
  .object({ number: quantity, hash, timestamp: quantity, baseFeePerGas: quantity.nullish() })
  .transform(({ timestamp, baseFeePerGas = null, ...rest }) => ({
    ...rest,
    timeS: timestamp,
    /** Null on chains without EIP-1559. */
    baseFeeWei: baseFeePerGas,
  }));
const logShape = z
  .object({
    address: contract,
    topics: z.array(topic).max(4),
    data: hex,
    logIndex: quantity,
    transactionHash: hash,
    blockNumber: quantity,
    blockHash: hash,
    removed: z.boolean().nullish(),
  })
  .transform(({ logIndex, transactionHash, blockNumber, removed, ...rest }) => ({
    ...rest,
    logIndex: Number(logIndex),
    txHash: transactionHash,
    block: blockNumber,
    isRemoved: removed === true,
  }));
const receiptShape = z
  .object({
    transactionHash: hash,
    blockNumber: quantity,
    blockHash: hash,
    status: quantity,
    logs: z.array(logShape),
  })
  .transform(({ transactionHash, blockNumber, status, ...rest }) => ({
    ...rest,
    txHash: transactionHash,
    block: blockNumber,
    succeeded: status === 1n,
  }));

/** The fields of a block's header that are needed. */
export type EvmBlock = Readonly<z.output<typeof blockShape>>;

/** One event of a contract. Hex in lower case. */
export interface EvmLog extends Omit<z.output<typeof logShape>, "isRemoved" | "topics"> {
  readonly topics: readonly Hex[];
}

/** The receipt of a transaction in a block. */
export type EvmReceipt = Readonly<Omit<z.output<typeof receiptShape>, "logs">> & {
  readonly logs: readonly EvmLog[];
};

function parseBlock(value: unknown): EvmBlock | null {
  return blockShape.nullable().parse(value);
}

function parseReceipt(value: unknown): EvmReceipt | null {
  return receiptShape.nullable().parse(value);
}

function parseLogs(value: unknown): readonly EvmLog[] {
  const logs = z.array(logShape).parse(value);
  return logs.filter(({ isRemoved }) => !isRemoved);
}

function parseHex(value: unknown): Hex {
  return hex.parse(value);
}

function parseWord(value: unknown): bigint {
  return BigInt(hash.parse(value));
}
