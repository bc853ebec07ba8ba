// What split calls work with: their bounds, and what is counted of them.
import type { Runtime } from "../../../runtime.ts";
import type { TimerWheel } from "../../timer-wheel.ts";

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
export interface SplitCounts {
  /** Split calls by how they ended. */
  answered: number;
  failed: number;
  /** Broken off after the first byte. */
  cut: number;
  left: number;
  /** Parts that were asked for. */
  parts: number;
  /** Parts that were refused as too large. */
  refused: number;
  /** Parts that failed and were asked for again. */
  again: number;
  /** Parts of another fork, or false. */
  foreign: number;
}

/** Counts of nothing. */
export function newSplitCounts(): SplitCounts {
  return {
    answered: 0,
    failed: 0,
    cut: 0,
    left: 0,
    parts: 0,
    refused: 0,
    again: 0,
    foreign: 0,
  };
}

/** What the layer of ranges works with. */
export interface SplitParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly splitLimits: () => SplitLimits;
  readonly counts: SplitCounts;
}
