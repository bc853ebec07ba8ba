// The configuration: what is accepted and what it becomes, what never leaks, what any input leads
// to, and the files that ship.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the files under test hold ${NAME}
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { arbitrum, base, baseSepolia, bsc, mainnet, optimism, polygon, sepolia } from "viem/chains";
import { stringify } from "yaml";
import { type Config, loadConfig } from "../../src/config/config.ts";
import { formatFaults } from "../../src/config/config-fault.ts";
import { schemaOf } from "../../src/config/kinds.ts";
import { configReference } from "../../src/config/reference.ts";
import { configFile } from "../../src/config/schema.ts";
import { accepted, load, providers, refused, VALID, withProviders } from "./config-fixture.ts";

describe("configuration: what is accepted", () => {
  it("fills in every documented default", () => {
    const config = accepted(VALID);
    const { chains, profiles, ...rest } = config;
    assert.deepEqual(rest, {
      server: {
        host: "127.0.0.1",
        port: 4_000,
        workers: 1,
        publicUrl: null,
        trustedProxies: [],
        compression: "auto",
        fastPath: "auto",
        operatorToken: null,
        signInLink: null,
        metricsListen: null,
      },
      upstream: { http: "own" },
      dataDir: ".svc",
      storageUrl: "",
      logLevel: "info",
      production: false,
      devnet: false,
      devnetNodes: 3,
      limits: {
        maxBodyBytes: 8_000_000,
        maxBatchItems: 1_000,
        batchConcurrency: 32,
        maxInFlightBytes: 256_000_000,
        maxCallerBytes: 64_000_000,
        maxAnswerBytes: 1_073_741_824,
        maxConnections: 10_000,
        headersTimeoutMs: 10_000,
        requestTimeoutMs: 30_000,
        keepAliveTimeoutMs: 65_000,
        drainTimeoutMs: 30_000,
        maxSocketRequests: 32,
        maxSocketBytes: 33_554_432,
        maxSocketSubscriptions: 128,
        maxLogFilters: 128,
        maxKeylessLogFilters: 32,
        maxFilters: 10_000,
        maxCallerFilters: 256,
        maxFilterBytes: 134_217_728,
        maxSocketQueueBytes: 8_000_000,
        socketPingMs: 30_000,
        maxAttempts: Number.POSITIVE_INFINITY,
        firstAttemptShare: 0.6,
      },
      logs: {
        split: true,
        maxBlocks: 1_000_000,
        maxParts: 200,
        maxKeylessParts: 5,
        maxBytes: 64_000_000,
      },
      deadlines: {
        cheap: 2_000,
        standard: 5_000,
        default: 10_000,
        traceTx: 30_000,
        traceBlock: 45_000,
      },
      onDemand: null,
      methods: [],
      selection: {
        fastestMinCalls: 3,
        fastestMinSuccessRate: 0.9,
        lwBeta: 3,
        lwMsFloor: 30,
        lwExploreFloor: 0.05,
        lwMinCalls: 3,
        lwMinSuccessRate: 0.85,
        exploreShare: 0.02,
        region: null,
      },
      cluster: {
        enabled: false,
        nodeId: "",
        region: "",
        expectedNodes: null,
        listenUrl: "",
      },
      cache: {
        maxBytes: 134_217_728,
        accountMaxBytes: 0,
        byAccount: false,
        methods: new Map(),
      },
      redisUrl: null,
      coalesce: true,
      hedge: { maxExtra: 0.05, floorMs: 20, ceilingMs: 1_000 },
      consistency: "tip",
      console: { public: true },
      hosted: null,
      secret: null,
      previousSecret: null,
    });
    assert.deepEqual(chains[0], {
      chainId: 1,
      chainName: "ethereum",
      name: "Ethereum Mainnet",
      aliases: ["mainnet", "eth"],
      blockTimeMs: 12_000,
      learnsBlockTime: true,
      finalityDepth: 64,
    });
    const set = profiles[0]?.chains.get("ethereum");
    assert.deepEqual(
      { ...set, providers: [] },
      {
        chain: chains[0],
        maxLagBlocks: 5,
        archivalThreshold: 128,
        regionPreference: "prefer",
        probeIntervalMs: 12_000,
        socketHeads: true,
        newHeadsTimeoutMs: 42_000,
        maxBackfillBlocks: 100,
        backfillTimeoutMs: 30_000,
        logVerification: null,
        verificationBudget: 5,
        subscriptionKinds: [],
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
      operator: "own",
      priority: 100,
      weight: 1,
      backup: false,
      budget: null,
      batch: null,
      pipelining: false,
      price: null,
      archival: false,
      history: {},
      region: null,
      headers: {},
      unsupportedMethods: new Set(),
      unsupportedCategories: new Set(),
      maxBlockRange: null,
      maxBlockAge: null,
      blockAgeMethods: new Set(),
      errorRules: [],
      guarded: false,
      scope: null,
    });
  });

  it("carries every setting of a full file through", () => {
    const config = accepted(`
server:
  { host: 0.0.0.0, port: 8080, public_url: "https://rpc.example/", trusted_proxies: [10.0.0.0/8, "::1"],
    operator_token: operator-operator-operator, metrics_listen: "[::1]:9400" }
storage: { url: "postgres://u:p@db/svc" }
data_dir: /var/lib/svc
log_level: warn
cluster: { node_id: n1 }
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
            url: https://rpc.full.example.com/v2
            ws_url: wss://full.example
            priority: 10
            weight: 3
            backup: true
            price: 0.4
            pipelining: true
            batch: { max: 20, wait_ms: 3 }
            limits:
              rps: 50
              concurrency: 8
              daily: 1000
              monthly: 20000
              resets_on: 15
              credits: { eth_getLogs: 75 }
            archival: true
            region: eu-west
            headers: { Authorization: Bearer x }
            capabilities:
              unsupported_methods: [eth_getProof]
              unsupported_categories: [trace, debug]
              state: last 128
              logs: 15537394
              traces: none
              limits: { max_block_range: 10000, max_block_age: 128, block_age_methods: [eth_call] }
              error_rules: [ { code: 30, message_contains: ["Free Tier"], category: rate_limit } ]
hosted: { enabled: false }
limits: { max_attempts: 5 }
`);
    assert.deepEqual(config.server, {
      host: "0.0.0.0",
      port: 8_080,
      workers: 1,
      publicUrl: "https://rpc.example",
      trustedProxies: ["10.0.0.0/8", "::1"],
      compression: "auto",
      fastPath: "auto",
      operatorToken: "operator-operator-operator",
      signInLink: null,
      metricsListen: { host: "::1", port: 9_400 },
    });
    assert.deepEqual(
      [config.storageUrl, config.dataDir, config.logLevel, config.limits.maxAttempts],
      ["postgres://u:p@db/svc", "/var/lib/svc", "warn", 5],
    );
    assert.equal(config.cluster.nodeId, "n1");
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
      [
        set?.maxLagBlocks,
        set?.archivalThreshold,
        set?.probeIntervalMs,
        set?.newHeadsTimeoutMs,
        set?.maxBackfillBlocks,
        set?.backfillTimeoutMs,
      ],
      [9, 64, 5_000, 1_000, 7, 2_000],
    );
    const [ws, full] = providers(config, "mine");
    assert.deepEqual(
      [ws?.index, ws?.alias, ws?.url, ws?.wsUrl],
      [0, "p1", null, "ws://127.0.0.1:8546"],
    );
    assert.deepEqual(full, {
      index: 1,
      id: "full",
      name: "Full",
      alias: "f",
      url: "https://rpc.full.example.com/v2",
      wsUrl: "wss://full.example",
      operator: "example.com",
      priority: 10,
      weight: 3,
      backup: true,
      batch: { max: 20, waitMs: 3 },
      pipelining: true,
      budget: {
        rps: 50,
        concurrency: 8,
        daily: 1_000,
        monthly: 20_000,
        resetsOn: 15,
        credits: new Map([["eth_getLogs", 75]]),
        defaultCredits: 1,
      },
      price: 0.4,
      archival: true,
      history: {
        state: { oldest: 0, window: 128 },
        logs: { oldest: 15_537_394, window: Number.POSITIVE_INFINITY },
        traces: { oldest: Number.POSITIVE_INFINITY, window: Number.POSITIVE_INFINITY },
      },
      region: "eu-west",
      headers: { Authorization: "Bearer x" },
      unsupportedMethods: new Set(["eth_getProof"]),
      unsupportedCategories: new Set(["trace", "debug"]),
      maxBlockRange: 10_000,
      maxBlockAge: 128,
      blockAgeMethods: new Set(["eth_call"]),
      errorRules: [{ code: 30, messageContains: ["free tier"], category: "rate_limit" }],
      guarded: false,
      scope: null,
    });
  });

  it(
    "accepts what only looks forbidden: own id as alias, same provider id in other sets, YAML " +
      "aliases, a byte order mark",
    () => {
      accepted("chains: { a: { chain_id: 7, aliases: ['7'] } }");
      const config = accepted(`\uFEFF
chains: { a: { chain_id: 1 }, b: { chain_id: 2 } }
profiles:
  p: { chains: { a: &set { providers: [ { id: x, url: "http://x" } ] }, b: *set } }
  q: { chains: { a: *set } }
`);
      assert.deepEqual(
        [
          providers(config, "p", "a")[0]?.id,
          providers(config, "p", "b")[0]?.id,
          providers(config, "q", "a")[0]?.id,
        ],
        ["x", "x", "x"],
      );
      accepted("devnet: true");
    },
  );

  it("accepts CRLF, with the same values and the same lines in faults", () => {
    assert.deepEqual(accepted(VALID.replaceAll("\n", "\r\n")), accepted(VALID));
    const broken = "devnet: true\nserver:\n  port: x\n  host: 1";
    assert.deepEqual(refused(broken.replaceAll("\n", "\r\n")), refused(broken));
  });

  it("gives default aliases by order and never one that names another provider", () => {
    const aliasesOf = (...ids: readonly string[]) =>
      providers(accepted(withProviders(...ids.map((id) => `{ id: ${id}, url: 'http://a' },`)))).map(
        ({ alias }) => alias,
      );
    assert.deepEqual(aliasesOf("a", "b", "c"), ["p1", "p2", "p3"]);
    assert.deepEqual(aliasesOf("p1", "p2"), ["p1", "p2"]);
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.constantFrom("a", "b", "p1", "p2", "p3", "p4", "p5", "p6"), {
          minLength: 1,
        }),
        (ids) => {
          const aliases = aliasesOf(...ids);
          assert.equal(new Set(aliases).size, ids.length);
          for (const [index, alias] of aliases.entries())
            assert.ok(
              !ids.some((id) => id === alias) || ids[index] === alias,
              `${ids} → ${aliases}`,
            );
        },
      ),
      { numRuns: 50 },
    );
  });

  it(
    "moves credentials of a URL into an Authorization header, decoded, and strips them from both " +
      "URLs",
    () => {
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
      assert.deepEqual(first?.headers, {
        Authorization: `Basic ${Buffer.from("us@er:p:ss").toString("base64")}`,
      });
      assert.deepEqual(
        [second?.wsUrl, second?.headers["Authorization"]],
        ["wss://h/", `Basic ${Buffer.from("u:p").toString("base64")}`],
      );
      assert.deepEqual([third?.url, third?.wsUrl], ["https://h/", "wss://h/"]);
    },
  );

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
    const file =
      `${VALID}\nserver: { port: 1, host: file }\nlog_level: warn\nstrategies: { lw_beta: 1, ` +
      `fastest_min_calls: 7 }\nstorage: { url: "postgres://file/x" }`;
    const env = {
      PORT: "2",
      HOST: "env",
      LOG_LEVEL: "error",
      LW_BETA: "2.5",
      DATABASE_URL: "postgres://env/x",
      SVC_SECRET: "s".repeat(32),
    };
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
    assert.deepEqual(
      shown(accepted(file, env, { port: "3", host: "flag", "log-level": "fatal" })),
      [3, "flag", "fatal", 2.5, "postgres://env/x", 7],
    );
    assert.deepEqual(shown(accepted(file, { PORT: "", HOST: "" })), shown(accepted(file)));
    assert.equal(accepted(VALID, env).secret, "s".repeat(32));
    const workers = `${VALID}\nserver: { workers: 2 }`;
    assert.deepEqual(
      [
        accepted(workers),
        accepted(workers, { SVC_WORKERS: "3" }),
        accepted(workers, { SVC_WORKERS: "3" }, { workers: "auto" }),
      ].map((config) => config.server.workers),
      [2, 3, "auto"],
    );
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
      region: null,
    });
  });

  it("reads the region of the node, of providers, and what follows from them", () => {
    const config = accepted(
      "chains: { ethereum: { chain_id: 1 } }\ncluster: { region: eu-west }\n" +
        "profiles: { public: { chains: { ethereum: { selection: { region_preference: only }, " +
        "providers: [{ id: a, url: 'https://a.example', region: eu-west }] } } } }",
    );
    assert.equal(config.selection.region, "eu-west");
    const set = config.profiles[0]?.chains.get("ethereum");
    assert.deepEqual([set?.regionPreference, set?.providers[0]?.region], ["only", "eu-west"]);
  });

  it("takes several trusted proxies from one variable", () => {
    const text = `${VALID}\nserver: { trusted_proxies: ["\${PROXIES}", "::1"] }`;
    const { server } = accepted(text, { PROXIES: "10.1.0.0/16, fd00::/8,192.0.2.7" });
    assert.deepEqual(server.trustedProxies, ["10.1.0.0/16", "fd00::/8", "192.0.2.7", "::1"]);
  });

  it("is production only with NODE_ENV=production", () => {
    const text = `${VALID}\nserver: { public_url: "https://rpc.example" }`;
    assert.deepEqual(
      [
        accepted(text, { NODE_ENV: "production" }).production,
        accepted(VALID, { NODE_ENV: "Production" }).production,
      ],
      [true, false],
    );
  });

  it("takes hedges in part, and `off` for all or for a profile", () => {
    assert.deepEqual(accepted(`${VALID}\nhedge: { max_extra: 0.02 }`).hedge, {
      maxExtra: 0.02,
      floorMs: 20,
      ceilingMs: 1_000,
    });
    assert.equal(accepted(`${VALID}\nhedge: off`).hedge, null);
    const config = accepted(VALID.replace("  public:\n", "  public:\n    hedge: off\n"));
    assert.equal(config.profiles[0]?.chains.get("ethereum")?.hedge, null);
    assert.notEqual(config.hedge, null, "the others are hedged");
  });

  it("takes a consistency for all, and another one for a profile", () => {
    assert.equal(accepted(`${VALID}\nconsistency: caller`).consistency, "caller");
    const ofSet = (text: string) =>
      accepted(text).profiles[0]?.chains.get("ethereum")?.consistency ?? "as the service";
    const own = VALID.replace("  public:\n", "  public:\n    consistency: off\n");
    assert.equal(ofSet(`${own}\nconsistency: caller`), "off");
    assert.equal(ofSet(`${VALID}\nconsistency: caller`), "as the service");
  });

  it("takes the bounds of ranges in part; where keys are charged a call has fewer parts", () => {
    const logs = (more: string) => accepted(`${VALID}\n${more}`).logs;
    assert.equal(logs("logs: { split: off }").split, false);
    assert.deepEqual(
      [logs("logs: { max_parts: 7 }").maxParts, logs("logs: { max_blocks: 9 }").maxBlocks],
      [7, 9],
    );
    assert.equal(logs("hosted: { enabled: true }").maxParts, 20);
    assert.equal(logs("hosted: { enabled: true }\nlogs: { max_parts: 7 }").maxParts, 7);
  });

  it("takes the cache in part, sizes with a unit, and `off` for all, a chain or a profile", () => {
    const { cache } = accepted(
      `${VALID}\ncache: { max_bytes: 2MiB, scope: account, ` +
        "methods: { eth_call: off, eth_gasPrice: { ttl_ms: 500 } } }",
    );
    assert.deepEqual(cache, {
      maxBytes: 2_097_152,
      accountMaxBytes: 0,
      byAccount: true,
      methods: new Map([
        ["eth_call", 0],
        ["eth_gasPrice", 500],
      ]),
    });
    assert.equal(accepted(`${VALID}\ncache: off`).cache, null);
    assert.equal(accepted(`${VALID}\ncoalesce: off`).coalesce, false);
    const off = accepted(VALID.replace("  public:\n", "  public:\n    cache: off\n"));
    assert.equal(off.profiles[0]?.chains.get("ethereum")?.cache?.isOn, false);
  });

  it("takes the server of the second tier of the cache from the environment, and warns if none uses it", () => {
    for (const url of [
      "redis://localhost",
      "rediss://user:p%40ss@cache.example:6380/1",
      "valkey://10.0.0.7:6379/",
      "valkeys://[::1]:6379",
    ])
      assert.equal(accepted(`${VALID}\ncache: { redis_url: '${url}' }`).redisUrl, url);
    assert.equal(accepted(`${VALID}\ncache: { redis_url: '' }`).redisUrl, null);
    assert.equal(accepted(`${VALID}\ncache: off`).redisUrl, null);
    const file = "svc.yml";
    const text = `${VALID}\ncache: { redis_url: "\${CACHE}" }`.replace(
      "  public:\n",
      "  public:\n    cache: off\n",
    );
    const given = { env: { CACHE: "redis://:secret@localhost" }, flags: {} };
    const result = loadConfig({ file, text, ...given });
    assert.ok(result.ok);
    assert.equal(result.config.redisUrl, "redis://:secret@localhost");
    assert.deepEqual(
      result.warnings.map(({ path }) => path),
      ["cache.redis_url"],
    );
    assert.doesNotMatch(JSON.stringify(result.warnings), /secret/);
  });

  it("gives every class of method its configured deadline", () => {
    const { deadlines } = accepted(
      `${VALID}\ndeadlines: { cheap_ms: 1, standard_ms: 2, default_ms: 3, trace_tx_ms: 4, ` +
        "trace_block_ms: 5 }",
    );
    assert.deepEqual(deadlines, { cheap: 1, standard: 2, default: 3, traceTx: 4, traceBlock: 5 });
  });
});

