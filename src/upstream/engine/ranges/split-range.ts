// Calls over a range of blocks (`eth_getLogs`, `trace_filter`) beyond the limits of single
// providers. A range that some provider accepts goes on whole; a range that all refuse as too large
// is asked for in parts. Decides which; `range-run.ts` does it.

import type { Abandoned } from "../../../core/billing/charging.ts";
import { fault } from "../../../core/faults/rpc-fault.ts";
import { setNewest } from "../../../core/newest.ts";
import {
  type BlockRange,
  blocksIn,
  mostBlocks,
  partsOf,
  type SplitBounds,
} from "../../../core/routing/range-parts.ts";
import type { BlockRef, Call } from "../../../core/rpc/call.ts";
import { type RangeCall, readRangeCall } from "../../../core/rpc/range-call.ts";
import type { Tracker } from "../../health/tracker.ts";
import type { Answer } from "../answer.ts";
import {
  type CallContext,
  type Layer,
  type LayerParts,
  LayerRun,
  type RunningCall,
} from "../call-context.ts";
import { RangeRun, type SplitParts } from "./range-run.ts";

/** The layer of ranges. */
export function splitRange(parts: SplitParts & Pick<LayerParts, "runtime">): Layer {
  const sizes = new FoundSizes();
  return (next) => (context, listener) => {
    const { call, tracker } = context.request;
    const run = new SplitCall({ ...parts, next, sizes }, context, listener);
    // Nearly always somebody accepts it whole, as far as is known.
    const isPlanned = plannedParts(tracker, call, boundsOf(parts, context)) > 1;
    const isKnown = isPlanned || sizes.isKnown(context, parts.runtime.now());
    const range = isKnown ? readRangeCall(call) : null;
    return range === null ? run.start() : run.split(range);
  };
}

function boundsOf({ splitLimits }: SplitParts, { request }: CallContext): SplitBounds {
  const { maxBlocks, maxParts } = splitLimits();
  return { maxBlocks, maxParts: request.maxParts ?? maxParts };
}

