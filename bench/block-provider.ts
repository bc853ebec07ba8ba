// A provider of final blocks, a process of its own: answers reads of blocks, receipts, logs, calls
// and balances with results as long as real ones, chosen by their parameters. Answers every message
// of the parent with its port.
import { createServer, type Socket } from "node:net";
import { MessageReader } from "./http1.ts";

/** The newest block, and the newest that is final. */
const TIP = 0x2000000;
const FINAL = TIP - 64;
const LOG_BYTES = 480;
const HASH_BYTES = 66;

/** A method that is asked for, how often, and how long its results are. */
interface Share {
  readonly method: string;
  readonly share: number;
  readonly paramsOf: (number: number) => string;
}

const hash = (number: number): string => `0x${number.toString(16).padStart(64, "0")}`;
const address = (number: number): string => `0x${number.toString(16).padStart(40, "a")}`;
const block = (number: number): string => `0x${(number % FINAL).toString(16)}`;

/** What applications ask for, as shares of all calls. */
const SHARES: readonly Share[] = [
  {
    method: "eth_call",
    share: 0.4,
    paramsOf: (n) =>
      `[{"to":"${address(n)}","data":"0x70a08231${hash(n).slice(2)}"},"${block(n)}"]`,
  },
  { method: "eth_getBalance", share: 0.15, paramsOf: (n) => `["${address(n)}","${block(n)}"]` },
  { method: "eth_getTransactionReceipt", share: 0.25, paramsOf: (n) => `["${hash(n)}"]` },
  {
    method: "eth_getLogs",
    share: 0.12,
    paramsOf: (n) => {
      const range = `"fromBlock":"${block(n)}","toBlock":"${block(n)}"`;
      return `[{"address":"${address(n)}",${range}}]`;
    },
  },
  { method: "eth_getBlockByNumber", share: 0.08, paramsOf: (n) => `["${block(n)}",false]` },
];

/** The request of a number: the same number gives the same request. */
export function requestOf(number: number): string {
  let left = (Math.imul(number, 0x9e3779b1) >>> 0) / 2 ** 32;
  let chosen = SHARES[0];
  for (const each of SHARES) {
    chosen = each;
    left -= each.share;
    if (left < 0) break;
  }
  const { method = "", paramsOf } = chosen ?? {};
  const params = paramsOf?.(number) ?? "[]";
  return `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`;
}

/** A number below `below`, from the text of a request. */
function chance(text: string, below: number): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at++)
    sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return ((sum >>> 8) * below) >>> 24;
}

function logs(count: number, from: string): string {
  const topics = `["${hash(1)}","${hash(2)}","${hash(3)}"]`;
  const log = `{"address":"${from}","topics":${topics},"data":"${hash(5)}"}`.padEnd(LOG_BYTES);
  return `[${new Array(count).fill(log).join(",")}]`;
}

function header(number: string, transactions: number): string {
  const hashes = new Array(transactions).fill(`"${hash(9)}"`).join(",");
  const bloom = `0x${"00".repeat(256)}`;
  const fields = `"logsBloom":"${bloom}","parentHash":"${hash(8)}","transactions":[${hashes}]`;
  return `{"number":"${number}","hash":"${hash(Number(number))}",${fields}}`;
}

function resultOf(body: string): string {
  const params = body.slice(body.indexOf('"params"'));
  switch (/"method":"([^"]*)"/.exec(body)?.[1]) {
    case "eth_chainId":
      return '"0x1"';
    case "eth_blockNumber":
      return `"0x${TIP.toString(16)}"`;
    case "eth_call":
      return `"0x${"00".repeat((HASH_BYTES / 2) * (1 + chance(params, 4)))}"`;
    case "eth_getBalance":
      return '"0x1234567890abcdef"';
    case "eth_getLogs": {
      // Of the address that is asked for: an answer to something else would not be kept.
      const from = /"address":"([^"]*)"/.exec(params)?.[1] ?? address(7);
      return logs(chance(params, 40), from);
    }
    case "eth_getTransactionReceipt": {
      const where = `"blockNumber":"0x1000000","blockHash":"${hash(0x1000000)}"`;
      return `{${where},"logsBloom":"0x${"00".repeat(256)}","logs":${logs(chance(params, 6), address(7))}}`;
    }
    default: {
      const tag = /"params":\["([^"]*)"/.exec(body)?.[1] ?? "latest";
      const heights: Record<string, number> = { latest: TIP, finalized: FINAL, safe: FINAL };
      const number = heights[tag] === undefined ? tag : `0x${heights[tag].toString(16)}`;
      return header(number, chance(params, 300));
    }
  }
}

function serve(socket: Socket): void {
  let body = "";
  const reader = new MessageReader({
    head: () => {
      body = "";
    },
    body: (piece) => {
      body += piece.toString("latin1");
    },
    end: () => {
      const id = /"id":\s*("[^"]*"|-?\d+)/.exec(body)?.[1] ?? "null";
      const text = `{"jsonrpc":"2.0","id":${id},"result":${resultOf(body)}}`;
      const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: `;
      socket.write(`${head}${text.length}\r\n\r\n${text}`, "latin1");
    },
  });
  socket.setNoDelay(true);
  socket.on("data", (chunk) => reader.push(chunk));
  socket.on("error", () => socket.destroy());
}

if (import.meta.main) {
  const server = createServer(serve);
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    const port = address !== null && typeof address === "object" ? address.port : 0;
    process.on("message", () => void process.send?.({ port }));
  });
  process.on("disconnect", () => process.exit(0));
}
