// Streams an answer from its provider to the client: passes pieces on, pauses the provider for a
// slow reader, and cuts the answer off if neither side makes progress or if unsent bytes exceed the
// caller's share of memory. Decides no price.
import type { Interruption } from "../../../core/billing/charging.ts";
import { ANSWERED, brokenEnd, type CallEnd, interruptedEnd } from "../../../core/call-end.ts";
import { WIRE_ID_BYTES } from "../../../core/rpc/wire-request.ts";
import type { Observer } from "../../../observe/observer.ts";
import type { Timer, TimerWheel } from "../../../upstream/timer-wheel.ts";
import type { AnswerStream, MemoryShare, StreamSink } from "../../../upstream/transport.ts";
import { closing } from "../../http/render-fault.ts";
import type { Headers } from "../../http/respond.ts";
import type { BodySink, HttpExchange } from "../caller.ts";
import { STALL_MS } from "../limits.ts";
import type { CompressedBody, CompressionJob } from "./compression.ts";
import { type EvidenceParts, evidenceOf } from "./evidence.ts";
import { renderStreamHead } from "./render-reply.ts";
import type { DeliveryCallback, Reply } from "./reply.ts";

/** Bytes not yet sent beyond which the provider is paused. */
const UNSENT_BYTES = 262_144;

export interface StreamedAnswerParts extends EvidenceParts {
  readonly timerWheel: TimerWheel;
  readonly observer: Observer;
}

/** The reply to stream and the request that it belongs to. */
export interface StreamedReply {
  readonly exchange: HttpExchange;
  readonly reply: Reply;
  readonly source: AnswerStream;
  /** Memory budget in which unsent pieces count. */
  readonly room: MemoryShare;
  /** Settles the price if the answer is cut off; only the first call counts. */
  readonly settle: DeliveryCallback;
}

/** One streamed answer. */
export class StreamedAnswer implements StreamSink {
  readonly #parts: StreamedAnswerParts;
  readonly #exchange: HttpExchange;
  readonly #reply: Reply;
  readonly #source: AnswerStream;
  readonly #room: MemoryShare;
  readonly #settle: DeliveryCallback;
  /** True = the provider's own envelope is passed on; false = it is written anew, with evidence. */
  readonly #isVerbatim: boolean;
  /** Destination of the body. */
  #out: BodySink;
  /** The same destination if it compresses; null = uncompressed. */
  #compressed: CompressedBody | null = null;
  #stall: Timer | null = null;
  /** Counts pieces moved on either side; the stall timer watches it. */
  #progress = 0;
  #isPaused = false;
  /** True once the provider has sent everything. */
  #isComplete = false;
  /** True once the call was counted. */
  #isCounted = false;

  constructor(
    parts: StreamedAnswerParts,
    { exchange, reply, source, room, settle }: StreamedReply,
  ) {
    this.#parts = parts;
    this.#exchange = exchange;
    this.#reply = reply;
    this.#source = source;
    this.#room = room;
    this.#settle = settle;
    this.#isVerbatim = reply.target.meta !== "body";
    this.#out = exchange;
  }

