// Reasons for excluding a provider from a plan.
import type { Shortage } from "./budget/budget-limits.ts";
import type { Provider } from "./profile.ts";

/** Why a provider was excluded from a plan. */
export type ExclusionReason =
  | "transport_missing"
  | "method_unsupported"
  | "category_unsupported"
  | "block_range_limit"
  | "archival_required"
  | "block_age_limit"
  | "tag_unsupported"
  | "lagging"
  | "block_missing"
  | "wrong_chain"
  | "cordoned"
  | "cordoned_by_operator"
  | "other_region"
  | "circuit_open"
  | "trial_in_flight"
  | Shortage;

/** An excluded provider and the reason. */
export interface Exclusion {
  readonly provider: Provider;
  readonly reason: ExclusionReason;
}
