// The fast path: serves plain RPC requests straight from the socket, and hands a connection over to
// node's HTTP server for good at the first request that it does not fully understand. Such a
// request is passed on untouched. The two servers share only the RPC surface.
import type { Socket } from "node:net";
import type { Runtime } from "../../../runtime.ts";
import type { Activity } from "../../http/activity.ts";
import { STATUS_CODES } from "../../http/node-http.ts";
import type { Headers, Pieces } from "../../http/respond.ts";
import type { Borrowed, HttpExchange } from "../caller.ts";
import { type Directives, readDirectives } from "../directives.ts";
import { NO_ROOM_FOR_REQUEST, STALL_MS } from "../limits.ts";
import type { RpcParts } from "../parts.ts";
import { RpcRequest } from "../request.ts";
import { isRpcPath } from "../target.ts";
import {
  CurrentHeadEnds,
  type HeadEnd,
  type RequestHead,
  readNextHead,
  readRequestHead,
} from "./fast-path-head.ts";

/** The settings and services of the fast path. */
export interface FastPathParts {
  readonly runtime: Runtime;
  readonly rpc: RpcParts;
  readonly requestId: () => string;
  /** A connection must send its first request as soon as its headers. */
  readonly limits: { readonly keepAliveTimeoutMs: number; readonly headersTimeoutMs: number };
  /**
   * Hands a paused connection over to node's HTTP server. The bytes already read were put back.
   */
  readonly handOver: (socket: Socket) => void;
  /** Counts requests under way. */
  readonly activity: Activity;
}

const SWEEP_MS = 1_000;
const MAX_HEAD_BYTES = 8_192;
/** Bytes of pipelined requests that are buffered before reading is paused. */
const MAX_EARLY_BYTES = 16_384;
/** Bodies up to this size are written together with their head. */
const ONE_WRITE_BYTES = 16_384;

/** Serves connections until they are handed over. */
export class FastPathServer {
  readonly #parts: FastPathParts;
  readonly #connections = new Set<Connection>();
  readonly #ends: CurrentHeadEnds;
  #sweeping = false;

  constructor(parts: FastPathParts) {
    this.#parts = parts;
    this.#ends = new CurrentHeadEnds(parts.runtime, parts.limits.keepAliveTimeoutMs);
  }

