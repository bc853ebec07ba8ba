// One request to a provider over HTTP and its answer, read only as far as the JSON-RPC envelope: a
// complete result, a long result that is streamed while it arrives, or a failure. Of connections it
// knows only how to steer its own.
import { isUtf8 } from "node:buffer";
import {
  type AnswerEnvelope,
  type ResultAnswer,
  readAnswer,
  readAnswerHead,
  readAnswerTail,
  readError,
  readLongResult,
  TAIL_BYTES,
} from "../../core/rpc/answer.ts";
import { type Failure, plainFailure } from "../../core/rpc/failure.ts";
import { ValueScan } from "../../core/rpc/value-scan.ts";
import type {
  AnswerListener,
  AnswerStream,
  Dispatch,
  MemoryShare,
  StreamSink,
} from "../transport.ts";
import {
  type AnswerHeaders,
  CANCELLED,
  COMPRESSED,
  connectionFailure,
  EMPTY_BODY,
  excerpt,
  isEncoded,
  MAX_ERROR_BYTES,
  OTHER_ID,
  retryAfterIn,
} from "./answer-failure.ts";
import { AnswerPace, type Clock } from "./answer-pace.ts";
import { type BufferPool, SCRATCH_BYTES, SLAB_ANSWER_BYTES } from "./buffer-pool.ts";
import type { DispatchControl, RequestHandler } from "./connections.ts";
import { GatheredBody } from "./gathered-body.ts";

/** Bounds of an answer. */
export interface AnswerLimits {
  /** Longest answer that is streamed, and longest that is held in one piece. */
  readonly maxAnswerBytes: number;
  readonly maxWholeBytes: number;
}

/** The answer that is expected. */
export interface ExpectedAnswer {
  /** The id under which the request was sent. */
  readonly wireId: string;
  /** False = the caller needs the answer in one piece and keeps it. */
  readonly mayStream: boolean;
  /** The room that it counts toward while it is gathered. */
  readonly room: MemoryShare;
  /** Deadline of its method. */
  readonly deadlineMs: number;
  /**
   * Called when an answer belongs to something else and its connection may already be in use again.
   */
  readonly distrust: () => void;
}

/** Dependencies of reading answers. */
export interface AnswerParts extends Clock {
  readonly buffers: BufferPool;
}

/** An answer known to be longer than this is streamed. */
const STREAM_FROM_BYTES = 134_144;
/**
 * Bytes gathered of an answer of unknown length before it is streamed, so that one more read still
 * fits.
 */
const GATHERED_BYTES = STREAM_FROM_BYTES - SCRATCH_BYTES;
/** Bytes after which the beginning of a long answer is judged: a block has named itself by then. */
const LONG_HEAD_BYTES = 2_048;
const NO_ANSWER_END = "the provider's answer does not end as a JSON-RPC answer";

/** One request in flight and the reading of its answer. */
export class HttpDispatch implements RequestHandler, Dispatch, AnswerStream {
  sent = false;
  queued = false;
  /** Called once when the connection is done with this request. */
  onOver: () => void = NOTHING;
  head: Buffer = EMPTY;
  idAt = 0;
  bodyBytes: number | null = null;
  readonly #expected: ExpectedAnswer;
  readonly #listener: AnswerListener;
  readonly #maxBytes: number;
  readonly #parts: AnswerParts;
  readonly #buffers: BufferPool;
  #controller: DispatchControl | null = null;
  #state: "waiting" | "held" | "flowing" | "over" = "waiting";
  #status = 0;
  #retryAfter: string | null = null;
  #encoded = false;
  /** Answers longer than this are refused while they are held in one piece. */
  #mostBytes: number;
  #decided = false;
  #decideAtBytes = GATHERED_BYTES;
  #stopped = false;
  /** A complete short answer. */
  #short: Buffer | null = null;
  /** What has arrived of any other answer, until it flows. */
  #gathered: GatheredBody | null = null;
  /** Chunks that arrived after that, before there was a sink. */
  #late: Buffer[] = [];
  #size = 0;
  #passed = 0;
  #hasVersion = false;
  /** Finds the end of the result while it is streamed. */
  #scan: ValueScan | null = null;
  /** Bytes that came after the result; null = it has not ended. */
  #behind: number | null = null;
  #sink: StreamSink | null = null;
  /** Set while the answer is streamed. */
  #pace: AnswerPace | null = null;
  #held: Buffer = EMPTY;
  /** The piece that may end the answer, and whether the answer is complete. */
  #last: Buffer | null = null;
  #complete = false;
  /** How the stream ended, if it did before there was a sink. */
  #ending: (() => void) | null = null;
  /** The judgement of a complete answer; null = it is not complete, or it flows. */
  #answer: AnswerEnvelope | null = null;

