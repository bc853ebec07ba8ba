// The HTTP server: one listener, requests sent to their room, hostile clients kept within bounds, and a drain that loses no accepted request.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Server as NetServer } from "node:net";
import type { Duplex } from "node:stream";
import { fault } from "../core/fault.ts";
import type { World } from "../world.ts";
import { type Headers, writeFault, writePreflight } from "./respond.ts";
import { isRpcPath } from "./rpc/address.ts";
import type { RpcParts } from "./rpc/door.ts";
import { serveRpc } from "./rpc/http.ts";
import { type Activity, createLeanDoor, type LeanDoor } from "./rpc/lean.ts";
import { renderFault } from "./rpc/render.ts";

/** Bounds of the server. */
export interface ServerLimits {
  readonly maxConnections: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly drainTimeoutMs: number;
}

/** Answers a GET; registered by path. */
export type PageHandler = (response: ServerResponse, headers: Headers, path: string) => void;

/** What the server sends requests to. */
export interface ServerParts {
  readonly world: World;
  readonly limits: ServerLimits;
  readonly rpc: RpcParts;
  /** The page that answers a GET on this path; undefined where there is none. */
  readonly page: (path: string) => PageHandler | undefined;
  readonly requestId: () => string;
}

/** A server that listens. */
export interface WebServer {
  readonly port: number;
  readonly draining: boolean;
  /** Stops accepting, finishes what was accepted, then closes. */
  drain(): Promise<void>;
}

/** Starts listening. */
export function listen(parts: ServerParts, host: string, port: number): Promise<WebServer> {
  const { limits } = parts;
  const state: Activity = { active: 0, lastMs: 0, draining: false };
  const server = createServer({
    keepAlive: true,
    noDelay: true,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: Math.min(5_000, limits.headersTimeoutMs),
  });
  server.maxConnections = limits.maxConnections;
  server.on("request", (request, response) => {
    state.active++;
    state.lastMs = parts.world.now();
    response.on("close", () => {
      state.active--;
      state.lastMs = parts.world.now();
    });
    if (state.draining) response.shouldKeepAlive = false;
    handle(parts, request, response);
  });
  server.on("clientError", answerBroken);
  const lean = leanDoorOf(parts, server, state);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, 1_024, () => {
      server.off("error", reject);
      const address = server.address();
      resolve({
        port: typeof address === "object" && address !== null ? address.port : port,
        get draining() {
          return state.draining;
        },
        drain: () => drain(parts, server, lean, state),
      });
    });
  });
}

/** Puts the lean door before node's own: a connection goes on to that with the first request that is not a plain RPC call. */
function leanDoorOf(parts: ServerParts, server: Server, activity: Activity): LeanDoor {
  const own = server.listeners("connection");
  const { world, rpc, requestId, limits } = parts;
  const lean = createLeanDoor({
    world,
    rpc,
    requestId,
    activity,
    keepAliveTimeoutMs: limits.keepAliveTimeoutMs,
    firstRequestMs: limits.headersTimeoutMs,
    handOver(socket, received) {
      for (const listener of own) listener.call(server, socket);
      socket.emit("data", received);
    },
  });
  server.removeAllListeners("connection");
  server.on("connection", (socket) => lean.accept(socket));
  return lean;
}

function handle(parts: ServerParts, request: IncomingMessage, response: ServerResponse): void {
  const { method } = request;
  const url = request.url ?? "/";
  const requestId = parts.requestId();
  if (method === "POST" && isRpcPath(url)) {
    serveRpc(parts.rpc, request, response, requestId);
    return;
  }
  const headers: Headers = ["x-svc-request-id", requestId];
  request.on("error", () => {});
  request.resume();
  if (method === "OPTIONS") return writePreflight(response, headers);
  if (isRpcPath(url)) {
    headers.push("Allow", "POST, OPTIONS");
    return writeFault(response, headers, fault("method_not_allowed", `${method} is not served on an RPC path`));
  }
  const path = url.split("?", 1)[0] ?? "/";
  const page = parts.page(path);
  if (page === undefined) return writeFault(response, headers, fault("not_found", "nothing is served at this path"));
  if (method !== "GET" && method !== "HEAD") {
    headers.push("Allow", "GET, HEAD, OPTIONS");
    return writeFault(response, headers, fault("method_not_allowed", `${method} is not served here`, { nextAction: "send a GET" }));
  }
  page(response, headers, path);
}

/** What node's parser refused: bad framing, headers too long, or a client that is too slow. */
function answerBroken(error: Error & { readonly code?: string }, socket: Duplex): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const [status, why] = brokenAs(error.code);
  const body = renderFault(why, "null");
  const head = `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
  socket.end(Buffer.concat([Buffer.from(head), body]));
}

function brokenAs(code: string | undefined) {
  if (code === "HPE_HEADER_OVERFLOW") return ["431 Request Header Fields Too Large", fault("invalid_request", "the request headers are too long")] as const;
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return ["408 Request Timeout", fault("request_timeout", "the request did not arrive in time")] as const;
  return [
    "400 Bad Request",
    fault("invalid_request", "this is not a valid HTTP request", { nextAction: "check Content-Length and Transfer-Encoding, or use an HTTP library" }),
  ] as const;
}

const QUIET_MS = 300;
const STEP_MS = 25;

/**
 * Stops accepting connections and serves what comes on those that are open, telling each client to close. Idle connections end once nothing
 * has come for a while: closing them at once would lose a request that is on its way.
 */
async function drain(parts: ServerParts, server: Server, lean: LeanDoor, state: Activity): Promise<void> {
  const { world, limits } = parts;
  if (state.draining) return;
  state.draining = true;
  const startedAtMs = world.now();
  state.lastMs = startedAtMs;
  NetServer.prototype.close.call(server);
  const over = (): boolean => world.now() - startedAtMs >= limits.drainTimeoutMs;
  const quiet = (): boolean => state.active === 0 && world.now() - state.lastMs >= QUIET_MS;
  while (!over() && !quiet()) await new Promise<void>((resolve) => void setTimeout(resolve, STEP_MS));
  lean.destroyAll();
  server.closeAllConnections();
}
