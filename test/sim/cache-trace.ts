// What the backend of an application asks: 70 % at the head, 20 % blocks, receipts and balances of
// older blocks, 10 % logs; a few accounts, contracts and blocks often, most of them seldom (Zipf).
// For `cache-simulation.ts`.
import { type Chain, hex, type NodeRequest, transactionHash } from "./cache-nodes.ts";

/** The kinds of which the trace consists. */
export type TraceKind = "head" | "old" | "logs";

/** The kind of a request. */
export function kindOf({ method, params }: NodeRequest): TraceKind {
  if (method === "eth_getLogs") return "logs";
  return params.length === 0 || params.includes("latest") ? "head" : "old";
}

/** How far back most of what is older lies. */
const OLD_BLOCKS = 120;
const ACCOUNTS = 60;
const CONTRACTS = 20;
/** The windows in which an application reads all logs of a contract, once and for all. */
const WINDOW_BLOCKS = 25;

/** What an application asks for alone. */
export interface TraceFocus {
  readonly kind: TraceKind;
  /** How far back older blocks lie at most; left out = as usual. */
  readonly oldBlocks?: number;
}

/** The next request of an application that has last seen this chain. */
export function nextRequest(random: () => number, chain: Chain, focus?: TraceFocus): NodeRequest {
  /** Small numbers often, large ones seldom. */
  const zipf = (most: number): number => Math.floor(most ** random()) - 1;
  const { kind = kindDrawn(random()), oldBlocks = OLD_BLOCKS } = focus ?? {};
  switch (kind) {
    case "head":
      return headRequest(random, zipf);
    case "old":
      return oldRequest({ random, zipf, chain }, chain.length - 1 - zipf(oldBlocks));
    case "logs":
      return { method: "eth_getLogs", params: [logFilter({ random, zipf, chain })] };
  }
}

function kindDrawn(chosen: number): TraceKind {
  if (chosen < 0.7) return "head";
  return chosen < 0.9 ? "old" : "logs";
}

type Zipf = (most: number) => number;

const account = (number: number): string => `0x${number.toString(16).padStart(40, "a")}`;
const contract = (number: number): string => `0x${number.toString(16).padStart(40, "c")}`;

function headRequest(random: () => number, zipf: Zipf): NodeRequest {
  const chosen = random();
  if (chosen < 0.25) return { method: "eth_blockNumber", params: [] };
  if (chosen < 0.85)
    return { method: "eth_getBalance", params: [account(zipf(ACCOUNTS)), "latest"] };
  if (chosen < 0.95) return { method: "eth_getBlockByNumber", params: ["latest", false] };
  return { method: "eth_getBlockReceipts", params: ["latest"] };
}

/** What a request is drawn from. */
interface Draw {
  readonly random: () => number;
  readonly zipf: Zipf;
  readonly chain: Chain;
}

function oldRequest({ random, zipf, chain }: Draw, back: number): NodeRequest {
  const chosen = random();
  const number = Math.max(0, back);
  const block = hex(number);
  if (chosen < 0.3) return { method: "eth_getBalance", params: [account(zipf(ACCOUNTS)), block] };
  if (chosen < 0.55) return { method: "eth_getBlockByNumber", params: [block, false] };
  if (chosen < 0.65) return { method: "eth_getBlockReceipts", params: [block] };
  if (chosen < 0.7) return { method: "eth_getBlockReceipts", params: [chain[number] ?? block] };
  if (chosen < 0.8) return { method: "eth_getBlockByHash", params: [chain[number] ?? "", false] };
  return { method: "eth_getTransactionReceipt", params: [transactionHash(number)] };
}

/** The filters that applications use: what is new, one block, a window of history. */
function logFilter({ random, zipf, chain }: Draw): Readonly<Record<string, string>> {
  const tip = chain.length - 1;
  const address = contract(zipf(CONTRACTS));
  const chosen = random();
  const from = Math.max(0, tip - zipf(OLD_BLOCKS / 4));
  // Since the block that was read last, up to the newest one, by its tag or by its number.
  if (chosen < 0.3) return { address, fromBlock: hex(from), toBlock: "latest" };
  if (chosen < 0.35) return { address, fromBlock: hex(from) };
  if (chosen < 0.4) return { address };
  if (chosen < 0.6) return { address, fromBlock: hex(from), toBlock: hex(tip) };
  const one = chain[tip - Math.min(tip, zipf(8))] ?? "";
  if (chosen < 0.7) return { address, blockHash: one };
  const windows = Math.floor(tip / WINDOW_BLOCKS);
  const first = Math.max(0, windows - 1 - zipf(windows)) * WINDOW_BLOCKS;
  return { address, fromBlock: hex(first), toBlock: hex(first + WINDOW_BLOCKS - 1) };
}
