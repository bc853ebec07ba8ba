// Calls over ranges of blocks that no provider accepts whole, over real sockets: answered byte for
// byte as one node without limits would, on every surface; priced, bounded, and cut off rather than
// closed as if whole.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createPublicClient, createWalletClient, type Hex, http } from "viem";
import { startDevnet } from "../../src/devnet/devnet.ts";
import { manageAt } from "../fakes/hosted-fixture.ts";
import { answerOf, type ChainView, type Density, logsOf } from "../fakes/range-chain.ts";
import { ALICE, FEES, localChain, PING_BYTECODE, sameHeight } from "../fakes/real-nodes.ts";
import { configText, PATIENT, type Service, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type Script, type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const VIEW: ChainView = { head: 5_000, finalized: 4_940, forks: [] };
const LIMIT = 100;
const some: Density = (block) => (block % 9 === 0 ? 1 : 0);
const hex = (number: number): string => `0x${number.toString(16)}`;

function node(density: Density): Script {
  return ({ method, params }, reply) => {
    assert.ok(Array.isArray(params));
    const limits = { blocks: LIMIT, results: null };
    const answer = answerOf({ method, params }, VIEW, { density, limits });
    if (answer.kind === "result") reply.result(answer.json);
    else reply.error(JSON.stringify(answer.error));
  };
}

interface Walk {
  readonly service: Service;
  readonly upstreams: readonly ScriptedUpstream[];
  logCalls(): number;
}

async function walk(
  t: TestContext,
  density: Density,
  extra: Record<string, unknown> = {},
  slug = "team",
): Promise<Walk> {
  const upstreams = await Promise.all([1, 2, 3].map(() => scriptedUpstream(node(density))));
  for (const upstream of upstreams) upstream.probesSay(null);
  const providers = upstreams.map(({ url }, at) => ({
    id: "abc".charAt(at),
    url,
    archival: true,
    capabilities: { limits: { max_block_range: LIMIT } },
  }));
  const service = await startService(configText(providers, extra, {}, slug));
  t.after(async () => {
    await Promise.all([service.close(), ...upstreams.map((upstream) => upstream.close())]);
  });
  await service.probed();
  const isLogs = ({ method }: { readonly method: string }): boolean => method === "eth_getLogs";
  return {
    service,
    upstreams,
    logCalls: () => upstreams.reduce((sum, { asked }) => sum + asked.filter(isLogs).length, 0),
  };
}

function getLogs(from: number, to: number | string, id = 1) {
  const toBlock = typeof to === "number" ? hex(to) : to;
  return { jsonrpc: "2.0", id, method: "eth_getLogs", params: [{ fromBlock: hex(from), toBlock }] };
}

function expected(from: number, to: number, density: Density): string {
  return `{"jsonrpc":"2.0","id":1,"result":[${logsOf({ from, to }, VIEW, density).join(",")}]}`;
}

test("a range is answered as one node would, whole or streamed, with its evidence", async (t) => {
  const busy: Density = () => 2;
  const { service, logCalls } = await walk(t, busy);
  const short = await service.post("/rpc/1?include_meta=headers", getLogs(100, 229));
  assert.equal(short.text, expected(100, 229, busy));
  const meta = JSON.parse(
    Buffer.from(short.headers.get("x-svc-meta") ?? "", "base64url").toString(),
  );
  assert.deepEqual([meta.source, meta.upstream_calls, meta.retries], ["merged", 2, 0]);
  assert.equal(meta.selected_provider, null);
  const before = logCalls();
  const long = await service.post("/rpc/1", getLogs(1, 3_000));
  assert.equal(long.text, expected(1, 3_000, busy));
  assert.equal(logCalls() - before, 30);
  const young = await service.post("/rpc/1", getLogs(4_700, "latest"));
  assert.equal(young.text, expected(4_700, 5_000, busy));
  const { text } = await service.get("/metrics");
  assert.match(text, /^svc_split_calls_total\{outcome="answered"\} 3$/m);
  assert.match(text, /^svc_answers_total\{[^}]*source="merged"\} 3$/m);
});

