// A message that has arrived in part: the memory that it takes, and whether it arrives fast enough.
// Holds no timer and no socket.

import { FREE_BYTES, type MemoryShare } from "../transport.ts";
import type { SocketLimits } from "./socket-limits.ts";

/**
 * The message arriving on one connection; the WebSocket library keeps its bytes until it is
 * complete.
 */
export class ArrivingMessage {
  readonly #room: MemoryShare;
  readonly #limits: SocketLimits;
  #bytes = 0;
  /** Bytes of room taken for it. */
  #taken = 0;
  #startedAtMs = 0;
  #windowAtMs = 0;
  #windowBytes = 0;

  constructor(room: MemoryShare, limits: SocketLimits) {
    this.#room = room;
    this.#limits = limits;
  }

  /** Counts further bytes. False = there is no room for them. */
  add(bytes: number, nowMs: number): boolean {
    if (this.#bytes === 0) {
      this.#startedAtMs = this.#windowAtMs = nowMs;
      this.#windowBytes = 0;
    }
    this.#bytes += bytes;
    const wanted = this.#bytes - FREE_BYTES - this.#taken;
    if (wanted <= 0) return true;
    if (!this.#room.take(wanted)) return false;
    this.#taken += wanted;
    return true;
  }

  /** Releases the room: the message is complete, or its connection is gone. */
  done(): void {
    this.#bytes = 0;
    if (this.#taken > 0) this.#room.giveBack(this.#taken);
    this.#taken = 0;
  }

  /** Whether the message is too slow. Must be called often compared with the window. */
  isTooSlow(nowMs: number): boolean {
    if (this.#bytes === 0) return false;
    const { paceWindowMs, paceWindowBytes, maxMessageMs } = this.#limits;
    if (nowMs - this.#startedAtMs >= maxMessageMs) return true;
    if (nowMs - this.#windowAtMs < paceWindowMs) return false;
    const came = this.#bytes - this.#windowBytes;
    this.#windowAtMs = nowMs;
    this.#windowBytes = this.#bytes;
    return came < paceWindowBytes;
  }
}
