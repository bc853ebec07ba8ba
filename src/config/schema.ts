// The configuration table: every setting with its type, bounds, default and meaning. Validation,
// JSON Schema and the reference are derived from it. Knows nothing of YAML, files, positions or
// variables inside values; rules across several settings are in `rules.ts`.

import { isIP } from "node:net";
import { z } from "zod";
import { DEFAULT_FINALITY_DEPTH } from "../core/provider/blocks/finality.ts";
import { BOUND_WORDS, byResource } from "../core/provider/history.ts";
import { PROVIDER_KINDS } from "../core/provider/method-scope.ts";
import { CONSISTENCIES, DEFAULT_CONSISTENCY } from "../core/provider/profile.ts";
import { REGION_PREFERENCES } from "../core/provider/region.ts";
import { ERROR_CATEGORIES } from "../core/provider-errors/category.ts";
import { DEFAULT_HEDGE } from "../core/routing/hedge.ts";
import { DEFAULT_STRATEGY, STRATEGY_SPELLINGS } from "../core/routing/strategy.ts";
import { CATEGORIES, type Resource } from "../core/rpc/method.ts";
import { LOG_VERIFICATIONS } from "../core/stream/log-verification.ts";
import { VENDOR_KINDS } from "../core/stream/subscription.ts";
import { DEFAULT_BLOCK_TIME_MS } from "./chains.ts";
import { hosted } from "./hosted.ts";
import {
  byName,
  byteSize,
  count,
  countOrNull,
  flag,
  intervalMs,
  list,
  offOr,
  oneOf,
  operatorToken,
  pattern,
  positive,
  section,
  settings,
  text,
  whole,
} from "./kinds.ts";
import { splitCredentials } from "./url-credentials.ts";
import { vendorEntryOf } from "./vendor-entry.ts";

/** The deadline classes, as spelled in the file. */
const DEADLINES = ["cheap", "standard", "default", "trace_tx", "trace_block"] as const;

/** Log levels, the most verbose first. */
const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/**
 * Words of the URL grammar and of this file, with the names of strategies: no chain may have such a
 * name or alias.
 */
export const RESERVED_CHAIN_NAMES: ReadonlySet<string> = new Set([
  ...STRATEGY_SPELLINGS.keys(),
  ..."all k session profile provider ws rpc api".split(" "),
]);

/** Headers the HTTP client sets itself. */
const MANAGED_HEADERS: ReadonlySet<string> = new Set(
  (
    "connection content-length expect keep-alive proxy-connection te trailer transfer-encoding " +
    "upgrade"
  ).split(" "),
);

const MAX_PROVIDERS = 64;
const MAX_DEVNET_NODES = 8;
/** Upper bound of `server.workers`. */
const MAX_WORKERS = 64;
/** Most workers with `server.workers: auto`. */
export const MAX_AUTO_WORKERS = 8;

export const word = pattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/).meta({
  title: "1 to 64 letters, digits, `-`, `_` or `.`, beginning with a letter or digit",
});
const label = text(1, 200).meta({ title: "text of 1 to 200 characters" });
const share = (fallback: number) => z.number().min(0).max(1).default(fallback);
const methodName = pattern(/^[A-Za-z0-9]+_[A-Za-z0-9_]+$/)
  .max(96)
  .meta({
    title:
      "a JSON-RPC method name of at most 96 letters, digits and `_`, such as `zks_estimateFee`",
  });
const subscriptionKind = pattern(/^[A-Za-z][A-Za-z0-9_]*$/)
  .max(96)
  .meta({
    title: "a kind of subscription of at most 96 letters, digits and `_`, such as `newFlashblocks`",
  });
const methodNames = z.array(text(1, 200).meta({ title: "a JSON-RPC method name" })).max(500);

const url = (schemes: readonly string[], title: string) =>
  z
    .string()
    .max(4_096)
    .refine((value) => hasScheme(value, schemes))
    .meta({ title, format: "uri" });

const headerName = pattern(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/)
  .refine((name) => !MANAGED_HEADERS.has(name.toLowerCase()))
  .meta({ title: `an HTTP header name other than ${[...MANAGED_HEADERS].join(", ")}` });
const headerValue = z
  .string()
  .max(8_192)
  .regex(/^[\t\x20-\x7e\x80-\xff]*$/)
  .meta({ title: "a header value: up to 8192 Latin-1 characters without line breaks" });

const errorRule = settings({
  code: z
    .int()
    .nullable()
    .default(null)
    .describe("JSON-RPC error code that matches; `null` = any."),
  message_contains: list(text(1, 500), 50).describe(
    "Pieces of text; any one of them in the error message matches, letter case ignored. Empty = " +
      "any message.",
  ),
  category: z
    .enum([...ERROR_CATEGORIES])
    .describe("What the error means: a category of the built-in classification."),
}).describe(
  "A rule that runs before the built-in error classification. At least one of `code` and " +
    "`message_contains` is needed.",
);

