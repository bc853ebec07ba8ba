// Memory for answers. Long answers are read into large buffers that are reused after their last
// reader. Each buffer is returned exactly once: a reference kept beyond that is empty, since its
// memory is transferred. All connections read into one scratch buffer, from which short answers are
// copied to slabs that are reused once all of their answers are written. Knows nothing of the
// content.
import type { BorrowedBuffer } from "../transport.ts";

/**
 * Size of a buffer: long answers are read in large pieces, since each write to the caller may have
 * to wake it. Half of it costs a sixth more for an answer of 1 MiB.
 */
export const BUFFER_BYTES = 525_312;
/**
 * Size of the scratch buffer, whose content is read or copied before the next read. An answer of 64
 * KiB fits with its head; a buffer holds that much plus one more read.
 */
export const SCRATCH_BYTES = 66_560;
/** Free bytes before an answer in its memory, where its sender writes a response head. */
export const HEADROOM_BYTES = 1_024;
/** Answers up to this size are copied to a slab: cheaper than accounting for a buffer. */
export const SLAB_ANSWER_BYTES = 4_096;
const SLAB_BYTES = 65_536;
const MAX_SPARE_SLABS = 16;
const MAX_SPARE = 64;
/**
 * Borrowed buffers beyond which complete answers are copied instead of staying in one: a slow
 * caller then holds no more than its answer.
 */
const MAX_BORROWED = 64;

/** The buffers of one process or test. */
export class BufferPool implements BorrowedBuffer {
  /** Called when a slab answer is returned twice; nothing else follows. */
  readonly #onReturnedTwice: () => void;
  readonly headroomBytes = HEADROOM_BYTES;
  readonly scratch: Buffer = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  #slab = new Slab();
  readonly #slabs = new WeakMap<ArrayBufferLike, Slab>([[this.#slab.bytes.buffer, this.#slab]]);
  readonly #spareSlabs: Slab[] = [];
  readonly #spare: Buffer[] = [];
  /** Memory of this pool that is borrowed. */
  readonly #out = new WeakSet<ArrayBufferLike>();
  /** Number of buffers that are borrowed, and of those created so far. */
  out = 0;
  made = 0;

  /** By default a second return throws, since it is a bug. */
  constructor(onReturnedTwice: () => void = failReturnedTwice) {
    this.#onReturnedTwice = onReturnedTwice;
  }

  /** Whether `part` is in a borrowed buffer of this pool, so that the bytes before it are free. */
  isBorrowed(part: Buffer): boolean {
    return this.#out.has(part.buffer);
  }

  /** Whether one more buffer may wait for a slow reader. */
  get mayLend(): boolean {
    return this.out <= MAX_BORROWED;
  }

  /**
   * Copies a short answer, with free bytes before it. The returned buffer object itself must come
   * back, once, by `recycle` or `reuse`.
   */
  copyOf(answer: Buffer): Buffer {
    const copy = this.#takeShort(answer.length);
    copy.set(answer);
    return copy;
  }

  /**
   * Memory for a whole answer that is written here, with free bytes before it; null = it is too
   * long, or too much is borrowed. It must come back as that of `copyOf`.
   */
  takeFor(bytes: number): Buffer | null {
    if (bytes <= SLAB_ANSWER_BYTES) return this.#takeShort(bytes);
    if (HEADROOM_BYTES + bytes > BUFFER_BYTES || !this.mayLend) return null;
    return this.take().subarray(HEADROOM_BYTES, HEADROOM_BYTES + bytes);
  }

  #takeShort(bytes: number): Buffer {
    if (this.#slab.used + HEADROOM_BYTES + bytes > SLAB_BYTES) this.#nextSlab();
    const slab = this.#slab;
    const start = slab.used + HEADROOM_BYTES;
    slab.used = start + bytes;
    const short = slab.bytes.subarray(start, slab.used);
    slab.borrowed[slotOf(short)] = short;
    slab.out++;
    return short;
  }

  /** Borrows a buffer; it is returned by `recycle`, whole or as any part of it. */
  take(): Buffer {
    const spare = this.#spare.pop();
    if (spare === undefined) this.made++;
    const buffer = spare ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
    this.#out.add(buffer.buffer);
    this.out++;
    return buffer;
  }

  #nextSlab(): void {
    this.#slab = this.#spareSlabs.pop() ?? new Slab();
    this.#slabs.set(this.#slab.bytes.buffer, this.#slab);
  }

  /**
   * Takes back the memory that `part` is in, once. Ignores memory that is not of this pool and
   * large buffers that are already back. A returned buffer is empty from here on, and a slab is
   * retired: no mistake can show one answer's bytes to the reader of another.
   */
  recycle(part: Buffer): void {
    const memory = part.buffer;
    const slab = this.#slabs.get(memory);
    if (slab !== undefined) {
      if (!takeBack(slab, part)) return this.#onReturnedTwice();
      slab.retired = true;
      if (slab === this.#slab) this.#nextSlab();
      return;
    }
    if (!this.#out.delete(memory) || !(memory instanceof ArrayBuffer)) return;
    this.out--;
    const transferred = memory.transfer();
    if (this.#spare.length < MAX_SPARE) this.#spare.push(Buffer.from(transferred));
  }

  /**
   * Like `recycle`, for memory to which nobody else has kept a reference: it is not transferred,
   * which saves the garbage collector work.
   */
  reuse(part: Buffer): void {
    const memory = part.buffer;
    const slab = this.#slabs.get(memory);
    if (slab !== undefined) return this.#reuseSlab(slab, part);
    if (!this.#out.delete(memory)) return;
    this.out--;
    if (this.#spare.length < MAX_SPARE) this.#spare.push(Buffer.from(memory));
  }

  /**
   * Takes back one answer of a slab. After the last one the slab is free again, unless it is
   * retired.
   */
  #reuseSlab(slab: Slab, answer: Buffer): void {
    if (!takeBack(slab, answer)) return this.#onReturnedTwice();
    if (slab.out > 0 || slab.retired) return;
    slab.used = 0;
    if (slab !== this.#slab && this.#spareSlabs.length < MAX_SPARE_SLABS)
      this.#spareSlabs.push(slab);
  }
}

/** Memory for many short answers in a row. */
class Slab {
  readonly bytes = Buffer.allocUnsafeSlow(SLAB_BYTES);
  used = 0;
  /** The answers that are not yet returned, by `slotOf`. An empty one may begin at the very end. */
  readonly borrowed = new Array<Buffer | null>(SLAB_BYTES / HEADROOM_BYTES + 1).fill(null);
  /** Number of answers that are not yet returned. */
  out = 0;
  /** The slab is not used again. */
  retired = false;
}

/**
 * The slot that an answer begins in. No two answers share one, since the free bytes before an
 * answer fill a slot.
 */
function slotOf(answer: Buffer): number {
  return Math.floor(answer.byteOffset / HEADROOM_BYTES);
}

/**
 * Marks an answer as returned. False = it was returned before. Answers are compared by object,
 * since the memory may have been handed out again.
 */
function takeBack(slab: Slab, answer: Buffer): boolean {
  const slot = slotOf(answer);
  if (slab.borrowed[slot] !== answer) return false;
  slab.borrowed[slot] = null;
  slab.out--;
  return true;
}

function failReturnedTwice(): never {
  throw new Error("an answer on a slab was returned twice");
}
