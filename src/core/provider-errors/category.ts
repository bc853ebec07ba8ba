// The classification of provider errors: what each category means for routing and health, and what
// a rule may say. The rules stand in `rules.ts`; they only name a category. Knows nothing of
// requests under way, time or providers by name.
import type { Effect, Step } from "../provider/attempt.ts";
import type { Failure } from "../rpc/failure.ts";
import type { WordFamily } from "./vocabulary.ts";

/**
 * What follows from a category: the step for methods that may be replayed, the step for all others,
 * and the health effect.
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
  // The provider is busy or will not serve us. `cooldown` takes the time the provider names, else
  // 30 s. All were refused before they ran.
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

  // Too much asked for. `learn_range` takes the limit the provider names, else null. "unclear"
  // teaches nothing: the text does not say which limit.
  block_range: ["range", "return", "learn_range"],
  filter_unaddressed: ["range", "return", "learn_range"],
  range_unclear: ["range", "return", IGNORED],
  result_size: ["range", "return", IGNORED],
  filter_size: ["range", "return", IGNORED],
  logs_timeout: ["range", "stop", { kind: "failure", cause: "timeout" }],
  response_size: ["next", "return", IGNORED],
  request_size: ["next", "next", IGNORED],
  batch: ["return", "return", IGNORED],

  // This node cannot, another may.
  // It has certainly done nothing, so the next provider may take a write as well.
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

  // True wherever it is asked.
  revert: ["return", "return", IGNORED],
  halt: ["return", "return", IGNORED],
  execution_info: ["return", "return", IGNORED],
  invalid_params: ["return", "return", IGNORED],
  parse: ["return", "return", IGNORED],
  filter_lost: ["return", "return", IGNORED],

  // Transactions. A replay-safe method that meets these only simulates one, so the error is its
  // answer.
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
  // A node answered a raw transaction with an error of its own: an answer, and neither an unknown
  // outcome nor a broken provider.
  tx_rejected: ["return", "return", IGNORED],

  // The provider broke. Not replay-safe: nobody knows what happened, except when nothing was sent.
  execution_timeout: ["next_once", "stop", IGNORED],
  trace_timeout: ["next", "stop", IGNORED],
  timeout: ["next", "stop", { kind: "failure", cause: "timeout" }],
  cancelled: ["next", "stop", IGNORED],
  server: ["next", "stop", SERVER],
  bad_body: ["next", "stop", SERVER],
  network: ["next", "stop", SERVER],
  unsent: ["next", "next", { kind: "failure", cause: "network" }],

  // The safe default row.
  unknown: ["next", "return", IGNORED],
} as const satisfies Record<string, CategoryDecision>;

/** Names the meaning of a provider error. */
export type ErrorCategory = keyof typeof TABLE;

/** Every category by name, with its decision. */
export const DECISIONS: ReadonlyMap<string, CategoryDecision> = new Map(Object.entries(TABLE));

/** Every category name: what `error_rules[].category` may say. */
export const ERROR_CATEGORIES: readonly string[] = [...DECISIONS.keys()];

/**
 * Methods that read the same words differently. `send`: hands in a transaction; `other`: does not.
 * `inert`: neither hands in nor executes. `execute`: simulates one. `logs`: searches logs by block
 * range. `traces`: any tracer; `mined`: a tracer of mined transactions. `historic`: reads state,
 * blocks or logs.
 */
export type MethodGroup =
  | "send"
  | "execute"
  | "logs"
  | "traces"
  | "mined"
  | "subscriptions"
  | "historic"
  | "other"
  | "inert";

/**
 * A substring, or an expression, of the normalised text: lower case, quotes dropped, white space,
 * `_` and hyphens (save minus signs) one space.
 */
export type Phrase = string | RegExp;

/**
 * One shape of failure. All the members that are present must match; of several phrases or groups
 * any one.
 */
export interface Rule {
  readonly category: ErrorCategory;
  /**
   * The recorded shapes that it was written from and decides, by id; shapes from 1001 on stand in
   * `error-shapes.json`.
   */
  readonly from: readonly number[];
  /** Default: `error`. */
  readonly kind?: Failure["kind"];
  readonly codes?: readonly number[];
  /** Codes under which it does not match. */
  readonly except?: readonly number[];
  /** HTTP statuses, inclusive. */
  readonly status?: readonly [from: number, to: number];
  readonly methods?: readonly MethodGroup[];
  readonly text?: readonly Phrase[];
  readonly data?: readonly Phrase[];
  /**
   * Families of words, each of which the text must have one of; and families of which it must have
   * none.
   */
  readonly words?: readonly WordFamily[];
  readonly without?: readonly WordFamily[];
  /** Says little by itself: if `data` holds words that match a telling row, that row wins. */
  readonly vague?: true;
  /** Only when the request's own block range is upside down. */
  readonly reversed?: true;
  /** Only when the text names a nonce that is higher than the one it says was expected. */
  readonly aheadOfExpected?: true;
}