test("in a batch and over a WebSocket the same answer comes in one piece", async (t) => {
  const { service } = await walk(t, some);
  const { json } = await service.post("/rpc/1", [getLogs(1, 2_000), getLogs(5, 1_500, 2)]);
  const list = (from: number, to: number) => JSON.parse(expected(from, to, some)).result;
  assert.deepEqual(
    json.map(({ result }: { readonly result: unknown }) => result),
    [list(1, 2_000), list(5, 1_500)],
  );
  const socket = new WebSocket(`${service.url.replace("http", "ws")}/ws/rpc/1`);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve, { once: true });
    socket.addEventListener("error", reject, { once: true });
  });
  const answer = new Promise<string>((resolve) =>
    socket.addEventListener("message", ({ data }) => resolve(String(data)), { once: true }),
  );
  socket.send(JSON.stringify(getLogs(1, 2_000)));
  assert.equal(await answer, expected(1, 2_000, some));
  const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
  socket.close();
  await closed;
});

test("a filter over a long range gives its logs as eth_getLogs does", async (t) => {
  const { service } = await walk(t, some);
  const call = (method: string, params: readonly unknown[]) =>
    service.post("/rpc/1", { jsonrpc: "2.0", id: 1, method, params });
  const range = { fromBlock: hex(1), toBlock: hex(2_000) };
  const { json } = await call("eth_newFilter", [range]);
  const logs = await call("eth_getFilterLogs", [json.result]);
  assert.equal(logs.text, expected(1, 2_000, some));
});

test("an answer that cannot be completed is cut off, and never closed as if whole", async (t) => {
  const busy: Density = () => 5;
  const { service, upstreams } = await walk(t, busy);
  for (const upstream of upstreams)
    upstream.script((asked, reply) => {
      const [filter] = Array.isArray(asked.params) ? asked.params : [];
      if (asked.method === "eth_getLogs" && Number(filter.fromBlock) > 3_500)
        reply.error('{"code":-32602,"message":"invalid params"}');
      else node(busy)(asked, reply);
    });
  const response = await fetch(`${service.url}/rpc/1`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(getLogs(1, 4_000)),
  });
  assert.equal(response.status, 200);
  await assert.rejects(response.text());
});

test("`logs.split: off` refuses a range as before; beyond the bounds it is told what is served", async (t) => {
  const off = await walk(t, some, { logs: { split: "off" } });
  const refused = await off.service.post("/rpc/1", getLogs(1, 2_000));
  assert.equal(refused.json.error.data.code, "log_range_limit");
  assert.ok(!("max_blocks" in refused.json.error.data));
  const bounded = await walk(t, some, { logs: { max_parts: 4 } });
  const { json } = await bounded.service.post("/rpc/1", getLogs(1, 2_000));
  assert.equal(json.error.data.code, "log_range_limit");
  assert.equal(json.error.data.max_blocks, 400);
  const served = await bounded.service.post("/rpc/1", getLogs(1, 400));
  assert.equal(served.text, expected(1, 400, some));
});

/** A provider that takes 100 blocks, and advises them in the words of a vendor. */
function advising(density: Density): Script {
  return (asked, reply) => {
    const [filter] = Array.isArray(asked.params) ? asked.params : [];
    const from = Number(filter?.fromBlock);
    if (asked.method !== "eth_getLogs" || Number(filter.toBlock) - from < LIMIT)
      return node(density)(asked, reply);
    const message =
      "Log response size exceeded. Based on your parameters and the response size limit, this " +
      `block range should work: [${hex(from)}, ${hex(from + LIMIT - 1)}]`;
    reply.error(JSON.stringify({ code: -32_602, message }));
  };
}

test("the range that a provider advises is asked for, and few calls are refused", async (t) => {
  const script = advising(some);
  const upstreams = await Promise.all([1, 2].map(() => scriptedUpstream(script)));
  for (const upstream of upstreams) upstream.probesSay(null);
  const providers = upstreams.map(({ url }, at) => ({ id: "ab".charAt(at), url, archival: true }));
  const service = await startService(configText(providers, {}, {}, "team"));
  t.after(async () => {
    await Promise.all([service.close(), ...upstreams.map((upstream) => upstream.close())]);
  });
  await service.probed();
  const { text } = await service.post("/rpc/1", getLogs(1, 4_000));
  assert.equal(text, expected(1, 4_000, some));
  const metrics = await service.get("/metrics");
  const parts = (result: string): number =>
    Number(new RegExp(`svc_split_parts_total.result="${result}". (\\d+)`).exec(metrics.text)?.[1]);
  assert.ok(parts("asked") >= 40 && parts("asked") <= 52, `${parts("asked")} parts`);
  assert.ok(parts("refused") <= 12, `${parts("refused")} refused`);
});

