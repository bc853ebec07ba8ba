// What has come of a message that is not whole yet: how much memory it takes, and whether it comes
// fast enough. Holds no timer and no socket.
import { FREE_BYTES, type Room } from "../transport.ts";

/** How slowly a message may come. */
export interface PaceLimits {
  /** In each window of this length at least so many bytes come. */
  readonly paceWindowMs: number;
  readonly paceWindowBytes: number;
  /** A message takes no longer than this. */
  readonly maxMessageMs: number;
}

/**
 * The message that is arriving on one connection; the library keeps its bytes until it is whole.
 */
export class ArrivingMessage {
  readonly #room: Room;
  readonly #limits: PaceLimits;
  #bytes = 0;
  /** What of that is counted. */
  #taken = 0;
  #startedAtMs = 0;
  #windowAtMs = 0;
  #windowBytes = 0;

  constructor(room: Room, limits: PaceLimits) {
    this.#room = room;
    this.#limits = limits;
  }

  /** More has come; false = there is no room for it. */
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

  /** It is whole, or its connection is gone. */
  done(): void {
    this.#bytes = 0;
    if (this.#taken > 0) this.#room.giveBack(this.#taken);
    this.#taken = 0;
  }

  /** Whether it is too slow, as seen now; to be asked often compared with the window. */
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
