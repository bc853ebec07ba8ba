// The bytes of one answer in one piece, while they arrive: in a pooled buffer at first, in memory of its own once it is longer than that.
import { BUFFER_BYTES, type BufferPool } from "./buffer-pool.ts";

/** What has arrived of one answer. */
export class GatheredBody {
  readonly #buffers: BufferPool;
  #buffer: Buffer;
  #size = 0;

  constructor(buffers: BufferPool) {
    this.#buffers = buffers;
    this.#buffer = buffers.take();
  }

  /** All of it so far, where it lies: valid until the next call of `add` or `release`. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#size);
  }

  /** Copies more of it. `expectedBytes`: how long it says it will be; null = it does not say. */
  add(chunk: Buffer, expectedBytes: number | null): void {
    const size = this.#size + chunk.length;
    if (size > this.#buffer.length) this.#grow(size, expectedBytes);
    chunk.copy(this.#buffer, this.#size);
    this.#size = size;
  }

  /** All of it, for somebody who keeps it. */
  keep(): Buffer {
    const { bytes } = this;
    if (this.#buffer.length > BUFFER_BYTES) return bytes;
    const kept = Buffer.from(bytes);
    this.release();
    return kept;
  }

  /** Nobody reads it any more. */
  release(): void {
    this.#buffers.recycle(this.#buffer);
  }

  /** Twice the room, since a length may be announced that never comes; no more than what was announced. */
  #grow(size: number, expectedBytes: number | null): void {
    const doubled = Math.max(size, 2 * this.#buffer.length);
    const room = expectedBytes === null || expectedBytes < size ? doubled : Math.min(doubled, expectedBytes);
    const larger = Buffer.allocUnsafeSlow(Math.max(room, BUFFER_BYTES + 1));
    this.bytes.copy(larger);
    this.release();
    this.#buffer = larger;
  }
}
