// Several requests to a provider as one batch over HTTP, and the reading of its answer: an array in
// any order, cut while it arrives, each element matched by its id and judged like a single answer.
// What follows where the provider refused the batch, or left calls out, is its listener's business.
import { isUtf8 } from "node:buffer";
import { readAnswer, readError, readLongResult } from "../../core/rpc/answer.ts";
import { ArrayCutter } from "../../core/rpc/answer-array.ts";
import { type Failure, plainFailure } from "../../core/rpc/failure.ts";
import { readSocketMessage } from "../../core/rpc/socket-message.ts";
import type { Timer } from "../timer-wheel.ts";
import type { BatchEnding, BatchListener, Dispatch, MemoryShare } from "../transport.ts";
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
import { SLAB_ANSWER_BYTES } from "./buffer-pool.ts";
import type { DispatchControl, RequestHandler } from "./connections.ts";
import type { AnswerParts } from "./dispatch.ts";
import { GatheredBody } from "./gathered-body.ts";

/** The answer that is expected. */
export interface ExpectedBatch {
  /** The ids of the calls, by their places. */
  readonly wireIds: readonly string[];
  /** Whether the answer to a call may be in borrowed memory, by place. */
  readonly mayBorrow: readonly boolean[];
  /** The room that an element counts toward while it is gathered. */
  readonly room: MemoryShare;
  /** Longest answer to the whole batch. */
  readonly maxAnswerBytes: number;
  /**
   * Called when an answer belongs to something else and its connection may already be in use again.
   */
  readonly distrust: () => void;
}

/** Longest answer to one call of a batch: a longer one is asked for alone, where it is streamed. */
export const MAX_ELEMENT_BYTES = 1_048_576;
/** Most elements that are read of an answer, as a multiple of its calls. */
const MOST_ELEMENTS = 4;
/** How long the end of an answer may take once every call has its own. */
const LINGER_MS = 1_000;

/** One batch in flight. */
export class HttpBatch implements RequestHandler, Dispatch {
  sent = false;
  queued = false;
  onOver: () => void = NOTHING;
  readonly keepsChunks = false;
  readonly #expected: ExpectedBatch;
  readonly #listener: BatchListener;
  readonly #parts: AnswerParts;
  /** Places by id; those that were answered stay. */
  readonly #places: ReadonlyMap<string, number>;
  readonly #cutter = new ArrayCutter();
  #controller: DispatchControl | null = null;
  #isOver = false;
  #status = 0;
  #retryAfter: string | null = null;
  #size = 0;
  #elements = 0;
  /** Elements that were too long to be held, and did not begin with their id. */
  #passedOver = 0;
  /** What has arrived of an element, or of a body that is no array. */
  #gathered: GatheredBody | null = null;
  /** The rest of the element is passed over, since it is too long. */
  #isPassing = false;
  /** Something in the answer belongs to none of the calls. */
  #isForeign = false;
  /** An error without an id: it is about the calls that have no answer of their own. */
  #unowned: Failure | null = null;
  #linger: Timer | null = null;
  /** Tells the listener what a body was that is no array; null = it is not complete. */
  #tell: (() => void) | null = null;

  constructor(expected: ExpectedBatch, listener: BatchListener, parts: AnswerParts) {
    this.#expected = expected;
    this.#listener = listener;
    this.#parts = parts;
    this.#places = new Map(expected.wireIds.map((id, place) => [id, place]));
  }

  get abandoned(): boolean {
    return this.#isOver;
  }

