// A scripted provider on real WebSockets: sane until told otherwise, then wrong in any way a test
// wants, down to the bytes. Records every frame it got and knows who is subscribed to what. Knows
// nothing of who connects.
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocket, WebSocketServer } from "ws";
import { isFinalityProbe, NO_METHOD } from "./upstream.ts";

/** One JSON-RPC request that reached the provider. */
export interface SocketAsked {
  readonly method: string;
  /** The id as raw JSON text. */
  readonly id: string;
  readonly params: unknown;
  /** The frame as it came. */
  readonly body: string;
}

/** Answers one request, however badly; doing nothing never answers. */
export type SocketScript = (asked: SocketAsked, reply: SocketReplier) => void;

/**
 * Ways of answering. Each may be used at any time, also long after the script has returned, and
 * more than once.
 */
export interface SocketReplier {
  /** What a sane node says. A subscription made here is known to `notify`. */
  usual(): void;
  /** A well-formed answer around raw JSON text. */
  result(json: string): void;
  /** A JSON-RPC error around raw JSON text. */
  error(json: string): void;
  /** The connection the request came by. */
  readonly peer: SocketPeer;
}

/** One open connection to the provider. */
export interface SocketPeer {
  /** Path and headers of the handshake. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Subscriptions on it by id; the value is what `eth_subscribe` was given. */
  readonly subscriptions: ReadonlyMap<string, readonly unknown[]>;
  /** Any frame at all: text as a text frame, a buffer as a binary one. */
  send(frame: string | Buffer): void;
  /** Bytes outside any frame. */
  raw(bytes: string | Buffer): void;
  /** Closes properly. */
  close(code?: number, reason?: string): void;
  /** Ends the connection without a close frame. */
  drop(): void;
  /** Resets it. */
  reset(): void;
  /** Stops reading, so that what is sent to the provider backs up. */
  freeze(): void;
}

/** What a handshake is told: a status with headers and body, or nothing at all. */
export type Refusal =
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  | "silence";

/** A provider under the test's control. */
export interface SocketUpstream {
  /** `ws://127.0.0.1:<port>`. */
  readonly url: string;
  readonly port: number;
  /** Every request, in order, of all connections. */
  readonly asked: readonly SocketAsked[];
  /** Handshakes tried, and connections opened, since the start. */
  readonly handshakes: () => number;
  readonly opened: () => number;
  /** Connections open now, oldest first. */
  readonly peers: () => readonly SocketPeer[];
  /** Requests of this method so far. */
  count(method: string): number;
  /** Subscriptions open now; `kind` = only those of this kind. */
  subscriptions(kind?: string): number;
  /**
   * Sends a notification with this raw JSON result to every subscription of a kind; tells how many.
   * `wanted` looks at what each was subscribed with.
   */
  notify(kind: string, result: string, wanted?: (params: readonly unknown[]) => boolean): number;
  /** Sends this frame to every connection. */
  send(frame: string | Buffer): void;
  /** How requests are answered from now on; null = sanely again. */
  script(next: SocketScript | null): void;
  /** What `eth_chainId` and `eth_blockNumber` say. */
  says(facts: { chainId?: number; height?: number }): void;
  /** Refuses handshakes from now on; null = accepts them again. */
  refuse(refusal: Refusal | null): void;
  /** Whether pings are answered. */
  pongs(on: boolean): void;
  /** Ends every connection without a close frame. */
  drop(): void;
  /** Ends it all; another may listen on the port then. */
  close(): Promise<void>;
}

/**
 * Starts a provider of chain 1 at height 100; anything it does not know it answers with `"0x1"`.
 * `port` 0 = a free one.
 */
