// WebSocket frames as they lie on the wire: cut out of a stream of bytes, whole and in order. Knows
// neither side's library and no fragments.

/** One frame: its bytes as they came, and its payload as text. */
export interface WireFrame {
  readonly bytes: Buffer;
  readonly text: string;
}

/** A close frame from a server with code 1001: going away. */
export const GOING_AWAY = Buffer.from([0x88, 0x02, 0x03, 0xe9]);

/** Cuts a stream of bytes into frames. */
export class FrameCutter {
  #rest: Buffer = Buffer.alloc(0);

  /** The frames that are whole now. */
  push(chunk: Buffer): readonly WireFrame[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: WireFrame[] = [];
    for (
      let size = sizeOf(this.#rest);
      size !== null && size <= this.#rest.length;
      size = sizeOf(this.#rest)
    ) {
      const bytes = this.#rest.subarray(0, size);
      frames.push({ bytes, text: payloadOf(bytes).toString("utf8") });
      this.#rest = this.#rest.subarray(size);
    }
    return frames;
  }
}

const MASKED = 0x80;
const MASK_BYTES = 4;

/** Bytes of the head of a frame and of its payload; null = the head is not whole. */
function headOf(bytes: Buffer): { readonly head: number; readonly payload: number } | null {
  const second = bytes[1];
  if (second === undefined) return null;
  const mask = second & MASKED ? MASK_BYTES : 0;
  const short = second & ~MASKED;
  if (short < 126) return { head: 2 + mask, payload: short };
  if (short === 126)
    return bytes.length < 4 ? null : { head: 4 + mask, payload: bytes.readUInt16BE(2) };
  return bytes.length < 10 ? null : { head: 10 + mask, payload: Number(bytes.readBigUInt64BE(2)) };
}

function sizeOf(bytes: Buffer): number | null {
  const it = headOf(bytes);
  return it === null ? null : it.head + it.payload;
}

function payloadOf(bytes: Buffer): Buffer {
  const { head } = headOf(bytes) ?? { head: bytes.length };
  const payload = Buffer.from(bytes.subarray(head));
  if (((bytes[1] ?? 0) & MASKED) === 0) return payload;
  for (let at = 0; at < payload.length; at++)
    payload[at] = (payload[at] ?? 0) ^ (bytes[head - MASK_BYTES + (at % MASK_BYTES)] ?? 0);
  return payload;
}
