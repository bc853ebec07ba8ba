// The HTTP server: one listener, requests sent to their room, hostile clients kept within bounds,
// and a drain that loses no accepted request.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Server as NetServer } from "node:net";
import type { Duplex } from "node:stream";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Runtime } from "../../runtime.ts";
import type { Subscriptions } from "../../upstream/stream/subscriptions.ts";
import type { Activity } from "../http/activity.ts";
import { createConnectionRequests } from "../http/connection-requests.ts";
import { isFromThisMachine } from "../http/local-caller.ts";
import { isOperator } from "../http/operator.ts";
import {
  type Headers,
  headersOf,
  refusalText,
  wantsHtml,
  writeFault,
  writePreflight,
} from "../http/respond.ts";
import { html } from "../pages/account/markup.ts";
import { writePage } from "../pages/account/page.ts";
import type { PageHandler } from "../pages/page-handler.ts";
import { createFastPathServer, type FastPathServer } from "../rpc/fast-path.ts";
import { serveRpc } from "../rpc/node-http.ts";
import type { RpcParts } from "../rpc/parts.ts";
import { isRpcPath, isSocketPath } from "../rpc/target.ts";
import {
  type ClientSockets,
  createClientSockets,
  isHandshake,
  refuseHandshake,
} from "../socket/client-sockets.ts";

/** Bounds of the server. */
export interface ServerLimits {
  readonly maxConnections: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly drainTimeoutMs: number;
}

/** Serves the paths it says it serves, whatever the method; reads the body itself. */
export interface HttpApi {
  serves(path: string): boolean;
  handle(request: IncomingMessage, response: ServerResponse, requestId: string): void;
}

/** What the server sends requests to. */
export interface ServerParts {
  readonly runtime: Runtime;
  readonly limits: ServerLimits;
  readonly rpc: RpcParts;
  readonly subscriptions: Pick<Subscriptions, "open">;
  /** The page that answers a GET on this path; undefined where there is none. */
  readonly page: (path: string) => PageHandler | undefined;
  /** The management of keys and accounts; null = there is none. */
  readonly api: HttpApi | null;
  readonly requestId: () => string;
  /** Base URL of this service as a caller knows it, without a slash at the end. */
  readonly baseUrl: (request: IncomingMessage) => string;
  /** Secret; null = nobody is the operator. */
  readonly operatorToken: string | null;
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
  const state: Activity = { active: 0, lastMs: 0, draining: false, ended: false };
  const handling: HandlerParts = { ...parts, activity: state };
  const server = createServer({
    keepAlive: true,
    noDelay: true,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: Math.min(5_000, limits.headersTimeoutMs, limits.requestTimeoutMs),
    requireHostHeader: false,
    shouldUpgradeCallback(request) {
      request.url = originForm(request.url ?? "/");
      return isHandshake(request);
    },
  });
  server.maxConnections = limits.maxConnections;
  const connectionRequests = createConnectionRequests();
  server.on("request", (request, response) => {
    connectionRequests.add(request, response);
    state.active++;
    state.lastMs = parts.runtime.now();
    response.on("close", () => {
      state.active--;
      state.lastMs = parts.runtime.now();
    });
    if (state.draining) response.shouldKeepAlive = false;
    handle(handling, request, response);
  });
  const refuse = (socket: Duplex, why: Fault): void =>
    connectionRequests.refuseNext(
      socket,
      refusalText(headersOf(parts.requestId(), undefined), why),
    );
  server.on("clientError", (error: ClientError, socket) => {
    if (!socket.writable || error.code === "ECONNRESET") socket.destroy();
    else refuse(socket, brokenAs(error.code));
  });
  server.on("connect", (_request, socket) => refuse(socket, NO_TUNNELS));
  const { rpc, subscriptions, requestId } = parts;
  const sockets = createClientSockets({ rpc, subscriptions, requestId, activity: state });
  server.on("upgrade", (request, socket, head) => {
    if (connectionRequests.isBusy(socket)) refuse(socket, HANDSHAKE_BEHIND);
    else sockets.upgrade(request, socket, head);
  });
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
        drain: () => drain(parts, { server, lean, sockets }, state),
      });
    });
  });
}

/**
 * Puts the fast path before node's own: a connection goes on to that with the first request that is
 * not a plain RPC call.
 */
