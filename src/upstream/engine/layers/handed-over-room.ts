// The room of a call that may pass from one caller to another: what it holds moves with it.
import type { Room } from "../../transport.ts";

/** Room in the share of the caller that owns the call now. */
export class HandedOverRoom implements Room {
  #room: Room;
  #bytes = 0;

  constructor(room: Room) {
    this.#room = room;
  }

  take(bytes: number): boolean {
    if (!this.#room.take(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    const back = Math.min(bytes, this.#bytes);
    this.#bytes -= back;
    this.#room.giveBack(back);
  }

  /** Counts in another share from here on; false = there is no room, and all stays as it is. */
  moveTo(room: Room): boolean {
    if (!room.take(this.#bytes)) return false;
    this.#room.giveBack(this.#bytes);
    this.#room = room;
    return true;
  }
}
