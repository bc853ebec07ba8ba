// Configurations of other gateways, written by hand after their documents: each becomes a valid
// file without a key, says what it does not carry over, and starts.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { type Imported, imported } from "../../../src/cli/import/import.ts";
import { type Config, loadConfig } from "../../../src/config/config.ts";
import { formatFaults } from "../../../src/config/config-fault.ts";
import { realRuntime } from "../../../src/runtime.ts";
import { startService } from "../../fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../../fakes/upstream.ts";

const FOLDER = join(import.meta.dirname, "../../data/import");
const FILES: readonly string[] = readdirSync(FOLDER).sort();
/** What the variables of the files hold. */
const ENV: Readonly<Record<string, string>> = {
  BSC_URL: "https://bsc.node.example/",
  REPLICA_A_URL: "https://replica-a.node.example/",
};
/** Literal secrets of the files: none may stand in what is made of them. */
const SECRETS: readonly string[] = [
  ...["9f8e7d6c5b4a39281706f5e4d3c2b1a0", "Zk3vQ9rT7yLm2Xw8", "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW"],
  ...["dr0pC2kEy4For6Tests8Only", "kEy1forAlchemy2inTests3only4xyz5", "s3cr3tPassw0rdOfRedis"],
  ...["secret-of-postgres", "tok-5f2c9a71d0e84b36", "pa55word-of-login", "must-not-appear"],
  ...["8b1f0c2d4e6a49788c9d0e1f2a3b4c5d", "hd-41c8e95b7f2046d3", "r3d1sPassw0rd0fTests"],
  ...["Qw8eRt6yUi4oPa2sDf0g", "Pz7kLm3nQx9wRt5v", "nc-7d3e1f5a9b2c4806"],
];

async function importOf(file: string, chainId: number | null = null): Promise<Imported> {
  const text = readFileSync(join(FOLDER, file), "utf8");
  const chainIdOf = async ({ url }: Readonly<Record<string, unknown>>): Promise<number | null> =>
    String(url).includes("eth-two") ? 1 : null;
  const known = file.startsWith("proxyd") ? 10 : chainId;
  const result = await imported(text, { from: null, chainId: known, env: ENV, chainIdOf });
  if (typeof result === "string") throw new Error(`${file} ${result}`);
  return result;
}

/** The variables that a file names: those of the import, of the tests, and any other. */
function variablesOf({ text, keys }: Imported): Readonly<Record<string, string>> {
  const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""]) => [
    name,
    `value-of-${name}`,
  ]);
  const own = keys.map(({ name, value }) => [name, value]);
  return { ...Object.fromEntries(names), ...ENV, ...Object.fromEntries(own) };
}

function configIn(result: Imported): Config {
  const input = { file: "svc.yml", text: result.text, env: variablesOf(result), flags: {} };
  const loaded = loadConfig(input);
  if (!loaded.ok) throw new Error(`${formatFaults(loaded.faults)}\n${result.text}`);
  return loaded.config;
}

test("there are 20 files, of each format some", () => {
  const counts = ["erpc", "proxyd", "lasso", "nodecore"].map(
    (name) => FILES.filter((file) => file.startsWith(name)).length,
  );
  assert.deepEqual(counts, [8, 4, 4, 4]);
});

