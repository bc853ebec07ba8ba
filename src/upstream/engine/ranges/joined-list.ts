// The answer of a split call: the elements of its parts, in order, as the bytes of one list. A
// short one is handed over whole; a long one streams while further parts arrive. Counts the memory
// of what waits. Parses nothing.
import { WIRE_ID_BYTES } from "../../../core/rpc/wire-request.ts";
import type { AnswerStream, MemoryShare, StreamSink } from "../../transport.ts";

/** Up to this size an answer is held whole, so that a failure can still be told as one. */
const HELD_BYTES = 131_072;

/** What a joined list works with. */
export interface JoinedListParts {
  /** Memory in which waiting bytes count; absent = they count nowhere. */
  readonly room: MemoryShare | undefined;
  /** Called when a slow reader has caught up. */
  readonly drained: () => void;
  /** Called when the reader has left. */
  readonly left: () => void;
}

/** A list that is put together. */
export class JoinedList implements AnswerStream {
  readonly head = HEAD;
  readonly idAt = ID_AT;
  readonly bodyBytes = null;
  /** Waiting bytes: of parts that are not due, and of due parts that were not passed on. */
  heldBytes = 0;
  readonly #parts: JoinedListParts;
  /** What is due, and was not passed on; each with the memory that it holds. */
  #due: { readonly bytes: Buffer; readonly heldBytes: number }[] = [];
  #dueBytes = 0;
  #isEmpty = true;
  /** Its reader keeps it waiting. */
  isPaused = false;
  #isComplete = false;
  #broken: Parameters<StreamSink["broken"]> | null = null;
  #sink: StreamSink | null = null;

  constructor(parts: JoinedListParts) {
    this.#parts = parts;
  }

  /** Whether so much is due that it is passed on before the rest is here. */
  get isLong(): boolean {
    return this.#dueBytes > HELD_BYTES;
  }

  /** Takes room for a part that waits. False = there is none. */
  hold(bytes: number): boolean {
    if (this.#parts.room?.take(bytes) === false) return false;
    this.heldBytes += bytes;
    return true;
  }

  /** Releases the room of a part that waited. */
  giveUp(bytes: number): void {
    this.heldBytes -= bytes;
    this.#parts.room?.giveBack(bytes);
  }

  /** Adds the elements of the next part, without brackets; `heldBytes` were held for it. */
  add(elements: Buffer, heldBytes: number): void {
    if (elements.length === 0) return this.giveUp(heldBytes);
    this.#push(this.#isEmpty ? OPEN : COMMA, 0);
    this.#isEmpty = false;
    this.#push(elements, heldBytes);
    this.#flow();
  }

  /** The whole list, which waited for its end. Its room is released: its reader takes room. */
  whole(): Buffer {
    const list = Buffer.concat([
      ...(this.#isEmpty ? [OPEN] : this.#due.map(({ bytes }) => bytes)),
      CLOSE_LIST,
    ]);
    this.release();
    return list;
  }

  /** No part follows: ends the stream. */
  complete(): void {
    this.#isComplete = true;
    this.#flow();
  }

  /** The rest cannot be had: the stream breaks off. */
  break(...why: Parameters<StreamSink["broken"]>): void {
    this.#broken = why;
    this.#due = [];
    this.release();
    this.#sink?.broken(...why);
  }

  /** Releases all room. */
  release(): void {
    this.giveUp(this.heldBytes);
    this.#due = [];
    this.#dueBytes = 0;
  }

  flow(sink: StreamSink): void {
    this.#sink = sink;
    if (this.#broken === null) this.#flow();
    else sink.broken(...this.#broken);
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    this.#flow();
    this.#parts.drained();
  }

  recycle(): void {}

  cut(): void {
    this.#sink = null;
    this.release();
    this.#parts.left();
  }

  #push(bytes: Buffer, heldBytes: number): void {
    this.#due.push({ bytes, heldBytes });
    this.#dueBytes += bytes.length;
  }

  /** Passes on what is due, as far as the reader takes it. */
  #flow(): void {
    const sink = this.#sink;
    if (sink === null) return;
    while (!this.isPaused) {
      const next = this.#due.shift();
      if (next === undefined) break;
      this.#dueBytes -= next.bytes.length;
      // From here on the sink counts it.
      this.giveUp(next.heldBytes);
      sink.data(next.bytes, false);
    }
    if (!this.#isComplete || this.#due.length > 0 || this.isPaused) return;
    this.#isComplete = false;
    sink.end(this.#isEmpty ? EMPTY : END, this.#isEmpty ? EMPTY.length - 1 : 1, false);
  }
}

const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE_LIST = Buffer.from("]");
const END = Buffer.from("]}");
const EMPTY = Buffer.from("[]}");
const BEFORE_ID = '{"jsonrpc":"2.0","id":';
const ID_AT = BEFORE_ID.length;
/** The envelope before the list; the caller's id takes the place of the zeros. */
const HEAD = Buffer.from(`${BEFORE_ID}${"0".repeat(WIRE_ID_BYTES)},"result":`);
