// The shapes of provider errors as data: an ordered table in which the first rule that matches
// names the category. Rules describe families (what is said to be too large, missing, spent or
// broken), not single messages; words come before codes, since vendors use one code for many
// things.
import type { MethodGroup, Phrase, Rule } from "./category.ts";
import { FAMILY_RULES, WEAK_FAMILY_RULES } from "./families.ts";

const LOGS: readonly MethodGroup[] = ["logs"];
const SEND: readonly MethodGroup[] = ["send"];
const AWAIT: readonly MethodGroup[] = ["await"];
const EXECUTE: readonly MethodGroup[] = ["execute"];
const TRANSACTION: readonly MethodGroup[] = ["send", "execute"];
const INERT: readonly MethodGroup[] = ["inert"];
const LISTED: readonly MethodGroup[] = ["listed"];

/** Two of these words near each other, in either order. */
function near(some: string, others: string, chars: number): RegExp {
  return new RegExp(
    `\\b(?:${some})\\b.{0,${chars}}\\b(?:${others})|\\b(?:${others})\\b.{0,${chars}}\\b(?:${some})\\b`,
  );
}

/**
 * Codes under which a message may echo what the caller sent: never read as a refusal before the
 * words were found to be about parameters.
 */
const ECHOING: readonly number[] = [-32602];

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
/** So much in a short time. */
const PER_TIME: readonly Phrase[] = [
  new RegExp(`${TOO_MUCH}.{0,64}(?:${TIMES})|(?:${TIMES}).{0,48}${TOO_MUCH}`),
];
/** Words that speak of a rate and of nothing else. */
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
/** A chain that is not served; not a method or a tag that this chain lacks. */
const WRONG_CHAIN: readonly Phrase[] = [
  /^(?!.*\b(?:methods?|tracing|tracers?|trace(?! id)|debug|namespace|feature|tag|eth \w+)\b).*\b(?:(?:unsupported|unknown|unrecogni[sz]ed|no such|invalid) (?:block ?chain|chain|network)\b(?! ?(?:type|state|config|head|data))|(?:block ?chain|chain|network)\b(?: id)?(?: [\w-]+){0,2}? (?:is |was )?(?:not (?:supported|found|configured|recogni[sz]ed|served|known)|does not exist|unsupported|unknown)\b)/,
];
/** A JSON or plain text in which the error is a refusal by name, nothing else. */
const PLAIN_REFUSAL: readonly Phrase[] = [
  /^\W*(?:error|message|msg|reason|detail)\W{1,4}(?:unauthori[sz]ed|forbidden|access denied|(?:invalid|missing) api ?key)\b/,
];

// Ordered: the first match wins. First what carries the caller's own words (a revert reason may
// read "invalid api key"), then what is about the transaction, then refusals of the provider from
// the most to the least particular, then codes, then HTTP statuses.
const PLAIN_RULES: readonly Rule[] = [
  // EIP-7966: 4 = in the pool, not mined in time; 5 = cannot be executed; 6 = gap before its nonce.
  { category: "tx_pending", from: [2457], methods: AWAIT, codes: [4] },
  { category: "tx_not_executable", from: [], methods: AWAIT, codes: [5, 6] },
  { kind: "network", category: "connection_rate_limit", from: [232], text: ["enhance your calm"] },
  {
    kind: "network",
    category: "network",
    from: [231, 1889, 1890, 1991, 1992, 2099, 2100, 2211, 2215, 2216],
  },
  { kind: "unsent", category: "unsent", from: [] },
  { kind: "timeout", category: "timeout", from: [] },

  // Bodies that are no JSON-RPC answer: the status speaks, and for refusals the words.
  {
    kind: "body",
    category: "rate_limit",
    from: [2161, 2270, 2274],
    status: [400, 499],
    text: PER_TIME,
  },
  {
    kind: "body",
    category: "quota_exhausted",
    from: [1844, 2282],
    status: [400, 499],
    text: QUOTA_EXHAUSTED,
  },
  {
    kind: "body",
    category: "quota",
    from: [71, 1948, 2051, 2052, 2053, 2168, 2171, 2284, 2405, 2406],
    status: [400, 499],
    text: QUOTA,
  },
  {
    kind: "body",
    category: "quota",
    from: [1950],
    status: [429, 429],
    text: [/^\W*(?:message\W+)?limit exceeded\W*$/],
  },
  {
    kind: "body",
    category: "quota",
    from: [2283],
    status: [400, 499],
    plain: true,
    words: ["credit", "spent"],
    without: ["credential"],
  },
  {
    kind: "body",
    category: "quota",
    from: [2280],
    status: [400, 403],
    plain: true,
    words: ["usage", "over", "period"],
    without: ["credential"],
  },
  {
    kind: "body",
    category: "rate_limit",
    from: [
      62, 1839, 1840, 1845, 1942, 1943, 1944, 2042, 2046, 2047, 2048, 2049, 2155, 2158, 2159, 2160,
      2167, 2272, 2276, 2278, 2396, 2399, 2400, 2401, 2402,
    ],
    status: [400, 499],
    text: RATE,
  },
  {
    kind: "body",
    category: "rate_limit",
    from: [2043, 2163, 2165, 2273, 2395, 2397],
    status: [429, 429],
  },
  {
    kind: "body",
    category: "rate_limit",
    from: [],
    status: [500, 599],
    plain: true,
    text: PLAIN_RATE,
  },
  { kind: "body", category: "quota", from: [], status: [200, 299], text: QUOTA },
  {
    kind: "body",
    category: "rate_limit",
    from: [2044, 2166],
    status: [200, 299],
    text: PLAIN_RATE,
  },
  {
    kind: "body",
    category: "auth",
    from: [
      1849, 1850, 1851, 1956, 2055, 2056, 2058, 2059, 2174, 2175, 2178, 2286, 2287, 2288, 2290,
      2293, 2295, 2414,
    ],
    status: [401, 401],
  },
  { kind: "body", category: "quota", from: [2281], status: [402, 402] },
  {
    kind: "body",
    category: "auth",
    from: [1957, 2060, 2173, 2292, 2409, 2410, 2411, 2412, 2415, 2416],
    status: [400, 403],
    text: AUTH,
  },
  { kind: "body", category: "auth", from: [], status: [404, 404], plain: true, text: AUTH },
  {
    kind: "body",
    category: "auth",
    from: [],
    status: [200, 299],
    methods: INERT,
    text: PLAIN_REFUSAL,
  },
  {
    kind: "body",
    category: "wrong_chain",
    from: [],
    status: [403, 404],
    methods: LISTED,
    plain: true,
    text: WRONG_CHAIN,
  },
  // Nothing else is in the body, since a refusal of parameters may repeat what the caller sent.
  {
    kind: "body",
    category: "wrong_chain",
    from: [],
    status: [400, 400],
    methods: LISTED,
    text: [
      /^\W*(?:error|message)\W{1,4}(?:unsupported|unknown|invalid) (?:chain|network)\W*$/,
      /^\W*(?:error|message)\W{1,4}(?:chain|network) (?:is )?(?:not (?:found|supported)|unknown)\W*$/,
    ],
  },
  {
    kind: "body",
    category: "batch",
    from: [2422],
    status: [400, 413],
    plain: true,
    text: [/\bbatch (?:size |request |is )?(?:too (?:large|big|long)|exceed|limit)/],
  },
  {
    kind: "body",
    category: "lagging",
    from: [2311],
    status: [400, 599],
    plain: true,
    text: LAGGING,
  },
  {
    kind: "body",
    category: "method_unsupported",
    from: [],
    status: [400, 499],
    words: ["method", "unserved"],
    without: ["credential", "network"],
  },
  {
    kind: "body",
    category: "method_unsupported",
    from: [2030, 2433],
    status: [400, 499],
    methods: ["traces"],
    words: ["method", "unsupported"],
    without: ["credential", "network"],
  },
  {
    kind: "body",
    category: "method_unsupported",
    from: [2313],
    status: [400, 404],
    plain: true,
    text: [/\bmethods?\b.{0,64}?\bnot (?:allowed|permitted|available|found|enabled)\b/],
    without: ["credential", "network"],
  },
  {
    kind: "body",
    category: "method_unsupported",
    from: [],
    status: [400, 404],
    plain: true,
    words: ["method", "plan", "refused"],
    without: ["credential", "network"],
  },
  {
    kind: "body",
    category: "method_unsupported",
    from: [],
    status: [501, 501],
    plain: true,
    text: [/\bnot implemented\b|\bunimplemented\b/],
  },
  {
    kind: "body",
    category: "result_size",
    from: [],
    status: [413, 413],
    methods: LOGS,
    plain: true,
    text: [/\b(?:response|results?|logs)\b/],
  },
  {
    kind: "body",
    category: "auth",
    from: [2291, 2413],
    status: [403, 404],
    methods: INERT,
    plain: true,
    words: ["credential", "bad"],
  },
  {
    kind: "body",
    category: "auth",
    from: [2294],
    status: [403, 403],
    methods: INERT,
    plain: true,
    words: ["identity", "refused"],
    without: ["over"],
  },
  {
    kind: "body",
    category: "rate_limit",
    from: [],
    status: [403, 403],
    plain: true,
    words: ["usage", "over"],
    without: ["credential"],
  },
  {
    kind: "body",
    category: "rate_limit",
    from: [],
    status: [418, 499],
    plain: true,
    words: ["usage", "over"],
    without: ["credential"],
  },
  { kind: "body", category: "forbidden", from: [1854, 1955, 2057, 2176, 2177], status: [403, 403] },
  { kind: "body", category: "endpoint_missing", from: [], status: [300, 399] },
  // Nothing but the status: the door does not take this method. With a page behind it, it is no
  // door at all.
  {
    kind: "body",
    category: "method_unsupported",
    from: [132],
    status: [405, 405],
    text: [/^\s*$|^the body is empty$/],
  },
  {
    kind: "body",
    category: "method_unsupported",
    from: [],
    status: [415, 415],
    text: [/^\s*$|^the body is empty$/],
  },
  {
    kind: "body",
    category: "endpoint_missing",
    from: [233, 2324, 2442, 2447, 2452],
    status: [404, 405],
  },
  { kind: "body", category: "endpoint_missing", from: [], status: [410, 410] },
  { kind: "body", category: "timeout", from: [2210], status: [408, 408] },
  { kind: "body", category: "request_size", from: [], status: [413, 414] },
  { kind: "body", category: "rate_limit", from: [], status: [509, 509] },
  { kind: "body", category: "rate_limit", from: [], status: [529, 529] },
  {
    kind: "body",
    category: "timeout",
    from: [1986, 2093, 2208, 2335, 2336, 2454, 2456],
    status: [504, 504],
  },
  { kind: "body", category: "timeout", from: [], status: [524, 524] },
  {
    kind: "body",
    category: "timeout",
    from: [2334],
    status: [500, 599],
    plain: true,
    text: TIMED_OUT,
  },
  {
    kind: "body",
    category: "server",
    from: [
      226, 228, 1887, 1888, 1984, 1985, 1988, 1989, 1990, 2089, 2092, 2096, 2097, 2098, 2205, 2206,
      2212, 2213, 2214, 2326, 2330, 2331, 2332, 2446, 2448, 2449, 2450, 2451,
    ],
    status: [500, 599],
  },
  {
    kind: "body",
    category: "bad_body",
    from: [
      227, 229, 230, 1891, 1892, 1993, 1994, 2101, 2102, 2217, 2218, 2338, 2339, 2458, 2459, 2460,
    ],
  },
];

