// Kept answers in memory, bounded by their bytes: stores, finds, removes. Whether an answer may be
// kept or given is decided elsewhere. Keys and values lie in segments that are filled one after the
// other: in the heap of JavaScript, long-lived garbage took more than what was kept. Makes room a
// segment at a time, oldest first; what was asked for since stays (second chance), so that a hit
// only marks its entry.
import type { Span } from "../../../core/rpc/json.ts";
import {
  type AnswerKey,
  AnswerSegment,
  entryBytes,
  HASH,
  type KeptFacts,
  NEXT,
  SPACE,
  wholeNumbers,
} from "./answer-segment.ts";

/** Of one value; never more than this share of the whole. */
export const MAX_VALUE_BYTES = 1_048_576;
const LARGEST_SHARE = 1 / 64;
/** So little that making room for the next one is not noticed. */
const SEGMENT_BYTES = 262_144;
/** What is counted for the objects that an entry refers to. */
const OBJECT_BYTES = 48;
/** The address of an entry: so many for each segment. */
const SEGMENT_ADDRESSES = 2 ** 24;
const NONE = -1;
const LEAST_BUCKETS = 16;
/** Further answers with hashes of one bucket are not kept: finding them would take too long. */
const MAX_CHAIN = 64;

/** A kept answer; valid until the next `set`. */
export class KeptAnswer {
  readonly segment: AnswerSegment;
  /** Where its entry begins. */
  readonly at: number;
  readonly facts: KeptFacts;
  /** Of its JSON. */
  readonly length: number;
  readonly #span: Span;

  constructor(segment: AnswerSegment, at: number, facts: KeptFacts) {
    this.segment = segment;
    this.at = at;
    this.facts = facts;
    this.#span = segment.valueOf(at);
    this.length = this.#span.end - this.#span.start;
  }

  /** A copy of its JSON. */
  copy(): Buffer {
    const copy = Buffer.allocUnsafe(this.length);
    this.copyTo(copy, 0);
    return copy;
  }

  /** Copies its JSON to a place in other memory. */
  copyTo(memory: Buffer, at: number): void {
    this.segment.memory.copy(memory, at, this.#span.start, this.#span.end);
  }
}

/** Answers by their keys, within a number of bytes. */
export class AnswerCache {
  readonly #maxBytes: () => number;
  /** Oldest first; the last one is being filled. */
  readonly #segments: AnswerSegment[] = [];
  /** By their numbers; null = given up. */
  readonly #numbered: (AnswerSegment | null)[] = [];
  readonly #freeNumbers: number[] = [];
  /**
   * The memory of an emptied segment, for the next one; null = none. If it were given up each time,
   * as much again would wait for V8 to collect it.
   */
  #spare: Buffer | null = null;
  /** With the spare one. */
  #segmentBytes = 0;
  /** The address of the first entry of each chain. */
  #buckets = new Float64Array(LEAST_BUCKETS).fill(NONE);
  /** Entries that can be found, and the most that ever could. */
  #linked = 0;
  #mostLinked = 0;
  size = 0;
  /** How many were removed to make room. */
  evicted = 0;

  constructor(maxBytes: () => number) {
    this.#maxBytes = maxBytes;
  }

  /** The memory that it takes, whether all of it is used or not. */
  get bytes(): number {
    return this.#segmentBytes + this.#buckets.byteLength + this.#mostLinked * OBJECT_BYTES;
  }

