// One keep-alive HTTP/1.1 connection: one request at a time, or some that are sent together, their
// answers in order and parsed strictly. Any doubt about framing ends the connection.
import { connect, type LookupFunction, type Socket } from "node:net";
import type { Runtime } from "../../runtime.ts";
import { BUFFER_BYTES, type BufferPool, HEADROOM_BYTES } from "./buffer-pool.ts";
import type {
  ConnectionUse,
  DispatchControl,
  HeaderField,
  RequestBody,
  RequestHandler,
} from "./connections.ts";
import { ChunkedBody, mayBecomeHead, type ResponseHead, readHead } from "./response-head.ts";
import type { TlsClient } from "./tls-client.ts";

/** What a connection gets from its pool: where to connect, memory to read into, and callbacks. */
export interface PoolHooks {
  readonly options: {
    readonly host: string;
    readonly port: number;
    readonly connectTimeoutMs: number;
    readonly runtime: Runtime;
    readonly lookup: LookupFunction | null;
    /** Null = plain text. */
    readonly tls: TlsClient | null;
  };
  readonly buffers: BufferPool;
  readonly requests: RequestWriter;
  /** The connection has finished an answer and may be used again. */
  free(connection: Http1Connection): void;
  gone(connection: Http1Connection): void;
  /** These were sent behind another request, and nothing of their answers was read. */
  again(requests: readonly UnsentRequest[]): void;
  /** The provider speaks HTTP/2 alone. `request` was not sent; null = there is none. */
  refused(request: UnsentRequest | null): void;
}

/** How requests of one path and one set of headers begin. */
export interface PreparedHead {
  readonly path: string;
  readonly headers: readonly HeaderField[];
  /** Request line and headers, up to and including `content-length: `. */
  readonly text: string;
}

/** A request that is not sent yet. */
export interface UnsentRequest {
  readonly head: PreparedHead;
  readonly body: RequestBody;
  readonly handler: RequestHandler;
  readonly use: ConnectionUse;
}

