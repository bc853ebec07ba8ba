// What waits to be sent to one process that may be slow to read. Hints give way to each other,
// questions and answers never do: beyond their bound they are refused. Knows no topic.
import type { Packet } from "./packet.ts";

/** Hands a value to the other process; `sent` is called once it was taken, or cannot be. */
export type SendPacket = (packet: Packet, sent: () => void) => void;

/** Bounds of an outbox. */
export interface OutboxLimits {
  /** Packets that were handed over and not taken yet. */
  readonly maxUntaken: number;
  readonly maxHints: number;
  /** Questions and answers. */
  readonly maxMessages: number;
}

/** The bounds used unless a test tightens them. */
const OUTBOX_LIMITS: OutboxLimits = {
  maxUntaken: 256,
  maxHints: 1_024,
  maxMessages: 8_192,
};

/** Sends packets in order, those that wait first the messages, then the hints. */
export class Outbox {
  readonly #send: SendPacket;
  readonly #limits: OutboxLimits;
  readonly #hints: Packet[] = [];
  readonly #messages: Packet[] = [];
  #untaken = 0;
  #dropped = 0;

  constructor(send: SendPacket, limits: OutboxLimits = OUTBOX_LIMITS) {
    this.#send = send;
    this.#limits = limits;
  }

  /** Hints that were dropped so far. */
  get dropped(): number {
    return this.#dropped;
  }

  /** False = too much waits already, and the packet is not sent. */
  put(packet: Packet): boolean {
    const { maxUntaken, maxHints, maxMessages } = this.#limits;
    if (this.#untaken < maxUntaken) {
      this.#handOver(packet);
      return true;
    }
    if (packet.kind === "hint") {
      this.#hints.push(packet);
      if (this.#hints.length > maxHints) {
        this.#hints.shift();
        this.#dropped++;
      }
      return true;
    }
    if (this.#messages.length >= maxMessages) return false;
    this.#messages.push(packet);
    return true;
  }

  #handOver(packet: Packet): void {
    this.#untaken++;
    let isTaken = false;
    this.#send(packet, () => {
      if (isTaken) return;
      isTaken = true;
      this.#untaken--;
      const next = this.#messages.shift() ?? this.#hints.shift();
      if (next !== undefined) this.#handOver(next);
    });
  }
}
