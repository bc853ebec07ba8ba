// What an answer is kept under: the method on one profile and chain, and the bytes that decide it,
// compared in full. The hash differs from process to process, so that nobody can choose keys that
// share one. What is known of each kept answer lies in slots of 64 bytes outside the heap of
// JavaScript, which are used again: objects and strings that live as long as a kept answer make the
// heap of the whole process grow.
import { randomBytes } from "node:crypto";
import type { Provider } from "../../../core/provider/profile.ts";
import type { CacheClass, KeptBlock } from "../../../core/routing/cache-terms.ts";

/** A key, with its bytes where they lie. */
export interface AnswerKey {
  /** The number of the method on one profile and chain. */
  readonly space: number;
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  /** Of the bytes. */
  readonly hash: number;
}

const SEED = randomBytes(4).readInt32LE();
const PRIME = 0x01000193;

/** The key of these bytes, which must not change as long as it is used. */
export function answerKeyOf(space: number, bytes: Buffer, start: number, end: number): AnswerKey {
  let hash = SEED;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), PRIME);
  return { space, bytes, start, end, hash: hash ^ (hash >>> 15) };
}

/** A provider, and whether its answers may still be given. */
export interface ProviderTrust {
  readonly provider: Provider;
  trusted: boolean;
}

/** What is known of a kept answer. */
export interface KeptFacts {
  readonly trust: ProviderTrust;
  /** True = the value is the provider's error object. */
  readonly isError: boolean;
  /** When it was asked for (ms). */
  readonly askedAtMs: number;
  /** Until when it may be given (ms). */
  readonly endsAtMs: number;
  readonly class: CacheClass;
  /** The block that must still be in the chain; null = none. */
  readonly guard: KeptBlock | null;
}

/** Where an answer lies: its key and behind it its value, in a segment. */
export interface AnswerPlace {
  readonly segment: number;
  readonly at: number;
  readonly keyBytes: number;
  readonly valueBytes: number;
}

/** What of a key slots are found by. */
type SlotKey = Pick<AnswerKey, "hash" | "space">;

/** No slot. */
export const NONE = -1;
/** Further answers with hashes of one bucket are not kept: finding them would take too long. */
const MAX_CHAIN = 64;

/** Of the words of a slot. */
const HASH = 0;
const SPACE = 1;
const NEXT = 2;
const SEGMENT = 3;
const AT = 4;
const KEY_BYTES = 5;
const VALUE_BYTES = 6;
/** Of the place that the value has. */
const MOST_BYTES = 7;
const FLAGS = 8;
/** Of its numbers of 8 bytes. */
const ASKED_AT = 5;
const ENDS_AT = 6;

/** It may be given. Without this it waits for the next value of its key. */
const LIVE = 1;
/** Somebody has asked for it since it was last looked at. */
const WANTED = 2;
const IS_ERROR = 4;
const CLASS_SHIFT = 3;
const CLASSES: readonly CacheClass[] = ["immutable", "block", "head", "tag", "hash"];

const WORDS_SHIFT = 4;
const NUMBERS_SHIFT = 3;
const WORD_BYTES = 4;
const PAGE_SHIFT = 6;
const PAGE_SLOTS = 1 << PAGE_SHIFT;
/** With what it refers to: two entries of lists, and the block of an answer that is not final. */
const SLOT_BYTES = 128;
const LEAST_BUCKETS = 16;

/** Slots that are made together. */
interface Page {
  readonly words: Int32Array;
  readonly numbers: Float64Array;
  readonly trusts: (ProviderTrust | null)[];
  readonly guards: (KeptBlock | null)[];
}

const NO_PAGE = newPage(0);

/** The slots of one cache. */
export class AnswerSlots {
  readonly #pages: Page[] = [];
  /** First slot of each chain plus one; 0 = none. */
  #buckets = new Int32Array(LEAST_BUCKETS);
  /** Slots that are free, linked as chains are. */
  #free = NONE;
  #made = 0;
  #used = 0;

  /** The memory that they take, used or not. */
  get bytes(): number {
    return this.#made * SLOT_BYTES + this.#buckets.length * WORD_BYTES;
  }

