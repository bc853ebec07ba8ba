// Memory for answers. Long ones lie in large buffers that are reused after their last reader. Each
// is returned exactly once: a reference kept beyond that is empty, since its memory is transferred.
// All connections read into one scratch buffer, from which short answers are copied to slabs that
// are used again once all of their answers are written; a second return of one is noticed. Knows
// nothing of what the bytes say.
import type { BorrowedBuffer } from "../transport.ts";

/**
 * Size of a buffer: long answers are read in large pieces, since each write to the caller may have
 * to wake it. Half of it costs a third more for an answer of 1 MiB.
 */
export const BUFFER_BYTES = 266_240;
/**
 * What lies in the scratch buffer is read, or copied, before the next read. An answer of 64 KiB
 * fits, with its head; a read of it beside so much fits a buffer.
 */
export const SCRATCH_BYTES = 66_560;
/** Free bytes before an answer in its memory: what sends it on writes its own head there. */
export const HEADROOM_BYTES = 1_024;
/**
 * Answers up to this size are copied to a slab: that costs less than keeping account of a buffer.
 */
export const SLAB_ANSWER_BYTES = 4_096;
const SLAB_BYTES = 65_536;
const MAX_SPARE_SLABS = 16;
const MAX_SPARE = 64;
/**
 * Buffers that may be out before whole answers are copied rather than left in one: a slow caller
 * then holds no more than its answer.
 */
const MAX_LENT = 64;

/** The buffers of one process or test. */
export class BufferPool implements BorrowedBuffer {
  /** Hears of an answer that was returned twice, which changes nothing else. */
  readonly #onReturnedTwice: () => void;
  readonly headroomBytes = HEADROOM_BYTES;
  readonly scratch: Buffer = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  #slab = createSlab();
  readonly #slabs = new WeakMap<ArrayBufferLike, Slab>([[this.#slab.bytes.buffer, this.#slab]]);
  readonly #spareSlabs: Slab[] = [];
  readonly #spare: Buffer[] = [];
  /** Memory of this pool that is out. */
  readonly #out = new WeakSet<ArrayBufferLike>();
  #outCount = 0;
  #made = 0;

  /** Left out = a second return throws: it is a bug. */
  constructor(onReturnedTwice: () => void = failReturnedTwice) {
    this.#onReturnedTwice = onReturnedTwice;
  }

  /** Buffers taken and not given back. */
  get out(): number {
    return this.#outCount;
  }

  /** Buffers made so far. */
  get made(): number {
    return this.#made;
  }

  /** Whether `part` lies in a buffer of this pool that is out, with what is free before it. */
  lent(part: Buffer): boolean {
    return this.#out.has(part.buffer);
  }

  /** Few enough are out that one more may wait for a slow reader. */
  get mayLend(): boolean {
    return this.#outCount <= MAX_LENT;
  }

  /**
   * A copy of a short answer, with free bytes before it. The very buffer that is returned here
   * comes back, once, by `recycle` or `reuse`.
   */
  copyOf(answer: Buffer): Buffer {
    if (this.#slab.used + HEADROOM_BYTES + answer.length > SLAB_BYTES) this.#nextSlab();
    const slab = this.#slab;
    const start = slab.used + HEADROOM_BYTES;
    slab.used = start + answer.length;
    const copy = slab.bytes.subarray(start, slab.used);
    copy.set(answer);
    slab.lent[slotOf(copy)] = copy;
    slab.out++;
    return copy;
  }

  /** A buffer to borrow; it comes back by `recycle`, whole or as any part of it. */
  take(): Buffer {
    const buffer = this.#spare.pop() ?? this.#make();
    this.#out.add(buffer.buffer);
    this.#outCount++;
    return buffer;
  }

  #make(): Buffer {
    this.#made++;
    return Buffer.allocUnsafeSlow(BUFFER_BYTES);
  }

  #nextSlab(): void {
    this.#slab = this.#spareSlabs.pop() ?? createSlab();
    this.#slabs.set(this.#slab.bytes.buffer, this.#slab);
  }

  /**
   * Takes back what `part` lies in, once. Memory that is not of this pool, and a long buffer that
   * is back already, are left alone. A buffer that was given back is empty from here on, and a slab
   * is not used again: no mistake shows one answer's bytes to the reader of another.
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
    this.#outCount--;
    const moved = memory.transfer();
    if (this.#spare.length < MAX_SPARE) this.#spare.push(Buffer.from(moved));
  }

  /**
   * The same for what nobody but the caller has ever kept past its call: its memory stays where it
   * is, and costs the garbage collector nothing.
   */
  reuse(part: Buffer): void {
    const memory = part.buffer;
    const slab = this.#slabs.get(memory);
    if (slab !== undefined) return this.#reuseSlab(slab, part);
    if (!this.#out.delete(memory)) return;
    this.#outCount--;
    if (this.#spare.length < MAX_SPARE) this.#spare.push(Buffer.from(memory));
  }

  /** An answer of this slab is written: with the last one all of the slab is free again. */
  #reuseSlab(slab: Slab, answer: Buffer): void {
    if (!takeBack(slab, answer)) return this.#onReturnedTwice();
    if (slab.out > 0 || slab.retired) return;
    slab.used = 0;
    if (slab !== this.#slab && this.#spareSlabs.length < MAX_SPARE_SLABS)
      this.#spareSlabs.push(slab);
  }
}

/** Memory for many short answers, one behind the other. */
interface Slab {
  readonly bytes: Buffer;
  used: number;
  /** Answers that have not come back, each in the slot of its first byte. */
  readonly lent: (Buffer | null)[];
  /** How many these are. */
  out: number;
  /** It is not used again. */
  retired: boolean;
}

function createSlab(): Slab {
  // One more: an empty answer may begin at the very end.
  const lent = new Array<Buffer | null>(SLAB_BYTES / HEADROOM_BYTES + 1).fill(null);
  return { bytes: Buffer.allocUnsafeSlow(SLAB_BYTES), used: 0, lent, out: 0, retired: false };
}

/** Each answer begins in a slot of its own, since the free bytes before it fill one. */
function slotOf(answer: Buffer): number {
  return Math.floor(answer.byteOffset / HEADROOM_BYTES);
}

/**
 * Marks an answer as returned; false = it was returned before. Its memory may be lent anew since
 * then, so it is known by its object.
 */
function takeBack(slab: Slab, answer: Buffer): boolean {
  const slot = slotOf(answer);
  if (slab.lent[slot] !== answer) return false;
  slab.lent[slot] = null;
  slab.out--;
  return true;
}

function failReturnedTwice(): never {
  throw new Error("an answer on a slab was returned twice");
}
