// The block up to which a chain does not change any more, from what the providers of one set
// report. Believes no single provider if there are several. Knows no providers, only heights.
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
  const [first, second] = highestTwo(reports, FINALITY_FRESH_MS, nowMs);
  const reported = second ?? (first === null ? null : first - finalityDepth);
  if (reported === null || reported < 0 || servedTip === null) return previous;
  return Math.max(previous ?? 0, Math.min(reported, servedTip));
}

/** The two highest of the samples that are recent; one from the future is not. */
function highestTwo(
  samples: readonly (FinalitySample | null)[],
  freshMs: number,
  nowMs: number,
): readonly [first: number | null, second: number | null] {
  let first: number | null = null;
  let second: number | null = null;
  for (const sample of samples) {
    if (sample === null) continue;
    const { height, atMs } = sample;
    if (nowMs < atMs || nowMs - atMs >= freshMs) continue;
    if (first === null || height > first) {
      second = first;
      first = height;
    } else if (second === null || height > second) second = height;
  }
  return [first, second];
}
