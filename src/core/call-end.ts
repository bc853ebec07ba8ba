// How a call ended: one of five outcomes, why in few words, and what exactly ended it. This is the
// only judgement of it: metrics, history, the live feed and the console use its words and numbers.
import type { FaultCode } from "./faults/rpc-fault.ts";
import {
  DECISIONS,
  type ErrorGroup,
  errorGroupOf,
  type RejectedCategory,
} from "./provider-errors/category.ts";

/**
 * The outcomes of a call. `caller_error`: the caller's own mistake, told by a provider. `failed`: a
 * provider or the service caused an error. `refused`: the service did not serve the call.
 * `cancelled`: its caller left.
 */
export const CALL_OUTCOMES = [
  "answered",
  "caller_error",
  "failed",
  "refused",
  "cancelled",
] as const;

/** One of them. */
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/**
 * Why calls end as they do, as `outcome.reason`. `other` is also what versions before these words
 * recorded. Answered and cancelled calls have no reason.
 */
export const CALL_REASONS = [
  "caller_error.revert",
  "caller_error.transaction",
  "caller_error.params",
  "caller_error.too_large",
  "caller_error.unsupported",
  "caller_error.other",
  "failed.unavailable",
  "failed.provider_error",
  "failed.outcome_unknown",
  "failed.cut",
  "failed.internal",
  "failed.other",
  "refused.balance",
  "refused.payment",
  "refused.rate_limit",
  "refused.access",
  "refused.size",
  "refused.target",
  "refused.method",
  "refused.request",
] as const;

/** One of them. */
export type CallReason = (typeof CALL_REASONS)[number];

/** How a call ended. There is one such value for each cause, so that ends are counted by index. */
export interface CallEnd {
  /** Its place in `CALL_ENDS`, and that of its outcome in `CALL_OUTCOMES`. */
  readonly index: number;
  readonly outcome: CallOutcome;
  readonly outcomeIndex: number;
  /** Its place in `CALL_REASONS`; -1 = there is no reason. */
  readonly reasonIndex: number;
  /** The word after its outcome; null = there is no reason. */
  readonly reason: string | null;
  /** Code of the refusal, or category of the provider's error; "" = neither. */
  readonly cause: string;
}

/** How refusals of the service are judged: where each code of the catalog belongs. */
const FAULT_REASONS: Readonly<Record<FaultCode, CallReason>> = {
  parse_error: "refused.request",
  invalid_request: "refused.request",
  method_not_allowed: "refused.request",
  unsupported_media_type: "refused.request",
  upgrade_required: "refused.request",
  request_timeout: "refused.request",
  request_loop: "refused.request",
  gone: "refused.request",
  body_too_large: "refused.size",
  log_range_limit: "refused.size",
  not_found: "refused.target",
  unknown_chain: "refused.target",
  unknown_profile: "refused.target",
  invalid_field: "refused.target",
  method_blocked: "refused.method",
  websocket_only: "refused.method",
  filter_unsupported: "refused.method",
  unauthorized: "refused.access",
  key_revoked: "refused.access",
  forbidden: "refused.access",
  balance_exhausted: "refused.balance",
  payment_required: "refused.payment",
  payment_invalid: "refused.payment",
  payment_conflict: "refused.payment",
  payment_failed: "refused.payment",
  payment_pending: "refused.payment",
  beneficiary_conflict: "refused.payment",
  rate_limit_exceeded: "refused.rate_limit",
  // An id that a caller made up or has used up: nodes say the same of their own filters.
  subscription_not_found: "caller_error.params",
  filter_not_found: "caller_error.params",
  unavailable: "failed.unavailable",
  behind: "failed.unavailable",
  not_prepared: "failed.unavailable",
  profile_config_unavailable: "failed.unavailable",
  outcome_unknown: "failed.outcome_unknown",
  internal: "failed.internal",
};

/** What the group of a provider's error says of a call that ends with it. */
const GROUP_REASONS: Readonly<Record<Exclude<ErrorGroup, "rejected">, CallReason>> = {
  too_large: "caller_error.too_large",
  unsupported: "caller_error.unsupported",
  rate_limit: "failed.provider_error",
  credentials: "failed.provider_error",
  timeout: "failed.provider_error",
  network: "failed.provider_error",
  server: "failed.provider_error",
  behind: "failed.provider_error",
  unknown: "failed.provider_error",
  cut: "failed.provider_error",
};

