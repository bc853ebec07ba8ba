// The configuration: what is accepted, what is refused and where, and what never leaks.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { arbitrum, base, baseSepolia, bsc, mainnet, optimism, polygon, sepolia } from "viem/chains";
import { stringify } from "yaml";
import { type Config, deadlineMs, loadConfig } from "../src/config.ts";
import { configJsonSchema } from "../src/config-allowed.ts";
import { type ConfigFault, formatFaults } from "../src/config-fault.ts";
import { configReference } from "../src/config-reference.ts";
import { METHODS } from "../src/core/method.ts";
import type { Provider } from "../src/core/profile.ts";

type Env = Readonly<Record<string, string>>;

function load(text: string | Uint8Array, env: Env = {}, flags: Env = {}) {
  return loadConfig({ file: "svc.yml", text, env, flags });
}

function accepted(text: string | Uint8Array, env: Env = {}, flags: Env = {}): Config {
  const result = load(text, env, flags);
  if (!result.ok) assert.fail(`refused:\n${formatFaults(result.faults)}`);
  return result.config;
}

function refused(text: string | Uint8Array, env: Env = {}, flags: Env = {}): readonly ConfigFault[] {
  const result = load(text, env, flags);
  if (result.ok) assert.fail("accepted");
  return result.faults;
}

function committed(name: string): string {
  return readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
}

function providers(config: Config, slug = "public", chain = "ethereum"): readonly Provider[] {
  return config.profiles.find((profile) => profile.slug === slug)?.chains.get(chain)?.providers ?? [];
}

/** A file whose providers are the given YAML lines; the first of them stands on line 8. */
function withProviders(...lines: readonly string[]): string {
  return [
    "chains:",
    "  ethereum: { chain_id: 1 }",
    "  base: { chain_id: 8453, aliases: [b] }",
    "profiles:",
    "  public:",
    "    chains:",
    "      ethereum: { providers: [",
    ...lines,
    "]}",
  ].join("\n");
}

const VALID = withProviders("{ id: a, url: 'https://a.example' }");

type Refusal = readonly [what: string, text: string, line: number, path: string, message: RegExp, env?: Env];

