// The categories of provider errors: what each means for routing and health, and the shape of a
// rule. The rules themselves are in `rules.ts`; they only name a category. Knows no requests, no
// clock and no provider names.
import type { Effect, Step } from "../provider/attempt.ts";
import type { Failure } from "../rpc/failure.ts";
import type { WordFamily } from "./vocabulary.ts";

/**
 * The consequences of a category: the step for replay-safe methods, the step for all others, and
 * the effect on health.
 */
export type CategoryDecision = readonly [
  replaySafe: Step,
  otherwise: Step,
  effect: Effect | "cooldown" | "learn_range",
];

const IGNORED: Effect = { kind: "ignored" };
const SERVER: Effect = { kind: "failure", cause: "server" };
const LONG_COOLDOWN_MS = 600_000;

const TABLE = {
  // The provider is busy or refuses the service. `cooldown` takes the time that the provider names,
  // else 30 s. All of these were refused before they ran.
  rate_limit: ["next", "next", "cooldown"],
  connection_rate_limit: ["next", "stop", "cooldown"],
  sender_rate_limit: ["return", "return", IGNORED],
  quota: ["next", "next", { kind: "cooldown", ms: LONG_COOLDOWN_MS }],
  quota_exhausted: ["next", "next", { kind: "cordon", reason: "quota" }],
  auth: ["next", "next", { kind: "cordon", reason: "auth" }],
  forbidden: ["next", "next", { kind: "failure", cause: "auth" }],
  refused: ["next", "next", IGNORED],
  endpoint_missing: ["next", "next", SERVER],
  wrong_chain: ["next", "next", { kind: "cordon", reason: "wrong_chain" }],

  // The request asks for too much. `learn_range` takes the limit that the provider names, else
  // null. "unclear" teaches nothing: the text does not say which limit.
  block_range: ["range", "return", "learn_range"],
  filter_unaddressed: ["range", "return", "learn_range"],
  range_unclear: ["range", "return", IGNORED],
  result_size: ["range", "return", IGNORED],
  filter_size: ["range", "return", IGNORED],
  logs_timeout: ["range", "stop", { kind: "failure", cause: "timeout" }],
  response_size: ["next", "return", IGNORED],
  request_size: ["next", "next", IGNORED],
  batch: ["return", "return", IGNORED],

  // This node cannot serve the request, another may. It has certainly done nothing, so the next
  // provider may be sent a write as well.
  method_unsupported: ["next", "next", { kind: "learn", what: "method" }],
  subscription_unsupported: ["next", "next", { kind: "learn", what: "subscription" }],
  tag_unsupported: ["next", "return", { kind: "learn", what: "tag" }],
  dialect: ["next", "return", IGNORED],
  block_missing: ["next", "return", IGNORED],
  block_ahead: ["next", "return", IGNORED],
  pruned: ["next", "return", { kind: "learn", what: "pruned" }],
  trace_state: ["next", "return", IGNORED],
  not_indexed: ["next", "return", IGNORED],
  lagging: ["next", "next", { kind: "lag" }],

  // Every provider would answer the same.
  revert: ["return", "return", IGNORED],
  halt: ["return", "return", IGNORED],
  execution_info: ["return", "return", IGNORED],
  invalid_params: ["return", "return", IGNORED],
  parse: ["return", "return", IGNORED],
  filter_lost: ["return", "return", IGNORED],

  // Transactions. For a replay-safe method, which only simulates one, the error is the answer.
  // EIP-7966: the transaction is in the pool, and its receipt took too long.
  tx_pending: ["return", "return", IGNORED],
  // EIP-7966: it was not added to the pool, as it cannot be carried out now.
  tx_not_executable: ["return", "return", IGNORED],
  tx_known: ["return", "known", IGNORED],
  nonce_low: ["return", "verify", IGNORED],
  nonce_gap: ["return", "next_once", IGNORED],
  underpriced: ["return", "next_once", IGNORED],
  replacement_underpriced: ["return", "return", IGNORED],
  insufficient_funds: ["return", "return", IGNORED],
  fee_cap: ["return", "next_once", IGNORED],
  node_policy: ["return", "next_once", IGNORED],
  pool_policy: ["next", "next", IGNORED],
  pool_full: ["next", "next", IGNORED],
  sequencer_pool_full: ["return", "return", IGNORED],
  tx_invalid: ["return", "return", IGNORED],
  // A node refused a raw transaction with an error of its own: an answer, and neither an unknown
  // outcome nor a failing provider.
  tx_rejected: ["return", "return", IGNORED],

  // The provider failed. For methods that are not replay-safe the outcome is unknown, except when
  // nothing was sent.
  execution_timeout: ["next_once", "stop", IGNORED],
  trace_timeout: ["next", "stop", IGNORED],
  timeout: ["next", "stop", { kind: "failure", cause: "timeout" }],
  cancelled: ["next", "stop", IGNORED],
  server: ["next", "stop", SERVER],
  bad_body: ["next", "stop", SERVER],
  network: ["next", "stop", SERVER],
  unsent: ["next", "next", { kind: "failure", cause: "network" }],

  // The default for everything else.
  unknown: ["next", "return", IGNORED],
} as const satisfies Record<string, CategoryDecision>;

