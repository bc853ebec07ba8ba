// A call that finds every provider at its own limit waits a few milliseconds where there is room by
// then, and is planned anew. Only so many calls wait at a time.
import type { Abandoned } from "../../../core/billing/charging.ts";
import { isCreditShortage, isShortage } from "../../../core/provider/budget/budget-limits.ts";
import type { Runtime } from "../../../runtime.ts";
import { type CallContext, NOTHING_SENT, type RunningCall } from "../call-context.ts";

/** Longest time that a call waits for room. */
const MAX_WAIT_MS = 20;
/** The same for credits of a day or a month that were asked of the store. */
const MAX_CREDIT_WAIT_MS = 500;
const LEAST_WAIT_MS = 2;

/** Calls that wait for room, all together. */
export interface CapacityQueue {
  readonly runtime: Pick<Runtime, "now" | "after">;
  waiting: number;
}

const MAX_WAITING = 256;

/** What a call waits for. */
interface WaitedStage {
  /** Plans the call anew. */
  plan(): void;
  begin(): RunningCall;
}

/** A call that nobody may be asked for now: it waits for room where that helps, and begins. */
export class CapacityWait implements RunningCall {
  readonly #queue: CapacityQueue;
  readonly #context: CallContext;
  readonly #stage: WaitedStage;
  #cancelTimer: (() => void) | null = null;
  #run: RunningCall | null = null;

  constructor(queue: CapacityQueue, context: CallContext, stage: WaitedStage) {
    this.#queue = queue;
    this.#context = context;
    this.#stage = stage;
    this.#tryBegin();
  }

  cancel(): Abandoned {
    this.#stopWaiting();
    return this.#run?.cancel() ?? NOTHING_SENT;
  }

  #tryBegin(): void {
    const waitMs = this.#context.plan.candidates.length > 0 ? null : this.#waitMs();
    if (waitMs === null || this.#queue.waiting >= MAX_WAITING) {
      this.#run = this.#stage.begin();
      return;
    }
    this.#queue.waiting++;
    this.#cancelTimer = this.#queue.runtime.after(waitMs, () => {
      this.#stopWaiting();
      this.#stage.plan();
      this.#tryBegin();
    });
  }

  #stopWaiting(): void {
    if (this.#cancelTimer === null) return;
    this.#cancelTimer();
    this.#cancelTimer = null;
    this.#queue.waiting--;
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