const REFUSALS: readonly Refusal[] = [
  ["an unknown key at the top, with the key that was meant", "devnet: true\nprofile: {}", 2, "profile", /not a known setting; did you mean `profiles`\?/],
  ["an unknown key far from any known one, with the known ones", "devnet: true\nserver: { wombat: 1 }", 2, "server.wombat", /known here: host, port/],
  [
    "an unknown key of a provider",
    withProviders("{ id: a, url: 'https://a', archive: true }"),
    8,
    "profiles.public.chains.ethereum.providers[0].archive",
    /did you mean `archival`/,
  ],
  ["text where a number belongs", "devnet: true\nserver:\n  port: '80'", 3, "server.port", /is text: must be a whole number from 0 to 65535/],
  ["a list where a map belongs", "devnet: true\nserver: []", 2, "server", /is a list: must be a map/],
  ["an empty section", "devnet: true\nserver:", 2, "server", /is empty: must be a map/],
  ["a number where text belongs", "devnet: true\ndata_dir: 5", 2, "data_dir", /is a number: must be text/],
  ["a fraction where a whole number belongs", "devnet: true\nserver: { port: 1.5 }", 2, "server.port", /whole number/],
  ["a file that is no map", "- 1", 1, "", /is a list: must be a map/],
  ["a zero interval", "devnet: true\nlimits: { headers_timeout_ms: 0 }", 2, "limits.headers_timeout_ms", /from 1 to 86400000/],
  ["a zero block time", "chains:\n  a: { chain_id: 1, block_time_ms: 0 }", 2, "chains.a.block_time_ms", /from 1 to/],
  [
    "a negative probe interval",
    "chains: { a: { chain_id: 1 } }\nprofiles: { p: { chains: { a: { monitoring: { probe_interval_ms: -1 }, providers: [{ id: a, url: 'http://a' }] } } } }",
    2,
    "profiles.p.chains.a.monitoring.probe_interval_ms",
    /from 1 to/,
  ],
  ["a zero deadline", "devnet: true\ndeadlines: { cheap_ms: 0 }", 2, "deadlines.cheap_ms", /from 1 to/],
  ["a share above one", "devnet: true\nlimits: { first_attempt_share: 1.1 }", 2, "limits.first_attempt_share", /above 0, up to 1/],
  ["a chain without id", "chains:\n  a: {}", 2, "chains.a.chain_id", /is missing: must be a whole number/],
  ["a chain id that is no exact integer", "chains:\n  a: { chain_id: 9007199254740993 }", 2, "chains.a.chain_id", /whole number/],
  ["the same chain id twice", "chains:\n  a: { chain_id: 1 }\n  b: { chain_id: 1 }", 3, "chains.b.chain_id", /unique: chain `a`/],
  ["chain names that differ in letter case only", "chains:\n  a: { chain_id: 1 }\n  A: { chain_id: 2 }", 3, "chains.A", /chain `a` has the same name/],
  ["an alias that is another chain's name", "chains:\n  a: { chain_id: 1, aliases: [b] }\n  b: { chain_id: 2 }", 2, "chains.a.aliases[0]", /chain `b`/],
  ["an alias of two chains", "chains:\n  a: { chain_id: 1, aliases: [x] }\n  b: { chain_id: 2, aliases: [x] }", 3, "chains.b.aliases[0]", /chain `a`/],
  ["an alias given twice", "chains:\n  a: { chain_id: 1, aliases: [x, x] }", 2, "chains.a.aliases[1]", /given twice/],
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
  ["a name that is another chain's id", "chains:\n  2: { chain_id: 1 }\n  b: { chain_id: 2 }", 2, "chains.2", /chain id of another chain: `b`/],
  ["a chain name with a slash", "chains:\n  a/b: { chain_id: 1 }", 2, 'chains."…"', /letters, digits/],
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
  ].map((name): Refusal => [`a chain named ${name}`, `chains:\n  ${name}: { chain_id: 1 }`, 2, `chains.${name}`, /word of the URL grammar/]),
  ["an alias that is a strategy", "chains:\n  a: { chain_id: 1, aliases: [fastest] }", 2, "chains.a.aliases[0]", /word of the URL grammar/],
  ["no chain at all", "server: {}", 1, "chains", /at least one chain/],
  ["an empty file", "", 1, "chains", /at least one chain/],
  [
    "a profile that names an unknown chain",
    "chains: { a: { chain_id: 1 } }\nprofiles:\n  p: { chains: { b: { providers: [{ id: a, url: 'http://a' }] } } }",
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
    "the same provider id twice",
    withProviders("{ id: a, url: 'http://a' },", "{ id: a, url: 'http://b' }"),
    9,
    "profiles.public.chains.ethereum.providers[1].id",
    /unique per chain and profile: providers\[0\]/,
  ],
  [
    "the same provider alias twice",
    withProviders("{ id: a, alias: x, url: 'http://a' },", "{ id: b, alias: x, url: 'http://b' }"),
    9,
    "profiles.public.chains.ethereum.providers[1].alias",
    /providers\[0\]/,
  ],
  [
    "a provider alias that is another's id",
    withProviders("{ id: a, alias: b, url: 'http://a' },", "{ id: b, url: 'http://b' }"),
    8,
    "profiles.public.chains.ethereum.providers[0].alias",
    /providers\[1\]/,
  ],
  ["a provider without id", withProviders("{ url: 'http://a' }"), 8, "profiles.public.chains.ethereum.providers[0].id", /is missing/],
  [
    "a provider without any URL",
    withProviders("{ id: a }"),
    8,
    "profiles.public.chains.ethereum.providers[0]",
    /`url` \(http, https\), `ws_url` \(ws, wss\) or both/,
  ],
  ["a WebSocket URL as url", withProviders("{ id: a, url: 'wss://a' }"), 8, "profiles.public.chains.ethereum.providers[0].url", /http:\/\/ or https:\/\//],
  ["an HTTP URL as ws_url", withProviders("{ id: a, ws_url: 'https://a' }"), 8, "profiles.public.chains.ethereum.providers[0].ws_url", /ws:\/\/ or wss:\/\//],
  ["a file URL", withProviders("{ id: a, url: 'file:///etc/passwd' }"), 8, "profiles.public.chains.ethereum.providers[0].url", /http:\/\//],
  ["text that is no URL", withProviders("{ id: a, url: nonsense }"), 8, "profiles.public.chains.ethereum.providers[0].url", /http:\/\//],
  [
    "URL credentials with broken escapes",
    withProviders("{ id: a, url: 'https://u:%zz@h' }"),
    8,
    "profiles.public.chains.ethereum.providers[0].url",
    /http:\/\//,
  ],
  [
    "credentials in url and headers",
    withProviders("{ id: a, url: 'https://u:p@h', headers: { authorization: x } }"),
    8,
    "profiles.public.chains.ethereum.providers[0].url",
    /keep one of them/,
  ],
  [
    "two different credentials",
    withProviders("{ id: a, url: 'https://u:p@h', ws_url: 'wss://u:q@h' }"),
    8,
    "profiles.public.chains.ethereum.providers[0].ws_url",
    /same credentials/,
  ],
  [
    "a header with a line break",
    withProviders('{ id: a, url: "http://a", headers: { X: "a\\r\\nb" } }'),
    8,
    "profiles.public.chains.ethereum.providers[0].headers.X",
    /without line breaks/,
  ],
  [
    "a header the HTTP client owns",
    withProviders("{ id: a, url: 'http://a', headers: { Content-Length: '1' } }"),
    8,
    "profiles.public.chains.ethereum.providers[0].headers.Content-Length",
    /header name other than/,
  ],
  [
    "a header given twice in different case",
    withProviders("{ id: a, url: 'http://a', headers: { X-A: a, x-a: b } }"),
    8,
    "profiles.public.chains.ethereum.providers[0].headers.x-a",
    /given twice/,
  ],
  [
    "an unknown method category",
    withProviders("{ id: a, url: 'http://a', capabilities: { unsupported_categories: [traces] } }"),
    8,
    "profiles.public.chains.ethereum.providers[0].capabilities.unsupported_categories[0]",
    /one of core, state/,
  ],
  [
    "an error rule without category",
    withProviders("{ id: a, url: 'http://a', capabilities: { error_rules: [{ code: 1 }] } }"),
    8,
    "profiles.public.chains.ethereum.providers[0].capabilities.error_rules[0].category",
    /must be one of .*rate_limit/,
  ],
  [
    "an error rule with an unknown category",
    withProviders("{ id: a, url: 'http://a', capabilities: { error_rules: [{ code: 1, category: busy }] } }"),
    8,
    "profiles.public.chains.ethereum.providers[0].capabilities.error_rules[0].category",
    /must be one of .*rate_limit/,
  ],
  [
    "an error rule without code and message",
    withProviders("{ id: a, url: 'http://a', capabilities: { error_rules: [", "{ category: rate_limit, message_contains: [] }] } }"),
    9,
    "profiles.public.chains.ethereum.providers[0].capabilities.error_rules[0]",
    /`code`, `message_contains` or both/,
  ],
  [
    "a variable that is not set",
    withProviders("{ id: a,", "url: 'https://a/${NO_SUCH_KEY}' }"),
    9,
    "profiles.public.chains.ethereum.providers[0].url",
    /needs the environment variable NO_SUCH_KEY/,
  ],
  [
    "a variable named like an object's own method",
    withProviders("{ id: a, url: 'https://a/${toString}' }"),
    8,
    "profiles.public.chains.ethereum.providers[0].url",
    /toString/,
  ],
  [
    "a broken variable reference",
    withProviders("{ id: a, url: 'https://a/${A-B}' }"),
    8,
    "profiles.public.chains.ethereum.providers[0].url",
    /does not begin a/,
  ],
  [
    "an unclosed variable reference",
    withProviders("{ id: a, url: 'https://a/${A' }"),
    8,
    "profiles.public.chains.ethereum.providers[0].url",
    /does not begin a/,
  ],
  ["a trusted proxy that is no address", "devnet: true\nserver: { trusted_proxies: [10.0.0.0/33] }", 2, "server.trusted_proxies[0]", /IP address or a range/],
  ["hosted mode", "devnet: true\nhosted: { enabled: true }", 2, "hosted.enabled", /not available in this version/],
  ["clustering", "devnet: true\ncluster: { enabled: true }", 2, "cluster.enabled", /not available in this version/],
  ["local nodes in production", "\ndevnet: true", 2, "devnet", /NODE_ENV=production/, { NODE_ENV: "production" }],
  ["a chain named local beside the local chain", "devnet: true\nchains:\n  local: { chain_id: 5 }", 3, "chains.local", /taken by the local chain/],
  [
    "an alias local beside the local chain",
    "devnet: true\nchains:\n  a: { chain_id: 5, aliases: [local] }",
    3,
    "chains.a.aliases[0]",
    /taken by the local chain/,
  ],
  ["chain id 31337 beside the local chain", "devnet: true\nchains:\n  a: { chain_id: 31337 }", 3, "chains.a.chain_id", /taken by the local chain/],
  [
    "providers for the local chain",
    "devnet: true\nprofiles:\n  public: { chains: { local: { providers: [{ id: a, url: 'http://a' }] } } }",
    3,
    "profiles.public.chains.local",
    /adds its providers itself/,
  ],
  ["a key given twice", "devnet: true\nserver:\n  port: 1\n  port: 2", 4, "server.port", /given twice; first at line 3/],
  ["a chain given twice", "chains:\n  a: { chain_id: 1 }\n  a: { chain_id: 2 }", 3, "chains.a", /given twice; first at line 2/],
  ["the key __proto__", "devnet: true\nchains:\n  __proto__: { chain_id: 1 }", 3, "chains", /not allowed/],
  ["a key that is a list", "devnet: true\n? [a]\n: 1", 2, "", /key that is empty, not text/],
  ["a YAML merge key", "devnet: true\n<<: { server: {} }", 2, '"…"', /not a known setting/],
  ["a bracket that is not closed", "devnet: true\nserver: { port: 1\nchains: {}", 3, "", /not valid YAML/],
  ["a tab as indentation", "devnet: true\nserver:\n\tport: 1", 3, "", /not with tabs/],
  ["two documents", "devnet: true\n---\ndevnet: true", 2, "", /only document/],
  ["a YAML tag", "devnet: true\ndata_dir: !secret x", 2, "", /YAML tags/],
  ["a binary YAML value", "devnet: true\ndata_dir: !!binary aGk=", 2, "data_dir", /YAML tags/],
  ["an alias without anchor", "devnet: true\ndata_dir: *nowhere", 2, "data_dir", /not defined above/],
  ["an alias of itself", "devnet: true\ndata_dir: &a [*a]", 2, "data_dir[0]", /not defined above/],
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
      "  fastest: { chain_id: 2, aliases: ['${NONE}'] }",
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
        "svc.yml:2:19  hosted.enabled  must be false: hosted mode (keys, credit, payment) is not available in this version",
        "svc.yml:4:18  chains.a.chain_id  must be a whole number, at least 1",
        "environment  PORT  is text: must be a whole number from 0 to 65535",
      ].join("\n"),
    );
  });

  it("refuses bytes that are not UTF-8, files above 10 MB and endless nesting, without throwing", () => {
    assert.match(refused(Uint8Array.of(0x61, 0x3a, 0xff))[0]?.message ?? "", /not UTF-8/);
    assert.match(refused(`# ${"x".repeat(10_000_000)}`)[0]?.message ?? "", /larger than 10000000 bytes/);
    assert.match(refused(new Uint8Array(10_000_001))[0]?.message ?? "", /larger than/);
    assert.match(formatFaults(refused(`data_dir: ${"[".repeat(500)}${"]".repeat(500)}`)), /nested more than 32 levels/);
    assert.ok(refused("[".repeat(20_000)).length > 0);
  });

  it("bounds a YAML alias bomb", () => {
    const lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]", ...Array.from({ length: 12 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i}, `.repeat(10)}]`)];
    const started = performance.now();
    assert.match(formatFaults(refused(lines.join("\n"))), /expands YAML aliases to more than 10000 values/);
    assert.ok(performance.now() - started < 2_000);
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

describe("configuration: what is accepted", () => {
  it("fills in every documented default", () => {
    const config = accepted(VALID);
    const { chains, profiles, ...rest } = config;
    assert.deepEqual(rest, {
      server: { host: "127.0.0.1", port: 4_000, publicUrl: null, trustedProxies: [] },
      dataDir: ".svc",
      storageUrl: "",
      logLevel: "info",
      production: false,
      devnet: false,
      limits: {
        maxBodyBytes: 8_000_000,
        maxBatchItems: 50,
        batchConcurrency: 8,
        maxInFlightBytes: 256_000_000,
        maxConnections: 10_000,
        headersTimeoutMs: 10_000,
        requestTimeoutMs: 30_000,
        keepAliveTimeoutMs: 65_000,
        drainTimeoutMs: 30_000,
        maxAttempts: 3,
        firstAttemptShare: 0.6,
      },
      deadlines: { cheapMs: 2_000, standardMs: 5_000, defaultMs: 10_000, traceTxMs: 30_000, traceBlockMs: 45_000 },
      selection: {
        fastestMinCalls: 3,
        fastestMinSuccessRate: 0.9,
        lwBeta: 3,
        lwMsFloor: 30,
        lwExploreFloor: 0.05,
        lwMinCalls: 3,
        lwMinSuccessRate: 0.85,
        exploreShare: 0.02,
      },
      cluster: { enabled: false, nodeId: "", region: "", expectedNodes: 1 },
      secret: null,
    });
    assert.deepEqual(chains[0], { chainId: 1, chainName: "ethereum", name: "ethereum", aliases: [], blockTimeMs: 12_000 });
    const set = profiles[0]?.chains.get("ethereum");
    assert.deepEqual(
      { ...set, providers: [] },
      {
        chain: chains[0],
        maxLagBlocks: 5,
        archivalThreshold: 128,
        probeIntervalMs: 12_000,
        newHeadsTimeoutMs: 42_000,
        maxBackfillBlocks: 100,
        backfillTimeoutMs: 30_000,
        providers: [],
      },
    );
    assert.deepEqual(set?.providers[0], {
      index: 0,
      id: "a",
      name: "a",
      alias: "p1",
      url: "https://a.example",
      wsUrl: null,
      priority: 100,
      archival: false,
      headers: {},
      unsupportedMethods: new Set(),
      unsupportedCategories: new Set(),
      maxBlockRange: null,
      maxBlockAge: null,
      blockAgeMethods: new Set(),
      errorRules: [],
    });
  });

  it("carries every setting of a full file through", () => {
    const config = accepted(`
server: { host: 0.0.0.0, port: 8080, public_url: "https://rpc.example/", trusted_proxies: [10.0.0.0/8, "::1"] }
storage: { url: "postgres://u:p@db/svc" }
data_dir: /var/lib/svc
log_level: warn
cluster: { node_id: n1, region: eu, expected_nodes: 3 }
chains:
  ethereum: { chain_id: 1, name: "Ethereum Mainnet", aliases: [mainnet], block_time_ms: 12000 }
  31337: { chain_id: 31337 }
profiles:
  premium: {}
  mine:
    chains:
      ethereum:
        selection: { max_lag_blocks: 9, archival_threshold: 64 }
        monitoring: { probe_interval_ms: 5000 }
        subscriptions: { new_heads_timeout_ms: 1000, max_backfill_blocks: 7, backfill_timeout_ms: 2000 }
        providers:
          - { id: ws, ws_url: "ws://127.0.0.1:8546" }
          - id: full
            name: Full
            alias: f
            url: https://full.example/v2
            ws_url: wss://full.example
            priority: 10
            archival: true
            headers: { Authorization: Bearer x }
            capabilities:
              unsupported_methods: [eth_getProof]
              unsupported_categories: [trace, debug]
              limits: { max_block_range: 10000, max_block_age: 128, block_age_methods: [eth_call] }
              error_rules: [ { code: 30, message_contains: ["Free Tier"], category: rate_limit } ]
hosted: { enabled: false }
limits: { max_attempts: 5 }
`);
    assert.deepEqual(config.server, { host: "0.0.0.0", port: 8_080, publicUrl: "https://rpc.example", trustedProxies: ["10.0.0.0/8", "::1"] });
    assert.deepEqual([config.storageUrl, config.dataDir, config.logLevel, config.limits.maxAttempts], ["postgres://u:p@db/svc", "/var/lib/svc", "warn", 5]);
    assert.deepEqual(config.cluster, { enabled: false, nodeId: "n1", region: "eu", expectedNodes: 3 });
    assert.deepEqual(
      config.chains.map(({ chainName, chainId }) => [chainName, chainId]),
      [
        ["31337", 31_337],
        ["ethereum", 1],
      ],
    );
    assert.deepEqual(
      config.profiles.map(({ slug, managed }) => [slug, managed]),
      [
        ["premium", true],
        ["mine", false],
      ],
    );
    const set = config.profiles[1]?.chains.get("ethereum");
    assert.deepEqual(
      [set?.maxLagBlocks, set?.archivalThreshold, set?.probeIntervalMs, set?.newHeadsTimeoutMs, set?.maxBackfillBlocks, set?.backfillTimeoutMs],
      [9, 64, 5_000, 1_000, 7, 2_000],
    );
    const [ws, full] = providers(config, "mine");
    assert.deepEqual([ws?.index, ws?.alias, ws?.url, ws?.wsUrl], [0, "p1", null, "ws://127.0.0.1:8546"]);
    assert.deepEqual(full, {
      index: 1,
      id: "full",
      name: "Full",
      alias: "f",
      url: "https://full.example/v2",
      wsUrl: "wss://full.example",
      priority: 10,
      archival: true,
      headers: { Authorization: "Bearer x" },
      unsupportedMethods: new Set(["eth_getProof"]),
      unsupportedCategories: new Set(["trace", "debug"]),
      maxBlockRange: 10_000,
      maxBlockAge: 128,
      blockAgeMethods: new Set(["eth_call"]),
      errorRules: [{ code: 30, messageContains: ["free tier"], category: "rate_limit" }],
    });
  });

  it("accepts what only looks forbidden: own id as alias, same provider id in other sets, YAML aliases, a byte order mark", () => {
    accepted("chains: { a: { chain_id: 7, aliases: ['7'] } }");
    const config = accepted(`\uFEFF
chains: { a: { chain_id: 1 }, b: { chain_id: 2 } }
profiles:
  p: { chains: { a: &set { providers: [ { id: x, url: "http://x" } ] }, b: *set } }
  q: { chains: { a: *set } }
`);
    assert.deepEqual([providers(config, "p", "a")[0]?.id, providers(config, "p", "b")[0]?.id, providers(config, "q", "a")[0]?.id], ["x", "x", "x"]);
    accepted("devnet: true");
  });

  it("accepts CRLF, with the same values and the same lines in faults", () => {
    assert.deepEqual(accepted(VALID.replaceAll("\n", "\r\n")), accepted(VALID));
    const broken = "devnet: true\nserver:\n  port: x\n  host: 1";
    assert.deepEqual(refused(broken.replaceAll("\n", "\r\n")), refused(broken));
  });

  it("gives default aliases by order and never one that names another provider", () => {
    const aliasesOf = (...ids: readonly string[]) =>
      providers(accepted(withProviders(...ids.map((id) => `{ id: ${id}, url: 'http://a' },`)))).map(({ alias }) => alias);
    assert.deepEqual(aliasesOf("a", "b", "c"), ["p1", "p2", "p3"]);
    assert.deepEqual(aliasesOf("p1", "p2"), ["p1", "p2"]);
    fc.assert(
      fc.property(fc.uniqueArray(fc.constantFrom("a", "b", "p1", "p2", "p3", "p4", "p5", "p6"), { minLength: 1 }), (ids) => {
        const aliases = aliasesOf(...ids);
        assert.equal(new Set(aliases).size, ids.length);
        for (const [index, alias] of aliases.entries()) assert.ok(!ids.includes(alias) || ids[index] === alias, `${ids} → ${aliases}`);
      }),
      { numRuns: 50 },
    );
  });

  it("moves credentials of a URL into an Authorization header, decoded, and strips them from both URLs", () => {
    const [first, second, third] = providers(
      accepted(
        withProviders(
          "{ id: a, url: 'https://us%40er:p%3Ass@h.example/v1?x=1' },",
          "{ id: b, ws_url: 'wss://u:p@h' },",
          "{ id: c, url: 'https://u:p@h', ws_url: 'wss://u:p@h' }",
        ),
      ),
    );
    assert.equal(first?.url, "https://h.example/v1?x=1");
    assert.deepEqual(first?.headers, { Authorization: `Basic ${Buffer.from("us@er:p:ss").toString("base64")}` });
    assert.deepEqual([second?.wsUrl, second?.headers["Authorization"]], ["wss://h/", `Basic ${Buffer.from("u:p").toString("base64")}`]);
    assert.deepEqual([third?.url, third?.wsUrl], ["https://h/", "wss://h/"]);
  });

  it("freezes the whole configuration", () => {
    const config = accepted(VALID);
    const provider = providers(config)[0];
    for (const value of [
      config,
      config.server,
      config.limits,
      config.chains,
      config.chains[0],
      config.profiles[0],
      provider,
      provider?.headers,
      provider?.errorRules,
    ])
      assert.ok(Object.isFrozen(value));
  });

  it("prefers flag over environment over file over default", () => {
    const file = `${VALID}\nserver: { port: 1, host: file }\nlog_level: warn\nstrategies: { lw_beta: 1, fastest_min_calls: 7 }\nstorage: { url: "postgres://file/x" }`;
    const env = { PORT: "2", HOST: "env", LOG_LEVEL: "error", LW_BETA: "2.5", DATABASE_URL: "postgres://env/x", SVC_SECRET: "s".repeat(32) };
    const shown = (config: Config) => [
      config.server.port,
      config.server.host,
      config.logLevel,
      config.selection.lwBeta,
      config.storageUrl,
      config.selection.fastestMinCalls,
    ];
    assert.deepEqual(shown(accepted(VALID)), [4_000, "127.0.0.1", "info", 3, "", 3]);
    assert.deepEqual(shown(accepted(file)), [1, "file", "warn", 1, "postgres://file/x", 7]);
    assert.deepEqual(shown(accepted(file, env)), [2, "env", "error", 2.5, "postgres://env/x", 7]);
    assert.deepEqual(shown(accepted(file, env, { port: "3", host: "flag", "log-level": "fatal" })), [3, "flag", "fatal", 2.5, "postgres://env/x", 7]);
    assert.deepEqual(shown(accepted(file, { PORT: "", HOST: "" })), shown(accepted(file)));
    assert.equal(accepted(VALID, env).secret, "s".repeat(32));
  });

  it("reads every strategy variable of the specification", () => {
    const env = {
      FASTEST_MIN_CALLS: "4",
      FASTEST_MIN_SUCCESS_RATE: "0.5",
      LW_BETA: "2",
      LW_MS_FLOOR: "10",
      LW_EXPLORE_FLOOR: "0.1",
      LW_MIN_CALLS: "9",
      LW_MIN_SR: "0.7",
    };
    assert.deepEqual(accepted(VALID, env).selection, {
      fastestMinCalls: 4,
      fastestMinSuccessRate: 0.5,
      lwBeta: 2,
      lwMsFloor: 10,
      lwExploreFloor: 0.1,
      lwMinCalls: 9,
      lwMinSuccessRate: 0.7,
      exploreShare: 0.02,
    });
  });

  it("is production only with NODE_ENV=production", () => {
    assert.deepEqual([accepted(VALID, { NODE_ENV: "production" }).production, accepted(VALID, { NODE_ENV: "Production" }).production], [true, false]);
  });

  it("gives every method of the method table a configured deadline", () => {
    const { deadlines } = accepted(`${VALID}\ndeadlines: { cheap_ms: 1, standard_ms: 2, default_ms: 3, trace_tx_ms: 4, trace_block_ms: 5 }`);
    const byDefault = new Map([
      [2_000, 1],
      [5_000, 2],
      [10_000, 3],
      [30_000, 4],
      [45_000, 5],
    ]);
    assert.ok(METHODS.length > 50);
    for (const method of METHODS) assert.equal(deadlineMs(deadlines, method), byDefault.get(method.deadlineMs), method.name);
  });
});

describe("configuration: variables and secrets", () => {
  it("fills variables into every text value, once, and leaves escaped ones alone", () => {
    const text = withProviders(
      '{ id: "${ID}", name: "$${ID} ${ID}$", alias: "${ID}x", url: "https://${HOSTNAME_}/${ID}/${ID}", headers: { X: "${NESTED}" },',
      'capabilities: { unsupported_methods: ["${METHOD}"], error_rules: [{ message_contains: ["${ID}"], category: "${CATEGORY}" }] } }',
    );
    const env = { ID: "Zed", HOSTNAME_: "h.example", NESTED: "${ID}", METHOD: "eth_call", CATEGORY: "rate_limit" };
    const provider = providers(accepted(text, env))[0];
    assert.deepEqual(
      [provider?.id, provider?.name, provider?.alias, provider?.url, provider?.headers],
      ["Zed", "${ID} Zed$", "Zedx", "https://h.example/Zed/Zed", { X: "${ID}" }],
    );
    assert.deepEqual(provider?.unsupportedMethods, new Set(["eth_call"]));
    assert.deepEqual(provider?.errorRules, [{ code: null, messageContains: ["zed"], category: "rate_limit" }]);
  });

  const SECRET = "S3cr3tValue";
  const secretEnv = { KEY: SECRET, PORT: SECRET, LOG_LEVEL: SECRET, DATABASE_URL: `mysql://${SECRET}`, LW_BETA: SECRET, SVC_SECRET: SECRET };

  it("never shows a value of a variable, URL or header in a fault, whatever is wrong", () => {
    const values = [
      `\${KEY}`,
      `https://u:${SECRET}@h/${SECRET}`,
      `ftp://${SECRET}`,
      `x ${SECRET}\n`,
      "",
      5,
      null,
      true,
      [],
      {},
      [`\${KEY}`],
      { [`x`]: SECRET },
    ];
    const value = fc.constantFrom<unknown>(...values);
    const provider = fc.record(
      {
        id: value,
        name: value,
        alias: value,
        url: value,
        ws_url: value,
        priority: value,
        archival: value,
        headers: fc.oneof(value, fc.record({ Authorization: value, X: value })),
        capabilities: value,
      },
      { requiredKeys: [] },
    );
    const file = fc.record({
      server: fc.oneof(value, fc.record({ host: value, port: value, public_url: value, trusted_proxies: value })),
      storage: fc.record({ url: value }),
      log_level: value,
      chains: fc.constant({ a: { chain_id: 1, aliases: [`\${KEY}`, `\${KEY}`] } }),
      profiles: fc.record({ public: fc.record({ chains: fc.record({ a: fc.record({ providers: fc.array(provider, { minLength: 1, maxLength: 3 }) }) }) }) }),
    });
    fc.assert(
      fc.property(file, (data) => {
        const shown = formatFaults(refused(stringify(data), secretEnv, { port: SECRET, host: "" }));
        assert.ok(!shown.includes(SECRET), shown);
        assert.ok(shown.includes("SVC_SECRET"));
      }),
      { numRuns: 150 },
    );
  });

  it("never shows a piece of the text of a file that is not valid YAML", () => {
    const breaks = ['"', "'", "[", "{", "}", "\t", ": ", "&", "*", "!x ", "%", "|x\n", "\n- ", "\\q", "@", "`", "\n---\n"];
    fc.assert(
      fc.property(fc.constantFrom(...breaks), fc.nat(), (piece, at) => {
        const text = `devnet: true\nserver: { host: "${SECRET}" }\ndata_dir: ${SECRET}\nstorage:\n  url: '${SECRET}'\n`;
        const result = load(`${text.slice(0, at % text.length)}${piece}${text.slice(at % text.length)}`, secretEnv);
        const shown = result.ok ? "" : formatFaults(result.faults).replaceAll(/ {2}[\w.[\]]* {2}/g, " ");
        assert.ok(!shown.includes(SECRET), shown);
      }),
      { numRuns: 300 },
    );
  });
});

describe("configuration: any input", () => {
  const junk = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom<unknown>("${X}", "https://x", "ws://x", -1, 0, 1e21, "p1", "a", "1", [{}], { a: {} }, null),
  );
  const valid = {
    server: { host: "h", port: 1, trusted_proxies: ["::1"] },
    chains: { a: { chain_id: 1, aliases: ["b"] }, c: { chain_id: 2 } },
    profiles: {
      public: {
        chains: {
          a: {
            selection: { max_lag_blocks: 1 },
            providers: [{ id: "x", url: "http://x", headers: { X: "y" }, capabilities: { error_rules: [{ code: 1, category: "rate_limit" }] } }],
          },
        },
      },
    },
    limits: { max_attempts: 2 },
  };

  it("gives a configuration or faults with a line each, however a valid file is changed", () => {
    let refusals = 0;
    const change = fc.record({
      steps: fc.array(fc.nat(9), { maxLength: 8 }),
      how: fc.constantFrom("delete", "replace", "insert"),
      key: fc.oneof(fc.string({ maxLength: 8 }), fc.constantFrom("id", "__proto__", "chains", "1")),
      junk,
    });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
        const text = stringify(changes.reduce<unknown>((data, it) => changed(data, it.steps, it.how, it.key, it.junk), valid));
        const result = load(text);
        if (result.ok) return;
        refusals += 1;
        assert.ok(result.faults.length > 0);
        const lines = text.split("\n").length;
        for (const fault of result.faults)
          assert.ok(fault.line >= 1 && fault.line <= lines && fault.column >= 1 && fault.message !== "", formatFaults([fault]));
      }),
      { numRuns: 400 },
    );
    assert.ok(refusals > 0);
  });

  it("gives a configuration or faults for any bytes", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string({ unit: fc.constantFrom(..."{}[]:,-&*!|>'\"%@`?#\n \ta1$<"), maxLength: 60 })),
        (text) => {
          const result = load(text);
          assert.ok(result.ok || result.faults.length > 0);
        },
      ),
      { numRuns: 400 },
    );
  });

  /** The data with one place changed: found by going down along `steps`. */
  function changed(data: unknown, steps: readonly number[], how: string, key: string, value: unknown): unknown {
    const [step, ...rest] = steps;
    if (typeof data !== "object" || data === null) return value;
    const entries = Object.entries(data);
    const entry = entries[(step ?? 0) % Math.max(1, entries.length)];
    if (entry === undefined || (step === undefined && how === "insert"))
      return Array.isArray(data) ? [...data, value] : Object.fromEntries([...entries, [key, value]]);
    const kept = entries.filter((it) => it !== entry);
    const next =
      step === undefined
        ? how === "delete"
          ? kept
          : [...kept, [entry[0], value] as const]
        : [...kept, [entry[0], changed(entry[1], rest, how, key, value)] as const];
    return Array.isArray(data) ? next.map(([, item]) => item) : Object.fromEntries(next);
  }
});

