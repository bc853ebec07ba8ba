// The pace of a streamed answer: a least rate while it is read, and a latest end. Knows no
// connection and no bytes.
import type { Runtime } from "../../runtime.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";

/** Least rate: this many bytes per ms over each window of reading. */
const WINDOW_MS = 30_000;
const LEAST_BYTES_PER_MS = 1.024;
/** Latest end of an answer, as a multiple of its method's deadline. */
const TOTAL_DEADLINES = 10;
/** How often a paused answer is checked. */
const PAUSED_LOOK_MS = 1_000;

/**
 * Cuts an answer off. `byReader`: its reader has not taken what was ready, at the end or for most
 * of the time.
 */
export type CutOff = (message: string, byReader: boolean) => void;

/** Clock and timers. */
export interface Clock {
  readonly runtime: Pick<Runtime, "now">;
  readonly timerWheel: TimerWheel;
}

/**
 * Watches the pace of one answer from its first streamed byte. Time in which reading is paused for
 * a slow reader is not counted against the provider.
 */
export class AnswerPace {
  readonly #clock: Clock;
  readonly #totalMs: number;
  readonly #cutOff: CutOff;
  readonly #startedAtMs: number;
  /**
   * The current window: its start, the bytes that arrived, and the time in which nothing was read.
   */
  #windowAtMs: number;
  #windowBytes = 0;
  #windowPausedMs = 0;
  #pausedMs = 0;
  /** Null = the answer is being read. */
  #pausedAtMs: number | null = null;
  #timer: Timer;

  constructor(clock: Clock, deadlineMs: number, cutOff: CutOff) {
    this.#clock = clock;
    this.#totalMs = TOTAL_DEADLINES * deadlineMs;
    this.#cutOff = cutOff;
    this.#startedAtMs = this.#windowAtMs = clock.runtime.now();
    this.#timer = this.#look(WINDOW_MS);
  }

  came(bytes: number): void {
    this.#windowBytes += bytes;
  }

  pause(): void {
    this.#pausedAtMs ??= this.#clock.runtime.now();
  }

  resume(): void {
    if (this.#pausedAtMs === null) return;
    const pausedMs = this.#clock.runtime.now() - this.#pausedAtMs;
    this.#pausedAtMs = null;
    this.#windowPausedMs += pausedMs;
    this.#pausedMs += pausedMs;
  }

  end(): void {
    this.#timer.clear();
  }

  #look(inMs: number): Timer {
    const leftMs = this.#totalMs - (this.#clock.runtime.now() - this.#startedAtMs);
    return this.#clock.timerWheel.set(Math.min(inMs, leftMs), () => this.#looked());
  }

  #looked(): void {
    const nowMs = this.#clock.runtime.now();
    const isPaused = this.#pausedAtMs !== null;
    if (isPaused) {
      this.resume();
      this.pause();
    }
    const tookMs = nowMs - this.#startedAtMs;
    if (tookMs >= this.#totalMs)
      return this.#cutOff("the answer took too long", isPaused || 2 * this.#pausedMs > tookMs);
    const readMs = nowMs - this.#windowAtMs - this.#windowPausedMs;
    if (readMs >= WINDOW_MS) {
      if (this.#windowBytes < readMs * LEAST_BYTES_PER_MS)
        return this.#cutOff("the answer came too slowly", false);
      this.#windowAtMs = nowMs;
      this.#windowBytes = 0;
      this.#windowPausedMs = 0;
    }
    const leftMs = readMs >= WINDOW_MS ? WINDOW_MS : WINDOW_MS - readMs;
    this.#timer = this.#look(isPaused ? Math.max(PAUSED_LOOK_MS, leftMs) : leftMs);
  }
}
