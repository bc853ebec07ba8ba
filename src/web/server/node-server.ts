// Node's HTTP server as the service configures it: takes connections that other code accepted,
// bounds hostile clients, and dispatches requests and WebSocket handshakes.
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Runtime } from "../../runtime.ts";
import type { Subscriptions } from "../../upstream/stream/subscriptions.ts";
import { ConnectionRequests } from "../http/connection-requests.ts";
import { createServer } from "../http/node-http.ts";
import { headersOf, refusalText } from "../http/respond.ts";
import { ClientSockets, isHandshake } from "../socket/client-sockets.ts";
import { handleRequest, originForm, type RequestParts } from "./request-handler.ts";

/** Bounds of the server. */
export interface ServerLimits {
  readonly maxConnections: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly drainTimeoutMs: number;
}

export interface NodeServerParts extends RequestParts {
  readonly runtime: Runtime;
  readonly limits: ServerLimits;
  readonly subscriptions: Pick<Subscriptions, "open">;
}

const CHECK_INTERVAL_MS = 5_000;

/** Node's HTTP server without a listening socket of its own. */
export class NodeServer {
  readonly #parts: NodeServerParts;
  readonly #server: Server;
  readonly #connectionRequests = new ConnectionRequests();
  readonly sockets: ClientSockets;

  constructor(parts: NodeServerParts) {
    this.#parts = parts;
    this.#server = serverWithin(parts.limits);
    this.sockets = new ClientSockets(parts);
    this.#server.on("request", (request, response) => {
      this.#connectionRequests.add(request, response);
      countRequest(parts, response);
      handleRequest(parts, request, response);
    });
    this.#server.on("clientError", (error: ClientError, socket) => {
      if (!socket.writable || error.code === "ECONNRESET") socket.destroy();
      else this.#refuse(socket, faultOf(error.code));
    });
    this.#server.on("connect", (_request, socket) => this.#refuse(socket, NO_TUNNELS));
    this.#server.on("upgrade", (request, socket, head) => {
      if (this.#connectionRequests.isBusy(socket)) this.#refuse(socket, HANDSHAKE_BEHIND);
      else this.sockets.upgrade(request, socket, head);
    });
  }

  /** Starts enforcing time limits of requests. */
  start(): void {
    this.#server.emit("listening");
  }

  /** Serves a connection until it ends. Bytes already read must have been put back. */
  accept(socket: Socket): void {
    this.#server.emit("connection", socket);
  }

  destroyAll(): void {
    this.sockets.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #refuse(socket: Duplex, why: Fault): void {
    this.#connectionRequests.refuseNext(
      socket,
      refusalText(headersOf(this.#parts.requestId(), undefined), why),
    );
  }
}

function serverWithin(limits: ServerLimits): Server {
  const { headersTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs } = limits;
  return createServer({
    keepAliveTimeout: keepAliveTimeoutMs,
    headersTimeout: Math.min(headersTimeoutMs, requestTimeoutMs),
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: Math.min(CHECK_INTERVAL_MS, headersTimeoutMs, requestTimeoutMs),
    requireHostHeader: false,
    shouldUpgradeCallback(request: IncomingMessage) {
      request.url = originForm(request.url ?? "/");
      return isHandshake(request);
    },
  });
}

function countRequest({ activity, runtime }: NodeServerParts, response: ServerResponse): void {
  activity.active++;
  activity.lastMs = runtime.now();
  response.on("close", () => {
    activity.active--;
    activity.lastMs = runtime.now();
  });
  if (activity.draining) response.shouldKeepAlive = false;
}

/** An error of node's parser: bad framing, headers too long, or a slow client. */
type ClientError = Error & { readonly code?: string };

const NO_TUNNELS = fault("invalid_request", "CONNECT is not served here", {
  nextAction: "POST to /rpc/{chain}",
});
const HANDSHAKE_BEHIND = fault(
  "invalid_request",
  "a WebSocket cannot be opened behind a request that is under way",
  { nextAction: "open another connection" },
);

function faultOf(code: string | undefined): Fault {
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
