// A simulated provider of the checker of views: answers reads from exactly the branch of its own
// tip, keeps a pool of transactions, and counts what it is asked. Knows no socket and no time.
import { parseTransaction, recoverTransactionAddress, type TransactionSerialized } from "viem";
import { keccak256 } from "viem/utils";
import {
  blockText,
  type ChainBlock,
  type ChainFilter,
  logText,
  wanted,
} from "../../fakes/chain.ts";
import { quantityOf, type SentTransaction, type ViewChain, wordOf } from "./chain.ts";

/** One request. */
export interface ProviderRequest {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** A provider. */
export interface SimulatedProvider {
  readonly index: number;
  /** The newest block of its branch. */
  readonly tip: () => ChainBlock;
  moveTo(tip: ChainBlock): void;
  /** Transactions that it has ever heard of. */
  readonly pool: Map<string, SentTransaction>;
  /** Requests by method, or by what they are where that says more. */
  readonly counts: Map<string, number>;
  /** The answer as JSON members: a result or an error. */
  answer(request: ProviderRequest): string | Promise<string>;
}

/** What a provider is made of. */
export interface ProviderPlan {
  readonly index: number;
  readonly chain: ViewChain;
  /** Hears of each transaction that it accepted from the service. */
  readonly onAccepted: (transaction: SentTransaction) => void;
}

/** The id of the chain. */
export const VIEW_CHAIN_ID = 31_338;
/** How far below its tip a provider calls blocks safe and finalized. */
const SAFE_DEPTH = 8;
const FINAL_DEPTH = 32;
const KEPT_TEXTS = 4_096;

/** What a request counts as that is the service's own and no caller's. */
export const OWN_REQUESTS: ReadonlySet<string> = new Set([
  "eth_chainId",
  "eth_blockNumber",
  "eth_subscribe",
  "eth_unsubscribe",
  "block by tag",
  "probe by hash",
]);

/** A provider at the tip of the chain. */
export function createProvider({ index, chain, onAccepted }: ProviderPlan): SimulatedProvider {
  let tip = chain.blocks.tip();
  const pool = new Map<string, SentTransaction>();
  const counts = new Map<string, number>();
  const textOf = blockTexts(chain);
  const view: View = { chain, tip: () => tip, pool, textOf };

  async function send([raw]: readonly unknown[]): Promise<string> {
    const transaction = await decoded(String(raw));
    if (transaction === null) return error(-32_000, "failed to decode transaction");
    if (transaction.nonce < chain.nonceAt(tip, transaction.from))
      return error(-32_000, "nonce too low");
    if (pool.has(transaction.hash)) return error(-32_000, "already known");
    pool.set(transaction.hash, transaction);
    onAccepted(transaction);
    return text(transaction.hash);
  }

  return {
    index,
    tip: () => tip,
    moveTo(next) {
      tip = next;
    },
    pool,
    counts,
    answer(request) {
      const kind = kindOf(request);
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      return request.method === "eth_sendRawTransaction"
        ? send(request.params)
        : readOf(view, request);
    },
  };
}

/** What answers are made of. */
interface View extends Pick<SimulatedProvider, "tip" | "pool"> {
  readonly chain: ViewChain;
  readonly textOf: (block: ChainBlock) => string;
}

/** Callers' blocks by tag come as blocks by hash, and no caller asks about the zero address. */
function kindOf({ method, params: [first] }: ProviderRequest): string {
  if (method === "eth_getBlockByNumber" && !String(first).startsWith("0x")) return "block by tag";
  return method === "eth_getBalance" && /^0x0+$/.test(String(first)) ? "probe by hash" : method;
}

function readOf(view: View, { method, params }: ProviderRequest): string {
  const [first, second, third] = params;
  const tip = view.tip();
  switch (method) {
    case "eth_chainId":
      return text(hex(VIEW_CHAIN_ID));
    case "eth_blockNumber":
      return text(hex(tip.number));
    case "eth_gasPrice":
      return text("0x3b9aca00");
    case "eth_call":
    case "eth_getCode":
      return atBlock(view, second, (block) => text(wordOf(block)));
    case "eth_getStorageAt":
      return atBlock(view, third, (block) => text(wordOf(block)));
    case "eth_getBalance":
      return atBlock(view, second, (block) => text(quantityOf(block)));
    case "eth_getTransactionCount":
      return nonceResult(view, String(first).toLowerCase(), second);
    case "eth_getBlockByNumber":
      return blockResult(view, namedBlock(view, first));
    case "eth_getBlockByHash":
      return blockResult(view, heldBlock(view, first));
    case "eth_getLogs":
      return logsResult(view, Object(first));
    case "eth_getTransactionByHash":
      return transactionResult(view, String(first));
    case "eth_getTransactionReceipt":
      return receiptResult(view, String(first));
    default:
      return error(-32_601, `the method ${method} does not exist/is not available`);
  }
}

/** The block that a tag or number means to this provider; undefined = it has none such. */
function namedBlock({ chain, tip }: View, name: unknown): ChainBlock | undefined {
  const newest = tip();
  const depth = DEPTHS[String(name ?? "latest")];
  if (depth !== undefined) return chain.blocks.at(newest, newest.number - depth);
  const number = name === "earliest" ? FIRST_BLOCK : Number(name);
  return number > newest.number ? undefined : chain.blocks.at(newest, number);
}

const DEPTHS: Readonly<Record<string, number>> = {
  latest: 0,
  pending: 0,
  safe: SAFE_DEPTH,
  finalized: FINAL_DEPTH,
};
const FIRST_BLOCK = 36;

/** A block that this provider holds: of any branch, but not above its own tip. */
function heldBlock({ chain, tip }: View, hash: unknown): ChainBlock | undefined {
  const block = chain.blocks.byHash(String(hash));
  return block !== undefined && block.number <= tip().number ? block : undefined;
}

/** A read of state at a block as a caller names it: by tag, number or EIP-1898. */
function atBlock(view: View, name: unknown, read: (block: ChainBlock) => string): string {
  const block = stateBlock(view, name);
  return block === undefined ? error(-32_000, "header not found") : read(block);
}

function stateBlock(view: View, name: unknown): ChainBlock | undefined {
  if (typeof name !== "object" || name === null) return namedBlock(view, name);
  if ("blockHash" in name) return heldBlock(view, name.blockHash);
  return "blockNumber" in name ? namedBlock(view, name.blockNumber) : undefined;
}

function nonceResult(view: View, account: string, name: unknown): string {
  const { chain, pool } = view;
  return atBlock(view, name, (block) => {
    const mined = chain.nonceAt(block, account);
    return text(hex(name === "pending" ? nextNonce(pool, account, mined) : mined));
  });
}

/** The nonce after the run of pooled transactions that begins at `from` and has no gap. */
function nextNonce(
  pool: ReadonlyMap<string, SentTransaction>,
  account: string,
  from: number,
): number {
  const pooled = new Set<number>();
  for (const one of pool.values()) if (one.from === account) pooled.add(one.nonce);
  let nonce = from;
  while (pooled.has(nonce)) nonce++;
  return nonce;
}

function blockResult({ textOf }: View, block: ChainBlock | undefined): string {
  return `"result":${block === undefined ? "null" : textOf(block)}`;
}

/** Each block is asked for many times, and its text is long. */
function blockTexts(chain: ViewChain): (block: ChainBlock) => string {
  const kept = new Map<string, string>();
  return (block) => {
    const known = kept.get(block.hash);
    if (known !== undefined) return known;
    const hashes = chain.transactionsOf(block).map(({ hash }) => hash);
    const fresh = blockText(block, "true", hashes);
    kept.set(block.hash, fresh);
    for (const [oldest] of kept) {
      if (kept.size <= KEPT_TEXTS) break;
      kept.delete(oldest);
    }
    return fresh;
  };
}

interface LogsFilter extends ChainFilter {
  readonly blockHash?: string;
  readonly fromBlock?: string;
  readonly toBlock?: string;
}

function logsResult(view: View, filter: LogsFilter): string {
  const { blockHash, fromBlock, toBlock } = filter;
  const ends =
    blockHash === undefined
      ? [namedBlock(view, fromBlock), namedBlock(view, toBlock)]
      : [heldBlock(view, blockHash)];
  const [first, last = first] = ends;
  if (first === undefined || last === undefined) return error(-32_000, "unknown block");
  const logs: string[] = [];
  for (let number = first.number; number <= last.number; number++) {
    const block = view.chain.blocks.at(last, number);
    if (block !== undefined)
      for (const log of wanted(block, filter)) logs.push(logText(block, log));
  }
  return `"result":[${logs.join(",")}]`;
}

function transactionResult({ chain, tip, pool }: View, hash: string): string {
  const block = chain.inclusionOf(tip(), hash);
  const known = block === undefined ? pool.get(hash) : transactionIn(chain, block, hash);
  if (known === undefined) return '"result":null';
  const index = block === undefined ? null : indexIn(chain, block, hash);
  return result({
    hash,
    from: known.from,
    nonce: hex(known.nonce),
    blockHash: block?.hash ?? null,
    blockNumber: block === undefined ? null : hex(block.number),
    transactionIndex: index === null ? null : hex(index),
    to: known.from,
    value: "0x0",
    gas: "0x5208",
    gasPrice: "0x3b9aca00",
    input: "0x",
    type: "0x0",
    chainId: hex(VIEW_CHAIN_ID),
  });
}

function receiptResult({ chain, tip }: View, hash: string): string {
  const block = chain.inclusionOf(tip(), hash);
  const known = block === undefined ? undefined : transactionIn(chain, block, hash);
  if (block === undefined || known === undefined) return '"result":null';
  return result({
    transactionHash: hash,
    transactionIndex: hex(indexIn(chain, block, hash)),
    blockHash: block.hash,
    blockNumber: hex(block.number),
    from: known.from,
    to: known.from,
    cumulativeGasUsed: "0x5208",
    gasUsed: "0x5208",
    effectiveGasPrice: "0x3b9aca00",
    contractAddress: null,
    logs: [],
    logsBloom: `0x${"0".repeat(BLOOM_DIGITS)}`,
    status: "0x1",
    type: "0x0",
  });
}

const BLOOM_DIGITS = 512;

function indexIn(chain: ViewChain, block: ChainBlock, hash: string): number {
  return chain.transactionsOf(block).findIndex((it) => it.hash === hash);
}

function transactionIn(
  chain: ViewChain,
  block: ChainBlock,
  hash: string,
): SentTransaction | undefined {
  return chain.transactionsOf(block).find((it) => it.hash === hash);
}

/** Reads a signed transaction; null = it is none. */
async function decoded(raw: string): Promise<SentTransaction | null> {
  try {
    const serialized = asSerialized(raw);
    const { nonce = 0 } = parseTransaction(serialized);
    const from = await recoverTransactionAddress({ serializedTransaction: serialized });
    return { hash: keccak256(serialized), from: from.toLowerCase(), nonce };
  } catch {
    return null;
  }
}

function asSerialized(raw: string): TransactionSerialized {
  return raw as TransactionSerialized;
}

function result(value: unknown): string {
  return `"result":${JSON.stringify(value)}`;
}

function text(value: string): string {
  return `"result":"${value}"`;
}

function error(code: number, message: string): string {
  return `"error":{"code":${code},"message":"${message}"}`;
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
