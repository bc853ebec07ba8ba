// Into how many parts a call over a range of blocks is planned, by the limits of providers that are
// declared or learned. Asks nobody.
import {
  type BlockRange,
  decideSplit,
  type SplitBounds,
} from "../../../core/routing/range-parts.ts";
import type { BlockRef, Call } from "../../../core/rpc/call.ts";
import type { Tracker } from "../../health/tracker.ts";

/** What a plan reads of a provider set. */
type RangeLimits = Pick<Tracker, "head" | "rangeLimits">;

/** Parts of a call: 1 = it is asked for whole, since somebody accepts it or it has too many. */
export function plannedParts(tracker: RangeLimits, call: Call, bounds: SplitBounds): number {
  const limit = tracker.rangeLimits(call)[0] ?? null;
  const range = limit === Number.POSITIVE_INFINITY ? null : rangeOf(call.block, tracker);
  if (range === null) return 1;
  const decision = decideSplit(range, limit, bounds);
  return decision.kind === "parts" ? decision.count : 1;
}

/** The blocks that a call asks for; null = not known before somebody is asked. */
export function rangeOf(block: BlockRef, tracker: Pick<RangeLimits, "head">): BlockRange | null {
  if (block.kind !== "range" || block.from === null) return null;
  const to = block.to ?? tracker.head();
  return to === null ? null : { from: block.from, to };
}
