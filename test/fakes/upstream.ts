// A scripted provider on a real socket: answers probes truthfully and everything else as the test
// says, down to the bytes. Counts what it was asked.
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** One request that reached the provider. */
export interface Asked {
  /** Path and query it was asked at. */
  readonly path: string;
  readonly method: string;
  /** The id as raw JSON text. */
  readonly id: string;
  readonly body: string;
  readonly params: unknown;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Writes the answer to one request, however badly. */
export type Script = (asked: Asked, reply: Replier) => void;

/** Ways of answering. */
export interface Replier {
  /** A well-formed answer around raw JSON text. */
  result(json: string, headers?: Readonly<Record<string, string>>): void;
  /** A JSON-RPC error around raw JSON text. */
  error(json: string, status?: number, headers?: Readonly<Record<string, string>>): void;
  /** Any body at all. */
  body(text: string | Buffer, status?: number, headers?: Readonly<Record<string, string>>): void;
  /** Raw bytes in place of an HTTP answer. */
  raw(bytes: string | Buffer): void;
  /** The HTTP answer itself, for whatever the others cannot do. */
  readonly response: ServerResponse;
  /** Resets the connection without a word. */
  reset(): void;
  /** Closes the connection properly, after what was written. */
  close(): void;
  /** Starts a 200 answer with these bytes and leaves the rest to the test. */
  begin(text: string | Buffer): { write(more: string | Buffer): void; end(): void; reset(): void };
}

/** A provider under the test's control. */
export interface ScriptedUpstream {
  readonly url: string;
  readonly port: number;
  /** Requests other than probes, in order. */
  readonly asked: readonly Asked[];
  readonly probes: () => number;
  /** Connections open now. */
  readonly connections: () => number;
  script(next: Script): void;
  /** What probes are told; null = probes are answered by the script as well. */
  probesSay(facts: { chainId: number; height: number } | null): void;
  /** What it reports by `eth_capabilities`; null = it refuses the method, as at first. */
  reports(next: unknown): void;
  close(): Promise<void>;
}

/**
 * How long providers keep an idle connection. Where a machine pauses for node's five seconds, a
 * call would meet the end of its connection.
 */
export const KEPT_OPEN_MS = 600_000;
const PROBES = new Set(["eth_chainId", "eth_blockNumber"]);

/** The error of a node that does not know a method. */
export const NO_METHOD = '{"code":-32601,"message":"the method does not exist"}';

/** Whether a request is the prober's, for the finalized block: scripted providers know of none. */
export function isFinalityProbe(asked: {
  readonly method: string;
  readonly params: unknown;
}): boolean {
  return (
    asked.method === "eth_getBlockByNumber" &&
    JSON.stringify(asked.params) === '["finalized",false]'
  );
}

/**
 * Starts a provider of chain 1 at height 100 that answers `"0x1"` until told otherwise. What probes
 * ask is answered truthfully to everyone.
 */
export async function scriptedUpstream(
  first: Script = (_, reply) => reply.result('"0x1"'),
  port = 0,
): Promise<ScriptedUpstream> {
  let script = first;
  let facts: { chainId: number; height: number } | null = { chainId: 1, height: 100 };
  let history: unknown = null;
  let probes = 0;
  const asked: Asked[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer({ keepAliveTimeout: KEPT_OPEN_MS }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const parsed: { method: string; params: unknown } = JSON.parse(body);
      const id = /"id"\s*:\s*("(?:[^"\\]|\\.)*"|[^,}\s]+)/.exec(body)?.[1] ?? "null";
      const reply: Replier = {
        result: (json, headers = {}) =>
          reply.body(`{"jsonrpc":"2.0","id":${id},"result":${json}}`, 200, headers),
        error: (json, status = 200, headers = {}) =>
          reply.body(`{"jsonrpc":"2.0","id":${id},"error":${json}}`, status, headers),
        body: (text, status = 200, headers = {}) =>
          response.writeHead(status, { "content-type": "application/json", ...headers }).end(text),
        response,
        raw: (bytes) => void request.socket.write(bytes),
        reset: () => void request.socket.resetAndDestroy(),
        close: () => void request.socket.end(),
        begin(text) {
          response.writeHead(200, { "content-type": "application/json" });
          response.write(text);
          return {
            write: (more) => void response.write(more),
            end: () => void response.end(),
            reset: () => void request.socket.resetAndDestroy(),
          };
        },
      };
      response.on("error", () => {});
      if (facts !== null && PROBES.has(parsed.method)) {
        probes++;
        reply.result(
          `"0x${(parsed.method === "eth_chainId" ? facts.chainId : facts.height).toString(16)}"`,
        );
        return;
      }
      if (facts !== null && isFinalityProbe(parsed)) return reply.result("null");
      if (facts !== null && parsed.method === "eth_capabilities") {
        return history === null ? reply.error(NO_METHOD) : reply.result(JSON.stringify(history));
      }
      const one: Asked = {
        path: request.url ?? "/",
        method: parsed.method,
        id,
        body,
        params: parsed.params,
        headers: request.headers,
      };
      asked.push(one);
      script(one, reply);
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    asked,
    probes: () => probes,
    connections: () => sockets.size,
    script(next) {
      script = next;
    },
    probesSay(next) {
      facts = next;
    },
    reports(next) {
      history = next;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
