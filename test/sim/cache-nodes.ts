// What a node of the simulated chain answers, computed from the hashes of its blocks: everything
// that a block holds follows from its hash. For `cache-simulation.ts`.

/** The hash of each block, by number. */
export type Chain = readonly string[];

/** A request, as a node reads it. */
export interface NodeRequest {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** A range of blocks, both ends included. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** The hash of the block with this number among all that were ever made. */
export const hashOf = (made: number): string => `0x${made.toString(16).padStart(64, "0")}`;
export const hex = (number: number): string => `0x${number.toString(16)}`;

/** The transaction that was meant for a block: its hash begins with the number of the block. */
export function transactionHash(number: number): string {
  return `0x${number.toString(16).padStart(16, "0")}${"e".repeat(48)}`;
}

/**
 * The answer of a node with this chain, as JSON; null = it does not know the block that is asked
 * for by its hash. It knows the logs of the blocks in `left` as well, as nodes do.
 */
export function answerOf(
  chain: Chain,
  { method, params }: NodeRequest,
  left: ReadonlySet<string>,
): string | null {
  const [first, second] = params;
  switch (method) {
    case "eth_blockNumber":
      return `"${hex(chain.length - 1)}"`;
    case "eth_getBalance": {
      const hash = chain[numberOf(chain, second)];
      return hash === undefined ? "null" : `"${hash}${String(first).slice(-2)}"`;
    }
    case "eth_getBlockByNumber":
      return blockJson(chain, numberOf(chain, first));
    case "eth_getBlockReceipts":
      return receiptsJson(chain, first);
    case "eth_getTransactionReceipt":
      return receiptJson(chain, Number(String(first).slice(0, 18)));
    default:
      return logsJson(chain, first, left);
  }
}

/** The newest block that a request names, or asks about; null = it names none by its number. */
export function claimedNumber({ method, params }: NodeRequest): number | null {
  const [first, second] = params;
  const block = method === "eth_getBalance" ? second : first;
  const text = method === "eth_getLogs" ? filterOf(first).toBlock : block;
  if (typeof text !== "string" || !/^0x[0-9a-f]{1,8}$/.test(text)) return null;
  return Number(text);
}

/** What is of the block before, where an answer names its block; else what is true. */
export function lieOf(
  chain: Chain,
  { method, params }: NodeRequest,
  left: ReadonlySet<string>,
  truth: string | null,
): string | null {
  const [first, ...rest] = params;
  if (method !== "eth_getBlockByNumber" && method !== "eth_getBlockReceipts") return truth;
  if (typeof first !== "string" || !first.startsWith("0x")) return truth;
  const number = first.length === 66 ? chain.lastIndexOf(first) : Number(first);
  if (number < 1) return truth;
  const lie = answerOf(chain, { method, params: [hex(number - 1), ...rest] }, left);
  // An empty list names nothing.
  return lie === "[]" || lie === "null" ? truth : lie;
}

function numberOf({ length }: Chain, block: unknown): number {
  return typeof block === "string" && block.startsWith("0x") ? Number(block) : length - 1;
}

function blockJson(chain: Chain, number: number): string {
  const hash = chain[number];
  if (hash === undefined) return "null";
  return `{"number":"${hex(number)}","hash":"${hash}","parentHash":"${chain[number - 1] ?? hash}"}`;
}

function receiptsJson(chain: Chain, block: unknown): string | null {
  const isHash = typeof block === "string" && block.length === 66;
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
  return JSON.stringify({ blockHash, blockNumber: hex(at) });
}

function logsJson(chain: Chain, value: unknown, left: ReadonlySet<string>): string | null {
  const { address = "", blockHash, ...ends } = filterOf(value);
  if (blockHash !== undefined) {
    const number = chain.lastIndexOf(blockHash);
    if (number === -1 && !left.has(blockHash)) return null;
    return `[${logsOf(blockHash, address).join(",")}]`;
  }
  const { from, to } = rangeOf(chain, ends);
  const logs: string[] = [];
  for (const hash of chain.slice(from, to + 1)) logs.push(...logsOf(hash, address));
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
function logsOf(blockHash: string, address: string): readonly string[] {
  const count = Math.max(0, chance(blockHash, Number(`0x${address.slice(-2)}`), 6) - 3);
  return Array.from(
    { length: count },
    (_, index) => `{"address":"${address}","blockHash":"${blockHash}","logIndex":"${hex(index)}"}`,
  );
}

/** A number below `below`, which depends on nothing but the block and what it is for. */
function chance(hash: string, purpose: number, below: number): number {
  const mixed = Math.imul(Number(hash) ^ Math.imul(purpose, 0x9e3779b1), 0x85ebca6b);
  return (((mixed ^ (mixed >>> 13)) >>> 8) * below) >>> 24;
}
