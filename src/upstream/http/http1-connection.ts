// One keep-alive HTTP/1.1 connection: one request at a time, its answer parsed strictly. Any doubt
// about framing ends the connection.
import { connect, type LookupFunction, type Socket } from "node:net";
import type { Runtime } from "../../runtime.ts";
import type { AnswerHeaders } from "./answer-failure.ts";
import { type BufferPool, HEADROOM_BYTES } from "./buffer-pool.ts";
import { ChunkedBody, mayBecomeHead, type ResponseHead, readHead } from "./response-head.ts";

/** Lets a handler control the answer that it receives. */
export interface DispatchControl {
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

/** Hears one answer: the used part of undici's dispatch handler, and `onResponseComplete`. */
export interface AnswerHandler {
  onRequestStart(controller: DispatchControl): void;
  onResponseStart(controller: DispatchControl, status: number, headers: AnswerHeaders): void;
  /**
   * Whether it keeps chunks: then each read goes into memory of its own. Otherwise a chunk is valid
   * during the call only. Read after each call.
   */
  readonly keepsChunks: boolean;
  /** The request waits for a busy connection; set to false once a connection has taken it. */
  queued: boolean;
  /** Its caller has left, so that the request need not be sent. */
  readonly abandoned: boolean;
  /**
   * Receives a chunk. True = done with it. Otherwise, with `keepsChunks`, it is kept and returned
   * once with `recycle`. `last`: the body ends with this chunk, and `onResponseEnd` follows at
   * once.
   */
  onResponseData(controller: DispatchControl, chunk: Buffer, last?: boolean): boolean;
  /**
   * Called when the answer is complete, before `onResponseEnd`. False = it is not the answer to
   * this request, and the connection must not be used again.
   */
  onResponseComplete(): boolean;
  onResponseEnd(): void;
  onResponseError(controller: DispatchControl | null, error: Error): void;
}

/** What a connection gets from its pool: where to connect, memory to read into, and callbacks. */
export interface PoolHooks {
  readonly options: {
    readonly host: string;
    readonly port: number;
    readonly connectTimeoutMs: number;
    readonly runtime: Runtime;
    readonly lookup: LookupFunction | null;
  };
  readonly buffers: BufferPool;
  readonly requests: RequestWriter;
  /** The connection has finished an answer and may be used again. */
  free(connection: Http1Connection): void;
  gone(connection: Http1Connection): void;
}

/** Request bodies up to this size are sent in one write together with their head. */
const ONE_WRITE_BYTES = 16_384;
const IDLE_MS = 30_000;
const MAX_HEAD_BYTES = 16_384;
const MAX_INTERIM_HEADS = 16;

/** The reason of an idle connection's end. */
export const IDLE = new Error("idle");

type Phase = "idle" | "offered" | "head" | "counted" | "chunked" | "until_close" | "over";

/** One connection of a pool; connects when made. */
export class Http1Connection implements DispatchControl {
  idleUntilMs = 0;
  readonly #pool: PoolHooks;
  readonly #socket: Socket;
  #phase: Phase = "idle";
  #handler: AnswerHandler | null = null;
  /** The request to send once connected. */
  #unsent: { readonly head: string; readonly body: RequestBody } | null = null;
  /** The body of a short request, written at the end of this turn; null = there is none. */
  #unwritten: RequestBody | null = null;
  /** The head of the last short request, as text and as bytes: nearly all have the same. */
  #requestHeadText = "";
  #requestHead: Buffer = NOTHING;
  readonly #onTurnEnd = (): void => this.#writeShort();
  /** A partially received head. */
  #partial: Buffer | null = null;
  /** The last head and its parsed form. */
  #headText = "";
  #head: ResponseHead | null = null;
  #remaining = 0;
  #chunks: ChunkedBody | null = null;
  #interimHeads = 0;
  #keepAlive = true;
  #idleMs = IDLE_MS;
  /**
   * The buffer that is read into, of this connection only; null = the shared scratch buffer, for
   * answers that are not kept in place.
   */
  #reading: Buffer | null = null;
  /** The handler kept the buffer: the next read needs another. */
  #given = false;
  /** True during a read; the next buffer is chosen after it. */
  #isReading = false;
  #paused = false;

