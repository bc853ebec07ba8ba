// A call that finds every provider at its own limit waits a few milliseconds where there is room by
// then, and is planned anew. Only so many calls wait at a time.
import type { Abandoned } from "../../../core/billing/charging.ts";
import { isCreditShortage, isShortage } from "../../../core/provider/budget/budget-limits.ts";
import type { Answer } from "../answer.ts";
import { type CallContext, type LayerParts, LayerRun, type RunningCall } from "../call-context.ts";

/** Longest time that a call waits for room. */
const MAX_WAIT_MS = 20;
/** The same for credits of a day or a month that were asked of the store. */
const MAX_CREDIT_WAIT_MS = 500;
const LEAST_WAIT_MS = 2;

const MAX_WAITING = 256;

/** What a wait works with. */
interface WaitParts extends LayerParts {
  /** Calls that wait for room, all together. */
  readonly queue: { waiting: number };
  /** Plans the call anew. */
  readonly plan: (context: CallContext) => void;
}

/** A call that nobody may be asked for now: it waits for room where that helps, and begins. */
export class CapacityWait extends LayerRun<WaitParts> {
  #isWaiting = false;

  override start(): RunningCall {
    const { queue, plan } = this.parts;
    const waitMs = this.context.plan.candidates.length > 0 ? null : this.#waitMs();
    if (waitMs === null || queue.waiting >= MAX_WAITING) return super.start();
    queue.waiting++;
    this.#isWaiting = true;
    this.after(waitMs, () => {
      this.#stopWaiting();
      plan(this.context);
      this.start();
    });
    return this;
  }

  protected judge(answer: Answer): void {
    this.finish(answer);
  }

  protected override close(): Abandoned {
    this.#stopWaiting();
    return super.close();
  }

  #stopWaiting(): void {
    if (this.#isWaiting) this.parts.queue.waiting--;
    this.#isWaiting = false;
  }

  /** How long to wait; null = no provider of the plan has room soon. */
  #waitMs(): number | null {
    const { plan, request, startedAtMs } = this.context;
    if (!plan.excluded.some(({ reason }) => isShortage(reason))) return null;
    const isCredit = plan.excluded.some(({ reason }) => isCreditShortage(reason));
    const longestMs = isCredit ? MAX_CREDIT_WAIT_MS : MAX_WAIT_MS;
    const { tracker, call, strategy, transport, pin } = request;
    const roomMs = tracker.waitMs(call, { strategy, transport, pin });
    const waitedMs = this.parts.runtime.now() - startedAtMs;
    if (roomMs === null || waitedMs + roomMs > longestMs) return null;
    return Math.max(LEAST_WAIT_MS, roomMs);
  }
}
