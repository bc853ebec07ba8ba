// The categories of provider errors: what each means for routing and health, and the group that
// counts it. The rules in `rules.ts` only name a category. Knows no requests, no clock and no
// provider names.
import type { Effect, Step } from "../provider/attempt.ts";

/**
 * Groups of categories, as few as a graph can show: what a failed attempt says of its provider.
 * `rejected`: the provider was right, the call was wrong. `behind`: it lacks data that others have.
 * `unsupported`: it does not serve such calls. `cut`: the service ended the attempt itself.
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

/**
 * The consequences of a category: the step for replay-safe methods, the step for all others, the
 * effect on health, and the group.
 */
export type CategoryDecision = readonly [
  replaySafe: Step,
  otherwise: Step,
  effect: Effect | "cooldown" | "learn_range" | "learn_pruned",
  group: ErrorGroup,
];

const IGNORED: Effect = { kind: "ignored" };
const SERVER: Effect = { kind: "failure", cause: "server" };
const SUBSCRIPTION: Effect = { kind: "learn", what: "subscription" };
const LONG_COOLDOWN_MS = 600_000;

const TABLE = {
  // The provider is busy or refuses the service. `cooldown` takes the time that the provider names,
  // else 30 s. All of these were refused before they ran.
  rate_limit: ["next", "next", "cooldown", "rate_limit"],
  connection_rate_limit: ["next", "stop", "cooldown", "rate_limit"],
  sender_rate_limit: ["return", "return", IGNORED, "rejected"],
  quota: ["next", "next", { kind: "cooldown", ms: LONG_COOLDOWN_MS }, "rate_limit"],
  quota_exhausted: ["next", "next", { kind: "cordon", reason: "quota" }, "rate_limit"],
  auth: ["next", "next", { kind: "cordon", reason: "auth" }, "credentials"],
  forbidden: ["next", "next", { kind: "failure", cause: "auth" }, "credentials"],
  refused: ["next", "next", IGNORED, "credentials"],
  endpoint_missing: ["next", "next", SERVER, "server"],
  wrong_chain: ["next", "next", { kind: "cordon", reason: "wrong_chain" }, "credentials"],

  // The request asks for too much. `learn_range` takes the limit that the provider names, else
  // null. "unclear" teaches nothing: the text does not say which limit.
  block_range: ["range", "return", "learn_range", "too_large"],
  filter_unaddressed: ["range", "return", "learn_range", "too_large"],
  range_unclear: ["range", "return", IGNORED, "too_large"],
  result_size: ["range", "return", IGNORED, "too_large"],
  filter_size: ["range", "return", IGNORED, "too_large"],
  logs_timeout: ["range", "stop", { kind: "failure", cause: "timeout" }, "timeout"],
  response_size: ["next", "return", IGNORED, "too_large"],
  request_size: ["next", "next", IGNORED, "too_large"],
  batch: ["return", "return", IGNORED, "too_large"],

  // This node cannot serve the request, another may. It has certainly done nothing, so the next
  // provider may be sent a write as well. `learn_pruned` takes the oldest block that is left, if
  // the provider names it.
  method_unsupported: ["next", "next", { kind: "learn", what: "method" }, "unsupported"],
  subscription_unsupported: ["next", "next", SUBSCRIPTION, "unsupported"],
  tag_unsupported: ["next", "return", { kind: "learn", what: "tag" }, "unsupported"],
  dialect: ["next", "return", IGNORED, "unsupported"],
  block_missing: ["next", "return", IGNORED, "behind"],
  block_ahead: ["next", "return", IGNORED, "behind"],
  pruned: ["next", "return", "learn_pruned", "behind"],
  trace_state: ["next", "return", IGNORED, "behind"],
  not_indexed: ["next", "return", IGNORED, "behind"],
  lagging: ["next", "next", { kind: "lag" }, "behind"],

  // Every provider would answer the same.
  revert: ["return", "return", IGNORED, "rejected"],
  halt: ["return", "return", IGNORED, "rejected"],
  execution_info: ["return", "return", IGNORED, "rejected"],
  invalid_params: ["return", "return", IGNORED, "rejected"],
  parse: ["return", "return", IGNORED, "rejected"],
  filter_lost: ["return", "return", IGNORED, "rejected"],

  // Transactions. For a replay-safe method, which only simulates one, the error is the answer.
  // EIP-7966: the transaction is in the pool, and its receipt took too long.
  tx_pending: ["return", "return", IGNORED, "rejected"],
  // EIP-7966: it was not added to the pool, as it cannot be carried out now.
  tx_not_executable: ["return", "return", IGNORED, "rejected"],
  tx_known: ["return", "known", IGNORED, "rejected"],
  nonce_low: ["return", "verify", IGNORED, "rejected"],
  nonce_gap: ["return", "next_once", IGNORED, "rejected"],
  underpriced: ["return", "next_once", IGNORED, "rejected"],
  replacement_underpriced: ["return", "return", IGNORED, "rejected"],
  insufficient_funds: ["return", "return", IGNORED, "rejected"],
  fee_cap: ["return", "next_once", IGNORED, "rejected"],
  node_policy: ["return", "next_once", IGNORED, "rejected"],
  pool_policy: ["next", "next", IGNORED, "rejected"],
  pool_full: ["next", "next", IGNORED, "server"],
  sequencer_pool_full: ["return", "return", IGNORED, "server"],
  tx_invalid: ["return", "return", IGNORED, "rejected"],
  // A node refused a raw transaction with an error of its own: an answer, and neither an unknown
  // outcome nor a failing provider.
  tx_rejected: ["return", "return", IGNORED, "rejected"],

  // The provider failed. For methods that are not replay-safe the outcome is unknown, except when
  // nothing was sent.
  execution_timeout: ["next_once", "stop", IGNORED, "timeout"],
  trace_timeout: ["next", "stop", IGNORED, "timeout"],
  timeout: ["next", "stop", { kind: "failure", cause: "timeout" }, "timeout"],
  cancelled: ["next", "stop", IGNORED, "cut"],
  server: ["next", "stop", SERVER, "server"],
  bad_body: ["next", "stop", SERVER, "server"],
  network: ["next", "stop", SERVER, "network"],
  unsent: ["next", "next", { kind: "failure", cause: "network" }, "network"],

  // The default for everything else.
  unknown: ["next", "return", IGNORED, "unknown"],
} as const satisfies Record<string, CategoryDecision>;