  accept(socket: Socket): void {
    if (!this.#sweeping) this.#parts.runtime.after(SWEEP_MS, () => this.#sweep());
    this.#sweeping = true;
    const connection = new Connection(this.#parts, socket, this.#ends, () =>
      this.#connections.delete(connection),
    );
    this.#connections.add(connection);
  }

  destroyAll(): void {
    for (const connection of [...this.#connections]) connection.destroy();
  }

  #sweep(): void {
    const now = this.#parts.runtime.now();
    for (const connection of this.#connections) connection.closeIfIdle(now);
    this.#sweeping = this.#connections.size > 0;
    if (this.#sweeping) this.#parts.runtime.after(SWEEP_MS, () => this.#sweep());
  }
}

/** A complete answer, ready to be written. Strings hold one character per byte. */
interface WholeAnswer {
  readonly chunks: readonly (Buffer | string)[];
  /** The buffer to return once the chunks are written; null = none. */
  readonly borrowed: Borrowed | null;
}

/** The answer in as few chunks as possible. */
function chunksOf(
  start: string,
  end: HeadEnd,
  body: readonly Buffer[],
  { size, headroomBytes }: { readonly size: number; readonly headroomBytes: number },
): WholeAnswer["chunks"] {
  const [first] = body;
  const headBytes = start.length + end.bytes.length;
  if (first !== undefined && body.length === 1 && headBytes <= headroomBytes) {
    const whole = Buffer.from(first.buffer, first.byteOffset - headBytes, headBytes + size);
    whole.write(start, "latin1");
    whole.set(end.bytes, start.length);
    return [whole];
  }
  if (size > ONE_WRITE_BYTES) return [start + end.text, ...body];
  let text = start + end.text;
  for (const piece of body) text += piece.toString("latin1");
  return [text];
}

/** One chunk of a chunked body in place, with its size line and its line break. */
function framedInPlace(chunk: Buffer): Buffer {
  const size = `${chunk.length.toString(16)}\r\n`;
  const bytes = size.length + chunk.length + LINE_BREAK.length;
  const framed = Buffer.from(chunk.buffer, chunk.byteOffset - size.length, bytes);
  framed.write(size, "latin1");
  framed.write(LINE_BREAK, size.length + chunk.length, "latin1");
  return framed;
}

const LINE_BREAK = "\r\n";

/** Whether these bytes begin with a head, whose text ends with the line break of its last field. */
function beginsWithHead(chunk: Buffer, head: string): boolean {
  const end = head.length;
  return (
    end > 0 &&
    chunk[end] === CR &&
    chunk[end + 1] === LF &&
    chunk.toString("latin1", 0, end) === head
  );
}

const CR = 0x0d;
const LF = 0x0a;

/** The status line and the header lines of one answer. */
function startOf(status: number, headers: Headers): string {
  let text = status === 200 ? OK : `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`;
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return text;
}

const OK = "HTTP/1.1 200 OK\r\n";

const UNREAD = readDirectives("/", () => undefined);

class Connection implements HttpExchange {
  requestId = "";
  /** What the head says; the same for all requests with such a head. */
  directives: Directives = UNREAD;
  readonly #parts: FastPathParts;
  readonly connection: Socket;
  /** Requests with a payment are left to node. */
  readonly payment = null;
  /** True once the connection has taken all of the answer. */
  delivered = false;
  readonly #headEnds: CurrentHeadEnds;
  readonly #forget: () => void;
  readonly #onData = (chunk: Buffer): void => this.#data(chunk);
  readonly #onEnd = (): void => this.#ended();
  readonly #onClose = (): void => this.#closed();
  readonly #onError = (): void => {};
  readonly #onStall = (): void => this.destroy();
  readonly #onTurnEnd = (): void => this.#writeAnswer();
  readonly #onHeadDue = (): void => this.#writeHead();
  #headText = "";
  #head: RequestHead | null = null;
  #request: RpcRequest | null = null;
  #early: Buffer | null = null;
  #chunked = false;
  /** A whole answer to be written at the end of this turn of the event loop; null = none. */
  #unwritten: WholeAnswer | null = null;
  /**
   * Head of a streamed answer, with the first bytes of its body; written together with what follows
   * in the same turn.
   */
  #unsentHead = "";
  /** True while a complete answer waits for its reader. */
  #flushing = false;
  /**
   * True once this connection accepts no further request: it is closing, or its client has left.
   */
  #closing = false;
  #served = 0;
  /** Null = it has served a request since the last sweep. */
  #idleSinceMs: number | null;

  constructor(parts: FastPathParts, socket: Socket, ends: CurrentHeadEnds, forget: () => void) {
    this.#parts = parts;
    this.connection = socket;
    this.#headEnds = ends;
    this.#forget = forget;
    this.#idleSinceMs = parts.runtime.now();
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("close", this.#onClose);
    socket.on("error", this.#onError);
  }

  get url(): string {
    return this.#head?.url ?? "/";
  }

  get open(): boolean {
    return this.#request !== null && !this.connection.destroyed;
  }

  get address(): string {
    return this.connection.remoteAddress ?? "";
  }

  header(name: string): string | undefined {
    return this.#head?.fields.get(name);
  }

  send(status: number, headers: Headers, body: Pieces, borrowed: Borrowed | null = null): void {
    let size = 0;
    if (body !== null) for (const piece of body) size += piece.length;
    let start = startOf(status, headers);
    if (body !== null) start += `Content-Type: application/json\r\nContent-Length: ${size}\r\n`;
    const headroomBytes = borrowed?.pool.headroomBytes ?? 0;
    const chunks = chunksOf(start, this.#headEnd(), body ?? [], { size, headroomBytes });
    this.#unwritten = { chunks, borrowed };
    this.#parts.runtime.atTurnEnd(this.#onTurnEnd);
  }

  begin(headers: Headers, sizeBytes: number | null, first: Buffer | null): void {
    this.#chunked = sizeBytes === null;
    headers.push("Content-Type", "application/json");
    if (sizeBytes === null) headers.push("Transfer-Encoding", "chunked");
    else headers.push("Content-Length", String(sizeBytes));
    this.#unsentHead = startOf(200, headers) + this.#headEnd().text;
    this.#parts.runtime.atTurnEnd(this.#onHeadDue);
    if (first === null || first.length === 0) return;
    const text = first.toString("latin1");
    this.#unsentHead += this.#chunked ? `${first.length.toString(16)}\r\n${text}\r\n` : text;
  }

  write(chunk: Buffer, written: () => void, hasRoom = false): number {
    const socket = this.connection;
    if (chunk.length === 0) written();
    else if (this.#unsentHead === "") this.#writePart(chunk, written, hasRoom);
    else {
      socket.cork();
      this.#writeHead();
      this.#writePart(chunk, written, hasRoom);
      socket.uncork();
    }
    return socket.writableLength;
  }

  get unsent(): number {
    return this.connection.writableLength;
  }

  cork(): void {
    this.connection.cork();
  }

  end(): void {
    this.#writeHead();
    if (this.#chunked) this.connection.write("0\r\n\r\n", "latin1");
    this.connection.uncork();
    this.#finish();
  }

  drained(run: () => void): void {
    if (this.connection.writableNeedDrain) this.connection.once("drain", run);
    else this.#parts.runtime.after(0, run);
  }

  destroy(): void {
    this.connection.destroy();
  }

  closeIfIdle(now: number): void {
    const { headersTimeoutMs, keepAliveTimeoutMs } = this.#parts.limits;
    const limitMs = this.#served === 0 ? headersTimeoutMs : keepAliveTimeoutMs;
    if (this.#request !== null) return;
    this.#idleSinceMs ??= now;
    if (now - this.#idleSinceMs >= limitMs) this.connection.destroy();
  }

  /** Writes the head of a streamed answer, unless it was written. */
  #writeHead(): void {
    const head = this.#unsentHead;
    this.#unsentHead = "";
    if (head !== "" && !this.connection.destroyed) this.connection.write(head, "latin1");
  }

  /** Writes a part of a streamed body; in one piece if it needs no frame or has room for it. */
  #writePart(chunk: Buffer, written: () => void, hasRoom: boolean): void {
    const socket = this.connection;
    if (!this.#chunked || hasRoom) {
      socket.write(this.#chunked ? framedInPlace(chunk) : chunk, written);
      return;
    }
    socket.cork();
    socket.write(`${chunk.length.toString(16)}\r\n`, "latin1");
    socket.write(chunk);
    socket.write(LINE_BREAK, "latin1", written);
    socket.uncork();
  }

  #data(chunk: Buffer): void {
    if (this.#request !== null) {
      // Pipelined requests are kept unread until the answer under way has been sent.
      this.#early = this.#early === null ? chunk : Buffer.concat([this.#early, chunk]);
      if (this.#early.length > MAX_EARLY_BYTES) this.connection.pause();
      return;
    }
    if (this.#closing) return;
    const body = this.#read(chunk);
    if (body === null) return this.#handOver(chunk);
    const { activity, rpc } = this.#parts;
    activity.active++;
    this.#served++;
    this.delivered = false;
    this.requestId = this.#parts.requestId();
    const request = new RpcRequest(rpc, this);
    this.#request = request;
    if (!request.accept()) return;
    if (!request.memory.takeBody(body.length)) request.refuse(NO_ROOM_FOR_REQUEST);
    else request.serve(body);
  }

  /** The body of a request that has arrived completely and is understood; null = hand over. */
  #read(chunk: Buffer): Buffer | null {
    // Clients repeat their heads, so the last parsed head is reused for the same text.
    let end = this.#headText.length - 2;
    if (!beginsWithHead(chunk, this.#headText)) {
      end = chunk.indexOf("\r\n\r\n");
      if (end === -1 || end > MAX_HEAD_BYTES) return null;
      this.#readHead(chunk.toString("latin1", 0, end + 2));
    }
    const head = this.#head;
    if (
      head === null ||
      chunk.length !== end + 4 + head.bodyBytes ||
      head.bodyBytes > this.#parts.rpc.limits.maxBodyBytes
    )
      return null;
    return chunk.subarray(end + 4);
  }

  #readHead(text: string): void {
    const next = this.#head === null ? null : readNextHead(text, this.#head);
    const head = next ?? readRequestHead(text);
    this.#head = head !== null && isRpcPath(head.url) ? head : null;
    if (next === null && this.#head !== null)
      this.directives = readDirectives(this.#head.url, (name) => this.header(name));
    this.#headText = text;
  }

  /** Writes the pending answer if the client is still connected. */
  #writeAnswer(): void {
    const answer = this.#unwritten;
    const socket = this.connection;
    this.#unwritten = null;
    if (answer === null) return;
    const request = this.#request;
    const { chunks, borrowed } = answer;
    if (request === null || socket.destroyed) return borrowed?.pool.recycle(borrowed.bytes);
    if (chunks.length > 1) socket.cork();
    for (const chunk of chunks) socket.write(chunk, "latin1");
    if (chunks.length > 1) socket.uncork();
    if (socket.writableLength === 0) borrowed?.pool.reuse(borrowed.bytes);
    else {
      for (const chunk of chunks)
        request.memory.countUnsent(
          typeof chunk === "string" ? chunk.length : chunk.buffer.byteLength,
        );
      if (borrowed !== null)
        socket.write("", "latin1", () => borrowed.pool.recycle(borrowed.bytes));
    }
    this.#finish();
  }

  /** Ends the answer; the request ends once its reader has taken all of it. */
  #finish(): void {
    const socket = this.connection;
    if (socket.writableLength === 0) return this.#answered();
    this.#flushing = true;
    socket.setTimeout(STALL_MS, this.#onStall);
    socket.write("", "latin1", (error) => {
      if (error) return;
      socket.setTimeout(0, this.#onStall);
      this.#flushing = false;
      this.#answered();
    });
  }

  #answered(): void {
    this.delivered = !this.connection.destroyed;
    const early = this.#early;
    this.#early = null;
    this.#finishRequest();
    if (this.#closing) this.connection.resume().end();
    else if (early !== null && !this.connection.destroyed) this.#handOver(early);
  }

  #finishRequest(): void {
    const { activity, runtime } = this.#parts;
    const request = this.#request;
    if (request === null) return;
    this.#request = null;
    this.#idleSinceMs = null;
    activity.active--;
    // Only a drain waits until nothing was asked for a while.
    if (activity.draining) activity.lastMs = runtime.now();
    request.closed(activity.ended ? "cut" : "left");
  }

  /**
   * The client has ended its side. As with node's server, a complete answer is still sent, and a
   * request without one is dropped.
   */
  #ended(): void {
    this.#closing = true;
    // The answer that is still to be written closes the connection itself.
    if (this.#unwritten !== null) return;
    if (this.#request === null || this.#flushing) this.connection.end();
    else this.connection.destroy();
  }

  /** Hands the connection over as if nothing had been read from it. */
  #handOver(received: Buffer): void {
    const socket = this.connection;
    socket.off("data", this.#onData);
    socket.off("end", this.#onEnd);
    socket.off("close", this.#onClose);
    socket.off("error", this.#onError);
    this.#forget();
    socket.pause();
    socket.unshift(received);
    this.#parts.handOver(socket);
    socket.resume();
  }

  #closed(): void {
    this.#forget();
    this.#finishRequest();
  }

  #headEnd(): HeadEnd {
    // Pipelined requests are answered before a draining server closes the connection.
    this.#closing = this.#parts.activity.draining && this.#early === null;
    const { close, keepAlive } = this.#headEnds.current ?? this.#headEnds.make();
    return this.#closing ? close : keepAlive;
  }
}
