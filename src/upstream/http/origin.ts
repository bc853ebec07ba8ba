// HTTP/1.1 to one plain-text origin: a bounded pool of keep-alive connections, one request at a
// time on each, read through one shared buffer. Accepts only answers with unambiguous framing;
// anything else ends the connection. Knows nothing of JSON-RPC or providers.
import { bareHost } from "../../core/public-address.ts";
import type { Runtime } from "../../runtime.ts";
import type { Allowance } from "../shares.ts";
import type { BufferPool } from "./buffer-pool.ts";
import type { ConnectionParts, Connections, HeaderField, Send } from "./connections.ts";
import {
  type AnswerHandler,
  coded,
  Http1Connection,
  IDLE,
  type PoolHooks,
  type RequestBody,
  RequestWriter,
} from "./http1-connection.ts";

/** What connections to an origin are made with. */
export interface OriginParts extends ConnectionParts {
  readonly runtime: Runtime;
  /** Memory that answers are read into. */
  readonly buffers: BufferPool;
}

/** Extra connections, which only probes may open. */
const PROBE_CONNECTIONS = 2;
/**
 * Interval at which idle connections are swept; at most the second by which connections are given
 * up early.
 */
const SWEEP_MS = 1_000;

interface QueuedRequest {
  readonly head: string;
  readonly body: RequestBody;
  readonly handler: AnswerHandler;
}

/** Connections to the origin of a plain `http:` URL. */
export class Origin implements Connections, PoolHooks {
  readonly options: PoolHooks["options"];
  readonly buffers: BufferPool;
  readonly requests = new RequestWriter();
  readonly #host: string;
  readonly #share: Allowance;
  readonly #maxWaiting: number;
  readonly #idle: Http1Connection[] = [];
  readonly #all = new Set<Http1Connection>();
  #queue: QueuedRequest[] = [];
  #cancelSweep: (() => void) | null = null;
  #retired = false;
  #destroyed = false;

  constructor(url: URL, { limits, runtime, lookup, buffers, shareOf }: OriginParts) {
    const { connectTimeoutMs, maxWaiting } = limits;
    const [host, port] = [bareHost(url.hostname), Number(url.port || "80")];
    this.options = { host, port, connectTimeoutMs, runtime, lookup };
    this.buffers = buffers;
    this.#host = url.host;
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
    const head = `POST ${path} HTTP/1.1\r\n${lines}content-length: `;
    return (body, handler, isProbe) => this.send(head, body, handler, isProbe);
  }

  /** Nothing to do: `onResponseComplete` has already ended the connection. */
  readonly distrust = (): void => {};

  /**
   * Sends `head` (request line and headers, up to and including `content-length: `) and `body`; a
   * probe over an extra connection if all usual ones are busy.
   */
  send(head: string, body: RequestBody, handler: AnswerHandler, isProbe = false): void {
    if (this.#destroyed)
      return handler.onResponseError(null, coded("the pool is closed", "ECLOSED"));
    const most = this.#share.limit + (isProbe ? PROBE_CONNECTIONS : 0);
    const connection = this.#takeIdle() ?? this.#connect(most);
    if (connection !== null && !connection.send(head, body, handler)) this.free(connection);
    if (connection !== null) return;
    if (this.#queue.length >= this.#maxWaiting)
      this.#queue = this.#queue.filter(({ handler: waiting }) => !waiting.abandoned);
    if (this.#queue.length >= this.#maxWaiting)
      return handler.onResponseError(null, coded("no connection is free", "EPOOL"));
    this.#queue.push({ head, body, handler });
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
      if (connection.send(next.head, next.body, next.handler)) return;
    }
    if (this.#retired || this.#isBeyond()) connection.abort(IDLE);
    else this.#idle.push(connection);
  }

  gone(connection: Http1Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
    const next = this.#destroyed || !this.isFree() ? undefined : this.#next();
    if (next !== undefined) this.send(next.head, next.body, next.handler);
  }

  /** The number of connections there may be has changed. */
  #adjust(): void {
    for (const connection of [...this.#idle]) if (this.#isBeyond()) connection.abort(IDLE);
    while (this.#all.size < this.#share.limit) {
      const next = this.#next();
      if (next === undefined) return;
      this.send(next.head, next.body, next.handler);
    }
  }

  /** Sends nothing more: idle connections end now, the others after their answer. */
  drain(): void {
    this.#retired = true;
    this.#share.close();
    for (const connection of [...this.#idle]) connection.abort(IDLE);
  }

  /** Ends every connection; requests in flight fail. */
  async destroy(): Promise<void> {
    this.#destroyed = true;
    this.#share.close();
    this.#cancelSweep?.();
    for (const { handler } of this.#queue.splice(0))
      handler.onResponseError(null, coded("the pool is closed", "ECLOSED"));
    for (const connection of [...this.#all])
      connection.abort(coded("the pool is closed", "ECLOSED"));
  }

  /** Whether there are more connections than usual; then a free one is closed. */
  #isBeyond(): boolean {
    return this.#all.size > this.#share.limit;
  }

  /** Takes the longest-waiting request that was not abandoned. */
  #next(): QueuedRequest | undefined {
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
      connection.abort(IDLE);
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
      if (connection.idleUntilMs <= now) connection.abort(IDLE);
    this.#cancelSweep = this.#all.size === 0 ? null : runtime.after(SWEEP_MS, () => this.#sweep());
  }
}
