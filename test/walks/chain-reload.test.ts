// Chains that come, change and go with a reload: calls of the others are not lost, their sockets
// stay open, and nothing of a chain that has gone is served.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { startProcess } from "../fakes/process.ts";
import { configOf, configText, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";
import { openCaller } from "../fakes/worker-load.ts";
import { call, open } from "../web/socket/socket-fixture.ts";

const TOKEN = "operator-of-chains-that-change-0123456789";
const BASE = { chain_id: 8453, block_time_ms: 2_000 };

interface Nodes {
  readonly ethereum: ScriptedUpstream;
  readonly base: ScriptedUpstream;
}

async function startNodes(t: TestContext): Promise<Nodes> {
  const [ethereum, base] = [await scriptedUpstream(), await scriptedUpstream()];
  base.probesSay({ chainId: 8453, height: 100 });
  base.script((_, reply) => reply.result('"0xba5e"'));
  t.after(() => Promise.all([ethereum.close(), base.close()]));
  return { ethereum, base };
}

/** A configuration of ethereum and, with these settings, of base. */
function textOf(
  nodes: Nodes,
  base: Readonly<Record<string, unknown>> | null,
  extra: Readonly<Record<string, unknown>> = {},
  name = "base",
): string {
  const sets = { ethereum: { providers: [{ id: "a", url: nodes.ethereum.url }] } };
  const more = base === null ? {} : { [name]: { providers: [{ id: "b", url: nodes.base.url }] } };
  return configText([], {
    chains: {
      ethereum: { chain_id: 1, block_time_ms: 12_000 },
      ...(base === null ? {} : { [name]: base }),
    },
    profiles: { public: { chains: { ...sets, ...more } } },
    ...extra,
  });
}

test(
  "a chain is added, changed and removed under load: no call of another one is lost, and its " +
    "sockets stay",
  async (t) => {
    const nodes = await startNodes(t);
    const service = await startService(textOf(nodes, null));
    t.after(() => service.close());
    const ask = async (chain: string) => (await service.post(`/rpc/${chain}`, call(1))).json;
    const chainNames = async (): Promise<readonly string[]> =>
      (await service.get("/api/chains")).json.chains.map(
        (chain: { readonly name: string }) => chain.name,
      );
    const metrics = async (): Promise<string> => (await service.get("/metrics")).text;
    let isRunning = true;
    const loops = Array.from({ length: 12 }, async () => {
      let answered = 0;
      for (; isRunning; answered++) assert.equal((await ask("1")).result, "0x1");
      return answered;
    });
    const other = await open(t, service.port, "/ws/rpc/1");
    for (let round = 0; round < 5; round++) {
      assert.equal((await ask("base")).error.data.code, "unknown_chain");
      assert.equal(service.app.reload(configOf(textOf(nodes, BASE))), null);
      for (const name of ["base", "8453"]) assert.equal((await ask(name)).result, "0xba5e");
      assert.equal((await ask("basis")).error.data.code, "unknown_chain");
      assert.match(await metrics(), /chain="base"/);
      const changed = { ...BASE, name: "Base, renamed", aliases: ["basis"], cache: "off" };
      assert.equal(service.app.reload(configOf(textOf(nodes, changed))), null);
      for (const name of ["basis", "base"]) assert.equal((await ask(name)).result, "0xba5e");
      assert.deepEqual(await chainNames(), ["Ethereum Mainnet", "Base, renamed"]);
      const client = await open(t, service.port, "/ws/rpc/base");
      client.send(call(1));
      assert.equal((await client.next()).result, "0xba5e");
      assert.equal(service.app.reload(configOf(textOf(nodes, null))), null);
      assert.deepEqual((await client.closed)[0], 1001);
      assert.deepEqual(await chainNames(), ["Ethereum Mainnet"]);
      assert.doesNotMatch(await metrics(), /chain="base"/);
    }
    isRunning = false;
    for (const answered of await Promise.all(loops)) assert.ok(answered > 0);
    other.send(call(1));
    assert.equal((await other.next()).result, "0x1");
    await until("the end of its connections", () => nodes.base.connections() === 0);
  },
);

test("a call that is under way when its chain goes is answered", async (t) => {
  const nodes = await startNodes(t);
  const service = await startService(textOf(nodes, BASE));
  t.after(() => service.close());
  let answer = (): void => {};
  nodes.base.script((_, reply) => {
    answer = () => reply.result('"0xba5e"');
  });
  const slow = service.post("/rpc/base", call(1));
  await until("the call", () => nodes.base.asked.length === 1);
  assert.equal(service.app.reload(configOf(textOf(nodes, null))), null);
  answer();
  assert.equal((await slow).json.result, "0xba5e");
});

test("filters of a chain that goes end, also where it comes again", async (t) => {
  const nodes = await startNodes(t);
  nodes.base.script(({ method }, reply) =>
    reply.result(method === "eth_getBlockByNumber" ? BLOCK : '"0xba5e"'),
  );
  const service = await startService(textOf(nodes, BASE));
  t.after(() => service.close());
  const created = await service.post("/rpc/base", call(1, "eth_newBlockFilter"));
  assert.match(created.json.result, /^0x/);
  const poll = async () =>
    (await service.post("/rpc/base", call(2, "eth_getFilterChanges", [created.json.result]))).json;
  assert.deepEqual((await poll()).result, []);
  assert.equal(service.app.reload(configOf(textOf(nodes, null))), null);
  assert.equal((await poll()).error.data.code, "unknown_chain");
  assert.equal(service.app.reload(configOf(textOf(nodes, BASE))), null);
  assert.equal((await poll()).error.message, "filter not found");
});

const BLOCK = JSON.stringify({
  number: "0x64",
  hash: `0x${"11".repeat(32)}`,
  parentHash: `0x${"22".repeat(32)}`,
  logsBloom: `0x${"00".repeat(256)}`,
  timestamp: "0x1",
});

test("a name does not stand for another chain, also where its chain has gone", async (t) => {
  const nodes = await startNodes(t);
  const service = await startService(textOf(nodes, BASE));
  t.after(() => service.close());
  const other = configOf(textOf(nodes, { chain_id: 10 }));
  assert.match(service.app.reload(other) ?? "", /base had the id 8453 before, and has 10 now/);
  assert.equal((await service.post("/rpc/base", call(1))).json.result, "0xba5e");
  assert.equal(service.app.reload(configOf(textOf(nodes, null))), null);
  assert.match(service.app.reload(other) ?? "", /base had the id 8453/);
  assert.equal(service.app.reload(configOf(textOf(nodes, BASE, {}, "base-2"))), null);
  assert.equal((await service.post("/rpc/base-2", call(1))).json.result, "0xba5e");
});

test("two workers follow a signal and the operator's API", async (t) => {
  const nodes = await startNodes(t);
  const extra = { server: { port: 0, workers: 2, operator_token: TOKEN } };
  const service = await startProcess(t, textOf(nodes, null, extra));
  const port = Number(new URL(service.url).port);
  /** The refusals or results of both workers. */
  const answers = async (): Promise<ReadonlySet<string>> => {
    const workers = new Set<string | null>();
    const statuses = new Set<string>();
    nodes.base.script((_, reply) => reply.result('"0x1"'));
    await until("answers of both workers", async () => {
      const caller = openCaller(t, port, "/rpc/8453");
      await caller.call();
      workers.add(caller.worker);
      statuses.add(caller.status.split(" ")[1] ?? "");
      return workers.size === 2;
    });
    return statuses;
  };
  const others = Array.from({ length: 8 }, () => openCaller(t, port));
  let isRunning = true;
  const loops = others.map(async (caller) => {
    while (isRunning) assert.ok(await caller.call(), "a call of another chain is lost");
  });
  assert.deepEqual([...(await answers())], ["400"]);
  await writeFile(service.file, textOf(nodes, BASE, extra));
  service.signal("SIGHUP");
  await until("the reload", () => service.log().includes("configuration reloaded"));
  assert.deepEqual([...(await answers())], ["200"]);
  await writeFile(service.file, textOf(nodes, null, extra));
  const reload = await fetch(`${service.url}/api/v1/operator/reload`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
  });
  assert.equal(JSON.parse(await reload.text()).reloaded, true);
  assert.deepEqual([...(await answers())], ["400"]);
  await writeFile(service.file, textOf(nodes, { chain_id: 10 }, extra));
  service.signal("SIGHUP");
  await until("the refusal", () => service.log().includes("configuration not reloaded"));
  assert.deepEqual([...(await answers())], ["400"]);
  isRunning = false;
  await Promise.all(loops);
});