describe("configuration: shipped files", () => {
  it("ships a working example with the promised chains and several keyless providers each", () => {
    const config = accepted(readFileSync(new URL("../svc.yml", import.meta.url)));
    assert.equal(config.devnet, true);
    const expected = {
      ethereum: mainnet.id,
      base: base.id,
      arbitrum: arbitrum.id,
      optimism: optimism.id,
      polygon: polygon.id,
      bnb: bsc.id,
      sepolia: sepolia.id,
      "base-sepolia": baseSepolia.id,
    };
    assert.deepEqual(Object.fromEntries(config.chains.map(({ chainName, chainId }) => [chainName, chainId])), expected);
    for (const { chainName } of config.chains) {
      const set = providers(config, "public", chainName);
      assert.ok(set.length >= 4, chainName);
      assert.ok(set.filter(({ wsUrl }) => wsUrl !== null).length >= 2, chainName);
      assert.ok(
        set.every(({ url, headers }) => url?.startsWith("https://") && Object.keys(headers).length === 0),
        chainName,
      );
    }
  });

  it("ships an example of an own profile that works once it is uncommented", () => {
    const text = committed("svc.yml").replace(/(?<=# Your own profile[^]*)^ {2}# ?(?=mine:| )/gm, "  ");
    const [node, vendor] = providers(accepted(text, { VENDOR_KEY: "k", VENDOR_TOKEN: "t" }), "mine");
    assert.deepEqual([node?.priority, vendor?.url, vendor?.headers["Authorization"]], [1, "https://eth.vendor.example/v2/k", "Bearer t"]);
  });

  it("ships the example of the reference as a valid file", () => {
    const example = /```yaml\n([^]*?)```/.exec(configReference())?.[1] ?? "";
    assert.equal(providers(accepted(example, { NODE_KEY: "k" })).length, 2);
  });

  it("publishes the JSON Schema of the table it validates with", () => {
    assert.deepEqual(
      JSON.parse(committed("schema/svc.schema.json")),
      JSON.parse(JSON.stringify(configJsonSchema())),
      "schema/svc.schema.json is out of date: npm run docs",
    );
  });

  it("documents the table it validates with", () => {
    assert.equal(committed("docs/configuration.md"), configReference(), "docs/configuration.md is out of date: npm run docs");
  });
});
