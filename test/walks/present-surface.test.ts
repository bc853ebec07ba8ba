// Names that are refused unless the configuration allows them, the errors of EIP-7966, and what one
// refusal says of the other things that a provider keeps.
import assert from "node:assert/strict";
import { test } from "node:test";
import { configText, startService } from "../fakes/service.ts";
import { healthOf, serviceFixture, walked } from "../fakes/service-fixture.ts";
import { type Script, scriptedUpstream } from "../fakes/upstream.ts";

test("methods for operators of nodes reach nobody, unless the configuration allows the name", async (t) => {
  const methods = { admin_peers: { kind: "read" }, anvil_mine: { kind: "write" } };
  const { call, upstreams } = await serviceFixture(t, [undefined], { extra: { methods } });
  for (const method of [
    "admin_addPeer",
    "engine_getPayloadV4",
    "debug_setHead",
    "debug_dumpBlock",
    "eth_submitWork",
    "wallet_getPermissions",
    "evm_mine",
    "anvil_setBalance",
  ]) {
    const { status, json } = await call(method);
    const { code, data } = json.error;
    assert.deepEqual([status, code, data.code], [200, -32601, "method_blocked"], method);
  }
  assert.deepEqual(upstreams[0]?.asked, []);
  for (const method of Object.keys(methods)) assert.equal((await call(method)).json.result, "0x1");
  assert.equal(upstreams[0]?.asked.length, 2);
});

test("what changes a development node is served where the chain is one, and nothing else", async (t) => {
  const upstream = await scriptedUpstream();
  upstream.probesSay({ chainId: 1_337, height: 100 });
  const providers = [{ id: "a", url: upstream.url }];
  const service = await startService(
    configText([], {
      chains: { dev: { chain_id: 1_337, block_time_ms: 1_000 } },
      profiles: { team: { chains: { dev: { providers } } } },
    }),
  );
  t.after(() => Promise.all([service.close(), upstream.close()]));
  const ask = (method: string) =>
    service.post("/rpc/1337", { jsonrpc: "2.0", id: 1, method, params: [] });
  assert.equal((await ask("evm_mine")).json.result, "0x1");
  assert.equal((await ask("tenderly_setBalance")).json.result, "0x1");
  assert.equal((await ask("admin_peers")).json.error.data.code, "method_blocked");
});

test("what changes one of several development nodes is refused, and what only reads is served", async (t) => {
  const upstreams = await Promise.all([scriptedUpstream(), scriptedUpstream()]);
  for (const upstream of upstreams) upstream.probesSay({ chainId: 31_337, height: 100 });
  const providers = upstreams.map(({ url }, n) => ({ id: `p${n}`, url }));
  const service = await startService(
    configText([], {
      chains: { dev: { chain_id: 31_337, block_time_ms: 1_000 } },
      profiles: { team: { chains: { dev: { providers } } } },
    }),
  );
  t.after(() => Promise.all([service.close(), ...upstreams.map((upstream) => upstream.close())]));
  const ask = (method: string, path = "/rpc/dev") =>
    service.post(path, { jsonrpc: "2.0", id: 1, method, params: [] });
  for (const method of ["evm_mine", "anvil_setBalance", "hardhat_setCode", "evm_snapshot"])
    for (const path of ["/rpc/dev", "/rpc/provider/p1/dev"]) {
      const { data, message } = (await ask(method, path)).json.error;
      assert.equal(data.code, "method_blocked", method);
      assert.match(message, /one of the 2 nodes of this chain/);
      assert.match(data.next_action, /--devnet-nodes 1/);
    }
  assert.deepEqual(
    upstreams.flatMap(({ asked }) => asked),
    [],
  );
  for (const method of ["anvil_nodeInfo", "hardhat_metadata", "anvil_getAutomine"])
    assert.equal((await ask(method)).json.result, "0x1");
});

test("the errors of EIP-7966 are answers: nobody else is asked, and they count against nobody", async (t) => {
  const hash = `0x${"ab".repeat(32)}`;
  for (const code of [4, 5, 6]) {
    const error = `{"code":${code},"message":"rate limit exceeded","data":"${hash}"}`;
    const { call, service, upstreams } = await serviceFixture(t, [
      (_, reply) => reply.error(error),
      undefined,
    ]);
    for (let n = 0; n < 12; n++) {
      const answer = await call("eth_sendRawTransactionSync", [`0x02${"00".repeat(8)}`]);
      assert.equal(JSON.stringify(answer.json.error), error);
    }
    assert.equal(upstreams[1]?.asked.length, 0);
    const health = await healthOf(service, "a");
    assert.deepEqual(
      [health.circuit_breaker_state, health.rate_limited_for_ms],
      ["closed", 0],
      `${code}`,
    );
  }
});

test("a refused proof leaves an archive node its old state, traces and logs", async (t) => {
  const { call, service, upstreams } = await serviceFixture(
    t,
    [
      ({ method }, reply) =>
        method === "eth_getProof"
          ? reply.error('{"code":-32000,"message":"missing trie node: historical state is pruned"}')
          : reply.result(RESULTS.get(method) ?? "[]"),
      (_, reply) => reply.result('{"accountProof":[]}'),
    ],
    { providers: [{ archival: true }, { archival: true }], set: ARCHIVE },
  );
  await service.probed();
  const address = `0x${"11".repeat(20)}`;
  assert.equal(walked(await call("eth_getProof", [address, [], "0x1"])), "a:pruned b:ok");
  assert.equal(walked(await call("eth_getProof", [address, [], "0x1"])), "b:ok");
  for (const [method, params] of [
    ["eth_getBalance", [address, "0x1"]],
    ["debug_traceBlockByNumber", ["0x1"]],
    ["eth_getLogs", [{ fromBlock: "0x1", toBlock: "0x2" }]],
    ["eth_getBlockByNumber", ["0x1", false]],
  ] as const)
    assert.equal(walked(await call(method, params)), "a:ok", method);
  const { learned } = await healthOf(service, "a");
  assert.deepEqual([learned.pruned, learned.pruned_resources], [true, ["proofs"]]);
  assert.equal(upstreams[1]?.asked.length, 2);
});

test("a full node has old blocks and logs; logs of unknown age are asked of an archive first", async (t) => {
  const answers: Script = ({ method }, reply) => reply.result(RESULTS.get(method) ?? "[]");
  const { call, service } = await serviceFixture(t, [answers, answers], {
    providers: [{}, { archival: true }],
    set: ARCHIVE,
  });
  await service.probed();
  assert.equal(walked(await call("eth_getBlockByNumber", ["0x1", false])), "a:ok");
  assert.equal(walked(await call("eth_getBlockReceipts", ["0x1"])), "a:ok");
  assert.equal(walked(await call("eth_getBalance", [`0x${"11".repeat(20)}`, "0x1"])), "b:ok");
  const logs = [{ fromBlock: "0x1", toBlock: "0x2" }];
  assert.equal(walked(await call("eth_getLogs", logs)), "b:ok");
});

/** Results that are no list. */
const RESULTS = new Map([
  ["eth_getBlockReceipts", "[{}]"],
  ["eth_getBalance", '"0x1"'],
  ["eth_getBlockByNumber", "{}"],
]);
const ARCHIVE = { selection: { archival_threshold: 10 } };
