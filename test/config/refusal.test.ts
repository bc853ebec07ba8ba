// What a configuration may not hold: each refusal with its line, all of them at once.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the files under test hold ${NAME}
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatFaults } from "../../src/config/config-fault.ts";
import { type Env, load, refused, VALID, withProviders } from "./config-fixture.ts";

type Refusal = readonly [
  what: string,
  text: string,
  line: number,
  path: string,
  message: RegExp,
  env?: Env,
];

const KEY = `"0x${"11".repeat(32)}"`;
const ADDRESS = `"0x${"22".repeat(20)}"`;
const TEMPO = `{ kind: tempo, rpc_url: "https://a", chain_id: 5, token: ${ADDRESS}, recipient: ${ADDRESS} }`;
const EVM_TOKEN = `token: { address: ${ADDRESS}, name: a, version: "1" }`;
const EVM =
  `{ kind: evm, rpc_url: "https://a", chain_id: 5, ${EVM_TOKEN}, recipient: ${ADDRESS}, ` +
  `wallet_key: ${KEY} }`;
const SESSION =
  `{ kind: session, rpc_url: "https://a", chain_id: 5, token: ${ADDRESS}, recipient: ` +
  `${ADDRESS}, wallet_key: ${KEY} }`;

/** Faults of payments: their YAML, and the path below `hosted.payments` of the fault. */
const PAYMENT_REFUSALS: readonly (readonly [
  what: string,
  yaml: string,
  path: string,
  message: RegExp,
])[] = [
  ["a rail of no kind", "{ rails: [{ kind: cash }] }", ".rails[0].kind", /one of|tempo/],
  [
    "an EIP-3009 rail without a wallet",
    `{ rails: [${EVM.replace(`, wallet_key: ${KEY}`, "")}] }`,
    ".rails[0].wallet_key",
    /is missing/,
  ],
  [
    "a recipient that is no address",
    `{ rails: [${TEMPO.replace(`recipient: ${ADDRESS}`, 'recipient: "0x12"')}] }`,
    ".rails[0].recipient",
    /40 hex digits/,
  ],
  [
    "a wallet's key that is none",
    `{ rails: [${EVM.replace(KEY, '"0x12"')}] }`,
    ".rails[0].wallet_key",
    /64 hex digits/,
  ],
  ["a rail twice for one chain", `{ rails: [${TEMPO}, ${TEMPO}] }`, ".rails", /once for a chain/],
  ["two rails with one wallet", `{ rails: [${EVM}, ${SESSION}] }`, ".rails", /a wallet of its own/],
  ["a purchase finer than a token", '{ min_usd: "0.0000001" }', ".min_usd", /six places/],
  ["a range the wrong way round", '{ min_usd: "5", max_usd: "1" }', "", /not above/],
];

/**
 * Faults of a provider: its YAML from line 8 on, the line and the path below `providers` of the
 * fault.
 */
