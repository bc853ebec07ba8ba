// How an answer that is passed on gets on: a least rate while it is read, and a time by which it
// ends. Knows no connection and no bytes.
import type { Runtime } from "../../runtime.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";

/** In each window of reading at least so much comes. */
const WINDOW_MS = 30_000;
const LEAST_BYTES_PER_MS = 1.024;
/** An answer ends within so many times the deadline of its method. */
const TOTAL_DEADLINES = 10;
/** While nothing is read, how often is looked whether it goes on. */
const PAUSED_LOOK_MS = 1_000;

/**
 * Why an answer is cut off; `byReader`: its reader has not taken what lay ready, at the end or for
 * most of the time.
 */
export type CutOff = (message: string, byReader: boolean) => void;

/** What paces are kept with. */
export interface Clock {
  readonly runtime: Pick<Runtime, "now">;
  readonly timerWheel: TimerWheel;
}

/**
 * The watch over one answer, from its first byte that is passed on. A slow reader, for whom reading
 * is paused, is not the provider's fault.
 */
export class AnswerPace {
  readonly #clock: Clock;
  readonly #totalMs: number;
  readonly #cutOff: CutOff;
  readonly #startedAtMs: number;
  /** Of the window: since when, what came, and how long nothing was read. */
  #windowAtMs: number;
  #windowBytes = 0;
  #windowPausedMs = 0;
  #pausedMs = 0;
  /** Null = it is read. */
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
