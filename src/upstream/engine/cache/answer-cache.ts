// Kept answers in memory, bounded by their bytes: stores, finds, removes. Whether an answer may be
// kept or given is decided elsewhere. Keys and values are outside the heap of JavaScript, in
// segments that are filled one after the other: in the heap, long-lived garbage took more than what
// was kept. Makes room a segment at a time, oldest first; what was asked for since stays (second
// chance), so that a hit only marks its slot.
import type { Span } from "../../../core/rpc/json.ts";
import { type AnswerKey, AnswerSlots, type KeptFacts, NONE } from "./answer-slots.ts";

/** Of one value; never more than this share of the whole. */
export const MAX_VALUE_BYTES = 1_048_576;
const LARGEST_SHARE = 1 / 64;
/** So little that making room for the next one is not noticed. */
const SEGMENT_BYTES = 262_144;
/** Before each key in a segment: the slot, and the bytes up to the next one. */
const ENTRY_HEAD_BYTES = 8;
const LENGTH_AT = 4;
/** Up to this size a loop compares faster than a call to `Buffer.compare`. */
const SHORT_KEY_BYTES = 32;

/** A kept answer; valid until the next `set`. */
export class KeptAnswer {
  readonly slot: number;
  readonly facts: KeptFacts;
  /** Of its JSON. */
  readonly length: number;
  readonly #memory: Buffer;
  readonly #span: Span;

  constructor(slot: number, facts: KeptFacts, memory: Buffer, span: Span) {
    this.slot = slot;
    this.facts = facts;
    this.length = span.end - span.start;
    this.#memory = memory;
    this.#span = span;
  }

  /** The same answer, of which other things hold. */
  with(facts: KeptFacts): KeptAnswer {
    return new KeptAnswer(this.slot, facts, this.#memory, this.#span);
  }

  /** A copy of its JSON. */
  copy(): Buffer {
    const copy = Buffer.allocUnsafe(this.length);
    this.copyTo(copy, 0);
    return copy;
  }

  /** Copies its JSON to a place in other memory. */
  copyTo(memory: Buffer, at: number): void {
    this.#memory.copy(memory, at, this.#span.start, this.#span.end);
  }
}

/** Answers by their keys, within a number of bytes. */
export class AnswerCache {
  readonly #maxBytes: () => number;
  readonly #slots = new AnswerSlots();
  /** Oldest first; the last one is being filled. */
  readonly #segments: Segment[] = [];
  /** By their numbers; null = given up. */
  readonly #numbered: (Segment | null)[] = [];
  readonly #freeNumbers: number[] = [];
  /**
   * The memory of an emptied segment, for the next one; null = none. If it were given up each time,
   * as much again would wait for V8 to collect it.
   */
  #spare: Buffer | null = null;
  /** With the spare one. */
  #segmentBytes = 0;
  #size = 0;
  #evicted = 0;

  constructor(maxBytes: () => number) {
    this.#maxBytes = maxBytes;
  }

  /** The memory that it takes, whether all of it is used or not. */
  get bytes(): number {
    return this.#segmentBytes + this.#slots.bytes;
  }

  get size(): number {
    return this.#size;
  }

  /** How many were removed to make room. */
  get evicted(): number {
    return this.#evicted;
  }