/** The provider was right, and the call was wrong: in what. */
const REJECTED_REASONS: Readonly<Record<RejectedCategory, CallReason>> = {
  revert: "caller_error.revert",
  halt: "caller_error.revert",
  execution_info: "caller_error.revert",
  invalid_params: "caller_error.params",
  parse: "caller_error.params",
  filter_lost: "caller_error.params",
  sender_rate_limit: "caller_error.transaction",
  tx_pending: "caller_error.transaction",
  tx_not_executable: "caller_error.transaction",
  tx_known: "caller_error.transaction",
  tx_invalid: "caller_error.transaction",
  tx_rejected: "caller_error.transaction",
  nonce_low: "caller_error.transaction",
  nonce_gap: "caller_error.transaction",
  underpriced: "caller_error.transaction",
  replacement_underpriced: "caller_error.transaction",
  insufficient_funds: "caller_error.transaction",
  fee_cap: "caller_error.transaction",
  node_policy: "caller_error.transaction",
  pool_policy: "caller_error.transaction",
};

const OUTCOME_NAMES: readonly string[] = CALL_OUTCOMES;
const REASON_NAMES: readonly string[] = CALL_REASONS;

/** The ends of calls, as they are numbered. */
class EndTable {
  readonly ends: CallEnd[] = [];

  add(name: CallReason | "answered" | "cancelled", cause: string): CallEnd {
    const [word, reason = null] = name.split(".");
    const outcomeIndex = OUTCOME_NAMES.indexOf(word ?? "");
    const outcome = CALL_OUTCOMES[outcomeIndex] ?? "failed";
    const reasonIndex = REASON_NAMES.indexOf(name);
    const index = this.ends.length;
    const end = { index, outcome, outcomeIndex, reasonIndex, reason, cause };
    this.ends.push(end);
    return end;
  }
}

const TABLE = new EndTable();

/** A result. */
export const ANSWERED = TABLE.add("answered", "");
/** The caller left. */
export const CANCELLED = TABLE.add("cancelled", "");
/** The service ended the call, or its answer broke off after it had begun. */
export const CUT = TABLE.add("failed.cut", "");

const OF_FAULTS: ReadonlyMap<string, CallEnd> = new Map(
  Object.entries(FAULT_REASONS).map(([code, reason]) => [code, TABLE.add(reason, code)]),
);
const OF_ERRORS: ReadonlyMap<string, CallEnd> = new Map(
  Array.from(DECISIONS.keys(), (category) => [category, TABLE.add(reasonOf(category), category)]),
);
const OF_UNKNOWN = OF_ERRORS.get("unknown") ?? CUT;

/** Every end that a call can have. */
export const CALL_ENDS: readonly CallEnd[] = TABLE.ends;

function reasonOf(category: string): CallReason {
  const group = errorGroupOf(category);
  if (group !== "rejected") return GROUP_REASONS[group];
  return isRejected(category) ? REJECTED_REASONS[category] : "caller_error.other";
}

function isRejected(category: string): category is RejectedCategory {
  return Object.hasOwn(REJECTED_REASONS, category);
}

/** What became of a call. An error is judged by the category that its rule gave it. */
export type EndedOutcome =
  | { readonly kind: "result" | "stream" }
  | { readonly kind: "error"; readonly category: string }
  | { readonly kind: "fault"; readonly fault: { readonly code: FaultCode } };

/** How a call ended whose caller waited for its end. */
export function callEndOf(outcome: EndedOutcome): CallEnd {
  switch (outcome.kind) {
    case "result":
    case "stream":
      return ANSWERED;
    case "error":
      return OF_ERRORS.get(outcome.category) ?? OF_UNKNOWN;
    case "fault":
      return OF_FAULTS.get(outcome.fault.code) ?? OF_UNKNOWN;
  }
}

/**
 * How a call ended that was interrupted. A call whose caller left is cancelled, even if providers
 * had failed before.
 */
export function interruptedEnd(why: "left" | "cut"): CallEnd {
  return why === "left" ? CANCELLED : CUT;
}

/**
 * How a call ended whose answer broke off after it had begun: because its provider or the service
 * failed, its reader was too slow, or every provider refused a part of its range.
 */
export function brokenEnd(by: "reader" | "range" | undefined): CallEnd {
  if (by === "range") return callEndOf({ kind: "fault", fault: { code: "log_range_limit" } });
  return by === "reader" ? CANCELLED : CUT;
}

/**
 * Whether a failed attempt counts against its provider: not if the call was wrong, asked for too
 * much or for what the provider does not serve, nor if the service ended the attempt.
 */
export function isProviderFailure(category: string): boolean {
  const group = errorGroupOf(category);
  return group !== "cut" && (OF_ERRORS.get(category) ?? OF_UNKNOWN).outcome === "failed";
}

/** Whether the failures of providers on the way to this end were hidden from the caller. */
export function hidesFailures({ outcome }: CallEnd): boolean {
  return outcome === "answered" || outcome === "caller_error";
}
