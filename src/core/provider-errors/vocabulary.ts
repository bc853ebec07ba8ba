// The vocabulary of error messages: families of synonyms for what an error is about (a request, a
// state, a nonce, a key) and what it says about it (too much, missing, too low, refused). The rules
// in `families.ts` combine families. Expressions run in linear time on normalised text.

function alternatives(...parts: readonly string[]): string {
  return `(?:${parts.join("|")})`;
}

function words(...parts: readonly string[]): RegExp {
  return new RegExp(`\\b${alternatives(...parts)}\\b`);
}

/** Words, or a number compared with another. */
function wordsOrComparison(...parts: readonly string[]): RegExp {
  return new RegExp(`${words(...parts).source}|[<>]=? ?[\\da-z]`);
}

const NOT = alternatives(
  "not|isnt|arent|wasnt|cannot|cant|never|no longer|couldnt|doesnt|dont|didnt|wont|non|unable to",
  "failed to|fails to|failure to|un",
);
const HAVE = alternatives(
  "found|find|available|exists?|known|know|present|stored?|kept|keep|retained?|loaded?|load",
  "serve[ds]?|opened?|open|read|fetch(?:ed)?|retrieved?|located?|locate|resolved?|have|has|hold",
  "held|accessible|access|recovered?|get|look ?up|in (?:the |our )?(?:database|db|chain|cache|index|store)",
);

