// WebSockets of callers: the handshake, or its refusal as an HTTP answer; the set of open sockets and the one sweep that asks them all for signs of
// life. Knows nothing of what is said on them.
import type { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { type Fault, fault } from "../../core/fault.ts";
import { withErrorType } from "../../core/old-form.ts";
import { isOld } from "../old-forms.ts";
import { type Headers, headersOf, refusalText } from "../respond.ts";
import { isSocketPath } from "../rpc/address.ts";
import { type Arrival, arrive, type Letter } from "../rpc/arrival.ts";
import { credentialOf } from "../rpc/credential.ts";
import type { CallParts } from "./calls.ts";
import { CallerSocket, type SocketParts } from "./connection.ts";
import { createPress } from "./notification.ts";

/** The sockets of all callers. */
export interface CallerSockets {
  /** Takes a connection whose client asked for an upgrade. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  readonly open: number;
  /** Says goodbye to all; those that do not answer are cut off within a second. */
  close(): void;
  /** Cuts all off. */
  destroy(): void;
}

/** True for a request that a WebSocket begins with; others that ask for an upgrade are ordinary requests. */
export function isHandshake(request: IncomingMessage): boolean {
  const { method, headers, httpVersion } = request;
  return method === "GET" && httpVersion === "1.1" && headers.upgrade?.toLowerCase() === "websocket" && isSocketPath(request.url ?? "");
}

/** The refusal of an ordinary request on a path for WebSockets. */
export function notASocket(): Fault {
  return fault("upgrade_required", "this path is for WebSockets");
}

/** No sockets yet. */
export function createCallerSockets(calls: CallParts): CallerSockets {
  const parts: SocketParts = { ...calls, press: createPress() };
  const { rpc } = parts;
  const rounds = createRounds(parts);
  /** Of the handshake that is being done; `ws` does it in one go. */
  let answering: Headers = [];
  let server = createServer();

  function createServer(): WebSocketServer {
    const options = { ...OPTIONS, maxPayload: rpc.limits.maxBodyBytes };
    const it = new WebSocketServer(options);
    it.on("headers", (lines) => {
      for (let i = 0; i < answering.length; i += 2) lines.push(`${answering[i]}: ${answering[i + 1]}`);
    });
    it.on("wsClientError", (error, socket) => refuse(socket, [...answering, "Sec-WebSocket-Version", "13"], broken(error)));
    return it;
  }

  function refuse(socket: Duplex, headers: Headers, why: Fault): void {
    rpc.observer.refused(why.code);
    socket.on("error", () => {});
    socket.end(refusalText(headers, why));
    socket.resume();
    rpc.world.after(CLOSE_MS, () => socket.destroy());
  }

  function greet({ request, socket, head, headers }: Handshake, arrival: Arrival): void {
    answering = headers;
    if (server.options.maxPayload !== rpc.limits.maxBodyBytes) server = createServer();
    server.handleUpgrade(request, socket, head, (ws) => rounds.add((left) => new CallerSocket(parts, { ws, socket, arrival, left })));
  }

  return {
    upgrade(request, socket, head) {
      const headers = headersOf(parts.requestId(), request.headers["x-request-id"]);
      if (!(socket instanceof Socket)) return void socket.destroy();
      const why = notNow(parts, request);
      if (why !== null) return refuse(socket, headers, why);
      // A key may have to be looked up first. Until then nobody else listens to what becomes of the connection.
      const gone = (): void => stop?.();
      socket.on("error", gone).on("close", gone);
      const letter = letterOf(request);
      const stop = arrive(rpc, letter, (it) => {
        socket.off("error", gone).off("close", gone);
        const refusal = it.kind === "fault" ? it : (notNow(parts, request) ?? refusalOf(parts, it));
        const old = isOld(it.kind === "arrival" ? it.address : null, letter);
        if (old) rpc.oldForms.announce(headers);
        if (refusal !== null) return refuse(socket, headers, old ? withErrorType(refusal) : refusal);
        if (it.kind === "arrival") greet({ request, socket, head, headers }, it);
      });
    },
    get open() {
      return rounds.size;
    },
    close: () => rounds.each((it) => it.close(1012, "service restart")),
    destroy: () => rounds.each((it) => it.destroy()),
  };
}

/** How long a refused client may take to read why. */
const CLOSE_MS = 1_000;
/** Never reached: sockets see to their ends themselves. */
const LONGEST_CLOSE_MS = 60_000;
const OPTIONS = {
  noServer: true,
  perMessageDeflate: false,
  clientTracking: false,
  autoPong: false,
  closeTimeout: LONGEST_CLOSE_MS,
  maxFragments: 1_024,
  maxBufferedChunks: 16_384,
} as const;

interface Handshake {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  readonly head: Buffer;
  readonly headers: Headers;
}

function letterOf(request: IncomingMessage): Letter {
  const url = (request.url ?? "").slice("/ws".length);
  const header = (name: string): string | undefined => {
    const value = request.headers[name];
    return typeof value === "string" ? value : undefined;
  };
  return { url, header, address: request.socket.remoteAddress ?? "", credential: credentialOf(url, { header }) };
}

/** Why no handshake can be done, whoever it is; null = it can. */
function notNow({ activity }: SocketParts, request: IncomingMessage): Fault | null {
  if (!isHandshake(request)) return notASocket();
  if (request.headers.host === undefined) return fault("invalid_request", "the request names no host", { nextAction: "send a Host header" });
  return activity.draining ? fault("unavailable", "the service is stopping") : null;
}

/** Why this caller gets no socket here; null = it does. */
function refusalOf({ rpc }: SocketParts, { address, holder }: Arrival): Fault | null {
  const nextAction = 'use include_meta=body, or send "svc_meta":"notify" in a request';
  if (address.payPerCall) return fault("not_found", "calls are paid for one by one over HTTP only", { nextAction: "POST to the same path without /ws" });
  if (address.meta === "headers") return fault("invalid_field", "messages of a WebSocket have no headers", { nextAction });
  const refusal = holder === null ? null : (rpc.gate?.refusal(holder, address.named) ?? null);
  return refusal ?? (address.old === null ? null : rpc.oldForms.used(address.old));
}

function broken({ message }: Error): Fault {
  return fault("invalid_request", message, { nextAction: "use a WebSocket library that speaks RFC 6455 (version 13)" });
}

/** Open sockets, parted so that each moment pings a few of them. */
interface Rounds {
  readonly size: number;
  /** Adds what `make` makes; it calls `left` to be taken out. */
  add(make: (left: () => void) => CallerSocket): void;
  each(run: (door: CallerSocket) => void): void;
}

const PARTS = 30;

function createRounds({ rpc }: SocketParts): Rounds {
  const parts: readonly Set<CallerSocket>[] = Array.from({ length: PARTS }, () => new Set());
  let size = 0;
  let added = 0;
  let turn = 0;
  let running = false;

  function tick(): void {
    running = size > 0;
    if (!running) return;
    for (const door of parts[turn++ % PARTS] ?? []) door.beat();
    rpc.world.after(rpc.limits.socketPingMs / PARTS, tick);
  }

  return {
    get size() {
      return size;
    },
    add(make) {
      const part = parts[added++ % PARTS];
      if (part === undefined) return;
      const door = make(() => {
        if (part.delete(door)) size--;
      });
      part.add(door);
      size++;
      if (running) return;
      running = true;
      rpc.world.after(rpc.limits.socketPingMs / PARTS, tick);
    },
    each(run) {
      for (const part of parts) for (const door of [...part]) run(door);
    },
  };
}