  onRequestStart(controller: DispatchControl): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(CANCELLED, this);
    else this.sent = true;
  }

  onResponseStart(_controller: DispatchControl, status: number, headers: AnswerHeaders): void {
    if (status < 200) return;
    this.#status = status;
    this.#retryAfter = retryAfterIn(headers);
    if (isEncoded(headers)) this.#fail("body", COMPRESSED);
  }

  onResponseData(_controller: DispatchControl, chunk: Buffer, last = false): boolean {
    if (this.#isOver) return true;
    this.#size += chunk.length;
    if (this.#size > this.#expected.maxAnswerBytes) {
      this.#fail("body", "the answer is too long");
      return true;
    }
    if (!last) this.#listener.heard();
    this.#cutter.take(chunk, (start, end, isLast) => this.#take(chunk, start, end, isLast));
    if (this.#isOver) return true;
    const { progress } = this.#cutter;
    const isBad = progress === "other" && !this.#add(chunk, MAX_ERROR_BYTES);
    if (progress === "malformed" || isBad) this.#fail("body", NO_ARRAY);
    else if (progress !== "other" && !last && !this.#listener.isWaiting) this.#endSoon();
    return true;
  }

  onResponseComplete(): boolean {
    // From here on the connection belongs to another request.
    this.#controller = null;
    if (!this.#isOver && this.#cutter.progress === "other") this.#tell = this.#readOther();
    return !this.#isForeign;
  }

  onResponseEnd(): void {
    this.#release();
    // undici does not ask.
    if (this.#controller !== null && !this.onResponseComplete()) this.#expected.distrust();
    if (this.#isOver) return;
    if (this.#tell !== null) return this.#tell();
    const { progress } = this.#cutter;
    if (progress === "closed") this.#end("answered", this.#unowned);
    else if (progress === "start") this.#fail("body", EMPTY_BODY);
    else this.#fail("body", NO_ARRAY);
  }

  onResponseError(_controller: DispatchControl | null, error: Error): void {
    this.#release();
    if (this.#isOver) return;
    const { kind, message, ...about } = connectionFailure(error, this.sent);
    this.#fail(kind, message, about);
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#letGo();
    this.#release();
    this.#controller?.abort(CANCELLED, this);
  }

  /** Takes a piece of an element. False = the batch is over. */
  #take(chunk: Buffer, start: number, end: number, isLast: boolean): boolean {
    const isWhole = isLast && this.#gathered === null && !this.#isPassing;
    if (isWhole) this.#read(chunk.subarray(start, end));
    else if (!this.#isPassing && !this.#add(chunk.subarray(start, end), MAX_ELEMENT_BYTES))
      this.#passOver();
    if (isLast && !isWhole) {
      if (!this.#isPassing && this.#gathered !== null) this.#read(this.#gathered.bytes);
      this.#isPassing = false;
      this.#drop();
    }
    return !this.#isOver;
  }

  /** Adds to what is gathered. False = it would be too long, or there is no room for it. */
  #add(piece: Buffer, mostBytes: number): boolean {
    this.#gathered ??= new GatheredBody(this.#parts.buffers, this.#expected.room);
    return (
      this.#gathered.bytes.length + piece.length <= mostBytes &&
      this.#gathered.add(piece, null, true)
    );
  }

  /** An element is too long to be held: its call is asked alone. */
  #passOver(): void {
    const place = this.#placeOf(this.#gathered?.bytes ?? NO_BYTES);
    this.#isPassing = true;
    this.#drop();
    if (place === null) this.#passedOver++;
    else this.#listener.tooLong(place);
  }

  /** Reads a complete element. */
  #read(element: Buffer): void {
    if (++this.#elements > MOST_ELEMENTS * this.#expected.wireIds.length)
      return this.#fail("body", "the answer to the batch has more elements than calls");
    const place = this.#placeOf(element);
    if (place === null) return this.#readUnowned(element);
    if (!this.#listener.isOpen(place)) {
      // Its caller has left, or it was answered before.
      this.#isForeign ||= this.#listener.isAnswered(place);
      return;
    }
    this.#answer(place, element);
  }

  /** The place of the call that an element answers, as far as it can be told; null = none. */
  #placeOf(element: Buffer): number | null {
    const message = readSocketMessage(element);
    return message.kind === "answer" ? (this.#places.get(message.id) ?? null) : null;
  }

  #answer(place: number, element: Buffer): void {
    const wireId = this.#expected.wireIds[place] ?? "";
    if (!isUtf8(element)) return this.#listener.failed(place, this.#failure("body", NO_TEXT), null);
    const answer = readLongResult(element, wireId) ?? readAnswer(element, wireId);
    switch (answer.kind) {
      case "result": {
        if (this.#status >= 300) {
          const message = `a result with HTTP status ${this.#status}`;
          return this.#listener.failed(place, this.#failure("body", message), null);
        }
        const { buffers } = this.#parts;
        const mayBorrow = this.#expected.mayBorrow[place] === true;
        return mayBorrow && element.length <= SLAB_ANSWER_BYTES
          ? this.#listener.result(place, buffers.copyOf(element), answer, buffers)
          : this.#listener.result(place, Buffer.from(element), answer);
      }
      case "error":
        return this.#answerError(place, element.subarray(answer.start, answer.end));
      case "bad":
        return this.#listener.failed(place, this.#failure("body", answer.message), null);
      case "foreign":
        this.#isForeign = true;
    }
  }

  #answerError(place: number, error: Buffer): void {
    const raw = Buffer.from(error);
    this.#listener.failed(place, { ...this.#failure("error", ""), ...readError(raw) }, raw);
  }

  /** Reads an element that names none of the calls: an error without an id is about all of them. */
  #readUnowned(element: Buffer): void {
    const answer = isUtf8(element) ? readAnswer(element, NO_ID) : null;
    if (answer?.kind !== "error") {
      this.#isForeign = true;
      return;
    }
    const error = readError(element.subarray(answer.start, answer.end));
    this.#unowned ??= { ...this.#failure("error", ""), ...error };
  }

  /**
   * Reads a body that is no array: an error about the whole batch, the answer to one call, or
   * neither.
   */
  #readOther(): () => void {
    const body = this.#gathered?.bytes ?? NO_BYTES;
    const place = this.#placeOf(body);
    const wireId = place === null ? NO_ID : (this.#expected.wireIds[place] ?? NO_ID);
    const answer = isUtf8(body) ? readAnswer(body, wireId) : null;
    if (answer?.kind === "error") {
      const error = readError(body.subarray(answer.start, answer.end));
      const failure = { ...this.#failure("error", ""), ...error };
      return () => this.#end("failed", failure);
    }
    this.#isForeign = answer?.kind === "foreign";
    if (place === null || this.#isForeign) {
      const message = this.#isForeign ? OTHER_ID : excerpt(body) || EMPTY_BODY;
      return () => this.#fail("body", message);
    }
    return () => {
      this.#read(body);
      if (!this.#isOver) this.#end("single", null);
    };
  }

  #failure(kind: Failure["kind"], message: string): Failure {
    const [httpStatus, retryAfter] = [this.#status, this.#retryAfter];
    return { ...plainFailure(kind, message), httpStatus, retryAfter };
  }

  /** Every call has its answer: the array must end soon. */
  #endSoon(): void {
    this.#linger ??= this.#parts.timerWheel.set(LINGER_MS, () => this.cancel());
  }

  #fail(
    kind: Failure["kind"],
    message: string,
    about: Pick<Failure, "crowded" | "incident"> = {},
  ): void {
    const failure = { ...this.#failure(kind, message), ...about };
    this.cancel();
    this.#end("failed", failure);
  }

  #end(kind: BatchEnding["kind"], failure: Failure | null): void {
    this.#letGo();
    this.#listener.over({ kind, failure, passedOver: this.#passedOver });
  }

  #letGo(): void {
    this.#isOver = true;
    this.#linger?.clear();
    this.#drop();
  }

  /** Returns the memory of what is gathered. */
  #drop(): void {
    this.#gathered?.release();
    this.#gathered = null;
  }

  #release(): void {
    const { onOver } = this;
    this.onOver = NOTHING;
    onOver();
  }
}

const NOTHING = (): void => {};
const NO_BYTES = Buffer.alloc(0);
/** No id on the wire is like this. */
const NO_ID = "";
const NO_ARRAY = "the answer to the batch is not a complete JSON array of objects";
const NO_TEXT = "the answer is not UTF-8";
