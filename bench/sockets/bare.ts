// The baseline of the fan-out benchmark, a process of its own: a minimal broadcast loop with the
// same library. One upstream subscription; each event is serialised once and sent to all clients.
// No limits, no checks, one subscription id for all.
import { WebSocket, WebSocketServer } from "ws";
import { isRecord } from "../child.ts";

const clients = new Set<WebSocket>();
const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });

server.on("connection", (socket) => {
  clients.add(socket);
  socket.on("message", (data) => {
    const { id } = JSON.parse(data.toString()) as { id: number };
    socket.send(`{"jsonrpc":"2.0","id":${id},"result":"0x1234567890abcdef1234567890abcdef"}`);
  });
  socket.on("close", () => clients.delete(socket));
});

process.on("message", (message) => {
  if (!isRecord(message) || typeof message["feed"] !== "string") return;
  const feed = new WebSocket(message["feed"], { perMessageDeflate: false });
  feed.on("open", () =>
    feed.send('{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}'),
  );
  feed.on("message", (data) => {
    const event = JSON.parse(data.toString()) as { method?: string; params?: { result: unknown } };
    const address = server.address();
    if (event.method === undefined)
      return void process.send?.({ port: typeof address === "object" ? address?.port : 0 });
    const { result } = event.params ?? { result: null };
    const text = JSON.stringify({
      jsonrpc: "2.0",
      method: "eth_subscription",
      params: { subscription: "0x1234567890abcdef1234567890abcdef", result },
    });
    const frame = Buffer.from(text);
    for (const client of clients) client.send(frame, { binary: false });
  });
});