  constructor(pool: PoolHooks) {
    this.#pool = pool;
    const { host, port, connectTimeoutMs, lookup } = pool.options;
    this.#socket = connect({
      host,
      port,
      noDelay: true,
      ...(lookup === null ? {} : { lookup }),
      onread: {
        buffer: () => this.#nextBuffer(),
        callback: (bytes, buffer) => this.#read(bytes, buffer),
      },
    });
    this.#socket.setTimeout(connectTimeoutMs, () =>
      this.abort(coded("no connection in time", "ETIMEDOUT")),
    );
    this.#socket.once("connect", () => this.#connected());
    this.#socket.on("error", (error) => this.#lost(error));
    this.#socket.on("end", () => this.#ended());
    this.#socket.on("close", () => this.#lost(coded("the connection was closed", "ECONNRESET")));
  }

  /**
   * Sends a request. False = its handler gave up while it waited: nothing was sent, and the
   * connection stays free.
   */
  send(head: string, body: RequestBody, handler: AnswerHandler): boolean {
    this.#handler = handler;
    handler.queued = false;
    if (this.#socket.connecting) {
      this.#unsent = { head, body };
      return true;
    }
    this.#phase = "offered";
    handler.onRequestStart(this);
    if (this.#handler !== handler) return false;
    this.#phase = "head";
    this.#interimHeads = 0;
    this.#write(head, body);
    return true;
  }

  abort(reason: Error): void {
    if (this.#phase !== "offered") return this.#lost(reason);
    this.#phase = "idle";
    this.#handler = null;
  }

  pause(): void {
    this.#paused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#socket.resume();
  }

  #connected(): void {
    const unsent = this.#unsent;
    const handler = this.#handler;
    this.#unsent = null;
    this.#socket.setTimeout(0);
    if (unsent !== null && handler !== null && !this.send(unsent.head, unsent.body, handler))
      this.#rest();
  }

  #write(head: string, body: RequestBody): void {
    const { bytes, id, idStart, idEnd } = body;
    if (bytes.length <= ONE_WRITE_BYTES) {
      this.#unwritten = body;
      if (head !== this.#requestHeadText) this.#requestHead = Buffer.from(head, "latin1");
      this.#requestHeadText = head;
      return this.#pool.options.runtime.atTurnEnd(this.#onTurnEnd);
    }
    this.#socket.cork();
    this.#socket.write(`${head}${bytes.length - (idEnd - idStart) + id.length}\r\n\r\n`, "latin1");
    this.#socket.write(bytes.subarray(0, idStart));
    this.#socket.write(id, "latin1");
    this.#socket.write(bytes.subarray(idEnd));
    this.#socket.uncork();
  }

  #writeShort(): void {
    const body = this.#unwritten;
    this.#unwritten = null;
    if (body === null) return;
    const { requests } = this.#pool;
    this.#socket.write(requests.bytesOf(this.#requestHead, body));
    if (this.#socket.writableLength > 0) requests.leave();
  }

  /**
   * The memory of the next read: the scratch buffer, or a new buffer for a handler that keeps
   * chunks.
   */
  #nextBuffer(): Buffer {
    const { buffers } = this.#pool;
    const own = this.#handler?.keepsChunks === true;
    if (this.#reading !== null && (this.#given || !own)) {
      if (!this.#given) buffers.reuse(this.#reading);
      this.#reading = null;
    }
    this.#given = false;
    if (!own) return buffers.scratch;
    this.#reading ??= buffers.take().subarray(HEADROOM_BYTES);
    return this.#reading;
  }

  #read(length: number, buffer: Uint8Array): boolean {
    const bytes = Buffer.from(buffer.buffer, buffer.byteOffset, length);
    this.#isReading = true;
    this.#take(bytes);
    this.#isReading = false;
    return !this.#paused;
  }

  #take(arrived: Buffer): void {
    // These bytes cannot answer a request that has not been sent completely.
    if (this.#unwritten !== null || this.#socket.writableLength > 0)
      return this.#lost(coded("bytes before the request was written", "EPROTO"));
    let bytes = arrived;
    while (bytes.length > 0) {
      switch (this.#phase) {
        case "head":
          bytes = this.#takeHead(bytes);
          break;
        case "counted":
          bytes = this.#takeCounted(bytes);
          break;
        case "chunked":
          bytes = this.#takeChunked(bytes);
          break;
        case "until_close":
          return this.#give(bytes, false);
        case "idle":
        case "offered":
        case "over":
          // Bytes without a request could not be told from the next answer.
          return this.#lost(coded("unexpected bytes", "EPROTO"));
      }
    }
  }

  #takeHead(arrived: Buffer): Buffer {
    const judged = this.#partial?.length ?? 0;
    const bytes = this.#partial === null ? arrived : Buffer.concat([this.#partial, arrived]);
    this.#partial = null;
    const isRepeated = this.#repeatsHead(bytes);
    const end = isRepeated ? this.#headText.length : bytes.indexOf("\r\n\r\n");
    if (end === -1 && bytes.length <= MAX_HEAD_BYTES) {
      if (!mayBecomeHead(bytes, judged)) return this.#malformed();
      this.#partial = Buffer.from(bytes);
      return NOTHING;
    }
    const isHead = end !== -1 && end <= MAX_HEAD_BYTES;
    if (isHead && !isRepeated) this.#readHead(bytes.toString("latin1", 0, end));
    const head = isHead ? this.#head : null;
    const handler = this.#handler;
    if (head === null || handler === null) return this.#malformed();
    const rest = bytes.subarray(end + 4);
    if (head.status < 200)
      return ++this.#interimHeads > MAX_INTERIM_HEADS ? this.#malformed() : rest;
    this.#keepAlive = head.keepAlive;
    this.#idleMs = head.idleMs ?? IDLE_MS;
    const { body } = head;
    this.#phase = body.kind;
    if (body.kind === "counted") this.#remaining = body.bytes;
    else if (body.kind === "chunked") this.#chunks = new ChunkedBody();
    handler.onResponseStart(this, head.status, head.headers);
    if (this.#phase === "counted" && this.#remaining === 0) this.#finish(rest.length);
    return rest;
  }

  /**
   * Whether these bytes begin with the head of the answer before. Providers repeat their heads:
   * such a one is neither looked for nor parsed.
   */
  #repeatsHead(bytes: Buffer): boolean {
    const end = this.#headText.length;
    return (
      end > 0 &&
      bytes[end] === CR &&
      bytes[end + 1] === LF &&
      bytes[end + 2] === CR &&
      bytes[end + 3] === LF &&
      bytes.toString("latin1", 0, end) === this.#headText
    );
  }

  #readHead(text: string): void {
    this.#head = readHead(text);
    this.#headText = text;
  }

  #takeCounted(bytes: Buffer): Buffer {
    const part = bytes.length <= this.#remaining ? bytes : bytes.subarray(0, this.#remaining);
    this.#remaining -= part.length;
    const rest = bytes.subarray(part.length);
    // Decided before the handler has the chunk: it may move on the memory once it is done.
    const surplus = rest.length;
    this.#give(part, this.#remaining === 0);
    if (this.#remaining === 0 && this.#phase === "counted") this.#finish(surplus);
    return rest;
  }

  /**
   * Passes on the part of the body in one read: in place, or as a copy if the handler keeps chunks
   * and it is in the scratch buffer.
   */
  #give(part: Buffer, last: boolean): void {
    const handler = this.#handler;
    if (handler === null) return;
    if (!handler.keepsChunks) handler.onResponseData(this, part, last);
    else if (this.#reading !== null && part.buffer === this.#reading.buffer)
      this.#given = !handler.onResponseData(this, part, last);
    else this.#giveCopy(handler, part, last);
  }

  #giveCopy(handler: AnswerHandler, part: Buffer, last: boolean): void {
    const { buffers } = this.#pool;
    const buffer = buffers.take();
    part.copy(buffer, HEADROOM_BYTES);
    const copy = buffer.subarray(HEADROOM_BYTES, HEADROOM_BYTES + part.length);
    if (handler.onResponseData(this, copy, last)) buffers.reuse(buffer);
  }

  /** Joins the data of all chunks of one read, so that one buffer is passed on as one piece. */
  #takeChunked(arrived: Buffer): Buffer {
    let start = 0;
    let end = 0;
    const rest = this.#chunks?.take(arrived, (dataAt, dataEnd) => {
      if (end === 0) start = end = dataAt;
      else if (dataAt !== end) arrived.copyWithin(end, dataAt, dataEnd);
      end += dataEnd - dataAt;
    });
    if (rest === undefined) return this.#malformed();
    const isLast = rest !== null;
    const surplus = rest?.length ?? 0;
    if (end > start) this.#give(arrived.subarray(start, end), isLast);
    if (rest === null) return NOTHING;
    // The handler may have cancelled in reaction to the data.
    if (this.#phase === "chunked") this.#finish(surplus);
    return rest;
  }

  #malformed(): Buffer {
    this.#lost(coded("the answer is not valid HTTP", "EPROTO"));
    return NOTHING;
  }

  /** Finishes the answer; `surplus` = bytes that came after it. */
  #finish(surplus: number): void {
    const handler = this.#handler;
    this.#handler = null;
    const expected = handler === null || handler.onResponseComplete();
    if (expected && this.#keepAlive && surplus === 0 && this.#phase !== "over") this.#rest();
    else this.#lost(IDLE);
    handler?.onResponseEnd();
  }

  /** Becomes free for its next request, or gets one at once. */
  #rest(): void {
    this.#phase = "idle";
    this.resume();
    this.idleUntilMs = this.#pool.options.runtime.now() + this.#idleMs;
    this.#pool.free(this);
  }

  #ended(): void {
    if (this.#phase === "until_close") {
      this.#keepAlive = false;
      this.#finish(0);
    } else this.#lost(coded("the connection was closed", "ECONNRESET"));
  }

  #lost(error: Error): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#unwritten = null;
    const handler = this.#handler;
    this.#handler = null;
    this.#socket.destroy();
    if (!this.#isReading && this.#reading !== null) {
      this.#pool.buffers.recycle(this.#reading);
      this.#reading = null;
    }
    this.#pool.gone(this);
    handler?.onResponseError(this, error);
  }
}

