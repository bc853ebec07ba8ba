// The shapes of provider errors as data: an ordered table. The first rule that matches an error
// names its category. A rule describes a family of messages (something is too large, missing, spent
// or broken), not a single message. Most rules by words stand before rules by codes alone, since
// vendors use one code for many errors.
import { FAMILY_RULES, WEAK_FAMILY_RULES } from "./families.ts";
import {
  ANY,
  body,
  EXECUTE,
  family,
  INERT,
  isAheadOfExpected,
  isBelowHeight,
  LOGS,
  NO_PAGE,
  OTHER,
  type Phrase,
  type Rule,
  type RuleScope,
  rule,
  SEND,
  SUBSCRIPTIONS,
  status,
  TRACES,
  TRANSACTION,
  UNECHOED,
  VAGUE,
} from "./rule.ts";

const AWAIT: RuleScope = { methods: ["await"] };
const LISTED: RuleScope = { methods: ["listed"] };
const HISTORIC: RuleScope = { methods: ["historic"] };
const MINED: RuleScope = { methods: ["mined"] };
const SPENDING: RuleScope = { methods: ["send", "execute", "logs"] };

/** Matches a word of each group, in either order, at most `chars` characters apart. */
function near(some: string, others: string, chars: number): RegExp {
  return new RegExp(
    `\\b(?:${some})\\b.{0,${chars}}\\b(?:${others})|\\b(?:${others})\\b.{0,${chars}}\\b(?:${some})\\b`,
  );
}

const QUOTA_EXHAUSTED: readonly Phrase[] = [
  /\bmonthly\b.{0,32}(?:capacity|quota|limit|request|usage|compute|credit|cu)/,
  near(
    "(?:this|the|for|of|per) (?:calendar )?month",
    "reached|exceeded|exhausted|used|spent|over",
    48,
  ),
];
const QUOTA: readonly Phrase[] = [
  /\bdaily\b.{0,24}(?:request|limit|quota|capacity|credit|cu\b|compute|included|allowance|units?)/,
  /(?:run|ran) out of (?:\w+ ){0,3}(?:units?|credits?|requests?|quota|balance)|used (?:up|all)\b.{0,32}(?:units?|credits?|requests?|quota|allowance)|(?:units?|credits?|requests?|quota|allowance) (?:is |are |were |have been )?(?:used up|exhausted|depleted)/,
  /\bapi credits|credits? (?:are |is |have been |were )?(?:exhausted|depleted|used up|limit)/,
  "free tier limit",
  /\b(?:spend|spending|budget) (?:limit|cap)\b|\binsufficient (?:\w+ )?quota\b/,
  /quota (?:is |has been |was )?(?:exceeded|exhausted|used up)|exceeded your quota/,
  /(?:out of|no|not enough|insufficient|exhausted|ran out of|lacks?) (?:\w+ )?(?:credits|cus?|cups?|compute units)\b/,
  /payment required|top ?up\b|past due|unpaid|\bbilling\b|\bnon ?payment/,
  /(?:call|request|usage|plan) (?:limit|cap) (?:has been |was |is )?(?:reached|exceeded).{0,24}(?:upgrade|subscription)/,
  /usage has been consumed/,
  /\b(?:usage|requests?|calls?) (?:limit|cap|allowance) (?:for|of|on|in) (?:your|the|this) (?:\w+ ){0,2}(?:plan|tier|package|subscription)/,
  /(?:trial|subscription|plan) (?:period )?(?:has |is )?(?:ended|expired|over)\b/,
];
const TIMES =
  "(?:(?<!gas )\\bper |\\/ ?|\\b(?:an?|every|of|each|this) " +
  ")(?:second|sec|s|minute|min)\\b|\\b(?:rps|qps|cups|tps)\\b";
const TOO_MUCH =
  "\\b(?:limit(?:ed|s)?|exceed(?:s|ed|ing)?|reached|too " +
  "(?:many|fast|high)|capacity|allowance|exhausted|max(?:imum)?|higher than)\\b";
/** Too much in a second or a minute. */
const PER_TIME: readonly Phrase[] = [
  new RegExp(`${TOO_MUCH}.{0,64}(?:${TIMES})|(?:${TIMES}).{0,48}${TOO_MUCH}`),
];
/** Words that always mean a rate limit. */
const PLAIN_RATE: readonly Phrase[] = [
  /\brate ?limit/,
  /too many (?:\w+ )?requests?\b/,
  /(?:requests?|calls?|queries|units|credits?|cus?) ?(?:per|\/|an?|every) ?(?:second|sec|s|minute|min|m|hour)\b/,
  /throttl|slow ?down|enhance your calm|\brequests? (?:are|is) (?:being )?limited\b/,
  /\b(?:slow|reduce|lower|decrease)\b (?:down )?(?:your |the )?(?:request |polling |call )?(?:requests|rate|calls|traffic|polling|frequency)\b/,
];
const RATE: readonly Phrase[] = [
  ...PLAIN_RATE,
  /\b(?:requests?|calls?|compute units?|cu|traffic|relay|bandwidth|frequency|usage|api)\b (?:\w+ )?(?:limit|rate|allowance|cap)(?:ed|s)?\b/,
  /\b(?:requests?|calls?|frequency|bandwidth|traffic) (?:count |frequency |rate |volume )?(?:is |are |was |has been )?(?:exceeded|too (?:fast|high|frequent))(?! (?:the |its )?(?:[\d.]+ ?(?:ms|s|sec\w*)\b|time))/,
  /\b(?:qps|rps|cups?|tps|ccu)\b.{0,12}(?:limit|exceed|capacity)|(?:exceed|limit|allowance).{0,32}\b(?:qps|rps|cups|tps)\b/,
  /exceed\w*.{0,24}\b(?:bandwidth|traffic|frequency|allowance|relays?)\b/,
  /throughput|\bquota\b|over capacity|\bresource ?exhausted\b/,
  /in flight requests|invoke count exceed/,
  /concurren(?:t|cy) (?:\w+ )?(?:requests?|calls?|connections?|limit|capacity)|(?:too many|max\w*|exceed\w*).{0,24}concurren/,
  /error code: 1015/,
  /\b(?:blocked|banned|blacklisted|suspended|restricted)\b.{0,48}\b(?:excessive|too many|flood\w*|spam\w*|abus\w*|high (?:volume|traffic))/,
];
const AUTH: readonly Phrase[] = [
  /must be authenticated|must authenticate|authentication (?:is )?(?:required|failed|error)|missing authentication|\bunauthori[sz]ed\b|\bunauthenticated\b/,
  /token (?:is |has |was )?(?:invalid|expired|revoked)/,
  /\b(?:invalid|missing|unknown|expired|inactive|disabled|incorrect|no|wrong|provide an?(?: valid)?|need an?|requires? an?) (?:or missing )?(?:api ?key|access key|api token|access token|auth(?:entication)? token|authentication|jwt|project id|app id|client id|credentials)\b/,
  /\b(?:api ?key|access key|api token|project id|client id|access token) (?:is |was |has |has been |does |with )?(?:missing|required|inactive|invalid|expired|disabled|revoked|suspended|not valid|not found|not active|not allowed|not enabled|not have access|on another chain|blocked)/,
  /\bkey (?:is |was |has been )(?:inactive|expired|disabled|revoked|suspended|blocked)/,
  /authori[sz]ation (?:is )?required|\binvalid (?:\w+ )?(?:dapp|client|app|project|account) id\b/,
  near("network|chain|blockchain", "not enabled|not allowed|disabled|not activated", 8),
  /\bproject (?:id )?(?:is )?(?:not found|invalid|unknown|disabled|suspended)/,
  /not enabled for this app|not in (?:project|key|plan) scope|project id settings/,
  /not (?:been )?authori[sz]ed|access (?:is )?denied|not (?:allowed|permitted) to (?:use|access) this (?:endpoint|chain|network|api)/,
  /\b(?:ip|ip address|origin|referr?er|domain|host)\b.{0,24}(?:not (?:allowed|permitted|authori[sz]ed|whitelisted|allowlisted)|not (?:in|on) .{0,12}(?:white|allow) ?list|blocked)/,
  /\baccount (?:is |has been |was )?(?:suspended|disabled|deactivated|blocked|inactive)/,
  /\b(?:chain|network)\b(?: is)? not (?:in|part of|included in|covered by) (?:your |the |this )?(?:api )?(?:key|plan|project|tier|subscription)\b/,
  /\b(?:unknown|no such) (?:project|app|application|tenant|customer)\b/,
];