  /** Whether a value of this size may be kept. */
  hasRoomFor(valueBytes: number): boolean {
    return valueBytes <= Math.min(MAX_VALUE_BYTES, this.#maxBytes() * LARGEST_SHARE);
  }

  get(key: AnswerKey): KeptAnswer | null {
    const slots = this.#slots;
    const slot = this.#find(key);
    const facts = slot === NONE ? null : slots.factsOf(slot);
    const segment = this.#numbered[slots.segmentOf(slot)] ?? null;
    if (facts === null || segment === null) return null;
    slots.want(slot);
    const start = slots.keyAt(slot) + slots.keyBytesOf(slot);
    const span = { start, end: start + slots.valueBytesOf(slot) };
    return new KeptAnswer(slot, facts, segment.memory, span);
  }

  /** Keeps a copy of the value, in place of what was kept under the key. */
  set(key: AnswerKey, facts: KeptFacts, value: Buffer, span: Span): void {
    const known = this.#find(key);
    if (known !== NONE) {
      if (this.#replace(known, facts, value, span)) return this.#shrink();
      this.#remove(known);
    }
    const segment = this.#segmentFor(bytesOf(key, span));
    const slot = segment === null ? NONE : this.#slots.take(key);
    if (segment === null || slot === NONE) return;
    this.#append({ segment, slot, key }, value, span);
    this.#slots.describe(slot, facts);
    this.#size++;
    this.#shrink();
  }

  /** Gives it no more. Its memory is used again for the next value of the key. */
  delete(key: AnswerKey): void {
    const slot = this.#find(key);
    if (slot !== NONE) this.#withdraw(slot);
  }

  /** The same of an answer that was just found. */
  withdraw({ slot }: KeptAnswer): void {
    this.#withdraw(slot);
  }

  /** Other things hold for an answer that was just found. */
  describe(kept: KeptAnswer, facts: KeptFacts): KeptAnswer {
    this.#slots.describe(kept.slot, facts);
    return kept.with(facts);
  }

  #withdraw(slot: number): void {
    if (!this.#slots.isLive(slot)) return;
    this.#slots.withdraw(slot);
    this.#size--;
  }

  /** The slot of a key; `NONE` = nothing is kept under it. */
  #find(key: AnswerKey): number {
    const slots = this.#slots;
    let slot = slots.first(key);
    while (slot !== NONE && !this.#hasKey(slot, key)) slot = slots.following(slot);
    return slot;
  }

  #hasKey(slot: number, { bytes, start, end }: AnswerKey): boolean {
    const slots = this.#slots;
    const segment = this.#numbered[slots.segmentOf(slot)] ?? null;
    if (segment === null || slots.keyBytesOf(slot) !== end - start) return false;
    const { memory } = segment;
    const at = slots.keyAt(slot);
    if (end - start > SHORT_KEY_BYTES)
      return memory.compare(bytes, start, end, at, at + end - start) === 0;
    for (let n = 0; n < end - start; n++) if (memory[at + n] !== bytes[start + n]) return false;
    return true;
  }

  /** Puts another value in the place of one; false = it is too long for that. */
  #replace(slot: number, facts: KeptFacts, value: Buffer, { start, end }: Span): boolean {
    const slots = this.#slots;
    const segment = this.#numbered[slots.segmentOf(slot)] ?? null;
    if (segment === null || !slots.fits(slot, end - start)) return false;
    value.copy(segment.memory, slots.keyAt(slot) + slots.keyBytesOf(slot), start, end);
    if (!slots.isLive(slot)) this.#size++;
    slots.describe(slot, facts);
    return true;
  }

  #append({ segment, slot, key }: Placing, value: Buffer, span: Span): void {
    const { memory, used } = segment;
    const at = used + ENTRY_HEAD_BYTES;
    const keyBytes = key.end - key.start;
    key.bytes.copy(memory, at, key.start, key.end);
    value.copy(memory, at + keyBytes, span.start, span.end);
    memory.writeUInt32LE(slot, used);
    const bytes = bytesOf(key, span);
    memory.writeUInt32LE(bytes, used + LENGTH_AT);
    segment.used += bytes;
    const valueBytes = span.end - span.start;
    this.#slots.place(slot, { segment: segment.number, at, keyBytes, valueBytes });
  }

  /** Comes back within the bytes, which may be fewer since a reload. */
  #shrink(): void {
    for (let left = 2 * this.#segments.length; left > 0 && this.#isOver(0); left--) {
      this.#giveUpSpare();
      if (this.#isOver(0) && this.#turnOldest()?.used === 0) this.#dropNewest();
    }
  }

