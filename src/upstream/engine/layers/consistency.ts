// One view of the chain: calls are answered at the block that all callers are shown as the newest.
// The height is answered from the view. Calls that name a block by tag were resolved to the view's
// block, and are asked again where a provider lacks that block. Answers above the view are held
// back.
import type { Abandoned } from "../../../core/billing/charging.ts";
import { isAskedFor } from "../../../core/provider/method-scope.ts";
import { isAboutForm, isMissingBlock } from "../../../core/provider-errors/category.ts";
import { HEADS_SOURCE } from "../../../core/routing/answer-source.ts";
import { haveProvidersFailed } from "../../../core/routing/failover.ts";
import type { View } from "../../../core/rpc/call.ts";
import type { Method } from "../../../core/rpc/method.ts";
import { minedIn, pendingText } from "../../../core/rpc/result-block.ts";
import { type Answer, faultAnswer, isNull, recycle, resultOf } from "../answer.ts";
import {
  type CallContext,
  type Layer,
  type LayerParts,
  LayerRun,
  OVER,
  type RouteRequest,
  type StageListener,
} from "../call-context.ts";
import { behindMark } from "../refusal.ts";

/** What the layer works with. */
interface ViewParts extends LayerParts {
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
export function consistency(parts: Omit<ViewParts, "next">): Layer {
  return (next) => {
    const runParts = { ...parts, next };
    return (context, listener) => {
      const { view = null, call } = context.request;
      if (view === null) return next(context, listener);
      if (call.method.name !== HEIGHT)
        return new ViewRun(runParts, view, context, listener).start();
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

/** One call at a view. */
class ViewRun extends LayerRun<ViewParts> {
  readonly #view: View;
  /** Providers that said that they lack the block; null = none did. */
  #avoid: Set<string> | null = null;
  #waitsUntilMs: number | null = null;
  #isFirst = true;
  #isAsWritten = false;
  /** What the call fails with if those that are behind fail as well. */
  #failure: Answer | null = null;

  constructor(parts: ViewParts, view: View, context: CallContext, listener: StageListener) {
    super(parts, context, listener);
    this.#view = view;
  }

  /** What a provider answered that lacks the block was no answer. */
  protected override abandoned(left: Abandoned): Abandoned {
    return left;
  }

  /** Asks once more. */
  #run(changes: Partial<RouteRequest>): void {
    const { request, policy, endsAtMs } = this.context;
    this.#isFirst = false;
    const deadlineMs = endsAtMs - this.parts.runtime.now();
    const { mayStream } = request;
    this.callFurther({ mayStream, ...changes, policy, deadlineMs }, (answer, further) => {
      this.context.plan = further.plan;
      this.judge(answer, further);
    });
  }

  protected judge(answer: Answer, context: CallContext = this.context): void {
    const { resolution } = this.context.request.call;
    if (this.#isAsWritten) return this.#endAsWritten(answer);
    if (resolution === undefined) return this.finish(this.#belowTip(answer));
    const { kind } = answer.outcome;
    // A provider may refuse a number or a hash where it takes a tag. Whether that was the reason
    // shows when it is asked as the caller wrote it.
    const isAboutTag = isAboutForm(context.failed.at(-1)?.verdict.category ?? "");
    if (kind === "error" && isAboutTag) return this.#askAsWritten();
    if ((kind === "error" || kind === "fault") && this.#areOthersBehind(context)) {
      this.#failure = answer;
      for (const { attempt } of context.failed) this.#avoidLater(attempt.provider.id);
      return this.#askAsWritten();
    }
    if (!this.#isMissing(context, answer)) {
      const { number } = resolution;
      const view = this.#view;
      this.context.at = { number, hash: number === view.number ? view.hash : null };
      return this.finish(answer);
    }
    this.#askAgain(answer);
  }

  /** Whether those who were asked lack the block of the view. */
  #isMissing({ failed }: CallContext, { outcome, source }: Answer): boolean {
    const { tracker, call } = this.context.request;
    const { reasks } = this.parts;
    let isMissing = false;
    for (const { verdict } of failed) {
      if (!isMissingBlock(verdict.category)) continue;
      isMissing = true;
      reasks.missing++;
    }
    if (outcome.kind === "error" || outcome.kind === "fault") return isMissing;
    if (!call.method.mayBeMissing || !isNull(outcome)) return false;
    if (source.kind === "provider" && call.resolution !== undefined) {
      reasks.missing++;
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
   * Whether the providers with the block of the view failed while the rest, which are behind it,
   * were not asked. Nobody confirms that block then: an older one is better than none.
   */
  #areOthersBehind({ failed }: CallContext): boolean {
    const { tracker, mark = null } = this.context.request;
    if (mark !== null || failed.length === 0 || !haveProvidersFailed(failed)) return false;
    if (this.context.endsAtMs <= this.parts.runtime.now()) return false;
    const asked = new Set(failed.map(({ attempt }) => attempt.provider));
    return tracker.set.providers.some(
      (provider) => !asked.has(provider) && tracker.blocks.lacks(provider, this.#view),
    );
  }

  /** At once while somebody is left who may have the block, then for a while, then as written. */
  #askAgain(answer: Answer): void {
    const { runtime } = this.parts;
    const { tracker, mark = null } = this.context.request;
    const nowMs = runtime.now();
    if (this.context.endsAtMs - nowMs <= 0) return this.finish(answer);
    recycle(answer.outcome);
    if (this.#isFirst && this.#mayHaveIt()) return this.#run({ avoid: this.#avoid });
    this.#waitsUntilMs ??= nowMs + WAIT_MS;
    const isAwaited = tracker.set.chain.blockTimeMs <= LONGEST_AWAITED_BLOCK_MS || mark !== null;
    if (isAwaited && nowMs + RETRY_MS < Math.min(this.#waitsUntilMs, this.context.endsAtMs)) {
      this.after(RETRY_MS, () => this.#lookAgain(answer));
      return;
    }
    if (mark !== null) return this.finish(faultAnswer(behindMark(tracker.set.chain)));
    this.#askAsWritten();
  }

  #askAsWritten(): void {
    this.parts.reasks.stale++;
    this.#isAsWritten = true;
    this.context.isStale = true;
    const { call } = this.context.request;
    const written = call.resolution?.written ?? call;
    if (this.#failure === null) return this.#run({ call: written });
    // Without the view, those that lack its block may be asked as well.
    this.#run({ call: written, view: null, avoid: this.#avoid });
  }

  #lookAgain(answer: Answer): void {
    this.#avoid = null;
    if (this.#mayHaveIt()) this.#run({});
    else this.#askAgain(answer);
  }

  #mayHaveIt(): boolean {
    const { tracker, call } = this.context.request;
    const { blocks, set } = tracker;
    return set.providers.some(
      (provider) =>
        this.#avoid?.has(provider.id) !== true &&
        isAskedFor(provider, call.methodName) &&
        !blocks.lacks(provider, this.#view),
    );
  }

  /**
   * What callers are told of a transaction in a block above the tip: that it is pending. A block
   * that has not become the tip within a block time becomes it now.
   */
  #belowTip(answer: Answer): Answer {
    const { outcome } = answer;
    const { call, tracker } = this.context.request;
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
    const { failed, request } = this.context;
    const { tracker, call } = request;
    const refused = failed.find(({ verdict }) => isAboutForm(verdict.category));
    const { kind } = answer.outcome;
    if (kind === "result" && refused !== undefined && call.resolution !== undefined)
      tracker.lacksBlock(refused.attempt.provider, call.resolution.number);
    this.finish(kind === "fault" ? (this.#failure ?? answer) : answer);
  }
}

/**
 * Why a provider was asked again. `missing`: the one before lacked the block of the view. `stale`:
 * nobody had it, so the tag went out as it was written. `own`: a provider did not know a
 * transaction that this service had handed in.
 */
export const REASK_REASONS = ["missing", "stale", "own"] as const;
type ReaskReason = (typeof REASK_REASONS)[number];

/** Counts of one process. */
export class ViewReasks implements Record<ReaskReason, number> {
  missing = 0;
  stale = 0;
  own = 0;
}