test("an answer that is too long is refused for that, and told no range that is not served", async (t) => {
  const { service } = await walk(t, () => 5, { logs: { max_bytes: 65_536 } });
  const { json } = await service.post("/rpc/1", [getLogs(1, 3_000)]);
  const { message, data } = json[0].error;
  assert.match(message, /longer than is allowed/);
  assert.equal(data.code, "log_range_limit");
  assert.ok(!("max_blocks" in data), `${data.max_blocks} blocks, and 3,000 were refused`);
});

test("with a key each planned part costs and counts as one call; without one there are few", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-hosted-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const sinceMs = performance.now();
  const slow = { per_second: 1, burst: 500 };
  const buckets = { managed: slow, reduced: slow, public: slow };
  const hosted = { enabled: true, keyless: true, buckets };
  const { service } = await walk(t, some, { data_dir: dataDir, hosted }, "public");
  const created = await manageAt(service.url)("", "POST", "/api/v1/agent/keys");
  const { key } = created.json;
  const left = ({ headers }: { readonly headers: Headers }): number =>
    Number(/r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1]);
  const post = (body: unknown) => service.post(`/rpc/k/${key}/1`, body);
  const one = await post(getLogs(1, 50));
  const many = await post(getLogs(1, 1_000));
  assert.equal(many.text, expected(1, 1_000, some));
  assert.deepEqual(
    [one.headers.get("x-svc-cu"), many.headers.get("x-svc-cu")],
    ["15", "150"],
    "ten parts",
  );
  // One token a second comes in meanwhile.
  const tokens = left(one) - left(many) + Math.ceil((performance.now() - sinceMs) / 1_000);
  assert.ok(tokens >= 10, `${left(one)} ${left(many)}`);
  const filter = await post({
    jsonrpc: "2.0",
    id: 1,
    method: "eth_newFilter",
    params: [{ fromBlock: hex(1), toBlock: hex(1_000) }],
  });
  const id = filter.json.result;
  const logs = await post({ jsonrpc: "2.0", id: 1, method: "eth_getFilterLogs", params: [id] });
  assert.equal(logs.text, expected(1, 1_000, some));
  assert.equal(logs.headers.get("x-svc-cu"), "150");
  const tooMany = await post(getLogs(1, 2_500));
  assert.equal(tooMany.json.error.data.max_blocks, 2_000);
  const keyless = await service.post("/rpc/1", getLogs(1, 600));
  assert.equal(keyless.json.error.data.max_blocks, 500);
  assert.equal((await service.post("/rpc/1", getLogs(1, 500))).text, expected(1, 500, some));
});

/** A provider that refuses one block, for its results. */
function refusingAt(refused: number, density: Density): Script {
  return (asked, reply) => {
    const [filter] = Array.isArray(asked.params) ? asked.params : [];
    const holds = Number(filter?.fromBlock) <= refused && refused <= Number(filter?.toBlock);
    if (asked.method === "eth_getLogs" && holds)
      reply.error('{"code":-32005,"message":"query returned more than 10000 results"}');
    else node(density)(asked, reply);
  };
}