describe("configuration: variables and secrets", () => {
  it("fills variables into every text value, once, and leaves escaped ones alone", () => {
    const text = withProviders(
      '{ id: "${ID}", name: "$${ID} ${ID}$", alias: "${ID}x", url: ' +
        '"https://${HOSTNAME_}/${ID}/${ID}", headers: { X: "${NESTED}" },',
      'capabilities: { unsupported_methods: ["${METHOD}"], error_rules: [{ message_contains: ' +
        '["${ID}"], category: "${CATEGORY}" }] } }',
    );
    const env = {
      ID: "Zed",
      HOSTNAME_: "h.example",
      NESTED: "${ID}",
      METHOD: "eth_call",
      CATEGORY: "rate_limit",
    };
    const provider = providers(accepted(text, env))[0];
    assert.deepEqual(
      [provider?.id, provider?.name, provider?.alias, provider?.url, provider?.headers],
      ["Zed", "${ID} Zed$", "Zedx", "https://h.example/Zed/Zed", { X: "${ID}" }],
    );
    assert.deepEqual(provider?.unsupportedMethods, new Set(["eth_call"]));
    assert.deepEqual(provider?.errorRules, [
      { code: null, messageContains: ["zed"], category: "rate_limit" },
    ]);
  });

  const SECRET = "S3cr3tValue";
  const secretEnv = {
    KEY: SECRET,
    PORT: SECRET,
    LOG_LEVEL: SECRET,
    DATABASE_URL: `mysql://${SECRET}`,
    LW_BETA: SECRET,
    SVC_SECRET: SECRET,
  };

  it("never shows a value of a variable, URL or header in a fault", () => {
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
      server: fc.oneof(
        value,
        fc.record({ host: value, port: value, public_url: value, trusted_proxies: value }),
      ),
      storage: fc.record({ url: value }),
      log_level: value,
      chains: fc.constant({ a: { chain_id: 1, aliases: [`\${KEY}`, `\${KEY}`] } }),
      profiles: fc.record({
        public: fc.record({
          chains: fc.record({
            a: fc.record({ providers: fc.array(provider, { minLength: 1, maxLength: 3 }) }),
          }),
        }),
      }),
    });
    fc.assert(
      fc.property(file, (data) => {
        const shown = formatFaults(refused(stringify(data), secretEnv, { port: SECRET, host: "" }));
        assert.ok(!shown.includes(SECRET), shown);
        assert.ok(shown.includes("SVC_SECRET"));
      }),
      { numRuns: 75 },
    );
  });

  it("never shows a piece of the text of a file that is not valid YAML", () => {
    const breaks = [
      '"',
      "'",
      "[",
      "{",
      "}",
      "\t",
      ": ",
      "&",
      "*",
      "!x ",
      "%",
      "|x\n",
      "\n- ",
      "\\q",
      "@",
      "`",
      "\n---\n",
    ];
    fc.assert(
      fc.property(fc.constantFrom(...breaks), fc.nat(), (piece, at) => {
        const text =
          `devnet: true\nserver: { host: "${SECRET}" }\ndata_dir: ${SECRET}\nstorage:\n  url: ` +
          `'${SECRET}'\n`;
        const result = load(
          `${text.slice(0, at % text.length)}${piece}${text.slice(at % text.length)}`,
          secretEnv,
        );
        const shown = result.ok
          ? ""
          : formatFaults(result.faults).replaceAll(/ {2}[\w.[\]]* {2}/g, " ");
        assert.ok(!shown.includes(SECRET), shown);
      }),
      { numRuns: 150 },
    );
  });
});

