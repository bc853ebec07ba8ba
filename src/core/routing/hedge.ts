// When a read that takes long is asked of a second provider as well (a hedge), and when it no
// longer waits for the first one alone. Times and numbers only: knows no provider and no clock.
import type { HedgeSettings } from "../provider/profile.ts";

/** How reads are hedged where nothing else is configured. */
export const DEFAULT_HEDGE: HedgeSettings = { maxExtra: 0.05, floorMs: 20, ceilingMs: 1_000 };

/**
 * After how long (ms) a second provider is asked as well, by how long answers to such calls usually
 * take (null = unknown): the 95th percentile of the provider that was asked, and the median of the
 * one that would be asked as well.
 */
export function hedgeAfterMs(
  askedP95Ms: number | null,
  targetP50Ms: number | null,
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

// Budgets of a provider set for calls beyond one a call: of hedges in credits, filled by a share of
// what calls cost; of rechecks after an answer of `null` in calls, filled by a share of their
// number.

/** Most credits saved: the share of two thousand calls at 5 %. */
export const MAX_SAVED_CREDITS = 100;

/** Rechecks that are allowed for each call. */
export const RECHECK_SHARE = 0.05;
/** Rechecks that are allowed from the start. */
export const FIRST_RECHECKS = 10;

/** A budget: of hedges in credits, or of rechecks in calls. */
export class ExtraCalls {
  credits: number;

  constructor(credits: number = 0) {
    this.credits = credits;
  }

  /** A call of this cost was routed, and allows a share of it for further calls. */
  fill(cost: number, share: number): void {
    this.credits = Math.min(MAX_SAVED_CREDITS, this.credits + cost * share);
  }

  /** Takes the cost of a further call; false = there is not enough, and nothing is taken. */
  take(cost: number): boolean {
    // Shares such as 0.05 are not exact: twenty of them may be a trifle less than 1.
    if (this.credits + ROUNDING < cost) return false;
    this.credits -= cost;
    return true;
  }

  /** Gives the cost of a further call back. */
  giveBack(cost: number): void {
    this.credits = Math.min(MAX_SAVED_CREDITS, this.credits + cost);
  }

  /** Takes the cost of a further call that is made in any case; the next calls wait for it. */
  takeAnyway(cost: number): void {
    this.credits = Math.max(-MAX_SAVED_CREDITS, this.credits - cost);
  }
}

const ROUNDING = 1e-6;
