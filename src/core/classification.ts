// The classification of provider errors as data: what each category means for routing and health, and which shapes belong to it.
// Shapes only name a category; decisions are taken once per category. Knows nothing of requests under way, time or providers by name.
import type { Effect, Failure, Step } from "./attempt.ts";

/** What follows from a category: the step for methods that may be replayed, the step for all others, and the health effect. */
export type Decision = readonly [replaySafe: Step, otherwise: Step, effect: Effect | "cooldown" | "learn_range"];

const IGNORED: Effect = { kind: "ignored" };
const SERVER: Effect = { kind: "failure", cause: "server" };
const LONG_COOLDOWN_MS = 600_000;

const TABLE = {
  // The provider is busy or will not serve us. `cooldown` takes the time the provider names, else 30 s. All were refused before they ran.
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

  // Too much asked for. `learn_range` takes the limit the provider names, else null. "unclear" teaches nothing: the text does not say which limit.
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
  method_unsupported: ["next", "return", { kind: "learn", what: "method" }],
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

  // Transactions. A replay-safe method that meets these only simulates one, so the error is its answer.
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
} as const satisfies Record<string, Decision>;

/** Names the meaning of a provider error. */
export type ErrorCategory = keyof typeof TABLE;

/** Every category by name, with its decision. */
export const DECISIONS: ReadonlyMap<string, Decision> = new Map(Object.entries(TABLE));

/** Every category name: what `error_rules[].category` may say. */
export const ERROR_CATEGORIES: readonly string[] = [...DECISIONS.keys()];

/**
 * Methods that read the same words differently. `send`: hands in a transaction. `execute`: simulates one. `logs`: searches logs by block range.
 * `traces`: any tracer; `mined`: a tracer of mined transactions. `historic`: reads state, blocks or logs.
 */
export type MethodGroup = "send" | "execute" | "logs" | "traces" | "mined" | "subscriptions" | "historic";

/** A substring, or an expression, of the normalised text: lower case, quotes dropped, white space, `_` and hyphens (save minus signs) one space. */
export type Phrase = string | RegExp;

/** One shape of failure. All the members that are present must match; of several phrases or groups any one. */
export interface Rule {
  readonly category: ErrorCategory;
  /** Default: `error`. */
  readonly kind?: Failure["kind"];
  readonly codes?: readonly number[];
  /** HTTP statuses, inclusive. */
  readonly status?: readonly [from: number, to: number];
  readonly methods?: readonly MethodGroup[];
  readonly text?: readonly Phrase[];
  readonly data?: readonly Phrase[];
  /** Says little by itself: if `data` holds words that match a telling row, that row wins. */
  readonly vague?: true;
  /** Only when the request's own block range is upside down. */
  readonly reversed?: true;
}

const QUOTA_EXHAUSTED: readonly Phrase[] = [/\bmonthly (?:capacity|quota|limit|request|usage|compute|credit|cu)/];
const QUOTA: readonly Phrase[] = [
  /\bdaily (?:request|limit|quota|capacity|credit|cu|compute)/,
  "api credits",
  "free tier limit",
  "quota exceeded",
  "exceeded your quota",
  /(?:out of|no|not enough|insufficient|exhausted) (?:api |compute |request )?(?:credits|cus|compute units)\b/,
  "payment required",
];
const RATE: readonly Phrase[] = [
  /rate ?limit/,
  "too many requests",
  "request limit",
  "request rate",
  "call rate",
  /\b(?:qps|rps|cups|tps) limit/,
  "requests per second",
  "units per second",
  "throughput",
  "quota",
  "over capacity",
  /\bconcurren(?:t|cy)\b/,
  "slow down",
  "throttl",
  "enhance your calm",
  "error code: 1015",
];
const AUTH: readonly Phrase[] = [
  "must be authenticated",
  "authentication required",
  "unauthorized",
  "token is invalid",
  "token has expired",
  /\b(?:invalid|missing|unknown|expired|inactive|disabled|incorrect|no) (?:api ?key|api token|access token|auth(?:entication)? token|jwt|project id|app id|credentials)\b/,
  /\b(?:api ?key|api token|project id|access token) (?:is |was |has |has been |does )?(?:missing|required|inactive|invalid|expired|disabled|revoked|suspended|not valid|not found|not active|not allowed|not enabled|not have access)/,
  /\bkey (?:is |was |has been )(?:inactive|expired|disabled|revoked|suspended)/,
  "not enabled for this app",
];