const EXECUTION_RULES: readonly Rule[] = [
  {
    category: "revert",
    from: [
      137, 138, 139, 140, 141, 142, 145, 1331, 1332, 1333, 1334, 1335, 1337, 1338, 1510, 1511, 1512,
      1513, 1514, 1655, 1768, 1769, 1812, 1813, 1815, 1914, 1915, 1916, 1920, 1921, 2014, 2015,
      2016, 2017, 2130, 2131, 2132, 2133, 2244, 2245, 2246, 2247, 2248, 2348, 2349, 2468,
    ],
    text: [
      "execution reverted",
      "vm exception while processing transaction",
      "vm execution error",
      "the execution failed due to an exception",
      /(?:transaction|call) reverted/,
      "reverted with",
    ],
  },
  {
    category: "revert",
    from: [1329, 1330, 1336, 1656, 2467, 2469],
    methods: EXECUTE,
    text: [
      /\brevert(?:ed)?\b/,
      /\bpanic(?: code)?:? ?\(?0x/,
      /message execution failed|validation revert/,
    ],
  },
  { category: "revert", from: [2134], methods: SEND, text: [/\breverted\b|\baa(?![23]1)\d\d\b/] },
  {
    category: "revert",
    from: [],
    methods: EXECUTE,
    data: [/^(?:reverted |revert: )?0x(?:08c379a0|4e487b71)/],
  },
  { category: "block_missing", from: [86], codes: [3], text: ["unknown block"] },
  { category: "halt", from: [1347], methods: EXECUTE, text: ["error function selector"] },
  { category: "underpriced", from: [], methods: EXECUTE, codes: [3], text: ["block base fee"] },
  { category: "revert", from: [1517, 1657], codes: [3], methods: EXECUTE },
  {
    category: "server",
    from: [1979, 2201],
    except: ECHOING,
    text: [
      /\bevm error:? ?\(?database/,
      /\bretries exceeded|max(?:imum)? (?:number of )?retries|retry limit/,
      /\bdatabase error|\brelation \S+ does not exist|syntax error at or near/,
      "failed to get account for",
      "failed to get storage for",
    ],
  },
  {
    category: "insufficient_funds",
    from: [2485],
    methods: SEND,
    text: [/\b(?:balance|funds)\b.{0,32}\b(?:cannot|can not|not enough to) (?:pay|cover|afford)\b/],
  },
  {
    category: "tx_invalid",
    from: [199, 1085, 2381],
    methods: SEND,
    text: [/\bblock gas limit\b|\bdecod\w+ (?:the |raw )*(?:tx|transaction|rlp|payload)\b/],
  },
  {
    category: "halt",
    from: [
      143, 144, 146, 147, 148, 149, 150, 151, 1339, 1340, 1341, 1342, 1344, 1349, 1515, 1516, 1518,
      1519, 1658, 1770, 1771, 1918, 1919, 2018, 2019, 2020, 2021, 2022, 2135, 2136, 2137, 2138,
      2139, 2249, 2250, 2251, 2252, 2350, 2353, 2470, 2471, 2473,
    ],
    text: [
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
    ],
  },
  {
    category: "halt",
    from: [1343, 1345, 1346, 1348, 1659, 1660, 1814, 1917, 2472],
    methods: EXECUTE,
    text: [
      /\bgas (?:limit|cap|allowance)\b.{0,16}(?:exceed|reached|is too low)|(?:exceed\w*|over|above).{0,24}\bgas (?:cap|limit)\b/,
      /\b(?:row|step|counter|circuit|computation|memory) (?:consumption|capacity|limit)\b.{0,24}(?:overflow|exceed|reached)|execution exceeded|\bline count\b.{0,48}above/,
      /processing could not be completed due to an exception/,
      /\bcpu time(?:out)?\b|\bcpu limit\b/,
    ],
  },
];

const REQUEST_RULES: readonly Rule[] = [
  {
    category: "batch",
    from: [213, 1364, 1365, 1527, 2036, 2037, 2152, 2266, 2267, 2303, 2423],
    text: [
      "validation errors in batch",
      /\b(?:too many|exceed\w*|limit\w*|max\w*)\b.{0,48}\b(?:in|per) (?:a |one |the |each |json rpc )?batch\b/,
      "calls in batch request",
      /\bbatch (?:\w+ )?(?:size|request|limit|is|of|too)\b/,
    ],
  },
  { category: "wrong_chain", from: [2296], methods: LISTED, codes: [-32601], text: WRONG_CHAIN },
  { category: "batch", from: [], methods: INERT, codes: [-32600], text: [/^\W*batch(?:es)?\b/] },
  {
    category: "invalid_params",
    from: [2340],
    methods: INERT,
    codes: [-32600],
    text: [
      /^\W*(?:request )?(?:id|json ?rpc(?: version)?|method|params)\b.{0,24}\b(?:must|should|missing|invalid|required)\b/,
    ],
  },
  {
    category: "batch",
    from: [2304],
    methods: INERT,
    text: [/\bnumber of (?:transactions|items) exceeds? (?:the )?limit/],
  },
  { category: "parse", from: [208, 215], codes: [-32700, -32601, -32600], text: ["parse error"] },
  { category: "parse", from: [1928, 2028, 2145, 2260, 2347, 2466], codes: [-32700] },
  {
    category: "filter_lost",
    from: [2510],
    methods: ["subscriptions"],
    text: [/\bsubscription (?:id )?(?:is |was )?(?:not found|does not exist|expired)\b/],
  },
  {
    category: "rate_limit",
    from: [2398],
    methods: ["subscriptions"],
    except: ECHOING,
    text: [/\btoo many (?:active |open |concurrent )?subscriptions\b/],
  },
  {
    category: "subscription_unsupported",
    from: [1324, 1934, 2034],
    methods: ["subscriptions"],
    codes: [-32601, -32004],
  },
  {
    category: "method_unsupported",
    from: [
      123, 124, 1320, 1321, 1323, 1441, 1444, 1583, 1707, 1713, 1930, 1933, 2031, 2032, 2038, 2146,
      2147, 2150, 2261, 2263, 2314, 2316, 2432,
    ],
    codes: [-32601],
  },
  {
    category: "subscription_unsupported",
    from: [133, 134, 1325, 1668, 2317, 2318, 2437],
    methods: ["subscriptions"],
    text: [
      /not (?:supported|available|found|exist|enabled|allowed|implemented)/,
      "unsupported",
      "websocket",
      /\b(?:invalid|wrong|unknown|unrecogni[sz]ed|no) (?:\S+ )?subscription\b(?! ?(?:id|param|request))/,
    ],
  },
  {
    category: "method_unsupported",
    from: [2033],
    methods: SEND,
    text: [
      /\b(?:submission|submitting|sending|broadcast\w*)\b (?:of \w+ )?(?:is |are )?(?:not (?:allowed|supported|accepted|enabled|permitted|available)|disabled|unsupported)/,
      /\b(?:read|index|query|view) only\b(?! (?:account|sender|address|wallet))/,
    ],
  },
  // The method is served, this way of tracing is not.
  {
    category: "dialect",
    from: [1932, 2148, 2392],
    methods: ["traces"],
    text: [
      /\btracer\b.{0,24}\b(?:not (?:found|defined|supported|available)|unknown|unsupported)|\b(?:unknown|unsupported|no such) tracer\b|\b(?:java ?script|js|native|custom|call|prestate)(?: based)? trac(?:er|ing)s? (?:is |are )?(?:not|disabled|unsupported)/,
      /\w+tracer is not defined/,
    ],
  },
  // Names the method, so it may hold anything a caller called a method.
  {
    category: "method_unsupported",
    from: [
      125, 127, 128, 1307, 1308, 1313, 1314, 1316, 1318, 1322, 1440, 1442, 1447, 1584, 1589, 1590,
      1685, 1709, 1710, 1714, 1786, 1929, 1931, 2264, 2265, 2312, 2315, 2435,
    ],
    text: [
      /\bmethods?\b.{0,120}?\b(?:does not exist|not exist|is not available|not available|not found|not supported|unsupported|not whitelisted|not enabled|disabled|not allowed|not permitted|not implemented|not recogni[sz]ed|unavailable|is blocked|is restricted)\b/,
      /\b(?:unsupported|unknown|unrecogni[sz]ed|no such|invalid|disallowed|restricted) (?:json ?rpc |rpc |service )?method\b/,
      /(?:not|nt) (?:support|have permission to (?:call|use)) (?:the |this )?(?:requested )?method/,
      /\b(?:not|no|isnt|doesnt)\b.{0,32}\b(?:access|call|use|invoke|execute|run)\b (?:to )?(?:the |this )?(?:rpc )?method\b/,
    ],
  },
  {
    category: "tag_unsupported",
    from: [1831],
    text: [/(?:unknown|invalid) variant:? (?:finali[sz]ed|safe|pending)\b/],
  },
  {
    category: "dialect",
    from: [136],
    text: [
      /invalid type: (?:map|string|struct|object|sequence|integer).{0,40}expected.{0,24}block/,
    ],
  },
  {
    category: "invalid_params",
    from: [
      210, 211, 212, 1353, 1354, 1355, 1358, 1522, 1523, 1776, 1777, 1922, 1923, 1924, 2023, 2142,
      2144, 2255, 2256, 2258, 2341, 2462,
    ],
    text: [
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
    ],
  },
  {
    category: "invalid_params",
    from: [1352, 1925, 2344],
    methods: ["other"],
    text: [
      /\bboth\b.{2,48}\band\b.{2,48}\b(?:specified|set|given|provided|present)\b|\b(?:cannot|can not|must not) (?:specify|set|use|have) both\b|\bhas both\b/,
    ],
  },
];

/**
 * Refusals by plan that speak of time, and of money that is spent: not the node's time, and not the
 * sender's money.
 */
const PLAN_RULES: readonly Rule[] = [
  {
    category: "rate_limit",
    from: [56, 1168, 1169, 1170, 1171, 1540, 1541],
    text: [
      /(?:time ?out|timed out|too long|execution time|time limit)\b.{0,64}\b(?:free|trial|public|tier|plan|upgrade)\b/,
      /\b(?:free|trial|public|lower) (?:tier|plan)\b.{0,48}(?:time ?out|timed out|time limit)/,
    ],
  },
  {
    category: "rate_limit",
    from: [1536, 1537],
    methods: ["send", "execute", "logs"],
    except: ECHOING,
    text: PER_TIME,
  },
  {
    category: "quota_exhausted",
    from: [],
    methods: ["send", "execute", "logs"],
    except: ECHOING,
    text: QUOTA_EXHAUSTED,
  },
  {
    category: "quota",
    from: [],
    methods: ["send", "execute", "logs"],
    except: ECHOING,
    text: QUOTA,
  },
];

const TRANSACTION_RULES: readonly Rule[] = [
  // The tracer replays a mined transaction, which had its funds and nonce: the tracer lacks the
  // state.
  {
    category: "trace_state",
    from: [152, 1373],
    methods: ["mined"],
    text: [/insufficient ?(?:funds|balance)/, /nonce too (?:low|high)/],
  },
  { category: "tx_pending", from: [], methods: SEND, text: [/was added to the mempool but/] },
  { category: "sender_rate_limit", from: [73], text: ["sender is over rate limit"] },
  {
    category: "replacement_underpriced",
    from: [
      177, 178, 1047, 1048, 1049, 1050, 1051, 1052, 1053, 1054, 1055, 1374, 1641, 1642, 1755, 1756,
      1804, 1906, 2115, 2116, 2231, 2359, 2361, 2364, 2478, 2481,
    ],
    methods: SEND,
    text: [
      /replacement ?(?:not ?allowed|(?:transaction |tx )?(?:underpriced|is underpriced|fee|gas))/,
      /\breplaced? by (?:a )?(?:fee|transaction|tx)\b/,
      /(?:cant|cannot|could not|failed to|tries to|too low|insufficient|underpriced).{0,40}\breplace\b/,
      /same nonce/,
      /too ?low ?priority|\bto replace\b/,
    ],
  },
  {
    category: "tx_invalid",
    from: [2127, 2495, 2499],
    methods: SEND,
    text: [
      /\bmax(?:imum)? nonce\b|\bnonce (?:has|is|at) (?:the |its )?max/,
      /\b(?:\w*fee ?cap|max ?fee\w*)\b.{0,16}\b(?:less|lower|smaller|below)\b.{0,16}\b(?:\w*premium|tip|max ?priority\w*|priority)\b/,
    ],
  },
  {
    category: "pool_full",
    from: [2490, 2491],
    methods: SEND,
    text: [
      /\bfull (?:transaction |tx )?(?:pool|mempool)\b/,
      /^(?!.*\b(?:account|sender|address)\b).*\b(?:cap|limit|maximum) (?:for|of|on) (?:queued|pending|pooled) (?:transactions|txs)\b/,
    ],
  },
  {
    category: "nonce_gap",
    from: [1030, 1998, 2507, 2508],
    methods: TRANSACTION,
    aheadOfExpected: true,
  },
  // What is there already may be another transaction: the node is asked for this very one.
  {
    category: "nonce_low",
    from: [1780, 1781, 1782],
    methods: SEND,
    text: [
      /\b(?:another|other|different) (?:tx|txn|transaction)\b.{0,48}\balready\b/,
      /\balready\b.{0,48}\b(?:nonce|sender|account)\b|\b(?:nonce|sender|account)\b.{0,48}\balready (?!known|used|been)/,
    ],
  },
  {
    category: "tx_known",
    from: [
      154, 155, 156, 157, 158, 159, 160, 161, 162, 163, 164, 166, 1001, 1002, 1003, 1004, 1005,
      1006, 1007, 1008, 1009, 1010, 1377, 1378, 1627, 1628, 1629, 1742, 1743, 1744, 1803, 2007,
      2103, 2104, 2219, 2354, 2355, 2356, 2474, 2475, 2476,
    ],
    methods: SEND,
    text: [
      /already ?known|\bknown transaction/,
      /already ?(?:been )?(?:imported|submitted|broadcast|received|accepted|queued)/,
      /same hash/,
      /already ?(?:exists )?in ?(?:the )?(?:\w+ )?(?:mem ?pool|pool|cache|system|tx ?pool|queue)/,
      /\b(?:tx|txn|transaction) ?(?:is |was )?already ?(?:exists?|known|in|pending|present|pooled)\b/,
      /duplicate (?:tx|txn|transaction)|\b(?:tx|transaction) hash already exists/,
    ],
  },
  {
    category: "nonce_low",
    from: [
      165, 167, 168, 169, 170, 171, 174, 1011, 1012, 1013, 1014, 1015, 1016, 1631, 1745, 1747, 1802,
      1808, 1893, 1894, 1895, 1996, 1997, 2220, 2222, 2477,
    ],
    methods: TRANSACTION,
    text: [
      /nonce.{0,24}too ?(?:low|small|old)/,
      /\bnonce\b.{0,16}\bnot (?:strictly )?increasing/,
      /invalidtransaction::stale|(?:tx|transaction) (?:is )?(?:outdated|stale)/,
      /ownnoncealreadyused|oldnonce|pool\(stale\)/,
      /nonce.{0,24}(?:already (?:been )?used|been used)/,
    ],
  },
  {
    category: "nonce_gap",
    from: [
      175, 176, 1025, 1026, 1027, 1028, 1029, 1031, 1376, 1634, 1635, 1636, 1748, 1749, 1896, 1897,
      1898, 1899, 1999, 2108, 2224, 2390,
    ],
    methods: TRANSACTION,
    text: [
      /nonce.{0,24}too ?(?:high|far|distant|big|large)/,
      /invalidtransaction::future|valid in the future/,
      /nonce ?gap|gapped nonce|future nonce|too distant future/,
      /(?<!account |state |current )nonce.{0,24}(?:in the future|(?:higher|greater) than (?:the )?(?:account|state|expected|current))/,
      /lower nonce exists|missing (?:transactions|nonces) before/,
    ],
  },
  {
    category: "nonce_low",
    from: [
      172, 173, 1017, 1018, 1019, 1020, 1021, 1022, 1023, 1024, 1375, 1630, 1632, 1633, 1746, 1995,
      2105, 2106, 2107, 2221, 2357, 2358,
    ],
    methods: TRANSACTION,
    text: [
      /(?:invalid|incorrect|wrong|bad|stale|unexpected) (?:transaction |tx |account )?nonce/,
      /nonce.{0,24}(?:mismatch|does not match|lower than|less than|smaller than|below|stale|out of date|outdated)|the correct nonce|expected nonce[^a-z]{0,24}(?:but )?got/,
      /account sequence mismatch|invalid sequence/,
      /\b(?:tx|transaction) (?:has |is |was )?(?:already (?:been )?|been )(?:mined|finali[sz]ed|included|executed|confirmed|processed)/,
      /(?:^|: )mined\W*$/,
    ],
  },
  // What a sequencer thinks of a nonce is the caller's, whatever the node says around it.
  {
    category: "nonce_low",
    from: [],
    text: [/\b(?:forward|relay|proxy)(?:ed|ing)? (?:the |this )?(?:tx|transaction)\b.{0,160}nonce/],
  },
  {
    category: "pool_policy",
    from: [185, 186, 187, 188, 189, 1075, 1076, 1077, 1078, 1079, 1113, 1647, 2387, 2389],
    methods: SEND,
    text: [
      "transaction fee too low",
      /(?:existing|newer|another) (?:transaction|tx) had higher priority/,
      /(?:^|: )\W*rejected\W*$/,
      /(?:rejected|refused|denied|disallowed) by (?:\w+ )?policy/,
      /in flight transaction limit|account limit exceeded|pendingtxsofconflictingtype|already reserved|has ?pending ?tx/,
      /too many (?:pending|queued|in flight) (?:transactions|txs|messages)|(?:sender|account|address)\b.{0,32}\b(?:max\w*|limit\w*|too many)\b.{0,32}(?:transactions|txs)\b/,
      /\bspammer\b/,
    ],
  },
  {
    category: "fee_cap",
    from: [194, 1067, 1068, 2005, 2370, 2489],
    methods: SEND,
    text: ["exceeds the configured cap", "fee cap exceeded"],
  },
  {
    category: "node_policy",
    from: [1080, 1081, 1082, 1083, 1084, 1832, 2128, 2386, 2388, 2505],
    methods: SEND,
    text: [
      "only replay protected",
      "chainid is required",
      /\b(?:sender|account|address|recipient|code|from|to)\b.{0,64}\b(?:forbidden|banned|black ?list|deny ?list|block ?list|sanctioned|prohibited|blocked|not authori[sz]ed to send|not permitted)/,
      /forbidden (?:sender|address)/,
    ],
  },
  {
    category: "insufficient_funds",
    from: [
      153, 190, 191, 192, 193, 1056, 1057, 1058, 1059, 1060, 1061, 1062, 1063, 1064, 1065, 1066,
      1494, 1495, 1496, 1497, 1498, 1643, 1644, 1757, 1758, 1774, 1775, 1801, 1809, 1900, 1901,
      1902, 1903, 2000, 2109, 2110, 2111, 2112, 2223, 2225, 2226, 2227, 2228, 2365, 2366, 2367,
      2369, 2484, 2486, 2487, 2488,
    ],
    methods: TRANSACTION,
    text: [
      /insufficient ?(?:\w+ ){0,3}?(?:funds|balance)\b/,
      "insufficientfunds",
      "invalidtransaction::payment",
      "overdraft",
      /\b(?:sender|account|address|wallet)\b.{0,48}\bhas \d.{0,32}\b(?:needs?|wants?|required?)\b/,
      /(?:upfront|total|tx|transaction) cost exceeds (?!current gas)/,
      /(?:enough|lack of|lacks|out of) (?:funds?\b|balance)|\baa[23]1\b|\bprefund/,
      /\b(?:balance|funds)\b.{0,16}(?:not|cannot) cover/,
      /(?:balance|funds)\b.{0,12}(?:too low|is less than|smaller than|< tx)/,
    ],
  },
  {
    category: "underpriced",
    from: [
      179, 180, 181, 182, 183, 184, 1032, 1033, 1034, 1035, 1036, 1037, 1038, 1039, 1040, 1041,
      1042, 1043, 1044, 1045, 1046, 1486, 1487, 1488, 1489, 1490, 1491, 1492, 1493, 1637, 1638,
      1639, 1640, 1750, 1751, 1752, 1753, 1754, 1800, 1807, 1904, 1905, 2001, 2002, 2003, 2113,
      2114, 2117, 2230, 2234, 2360, 2362, 2363, 2479, 2480, 2482, 2483,
    ],
    methods: TRANSACTION,
    text: [
      "underpriced",
      /fee ?too ?low|invalid (?:gas|unit|fee) ?price/,
      /\b(?:fees?|feecap|price|gasprice|tip|premium|maxfeepergas|\w*priorityfeepergas)(?: cap| per gas| per blob gas)?\b.{0,24}?\b(?:too low|below|less than|lower than|under the)\b/,
      /(?:insufficient|unacceptable|inadequate) (?:tx |gas )?(?:fees?|price|tip|premium)\b/,
      /\bbase ?fee exceeds|\bfee does not meet/,
      /\b(?:fees?|\w*feecap|\w*price|tip|premium)\b(?: per gas| cap| needed)?.{0,16}\b(?:less than|lower than|below|must be at least|at least|minimum|needed)\b/,
      "below minimum",
    ],
  },
  { category: "sequencer_pool_full", from: [197], methods: SEND, text: [/sequencer.{0,40}full\b/] },
  {
    category: "pool_full",
    from: [
      195, 196, 198, 1069, 1070, 1071, 1072, 1073, 1074, 1499, 1500, 1501, 1645, 1646, 1759, 1760,
      1805, 2006, 2118, 2120, 2235, 2371, 2372,
    ],
    methods: SEND,
    text: [
      /(?:pool|mempool|queue)(?: ?is)? ?(?:full|overflow)/,
      /(?:pool|mempool|queue)\b.{0,16}(?:reached (?:its|the) limit|because of the limit)/,
      near(
        "(?:tx|transaction )?pool|mem ?pool|tx ?pool|queue",
        "limit reached|capacity exceeded|at capacity",
        12,
      ),
      /too many transactions in the (?:queue|pool|mempool)|dropped due to limit/,
    ],
  },
  {
    category: "tx_invalid",
    from: [202, 207, 1086, 1101, 1108, 1761, 1762, 1772, 1773, 1912, 1913, 2008, 2376, 2378, 2497],
    methods: TRANSACTION,
    text: [
      /exceeds (?:the )?block gas limit|exceeds current gas limit|gaslimitexceeded/,
      "gas limit too high",
      "exceeds max transaction gas limit",
      /intrinsic gas|floor data gas|\bcost\b.{0,24}\bgas limit\b|\bgas limit\b.{0,24}\b(?:intrinsic|basic|base) cost/,
      "initcode size",
      /higher than max ?fee ?per ?gas/,
      "nonce has max value",
      /sender (?:is )?not an eoa/,
      "senderiscontract",
    ],
  },
  {
    category: "tx_invalid",
    from: [
      200, 201, 203, 204, 205, 206, 1087, 1088, 1089, 1090, 1091, 1092, 1093, 1094, 1095, 1096,
      1097, 1098, 1099, 1100, 1102, 1103, 1104, 1105, 1106, 1107, 1109, 1110, 1111, 1112, 1648,
      1763, 1764, 1810, 1908, 1910, 1911, 2009, 2010, 2121, 2125, 2126, 2129, 2238, 2239, 2240,
      2241, 2373, 2377, 2379, 2380, 2382, 2384, 2496, 2500,
    ],
    methods: SEND,
    text: [
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
    ],
  },
];

// Largest shapes first: what was found, then how many blocks were asked for, then what the filter
// names.
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

/** What is said to be too much, and how: "block range ... too wide", "limited to ... blocks". */
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
  {
    category: "logs_timeout",
    from: [44, 1469, 1470, 1965, 2209, 2453],
    methods: LOGS,
    text: [/^(?!.*\brange exceeds).*(?:\btime(?:d)? ?out\b|deadline exceeded|took too long)/],
  },
  { category: "invalid_params", from: [], methods: LOGS, reversed: true, text: ["block range"] },
  {
    category: "invalid_params",
    from: [1360, 1361, 1665, 2025, 2140, 2465],
    methods: LOGS,
    text: [
      "invalid block range params",
      /\bto block\b.{0,24}\bmust be (?:after|greater|above|at least)\b.{0,24}\bfrom block\b/,
      /\b(?:min|from|start|begin)\w*\b.{0,16}> ?(?:max|to|end)\b/,
      /(?:from|begin|start) ?block\b(?! and| to ).{0,24}(?:after|greater|higher|before|lower|less) .{0,16}(?:to|end) ?block/,
    ],
  },
  {
    category: "block_ahead",
    from: [94, 1295, 1297, 1702, 1704, 1976, 2077, 2430],
    methods: LOGS,
    text: AHEAD,
  },
  { category: "block_range", from: [15], methods: LOGS, text: ["number of requested blocks"] },
  {
    category: "result_size",
    from: [
      1, 3, 4, 18, 19, 20, 23, 38, 1252, 1253, 1254, 1255, 1256, 1257, 1258, 1481, 1482, 1483, 1484,
      1485, 1623, 1624, 1625, 1626, 1738, 1739, 1740, 1741, 1796, 1861, 1964, 2067, 2068, 2183,
      2301, 2420, 2421,
    ],
    methods: LOGS,
    text: [
      /(?:returned|matched|found)? ?more than [\d,]+k? (?:results|logs|events|entries|items|records)|query returned more than|logs matched by query/,
      /response (?:body |size )?(?:is )?(?:too (?:big|large)|exceed|should)|response size|max results|query exceeds limit/,
      /(?:too many|number of|max(?:imum)?(?: number of)?) (?:results|logs|events)|matched [\d,]+ (?:results|logs|events)/,
      /results? (?:set |window )?(?:is )?too large/,
      /\b(?:results?|result set|logs|log count|entries|events)\b(?:(?!range).){0,16}\b(?:exceeds?|exceeded|too many|too large)|\b(?:exceeds?|exceeded|too many|too large)\b.{0,16}\b(?:results?|logs|entries|events)/,
    ],
  },
  {
    category: "filter_unaddressed",
    from: [10],
    methods: LOGS,
    text: ["less number of addresses", "specify an address"],
  },
  {
    category: "filter_size",
    from: [40, 41, 1259, 1260, 1261, 1825, 1966, 2302],
    methods: LOGS,
    text: [
      "addresses or topics",
      /(?:too many|max\w*) (?:addresses|topics|filters)/,
      /contains [\d,]+ (?:filters|addresses|topics)/,
    ],
  },
  { category: "rate_limit", from: [2039], methods: LOGS, except: ECHOING, text: PLAIN_RATE },
  // Above the head of the node, where it says so as a server; too many blocks, or upside down,
  // where it says so as a judge of parameters.
  {
    category: "block_missing",
    from: [113],
    methods: LOGS,
    codes: [-32000],
    text: [/invalid block range(?!.*\b(?:too|max\w*|exceed\w*|limit\w*)\b)/],
  },
  {
    category: "range_unclear",
    from: [36, 1793, 2418],
    methods: LOGS,
    text: [/invalid block range(?!.*\b(?:too|max\w*|exceed\w*|limit\w*)\b)/],
  },
  { category: "pruned", from: [1568, 1862], methods: LOGS, text: PRUNED },
  // A proxy of our own kind reports the limit of one of its upstreams: not its own limit, so
  // nothing to learn.
  {
    category: "range_unclear",
    from: [43, 2064, 2297],
    methods: LOGS,
    codes: [-32012],
    text: RANGE,
  },
  {
    category: "block_range",
    from: [
      2, 5, 6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 21, 22, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34,
      35, 37, 42, 45, 1232, 1233, 1234, 1235, 1236, 1237, 1238, 1239, 1240, 1241, 1242, 1243, 1244,
      1245, 1246, 1247, 1248, 1249, 1250, 1251, 1380, 1381, 1382, 1471, 1472, 1473, 1474, 1475,
      1476, 1477, 1478, 1479, 1480, 1613, 1614, 1615, 1616, 1617, 1618, 1619, 1620, 1621, 1622,
      1730, 1731, 1732, 1733, 1734, 1735, 1736, 1737, 1783, 1826, 1827, 1828, 1829, 1855, 1856,
      1858, 1859, 1958, 1959, 1960, 1961, 1962, 1963, 2061, 2062, 2063, 2065, 2066, 2179, 2182,
      2298, 2299, 2300, 2417, 2419,
    ],
    methods: LOGS,
    text: RANGE,
  },
];

const REFUSAL_RULES: readonly Rule[] = [
  {
    category: "block_missing",
    from: [2509],
    methods: ["historic"],
    text: [/\bblock\w*\b.{0,24}\bavailable (?:only )?up to \d/],
  },
  {
    category: "not_indexed",
    from: [109, 110, 1268, 1368, 1529, 1874],
    text: ["fully indexed", "not indexed", "indexing is in progress", "being indexed"],
  },
  {
    category: "pruned",
    from: [104, 1274, 1691, 1791],
    methods: ["historic"],
    text: [
      "archive, debug",
      /archiv\w* .{0,40}(?:not (?:included|available|supported|enabled)|upgrade|requires?|only)|historical data/,
    ],
  },
  {
    category: "method_unsupported",
    from: [
      126, 129, 130, 131, 1309, 1310, 1311, 1312, 1315, 1317, 1319, 1443, 1445, 1446, 1448, 1585,
      1586, 1587, 1588, 1708, 1711, 1712, 2149, 2262, 2436,
    ],
    text: [
      /not (?:available|supported|included|allowed|enabled) (?:on|in|for|with|under|by) (?:the |your |this )?(?:[\w-]+ )?(?:free ?tier|plan|tier|subscription|package)/,
      /\b(?:tx ?pool|transaction pool|tracing|traces?|debug|namespace|module|apis?(?! ?key)|add ?on|functionality)\b.{0,16}(?:disabled|not enabled|not supported|not available|only available|not allowed)/,
      "not included in your current plan",
      /only available (?:on|for|with|to) |requires? an? (?:\w+ )?(?:dedicated|paid|premium|enterprise)/,
      /\bmethods?\b.{0,64}(?:not served|is not supported|no support|not have support)/,
      /\b(?:method|call|rpc|api)\b[^:]{0,16}not (?:white|allow)listed/,
      /\b(?:eth|net|web3|debug|trace|txpool|erigon|parity|ots|zks|arb|bor|linea) (?!mainnet|sepolia|holesky|hoodi|goerli)\w+ (?:is |are )?(?:not (?:supported|available|enabled|allowed|served)|disabled|unavailable)/,
      /not implemented|\bunimplemented\b|\b(?:rpc call|function|operation|feature) (?:is )?not supported/,
      /\b(?:tracing|traces?|debug)\b(?: \w+)? (?:needs?|requires?) |upgrade.{0,24}to (?:use|access|enable) .{0,16}(?:methods?|trac|debug)/,
    ],
  },
  {
    category: "tag_unsupported",
    from: [
      114, 115, 116, 117, 118, 119, 120, 1301, 1303, 1304, 1305, 1306, 1449, 1450, 1452, 1591, 1592,
      1593, 1876, 1978, 2083, 2197, 2320, 2438, 2439,
    ],
    text: [
      /invalid blockhash (?:finali[sz]ed|safe|pending|latest|earliest)/,
      /\b(?:safe|finali[sz]ed|pending)(?: (?:blocks?|state|tag|header|head|height|number))* (?:is |are )?(?:not (?:a |an |yet |currently )*(?:supported|implemented|available|found|enabled|known)|unsupported|unavailable|unknown)/,
      /(?:unsupported|unknown|invalid|unrecogni[sz]ed) (?:value for )?(?:(?:\w+ )?block )?(?:tag|identifier)\b/,
      "malformed blocknumber",
    ],
  },
  {
    category: "pruned",
    from: [
      95, 97, 98, 99, 100, 101, 102, 103, 105, 106, 1262, 1263, 1264, 1265, 1266, 1267, 1269, 1270,
      1271, 1272, 1273, 1275, 1276, 1277, 1278, 1410, 1411, 1412, 1413, 1414, 1415, 1416, 1417,
      1418, 1419, 1420, 1421, 1422, 1423, 1558, 1559, 1560, 1561, 1562, 1563, 1564, 1565, 1566,
      1567, 1687, 1688, 1689, 1690, 1692, 1693, 1694, 1695, 1792, 1818, 1863, 1864, 1865, 1866,
      1867, 1967, 1968, 1970, 1971, 1972, 2069, 2070, 2071, 2072, 2073, 2075, 2154, 2185, 2186,
      2187, 2188, 2189, 2305, 2306, 2308, 2309, 2424, 2425, 2426, 2427, 2428,
    ],
    text: PRUNED,
  },
  // A transaction of a type that this node does not know, in what it was to read.
  {
    category: "dialect",
    from: [135, 1326, 1327, 1328, 1526, 1830],
    text: [
      /\b(?:tx|transaction) (?:of )?type\b.{0,16}(?:not supported|unsupported|unknown)|(?:unsupported|unknown|invalid) (?:tx|transaction) type/,
    ],
  },
  // May echo what the caller sent, so it must not reach the rows that cost a provider its place.
  {
    category: "invalid_params",
    from: [1351, 1356, 1359, 1520, 1662, 1779, 1926, 2143, 2257],
    codes: [-32602],
    text: [/\bparam/, /\bargument/, /\bpars/],
    vague: true,
  },
  {
    category: "rate_limit",
    from: [
      39, 46, 51, 59, 63, 64, 1174, 1175, 1181, 1188, 1189, 1198, 1379, 1383, 1385, 1386, 1391,
      1392, 1393, 1531, 1533, 1535, 1538, 1671, 1678, 1941, 2164,
    ],
    text: PER_TIME,
  },
  { category: "quota_exhausted", from: [48, 1212, 1213, 1548, 1949, 2169], text: QUOTA_EXHAUSTED },
  {
    category: "quota",
    from: [
      49, 53, 65, 70, 1200, 1201, 1202, 1203, 1204, 1205, 1206, 1207, 1208, 1209, 1210, 1211, 1396,
      1397, 1398, 1399, 1400, 1543, 1545, 1546, 1547, 1679, 1680, 1681, 1834, 1843, 2050, 2170,
      2403, 2404,
    ],
    text: QUOTA,
  },
  {
    category: "rate_limit",
    from: [
      47, 50, 52, 55, 57, 58, 61, 66, 67, 68, 69, 72, 1172, 1173, 1176, 1177, 1178, 1179, 1180,
      1182, 1183, 1184, 1185, 1186, 1187, 1190, 1191, 1192, 1193, 1194, 1195, 1196, 1197, 1199,
      1384, 1387, 1388, 1389, 1390, 1394, 1395, 1532, 1539, 1542, 1669, 1670, 1672, 1673, 1674,
      1675, 1676, 1677, 1785, 1788, 1789, 1798, 1833, 1835, 1836, 1837, 1838, 1841, 1842, 1846,
      1937, 1938, 1939, 1940, 1945, 2040, 2041, 2045, 2156, 2162, 2269, 2275, 2277, 2279, 2393,
      2394,
    ],
    text: RATE,
  },
  {
    category: "auth",
    from: [
      76, 77, 78, 79, 80, 81, 82, 83, 1214, 1215, 1216, 1217, 1218, 1219, 1220, 1221, 1222, 1223,
      1224, 1225, 1226, 1227, 1228, 1229, 1230, 1231, 1401, 1402, 1403, 1404, 1405, 1406, 1407,
      1409, 1549, 1550, 1551, 1552, 1553, 1554, 1556, 1557, 1682, 1683, 1684, 1784, 1790, 1847,
      1848, 1852, 1853, 1951, 1952, 2054, 2172, 2407, 2408,
    ],
    text: AUTH,
  },
  {
    category: "wrong_chain",
    from: [234, 1372, 1530],
    text: [/(?:invalid|wrong|unexpected) chain ?id,? expected/],
  },
  { category: "wrong_chain", from: [], methods: LISTED, except: ECHOING, text: WRONG_CHAIN },
  { category: "tx_invalid", from: [], methods: EXECUTE, text: [/invalid chain ?id/] },
];

const BLOCK_RULES: readonly Rule[] = [
  { category: "pruned", from: [2307], belowHeight: true },
  {
    category: "filter_lost",
    from: [122, 1362, 1363, 1524, 1525, 1666, 1667, 1935, 2035, 2151],
    text: [
      /\bfilter(?: id)?(?: (?:with id:? ?)?0x\w+)? (?:is |was |has )?(?:not found|does not exist|doesnt exist|expired|unknown|gone)\b/,
      /\bfilter (?:with id:? \S+ )?(?:is |was )?(?:not found|does not exist|expired)|(?:unknown|no such|expired|no) filter\b/,
    ],
  },
  { category: "execution_info", from: [90], text: ["contract could not be found"] },
  {
    category: "block_ahead",
    from: [
      91, 92, 93, 96, 1282, 1293, 1294, 1296, 1298, 1299, 1300, 1432, 1433, 1434, 1435, 1575, 1576,
      1577, 1578, 1703, 1871, 1975, 2310, 2429,
    ],
    text: AHEAD,
  },
  {
    category: "lagging",
    from: [
      121, 1121, 1122, 1123, 1124, 1125, 1126, 1127, 1436, 1437, 1438, 1439, 1579, 1580, 1581, 1582,
      1705, 1706, 1816, 1872, 1977, 2082, 2196, 2431,
    ],
    text: LAGGING,
  },
  {
    category: "block_missing",
    from: [
      84, 85, 87, 88, 89, 107, 108, 111, 112, 1279, 1280, 1281, 1283, 1284, 1285, 1286, 1287, 1288,
      1289, 1290, 1291, 1292, 1424, 1425, 1426, 1427, 1428, 1429, 1430, 1431, 1569, 1570, 1571,
      1572, 1573, 1574, 1696, 1697, 1698, 1700, 1701, 1817, 1868, 1869, 1877, 1973, 1974, 2079,
      2080, 2081, 2193, 2195, 2268,
    ],
    text: [
      /header (?:for hash )?not found|unknown (?:block|header)/,
      /\bblock\b.{0,90}(?:not found|cannot be found|could not be found|does not exist|doesnt exist|is not available|not available|missing)/,
      /(?:could not|cannot|cant|unable to|failed to) (?:find|get|fetch|load|retrieve) (?:the )?(?:block|header|canonical|receipts|transaction)/,
      /(?:transaction|tx|resource|receipts?) not found|no block found|\bheader not available|\bblock (?:hash |number )?(?:is )?unknown|receipts?\b.{0,24}missing/,
      /(?:could not|cannot|can not) be found|\bblocks?\b.{0,24}not known|no such (?:block|header|transaction|receipt)/,
      "expect block number from id",
      /\b(?:invalid|bad|wrong) (?:block )?height\b|\bblock height\b.{0,24}\binvalid\b/,
      /\b(?:not|non) (?:currently )?canonical|chainexception|genesis (?:block )?is not traceable/,
      /(?:not (?:in|within)|outside(?: of)?) (?:the )?(?:available|served|valid|known|supported) (?:block )?range/,
    ],
  },
  {
    category: "response_size",
    from: [1366, 1367, 1528],
    text: [/(?:response|result) (?:body |size )?(?:is )?(?:too (?:big|large)|exceed)/],
  },
  {
    category: "request_size",
    from: [],
    text: [/request (?:body |entity )?(?:is )?too large/, "payload too large"],
  },
];

const BROKEN_RULES: readonly Rule[] = [
  // The codes of a limit, of EIP-1474 and of jsonrpsee: a queue or a server that is full for now.
  {
    category: "rate_limit",
    from: [2271],
    methods: INERT,
    codes: [-32005, -32604],
    text: [/\b(?:busy|queued?|overloaded|capacity)\b/],
  },
  { category: "timeout", from: [220, 1610], text: [/gateway time ?out/] },
  {
    category: "trace_timeout",
    from: [222, 1370, 2455],
    methods: ["traces"],
    text: ["execution aborted", ...TIMED_OUT],
  },
  {
    category: "execution_timeout",
    from: [223, 1369],
    methods: EXECUTE,
    text: ["execution aborted", "execution timeout"],
  },
  {
    category: "cancelled",
    from: [224, 1371],
    text: [/\b(?:context|request|query|operation) (?:was |has been )?cancell?ed/],
  },
  {
    category: "timeout",
    from: [
      1163, 1164, 1165, 1166, 1167, 1467, 1468, 1611, 1612, 1727, 1728, 1729, 1822, 1885, 1886,
      1987, 2094, 2095, 2333, 2337,
    ],
    text: TIMED_OUT,
  },
  {
    category: "server",
    from: [
      74, 75, 217, 218, 219, 221, 225, 235, 1128, 1131, 1132, 1133, 1134, 1135, 1136, 1137, 1138,
      1139, 1140, 1141, 1142, 1143, 1144, 1145, 1146, 1147, 1148, 1149, 1150, 1151, 1152, 1153,
      1154, 1155, 1156, 1157, 1158, 1159, 1160, 1161, 1162, 1453, 1454, 1455, 1456, 1458, 1459,
      1460, 1461, 1462, 1463, 1464, 1465, 1466, 1594, 1596, 1597, 1598, 1599, 1601, 1603, 1604,
      1605, 1607, 1608, 1716, 1717, 1719, 1720, 1721, 1722, 1723, 1724, 1725, 1726, 1797, 1799,
      1819, 1821, 1823, 1879, 1880, 1881, 1882, 1883, 1884, 1982, 2084, 2085, 2086, 2087, 2091,
      2204, 2321, 2322, 2328, 2329, 2440, 2445,
    ],
    text: [
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
    ],
  },
];

/** Codes of `eth_simulateV1`, from the specification of the execution API. */
const SIMULATION_CODES: readonly Rule[] = [
  { category: "nonce_low", from: [], methods: EXECUTE, codes: [-38010] },
  { category: "nonce_gap", from: [], methods: EXECUTE, codes: [-38011] },
  { category: "underpriced", from: [], methods: EXECUTE, codes: [-38012] },
  { category: "insufficient_funds", from: [], methods: EXECUTE, codes: [-38014] },
  { category: "tx_invalid", from: [], methods: EXECUTE, codes: [-38013, -38024, -38025] },
  { category: "halt", from: [], methods: EXECUTE, codes: [-38015] },
  {
    category: "invalid_params",
    from: [2345, 2464],
    methods: EXECUTE,
    codes: [-38020, -38021, -38022, -38023, -38026],
  },
];

/** Codes that repeat an HTTP status, as they are or below -32000. */
const STATUS_CODES: readonly Rule[] = [
  { category: "auth", from: [], methods: INERT, codes: [401, -401, -32401] },
  { category: "quota", from: [], codes: [402, -402, -32402] },
  { category: "refused", from: [], codes: [403, -403, -32403] },
  { category: "timeout", from: [], codes: [408, 504, -408, -504, -32408] },
  { category: "rate_limit", from: [], codes: [-429, -32429] },
  { category: "server", from: [2200], methods: INERT, codes: [500, 502, 503, -500, -502, -503] },
];

const CODE_RULES: readonly Rule[] = [
  {
    category: "server",
    from: [216, 1129, 1609, 1811, 1820],
    vague: true,
    text: [
      /internal (?:server |json rpc |node |service )?error(?!: \w)/,
      /^\W*(?:an )?unknown (?:internal )?error\W*$/,
    ],
  },
  {
    category: "rate_limit",
    from: [],
    methods: SEND,
    codes: [-32005],
    text: [/^\W*$/, "limit exceeded"],
  },
  { category: "sender_rate_limit", from: [], methods: SEND, codes: [-32017], status: [429, 429] },
  { category: "rate_limit", from: [1534], status: [429, 429] },
  { category: "auth", from: [1686], status: [401, 401] },
  { category: "quota", from: [1544, 1947], status: [402, 402] },
  { category: "server", from: [], status: [501, 599], vague: true },
  // Any code: vendors use -32000, -32003, -32005, -32010, -32603 and many others for what
  // a node thinks of a transaction.
  {
    category: "tx_rejected",
    from: [
      1114, 1116, 1117, 1118, 1119, 1120, 1502, 1503, 1506, 1508, 1509, 1652, 1653, 1654, 1766,
      1806, 2011, 2013, 2122, 2124, 2236, 2237, 2243, 2374, 2375, 2383, 2492, 2494, 2498, 2501,
      2502, 2503,
    ],
    methods: SEND,
    vague: true,
  },
  { category: "method_unsupported", from: [], codes: [-32004, -32612, -32613, 4200] },
  { category: "range_unclear", from: [], methods: LOGS, codes: [-32012, -32005] },
  { category: "range_unclear", from: [], methods: LOGS, text: ["limit exceeded"] },
  { category: "block_range", from: [], methods: LOGS, codes: [-32614] },
  { category: "tx_invalid", from: [], methods: EXECUTE, codes: [-32003] },
  { category: "revert", from: [], methods: EXECUTE, codes: [-32015] },
  { category: "auth", from: [], codes: [4100] },
  {
    category: "rate_limit",
    from: [54, 60, 1946],
    codes: [429, -32005, -32007, -32029, -32046, -32090, -32097, -32605],
  },
  { category: "rate_limit", from: [], text: ["limit exceeded"] },
];

const LAST_RULES: readonly Rule[] = [
  // A caller chooses what is executed, so an odd failure of that says nothing about the provider.
  { category: "unknown", from: [], methods: EXECUTE, codes: [-32603], vague: true, text: [/\w/] },
  { category: "server", from: [1600, 1718, 1878, 2207], codes: [-32603], vague: true },
  { category: "invalid_params", from: [2024, 2141], codes: [-32602], vague: true },
  {
    category: "invalid_params",
    from: [209, 1350, 1663, 1778, 2346],
    codes: [-32600],
    text: [/(?:invalid|malformed) .{0,16}request|not (?:a )?valid .{0,16}(?:request|json)/],
    vague: true,
  },
  { category: "refused", from: [], status: [403, 403], vague: true },
  { category: "range_unclear", from: [], methods: LOGS, status: [413, 413], vague: true },
  { category: "response_size", from: [], status: [413, 413], vague: true },
  { category: "server", from: [], status: [500, 500], vague: true },
  { category: "unknown", from: [1699, 2323], vague: true },
];

/** Every known shape, in order: the first match wins, the last row of each kind always matches. */
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
