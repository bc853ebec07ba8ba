// What `svc probe` prints: the table, entries that are valid where they belong, and JSON; without a
// key, and with the lag between endpoints of one chain.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { entryOf } from "../../src/cli/probe/entry.ts";
import { endpointsOf, probeAll, reportOf } from "../../src/cli/probe/probe.ts";
import { tableOf } from "../../src/cli/probe/table.ts";
import { loadConfig } from "../../src/config/config.ts";
import { startDevnet } from "../../src/devnet/devnet.ts";
import { PROBE_BOUNDS } from "../../src/upstream/probe/endpoint-calls.ts";
import { emptyFolder, runCommand } from "../fakes/command.ts";
import { ARCHIVE, probedNode } from "../fakes/probed-node.ts";

const BOUNDS = { ...PROBE_BOUNDS, pauseMs: 0, rateLimitMs: 1, timeoutMs: 60_000, totalMs: 600_000 };
const KEY = "a1B2c3D4e5F6g7H8i9J0";

test("addresses on a command line: sockets join the endpoint of their host", () => {
  assert.deepEqual(
    endpointsOf([
      "https://a.example/x",
      "wss://b.example",
      "https://b.example/y",
      "ws://c.example",
    ]),
    [
      { url: "https://a.example/x", wsUrl: "wss://a.example/x", isDerived: true },
      { url: "https://b.example/y", wsUrl: "wss://b.example", isDerived: false },
      { url: null, wsUrl: "ws://c.example", isDerived: false },
    ],
  );
});

test("the command runs to its end, with its pauses, and prints what it found", async (t) => {
  const node = await probedNode({});
  t.after(() => node.close());
  const { output, ended } = runCommand(t, emptyFolder(t), ["probe", node.url, "--json"]);
  assert.equal(await ended, 0, output());
  assert.match(output(), /"chainId": 1,/);
});

test("two endpoints of a chain and one that refuses: a table, entries and JSON without keys", async (t) => {
  const nodes = await Promise.all([
    probedNode({}),
    probedNode({
      head: ARCHIVE.head - 7,
      oldest: { state: ARCHIVE.head - 200 },
      without: ["debug_", "trace_"],
      logRange: 1_000,
      rangeError: "the range is too large",
      batches: false,
    }),
    probedNode({ status: 401 }),
  ]);
  t.after(() => Promise.all(nodes.map((node) => node.close())));
  const addresses = nodes.map(({ url }) => `${url}/v2/${KEY}`);
  const all = await probeAll(endpointsOf(addresses), BOUNDS);
  const table = tableOf(all);
  const entries = all.map(entryOf);
  const json = JSON.stringify(all.map(reportOf));
  for (const text of [table, json, ...entries]) assert.doesNotMatch(text ?? "", /a1B2c3D4/);
  assert.deepEqual(
    all.map(({ lag }) => lag),
    [0, 7, null],
  );
  assert.match(table, /chain +Ethereum Mainnet \(1\) +Ethereum Mainnet \(1\)\n/);
  assert.match(table, /state from +the first block +19999800: the last 193 blocks/);
  assert.match(table, /log range +at least 100000 blocks +1000 blocks/);
  assert.match(table, /\n\nhttp:\S+: auth: invalid api key$/);
  assert.equal(entries[2], null);
  const second: unknown = parse(entries[1] ?? "");
  assert.deepEqual(second, [
    {
      id: "provider",
      url: `${nodes[1]?.url}/v2/\${PROVIDER_KEY}`,
      capabilities: {
        state: "last 193",
        transactions: 0,
        receipts: 0,
        logs: 0,
        blocks: 0,
        proofs: 0,
        unsupported_categories: ["debug", "trace"],
        limits: { max_block_range: 1_000 },
      },
    },
  ]);
  const text = JSON.stringify({
    chains: { ethereum: { chain_id: 1 } },
    profiles: { own: { chains: { ethereum: { providers: second } } } },
  });
  const loaded = loadConfig({ file: "", text, env: { PROVIDER_KEY: KEY }, flags: {} });
  assert.ok(loaded.ok, JSON.stringify(loaded));
});

test("a local node over HTTP and WebSocket", async (t) => {
  const devnet = await startDevnet({ nodes: 1, onProgress: () => {} });
  t.after(() => devnet.close());
  const [provider] = devnet.providers;
  const [probed] = await probeAll(endpointsOf([provider?.url ?? ""]), BOUNDS);
  assert.ok(probed?.result.kind === "found", JSON.stringify(probed?.result));
  const { chainId, client, batch, socket, methods } = probed.result;
  assert.deepEqual([chainId, batch, socket?.works], [31_337, true, true]);
  assert.match(client ?? "", /anvil/i);
  assert.deepEqual(socket?.kinds, ["newHeads", "logs", "newPendingTransactions"]);
  assert.ok(methods.some(({ method, outcome }) => method === "eth_call" && outcome === "served"));
  assert.match(entryOf(probed) ?? "", /ws_url: ws:\/\/127\.0\.0\.1/);
});
