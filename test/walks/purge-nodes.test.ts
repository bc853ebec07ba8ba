// Removing kept answers at one of two nodes, each a process of its own, over one PostgreSQL
// database and, where there is one, a Redis server that both keep answers on.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newDatabase, postgresAvailability } from "../fakes/postgres.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { startRedis, WITHOUT_REDIS } from "../fakes/redis-server.ts";
import { until } from "../fakes/service-fixture.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const postgres = postgresAvailability();
const skip = postgres.kind === "no" && postgres.reason;
const OPERATOR = "operator-of-two-nodes-0123456789-0123456789";
const HASHES = `"hash":"0x${"a".repeat(64)}","parentHash":"0x${"b".repeat(64)}"`;

/** A provider whose newest block is 100 and final; what it tells of balances can be changed. */
async function provider(t: TestContext) {
  const told = { balance: '"0xbad"' };
  const upstream = await scriptedUpstream((asked, reply) => {
    if (asked.method === "eth_chainId") return reply.result('"0x1"');
    if (asked.method === "eth_blockNumber") return reply.result('"0x64"');
    if (asked.method === "eth_getBalance") return reply.result(told.balance);
    return reply.result(`{"number":"0x64",${HASHES}}`);
  });
  upstream.probesSay(null);
  t.after(() => upstream.close());
  return { told, url: upstream.url };
}

interface Shared {
  readonly dataDir: string;
  readonly database: string;
  readonly provider: string;
  /** Null = answers are kept in memory alone. */
  readonly redis: string | null;
}

function startNode(t: TestContext, id: string, shared: Shared): Promise<ServiceProcess> {
  const { dataDir, database, provider: url, redis } = shared;
  const profile = { chains: { ethereum: { providers: [{ id: "p0", url }] } } };
  return startProcess(
    t,
    JSON.stringify({
      data_dir: join(dataDir, id),
      storage: { url: database },
      cluster: { enabled: true, node_id: id, region: "eu" },
      cache: redis === null ? {} : { redis_url: redis },
      chains: { ethereum: { chain_id: 1, name: "Ethereum", block_time_ms: 12_000 } },
      profiles: { premium: profile, public: profile },
      hosted: { enabled: true, operator_token: OPERATOR },
    }),
  );
}

/** A node, and the key with which it is asked. */
interface Node {
  readonly url: string;
  readonly key: string;
}

/** Creates a key at one of some nodes, with which all of them are asked. */
async function withKey(processes: readonly ServiceProcess[]): Promise<readonly Node[]> {
  const created = await fetch(`${processes[0]?.url}/api/v1/agent/keys`, { method: "POST" });
  const { key }: { key: string } = JSON.parse(await created.text());
  return processes.map(({ url }) => ({ url, key }));
}

/** The balance of an address at a final block, and whether it was kept. */
async function balanceAt({ url, key }: Node, address: number) {
  const params = [`0x${address.toString(16).padStart(40, "0")}`, "0x10"];
  const answer = await fetch(`${url}/rpc/k/${key}/ethereum`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBalance", params }),
  });
  const { result }: { result?: unknown } = JSON.parse(await answer.text());
  return { result, use: answer.headers.get("x-svc-cache") };
}

async function stored({ url }: Node): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = /^svc_cache_redis_writes_total\{result="stored"[^}]*\} (\d+)$/m.exec(text);
  return Number(line?.[1] ?? 0);
}

/** Asks until the node keeps what it is told, which it does once it knows what is final. */
async function keep(node: Node, address: number, redis: string | null): Promise<void> {
  await until("the answer is kept", async () => (await balanceAt(node, address)).use === "hit");
  if (redis === null) return;
  let further = address * 1_000;
  await until("answers are stored in the second tier", async () => {
    await balanceAt(node, ++further);
    return (await stored(node)) > 0;
  });
}

test("what a node has kept goes when the operator removes it at another node", {
  skip,
}, async (t) => {
  const [upstream, database] = await Promise.all([provider(t), newDatabase()]);
  t.after(() => database.drop());
  const tier = WITHOUT_REDIS === false ? await startRedis() : null;
  if (tier !== null) t.after(() => tier.stop());
  const redis = tier?.url ?? null;
  const dataDir = mkdtempSync(join(tmpdir(), "svc-purge-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const shared = { dataDir, database: database.url, provider: upstream.url, redis };
  const nodes = await withKey(await Promise.all(["a", "b"].map((id) => startNode(t, id, shared))));
  const [first, second] = nodes;
  assert.ok(first !== undefined && second !== undefined);
  await Promise.all([keep(first, 1, redis), keep(second, 1, redis)]);

  upstream.told.balance = '"0x7"';
  for (const node of nodes) assert.equal((await balanceAt(node, 1)).result, "0xbad");
  const startedAtMs = performance.now();
  const purged = await fetch(`${first.url}/api/v1/operator/cache?chain=ethereum&provider=p0`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${OPERATOR}` },
  });
  assert.equal(purged.status, 200, await purged.text());
  assert.deepEqual(await balanceAt(first, 1), { result: "0x7", use: "miss" });
  await until("the other node has removed it as well", async () => {
    const { result } = await balanceAt(second, 1);
    return result === "0x7";
  });
  t.diagnostic(`after ${Math.round(performance.now() - startedAtMs)} ms`);
  // Nor does it come back, from the memory of a node or from what both share.
  await until("both have kept it", async () => {
    const answers = await Promise.all(nodes.map((node) => balanceAt(node, 1)));
    assert.deepEqual([answers[0]?.result, answers[1]?.result], ["0x7", "0x7"]);
    return answers.every(({ use }) => use === "hit");
  });
});
