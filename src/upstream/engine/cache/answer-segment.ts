// A piece of memory outside the heap of JavaScript in which kept answers lie one after the other,
// each behind its key and a head of numbers: objects and strings that live as long as a kept answer
// make the heap of the whole process grow. What an answer is kept under: the method on one profile
// and chain, and the bytes that decide it, compared in full. The hash differs from process to
// process, so that nobody can choose keys that share one.
import { randomBytes } from "node:crypto";
import type { Provider } from "../../../core/provider/profile.ts";
import type { CacheClass, KeptBlock } from "../../../core/routing/cache-terms.ts";
import type { Span } from "../../../core/rpc/json.ts";

/** A key, with its bytes where they lie. */
export interface AnswerKey extends Span {
  /** The number of the method on one profile and chain. */
  readonly space: number;
  readonly bytes: Buffer;
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

/** The numbers of a head: `NEXT` is of the cache that finds entries. */
export const NEXT = 0;
export const HASH = 1;
export const SPACE = 2;
const KEY_BYTES = 3;
const VALUE_BYTES = 4;
/** Up to the next entry: a shorter value leaves room. */
const ENTRY_BYTES = 5;
const FLAGS = 6;
const ASKED_AT = 7;
const ENDS_AT = 8;
/** Of the trust and the guard. */
const ORDINAL = 9;
const NUMBER_BYTES = 8;
const HEAD_BYTES = 10 * NUMBER_BYTES;

/** It may be given. Without this it waits for the next value of its key. */
const LIVE = 1;
/** Somebody has asked for it since it was last looked at. */
const WANTED = 2;
const IS_ERROR = 4;
/** It can be found by its key. Without this its room is free at the next turn. */
const LINKED = 8;
const CLASS_SHIFT = 4;
const CLASSES: readonly CacheClass[] = ["immutable", "block", "head", "tag", "hash"];
/** Up to this size a loop compares faster than a call to `Buffer.compare`. */
const SHORT_KEY_BYTES = 32;

/** What an entry with a key and a value takes. */
export function entryBytes(keyBytes: number, valueBytes: number): number {
  return wholeNumbers(HEAD_BYTES + keyBytes + valueBytes);
}

/** Bytes up to the beginning of the next number. */
export function wholeNumbers(bytes: number): number {
  return Math.ceil(bytes / NUMBER_BYTES) * NUMBER_BYTES;
}

/** Memory for entries in a row; each is named by where it begins. */
export class AnswerSegment {
  readonly number: number;
  readonly memory: Buffer;
  used = 0;
  readonly #heads: Float64Array;
  /** What entries refer to, in their order. */
  readonly #trusts: ProviderTrust[] = [];
  readonly #guards: (KeptBlock | null)[] = [];
  #count = 0;

  /** `memory`: whole numbers. */
  constructor(number: number, memory: Buffer) {
    this.number = number;
    this.memory = memory;
    this.#heads = new Float64Array(memory.buffer, memory.byteOffset, memory.length / NUMBER_BYTES);
  }

  hasRoom(bytes: number): boolean {
    return this.memory.length - this.used >= bytes;
  }

  /** A number of the head of an entry. */
  read(at: number, field: number): number {
    return this.#heads[at / NUMBER_BYTES + field] ?? 0;
  }

  write(at: number, field: number, value: number): void {
    this.#heads[at / NUMBER_BYTES + field] = value;
  }

