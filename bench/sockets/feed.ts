// The upstream of the fan-out benchmark, a process of its own: pushes heads to all subscribers on
// command. Answers each message once.
import { type WebSocket, WebSocketServer } from "ws";
import { isRecord } from "../child.ts";

/** A command to push: the path, the number of heads, and the pause between them. */
export interface PushOrder {
  readonly path: string;
  readonly heads: number;
  readonly everyMs: number;
}

const HASH_DIGITS = 64;
const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
const subscribed = new Map<string, Set<WebSocket>>();
/** The newest block by path. */
const heights = new Map<string, number>();

server.on("connection", (socket, request) => {
  const path = request.url ?? "/";
  socket.on("message", (data) => {
    const { id, method, params } = readCall(data.toString());
    if (method === "eth_subscribe")
      subscribed.set(path, (subscribed.get(path) ?? new Set()).add(socket));
    socket.send(
      `{"jsonrpc":"2.0","id":${id},"result":${resultOf(method, params[0], heights.get(path) ?? 1)}}`,
    );
  });
  socket.on("close", () => subscribed.get(path)?.delete(socket));
});
server.on("listening", () => {
  const address = server.address();
  process.on("message", (message) => {
    if (!isRecord(message)) return;
    if (message["kind"] === "port")
      process.send?.({ port: typeof address === "object" ? address?.port : 0 });
    else if (message["kind"] === "push") void push(message as unknown as PushOrder);
  });
});

async function push({ path, heads, everyMs }: PushOrder): Promise<void> {
  for (let n = 0; n < heads; n++) {
    const number = (heights.get(path) ?? 1) + 1;
    heights.set(path, number);
    const text = `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":${head(number)}}}`;
    for (const socket of subscribed.get(path) ?? []) socket.send(text);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  process.send?.({ pushed: heads });
}

function resultOf(method: string, param: unknown, height: number): string {
  if (method === "eth_chainId") return '"0x9"';
  if (method === "eth_blockNumber") return `"0x${height.toString(16)}"`;
  if (method === "eth_getBlockByHash") return head(Number(param));
  return method === "eth_subscribe" ? '"0x1"' : head(height);
}

/** A block header of about 600 bytes, the size in the published figures. */
function head(height: number): string {
  const fields = {
    number: `0x${height.toString(16)}`,
    hash: hashOf(height),
    parentHash: hashOf(height - 1),
    stateRoot: hashOf(height + 1e9),
    transactionsRoot: hashOf(height + 2e9),
    receiptsRoot: hashOf(height + 3e9),
    miner: "0x0000000000000000000000000000000000000001",
    gasLimit: "0x1c9c380",
    gasUsed: "0x5208",
    timestamp: "0x65000000",
    baseFeePerGas: "0x7",
  };
  return JSON.stringify(fields);
}

function hashOf(height: number): string {
  return `0x${height.toString(16).padStart(HASH_DIGITS, "0")}`;
}

function readCall(text: string): {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
} {
  return JSON.parse(text) as { id: number; method: string; params: unknown[] };
}