const TIMED_OUT: readonly Phrase[] = [
  /\btim(?:ed?|ing) ?out\b|\betimedout\b|deadlineexceeded/,
  "deadline exceeded",
  "took too long",
];
const LAGGING: readonly Phrase[] = [
  /\bsyncing\b|\bsync (?:is )?(?:still )?in progress|synchroni[sz](?:ing|ation is)|not caught up/,
  /not (?:fully |yet |done )*(?:synced|synchroni[sz]ed|in sync|bootstrapp(?:ed|ing))|out of sync/,
  /(?:is|lagging|falling) behind|catching up/,
  /\b(?:upstream|node|provider|our|local)\b.{0,24}\b(?:height|head|slot)\b.{0,24}\b(?:less|lower|behind|below)\b/,
];
/**
 * The provider does not serve the chain. Texts about a method or a tag that the chain lacks do not
 * match.
 */
const WRONG_CHAIN: readonly Phrase[] = [
  /^(?!.*\b(?:methods?|tracing|tracers?|trace(?! id)|debug|namespace|feature|tag|eth \w+)\b).*\b(?:(?:unsupported|unknown|unrecogni[sz]ed|no such|invalid) (?:block ?chain|chain|network)\b(?! ?(?:type|state|config|head|data))|(?:block ?chain|chain|network)\b(?: id)?(?: [\w-]+){0,2}? (?:is |was )?(?:not (?:supported|found|configured|recogni[sz]ed|served|known)|does not exist|unsupported|unknown)\b)/,
];
/** A body, JSON or plain, that begins with an error field whose value begins with a refusal. */
const PLAIN_REFUSAL: readonly Phrase[] = [
  /^\W*(?:error|message|msg|reason|detail)\W{1,4}(?:unauthori[sz]ed|forbidden|access denied|(?:invalid|missing) api ?key)\b/,
];

// Failures without a JSON-RPC error, preceded by the codes of EIP-7966.
const PLAIN_RULES: readonly Rule[] = [
  // EIP-7966: 4 = in the pool but not mined in time, 5 = not executable, 6 = a gap before its
  // nonce.
  rule("tx_pending", { ...AWAIT, codes: [4] }),
  rule("tx_not_executable", { ...AWAIT, codes: [5, 6] }),
  rule("connection_rate_limit", { kind: "network" }, ["enhance your calm"]),
  rule("network", { kind: "network" }),
  rule("unsent", { kind: "unsent" }),
  rule("timeout", { kind: "timeout" }),

  // Bodies that are not JSON-RPC: the words of a refusal decide first, then the HTTP status.
  rule("rate_limit", body(400, 499), PER_TIME),
  rule("quota_exhausted", body(400, 499), QUOTA_EXHAUSTED),
  rule("quota", body(400, 499), QUOTA),
  rule("quota", body(429), [/^\W*(?:message\W+)?limit exceeded\W*$/]),
  family("quota", { ...body(400, 499), ...NO_PAGE }, ["credit", "spent"], ["credential"]),
  family("quota", { ...body(400, 403), ...NO_PAGE }, ["usage", "over", "period"], ["credential"]),
  rule("rate_limit", body(400, 499), RATE),
  rule("rate_limit", body(429)),
  rule("rate_limit", { ...body(500, 599), ...NO_PAGE }, PLAIN_RATE),
  rule("quota", body(200, 299), QUOTA),
  rule("rate_limit", body(200, 299), PLAIN_RATE),
  rule("auth", body(401)),
  rule("quota", body(402)),
  rule("auth", body(400, 403), AUTH),
  rule("auth", { ...body(404), ...NO_PAGE }, AUTH),
  rule("auth", { ...body(200, 299), ...INERT }, PLAIN_REFUSAL),
  rule("wrong_chain", { ...body(403, 404), ...LISTED, ...NO_PAGE }, WRONG_CHAIN),
  // Only a body without other text matches: a refusal of parameters may repeat what the caller
  // sent.
  rule("wrong_chain", { ...body(400), ...LISTED }, [
    /^\W*(?:error|message)\W{1,4}(?:unsupported|unknown|invalid) (?:chain|network)\W*$/,
    /^\W*(?:error|message)\W{1,4}(?:chain|network) (?:is )?(?:not (?:found|supported)|unknown)\W*$/,
  ]),
  rule("batch", { ...body(400, 413), ...NO_PAGE }, [
    /\bbatch (?:size |request |is )?(?:too (?:large|big|long)|exceed|limit)/,
  ]),
  rule("lagging", { ...body(400, 599), ...NO_PAGE }, LAGGING),
  family("method_unsupported", body(400, 499), ["method", "unserved"], ["credential", "network"]),
  family(
    "method_unsupported",
    { ...body(400, 499), ...TRACES },
    ["method", "unsupported"],
    ["credential", "network"],
  ),
  rule(
    "method_unsupported",
    { ...body(400, 404), ...NO_PAGE, without: ["credential", "network"] },
    [/\bmethods?\b.{0,64}?\bnot (?:allowed|permitted|available|found|enabled)\b/],
  ),
  family(
    "method_unsupported",
    { ...body(400, 404), ...NO_PAGE },
    ["method", "plan", "refused"],
    ["credential", "network"],
  ),
  rule("method_unsupported", { ...body(501), ...NO_PAGE }, [
    /\bnot implemented\b|\bunimplemented\b/,
  ]),
  rule("result_size", { ...body(413), ...LOGS, ...NO_PAGE }, [/\b(?:response|results?|logs)\b/]),
  family("auth", { ...body(403, 404), ...INERT, ...NO_PAGE }, ["credential", "bad"]),
  family("auth", { ...body(403), ...INERT, ...NO_PAGE }, ["identity", "refused"], ["over"]),
  family("rate_limit", { ...body(403), ...NO_PAGE }, ["usage", "over"], ["credential"]),
  family("rate_limit", { ...body(418, 499), ...NO_PAGE }, ["usage", "over"], ["credential"]),
  rule("forbidden", body(403)),
  rule("endpoint_missing", body(300, 399)),
  // 405 or 415 with an empty body: the endpoint does not serve the method. A 405 with a page means
  // that there is no endpoint.
  rule("method_unsupported", body(405), [/^\s*$|^the body is empty$/]),
  rule("method_unsupported", body(415), [/^\s*$|^the body is empty$/]),
  rule("endpoint_missing", body(404, 405)),
  rule("endpoint_missing", body(410)),
  rule("timeout", body(408)),
  rule("request_size", body(413, 414)),
  rule("rate_limit", body(509)),
  rule("rate_limit", body(529)),
  rule("timeout", body(504)),
  rule("timeout", body(524)),
  rule("timeout", { ...body(500, 599), ...NO_PAGE }, TIMED_OUT),
  rule("server", body(500, 599)),
  rule("bad_body", { kind: "body" }),
];