  /** Adds an entry with a copy of key and value. Returns where it begins. */
  append(key: AnswerKey, facts: KeptFacts, value: Buffer, span: Span): number {
    const at = this.used;
    const keyBytes = key.end - key.start;
    key.bytes.copy(this.memory, at + HEAD_BYTES, key.start, key.end);
    this.write(at, HASH, key.hash);
    this.write(at, SPACE, key.space);
    this.write(at, KEY_BYTES, keyBytes);
    this.write(at, ENTRY_BYTES, entryBytes(keyBytes, span.end - span.start));
    this.write(at, FLAGS, LINKED);
    this.write(at, ORDINAL, this.#count++);
    this.used += this.read(at, ENTRY_BYTES);
    this.replace(at, facts, value, span);
    return at;
  }

  /** Puts another value in the place of one; false = it is too long for that. */
  replace(at: number, facts: KeptFacts, value: Buffer, { start, end }: Span): boolean {
    const keyBytes = this.read(at, KEY_BYTES);
    if (entryBytes(keyBytes, end - start) > this.read(at, ENTRY_BYTES)) return false;
    value.copy(this.memory, at + HEAD_BYTES + keyBytes, start, end);
    this.write(at, VALUE_BYTES, end - start);
    this.describe(at, facts);
    return true;
  }

  /** Says what is known of an answer, which may be given from now on. */
  describe(at: number, facts: KeptFacts): void {
    const ordinal = this.read(at, ORDINAL);
    this.#trusts[ordinal] = facts.trust;
    this.#guards[ordinal] = facts.guard;
    this.write(at, ASKED_AT, facts.askedAtMs);
    this.write(at, ENDS_AT, facts.endsAtMs);
    const kept = this.read(at, FLAGS) & (WANTED | LINKED);
    const error = facts.isError ? IS_ERROR : 0;
    this.write(at, FLAGS, kept | LIVE | error | (CLASSES.indexOf(facts.class) << CLASS_SHIFT));
  }

  /** What is known of an answer that somebody asks for; null = it is not given. */
  factsOf(at: number): KeptFacts | null {
    const flags = this.read(at, FLAGS);
    const ordinal = this.read(at, ORDINAL);
    const trust = this.#trusts[ordinal];
    if (trust === undefined || (flags & LIVE) === 0) return null;
    this.write(at, FLAGS, flags | WANTED);
    return {
      trust,
      isError: (flags & IS_ERROR) !== 0,
      askedAtMs: this.read(at, ASKED_AT),
      endsAtMs: this.read(at, ENDS_AT),
      class: CLASSES[flags >> CLASS_SHIFT] ?? "head",
      guard: this.#guards[ordinal] ?? null,
    };
  }

  /** Where the value of an entry lies. */
  valueOf(at: number): Span {
    const start = at + HEAD_BYTES + this.read(at, KEY_BYTES);
    return { start, end: start + this.read(at, VALUE_BYTES) };
  }

  hasKey(at: number, { hash, space, bytes, start, end }: AnswerKey): boolean {
    const length = end - start;
    if (this.read(at, HASH) !== hash || this.read(at, SPACE) !== space) return false;
    if (this.read(at, KEY_BYTES) !== length) return false;
    const { memory } = this;
    const keyAt = at + HEAD_BYTES;
    if (length > SHORT_KEY_BYTES)
      return memory.compare(bytes, start, end, keyAt, keyAt + length) === 0;
    for (let n = 0; n < length; n++) if (memory[keyAt + n] !== bytes[start + n]) return false;
    return true;
  }

  isLive(at: number): boolean {
    return (this.read(at, FLAGS) & LIVE) !== 0;
  }

  /** Its answer is given no more. */
  withdraw(at: number): void {
    this.write(at, FLAGS, this.read(at, FLAGS) & ~LIVE);
  }

  /** It cannot be found any more. */
  free(at: number): void {
    this.write(at, FLAGS, 0);
  }

  /** The entries that can be found. */
  *entries(): Iterable<number> {
    const end = this.used;
    let next = 0;
    for (let at = 0; at < end; at = next) {
      next = at + this.read(at, ENTRY_BYTES);
      if ((this.read(at, FLAGS) & LINKED) !== 0) yield at;
    }
  }

  /**
   * Empties the segment but for what `keeps` says, which moves to its beginning. `keeps` is asked
   * before an entry moves or goes, and `onMoved` called after it has moved.
   */
  turn(keeps: (at: number) => boolean, onMoved: (at: number) => void): void {
    const entries = this.entries();
    let [used, count] = [0, 0];
    for (const at of entries) {
      if (!keeps(at)) continue;
      const { end } = this.valueOf(at);
      const ordinal = this.read(at, ORDINAL);
      const bytes = wholeNumbers(end - at);
      this.memory.copyWithin(used, at, end);
      this.#trusts.copyWithin(count, ordinal, ordinal + 1);
      this.#guards.copyWithin(count, ordinal, ordinal + 1);
      this.write(used, ENTRY_BYTES, bytes);
      this.write(used, ORDINAL, count++);
      onMoved(used);
      used += bytes;
    }
    this.used = used;
    this.#count = count;
    this.#trusts.length = count;
    this.#guards.length = count;
  }

  /** Whether somebody has asked for an answer that may be given; the next time: since now. */
  takeWanted(at: number): boolean {
    const flags = this.read(at, FLAGS);
    this.write(at, FLAGS, flags & ~WANTED);
    const wanted = LIVE | WANTED;
    return (flags & wanted) === wanted && this.#trusts[this.read(at, ORDINAL)]?.trusted === true;
  }
}
