// A simulated chain: blocks with logs, branches that replace each other, and the texts a node would
// show of them. Knows no node and no time.
import { keccak_256 } from "@noble/hashes/sha3.js";
import type { Block } from "../../src/core/stream/chain-event.ts";

/** A log of a block. */
export interface ChainLog {
  readonly index: number;
  readonly address: string;
  readonly topics: readonly string[];
}

/** A block that was mined, on whatever branch. */
export interface ChainBlock extends Block {
  readonly logs: readonly ChainLog[];
}

/** Which logs are wanted, as a node reads it. */
export interface ChainFilter {
  readonly address?: string | readonly string[];
  readonly topics?: readonly (string | readonly string[] | null)[];
}

/** A chain that grows and changes its mind. */
export interface FakeChain {
  /** The canonical newest block. */
  tip(): ChainBlock;
  /** Mines on top of the tip. */
  mine(): ChainBlock;
  /** Replaces the newest `depth` blocks by as many and `further` more. */
  reorg(depth: number, further: number): ChainBlock;
  /** Mines `length` blocks on the block `depth` below the tip, which stays the tip. */
  fork(depth: number, length: number): ChainBlock;
  byHash(hash: string): ChainBlock | undefined;
  /** The block of this number on the branch that ends with `tip`. */
  at(tip: ChainBlock, number: number): ChainBlock | undefined;
  /**
   * How one gets from one tip to another: blocks left, newest first, and blocks come to, oldest
   * first.
   */
  walk(
    from: ChainBlock,
    to: ChainBlock,
  ): { readonly left: readonly ChainBlock[]; readonly come: readonly ChainBlock[] };
}

/** The addresses and topics that occur in its logs. */
export const ADDRESSES = [1, 2, 3].map((it) => `0x${it.toString(16).padStart(40, "a")}`);
export const TOPICS = [1, 2, 3].map((it) => `0x${it.toString(16).padStart(64, "b")}`);

/** A chain of some blocks; `random` decides which logs there are. */
export function fakeChain(random: () => number, height = 100): FakeChain {
  const blocks = new Map<string, ChainBlock>();
  let mined = 0;
  let tip = make(null);
  while (tip.number < height) tip = make(tip);

  function make(parent: ChainBlock | null): ChainBlock {
    mined++;
    const logs = Array.from({ length: Math.floor(random() * 5) }, (_, at) => ({
      index: at * 2,
      address: ADDRESSES[Math.floor(random() * ADDRESSES.length)] ?? "",
      topics: TOPICS.slice(0, 1 + Math.floor(random() * 2)).map(
        () => TOPICS[Math.floor(random() * TOPICS.length)] ?? "",
      ),
    }));
    const block = {
      number: parent === null ? height - 64 : parent.number + 1,
      hash: hashOf(mined),
      parentHash: parent?.hash ?? hashOf(0),
      logs,
    };
    blocks.set(block.hash, block);
    return block;
  }

  function parentOf(block: ChainBlock): ChainBlock {
    const parent = blocks.get(block.parentHash);
    if (parent === undefined) throw new Error(`block ${block.number} is the first one`);
    return parent;
  }

  return {
    tip: () => tip,
    mine() {
      tip = make(tip);
      return tip;
    },
    reorg(depth, further) {
      for (let n = 0; n < depth; n++) tip = parentOf(tip);
      for (let n = 0; n < depth + further; n++) tip = make(tip);
      return tip;
    },
    fork(depth, length) {
      let end = tip;
      for (let n = 0; n < depth; n++) end = parentOf(end);
      for (let n = 0; n < length; n++) end = make(end);
      return end;
    },
    byHash: (hash) => blocks.get(hash),
    at(from, number) {
      let block: ChainBlock | undefined = from;
      while (block !== undefined && block.number > number) block = blocks.get(block.parentHash);
      return block?.number === number ? block : undefined;
    },
    walk(from, to) {
      const left: ChainBlock[] = [];
      const come: ChainBlock[] = [];
      let [old, young] = [from, to];
      while (old !== young) {
        if (old.number >= young.number) {
          left.push(old);
          old = parentOf(old);
        } else {
          come.unshift(young);
          young = parentOf(young);
        }
      }
      return { left, come };
    },
  };
}

/** What a node says of the logs in its headers: the truth, nothing at all, or something false. */
export type Blooms = "true" | "left out" | "zero" | "false" | "full";