for (const file of FILES)
  test(`${file} becomes a valid file without its keys`, async () => {
    const result = await importOf(file);
    assert.equal(result.format, file.slice(0, file.indexOf("-")));
    for (const secret of SECRETS) assert.ok(!result.text.includes(secret), `${file} ${secret}`);
    for (const { name } of result.keys) assert.ok(result.text.includes(`\${${name}}`), name);
    const { chains, profiles } = configIn(result);
    assert.ok(chains.length > 0 && profiles.length > 0);
    for (const line of result.text.split("\n")) assert.doesNotMatch(line, /undefined|\[object/);
  });

/** Settings of the imported files, as they have to come out; `<NAME>` stands for `${NAME}`. */
const CARRIED: Readonly<Record<string, readonly (readonly [path: string, value: unknown])[]>> = {
  "erpc-minimal.yaml": [
    ["profiles.public.chains.ethereum.providers.0.url", "https://eth-one.node.example/rpc"],
    [
      "profiles.public.chains.ethereum.providers.1.url",
      "https://eth-two.node.example/rpc/<NODE_KEY>",
    ],
  ],
  "erpc-failsafe.yaml": [
    ["server.port", 4400],
    ["server.host", "0.0.0.0"],
    ["log_level", "warn"],
    ["limits.max_attempts", 5],
    ["deadlines.default_ms", 20_000],
    ["deadlines.trace_block_ms", 60_000],
    ["profiles.public.hedge", { floor_ms: 150, ceiling_ms: 1_500 }],
    ["profiles.public.chains.optimism.monitoring.probe_interval_ms", 2_000],
    ["profiles.public.chains.optimism.providers.1.backup", true],
    ["chains.optimism.finality_depth", 200],
  ],
  "erpc-vendors.yaml": [
    ["chains", { ethereum: {}, base: {}, all: true }],
    [
      "profiles.public.providers",
      [
        { vendor: "alchemy", key: "<ALCHEMY_KEY>" },
        { vendor: "infura", key: "<INFURA_KEY>", chains: ["base"] },
        { vendor: "drpc", key: "<DRPC_KEY>", limits: { rps: 25 } },
        { vendor: "pimlico" },
      ],
    ],
  ],
  "erpc-providers.yaml": [
    [
      "profiles.public.providers",
      [
        { vendor: "alchemy", key: "<ALCHEMY_KEY>", chains: ["ethereum", "arbitrum"] },
        { vendor: "thirdweb", key: "<THIRDWEB_CLIENT_ID>" },
      ],
    ],
  ],
  "erpc-budgets.yaml": [
    ["profiles.frontend.chains.polygon.providers.0.limits", { rps: 20 }],
    ["profiles.backend.chains.polygon.providers.0.limits", { rps: 50, monthly: 3_000_000 }],
  ],
  "erpc-cache.yaml": [
    ["server.metrics_listen", "127.0.0.1:4101"],
    ["server.trusted_proxies", ["10.0.0.0/8"]],
    [
      "cache",
      { max_bytes: "512MiB", redis_url: "rediss://<REDIS_KEY>@redis.internal.example:6380/2" },
    ],
  ],
  "erpc-methods.yaml": [
    ["profiles.public.chains.ethereum.providers.0.archival", true],
    ["profiles.public.chains.ethereum.providers.0.batch", { max: 20, wait_ms: 10 }],
    ["profiles.public.chains.ethereum.providers.0.capabilities.unsupported_categories", ["debug"]],
    [
      "profiles.public.chains.ethereum.providers.2.capabilities.limits",
      { max_block_range: 1_000, max_block_age: 128 },
    ],
    [
      "profiles.public.chains.ethereum.providers.2.headers",
      { Authorization: "Bearer <PRUNED_AUTHORIZATION>", "X-Team": "indexers" },
    ],
  ],
  "erpc-variables.yaml": [
    ["cache", "off"],
    ["profiles.public.chains.bnb.providers.0.id", "0-by-variable"],
    ["profiles.public.chains.bnb.providers.0.url", "<BSC_URL>"],
    ["profiles.public.chains.bnb.providers.1.id", "by-path"],
    ["profiles.public.chains.bnb.providers.1.url", "https://bsc.vendor.example/v2/<BSC_KEY>/"],
    ["chains.appchain", { chain_id: 990_011 }],
    ["profiles.public.chains.appchain.providers.0.ws_url", "ws://appchain.node.example:8546"],
  ],
  "proxyd-fallback.toml": [
    ["server", { host: "0.0.0.0", port: 8080, metrics_listen: "127.0.0.1:9761" }],
    ["profiles.public.routing.default_strategy", "priority"],
    ["profiles.public.chains.optimism.providers.0.limits", { rps: 30 }],
    ["profiles.public.chains.optimism.providers.0.priority", 1],
    [
      "profiles.public.chains.optimism.providers.1.url",
      "https://gateway:<SECOND_PASSWORD>@second.node.example/",
    ],
    ["limits", { max_body_bytes: 10_485_760, max_answer_bytes: 52_428_800 }],
    ["deadlines.default_ms", 8_000],
  ],
  "proxyd-consensus.toml": [
    ["profiles.public.routing.default_strategy", "load-balanced"],
    ["profiles.public.chains.optimism.selection.max_lag_blocks", 16],
    ["profiles.public.chains.optimism.monitoring.probe_interval_ms", 2_000],
    ["profiles.public.chains.optimism.providers.0.weight", 3],
    ["profiles.public.chains.optimism.providers.1.capabilities.limits.max_block_range", 20_000],
    ["profiles.public.chains.optimism.providers.2.backup", true],
    ["deadlines.standard_ms", 15_000],
  ],
  "proxyd-groups.toml": [
    [
      "profiles.public.chains.optimism.providers.0.capabilities.unsupported_methods",
      ["debug_traceTransaction", "debug_traceBlockByNumber"],
    ],
    ["profiles.public.chains.optimism.providers.1.headers", { "x-api-key": "<ARCHIVE_X_API_KEY>" }],
    ["profiles.public.chains.optimism.providers.1.capabilities.limits.max_block_range", 5_000],
  ],
  "proxyd-limits.toml": [
    ["log_level", "fatal"],
    ["limits.max_batch_items", 50],
    ["cache.redis_url", "redis://<REDIS_KEY>@redis.internal.example:6379"],
  ],
  "lasso-public.yml": [
    ["profiles.public.chains.ethereum.selection", { max_lag_blocks: 2, archival_threshold: 128 }],
    [
      "profiles.public.chains.ethereum.monitoring",
      { probe_interval_ms: 10_000, socket_heads: true },
    ],
    ["profiles.public.chains.ethereum.subscriptions.max_backfill_blocks", 50],
    ["profiles.public.chains.ethereum.providers.0.archival", true],
    ["profiles.public.chains.ethereum.providers.1.archival", false],
    ["profiles.public.chains.ethereum.providers.1.priority", 3],
  ],
  "lasso-keys.yml": [
    [
      "profiles.team.chains.ethereum.providers.1.url",
      "https://eth-mainnet.vendor.example/v2/<VENDOR_KEY>",
    ],
    [
      "profiles.team.chains.ethereum.providers.2.url",
      "https://eth-literal.vendor.example/v2/<LITERAL_KEY>",
    ],
    [
      "profiles.team.chains.ethereum.providers.2.ws_url",
      "wss://eth-literal.vendor.example/v2/<LITERAL_KEY>",
    ],
  ],
  "lasso-capabilities.yml": [
    [
      "profiles.public.chains.arbitrum.providers.0.capabilities.error_rules",
      [
        { code: 35, category: "dialect" },
        { message_contains: ["free tier"], category: "rate_limit" },
      ],
    ],
    ["profiles.public.chains.arbitrum.providers.1.capabilities.limits.max_block_range", 2_000],
  ],
  "lasso-testnets.yml": [
    ["chains.own_chain", { chain_id: 990_022, name: "Our rollup", block_time_ms: 1_000 }],
    ["profiles.testnet.chains.sepolia.providers.1.ws_url", "wss://sepolia-socket.node.example"],
  ],
  "nodecore-full.yml": [
    ["server", { port: 9090, metrics_listen: "0.0.0.0:9093" }],
    ["limits.max_attempts", 6],
    ["hedge", { floor_ms: 400, ceiling_ms: 400 }],
    ["cache.redis_url", "redis://redis.internal.example:6379/0"],
    ["profiles.public.chains.ethereum.monitoring.probe_interval_ms", 20_000],
    ["profiles.public.chains.ethereum.providers.0.ws_url", "wss://eth-full.node.example"],
    [
      "profiles.public.chains.ethereum.providers.0.headers",
      { "my-header": "my-header-value", "x-api-key": "<FULL_X_API_KEY>" },
    ],
    [
      "profiles.public.chains.ethereum.providers.0.capabilities.unsupported_methods",
      ["eth_getBlockReceipts", "trace_block"],
    ],
  ],
  "nodecore-limits.yml": [
    ["profiles.public.chains.base.providers.0.limits", { rps: 100 }],
    ["profiles.public.chains.base.providers.1.limits", { rps: 10 }],
  ],
};

for (const [file, settings] of Object.entries(CARRIED))
  test(`${file}: what it says is carried over`, async () => {
    const { text } = await importOf(file);
    const data: unknown = parse(text.replace(/\$\{(\w+)\}/g, "<$1>"));
    for (const [path, value] of settings) {
      const found = path.split(".").reduce<unknown>(
        // biome-ignore lint/suspicious/noExplicitAny: a path into any shape
        (part: any, step) => part?.[step],
        data,
      );
      assert.deepEqual(found, value, `${path} in\n${text}`);
    }
  });

const NOTED: readonly (readonly [file: string, pattern: RegExp])[] = [
  ["erpc-failsafe.yaml", /consensus: answers are not compared/],
  ["erpc-failsafe.yaml", /selectionPolicy: svc orders by measured latency/],
  ["erpc-budgets.yaml", /auth: keys of callers are made by svc itself/],
  ["erpc-budgets.yaml", /a limit of eth_getLogs; svc limits all methods/],
  ["erpc-variables.yaml", /tracing: svc sends no traces/],
  ["erpc-vendors.yaml", /upstream repository:\/\/: `chains: \{ all: true \}` serves known chains/],
  ["erpc-providers.yaml", /provider quicknode: no rule tells its addresses/],
  ["erpc-providers.yaml", /provider somebody-new: svc knows no such vendor/],
  ["proxyd-groups.toml", /authentication: keys of callers are made by svc itself/],
  ["proxyd-groups.toml", /unused.is in no backend group, and so left out/],
  ["proxyd-limits.toml", /rate_limit, sender_rate_limit: callers are limited/],
  ["lasso-public.yml", /rps_limit, burst_limit: callers are limited by/],
  ["lasso-capabilities.yml", /category `something_of_its_own`: svc has none like it/],
  ["nodecore-own-chain.yml", /auth: keys of callers are made by svc itself/],
  ["nodecore-own-chain.yml", /connector rest: svc speaks JSON-RPC/],
  ["nodecore-own-chain.yml", /chain `solana`: svc does not know its id/],
];

for (const [file, pattern] of NOTED)
  test(`${file} says what is not carried over: ${pattern.source}`, async () => {
    const { text } = await importOf(file);
    assert.match(text.replace(/\n *# +(?!- )/g, " "), pattern);
  });

/** The same configuration with local providers in place of those that it names, by chain id. */
function withLocal(config: Config, urls: ReadonlyMap<number, string>): Config {
  const profiles = config.profiles.map((profile) => {
    const sets = [...profile.chains].map(([name, set]) => {
      const origin = urls.get(set.chain.chainId) ?? "";
      const providers = set.providers.map((provider) => {
        const path = provider.url === null ? "" : new URL(provider.url).pathname;
        return {
          ...provider,
          url: provider.url === null ? null : origin + path,
          wsUrl: provider.url === null ? "ws://127.0.0.1:9/" : null,
        };
      });
      return [name, { ...set, providers }] as const;
    });
    return { ...profile, chains: new Map(sets) };
  });
  const server = { ...config.server, host: "127.0.0.1", port: 0, metricsListen: null };
  return { ...config, server, profiles, redisUrl: null };
}

test("all of them start, and calls reach the providers with their keys", async (t) => {
  const nodes = new Map<number, ScriptedUpstream>();
  t.after(() => Promise.all([...nodes.values()].map((node) => node.close())));
  for (const file of FILES) {
    const result = await importOf(file);
    const { chains } = configIn(result);
    for (const { chainId } of chains) {
      if (nodes.has(chainId)) continue;
      const node = await scriptedUpstream((_, reply) => reply.result('"0x2a"'));
      node.probesSay({ chainId, height: 100 });
      nodes.set(chainId, node);
    }
    const urls = new Map([...nodes].map(([chainId, { url }]) => [chainId, url]));
    const variables = variablesOf(result);
    const text = result.text.replace(/\$\{(\w+)\}/g, (_, name: string) => variables[name] ?? "");
    const service = await startService(text, realRuntime, (config) => withLocal(config, urls));
    try {
      for (const { slug, chains: sets } of service.config.profiles)
        for (const { chain, providers } of sets.values()) {
          if (providers.every(({ url }) => url === null)) continue;
          const path = slug === "public" ? "" : `profile/${slug}/`;
          const call = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
          const answer = await service.post(`/rpc/${path}${chain.chainId}`, call);
          assert.equal(
            answer.json.result,
            "0x2a",
            `${file} ${path}${chain.chainId} ${answer.text}`,
          );
        }
    } finally {
      await service.close();
    }
  }
  const paths = [...nodes.values()].flatMap((node) => node.asked.map(({ path }) => path));
  assert.ok(
    paths.some((path) => path.endsWith("/Pz7kLm3nQx9wRt5v")),
    "a key came out of its variable",
  );
});

test("what is no configuration, or one of svc, is refused with the reason", async () => {
  const parts = { from: null, chainId: null, env: {}, chainIdOf: async () => null };
  const refused: readonly (readonly [text: string, reason: RegExp])[] = [
    ["", /not valid YAML/],
    ["a: [", /not valid YAML/],
    ["[server]\nrpc_port = = 1", /not valid TOML/],
    ["name: something\n", /of no format that is known/],
    ["chains: {}\nprofiles: {}\n", /a configuration of svc already/],
    ["export default createConfig({ projects: [] });", /eRPC prints it as YAML/],
    ["projects: [{ id: main, upstreams: [] }]", /names no provider/],
    ["projects: [{ id: a, upstreams: [{ endpoint: 'https://a.example' }] }]", /add --chain/],
  ];
  for (const [text, reason] of refused) {
    const result = await imported(text, parts);
    assert.ok(typeof result === "string" && reason.test(result), `${text}: ${String(result)}`);
  }
});
