// Whether a block certainly does not exist yet, so that nobody need be asked for it. Only where all
// providers push their heads: what one of them has would be known. Knows no providers, only
// heights.
import type { Chain } from "../chain.ts";
import { type HeadSample, quietMs } from "./head.ts";

/** How much newer than the heads that were pushed a block may be that somebody has. */
const MAY_BE_ON_ITS_WAY_MS = 1_000;

/** Whether no provider can have a block of this number. */
export function isFutureBlock(
  number: number,
  samples: readonly (HeadSample | null)[],
  chain: Chain,
  nowMs: number,
): boolean {
  let highest = -1;
  let newestMs = Number.NEGATIVE_INFINITY;
  for (const sample of samples) {
    // One that is only polled, or not heard of, may have more blocks than are known.
    if (sample === null || sample.polled) return false;
    const { height, atMs } = sample;
    if (atMs > nowMs || nowMs - atMs > HEADS_MS) return false;
    highest = Math.max(highest, height);
    newestMs = Math.max(newestMs, atMs);
  }
  if (highest === -1 || nowMs - newestMs > quietMs(chain)) return false;
  const onItsWay = 1 + Math.ceil(MAY_BE_ON_ITS_WAY_MS / Math.max(1, chain.blockTimeMs));
  return number > highest + onItsWay;
}

/** A provider that has pushed nothing for so long may have lost its subscription. */
const HEADS_MS = 30_000;
