// The chain of the checker of views: a simulated chain whose blocks hold the transactions that were
// sent, and nonces that follow from them. Writes a block into the results of reads and reads it
// back out of them. Knows no provider and no time.
import { type ChainBlock, type FakeChain, fakeChain } from "../../fakes/chain.ts";

/** A signed transaction that some provider accepted. */
export interface SentTransaction {
  readonly hash: string;
  /** In lower case. */
  readonly from: string;
  readonly nonce: number;
}

/** Chooses what the next block holds, given the nonces that it begins with. */
export type Candidates = () => readonly SentTransaction[];

/** A chain of blocks with transactions. */
export interface ViewChain {
  readonly blocks: FakeChain;
  /** Mines on the tip. */
  mine(): ChainBlock;
  reorg(depth: number, further: number): ChainBlock;
  /** Mines beside the tip. */
  fork(depth: number, length: number): ChainBlock;
  transactionsOf(block: ChainBlock): readonly SentTransaction[];
  /** The next nonce of an account after a block. */
  nonceAt(block: ChainBlock, account: string): number;
  /** The block of the branch that ends with `tip` which holds a transaction. */
  inclusionOf(tip: ChainBlock, hash: string): ChainBlock | undefined;
}

const MAX_PER_BLOCK = 40;
/** A result holds the number and the end of the hash, each as 16 bytes. */
const HALF_BITS = 128n;
const HALF_MASK = (1n << HALF_BITS) - 1n;
const WORD_DIGITS = 64;

/** A chain of some blocks; what its blocks hold is chosen by `candidates`. */
export function createViewChain(random: () => number, candidates: Candidates): ViewChain {
  const blocks = fakeChain(random);
  const contents = new Map<string, Contents>();
  const inclusions = new Map<string, ChainBlock[]>();
  const empty: Contents = { transactions: [], nonces: new Map() };
  const contentsOf = (block: ChainBlock): Contents => contents.get(block.hash) ?? empty;

  /** Fills the blocks above those that were there. */
  function fill(old: ChainBlock, end: ChainBlock): ChainBlock {
    for (const block of blocks.walk(old, end).come) {
      const parent = blocks.byHash(block.parentHash);
      const before = parent === undefined ? empty : contentsOf(parent);
      const after = chosen(before.nonces, candidates());
      contents.set(block.hash, after);
      for (const { hash } of after.transactions)
        inclusions.set(hash, [...(inclusions.get(hash) ?? []), block]);
    }
    return end;
  }

  return {
    blocks,
    mine: () => fill(blocks.tip(), blocks.mine()),
    reorg: (depth, further) => fill(blocks.tip(), blocks.reorg(depth, further)),
    fork: (depth, length) => fill(blocks.tip(), blocks.fork(depth, length)),
    transactionsOf: (block) => contentsOf(block).transactions,
    nonceAt: (block, account) => contentsOf(block).nonces.get(account) ?? 0,
    inclusionOf: (tip, hash) =>
      inclusions.get(hash)?.find((block) => blocks.at(tip, block.number) === block),
  };
}

interface Contents {
  readonly transactions: readonly SentTransaction[];
  readonly nonces: ReadonlyMap<string, number>;
}

/** As many of the candidates as follow the nonces without a gap. */
function chosen(
  before: ReadonlyMap<string, number>,
  candidates: readonly SentTransaction[],
): Contents {
  const nonces = new Map(before);
  const transactions: SentTransaction[] = [];
  const inOrder = [...candidates].sort((a, b) => a.nonce - b.nonce);
  for (const one of inOrder) {
    if (transactions.length === MAX_PER_BLOCK) break;
    if ((nonces.get(one.from) ?? 0) !== one.nonce) continue;
    nonces.set(one.from, one.nonce + 1);
    transactions.push(one);
  }
  return { transactions, nonces };
}

/** The result of a read of data at a block: one word. */
export function wordOf(block: ChainBlock): string {
  return `0x${packed(block).toString(16).padStart(WORD_DIGITS, "0")}`;
}

/** The result of a read of an amount at a block. */
export function quantityOf(block: ChainBlock): string {
  return `0x${packed(block).toString(16)}`;
}

/** The block that one of these results was read at; undefined = it names none of the chain. */
export function blockOfResult(chain: FakeChain, result: unknown): ChainBlock | undefined {
  if (typeof result !== "string" || !/^0x[0-9a-f]{1,64}$/.test(result)) return undefined;
  const value = BigInt(result);
  const hash = `0x${(value & HALF_MASK).toString(16).padStart(WORD_DIGITS, "0")}`;
  const block = chain.byHash(hash);
  return block !== undefined && BigInt(block.number) === value >> HALF_BITS ? block : undefined;
}

function packed(block: ChainBlock): bigint {
  return (BigInt(block.number) << HALF_BITS) | (BigInt(block.hash) & HALF_MASK);
}
