// The contract that holds channels, as it is asked and told: states, receipts, what we settle and
// close. Every question has a deadline. Writes nothing to the store and knows no call. Source of
// the interface: TIP-1034.
import { decodeEventLog, decodeFunctionResult, encodeFunctionData } from "viem";
import { Abis } from "viem/tempo";
import { z } from "zod";
import type { Runtime } from "../../runtime.ts";
import {
  ChainFailure,
  chainFailureOf,
  type NodeError,
  type PaymentChain,
  parseQuantity,
} from "../rails/chain.ts";
import { type Hex, parseHex } from "./descriptor.ts";
import type { SessionTerms } from "./terms.ts";

/** A channel as the chain has it; a deposit of nothing = the chain knows none, or none any more. */
export interface EscrowState {
  readonly deposit: bigint;
  readonly settled: bigint;
  /** When the payer told it to give the deposit back, on the chain's clock; null = not. */
  readonly closeRequestedAtMs: number | null;
}

/** A block that counts: as many follow it as are configured. */
export interface EscrowBlock {
  readonly number: bigint;
  readonly timeMs: number;
}

/** What a transaction did to a channel, by the name of its event; amounts in base units. */
export interface ChannelEvent {
  readonly name: "ChannelOpened" | "TopUp" | "Settled" | "ChannelClosed";
  /** The deposit after it, or what was taken out in all. */
  readonly units: bigint;
}

/** A transaction that the chain has taken. */
export interface SettlementReceipt {
  readonly ok: boolean;
  readonly block: bigint;
  readonly events: readonly ChannelEvent[];
  /** What of the token came from the contract to the recipient. */
  readonly movedUnits: bigint;
}

/**
 * Asks and tells the contract. Everything throws `ChainFailure` where the chain cannot be asked.
 */
export interface Escrow {
  network(): Promise<string>;
  head(): Promise<EscrowBlock>;
  /** At a block, in the order of the ids. */
  states(ids: readonly Hex[], block: bigint): Promise<readonly EscrowState[]>;
  /** Null = no block has it. */
  taken(hash: Hex, channelId: Hex): Promise<SettlementReceipt | null>;
  /** How a channel ended between two blocks; null = it is not to be found there. */
  ended(channelId: Hex, from: bigint, to: bigint): Promise<ChannelEvent | null>;
  /** Sends signed bytes; harmless when they were sent before. */
  send(raw: Hex): Promise<void>;
  /** How long a payer who wants the deposit back has to wait. */
  graceMs(): Promise<number>;
  /** What an address holds of the token. */
  balance(address: Hex): Promise<bigint>;
}

/** What it is asked with. */
export interface EscrowParts {
  readonly chain: PaymentChain;
  readonly terms: SessionTerms;
  readonly confirmations: number;
  readonly runtime: Pick<Runtime, "now">;
}

const ABI = Abis.tip20ChannelReserve;
/** After this a chain that is shorter than before is believed: it was reorganised. */
const BEHIND_MS = 60_000;
/**
 * Blocks that may come between two looks beside those that time explains: a node that is further
 * ahead is believed once it has said so for some minutes.
 */
const MAX_JUMP = 1_000n;
const MAX_BLOCKS_PER_SECOND = 100;
const JUMP_MS = 180_000;
/**
 * A node without a new block for so long does not see its chain any more: far shorter than a payer
 * has to wait for a deposit.
 */
const STANDS_MS = 300_000;

