// Filters of a service of three nodes, each a real process, over one PostgreSQL database: polled at
// any node, through the death and the drain of the one that keeps them.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Client } from "pg";
import { type ClusterNode, clusterFixture } from "../fakes/cluster-fixture.ts";
import { newDatabase, postgresAvailability } from "../fakes/postgres.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { startNodes } from "../fakes/socket-fixture.ts";
import { childrenOf, isAlive } from "../fakes/worker-load.ts";
import { call as message } from "../web/socket/socket-fixture.ts";

const postgres = postgresAvailability();
const skip = postgres.kind === "no" && postgres.reason;

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
type Json = any;

interface Site extends Awaited<ReturnType<typeof startNodes>> {
  readonly databaseUrl: string;
  /** Nodes that run. */
  readonly running: ServiceProcess[];
  /** Starts another node. */
  start(): Promise<ServiceProcess>;
  /** Sends one call to a node. */
  call(node: ServiceProcess, method: string, ...params: readonly unknown[]): Promise<Json>;
  /** The rows of filters. */
  rows(): Promise<readonly Json[]>;
}

async function createSite(t: TestContext, count: number, workers = 1): Promise<Site> {
  const { url: databaseUrl, drop } = await newDatabase();
  const database = new Client({ connectionString: databaseUrl });
  await database.connect();
  t.after(async () => {
    await database.end();
    await drop();
  });
  const started = await startNodes(["both", "both"]);
  t.after(() => Promise.all(started.nodes.flatMap(({ ws, http }) => [ws.close(), http.close()])));
  const running: ServiceProcess[] = [];
  const start = async (): Promise<ServiceProcess> => {
    const dataDir = mkdtempSync(join(tmpdir(), "svc-filters-"));
    t.after(() => rmSync(dataDir, { recursive: true, force: true }));
    const text = configText(
      started.nodes.map(({ id, ws, http }, n) => ({
        id,
        url: http.url,
        ws_url: ws.url,
        priority: n + 1,
      })),
      {
        server: { port: 0, ...(workers === 1 ? {} : { workers }) },
        data_dir: dataDir,
        storage: { url: databaseUrl },
        cluster: { enabled: true },
        chains: { ethereum: { chain_id: 1, block_time_ms: 400 } },
      },
    );
    const node = await startProcess(t, text);
    running.push(node);
    return node;
  };
  await Promise.all(Array.from({ length: count }, start));
  let id = 0;
  return {
    ...started,
    databaseUrl,
    running,
    start,
    async call(node, method, ...params) {
      const { text } = await node.post("/rpc/priority/1", message(++id, method, params));
      return JSON.parse(text);
    },
    rows: async () => (await database.query("select * from filter")).rows,
  };
}

/** A caller that polls one filter, at the nodes in turn. */
class Caller {
  readonly told: Json[] = [];
  readonly #site: Site;
  readonly #id: string;
  #turn = 0;

  constructor(site: Site, id: string) {
    this.#site = site;
    this.#id = id;
  }