/** Requests that are sent together, at most: each waits for the answers of those before it. */
const MOST_PIPELINED = 8;
/** Answers to those who have left are read up to this size, for the sake of those behind them. */
const MAX_DROPPED_BYTES = 262_144;
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
  /** Connected, and over TLS the provider has proved who it is. */
  #isOpen = false;
  /** Ends the wait for that: one bound for the name, the connection and the handshake. */
  readonly #endWait: () => void;
  #handler: RequestHandler | null = null;
  /** The request to send once connected. */
  #unsent: UnsentRequest | null = null;
  /** Short requests, written at the end of this turn. */
  #unwritten: UnsentRequest[] = [];
  /** Requests of the same write whose answers come behind that of `#handler`, in order. */
  #behind: UnsentRequest[] = [];
  /** Bytes of answers to those who have left. */
  #droppedBytes = 0;
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
  /**
   * Parts of the body for a handler that keeps chunks, copied behind each other until the end of
   * this turn: TLS gives no more than 16 KiB at a time.
   */
  #copy: Buffer | null = null;
  #copied = 0;
  readonly #onCopyTurnEnd = (): void => this.#giveCopied(false);
  /** The handler kept the buffer: the next read needs another. */
  #given = false;
  /** True during a read; the next buffer is chosen after it. */
  #isReading = false;
  #paused = false;

  constructor(pool: PoolHooks) {
    this.#pool = pool;
    const { host, port, connectTimeoutMs, runtime, lookup, tls } = pool.options;
    const options = {
      host,
      port,
      noDelay: true,
      ...(lookup === null ? {} : { lookup }),
      onread: {
        buffer: () => this.#nextBuffer(),
        callback: (bytes: number, buffer: Uint8Array) => this.#read(bytes, buffer),
      },
    };
    this.#socket = tls === null ? connect(options) : tls.connect(options);
    this.#endWait = runtime.after(connectTimeoutMs, () =>
      this.#lost(coded("no connection in time", "ETIMEDOUT")),
    );
    this.#socket.once(tls === null ? "connect" : "secureConnect", () => this.#connected());
    this.#socket.on("error", (error) => this.#lost(error));
    this.#socket.on("end", () => this.#ended());
    this.#socket.on("close", () => this.#lost(coded("the connection was closed", "ECONNRESET")));
  }

  /**
   * Sends a request. False = its handler gave up while it waited: nothing was sent, and the
   * connection stays free.
   */
  send(request: UnsentRequest): boolean {
    const { handler } = request;
    this.#handler = handler;
    handler.queued = false;
    if (!this.#isOpen) {
      this.#unsent = request;
      return true;
    }
    this.#phase = "offered";
    handler.onRequestStart(this);
    if (this.#handler !== handler) return false;
    this.#expectHead();
    this.#write(request);
    return true;
  }

  /** Whether a further request can be sent together with those of this turn. */
  hasRoomFor({ body }: UnsentRequest): boolean {
    const count = this.#unwritten.length;
    return (
      count > 0 &&
      count < MOST_PIPELINED &&
      this.#unwritten[0]?.use === "pipelined" &&
      body.bytes.length <= ONE_WRITE_BYTES / MOST_PIPELINED
    );
  }

  /** Sends a request together with those of this turn. */
  sendBehind(request: UnsentRequest): void {
    request.handler.queued = false;
    this.#behind.push(request);
    this.#unwritten.push(request);
    request.handler.onRequestStart(this);
  }

  abort(reason: Error, handler: RequestHandler): void {
    if (this.#phase === "offered") {
      this.#phase = "idle";
      this.#handler = null;
    } else if (this.#behind.length > 0) this.#drop(handler);
    // Otherwise it is sent elsewhere by now, or was.
    else if (this.#handler === handler) this.#lost(reason);
  }

  /** Lets the answers of others go on: that to this handler is read and dropped. */
  #drop(handler: RequestHandler): void {
    const at = this.#behind.findIndex((request) => request.handler === handler);
    const request = this.#behind[at];
    if (request !== undefined) this.#behind[at] = { ...request, handler: DROPPED };
    else if (this.#handler === handler) {
      this.#handler = DROPPED;
      this.#giveCopied(false);
    }
    const handlers = [this.#handler, ...this.#behind.map((each) => each.handler)];
    if (handlers.every((each) => each === DROPPED)) this.#lost(IDLE);
  }

  /** Ends the connection, and what was sent over it. */
  close(reason: Error): void {
    this.#lost(reason);
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
    this.#unsent = null;
    this.#isOpen = true;
    this.#endWait();
    if (unsent !== null && !this.send(unsent)) this.#rest();
  }

  #expectHead(): void {
    this.#phase = "head";
    this.#interimHeads = 0;
  }

  #write(request: UnsentRequest): void {
    const { head, body } = request;
    const { bytes, id, idStart, idEnd } = body;
    if (bytes.length <= ONE_WRITE_BYTES) {
      this.#unwritten.push(request);
      return this.#pool.options.runtime.atTurnEnd(this.#onTurnEnd);
    }
    this.#socket.cork();
    this.#socket.write(
      `${head.text}${bytes.length - (idEnd - idStart) + id.length}\r\n\r\n`,
      "latin1",
    );
    this.#socket.write(bytes.subarray(0, idStart));
    this.#socket.write(id, "latin1");
    this.#socket.write(bytes.subarray(idEnd));
    this.#socket.uncork();
  }

  #writeShort(): void {
    if (this.#unwritten.length === 0) return;
    const { requests, options } = this.#pool;
    for (const { head, body } of this.#unwritten) {
      if (head.text !== this.#requestHeadText) this.#requestHead = Buffer.from(head.text, "latin1");
      this.#requestHeadText = head.text;
      requests.add(this.#requestHead, body);
    }
    this.#unwritten = [];
    const isBusy = this.#socket.writableLength > 0;
    this.#socket.write(requests.take());
    // TLS encrypts the bytes at once, unless an earlier write is unfinished, and counts them as
    // written later. The kernel may leave a part of them.
    if (options.tls === null ? this.#socket.writableLength > 0 : isBusy) requests.leave();
  }

  /**
   * The memory of the next read: the scratch buffer, or a new buffer for a handler that keeps
   * chunks.
   */
  #nextBuffer(): Buffer {
    const { buffers, options } = this.#pool;
    const own = options.tls === null && this.#handler?.keepsChunks === true;
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
    const isPlain = this.#pool.options.tls === null;
    if (!isPlain && this.#headText === "" && beginsHttp2(arrived))
      return this.#lost(coded("the provider speaks HTTP/2 alone", HTTP2_ALONE));
    // These bytes cannot answer a request that has not been sent completely. TLS counts a request
    // as written only after its answer may be here: see `#finish`.
    const isUnwritten = isPlain && this.#behind.length === 0 && this.#socket.writableLength > 0;
    if (this.#unwritten.length > 0 || isUnwritten)
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
    const rest = part === bytes ? NOTHING : bytes.subarray(part.length);
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
    if (handler === DROPPED) {
      this.#droppedBytes += part.length;
      if (this.#droppedBytes > MAX_DROPPED_BYTES) return this.#lost(IDLE);
    }
    if (!handler.keepsChunks) handler.onResponseData(this, part, last);
    else if (this.#reading !== null && part.buffer === this.#reading.buffer)
      this.#given = !handler.onResponseData(this, part, last);
    else this.#giveCopy(part, last);
    // Its reader may be slow, and may keep the memory that the next answer is read from.
    if (this.#behind.length > 0 && this.#handler?.keepsChunks === true) this.#askBehindAgain();
  }

  /** Has the requests behind this one sent elsewhere; their answers here are not read. */
  #askBehindAgain(): void {
    this.#keepAlive = false;
    this.#pool.again(this.#behind.splice(0));
  }

  #giveCopy(part: Buffer, last: boolean): void {
    const { buffers, options } = this.#pool;
    if (HEADROOM_BYTES + this.#copied + part.length > BUFFER_BYTES) this.#giveCopied(false);
    if (this.#copy === null) {
      this.#copy = buffers.take();
      if (options.tls !== null) options.runtime.atTurnEnd(this.#onCopyTurnEnd);
    }
    part.copy(this.#copy, HEADROOM_BYTES + this.#copied);
    this.#copied += part.length;
    if (last || options.tls === null) this.#giveCopied(last);
  }

  #giveCopied(last: boolean): void {
    const copy = this.#copy;
    if (copy === null) return;
    const bytes = copy.subarray(HEADROOM_BYTES, HEADROOM_BYTES + this.#copied);
    this.#copy = null;
    this.#copied = 0;
    if (this.#handler?.onResponseData(this, bytes, last) !== false) this.#pool.buffers.reuse(copy);
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
    this.#giveCopied(true);
    const handler = this.#handler;
    this.#handler = null;
    const expected = handler === null || handler.onResponseComplete();
    // The provider has answered before it read all of a long request.
    const isUnread = this.#socket.writableLength > ONE_WRITE_BYTES;
    const mayStay = expected && this.#keepAlive && !isUnread && this.#phase !== "over";
    const next = mayStay ? this.#behind.shift() : undefined;
    if (next !== undefined) {
      this.#handler = next.handler;
      this.#expectHead();
    } else if (mayStay && surplus === 0) this.#rest();
    else this.#lost(IDLE);
    handler?.onResponseEnd();
  }

  /** Becomes free for its next request, or gets one at once. */
  #rest(): void {
    this.#phase = "idle";
    this.#droppedBytes = 0;
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
    this.#unwritten = [];
    const behind = this.#behind.splice(0);
    const handler = this.#handler;
    const unsent = this.#unsent;
    this.#handler = null;
    this.#unsent = null;
    this.#socket.destroy();
    if (!this.#isReading && this.#reading !== null) {
      this.#pool.buffers.recycle(this.#reading);
      this.#reading = null;
    }
    // The handler is gone, so that this returns the memory.
    this.#giveCopied(false);
    if (!this.#isOpen) {
      this.#endWait();
      this.#pool.options.tls?.forget();
    }
    // First, so that no waiting request gets a connection of its own that is refused as well.
    const isRefused = this.#pool.options.tls !== null && isHttp1Refusal(error);
    if (isRefused) this.#pool.refused(unsent);
    this.#pool.gone(this);
    if (!isRefused || unsent === null) handler?.onResponseError(this, error);
    if (behind.length > 0) this.#pool.again(behind);
  }
}

/** Hears the answer to a request whose caller has left. */
const DROPPED: RequestHandler = {
  keepsChunks: false,
  queued: false,
  abandoned: true,
  onRequestStart() {},
  onResponseStart() {},
  onResponseData: () => true,
  onResponseComplete: () => true,
  onResponseEnd() {},
  onResponseError() {},
  onOver() {},
};

const HTTP2_ALONE = "EHTTP2";

/** Whether a connection ended because the provider speaks other protocols than HTTP/1.1. */
function isHttp1Refusal({ code }: Error & { readonly code?: unknown }): boolean {
  if (typeof code !== "string") return false;
  return code === HTTP2_ALONE || code.endsWith("ALERT_NO_APPLICATION_PROTOCOL");
}

/**
 * Whether a server that ignored the protocols of the handshake begins with the SETTINGS frame of
 * HTTP/2: its length in three bytes, type 4, no flags, stream 0.
 */
function beginsHttp2(bytes: Buffer): boolean {
  return bytes.length >= FRAME_HEAD_BYTES && bytes[0] === 0 && bytes.readUIntBE(3, 6) === SETTINGS;
}

const FRAME_HEAD_BYTES = 9;
const SETTINGS = 0x040000000000;

const NOTHING = Buffer.alloc(0);
const CR = 0x0d;
const LF = 0x0a;

/** An error with a code, like node's own. */
export function coded(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}

const FIRST_BYTES = 4_096;
/** Up to this size a loop copies faster than a call to `Buffer.copy`. */
const NEAR_BYTES = 48;
const AFTER_LENGTH = Buffer.from("\r\n\r\n", "latin1");

/** The memory that the requests of one write are put together in; it grows with the longest. */
export class RequestWriter {
  #memory = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;

  /** Adds a request; `head` ends with `content-length: `. */
  add(head: Buffer, body: RequestBody): void {
    const { bytes, id, idStart, idEnd } = body;
    const start = this.#length;
    const length = bytes.length - (idEnd - idStart) + id.length;
    const digits = String(length);
    const lengthEnd = start + head.length + digits.length;
    const bodyAt = lengthEnd + AFTER_LENGTH.length;
    const end = bodyAt + length;
    if (end > this.#memory.length) {
      const larger = Buffer.allocUnsafeSlow(end);
      this.#memory.copy(larger, 0, 0, start);
      this.#memory = larger;
    }
    const memory = this.#memory;
    memory.set(head, start);
    writeText(memory, start + head.length, digits);
    memory.set(AFTER_LENGTH, lengthEnd);
    writeBody(memory, bodyAt, body);
    this.#length = end;
  }

  /**
   * The bytes of all that was added since the last call. They are valid until the next `add`,
   * unless `leave` is called before.
   */
  take(): Buffer {
    const bytes = this.#memory.subarray(0, this.#length);
    this.#length = 0;
    return bytes;
  }

  /** Leaves the memory to the requests taken last, which are not in the kernel yet. */
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
