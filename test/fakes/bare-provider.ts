// A provider on a bare socket, which sees whole requests and answers with raw bytes, and requests
// to it over the HTTP/1.1 client; in plain text or over TLS.
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import type {
  ConnectionUse,
  DispatchControl,
  RequestHandler,
} from "../../src/upstream/http/connections.ts";
import type { Origin } from "../../src/upstream/http/origin.ts";
import { trustedIdentity } from "../soak/foreign.ts";
import { type OriginBounds, originAt } from "./origin.ts";

const IDENTITY = trustedIdentity();
const OVER_TLS = ", over TLS";

/** The same test in plain text and over TLS: `peer` and `pool` tell by its name. */
export function testBoth(name: string, run: (t: TestContext) => Promise<void>): void {
  test(name, run);
  test(name + OVER_TLS, run);
}

/** A provider on a bare socket: sees whole requests, answers with raw bytes. */
export interface BareProvider {
  readonly port: number;
  /** Bodies of the requests, in order of arrival. */
  readonly asked: string[];
  /** Connections accepted so far, and open now. */
  readonly opened: () => number;
  readonly open: () => number;
}

export type Serve = (socket: Socket, body: string, count: number) => void;

export async function peer(
  t: TestContext,
  serve: Serve,
  greet: (socket: Socket) => void = () => {},
): Promise<BareProvider> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  let opened = 0;
  const isSecure = t.name.endsWith(OVER_TLS);
  const accept = (socket: Socket): void => {
    opened++;
    socket.setNoDelay();
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    let bytes = "";
    socket.on("data", (chunk) => {
      bytes += chunk.toString("latin1");
      for (;;) {
        const end = bytes.indexOf("\r\n\r\n");
        const size = Number(/content-length: (\d+)/i.exec(bytes.slice(0, end))?.[1]);
        if (end === -1 || bytes.length < end + 4 + size) return;
        const body = bytes.slice(end + 4, end + 4 + size);
        bytes = bytes.slice(end + 4 + size);
        asked.push(body);
        serve(socket, body, asked.length);
      }
    });
    greet(socket);
  };
  const server: Server = isSecure ? createTlsServer(IDENTITY, accept) : createServer(accept);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    opened: () => opened,
    open: () => sockets.size,
  };
}

export function urlOf(t: TestContext, port: number): string {
  return `${t.name.endsWith(OVER_TLS) ? "https" : "http"}://127.0.0.1:${port}/`;
}

export function pool(t: TestContext, port: number, bounds: OriginBounds = {}): Origin {
  const scheme = t.name.endsWith(OVER_TLS) ? "https" : "http";
  const origin = originAt(port, { scheme, ...bounds });
  t.after(() => origin.destroy());
  return origin;
}

/**
 * One request to an origin and what became of it: a status with its body, or the code of an error.
 */
export class Asking implements RequestHandler {
  readonly done: Promise<string>;
  readonly chunks: Buffer[] = [];
  controller: DispatchControl | null = null;
  /** How often it heard an end; anything but 1 is a fault. */
  ends = 0;
  started = 0;
  cancelled = false;
  /** Takes its answer for that to another request. */
  foreign = false;
  /** Keeps chunks as they lie, as a slow reader does. */
  keeps = false;
  readonly abandoned = false;
  onOver(): void {}
  queued = false;

  get keepsChunks(): boolean {
    return this.keeps;
  }
  onData: () => void = () => {};
  #status = 0;
  #settle: (outcome: string) => void = () => {};

  constructor() {
    this.done = new Promise((resolve) => (this.#settle = resolve));
  }

  onRequestStart(controller: DispatchControl): void {
    this.controller = controller;
    this.started++;
    if (this.cancelled) controller.abort(new Error("cancelled"), this);
  }

  onResponseStart(_controller: DispatchControl, status: number): void {
    this.#status = status;
  }

  onResponseData(_controller: DispatchControl, chunk: Buffer): boolean {
    this.chunks.push(this.keeps ? chunk : Buffer.from(chunk));
    this.onData();
    return !this.keeps;
  }

  onResponseComplete(): boolean {
    return !this.foreign;
  }

  onResponseEnd(): void {
    this.ends++;
    this.#settle(`${this.#status} ${Buffer.concat(this.chunks).toString("latin1")}`);
  }

  onResponseError(
    _controller: DispatchControl | null,
    error: Error & { readonly code?: string },
  ): void {
    this.ends++;
    this.#settle(error.code ?? error.message);
  }
}

export function send<T extends Asking = Asking>(
  origin: Origin,
  body = "ping",
  asking: T = new Asking() as T,
  use: ConnectionUse = "alone",
): T {
  const request = { bytes: Buffer.from(body), id: "", idStart: 0, idEnd: 0 };
  origin.prepare("/", [])(request, asking, use);
  return asking;
}

export const ask = (origin: Origin, body = "ping"): Promise<string> => send(origin, body).done;
export const whole = (body: string, ...lines: readonly string[]): string =>
  ["HTTP/1.1 200 OK", ...lines, `Content-Length: ${body.length}`, "", body].join("\r\n");
export const echo: Serve = (socket, body) => void socket.write(whole(body));
