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
