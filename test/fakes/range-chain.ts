// A chain of any length that is computed, not kept, and nodes that show it: each with limits of
// its own, a fork of its own, failures and lies. For calls over ranges of blocks.
import { createHash } from "node:crypto";

/** From this block on, a chain is another one. */
export interface Fork {
  readonly from: number;
  readonly id: number;
}

/** What one node shows: its newest block, and which fork it is on. */
export interface ChainView {
  readonly head: number;
  /** What it calls final; absent = nothing. */
  readonly finalized?: number;
  readonly forks: readonly Fork[];
}

/** How many logs a block has. */
export type Density = (block: number) => number;

/** The refusal of a node. */
export interface NodeError {
  readonly code: number;
  readonly message: string;
}

/** What a node answers. */
export type NodeAnswer =
  | { readonly kind: "result"; readonly json: string }
  | { readonly kind: "error"; readonly error: NodeError };

/** The limits of a node; null = none. */
export interface NodeLimits {
  readonly blocks: number | null;
  readonly results: number | null;
  /** Refuses too many blocks without saying how many it takes. */
  readonly isSilent?: boolean;
}

/** The hash of a block, as a view has it. */
export function hashOf(number: number, { forks }: ChainView): string {
  const fork = forks.findLast(({ from }) => from <= number)?.id ?? 0;
  const known = hashes.get(`${number} ${fork}`);
  if (known !== undefined) return known;
  const hash = `0x${createHash("sha256").update(`${number} ${fork}`).digest("hex")}`;
  if (hashes.size < MAX_HASHES) hashes.set(`${number} ${fork}`, hash);
  return hash;
}

const MAX_HASHES = 20_000;
const hashes = new Map<string, string>();

/** A block as a node shows it; "null" = it has none there. */
function blockJson(number: number, view: ChainView): string {
  if (number > view.head || number < 0) return "null";
  const parentHash = hashOf(number - 1, view);
  const hex = `0x${number.toString(16)}`;
  return JSON.stringify({ number: hex, hash: hashOf(number, view), parentHash });
}

/** The logs of some blocks, as JSON elements. */
export function logsOf(
  { from, to }: { readonly from: number; readonly to: number },
  view: ChainView,
  density: Density,
): readonly string[] {
  const logs: string[] = [];
  for (let number = from; number <= Math.min(to, view.head); number++) {
    const count = density(number);
    if (count === 0) continue;
    const blockHash = hashOf(number, view);
    for (let index = 0; index < count; index++) logs.push(logJson(number, blockHash, index));
  }
  return logs;
}

function logJson(number: number, blockHash: string, index: number): string {
  const hex = number.toString(16);
  return (
    `{"address":"0x${"a".repeat(40)}","topics":["0x${hex.padStart(64, "b")}"],` +
    `"data":"0x${hex.padStart(64, "0")}","blockNumber":"0x${hex}","blockHash":"${blockHash}",` +
    `"transactionHash":"0x${hex.padStart(64, "c")}","transactionIndex":"0x0",` +
    `"logIndex":"0x${index.toString(16)}","removed":false}`
  );
}

/** A request, as a node reads it. */
export interface NodeRequest {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** A node of the chain. */
export function answerOf(
  { method, params }: NodeRequest,
  view: ChainView,
  { density, limits }: { readonly density: Density; readonly limits: NodeLimits },
): NodeAnswer {
  const [first] = params;
  switch (method) {
    case "eth_getBlockByNumber": {
      if (first === "finalized")
        return { kind: "result", json: blockJson(view.finalized ?? -1, view) };
      const number = typeof first === "string" && first.startsWith("0x") ? Number(first) : null;
      return { kind: "result", json: blockJson(number ?? view.head, view) };
    }
    case "eth_getBlockByHash": {
      // Only the newest blocks are looked for: that is where forks are.
      for (let number = view.head; number > view.head - 400 && number >= 0; number--)
        if (hashOf(number, view) === first)
          return { kind: "result", json: blockJson(number, view) };
      return { kind: "result", json: "null" };
    }
    case "trace_filter":
    case "eth_getLogs": {
      const range = rangeOf(first, view);
      const blocks = range.to - range.from + 1;
      if (limits.blocks !== null && blocks > limits.blocks)
        return refused(
          limits.isSilent === true
            ? "block range is too large"
            : `query exceeds max block range ${limits.blocks}`,
        );
      if (limits.results !== null && countIn(range, density) > limits.results)
        return refused(`query returned more than ${limits.results} results`);
      return { kind: "result", json: `[${logsOf(range, view, density).join(",")}]` };
    }
    case "eth_chainId":
      return { kind: "result", json: '"0x1"' };
    case "eth_blockNumber":
      return { kind: "result", json: `"0x${view.head.toString(16)}"` };
    default:
      return { kind: "error", error: { code: -32601, message: "the method does not exist" } };
  }
}

function refused(message: string): NodeAnswer {
  return { kind: "error", error: { code: -32005, message } };
}

function rangeOf(filter: unknown, view: ChainView): { from: number; to: number } {
  const { fromBlock, toBlock } =
    typeof filter === "object" && filter !== null
      ? (filter as { fromBlock?: unknown; toBlock?: unknown })
      : {};
  const bound = (value: unknown): number =>
    typeof value === "string" && value.startsWith("0x") ? Number(value) : view.head;
  return { from: bound(fromBlock), to: Math.min(view.head, bound(toBlock)) };
}

function countIn(
  { from, to }: { readonly from: number; readonly to: number },
  density: Density,
): number {
  let count = 0;
  for (let number = from; number <= to; number++) count += density(number);
  return count;
}