describe("configuration: any input", () => {
  const junk = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom<unknown>(
      "${X}",
      "https://x",
      "ws://x",
      -1,
      0,
      1e21,
      "p1",
      "a",
      "1",
      [{}],
      { a: {} },
      null,
    ),
  );
  const valid = {
    server: { host: "h", port: 1, trusted_proxies: ["::1"] },
    chains: { a: { chain_id: 1, aliases: ["b"] }, c: { chain_id: 2 } },
    profiles: {
      public: {
        chains: {
          a: {
            selection: { max_lag_blocks: 1 },
            providers: [
              {
                id: "x",
                url: "http://x",
                headers: { X: "y" },
                capabilities: { error_rules: [{ code: 1, category: "rate_limit" }] },
              },
            ],
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
        const text = stringify(
          changes.reduce<unknown>(
            (data, it) => changed(data, it.steps, it.how, it.key, it.junk),
            valid,
          ),
        );
        const result = load(text);
        if (result.ok) return;
        refusals += 1;
        assert.ok(result.faults.length > 0);
        const lines = text.split("\n").length;
        for (const fault of result.faults)
          assert.ok(
            fault.line >= 1 && fault.line <= lines && fault.column >= 1 && fault.message !== "",
            formatFaults([fault]),
          );
      }),
      { numRuns: 200 },
    );
    assert.ok(refusals > 0);
  });

  it("gives a configuration or faults for any bytes", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 200 }),
          fc.string({ unit: fc.constantFrom(..."{}[]:,-&*!|>'\"%@`?#\n \ta1$<"), maxLength: 60 }),
        ),
        (text) => {
          const result = load(text);
          assert.ok(result.ok || result.faults.length > 0);
        },
      ),
      { numRuns: 400 },
    );
  });

  /** The data with one place changed: found by going down along `steps`. */
  function changed(
    data: unknown,
    steps: readonly number[],
    how: string,
    key: string,
    value: unknown,
  ): unknown {
    const [step, ...rest] = steps;
    if (typeof data !== "object" || data === null) return value;
    const entries = Object.entries(data);
    const entry = entries[(step ?? 0) % Math.max(1, entries.length)];
    if (entry === undefined || (step === undefined && how === "insert"))
      return Array.isArray(data)
        ? [...data, value]
        : Object.fromEntries([...entries, [key, value]]);
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
    const config = accepted(readFileSync(new URL("../../svc.yml", import.meta.url)));
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
    assert.deepEqual(
      Object.fromEntries(config.chains.map(({ chainName, chainId }) => [chainName, chainId])),
      expected,
    );
    for (const { chainName } of config.chains) {
      const set = providers(config, "public", chainName);
      assert.ok(set.length >= 4, chainName);
      assert.ok(set.filter(({ wsUrl }) => wsUrl !== null).length >= 2, chainName);
      assert.ok(
        set.every(
          ({ url, headers }) => url?.startsWith("https://") && Object.keys(headers).length === 0,
        ),
        chainName,
      );
    }
  });

  it(
    "ships a production configuration that starts with what it asks the environment for, and " +
      "says what is missing",
    () => {
      const text = committed("svc.production.yml");
      const env = {
        NODE_ENV: "production",
        SVC_PUBLIC_URL: "https://rpc.example",
        SVC_SECRET: "s".repeat(32),
        SVC_OPERATOR_TOKEN: "t".repeat(24),
      };
      const { server, hosted } = accepted(text, env);
      assert.deepEqual(
        [server.publicUrl, server.operatorToken, hosted?.keyless],
        ["https://rpc.example", "t".repeat(24), false],
      );
      for (const name of ["SVC_PUBLIC_URL", "SVC_SECRET", "SVC_OPERATOR_TOKEN"]) {
        const faults = refused(
          text,
          Object.fromEntries(Object.entries(env).filter(([given]) => given !== name)),
        );
        assert.equal(faults.length, 1, formatFaults(faults));
        assert.match(formatFaults(faults), new RegExp(name));
      }
    },
  );

  it("ships an example of an own profile that works once it is uncommented", () => {
    const text = committed("svc.yml").replace(
      /(?<=# Your own profile[\s\S]*)^ {2}# ?(?=mine:| )/gm,
      "  ",
    );
    const [node, vendor] = providers(
      accepted(text, { VENDOR_KEY: "k", VENDOR_TOKEN: "t" }),
      "mine",
    );
    assert.deepEqual(
      [node?.priority, vendor?.url, vendor?.headers["Authorization"]],
      [1, "https://eth.vendor.example/v2/k", "Bearer t"],
    );
  });

  it("ships the example of the reference as a valid file", () => {
    const example = /```yaml\n([\s\S]*?)```/.exec(configReference())?.[1] ?? "";
    assert.equal(providers(accepted(example, { NODE_KEY: "k" })).length, 2);
  });

  it("publishes the JSON Schema of the table it validates with", () => {
    assert.deepEqual(
      JSON.parse(committed("schema/svc.schema.json")),
      JSON.parse(JSON.stringify(schemaOf(configFile))),
      "schema/svc.schema.json is out of date: npm run docs",
    );
  });

  it("documents the table it validates with", () => {
    assert.equal(
      committed("docs/configuration.md"),
      configReference(),
      "docs/configuration.md is out of date: npm run docs",
    );
  });
});

function committed(name: string): string {
  return readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");
}