const providerLimits = section({
  max_block_range: countOrNull(1).describe(
    "Largest `eth_getLogs` block range accepted; `null` = not declared.",
  ),
  max_block_age: countOrNull(1).describe(
    "How many blocks behind the head are still served; `null` = not declared.",
  ),
  block_age_methods: methodNames
    .default([])
    .describe(
      "Methods that `max_block_age` binds; empty = every method that reads something of which " +
        "`capabilities` does not say how far back it goes.",
    ),
}).describe("Declared limits. Calls beyond them go to other providers first.");

/** How far back a provider has one kind of data. */
const historyBound = z
  .union([whole(0, Number.MAX_SAFE_INTEGER), z.string().regex(BOUND_WORDS)])
  .meta({ title: "the number of the oldest block, `last N` blocks behind the head, or `none`" })
  .optional();

const RESOURCE_TEXTS: Readonly<Record<Resource, string>> = {
  state: "balances, code, storage and calls",
  transactions: "transactions by hash or place",
  receipts: "receipts",
  logs: "logs",
  blocks: "blocks",
  proofs: "proofs of state",
  traces: "traces",
};

const capabilities = section({
  ...byResource((resource) =>
    historyBound.describe(
      `How far back it has ${RESOURCE_TEXTS[resource]}: the number of the oldest block (\`0\` = ` +
        "all), `last N` (so many blocks behind the head), or `none`. Default: as `archival`, " +
        "`limits.max_block_age` or the node itself says.",
    ),
  ),
  unsupported_methods: methodNames.default([]).describe("Methods this provider does not serve."),
  unsupported_categories: list(z.enum([...CATEGORIES]), 50).describe(
    "Method categories this provider does not serve.",
  ),
  limits: providerLimits,
  error_rules: list(errorRule, 100).describe(
    "Meanings of this provider's own errors; the first matching rule counts.",
  ),
}).describe("What the provider can and cannot do.");

const creditLimit = countOrNull(1, 1_000_000_000_000);

/** Most methods of one provider with a price of their own. */
const MAX_PRICES = 500;

const budget = settings({
  rps: countOrNull(1, 100_000).describe("Most requests in any second; `null` = not declared."),
  concurrency: countOrNull(1, 100_000).describe(
    "Most requests that are not answered yet; `null` = not declared.",
  ),
  daily: creditLimit.describe("Most credits in a day (UTC); `null` = not declared."),
  monthly: creditLimit.describe(
    "Most credits in a month (UTC); `null` = not declared. A provider whose month is spent " +
      "faster than it passes, by more than a day, is asked after others.",
  ),
  resets_on: count(1, 28, 1).describe("The day on which a month begins."),
  credits: z
    .record(methodName, whole(0, 1_000_000))
    .refine((prices) => Object.keys(prices).length <= MAX_PRICES)
    .meta({ title: `a map of up to ${MAX_PRICES} method names to whole numbers up to 1000000` })
    .default({})
    .describe("What a request of a method costs, in credits."),
  default_credits: whole(0, 1_000_000)
    .default(1)
    .describe("What a request of a method costs that `credits` does not name."),
})
  .optional()
  .describe(
    "What may be sent to this provider, by all workers together, and by all nodes of a cluster. " +
      "Beyond it another provider is asked. Everything counts: calls, probes, checks and " +
      "subscriptions. What was spent of days and months is kept in the store; where nodes serve " +
      "together, in their database. Nodes without `cluster.enabled` each have the limits for " +
      "themselves.",
  );

const batch = settings({
  max: count(2, 1_000, 100).describe("Most calls in one request."),
  wait_ms: count(0, 50, 0).describe(
    "How long, in milliseconds, a call waits for others to go with; `0` = it goes with those " +
      "that are ready at the same moment, and waits for none.",
  ),
})
  .optional()
  .describe(
    "Sends several calls to this provider over HTTP as one JSON-RPC batch. Default: each goes " +
      "alone. Most nodes answer a batch when its slowest call is done, so that only reads with " +
      "short answers share one: no writes, logs, traces or block receipts, no second tries, " +
      "hedges or probes. Vendors count every call of a batch, and so do `limits`. A provider " +
      "that refuses batches, or large ones, is asked call by call, or in smaller ones, for an " +
      "hour.",
  );

