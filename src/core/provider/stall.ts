// Whether calls hang at a provider that may still answer probes and other calls: which of its last
// attempts another provider overtook, or the service gave up. A provider that hangs too often is
// asked after all others, and comes back by trial calls, one at a time. Knows no clock and no
// circuit.
import { STALE_MS } from "./latency.ts";

/** So many attempts are looked at. */
const ATTEMPTS = 50;
/** More of them than this, and the provider is asked after the others. */
const MOST_HUNG = ATTEMPTS / 10;
/** No trial before this time after the last attempt that hung. */
const TRIAL_AFTER_MS = 10_000;

/** The last attempts at one provider on one transport. */
export class StallRecord {
  /** The last attempts by turns: 1 = it was overtaken or given up. */
  readonly #ring = new Uint8Array(ATTEMPTS);
  /** The next place in the ring. */
  #at = 0;
  /** How many attempts in the ring were overtaken or given up: nearly always none. */
  hung = 0;
  /** When the last of them was overtaken or given up (ms). */
  #hungAtMs = Number.NEGATIVE_INFINITY;
  /** The attempt that is the trial; null = no trial is under way. */
  #trial: object | null = null;

  /** An attempt ended by itself, well or not. */
  ended(): void {
    // Almost always: then the ring holds nothing.
    if (this.hung > 0) this.#note(0);
  }

  /** An attempt was overtaken, or given up; not by its caller. */
  overtaken(nowMs: number): void {
    if (this.#isStale(nowMs)) {
      this.#ring.fill(0);
      this.hung = 0;
    }
    this.#note(1);
    this.#hungAtMs = nowMs;
  }

  /**
   * Whether calls hang at the provider: then it is asked after those where they do not. Changes
   * nothing of its circuit.
   */
  isStalled(nowMs: number): boolean {
    return this.hung > MOST_HUNG && !this.#isStale(nowMs);
  }

  /** Whether the next attempt at a stalled provider is its trial: then it keeps its place. */
  isTrialDue(nowMs: number): boolean {
    if (this.#trial !== null || !this.isStalled(nowMs)) return false;
    const ageMs = nowMs - this.#hungAtMs;
    return ageMs < 0 || ageMs >= TRIAL_AFTER_MS;
  }

  /** An attempt begins; true = one was due to be the trial, and it is. */
  begin(attempt: object, nowMs: number): boolean {
    if (this.hung <= MOST_HUNG || !this.isTrialDue(nowMs)) return false;
    this.#trial = attempt;
    return true;
  }

  /** An attempt is over: if it was the trial, another may begin. */
  end(attempt: object): void {
    if (this.#trial === attempt) this.#trial = null;
  }

  #note(hung: 0 | 1): void {
    this.hung += hung - (this.#ring[this.#at] ?? 0);
    this.#ring[this.#at] = hung;
    this.#at = (this.#at + 1) % ATTEMPTS;
  }

  #isStale(nowMs: number): boolean {
    return nowMs - this.#hungAtMs >= STALE_MS;
  }
}
