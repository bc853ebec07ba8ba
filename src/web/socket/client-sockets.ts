// Client WebSockets: performs handshakes or refuses them with an HTTP answer, keeps the set of open
// sockets, and pings them all with one timer. Knows nothing of messages.
import type { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { callEndOf } from "../../core/call-end.ts";
import { withErrorType } from "../../core/faults/legacy-form.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { clientAddress, headerOf, type TrustedProxies } from "../http/client-address.ts";
import { NO_HOST, namesOneHost } from "../http/local-caller.ts";
import { type Headers, headersOf, refusalText } from "../http/respond.ts";
import { isLegacy } from "../rpc/answers/answer-headers.ts";
import { type Authenticated, authenticate, type RequestInfo } from "../rpc/authenticate.ts";
import { readDirectives } from "../rpc/directives.ts";
import { isSocketPath } from "../rpc/target.ts";
import type { CallParts } from "./calls.ts";
import { CallerWebSocket, ClientSocket, type ClientSocketParts } from "./client-connection.ts";
import { FrameEncoder } from "./notification.ts";
import { SlowReaders } from "./slow-readers.ts";

/**
 * Whether a request opens a WebSocket. Other requests with `Upgrade` are served as ordinary ones.
 */
export function isHandshake(request: IncomingMessage): boolean {
  const { method, headers, httpVersion } = request;
  return (
    method === "GET" &&
    httpVersion === "1.1" &&
    headers.upgrade?.toLowerCase() === "websocket" &&
    isSocketPath(request.url ?? "")
  );
}

/** The refusal of an ordinary request on a path for WebSockets. */
export const NOT_A_SOCKET = fault("upgrade_required", "this path is for WebSockets");

type CallerWebSocketServer = InstanceType<typeof WebSocketServer<typeof CallerWebSocket>>;

/** The client sockets of the service. */
export class ClientSockets {
  readonly #parts: ClientSocketParts;
  /** Open sockets, in groups that are pinged in turn. */
  readonly #groups: readonly Set<ClientSocket>[] = Array.from({ length: GROUPS }, () => new Set());
  #added = 0;
  #turn = 0;
  #isPinging = false;
  /** Number of open sockets. */
  open = 0;
  /** Headers of the handshake being answered; `ws` completes a handshake synchronously. */
  #answering: Headers = [];
  #server: CallerWebSocketServer;

  constructor(calls: CallParts) {
    const slowReaders = new SlowReaders(calls.rpc.budget, () => calls.rpc.limits);
    this.#parts = { ...calls, frameEncoder: new FrameEncoder(), slowReaders };
    this.#server = this.#createServer();
  }

  /** Handles a connection whose client requested an upgrade. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { rpc, requestId } = this.#parts;
    const headers = headersOf(requestId(), request.headers["x-request-id"]);
    if (!(socket instanceof Socket)) return void socket.destroy();
    const why = handshakeRefusal(this.#parts, request);
    if (why !== null) return this.#refuse(socket, headers, why);
    // The key may have to be looked up first. Until then nobody else watches the connection.
    const gone = (): void => stop?.();
    socket.on("error", gone).on("close", gone);
    const info = requestInfoOf(request, rpc.proxies);
    const stop = authenticate(rpc, info, (found) => {
      socket.off("error", gone).off("close", gone);
      const refusal =
        found.kind === "fault"
          ? found
          : (handshakeRefusal(this.#parts, request) ?? callerRefusal(this.#parts, found));
      const isOldForm = isLegacy(found.kind === "authenticated" ? found.target : null, info);
      if (isOldForm) rpc.legacyForms.announce(headers);
      if (refusal !== null)
        return this.#refuse(socket, headers, isOldForm ? withErrorType(refusal) : refusal);
      if (found.kind !== "authenticated") return;
      this.#answering = headers;
      if (this.#server.options.maxPayload !== rpc.limits.maxBodyBytes)
        this.#server = this.#createServer();
      this.#server.handleUpgrade(request, socket, head, (ws) => this.#opened(ws, socket, found));
    });
  }

  /** Refuses requests that wait for their turn on a socket: the service stops. */
  refuseWaiting(): void {
    this.#each((socket) => socket.calls.refuseWaiting());
  }

  /** Closes the sockets of chains that are served no more. */
  forgetChains(names: ReadonlySet<string>): void {
    this.#each((socket) => {
      if (names.has(socket.chainName)) socket.close(1001, CHAIN_GONE, "cut");
    });
  }

  /** Closes all sockets with a reason; cuts those that do not answer within a second. */
  close(): void {
    this.#each((socket) => socket.close(1012, "service restart"));
  }

  /** Cuts all sockets at once. */
  destroy(): void {
    this.#each((socket) => socket.destroy());
  }

  #createServer(): CallerWebSocketServer {
    const options = { ...OPTIONS, maxPayload: this.#parts.rpc.limits.maxBodyBytes };
    const created = new WebSocketServer<typeof CallerWebSocket>(options);
    created.on("headers", (lines) => {
      for (let i = 0; i < this.#answering.length; i += 2)
        lines.push(`${this.#answering[i]}: ${this.#answering[i + 1]}`);
    });
    created.on("wsClientError", (error, socket) =>
      this.#refuse(socket, [...this.#answering, "Sec-WebSocket-Version", "13"], broken(error)),
    );
    return created;
  }

  /** Refuses a handshake: writes the HTTP answer and closes the connection. */
  #refuse(socket: Duplex, headers: Headers, why: Fault): void {
    const { observer, runtime } = this.#parts.rpc;
    observer.unread(callEndOf({ kind: "fault", fault: why }), null, null);
    socket.on("error", () => {});
    socket.end(refusalText(headers, why));
    socket.resume();
    runtime.after(CLOSE_MS, () => socket.destroy());
  }

  #opened(ws: CallerWebSocket, socket: Socket, authenticated: Authenticated): void {
    const opened = new ClientSocket(this.#parts, { ws, socket, authenticated, left: this.#left });
    this.#groups[this.#added++ % GROUPS]?.add(opened);
    this.open++;
    if (!this.#isPinging) this.#pingLater();
  }

  /** One function for all sockets: one of its own would be memory of each. */
  readonly #left = (socket: ClientSocket): void => {
    if (this.#groups.some((group) => group.delete(socket))) this.open--;
  };

  #each(run: (socket: ClientSocket) => void): void {
    for (const group of this.#groups) for (const socket of [...group]) run(socket);
  }

  #pingLater(): void {
    const { runtime, limits } = this.#parts.rpc;
    this.#isPinging = this.open > 0;
    if (!this.#isPinging) return;
    runtime.after(limits.socketPingMs / GROUPS, () => {
      if (this.open > 0)
        for (const socket of this.#groups[this.#turn++ % GROUPS] ?? []) socket.ping();
      this.#pingLater();
    });
  }
}

const CHAIN_GONE = "this chain is not served any more, or was not used for long; connect again";
/** Groups of sockets that are pinged one after the other. */
const GROUPS = 30;
/** Time for a refused client to read the answer. */
const CLOSE_MS = 1_000;
/** Never reached: client sockets limit their own closing. */
const LONGEST_CLOSE_MS = 60_000;
const OPTIONS = {
  WebSocket: CallerWebSocket,
  noServer: true,
  perMessageDeflate: false,
  clientTracking: false,
  autoPong: false,
  closeTimeout: LONGEST_CLOSE_MS,
  maxFragments: 1_024,
  maxBufferedChunks: 16_384,
} as const;

/** What is kept of a handshake for as long as its socket is open: not the request itself. */
function requestInfoOf(request: IncomingMessage, proxies: TrustedProxies): RequestInfo {
  const url = (request.url ?? "").slice("/ws".length);
  return {
    url,
    header: unsent,
    address: clientAddress(request, proxies),
    directives: readDirectives(url, (name) => headerOf(request, name)),
  };
}

function unsent(): undefined {}

/** Why the service accepts no handshake now; null = it does. */
function handshakeRefusal({ activity }: ClientSocketParts, request: IncomingMessage): Fault | null {
  if (!isHandshake(request)) return NOT_A_SOCKET;
  if (!namesOneHost(request)) return NO_HOST;
  return activity.draining ? fault("unavailable", "the service is stopping") : null;
}

/** Why this caller gets no socket at this target; null = it does. */
function callerRefusal(
  { rpc }: ClientSocketParts,
  { target, keyContext }: Authenticated,
): Fault | null {
  const nextAction = 'use include_meta=body, or send "svc_meta":"notify" in a request';
  if (target.payPerCall)
    return fault("not_found", "calls are paid for one by one over HTTP only", {
      nextAction: "POST to the same path without /ws",
    });
  if (target.meta === "headers")
    return fault("invalid_field", "messages of a WebSocket have no headers", { nextAction });
  const refusal =
    keyContext === null ? null : (rpc.admission?.refusal(keyContext, target.named) ?? null);
  return refusal ?? (target.legacyForms === null ? null : rpc.legacyForms.used(target.legacyForms));
}

function broken({ message }: Error): Fault {
  return fault("invalid_request", message, {
    nextAction: "use a WebSocket library that speaks RFC 6455 (version 13)",
  });
}
