// What the workers of a service share, with real processes behind real sockets: probes and heads of
// providers, and filters that are polled on any connection.
import assert from "node:assert/strict";
import { request } from "node:http";
import { type TestContext, test } from "node:test";
import { ownerAmong } from "../../src/core/workers/rendezvous.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { startNodes } from "../fakes/socket-fixture.ts";
import { childrenOf, isAlive } from "../fakes/worker-load.ts";
import { call as message, open } from "../web/socket/socket-fixture.ts";

const WORKERS = 3;
const PROBE_MS = 500;

interface Answer {
  readonly worker: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  readonly json: any;
}

interface Fixture extends Awaited<ReturnType<typeof startNodes>> {
  readonly service: ServiceProcess;
  /** Sends one call on a connection of its own. */
  call(method: string, ...params: readonly unknown[]): Promise<Answer>;
}

/** Three workers before a node that pushes heads and one that is only probed. */
async function createFixture(t: TestContext): Promise<Fixture> {
  const started = await startNodes(["ws", "http"]);
  const [pushing, probed] = started.nodes;
  assert.ok(pushing && probed);
  t.after(() => Promise.all(started.nodes.flatMap(({ ws, http }) => [ws.close(), http.close()])));
  const text = configText(
    [
      { id: "a", ws_url: pushing.ws.url },
      { id: "b", url: probed.http.url },
    ],
    {
      server: { port: 0, workers: WORKERS },
      chains: { ethereum: { chain_id: 1, block_time_ms: 400 } },
    },
    { monitoring: { probe_interval_ms: PROBE_MS } },
  );
  const service = await startProcess(t, text);
  const call = (method: string, ...params: readonly unknown[]): Promise<Answer> =>
    callOnce(Number(new URL(service.url).port), method, params);
  const seen = new Set<string>();
  await until("calls at every worker", async () => {
    seen.add((await call("eth_chainId")).worker);
    return seen.size === WORKERS;
  });
  await until("one subscription to heads", () => pushing.ws.subscriptions("newHeads") === 1);
  return { ...started, service, call };
}

function callOnce(port: number, method: string, params: readonly unknown[]): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const path = "/rpc/priority/1";
    request({ port, path, method: "POST", headers, agent: false }, (answer) => {
      let body = "";
      answer.setEncoding("utf8");
      answer.on("data", (text: string) => {
        body += text;
      });
      answer.on("end", () => {
        const id = String(answer.headers["x-svc-request-id"]);
        const worker = /^req-[0-9a-z]+-(\d+)-[0-9a-z]+$/.exec(id)?.[1] ?? "";
        resolve({ worker, json: JSON.parse(body) });
      });
    })
      .on("error", reject)
      .end(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  });
}

test("three workers probe a provider as often as one, and listen to its heads once", async (t) => {
  const { nodes } = await createFixture(t);
  const [pushing, probed] = nodes;
  assert.ok(pushing && probed);
  const [before, sinceMs] = [probed.http.probes(), performance.now()];
  await until("eight probes", () => probed.http.probes() - before >= 16);
  // Two questions a probe; an interval may be a tenth shorter. A slow machine asks less often.
  const probes = (probed.http.probes() - before) / 2;
  const due = (performance.now() - sinceMs) / (0.9 * PROBE_MS);
  assert.ok(probes <= 1.3 * due + 2, `${probes} probes, ${due} due`);
  assert.equal(pushing.ws.subscriptions("newHeads"), 1);
});

test("when the worker that listens is killed, another one listens", async (t) => {
  const { nodes, service, call, mine } = await createFixture(t);
  const ws = nodes[0]?.ws;
  const listening = (): string | undefined =>
    ws
      ?.peers()
      .findIndex(({ subscriptions }) => subscriptions.size > 0)
      .toString();
  const [peer] = ws?.peers().filter(({ subscriptions }) => subscriptions.size > 0) ?? [];
  assert.ok(ws && peer, listening());
  for (const pid of childrenOf(service.pid)) {
    if (!ws.peers().includes(peer)) break;
    process.kill(pid, "SIGKILL");
    await until("its end", () => !isAlive(pid));
    await until("what became of its sockets", () => childrenOf(service.pid).length === WORKERS);
  }
  await until("the end of that connection", () => !ws.peers().includes(peer));
  await until("heads at another worker", () => ws.subscriptions("newHeads") === 1);
  const { number } = mine();
  await until("an answer", async () => {
    const { json } = await call("eth_blockNumber").catch(() => ({ json: {} }));
    return Number(json.result) >= number;
  });
});

