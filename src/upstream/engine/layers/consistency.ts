// One view of the chain: calls are answered at the block that all callers are shown as the newest.
// The height is answered from the view. Calls that name a block by tag were resolved to the view's
// block, and are asked again where a provider lacks that block. Answers above the view are held
// back.
import type { Abandoned } from "../../../core/billing/charging.ts";
import { isAboutForm, isMissingBlock } from "../../../core/provider-errors/category.ts";
import { HEADS_SOURCE } from "../../../core/routing/answer-source.ts";
import { haveProvidersFailed } from "../../../core/routing/failover.ts";
import type { View } from "../../../core/rpc/call.ts";
import type { Method } from "../../../core/rpc/method.ts";
import { minedIn, pendingText } from "../../../core/rpc/mined-block.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Timer, TimerWheel } from "../../timer-wheel.ts";
import { type Answer, faultAnswer, isNull, recycle, resultOf } from "../answer.ts";
import {
  CallContext,
  type Layer,
  NOTHING_SENT,
  OVER,
  type RunningCall,
  type Stage,
  type StageListener,
} from "../call-context.ts";
import { behindMark } from "../refusal.ts";

/** What the layer works with. */
export interface ConsistencyParts {
  readonly runtime: Pick<Runtime, "now">;
  readonly timerWheel: TimerWheel;
  readonly reasks: ViewReasks;
}

/** The methods that tell where a transaction was mined. */
const TELLING: ReadonlySet<string> = new Set([
  "eth_getTransactionByHash",
  "eth_getTransactionReceipt",
]);
const HEIGHT = "eth_blockNumber";

/** Whether the layer has a part in calls of a method whose block was not resolved. */
export function isViewed({ name, transaction }: Method): boolean {
  return name === HEIGHT || transaction === "receipt" || TELLING.has(name);
}

/** The layer of the one view. */
export function consistency(parts: ConsistencyParts): Layer {
  return (next) => {
    const runParts = { ...parts, next };
    return (context, listener) => {
      const { view = null, call } = context.request;
      if (view === null) return next(context, listener);
      if (call.method.name !== HEIGHT)
        return new ViewRun(runParts, { context, view, listener }).start();
      context.at = { number: view.number, hash: view.hash };
      const outcome = resultOf(`"0x${view.number.toString(16)}"`);
      listener.ended({ outcome, source: HEADS_SOURCE });
      return OVER;
    };
  };
}

/** How long a call waits for a provider to have the block of its view, in all. */
const WAIT_MS = 500;
const RETRY_MS = 100;
/** With longer block times the block does not come while a call waits. */
const LONGEST_AWAITED_BLOCK_MS = 2_000;

interface ViewParts extends ConsistencyParts {
  readonly next: Stage;
}

/** A call at a view, and who hears its answer. */
interface ViewedCall {
  readonly context: CallContext;
  readonly view: View;
  readonly listener: StageListener;
}

/** One call at a view. */
class ViewRun implements StageListener, RunningCall {
  readonly #parts: ViewParts;
  readonly #context: CallContext;
  readonly #view: View;
  readonly #listener: StageListener;
  /** Providers that said that they lack the block; null = none did. */
  #avoid: Set<string> | null = null;
  #running: RunningCall | null = null;
  #retry: Timer | null = null;
  #waitsUntilMs: number | null = null;
  /** Calls that were begun for it. */
  #count = 0;
  #isAsWritten = false;
  /** What the call fails with if those that are behind fail as well. */
  #failure: Answer | null = null;
  #over = false;

  constructor(parts: ViewParts, { context, view, listener }: ViewedCall) {
    this.#parts = parts;
    this.#context = context;
    this.#view = view;
    this.#listener = listener;
  }

