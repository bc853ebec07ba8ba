// Whether an open connection is alive and still needed, judged by looking at it now and then, so
// that nothing has to be noted for each frame. Holds no timer and no socket.

/** When silence and idleness count. */
export interface HeartbeatLimits {
  /** Silence after which a connection is pinged, and after which it is given up. */
  readonly pingAfterMs: number;
  readonly deadAfterMs: number;
  /** How long a connection that nobody needs stays open. */
  readonly idleMs: number;
}

/** What can be seen of a connection. */
export interface HeartbeatSample {
  readonly nowMs: number;
  /** Bytes that ever arrived; part of a long frame counts as a sign of life. */
  readonly bytesRead: number;
  /** Requests ever begun. */
  readonly begun: number;
  /** Somebody keeps it, waits for an answer or is subscribed. */
  readonly needed: boolean;
}

/** Judges one connection. */
export class Heartbeat {
  readonly #limits: HeartbeatLimits;
  #bytesRead: number;
  #begun: number;
  #heardAtMs: number;
  #usedAtMs: number;
  /** Looks taken since the last ping; null = none is unanswered. */
  #looksSincePing: number | null = null;

  constructor(limits: HeartbeatLimits, { nowMs, bytesRead, begun }: HeartbeatSample) {
    this.#limits = limits;
    this.#bytesRead = bytesRead;
    this.#begun = begun;
    this.#heardAtMs = nowMs;
    this.#usedAtMs = nowMs;
  }

  /** What to do now. */
  look({ nowMs, bytesRead, begun, needed }: HeartbeatSample): "nothing" | "ping" | "dead" | "idle" {
    if (bytesRead !== this.#bytesRead) {
      this.#bytesRead = bytesRead;
      this.#heardAtMs = nowMs;
      this.#looksSincePing = null;
    }
    if (needed || begun !== this.#begun) {
      this.#begun = begun;
      this.#usedAtMs = nowMs;
    }
    if (nowMs - this.#usedAtMs >= this.#limits.idleMs) return "idle";
    const silentMs = nowMs - this.#heardAtMs;
    if (this.#looksSincePing === null) {
      if (silentMs < this.#limits.pingAfterMs) return "nothing";
      this.#looksSincePing = 0;
      return "ping";
    }
    this.#looksSincePing++;
    // A process that stood still for long finds silence where bytes wait to be read: it looks once
    // more.
    return silentMs >= this.#limits.deadAfterMs && this.#looksSincePing > 1 ? "dead" : "nothing";
  }
}
