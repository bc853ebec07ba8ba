// Bundlers, log services, relays and providers with `methods:` behind a real service: who is asked
// for what, by callers and by probes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { configText, type Service, startService } from "../fakes/service.ts";
import { metaOf, serviceFixture, until, walked } from "../fakes/service-fixture.ts";
import { type Script, scriptedUpstream } from "../fakes/upstream.ts";

const METHOD_MISSING = '{"code":-32601,"message":"the method does not exist"}';
const USER_OPERATION = [{ sender: `0x${"11".repeat(20)}` }, `0x${"22".repeat(20)}`];
const LOGS = [{ fromBlock: "0x60", toBlock: "0x63" }];
const RAW = ["0x02aa"];
const LISTED = ["eth_getBalance"];

interface ShownProvider {
  readonly transports: readonly { readonly circuit_breaker_state: string }[];
}

/** Waits until every provider has answered a probe, whether it was asked for its height or not. */
async function probed(service: Service): Promise<void> {
  await until("probes", async () => {
    const { json } = await service.get("/api/metrics/1");
    const { providers } = json.profiles[0];
    const states: readonly string[] = providers.map(
      (each: ShownProvider) => each.transports[0]?.circuit_breaker_state,
    );
    return !states.includes("never_answered");
  });
}

/** Answers the methods it is there for, and refuses every other one, probes included. */
const only =
  (...methods: readonly string[]): Script =>
  ({ method }, reply) =>
    methods.includes(method) ? reply.result('"0x5"') : reply.error(METHOD_MISSING);

test("a bundler is asked for user operations before nodes, and for nothing else at all", async (t) => {
  const { service, upstreams, call } = await serviceFixture(
    t,
    [undefined, only("eth_sendUserOperation", "eth_supportedEntryPoints")],
    { providers: [{}, { kind: "bundler" }] },
  );
  const [node, bundler] = upstreams;
  bundler?.probesSay(null);
  await probed(service);
  assert.equal(walked(await call("eth_sendUserOperation", USER_OPERATION)), "b:ok");
  for (let n = 0; n < 5; n++)
    for (const method of ["eth_gasPrice", "eth_getBalance", "eth_getBlockByNumber"])
      await call(method, method === "eth_gasPrice" ? [] : [`0x${"33".repeat(20)}`, "latest"]);
  const evidence = metaOf(await call("eth_gasPrice"));
  assert.deepEqual(evidence["excluded"], [{ provider: "b", reason: "out_of_scope" }]);
  // It refuses its chain id: it is taken to be on its chain, and probed for nothing more.
  assert.deepEqual([...new Set(bundler?.asked.map(({ method }) => method))].sort(), [
    "eth_chainId",
    "eth_sendUserOperation",
  ]);
  assert.ok(!node?.asked.some(({ method }) => method === "eth_sendUserOperation"));
  const pinned = await service.post("/rpc/ethereum/b", {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_gasPrice",
    params: [],
  });
  assert.equal(pinned.json.error.data.code, "unavailable");
  assert.ok(!bundler?.asked.some(({ method }) => method === "eth_gasPrice"));
});

test("nodes take over for a bundler that fails, and the chain is not ready by a bundler alone", async (t) => {
  const { service, upstreams, call } = await serviceFixture(
    t,
    [undefined, (_, reply) => reply.body("", 503)],
    { providers: [{}, { kind: "bundler" }] },
  );
  await probed(service);
  assert.equal(
    walked(await call("eth_getUserOperationReceipt", [`0x${"44".repeat(32)}`])),
    "b:server a:ok",
  );
  await upstreams[0]?.close();
  // A closed bundler circuit must not keep calls from asking the node, whose circuit opens.
  for (let n = 0; n < 4; n++) await call("eth_gasPrice");
  const { attempts } = metaOf(await call("eth_gasPrice"));
  assert.deepEqual([...new Set(attempts.map(({ provider }) => provider))], ["a"]);
  const { json } = await service.get("/api/ready");
  assert.deepEqual([json.ready, json.chains[0].providers_usable], [false, 0]);
});

