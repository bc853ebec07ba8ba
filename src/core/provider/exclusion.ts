// Why a provider is left out of a plan.
import type { Provider } from "./profile.ts";

/** Why a provider was not considered for a call. */
export type ExclusionReason =
  | "transport_missing"
  | "method_unsupported"
  | "category_unsupported"
  | "block_range_limit"
  | "archival_required"
  | "block_age_limit"
  | "tag_unsupported"
  | "lagging"
  | "wrong_chain"
  | "cordoned"
  | "circuit_open"
  | "trial_in_flight";

/** A provider left out of a plan, and why. */
export interface Exclusion {
  readonly provider: Provider;
  readonly reason: ExclusionReason;
}
