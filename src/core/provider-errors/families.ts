// Rules by word families, used where no phrase of `rules.ts` matches: they recognise errors that
// were never recorded. Ordered: the first rule whose families all occur, and none of whose
// exceptions does, decides the category.
import type { MethodGroup, Rule } from "./category.ts";

const LOGS: readonly MethodGroup[] = ["logs"];
const SEND: readonly MethodGroup[] = ["send"];
const EXECUTE: readonly MethodGroup[] = ["execute"];
const TRANSACTION: readonly MethodGroup[] = ["send", "execute"];
/**
 * Methods that neither submit a transaction nor execute the caller's code: their answers cannot
 * contain text of a contract.
 */
const INERT: readonly MethodGroup[] = ["inert"];
const NOT_EXECUTED: readonly MethodGroup[] = ["inert", "send"];
/**
 * Methods that some nodes do not serve. Simulated calls are left out: every node serves them, and
 * their text may be a contract's.
 */
const CALLED: readonly MethodGroup[] = ["inert", "send", "traces"];
const READS: readonly MethodGroup[] = ["historic", "traces", "logs"];

/** Codes under which a message may echo what the caller sent. */
const ECHOING: readonly number[] = [-32602];

const SEND_FAMILIES: readonly Rule[] = [
  { category: "nonce_low", from: [], methods: SEND, words: ["nonce", "known"], without: ["high"] },
  // Not "known", which would be answered as success: the node is asked for this very transaction.
  {
    category: "nonce_low",
    from: [],
    methods: SEND,
    words: ["transaction", "known"],
    without: ["nonce", "replace", "fee", "wrongly", "sender"],
  },
  {
    category: "pool_policy",
    from: [2119, 2504],
    methods: SEND,
    words: ["sender", "many", "transaction"],
    without: ["funds", "nonce", "envelope", "fee", "usage"],
  },
  {
    category: "replacement_underpriced",
    from: [2229, 2232],
    methods: SEND,
    words: ["replace", "fee"],
    without: ["funds"],
  },
  {
    category: "nonce_gap",
    from: [],
    methods: TRANSACTION,
    words: ["nonce", "high"],
    without: ["fee"],
  },
  {
    category: "nonce_low",
    from: [],
    methods: TRANSACTION,
    words: ["nonce", "past"],
    without: ["fee"],
  },
  { category: "pool_full", from: [], methods: SEND, words: ["pool", "full"], without: ["fee"] },
  { category: "fee_cap", from: [], methods: SEND, words: ["fee", "cap", "over"], without: ["low"] },
  {
    category: "underpriced",
    from: [2004, 2233],
    methods: TRANSACTION,
    words: ["fee", "low"],
    without: ["funds"],
  },
  {
    category: "insufficient_funds",
    from: [2368],
    methods: TRANSACTION,
    words: ["funds", "lacking"],
  },
  { category: "underpriced", from: [], methods: TRANSACTION, words: ["fee", "low"] },
  {
    category: "node_policy",
    from: [1767, 2123, 2242],
    methods: SEND,
    words: ["sender", "banned"],
    without: ["network"],
  },
  {
    category: "node_policy",
    from: [1115, 2506],
    methods: SEND,
    words: ["transaction", "banned"],
    without: ["network", "nonce", "envelope"],
  },
];

