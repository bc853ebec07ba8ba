// What split calls work with: their bounds, what is counted of them, and into how many parts a call
// is planned, by the limits of providers that are declared or learned. Asks nobody.

import {
  type BlockRange,
  decideSplit,
  type SplitBounds,
} from "../../../core/routing/range-parts.ts";
import type { BlockRef, Call } from "../../../core/rpc/call.ts";
import type { Tracker } from "../../health/tracker.ts";

/** Bounds of split calls. */
export interface SplitLimits {
  /** False = no call is split. */
  readonly split: boolean;
  /** Most blocks of one call. */
  readonly maxBlocks: number;
  /** Most parts planned at the start of a call whose request names no number of its own. */
  readonly maxParts: number;
  /** Most bytes of an answer that is gathered before it is delivered. */
  readonly maxBytes: number;
}

/** Counts since the start. */
export class SplitCounts {
  /** Split calls by how they ended. */
  answered = 0;
  failed = 0;
  /** Broken off after the first byte. */
  cut = 0;
  left = 0;
  /** Parts that were asked for. */
  parts = 0;
  /** Parts that were refused as too large. */
  refused = 0;
  /** Parts that failed and were asked for again. */
  again = 0;
  /** Parts of another fork, or false. */
  foreign = 0;
}

/** What the layer of ranges works with. */
export interface SplitParts {
  readonly splitLimits: () => SplitLimits;
  readonly counts: SplitCounts;
}

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
