// The contract that holds channels: reads states, receipts and events, sends transactions. Every
// request has a deadline. Writes nothing to the store and knows no RPC call. Source of the
// interface: TIP-1034.

import { Session } from "mppx/tempo";
import { decodeEventLog, decodeFunctionResult, encodeFunctionData } from "viem";
import { Abis } from "viem/tempo";
import { greaterOf } from "../../../core/billing/payment.ts";
import type { Runtime } from "../../../runtime.ts";
import { ChainFailure, resultOf } from "../../rails/chain.ts";
import { type EvmLog, type EvmNode, TRANSFER, topicOf } from "../../rails/evm/node.ts";
import type { Hex } from "../descriptor.ts";
import type { SessionTerms } from "../terms.ts";

/** A channel on its chain; a deposit of 0 = the chain has no such channel, or not any more. */
export interface EscrowState {
  readonly deposit: bigint;
  readonly settled: bigint;
  /** When the payer asked for the deposit back, on the chain's clock; null = never. */
  readonly closeRequestedAtMs: number | null;
}

/** A block with the configured number of confirmations. */
export interface EscrowBlock {
  readonly number: bigint;
  readonly timeMs: number;
}

/** What a transaction did to a channel, by the name of its event; amounts in base units. */
export interface ChannelEvent {
  readonly name: "ChannelOpened" | "TopUp" | "Settled" | "ChannelClosed";
  /** The deposit after it, or the sum settled so far. */
  readonly units: bigint;
}

/** The receipt of a transaction in a block. */
export interface SettlementReceipt {
  readonly ok: boolean;
  readonly block: bigint;
  readonly events: readonly ChannelEvent[];
  /** Amount of the token that moved from the contract to the recipient. */
  readonly movedUnits: bigint;
}

/** What the contract is read with. */
export interface EscrowParts {
  readonly node: EvmNode;
  readonly terms: SessionTerms;
  readonly confirmations: number;
  readonly runtime: Pick<Runtime, "now">;
}

const ABI = Session.Precompile.escrowAbi;
/** After this time a shorter chain is believed: it was reorganised. */
const BEHIND_MS = 60_000;
/**
 * Blocks that may come between two checks beyond those that the time explains. A node further ahead
 * is believed after some minutes.
 */
const MAX_JUMP = 1_000n;
const MAX_BLOCKS_PER_SECOND = 100;
const JUMP_MS = 180_000;
/** A node without a new block for so long is cut off; payers wait far longer for a deposit. */
const STANDS_MS = 300_000;

/** Reads and writes the contract. Every method throws `ChainFailure` where the chain fails. */
export class Escrow {
  readonly #parts: EscrowParts;
  readonly #checkHeight: (number: bigint) => void;

  constructor(parts: EscrowParts) {
    this.#parts = parts;
    this.#checkHeight = createHeightCheck(parts.runtime);
  }

  network(): Promise<string> {
    return this.#parts.node.network();
  }

  async head(): Promise<EscrowBlock> {
    const { node, confirmations } = this.#parts;
    const latest = await node.head();
    this.#checkHeight(latest.number);
    const at = greaterOf(latest.number - BigInt(confirmations), 0n);
    const block = confirmations === 0 ? latest : await node.block(at);
    if (block === null) throw new ChainFailure(`The payment chain's node has no block ${at}`);
    return { number: block.number, timeMs: Number(block.timeS) * 1_000 };
  }

  /** At a block, in the order of the ids. */
  async states(ids: readonly Hex[], block: bigint): Promise<readonly EscrowState[]> {
    const { node, terms } = this.#parts;
    const functionName = "getChannelStatesBatch";
    const data = encodeFunctionData({ abi: ABI, functionName, args: [ids] });
    const result = resultOf(await node.view({ to: terms.escrow, data }, block), "eth_call");
    const states = decodeFunctionResult({ abi: ABI, functionName, data: result });
    if (states.length !== ids.length)
      throw new ChainFailure(
        `The payment chain's node answered for ${states.length} channels instead of ${ids.length}`,
      );
    return states.map(({ deposit, settled, closeRequestedAt }) => ({
      deposit,
      settled,
      closeRequestedAtMs: closeRequestedAt === 0 ? null : closeRequestedAt * 1_000,
    }));
  }