/** One call over a range: whole, in parts, or first whole and then in parts. */
class SplitCall extends LayerRun<SplitParts & LayerParts & { readonly sizes: FoundSizes }> {
  /** It was asked for whole. */
  protected judge(answer: Answer): void {
    if (!isRangeRefused(this.context, answer)) return this.finish(answer);
    const range = this.#refusedRange();
    if (range === null) this.finish(this.#withMostBlocks(answer));
    else this.split(range);
  }

  /** What was carried out of its parts is told by them. */
  protected override abandoned(left: Abandoned): Abandoned {
    return left;
  }

  /** The range of a refused call, if it may be asked for in parts. */
  #refusedRange(): RangeCall | null {
    const { request } = this.context;
    const blocks = rangeOf(request.call.block, request.tracker);
    const bounds = boundsOf(this.parts, this.context);
    const isTooLong =
      blocks !== null &&
      (blocksIn(blocks) > bounds.maxBlocks || partsOf(blocks, this.#limit(), bounds) === null);
    return bounds.maxParts <= 1 || isTooLong ? null : readRangeCall(request.call);
  }

  /** Asks for it in parts. */
  split(range: RangeCall): RunningCall {
    const { runtime, sizes } = this.parts;
    const { tracker, call } = this.context.request;
    const terms = {
      range,
      maxParts: boundsOf(this.parts, this.context).maxParts,
      limit: this.#limit(),
      size: sizes.of(this.context, runtime.now()),
      found: (blocks: number) => sizes.add(tracker, call, blocks, runtime.now()),
    };
    const run = new RangeRun({ ...this.parts, ...terms }, this.context, {
      ended: (answer) => {
        // A stream goes on.
        this.running = null;
        this.finish(isRangeFault(answer) ? this.#withMostBlocks(answer) : answer);
      },
    });
    this.running = run;
    run.start();
    return this;
  }

  /** The largest range that somebody accepts, declared, learned, or named in a refusal. */
  #limit(): number | null {
    const { request, failed } = this.context;
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
    const { request } = this.context;
    const range = rangeOf(request.call.block, request.tracker);
    const mostServed = mostBlocks(limit, boundsOf(this.parts, this.context));
    if (range !== null && blocksIn(range) <= mostServed) return answer;
    const { message, details } = outcome.fault;
    const most = { ...details, max_blocks: mostServed };
    const why = fault("log_range_limit", message, { details: most });
    return { ...answer, outcome: { kind: "fault", fault: why } };
  }
}

/** Whether everybody found a call too large, or somebody did and nobody said more. */
function isRangeRefused({ failed }: CallContext, answer: Answer): boolean {
  const { outcome } = answer;
  if (outcome.kind !== "error") return isRangeFault(answer);
  return failed.some(({ verdict, raw }) => verdict.step === "range" && raw === outcome.raw);
}

function isRangeFault({ outcome }: Answer): boolean {
  return outcome.kind === "fault" && outcome.fault.code === "log_range_limit";
}

interface FoundSize {
  readonly blocks: number;
  readonly untilMs: number;
}

const HOLDS_MS = 60_000;
/** Of one provider set. */
const MAX_FILTERS = 1_024;
/** Longer filters are not remembered. */
const MAX_FILTER_CHARS = 4_096;

/** What was found, by provider set and filter. */
class FoundSizes {
  readonly #sizes = new WeakMap<Tracker, Map<string, FoundSize>>();

  /** Whether something holds for a call, and it asks for more. */
  isKnown(context: CallContext, nowMs: number): boolean {
    const { call, tracker } = context.request;
    const blocks = this.of(context, nowMs);
    const range = blocks === null ? null : rangeOf(call.block, tracker);
    return range !== null && blocksIn(range) > (blocks ?? 0);
  }

  /** Blocks; null = nothing was found lately. */
  of({ request: { tracker, call } }: CallContext, nowMs: number): number | null {
    const sizes = this.#sizes.get(tracker);
    if (sizes === undefined || sizes.size === 0) return null;
    const found = sizes.get(filterOf(call) ?? "");
    return found !== undefined && nowMs < found.untilMs ? found.blocks : null;
  }

  add(tracker: Tracker, call: Call, blocks: number, nowMs: number): void {
    const filter = filterOf(call);
    if (filter === null) return;
    const sizes = this.#sizes.get(tracker) ?? new Map<string, FoundSize>();
    this.#sizes.set(tracker, sizes);
    setNewest(sizes, filter, { blocks, untilMs: nowMs + HOLDS_MS }, MAX_FILTERS);
  }
}

/** The filter of a call without its range; null = it is too long, or none. */
function filterOf(call: Call): string | null {
  const range = readRangeCall(call);
  if (range === null) return null;
  const { fromBlock: _from, toBlock: _to, ...rest } = range.filter;
  const text = `${call.methodName} ${JSON.stringify(rest)}`;
  return text.length > MAX_FILTER_CHARS ? null : text;
}

/** What a plan reads of a provider set. */
type RangeLimits = Pick<Tracker, "head" | "rangeLimits">;

/**
 * Parts of a call: 1 = the range is asked for whole: a provider accepts it, or it would need too
 * many parts.
 */
export function plannedParts(tracker: RangeLimits, call: Call, bounds: SplitBounds): number {
  const limit = tracker.rangeLimits(call)[0] ?? null;
  const range = limit === Number.POSITIVE_INFINITY ? null : rangeOf(call.block, tracker);
  if (range === null) return 1;
  return partsOf(range, limit, bounds) ?? 1;
}

/** The blocks that a call asks for; null = not known before somebody is asked. */
function rangeOf(block: BlockRef, tracker: Pick<RangeLimits, "head">): BlockRange | null {
  if (block.kind !== "range" || block.from === null) return null;
  const to = block.to ?? tracker.head();
  return to === null ? null : { from: block.from, to };
}