  async poll(node = this.#next()): Promise<Json[]> {
    // A node that is slow to note that it has answered is waited for two seconds only.
    await settled(this.#site);
    const answer = await this.#site
      .call(node, "eth_getFilterChanges", this.#id)
      .catch((error: Error) => (error.message === "fetch failed" ? null : Promise.reject(error)));
    // A connection of a worker that was killed while it was idle.
    if (answer === null) return [];
    const { result, error } = answer;
    // A node that goes on with a filter may find no provider at once on a busy machine.
    if (error?.code === -32002) return [];
    assert.ok(Array.isArray(result), JSON.stringify(error));
    this.told.push(...result);
    return result;
  }

  /** Polls until so much has been told in all. */
  async pollUntil(count: number): Promise<void> {
    await until(`${count} changes`, async () => {
      await this.poll();
      return this.told.length >= count;
    });
  }

  #next(): ServiceProcess {
    const { running } = this.#site;
    const node = running[this.#turn++ % running.length];
    assert.ok(node !== undefined);
    return node;
  }
}

async function create(site: Site, method: string, ...params: readonly unknown[]): Promise<string> {
  const [first] = site.running;
  assert.ok(first !== undefined);
  const { result, error } = await site.call(first, method, ...params);
  assert.match(String(result), /^0x[1-9a-f][0-9a-f]{33}$/, JSON.stringify(error));
  return result;
}

/** Waits until every answer is known to be written. */
async function settled(site: Site): Promise<void> {
  await until("no answer is on its way", async () =>
    (await site.rows()).every(({ answering }) => answering === "0"),
  );
}

test("blocks and logs are told once, whichever nodes are polled, killed and drained", {
  skip,
}, async (t) => {
  const site = await createSite(t, 3);
  const { chain, mine, running } = site;
  mine();
  const blocks = new Caller(site, await create(site, "eth_newBlockFilter"));
  const logs = new Caller(site, await create(site, "eth_newFilter", {}));
  const began = chain.tip();
  const due = () => {
    const { come } = chain.walk(began, chain.tip());
    return {
      hashes: come.map(({ hash }) => hash),
      logs: come.flatMap(({ hash, logs: own }) => own.map(({ index }) => `${hash} ${index}`)),
    };
  };
  const walk = async (): Promise<void> => {
    for (let n = 0; n < 6; n++) {
      mine();
      await blocks.poll();
      await logs.poll();
    }
    await blocks.pollUntil(due().hashes.length);
    await logs.pollUntil(due().logs.length);
    await settled(site);
  };
  await walk();
  const keeper = async (): Promise<ServiceProcess> => {
    const owners = new Set((await site.rows()).map(({ node_id }) => node_id));
    const found = running.find(({ log }) =>
      [...owners].some((id) => log().includes(`"node":"${id}"`)),
    );
    assert.ok(found !== undefined, "a node keeps them");
    return found;
  };
  const killed = await keeper();
  killed.signal("SIGKILL");
  await killed.ended;
  running.splice(running.indexOf(killed), 1);
  await walk();
  // What is unread when a node drains is told by another.
  const drained = await keeper();
  mine();
  mine();
  drained.signal("SIGTERM");
  assert.equal(await drained.ended, 0);
  running.splice(running.indexOf(drained), 1);
  await walk();
  await site.start();
  await walk();
  assert.deepEqual(blocks.told, due().hashes);
  const shown = logs.told.map(({ blockHash, logIndex }) => `${blockHash} ${Number(logIndex)}`);
  assert.deepEqual(shown, due().logs);
  await reorganised(site, logs);
});

/** What one node told is taken back by the other, after a reorganisation. */
async function reorganised(site: Site, caller: Caller): Promise<void> {
  const { chain, nodes, running } = site;
  const before = chain.tip();
  const [one, other] = running;
  assert.ok(one !== undefined && other !== undefined && running.length === 2);
  const since = () => chain.walk(before, chain.tip()).come;
  const logsSince = () => since().flatMap(({ logs }) => logs);
  while (logsSince().length < 3) site.mine();
  caller.told.length = 0;
  await until("the other node keeps the filter", async () => {
    await caller.poll(other);
    return caller.told.length >= logsSince().length;
  });
  await settled(site);
  const old = logsSince();
  caller.told.length = 0;
  chain.reorg(since().length, 1);
  for (const node of nodes) node.follow();
  const fresh = logsSince();
  await until("all that was told is taken back, and the new logs told", async () => {
    await caller.poll(one);
    return caller.told.length >= old.length + fresh.length;
  });
  const removed = caller.told.filter((log) => log.removed === true);
  assert.deepEqual(
    [removed.length, caller.told.length - removed.length],
    [old.length, fresh.length],
  );
}

test("filters outlive the worker that keeps them, and are polled at all workers of two nodes", {
  skip,
}, async (t) => {
  const site = await createSite(t, 2, 2);
  const { chain, mine, running } = site;
  const blocks = new Caller(site, await create(site, "eth_newBlockFilter"));
  const began = chain.tip();
  const due = () => chain.walk(began, chain.tip()).come.map(({ hash }) => hash);
  const walk = async (): Promise<void> => {
    for (let n = 0; n < 8; n++) {
      mine();
      await blocks.poll();
    }
    await blocks.pollUntil(due().length);
    await settled(site);
  };
  await walk();
  const [first] = running;
  assert.ok(first !== undefined);
  const workers = childrenOf(first.pid);
  for (const pid of workers) {
    process.kill(pid, "SIGKILL");
    await until("its end", () => !isAlive(pid));
    await walk();
  }
  assert.deepEqual(blocks.told, due());
});

/** Sends one call with a key to a node. */
async function callAt(
  { service }: ClusterNode,
  key: string,
  method: string,
  ...params: readonly unknown[]
): Promise<Json> {
  return (await service.post(`/rpc/k/${key}/ethereum`, message(1, method, params))).json;
}

test("a filter belongs to its key at every node, is ended at any, and is not lost with the database", {
  skip,
}, async (t) => {
  const { nodes, url, upstream } = await clusterFixture(t, 2);
  const [first, second] = nodes;
  assert.ok(first !== undefined && second !== undefined);
  const [node] = (await startNodes(["http"])).nodes;
  assert.ok(node !== undefined);
  t.after(() => Promise.all([node.ws.close(), node.http.close()]));
  upstream.script((asked, reply) =>
    asked.method === "eth_getLogs" ? reply.result("[]") : node.saneHttp(asked, reply),
  );
  const newKey = async (): Promise<string> =>
    (await first.manage("", "POST", "/api/v1/agent/keys")).json.key;
  const [key, other] = [await newKey(), await newKey()];
  const database = new Client({ connectionString: url });
  await database.connect();
  try {
    const { result: id } = await callAt(first, key, "eth_newFilter", {});
    assert.match(id, /^0x/);
    const notFound = { code: -32000, message: "filter not found" };
    const { error } = await callAt(second, other, "eth_getFilterChanges", id);
    assert.deepEqual([error.code, error.message], [notFound.code, notFound.message]);
    assert.deepEqual((await callAt(second, other, "eth_uninstallFilter", id)).result, false);
    assert.deepEqual((await callAt(second, key, "eth_getFilterChanges", id)).result, []);
    assert.deepEqual((await callAt(first, key, "eth_getFilterLogs", id)).result, []);
    const { rows } = await database.query("select * from filter");
    assert.equal(rows[0]?.node_id, "n2");
    assert.ok(!JSON.stringify(rows).includes(key), "no key is recorded");
    assert.deepEqual((await callAt(first, key, "eth_uninstallFilter", id)).result, true);
    assert.deepEqual((await callAt(first, key, "eth_uninstallFilter", id)).result, false);
    await until("the node that kept it has heard", async () => {
      const answer = await callAt(second, key, "eth_getFilterChanges", id);
      return answer.error?.message === notFound.message;
    });
    const { result: kept } = await callAt(first, key, "eth_newBlockFilter");
    second.proxy.cut();
    const away = await callAt(second, key, "eth_getFilterChanges", kept);
    assert.deepEqual([away.error.code, away.error.data.retryable], [-32002, true]);
    assert.equal((await callAt(second, key, "eth_uninstallFilter", kept)).error.code, -32002);
    first.proxy.cut();
    assert.deepEqual((await callAt(first, key, "eth_getFilterChanges", kept)).result, []);
    first.proxy.mend();
    second.proxy.mend();
    await until("it goes on at the other node", async () => {
      const { result } = await callAt(second, key, "eth_getFilterChanges", kept);
      return Array.isArray(result);
    });
    await database.query("update filter set polled_at = 0, claim = claim + 1");
    const expired = await callAt(first, key, "eth_getFilterLogs", kept);
    assert.equal(expired.error.message, notFound.message);
  } finally {
    await database.end();
  }
});