/** The contract of `terms`. */
export function createEscrow({ chain, terms, confirmations, runtime }: EscrowParts): Escrow {
  const call = async <T>(
    data: Hex,
    block: string,
    read: (result: Hex) => T,
    to: Hex = terms.escrow,
  ): Promise<T> =>
    chain.get("eth_call", [{ to, data }, block], (result) => read(hexShape.parse(result)));
  /**
   * Nodes behind one address need not be at the same height: none is believed that is behind
   * another one.
   */
  let highest = { number: -1n, atMs: 0, sinceMs: 0 };
  let jumpedMs: number | null = null;
  const checkJump = (number: bigint): void => {
    const likely =
      MAX_JUMP +
      BigInt(Math.ceil(((runtime.now() - highest.atMs) / 1_000) * MAX_BLOCKS_PER_SECOND));
    const isLikely = highest.number < 0n || number <= highest.number + likely;
    if (!isLikely) jumpedMs ??= runtime.now();
    if (!isLikely && jumpedMs !== null && runtime.now() - jumpedMs < JUMP_MS)
      throw new ChainFailure(
        `The payment chain's node is at block ${number}, far above the ${highest.number} before`,
      );
    jumpedMs = null;
  };

  return {
    network: () => chain.network(),
    async head() {
      const latest = await chain.get("eth_getBlockByNumber", ["latest", false], parseBlock);
      if (latest.number < highest.number && runtime.now() - highest.atMs < BEHIND_MS)
        throw new ChainFailure(
          `The payment chain's node is at block ${latest.number}, and one was at ` +
            `${highest.number} before`,
        );
      checkJump(latest.number);
      const atMs = runtime.now();
      highest = {
        number: latest.number,
        atMs,
        sinceMs: latest.number === highest.number ? highest.sinceMs : atMs,
      };
      if (atMs - highest.sinceMs >= STANDS_MS)
        throw new ChainFailure(
          `The payment chain's node stands at block ${latest.number} for ` +
            `${Math.floor((atMs - highest.sinceMs) / 1_000)} seconds`,
        );
      const depth = BigInt(confirmations);
      if (depth === 0n) return latest;
      const number = latest.number > depth ? latest.number - depth : 0n;
      return chain.get("eth_getBlockByNumber", [quantityOf(number), false], parseBlock);
    },
    async states(ids, block) {
      const data = encodeFunctionData({
        abi: ABI,
        functionName: "getChannelStatesBatch",
        args: [ids],
      });
      const states = await call(data, quantityOf(block), (result) =>
        decodeFunctionResult({ abi: ABI, functionName: "getChannelStatesBatch", data: result }),
      );
      if (states.length !== ids.length)
        throw new ChainFailure(
          `The payment chain's node answered for ${states.length} channels instead of ${ids.length}`,
        );
      return states.map(({ deposit, settled, closeRequestedAt }) => ({
        deposit,
        settled,
        closeRequestedAtMs: closeRequestedAt === 0 ? null : closeRequestedAt * 1_000,
      }));
    },
    async taken(hash, channelId) {
      const receipt = await chain.get("eth_getTransactionReceipt", [hash], parseReceipt);
      if (receipt === null) return null;
      const { logs, status, blockNumber } = receipt;
      return {
        ok: status === "0x1",
        block: blockNumber,
        events: eventsOf(logs, terms.escrow, channelId),
        movedUnits: movedIn(logs, terms),
      };
    },
    async ended(channelId, from, to) {
      const filter = {
        address: terms.escrow,
        topics: [null, channelId],
        fromBlock: quantityOf(from),
        toBlock: quantityOf(to),
      };
      const logs = await chain.get("eth_getLogs", [filter], (result) =>
        z.array(logShape).parse(result),
      );
      return (
        eventsOf(logs, terms.escrow, channelId).findLast((it) => it.name === "ChannelClosed") ??
        null
      );
    },
    async send(raw) {
      // What the node says of it decides nothing: the receipt does.
      await chain.ask("eth_sendRawTransaction", [raw], (result) => result);
    },
    async graceMs() {
      const data = encodeFunctionData({ abi: ABI, functionName: "CLOSE_GRACE_PERIOD" });
      return (
        Number(
          await call(data, "latest", (result) =>
            decodeFunctionResult({ abi: ABI, functionName: "CLOSE_GRACE_PERIOD", data: result }),
          ),
        ) * 1_000
      );
    },
    balance(address) {
      const data = encodeFunctionData({
        abi: Abis.tip20,
        functionName: "balanceOf",
        args: [address],
      });
      return call(
        data,
        "latest",
        (result) =>
          decodeFunctionResult({ abi: Abis.tip20, functionName: "balanceOf", data: result }),
        terms.token,
      );
    },
  };
}

/** Reads the parts of a block that fees and times come from. */
export function parseBlock(value: unknown): EscrowBlock & { readonly baseFee: bigint } {
  const { number, timestamp, baseFeePerGas } = blockShape.parse(value);
  return {
    number: parseQuantity(number),
    timeMs: Number(parseQuantity(timestamp)) * 1_000,
    baseFee: parseQuantity(baseFeePerGas ?? "0x0"),
  };
}

/** A number as nodes take it. */
export function quantityOf(value: bigint): Hex {
  return `0x${value.toString(16)}`;
}

/** The node's refusal as trouble, where it is not about the transaction itself. */
export function refusalOf(error: NodeError, method: string): NodeError {
  if (!error.reverted) throw chainFailureOf(error, method);
  return error;
}

const hexShape = z
  .string()
  .regex(/^0x[0-9a-fA-F]*$/)
  .transform(parseHex);
const blockShape = z.object({
  number: z.string(),
  timestamp: z.string(),
  baseFeePerGas: z.string().optional(),
});
const logShape = z.object({ address: hexShape, topics: z.array(hexShape), data: hexShape });
const receiptShape = z
  .object({
    status: z.string(),
    blockNumber: z.string().transform(parseQuantity),
    logs: z.array(logShape),
  })
  .nullable();

type Log = z.output<typeof logShape>;

function parseReceipt(value: unknown): z.output<typeof receiptShape> {
  return receiptShape.parse(value);
}

function eventsOf(logs: readonly Log[], escrow: Hex, channelId: Hex): readonly ChannelEvent[] {
  return logs
    .filter((it) => it.address === escrow && it.topics[1] === channelId)
    .flatMap(({ topics, data }) => eventOf(topics, data) ?? []);
}

/** `Transfer(address,address,uint256)` */
const TRANSFER: Hex = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const ADDRESS_CHARS = 40;

function movedIn(logs: readonly Log[], { token, escrow, recipient }: SessionTerms): bigint {
  const isAbout = (topic: Hex | undefined, address: Hex): boolean =>
    topic?.slice(-ADDRESS_CHARS) === address.slice(-ADDRESS_CHARS);
  const paid = logs.filter(
    ({ address, topics: [name, from, to] }) =>
      address === token && name === TRANSFER && isAbout(from, escrow) && isAbout(to, recipient),
  );
  return paid.reduce((sum, { data }) => sum + parseQuantity(data), 0n);
}

function eventOf([signature, ...indexed]: readonly Hex[], data: Hex): ChannelEvent | null {
  if (signature === undefined) return null;
  try {
    const event = decodeEventLog({ abi: ABI, topics: [signature, ...indexed], data });
    switch (event.eventName) {
      case "ChannelOpened":
        return { name: "ChannelOpened", units: event.args.deposit };
      case "TopUp":
        return { name: "TopUp", units: event.args.newDeposit };
      case "Settled":
        return { name: "Settled", units: event.args.newSettled };
      case "ChannelClosed":
        return { name: "ChannelClosed", units: event.args.settledToPayee };
      default:
        return null;
    }
  } catch {
    return null;
  }
}
