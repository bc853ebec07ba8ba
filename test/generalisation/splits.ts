// Ways of taking a part of the recorded errors for unseen: at random by a seed, or all of one
// vendor.
import type { Recorded } from "./recorded.ts";

/** How to split at random. */
export interface RandomSplits {
  readonly count: number;
  readonly share: number;
  readonly seed: number;
}

/** Random parts; the same seed gives the same ones. */
export function splitsOf(
  rows: readonly Recorded[],
  { count, share, seed }: RandomSplits,
): readonly (readonly Recorded[])[] {
  const random = mulberry32(seed);
  return Array.from({ length: count }, () => rows.filter(() => random() < share));
}

/** Rows by vendor. Names that stand for many ("generic", "all") are no vendor. */
export function vendorsOf(rows: readonly Recorded[]): readonly (readonly Recorded[])[] {
  const vendors = Map.groupBy(rows, (row) => row.vendor.split(/[ ,(/]/)[0] ?? row.vendor);
  for (const name of ["generic", "all", "any", "some"]) vendors.delete(name);
  return [...vendors.values()];
}

/**
 * Where in the recorded shapes the lists of others begin, by id: each was judged once before
 * anybody looked at it.
 */
const LIST_STARTS = [1833, 1937, 2039, 2155, 2269, 2393, 2511];

/** Rows by list of other people. */
export function listsOf(rows: readonly Recorded[]): readonly (readonly Recorded[])[] {
  return LIST_STARTS.slice(1).map((end, index) =>
    rows.filter(({ id }) => id >= (LIST_STARTS[index] ?? end) && id < end),
  );
}

/** A small generator of uniform numbers in [0, 1). */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
