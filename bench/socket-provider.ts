// A provider of the benchmark reached by WebSocket, a process of its own: answers calls on chain 1
// with answers of the length that the request states. Answers every message of the parent process
// with its port.
import { WebSocketServer } from "ws";
import { largePrefix, largeRest, numberIn, shapeIn } from "./workload.ts";

const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
/** The constant part of long answers, by size. */
const rests = new Map<number, string>();

server.on("connection", (socket) => {
  socket.on("error", () => socket.terminate());
  socket.on("message", (data) => socket.send(answerTo(String(data))));
});

function answerTo(request: string): string {
  const id = /"id":\s*(\d+)/.exec(request)?.[1] ?? "null";
  if (request.includes('"eth_getBlockReceipts"')) {
    const { bytes } = shapeIn(request);
    const rest = rests.get(bytes) ?? largeRest(bytes).toString("latin1");
    rests.set(bytes, rest);
    return largePrefix(id, numberIn(request)) + rest;
  }
  const height = `"0x${Math.floor(Date.now() / 12_000).toString(16)}"`;
  return `{"jsonrpc":"2.0","id":${id},"result":${request.includes('"eth_blockNumber"') ? height : '"0x1"'}}`;
}

process.on("message", () => {
  const address = server.address();
  process.send?.({ port: typeof address === "object" ? address?.port : 0 });
});
process.on("disconnect", () => process.exit(0));
