// Whether an open connection is alive and still needed, judged by periodic samples, so that nothing
// is recorded per frame. Holds no timer and no socket.
import type { SocketLimits } from "./socket-limits.ts";

/** One sample of a connection. */
export interface HeartbeatSample {
  readonly nowMs: number;
  /** Total bytes received; part of a long frame counts as a sign of life. */
  readonly bytesRead: number;
  /** Total requests begun. */
  readonly begun: number;
  /** It has a keeper, a pending request or a subscription. */
  readonly needed: boolean;
}

/** Judges one connection. */
export class Heartbeat {
  readonly #limits: SocketLimits;
  #bytesRead: number;
  #begun: number;
  #heardAtMs: number;
  #usedAtMs: number;
  /** Samples since the last ping; null = no ping is unanswered. */
  #samplesSincePing: number | null = null;

  constructor(limits: SocketLimits, { nowMs, bytesRead, begun }: HeartbeatSample) {
    this.#limits = limits;
    this.#bytesRead = bytesRead;
    this.#begun = begun;
    this.#heardAtMs = nowMs;
    this.#usedAtMs = nowMs;
  }

  /** Decides what to do, from a new sample. */
  judge({
    nowMs,
    bytesRead,
    begun,
    needed,
  }: HeartbeatSample): "nothing" | "ping" | "dead" | "idle" {
    if (bytesRead !== this.#bytesRead) {
      this.#bytesRead = bytesRead;
      this.#heardAtMs = nowMs;
      this.#samplesSincePing = null;
    }
    if (needed || begun !== this.#begun) {
      this.#begun = begun;
      this.#usedAtMs = nowMs;
    }
    if (nowMs - this.#usedAtMs >= this.#limits.idleMs) return "idle";
    const silentMs = nowMs - this.#heardAtMs;
    if (this.#samplesSincePing === null) {
      if (silentMs < this.#limits.pingAfterMs) return "nothing";
      this.#samplesSincePing = 0;
      return "ping";
    }
    this.#samplesSincePing++;
    // A process that was paused for long sees silence although bytes wait to be read: it takes one
    // more sample.
    return silentMs >= this.#limits.deadAfterMs && this.#samplesSincePing > 1 ? "dead" : "nothing";
  }
}