  start(): RunningCall {
    this.#count = 1;
    const running = this.#parts.next(this.#context, this);
    if (this.#count === 1) this.#running = running;
    return this;
  }

  cancel(): Abandoned {
    if (this.#over) return NOTHING_SENT;
    this.#over = true;
    this.#retry?.clear();
    return this.#running?.cancel() ?? NOTHING_SENT;
  }

  ended(answer: Answer): void {
    if (!this.#over) this.#judge(this.#context, answer);
  }

  /** Asks once more, by another call. */
  #run(context: CallContext): void {
    const count = ++this.#count;
    let isOver = false;
    const running = this.#parts.next(context, {
      ended: (answer) => {
        isOver = true;
        this.#context.absorb(context);
        if (!this.#over) this.#judge(context, answer);
      },
    });
    if (!isOver && count === this.#count) this.#running = running;
  }

  #judge(context: CallContext, answer: Answer): void {
    const { resolution } = this.#context.request.call;
    if (this.#isAsWritten) return this.#endAsWritten(answer);
    if (resolution === undefined) return this.#finish(this.#belowTip(answer));
    const { kind } = answer.outcome;
    if (kind === "error" && this.#isRefusedForm(context)) return this.#askAsWritten();
    if ((kind === "error" || kind === "fault") && this.#areOthersBehind(context)) {
      this.#failure = answer;
      for (const { attempt } of context.failed) this.#avoidLater(attempt.provider.id);
      return this.#askAsWritten();
    }
    if (!this.#isMissing(context, answer)) {
      const { number } = resolution;
      const view = this.#view;
      this.#context.at = { number, hash: number === view.number ? view.hash : null };
      return this.#finish(answer);
    }
    this.#askAgain(answer);
  }

  /** Whether those who were asked lack the block of the view. */
  #isMissing({ failed }: CallContext, { outcome, source }: Answer): boolean {
    const { tracker, call } = this.#context.request;
    const { reasks } = this.#parts;
    let isMissing = false;
    for (const { verdict } of failed) {
      if (!isMissingBlock(verdict.category)) continue;
      isMissing = true;
      reasks.count("missing");
    }
    if (outcome.kind === "error" || outcome.kind === "fault") return isMissing;
    if (!call.method.mayBeMissing || !isNull(outcome)) return false;
    if (source.kind === "provider" && call.resolution !== undefined) {
      reasks.count("missing");
      tracker.lacksBlock(source.provider, call.resolution.number);
      this.#avoidLater(source.provider.id);
    }
    return true;
  }

  #avoidLater(id: string): void {
    this.#avoid ??= new Set();
    this.#avoid.add(id);
  }

  /**
   * Whether those who have the block of the view failed, and others were not asked since they are
   * behind it. Nobody confirms that block then: an older one is better than none.
   */
  #areOthersBehind({ failed }: CallContext): boolean {
    const { tracker, mark = null } = this.#context.request;
    if (mark !== null || failed.length === 0 || !haveProvidersFailed(failed)) return false;
    if (this.#context.endsAtMs <= this.#parts.runtime.now()) return false;
    const asked = new Set(failed.map(({ attempt }) => attempt.provider));
    return tracker.set.providers.some(
      (provider) => !asked.has(provider) && tracker.blocks.lacks(provider, this.#view),
    );
  }

  /** At once while somebody is left who may have the block, then for a while, then as written. */
  #askAgain(answer: Answer): void {
    const { runtime } = this.#parts;
    const { tracker, mark = null } = this.#context.request;
    const nowMs = runtime.now();
    if (this.#context.endsAtMs - nowMs <= 0) return this.#finish(answer);
    recycle(answer.outcome);
    if (this.#count === 1 && this.#mayHaveIt()) {
      return this.#run(this.#again());
    }
    this.#waitsUntilMs ??= nowMs + WAIT_MS;
    const isAwaited = tracker.set.chain.blockTimeMs <= LONGEST_AWAITED_BLOCK_MS || mark !== null;
    if (isAwaited && nowMs + RETRY_MS < Math.min(this.#waitsUntilMs, this.#context.endsAtMs)) {
      this.#retry = this.#parts.timerWheel.set(RETRY_MS, () => this.#lookAgain(answer));
      return;
    }
    if (mark !== null) return this.#finish(faultAnswer(behindMark(tracker.set.chain)));
    this.#askAsWritten();
  }

  /**
   * A provider may refuse a number or a hash where it takes a tag. Whether that was the reason
   * shows when it is asked as the caller wrote it.
   */
  #isRefusedForm({ failed }: CallContext): boolean {
    const last = failed.at(-1);
    return last !== undefined && isAboutForm(last.verdict.category);
  }

  #askAsWritten(): void {
    this.#parts.reasks.count("stale");
    this.#isAsWritten = true;
    this.#context.isStale = true;
    this.#run(this.#asWritten());
  }

  #lookAgain(answer: Answer): void {
    this.#avoid = null;
    if (!this.#mayHaveIt()) return this.#askAgain(answer);
    this.#run(this.#again());
  }

  #mayHaveIt(): boolean {
    const { tracker } = this.#context.request;
    const { blocks, set } = tracker;
    return set.providers.some(
      (provider) => this.#avoid?.has(provider.id) !== true && !blocks.lacks(provider, this.#view),
    );
  }

