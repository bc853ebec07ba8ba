// When a read that takes long is asked of a second provider as well (a hedge), and when it no
// longer waits for the first one alone. Times and numbers only: knows no provider and no clock.
import type { HedgeSettings } from "../provider/profile.ts";

/** How reads are hedged where nothing else is configured. */
export const DEFAULT_HEDGE: HedgeSettings = { maxExtra: 0.05, floorMs: 20, ceilingMs: 1_000 };

/** How long answers to such calls usually take (ms); null = unknown. */
export interface UsualTimes {
  /** The 95th percentile of the provider that was asked. */
  readonly askedP95Ms: number | null;
  /** The median of the provider that would be asked as well. */
  readonly targetP50Ms: number | null;
}

/** After how long (ms) a second provider is asked as well. */
export function hedgeAfterMs(
  { askedP95Ms, targetP50Ms }: UsualTimes,
  { floorMs, ceilingMs }: HedgeSettings,
): number {
  const usualMs = Math.min(
    askedP95Ms ?? Number.POSITIVE_INFINITY,
    targetP50Ms === null ? Number.POSITIVE_INFINITY : MEDIANS * targetP50Ms,
  );
  return Math.max(floorMs, Math.min(usualMs, ceilingMs));
}

const MEDIANS = 3;

/** The least time (ms) that an attempt has before the next provider is asked. */
export const LEAST_ATTEMPT_MS = 2_000;
/** An answer that takes this many times the 99th percentile is overdue. */
const OVERDUE = 3;

/**
 * After how long (ms) an attempt is overdue, so that the next provider is asked, by the 99th
 * percentile of such answers.
 */
export function overdueAfterMs(p99Ms: number): number {
  return Math.max(LEAST_ATTEMPT_MS, OVERDUE * p99Ms);
}