/** Word families, by name. */
const FAMILIES = {
  // What an error says about its subject.
  over: words(
    "exceed\\w*|surpass\\w*|(?<!be )reached|reaches|hit|hitting|over|above|beyond|limit\\w*",
    "max(?:imum|ed)?|cap|capped|ceiling|quota|allowance|budget|threshold",
    "too (?:many|much|fast|quick\\w*|often|frequent\\w*|high|large|big|long|wide|broad|deep)",
    "throttl\\w*|overload\\w*|excess\\w*|backpressure|burst|capacity|saturated|busy|reduce",
    "slow(?:er)?|cool down|heavy|unusual\\w*|abnormal\\w*|flood\\w*|abus\\w*|spam\\w*",
  ),
  bounded: wordsOrComparison(
    "at most|up to|decrease|narrow\\w*|smaller|fewer|lower",
    "(?:more|larger|bigger|greater|longer|wider|less) than|spans?|within|allow(?:ed|s)?",
    "restrict\\w*|must(?: not)? be|should(?: not)? be|no more than|refine|shorten|split|only",
    "per (?:query|request|call)|large|wide|big",
  ),
  spent: words(
    "exhaust\\w*|deplet\\w*|used up|used all|used|spent|consumed|(?:run|ran|running) (?:out|dry)",
    "run out|out of|no (?:\\w+ )?(?:more|remaining|left)|no active|inactive|remaining|zero|empty",
    "negative|insufficient|not enough|lacks?|gone|finished|drained|expired|expires|lapsed|ended",
    "over|overdue|unpaid|recharge|refill|top ?up|buy more|purchase",
  ),
  missing: new RegExp(
    [
      `\\b${NOT} (?:\\w+ ){0,2}?${HAVE}\\b`,
      words(
        "missing|unknown|unavailable|inaccessible|absent|stale|orphan\\w*|nonexist\\w*|lost|gone",
        "no such",
        "no (?:\\w+ ){0,2}?(?:block|header|state|trie|data|transaction|tx|receipts?|record|result|entry|snapshot|history)s?",
      ).source,
      words("notfound|(?:look ?up|retrieval|query) failed").source,
    ].join("|"),
  ),
  low: words(
    "low|lower|less|zero|below|under|underneath|beneath|insufficient|small|smaller|not enough",
    "minimum|min|at least|no less|inadequate|does not (?:meet|reach)|not competitive|must exceed",
    "too little|cheap|too few|short|lacks?|fewer|not sufficient|not meet|enough",
  ),
  high: words(
    "high|higher|ahead|future|gap|gapped|hole|exceeds?|exceeding|exceeded|greater|larger|above|far",
    "missing|skip\\w*|too big|too large|not (?:sequential|consecutive|contiguous)|out of sequence",
    "jump\\w*|too distant|out of order|beyond",
  ),
  bad: words(
    "invalid|incorrect|wrong|bad|malformed|illegal|unexpected|mismatch\\w*|corrupt\\w*|not valid",
    "fail(?:ed|s|ure)?|unrecogni[sz]ed|unknown|unsupported",
    "(?:not|isnt|doesnt) (?:supported|support|match|recogni[sz]ed|allowed|enabled|accepted|permitted|active|implemented|yet supported)",
    "(?:cannot|cant|could not|unable to) (?:be )?(?:decode|parse|recover|verify|derive)\\w*|missing",
    "empty|absent|too (?:large|long|big|short|small|low|high)|exceeds?|over|above|below|error\\w*",
    "reject\\w*|disabled|must|should|provide|supply",
  ),
  refused: words(
    "denied|deny|disallowed|forbidden|refused|reject\\w*|block(?:ed|list\\w*)|banned|suspended",
    "disabled|deactivated|inactive|revoked|expired|restricted",
    "not (?:\\w+ )?(?:allowed|permitted|authori[sz]ed|whitelisted|allowlisted|enabled|active|activated|included|part of|entitled|approved|subscribed|in (?:the )?(?:allow|white)\\w*)",
    "(?:doesnt|does not|do not|dont|didnt) (?:have|include|allow|permit|cover)",
    "no (?:permission|access|rights?)|lacks?|without|unauthori[sz]ed|locked|needs?|requires?d?",
    "upgrade|only",
  ),
  unsupported: words(
    "unknown|unsupported|unimplemented|unrecogni[sz]ed|undefined|no such|no handler",
    "no implementation|off|disabled|deprecated|removed|retired|discontinued|blocked|restricted",
    "forbidden|prohibited|disallowed|unavailable|premium|enterprise|paid|dedicated|upgrade",
    "(?:not|isnt|arent|doesnt|does not|never|no longer|cannot be|not been|not currently|not yet) (?:\\w+ ){0,2}?(?:support(?:ed|s)?|available|found|implement(?:ed|s)?|white ?listed|allow ?listed|allowed|permitted|enabled|served?|part of|exists?|recogni[sz]ed|exposed?|active|activated|offer(?:ed)?|defined|provided?|accessible|registered|included|present|known|turned on|called|callable|handled|mapped|configured)",
  ),
  broken: words(
    "unavailable|unreachable|offline|down|exceptions?|exited|fail(?:ed|s|ure|ing)?|errors?|errored",
    "lost|closed|closing|refused|reset|broken|crash\\w*|dead|empty|unhealthy",
    "not (?:ready|initiali[sz]ed|respond\\w*|available|healthy|reachable|running|connected|alive|operational)",
    "start(?:ing|ed)|initiali[sz]ing|warming|restart\\w*|stopp\\w*|paused|halted|suspended",
    "not accepting|shut\\w*|terminat\\w*|exhaust\\w*|full|at capacity|stall\\w*|stuck|dropped",
    "(?:did not|didnt|does not|not) (?:answer|respond|reply|connect)|expired|locked|corrupt\\w*",
    "no (?:\\w+ )?(?:response|answer|such host|route)",
    "(?:invalid|bad|empty|malformed|unexpected) (?:\\w+ ){0,2}?(?:response|reply|answer|payload)",
    "died|unexpected|malformed|problem|issue|interrupted|aborted|disconnect\\w*|overload\\w*",
    "overwhelm\\w*|busy|maintenance|degraded|outage|eof|oom|no space|non.?200|immature|incomplete",
    "inconsistent|status (?:code )?5\\d\\d|5\\d\\d",
    "(?:unable to|could not|cannot|cant|couldnt|fail(?:ed|s|ure)? to) (?:be )?(?:connect|reach|forward|contact|dial|open|read|write|get|fetch|establish|resolve|send|communicate|talk|process|complete|acquire|allocate|bind|obtain|deliver|route|relay)\\w*",
    "out of (?:memory|disk|space|file)|too many open",
  ),

  // What an error is about.
  usage: words(
    "requests?|reqs?|calls?|quer(?:y|ies)|traffic|compute units?|cus?|rps|qps|tps|cups|ccu",
    "credits?|hits|invocations?|frequency|rate|rates|ratelimit\\w*|bandwidth|throughput|usage",
    "connections?|simultaneous|concurren\\w*|parallel|api|plan|tier|polling|burst|backpressure",
    "weight|relays?|messages|client|ip|user|key|quota",
  ),
  period: words(
    "daily|days?|today|tomorrow|24 ?h(?:ours)?|months?|monthly|weekly|week|billing|cycle",
    "subscriptions?|plan|tier|free|trial|package|credits?|prepaid|recharge|top ?up|upgrad\\w*",
    "account|utc|midnight|allowance|payment|pay|invoice",
  ),
  monthly: words("monthly|months?|billing (?:cycle|period)|this month"),
  credit: words(
    "credits?|(?:compute|request|response|api|cu|service) (?:units?|budget)|prepaid|plan|package",
    "subscriptions?|trial|licen[cs]e|membership|quota|billing|payment|invoice",
    "(?:account|api|wallet|prepaid|your|ru|credit) balance|free tier|free plan|allowance|cus?",
  ),
  credential: words(
    "(?:api|access|rpc|app|application|client|project|your|license|secret|auth|service|dapp|customer|consumer|subscription|this|the|provided) keys?",
    "apikeys?|appkeys?|jwts?",
    "(?:api|access|auth|bearer|jwt|authentication|authorization|security|session|provided|your|rpc|project|endpoint|secret) tokens?",
    "credentials?|(?:valid|active) keys?|bearer|authori[sz]ation|authentication|authenticate[ds]?",
    "unauthenticated|login|log in|sign in|password|auth",
    "(?:project|app|application|client|customer|account|dapp|tenant|team|workspace) id",
  ),
  wanting: words("no|pass|provide|supply|please|needs?|must|should|required?|without"),
  identity: words(
    "tokens?|keys?|permissions?|privileges?|origin|referr?er|user agent|ip(?: address)?",
    "whitelist\\w*|allow ?list\\w*|access|account|user|client|consumer|project|app|customer|tenant",
    "caller|domain|region|country",
  ),
  network: words("networks?|chains?|blockchains?|endpoints?|regions?|resource|service|url"),
  state: words(
    "states?|reexec\\w*|trie|tries|state ?root|root|merkle|snapshots?|layers?|layer|history",
    "historical|histories|archiv\\w*|version|witness\\w*|preimages?|proofs?|change ?sets?|iavl",
    "ancient|ancients|freezer|account history|old|older|depth|retention|pruned|prun\\w*|past",
    "earlier|early|earliest",
  ),
  archive: words(
    "archiv\\w*|historical|history|pruned|pruning|prunes?|ancient|older|old|oldest|earliest",
    "retention|genesis|expired|dropped|outside|(?:state|proof|retention) window|reexec\\w*",
    "too (?:far|deep) (?:back|in)|recent|last \\d+",
  ),
  block: words(
    "blocks?|headers?|heights?|block ?(?:number|hash)|slots?|epochs?|tipsets?|bodies|body|uncles?",
    "rounds?|batch(?:es)?|checkpoint|ledger|bloom",
  ),
  batched: words(
    "batch(?:ed)? (?:\\w+ ){0,2}?(?:requests?|calls?|size|limit|mode|items?|entries|length|queries|payloads?)",
    "batching|batches|batch",
  ),
  found: words(
    "transactions?|txs?|txn|hash|receipts?|data|logs?|blobs?|records?|entry|resource|object|item",
    "result",
  ),
  head: words(
    "latest|head|tip|current|yet|future|ahead|arrived?|newest|last (?:accepted|finali[sz]ed|known)",
    "highest|tallest|pending|ready|produced|mined|minted|sealed|imported|processed|upcoming",
    "chain head|most recent|reached|out of range",
  ),
  ahead: words(
    "yet|future|ahead|beyond|exceeds?|exceeded|greater|bigger|larger|higher|above|later|after",
    "newer|out of range",
    "not (?:\\w+ )?(?:reached|arrived|produced|executed|committed|mined|minted|sealed|processed|imported|available|created|ready)",
    "latest is|current is|head is|past the|too (?:high|new|recent)",
    "(?:latest|highest|current) (?:\\w+ ){0,3}(?:is )?\\d+",
  ),
  sync: words(
    "sync\\w*|synchroni[sz]\\w*|unsynced|resync\\w*|catch(?:ing)? ?up|caught up|behind",
    "lag(?:s|ged|ging)?|bootstrap\\w*|downloading|back ?fill\\w*|stale|outdated|out of date",
    "importing|staged|initial (?:block )?download",
  ),
  node: words(
    "nodes?|clients?|chain|peers?|servers?|upstreams?|providers?|backends?|replicas?|databases?|db",
    "service|endpoint|rpc|gateway|we|blocks?|initial|snapshot|head|state|in progress|progress",
    "network|instance|system",
  ),

  indexed: words("index(?:ed|ing|er)?|reindex\\w*"),

  // Logs.
  range: words(
    "blocks?|range|ranges|window|span|spans|deltas?|epochs?|lookback|look back|interval|distance",
    "differences?|from ?block|to ?block|width|depth|period|from|to",
  ),
  results: words(
    "results?|logs?|events|entries|records|responses?|matches|matched|matching|rows|items|payload",
    "output|data|answer|reply|pages?|pagination|size|bytes|[mk]i?b|\\d+[mk]i?b",
  ),
  filter: words("address|addresses|topics?|contracts|filters?|criteria"),

  // Transactions.
  nonce: words(
    "nonces?|(?:previous|earlier|prior|preceding|parent) (?:transactions?|txs?)|sequence",
    "sequence number|transaction count",
  ),
  past: words(
    "low|lower|less|below|past|used|consumed|spent|stale|old|older|already|smaller|mismatch\\w*",
    "expect\\w*|incorrect|invalid|behind|wrong|executed|passed|under|outdated|reused?|reuse",
    "duplicate|taken|bad|unexpected|match|differs?|gone|occupied|not (?:equal|correct|valid)|early",
    "processed|confirmed|before",
  ),
  replace: words(
    "replac\\w*|bump\\w*|supersed\\w*|overrid\\w*|same (?:nonce|sender)|this nonce|speed ?up",
    "cancel(?:lation)?|conflicting|higher (?:gas )?(?:price|fee|tip|priority|fees)",
    "better (?:price|fee|gas price)|competing|existing (?:tx|transaction|txn|one)|increase\\w*",
    "raise",
  ),
  fee: words(
    "fees?|\\w*fee(?:per|cap)\\w*|prices?|gas ?prices?|tips?|tip cap|priority|premium|gwei|wei",
    "base ?fee|max ?fee\\w*|fee ?cap|gas ?fee|rate|bid|priced|under ?priced|cost|effective|pays?",
    "paying",
  ),
  funds: words(
    "balance|balances|funds?|prefund|prepay|cash|funded|ether|eth|coins?|money|afford",
    "native (?:token|currency|coin|asset)|gas token|upfront|pay|cover|cost|matic|pol|bnb|avax",
    "deposit",
  ),
  lacking: wordsOrComparison(
    "out of|didnt|did not|too little|insufficient|not enough|enough|lacks?|lacking|can ?not|cant",
    "unable|low|not sufficient|sufficient|exceeds?|exceeded|smaller|less|lower|zero|short",
    "shortfall|below|empty|no|required|needs?|not (?:cover|have|hold)|doesnt|greater|more than",
    "under ?funded|needed",
  ),
  pool: words(
    "pool|tx ?pool|mem ?pool|queue|transaction pool|pending (?:pool|set|queue|list)|buffer|backlog",
    "sub ?pool",
  ),
  full: words(
    "full|capacity|max(?:imum)?|overload\\w*|room|space|limit\\w*|overflow\\w*|crowded|congest\\w*",
    "saturated|exceed\\w*|too many|too large|size|reached|busy|slots?|exhausted|evict\\w*|discard\\w*",
    "dropped|drop",
  ),
  sender: words("account|sender|address|from|wallet|signer|user|eoa"),
  many: words(
    "too many|limit\\w*|max(?:imum)?|exceed\\w*|queued|pending|in flight|reached",
    "per (?:account|sender|address)|only \\w+",
  ),
  transaction: words(
    "transactions?|txs?|txn|txns|raw|payload|tx(?:hash|id)|bundle|user ?operations?|op|message",
    "request",
  ),
  known: words(
    "known|seen|duplicate\\w*|already|present|exists?|have it|have this|have the|same|previously",
    "resubmi\\w*|identical|again|in (?:the )?(?:mem ?|tx ?)?pool|received|included",
  ),
  envelope: words(
    "signature|signed|sign|signer|chain ?id|types?|envelope|gas ?limit|block gas|intrinsic|floor",
    "init ?code|code size|creation code|bytecode|contract (?:code|size|creation)|decod\\w*|rlp",
    "encod\\w*|deserial\\w*|blobs?|sidecars?|kzg|commitments?|proofs?|raw (?:tx|transaction)",
    "eip ?\\d+|access list|authori[sz]ation list|v value|[rsv] values?|replay protect\\w*|calldata",
    "data|size|bytes|parity|dynamic fee|london|cancun|prague|shanghai|osaka|fork|legacy|gas",
    "recipient|to address|tip above|7702|4844|1559|2930|155|format|field|payload|hex|recover\\w*",
  ),
  cap: words(
    "caps?|limit|maximum|threshold|configured|allowed|rpc tx ?fee ?cap|tx ?fee ?cap|too high",
    "exorbitant|excessive",
  ),
  banned: words(
    "black ?list\\w*|ban|banned|deny ?list\\w*|sanction\\w*|ofac|forbidden|prohibited|compliance",
    "screen\\w*|frozen|block ?list\\w*|not (?:allow|white) ?listed|not permitted|restricted|blocked",
    "censor\\w*|policy",
  ),

  // Execution.
  gas: words(
    "gas|steps?|cycles?|counters?|stack|memory|computation\\w*|opcodes?|instructions?|jump\\w*|depth",
    "recursion|circuit|resources?|energy|execution|ram|rom|prover|trace rows?|evm|vm|precompile",
    "bytecode|code|jumpdest|push|dup|swap|halted|halt",
  ),
  reverted: words(
    "reverts?|reverted|reverting|require[d]?|assert\\w*|rejected by (?:the )?contract",
    "abort(?:ed)? by (?:the )?contract|(?:simulation|transaction|tx|execution) fail(?:ed|s)",
    "custom error|panic code|panicked with|arithmetic (?:over|under)flow|division by zero",
    "divide by zero|underflow|out of bounds|solidity",
    "(?:will|would|likely to|may|expected to|going to) (?:fail|revert)",
    "contract (?:error|call failed|execution)|call failed|userop\\w*|aa\\d\\d",
  ),

  // Parts of a provider's system that fail.
  parts: words(
    "upstreams?|leaders?|validators?|forwarding|proxying|back ?ends?|nodes?|providers?|servers?",
    "services?|gateways?|endpoints?|sequencers?|clusters?|prox(?:y|ies)|origin|peers?|databases?",
    "db|disk|leveldb|level db|pebble|rocks ?db|mdbx|badger|lmdb|sqlite|postgres|redis|kafka",
    "connections?|sockets?|websocket|dns|hosts?|tls|ssl|x509|certificate|dial|memory|oom|threads?",
    "workers?|pods?|process\\w*|tcp|udp|http|grpc|i ?o|eof|file|files|channel|pipe|storage|engine",
    "consensus|batcher|replicas?|shards?|instances?|router|load balancer|system|infrastructure",
    "cache|transport|stream|response|network|goroutine|runtime|nil|null pointer|index out of range",
    "segfault|signal|lock|mutex|queue|work queue|executor|processor|certificate|nats|ipc",
    "our (?:side|end)|host",
  ),
  apology: words(
    "something (?:bad|went|is|has|unexpected)|oops|whoops|uh oh|sorry",
    "unexpected (?:\\w+ )?(?:error|failure|exception|condition|problem|response|issue)|unhandled",
    "uncaught|internal (?:\\w+ )?(?:error|failure|exception|problem|issue|fault)",
    "server (?:\\w+ )?(?:error|failure|exception|problem|issue|fault)",
    "temporar\\w+ (?:error|failure|problem|issue|outage|unavailable|glitch)|transient",
    "try (?:again )?later|please retry|retry later|try again|our (?:side|end)",
    "we are (?:aware|working)|service disruption|unexpected status|panick?\\w*|crashed",
    "error (?:\\w+ )?(?:retrieving|fetching|reading|loading|querying|contacting|communicating|handling|getting|calling)",
  ),
  slow: words(
    "time ?out\\w*|timed out|timing out|took \\d+ ?(?:ms|s|sec\\w*)|timed ?out|deadline|took too long",
    "taking too long|too slow|longer than \\d+ ?(?:ms|s|sec\\w*)|takes too long|time limit",
    "time budget|time exceeded|too much time|exceeded \\w+ time",
    "maximum (?:execution|processing|query) time",
    "within (?:\\d+ ?(?:ms|s|sec\\w*|milli\\w*)|the allotted|the allowed|the time)",
    "(?:execution|query|processing) time",
  ),

  // Methods and parameters.
  method: words(
    "methods?|rpcs?|apis?|(?:api|rpc) calls?|endpoints?|functions?|functionality|commands?",
    "actions?|namespaces?|modules?|features?|operations?|handlers?|routes?|procedures?",
    "trac(?:e|es|ing|er|ers)|debug|tx ?pool|subscriptions?|notifications?|pubsub",
    "eth (?:get|send|call|estimate|new|subscribe)\\w*|services?",
  ),
  unserved: words(
    "unsupported|unimplemented|no route(?! (?:to host|matched))",
    "not (?:in|on) (?:the |your )?(?:allow|white) ?list|no handler|disabled",
    "(?:not|isnt|arent|doesnt|does not) (?:\\w+ ){0,2}?(?:support(?:ed|s)?|implement(?:ed|s)?|white ?listed|allow ?listed|enabled|exposed?|offer(?:ed)?|defined)",
  ),
  plan: words(
    "plan|tier|package|subscription|paid|premium|enterprise|dedicated|upgrade|customers?|pro",
    "growth|business|add ?on|addon",
  ),
  tag: words(
    "safe|finali[sz]ed|finality|pending|tags?|block (?:tag|parameter|identifier)|earliest",
    "block label",
  ),
  params: words(
    "param\\w*|arguments?|args?|hex\\w*|address\\w*|fields?|inputs?|values?|types?|lengths?|bytes?",
    "integers?|decode|decoding|unmarshal\\w*|deserial\\w*|pars(?:e|ing|ed)|syntax|objects?|arrays?",
    "strings?|bool\\w*|schema|format|topics?|block ?(?:number|tag|hash|param\\w*|identifier)|data",
    "hash|checksum|ens|quantity|nibbles?|digits?|overrides?|signature|options?|tracer|index",
    "percentiles?|slots?|specifiers?|validation",
  ),
  wrongly: words(
    "invalid|wrong|missing|expected|expects?|both|mutually exclusive|conflict\\w*|must|should",
    "too (?:few|many|short|long|large|small|big)|bad|required|odd|malformed|cannot parse",
    "not (?:a |an )?(?:valid|hex|string|array|object|number|supported|allowed|match)|incorrect",
    "illegal|unexpected|unpars\\w*|unknown|undefined|null|empty|out of (?:range|bounds)|duplicate",
    "no more than|errors?|at (?:most|least)|exceeds?|leading zeros?|without|needs?",
    "cannot (?:be )?\\w+|could not (?:be )?\\w+|unable to (?:decode|parse)|fail(?:ed|s)?|not found",
  ),
} as const satisfies Record<string, RegExp>;

/** The name of a word family. */
export type WordFamily = keyof typeof FAMILIES;

/** The words of each family. */
export const VOCABULARY: Readonly<Record<WordFamily, RegExp>> = FAMILIES;