  #again(): CallContext {
    const { request, policy } = this.#context;
    return this.#contextOf({ ...request, avoid: this.#avoided() }, policy);
  }

  #avoided(): ReadonlySet<string> | null {
    const avoid = new Set([...(this.#context.request.avoid ?? []), ...(this.#avoid ?? [])]);
    return avoid.size === 0 ? null : avoid;
  }

  #asWritten(): CallContext {
    const { request, policy } = this.#context;
    const call = request.call.resolution?.written ?? request.call;
    if (this.#failure === null) return this.#contextOf({ ...request, call }, policy);
    // Without the view, those that lack its block may be asked as well.
    return this.#contextOf({ ...request, call, view: null, avoid: this.#avoided() }, policy);
  }

  #contextOf(request: CallContext["request"], policy: CallContext["policy"]): CallContext {
    const startedAtMs = this.#parts.runtime.now();
    const { endsAtMs } = this.#context;
    return new CallContext({ ...request, deadlineMs: endsAtMs - startedAtMs }, policy, {
      startedAtMs,
      endsAtMs,
    });
  }

  /**
   * What callers are told of a transaction in a block above the tip: that it is pending. A block
   * that has not become the tip within a block time becomes it now.
   */
  #belowTip(answer: Answer): Answer {
    const { outcome } = answer;
    const { call, tracker } = this.#context.request;
    const { view: served } = tracker.blocks;
    if (outcome.kind !== "result") return answer;
    const mined = minedIn(outcome.body, outcome);
    if (mined === null) return answer;
    const tip = this.#view.number;
    if (mined.number <= tip || mined.number <= (served.tip?.number ?? tip)) return answer;
    if (call.method.transaction === "receipt" || served.isDue(mined.number)) {
      served.raise(mined);
      return answer;
    }
    const text =
      call.method.name === "eth_getTransactionReceipt"
        ? "null"
        : pendingText(outcome.body, outcome);
    recycle(outcome);
    return { ...answer, outcome: resultOf(text) };
  }

  /** Who answers to the tag after it has refused the form of the block is asked so from then on. */
  #endAsWritten(answer: Answer): void {
    const { failed, request } = this.#context;
    const { tracker, call } = request;
    const refused = failed.find(({ verdict }) => isAboutForm(verdict.category));
    const { kind } = answer.outcome;
    if (kind === "result" && refused !== undefined && call.resolution !== undefined)
      tracker.lacksBlock(refused.attempt.provider, call.resolution.number);
    this.#finish(kind === "fault" ? (this.#failure ?? answer) : answer);
  }

  #finish(answer: Answer): void {
    if (this.#over) return;
    this.#over = true;
    this.#listener.ended(answer);
  }
}

/**
 * Why a provider was asked again. `missing`: the one before lacked the block of the view. `stale`:
 * nobody had it, so the tag went out as it was written. `own`: a provider did not know a
 * transaction that this service had handed in.
 */
export type ReaskReason = "missing" | "stale" | "own";

export const REASK_REASONS: readonly ReaskReason[] = ["missing", "stale", "own"];

/** Counts of one process. */
export class ViewReasks {
  readonly #counts = new Map<ReaskReason, number>();

  count(reason: ReaskReason): void {
    this.#counts.set(reason, this.of(reason) + 1);
  }

  of(reason: ReaskReason): number {
    return this.#counts.get(reason) ?? 0;
  }
}