function leanDoorOf(parts: ServerParts, server: Server, activity: Activity): FastPathServer {
  const own = server.listeners("connection");
  const { runtime, rpc, requestId, limits } = parts;
  const lean = createFastPathServer({
    runtime,
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

/** What requests are handled with. */
interface HandlerParts extends ServerParts {
  readonly activity: Activity;
}

function handle(parts: HandlerParts, request: IncomingMessage, response: ServerResponse): void {
  const { method } = request;
  const url = originForm(request.url ?? "/");
  const requestId = parts.requestId();
  const named = request.headers.host !== undefined || request.httpVersion === "1.0";
  if (named && method === "POST" && isRpcPath(url)) {
    request.url = url;
    serveRpc(parts, request, response, requestId);
    return;
  }
  const path = url.split("?", 1)[0] ?? "/";
  if (named && method !== "OPTIONS" && parts.api?.serves(path) === true) {
    request.url = url;
    return parts.api.handle(request, response, requestId);
  }
  const headers = headersOf(requestId, request.headers["x-request-id"]);
  request.on("error", () => {});
  request.resume();
  if (!named)
    return writeFault(
      response,
      headers,
      fault("invalid_request", "the request names no host", { nextAction: "send a Host header" }),
    );
  if (method === "OPTIONS") return writePreflight(response, headers);
  if (isSocketPath(url)) return writeNotASocket(request, response, headers);
  if (isRpcPath(url))
    return writeNotAllowed(
      response,
      headers,
      "POST, OPTIONS",
      fault("method_not_allowed", `${method} is not served on an RPC path`),
    );
  const page = parts.page(path);
  if (page === undefined) return writeNotFound(request, response, headers);
  if (method !== "GET" && method !== "HEAD")
    return writeNotAllowed(
      response,
      headers,
      "GET, HEAD, OPTIONS",
      fault("method_not_allowed", `${method} is not served here`, { nextAction: "send a GET" }),
    );
  page(response, headers, {
    path,
    baseUrl: parts.baseUrl(request),
    known: request.headers["if-none-match"],
    asker: {
      address: request.socket.remoteAddress ?? "",
      header: (name) => textOf(request.headers[name]),
    },
    isOperator: isOperator(request, parts.operatorToken),
    isLocal: isFromThisMachine(request),
  });
}

function textOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function writeNotFound(
  { method, headers: { accept } }: IncomingMessage,
  response: ServerResponse,
  headers: Headers,
): void {
  if (method !== "GET" || !wantsHtml(accept))
    return writeFault(response, headers, fault("not_found", "nothing is served at this path"));
  const lines = [
    html`<p class="lead">Nothing is served at this address.</p>`,
    html`<p><a href="/docs">Documents</a> · <a href="/dashboard">Dashboard</a></p>`,
  ];
  writePage(response, headers, {
    status: 404,
    title: "Not found",
    body: html`<h1>Not found</h1>${lines}`,
  });
}

function writeNotASocket(
  { method }: IncomingMessage,
  response: ServerResponse,
  headers: Headers,
): void {
  const nextAction = "open a WebSocket here, or POST to the same path without /ws";
  if (method !== "GET" && method !== "HEAD")
    return writeNotAllowed(
      response,
      headers,
      "GET, OPTIONS",
      fault("method_not_allowed", `${method} is not served on a path for WebSockets`, {
        nextAction,
      }),
    );
  headers.push("Upgrade", "websocket");
  writeFault(response, headers, refuseHandshake());
}

function writeNotAllowed(
  response: ServerResponse,
  headers: Headers,
  allow: string,
  why: Fault,
): void {
  headers.push("Allow", allow);
  writeFault(response, headers, why);
}

/** Path and query, also of a target that is written with scheme and host. */
function originForm(target: string): string {
  if (target.startsWith("/")) return target;
  const rest = target.replace(/^https?:\/\/[^/?#]*/i, "");
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** What node's parser refused: bad framing, headers too long, or a client that is too slow. */
type ClientError = Error & { readonly code?: string };

const NO_TUNNELS = fault("invalid_request", "CONNECT is not served here", {
  nextAction: "POST to /rpc/{chain}",
});
const HANDSHAKE_BEHIND = fault(
  "invalid_request",
  "a WebSocket cannot be opened behind a request that is under way",
  { nextAction: "open another connection" },
);

function brokenAs(code: string | undefined): Fault {
  if (code === "HPE_HEADER_OVERFLOW")
    return fault("invalid_request", "the request headers are too long", {
      status: 431,
      nextAction: "send fewer or shorter headers",
    });
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return fault("request_timeout", "the request did not arrive in time");
  const nextAction = "check Content-Length and Transfer-Encoding, or use an HTTP library";
  return fault("invalid_request", "this is not a valid HTTP request", { nextAction });
}

/** Everything that holds connections. */
interface Held {
  readonly server: Server;
  readonly lean: FastPathServer;
  readonly sockets: ClientSockets;
}

const QUIET_MS = 300;
/** How long sockets may take to say goodbye. */
const GOODBYE_MS = 1_500;
const STEP_MS = 25;

/**
 * Stops accepting connections and serves what comes on those that are open, telling each client to
 * close. Idle connections end once nothing has come for a while: closing them at once would lose a
 * request that is on its way. WebSockets are closed once nothing is under way.
 */
async function drain(
  parts: ServerParts,
  { server, lean, sockets }: Held,
  state: Activity,
): Promise<void> {
  const { runtime, limits } = parts;
  if (state.draining) return;
  state.draining = true;
  const startedAtMs = runtime.now();
  state.lastMs = startedAtMs;
  NetServer.prototype.close.call(server);
  const over = (): boolean => runtime.now() - startedAtMs >= limits.drainTimeoutMs;
  const quiet = (): boolean => state.active === 0 && runtime.now() - state.lastMs >= QUIET_MS;
  const step = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, STEP_MS));
  while (!over() && !quiet()) await step();
  state.ended = true;
  sockets.close();
  for (
    const closingAtMs = runtime.now();
    sockets.open > 0 && runtime.now() - closingAtMs < GOODBYE_MS;
  )
    await step();
  sockets.destroy();
  lean.destroyAll();
  server.closeAllConnections();
}
