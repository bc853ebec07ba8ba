// Whether a source of heads lags behind other providers: it has gone silent, or it reports blocks
// that the others reported long before. Knows no clock and no provider.
import type { Chain } from "../chain.ts";
import { quietMs } from "./head.ts";

/** A height that other providers have reported and the source has not. */
export interface Overtaken {
  readonly height: number;
  /** When the lag was first noticed. */
  readonly sinceMs: number;
}

/** Least time for which others must have been ahead. */
const LEAST_AHEAD_MS = 1_000;

/**
 * The height that the source lacks now; null = it lacks none. `before` is the result of the last
 * call: its height is kept until the source has reached it. `known` is the highest height that
 * other providers reported.
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
 * Whether the source has been silent for longer than block times vary while others had a newer
 * block. `silentMs` is the time since it last reported a new block.
 */
export function isSilentBehind(
  { sinceMs }: Overtaken,
  silentMs: number,
  chain: Chain,
  nowMs: number,
): boolean {
  return silentMs >= quietMs(chain) && nowMs - sinceMs >= LEAST_AHEAD_MS;
}

/** Whether the source reports heads, but only long after others did. */
export function isLate({ sinceMs }: Overtaken, chain: Chain, nowMs: number): boolean {
  return nowMs - sinceMs >= quietMs(chain) + LEAST_AHEAD_MS;
}