  /** The first slot with the hash of a key; `NONE` = there is none. */
  first({ hash, space }: SlotKey): number {
    return this.#matching(this.#headOf(hash, space), hash, space);
  }

  /** The next slot with the same hash. */
  following(slot: number): number {
    const hash = this.#word(slot, HASH);
    const space = this.#word(slot, SPACE);
    return this.#matching(this.#word(slot, NEXT) - 1, hash, space);
  }

  /** Takes a slot for a key; `NONE` = too many share its bucket. */
  take({ hash, space }: SlotKey): number {
    let length = 0;
    for (let slot = this.#headOf(hash, space); slot !== NONE; slot = this.#word(slot, NEXT) - 1)
      length++;
    if (length >= MAX_CHAIN) return NONE;
    if (this.#used >= this.#buckets.length) this.#grow();
    const slot = this.#free === NONE ? this.#make() : this.#free;
    this.#free = this.#word(slot, NEXT) - 1;
    this.#used++;
    this.#set(slot, HASH, hash);
    this.#set(slot, SPACE, space);
    this.#link(slot);
    return slot;
  }

  /** Gives a slot back. */
  free(slot: number): void {
    const page = this.#pageOf(slot);
    page.trusts[slot & (PAGE_SLOTS - 1)] = null;
    page.guards[slot & (PAGE_SLOTS - 1)] = null;
    this.#unlink(slot);
    this.#set(slot, SEGMENT, NONE);
    this.#set(slot, FLAGS, 0);
    this.#set(slot, NEXT, this.#free + 1);
    this.#free = slot;
    this.#used--;
  }

  /** Says where the answer of a slot lies. */
  place(slot: number, { segment, at, keyBytes, valueBytes }: AnswerPlace): void {
    this.#set(slot, SEGMENT, segment);
    this.#set(slot, AT, at);
    this.#set(slot, KEY_BYTES, keyBytes);
    this.#set(slot, VALUE_BYTES, valueBytes);
    this.#set(slot, MOST_BYTES, valueBytes);
  }

  /** Whether the answer of a slot is the one at a place. */
  isAt(slot: number, segment: number, at: number): boolean {
    return this.#word(slot, SEGMENT) === segment && this.#word(slot, AT) === at;
  }

  segmentOf(slot: number): number {
    return this.#word(slot, SEGMENT);
  }

  /** Where its key begins. */
  keyAt(slot: number): number {
    return this.#word(slot, AT);
  }

  keyBytesOf(slot: number): number {
    return this.#word(slot, KEY_BYTES);
  }

  valueBytesOf(slot: number): number {
    return this.#word(slot, VALUE_BYTES);
  }

  /** Says how long its value is now; false = that is more than its place has. */
  fits(slot: number, valueBytes: number): boolean {
    if (valueBytes > this.#word(slot, MOST_BYTES)) return false;
    this.#set(slot, VALUE_BYTES, valueBytes);
    return true;
  }

  /** Says what is known of its answer, which may be given from now on. */
  describe(slot: number, facts: KeptFacts): void {
    const page = this.#pageOf(slot);
    const at = slot & (PAGE_SLOTS - 1);
    page.trusts[at] = facts.trust;
    page.guards[at] = facts.guard;
    page.numbers[(at << NUMBERS_SHIFT) + ASKED_AT] = facts.askedAtMs;
    page.numbers[(at << NUMBERS_SHIFT) + ENDS_AT] = facts.endsAtMs;
    const wanted = this.#word(slot, FLAGS) & WANTED;
    const error = facts.isError ? IS_ERROR : 0;
    const classBits = CLASSES.indexOf(facts.class) << CLASS_SHIFT;
    this.#set(slot, FLAGS, LIVE | wanted | error | classBits);
  }

  /** What is known of its answer; null = it is not given. */
  factsOf(slot: number): KeptFacts | null {
    const page = this.#pageOf(slot);
    const at = slot & (PAGE_SLOTS - 1);
    const trust = page.trusts[at] ?? null;
    const flags = page.words[(at << WORDS_SHIFT) + FLAGS] ?? 0;
    if (trust === null || (flags & LIVE) === 0) return null;
    return {
      trust,
      isError: (flags & IS_ERROR) !== 0,
      askedAtMs: page.numbers[(at << NUMBERS_SHIFT) + ASKED_AT] ?? 0,
      endsAtMs: page.numbers[(at << NUMBERS_SHIFT) + ENDS_AT] ?? 0,
      class: CLASSES[flags >> CLASS_SHIFT] ?? "head",
      guard: page.guards[at] ?? null,
    };
  }

  isLive(slot: number): boolean {
    return (this.#word(slot, FLAGS) & LIVE) !== 0;
  }

  /** Its answer is given no more. */
  withdraw(slot: number): void {
    this.#set(slot, FLAGS, this.#word(slot, FLAGS) & ~LIVE);
  }

  /** Somebody has asked for its answer. */
  want(slot: number): void {
    this.#set(slot, FLAGS, this.#word(slot, FLAGS) | WANTED);
  }

  /** Whether somebody has asked for its answer, and it may be given; the next time: since now. */
  takeWanted(slot: number): boolean {
    const flags = this.#word(slot, FLAGS);
    this.#set(slot, FLAGS, flags & ~WANTED);
    const asked = LIVE | WANTED;
    const trust = this.#pageOf(slot).trusts[slot & (PAGE_SLOTS - 1)] ?? null;
    return (flags & asked) === asked && trust?.trusted === true;
  }

  #make(): number {
    const slot = this.#made++;
    if (slot >> PAGE_SHIFT === this.#pages.length) this.#pages.push(newPage(PAGE_SLOTS));
    return slot;
  }

  #pageOf(slot: number): Page {
    return this.#pages[slot >> PAGE_SHIFT] ?? NO_PAGE;
  }

  #word(slot: number, word: number): number {
    const { words } = this.#pageOf(slot);
    return words[((slot & (PAGE_SLOTS - 1)) << WORDS_SHIFT) + word] ?? 0;
  }

  #set(slot: number, word: number, value: number): void {
    const { words } = this.#pageOf(slot);
    words[((slot & (PAGE_SLOTS - 1)) << WORDS_SHIFT) + word] = value;
  }

  #bucketOf(hash: number, space: number): number {
    const mixed = Math.imul(hash ^ Math.imul(space, 0x9e3779b1), 0x85ebca6b);
    return (mixed ^ (mixed >>> 15)) & (this.#buckets.length - 1);
  }

  #headOf(hash: number, space: number): number {
    return (this.#buckets[this.#bucketOf(hash, space)] ?? 0) - 1;
  }

  #matching(from: number, hash: number, space: number): number {
    let slot = from;
    while (slot !== NONE && !this.#matches(slot, hash, space)) slot = this.#word(slot, NEXT) - 1;
    return slot;
  }

  #matches(slot: number, hash: number, space: number): boolean {
    return this.#word(slot, HASH) === hash && this.#word(slot, SPACE) === space;
  }

