// Kept answers in memory, bounded by their bytes: stores, finds, removes. Whether an answer may be
// kept or given is decided elsewhere. Values are outside the heap of JavaScript, in segments that
// are filled one after the other: in the heap, long-lived garbage took more than what was kept.
// Makes room a segment at a time, oldest first; what was asked for since stays (second chance), so
// that a hit only marks its entry.
import type { Provider } from "../../core/provider/profile.ts";
import type { CacheTerms } from "../../core/routing/cache-terms.ts";
import type { Span } from "../../core/rpc/json.ts";

/** What one provider has told, as far as it may still be given: false = it may not. */
export interface ProviderTrust {
  trusted: boolean;
}

/** What is known of a kept answer. */
export interface KeptFacts {
  readonly provider: Provider;
  readonly trust: ProviderTrust;
  /** True = the value is the provider's error object. */
  readonly isError: boolean;
  /** When it was asked for (ms). */
  readonly askedAtMs: number;
  /** Until when it may be given (ms). */
  readonly endsAtMs: number;
  /** What must hold while it is given; changed when its block becomes final. */
  terms: CacheTerms;
}

/** A kept answer; valid until the next `set`. */
export interface KeptAnswer {
  readonly facts: KeptFacts;
  /** Of its JSON. */
  readonly length: number;
  /** A copy of its JSON. */
  copy(): Buffer;
  /** Copies its JSON to a place in other memory. */
  copyTo(memory: Buffer, at: number): void;
}

/**
 * What an entry takes in the heap beside its key. Its objects and its places in the map and in its
 * segment are 450 bytes; the rest is what V8 lets lie of those that are gone, and of the heap
 * around them, until it collects: measured as resident memory (`npm run bench -- --cache-memory`).
 */
const ENTRY_BYTES = 1_800;
/** The same of a character of its key. */
const KEY_CHAR_BYTES = 2;
/** Of one value; never more than this share of the whole. */
const MAX_VALUE_BYTES = 1_048_576;
const LARGEST_SHARE = 1 / 64;
/** So little that making room for the next one is not noticed. */
const SEGMENT_BYTES = 262_144;
/** A segment of very short values is full when its entries take this many times its memory. */
const MAX_HEAP_SHARE = 8;

/** Answers by their keys, within a number of bytes. */
export class AnswerCache {
  readonly #maxBytes: () => number;
  readonly #entries = new Map<string, Entry>();
  /** Oldest first; the last one is being filled. */
  readonly #segments: Segment[] = [];
  /**
   * The memory of an emptied segment, for the next one; null = none. If it were given up each time,
   * as much again would wait for V8 to collect it.
   */
  #spare: Buffer | null = null;
  /** With the spare one. */
  #segmentBytes = 0;
  #heapBytes = 0;
  #size = 0;
  #evicted = 0;

  constructor(maxBytes: () => number) {
    this.#maxBytes = maxBytes;
  }

