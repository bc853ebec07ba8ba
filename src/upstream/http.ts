// Providers over HTTP: one undici pool per origin, plain handler objects, no promise per request. Reads answers only as far as their envelope.
import { type Dispatcher, Pool } from "undici";
import { readAnswer, readAnswerHead, readAnswerTail, TAIL_BYTES } from "../core/answer.ts";
import type { Failure } from "../core/attempt.ts";
import type { Provider } from "../core/profile.ts";
import type { AnswerStream, Dispatch, Listener, Outgoing, StreamSink, Upstream } from "./transport.ts";

/** Bounds of the HTTP transport. */
export interface HttpLimits {
  readonly connectionsPerOrigin: number;
  readonly connectTimeoutMs: number;
  /** Longest answer passed on, and the longest held in one piece. */
  readonly maxAnswerBytes: number;
  readonly maxWholeBytes: number;
}

/** The bounds used unless a test tightens them. */
export const HTTP_LIMITS: HttpLimits = { connectionsPerOrigin: 128, connectTimeoutMs: 5_000, maxAnswerBytes: 1_073_741_824, maxWholeBytes: 134_217_728 };

/** Reaches providers by their `url`. */
export function createHttpUpstream(limits: HttpLimits = HTTP_LIMITS): Upstream {
  const pools = new Map<string, Pool>();
  const routes = new WeakMap<Provider, Route>();

  function routeTo(provider: Provider): Route {
    const known = routes.get(provider);
    if (known !== undefined) return known;
    const url = new URL(provider.url ?? "");
    let pool = pools.get(url.origin);
    if (pool === undefined) {
      pool = openPool(url.origin, limits);
      pools.set(url.origin, pool);
    }
    const headers = ["content-type", "application/json", "accept", "application/json", "user-agent", "svc"];
    for (const [name, value] of Object.entries(provider.headers)) headers.push(name.toLowerCase(), value);
    const route = { pool, path: url.pathname + url.search, headers };
    routes.set(provider, route);
    return route;
  }

  return {
    send(outgoing, listener) {
      const attempt = new HttpDispatch(outgoing, listener, limits);
      const { pool, path, headers } = routeTo(outgoing.provider);
      pool.dispatch({ path, method: "POST", headers, body: outgoing.body }, attempt);
      return attempt;
    },
    retain(providers) {
      const origins = new Set(providers.filter((it) => it.url !== null).map((it) => new URL(it.url ?? "").origin));
      for (const [origin, pool] of pools) {
        if (origins.has(origin)) continue;
        pools.delete(origin);
        pool.close().catch(() => {});
      }
    },
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
      pools.clear();
    },
  };
}

interface Route {
  readonly pool: Pool;
  readonly path: string;
  readonly headers: string[];
}

// Timeouts are the router's: undici's own are off, so that there is one clock. 30 s of idle keep-alive, less where the node announces less.
function openPool(origin: string, limits: HttpLimits): Pool {
  return new Pool(origin, {
    connections: limits.connectionsPerOrigin,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 30_000,
    keepAliveMaxTimeout: 120_000,
    connectTimeout: limits.connectTimeoutMs,
  });
}

/** Bytes after which an answer is passed on while it arrives. */
const STREAM_FROM_BYTES = 65_536;
/** Answers up to this size are read to the last byte; longer ones by head and tail. */
const READ_WHOLE_BYTES = 4_096;
const EXCERPT_CHARS = 512;

class HttpDispatch implements Dispatcher.DispatchHandler, Dispatch, AnswerStream {
  sent = false;
  first: Buffer = EMPTY;
  resultStart = 0;
  bodyBytes: number | null = null;
  readonly #outgoing: Outgoing;
  readonly #listener: Listener;
  readonly #limits: HttpLimits;
  #controller: Dispatcher.DispatchController | null = null;
  #state: "waiting" | "held" | "flowing" | "over" = "waiting";
  #status = 0;
  #retryAfter: string | null = null;
  #encoded = false;
  #mayStream: boolean;
  #chunks: Buffer[] = [];
  #size = 0;
  #head = { hasId: false, hasVersion: false };
  #sink: StreamSink | null = null;
  #held: Buffer = EMPTY;
  /** What happened to the stream before anybody listened. */
  #ending: (() => void) | null = null;