/** One upstream endpoint. */
export const provider = settings({
  id: word.describe("Identifier in pins, logs and metrics; unique per chain and profile."),
  name: label.optional().describe("Human-readable name. Default: the id."),
  alias: word
    .optional()
    .describe(
      "What callers of the managed profiles `public` and `premium` see instead of the id. " +
        "Default: `p1`, `p2`, … by order.",
    ),
  url: url(["http:", "https:"], "an http:// or https:// URL")
    .optional()
    .describe(
      "JSON-RPC over HTTP. May carry `user:password@`, sent as an `Authorization` header. At " +
        "least one of `url` and `ws_url` is needed.",
    ),
  ws_url: url(["ws:", "wss:"], "a ws:// or wss:// URL")
    .optional()
    .describe("JSON-RPC over WebSocket, for subscriptions."),
  priority: count(0, 1_000_000, 100).describe(
    "Order of the `priority` strategy: lower is tried first.",
  ),
  weight: count(1, 1_000, 1).describe(
    "Share of the calls of the `load-balanced` strategy, beside the weights of the others.",
  ),
  backup: flag(false).describe("Asked only where no other provider of the chain can be."),
  limits: budget,
  batch,
  pipelining: flag(false).describe(
    "Sends reads with short answers that begin at the same moment over one connection, up to " +
      "eight, without waiting for the answers of those before (HTTP/1.1 pipelining): less CPU " +
      "for each where many are under way. Only for providers that answer in order, and do not " +
      "let a slow call hold up others for long. Where a connection ends before all are answered, " +
      "or an answer belongs to another call, those behind are sent once more, each alone; for a " +
      "minute no others share a connection.",
  ),
  price: z
    .number()
    .min(0)
    .max(1_000_000)
    .nullable()
    .default(null)
    .describe(
      "USD of a million credits of this provider, by which the `cheapest` strategy orders: a " +
        "request costs as many as `limits.credits` says, else one. `null` = not declared: asked " +
        "after those with a price.",
    ),
  operator: word
    .optional()
    .describe(
      "Who runs it: providers of one operator count as one voice where two must agree. Default: " +
        "the vendor, else the registrable domain of its address.",
    ),
  kind: oneOf(PROVIDER_KINDS, "node").describe(
    "What it is for. `bundler`: user operations (ERC-4337), for which it is asked before nodes. " +
      "`logs`: logs, for which it is asked before nodes, and blocks. `relay`: transactions that " +
      "must not spread; it is asked only where a call pins it, or the profile says `transactions: " +
      "relays`. All of these are asked for nothing else.",
  ),
  methods: z
    .array(methodName)
    .min(1)
    .max(500)
    .meta({ title: "a list of 1 to 500 method names" })
    .optional()
    .describe(
      "All that it is asked for, beside `eth_chainId`; where that is refused, it is taken to be " +
        "on its chain. Without `eth_blockNumber` its height is not known, and its answers are not " +
        "kept. Default: all methods, or those of its `kind`.",
    ),
  archival: flag(false).describe(
    "Serves state, proofs and traces of any block, however old; of blocks, transactions, receipts " +
      "and logs the same is assumed, unless `capabilities` or the node says otherwise. `false`: " +
      "state, proofs and traces as far back as `archival_threshold`, unless they say otherwise. " +
      "Old logs are asked first of providers that are known to have them.",
  ),
  region: word
    .optional()
    .describe("Where it is: a name that nodes give as `cluster.region`. Default: not stated."),
  headers: byName(headerName, headerValue).describe(
    "Secret headers sent with every request to this provider.",
  ),
  capabilities,
}).describe("One upstream endpoint.");

/** A vendor's entry in place of a provider. */
const vendorEntry = vendorEntryOf(
  provider.shape,
  url(["http:", "https:", "ws:", "wss:"], "an http://, https://, ws:// or wss:// URL"),
);

