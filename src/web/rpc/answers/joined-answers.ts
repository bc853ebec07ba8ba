// Joins the answers to the items of a batch to one JSON array. Short ones are copied once, each
// under its caller's id, into memory that is written in one piece; long ones are passed on as they
// are.
import { CLOSE_ARRAY, COMMA, OPEN_ARRAY } from "../../../core/rpc/json.ts";
import { WIRE_ID_BYTES } from "../../../core/rpc/wire-request.ts";
import type { Pieces } from "../../http/respond.ts";
import type { Evidence } from "./evidence.ts";
import { isAscii, NEAR_BYTES, renderReply } from "./render-reply.ts";
import type { Reply } from "./reply.ts";

/** The answer to one item. */
export type ItemAnswer =
  /** A provider's short answer, whose id at `idAt` is replaced when it is joined. */
  | {
      readonly kind: "envelope";
      readonly bytes: number;
      readonly body: Buffer;
      readonly idAt: number;
      readonly id: string;
    }
  | { readonly kind: "pieces"; readonly bytes: number; readonly pieces: readonly Buffer[] };

/** The answer of a reply; `meta` is added as `svc_meta`. */
export function itemAnswerOf(reply: Reply, meta: Evidence | null): ItemAnswer {
  const { outcome, id } = reply;
  if (outcome.kind === "result" && meta === null && id !== null) {
    const { body, idAt } = outcome;
    const isShort = body.length <= SHORT_PIECE_BYTES && id.length <= NEAR_BYTES;
    if (isShort && idAt !== null && idAt <= NEAR_BYTES && isAscii(id))
      return { kind: "envelope", bytes: body.length - WIRE_ID_BYTES + id.length, body, idAt, id };
  }
  const pieces = renderReply(reply, meta);
  return { kind: "pieces", bytes: pieces.reduce((sum, piece) => sum + piece.length, 0), pieces };
}

/** The answers of one batch, which come in any order, as one array. */
export class JoinedAnswers {
  /** By place; undefined = it has not come, null = there is none, or it was written. */
  readonly #answers: (ItemAnswer | null | undefined)[] = [];
  readonly #items: number;
  #writer: PieceWriter | null = null;
  /** The first place that was not written. */
  #next = 0;
  #separator = OPEN_ARRAY;

  constructor(items: number) {
    this.#items = items;
  }

  /**
   * Takes the answer at a place; null = it has none. Of a long batch what can be is written at
   * once: answers that wait by themselves outlive many collections of garbage.
   */
  put(place: number, answer: ItemAnswer | null): void {
    this.#answers[place] = answer;
    if (this.#items <= SHORT_BATCH_ITEMS || place !== this.#next) return;
    this.#writer ??= new PieceWriter(FIRST_BYTES);
    this.#write(this.#writer);
  }

  /** The array, once all have come; null = no item has an answer. */
  end(): Pieces {
    const writer = this.#writer ?? new PieceWriter(this.#copiedBytes());
    this.#write(writer);
    if (this.#separator === OPEN_ARRAY) return null;
    writer.addByte(CLOSE_ARRAY);
    return writer.end();
  }

  #copiedBytes(): number {
    let bytes = 1;
    for (const answer of this.#answers) if (answer) bytes += 1 + copiedOf(answer);
    return bytes;
  }

  /** Writes what is there in order. */
  #write(writer: PieceWriter): void {
    for (; this.#next < this.#answers.length; this.#next++) {
      const answer = this.#answers[this.#next];
      if (answer === undefined) return;
      this.#answers[this.#next] = null;
      if (answer === null) continue;
      writer.addByte(this.#separator);
      this.#separator = COMMA;
      if (answer.kind === "envelope") writer.addEnvelope(answer);
      else for (const piece of answer.pieces) writer.add(piece);
    }
  }
}

/** Batches up to this size are written when all answers are there. */
const SHORT_BATCH_ITEMS = 64;

function copiedOf(answer: ItemAnswer): number {
  if (answer.kind === "envelope") return answer.bytes;
  let bytes = 0;
  for (const { length } of answer.pieces) if (length <= SHORT_PIECE_BYTES) bytes += length;
  return bytes;
}

/**
 * Pieces up to this size are copied together, because each write has a cost; the second constant
 * bounds the size of the result.
 */
const SHORT_PIECE_BYTES = 4_096;
const GATHERED_BYTES = 65_536;
const FIRST_BYTES = 4_096;

/** Writes short pieces together. */
class PieceWriter {
  readonly #pieces: Buffer[] = [];
  #memory: Buffer;
  /** Where what was not passed on yet begins and ends. */
  #start = 0;
  #end = 0;
  #copied = 0;

  /** `expectedBytes`: how many are copied at least. */
  constructor(expectedBytes: number) {
    this.#memory = Buffer.allocUnsafe(Math.min(expectedBytes, GATHERED_BYTES));
  }

  addByte(byte: number): void {
    const at = this.#take(1);
    this.#memory[at] = byte;
  }

  addEnvelope({ body, idAt, id, bytes }: Extract<ItemAnswer, { kind: "envelope" }>): void {
    const at = this.#take(bytes);
    const memory = this.#memory;
    for (let n = 0; n < idAt; n++) memory[at + n] = body[n] ?? 0;
    for (let n = 0; n < id.length; n++) memory[at + idAt + n] = id.charCodeAt(n);
    body.copy(memory, at + idAt + id.length, idAt + WIRE_ID_BYTES);
  }

  add(piece: Buffer): void {
    if (piece.length <= SHORT_PIECE_BYTES) {
      const at = this.#take(piece.length);
      this.#memory.set(piece, at);
    } else {
      this.#pass();
      this.#pieces.push(piece);
    }
  }

  end(): readonly Buffer[] {
    this.#pass();
    return this.#pieces;
  }

  /** Where the next bytes are written. What is allocated is in proportion to what is written. */
  #take(bytes: number): number {
    if (this.#end + bytes > this.#memory.length) {
      this.#pass();
      const wanted = Math.max(FIRST_BYTES, Math.min(this.#copied, GATHERED_BYTES));
      this.#memory = Buffer.allocUnsafe(Math.max(bytes, wanted));
      this.#start = 0;
      this.#end = 0;
    }
    const at = this.#end;
    this.#end += bytes;
    this.#copied += bytes;
    return at;
  }

  #pass(): void {
    if (this.#end > this.#start) this.#pieces.push(this.#memory.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }
}
