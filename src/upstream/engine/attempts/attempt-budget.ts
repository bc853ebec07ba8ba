// How many attempts a call may still make and how much time they have. While every circuit is open,
// it holds one of the few places for calls that ask all the same.
import type { Runtime } from "../../../runtime.ts";
import type { Tracker } from "../../health/tracker.ts";
import type { TimerWheel } from "../../timer-wheel.ts";
import type { CallContext } from "../call-context.ts";

/** What a budget is counted with. */
export interface BudgetParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly limits: () => {
    /** Share of the remaining time that an attempt may use while others could follow. */
    readonly firstAttemptShare: number;
  };
}

/** The attempts and the time of one call. */
export class AttemptBudget {
  readonly #parts: BudgetParts;
  readonly #context: CallContext;
  #endsAtMs: number;
  /** Attempts that were begun, without those that were certainly not sent. */
  #begun = 0;
  #freePanicSlot: (() => void) | null = null;

  constructor(parts: BudgetParts, context: CallContext) {
    this.#parts = parts;
    this.#context = context;
    this.#endsAtMs = context.endsAtMs;
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
    return mayTryMore && this.#context.request.call.method.replaySafe
      ? remainingMs * this.#parts.limits().firstAttemptShare
      : remainingMs;
  }

  /** An attempt ended before it was sent. */
  takeBack(): void {
    this.#begun--;
  }

  /** Takes a place for panic; false = all are taken. A write is waited for as ever. */
  enterPanic(): boolean {
    const { call, tracker } = this.#context.request;
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
    return this.#begun < this.#context.policy.maxAttempts && remainingMs > 0;
  }

  #remainingMs(): number {
    return this.#endsAtMs - this.#parts.runtime.now();
  }
}

/** How long a slot is held at most; also the deadline of a read that holds one. */
const PANIC_SLOT_MS = 1_000;

/**
 * Takes a slot. Returns a function that frees it, which has an effect once; null = no slot is free.
 */
function takePanicSlot(timerWheel: TimerWheel, tracker: Tracker): (() => void) | null {
  if (!tracker.takePanicSlot()) return null;
  let isHeld = true;
  const free = (): void => {
    if (!isHeld) return;
    isHeld = false;
    timer.clear();
    tracker.freePanicSlot();
  };
  const timer = timerWheel.set(PANIC_SLOT_MS, free);
  return free;
}