  constructor(outgoing: Outgoing, listener: Listener, limits: HttpLimits) {
    this.#outgoing = outgoing;
    this.#listener = listener;
    this.#limits = limits;
    this.#mayStream = outgoing.mayStream;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#state === "over") controller.abort(CANCELLED);
    else this.sent = true;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[] | undefined>): void {
    if (status < 200) return;
    this.#status = status;
    const { "retry-after": retryAfter, "content-length": length, "content-encoding": encoding } = headers;
    this.#retryAfter = typeof retryAfter === "string" ? retryAfter : null;
    this.#encoded = encoding !== undefined && encoding !== "identity";
    this.bodyBytes = typeof length === "string" ? Number(length) : null;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#state === "flowing") return this.#pass(chunk);
    if (this.#state === "over") return;
    this.#chunks.push(chunk);
    if (this.#state === "held") return;
    if (this.#size > (this.#status < 300 ? this.#limits.maxWholeBytes : MAX_ERROR_BYTES)) return this.#fail("body", "the answer is too long");
    if (this.#mayStream && this.#size >= STREAM_FROM_BYTES) this.#commit();
  }

  onResponseEnd(): void {
    if (this.#state === "flowing") this.#endFlow();
    else if (this.#state === "held") this.#ending = () => this.#endFlow();
    else if (this.#state === "waiting") this.#judge(this.#gather());
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#state === "waiting") this.#fail(this.sent ? "network" : "unsent", describe(error));
    else if (this.#state === "held") this.#ending = () => this.#break("the provider's answer broke off");
    else if (this.#state === "flowing") this.#break("the provider's answer broke off");
  }

  cancel(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#controller?.abort(CANCELLED);
  }

  cut(): void {
    this.cancel();
  }

  pause(): void {
    this.#controller?.pause();
  }

  resume(): void {
    this.#controller?.resume();
  }

  flow(sink: StreamSink): void {
    if (this.#state !== "held") return;
    this.#sink = sink;
    this.#state = "flowing";
    const chunks = this.#chunks;
    this.#chunks = [];
    for (const chunk of chunks) this.#pass(chunk);
    this.resume();
    this.#ending?.();
  }

  /** Enough has arrived to decide whether this is a result that may be passed on while it arrives. */
  #commit(): void {
    this.#mayStream = false;
    if (this.#status >= 300 || this.#encoded) return;
    const first = this.#gather();
    this.#chunks = [first];
    const head = readAnswerHead(first, this.#outgoing.wireId);
    if (head.kind === "bad") return this.#fail("body", head.message);
    if (head.kind === "whole") return;
    this.#head = head;
    this.first = first;
    this.resultStart = head.start;
    this.#state = "held";
    this.pause();
    this.#listener.stream(this);
  }

  /** Passes on all but the last bytes, which are held back until the tail can be judged. */
  #pass(chunk: Buffer): void {
    if (this.#size > this.#limits.maxAnswerBytes) return this.#break("the answer is too long");
    const joined = this.#held.length === 0 ? chunk : chunk.length >= TAIL_BYTES ? this.#held : Buffer.concat([this.#held, chunk]);
    if (joined === this.#held) {
      this.#sink?.data(joined);
      this.#sink?.data(chunk.subarray(0, chunk.length - TAIL_BYTES));
      this.#held = chunk.subarray(chunk.length - TAIL_BYTES);
      return;
    }
    const keep = Math.min(TAIL_BYTES, joined.length);
    if (joined.length > keep) this.#sink?.data(joined.subarray(0, joined.length - keep));
    this.#held = joined.subarray(joined.length - keep);
  }

  #endFlow(): void {
    const opening = this.first[this.resultStart] ?? 0;
    const fromEnd = readAnswerTail(this.#held, this.#head, this.#outgoing.wireId, opening);
    if (fromEnd === null) return this.#break("the provider's answer does not end as a JSON-RPC answer");
    this.#state = "over";
    const split = this.#held.length - fromEnd;
    this.#sink?.end(this.#held.subarray(0, split), this.#held.subarray(split));
  }

  #break(message: string): void {
    this.cancel();
    this.#sink?.broken(message);
  }

  #gather(): Buffer {
    const [only] = this.#chunks;
    return this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
  }

  /** A complete body is here. */
  #judge(body: Buffer): void {
    if (this.#encoded) return this.#fail("body", "the answer is compressed, which was not asked for");
    const { wireId } = this.#outgoing;
    const ok = this.#status >= 200 && this.#status < 300;
    const long = ok && body.length > READ_WHOLE_BYTES ? longResult(body, wireId) : null;
    if (long !== null) return this.#succeed(body, long.start, long.end);
    const answer = readAnswer(body, wireId);
    if (answer.kind === "bad") return this.#fail("body", excerpt(body) || answer.message);
    if (answer.kind === "error") return this.#failWith(body.subarray(answer.start, answer.end));
    if (!ok) return this.#fail("body", `a result with HTTP status ${this.#status}`);
    if (!answer.sameId) return this.#fail("body", "the answer carries another id");
    this.#succeed(body, answer.start, answer.end);
  }

  #succeed(body: Buffer, start: number, end: number): void {
    this.#state = "over";
    this.#listener.result(body, start, end);
  }

  #failWith(raw: Buffer): void {
    if (raw.length > MAX_ERROR_BYTES) return this.#fail("body", "the error is too long");
    const error = parseError(raw);
    this.#state = "over";
    this.#listener.failed({ kind: "error", httpStatus: this.#status, retryAfter: this.#retryAfter, ...error }, raw);
  }

  #fail(kind: Failure["kind"], message: string): void {
    this.cancel();
    this.#listener.failed({ kind, httpStatus: this.#status, retryAfter: this.#retryAfter, code: null, message, data: null }, null);
  }
}

const EMPTY = Buffer.alloc(0);
const CANCELLED = new Error("cancelled");
const MAX_ERROR_BYTES = 1_048_576;

/** The result of a long complete body by its head and tail; null where it must be read whole. */
function longResult(body: Buffer, wireId: string): { readonly start: number; readonly end: number } | null {
  const head = readAnswerHead(body.subarray(0, READ_WHOLE_BYTES), wireId);
  if (head.kind !== "result") return null;
  const tail = body.subarray(Math.max(head.start, body.length - TAIL_BYTES));
  const fromEnd = readAnswerTail(tail, head, wireId, body[head.start] ?? 0);
  return fromEnd === null ? null : { start: head.start, end: body.length - fromEnd };
}

function excerpt(body: Buffer): string {
  return body.toString("utf8", 0, EXCERPT_CHARS).trim();
}

function parseError(raw: Buffer): Pick<Failure, "code" | "message" | "data"> {
  const value: unknown = JSON.parse(raw.toString("utf8"));
  if (typeof value === "string") return { code: null, message: value, data: null };
  if (typeof value !== "object" || value === null) return { code: null, message: "", data: null };
  const { code, message, data }: { code?: unknown; message?: unknown; data?: unknown } = value;
  return { code: typeof code === "number" ? code : null, message: typeof message === "string" ? message : "", data: data ?? null };
}

/** The kind of a network error without anything of the address it was for. */
function describe(error: Error & { readonly code?: unknown; readonly cause?: unknown }): string {
  const cause = error.cause instanceof Error ? describe(error.cause) : "";
  const calm = /ENHANCE_YOUR_CALM|GOAWAY.*code 11\b/.test(error.message) ? "ENHANCE_YOUR_CALM" : "";
  return [typeof error.code === "string" ? error.code : error.name, calm, cause].filter(Boolean).join(" ");
}