const LIMIT_FAMILIES: readonly Rule[] = [
  {
    category: "batch",
    from: [],
    methods: ["other"],
    words: ["batched", "over"],
    without: ["missing", "credit", "head"],
  },
  { category: "logs_timeout", from: [], methods: LOGS, words: ["slow"] },
  {
    category: "filter_size",
    from: [],
    methods: LOGS,
    words: ["filter", "over"],
    without: ["results", "range"],
  },
  {
    category: "block_range",
    from: [1857],
    methods: LOGS,
    words: ["range", "over"],
    without: ["results", "missing", "head", "archive"],
  },
  {
    category: "result_size",
    from: [1860],
    methods: LOGS,
    words: ["results", "over"],
    without: ["missing", "archive", "period"],
  },
  {
    category: "filter_size",
    from: [],
    methods: LOGS,
    words: ["filter", "bounded"],
    without: ["results", "range"],
  },
  {
    category: "block_range",
    from: [2180, 2181],
    methods: LOGS,
    words: ["range", "bounded"],
    without: ["results", "missing", "archive"],
  },
  {
    category: "result_size",
    from: [],
    methods: LOGS,
    words: ["results", "bounded"],
    without: ["missing", "archive", "period"],
  },
  {
    category: "range_unclear",
    from: [],
    methods: LOGS,
    text: [/\btoo (?:broad|wide|heavy|expensive|large|big)\b/],
  },
  {
    category: "quota_exhausted",
    from: [],
    methods: INERT,
    except: ECHOING,
    words: ["monthly", "spent"],
  },
  { category: "quota", from: [], except: ECHOING, words: ["credit", "spent"], without: ["slow"] },
  {
    category: "quota",
    from: [1787],
    except: ECHOING,
    words: ["usage", "over", "period"],
    without: ["slow"],
  },
  {
    category: "rate_limit",
    from: [],
    methods: NOT_EXECUTED,
    except: ECHOING,
    text: [
      /\b(?:http|status|code) (?:code )?429\b|\b(?:being|been) (?:rate )?limited\b|\bfair use\b/,
    ],
  },
  {
    category: "rate_limit",
    from: [2157],
    except: ECHOING,
    words: ["usage", "over"],
    without: ["gas", "block", "results", "slow", "params"],
  },
];

const ACCESS_FAMILIES: readonly Rule[] = [
  { category: "batch", from: [1936, 2153], methods: ["other"], words: ["batched", "unserved"] },
  {
    category: "auth",
    from: [1408, 2285, 2289],
    methods: INERT,
    except: ECHOING,
    words: ["credential", "bad"],
  },
  {
    category: "auth",
    from: [1555],
    methods: INERT,
    except: ECHOING,
    words: ["credential", "refused"],
  },
  {
    category: "auth",
    from: [],
    methods: INERT,
    except: ECHOING,
    words: ["credential", "wanting"],
    without: ["usage"],
  },
  {
    category: "method_unsupported",
    from: [],
    methods: CALLED,
    except: ECHOING,
    words: ["method", "plan", "refused"],
  },
  {
    category: "method_unsupported",
    from: [2029, 2434],
    methods: CALLED,
    except: ECHOING,
    words: ["method", "unserved"],
  },
];

/** What a kind of node does not serve at all: "uncles are not supported on this chain". */
const UNSERVED_HERE =
  /\b(?:not|isnt|arent) (?:supported|enabled|implemented|exposed) (?:on|by|in|for|at) (?:this|the|our) (?:\w+ )?(?:chain|network|node|client|endpoint|provider|server|gateway)\b|^\W*\w+ (?:is|are) (?:not supported|unsupported|disabled)\W*$/;

const STATE_FAMILIES: readonly Rule[] = [
  {
    category: "server",
    from: [1980, 1981, 2088, 2199, 2443],
    status: [502, 504],
    methods: ["other"],
    without: ["slow"],
  },
  { category: "not_indexed", from: [], words: ["indexed"], without: ["params"] },
  { category: "lagging", from: [1873], words: ["sync", "node"], without: ["state"] },
  {
    category: "tag_unsupported",
    from: [1302, 1451, 1875, 2319],
    words: ["tag", "unserved"],
    without: ["nonce"],
  },
  {
    category: "tag_unsupported",
    from: [],
    words: ["tag", "unsupported"],
    without: ["nonce", "found"],
  },
  {
    category: "block_ahead",
    from: [2076, 2191, 2192],
    methods: READS,
    words: ["block", "head", "ahead"],
    without: ["archive"],
  },
  {
    category: "pruned",
    from: [1969, 2074, 2184, 2190],
    methods: READS,
    words: ["state", "missing"],
  },
  { category: "pruned", from: [], methods: READS, words: ["archive", "missing"] },
  { category: "pruned", from: [], methods: READS, words: ["archive", "state"], without: ["tag"] },
  { category: "block_ahead", from: [], methods: READS, words: ["block", "ahead"] },
  { category: "block_missing", from: [1870, 2078], methods: READS, words: ["block", "missing"] },
  { category: "block_missing", from: [2194, 2391], methods: READS, words: ["found", "missing"] },
];

