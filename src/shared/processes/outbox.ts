// The queue of packets to one process that may read slowly. When it is full, hints are dropped, the
// oldest first, while requests and replies are refused. Knows no topic.
import type { Packet } from "./packet.ts";

/** Sends a value to the other process; `sent` is called once it was taken or has failed. */
export type SendPacket = (packet: Packet, sent: () => void) => void;

/** Limits of an outbox; tests tighten them. */
const OUTBOX_LIMITS = {
  /** Packets sent but not yet taken. */
  maxUntaken: 256,
  maxHints: 1_024,
  /** Queued requests and replies. */
  maxMessages: 8_192,
} as const;

export type OutboxLimits = Readonly<Record<keyof typeof OUTBOX_LIMITS, number>>;

/** Sends packets in order; of queued ones, requests and replies go before hints. */
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

  /** Number of dropped hints. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Sends or queues a packet; false = the queue is full, and the packet is refused. */
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
