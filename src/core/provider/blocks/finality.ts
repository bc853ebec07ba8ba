// The block up to which a chain does not change any more, from what the providers of one set
// report. Believes no single provider if there are several. Knows no providers, only heights.
import { isFresh } from "../../fresh.ts";
import type { HeadSample } from "./head.ts";

/** A height that a provider reports as final, and when it did (monotonic ms). */
export type FinalitySample = Pick<HeadSample, "height" | "atMs">;

/** What the finalized height is found from. */
export interface FinalityFacts {
  /** The last report of each provider; null = it has made none. */
  readonly reports: readonly (FinalitySample | null)[];
  /** The newest block that callers are told of; null = unknown. */
  readonly servedTip: number | null;
  /** Blocks that are taken off the report of a single provider. */
  readonly finalityDepth: number;
  /** The finalized height found before; null = none yet. */
  readonly previous: number | null;
  readonly nowMs: number;
}

/** Reports older than this are ignored. A final block stays final: this is for false reports. */
export const FINALITY_FRESH_MS = 300_000;
/** Blocks that are taken off the report of a single provider, unless the chain says otherwise. */
export const DEFAULT_FINALITY_DEPTH = 64;

/**
 * The height at or below which the chain does not change any more: the second highest of the fresh
 * reports; a single one counts less `finalityDepth`. Never above the served tip, never lower than
 * before; null = unknown.
 */
export function finalizedHeightOf(facts: FinalityFacts): number | null {
  const { reports, servedTip, finalityDepth, previous, nowMs } = facts;
  const [first, second] = reports
    .filter((report) => report !== null && isFresh(report.atMs, FINALITY_FRESH_MS, nowMs))
    .map((report) => report?.height ?? 0)
    .sort((left, right) => right - left);
  const reported = second ?? (first === undefined ? null : first - finalityDepth);
  if (reported === null || reported < 0 || servedTip === null) return previous;
  return Math.max(previous ?? 0, Math.min(reported, servedTip));
}
