// What a node of the simulated chain answers, computed from the hashes of its blocks: everything
// that a block holds follows from its hash. Knows no faults and no time.

/** The hash of each block, by number. */
export type Chain = readonly string[];

/** A request, as a node reads it. */
export interface NodeRequest {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What a node answers from. */
export interface NodeView {
  readonly chain: Chain;
  /** Numbers of the blocks that it has left, by hash: it still knows their logs, as nodes do. */
  readonly left: ReadonlyMap<string, number>;
}

/** A range of blocks, both ends included. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** How far below the newest block nodes call blocks final. */
export const USUAL_FINALITY = 40;

/** The hash of the block with this number among all that were ever made. */
export const hashOf = (made: number): string => `0x${made.toString(16).padStart(64, "0")}`;
export const hex = (number: number): string => `0x${number.toString(16)}`;

/** The transaction that was meant for a block: its hash begins with the number of the block. */
export function transactionHash(number: number): string {
  return `0x${number.toString(16).padStart(16, "0")}${"e".repeat(48)}`;
}

/** The answer of a node, as JSON; null = it says that it does not know the block. */
export function answerOf(
  view: NodeView,
  { method, params }: NodeRequest,
  finality = USUAL_FINALITY,
): string | null {
  const { chain } = view;
  const [first, second] = params;
  switch (method) {
    case "eth_chainId":
      return `"${hex(CHAIN_ID)}"`;
    case "eth_blockNumber":
      return `"${hex(chain.length - 1)}"`;
    case "eth_getBalance": {
      const hash = chain[numberOf(chain, second)];
      return hash === undefined ? null : `"0x${hash.slice(4)}${String(first).slice(-2)}"`;
    }
    case "eth_getBlockByNumber":
      return blockJson(chain, numberOf(chain, first, finality));
    case "eth_getBlockByHash":
      return blockJson(chain, chain.lastIndexOf(String(first)));
    case "eth_getBlockReceipts":
      return receiptsJson(chain, first);
    case "eth_getTransactionReceipt":
      return receiptJson(chain, Number(String(first).slice(0, 18)));
    default:
      return logsJson(view, first);
  }
}

/** The id of the simulated chain. */
export const CHAIN_ID = 31_339;

/** The newest block that a request names, or asks about; null = it names none by its number. */
export function claimedNumber({ method, params }: NodeRequest): number | null {
  const [first, second] = params;
  const block = method === "eth_getBalance" ? second : first;
  const text = method === "eth_getLogs" ? filterOf(first).toBlock : block;
  if (typeof text !== "string" || !/^0x[0-9a-f]{1,8}$/.test(text)) return null;
  return Number(text);
}

/**
 * The request with this number as that of the newest block, where that is meant, or where a range
 * ends above it; null = it is neither.
 */
export function resolvedAt({ method, params }: NodeRequest, number: number): NodeRequest | null {
  const [first, second] = params;
  const isNewest = (block: unknown): boolean => block === undefined || block === "latest";
  switch (method) {
    case "eth_getBalance":
      return isNewest(second) ? { method, params: [first, hex(number)] } : null;
    case "eth_getBlockByNumber":
    case "eth_getBlockReceipts":
      return isNewest(first) ? { method, params: [hex(number), ...params.slice(1)] } : null;
    case "eth_getLogs": {
      const { fromBlock, toBlock, ...filter } = filterOf(first);
      const isOpen = isNewest(toBlock) || Number(toBlock) > number;
      if (filter.blockHash !== undefined || !isOpen) return null;
      const from = isNewest(fromBlock) ? hex(number) : fromBlock;
      return { method, params: [{ ...filter, fromBlock: from, toBlock: hex(number) }] };
    }
    default:
      return null;
  }
}

/** What is of another block, transaction or address, if answers name their own; else the truth. */
export function lieOf(view: NodeView, { method, params }: NodeRequest): string | null {
  const truth = answerOf(view, { method, params });
  const other = otherParams(view.chain, { method, params });
  const lie = other === null ? truth : answerOf(view, { method, params: other });
  // An empty list names nothing.
  return lie === "[]" || lie === "null" ? truth : lie;
}

/** The parameters of another question; null = its answer would not name what it is of. */
function otherParams(chain: Chain, { method, params }: NodeRequest): readonly unknown[] | null {
  const [first, ...rest] = params;
  switch (method) {
    case "eth_getBlockByNumber":
    case "eth_getBlockByHash":
    case "eth_getBlockReceipts": {
      if (typeof first !== "string" || !first.startsWith("0x")) return null;
      const isHash = first.length === HASH_CHARS;
      const number = isHash ? chain.lastIndexOf(first) : Number(first);
      if (number < 1) return null;
      return [isHash ? chain[number - 1] : hex(number - 1), ...rest];
    }
    case "eth_getTransactionReceipt":
      return [transactionHash(Number(String(first).slice(0, 18)) - 1)];
    case "eth_getLogs": {
      const { address = "" } = filterOf(first);
      return [{ ...filterOf(first), address: `${address.slice(0, -1)}f` }];
    }
    default:
      return null;
  }
}

const HASH_CHARS = 66;

/** The newest block that a node of this chain calls final. */
export function finalOf(chain: Chain, finality: number): number {
  return Math.max(0, chain.length - finality);
}

/** Of a number, a tag, a hash or an object with one; -1 = it is not on the chain. */
function numberOf(chain: Chain, block: unknown, finality = USUAL_FINALITY): number {
  if (typeof block === "object" && block !== null && "blockHash" in block)
    return chain.lastIndexOf(String(block.blockHash));
  if (block === "finalized" || block === "safe") return finalOf(chain, finality);
  return typeof block === "string" && block.startsWith("0x") ? Number(block) : chain.length - 1;
}

function blockJson(chain: Chain, number: number): string {
  const hash = chain[number];
  if (hash === undefined) return "null";
  return `{"number":"${hex(number)}","hash":"${hash}","parentHash":"${chain[number - 1] ?? hash}"}`;
}

function receiptsJson(chain: Chain, block: unknown): string | null {
  const isHash = typeof block === "string" && block.length === HASH_CHARS;
  const number = isHash ? chain.lastIndexOf(block) : numberOf(chain, block);
  const blockHash = chain[number];
  if (blockHash === undefined) return isHash ? null : "null";
  const receipts = Array.from({ length: chance(blockHash, 1, 4) }, (_, index) =>
    JSON.stringify({ blockHash, blockNumber: hex(number), transactionIndex: hex(index) }),
  );
  return `[${receipts.join(",")}]`;
}

/** A branch may have a transaction in its block, in the next one, or not at all. */
function receiptJson(chain: Chain, number: number): string {
  const meant = chain[number];
  if (meant === undefined) return "null";
  const luck = chance(meant, 2, 8);
  const at = luck === 1 ? number + 1 : number;
  const blockHash = chain[at];
  if (luck === 0 || blockHash === undefined) return "null";
  return JSON.stringify({
    transactionHash: transactionHash(number),
    blockHash,
    blockNumber: hex(at),
  });
}

function logsJson({ chain, left }: NodeView, value: unknown): string | null {
  const { address = "", blockHash, ...ends } = filterOf(value);
  if (blockHash !== undefined) {
    const at = chain.lastIndexOf(blockHash);
    const number = at === -1 ? left.get(blockHash) : at;
    return number === undefined ? null : `[${logsOf(blockHash, number, address).join(",")}]`;
  }
  const { from, to } = rangeOf(chain, ends);
  const logs: string[] = [];
  for (const [at, hash] of chain.slice(from, to + 1).entries())
    logs.push(...logsOf(hash, from + at, address));
  return `[${logs.join(",")}]`;
}

/** As a node reads the ends: nothing named is the newest block, which no end is beyond. */
function rangeOf(
  chain: Chain,
  { fromBlock, toBlock }: Pick<LogFilter, "fromBlock" | "toBlock">,
): Range {
  const tip = chain.length - 1;
  return { from: numberOf(chain, fromBlock), to: Math.min(tip, numberOf(chain, toBlock)) };
}

/** A filter of logs, as the trace writes it. */
interface LogFilter {
  readonly address?: string;
  readonly blockHash?: string;
  readonly fromBlock?: string;
  readonly toBlock?: string;
}

function filterOf(value: unknown): LogFilter {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** Of an address in a block: most have none. */
function logsOf(blockHash: string, number: number, address: string): readonly string[] {
  const count = Math.max(0, chance(blockHash, Number(`0x${address.slice(-2)}`), 6) - 3);
  const blockNumber = hex(number);
  return Array.from({ length: count }, (_, index) =>
    JSON.stringify({ address, blockNumber, blockHash, logIndex: hex(index) }),
  );
}

/** A number below `below`, which depends on nothing but the block and what it is for. */
function chance(hash: string, purpose: number, below: number): number {
  const mixed = Math.imul(Number(hash) ^ Math.imul(purpose, 0x9e3779b1), 0x85ebca6b);
  return (((mixed ^ (mixed >>> 13)) >>> 8) * below) >>> 24;
}
