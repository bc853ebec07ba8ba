// One simulated provider on a real port: HTTP with batches, and WebSockets that push new heads.
// Pushes come in order, each a little after HTTP answers from the block. Can stop, and serve again
// on the same port.
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { WebSocket, WebSocketServer } from "ws";
import { notification } from "../../fakes/socket-upstream.ts";

/** What is served. */
export interface ServedProvider {
  /** Requests by method, or by what they are where that says more. */
  readonly counts: Map<string, number>;
  /** The answer as JSON members: a result or an error. */
  answer(request: {
    readonly method: string;
    readonly params: readonly unknown[];
  }): string | Promise<string>;
}

/** A provider that can be connected to. */
export interface ProviderServer<P extends ServedProvider> {
  readonly provider: P;
  readonly port: number;
  readonly isServing: () => boolean;
  /** Pushes these headers, oldest first, `delayMs` from now or after those that still wait. */
  push(heads: readonly string[], delayMs: number): void;
  /** Cuts every connection and refuses new ones. */
  stop(): Promise<void>;
  /** Serves again. */
  start(): Promise<void>;
}

/** Starts one. */
export async function serveProvider<P extends ServedProvider>(
  provider: P,
): Promise<ProviderServer<P>> {
  const wires = new Set<Socket>();
  const peers = new Map<WebSocket, Map<string, string>>();
  const frames = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  let server: Server | null = null;
  let port = 0;
  let pushedAtMs = 0;

  const create = (): Server =>
    createServer((request, response) => void answerHttp(provider, request, response))
      .on("connection", (wire) => {
        wires.add(wire);
        wire.on("close", () => wires.delete(wire)).on("error", () => {});
      })
      .on("upgrade", (request, wire, head) =>
        frames.handleUpgrade(request, wire, head, (socket) => accept(socket)),
      );
  const accept = (socket: WebSocket): void => {
    const subscriptions = new Map<string, string>();
    peers.set(socket, subscriptions);
    socket.on("error", () => {}).on("close", () => peers.delete(socket));
    socket.on("message", (data) => void answerFrame(provider, socket, subscriptions, String(data)));
  };
  const pushNow = (heads: readonly string[]): void => {
    for (const [socket, subscriptions] of peers)
      for (const [id, kind] of subscriptions)
        if (kind === "newHeads") for (const head of heads) send(socket, notification(id, head));
  };

  const started: ProviderServer<P> = {
    provider,
    get port() {
      return port;
    },
    isServing: () => server !== null,
    push(heads, delayMs) {
      pushedAtMs = Math.max(pushedAtMs, performance.now() + delayMs);
      setTimeout(() => pushNow(heads), Math.max(0, pushedAtMs - performance.now()));
    },
    async stop() {
      const stopping = server;
      server = null;
      for (const wire of wires) wire.resetAndDestroy();
      await new Promise<void>((resolve) =>
        stopping === null ? resolve() : stopping.close(() => resolve()),
      );
    },
    async start() {
      const starting = create();
      await new Promise<void>((resolve) => starting.listen(port, "127.0.0.1", resolve));
      port = addressOf(starting).port;
      server = starting;
    },
  };
  await started.start();
  return started;
}

const SUBSCRIPTION_BYTES = 16;

interface WireRequest {
  readonly id: unknown;
  readonly method: string;
  readonly params?: readonly unknown[];
}

function answerHttp(
  provider: ServedProvider,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const chunks: Buffer[] = [];
  response.on("error", () => {});
  request.on("error", () => {});
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", async () => {
    const body = await answerText(provider, Buffer.concat(chunks).toString());
    response
      .writeHead(200, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      })
      .end(body);
  });
}

async function answerText(provider: ServedProvider, body: string): Promise<string> {
  const requests = parseRequests(body);
  const answers = await Promise.all(requests.map((one) => answerOf(provider, one)));
  return isBatch(body) ? `[${answers.join(",")}]` : answers.join("");
}

async function answerOf(
  provider: ServedProvider,
  { id, method, params = [] }: WireRequest,
): Promise<string> {
  const members = await provider.answer({ method, params });
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${members}}`;
}

async function answerFrame(
  provider: ServedProvider,
  socket: WebSocket,
  subscriptions: Map<string, string>,
  body: string,
): Promise<void> {
  const [single] = parseRequests(body);
  if (single === undefined || isBatch(body)) return send(socket, await answerText(provider, body));
  const { id, method, params = [] } = single;
  const reply = (result: unknown): void =>
    send(socket, JSON.stringify({ jsonrpc: "2.0", id, result }));
  if (method !== "eth_subscribe" && method !== "eth_unsubscribe")
    return send(socket, await answerOf(provider, single));
  provider.counts.set(method, (provider.counts.get(method) ?? 0) + 1);
  const [first] = params;
  if (method === "eth_unsubscribe") return reply(subscriptions.delete(String(first)));
  const subscription = `0x${randomBytes(SUBSCRIPTION_BYTES).toString("hex")}`;
  subscriptions.set(subscription, String(first));
  return reply(subscription);
}

function send(socket: WebSocket, frame: string): void {
  if (socket.readyState === WebSocket.OPEN) socket.send(frame);
}

function isBatch(body: string): boolean {
  return body.startsWith("[");
}

function parseRequests(body: string): readonly WireRequest[] {
  const parsed = JSON.parse(body);
  return isBatch(body) ? parsed : [parsed];
}

function addressOf(server: Server): AddressInfo {
  return server.address() as AddressInfo;
}