test("a filter made on one connection is polled on others, at every worker", async (t) => {
  const { chain, call, mine } = await createFixture(t);
  const created = await call("eth_newBlockFilter");
  const id: unknown = created.json.result;
  assert.match(String(id), /^0x[1-9a-f][0-9a-f]{33}$/);
  const began = chain.tip();
  const told: string[] = [];
  const workers = new Set<string>();
  await until("polls at every worker", async () => {
    if (told.length < 40) mine();
    const { worker, json } = await call("eth_getFilterChanges", id);
    assert.ok(Array.isArray(json.result), JSON.stringify(json));
    told.push(...json.result);
    workers.add(worker);
    return workers.size === WORKERS && told.length > 3;
  });
  const due = chain.walk(began, chain.tip()).come.map(({ hash }) => hash);
  await until("the rest", async () => {
    told.push(...(await call("eth_getFilterChanges", id)).json.result);
    return told.length >= due.length;
  });
  assert.deepEqual(told, due);
  const ended = new Set<string>();
  await until("its end, told once", async () => {
    const { json } = await call("eth_uninstallFilter", id);
    ended.add(String(json.result));
    return ended.size === 2;
  });
  const { json } = await call("eth_getFilterChanges", id);
  assert.equal(json.error.message, "filter not found");
});

test("subscribers at all workers share one subscription at the provider, also past its worker's death", async (t) => {
  const { nodes, service, chain, mine } = await createFixture(t);
  const ws = nodes[0]?.ws;
  assert.ok(ws);
  const port = Number(new URL(service.url).port);
  // Enough connections that every worker has some, but for one in a million runs.
  const clients = await Promise.all(
    Array.from({ length: 40 }, () => open(t, port, "/ws/rpc/priority/1")),
  );
  const began = chain.tip();
  for (const client of clients) {
    client.send(message(1, "eth_subscribe", ["newHeads"]));
    client.send(message(2, "eth_subscribe", ["logs", {}]));
  }
  const told = (texts: readonly string[], what: "hash" | "logIndex"): readonly string[] =>
    texts
      .map((text) => JSON.parse(text).params?.result)
      .filter((result) => result !== undefined && "logIndex" in result === (what === "logIndex"))
      .map((result) => (what === "hash" ? result.hash : result.blockHash));
  await until("subscriptions of all", () =>
    clients.every(
      ({ texts }) => texts.filter((text) => JSON.parse(text).result !== undefined).length === 2,
    ),
  );
  assert.deepEqual([ws.subscriptions("newHeads"), ws.subscriptions("logs")], [1, 1]);
  const first = mine();
  for (let n = 0; n < 5; n++) mine();
  const dueFrom = (tip: typeof first): readonly string[] =>
    chain.walk(began, tip).come.map(({ hash }) => hash);
  const complete = (): boolean =>
    clients.every(
      ({ ws: { readyState }, texts }) =>
        readyState !== 1 || told(texts, "hash").at(-1) === chain.tip().hash,
    );
  await until("all heads at all", complete);
  // Processes are started in the order of their places.
  const owner = Number(ownerAmong(["1", "2", "3"], "team ethereum"));
  const victim = childrenOf(service.pid)[owner - 1];
  assert.ok(victim);
  process.kill(victim, "SIGKILL");
  await until("its end", () => !isAlive(victim));
  for (let n = 0; n < 5; n++) mine();
  await until("all heads at those that are left", complete);
  const left = clients.filter(({ ws: socket }) => socket.readyState === 1);
  assert.ok(left.length > 0, "some callers are at a worker that lives");
  for (const { texts } of left) {
    const heads = told(texts, "hash");
    const due = dueFrom(chain.tip());
    assert.deepEqual(heads, due.slice(due.length - heads.length));
    assert.ok(heads.length >= 10);
    const logs = new Set(told(texts, "logIndex"));
    const withLogs = chain.walk(first, chain.tip()).come.filter((block) => block.logs.length > 0);
    await until("their logs", () => {
      for (const hash of told(texts, "logIndex")) logs.add(hash);
      return withLogs.every(({ hash }) => logs.has(hash));
    });
  }
  await until("one subscription of each kind", () =>
    [ws.subscriptions("newHeads"), ws.subscriptions("logs")].every((count) => count === 1),
  );
});
