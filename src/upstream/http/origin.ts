// HTTP/1.1 to one origin, in plain text or over TLS: a bounded pool of keep-alive connections, one
// request at a time on each, or some that begin together, read through one shared buffer. Accepts
// only answers with unambiguous framing; anything else ends the connection. Knows nothing of
// JSON-RPC or providers.
import { bareHost } from "../../core/public-address.ts";
import type { Runtime } from "../../runtime.ts";
import type { Allowance } from "../shares.ts";
import type { BufferPool } from "./buffer-pool.ts";
import type { ConnectionParts, Connections, HeaderField, Send } from "./connections.ts";
import {
  coded,
  Http1Connection,
  IDLE,
  type PoolHooks,
  RequestWriter,
  type UnsentRequest,
} from "./http1-connection.ts";
import { type OnHandshake, TlsClient } from "./tls-client.ts";

/** What connections to an origin are made with. */
export interface OriginParts extends ConnectionParts {
  readonly runtime: Runtime;
  /** Memory that answers are read into. */
  readonly buffers: BufferPool;
  /** Makes the connections to use from now on, since the provider speaks HTTP/2 alone. */
  readonly successor: () => Connections;
  readonly onHandshake: OnHandshake;
  /** Called with the number of pipelined requests that are sent again. */
  readonly onAgain: (requests: number) => void;
}

/** Extra connections, which only probes may open. */
const PROBE_CONNECTIONS = 2;
/**
 * Interval at which idle connections are swept; at most the second by which connections are given
 * up early.
 */
const SWEEP_MS = 1_000;
/** No request is sent behind another one for so long after some had to be sent again. */
const ALONE_MS = 60_000;

/** Connections to the origin of a URL. */
export class Origin implements Connections, PoolHooks {
  readonly options: PoolHooks["options"];
  readonly buffers: BufferPool;
  readonly requests = new RequestWriter();
  readonly #host: string;
  readonly #makeSuccessor: () => Connections;
  readonly #onAgain: OriginParts["onAgain"];
  /** Serves requests in place of this pool; null = the provider speaks HTTP/1.1, so far. */
  #successor: Connections | null = null;
  #share: Allowance;
  readonly #maxWaiting: number;
  readonly #idle: Http1Connection[] = [];
  readonly #all = new Set<Http1Connection>();
  #queue: UnsentRequest[] = [];
  /** Got a pipelined request last: further ones of the same turn go with it. */
  #filling: Http1Connection | null = null;
  #aloneUntilMs = 0;
  #cancelSweep: (() => void) | null = null;
  #retired = false;
  #destroyed = false;