  #isOver(further: number): boolean {
    return this.bytes + further > this.#maxBytes();
  }

  /** A segment with room for an entry; null = there is none. */
  #segmentFor(entryBytes: number): Segment | null {
    const filling = this.#segments.at(-1);
    if (filling !== undefined && hasRoom(filling, entryBytes)) return filling;
    const usual = Math.min(SEGMENT_BYTES, Math.floor(this.#maxBytes() * LARGEST_SHARE));
    const bytes = Math.max(usual, entryBytes);
    const spare = this.#spare;
    if (spare !== null && spare.length >= bytes) {
      this.#spare = null;
      return this.#addSegment(spare);
    }
    this.#giveUpSpare();
    // What is passed over is wanted no more, so that all have had their chance after one turn.
    for (let left = 2 * this.#segments.length; left > 0 && this.#isOver(bytes); left--) {
      const turned = this.#turnOldest();
      if (turned === null || hasRoom(turned, entryBytes)) return turned;
      if (turned.used === 0) this.#dropNewest();
      // It is too short for this entry.
      this.#giveUpSpare();
    }
    if (this.#isOver(bytes)) return null;
    this.#segmentBytes += bytes;
    return this.#addSegment(Buffer.allocUnsafeSlow(bytes));
  }

  #addSegment(memory: Buffer): Segment {
    const number = this.#freeNumbers.pop() ?? this.#numbered.length;
    const segment = { number, memory, used: 0 };
    this.#numbered[number] = segment;
    this.#segments.push(segment);
    return segment;
  }

  /** Makes room in the oldest segment, which is the newest from then on. */
  #turnOldest(): Segment | null {
    const oldest = this.#segments.shift();
    if (oldest === undefined) return null;
    this.#keepWanted(oldest);
    this.#segments.push(oldest);
    return oldest;
  }

  /** Keeps the memory of the newest segment, which holds nothing, for another one. */
  #dropNewest(): void {
    this.#giveUpSpare();
    const newest = this.#segments.pop();
    if (newest === undefined) return;
    this.#numbered[newest.number] = null;
    this.#freeNumbers.push(newest.number);
    this.#spare = newest.memory;
  }

  #giveUpSpare(): void {
    this.#segmentBytes -= this.#spare?.length ?? 0;
    this.#spare = null;
  }

  /** Removes what nobody has asked for, and moves the rest to the beginning of the segment. */
  #keepWanted(segment: Segment): void {
    const { number, memory, used } = segment;
    const slots = this.#slots;
    segment.used = 0;
    let next = 0;
    for (let from = 0; from < used; from = next) {
      const slot = memory.readUInt32LE(from);
      next = from + memory.readUInt32LE(from + LENGTH_AT);
      // Where another value has replaced it, its slot is elsewhere.
      if (!slots.isAt(slot, number, from + ENTRY_HEAD_BYTES)) continue;
      if (slots.takeWanted(slot)) this.#moveDown(segment, slot, from);
      else this.#evict(slot);
    }
  }

  /** Moves an entry to where the segment is free, which is before it or where it is. */
  #moveDown(segment: Segment, slot: number, from: number): void {
    const { number, memory, used } = segment;
    const keyBytes = this.#slots.keyBytesOf(slot);
    const valueBytes = this.#slots.valueBytesOf(slot);
    const bytes = ENTRY_HEAD_BYTES + keyBytes + valueBytes;
    memory.copyWithin(used, from, from + bytes);
    memory.writeUInt32LE(bytes, used + LENGTH_AT);
    segment.used += bytes;
    this.#slots.place(slot, { segment: number, at: used + ENTRY_HEAD_BYTES, keyBytes, valueBytes });
  }

  #evict(slot: number): void {
    if (this.#slots.isLive(slot)) this.#evicted++;
    this.#remove(slot);
  }

  #remove(slot: number): void {
    if (this.#slots.isLive(slot)) this.#size--;
    this.#slots.free(slot);
  }
}

/** Memory for keys and values in a row. */
interface Segment {
  readonly number: number;
  readonly memory: Buffer;
  used: number;
}

/** Where an answer is to be kept, and under which key. */
interface Placing {
  readonly segment: Segment;
  readonly slot: number;
  readonly key: AnswerKey;
}

function bytesOf(key: AnswerKey, value: Span): number {
  return ENTRY_HEAD_BYTES + key.end - key.start + value.end - value.start;
}

function hasRoom({ memory, used }: Segment, entryBytes: number): boolean {
  return memory.length - used >= entryBytes;
}
