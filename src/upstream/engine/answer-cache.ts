// Kept answers in memory, bounded by their bytes: stores, finds, removes. Whether an answer may be
// kept or given is decided elsewhere. Removes the oldest that nobody has asked for since it was
// last looked at (second chance), so that a hit only marks its entry.
import type { Provider } from "../../core/provider/profile.ts";
import type { CacheTerms } from "../../core/routing/cache-terms.ts";

/** What one provider has told, as far as it may still be given: false = it may not. */
export interface ProviderTrust {
  trusted: boolean;
}

/** An answer to be kept. */
export interface KeptAnswer {
  readonly provider: Provider;
  readonly trust: ProviderTrust;
  /** True = the value is the provider's error object. */
  readonly isError: boolean;
  /** JSON; short ones as text of one byte a character, which takes least memory. */
  readonly value: string | Buffer;
  /** When it was asked for (ms). */
  readonly askedAtMs: number;
  /** Until when it may be given (ms). */
  readonly endsAtMs: number;
  /** What must hold while it is given; changed when its block becomes final. */
  terms: CacheTerms;
}

interface Entry {
  readonly kept: KeptAnswer;
  readonly bytes: number;
  wanted: boolean;
}

/** Longer values are kept outside the heap of JavaScript. */
const MAX_TEXT_BYTES = 4_096;
/** What an entry takes beside its key and value: its objects and its place in the map. */
const ENTRY_BYTES = 400;
/** Of one value; never more than this share of the whole. */
const MAX_VALUE_BYTES = 1_048_576;
const LARGEST_SHARE = 1 / 64;

/** A value in memory of its own. */
export function keptValue(bytes: Buffer, start: number, end: number): string | Buffer {
  if (end - start <= MAX_TEXT_BYTES) return bytes.toString("latin1", start, end);
  const copy = Buffer.allocUnsafeSlow(end - start);
  bytes.copy(copy, 0, start, end);
  return copy;
}

/** The bytes of a kept value. */
export function valueBytes(value: string | Buffer): Buffer {
  return typeof value === "string" ? Buffer.from(value, "latin1") : value;
}

/** Answers by their keys, within a number of bytes. */
export class AnswerCache {
  readonly #maxBytes: () => number;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #evicted = 0;

  constructor(maxBytes: () => number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#entries.size;
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
    if (entry === undefined) return null;
    entry.wanted = true;
    return entry.kept;
  }

  set(key: string, kept: KeptAnswer): void {
    this.delete(key);
    const bytes = key.length + kept.value.length + ENTRY_BYTES;
    this.#entries.set(key, { kept, bytes, wanted: false });
    this.#bytes += bytes;
    this.#makeRoom();
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }

  /** Removes oldest first; one that was wanted since is passed over once. */
  #makeRoom(): void {
    const maxBytes = this.#maxBytes();
    if (this.#bytes <= maxBytes) return;
    for (const [key, entry] of this.#entries) {
      if (this.#bytes <= maxBytes) return;
      this.#entries.delete(key);
      if (entry.wanted && entry.kept.trust.trusted) {
        entry.wanted = false;
        this.#entries.set(key, entry);
        continue;
      }
      this.#bytes -= entry.bytes;
      this.#evicted += 1;
    }
  }
}