const NOTHING = Buffer.alloc(0);
const CR = 0x0d;
const LF = 0x0a;

/** An error with a code, like node's own. */
export function coded(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}

/**
 * A request body; when it is written, the text from `idStart` to `idEnd` is replaced by `id`
 * (ASCII).
 */
export interface RequestBody {
  readonly bytes: Buffer;
  readonly id: string;
  readonly idStart: number;
  readonly idEnd: number;
}

const FIRST_BYTES = 4_096;
/** Up to this size a loop copies faster than a call to `Buffer.copy`. */
const NEAR_BYTES = 48;
const AFTER_LENGTH = Buffer.from("\r\n\r\n", "latin1");

/** The memory that requests are put together in; it grows with the longest one. */
export class RequestWriter {
  #memory = Buffer.allocUnsafeSlow(FIRST_BYTES);

  /**
   * The bytes of a request; `head` ends with `content-length: `. They are valid until the next
   * call, unless `leave` is called before.
   */
  bytesOf(head: Buffer, body: RequestBody): Buffer {
    const { bytes, id, idStart, idEnd } = body;
    const length = bytes.length - (idEnd - idStart) + id.length;
    const digits = String(length);
    const lengthEnd = head.length + digits.length;
    const bodyAt = lengthEnd + AFTER_LENGTH.length;
    const end = bodyAt + length;
    if (end > this.#memory.length) this.#memory = Buffer.allocUnsafeSlow(end);
    const memory = this.#memory;
    memory.set(head);
    writeText(memory, head.length, digits);
    memory.set(AFTER_LENGTH, lengthEnd);
    writeBody(memory, bodyAt, body);
    return memory.subarray(0, end);
  }

  /** Leaves the memory to the request made last, which is not in the kernel yet. */
  leave(): void {
    this.#memory = Buffer.allocUnsafeSlow(FIRST_BYTES);
  }
}

function writeBody(memory: Buffer, at: number, { bytes, id, idStart, idEnd }: RequestBody): void {
  const idAt = at + idStart;
  const longer = id.length - (idEnd - idStart);
  if (longer >= 0 && idStart <= NEAR_BYTES) {
    // One copy puts what follows the id where it belongs; what precedes it is written again.
    memory.set(bytes, at + longer);
    for (let from = 0; from < idStart; from++) memory[at + from] = bytes[from] ?? 0;
  } else {
    bytes.copy(memory, at, 0, idStart);
    bytes.copy(memory, idAt + id.length, idEnd);
  }
  writeText(memory, idAt, id);
}

/** Writes ASCII that is short: a loop is faster than a call to `Buffer.write`. */
function writeText(memory: Buffer, start: number, text: string): void {
  for (let at = 0; at < text.length; at++) memory[start + at] = text.charCodeAt(at);
}