/** The name of a category. */
export type ErrorCategory = keyof typeof TABLE;

/** The categories by name. */
export const DECISIONS: ReadonlyMap<string, CategoryDecision> = new Map(Object.entries(TABLE));

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

/**
 * Groups of methods for which the same words mean different things. `send`: submits a transaction;
 * `await`: waits for its receipt as well; `other`: does not submit one. `inert`: neither submits
 * nor executes. `execute`: simulates a transaction. `logs`: searches logs by block range. `traces`:
 * any tracer; `mined`: a tracer of mined transactions. `historic`: reads state, blocks or logs.
 * `listed`: inert, and in the method table, so that an answer that repeats the method's name
 * repeats no words that the caller chose.
 */
export type MethodGroup =
  | "send"
  | "await"
  | "execute"
  | "logs"
  | "traces"
  | "mined"
  | "subscriptions"
  | "historic"
  | "other"
  | "inert"
  | "listed";

/**
 * A substring or expression to match in the normalised text: lower case, quotes dropped; white
 * space, `_` and hyphens (except minus signs) are one space.
 */
export type Phrase = string | RegExp;

/**
 * One shape of failure. All members that are present must match; of several phrases or groups any
 * one.
 */
export interface Rule {
  readonly category: ErrorCategory;
  /**
   * Ids of the recorded shapes that the rule was written from and decides; shapes from 1001 on are
   * in `error-shapes.json`.
   */
  readonly from: readonly number[];
  /** Default: `error`. */
  readonly kind?: Failure["kind"];
  readonly codes?: readonly number[];
  /** Codes that exclude a match. */
  readonly except?: readonly number[];
  /** HTTP statuses, inclusive. */
  readonly status?: readonly [from: number, to: number];
  readonly methods?: readonly MethodGroup[];
  readonly text?: readonly Phrase[];
  readonly data?: readonly Phrase[];
  /** Word families that must all occur in the text, and families of which none may occur. */
  readonly words?: readonly WordFamily[];
  readonly without?: readonly WordFamily[];
  /** Vague by itself: a match of a more specific rule in `data` takes precedence. */
  readonly vague?: true;
  /** Only if the text is no HTML page: pages speak of many things at once. */
  readonly plain?: true;
  /** Only if the block that the text names as requested is below the one it names as its height. */
  readonly belowHeight?: true;
  /** Only if the block range of the request is reversed. */
  readonly reversed?: true;
  /** Only if the text names a nonce higher than the one it says was expected. */
  readonly aheadOfExpected?: true;
}