  /** The memory that it takes, whether all of it is used or not. */
  get bytes(): number {
    return this.#segmentBytes + this.#heapBytes;
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

  get(key: string): KeptAnswer | null {
    const entry = this.#entries.get(key);
    if (entry === undefined || !entry.isLive) return null;
    entry.wanted = true;
    return entry;
  }

  /** Keeps a copy of the value, in place of what was kept under the key. */
  set(key: string, facts: KeptFacts, value: Buffer, span: Span): void {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      if (known.replace(facts, value, span)) return this.#revive(known);
      this.#remove(known);
    }
    const segment = this.#segmentFor(span.end - span.start);
    if (segment === null) return;
    const entry = new Entry(flat(key), facts, segment);
    entry.append(value, span);
    this.#entries.set(entry.key, entry);
    this.#heapBytes += entry.heapBytes;
    this.#size++;
    for (let left = 2 * this.#segments.length; left > 0 && this.#isOver(0); left--) {
      this.#giveUpSpare();
      if (this.#isOver(0) && this.#turnOldest()?.used === 0) this.#dropNewest();
    }
  }

  /** Gives it no more. Its memory is used again for the next value of the key. */
  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined || !entry.isLive) return;
    entry.isLive = false;
    this.#size--;
  }

  #revive(entry: Entry): void {
    if (!entry.isLive) this.#size++;
    entry.isLive = true;
  }

  #isOver(further: number): boolean {
    return this.bytes + further > this.#maxBytes();
  }

  /** A segment with room for a value; null = there is none. */
  #segmentFor(valueBytes: number): Segment | null {
    const filling = this.#segments.at(-1);
    if (filling !== undefined && hasRoom(filling, valueBytes)) return filling;
    const usual = Math.min(SEGMENT_BYTES, Math.floor(this.#maxBytes() * LARGEST_SHARE));
    const bytes = Math.max(usual, valueBytes);
    const spare = this.#spare;
    if (spare !== null && spare.length >= bytes) {
      this.#spare = null;
      return this.#addSegment(spare);
    }
    this.#giveUpSpare();
    // What is passed over is wanted no more, so that all have had their chance after one turn.
    for (let left = 2 * this.#segments.length; left > 0 && this.#isOver(bytes); left--) {
      const turned = this.#turnOldest();
      if (turned === null || hasRoom(turned, valueBytes)) return turned;
      if (turned.used === 0) this.#dropNewest();
      // It is too short for this value.
      this.#giveUpSpare();
    }
    if (this.#isOver(bytes)) return null;
    this.#segmentBytes += bytes;
    return this.#addSegment(Buffer.allocUnsafeSlow(bytes));
  }

  #addSegment(memory: Buffer): Segment {
    const segment = { memory, used: 0, heapBytes: 0, entries: [] };
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
    this.#spare = this.#segments.pop()?.memory ?? null;
  }

  #giveUpSpare(): void {
    this.#segmentBytes -= this.#spare?.length ?? 0;
    this.#spare = null;
  }

  /** Removes what nobody has asked for, and moves the rest to the beginning of the segment. */
  #keepWanted(segment: Segment): void {
    const { entries } = segment;
    segment.entries = [];
    segment.used = 0;
    segment.heapBytes = 0;
    for (const entry of entries) {
      if (entry.isRemoved) continue;
      if (entry.isLive && entry.wanted && entry.facts.trust.trusted) entry.moveDown();
      else this.#evict(entry);
    }
  }

  #evict(entry: Entry): void {
    if (entry.isLive) this.#evicted++;
    this.#remove(entry);
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry.key);
    this.#heapBytes -= entry.heapBytes;
    if (entry.isLive) this.#size--;
    entry.isRemoved = true;
  }
}

/** Memory for values in a row. */
interface Segment {
  readonly memory: Buffer;
  used: number;
  /** What its entries take in the heap. */
  heapBytes: number;
  /** Of the values in it, in their order. */
  entries: Entry[];
}

/** A kept answer and where its value is. */
class Entry implements KeptAnswer {
  readonly key: string;
  facts: KeptFacts;
  /** Somebody has asked for it since it was last looked at. */
  wanted = false;
  /** False = it is given no more, and waits for the next value of its key. */
  isLive = true;
  isRemoved = false;
  readonly #segment: Segment;
  #at = 0;
  #bytes = 0;
  /** Of the place that its value has. */
  #mostBytes = 0;

  constructor(key: string, facts: KeptFacts, segment: Segment) {
    this.key = key;
    this.facts = facts;
    this.#segment = segment;
  }

  get heapBytes(): number {
    return ENTRY_BYTES + KEY_CHAR_BYTES * this.key.length;
  }

  get length(): number {
    return this.#bytes;
  }

  copy(): Buffer {
    const copy = Buffer.allocUnsafe(this.#bytes);
    this.copyTo(copy, 0);
    return copy;
  }

  copyTo(memory: Buffer, at: number): void {
    this.#segment.memory.copy(memory, at, this.#at, this.#at + this.#bytes);
  }

  append(value: Buffer, { start, end }: Span): void {
    value.copy(this.#segment.memory, this.#segment.used, start, end);
    this.#bytes = end - start;
    this.#place();
  }

  /** Puts another value in its place; false = that is too long. */
  replace(facts: KeptFacts, value: Buffer, { start, end }: Span): boolean {
    if (end - start > this.#mostBytes) return false;
    this.facts = facts;
    this.#bytes = end - start;
    value.copy(this.#segment.memory, this.#at, start, end);
    return true;
  }

  /** Moves its value to where the segment is free, which is before it or where it is. */
  moveDown(): void {
    const { memory, used } = this.#segment;
    memory.copyWithin(used, this.#at, this.#at + this.#bytes);
    this.wanted = false;
    this.#place();
  }

  /** Its value is the last one of the segment. */
  #place(): void {
    const segment = this.#segment;
    this.#at = segment.used;
    this.#mostBytes = this.#bytes;
    segment.used += this.#bytes;
    segment.heapBytes += this.heapBytes;
    segment.entries.push(this);
  }
}

function hasRoom({ memory, used, heapBytes }: Segment, valueBytes: number): boolean {
  return memory.length - used >= valueBytes && heapBytes < MAX_HEAP_SHARE * memory.length;
}

/** The text in one piece: one that was put together keeps its parts. Keys have no other chars. */
function flat(latin1: string): string {
  return Buffer.from(latin1, "latin1").toString("latin1");
}