// Ordered: the first match wins. First what carries the caller's own words (a revert reason may read "invalid api key"), then what is about the
// transaction, then refusals of the provider from the most to the least particular, then codes, then HTTP statuses.
const PLAIN_RULES: readonly Rule[] = [
  { kind: "network", category: "connection_rate_limit", text: ["enhance your calm"] },
  { kind: "network", category: "network" },
  { kind: "unsent", category: "unsent" },
  { kind: "timeout", category: "timeout" },

  // Bodies that are no JSON-RPC answer: the status speaks, and for refusals the words.
  { kind: "body", category: "quota_exhausted", status: [400, 499], text: QUOTA_EXHAUSTED },
  { kind: "body", category: "quota", status: [400, 499], text: QUOTA },
  { kind: "body", category: "rate_limit", status: [400, 499], text: RATE },
  { kind: "body", category: "rate_limit", status: [429, 429] },
  { kind: "body", category: "auth", status: [401, 401] },
  { kind: "body", category: "quota", status: [402, 402] },
  { kind: "body", category: "auth", status: [400, 403], text: AUTH },
  { kind: "body", category: "forbidden", status: [403, 403] },
  { kind: "body", category: "endpoint_missing", status: [300, 399] },
  { kind: "body", category: "endpoint_missing", status: [404, 405] },
  { kind: "body", category: "endpoint_missing", status: [410, 410] },
  { kind: "body", category: "timeout", status: [408, 408] },
  { kind: "body", category: "request_size", status: [413, 414] },
  { kind: "body", category: "rate_limit", status: [529, 529] },
  { kind: "body", category: "server", status: [500, 599] },
  { kind: "body", category: "bad_body" },
];