export async function socketUpstream(
  first: SocketScript | null = null,
  port = 0,
): Promise<SocketUpstream> {
  const node: Node = {
    script: first,
    chainId: 1,
    height: 100,
    pongs: true,
    subscriptionsMade: 0,
    asked: [],
  };
  const peers = new Set<Peer>();
  const wires = new Set<Duplex>();
  let refusal: Refusal | null = null;
  let handshakes = 0;
  let opened = 0;
  const frames = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: 1 << 28,
    autoPong: false,
  });
  const server = createServer((_, response) => response.writeHead(426).end());
  server.on("connection", (wire) => {
    wires.add(wire);
    wire.on("close", () => wires.delete(wire)).on("error", () => {});
  });
  server.on("upgrade", (request, wire: Socket, head) => {
    handshakes++;
    if (refusal === "silence") return;
    if (refusal !== null) return refuseHandshake(wire, refusal);
    frames.handleUpgrade(request, wire, head, (ws) => {
      opened++;
      const peer = new Peer(node, ws, wire, { path: request.url ?? "/", headers: request.headers });
      peers.add(peer);
      ws.on("close", () => peers.delete(peer));
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  return {
    url: `ws://127.0.0.1:${address.port}`,
    port: address.port,
    asked: node.asked,
    handshakes: () => handshakes,
    opened: () => opened,
    peers: () => [...peers],
    count: (method) => node.asked.filter((it) => it.method === method).length,
    subscriptions: (kind) => [...peers].flatMap((it) => it.of(kind)).length,
    notify(kind, result, wanted = () => true) {
      const told = [...peers].map((it) => it.notify(kind, result, wanted));
      return told.reduce((sum, it) => sum + it, 0);
    },
    send(frame) {
      for (const peer of peers) peer.send(frame);
    },
    script(next) {
      node.script = next;
    },
    says(facts) {
      Object.assign(node, facts);
    },
    refuse(next) {
      refusal = next;
    },
    pongs(on) {
      node.pongs = on;
    },
    drop() {
      for (const peer of peers) peer.drop();
    },
    async close() {
      for (const wire of wires) wire.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** A notification as nodes write it. */
export function notification(subscription: string, result: string): string {
  return `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":${JSON.stringify(subscription)},"result":${result}}}`;
}

/** What all connections to one provider share. */
interface Node {
  script: SocketScript | null;
  chainId: number;
  height: number;
  pongs: boolean;
  subscriptionsMade: number;
  readonly asked: SocketAsked[];
}

class Peer implements SocketPeer {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly subscriptions = new Map<string, readonly unknown[]>();
  readonly #node: Node;
  readonly #ws: WebSocket;
  readonly #wire: Socket;

  constructor(
    node: Node,
    ws: WebSocket,
    wire: Socket,
    { path, headers }: Pick<SocketPeer, "path" | "headers">,
  ) {
    this.path = path;
    this.headers = headers;
    this.#node = node;
    this.#ws = ws;
    this.#wire = wire;
    ws.on("error", () => {});
    ws.on("ping", (data) => {
      if (node.pongs) ws.pong(data);
    });
    ws.on("message", (data) => this.#hear(String(data)));
  }

  send(frame: string | Buffer): void {
    if (this.#ws.readyState === WebSocket.OPEN) this.#ws.send(frame);
  }

  raw(bytes: string | Buffer): void {
    this.#wire.write(bytes);
  }

  close(code = 1000, reason = ""): void {
    this.#ws.close(code, reason);
  }

  drop(): void {
    this.#ws.terminate();
  }

  reset(): void {
    this.#wire.resetAndDestroy();
  }

  freeze(): void {
    this.#ws.pause();
  }

  of(kind: string | undefined): readonly string[] {
    return [...this.subscriptions]
      .filter(([, params]) => kind === undefined || params[0] === kind)
      .map(([id]) => id);
  }

  notify(kind: string, result: string, wanted: (params: readonly unknown[]) => boolean): number {
    const ids = this.of(kind).filter((id) => wanted(this.subscriptions.get(id) ?? []));
    for (const id of ids) this.send(notification(id, result));
    return ids.length;
  }

  #hear(body: string): void {
    const { method, params }: { method: string; params: unknown } = JSON.parse(body);
    const id = /"id"\s*:\s*("(?:[^"\\]|\\.)*"|[^,}\s]+)/.exec(body)?.[1] ?? "null";
    if (isFinalityProbe({ method, params }))
      return this.send(`{"jsonrpc":"2.0","id":${id},"result":null}`);
    if (method === "eth_capabilities")
      return this.send(`{"jsonrpc":"2.0","id":${id},"error":${NO_METHOD}}`);
    const asked: SocketAsked = { method, id, params, body };
    this.#node.asked.push(asked);
    const reply: SocketReplier = {
      usual: () => reply.result(this.#usual(method, Array.isArray(params) ? params : [])),
      result: (json) => this.send(`{"jsonrpc":"2.0","id":${id},"result":${json}}`),
      error: (json) => this.send(`{"jsonrpc":"2.0","id":${id},"error":${json}}`),
      peer: this,
    };
    if (this.#node.script === null) reply.usual();
    else this.#node.script(asked, reply);
  }

  #usual(method: string, params: readonly unknown[]): string {
    const node = this.#node;
    switch (method) {
      case "eth_chainId":
        return `"0x${node.chainId.toString(16)}"`;
      case "eth_blockNumber":
        return `"0x${node.height.toString(16)}"`;
      case "eth_subscribe": {
        const id = `0x${(++node.subscriptionsMade).toString(16).padStart(32, "a")}`;
        this.subscriptions.set(id, params);
        return JSON.stringify(id);
      }
      case "eth_unsubscribe":
        return String(this.subscriptions.delete(String(params[0])));
      default:
        return '"0x1"';
    }
  }
}

function refuseHandshake(
  wire: Socket,
  { status, headers = {}, body = "" }: Exclude<Refusal, string>,
): void {
  const lines = Object.entries({
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  wire.end(`HTTP/1.1 ${status} Refused\r\n${lines.join("")}\r\n${body}`);
}
