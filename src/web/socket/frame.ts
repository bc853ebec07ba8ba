// Writes WebSocket text frames of a server: unmasked, one per message, straight to the socket.
// Knows nothing of their contents.
import type { Socket } from "node:net";

/** The header of a text frame with a payload of this size, as Latin-1 text. */
export function textFrameHead(sizeBytes: number): string {
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