  /** Null = it is in no block. */
  async taken(hash: Hex, channelId: Hex): Promise<SettlementReceipt | null> {
    const { node, terms } = this.#parts;
    const receipt = await node.receipt(hash);
    if (receipt === null) return null;
    const { logs, succeeded, block } = receipt;
    return {
      ok: succeeded,
      block,
      events: eventsOf(logs, terms.escrow, channelId),
      movedUnits: movedIn(logs, terms),
    };
  }

  /** How a channel was closed between two blocks; null = it was not closed there. */
  async ended(channelId: Hex, fromBlock: bigint, toBlock: bigint): Promise<ChannelEvent | null> {
    const { node, terms } = this.#parts;
    const topics = [null, channelId];
    const logs = await node.logs({ address: terms.escrow, topics, fromBlock, toBlock });
    const events = eventsOf(resultOf(logs, "eth_getLogs"), terms.escrow, channelId);
    return events.findLast(({ name }) => name === "ChannelClosed") ?? null;
  }

  /**
   * Sends a signed transaction; harmless when it was sent before. The node's answer decides
   * nothing: the receipt does.
   */
  send(raw: Hex): Promise<void> {
    return this.#parts.node.send(raw);
  }

  /** How long a payer has to wait for the deposit after asking for it. */
  async graceMs(): Promise<number> {
    const { node, terms } = this.#parts;
    const data = encodeFunctionData({ abi: ABI, functionName: "CLOSE_GRACE_PERIOD" });
    return Number(await node.word({ to: terms.escrow, data }, "latest")) * 1_000;
  }

  /** The token balance of an address. */
  balance(address: Hex): Promise<bigint> {
    const { node, terms } = this.#parts;
    const functionName = "balanceOf";
    const data = encodeFunctionData({ abi: Abis.tip20, functionName, args: [address] });
    return node.word({ to: terms.token, data }, "latest");
  }
}

/**
 * Checks each new height of the chain; throws `ChainFailure` where it cannot be right. Nodes behind
 * one address need not be at the same height: none is believed that is behind another one.
 */
function createHeightCheck(runtime: Pick<Runtime, "now">): (number: bigint) => void {
  let highest = { number: -1n, atMs: 0, sinceMs: 0 };
  let jumpedMs: number | null = null;

  function checkJump(number: bigint, nowMs: number): void {
    const seconds = (nowMs - highest.atMs) / 1_000;
    const likely = MAX_JUMP + BigInt(Math.ceil(seconds * MAX_BLOCKS_PER_SECOND));
    const isLikely = highest.number < 0n || number <= highest.number + likely;
    if (!isLikely) jumpedMs ??= nowMs;
    if (!isLikely && jumpedMs !== null && nowMs - jumpedMs < JUMP_MS)
      throw new ChainFailure(
        `The payment chain's node is at block ${number}, far above the ${highest.number} before`,
      );
    jumpedMs = null;
  }

  return (number) => {
    const nowMs = runtime.now();
    if (number < highest.number && nowMs - highest.atMs < BEHIND_MS)
      throw new ChainFailure(
        `The payment chain's node is at block ${number}, and one was at ${highest.number} before`,
      );
    checkJump(number, nowMs);
    const sinceMs = number === highest.number ? highest.sinceMs : nowMs;
    highest = { number, atMs: nowMs, sinceMs };
    if (nowMs - sinceMs >= STANDS_MS)
      throw new ChainFailure(
        `The payment chain's node stands at block ${number} for ` +
          `${Math.floor((nowMs - sinceMs) / 1_000)} seconds`,
      );
  };
}

function eventsOf(logs: readonly EvmLog[], escrow: Hex, channelId: Hex): readonly ChannelEvent[] {
  return logs
    .filter(({ address, topics }) => address === escrow && topics[1] === channelId)
    .flatMap(({ topics, data }) => eventOf(topics, data) ?? []);
}

function movedIn(logs: readonly EvmLog[], { token, escrow, recipient }: SessionTerms): bigint {
  const paid = logs.filter(
    ({ address, topics: [name, from, to] }) =>
      address === token &&
      name === TRANSFER &&
      from === topicOf(escrow) &&
      to === topicOf(recipient),
  );
  return paid.reduce((sum, { data }) => sum + BigInt(data), 0n);
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