const EXECUTION_RULES: readonly Rule[] = [
  rule("revert", ANY, [
    "execution reverted",
    "vm exception while processing transaction",
    "vm execution error",
    "the execution failed due to an exception",
    /(?:transaction|call) reverted/,
    "reverted with",
  ]),
  rule("revert", EXECUTE, [
    /\brevert(?:ed)?\b/,
    /\bpanic(?: code)?:? ?\(?0x/,
    /message execution failed|validation revert/,
  ]),
  rule("revert", SEND, [/\breverted\b|\baa(?![23]1)\d\d\b/]),
  rule("revert", { ...EXECUTE, data: [/^(?:reverted |revert: )?0x(?:08c379a0|4e487b71)/] }),
  rule("block_missing", { codes: [3] }, ["unknown block"]),
  rule("halt", EXECUTE, ["error function selector"]),
  rule("underpriced", { ...EXECUTE, codes: [3] }, ["block base fee"]),
  rule("revert", { ...EXECUTE, codes: [3] }),
  rule("server", UNECHOED, [
    /\bevm error:? ?\(?database/,
    /\bretries exceeded|max(?:imum)? (?:number of )?retries|retry limit/,
    /\bdatabase error|\brelation \S+ does not exist|syntax error at or near/,
    "failed to get account for",
    "failed to get storage for",
  ]),
  rule("insufficient_funds", SEND, [
    /\b(?:balance|funds)\b.{0,32}\b(?:cannot|can not|not enough to) (?:pay|cover|afford)\b/,
  ]),
  rule("tx_invalid", SEND, [
    /\bblock gas limit\b|\bdecod\w+ (?:the |raw )*(?:tx|transaction|rlp|payload)\b/,
  ]),
  rule("halt", ANY, [
    /\bevm error\b/,
    /invalid ?(?:opcode|jump|operation)\b|invalidjump|opcode not found|bad (?:jump destination|instruction)/,
    /stack (?:limit reached \d|underflow|overflow)/,
    /max(?:imum)? (?:code size|call depth)(?: is)? exceeded/,
    /(?:out|ran out|run out) of (?:gas|counters)|outofgas/,
    "gas required exceeds",
    "gas uint64 overflow",
    "write protection",
    "return data out of bounds",
    "contract address collision",
    "invalid code: must not begin with",
    "always failing transaction",
    /not enough (?:\w+ )?counters/,
    "during memory expansion",
  ]),
  rule("halt", EXECUTE, [
    /\bgas (?:limit|cap|allowance)\b.{0,16}(?:exceed|reached|is too low)|(?:exceed\w*|over|above).{0,24}\bgas (?:cap|limit)\b/,
    /\b(?:row|step|counter|circuit|computation|memory) (?:consumption|capacity|limit)\b.{0,24}(?:overflow|exceed|reached)|execution exceeded|\bline count\b.{0,48}above/,
    /processing could not be completed due to an exception/,
    /\bcpu time(?:out)?\b|\bcpu limit\b/,
  ]),
];

const REQUEST_RULES: readonly Rule[] = [
  rule("batch", ANY, [
    "validation errors in batch",
    /\b(?:too many|exceed\w*|limit\w*|max\w*)\b.{0,48}\b(?:in|per) (?:a |one |the |each |json rpc )?batch\b/,
    /\bbatch (?:\w+ )?(?:size|request|limit|is|of|too)\b/,
  ]),
  rule("wrong_chain", { ...LISTED, codes: [-32601] }, WRONG_CHAIN),
  rule("batch", { ...INERT, codes: [-32600] }, [/^\W*batch(?:es)?\b/]),
  rule("invalid_params", { ...INERT, codes: [-32600] }, [
    /^\W*(?:request )?(?:id|json ?rpc(?: version)?|method|params)\b.{0,24}\b(?:must|should|missing|invalid|required)\b/,
  ]),
  rule("batch", INERT, [/\bnumber of (?:transactions|items) exceeds? (?:the )?limit/]),
  rule("parse", { codes: [-32700, -32601, -32600] }, ["parse error"]),
  rule("parse", { codes: [-32700] }),
  rule("filter_lost", SUBSCRIPTIONS, [
    /\bsubscription (?:id )?(?:is |was )?(?:not found|does not exist|expired)\b/,
  ]),
  rule("rate_limit", { ...SUBSCRIPTIONS, ...UNECHOED }, [
    /\btoo many (?:active |open |concurrent )?subscriptions\b/,
  ]),
  rule("subscription_unsupported", { ...SUBSCRIPTIONS, codes: [-32601, -32004] }),
  rule("method_unsupported", { codes: [-32601] }),
  rule("subscription_unsupported", SUBSCRIPTIONS, [
    /not (?:supported|available|found|exist|enabled|allowed|implemented)/,
    "unsupported",
    "websocket",
    /\b(?:invalid|wrong|unknown|unrecogni[sz]ed|no) (?:\S+ )?subscription\b(?! ?(?:id|param|request))/,
  ]),
  rule("method_unsupported", SEND, [
    /\b(?:submission|submitting|sending|broadcast\w*)\b (?:of \w+ )?(?:is |are )?(?:not (?:allowed|supported|accepted|enabled|permitted|available)|disabled|unsupported)/,
    /\b(?:read|index|query|view) only\b(?! (?:account|sender|address|wallet))/,
  ]),
  // The provider serves the method, but not this tracer or this way of tracing.
  rule("dialect", TRACES, [
    /\btracer\b.{0,24}\b(?:not (?:found|defined|supported|available)|unknown|unsupported)|\b(?:unknown|unsupported|no such) tracer\b|\b(?:java ?script|js|native|custom|call|prestate)(?: based)? trac(?:er|ing)s? (?:is |are )?(?:not|disabled|unsupported)/,
    /\w+tracer is not defined/,
  ]),
  // These messages repeat the method name, which the caller chose and which may hold any words. So
  // they are matched before the refusals below.
  rule("method_unsupported", ANY, [
    /\bmethods?\b.{0,120}?\b(?:does not exist|not exist|is not available|not available|not found|not supported|unsupported|not whitelisted|not enabled|disabled|not allowed|not permitted|not implemented|not recogni[sz]ed|unavailable|is blocked|is restricted)\b/,
    /\b(?:unsupported|unknown|unrecogni[sz]ed|no such|invalid|disallowed|restricted) (?:json ?rpc |rpc |service )?method\b/,
    /(?:not|nt) (?:support|have permission to (?:call|use)) (?:the |this )?(?:requested )?method/,
    /\b(?:not|no|isnt|doesnt)\b.{0,32}\b(?:access|call|use|invoke|execute|run)\b (?:to )?(?:the |this )?(?:rpc )?method\b/,
  ]),
  rule("tag_unsupported", ANY, [/(?:unknown|invalid) variant:? (?:finali[sz]ed|safe|pending)\b/]),
  rule("dialect", ANY, [
    /invalid type: (?:map|string|struct|object|sequence|integer).{0,40}expected.{0,24}block/,
  ]),
  rule("invalid_params", ANY, [
    /invalid (?:argument|parameter)s?\b(?! supplied)/,
    "missing value for required argument",
    "cannot unmarshal",
    "too many arguments",
    "unknown variant",
    "missing field",
    /hex (?:string|number)|(?:missing|without) 0x prefix/,
    "invalid type:",
    "invalid value:",
    "invalid length",
    "failed to deserialize",
    "missing required",
    "invalid address",
  ]),
  rule("invalid_params", OTHER, [
    /\bboth\b.{2,48}\band\b.{2,48}\b(?:specified|set|given|provided|present)\b|\b(?:cannot|can not|must not) (?:specify|set|use|have) both\b|\bhas both\b/,
  ]),
];

/**
 * Refusals for the provider's plan that mention a time limit or spent credits. They stand before
 * the rules with similar words about timeouts of the node and funds of the sender.
 */
const PLAN_RULES: readonly Rule[] = [
  rule("rate_limit", ANY, [
    /(?:time ?out|timed out|too long|execution time|time limit)\b.{0,64}\b(?:free|trial|public|tier|plan|upgrade)\b/,
    /\b(?:free|trial|public|lower) (?:tier|plan)\b.{0,48}(?:time ?out|timed out|time limit)/,
  ]),
  rule("rate_limit", { ...SPENDING, ...UNECHOED }, PER_TIME),
  rule("quota_exhausted", { ...SPENDING, ...UNECHOED }, QUOTA_EXHAUSTED),
  rule("quota", { ...SPENDING, ...UNECHOED }, QUOTA),
];

const TRANSACTION_RULES: readonly Rule[] = [
  // A mined transaction had enough funds and a valid nonce. If its replay lacks them, the tracer
  // lacks the state.
  rule("trace_state", MINED, [/insufficient ?(?:funds|balance)/, /nonce too (?:low|high)/]),
  rule("tx_pending", SEND, [/was added to the mempool but/]),
  rule("sender_rate_limit", ANY, ["sender is over rate limit"]),
  rule("replacement_underpriced", SEND, [
    /replacement ?(?:not ?allowed|(?:transaction |tx )?(?:underpriced|is underpriced|fee|gas))/,
    /\breplaced? by (?:a )?(?:fee|transaction|tx)\b/,
    /(?:cant|cannot|could not|failed to|tries to|too low|insufficient|underpriced).{0,40}\breplace\b/,
    /same nonce/,
    /too ?low ?priority|\bto replace\b/,
  ]),
  rule("tx_invalid", SEND, [
    /\bmax(?:imum)? nonce\b|\bnonce (?:has|is|at) (?:the |its )?max/,
    /\b(?:\w*fee ?cap|max ?fee\w*)\b.{0,16}\b(?:less|lower|smaller|below)\b.{0,16}\b(?:\w*premium|tip|max ?priority\w*|priority)\b/,
  ]),
  rule("pool_full", SEND, [
    /\bfull (?:transaction |tx )?(?:pool|mempool)\b/,
    /^(?!.*\b(?:account|sender|address)\b).*\b(?:cap|limit|maximum) (?:for|of|on) (?:queued|pending|pooled) (?:transactions|txs)\b/,
  ]),
  rule("nonce_gap", { ...TRANSACTION, when: isAheadOfExpected }),
  // Not `tx_known`, which is answered as success: the node may hold another transaction with this
  // nonce. After `nonce_low` the node is asked for the transaction itself.
  rule("nonce_low", SEND, [
    /\b(?:another|other|different) (?:tx|txn|transaction)\b.{0,48}\balready\b/,
    /\balready\b.{0,48}\b(?:nonce|sender|account)\b|\b(?:nonce|sender|account)\b.{0,48}\balready (?!known|used|been)/,
  ]),
  rule("tx_known", SEND, [
    /already ?known|\bknown transaction/,
    /already ?(?:been )?(?:imported|submitted|broadcast|received|accepted|queued)/,
    /same hash/,
    /already ?(?:exists )?in ?(?:the )?(?:\w+ )?(?:mem ?pool|pool|cache|system|tx ?pool|queue)/,
    /\b(?:tx|txn|transaction) ?(?:is |was )?already ?(?:exists?|known|in|pending|present|pooled)\b/,
    /duplicate (?:tx|txn|transaction)|\b(?:tx|transaction) hash already exists/,
  ]),
  rule("nonce_low", TRANSACTION, [
    /nonce.{0,24}too ?(?:low|small|old)/,
    /\bnonce\b.{0,16}\bnot (?:strictly )?increasing/,
    /invalidtransaction::stale|(?:tx|transaction) (?:is )?(?:outdated|stale)/,
    /ownnoncealreadyused|oldnonce|pool\(stale\)/,
    /nonce.{0,24}(?:already (?:been )?used|been used)/,
  ]),
  rule("nonce_gap", TRANSACTION, [
    /nonce.{0,24}too ?(?:high|far|distant|big|large)/,
    /invalidtransaction::future|valid in the future/,
    /nonce ?gap|gapped nonce|future nonce|too distant future/,
    /(?<!account |state |current )nonce.{0,24}(?:in the future|(?:higher|greater) than (?:the )?(?:account|state|expected|current))/,
    /lower nonce exists|missing (?:transactions|nonces) before/,
  ]),
  rule("nonce_low", TRANSACTION, [
    /(?:invalid|incorrect|wrong|bad|stale|unexpected) (?:transaction |tx |account )?nonce/,
    /nonce.{0,24}(?:mismatch|does not match|lower than|less than|smaller than|below|stale|out of date|outdated)|the correct nonce|expected nonce[^a-z]{0,24}(?:but )?got/,
    /account sequence mismatch|invalid sequence/,
    /\b(?:tx|transaction) (?:has |is |was )?(?:already (?:been )?|been )(?:mined|finali[sz]ed|included|executed|confirmed|processed)/,
    /(?:^|: )mined\W*$/,
  ]),
  // A node that forwards to a sequencer wraps its error. A wrong nonce is the caller's fault even
  // then.
  rule("nonce_low", ANY, [
    /\b(?:forward|relay|proxy)(?:ed|ing)? (?:the |this )?(?:tx|transaction)\b.{0,160}nonce/,
  ]),
  rule("pool_policy", SEND, [
    "transaction fee too low",
    /(?:existing|newer|another) (?:transaction|tx) had higher priority/,
    /(?:^|: )\W*rejected\W*$/,
    /(?:rejected|refused|denied|disallowed) by (?:\w+ )?policy/,
    /in flight transaction limit|account limit exceeded|pendingtxsofconflictingtype|already reserved|has ?pending ?tx/,
    /too many (?:pending|queued|in flight) (?:transactions|txs|messages)|(?:sender|account|address)\b.{0,32}\b(?:max\w*|limit\w*|too many)\b.{0,32}(?:transactions|txs)\b/,
    /\bspammer\b/,
  ]),
  rule("fee_cap", SEND, ["exceeds the configured cap", "fee cap exceeded"]),
  rule("node_policy", SEND, [
    "only replay protected",
    "chainid is required",
    /\b(?:sender|account|address|recipient|code|from|to)\b.{0,64}\b(?:forbidden|banned|black ?list|deny ?list|block ?list|sanctioned|prohibited|blocked|not authori[sz]ed to send|not permitted)/,
    /forbidden (?:sender|address)/,
  ]),
  rule("insufficient_funds", TRANSACTION, [
    /insufficient ?(?:\w+ ){0,3}?(?:funds|balance)\b/,
    "insufficientfunds",
    "invalidtransaction::payment",
    "overdraft",
    /\b(?:sender|account|address|wallet)\b.{0,48}\bhas \d.{0,32}\b(?:needs?|wants?|required?)\b/,
    /(?:upfront|total|tx|transaction) cost exceeds (?!current gas)/,
    /(?:enough|lack of|lacks|out of) (?:funds?\b|balance)|\baa[23]1\b|\bprefund/,
    /\b(?:balance|funds)\b.{0,16}(?:not|cannot) cover/,
    /(?:balance|funds)\b.{0,12}(?:too low|is less than|smaller than|< tx)/,
  ]),
  rule("underpriced", TRANSACTION, [
    "underpriced",
    /fee ?too ?low|invalid (?:gas|unit|fee) ?price/,
    /\b(?:fees?|feecap|price|gasprice|tip|premium|maxfeepergas|\w*priorityfeepergas)(?: cap| per gas| per blob gas)?\b.{0,24}?\b(?:too low|below|less than|lower than|under the)\b/,
    /(?:insufficient|unacceptable|inadequate) (?:tx |gas )?(?:fees?|price|tip|premium)\b/,
    /\bbase ?fee exceeds|\bfee does not meet/,
    /\b(?:fees?|\w*feecap|\w*price|tip|premium)\b(?: per gas| cap| needed)?.{0,16}\b(?:less than|lower than|below|must be at least|at least|minimum|needed)\b/,
    "below minimum",
  ]),
  rule("sequencer_pool_full", SEND, [/sequencer.{0,40}full\b/]),
  rule("pool_full", SEND, [
    /(?:pool|mempool|queue)(?: ?is)? ?(?:full|overflow)/,
    /(?:pool|mempool|queue)\b.{0,16}(?:reached (?:its|the) limit|because of the limit)/,
    near(
      "(?:tx|transaction )?pool|mem ?pool|tx ?pool|queue",
      "limit reached|capacity exceeded|at capacity",
      12,
    ),
    /too many transactions in the (?:queue|pool|mempool)|dropped due to limit/,
  ]),
  rule("tx_invalid", TRANSACTION, [
    /exceeds (?:the )?block gas limit|exceeds current gas limit|gaslimitexceeded/,
    "gas limit too high",
    "exceeds max transaction gas limit",
    /intrinsic gas|floor data gas|\bcost\b.{0,24}\bgas limit\b|\bgas limit\b.{0,24}\b(?:intrinsic|basic|base) cost/,
    "initcode size",
    /higher than max ?fee ?per ?gas/,
    "nonce has max value",
    /sender (?:is )?not an eoa/,
    "senderiscontract",
  ]),
  rule("tx_invalid", SEND, [
    /(?:invalid|incorrect|wrong|unexpected|mismatched) chain ?id/,
    /chain ?id.{0,24}(?:mismatch|does not match|doesnt match)/,
    /\bunprotected\b.{0,24}\btransaction\b|\b(?:eip ?\d{3,4}|legacy|blob|typed|dynamic fee) (?:transactions?|txs?)\b.{0,24}(?:not|unsupported|disabled)/,
    /\b(?:tx|transaction) (?:of )?type|invalidtxtype|notsupportedtxtype|typed transaction/,
    /invalid sender|(?:recover|resolve) ?sender|signature|invalidtransaction::bad(?:proof|signer)/,
    /oversized data|maxtxsizeexceeded|transaction size|\brlp|failed to decode|could not be decoded|empty transaction/,
    /invalid transaction|negative value|int256overflow|invalid shard/,
    /\bblobs?\b|authori[sz]ation list|higher than \d+\^/,
    /gas limit (?:is )?(?:too high|reached)|not enough gas\b/,
    /failed to validate the transaction/,
    /\b(?:line count|calldata)\b.{0,48}(?:above|greater|exceed|limit)/,
  ]),
];

/** A block above the head of the node. */
const AHEAD: readonly Phrase[] = [
  /beyond (?:the )?(?:current |latest |chain )?(?:head|tip)/,
  "after last accepted block",
  "specified in filter",
  "future block",
  /block.{0,40}in the future/,
  /(?:block|height|number)\b.{0,40}(?:greater|higher|later|ahead) (?:than|of) (?:the )?(?:latest|current|head|last|chain)/,
  /(?:less|lower) than or equal to the (?:current|latest)/,
  /(?:block|height)(?: number)? (?:is )?(?:out of range|too high)/,
  /(?:above|exceeds?|beyond|higher than|greater than|ahead of) (?:the )?(?:chain |current |latest )?(?:head|tip|(?:current|latest|last) (?:\w+ )?(?:block|height))\b/,
  "blockoutofrange",
  "but requested was",
  /block.{0,40}not (?:yet )?(?:been )?(?:produced|mined|processed|executed|committed|reached|yet (?:available|processed|reached)|available yet)/,
  "cannot query unfinalized",
  /\b(?:block|height|slot|epoch|header)\b.{0,60}\b(?:not|doesnt|hasnt|isnt|no)\b.{0,24}\byet\b|\bnot yet\b.{0,24}\b(?:block|height|mined|produced)\b/,
];
const PRUNED: readonly Phrase[] = [
  /lowest height|(?:lowest|earliest|oldest|first retained|base|minimum) (?:available )?(?:block|height)/,
  /\bhistorical\b (?:\w+ )?(?:state|data|rpc|balance)|state histor(?:y|ies)|history (?:is )?(?:unavailable|not available)/,
  /\bpruned|\bpruning|\bpurged|cleaned up|garbage collected/,
  /\barchiv(?:e|al) (?:request|node|data|state|mode|access|plan)|(?:not|needs?|requires?) an archive/,
  "missing trie node",
  /\bunsupported block number\b/,
  near(
    "historical|pre bedrock|pre nitro",
    "state|data|rpc|balance|blocks?|query|access|execution",
    24,
  ),
  /version (?:\d+ )?does not exist/,
  near("state|history", "expired", 16),
  near(
    "state|history|ancient|old|blocks?|data|logs|receipts?",
    "discarded|removed|deleted|no longer (?:available|stored|kept)|not " +
      "(?:stored|kept|retained)|retention",
    32,
  ),
  /(?:use|query|need|try|requires?) an? archiv|archive (?:endpoint|data)/,
  /\bstate (?:at |for |of |0x|is |root |already ).{0,90}(?:not available|unavailable|not found|missing|discarded)/,
  /\bstate (?:is )?(?:not available|unavailable)|no state (?:available|found)|world state/,
  "state recreation",
  /\blookbacks? of\b|\b(?:module|store|version|key)\b.{0,24}\b(?:does not|doesnt|not) exist (?:on|at|for|in) (?:block |height|version)/,
  /\b(?:find|load|get|fetch|query)\b.{0,40}\b(?:responses?|results?|validators|params|store) (?:for|at|of) (?:block )?(?:height|version)/,
  "maximum proof window",
  /\b(?:block|state|data|height)\b.{0,24}(?:too old|older than)|only (?:the )?(?:last|latest|most recent) [\d,]+ blocks/,
];

/** Too many blocks: "block range ... too wide", "limited to ... blocks". */
const RANGE: readonly Phrase[] = [
  /\b(?:from|to) ?block\b.{0,12}\b(?:from|to) ?block\b.{0,24}(?:too |exceed|greater|larger|bigger|less|smaller|max|limit|within|at most)/,
  /range.{0,40}(?:\btoo |exceed|greater|larger|bigger|\blimit|\bmax|\bover )/,
  /(?:exceed|\bmax|\blimit|\bup to|larger|\bover |\breduce|\bnarrow|smaller).{0,40}range/,
  /(?:at most|up to|more than|limited to|maximum of|over|within|only|only query|exceeds?) [\d.,]+k? blocks?\b/,
  /\bblocks?\b.{0,16}(?:distance|span|window|interval|limit)\b|(?:exceed\w*|max\w*|limit\w*|too (?:many|large|wide|big|long)).{0,24}\bblocks?\b/,
  /\bblocks?\b.{0,24}(?:too (?:many|large|wide|big|long)|exceed|greater than [\d,]+|less than [\d,]+)/,
  /\bnumber of blocks\b.{0,24}(?:most|max|limit|exceed|less)|\bblocks per (?:query|request)|\brange\b.{0,24}(?:more than|capped|allowed)/,
  "must be smaller than size",
];

const LOG_RULES: readonly Rule[] = [
  rule("logs_timeout", LOGS, [
    /^(?!.*\brange exceeds).*(?:\btime(?:d)? ?out\b|deadline exceeded|took too long)/,
  ]),
  rule("invalid_params", { ...LOGS, when: (_, isReversed) => isReversed }, ["block range"]),
  rule("invalid_params", LOGS, [
    "invalid block range params",
    /\bto block\b.{0,24}\bmust be (?:after|greater|above|at least)\b.{0,24}\bfrom block\b/,
    /\b(?:min|from|start|begin)\w*\b.{0,16}> ?(?:max|to|end)\b/,
    /(?:from|begin|start) ?block\b(?! and| to ).{0,24}(?:after|greater|higher|before|lower|less) .{0,16}(?:to|end) ?block/,
  ]),
  rule("block_ahead", LOGS, AHEAD),
  rule("block_range", LOGS, ["number of requested blocks"]),
  rule("result_size", LOGS, [
    /(?:returned|matched|found)? ?more than [\d,]+k? (?:results|logs|events|entries|items|records)|query returned more than|logs matched by query/,
    /response (?:body |size )?(?:is )?(?:too (?:big|large)|exceed|should)|response size|max results|query exceeds limit/,
    /(?:too many|number of|max(?:imum)?(?: number of)?) (?:results|logs|events)|matched [\d,]+ (?:results|logs|events)/,
    /results? (?:set |window )?(?:is )?too large/,
    /\b(?:results?|result set|logs|log count|entries|events)\b(?:(?!range).){0,16}\b(?:exceeds?|exceeded|too many|too large)|\b(?:exceeds?|exceeded|too many|too large)\b.{0,16}\b(?:results?|logs|entries|events)/,
  ]),
  rule("filter_unaddressed", LOGS, ["less number of addresses", "specify an address"]),
  rule("filter_size", LOGS, [
    "addresses or topics",
    /(?:too many|max\w*) (?:addresses|topics|filters)/,
    /contains [\d,]+ (?:filters|addresses|topics)/,
  ]),
  rule("rate_limit", { ...LOGS, ...UNECHOED }, PLAIN_RATE),
  // "Invalid block range" under -32000, the code of a server: the range ends above the node's head.
  // Under other codes (the next rule) the range may also be too long, or reversed.
  rule("block_missing", { ...LOGS, codes: [-32000] }, [
    /invalid block range(?!.*\b(?:too|max\w*|exceed\w*|limit\w*)\b)/,
  ]),
  rule("range_unclear", LOGS, [/invalid block range(?!.*\b(?:too|max\w*|exceed\w*|limit\w*)\b)/]),
  rule("pruned", LOGS, PRUNED),
  // -32012 is the code of a proxy like this service: the limit belongs to one of its upstreams, so
  // no limit is learned for the proxy itself.
  rule("range_unclear", { ...LOGS, codes: [-32012] }, RANGE),
  rule("block_range", LOGS, RANGE),
];

const REFUSAL_RULES: readonly Rule[] = [
  rule("block_missing", HISTORIC, [/\bblock\w*\b.{0,24}\bavailable (?:only )?up to \d/]),
  rule("not_indexed", ANY, [
    "fully indexed",
    "not indexed",
    "indexing is in progress",
    "being indexed",
  ]),
  rule("pruned", HISTORIC, [
    "archive, debug",
    /archiv\w* .{0,40}(?:not (?:included|available|supported|enabled)|upgrade|requires?|only)|historical data/,
  ]),
  rule("method_unsupported", ANY, [
    /not (?:available|supported|included|allowed|enabled) (?:on|in|for|with|under|by) (?:the |your |this )?(?:[\w-]+ )?(?:free ?tier|plan|tier|subscription|package)/,
    /\b(?:tx ?pool|transaction pool|tracing|traces?|debug|namespace|module|apis?(?! ?key)|add ?on|functionality)\b.{0,16}(?:disabled|not enabled|not supported|not available|only available|not allowed)/,
    /only available (?:on|for|with|to) |requires? an? (?:\w+ )?(?:dedicated|paid|premium|enterprise)/,
    /\bmethods?\b.{0,64}(?:not served|is not supported|no support|not have support)/,
    /\b(?:method|call|rpc|api)\b[^:]{0,16}not (?:white|allow)listed/,
    /\b(?:eth|net|web3|debug|trace|txpool|erigon|parity|ots|zks|arb|bor|linea) (?!mainnet|sepolia|holesky|hoodi|goerli)\w+ (?:is |are )?(?:not (?:supported|available|enabled|allowed|served)|disabled|unavailable)/,
    /not implemented|\bunimplemented\b|\b(?:rpc call|function|operation|feature) (?:is )?not supported/,
    /\b(?:tracing|traces?|debug)\b(?: \w+)? (?:needs?|requires?) |upgrade.{0,24}to (?:use|access|enable) .{0,16}(?:methods?|trac|debug)/,
  ]),
  rule("tag_unsupported", ANY, [
    /invalid blockhash (?:finali[sz]ed|safe|pending|latest|earliest)/,
    /\b(?:safe|finali[sz]ed|pending)(?: (?:blocks?|state|tag|header|head|height|number))* (?:is |are )?(?:not (?:a |an |yet |currently )*(?:supported|implemented|available|found|enabled|known)|unsupported|unavailable|unknown)/,
    /(?:unsupported|unknown|invalid|unrecogni[sz]ed) (?:value for )?(?:(?:\w+ )?block )?(?:tag|identifier)\b/,
    "malformed blocknumber",
  ]),
  rule("pruned", ANY, PRUNED),
  // The node reads data with a transaction whose type it does not know.
  rule("dialect", ANY, [
    /\b(?:tx|transaction) (?:of )?type\b.{0,16}(?:not supported|unsupported|unknown)|(?:unsupported|unknown|invalid) (?:tx|transaction) type/,
  ]),
  // -32602 may echo what the caller sent, so it must not reach the rules below, which can exclude a
  // provider.
  rule("invalid_params", { ...VAGUE, codes: [-32602] }, [/\bparam/, /\bargument/, /\bpars/]),
  rule("rate_limit", ANY, PER_TIME),
  rule("quota_exhausted", ANY, QUOTA_EXHAUSTED),
  rule("quota", ANY, QUOTA),
  rule("rate_limit", ANY, RATE),
  rule("auth", ANY, AUTH),
  rule("wrong_chain", ANY, [/(?:invalid|wrong|unexpected) chain ?id,? expected/]),
  rule("wrong_chain", { ...LISTED, ...UNECHOED }, WRONG_CHAIN),
  rule("tx_invalid", EXECUTE, [/invalid chain ?id/]),
];

const BLOCK_RULES: readonly Rule[] = [
  rule("pruned", { when: isBelowHeight }),
  rule("filter_lost", ANY, [
    /\bfilter(?: id)?(?: (?:with id:? ?)?0x\w+)? (?:is |was |has )?(?:not found|does not exist|doesnt exist|expired|unknown|gone)\b/,
    /\bfilter (?:with id:? \S+ )?(?:is |was )?(?:not found|does not exist|expired)|(?:unknown|no such|expired|no) filter\b/,
  ]),
  rule("execution_info", ANY, ["contract could not be found"]),
  rule("block_ahead", ANY, AHEAD),
  rule("lagging", ANY, LAGGING),
  rule("block_missing", ANY, [
    /header (?:for hash )?not found|unknown (?:block|header)/,
    /\bblock\b.{0,90}(?:not found|cannot be found|could not be found|does not exist|doesnt exist|is not available|not available|missing)/,
    /(?:could not|cannot|cant|unable to|failed to) (?:find|get|fetch|load|retrieve) (?:the )?(?:block|header|canonical|receipts|transaction)/,
    /(?:transaction|tx|resource|receipts?) not found|no block found|\bheader not available|\bblock (?:hash |number )?(?:is )?unknown|receipts?\b.{0,24}missing/,
    /(?:could not|cannot|can not) be found|\bblocks?\b.{0,24}not known|no such (?:block|header|transaction|receipt)/,
    "expect block number from id",
    /\b(?:invalid|bad|wrong) (?:block )?height\b|\bblock height\b.{0,24}\binvalid\b/,
    /\b(?:not|non) (?:currently )?canonical|chainexception|genesis (?:block )?is not traceable/,
    /(?:not (?:in|within)|outside(?: of)?) (?:the )?(?:available|served|valid|known|supported) (?:block )?range/,
  ]),
  rule("response_size", ANY, [
    /(?:response|result) (?:body |size )?(?:is )?(?:too (?:big|large)|exceed)/,
  ]),
  rule("request_size", ANY, [/request (?:body |entity )?(?:is )?too large/, "payload too large"]),
];

const BROKEN_RULES: readonly Rule[] = [
  // -32005 is the code of a limit in EIP-1474, -32604 that of a busy server in jsonrpsee: a queue
  // or a server is full for the moment.
  rule("rate_limit", { ...INERT, codes: [-32005, -32604] }, [
    /\b(?:busy|queued?|overloaded|capacity)\b/,
  ]),
  rule("timeout", ANY, [/gateway time ?out/]),
  rule("trace_timeout", TRACES, ["execution aborted", ...TIMED_OUT]),
  rule("execution_timeout", EXECUTE, ["execution aborted", "execution timeout"]),
  rule("cancelled", ANY, [/\b(?:context|request|query|operation) (?:was |has been )?cancell?ed/]),
  rule("timeout", ANY, TIMED_OUT),
  rule("server", ANY, [
    /(?:cant|cannot|could not|unable to) (?:execute|complete|process|handle|serve|fulfil|route) (?:this |the |your )?request/,
    /failed (?:to (?:forward|proxy|relay|route|dispatch)|processing responses)/,
    /^(?:\[[^\]]{1,64}\] ?)?error invoking rpc\W*$/,
    /gateway error|bad gateway|service unavailable|temporar(?:il)?y (?:unavailable|internal)/,
    /\bbackend/,
    /\bno (?:\w+ ){0,2}(?:leaders?|providers?|upstreams?|nodes?|sequencers?|endpoints?|endpoint responses|pairings)\b|no healthy/,
    /\ball (?:\w+ )?(?:upstreams?|providers|nodes|endpoints)\b|upstream (?:connect )?error/,
    /shutting down|is (?:\w+ )?(?:down|offline|stopped|stopping|restarting|starting up)\b|\bnode offline|\bmaintenance\b|\bdisconnected\b|\bnot ready\b/,
    near(
      "upstreams?|providers?|relays?|gateway|grpc|proxy",
      "fail(?:ed|ure)?|unavailable|insufficient|find enough|not enough|closed|not " +
        "respond|unreachable|error",
      14,
    ),
    /(?:server|system|node|service) (?:is )?(?:too )?(?:busy|overloaded)|\boverloaded\b/,
    /method handler crashed|\bpanic|runtime error|nil pointer|\bmdbx|leveldb|database is/,
    /connection (?:refused|reset|failure|closed|lost|error)|could not connect|error connecting|\be(?:conn(?:refused|reset|aborted)|notfound|hostunreach|netunreach|ai again|pipe)\b|fetch failed|unexpected eof|: eof\b|broken pipe|socket hang up/,
    /request (?:could not|cannot|can not) be (?:completed|processed|served|handled)|\b(?:db|database|channel|store) (?:is )?closed/,
    /unexpected token <|invalid character <|(?:invalid|malformed|bad|unparsable) (?:json|response|reply|answer)\b.{0,16}\bfrom\b/,
    /unexpected error occurred|something went wrong|exception while processing/,
  ]),
];

/** Codes of `eth_simulateV1`, from the specification of the execution API. */
const SIMULATION_CODES: readonly Rule[] = [
  rule("nonce_low", { ...EXECUTE, codes: [-38010] }),
  rule("nonce_gap", { ...EXECUTE, codes: [-38011] }),
  rule("underpriced", { ...EXECUTE, codes: [-38012] }),
  rule("insufficient_funds", { ...EXECUTE, codes: [-38014] }),
  rule("tx_invalid", { ...EXECUTE, codes: [-38013, -38024, -38025] }),
  rule("halt", { ...EXECUTE, codes: [-38015] }),
  rule("invalid_params", { ...EXECUTE, codes: [-38020, -38021, -38022, -38023, -38026] }),
];

/** Codes made from an HTTP status: the status, the status negated, or -32000 minus the status. */
const STATUS_CODES: readonly Rule[] = [
  rule("auth", { ...INERT, codes: [401, -401, -32401] }),
  rule("quota", { codes: [402, -402, -32402] }),
  rule("refused", { codes: [403, -403, -32403] }),
  rule("timeout", { codes: [408, 504, -408, -504, -32408] }),
  rule("rate_limit", { codes: [-429, -32429] }),
  rule("server", { ...INERT, codes: [500, 502, 503, -500, -502, -503] }),
];

const CODE_RULES: readonly Rule[] = [
  rule("server", VAGUE, [
    /internal (?:server |json rpc |node |service )?error(?!: \w)/,
    /^\W*(?:an )?unknown (?:internal )?error\W*$/,
  ]),
  rule("rate_limit", { ...SEND, codes: [-32005] }, [/^\W*$/, "limit exceeded"]),
  rule("sender_rate_limit", { ...status(429), ...SEND, codes: [-32017] }),
  rule("rate_limit", status(429)),
  rule("auth", status(401)),
  rule("quota", status(402)),
  rule("server", { ...status(501, 599), ...VAGUE }),
  // Any code: vendors report a transaction that a node rejects under -32000, -32003, -32005,
  // -32010, -32603 and many others.
  rule("tx_rejected", { ...SEND, ...VAGUE }),
  rule("method_unsupported", { codes: [-32004, -32612, -32613, 4200] }),
  rule("range_unclear", { ...LOGS, codes: [-32012, -32005] }),
  rule("range_unclear", LOGS, ["limit exceeded"]),
  rule("block_range", { ...LOGS, codes: [-32614] }),
  rule("tx_invalid", { ...EXECUTE, codes: [-32003] }),
  rule("revert", { ...EXECUTE, codes: [-32015] }),
  rule("auth", { codes: [4100] }),
  rule("rate_limit", { codes: [429, -32005, -32007, -32029, -32046, -32090, -32097, -32605] }),
  rule("rate_limit", ANY, ["limit exceeded"]),
];

const LAST_RULES: readonly Rule[] = [
  // The caller chooses the code that is executed, so an unknown failure to execute it says nothing
  // about the provider.
  rule("unknown", { ...EXECUTE, ...VAGUE, codes: [-32603] }, [/\w/]),
  rule("server", { ...VAGUE, codes: [-32603] }),
  rule("invalid_params", { ...VAGUE, codes: [-32602] }),
  rule("invalid_params", { ...VAGUE, codes: [-32600] }, [
    /(?:invalid|malformed) .{0,16}request|not (?:a )?valid .{0,16}(?:request|json)/,
  ]),
  rule("refused", { ...status(403), ...VAGUE }),
  rule("range_unclear", { ...status(413), ...LOGS, ...VAGUE }),
  rule("response_size", { ...status(413), ...VAGUE }),
  rule("server", { ...status(500), ...VAGUE }),
  rule("unknown", VAGUE),
];

/**
 * Every known shape, in order: the first match wins, and the last rule of each kind always matches.
 * Rules for errors that hold words of the caller come first (a revert reason may read "invalid api
 * key"). Then come errors of requests and transactions, refusals of the provider from the most to
 * the least specific, families of words, codes, and HTTP statuses.
 */
export const RULES: readonly Rule[] = [
  ...PLAIN_RULES,
  ...EXECUTION_RULES,
  ...REQUEST_RULES,
  ...PLAN_RULES,
  ...TRANSACTION_RULES,
  ...LOG_RULES,
  ...REFUSAL_RULES,
  ...BLOCK_RULES,
  ...BROKEN_RULES,
  ...SIMULATION_CODES,
  ...FAMILY_RULES,
  ...CODE_RULES,
  ...STATUS_CODES,
  ...WEAK_FAMILY_RULES,
  ...LAST_RULES,
];
