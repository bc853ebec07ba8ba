// Groups of error categories, as few as a graph can show: what a failed attempt says of its
// provider. Decides nothing.
import type { ErrorCategory } from "./category.ts";

/**
 * The groups. `rejected`: the provider was right, the call was wrong. `behind`: it lacks what
 * others have. `cut`: the service ended the attempt itself.
 */
export const ERROR_GROUPS = [
  "rate_limit",
  "credentials",
  "timeout",
  "network",
  "server",
  "too_large",
  "unsupported",
  "behind",
  "rejected",
  "unknown",
  "cut",
] as const;

/** The name of a group. */
export type ErrorGroup = (typeof ERROR_GROUPS)[number];

const CATEGORIES: Readonly<Record<ErrorGroup, readonly ErrorCategory[]>> = {
  rate_limit: ["rate_limit", "connection_rate_limit", "quota", "quota_exhausted"],
  credentials: ["auth", "forbidden", "refused", "wrong_chain"],
  timeout: ["logs_timeout", "execution_timeout", "trace_timeout", "timeout"],
  network: ["network", "unsent"],
  server: ["endpoint_missing", "pool_full", "sequencer_pool_full", "server", "bad_body"],
  too_large: [
    "block_range",
    "filter_unaddressed",
    "range_unclear",
    "result_size",
    "filter_size",
    "response_size",
    "request_size",
    "batch",
  ],
  unsupported: [
    "method_unsupported",
    "subscription_unsupported",
    "tag_unsupported",
    "dialect",
    "pruned",
    "trace_state",
    "not_indexed",
  ],
  behind: ["block_missing", "block_ahead", "lagging"],
  rejected: [
    "sender_rate_limit",
    "revert",
    "halt",
    "execution_info",
    "invalid_params",
    "parse",
    "filter_lost",
    "tx_pending",
    "tx_not_executable",
    "tx_known",
    "nonce_low",
    "nonce_gap",
    "underpriced",
    "replacement_underpriced",
    "insufficient_funds",
    "fee_cap",
    "node_policy",
    "pool_policy",
    "tx_invalid",
  ],
  unknown: ["tx_rejected", "unknown"],
  cut: ["cancelled"],
};

const BY_CATEGORY: ReadonlyMap<string, number> = new Map(
  ERROR_GROUPS.flatMap((group, at) => CATEGORIES[group].map((category) => [category, at] as const)),
);
const CUT = ERROR_GROUPS.indexOf("cut");

/**
 * The position of a category's group in `ERROR_GROUPS`. Categories that no rule names are given by
 * the service to attempts that it ended.
 */
export function errorGroupIndex(category: string): number {
  return BY_CATEGORY.get(category) ?? CUT;
}

/** The categories of all groups. */
export const GROUPED_CATEGORIES: readonly string[] = [...BY_CATEGORY.keys()];

/** The group of a category. */
export function errorGroupOf(category: string): ErrorGroup {
  return ERROR_GROUPS[errorGroupIndex(category)] ?? "cut";
}
