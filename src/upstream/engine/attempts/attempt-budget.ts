// How many attempts a call may still make and how much time they have. While every circuit is open,
// it holds one of the few places for calls that ask all the same.
import type { Runtime } from "../../../runtime.ts";
import type { TimerWheel } from "../../timer-wheel.ts";
import type { Job } from "../job.ts";
import { PANIC_SLOT_MS, takePanicSlot } from "./panic-slot.ts";

/** What a budget is counted with. */
export interface BudgetParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  /** Share of the remaining time that an attempt may use while others could follow. */
  readonly firstAttemptShare: () => number;
}

/** The attempts and the time of one call. */
export class AttemptBudget {
  readonly #parts: BudgetParts;
  readonly #job: Job;
  #endsAtMs: number;
  /** Attempts that were begun, without those that were certainly not sent. */
  #begun = 0;
  #freePanicSlot: (() => void) | null = null;

  constructor(parts: BudgetParts, job: Job) {
    this.#parts = parts;
    this.#job = job;
    this.#endsAtMs = job.endsAtMs;
  }

  get isLate(): boolean {
    return this.#remainingMs() <= 0;
  }

  /** Whether another attempt may be made. */
  get mayTryMore(): boolean {
    return this.#mayTryMoreWithin(this.#remainingMs());
  }

  /** An attempt begins. Returns how long it may take: not all the time if another could follow. */
  begin(couldFollow: boolean): number {
    this.#begun++;
    const remainingMs = this.#remainingMs();
    const mayTryMore = couldFollow && this.#mayTryMoreWithin(remainingMs);
    return mayTryMore && this.#job.request.call.method.replaySafe
      ? remainingMs * this.#parts.firstAttemptShare()
      : remainingMs;
  }

  /** An attempt ended before it was sent. */
  takeBack(): void {
    this.#begun--;
  }

  /** Takes a place for panic; false = all are taken. A write is waited for as ever. */
  enterPanic(): boolean {
    const { call, tracker } = this.#job.request;
    this.#freePanicSlot = takePanicSlot(this.#parts.timerWheel, tracker);
    if (this.#freePanicSlot === null) return false;
    if (call.method.replaySafe)
      this.#endsAtMs = Math.min(this.#endsAtMs, this.#parts.runtime.now() + PANIC_SLOT_MS);
    return true;
  }

  leavePanic(): void {
    this.#freePanicSlot?.();
  }

  #mayTryMoreWithin(remainingMs: number): boolean {
    return this.#begun < this.#job.policy.maxAttempts && remainingMs > 0;
  }

  #remainingMs(): number {
    return this.#endsAtMs - this.#parts.runtime.now();
  }
}