test("a log service is asked for logs before nodes, and takes part in blocks", async (t) => {
  const { service, upstreams, call } = await serviceFixture(
    t,
    [undefined, ({ method }, reply) => reply.result(method === "eth_getLogs" ? "[]" : '"0x1"')],
    { providers: [{}, { kind: "logs" }] },
  );
  await probed(service);
  assert.deepEqual(metaOf(await call("eth_getLogs", LOGS))["candidate_providers"], ["b", "a"]);
  assert.deepEqual(metaOf(await call("eth_getBlockReceipts", ["0x60"]))["candidate_providers"], [
    "a",
    "b",
  ]);
  assert.deepEqual(metaOf(await call("eth_gasPrice"))["candidate_providers"], ["a"]);
  assert.ok(!upstreams[1]?.asked.some(({ method }) => method === "eth_gasPrice"));
});

test("a relay is asked only where a call pins it", async (t) => {
  const { service, upstreams, call } = await serviceFixture(t, [undefined, undefined], {
    providers: [{}, { kind: "relay" }],
  });
  await probed(service);
  await call("eth_sendRawTransaction", RAW);
  assert.ok(!upstreams[1]?.asked.some(({ method }) => method === "eth_sendRawTransaction"));
  const pinned = await service.post("/rpc/ethereum/b", {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_sendRawTransaction",
    params: RAW,
  });
  assert.equal(pinned.json.result, "0x1");
  assert.equal(upstreams[1]?.asked.at(-1)?.method, "eth_sendRawTransaction");
});

test("a profile that uses relays hands transactions to nobody else, even if they fail", async (t) => {
  const [node, relay] = await Promise.all([
    scriptedUpstream(),
    scriptedUpstream((_, reply) => reply.body("", 503)),
  ]);
  const providers = [
    { id: "a", url: node.url },
    { id: "b", url: relay.url, kind: "relay" },
  ];
  const team = { transactions: "relays", chains: { ethereum: { providers } } };
  const service = await startService(configText([], { profiles: { team } }));
  t.after(() => Promise.all([service.close(), node.close(), relay.close()]));
  await probed(service);
  const call = (method: string, params: readonly unknown[] = []) =>
    service.post("/rpc/ethereum?include_meta=headers", { jsonrpc: "2.0", id: 1, method, params });
  const { attempts } = metaOf(await call("eth_sendRawTransaction", RAW));
  assert.deepEqual(
    attempts.map(({ provider }) => provider),
    ["b"],
  );
  assert.ok(!node.asked.some(({ method }) => method === "eth_sendRawTransaction"));
  assert.equal(walked(await call("eth_gasPrice")), "a:ok");
});

test("`methods` is an allow-list for callers and probes, and what it answers is not kept", async (t) => {
  const { service, upstreams, call } = await serviceFixture(t, [only("eth_getBalance")], {
    providers: [{ methods: LISTED }],
    extra: { cache: {} },
  });
  upstreams[0]?.probesSay(null);
  await until("a probe", () => (upstreams[0]?.asked.length ?? 0) > 0);
  const ask = () => call("eth_getBalance", [`0x${"55".repeat(20)}`, "0x10"]);
  for (let n = 0; n < 3; n++) assert.equal((await ask()).json.result, "0x5");
  const balances = upstreams[0]?.asked.filter(({ method }) => method === "eth_getBalance");
  assert.equal(balances?.length, 3, "each was asked of the provider: its head is not known");
  await call("eth_gasPrice");
  assert.deepEqual([...new Set(upstreams[0]?.asked.map(({ method }) => method))].sort(), [
    "eth_chainId",
    "eth_getBalance",
  ]);
  const { json } = await service.get("/api/ready");
  assert.equal(json.ready, true, "alone, it makes its chain usable");
});
