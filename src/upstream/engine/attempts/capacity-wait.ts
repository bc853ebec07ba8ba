// A call that finds every provider at its own limit waits a few milliseconds where there is room by
// then, and is planned anew. Only so many calls wait at a time.
import { isCreditShortage, isShortage } from "../../../core/provider/budget/budget-limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { CallContext } from "../call-context.ts";

/** Longest time that a call waits for room. */
const MAX_WAIT_MS = 20;
/** The same for credits of a day or a month, which are on their way from those who count them. */
const MAX_CREDIT_WAIT_MS = 500;
const LEAST_WAIT_MS = 2;

/** Calls that may wait for room, all together. */
export class CapacityQueue {
  readonly runtime: Pick<Runtime, "now" | "after">;
  readonly #most: number;
  #waiting = 0;

  constructor(runtime: Pick<Runtime, "now" | "after">, most = MAX_WAITING) {
    this.runtime = runtime;
    this.#most = most;
  }

  /** Takes a place; false = all are taken. */
  enter(): boolean {
    if (this.#waiting >= this.#most) return false;
    this.#waiting += 1;
    return true;
  }

  leave(): void {
    this.#waiting -= 1;
  }
}

const MAX_WAITING = 256;

/** One call that waits for room. */
export class CapacityWait {
  readonly #queue: CapacityQueue;
  readonly #context: CallContext;
  #cancelTimer: (() => void) | null = null;

  constructor(queue: CapacityQueue, context: CallContext) {
    this.#queue = queue;
    this.#context = context;
  }

  /** Waits for room if some comes soon, and runs `again` then; false = waiting does not help. */
  begin(again: () => void): boolean {
    const waitMs = this.#waitMs();
    if (waitMs === null || !this.#queue.enter()) return false;
    this.#cancelTimer = this.#queue.runtime.after(waitMs, () => {
      this.cancel();
      again();
    });
    return true;
  }

  /** Stops waiting. */
  cancel(): void {
    if (this.#cancelTimer === null) return;
    this.#cancelTimer();
    this.#cancelTimer = null;
    this.#queue.leave();
  }

  /** How long to wait; null = no provider of the plan has room soon. */
  #waitMs(): number | null {
    const { plan, request, startedAtMs } = this.#context;
    if (!plan.excluded.some(({ reason }) => isShortage(reason))) return null;
    const isCredit = plan.excluded.some(({ reason }) => isCreditShortage(reason));
    const longestMs = isCredit ? MAX_CREDIT_WAIT_MS : MAX_WAIT_MS;
    const { tracker, call, strategy, transport, pin } = request;
    const roomMs = tracker.waitMs(call, { strategy, transport, pin });
    const waitedMs = this.#queue.runtime.now() - startedAtMs;
    if (roomMs === null || waitedMs + roomMs > longestMs) return null;
    return Math.max(LEAST_WAIT_MS, roomMs);
  }
}
