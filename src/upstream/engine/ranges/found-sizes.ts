// How many blocks a provider answered with for a log filter, where it had refused more for their
// results. Another filter may have more or fewer: what was found holds for the same one, a minute.
import type { Call } from "../../../core/rpc/call.ts";
import { readRangeCall } from "../../../core/rpc/range-call.ts";
import type { Tracker } from "../../health/tracker.ts";
import type { Job } from "../job.ts";

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
export class FoundSizes {
  readonly #sizes = new WeakMap<Tracker, Map<string, FoundSize>>();

  /** Whether something holds for a call, and it asks for more. */
  isKnown(job: Job, nowMs: number): boolean {
    const { block } = job.request.call;
    const blocks = this.of(job, nowMs);
    if (blocks === null || block.kind !== "range" || block.from === null) return false;
    const to = block.to ?? job.request.tracker.head();
    return to !== null && to - block.from + 1 > blocks;
  }

  /** Blocks; null = nothing was found lately. */
  of({ request: { tracker, call } }: Job, nowMs: number): number | null {
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
    sizes.delete(filter);
    sizes.set(filter, { blocks, untilMs: nowMs + HOLDS_MS });
    for (const oldest of sizes.keys()) if (sizes.size > MAX_FILTERS) sizes.delete(oldest);
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
