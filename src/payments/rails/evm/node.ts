// The RPC calls of EIP-3009 payments, typed: blocks, receipts, logs, contract calls, the wallet.
// Knows no purchase and decides nothing.
import type { Hex } from "viem";
import { z } from "zod";
import { greaterOf, lesserOf } from "../../../core/billing/payment.ts";
import {
  ChainFailure,
  type NodeError,
  type NodeResult,
  PaymentChain,
  parseQuantity,
  resultOf,
} from "../chain.ts";

/** Filters events by contract, topics and blocks. */
export interface LogQuery {
  readonly address: string;
  readonly topics: readonly (string | readonly string[] | null)[];
  readonly fromBlock: bigint;
  readonly toBlock: bigint;
}

/** Bounds of the queries for the logs of many blocks. */
export interface LogRangeLimits {
  readonly maxBlocks: bigint;
  readonly maxQuestions?: number;
  /**
   * Any failure narrows a range of several blocks, and ranges widen again after an answer; else
   * only a refusal by the node narrows them.
   */
  readonly isPatient?: true;
  /** Called before each question; throws to end the reading. */
  readonly check?: () => void;
}

/** A call of a contract that changes no state. */
export interface ContractCall {
  readonly from?: string;
  readonly to: string;
  readonly data: Hex;
}

/** Typed calls of one node; every method throws `ChainFailure` while it is not reached. */
export class EvmNode extends PaymentChain {
  #isChecked = false;

  /**
   * As `network`, after the contracts on the chain were once found to be the configured ones:
   * `check` throws where they are not, since then no payment could be judged.
   */
  async checkedNetwork(check: () => Promise<void>): Promise<string> {
    const network = await this.network();
    if (!this.#isChecked) await check();
    this.#isChecked = true;
    return network;
  }

  /** Null = the chain has no such block yet, or the node does not have it. */
  block(at: bigint | "latest"): Promise<EvmBlock | null> {
    const read = (block: unknown) => blockShape.nullable().parse(block);
    return this.get("eth_getBlockByNumber", [tagOf(at), false], read);
  }

  async head(): Promise<EvmBlock> {
    const head = await this.block("latest");
    if (head === null) throw new ChainFailure("The payment chain's node has no newest block");
    return head;
  }

  receipt(txHash: string): Promise<EvmReceipt | null> {
    const read = (receipt: unknown) => receiptShape.nullable().parse(receipt);
    return this.get("eth_getTransactionReceipt", [txHash], read);
  }

  /** Whether the node has the transaction, pending or in a block. */
  knows(txHash: string): Promise<boolean> {
    return this.get("eth_getTransactionByHash", [txHash], (transaction) => transaction !== null);
  }

  logs({
    fromBlock,
    toBlock,
    ...filter
  }: LogQuery): Promise<NodeResult<readonly EvmLog[]> | NodeError> {
    const range = { fromBlock: tagOf(fromBlock), toBlock: tagOf(toBlock) };
    return this.call("eth_getLogs", [{ ...filter, ...range }], parseLogs);
  }

  /** The logs of many blocks, in order, by queries of as many blocks as the node allows. */
  async *logRanges(
    { fromBlock, toBlock, ...filter }: LogQuery,
    { maxBlocks, maxQuestions = Number.POSITIVE_INFINITY, isPatient, check }: LogRangeLimits,
  ): AsyncGenerator<{ readonly logs: readonly EvmLog[]; readonly block: bigint }> {
    let width = maxBlocks;
    let asked = 0;
    for (let from = fromBlock; from <= toBlock; ) {
      check?.();
      if (++asked > maxQuestions)
        throw new ChainFailure(
          "The payment chain's node gives the logs of too few blocks at once to read them all",
        );
      const last = lesserOf(from + width - 1n, toBlock);
      const answer = await this.logs({ ...filter, fromBlock: from, toBlock: last }).catch(
        (error: unknown) => {
          if (isPatient && last > from && error instanceof ChainFailure) return null;
          throw error;
        },
      );
      if (answer === null || (answer.kind === "node_error" && width > 1n)) {
        width = greaterOf(width / 4n, 1n);
        continue;
      }
      yield { logs: resultOf(answer, "eth_getLogs"), block: last };
      from = last + 1n;
      if (isPatient) width = lesserOf(width * 2n, maxBlocks);
    }
  }

  /** What a contract returns. */
  view(call: ContractCall, at: bigint | "latest"): Promise<NodeResult<Hex> | NodeError> {
    return this.call("eth_call", [call, tagOf(at)], (data) => hex.parse(data));
  }

  /** The one number that a contract returns; throws on any other return value. */
  word(call: ContractCall, at: bigint | "latest"): Promise<bigint> {
    return this.get("eth_call", [call, tagOf(at)], (data) => BigInt(hash.parse(data)));
  }

  estimateGas(call: ContractCall): Promise<NodeResult<bigint> | NodeError> {
    return this.call("eth_estimateGas", [call], parseQuantity);
  }

  balance(address: string): Promise<bigint> {
    return this.get("eth_getBalance", [address, "latest"], parseQuantity);
  }

  nonce(
    address: string,
    at: bigint | "latest" | "pending",
  ): Promise<NodeResult<bigint> | NodeError> {
    return this.call("eth_getTransactionCount", [address, tagOf(at)], parseQuantity);
  }

  /** The usual tip, in wei; null = the node gives no estimate. */
  async tip(): Promise<bigint | null> {
    const answer = await this.call("eth_maxPriorityFeePerGas", [], parseQuantity);
    return answer.kind === "result" ? answer.value : null;
  }

  /** Ignores errors that the node answers. */
  async send(raw: string): Promise<void> {
    await this.call("eth_sendRawTransaction", [raw], (result) => result);
  }
}

/**
 * The first block that is not older than `timeS`, by bisection, or the oldest one that the node
 * has. `check` is called before each question, and may throw.
 */
export async function firstBlockSince(
  node: Pick<EvmNode, "block">,
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

/** First topic of `Transfer(address,address,uint256)`. */
export const TRANSFER: Hex = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/** An address as a topic. */
export function topicOf(address: string): Hex {
  return `0x${address.slice(2).toLowerCase().padStart(64, "0")}`;
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

function parseLogs(value: unknown): readonly EvmLog[] {
  const logs = z.array(logShape).parse(value);
  return logs.filter(({ isRemoved }) => !isRemoved);
}
