// The bytes of one answer in one piece while it arrives: first in a pooled buffer, then in memory
// of its own.
import { FREE_BYTES, type MemoryShare } from "../transport.ts";
import { BUFFER_BYTES, type BufferPool, HEADROOM_BYTES } from "./buffer-pool.ts";

/** Once this much of an answer is here, its announced length is trusted. */
const BELIEVED_BYTES = 1_048_576;

/** The bytes of one answer so far. */
export class GatheredBody {
  readonly #buffers: BufferPool;
  readonly #room: MemoryShare;
  #buffer: Buffer;
  #size = 0;
  /** Bytes of room that it holds. */
  #taken = 0;

  constructor(buffers: BufferPool, room: MemoryShare) {
    this.#buffers = buffers;
    this.#room = room;
    this.#buffer = buffers.take();
  }

  /**
   * All bytes so far, in place, after `HEADROOM_BYTES` free bytes: valid until the next call of
   * `add` or `release`.
   */
  get bytes(): Buffer {
    return this.#buffer.subarray(HEADROOM_BYTES, HEADROOM_BYTES + this.#size);
  }

  /**
   * Adds a copy of a chunk. `expectedBytes`: the announced length; null = none. `counted`: the
   * answer is kept until complete and needs room. False = there is no room for more.
   */
  add(chunk: Buffer, expectedBytes: number | null, counted: boolean): boolean {
    const size = this.#size + chunk.length;
    const wanted = counted ? Math.max(0, size - FREE_BYTES) - this.#taken : 0;
    if (wanted > 0 && !this.#room.take(wanted)) return false;
    if (wanted > 0) this.#taken += wanted;
    if (HEADROOM_BYTES + size > this.#buffer.length) this.#grow(size, expectedBytes);
    chunk.copy(this.#buffer, HEADROOM_BYTES + this.#size);
    this.#size = size;
    return true;
  }

  /** Releases its room when the answer is delivered: the receiver takes room for it. */
  vacate(): void {
    if (this.#taken > 0) this.#room.giveBack(this.#taken);
    this.#taken = 0;
  }

  /** All bytes, in memory that the receiver may keep. */
  keep(): Buffer {
    const { bytes } = this;
    if (this.#buffer.length > BUFFER_BYTES) return bytes;
    const kept = Buffer.from(bytes);
    this.#buffers.reuse(this.#buffer);
    return kept;
  }

  /** Returns its memory to the pool. */
  release(): void {
    this.vacate();
    this.#buffers.reuse(this.#buffer);
  }

  /**
   * Moves to larger memory for at least `size` bytes. Doubles it, because a provider may announce a
   * length that never comes; takes the announced length once `BELIEVED_BYTES` are here.
   */
  #grow(size: number, expectedBytes: number | null): void {
    const doubled = Math.max(size, 2 * this.#buffer.length);
    const announced = expectedBytes ?? 0;
    let bytes = doubled;
    if (announced >= size) bytes = size < BELIEVED_BYTES ? Math.min(doubled, announced) : announced;
    const larger = Buffer.allocUnsafeSlow(HEADROOM_BYTES + Math.max(bytes, BUFFER_BYTES));
    this.bytes.copy(larger, HEADROOM_BYTES);
    this.#buffers.reuse(this.#buffer);
    this.#buffer = larger;
  }
}
