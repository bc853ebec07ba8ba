// Notifications: events of subscriptions, and requested evidence. An event is encoded once for all
// subscribers and written to each with the subscriber's id filled in. Knows no subscription.
import type { Socket } from "node:net";
import type { Block } from "../../core/stream/chain-event.ts";
import type { Unconfirmed } from "../../core/stream/log-verification.ts";
import type { Evidence } from "../rpc/answers/evidence.ts";

/** Length of every subscription id, in characters. */
export const SUBSCRIPTION_ID_CHARS = 34;

/** What was written to a socket. */
export interface WrittenFrames {
  readonly writes: number;
  readonly bytes: number;
}

/** Encodes events. Keeps the last encoding, which usually goes to many sockets. */
export class FrameEncoder {
  #encoded: EncodedEvents | null = null;

  /** Writes one message per result. All ids have the same length. */
  write(socket: Socket, id: string, results: readonly Buffer[]): WrittenFrames {
    if (this.#encoded?.results !== results) this.#encoded = encode(results);
    if (this.#encoded === null) return writeEach(socket, id, results);
    if (this.#encoded.inUse)
      this.#encoded = { ...this.#encoded, bytes: Buffer.from(this.#encoded.bytes), inUse: false };
    const { bytes } = this.#encoded;
    for (const offset of this.#encoded.idOffsets)
      bytes.write(id, offset, SUBSCRIPTION_ID_CHARS, "latin1");
    socket.write(bytes);
    this.#encoded.inUse = socket.writableLength > 0;
    return { writes: 1, bytes: bytes.length };
  }
}

/** The evidence of the request with this id, as a message. */
export function metaNotification(id: string, meta: Evidence): Buffer {
  return Buffer.from(
    `{"jsonrpc":"2.0","method":"svc_meta","params":{"id":${id},${JSON.stringify(meta).slice(1)}}`,
  );
}

/** That logs of a block were told to a subscription before a second provider confirmed them. */
export function unconfirmedNotification(
  subscription: string,
  { number, hash }: Block,
  reason: Unconfirmed,
): Buffer {
  const params = { subscription, unconfirmed: { block: { number, hash }, reason } };
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "svc_meta", params }));
}

/** Concatenated frames of several results, for any subscriber. */
interface EncodedEvents {
  readonly results: readonly Buffer[];
  readonly bytes: Buffer;
  readonly idOffsets: readonly number[];
  /** True while a socket has not sent `bytes` yet, so that they must not be overwritten. */
  inUse: boolean;
}

/**
 * Longer encodings are written in pieces, so that slow readers share the memory of the results.
 */
const MAX_ENCODED_BYTES = 262_144;
const BEFORE_ID = '{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"';
const BEFORE_RESULT = '","result":';
const END = "}}";
const WRITES_OF_ONE = 3;
const AROUND_BYTES = BEFORE_ID.length + SUBSCRIPTION_ID_CHARS + BEFORE_RESULT.length + END.length;

function encode(results: readonly Buffer[]): EncodedEvents | null {
  const heads = results.map((result) => textFrameHead(AROUND_BYTES + result.length));
  const size = results.reduce(
    (sum, result, i) => sum + (heads[i]?.length ?? 0) + AROUND_BYTES + result.length,
    0,
  );
  if (size > MAX_ENCODED_BYTES) return null;
  const bytes = Buffer.allocUnsafeSlow(size);
  const idOffsets: number[] = [];
  let at = 0;
  for (const [i, result] of results.entries()) {
    at += bytes.write(heads[i] + BEFORE_ID, at, "latin1");
    idOffsets.push(at);
    at += SUBSCRIPTION_ID_CHARS;
    at += bytes.write(BEFORE_RESULT, at, "latin1");
    at += result.copy(bytes, at);
    at += bytes.write(END, at, "latin1");
  }
  return { results, bytes, idOffsets, inUse: false };
}

function writeEach(socket: Socket, id: string, results: readonly Buffer[]): WrittenFrames {
  let bytes = 0;
  socket.cork();
  for (const result of results) {
    const head = textFrameHead(AROUND_BYTES + result.length) + BEFORE_ID + id + BEFORE_RESULT;
    socket.write(head, "latin1");
    socket.write(result);
    socket.write(END, "latin1");
    bytes += head.length + result.length + END.length;
  }
  socket.uncork();
  return { writes: results.length * WRITES_OF_ONE, bytes };
}

// Writes WebSocket text frames of a server: unmasked, one per message, straight to the socket.
// Knows nothing of their contents.

/** The header of a text frame with a payload of this size, as Latin-1 text. */
function textFrameHead(sizeBytes: number): string {
  if (sizeBytes < 126) return `\x81${String.fromCharCode(sizeBytes)}`;
  if (sizeBytes < 65_536) return `\x81\x7e${bigEndian(sizeBytes, 2)}`;
  return `\x81\x7f${bigEndian(sizeBytes, 8)}`;
}

/**
 * Writes one message from its pieces. Short pieces are joined into one write, long ones are not
 * copied. `written` is called with whether the connection took the whole message. Returns the bytes
 * that were written.
 */
export function writeText(
  socket: Socket,
  pieces: readonly Buffer[],
  written?: (error?: Error | null) => void,
): number {
  let size = 0;
  for (const piece of pieces) size += piece.length;
  let text = textFrameHead(size);
  if (size <= ONE_WRITE_BYTES) {
    for (const piece of pieces) text += piece.toString("latin1");
    socket.write(text, "latin1", written);
    return text.length;
  }
  socket.cork();
  socket.write(text, "latin1");
  for (const piece of pieces) socket.write(piece);
  if (written !== undefined) socket.write("", "latin1", written);
  socket.uncork();
  return text.length + size;
}

const ONE_WRITE_BYTES = 16_384;

function bigEndian(value: number, bytes: number): string {
  let text = "";
  for (let i = bytes - 1; i >= 0; i--)
    text += String.fromCharCode(Math.floor(value / 256 ** i) % 256);
  return text;
}
