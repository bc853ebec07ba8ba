// A chain that no file names, over real sockets: the first call opens it at its public addresses,
// by HTTP and by WebSocket, in a batch and for a filter; what is not known opens nothing.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { fakeKnownChain, knownAmong } from "../fakes/known-chains.ts";
import { startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";
import { call, open } from "../web/socket/socket-fixture.ts";

const ID = 7_777_777;
const NAME = `chain-${ID}`;
const BLOCK = JSON.stringify({
  number: "0x64",
  hash: `0x${"11".repeat(32)}`,
  parentHash: `0x${"22".repeat(32)}`,
  logsBloom: `0x${"00".repeat(256)}`,
  timestamp: "0x1",
});

/** A service that opens any known chain, and two public addresses of one of them. */
async function fixture(t: TestContext, file: Readonly<Record<string, unknown>> = {}) {
  const [a, b] = [await scriptedUpstream(), await scriptedUpstream()];
  for (const node of [a, b]) {
    node.probesSay({ chainId: ID, height: 100 });
    node.script(({ method }, reply) =>
      reply.result(method === "eth_getBlockByNumber" ? BLOCK : '"0xa"'),
    );
  }
  const text = JSON.stringify({ server: { port: 0 }, chains: "all", ...file });
  const known = [
    fakeKnownChain(ID, [a.url, b.url]),
    fakeKnownChain(8_888_888, ["http://127.0.0.1:1/", "http://127.0.0.1:2/"]),
    fakeKnownChain(9_999_999, [a.url], { isShared: true }),
  ];
  const service = await startService(text, undefined, undefined, { knownChain: knownAmong(known) });
  t.after(() => Promise.all([service.close(), a.close(), b.close()]));
  const ask = (chain: string | number, body: unknown = call(1)) =>
    service.post(`/rpc/${chain}`, body);
  const chains = async (): Promise<readonly string[]> =>
    (await service.get("/api/chains")).json.chains.map(
      (chain: { readonly chain_name: string }) => chain.chain_name,
    );
  return { service, ask, chains, nodes: [a, b] as readonly ScriptedUpstream[] };
}

test("the first call to a known chain opens it, and is answered; nothing was asked before", async (t) => {
  const { service, ask, chains, nodes } = await fixture(t);
  assert.equal((await service.get("/api/ready")).status, 200);
  assert.deepEqual(await chains(), []);
  assert.equal(
    nodes.reduce((sum, node) => sum + node.probes(), 0),
    0,
  );
  const [first, second] = await Promise.all([ask(ID), ask(`Alias-${ID}`)]);
  assert.deepEqual([first.json.result, second.json.result], ["0xa", "0xa"]);
  assert.equal((await ask(NAME)).json.result, "0xa");
  assert.deepEqual(await chains(), [NAME]);
  const metrics = (await service.get("/metrics")).text;
  assert.match(metrics, new RegExp(`chain="${NAME}"`));
  assert.doesNotMatch(metrics, /chain-8888888/);
  assert.equal((await service.get("/api/ready")).status, 200);
  assert.match(service.log(), /chain opened on demand/);
});

test("batches, sockets, subscriptions and filters open a chain as well", async (t) => {
  const batch = await fixture(t);
  const answers = (await batch.ask(ID, [call(1), call(2)])).json;
  assert.deepEqual(
    answers.map((answer: { readonly result: string }) => answer.result),
    ["0xa", "0xa"],
  );
  const socket = await fixture(t);
  const client = await open(t, socket.service.port, `/ws/rpc/${ID}`);
  client.send(call(1));
  assert.equal((await client.next()).result, "0xa");
  client.send(call(2, "eth_subscribe", ["newHeads"]));
  assert.match((await client.next()).result, /^0x/);
  const filter = await fixture(t);
  const created = await filter.ask(ID, call(1, "eth_newBlockFilter"));
  assert.match(created.json.result, /^0x/);
  const polled = await filter.ask(ID, call(1, "eth_getFilterChanges", [created.json.result]));
  assert.deepEqual(polled.json.result, []);
});

test("a chain that nobody answers for is refused after two seconds, and others are served", async (t) => {
  const { ask, chains } = await fixture(t);
  const [silent, served] = await Promise.all([ask(8_888_888), ask(ID)]);
  assert.deepEqual([silent.status, silent.json.error.data.code], [503, "not_prepared"]);
  assert.ok(silent.headers.get("retry-after"));
  assert.equal(served.json.result, "0xa");
  assert.deepEqual([...(await chains())].sort(), [NAME, "chain-8888888"]);
});

test("what is not known, is shared by several networks, or is not to be opened is refused at once", async (t) => {
  const { service, ask, chains } = await fixture(t);
  for (const name of ["no-such-chain", "9999999", "chain-9999999", "x".repeat(3_000)])
    assert.equal((await ask(name)).json.error.data.code, "unknown_chain", name);
  assert.equal(
    (await service.post(`/rpc/profile/team/${ID}`, call(1))).json.error.data.code,
    "unknown_profile",
  );
  assert.deepEqual(await chains(), []);
  const named = await fixture(t, { chains: { ethereum: {} } });
  assert.equal((await named.ask(ID)).json.error.data.code, "unknown_chain");
});

test("one caller opens five chains a minute", async (t) => {
  const urls = ["http://127.0.0.1:1/"];
  const known = Array.from({ length: 8 }, (_, n) => fakeKnownChain(5_000_000 + n, urls));
  const text = JSON.stringify({ server: { port: 0 }, chains: "all" });
  const service = await startService(text, undefined, undefined, { knownChain: knownAmong(known) });
  t.after(() => service.close());
  const answers = await Promise.all(
    known.map(({ chainId }) => service.post(`/rpc/${chainId}`, call(1))),
  );
  const codes = answers.map(({ json }) => json.error.data.code);
  assert.equal(codes.filter((code) => code === "not_prepared").length, 5);
  assert.equal(codes.filter((code) => code === "rate_limit_exceeded").length, 3);
  await until("the warnings", () => service.log().split("no failover").length === 6);
});