/** The name of a category. */
export type ErrorCategory = keyof typeof TABLE;

/** The names of the categories by which a call was wrong. */
export type RejectedCategory = {
  [C in ErrorCategory]: (typeof TABLE)[C][3] extends "rejected" ? C : never;
}[ErrorCategory];

/** The categories by name. */
export const DECISIONS: ReadonlyMap<string, CategoryDecision> = new Map(Object.entries(TABLE));

/** The decision about a category; a name that is none is decided about like `unknown`. */
export function decisionOf(category: string): CategoryDecision {
  return DECISIONS.get(category) ?? TABLE.unknown;
}

/**
 * The group of a category. Categories that no rule names are given by the service: `integrity` to
 * an answer to another question, `unconfirmed` to an empty answer of a provider that may have
 * dropped what was asked for, all others to attempts that it ended.
 */
export function errorGroupOf(category: string): ErrorGroup {
  return DECISIONS.get(category)?.[3] ?? GROUPS_OF_OURS.get(category) ?? "cut";
}

const GROUPS_OF_OURS: ReadonlyMap<string, ErrorGroup> = new Map([
  ["integrity", "server"],
  ["unconfirmed", "behind"],
]);

/** Categories by which a node says that it does not have, or does not have yet, a block. */
const MISSING_BLOCK: ReadonlySet<string> = new Set([
  "block_missing",
  "block_ahead",
  "pruned",
  "trace_state",
  "lagging",
] satisfies readonly ErrorCategory[]);

/** Whether an error of this category may be about the form in which a block was named. */
export function isAboutForm(category: string): boolean {
  return category === "invalid_params" || category === "dialect";
}

/** Whether an error of this category says that its node lacks the block of the call. */
export function isMissingBlock(category: string): boolean {
  return MISSING_BLOCK.has(category);
}

/** The names of all categories: the allowed values of `error_rules[].category`. */
export const ERROR_CATEGORIES: readonly string[] = [...DECISIONS.keys()];
