// An answer that is sent while it arrives from its provider: passes pieces on, pauses the provider
// for a slow reader, and cuts the answer off where neither side moves, or where what its readers
// leave lying is more than a caller's share of memory. Decides no price.
import { WIRE_ID_BYTES } from "../../core/rpc/wire-request.ts";
import type { Observer } from "../../observe/observer.ts";
import type { Runtime } from "../../runtime.ts";
import type { Timer, TimerWheel } from "../../upstream/timer-wheel.ts";
import type { AnswerStream, Room, StreamSink } from "../../upstream/transport.ts";
import { closing } from "../http/render-fault.ts";
import type { Headers } from "../http/respond.ts";
import type { HttpExchange } from "./caller.ts";
import type { BodySink, CompressedBody, CompressionJob } from "./compression.ts";
import { STALL_MS } from "./limits.ts";
import { renderStreamHead } from "./render-reply.ts";
import { type DeliveryCallback, evidenceOfReply, type Reply } from "./reply.ts";

/** Bytes that may wait for a slow reader before its provider is paused. */
const UNSENT_BYTES = 262_144;

/** What an answer is streamed with. */
export interface StreamedAnswerParts {
  readonly runtime: Pick<Runtime, "now">;
  readonly timerWheel: TimerWheel;
  readonly observer: Observer;
}

/** Which answer is streamed, and to whom. */
export interface StreamedReply {
  readonly exchange: HttpExchange;
  readonly reply: Reply;
  readonly source: AnswerStream;
  /** Where the pieces count that wait for a slow reader. */
  readonly room: Room;
  /** Settles its price where it is cut off; anything after the first call is ignored. */
  readonly settle: DeliveryCallback;
}

/** One answer on its way. */
export class StreamedAnswer implements StreamSink {
  readonly #parts: StreamedAnswerParts;
  readonly #exchange: HttpExchange;
  readonly #reply: Reply;
  readonly #source: AnswerStream;
  readonly #room: Room;
  readonly #settle: DeliveryCallback;
  /** True = the provider's own envelope is passed on; false = it is written anew, with evidence. */
  readonly #isVerbatim: boolean;
  /** Where the bytes go. */
  #out: BodySink;
  /** The same, while they are compressed. */
  #compressed: CompressedBody | null = null;
  #stall: Timer | null = null;
  /** Grows with every piece that either side moves. */
  #progress = 0;
  #isPaused = false;
  /** The provider has sent all of it. */
  #isComplete = false;

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

  /** Sends the head, then what arrives; `job` null = it is not compressed. */
  start(headers: Headers, job: CompressionJob | null): void {
    const { bodyBytes } = this.#source;
    const id = Buffer.from(this.#reply.id ?? "null");
    const sizeBytes =
      this.#isVerbatim && bodyBytes !== null ? bodyBytes - WIRE_ID_BYTES + id.length : null;
    if (job !== null)
      this.#out = this.#compressed = job.body(this.#compressedSink(), () => this.#progress++);
    this.#exchange.begin(headers, job === null ? sizeBytes : null);
    this.#out.write(renderStreamHead(id, this.#isVerbatim ? this.#source : null), nothing);
    this.#watchStall();
    this.#source.flow(this);
  }

  data(chunk: Buffer, borrowed: boolean): boolean {
    this.#progress++;
    if (chunk.length === 0) return true;
    // Of memory that it lies in, a small part of it keeps all.
    const bytes = borrowed ? chunk.buffer.byteLength : chunk.length;
    let kept = false;
    let counted = false;
    const unsent = this.#out.write(chunk, () => {
      this.#progress++;
      if (counted) this.#room.giveBack(bytes);
      if (kept && borrowed) this.#source.recycle(chunk);
    });
    if (unsent > UNSENT_BYTES) this.#pause();
    kept = unsent > 0;
    counted = kept && this.#room.take(bytes);
    if (kept && !counted) this.#cutOff("no room in memory for what its reader leaves lying", true);
    return !kept;
  }

  end(last: Buffer, valueBytes: number, borrowed: boolean): void {
    const written = borrowed ? () => this.#source.recycle(last) : nothing;
    if (this.#compressed === null) this.#exchange.cork();
    this.#out.write(this.#isVerbatim ? last : last.subarray(0, valueBytes), written);
    if (!this.#isVerbatim) this.#out.write(closing(this.#evidence()), nothing);
    this.#isComplete = true;
    // What is compressed has yet to be read: `close` ends the watch.
    if (this.#compressed === null) this.#stall?.clear();
    this.#out.end();
  }

  /**
   * Cuts the answer off. Nobody pays for half of one, unless its reader held it up, who has left it
   * then.
   */
  broken(message: string, byReader = false): void {
    this.#settle(byReader);
    this.#parts.observer.log.warn(
      { request_id: this.#exchange.requestId, reason: message },
      "answer cut off",
    );
    this.#exchange.destroy();
  }

  /** The request is over: stops the provider, the compression and the watch. */
  close(): void {
    this.#stall?.clear();
    this.#compressed?.abandon();
    this.#cut();
  }

  /** Where compressed bytes go. Compression that fails cuts the answer, which then is free. */
  #compressedSink(): BodySink {
    const exchange = this.#exchange;
    return {
      write: (chunk, written) => exchange.write(chunk, written),
      end: () => exchange.end(),
      drained: (run) => exchange.drained(run),
      destroy: () => this.broken("the answer could not be compressed"),
    };
  }

  #cut(): void {
    if (!this.#isComplete) this.#source.cut();
    this.#isComplete = true;
  }

  #evidence() {
    return this.#reply.target.meta === "body"
      ? evidenceOfReply(this.#reply, this.#parts.runtime.now())
      : null;
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
      // That a provider gets on is watched where it is read.
      const isWaiting = this.#compressed === null && !this.#isPaused && this.#exchange.unsent === 0;
      if (isWaiting || this.#progress !== before) return this.#watchStall();
      this.#cutOff("no progress", this.#isPaused || this.#exchange.unsent > 0);
    });
  }

  /**
   * Stops the provider as well. A reader that does not take what lies ready has left: otherwise all
   * but the end of an answer would be free.
   */
  #cutOff(message: string, byReader: boolean): void {
    this.#cut();
    this.broken(message, byReader);
  }
}

function nothing(): void {}
