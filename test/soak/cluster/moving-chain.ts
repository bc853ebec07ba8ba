// The chain of the callers with filters: it grows and reorganises by chance, and each provider
// follows it at its own pace. Answers as nodes do over HTTP.
import {
  blockText,
  type ChainBlock,
  type FakeChain,
  fakeChain,
  logText,
  wanted,
} from "../../fakes/chain.ts";

/** What a provider of the chain is asked. */
export interface ChainQuestion {
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: the service sends what nodes take
  readonly params: readonly any[];
}

/** The chain, and what its providers know of it. */
export interface MovingChain {
  readonly chain: FakeChain;
  /** Reorganisations so far. */
  readonly reorgs: () => number;
  /** The answer of a provider: a result or an error, as JSON members. */
  answer(provider: number, question: ChainQuestion): string;
  /** Mines until stopped; providers know everything when the returned function has been called. */
  start(random: () => number): () => void;
}

/** The id of the chain. */
export const MOVING_CHAIN_ID = 31_337;
/** Time between two blocks. */
const BLOCK_MS = { least: 250, most: 900 };
/** How far a provider is behind. */
const MOST_BEHIND_MS = 300;
const REORGANISES = 0.12;
const MOST_REPLACED = 4;
const MOST_FURTHER = 2;

/** A chain that stands still, with so many providers. */
export function createMovingChain(random: () => number, providers: number): MovingChain {
  const chain = fakeChain(random);
  const views = Array.from({ length: providers }, () => chain.tip());
  let reorgs = 0;

  function step(next: () => number): void {
    if (next() < REORGANISES) {
      reorgs++;
      chain.reorg(1 + Math.floor(next() * MOST_REPLACED), 1 + Math.floor(next() * MOST_FURTHER));
    } else chain.mine();
    views.forEach(
      (_, provider) => void setTimeout(() => follow(provider), next() * MOST_BEHIND_MS),
    );
  }

  function follow(provider: number): void {
    views[provider] = chain.tip();
  }

  return {
    chain,
    reorgs: () => reorgs,
    answer: (provider, question) => answerOf(chain, views[provider] ?? chain.tip(), question),
    start(next) {
      const waitMs = (): number => BLOCK_MS.least + (BLOCK_MS.most - BLOCK_MS.least) * next();
      let timer = setTimeout(again, waitMs());
      function again(): void {
        step(next);
        timer = setTimeout(again, waitMs());
      }
      return () => {
        clearTimeout(timer);
        for (const provider of views.keys()) follow(provider);
      };
    },
  };
}

function answerOf(chain: FakeChain, tip: ChainBlock, { method, params }: ChainQuestion): string {
  const [first] = params;
  switch (method) {
    case "eth_chainId":
      return `"result":"0x${MOVING_CHAIN_ID.toString(16)}"`;
    case "eth_blockNumber":
      return `"result":"0x${tip.number.toString(16)}"`;
    case "eth_getBlockByNumber":
      return blockResult(chain.at(tip, numberOf(first, tip)));
    case "eth_getBlockByHash":
      return blockResult(knownBlock(chain, tip, first));
    case "eth_getLogs":
      return logsResult(chain, tip, first);
    default:
      return '"error":{"code":-32601,"message":"the method does not exist"}';
  }
}

const FINAL_DEPTH = 32;

function numberOf(tag: unknown, tip: ChainBlock): number {
  if (tag === "finalized" || tag === "safe") return tip.number - FINAL_DEPTH;
  return tag === "latest" || tag === "pending" ? tip.number : Number(tag);
}

/** Blocks of other branches are known too, those above the own tip are not. */
function knownBlock(chain: FakeChain, tip: ChainBlock, hash: string): ChainBlock | undefined {
  const block = chain.byHash(hash);
  return block !== undefined && block.number <= tip.number ? block : undefined;
}

function blockResult(block: ChainBlock | undefined): string {
  return `"result":${block === undefined ? "null" : blockText(block)}`;
}

function logsResult(chain: FakeChain, tip: ChainBlock, filter: LogsFilter): string {
  const { blockHash, fromBlock = "latest", toBlock = "latest" } = filter;
  const blocks: (ChainBlock | undefined)[] = [];
  if (blockHash !== undefined) blocks.push(knownBlock(chain, tip, blockHash));
  else
    for (let n = numberOf(fromBlock, tip); n <= Math.min(tip.number, numberOf(toBlock, tip)); n++)
      blocks.push(chain.at(tip, n));
  if (blocks.includes(undefined)) return '"error":{"code":-32000,"message":"unknown block"}';
  const logs = blocks.flatMap((block) =>
    block === undefined ? [] : wanted(block, filter).map((log) => logText(block, log)),
  );
  return `"result":[${logs.join(",")}]`;
}

interface LogsFilter {
  readonly blockHash?: string;
  readonly fromBlock?: string;
  readonly toBlock?: string;
  readonly address?: string;
  readonly topics?: readonly (string | null)[];
}