const PART_FAMILIES: readonly Rule[] = [
  {
    category: "method_unsupported",
    from: [],
    methods: INERT,
    except: ECHOING,
    text: [UNSERVED_HERE],
    without: ["tag", "params", "credential"],
  },
  {
    category: "method_unsupported",
    from: [],
    methods: CALLED,
    except: ECHOING,
    words: ["method", "unsupported"],
    without: ["parts"],
  },
  {
    category: "auth",
    from: [],
    methods: INERT,
    except: ECHOING,
    words: ["network", "plan", "refused"],
  },
  {
    category: "auth",
    from: [1954],
    methods: INERT,
    except: ECHOING,
    words: ["identity", "refused"],
    without: ["envelope", "params"],
  },
  { category: "forbidden", from: [1953], status: [403, 403], text: [/\bforbidden\b/] },
  { category: "refused", from: [], methods: ["other"], words: ["banned"], without: ["params"] },
  {
    category: "halt",
    from: [2253, 2352],
    methods: EXECUTE,
    words: ["gas", "over"],
    without: ["fee"],
  },
  { category: "halt", from: [2351], methods: EXECUTE, words: ["gas", "bad"], without: ["fee"] },
  { category: "halt", from: [], methods: EXECUTE, words: ["gas", "spent"], without: ["fee"] },
  { category: "revert", from: [], methods: EXECUTE, words: ["reverted"] },
  {
    category: "server",
    from: [1130, 1457, 1595, 1602, 1606, 1715, 1795, 1983, 2198, 2202, 2325, 2327, 2441, 2444],
    methods: NOT_EXECUTED,
    except: ECHOING,
    words: ["parts", "broken"],
    without: ["slow"],
    vague: true,
  },
  {
    category: "tx_invalid",
    from: [1504, 1505, 1507, 1649, 1650, 1651, 1765, 1794, 1907, 1909, 2012, 2385, 2493],
    methods: SEND,
    words: ["envelope", "bad"],
  },
  { category: "timeout", from: [], words: ["slow"] },
];

/** The families, in order. */
export const FAMILY_RULES: readonly Rule[] = [
  ...SEND_FAMILIES,
  ...LIMIT_FAMILIES,
  ...ACCESS_FAMILIES,
  ...STATE_FAMILIES,
  ...PART_FAMILIES,
];

/** Words with little meaning: used only where no code or status says more. */
export const WEAK_FAMILY_RULES: readonly Rule[] = [
  // What programs say of their own mistakes.
  {
    category: "server",
    from: [],
    methods: INERT,
    except: ECHOING,
    text: [
      /\bcorrupt(?:ed|ion)?\b|\b(?:type|reference|assertion|attribute|nullpointer)(?:error|exception)\b|is not a function\b|\bnonetype\b/,
    ],
    vague: true,
  },
  {
    category: "server",
    from: [1824, 2090, 2203],
    methods: NOT_EXECUTED,
    except: ECHOING,
    words: ["apology"],
    without: ["params"],
    vague: true,
  },
  {
    category: "invalid_params",
    from: [1357, 1521, 1661, 1664, 1927, 2026, 2027, 2254, 2259, 2342, 2343, 2461, 2463],
    methods: ["other"],
    words: ["params", "wrongly"],
    vague: true,
  },
];