  /** Sends the head, then the body as it arrives; `job` null = uncompressed. */
  start(headers: Headers, job: CompressionJob | null): void {
    const { bodyBytes } = this.#source;
    const id = Buffer.from(this.#reply.id ?? "null");
    const sizeBytes =
      this.#isVerbatim && bodyBytes !== null ? bodyBytes - WIRE_ID_BYTES + id.length : null;
    if (job !== null)
      this.#out = this.#compressed = job.body(this.#compressedSink(), () => this.#progress++);
    const first = renderStreamHead(id, this.#isVerbatim ? this.#source : null);
    this.#exchange.begin(headers, job === null ? sizeBytes : null, job === null ? first : null);
    if (job !== null) this.#out.write(first, nothing);
    this.#watchStall();
    this.#source.flow(this);
  }

  data(arrived: Buffer, isBorrowed: boolean, hasRoom = false): boolean {
    this.#progress++;
    if (arrived.length === 0) return true;
    // A slice of a borrowed buffer keeps the whole buffer in memory: a short one that has to
    // wait is copied.
    const isCopied =
      isBorrowed && this.#exchange.unsent > 0 && arrived.length * 4 < arrived.buffer.byteLength;
    const chunk = isCopied ? Buffer.from(arrived) : arrived;
    const borrowed = isBorrowed && !isCopied;
    const bytes = borrowed ? chunk.buffer.byteLength : chunk.length;
    let kept = false;
    let counted = false;
    const written = (): void => {
      this.#progress++;
      if (counted) this.#room.giveBack(bytes);
      if (kept && borrowed) this.#source.recycle(chunk);
    };
    const unsent = this.#out.write(chunk, written, hasRoom && !isCopied);
    if (unsent > UNSENT_BYTES) this.#pause();
    kept = unsent > 0;
    counted = kept && this.#room.take(bytes);
    if (kept && !counted) this.#cutOff("no room in memory for what its reader leaves lying", true);
    return isCopied || !kept;
  }

  end(last: Buffer, valueBytes: number, borrowed: boolean): boolean {
    let isWritten = false;
    let isDone = false;
    const written = (): void => {
      isWritten = true;
      if (borrowed && !isDone) this.#source.recycle(last);
    };
    const isPlain = this.#compressed === null;
    if (isPlain) this.#exchange.cork();
    this.#out.write(this.#isVerbatim ? last : last.subarray(0, valueBytes), written);
    if (!this.#isVerbatim) this.#out.write(closing(evidenceOf(this.#reply, this.#parts)), nothing);
    this.#isComplete = true;
    this.#count(ANSWERED);
    // Compressed bytes are still to be sent: `close` ends the stall timer instead.
    if (isPlain) this.#stall?.clear();
    this.#out.end();
    isDone = isPlain && !isWritten && this.#exchange.unsent === 0;
    return isDone;
  }

  /**
   * Cuts the answer off. It is free, unless its caller caused this: by not reading, which counts as
   * leaving, or by asking for a range that providers refused.
   */
  broken(message: string, by?: "reader" | "range"): void {
    this.#settle(by !== undefined);
    this.#count(brokenEnd(by));
    this.#parts.observer.log.warn(
      { request_id: this.#exchange.requestId, reason: message },
      "answer cut off",
    );
    this.#exchange.destroy();
  }

  /**
   * Ends the request: stops the provider, the compression and the stall timer. `why` says how it
   * ended if its answer was not complete.
   */
  close(why: Interruption): void {
    this.#count(interruptedEnd(why));
    this.#stall?.clear();
    this.#compressed?.abandon();
    this.#cut();
  }

  /** The destination of compressed bytes. If compression fails, the answer is cut off and free. */
  #compressedSink(): BodySink {
    const exchange = this.#exchange;
    return {
      write: (chunk, written) => exchange.write(chunk, written),
      end: () => exchange.end(),
      drained: (run) => exchange.drained(run),
      destroy: () => this.broken("the answer could not be compressed"),
    };
  }

  #count(end: CallEnd): void {
    if (this.#isCounted) return;
    this.#isCounted = true;
    this.#reply.ended?.(end);
  }

  #cut(): void {
    if (!this.#isComplete) this.#source.cut();
    this.#isComplete = true;
  }

  #pause(): void {
    this.#source.pause();
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#out.drained(() => {
      this.#isPaused = false;
      this.#source.resume();
    });
  }

  #watchStall(): void {
    const before = this.#progress;
    this.#stall = this.#parts.timerWheel.set(STALL_MS, () => {
      if (!this.#exchange.open) return;
      // While it waits for the provider, the transport that reads the provider detects the stall.
      const isWaiting = this.#compressed === null && !this.#isPaused && this.#exchange.unsent === 0;
      if (isWaiting || this.#progress !== before) return this.#watchStall();
      this.#cutOff("no progress", this.#isPaused || this.#exchange.unsent > 0);
    });
  }

  /**
   * Stops the provider and cuts the answer off. A reader that does not read counts as having left;
   * else a caller could take all but the end of an answer for free.
   */
  #cutOff(message: string, byCaller: boolean): void {
    this.#cut();
    this.broken(message, byCaller ? "reader" : undefined);
  }
}

function nothing(): void {}