test("a range that is refused is charged for the parts that were sent, a provider's failure is not", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-hosted-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const hosted = { enabled: true, buckets: { public: { per_second: 1_000, burst: 1_000 } } };
  const busy: Density = () => 5;
  const logs = { max_parts: 200 };
  const { service, upstreams, logCalls } = await walk(
    t,
    busy,
    { data_dir: dataDir, hosted, logs },
    "public",
  );
  const { key } = (await manageAt(service.url)("", "POST", "/api/v1/agent/keys")).json;
  const leftCu = async (): Promise<number> =>
    (await service.get(`/api/v1/agent/keys/${key}`)).json.balance_cu;
  const post = async (from: number, to: number) => {
    const [cu, calls] = [await leftCu(), logCalls()];
    const response = await fetch(`${service.url}/rpc/k/${key}/1`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(getLogs(from, to)),
    });
    const text = await response.text().catch(() => null);
    return {
      error: text === null ? "cut" : JSON.parse(text).error.data,
      headerCu: response.headers.get("x-svc-cu"),
      cu: cu - (await leftCu()),
      calls: logCalls() - calls,
    };
  };
  for (const upstream of upstreams) upstream.script(refusingAt(4_000, busy));

  // 39 of 40 parts are delivered before the answer is cut: they are not free.
  const cut = await post(1, 4_000);
  assert.deepEqual([cut.error, cut.headerCu, cut.cu], ["cut", "600", 600]);
  assert.ok(cut.calls <= 2 * 200 + 8, `${cut.calls} calls`);

  // What is known of the filter now refuses the next one at once, with the size, free of charge.
  const { error, ...again } = await post(3_401, 4_000);
  assert.deepEqual([error.code, error.max_blocks], ["log_range_limit", 2]);
  assert.deepEqual(again, { headerCu: "90", cu: 0, calls: 0 });

  for (const upstream of upstreams)
    upstream.script((asked, reply) => {
      if (asked.method === "eth_getLogs") reply.reset();
      else node(busy)(asked, reply);
    });
  const failed = await post(1, 90);
  assert.deepEqual([failed.error.code, failed.cu], ["unavailable", 0]);
});

test("an account key is told the cost of a call that costs more than its plain price", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-hosted-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const { service } = await walk(
    t,
    some,
    { data_dir: dataDir, hosted: { enabled: true } },
    "public",
  );
  const { key } = (await manageAt(service.url)("", "POST", "/api/v1/keys", { name: "logs" })).json;
  const costOf = async (body: unknown) => {
    const { headers } = await service.post(`/rpc/k/${key}/1`, body);
    return [headers.get("x-svc-cu"), headers.get("x-svc-usd")];
  };
  assert.deepEqual(await costOf(getLogs(1, 50)), [null, null]);
  assert.deepEqual(await costOf(getLogs(1, 300)), ["45", null]);
  assert.deepEqual(await costOf([getLogs(1, 300), getLogs(5, 80, 2)]), ["60", null]);
});

test("over real nodes a range in parts is what one of them answers", async (t) => {
  const devnet = await startDevnet({ nodes: 3, onProgress: () => {} });
  const providers = devnet.providers.map(({ id, url }) => ({
    id,
    url,
    archival: true,
    capabilities: { limits: { max_block_range: 4 } },
  }));
  const service = await startService(
    JSON.stringify({
      server: { port: 0 },
      chains: { local: { chain_id: 31_337, block_time_ms: 12_000 } },
      profiles: {
        team: { chains: { local: { monitoring: { probe_interval_ms: 500 }, providers } } },
      },
      deadlines: PATIENT,
    }),
  );
  t.after(() => Promise.all([service.close(), devnet.close()]));
  await sameHeight(devnet, service);
  const [first] = devnet.providers;
  assert.ok(first !== undefined);
  const chain = localChain(first.url);
  const transport = http(first.url);
  const reader = createPublicClient({ chain, transport, pollingInterval: 50 });
  const wallet = createWalletClient({ chain, transport, account: ALICE });
  const mined = async (hash: Hex) =>
    until("the receipt", () => reader.waitForTransactionReceipt({ hash }).catch(() => null));
  const { contractAddress } = await mined(
    await wallet.deployContract({ abi: [], bytecode: PING_BYTECODE, ...FEES }),
  );
  assert.ok(contractAddress !== null && contractAddress !== undefined);
  for (let sent = 0; sent < 24; sent++)
    await mined(await wallet.sendTransaction({ to: contractAddress, ...FEES }));
  await sameHeight(devnet, service);
  const ask = { ...getLogs(0, "latest"), params: [{ fromBlock: "0x0", toBlock: "latest" }] };
  const direct = await fetch(first.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(ask),
  });
  const { result } = JSON.parse(await direct.text());
  assert.ok(result.length >= 24);
  const { json } = await service.post("/rpc/local", ask);
  assert.deepEqual(json.result, result);
  const { text } = await service.get("/metrics");
  assert.match(text, /^svc_split_calls_total\{outcome="answered"\} 1$/m);
});