/** A header as it is pushed. */
export function headerText(block: ChainBlock, blooms: Blooms = "true"): string {
  return `{${headerMembers(block, blooms).join(",")}}`;
}

/** A block as it is answered: the header's members, and others before, between and after them. */
export function blockText(
  block: ChainBlock,
  blooms: Blooms = "true",
  transactions: readonly string[] = [hashOf(block.number)],
): string {
  const [first = "", ...rest] = headerMembers(block, blooms);
  const own = [
    `"size":"0x2a1"`,
    first,
    `"uncles":[]`,
    ...rest,
    `"totalDifficulty":"0x0"`,
    `"transactions":${JSON.stringify(transactions)}`,
    `"withdrawals":[]`,
  ];
  return `{${own.join(",")}}`;
}

/** A log as it is pushed and answered. */
export function logText(block: ChainBlock, log: ChainLog, removed = false): string {
  return JSON.stringify({
    address: log.address,
    topics: log.topics,
    data: "0x00",
    blockNumber: hex(block.number),
    transactionHash: hashOf(block.number),
    transactionIndex: "0x0",
    blockHash: block.hash,
    logIndex: hex(log.index),
    removed,
  });
}

/** The logs of a block that a filter wants. */
export function wanted(
  block: ChainBlock,
  { address, topics = [] }: ChainFilter,
): readonly ChainLog[] {
  const fits = (
    choice: string | readonly string[] | null | undefined,
    value: string | undefined,
  ): boolean =>
    choice === null ||
    choice === undefined ||
    (value !== undefined && [choice].flat().includes(value));
  return block.logs.filter(
    (log) =>
      fits(address, log.address) && topics.every((choice, at) => fits(choice, log.topics[at])),
  );
}

function headerMembers(block: ChainBlock, blooms: Blooms): readonly string[] {
  const { number, hash, parentHash } = block;
  const fill = (name: string): string =>
    `"${name}":"0x${name.length.toString(16).padStart(64, "0")}"`;
  return [
    `"parentHash":"${parentHash}"`,
    ...["sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot"].map(fill),
    ...bloomMembers(block, blooms),
    `"difficulty":"0x0"`,
    `"number":"${hex(number)}"`,
    ...[
      "gasLimit",
      "gasUsed",
      "timestamp",
      "extraData",
      "mixHash",
      "nonce",
      "baseFeePerGas",
      "withdrawalsRoot",
      "blobGasUsed",
      "excessBlobGas",
    ].map(fill),
    `"strange": {"n": 123456789012345678901234567890, "s":"\\u00e9\\/"}`,
    ...["parentBeaconBlockRoot", "requestsHash"].map(fill),
    `"hash":"${hash}"`,
  ];
}

/** Blooms cost hashes, and every node says each of them many times. */
const toldBlooms = new WeakMap<ChainBlock, Map<Blooms, readonly string[]>>();

/** Length of a logs bloom. */
export const BLOOM_BYTES = 256;

/** Adds an address or topic to a logs bloom. */
export function addToBloom(bloom: Buffer, text: string): void {
  const hash = keccak_256(Buffer.from(text.slice(2), "hex"));
  for (const at of [0, 2, 4]) {
    const bit = (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 0x7ff;
    const byte = BLOOM_BYTES - 1 - (bit >> 3);
    bloom[byte] = (bloom[byte] ?? 0) | (1 << (bit & 7));
  }
}

function bloomMembers(block: ChainBlock, blooms: Blooms): readonly string[] {
  const told = toldBlooms.get(block) ?? new Map<Blooms, readonly string[]>();
  toldBlooms.set(block, told);
  const members = told.get(blooms) ?? newBloomMembers(block, blooms);
  told.set(blooms, members);
  return members;
}

function newBloomMembers({ hash, logs }: ChainBlock, blooms: Blooms): readonly string[] {
  const bloom = Buffer.alloc(BLOOM_BYTES);
  switch (blooms) {
    case "left out":
      return [];
    case "full":
      bloom.fill(0xff);
      break;
    case "false":
      addToBloom(bloom, hash);
      break;
    case "true":
      for (const { address, topics } of logs)
        for (const it of [address, ...topics]) addToBloom(bloom, it);
      break;
    case "zero":
      break;
  }
  return [`"logsBloom":"0x${bloom.toString("hex")}"`];
}

function hashOf(count: number): string {
  return `0x${count.toString(16).padStart(64, "0")}`;
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
