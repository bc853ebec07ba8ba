// Whether a source of heads has fallen behind what is known elsewhere: a silent one, or
// one that still reports blocks that others had long before. Knows no clock and no provider.
import type { Chain } from "./provider/chain.ts";
import { quietMs } from "./provider/head.ts";

/** A height that others had and the source has not reached. */
export interface Overtaken {
  readonly height: number;
  /** When it was first known that the source lacks it. */
  readonly sinceMs: number;
}

/** Others must have been ahead for so long. */
const LEAST_AHEAD_MS = 1_000;

/**
 * What the source lacks now; `before` = what it lacked when this was last asked. The height stays
 * the same until the source has reached it.
 */
export function overtakenBy(
  before: Overtaken | null,
  known: number | null,
  source: number | null,
  nowMs: number,
): Overtaken | null {
  if (known === null || source === null || known <= source) return null;
  return before !== null && source < before.height ? before : { height: known, sinceMs: nowMs };
}

/**
 * Whether it has been silent for longer than chance allows while others had a newer block.
 * `silentMs` = since it last told of a block that was new.
 */
export function isSilentBehind(
  { sinceMs }: Overtaken,
  silentMs: number,
  chain: Chain,
  nowMs: number,
): boolean {
  return silentMs >= quietMs(chain) && nowMs - sinceMs >= LEAST_AHEAD_MS;
}

/** Whether it tells of heads, but only of blocks that others had long before. */
export function isLate({ sinceMs }: Overtaken, chain: Chain, nowMs: number): boolean {
  return nowMs - sinceMs >= quietMs(chain) + LEAST_AHEAD_MS;
}