/** The providers of one profile on one chain. */
export const providerSet = settings({
  selection: section({
    max_lag_blocks: count(0, 1_000_000, 5).describe(
      "A provider further behind the others than this is left out while another one can be asked.",
    ),
    archival_threshold: count(0, 1_000_000_000, 128).describe(
      "State, proofs and traces of blocks further behind the head than this need a provider with " +
        "`archival: true`.",
    ),
    region_preference: oneOf(REGION_PREFERENCES, REGION_PREFERENCES[0]).describe(
      "What a node with a `cluster.region` does: `prefer` asks providers of its region first, " +
        "then those without a region, where the strategy has no better reason; `only` asks no " +
        "others; `off` ignores regions.",
    ),
  }).describe("Which providers may serve a call."),
  monitoring: section({
    probe_interval_ms: intervalMs(12_000).describe(
      "Time between two health probes of one provider; five times that while it pushes its heads.",
    ),
    socket_heads: flag(true).describe(
      "Listens to new heads on every provider's WebSocket. `false` for vendors that charge for " +
        "each one; heights are then only polled.",
    ),
  }).describe("Health probes."),
  subscriptions: section({
    new_heads_timeout_ms: intervalMs(42_000).describe(
      "A subscription that delivers no new head for this long moves to another provider.",
    ),
    max_backfill_blocks: count(1, 100_000, 100).describe(
      "Most blocks replayed when a subscription moves to another provider.",
    ),
    backfill_timeout_ms: intervalMs(30_000).describe("Longest time for that replay."),
    log_verification: z
      .enum([...LOG_VERIFICATIONS])
      .optional()
      .describe(
        "Checks the logs of subscriptions with another provider: `strict` every block that may " +
          "hold some, before they are told; `sampled` those that brought none and one in 16 of " +
          "the others; `off` none. Default: `strict` where `block_time_ms` is 1000 or more, else " +
          "`sampled`.",
      ),
    verification_budget: count(1, 10_000, 5).describe(
      "Calls a second that these checks may make; under `strict` as many more as blocks at the " +
        "pace of the chain need. Beyond it `strict` becomes `sampled`.",
    ),
    kinds: list(subscriptionKind, 64).describe(
      "Kinds that some of its providers serve, beside those of nodes and " +
        `${VENDOR_KINDS.map((kind) => `\`${kind}\``).join(", ")}. These all are passed on ` +
        "from one provider as they come, without a replay; the socket is closed with 1011 when " +
        "that provider is lost.",
    ),
  }).describe("Shared WebSocket subscriptions."),
  providers: z
    .array(z.union([provider, vendorEntry]))
    .min(1)
    .max(MAX_PROVIDERS)
    .optional()
    .meta({ title: `a list of 1 to ${MAX_PROVIDERS} providers` })
    .describe(
      "The upstream endpoints. An item may also be an entry of a vendor, as in `providers` of the " +
        "profile, for this chain. May be left out where vendors of the profile join, and in the " +
        "profile that serves URLs without one, where the public addresses of a known chain are " +
        "used.",
    ),
}).describe("The providers of one profile on one chain. The key is the chain's name.");

const hedgeSettings = settings({
  max_extra: positive(1, DEFAULT_HEDGE.maxExtra).describe(
    "Most further calls, as a share of the calls that could be hedged.",
  ),
  floor_ms: intervalMs(DEFAULT_HEDGE.floorMs, 60_000).describe(
    "The least time after which a second provider is asked.",
  ),
  ceiling_ms: intervalMs(DEFAULT_HEDGE.ceilingMs, 60_000).describe(
    "The longest such time; also the one where it is not known how long answers take.",
  ),
}).describe("How much, and when.");
const hedge = offOr(hedgeSettings);

const consistency = z.enum(CONSISTENCIES);

const profileCache = offOr(
  settings({
    share_with: list(word, 100).describe(
      "Other profiles whose kept answers this one is also given, where those are of finalized " +
        "blocks or by the hash of a block.",
    ),
  }),
)
  .optional()
  .describe("How the profile uses the cache. Default: as `cache` at the top says.");

/** Whether a Redis URL has a host, and at most the number of a database as its path. */
function isRedisUrl(value: string): boolean {
  const parsed = URL.parse(value);
  if (parsed === null || !REDIS_SCHEMES.includes(parsed.protocol)) return false;
  const { hostname, pathname, search, hash } = parsed;
  return hostname !== "" && /^(\/\d{0,3})?$/.test(pathname) && search === "" && hash === "";
}

const REDIS_SCHEMES = ["redis:", "rediss:", "valkey:", "valkeys:"];

const redisUrl = z
  .string()
  .max(4_096)
  .refine((value) => value === "" || isRedisUrl(value))
  .meta({ title: "empty, or a redis://, rediss://, valkey:// or valkeys:// URL" });

const cacheSettings = settings({
  max_bytes: byteSize(1_048_576, 1_099_511_627_776, 134_217_728).describe(
    "Memory for all kept answers.",
  ),
  account_max_bytes: byteSize(0, 1_099_511_627_776, 0).describe(
    "Memory for the answers kept for one account with Custom profiles; `0`: none are kept.",
  ),
  scope: oneOf(["profile", "account"], "profile").describe(
    "`profile`: a caller may be given what another caller of the profile has asked for. " +
      "`account`: only what the same account, or without a key the same address, has asked for.",
  ),
  methods: byName(
    methodName,
    offOr(
      settings({
        ttl_ms: whole(1, 2_592_000_000).describe("The longest life of an answer."),
      }),
    ),
  ).describe("Methods whose answers are not kept, or live shorter than they could."),
  redis_url: redisUrl
    .default("")
    .describe(
      "A Redis or Valkey server that several nodes share: a second tier for answers of finalized " +
        "blocks, of the operator's profiles. With `rediss:` or `valkeys:` over TLS. Everything " +
        "on it may be lost at any time. Values are checked with a key made of `SVC_SECRET` and " +
        "the providers, the same at all nodes. Secret. Empty = there is none.",
    ),
}).describe("How much is kept, where, and for whom.");

const routing = settings({
  default_strategy: z
    .enum([...STRATEGY_SPELLINGS.keys()])
    .optional()
    .describe("The strategy of calls that name none. Default: that of `routing` at the top."),
});

const devnetNodes = whole(1, MAX_DEVNET_NODES);

export const profile = settings({
  cache: profileCache,
  routing: routing.prefault({}).describe("How calls are routed that say nothing of it."),
  chains: byName(word, providerSet).describe("By chain name, as under `chains`."),
  providers: list(vendorEntry, MAX_PROVIDERS).describe(
    "Vendors by one line each, for all chains of the file that they serve: `{ vendor: alchemy, " +
      'key: "…" }`. Which vendors and plans there are: docs/vendors.md.',
  ),
  transactions: oneOf(["nodes", "relays"], "nodes").describe(
    "Who transactions are handed to: nodes, or providers of `kind: relay` alone.",
  ),
  hedge: hedge.optional().describe("As `hedge` at the top. Default: that one."),
  consistency: consistency.optional().describe("As `consistency` at the top. Default: that one."),
}).describe(
  "A named provider set with its own health. `public` and `premium` are the managed pools; other " +
    "names are your own profiles.",
);

const chain = settings({
  chain_id: z
    .int()
    .min(1)
    .optional()
    .describe(
      "EIP-155 chain id; unique. Default: that of the known chain with this name. Needed where " +
        "none is known, or several networks have the id.",
    ),
  name: label
    .optional()
    .describe("Human-readable name. Default: the known one, else the chain's key."),
  aliases: z
    .array(word)
    .max(20)
    .optional()
    .describe("Other names accepted in URLs. Default: the known ones that no chain here has."),
  block_time_ms: whole(1, 3_600_000)
    .optional()
    .describe(
      `Usual time between two blocks. Default: the known one, else ${DEFAULT_BLOCK_TIME_MS}.`,
    ),
  cache: oneOf(["on", "off"], "on").describe("`off`: no answer of this chain is kept."),
  finality_depth: whole(0, 1_000_000)
    .default(DEFAULT_FINALITY_DEPTH)
    .describe(
      "Blocks taken off the height that a provider reports as finalized, where only one reports " +
        "any. Of several providers, the second highest report counts unchanged.",
    ),
}).describe(
  "A chain this instance serves. The key is its name in URLs; `{}` is enough for a known chain, " +
    "whose key may also be its id. Reloaded: chains come, change and go, but no name may get " +
    "another id until restart.",
);

const chains = z
  .union([
    z.literal("all"),
    z
      .object({
        all: flag(false).describe("`true`: every other known chain as well, opened when called."),
      })
      .catchall(chain.nullable())
      .describe("Chains by name, and a switch beside them."),
  ])
  .prefault({})
  .meta({ title: "`all` or a map" })
  .describe(
    "The chains this instance serves, by name. About 700 are known (`src/presets/chains.tsv`, " +
      "made from `viem/chains`): their ids, names, block times and public addresses need not be " +
      "written; what is written counts. `all`: every known chain, opened when it is called.",
  );

const server = section({
  host: text(1, 255).default("127.0.0.1").describe("Address to listen on; `0.0.0.0` = all."),
  port: count(0, 65_535, 4_000).describe("Port to listen on; `0` = any free one."),
  workers: z
    .union([z.literal("auto"), whole(1, MAX_WORKERS)])
    .optional()
    .meta({ title: `\`auto\` or a whole number from 1 to ${MAX_WORKERS}` })
    .describe(
      "Processes that serve, on one port and as one service; `auto` = one for each core and " +
        `each 500 MB that this process may use, at most ${MAX_AUTO_WORKERS}. Each takes a heap ` +
        "and keeps answers of its own. Default: 1.",
    ),
  public_url: url(["http:", "https:"], "an http:// or https:// URL")
    .optional()
    .describe(
      "Base URL shown to callers. Required in production, where URLs hold keys; default " +
        "elsewhere: the host that the caller names.",
    ),
  operator_token: operatorToken.describe(
    "Secret of the operator: opens the operator's endpoints, real provider ids and the usage in " +
      "the console. Default: they are closed.",
  ),
  metrics_listen: z
    .string()
    .refine(isListenAddress)
    .optional()
    .meta({ title: "an address and a port such as 127.0.0.1:9400" })
    .describe(
      "Serves `/metrics` with real provider ids on an address of its own. Default: peers on this " +
        "machine see them at `/metrics`; set it where a proxy on this machine forwards that path.",
    ),
  compression: oneOf(["auto", "off"], "auto").describe(
    "`auto` compresses answers of 16 KiB and more (zstd, gzip) for callers on public addresses " +
      "who accept it, two at a time; `off` none.",
  ),
  fast_path: oneOf(["auto", "off"], "auto").describe(
    "`auto` serves plain calls straight from the connection and leaves everything else to Node's " +
      "HTTP server; `off` leaves every connection to it, at a higher cost a call.",
  ),
  trusted_proxies: list(
    z
      .string()
      .refine((text) => text.split(",").every(isAddressRange))
      .max(2_000)
      .meta({
        title: "an IP address or a range such as 10.0.0.0/8, or several with commas between",
      }),
    100,
  ).describe(
    "Proxies whose `X-Forwarded-For` is believed. One text may hold several, so that a variable " +
      "can.",
  ),
}).describe("Where the service listens. Changes need a restart.");

const upstream = section({
  http: oneOf(["own", "undici"], "own").describe(
    "The HTTP client for providers: `own` is the built-in one, which reads answers strictly and " +
      "costs less; `undici` also serves, under `own`, providers that speak HTTP/2 alone.",
  ),
}).describe("How providers are reached. Changes need a restart.");

const limits = section({
  max_body_bytes: count(1_024, 1_000_000_000, 8_000_000).describe("Largest request body."),
  max_batch_items: count(1, 10_000, 1_000).describe(
    "Most calls in one batch. Calls beyond the rate of the caller's account wait within the " +
      "batch, up to 30 seconds.",
  ),
  batch_concurrency: count(1, 1_000, 32).describe("Calls of one batch in flight at once."),
  max_in_flight_bytes: count(1_024, 100_000_000_000, 256_000_000).describe(
    "Bytes held in memory at once, all callers together: request bodies, and answers that are " +
      "gathered (batches, WebSockets). Beyond it: `unavailable`. Divided evenly between workers.",
  ),
  max_caller_bytes: count(1_024, 100_000_000_000, 64_000_000).describe(
    "The part of that which requests and gathered answers of one caller may take: an account, or " +
      "an IP address (IPv6: a /64) without a key. Short requests, and answers to single calls " +
      "over HTTP, need none.",
  ),
  max_answer_bytes: count(1_024, 1_000_000_000_000, 1_073_741_824).describe(
    "Longest answer of a provider; one that goes on is cut off. At most 64 MiB for providers of " +
      "users.",
  ),
  max_connections: count(1, 1_000_000, 10_000).describe(
    "Client connections open at once. Divided evenly between workers.",
  ),
  headers_timeout_ms: intervalMs(10_000).describe(
    "Longest time for a client to send the request headers.",
  ),
  request_timeout_ms: intervalMs(30_000).describe(
    "Longest time for a client to send a whole request.",
  ),
  keep_alive_timeout_ms: intervalMs(65_000).describe(
    "An idle client connection is closed after this.",
  ),
  drain_timeout_ms: intervalMs(30_000).describe(
    "Longest time to finish accepted requests when stopping.",
  ),
  max_attempts: countOrNull(1, 100).describe(
    "Most providers that one call is sent to; `null` = all that can serve it, one after the " +
      "other, until one answers. An attempt that certainly was not sent does not count.",
  ),
  max_socket_requests: count(1, 10_000, 32).describe(
    "Requests in flight at once on one WebSocket; a batch counts as one. Further ones wait in " +
      "order, each at most as long as the deadline of its method.",
  ),
  max_socket_bytes: count(1_024, 1_000_000_000, 33_554_432).describe(
    "Bytes of requests in flight and waiting on one WebSocket, and 1 KiB for each that waits; " +
      "beyond it the socket is not read.",
  ),
  max_socket_subscriptions: count(1, 100_000, 128).describe("Subscriptions of one WebSocket."),
  max_log_filters: count(1, 100_000, 128).describe(
    "Different log filters that one account may have open at once, on all its connections " +
      "together.",
  ),
  max_keyless_log_filters: count(1, 100_000, 32).describe(
    "The same for callers without a key, by IP address (the /64 of an IPv6 address).",
  ),
  max_filters: count(1, 1_000_000, 10_000).describe(
    "Filters (`eth_newFilter` and its like) open at once, all callers together.",
  ),
  max_caller_filters: count(1, 1_000_000, 256).describe(
    "Filters of one account, or of one address without a key.",
  ),
  max_filter_bytes: count(65_536, 100_000_000_000, 134_217_728).describe(
    "Bytes that wait to be polled in all filters, and those of very long filters themselves, at " +
      "most a quarter of `max_in_flight_bytes`, in which they count; those of one caller at most " +
      "a quarter of `max_caller_bytes`. Beyond it, and before a call finds no room in memory, " +
      "the largest filter of the caller with the most ends.",
  ),
  max_socket_queue_bytes: count(1_024, 1_000_000_000, 8_000_000).describe(
    "A client that lets more than this wait to be read is too slow: closed with 1013. What waits " +
      "on all WebSockets together counts in `max_in_flight_bytes`: beyond a quarter of it the " +
      "one that has been behind for the longest is closed, and beyond half of it cut off.",
  ),
  socket_ping_ms: intervalMs(30_000).describe(
    "Time between two pings on a WebSocket; closed with 1002 after two without a pong.",
  ),
  first_attempt_share: positive(1, 0.6).describe(
    "Part of the deadline the first of several attempts may use.",
  ),
}).describe("Bounds on what callers may ask for.");

const deadlines = section({
  cheap_ms: intervalMs(2_000).describe("Answers from memory: `eth_blockNumber`, `eth_gasPrice`."),
  standard_ms: intervalMs(5_000).describe("Single reads: blocks, transactions, balances."),
  default_ms: intervalMs(10_000).describe(
    "`eth_call`, `eth_getLogs` and methods that are not in the table.",
  ),
  trace_tx_ms: intervalMs(30_000).describe("`debug_*` and `trace_*` of one transaction."),
  trace_block_ms: intervalMs(45_000).describe("`debug_*` and `trace_*` of whole blocks."),
}).describe("The time a call may take, all attempts together, by class of method.");

const logs = section({
  split: oneOf(["auto", "off"], "auto").describe(
    "`auto` asks for a range that no provider accepts whole in parts, and joins them; `off` " +
      "refuses it.",
  ),
  max_blocks: count(1, 1_000_000_000, 1_000_000).describe("Most blocks of a call in parts."),
  max_parts: whole(1, 10_000)
    .optional()
    .describe(
      "Most parts of one call, as planned at its start from the limits of providers. Default: " +
        "200 on a router, 20 where keys are charged: each part counts and costs as one call.",
    ),
  max_keyless_parts: count(1, 10_000, 5).describe(
    "The same for callers without a key where others have keys.",
  ),
  max_bytes: count(65_536, 100_000_000_000, 64_000_000).describe(
    "Longest joined answer that is gathered before it is sent: in batches, over WebSocket, and " +
      "of blocks that are not final. Others are passed on while parts arrive.",
  ),
}).describe("Calls over ranges of blocks: `eth_getLogs`, `eth_getFilterLogs`, `trace_filter`.");

const method = settings({
  kind: z
    .enum(["read", "write"])
    .optional()
    .describe(
      "`read`: may be sent to several providers; `write`: to one. Needed for methods that are " +
        "not in the built-in table.",
    ),
  block_param: whole(0, 15)
    .optional()
    .describe("Index in `params` of the block that it reads, as a tag, number or EIP-1898 object."),
  cu: whole(1, 1_000_000)
    .optional()
    .describe(
      "Compute units at `load-balanced`; `hosted.tariff.methods` goes before it. Default: the " +
        "built-in ones, else 3.",
    ),
  deadline: z
    .enum(DEADLINES)
    .optional()
    .describe("Which of `deadlines` bounds it. Default: the built-in one, else `default`."),
}).describe(
  "What the service should know of one JSON-RPC method. The key is its name, letter case as " +
    "callers write it.",
);

const strategies = section({
  fastest_min_calls: count(0, 1_000_000, 3).describe(
    "`fastest`: calls after which a provider counts as known.",
  ),
  fastest_min_success_rate: share(0.9).describe("`fastest`: success rate a known provider needs."),
  lw_beta: positive(20, 3).describe("`latency-weighted`: how strongly latency counts."),
  lw_ms_floor: positive(60_000, 30).describe(
    "`latency-weighted`: latencies below this count as this, in milliseconds.",
  ),
  lw_explore_floor: share(0.05).describe("`latency-weighted`: smallest weight of any provider."),
  lw_min_calls: count(1, 1_000_000, 3).describe(
    "`latency-weighted`: calls after which a provider has its full weight.",
  ),
  lw_min_success_rate: share(0.85).describe(
    "`latency-weighted`: below this success rate a provider gets the smallest weight.",
  ),
  explore_share: share(0.02).describe(
    "`fastest`: part of replay-safe reads sent to providers that are little known.",
  ),
}).describe("Tuning of the strategies that order providers.");

const storageUrl = z
  .string()
  .refine((value) => value === "" || hasScheme(value, ["postgres:", "postgresql:"]))
  .meta({ title: "empty, or a postgres:// URL" });

/** The configuration file. */
export const configFile = settings({
  server,
  upstream,
  storage: section({
    url: storageUrl.default("").describe("Empty = embedded storage in `data_dir`."),
  }).describe("Where accounts and keys are kept."),
  data_dir: text(1, 4_096).default(".svc").describe("Directory for the service's own files."),
  log_level: oneOf(LOG_LEVELS, "info").describe("Least important message that is logged."),
  devnet: flag(false).describe(
    "Also starts local EVM nodes as chain `local` (31337) of profile `public`, and lifts the " +
      "limit of new keys for callers on this machine. Refused in production.",
  ),
  devnet_nodes: devnetNodes
    .default(3)
    .describe(
      "How many local nodes there are. With one, calls that change a node at will work " +
        "(`anvil_*`, `evm_*`, `hardhat_*`): several nodes would no longer hold one chain.",
    ),
  console: section({
    public: z
      .boolean()
      .optional()
      .describe(
        "`true` = everyone who reaches the port sees chains, latency and health of providers by " +
          "their public ids, also in `/metrics`; `false` = only who has signed in (not " +
          "`/metrics`), or sends the operator token. Default: `true`, in production `false`.",
      ),
  }).describe("The console, at `/dashboard`."),
  cluster: section({
    enabled: flag(false).describe(
      "`true` = this node serves together with others on the same PostgreSQL database.",
    ),
    node_id: z
      .string()
      .max(200)
      .regex(/^[^\s/]*$/)
      .meta({ title: "a name without spaces and slashes" })
      .default("")
      .describe(
        "Name of this node in the database, unique among its nodes. Default: the name of the " +
          "machine and a part made up at each start.",
      ),
    region: z
      .string()
      .max(64)
      .regex(/^[^\s]*$/)
      .meta({ title: "a name without spaces" })
      .default("")
      .describe(
        "Where this node runs; shown in `/api/health`, logs and metrics. Providers of the same " +
          "`region` are preferred: see `selection.region_preference`.",
      ),
    expected_nodes: countOrNull(1, 1_000).describe(
      "Nodes that should be there. Default: as many as were seen in the last hour.",
    ),
    listen_url: storageUrl
      .default("")
      .describe(
        "Where changes of other nodes are listened for: the database server itself, not a pooler " +
          "that hands out sessions by transactions. Secret. Default: `storage.url`.",
      ),
  }).describe("Several nodes that serve together."),
  chains,
  profiles: byName(word, profile).describe(
    "The provider sets, by slug. A known chain for which none names a provider is served by its " +
      "public addresses, in the profile that serves URLs without one: `public`, else the first.",
  ),
  methods: byName(methodName, method).describe(
    "Methods beside those of the built-in table, and other settings of known ones. At most 64 " +
      "others. What is refused as `method_blocked` since it is for operators of nodes or for " +
      "development chains is served if it is named here. Reloaded.",
  ),
  limits,
  logs,
  deadlines,
  strategies,
  cache: offOr(cacheSettings)
    .prefault({})
    .describe(
      "Answers that are known are not asked for again: for good where their block is finalized, " +
        "above it as long as the block keeps its hash, and of the newest block until the next " +
        "one. Above it only where providers push their heads (`ws_url`). `off`, or how much. " +
        "Reloaded.",
    ),
  coalesce: oneOf(["on", "off"], "on").describe(
    "Equal reads of one profile that are under way share one call to a provider; each is " +
      "admitted and charged by itself. Reloaded.",
  ),
  hedge: hedge
    .prefault({})
    .describe(
      "Reads that take longer than usual are asked of a second provider as well, and the first " +
        "answer counts: after the 95th percentile of the provider, or three times the median of " +
        "the next one if that is less. `off`, or how much and when. Never writes, traces and " +
        "logs. Reloaded.",
    ),
  routing: section({
    default_strategy: routing.shape.default_strategy
      .unwrap()
      .default(DEFAULT_STRATEGY)
      .describe(
        "The strategy of calls that name none, in profiles of this file that name none; Custom " +
          `profiles use \`${DEFAULT_STRATEGY}\`. It sets the price of these calls too. Reloaded.`,
      ),
  }).describe("How calls are routed that say nothing of it."),
  consistency: consistency
    .default(DEFAULT_CONSISTENCY)
    .describe(
      "Which view of the chain callers get. `tip`: one newest block for all providers, the " +
        "highest that two operators of providers report (where one is left: its own); " +
        "`eth_blockNumber` is answered from it, and `latest`, `safe` and `finalized` each mean " +
        "one block at every provider. `caller`: as well, no caller is shown an older block than " +
        "before, whichever provider or node answers. `off`: block tags go to the provider as " +
        "written, and each answers from its own newest block. A profile, a key and a request may " +
        "say another. Reloaded.",
    ),
  hosted,
}).describe("Configuration of svc.");

/** A valid configuration file with every default filled in. */
export type ConfigFile = z.output<typeof configFile>;

const serverSettings = server.unwrap().shape;

/** An environment variable that overrides a setting of the file. */
const overriding = <Setting extends z.ZodType>(
  setting: { readonly unwrap: () => Setting },
  path: string,
) => setting.unwrap().optional().describe(`\`${path}\``);

const tuning = strategies.unwrap().shape;

const longSecret = z
  .string()
  .refine((value) => Buffer.byteLength(value) >= 32)
  .meta({ title: "at least 32 bytes" })
  .optional();

/**
 * Environment variables; each overrides the setting that its description names. Numbers were parsed
 * from text before.
 */
export const environment = z.object({
  PORT: overriding(serverSettings.port, "server.port"),
  HOST: overriding(serverSettings.host, "server.host"),
  SVC_WORKERS: overriding(serverSettings.workers, "server.workers"),
  LOG_LEVEL: z.enum(LOG_LEVELS).optional().describe("`log_level`"),
  DATABASE_URL: storageUrl.optional().describe("`storage.url`"),
  FASTEST_MIN_CALLS: overriding(tuning.fastest_min_calls, "strategies.fastest_min_calls"),
  FASTEST_MIN_SUCCESS_RATE: overriding(
    tuning.fastest_min_success_rate,
    "strategies.fastest_min_success_rate",
  ),
  LW_BETA: overriding(tuning.lw_beta, "strategies.lw_beta"),
  LW_MS_FLOOR: overriding(tuning.lw_ms_floor, "strategies.lw_ms_floor"),
  LW_EXPLORE_FLOOR: overriding(tuning.lw_explore_floor, "strategies.lw_explore_floor"),
  LW_MIN_CALLS: overriding(tuning.lw_min_calls, "strategies.lw_min_calls"),
  LW_MIN_SR: overriding(tuning.lw_min_success_rate, "strategies.lw_min_success_rate"),
  SVC_SECRET: longSecret.describe(
    "the secret that signs what the hosted service hands out, and seals what it keeps; it has no " +
      "setting in the file",
  ),
  SVC_SECRET_PREVIOUS: longSecret.describe(
    "the secret before `SVC_SECRET`: what was sealed with it is sealed anew at the next start, " +
      "after which it can be left out",
  ),
  SVC_COMMIT: z
    .string()
    .optional()
    .describe(
      "the commit of this build, where it does not run in a clone of the repository: it stands " +
        "behind the version (`0.2.0+1a2b3c4d`) in `svc version`, `/api/health`, the metrics and " +
        "the console; it has no setting in the file",
    ),
});

/** Command-line flags; each overrides the environment and the file. Numbers were parsed before. */
export const flags = settings({
  port: environment.shape.PORT,
  host: environment.shape.HOST,
  workers: environment.shape.SVC_WORKERS,
  "log-level": environment.shape.LOG_LEVEL,
  devnet: z.literal("true").optional().describe("`devnet`"),
  "devnet-nodes": devnetNodes.optional().describe("`devnet_nodes`"),
});

function hasScheme(value: string, schemes: readonly string[]): boolean {
  const parsed = URL.parse(value);
  return (
    parsed !== null &&
    schemes.includes(parsed.protocol) &&
    parsed.hostname !== "" &&
    splitCredentials(value) !== null
  );
}

function isListenAddress(value: string): boolean {
  const port = /^(?:\[[0-9A-Fa-f:.]+\]|[^\s:[\]]+):(\d{1,5})$/.exec(value)?.[1];
  return port !== undefined && Number(port) <= 65_535;
}

function isAddressRange(value: string): boolean {
  const [address = "", bits, ...rest] = value.trim().split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return (
    bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
  );
}