const EXECUTION_RULES: readonly Rule[] = [
  {
    category: "revert",
    text: [
      "execution reverted",
      "vm exception while processing transaction",
      "vm execution error",
      "the execution failed due to an exception",
      "transaction reverted",
      "call reverted",
      "reverted with",
    ],
  },
  { category: "revert", methods: ["execute"], text: [/^\W*(?:error: |err: )?revert(?:ed)?(?:\W*$|: )/] },
  { category: "revert", methods: ["execute"], data: [/^(?:reverted |revert: )?0x(?:08c379a0|4e487b71)/] },
  { category: "block_missing", codes: [3], text: ["unknown block"] },
  { category: "revert", codes: [3], methods: ["execute"] },
  { category: "server", text: [/\bevm error:? ?\(?database/, "database error", "failed to get account for", "failed to get storage for"] },
  {
    category: "halt",
    text: [
      /\bevm error\b/,
      "invalid opcode",
      "opcode not found",
      /stack limit reached \d/,
      "stack underflow",
      "stack overflow",
      "max code size exceeded",
      "out of gas",
      "gas required exceeds",
      "gas uint64 overflow",
      /invalid ?jump/,
      "bad jump destination",
      "bad instruction",
      "write protection",
      "return data out of bounds",
      "max call depth",
      "contract address collision",
      "invalid code: must not begin with",
      "always failing transaction",
    ],
  },
];

const REQUEST_RULES: readonly Rule[] = [
  { category: "batch", text: ["validation errors in batch", "calls in batch request", /\bbatch (?:size|request|limit|is|of|too)\b/] },
  { category: "parse", codes: [-32700, -32601, -32600], text: ["parse error"] },
  { category: "parse", codes: [-32700] },
  { category: "subscription_unsupported", methods: ["subscriptions"], codes: [-32601, -32004] },
  { category: "method_unsupported", codes: [-32601, -32004] },
  {
    category: "subscription_unsupported",
    methods: ["subscriptions"],
    text: [/not (?:supported|available|found|exist|enabled|allowed|implemented)/, "unsupported", "websocket"],
  },
  // Names the method, so it may hold anything a caller called a method.
  {
    category: "method_unsupported",
    text: [
      /\bmethod\b.{0,120}?\b(?:does not exist|not exist|is not available|not available|not found|not supported|unsupported|not whitelisted|not enabled|disabled|not allowed|not permitted|not implemented|not recognized|unavailable)\b/,
      /\b(?:unsupported|unknown|unrecognized|no such|invalid|disallowed|restricted) (?:rpc )?method\b/,
    ],
  },
  { category: "dialect", text: [/invalid type: (?:map|string|struct|object|sequence|integer).{0,40}expected.{0,24}block/] },
  {
    category: "invalid_params",
    text: [
      /invalid argument \d/,
      "missing value for required argument",
      "cannot unmarshal",
      "too many arguments",
      "unknown variant",
      "missing field",
      "hex string",
      "invalid type:",
      "invalid value:",
      "invalid length",
      "failed to deserialize",
      "missing required",
      "invalid address",
    ],
  },
];

const TRANSACTION_RULES: readonly Rule[] = [
  // The tracer replays a mined transaction, which had its funds and nonce: the tracer lacks the state.
  { category: "trace_state", methods: ["mined"], text: [/insufficient ?(?:funds|balance)/, /nonce too (?:low|high)/] },
  {
    category: "tx_known",
    methods: ["send"],
    text: [
      "already known",
      "alreadyknown",
      /\bknown transaction/,
      "already imported",
      "same hash",
      /already (?:exists )?in (?:the )?(?:mem)?(?:pool|cache|system|txpool|tx pool)/,
      /\b(?:tx|transaction) already (?:exists|known|in)/,
    ],
  },
  { category: "execution_info", methods: ["send"], text: ["was added to the mempool but"] },
  { category: "sender_rate_limit", methods: ["send"], codes: [-32017] },
  { category: "sender_rate_limit", text: ["sender is over rate limit"] },
  {
    category: "replacement_underpriced",
    methods: ["send"],
    text: [
      "replacement transaction underpriced",
      "replacementnotallowed",
      "replacement not allowed",
      "too low to replace",
      "could not replace existing",
      "insufficient fee to replace",
      "tries to replace pending",
    ],
  },
  {
    category: "nonce_low",
    methods: ["send", "execute"],
    text: [
      /nonce.{0,24}too (?:low|small)/,
      "ownnoncealreadyused",
      "oldnonce",
      "pool(stale)",
      "invalid transaction nonce",
      /(?:invalid|incorrect) nonce/,
      /nonce (?:has )?(?:been )?already (?:been )?used/,
      "account sequence mismatch",
    ],
  },
  {
    category: "nonce_gap",
    methods: ["send", "execute"],
    text: [/nonce.{0,24}too (?:high|far|distant|big)/, /nonce ?gap/, "noncetoofarinfuture"],
  },
  {
    category: "pool_policy",
    methods: ["send"],
    text: [
      "transaction fee too low",
      "existing transaction had higher priority",
      /^\W*rejected\W*$/,
      "in flight transaction limit",
      "account limit exceeded",
      "pendingtxsofconflictingtype",
      "address already reserved",
    ],
  },
  { category: "fee_cap", methods: ["send"], text: ["exceeds the configured cap"] },
  { category: "node_policy", methods: ["send"], text: ["only replay protected"] },
  {
    category: "underpriced",
    methods: ["send", "execute"],
    text: [
      "underpriced",
      "feetoolow",
      /\b(?:fee|fees|price|tip|premium)(?: cap| per gas| per blob gas)?(?: is)? (?:too low|below|less than|lower than)\b/,
      "below minimum",
    ],
  },
  {
    category: "insufficient_funds",
    methods: ["send", "execute"],
    text: [/insufficient ?(?:funds|balance)/, "overdraft", "upfront cost exceeds", "enough funds", "lack of funds"],
  },
  { category: "sequencer_pool_full", methods: ["send"], text: [/sequencer.{0,40}full\b/] },
  { category: "pool_full", methods: ["send"], text: [/(?:pool|mempool|queue)(?: is)? (?:full|overflow)/] },
  {
    category: "tx_invalid",
    methods: ["send", "execute"],
    text: [
      "exceeds block gas limit",
      "gaslimitexceeded",
      "gas limit too high",
      "exceeds max transaction gas limit",
      "intrinsic gas",
      "initcode size",
      "higher than max fee per gas",
      "nonce has max value",
      /sender (?:is )?not an eoa/,
      "senderiscontract",
      "transaction type not supported",
    ],
  },
  {
    category: "tx_invalid",
    methods: ["send"],
    text: [
      "invalid sender",
      "oversized data",
      "maxtxsizeexceeded",
      /(?:invalid|incorrect|wrong|unexpected|mismatched) chain ?id/,
      /chain ?id.{0,24}(?:mismatch|does not match|doesnt match)/,
      /\b(?:tx|transaction) ?type/,
      "invalidtxtype",
      "notsupportedtxtype",
      "rlp",
      "signature",
      "failed to decode",
      "could not be decoded",
      "typed transaction",
      "invalid transaction",
      "transaction size",
      "negative value",
      /\bblob/,
    ],
  },
];

const LOGS: readonly MethodGroup[] = ["logs"];
const RANGE: readonly Phrase[] = [
  /range.{0,40}(?:\btoo |exceed|greater|larger|bigger|\blimit|\bmax|\bover )/,
  /(?:exceed|\bmax|\blimit|\bup to|larger|\bover ).{0,40}range/,
  "too many blocks",
  /(?:at most|up to|more than|limited to|maximum of|over) [\d,]+k? blocks/,
  "blocks distance",
  "must be smaller than size",
];

const LOG_RULES: readonly Rule[] = [
  { category: "invalid_params", methods: LOGS, reversed: true, text: ["block range"] },
  { category: "invalid_params", methods: LOGS, text: ["invalid block range params", /(?:from|begin) ?block.{0,24}(?:after|greater|higher|less|before|lower)/] },
  { category: "block_range", methods: LOGS, text: ["number of requested blocks"] },
  {
    category: "result_size",
    methods: LOGS,
    text: [
      "query returned more than",
      /more than [\d,]+k? (?:results|logs)/,
      "response size",
      "max results",
      /logs matched by query/,
      "query exceeds limit",
      /response (?:body )?(?:is )?too (?:big|large)/,
      /too many (?:results|logs|events)/,
      /results? (?:set )?(?:is )?too large/,
    ],
  },
  { category: "filter_unaddressed", methods: LOGS, text: ["less number of addresses", "specify an address"] },
  { category: "filter_size", methods: LOGS, text: ["addresses or topics", "too many addresses", "too many topics", "max addresses", "max topics"] },
  { category: "range_unclear", methods: LOGS, text: ["invalid block range"] },
  // A proxy of our own kind reports the limit of one of its upstreams: not its own limit, so nothing to learn.
  { category: "range_unclear", methods: LOGS, codes: [-32012], text: RANGE },
  { category: "block_range", methods: LOGS, text: RANGE },
];

const REFUSAL_RULES: readonly Rule[] = [
  {
    category: "pruned",
    methods: ["historic"],
    text: ["archive, debug", /archiv\w* .{0,40}(?:not (?:included|available|supported|enabled)|upgrade|requires?|only)/],
  },
  {
    category: "method_unsupported",
    text: [
      /not (?:available|supported|included|allowed|enabled) (?:on|in|for|with|under|by) (?:the |your |this )?(?:[\w-]+ )?(?:free ?tier|plan|tier|subscription|package)/,
      /(?:tx ?pool|tracing|trace|debug|namespace|module|api)(?: is| are)? (?:disabled|not enabled|not supported|not available)/,
      "not included in your current plan",
      "trace not enabled",
      "not whitelisted",
      "not implemented",
    ],
  },
  {
    category: "tag_unsupported",
    text: [
      /invalid blockhash (?:finalized|safe|pending|latest|earliest)/,
      /\b(?:safe|finalized|pending)(?: (?:block|state|tag|header|height|number))* (?:is |are )?(?:not (?:a |an )?(?:supported|available|found|enabled|known)|unsupported|unavailable)/,
      /(?:unsupported|unknown|invalid) (?:block )?tag\b/,
      "malformed blocknumber",
    ],
  },
  {
    category: "pruned",
    text: [
      "lowest height",
      /historical (?:state|data|rpc|balance)/,
      "pruned",
      "pruning",
      "purged",
      "cleaned up",
      /\barchive (?:request|node|data|state|mode|access|plan)/,
      "missing trie node",
      /\bstate (?:at |for |of |0x|is |root |already ).{0,90}(?:not available|unavailable|not found|missing)/,
      /\bstate (?:is )?(?:not available|unavailable)/,
      "no state available",
      "world state",
      "state recreation",
      "maximum proof window",
      /(?:lowest|earliest|oldest) (?:available )?(?:block|height)/,
    ],
  },
  // May echo what the caller sent, so it must not reach the rows that cost a provider its place.
  { category: "invalid_params", codes: [-32602], text: [/\bparam/, /\bargument/, /\bpars/], vague: true },
  { category: "quota_exhausted", text: QUOTA_EXHAUSTED },
  { category: "quota", text: QUOTA },
  { category: "rate_limit", text: RATE },
  { category: "auth", text: AUTH },
  { category: "wrong_chain", text: [/(?:invalid|wrong|unexpected) chain ?id,? expected/] },
  { category: "tx_invalid", methods: ["execute"], text: [/invalid chain ?id/] },
];

const BLOCK_RULES: readonly Rule[] = [
  { category: "filter_lost", text: ["filter not found", "filter does not exist"] },
  { category: "execution_info", text: ["contract could not be found"] },
  {
    category: "block_ahead",
    text: [
      /beyond (?:the )?(?:current )?head/,
      "after last accepted block",
      "specified in filter",
      "future block",
      /block.{0,40}in the future/,
      /(?:block|height|number).{0,40}(?:greater|higher|later|ahead) (?:than|of) (?:the )?(?:latest|current|head|last)/,
      /block (?:number )?(?:is )?out of range/,
      "blockoutofrange",
      "but requested was",
      /block.{0,40}not (?:yet )?(?:been )?(?:produced|mined|available yet)/,
      "cannot query unfinalized",
    ],
  },
  { category: "not_indexed", text: ["fully indexed", "not indexed", "indexing is in progress", "being indexed"] },
  { category: "lagging", text: ["syncing", "not synced", "not in sync", "out of sync", "still synchronizing", "is behind"] },
  {
    category: "block_missing",
    text: [
      "header not found",
      "header for hash not found",
      "unknown block",
      "unknown header",
      /\bblock\b.{0,90}(?:not found|cannot be found|could not be found|does not exist|is not available|not available|missing)/,
      /(?:could not|cannot|cant|unable to|failed to) (?:find|get|fetch|load|retrieve) (?:the )?(?:block|header|canonical|receipts)/,
      "transaction not found",
      "resource not found",
      "not currently canonical",
      "not canonical",
      "chainexception",
    ],
  },
  { category: "response_size", text: [/response (?:body |size )?(?:is )?(?:too (?:big|large)|exceed)/, "result too large"] },
  { category: "request_size", text: [/request (?:body |entity )?(?:is )?too large/, "payload too large"] },
];

const BROKEN_RULES: readonly Rule[] = [
  { category: "logs_timeout", methods: LOGS, text: ["timed out", "timeout", "deadline exceeded", "took too long"] },
  { category: "trace_timeout", methods: ["traces"], text: ["execution timeout", "execution aborted", "timeout", "timed out", "deadline exceeded"] },
  { category: "execution_timeout", methods: ["execute"], text: ["execution aborted", "execution timeout"] },
  { category: "cancelled", text: [/\bcontext (?:was )?cancell?ed/] },
  { category: "timeout", text: ["timed out", "timeout", "deadline exceeded", "took too long"] },
  {
    category: "server",
    text: [
      /(?:cant|cannot|could not|unable to) execute this request/,
      "gateway error",
      "bad gateway",
      /\bbackend/,
      "responses from providers",
      "service unavailable",
      "temporarily unavailable",
      "server is busy",
      "overloaded",
      "method handler crashed",
      /connection (?:refused|reset)/,
      "no healthy",
      /all (?:upstreams|providers|nodes)\b/,
    ],
  },
  { category: "server", vague: true, text: ["internal server error", "internal json rpc error", "internal error"] },
];

const CODE_RULES: readonly Rule[] = [
  { category: "method_unsupported", codes: [-32612] },
  { category: "range_unclear", methods: LOGS, codes: [-32012, -32005] },
  { category: "range_unclear", methods: LOGS, text: ["limit exceeded"] },
  { category: "block_range", methods: LOGS, codes: [-32614] },
  { category: "tx_invalid", methods: ["send", "execute"], codes: [-32003] },
  { category: "revert", methods: ["execute"], codes: [-32015] },
  { category: "rate_limit", codes: [429, -32005, -32007, -32029, -32046, -32090, -32097] },
  { category: "rate_limit", text: ["limit exceeded"] },
  { category: "rate_limit", status: [429, 429] },
  { category: "auth", status: [401, 401] },
  { category: "quota", status: [402, 402] },
  { category: "server", codes: [-32603], vague: true },
  { category: "invalid_params", codes: [-32602], vague: true },
  { category: "invalid_params", codes: [-32600], text: ["invalid request"], vague: true },
  { category: "refused", status: [403, 403], vague: true },
  { category: "range_unclear", methods: LOGS, status: [413, 413], vague: true },
  { category: "response_size", status: [413, 413], vague: true },
  { category: "server", status: [500, 599], vague: true },
  { category: "unknown", vague: true },
];

/** Every known shape, in order: the first match wins, the last row of each kind always matches. */
export const RULES: readonly Rule[] = [
  ...PLAIN_RULES,
  ...EXECUTION_RULES,
  ...REQUEST_RULES,
  ...TRANSACTION_RULES,
  ...LOG_RULES,
  ...REFUSAL_RULES,
  ...BLOCK_RULES,
  ...BROKEN_RULES,
  ...CODE_RULES,
];