  /** Whether a value of this size may be kept. */
  hasRoomFor(valueBytes: number): boolean {
    return valueBytes <= Math.min(MAX_VALUE_BYTES, this.#maxBytes() * LARGEST_SHARE);
  }

  get(key: AnswerKey): KeptAnswer | null {
    const address = this.#find(key);
    const segment = this.#segmentOf(address);
    const at = address % SEGMENT_ADDRESSES;
    const facts = segment?.factsOf(at) ?? null;
    return segment === null || facts === null ? null : new KeptAnswer(segment, at, facts);
  }

  /** Keeps a copy of the value, in place of what was kept under the key. */
  set(key: AnswerKey, facts: KeptFacts, value: Buffer, span: Span): void {
    const known = this.#find(key);
    if (known !== NONE) {
      if (this.#replace(known, facts, value, span)) return this.#shrink();
      this.#remove(known);
    }
    if (this.#isChainFull(key)) return;
    const segment = this.#segmentFor(entryBytes(key.end - key.start, span.end - span.start));
    if (segment === null) return;
    const at = segment.append(key, facts, value, span);
    if (this.#linked >= this.#buckets.length) this.#grow();
    else this.#link(segment, at);
    this.size++;
    this.#shrink();
  }

  /** Gives an answer no more. Its memory is used again for the next value of the key. */
  withdraw({ segment, at }: KeptAnswer): void {
    if (!segment.isLive(at)) return;
    segment.withdraw(at);
    this.size--;
  }

  /** Other things hold for an answer that was just found. */
  describe({ segment, at }: KeptAnswer, facts: KeptFacts): KeptAnswer {
    segment.describe(at, facts);
    return new KeptAnswer(segment, at, facts);
  }

  /** The address of the entry of a key; `NONE` = nothing is kept under it. */
  #find(key: AnswerKey): number {
    let address = this.#buckets[this.#bucketOf(key.hash, key.space)] ?? NONE;
    for (
      let segment = this.#segmentOf(address);
      segment !== null;
      segment = this.#segmentOf(address)
    ) {
      const at = address % SEGMENT_ADDRESSES;
      if (segment.hasKey(at, key)) return address;
      address = segment.read(at, NEXT);
    }
    return NONE;
  }

  #segmentOf(address: number): AnswerSegment | null {
    return this.#numbered[Math.floor(address / SEGMENT_ADDRESSES)] ?? null;
  }

  #bucketOf(hash: number, space: number): number {
    const mixed = Math.imul(hash ^ Math.imul(space, 0x9e3779b1), 0x85ebca6b);
    return (mixed ^ (mixed >>> 15)) & (this.#buckets.length - 1);
  }

  #isChainFull({ hash, space }: AnswerKey): boolean {
    let length = 0;
    let address = this.#buckets[this.#bucketOf(hash, space)] ?? NONE;
    for (; address !== NONE && length < MAX_CHAIN; length++)
      address = this.#segmentOf(address)?.read(address % SEGMENT_ADDRESSES, NEXT) ?? NONE;
    return length === MAX_CHAIN;
  }

  #link(segment: AnswerSegment, at: number): void {
    const bucket = this.#bucketOf(segment.read(at, HASH), segment.read(at, SPACE));
    segment.write(at, NEXT, this.#buckets[bucket] ?? NONE);
    this.#buckets[bucket] = segment.number * SEGMENT_ADDRESSES + at;
    this.#linked++;
    this.#mostLinked = Math.max(this.#mostLinked, this.#linked);
  }

  #unlink(segment: AnswerSegment, at: number): void {
    const unlinked = segment.number * SEGMENT_ADDRESSES + at;
    const bucket = this.#bucketOf(segment.read(at, HASH), segment.read(at, SPACE));
    const next = segment.read(at, NEXT);
    this.#linked--;
    let address = this.#buckets[bucket] ?? NONE;
    if (address === unlinked) this.#buckets[bucket] = next;
    while (address !== NONE && address !== unlinked) {
      const before = this.#segmentOf(address);
      const beforeAt = address % SEGMENT_ADDRESSES;
      address = before?.read(beforeAt, NEXT) ?? NONE;
      if (address === unlinked) before?.write(beforeAt, NEXT, next);
    }
  }

  /** Twice the buckets, so that chains stay short. */
  #grow(): void {
    this.#buckets = new Float64Array(2 * this.#buckets.length).fill(NONE);
    this.#linked = 0;
    for (const segment of this.#segments)
      for (const at of segment.entries()) this.#link(segment, at);
  }

  /** Puts another value in the place of one; false = it is too long for that. */
  #replace(address: number, facts: KeptFacts, value: Buffer, span: Span): boolean {
    const segment = this.#segmentOf(address);
    const at = address % SEGMENT_ADDRESSES;
    const wasLive = segment?.isLive(at) === true;
    if (segment?.replace(at, facts, value, span) !== true) return false;
    if (!wasLive) this.size++;
    return true;
  }

  #remove(address: number): void {
    const segment = this.#segmentOf(address);
    const at = address % SEGMENT_ADDRESSES;
    if (segment === null) return;
    if (segment.isLive(at)) this.size--;
    this.#unlink(segment, at);
    segment.free(at);
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
  #segmentFor(wanted: number): AnswerSegment | null {
    const filling = this.#segments.at(-1);
    if (filling?.hasRoom(wanted) === true) return filling;
    const usual = Math.min(SEGMENT_BYTES, this.#maxBytes() * LARGEST_SHARE);
    const bytes = Math.max(wholeNumbers(usual), wanted);
    const spare = this.#spare;
    if (spare !== null && spare.length >= bytes) {
      this.#spare = null;
      return this.#addSegment(spare);
    }
    this.#giveUpSpare();
    // What is passed over is wanted no more, so that all have had their chance after one turn.
    for (let left = 2 * this.#segments.length; left > 0 && this.#isOver(bytes); left--) {
      const turned = this.#turnOldest();
      if (turned === null || turned.hasRoom(wanted)) return turned;
      if (turned.used === 0) this.#dropNewest();
      // It is too short for this entry.
      this.#giveUpSpare();
    }
    if (this.#isOver(bytes)) return null;
    this.#segmentBytes += bytes;
    return this.#addSegment(Buffer.allocUnsafeSlow(bytes));
  }

  #addSegment(memory: Buffer): AnswerSegment {
    const number = this.#freeNumbers.pop() ?? this.#numbered.length;
    const segment = new AnswerSegment(number, memory);
    this.#numbered[number] = segment;
    this.#segments.push(segment);
    return segment;
  }

  /** Removes what nobody has asked for from the oldest segment, which is the newest then. */
  #turnOldest(): AnswerSegment | null {
    const oldest = this.#segments.shift();
    if (oldest === undefined) return null;
    this.#segments.push(oldest);
    oldest.turn(
      (at) => {
        this.#unlink(oldest, at);
        if (oldest.takeWanted(at)) return true;
        if (!oldest.isLive(at)) return false;
        this.evicted++;
        this.size--;
        return false;
      },
      (at) => this.#link(oldest, at),
    );
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
}
