// Rules by word families, used where no phrase of `rules.ts` matches: they recognise errors that
// were never recorded. Ordered: the first rule whose families all occur, and none of whose
// exceptions does, decides the category.
import {
  ANY,
  EXECUTE,
  family,
  INERT,
  LOGS,
  OTHER,
  type Rule,
  type RuleScope,
  rule,
  SEND,
  status,
  TRANSACTION,
  UNECHOED,
  VAGUE,
} from "./rule.ts";

const NOT_EXECUTED: RuleScope = { methods: ["inert", "send"] };
/**
 * Methods that some nodes do not serve. Simulated calls are left out: every node serves them, and
 * their text may be a contract's.
 */
const CALLED: RuleScope = { methods: ["inert", "send", "traces"] };
const READS: RuleScope = { methods: ["historic", "traces", "logs"] };

/** What a kind of node does not serve at all: "uncles are not supported on this chain". */
const UNSERVED_HERE =
  /\b(?:not|isnt|arent) (?:supported|enabled|implemented|exposed) (?:on|by|in|for|at) (?:this|the|our) (?:\w+ )?(?:chain|network|node|client|endpoint|provider|server|gateway)\b|^\W*\w+ (?:is|are) (?:not supported|unsupported|disabled)\W*$/;

/** The families, in order. */
export const FAMILY_RULES: readonly Rule[] = [
  // What is wrong with a transaction.
  family("nonce_low", SEND, ["nonce", "known"], ["high"]),
  // Not "known", which would be answered as success: the node is asked for this very transaction.
  family(
    "nonce_low",
    SEND,
    ["transaction", "known"],
    ["nonce", "replace", "fee", "wrongly", "sender"],
  ),
  family(
    "pool_policy",
    SEND,
    ["sender", "many", "transaction"],
    ["funds", "nonce", "envelope", "fee", "usage"],
  ),
  family("replacement_underpriced", SEND, ["replace", "fee"], ["funds"]),
  family("nonce_gap", TRANSACTION, ["nonce", "high"], ["fee"]),
  family("nonce_low", TRANSACTION, ["nonce", "past"], ["fee"]),
  family("pool_full", SEND, ["pool", "full"], ["fee"]),
  family("fee_cap", SEND, ["fee", "cap", "over"], ["low"]),
  family("insufficient_funds", TRANSACTION, ["funds", "lacking"]),
  family("underpriced", TRANSACTION, ["fee", "low"]),
  family("node_policy", SEND, ["sender", "banned"], ["network"]),
  family("node_policy", SEND, ["transaction", "banned"], ["network", "nonce", "envelope"]),

  // What is too much.
  family("batch", OTHER, ["batched", "over"], ["missing", "credit", "head"]),
  family("logs_timeout", LOGS, ["slow"]),
  family("filter_size", LOGS, ["filter", "over"], ["results", "range"]),
  family("block_range", LOGS, ["range", "over"], ["results", "missing", "head", "archive"]),
  family("result_size", LOGS, ["results", "over"], ["missing", "archive", "period"]),
  family("filter_size", LOGS, ["filter", "bounded"], ["results", "range"]),
  family("block_range", LOGS, ["range", "bounded"], ["results", "missing", "archive"]),
  family("result_size", LOGS, ["results", "bounded"], ["missing", "archive", "period"]),
  rule("range_unclear", LOGS, [/\btoo (?:broad|wide|heavy|expensive|large|big)\b/]),
  family("quota_exhausted", { ...INERT, ...UNECHOED }, ["monthly", "spent"]),
  family("quota", UNECHOED, ["credit", "spent"], ["slow"]),
  family("quota", UNECHOED, ["usage", "over", "period"], ["slow"]),
  rule("rate_limit", { ...NOT_EXECUTED, ...UNECHOED }, [
    /\b(?:http|status|code) (?:code )?429\b|\b(?:being|been) (?:rate )?limited\b|\bfair use\b/,
  ]),
  family("rate_limit", UNECHOED, ["usage", "over"], ["gas", "block", "results", "slow", "params"]),

  // Who may ask what.
  family("batch", OTHER, ["batched", "unserved"]),
  family("auth", { ...INERT, ...UNECHOED }, ["credential", "bad"]),
  family("auth", { ...INERT, ...UNECHOED }, ["credential", "refused"]),
  family("auth", { ...INERT, ...UNECHOED }, ["credential", "wanting"], ["usage"]),
  family("method_unsupported", { ...CALLED, ...UNECHOED }, ["method", "plan", "refused"]),
  family("method_unsupported", { ...CALLED, ...UNECHOED }, ["method", "unserved"]),

  // What a node does not have.
  rule("server", { ...status(502, 504), ...OTHER, without: ["slow"] }),
  family("not_indexed", ANY, ["indexed"], ["params"]),
  family("lagging", ANY, ["sync", "node"], ["state"]),
  family("tag_unsupported", ANY, ["tag", "unserved"], ["nonce"]),
  family("tag_unsupported", ANY, ["tag", "unsupported"], ["nonce", "found"]),
  family("block_ahead", READS, ["block", "head", "ahead"], ["archive"]),
  family("pruned", READS, ["state", "missing"]),
  family("pruned", READS, ["archive", "missing"]),
  family("pruned", READS, ["archive", "state"], ["tag"]),
  family("block_ahead", READS, ["block", "ahead"]),
  family("block_missing", READS, ["block", "missing"]),
  family("block_missing", READS, ["found", "missing"]),

  // What is not served, and what broke.
  rule("method_unsupported", { ...INERT, ...UNECHOED, without: ["tag", "params", "credential"] }, [
    UNSERVED_HERE,
  ]),
  family("method_unsupported", { ...CALLED, ...UNECHOED }, ["method", "unsupported"], ["parts"]),
  family("auth", { ...INERT, ...UNECHOED }, ["network", "plan", "refused"]),
  family("auth", { ...INERT, ...UNECHOED }, ["identity", "refused"], ["envelope", "params"]),
  rule("forbidden", status(403), [/\bforbidden\b/]),
  family("refused", OTHER, ["banned"], ["params"]),
  family("halt", EXECUTE, ["gas", "over"], ["fee"]),
  family("halt", EXECUTE, ["gas", "bad"], ["fee"]),
  family("halt", EXECUTE, ["gas", "spent"], ["fee"]),
  family("revert", EXECUTE, ["reverted"]),
  family("server", { ...NOT_EXECUTED, ...UNECHOED, ...VAGUE }, ["parts", "broken"], ["slow"]),
  family("tx_invalid", SEND, ["envelope", "bad"]),
  family("timeout", ANY, ["slow"]),
];

/** Words with little meaning: used only where no code or status says more. */
export const WEAK_FAMILY_RULES: readonly Rule[] = [
  // What programs say of their own mistakes.
  rule("server", { ...INERT, ...UNECHOED, ...VAGUE }, [
    /\bcorrupt(?:ed|ion)?\b|\b(?:type|reference|assertion|attribute|nullpointer)(?:error|exception)\b|is not a function\b|\bnonetype\b/,
  ]),
  family("server", { ...NOT_EXECUTED, ...UNECHOED, ...VAGUE }, ["apology"], ["params"]),
  family("invalid_params", { ...OTHER, ...VAGUE }, ["params", "wrongly"]),
];