  #link(slot: number): void {
    const bucket = this.#bucketOf(this.#word(slot, HASH), this.#word(slot, SPACE));
    this.#set(slot, NEXT, this.#buckets[bucket] ?? 0);
    this.#buckets[bucket] = slot + 1;
  }

  #unlink(slot: number): void {
    const bucket = this.#bucketOf(this.#word(slot, HASH), this.#word(slot, SPACE));
    const next = this.#word(slot, NEXT);
    let before = (this.#buckets[bucket] ?? 0) - 1;
    if (before === slot) {
      this.#buckets[bucket] = next;
      return;
    }
    while (before !== NONE && this.#word(before, NEXT) - 1 !== slot)
      before = this.#word(before, NEXT) - 1;
    if (before !== NONE) this.#set(before, NEXT, next);
  }

  /** Twice the buckets, so that chains stay short. */
  #grow(): void {
    this.#buckets = new Int32Array(2 * this.#buckets.length);
    for (let slot = 0; slot < this.#made; slot++)
      if (this.#word(slot, SEGMENT) !== NONE) this.#link(slot);
  }
}

function newPage(slots: number): Page {
  const memory = new ArrayBuffer((slots << WORDS_SHIFT) * WORD_BYTES);
  return {
    words: new Int32Array(memory),
    numbers: new Float64Array(memory),
    trusts: new Array<ProviderTrust | null>(slots).fill(null),
    guards: new Array<KeptBlock | null>(slots).fill(null),
  };
}