const PROVIDER_REFUSALS: readonly (readonly [
  what: string,
  yaml: readonly string[],
  line: number,
  path: string,
  message: RegExp,
])[] = [
  [
    "an unknown key of a provider",
    ["{ id: a, url: 'https://a', archive: true }"],
    8,
    "[0].archive",
    /did you mean `archival`/,
  ],
  [
    "the same provider id twice",
    ["{ id: a, url: 'http://a' },", "{ id: a, url: 'http://b' }"],
    9,
    "[1].id",
    /unique per chain and profile: providers\[0\]/,
  ],
  [
    "the same provider alias twice",
    ["{ id: a, alias: x, url: 'http://a' },", "{ id: b, alias: x, url: 'http://b' }"],
    9,
    "[1].alias",
    /providers\[0\]/,
  ],
  [
    "a provider alias that is another's id",
    ["{ id: a, alias: b, url: 'http://a' },", "{ id: b, url: 'http://b' }"],
    8,
    "[0].alias",
    /providers\[1\]/,
  ],
  [
    "nobody but backups",
    ["{ id: a, url: 'http://a', backup: true },", "{ id: b, url: 'http://b', backup: true }"],
    8,
    "[0].backup",
    /must be false for one provider/,
  ],
  [
    "a batch of one call",
    ["{ id: a, url: 'http://a', batch: { max: 1 } }"],
    8,
    "[0].batch.max",
    /must be a whole number from 2 to 1000/,
  ],
  [
    "a batch that waits too long",
    ["{ id: a, url: 'http://a', batch: { wait_ms: 51 } }"],
    8,
    "[0].batch.wait_ms",
    /must be a whole number from 0 to 50/,
  ],
  [
    "batches to a provider with a socket only",
    ["{ id: a, ws_url: 'ws://a', batch: { max: 9 } }"],
    8,
    "[0].batch",
    /must not be set without `url`/,
  ],
  [
    "pipelining to a provider with a socket only",
    ["{ id: a, ws_url: 'ws://a', pipelining: true }"],
    8,
    "[0].pipelining",
    /must not be true without `url`/,
  ],
  [
    "a weight of nothing",
    ["{ id: a, url: 'http://a', weight: 0 }"],
    8,
    "[0].weight",
    /a whole number from 1 to 1000/,
  ],
  [
    "a limit of no request a second",
    ["{ id: a, url: 'http://a', limits: { rps: 0 } }"],
    8,
    "[0].limits.rps",
    /a whole number from 1 to 100000/,
  ],
  [
    "a day above its month",
    ["{ id: a, url: 'http://a', limits: { daily: 10, monthly: 9 } }"],
    8,
    "[0].limits.daily",
    /must not be above `monthly`/,
  ],
  [
    "a month that begins on a day that some months lack",
    ["{ id: a, url: 'http://a', limits: { monthly: 9, resets_on: 31 } }"],
    8,
    "[0].limits.resets_on",
    /a whole number from 1 to 28/,
  ],
  [
    "a beginning of months that nothing counts",
    ["{ id: a, url: 'http://a', limits: { daily: 9, resets_on: 2 } }"],
    8,
    "[0].limits.resets_on",
    /must stand beside `monthly`/,
  ],
  [
    "credits that nothing counts",
    ["{ id: a, url: 'http://a', limits: { rps: 5, credits: { eth_call: 2 } } }"],
    8,
    "[0].limits.credits",
    /must stand beside `daily`, `monthly` or `price`/,
  ],
  [
    "a method that a whole day could not pay for",
    ["{ id: a, url: 'http://a', limits: { daily: 5, credits: { eth_call: 6 } } }"],
    8,
    "[0].limits.credits.eth_call",
    /could never be asked/,
  ],
  [
    "a price below nothing",
    ["{ id: a, url: 'http://a', price: -1 }"],
    8,
    "[0].price",
    /a number from 0 to 1000000/,
  ],
  [
    "a price in words",
    ["{ id: a, url: 'http://a', price: low }"],
    8,
    "[0].price",
    /a number from 0 to 1000000/,
  ],
  [
    "a half credit",
    ["{ id: a, url: 'http://a', limits: { daily: 5, credits: { eth_call: 0.5 } } }"],
    8,
    "[0].limits.credits.eth_call",
    /whole number/,
  ],
  [
    "a limit in words",
    ["{ id: a, url: 'http://a', limits: { concurrency: many } }"],
    8,
    "[0].limits.concurrency",
    /a whole number from 1 to 100000/,
  ],
  ["a provider without id", ["{ url: 'http://a' }"], 8, "[0].id", /is missing/],
  ["a provider that is no map", ["5"], 8, "[0]", /is a number: must be a map/],
  [
    "a provider without any URL",
    ["{ id: a }"],
    8,
    "[0]",
    /`url` \(http, https\), `ws_url` \(ws, wss\) or both/,
  ],
  [
    "a WebSocket URL as url",
    ["{ id: a, url: 'wss://a' }"],
    8,
    "[0].url",
    /http:\/\/ or https:\/\//,
  ],
  [
    "an HTTP URL as ws_url",
    ["{ id: a, ws_url: 'https://a' }"],
    8,
    "[0].ws_url",
    /ws:\/\/ or wss:\/\//,
  ],
  ["a file URL", ["{ id: a, url: 'file:///etc/passwd' }"], 8, "[0].url", /http:\/\//],
  ["text that is no URL", ["{ id: a, url: nonsense }"], 8, "[0].url", /http:\/\//],
  [
    "URL credentials with broken escapes",
    ["{ id: a, url: 'https://u:%zz@h' }"],
    8,
    "[0].url",
    /http:\/\//,
  ],
  [
    "credentials in url and headers",
    ["{ id: a, url: 'https://u:p@h', headers: { authorization: x } }"],
    8,
    "[0].url",
    /keep one of them/,
  ],
  [
    "two different credentials",
    ["{ id: a, url: 'https://u:p@h', ws_url: 'wss://u:q@h' }"],
    8,
    "[0].ws_url",
    /same credentials/,
  ],
  [
    "a header with a line break",
    ['{ id: a, url: "http://a", headers: { X: "a\\r\\nb" } }'],
    8,
    "[0].headers.X",
    /without line breaks/,
  ],
  [
    "a header the HTTP client owns",
    ["{ id: a, url: 'http://a', headers: { Content-Length: '1' } }"],
    8,
    "[0].headers.Content-Length",
    /name other than/,
  ],
  [
    "a header given twice in different case",
    ["{ id: a, url: 'http://a', headers: { X-A: a, x-a: b } }"],
    8,
    "[0].headers.x-a",
    /given twice/,
  ],
  [
    "an unknown method category",
    ["{ id: a, url: 'http://a', capabilities: {", "unsupported_categories: [traces] } }"],
    9,
    "[0].capabilities.unsupported_categories[0]",
    /one of core/,
  ],
  [
    "an error rule without category",
    ["{ id: a, url: 'http://a', capabilities: {", "error_rules: [{ code: 1 }] } }"],
    9,
    "[0].capabilities.error_rules[0].category",
    /one of .*rate_limit/,
  ],
  [
    "an unknown error category",
    ["{ id: a, url: 'http://a', capabilities: {", "error_rules: [{ code: 1, category: x }] } }"],
    9,
    "[0].capabilities.error_rules[0].category",
    /one of/,
  ],
  [
    "an error rule that matches all",
    ["{ id: a, url: 'http://a', capabilities: { error_rules: [", "{ category: auth }] } }"],
    9,
    "[0].capabilities.error_rules[0]",
    /or both/,
  ],
  [
    "an error rule with no message",
    [
      "{ id: a, url: 'http://a', capabilities: { error_rules: [",
      "{ category: auth, message_contains: [] }] } }",
    ],
    9,
    "[0].capabilities.error_rules[0]",
    /or both/,
  ],
  [
    "a variable that is not set",
    ["{ id: a,", "url: 'https://a/${NO_SUCH_KEY}' }"],
    9,
    "[0].url",
    /needs the environment variable NO_SUCH_KEY/,
  ],
  [
    "a variable named like an object's own method",
    ["{ id: a, url: 'https://a/${toString}' }"],
    8,
    "[0].url",
    /toString/,
  ],
  [
    "a broken variable reference",
    ["{ id: a, url: 'https://a/${A-B}' }"],
    8,
    "[0].url",
    /does not begin a/,
  ],
  [
    "an unclosed variable reference",
    ["{ id: a, url: 'https://a/${A' }"],
    8,
    "[0].url",
    /does not begin a/,
  ],
];

const REFUSALS: readonly Refusal[] = [
  [
    "an unknown key at the top, with the key that was meant",
    "devnet: true\nprofile: {}",
    2,
    "profile",
    /not a known setting; did you mean `profiles`\?/,
  ],
  [
    "an unknown key far from any known one, with the known ones",
    "devnet: true\nserver: { wombat: 1 }",
    2,
    "server.wombat",
    /known here: host, port/,
  ],
  [
    "text where a number belongs",
    "devnet: true\nserver:\n  port: '80'",
    3,
    "server.port",
    /is text: must be a whole number from 0 to 65535/,
  ],
  [
    "a list where a map belongs",
    "devnet: true\nserver: []",
    2,
    "server",
    /is a list: must be a map/,
  ],
  ["an empty section", "devnet: true\nserver:", 2, "server", /is empty: must be a map/],
  [
    "a number where text belongs",
    "devnet: true\ndata_dir: 5",
    2,
    "data_dir",
    /is a number: must be text/,
  ],
  [
    "a fraction where a whole number belongs",
    "devnet: true\nserver: { port: 1.5 }",
    2,
    "server.port",
    /whole number/,
  ],
  [
    "no workers",
    "devnet: true\nserver: { workers: 0 }",
    2,
    "server.workers",
    /must be `auto` or a whole number from 1 to 64/,
  ],
  [
    "too many workers",
    "devnet: true\nserver: { workers: 65 }",
    2,
    "server.workers",
    /must be `auto` or a whole number from 1 to 64/,
  ],
  [
    "workers by another word",
    "devnet: true\nserver: { workers: many }",
    2,
    "server.workers",
    /must be `auto` or a whole number from 1 to 64/,
  ],
  ["a file that is no map", "- 1", 1, "", /is a list: must be a map/],
  [
    "a zero interval",
    "devnet: true\nlimits: { headers_timeout_ms: 0 }",
    2,
    "limits.headers_timeout_ms",
    /from 1 to 86400000/,
  ],
  [
    "a zero block time",
    "chains:\n  a: { chain_id: 1, block_time_ms: 0 }",
    2,
    "chains.a.block_time_ms",
    /from 1 to/,
  ],
  [
    "a negative probe interval",
    "chains: { a: { chain_id: 1 } }\nprofiles: { p: { chains: { a: { monitoring: { " +
      "probe_interval_ms: -1 }, providers: [{ id: a, url: 'http://a' }] } } } }",
    2,
    "profiles.p.chains.a.monitoring.probe_interval_ms",
    /from 1 to/,
  ],
  [
    "a zero deadline",
    "devnet: true\ndeadlines: { cheap_ms: 0 }",
    2,
    "deadlines.cheap_ms",
    /from 1 to/,
  ],
  [
    "ranges split by another word",
    "devnet: true\nlogs: { split: never }",
    2,
    "logs.split",
    /one of auto, off/,
  ],
  ["no part at all", "devnet: true\nlogs: { max_parts: 0 }", 2, "logs.max_parts", /from 1 to/],
  [
    "answers longer than anything",
    "devnet: true\nlogs: { max_bytes: 1 }",
    2,
    "logs.max_bytes",
    /from 65536 to/,
  ],
  ["a cache by another word", "devnet: true\ncache: never", 2, "cache", /`off` or a map/],
  [
    "a cache too small for anything",
    "devnet: true\ncache: { max_bytes: 100KiB }",
    2,
    "cache.max_bytes",
    /128MiB/,
  ],
  [
    "keeping answers that change at any time",
    "devnet: true\ncache: { methods: { eth_sendRawTransaction: { ttl_ms: 5 } } }",
    2,
    "cache.methods.eth_sendRawTransaction",
    /answers can be kept/,
  ],
  [
    "sharing with a profile that is not there",
    "devnet: true\nprofiles: { team: { cache: { share_with: [other] } } }",
    2,
    "profiles.team.cache.share_with[0]",
    /another profile/,
  ],
  ...["http://cache.example", "redis:", "redis://h/one", "redis://h/0?x=1", "localhost:6379"].map(
    (url): Refusal => [
      `a second tier of the cache at ${url}`,
      `devnet: true\ncache: { redis_url: '${url}' }`,
      2,
      "cache.redis_url",
      /empty, or a redis:\/\//,
    ],
  ),
  ["hedges by another word", "devnet: true\nhedge: never", 2, "hedge", /`off` or a map/],
  [
    "hedges without an end",
    "devnet: true\nhedge: { max_extra: 3 }",
    2,
    "hedge.max_extra",
    /above 0, up to 1/,
  ],
  [
    "an unknown key of hedges",
    "devnet: true\nhedge: { floor: 3 }",
    2,
    "hedge.floor",
    /did you mean `floor_ms`/,
  ],
  [
    "hedges whose floor is above their ceiling",
    "devnet: true\nhedge: { floor_ms: 2000 }",
    2,
    "hedge",
    /floor_ms \(2000\) not above its ceiling_ms \(1000\)/,
  ],
  [
    "a consistency by another word",
    "devnet: true\nconsistency: strict",
    2,
    "consistency",
    /tip.*caller.*off/,
  ],
  [
    "a consistency of a profile that is switched on",
    "devnet: true\nprofiles: { public: { consistency: on } }",
    2,
    "profiles.public.consistency",
    /tip.*caller.*off/,
  ],
  [
    "a share above one",
    "devnet: true\nlimits: { first_attempt_share: 1.1 }",
    2,
    "limits.first_attempt_share",
    /above 0, up to 1/,
  ],
  ["a chain without id", "chains:\n  a: {}", 2, "chains.a", /must have `chain_id`/],
  [
    "a chain id that is no exact integer",
    "chains:\n  a: { chain_id: 9007199254740993 }",
    2,
    "chains.a.chain_id",
    /whole number/,
  ],
  [
    "the same chain id twice",
    "chains:\n  a: { chain_id: 1 }\n  b: { chain_id: 1 }",
    3,
    "chains.b.chain_id",
    /unique: chain `a`/,
  ],
  [
    "chain names that differ in letter case only",
    "chains:\n  a: { chain_id: 1 }\n  A: { chain_id: 2 }",
    3,
    "chains.A",
    /chain `a` has the same name/,
  ],
  [
    "an alias that is another chain's name",
    "chains:\n  a: { chain_id: 1, aliases: [b] }\n  b: { chain_id: 2 }",
    2,
    "chains.a.aliases[0]",
    /chain `b`/,
  ],
  [
    "an alias of two chains",
    "chains:\n  a: { chain_id: 1, aliases: [x] }\n  b: { chain_id: 2, aliases: [x] }",
    3,
    "chains.b.aliases[0]",
    /chain `a`/,
  ],
  [
    "an alias given twice",
    "chains:\n  a: { chain_id: 1, aliases: [x, x] }",
    2,
    "chains.a.aliases[1]",
    /given twice/,
  ],
  [
    "an alias that is another chain's id",
    "chains:\n  a: { chain_id: 1, aliases: ['2'] }\n  b: { chain_id: 2 }",
    2,
    "chains.a.aliases[0]",
    /chain id of another chain: `b`/,
  ],
  [
    "an alias that is another chain's id with a zero before it",
    "chains:\n  a: { chain_id: 1, aliases: ['02'] }\n  b: { chain_id: 2 }",
    2,
    "chains.a.aliases[0]",
    /`b`/,
  ],
  [
    "a name that is another chain's id",
    "chains:\n  2: { chain_id: 1 }\n  b: { chain_id: 2 }",
    2,
    "chains.2",
    /chain id of another chain: `b`/,
  ],
  [
    "a chain name with a slash",
    "chains:\n  a/b: { chain_id: 1 }",
    2,
    'chains."…"',
    /letters, digits/,
  ],
  ...[
    "load-balanced",
    "round-robin",
    "round_robin",
    "latency-weighted",
    "fastest",
    "priority",
    "k",
    "session",
    "profile",
    "provider",
    "ws",
    "rpc",
    "api",
    "FASTEST",
  ].map(
    (name): Refusal => [
      `a chain named ${name}`,
      `chains:\n  ${name}: { chain_id: 1 }`,
      2,
      `chains.${name}`,
      /word of the URL grammar/,
    ],
  ),
  [
    "an alias that is a strategy",
    "chains:\n  a: { chain_id: 1, aliases: [fastest] }",
    2,
    "chains.a.aliases[0]",
    /word of the URL grammar/,
  ],
  ["no chain at all", "server: {}", 1, "chains", /at least one chain/],
  ["an empty file", "", 1, "chains", /at least one chain/],
  [
    "a profile that names an unknown chain",
    "chains: { a: { chain_id: 1 } }\nprofiles:\n  p: { chains: { b: { providers: [{ id: a, " +
      "url: 'http://a' }] } } }",
    3,
    "profiles.p.chains.b",
    /under `chains`: `a`/,
  ],
  [
    "a profile chain without providers",
    "chains: { a: { chain_id: 1 } }\nprofiles:\n  p: { chains: { a: { providers: [] } } }",
    3,
    "profiles.p.chains.a.providers",
    /1 to 64 providers/,
  ],
  [
    "a trusted proxy that is no address",
    "devnet: true\nserver: { trusted_proxies: [10.0.0.0/33] }",
    2,
    "server.trusted_proxies[0]",
    /IP address or a range/,
  ],
  [
    "trusted proxies of which one is missing",
    'devnet: true\nserver: { trusted_proxies: ["10.0.0.0/8, "] }',
    2,
    "server.trusted_proxies[0]",
    /several with commas between/,
  ],
  [
    "hosted mode without a public profile",
    "chains: { a: { chain_id: 424242 } }\nhosted: { enabled: true }",
    2,
    "hosted.enabled",
    /without profile `public`/,
  ],
  [
    "a price that is no whole number",
    "devnet: true\nhosted: { tariff: { cu_per_usd: 300000 } }",
    2,
    "hosted.tariff.cu_per_usd",
    /whole nano-USD/,
  ],
  ...(["1.01", "-0.1", "0.005", "50%", "null"] as const).map(
    (price): Refusal => [
      `a price of kept answers that is no share in whole percent (${price})`,
      `devnet: true\nhosted: { cache_price: ${price} }`,
      2,
      "hosted.cache_price",
      /number/,
    ],
  ),
  ...PAYMENT_REFUSALS.map(
    ([what, payments, path, message]): Refusal => [
      what,
      `devnet: true\nhosted: { payments: ${payments} }`,
      2,
      `hosted.payments${path}`,
      message,
    ],
  ),
  [
    "a weight of a method nobody knows",
    "devnet: true\nhosted: { tariff: { methods: { eth_cal: 3 } } }",
    2,
    "hosted.tariff.methods.eth_cal",
    /./,
  ],
  [
    "a cluster without a database",
    "devnet: true\ncluster: { enabled: true }",
    2,
    "cluster.enabled",
    /DATABASE_URL or storage.url/,
  ],
  [
    "a node timeout within which a node of a cluster hardly writes",
    "devnet: true\ncluster: { enabled: true }\nstorage: { url: 'postgres://db/svc' }\nhosted: { " +
      "node_timeout_ms: 4000 }",
    4,
    "hosted.node_timeout_ms",
    /5 writes/,
  ],
  [
    "a node id that workers could not be told apart by",
    "devnet: true\ncluster: { node_id: a/b }",
    2,
    "cluster.node_id",
    /without spaces and slashes/,
  ],
  [
    "users' providers at private addresses in production",
    "\nhosted: { allow_private_providers: true }",
    2,
    "hosted.allow_private_providers",
    /NODE_ENV=production/,
    { NODE_ENV: "production" },
  ],
  [
    "a region of two words",
    "devnet: true\ncluster: { region: eu west }",
    2,
    "cluster.region",
    /a name without spaces/,
  ],
  [
    "no expected node",
    "devnet: true\ncluster: { expected_nodes: 0 }",
    2,
    "cluster.expected_nodes",
    /./,
  ],
  [
    "production without a public URL",
    "chains: { a: { chain_id: 1 } }\nserver: { port: 1 }",
    2,
    "server",
    /`public_url` in production/,
    { NODE_ENV: "production" },
  ],
  [
    "two operator tokens",
    "server: { operator_token: operator-operator-operator }\ndevnet: true\nhosted: { " +
      "operator_token: operator-operator-operator }",
    3,
    "hosted.operator_token",
    /must not stand beside `server.operator_token`/,
  ],
  [
    "a strategy's factor under both spellings",
    "devnet: true\nhosted: { tariff: { factors: { load-balanced: 1, load_balanced: 1 } } }",
    2,
    "hosted.tariff.factors.load_balanced",
    /must not stand beside/,
  ],
  [
    "a metrics address without a port",
    "devnet: true\nserver: { metrics_listen: localhost }",
    2,
    "server.metrics_listen",
    /an address and a port/,
  ],
  [
    "a WebSocket address under url",
    "chains: { a: { chain_id: 1 } }\nprofiles:\n  p: { chains: { a: { providers: [{ id: x, " +
      "url: 'wss://a.example' }] } } }",
    3,
    "profiles.p.chains.a.providers[0].url",
    /http:\/\/ or https:\/\/ URL; a WebSocket address belongs under `ws_url`/,
  ],
  [
    "local nodes in production",
    "\ndevnet: true",
    2,
    "devnet",
    /NODE_ENV=production/,
    { NODE_ENV: "production" },
  ],
  [
    "a chain named local beside the local chain",
    "devnet: true\nchains:\n  local: { chain_id: 5 }",
    3,
    "chains.local",
    /taken by the local chain/,
  ],
  [
    "an alias local beside the local chain",
    "devnet: true\nchains:\n  a: { chain_id: 5, aliases: [local] }",
    3,
    "chains.a.aliases[0]",
    /taken by the local chain/,
  ],
  [
    "chain id 31337 beside the local chain",
    "devnet: true\nchains:\n  a: { chain_id: 31337 }",
    3,
    "chains.a.chain_id",
    /taken by the local chain/,
  ],
  [
    "providers for the local chain",
    "devnet: true\nprofiles:\n  public: { chains: { local: { providers: [{ id: a, url: " +
      "'http://a' }] } } }",
    3,
    "profiles.public.chains.local",
    /adds its providers itself/,
  ],
  [
    "a key given twice",
    "devnet: true\nserver:\n  port: 1\n  port: 2",
    4,
    "server.port",
    /given twice; first at line 3/,
  ],
  [
    "a chain given twice",
    "chains:\n  a: { chain_id: 1 }\n  a: { chain_id: 2 }",
    3,
    "chains.a",
    /given twice; first at line 2/,
  ],
  [
    "the key __proto__",
    "devnet: true\nchains:\n  __proto__: { chain_id: 1 }",
    3,
    "chains",
    /not allowed/,
  ],
  ["a key that is a list", "devnet: true\n? [a]\n: 1", 2, "", /key that is empty, not text/],
  ["a YAML merge key", "devnet: true\n<<: { server: {} }", 2, '"…"', /not a known setting/],
  [
    "a bracket that is not closed",
    "devnet: true\nserver: { port: 1\nchains: {}",
    3,
    "",
    /not valid YAML/,
  ],
  ["a tab as indentation", "devnet: true\nserver:\n\tport: 1", 3, "", /not with tabs/],
  ["two documents", "devnet: true\n---\ndevnet: true", 2, "", /only document/],
  ["a YAML tag", "devnet: true\ndata_dir: !secret x", 2, "", /YAML tags/],
  ["a binary YAML value", "devnet: true\ndata_dir: !!binary aGk=", 2, "data_dir", /YAML tags/],
  [
    "an alias without anchor",
    "devnet: true\ndata_dir: *nowhere",
    2,
    "data_dir",
    /not defined above/,
  ],
  ["an alias of itself", "devnet: true\ndata_dir: &a [*a]", 2, "data_dir[0]", /not defined above/],
  ...PROVIDER_REFUSALS.map(
    ([what, yaml, line, path, message]): Refusal => [
      what,
      withProviders(...yaml),
      line,
      `profiles.public.chains.ethereum.providers${path}`,
      message,
    ],
  ),
];

describe("configuration: what is refused", () => {
  for (const [what, text, line, path, message, env] of REFUSALS)
    it(`refuses ${what}, at its line`, () => {
      const faults = refused(text, env);
      const hit = faults.find((fault) => fault.path === path && message.test(fault.message));
      assert.ok(hit, `no such fault in:\n${formatFaults(faults)}`);
      assert.equal(hit.line, line, formatFaults(faults));
      assert.equal(hit.file, "svc.yml");
      assert.ok(hit.column >= 1);
    });

  it("takes several processes beside pay per call", () => {
    const text = [
      "devnet: true",
      "storage: { url: 'postgres://localhost/svc' }",
      `hosted: { enabled: true, payments: { rails: [${SESSION}] } }`,
      "server: { workers: 2 }",
      "cluster: { enabled: true }",
    ].join("\n");
    assert.equal(load(text).ok, true);
  });

  it("names each fault of a single mistake only once", () => {
    for (const [what, text, , , , env] of REFUSALS) {
      const lines = formatFaults(refused(text, env)).split("\n");
      assert.equal(new Set(lines).size, lines.length, `${what}:\n${lines.join("\n")}`);
    }
    assert.equal(refused(withProviders("{ id: a, url: 'https://a/${NO_SUCH_KEY}' }")).length, 1);
    assert.equal(refused("devnet: true\nserver: { port: 1\nchains: {}").length, 1);
  });

  it("tells all faults at once, in the order of the file, then environment and command line", () => {
    const text = [
      "servr: {}",
      "hosted: { enabled: true }",
      "chains:",
      "  a: { chain_id: 0 }",
      "  fastest: { chain_id: 424242, aliases: ['${NONE}'] }",
      "chains: {}",
    ].join("\n");
    const faults = refused(text, { PORT: "http" }, { host: "", port: "70000" });
    assert.deepEqual(
      faults.map(({ file, line, path }) => [file, line, path]),
      [
        ["svc.yml", 1, "servr"],
        ["svc.yml", 2, "hosted.enabled"],
        ["svc.yml", 4, "chains.a.chain_id"],
        ["svc.yml", 5, "chains.fastest"],
        ["svc.yml", 5, "chains.fastest.aliases[0]"],
        ["svc.yml", 6, "chains"],
        ["environment", 0, "PORT"],
        ["command line", 0, "--port"],
      ],
    );
    assert.equal(
      formatFaults(faults.slice(1, 3).concat(faults.slice(6, 7))),
      [
        "svc.yml:2:20  hosted.enabled  must be false without profile `public`: it serves " +
          "accounts that have nothing left to pay with",
        "svc.yml:4:18  chains.a.chain_id  must be a whole number, at least 1",
        "environment  PORT  is text: must be a whole number from 0 to 65535",
      ].join("\n"),
    );
  });

  it("refuses bytes that are not UTF-8, files above 10 MB and endless nesting, without throwing", () => {
    assert.match(refused(Uint8Array.of(0x61, 0x3a, 0xff))[0]?.message ?? "", /not UTF-8/);
    assert.match(
      refused(`# ${"x".repeat(10_000_000)}`)[0]?.message ?? "",
      /larger than 10000000 bytes/,
    );
    assert.match(refused(new Uint8Array(10_000_001))[0]?.message ?? "", /larger than/);
    assert.match(
      formatFaults(refused(`data_dir: ${"[".repeat(500)}${"]".repeat(500)}`)),
      /nested more than 32 levels/,
    );
    assert.ok(refused("[".repeat(20_000)).length > 0);
  });

  it("bounds a YAML alias bomb", () => {
    const lines = [
      "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]",
      ...Array.from({ length: 12 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i}, `.repeat(10)}]`),
    ];
    assert.match(
      formatFaults(refused(lines.join("\n"))),
      /expands YAML aliases to more than 10000 values/,
    );
  });

  it("refuses bad environment variables and flags by name", () => {
    const env = {
      PORT: "65536",
      LOG_LEVEL: "loud",
      DATABASE_URL: "mysql://h/d",
      FASTEST_MIN_CALLS: "-1",
      FASTEST_MIN_SUCCESS_RATE: "2",
      LW_BETA: "0",
      LW_MS_FLOOR: "x",
      LW_EXPLORE_FLOOR: "1e-2",
      LW_MIN_CALLS: "0.5",
      LW_MIN_SR: "-0.1",
      SVC_SECRET: "short",
    };
    const faults = refused(VALID, env, { port: "-1", "log-level": "5" });
    assert.deepEqual(
      faults.map(({ path }) => path),
      [...Object.keys(env), "--port", "--log-level"],
    );
    assert.ok(faults.every(({ line, message }) => line === 0 && message.includes("must be")));
  });
});

describe("configuration: what is doubted", () => {
  const warningsOf = (provider: string): readonly string[] => {
    const result = load(withProviders(provider));
    return result.ok
      ? result.warnings.map(({ line, path }) => `${line} ${path}`)
      : assert.fail("refused");
  };

  it("warns of placeholders in addresses and headers, with their place and without their text", () => {
    const placeholders = [
      "YOUR_API_KEY",
      "your-api-key",
      "YOUR-PROJECT-ID",
      "<API_KEY>",
      "YourApiKey",
      "YOUR_INFURA_KEY",
      "api-key-here",
      "changeme",
    ];
    for (const word of placeholders) {
      assert.deepEqual(
        warningsOf(`{ id: a, url: 'https://eth.example/v2/${word}' }`),
        ["8 profiles.public.chains.ethereum.providers[0].url"],
        word,
      );
      assert.equal(
        warningsOf(`{ id: a, url: 'https://eth.example', headers: { X-Key: '${word}' } }`).length,
        1,
        word,
      );
    }
  });

  const regionDoubts = (own: string, preference: string, ...regions: readonly string[]) => {
    const providers = regions.map(
      (region, n) =>
        `{ id: p${n}, url: 'https://p${n}.example'${region === "" ? "" : `, region: ${region}`} }`,
    );
    const result = load(
      `chains: { ethereum: { chain_id: 1 } }\ncluster: { region: "${own}" }\n` +
        `profiles: { public: { chains: { ethereum: { selection: { region_preference: ` +
        `${preference} }, providers: [${providers.join(", ")}] } } } }`,
    );
    return result.ok
      ? result.warnings.map(({ path, message }) => `${path} ${message}`)
      : result.faults.map(({ path, message }) => `refused: ${path} ${message}`);
  };

  it("names rails that sell what only the providers of callers without credit serve", () => {
    const doubts = (slugs: string): readonly string[] => {
      const result = load(
        `chains: { ethereum: { chain_id: 1 } }\nprofiles: { ${slugs} }\n` +
          `hosted: { enabled: true, payments: { rails: [${EVM}] } }`,
      );
      return result.ok
        ? result.warnings.map(({ path, message }) => `${path} ${message}`)
        : assert.fail(formatFaults(result.faults));
    };
    const open =
      "public: { chains: { ethereum: { providers: [{ id: a, url: 'https://a.example' }] } } }";
    assert.match(doubts(open).join(), /^hosted\.payments\.rails sells calls .* profile `premium`/);
    const paid = open.replace("public", "premium");
    assert.deepEqual(doubts(`${open}, ${paid}`), []);
  });

  it("names the provider whose region no preference can follow", () => {
    const set = "profiles.public.chains.ethereum.providers";
    const [without] = regionDoubts("", "prefer", "", "us");
    assert.match(
      without ?? "",
      /^profiles\.public\.chains\.ethereum\.providers\[1\]\.region has no/,
    );
    for (const preference of ["prefer", "only"]) {
      const [doubt, ...more] = regionDoubts("eu", preference, "", "us", "asia");
      assert.ok(doubt?.startsWith(`${set}[1].region no provider of this chain`), doubt);
      assert.ok(!doubt?.includes("asia") && more.length === 0);
    }
    assert.match(regionDoubts("eu", "only", "")[0] ?? "", /providers no provider .* none is asked/);
  });

  it("is silent where regions agree, or play no part", () => {
    assert.deepEqual(regionDoubts("eu", "prefer", "us", "eu", ""), []);
    assert.deepEqual(regionDoubts("eu", "only", "us", "eu"), []);
    assert.deepEqual(regionDoubts("eu", "prefer", ""), []);
    assert.deepEqual(regionDoubts("", "prefer", ""), []);
    assert.deepEqual(regionDoubts("", "off", "us"), []);
    assert.deepEqual(regionDoubts("eu", "off", "us"), []);
  });

  it("refuses `only` for a node without a region", () => {
    const [fault] = regionDoubts("", "only", "us");
    assert.match(
      fault ?? "",
      /^refused: .*selection\.region_preference must not be `only` without `cluster\.region`/,
    );
  });

  it("is silent about keys, ids and words that look a little alike", () => {
    for (const word of [
      "a8f3e1d0yourb7c6",
      "tokens",
      "key",
      "monkey-island",
      "your-name",
      "v2/keys/abc",
      "projectId=77af",
    ])
      assert.deepEqual(warningsOf(`{ id: a, url: 'https://eth.example/v2/${word}' }`), [], word);
  });

  it("names settings of the cache that have no effect", () => {
    const providers = "{ ethereum: { providers: [{ id: a, url: 'https://a.example' }] } }";
    const doubts = (cache: string, one: string, two = ""): readonly string[] => {
      const profiles = `{ one: { ${one}chains: ${providers} }, two: { ${two}chains: ${providers} } }`;
      const result = load(
        `chains: { ethereum: { chain_id: 1 } }\ncache: ${cache}\nprofiles: ${profiles}`,
      );
      return result.ok
        ? result.warnings.map(({ line, path, message }) => `${line} ${path} ${message}`)
        : formatFaults(result.faults).split("\n");
    };
    const shares = "cache: { share_with: [two] }, ";
    assert.deepEqual(doubts("{ max_bytes: 2MiB, account_max_bytes: 2MiB }", shares), []);
    assert.match(
      doubts("{}", shares, "cache: off, ").join(),
      /^3 profiles\.one\.cache\.share_with\[0\] has no effect: that profile has `cache: off`$/,
    );
    assert.match(doubts("off", shares).join(), /share_with\[0\] has no effect beside `cache: off`/);
    assert.match(
      doubts("{ max_bytes: 2MiB, account_max_bytes: 3MiB }", "").join(),
      /^2 cache\.account_max_bytes is more than `max_bytes`/,
    );
  });

  it("tells once what a size may be that is none", () => {
    for (const size of ["-1", "5", "128MB"]) {
      const faults = refused(`devnet: true\ncache: { max_bytes: ${size} }`);
      assert.deepEqual(
        faults.map(({ path }) => path),
        ["cache.max_bytes"],
        size,
      );
    }
  });

  it("tells a short secret once", () => {
    const env = { NODE_ENV: "production", SVC_SECRET: "short" };
    const faults = refused(
      `${VALID}\nserver: { public_url: 'https://rpc.example' }\nhosted: { enabled: true }`,
      env,
    );
    assert.deepEqual(
      faults.map(({ path, message }) => [path, message]),
      [["SVC_SECRET", "must be at least 32 bytes"]],
    );
  });
});
