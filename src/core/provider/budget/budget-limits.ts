// What an operator allows to be sent to one provider: requests a second and at once, credits a day
// and a month. Values only.

/** The declared limits of a provider; null = not declared. */
export interface BudgetLimits {
  /** Requests in any second. */
  readonly rps: number | null;
  /** Requests that are not answered yet. */
  readonly concurrency: number | null;
  /** Credits of one day (UTC). */
  readonly daily: number | null;
  /** Credits of one month (UTC). */
  readonly monthly: number | null;
  /** The day on which a month begins, 1 to 28. */
  readonly resetsOn: number;
  /** What a request of a method costs. */
  readonly credits: ReadonlyMap<string, number>;
  /** What one costs that `credits` does not name; absent = 1. */
  readonly defaultCredits?: number;
}

const SHORTAGES = ["rps_limit", "concurrency_limit", "daily_limit", "monthly_limit"] as const;

/** Why a provider must not be asked now, by its own limits. */
export type Shortage = (typeof SHORTAGES)[number];

export function isShortage(reason: string): reason is Shortage {
  return SHORTAGES.some((shortage) => shortage === reason);
}

/** Whether it is one of the credits of a day or a month. */
export function isCreditShortage(reason: string): boolean {
  return reason === "daily_limit" || reason === "monthly_limit";
}

/** What a request of a method costs at a provider. */
export function creditsOf(
  { credits, defaultCredits = 1 }: Pick<BudgetLimits, "credits" | "defaultCredits">,
  methodName: string,
): number {
  return credits.size === 0 ? defaultCredits : (credits.get(methodName) ?? defaultCredits);
}