  constructor(url: URL, parts: OriginParts) {
    const { limits, runtime, lookup, buffers, shareOf, successor, onHandshake, onAgain } = parts;
    const { connectTimeoutMs, maxWaiting } = limits;
    const tls = url.protocol === "https:" ? new TlsClient(runtime.now, onHandshake) : null;
    const port = Number(url.port || (tls === null ? "80" : "443"));
    this.options = { host: bareHost(url.hostname), port, connectTimeoutMs, runtime, lookup, tls };
    this.buffers = buffers;
    this.#host = url.host;
    this.#makeSuccessor = successor;
    this.#onAgain = onAgain;
    this.#maxWaiting = maxWaiting;
    this.#share = shareOf({
      used: () => this.#all.size,
      wanted: () => this.#all.size - this.#idle.length + this.#queue.length,
      changed: () => this.#adjust(),
    });
  }

  prepare(path: string, headers: readonly HeaderField[]): Send {
    const lines = [["host", this.#host] as const, ...headers]
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("");
    const head = { path, headers, text: `POST ${path} HTTP/1.1\r\n${lines}content-length: ` };
    return (body, handler, use) => this.#send({ head, body, handler, use });
  }

  /** Here `onResponseComplete` has already ended the connection. */
  readonly distrust = (): void => this.#successor?.distrust();

  /** Sends a request; a probe over an extra connection if all usual ones are busy. */
  #send(request: UnsentRequest): void {
    const { handler, use } = request;
    if (this.#destroyed)
      return handler.onResponseError(null, coded("the pool is closed", "ECLOSED"));
    if (use === "pipelined" && this.#filling?.hasRoomFor(request) === true)
      return this.#filling.sendBehind(request);
    const most = this.#share.limit + (use === "probe" ? PROBE_CONNECTIONS : 0);
    const connection = this.#takeIdle() ?? this.#connect(most);
    if (connection !== null && !this.#sendOver(connection, request)) this.free(connection);
    if (connection !== null) return;
    if (this.#queue.length >= this.#maxWaiting)
      this.#queue = this.#queue.filter(({ handler: waiting }) => !waiting.abandoned);
    if (this.#queue.length >= this.#maxWaiting)
      return handler.onResponseError(null, coded("no connection is free", "EPOOL"));
    this.#queue.push(request);
  }

  /** As `Http1Connection.send`. */
  #sendOver(connection: Http1Connection, request: UnsentRequest): boolean {
    if (!connection.send(request)) return false;
    const { now } = this.options.runtime;
    if (request.use === "pipelined" && this.#aloneUntilMs <= now()) this.#filling = connection;
    return true;
  }

  again(requests: readonly UnsentRequest[]): void {
    const wanted = requests.filter(({ handler }) => !handler.abandoned);
    if (wanted.length === 0) return;
    this.#filling = null;
    this.#aloneUntilMs = this.options.runtime.now() + ALONE_MS;
    this.#onAgain(wanted.length);
    for (const request of wanted) this.#send({ ...request, use: "alone" });
  }

  /** Whether a request would be sent without waiting for another one's answer. */
  isFree(): boolean {
    return this.#idle.length > 0 || this.#all.size < this.#share.limit;
  }

  free(connection: Http1Connection): void {
    for (
      let next = this.#isBeyond() ? undefined : this.#next();
      next !== undefined;
      next = this.#next()
    ) {
      if (!this.#sendOver(connection, next)) continue;
      // Those that wait behind it go with it.
      while (this.#queue[0]?.use === "pipelined" && this.#filling === connection) {
        if (!connection.hasRoomFor(this.#queue[0])) return;
        const further = this.#queue.shift();
        if (further?.handler.abandoned === false) connection.sendBehind(further);
      }
      return;
    }
    if (this.#retired || this.#isBeyond()) connection.close(IDLE);
    else this.#idle.push(connection);
  }

  gone(connection: Http1Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
    const next = this.#destroyed || !this.isFree() ? undefined : this.#next();
    if (next !== undefined) this.#send(next);
  }

  /** Gives everything that is not sent to the successor, which serves all later requests. */
  refused(request: UnsentRequest | null): void {
    this.#successor ??= this.#makeSuccessor();
    const waiting = this.#queue.splice(0);
    for (const { head, body, handler } of request === null ? waiting : [request, ...waiting])
      if (!handler.abandoned)
        this.#successor.prepare(head.path, head.headers)(body, handler, "alone");
  }

  /** The number of connections there may be has changed. */
  #adjust(): void {
    for (const connection of [...this.#idle]) if (this.#isBeyond()) connection.close(IDLE);
    while (this.#all.size < this.#share.limit) {
      const next = this.#next();
      if (next === undefined) return;
      this.#send(next);
    }
  }

  /** Sends nothing more: idle connections end now, the others after their answer. */
  drain(): void {
    this.#retired = true;
    // Requests that wait are still sent, over as many connections as before.
    const limit = Math.max(1, this.#share.limit);
    this.#share.close();
    this.#share = { limit, close() {} };
    for (const connection of [...this.#idle]) connection.close(IDLE);
  }

  /** Ends every connection; requests in flight fail. */
  async destroy(): Promise<void> {
    this.#destroyed = true;
    this.#share.close();
    this.#cancelSweep?.();
    for (const { handler } of this.#queue.splice(0))
      handler.onResponseError(null, coded("the pool is closed", "ECLOSED"));
    for (const connection of [...this.#all])
      connection.close(coded("the pool is closed", "ECLOSED"));
  }

  /** Whether there are more connections than usual; then a free one is closed. */
  #isBeyond(): boolean {
    return this.#all.size > this.#share.limit;
  }

  /** Takes the longest-waiting request that was not abandoned. */
  #next(): UnsentRequest | undefined {
    let next = this.#queue.shift();
    while (next?.handler.abandoned === true) next = this.#queue.shift();
    return next;
  }

  /**
   * Takes the most recently used idle connection that may still be open. The sweep may be late if
   * this process was blocked, and the provider may have closed it.
   */
  #takeIdle(): Http1Connection | null {
    if (this.#idle.length === 0) return null;
    const now = this.options.runtime.now();
    for (
      let connection = this.#idle.pop();
      connection !== undefined;
      connection = this.#idle.pop()
    ) {
      if (connection.idleUntilMs > now) return connection;
      connection.close(IDLE);
    }
    return null;
  }

  /** Opens a connection; null = there are `most` already. */
  #connect(most: number): Http1Connection | null {
    if (this.#all.size >= most) return null;
    const fresh = new Http1Connection(this);
    this.#all.add(fresh);
    this.#cancelSweep ??= this.options.runtime.after(SWEEP_MS, () => this.#sweep());
    return fresh;
  }

  #sweep(): void {
    const { runtime } = this.options;
    const now = runtime.now();
    for (const connection of [...this.#idle])
      if (connection.idleUntilMs <= now) connection.close(IDLE);
    this.#cancelSweep = this.#all.size === 0 ? null : runtime.after(SWEEP_MS, () => this.#sweep());
  }
}
