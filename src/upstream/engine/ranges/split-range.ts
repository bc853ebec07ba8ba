// Calls over a range of blocks (`eth_getLogs`, `trace_filter`) without the limits of single
// providers: one that somebody accepts whole goes on as it is; one that nobody accepts, or that
// all refuse as too large, is asked for in parts. Decides which; `range-run.ts` does it.
import type { Abandoned } from "../../../core/billing/charging.ts";
import { fault } from "../../../core/faults/rpc-fault.ts";
import { blocksIn, decideSplit, mostBlocks } from "../../../core/routing/range-parts.ts";
import { type RangeCall, readRangeCall } from "../../../core/rpc/range-call.ts";
import type { Answer } from "../answer.ts";
import type { Job } from "../job.ts";
import {
  type JobListener,
  NOTHING_SENT,
  type PolicyLayer,
  type RunningJob,
  type Stage,
} from "../stage.ts";
import { FoundSizes } from "./found-sizes.ts";
import { RangeRun } from "./range-run.ts";
import type { SplitParts } from "./split-parts.ts";
import { plannedParts, rangeOf } from "./split-plan.ts";

/** The layer of ranges. */
export function splitRange(parts: SplitParts): PolicyLayer {
  const sizes = new FoundSizes();
  return {
    appliesTo: (policy) => policy.split,
    layer: (next) => (job, listener) => {
      const { call, tracker, maxParts } = job.request;
      const limits = parts.splitLimits();
      const bounds = maxParts === undefined ? limits : { ...limits, maxParts };
      const run = new SplitCall(parts, { next, job, listener, sizes });
      // Nearly always somebody accepts it whole, as far as is known.
      const isPlanned = plannedParts(tracker, call, bounds) > 1;
      const isKnown = isPlanned || sizes.isKnown(job, parts.runtime.now());
      run.start(isKnown ? readRangeCall(call) : null);
      return run;
    },
  };
}

/** One call over a range: whole, in parts, or first whole and then in parts. */
class SplitCall implements JobListener, RunningJob {
  readonly #parts: SplitParts;
  readonly #next: Stage;
  readonly #job: Job;
  readonly #listener: JobListener;
  readonly #sizes: FoundSizes;
  #running: RunningJob | null = null;
  #isSplit = false;
  #isOver = false;

  constructor(
    parts: SplitParts,
    on: {
      readonly next: Stage;
      readonly job: Job;
      readonly listener: JobListener;
      readonly sizes: FoundSizes;
    },
  ) {
    this.#parts = parts;
    this.#next = on.next;
    this.#job = on.job;
    this.#listener = on.listener;
    this.#sizes = on.sizes;
  }

  /** Begins it; `range` = in parts from the start. */
  start(range: RangeCall | null): void {
    if (range !== null) return this.#split(range);
    const running = this.#next(this.#job, this);
    if (!this.#isSplit) this.#running = running;
  }

  cancel(): Abandoned {
    if (this.#isOver) return NOTHING_SENT;
    this.#isOver = true;
    return this.#running?.cancel() ?? NOTHING_SENT;
  }

  /** It was asked for whole. */
  ended(answer: Answer): void {
    if (!isRangeRefused(this.#job, answer)) return this.#finish(answer);
    const range = this.#refusedRange();
    if (range === null) this.#finish(this.#withMostBlocks(answer));
    else this.#split(range);
  }

  /** The range of a refused call, if it may be asked for in parts. */
  #refusedRange(): RangeCall | null {
    const { request } = this.#job;
    const blocks = rangeOf(request.call.block, request.tracker);
    const { maxBlocks, maxParts } = this.#bounds();
    const limit = this.#limit();
    if (maxParts <= 1) return null;
    if (blocks !== null && limit !== null) {
      const { kind } = decideSplit(blocks, limit, { maxBlocks, maxParts });
      if (kind === "too_many") return null;
    }
    if (blocks !== null && blocks.to - blocks.from + 1 > maxBlocks) return null;
    return readRangeCall(request.call);
  }

  #split(range: RangeCall): void {
    this.#isSplit = true;
    const { maxParts } = this.#bounds();
    const { tracker, call } = this.#job.request;
    const { runtime } = this.#parts;
    const terms = {
      range,
      maxParts,
      limit: this.#limit(),
      size: this.#sizes.of(this.#job, runtime.now()),
      found: (blocks: number) => this.#sizes.add(tracker, call, blocks, runtime.now()),
    };
    const run = new RangeRun(
      this.#parts,
      { next: this.#next, job: this.#job, terms },
      this.#partsListener,
    );
    this.#running = run;
    run.start();
  }

  readonly #partsListener: JobListener = {
    ended: (answer) => this.#finish(isRangeFault(answer) ? this.#withMostBlocks(answer) : answer),
  };

  #bounds(): { readonly maxBlocks: number; readonly maxParts: number } {
    const { maxBlocks, maxParts } = this.#parts.splitLimits();
    return { maxBlocks, maxParts: this.#job.request.maxParts ?? maxParts };
  }

  /** The largest range that somebody accepts, declared, learned, or named in a refusal. */
  #limit(): number | null {
    const { request, failed } = this.#job;
    const known = request.tracker.rangeLimits(request.call)[0] ?? null;
    if (known !== null && known !== Number.POSITIVE_INFINITY) return known;
    const named = failed.flatMap(({ verdict: { effect } }) =>
      effect.kind === "learn" && effect.what === "range" && effect.maxBlockRange !== null
        ? [effect.maxBlockRange]
        : [],
    );
    return named.length === 0 ? null : Math.max(...named);
  }

  /**
   * A refusal, with the largest range that would be served. None is told where this call was within
   * it: then it was refused for its results, and nobody knows how many blocks have fewer.
   */
  #withMostBlocks(answer: Answer): Answer {
    const { outcome } = answer;
    const limit = this.#limit();
    if (outcome.kind !== "fault" || limit === null || "max_blocks" in outcome.fault.details)
      return answer;
    const { request } = this.#job;
    const range = rangeOf(request.call.block, request.tracker);
    const mostServed = mostBlocks(limit, this.#bounds());
    if (range !== null && blocksIn(range) <= mostServed) return answer;
    const { message, details } = outcome.fault;
    const most = { ...details, max_blocks: mostServed };
    const why = fault("log_range_limit", message, { details: most });
    return { ...answer, outcome: { kind: "fault", fault: why } };
  }

  #finish(answer: Answer): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#listener.ended(answer);
  }
}

/** Whether everybody found a call too large, or somebody did and nobody said more. */
function isRangeRefused({ failed }: Job, answer: Answer): boolean {
  const { outcome } = answer;
  if (outcome.kind !== "error") return isRangeFault(answer);
  return failed.some(({ verdict, raw }) => verdict.step === "range" && raw === outcome.raw);
}

function isRangeFault({ outcome }: Answer): boolean {
  return outcome.kind === "fault" && outcome.fault.code === "log_range_limit";
}
