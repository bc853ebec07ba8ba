// Connections made by undici: TLS (HTTP/1.1 and HTTP/2), and plain HTTP/1.1 if configured. Undici's
// timeouts are off: the router enforces deadlines, with one clock.

import { TLSSocket } from "node:tls";
import type { buildConnector as Connect, Dispatcher } from "undici";
import buildConnector from "undici/lib/core/connect.js";
import Pool from "undici/lib/dispatcher/pool.js";
import { withWireId } from "../../core/rpc/wire-request.ts";
import type { Allowance } from "../shares.ts";
import type {
  ConnectionLimits,
  ConnectionParts,
  Connections,
  HeaderField,
  RequestHandler,
  Send,
} from "./connections.ts";
import { coded } from "./http1-connection.ts";

/** Idle connections are kept this long, or less if the provider announces less. */
const IDLE_MS = 30_000;
const MAX_IDLE_MS = 120_000;
/** Extra connections to one origin, for probes only. */
const PROBE_CONNECTIONS = 2;

/** A request that waits for this worker's share of the connections. */
interface WaitingRequest {
  readonly request: Dispatcher.DispatchOptions;
  readonly handler: RequestHandler;
}

/** Connections to one origin. */
export class UndiciConnections implements Connections {
  readonly #origin: string;
  readonly #limits: ConnectionLimits;
  readonly #connect: Connect.connector;
  #pool: Pool;
  /** Extra pool for probes while all connections are busy; null = not needed so far. */
  #probes: Pool | null = null;
  readonly #closing = new Set<Pool>();
  #retired = false;
  /**
   * Number of requests in flight or waiting. Over HTTP/2 many share a connection; the bound is the
   * same.
   */
  #out = 0;
  readonly #share: Allowance;
  #waiting: WaitingRequest[] = [];

  /** `isHttp2`: what negotiates no protocol speaks HTTP/2, as was found out before. */
  constructor(origin: string, { limits, lookup, shareOf }: ConnectionParts, isHttp2 = false) {
    this.#origin = origin;
    this.#limits = limits;
    const connect = buildConnector({
      timeout: limits.connectTimeoutMs,
      ...(lookup === null ? {} : { lookup }),
    });
    this.#connect = isHttp2 ? http2By(connect) : connect;
    this.#share = shareOf({
      used: () => this.#out,
      wanted: () => this.#out + this.#waiting.length,
      changed: () => this.#next(),
    });
    this.#pool = this.#newPool(limits.connectionsPerOrigin);
  }

  #newPool(connections: number): Pool {
    return new Pool(this.#origin, {
      connections,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: MAX_IDLE_MS,
      connect: this.#connect,
    });
  }

  prepare(path: string, headers: readonly HeaderField[]): Send {
    const flat = headers.flat();
    return ({ bytes, id, idStart, idEnd }, handler, use) => {
      const body = withWireId({ body: bytes, idStart, idEnd }, id);
      const request = { path, method: "POST", headers: flat, body } as const;
      if (use === "probe" && !this.isFree()) this.#sendProbe(request, handler);
      else this.#send(request, handler);
    };
  }

  isFree(): boolean {
    return this.#out < this.#share.limit;
  }

  /**
   * Only undici knows which connection an answer came over: requests in flight may finish, and the
   * next request gets a new connection.
   */
  readonly distrust = (): void => {
    if (this.#retired) return;
    this.#close(this.#pool);
    this.#pool = this.#newPool(this.#limits.connectionsPerOrigin);
  };

  drain(): void {
    this.#retired = true;
    this.#share.close();
    // A pool finishes what it was given before it closes.
    for (const { request, handler } of this.#waiting.splice(0))
      if (!handler.abandoned) this.#dispatch(request, handler);
    this.#close(this.#pool);
    if (this.#probes !== null) this.#close(this.#probes);
  }

  async destroy(): Promise<void> {
    this.#retired = true;
    this.#share.close();
    for (const { handler } of this.#waiting.splice(0))
      handler.onResponseError(null, coded("the pool is closed", "ECLOSED"));
    await Promise.all([this.#pool, this.#probes, ...this.#closing].map((pool) => pool?.destroy()));
  }

  #send(request: Dispatcher.DispatchOptions, handler: RequestHandler): void {
    if (this.isFree()) this.#dispatch(request, handler);
    else this.#wait({ request, handler });
  }

  #dispatch(request: Dispatcher.DispatchOptions, handler: RequestHandler): void {
    this.#out++;
    handler.onOver = () => {
      this.#out--;
      if (this.#waiting.length > 0) this.#next();
    };
    this.#pool.dispatch(request, handler);
  }

  #wait(waiting: WaitingRequest): void {
    const { maxWaiting } = this.#limits;
    if (this.#waiting.length >= maxWaiting)
      this.#waiting = this.#waiting.filter(({ handler }) => !handler.abandoned);
    if (this.#waiting.length >= maxWaiting)
      waiting.handler.onResponseError(null, coded("no connection is free", "EPOOL"));
    else this.#waiting.push(waiting);
  }

  /** Sends what waits, as far as the share goes. */
  #next(): void {
    while (this.#out < this.#share.limit) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      if (!next.handler.abandoned) this.#dispatch(next.request, next.handler);
    }
  }

  #sendProbe(request: Dispatcher.DispatchOptions, handler: RequestHandler): void {
    this.#probes ??= this.#newPool(PROBE_CONNECTIONS);
    this.#probes.dispatch(request, handler);
  }

  #close(pool: Pool): void {
    this.#closing.add(pool);
    const closed = (): void => void this.#closing.delete(pool);
    pool.close().then(closed, closed);
  }
}

/** Connects in the same way, and takes connections without a negotiated protocol for HTTP/2. */
function http2By(connect: Connect.connector): Connect.connector {
  return (options, done) =>
    connect(options, (...made) => {
      const [, socket] = made;
      if (socket instanceof TLSSocket) socket.alpnProtocol ||= "h2";
      done(...made);
    });
}
