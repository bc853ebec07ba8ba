// Budgets of a provider set for calls beyond one a call: of hedges in credits, filled by a share of
// what calls cost; of rechecks after an answer of `null` in calls, filled by a share of their
// number.

/** The budget, of hedges or in calls; changed in place. */
export class ExtraCalls {
  credits: number;

  constructor(credits: number = 0) {
    this.credits = credits;
  }
}

/** Most credits saved: the share of two thousand calls at 5 %. */
export const MAX_SAVED_CREDITS = 100;

/** Rechecks that are allowed for each call. */
export const RECHECK_SHARE = 0.05;
/** Rechecks that are allowed from the start. */
export const FIRST_RECHECKS = 10;

/** A call of this cost was routed, and allows a share of it for further calls. */
export function earn(budget: ExtraCalls, cost: number, share: number): void {
  budget.credits = Math.min(MAX_SAVED_CREDITS, budget.credits + cost * share);
}

/** Takes the cost of a further call; false = there is not enough, and nothing is taken. */
export function take(budget: ExtraCalls, cost: number): boolean {
  // Shares such as 0.05 are not exact: twenty of them may be a trifle less than 1.
  if (budget.credits + ROUNDING < cost) return false;
  budget.credits -= cost;
  return true;
}

/** Gives the cost of a further call back. */
export function giveBack(budget: ExtraCalls, cost: number): void {
  budget.credits = Math.min(MAX_SAVED_CREDITS, budget.credits + cost);
}

/** Takes the cost of a further call that is made in any case; others wait until it is earned. */
export function owe(budget: ExtraCalls, cost: number): void {
  budget.credits = Math.max(-MAX_SAVED_CREDITS, budget.credits - cost);
}

const ROUNDING = 1e-6;