  constructor(
    expected: ExpectedAnswer,
    listener: AnswerListener,
    limits: AnswerLimits,
    parts: AnswerParts,
  ) {
    this.#parts = parts;
    this.#buffers = parts.buffers;
    this.#expected = expected;
    this.#listener = listener;
    this.#maxBytes = limits.maxAnswerBytes;
    this.#mostBytes = Math.min(limits.maxWholeBytes, this.#maxBytes);
  }

  get abandoned(): boolean {
    return this.#state === "over";
  }

  get keepsChunks(): boolean {
    return this.#state === "held" || this.#state === "flowing";
  }

  onRequestStart(controller: DispatchControl): void {
    this.#controller = controller;
    if (this.#state === "over") controller.abort(CANCELLED, this);
    else this.sent = true;
  }

  onResponseStart(_controller: DispatchControl, status: number, headers: AnswerHeaders): void {
    if (status < 200) return;
    this.#status = status;
    if (status >= 300) this.#mostBytes = MAX_ERROR_BYTES;
    if (headers["retry-after"] !== undefined) this.#retryAfter = retryAfterIn(headers);
    if (headers["content-encoding"] !== undefined) this.#encoded = isEncoded(headers);
    const { "content-length": length } = headers;
    this.bodyBytes = typeof length === "string" && LENGTH.test(length) ? Number(length) : null;
    if (this.bodyBytes !== null && this.bodyBytes > this.#maxBytes)
      return this.#fail("body", "the answer is too long");
    if (this.bodyBytes !== null)
      this.#decideAtBytes =
        this.bodyBytes > STREAM_FROM_BYTES ? LONG_HEAD_BYTES : Number.POSITIVE_INFINITY;
  }

  onResponseData(_controller: DispatchControl, chunk: Buffer, last = false): boolean {
    this.#size += chunk.length;
    if (!last) this.#listener.heard?.();
    this.#pace?.came(chunk.length);
    switch (this.#state) {
      case "flowing":
        return this.#pass(chunk, last);
      case "held":
        this.#complete ||= last;
        this.#late.push(chunk);
        return false;
      case "waiting":
        this.#gather(chunk, last);
        return true;
      case "over":
        return true;
    }
  }

  onResponseComplete(): boolean {
    // From here on the connection belongs to another request.
    this.#controller = null;
    if (this.#state !== "waiting") return true;
    this.#answer = this.#read(this.#body());
    return this.#answer.kind !== "foreign";
  }

  onResponseEnd(): void {
    this.#release();
    // undici does not ask.
    if (this.#controller !== null && !this.onResponseComplete()) this.#expected.distrust();
    if (this.#state === "flowing") this.#endFlow();
    else if (this.#state === "held") this.#ending = () => this.#endFlow();
    else if (this.#state === "waiting" && this.#answer !== null)
      this.#tell(this.#body(), this.#answer);
  }

  onResponseError(_controller: DispatchControl | null, error: Error): void {
    this.#release();
    if (this.#state === "waiting") {
      const { kind, message, ...about } = connectionFailure(error, this.sent);
      this.#fail(kind, message, about);
    } else if (this.#state === "held")
      this.#ending = () => this.#break("the provider's answer broke off");
    else if (this.#state === "flowing") this.#break("the provider's answer broke off");
  }

  cancel(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#letGo();
    this.#release();
    this.#controller?.abort(CANCELLED, this);
  }

  cut(): void {
    this.cancel();
  }

  recycle(chunk: Buffer): void {
    this.#buffers.recycle(chunk);
  }

  pause(): void {
    this.#stopped = true;
    this.#pace?.pause();
    if (this.#state !== "over") this.#controller?.pause();
  }

  resume(): void {
    this.#stopped = false;
    this.#pace?.resume();
    if (this.#state !== "over") this.#controller?.resume();
  }

  flow(sink: StreamSink): void {
    if (this.#state !== "held") return;
    this.#sink = sink;
    this.#state = "flowing";
    const pieces = [
      ...(this.#gathered === null ? [] : [this.#gathered.bytes.subarray(this.head.length)]),
      ...this.#late,
    ];
    this.#passed = this.head.length;
    this.#gathered = null;
    this.#late = [];
    this.#stopped = false;
    for (const [at, piece] of pieces.entries()) {
      if (this.#pass(piece, this.#complete && at === pieces.length - 1)) this.#buffers.reuse(piece);
    }
    if (!this.#stopped) this.resume();
    this.#ending?.();
  }

  /** Gathers a chunk of an answer that is not streamed, or not yet. */
  #gather(chunk: Buffer, last: boolean): void {
    if (last && this.#gathered === null && chunk.length <= SLAB_ANSWER_BYTES) {
      this.#short = this.#expected.mayStream ? this.#buffers.copyOf(chunk) : Buffer.from(chunk);
      return;
    }
    if (this.#size > this.#mostBytes) return this.#fail("body", "the answer is too long");
    this.#gathered ??= new GatheredBody(this.#buffers, this.#expected.room);
    // Whether it is streamed is decided within one buffer, which needs no room.
    const counted = this.#decided || !this.#expected.mayStream;
    if (!this.#gathered.add(chunk, this.bodyBytes, counted)) return this.#fail("no_room", NO_ROOM);
    this.#complete = last;
    // A complete answer is delivered whole: it can still fail over.
    if (!last && !this.#decided && this.#size >= this.#decideAtBytes)
      this.#decide(this.#gathered.bytes);
  }

  /** Decides whether the answer is a result, and whether it is streamed. */
  #decide(first: Buffer): void {
    this.#decided = true;
    if (this.#encoded) return this.#fail("body", COMPRESSED);
    if (this.#status >= 300) return;
    const head = readAnswerHead(first, this.#expected.wireId);
    if (head.kind === "bad") return this.#fail("body", head.message);
    if (head.kind === "foreign") return this.#fail("body", OTHER_ID);
    if (head.kind === "whole") {
      this.#mostBytes = MAX_ERROR_BYTES;
      return;
    }
    // Until the id is here the answer may be another request's: it is held.
    if (!this.#expected.mayStream || head.idAt === null) return;
    this.#scan = ValueScan.of(first[head.start]);
    if (this.#scan === null) return;
    this.head = Buffer.from(first.subarray(0, head.start));
    this.idAt = head.idAt;
    this.#hasVersion = head.hasVersion;
    this.#state = "held";
    this.#gathered?.vacate();
    this.#pace = new AnswerPace(this.#parts, this.#expected.deadlineMs, (message, byCaller) =>
      this.#cutOff(message, byCaller),
    );
    this.#listener.stream(this, first.subarray(head.start));
    if (this.#state === "held") this.pause();
  }

  /**
   * Streams what cannot belong to the tail. The last bytes are held back until the answer has
   * ended: as a copy, or in place if the answer is known to end with them. True = done with the
   * chunk.
   */
  #pass(chunk: Buffer, last: boolean): boolean {
    if (this.#size > this.#maxBytes) {
      this.#break("the answer is too long");
      return true;
    }
    if (this.bodyBytes !== null && this.#size > this.bodyBytes) {
      this.#break(WRONG_LENGTH);
      return true;
    }
    if (!this.#follow(chunk)) {
      this.#break(NO_ANSWER_END);
      return true;
    }
    if (last) {
      this.#last = chunk;
      return false;
    }
    this.#passed += chunk.length;
    if (this.bodyBytes !== null && this.#passed <= this.bodyBytes - TAIL_BYTES)
      return this.#sink?.data(chunk, true) ?? true;
    return this.#holdBack(chunk);
  }

  /** Follows the result through its bytes; false = more comes behind it than an answer has. */
  #follow(chunk: Buffer): boolean {
    if (this.#behind === null) {
      const end = this.#scan?.take(chunk) ?? -1;
      if (end !== -1) this.#behind = chunk.length - end;
    } else this.#behind += chunk.length;
    return this.#behind === null || this.#behind <= TAIL_BYTES;
  }

  /** Copies the last bytes, which may be the end of the answer, and streams what is before. */
  #holdBack(chunk: Buffer): boolean {
    const piece = this.#behindHeld(chunk);
    const ready = Math.max(0, piece.length - TAIL_BYTES);
    this.#held = Buffer.from(piece.subarray(ready));
    if (ready === 0) return true;
    const isInPlace = piece.buffer === chunk.buffer;
    // What was held back is a copy, so that the bytes behind the piece are free.
    const hasRoom = isInPlace && this.#buffers.isBorrowed(chunk);
    return this.#sink?.data(piece.subarray(0, ready), isInPlace, hasRoom) ?? true;
  }

  /**
   * The held bytes and a chunk in one piece: in the memory of the chunk if there is room before it.
   */
  #behindHeld(chunk: Buffer): Buffer {
    const held = this.#held;
    if (held.length === 0) return chunk;
    const start = chunk.byteOffset - held.length;
    if (start < 0 || !this.#buffers.isBorrowed(chunk)) return Buffer.concat([held, chunk]);
    const piece = Buffer.from(chunk.buffer, start, held.length + chunk.length);
    held.copy(piece);
    return piece;
  }

  #endFlow(): void {
    if (this.bodyBytes !== null && this.#size !== this.bodyBytes) return this.#break(WRONG_LENGTH);
    const last = this.#last;
    const piece = last === null ? this.#held : this.#behindHeld(last);
    const behind = this.#behind ?? 0;
    const end = piece.length - behind;
    const head = { idAt: this.idAt, hasVersion: this.#hasVersion };
    if (readAnswerTail(piece.subarray(end), head, this.#expected.wireId) === null)
      return this.#break(NO_ANSWER_END);
    this.#state = "over";
    this.#pace?.end();
    this.#last = null;
    this.#held = EMPTY;
    const isBorrowed = last !== null && piece.buffer === last.buffer;
    if (last !== null && !isBorrowed) this.#buffers.reuse(last);
    if (this.#sink?.end(piece, end, isBorrowed) === true && isBorrowed) this.#buffers.reuse(piece);
  }

  #break(message: string): void {
    if (this.#state !== "flowing") return;
    this.cancel();
    this.#listener.broken(message);
    this.#sink?.broken(message);
  }

  /** Cuts off an answer that is too slow: ends its connection, and its reader's. */
  #cutOff(message: string, byCaller: boolean): void {
    if (this.#state !== "flowing" && this.#state !== "held") return;
    if (!byCaller && this.#state === "flowing") return this.#break(message);
    this.cancel();
    this.#sink?.broken(message, byCaller ? "reader" : undefined);
  }

  #body(): Buffer {
    return this.#short ?? this.#gathered?.bytes ?? EMPTY;
  }

  /** Returns all memory that is not in use elsewhere. */
  #letGo(): void {
    this.#pace?.end();
    this.#gathered?.release();
    this.#gathered = null;
    for (const piece of this.#late) this.#buffers.recycle(piece);
    this.#late = [];
    this.#held = EMPTY;
    if (this.#last !== null) this.#buffers.recycle(this.#last);
    this.#last = null;
  }

  /** Judges a complete body. */
  #read(body: Buffer): AnswerEnvelope {
    if (this.#encoded) return { kind: "bad", message: COMPRESSED };
    // Invalid UTF-8 would close a caller's WebSocket.
    if (!isUtf8(body)) return { kind: "bad", message: EMPTY_BODY };
    const long = this.#status < 300 ? readLongResult(body, this.#expected.wireId) : null;
    return long ?? readAnswer(body, this.#expected.wireId);
  }

  /** Delivers a complete body to the listener. */
  #tell(body: Buffer, answer: AnswerEnvelope): void {
    switch (answer.kind) {
      case "bad":
        return this.#fail("body", this.#encoded ? COMPRESSED : excerpt(body) || EMPTY_BODY);
      case "foreign":
        return this.#fail("body", OTHER_ID);
      case "error":
        return this.#failWith(body.subarray(answer.start, answer.end), answer.owned);
      case "result":
        if (this.#status < 300) this.#succeed(body, answer);
        else this.#fail("body", `a result with HTTP status ${this.#status}`);
    }
  }

  #succeed(body: Buffer, answer: ResultAnswer): void {
    this.#state = "over";
    const gathered = this.#gathered;
    this.#gathered = null;
    const { mayStream } = this.#expected;
    if (gathered === null)
      return this.#listener.result(body, answer, mayStream ? this.#buffers : undefined);
    gathered.vacate();
    if (mayStream && this.#buffers.mayLend)
      return this.#listener.result(body, answer, this.#buffers);
    this.#listener.result(gathered.keep(), answer);
  }

  #failWith(raw: Buffer, owned: boolean): void {
    if (raw.length > MAX_ERROR_BYTES) return this.#fail("body", "the error is too long");
    const kept = Buffer.from(raw);
    const error = readError(kept);
    this.#state = "over";
    this.#letGo();
    this.#listener.failed(
      { kind: "error", httpStatus: this.#status, retryAfter: this.#retryAfter, ...error },
      owned ? kept : null,
    );
  }

  #release(): void {
    const { onOver } = this;
    this.onOver = NOTHING;
    onOver();
    if (this.#pace !== null) this.#listener.streamed?.();
  }

  #fail(
    kind: Failure["kind"],
    message: string,
    about: Pick<Failure, "crowded" | "incident"> = {},
  ): void {
    this.cancel();
    const [httpStatus, retryAfter] = [this.#status, this.#retryAfter];
    const failure = { ...plainFailure(kind, message), httpStatus, retryAfter, ...about };
    this.#listener.failed(failure, null);
  }
}

const EMPTY = Buffer.alloc(0);
const NOTHING = (): void => {};
const LENGTH = /^\d{1,15}$/;
/**
 * The caller was sent this Content-Length: further bytes would be read as the beginning of its next
 * answer.
 */
const WRONG_LENGTH = "the provider's answer is not as long as it said";
const NO_ROOM = "there is no room in memory for the answer";
