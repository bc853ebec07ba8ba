// What the caller is told when no provider gave a result: the best real error as it came, or an
// honest refusal; never a key, never a guess.
import assert from "node:assert/strict";
import { test } from "node:test";
import { healthOf, metaOf, serviceFixture, until, walked } from "../fakes/service-fixture.ts";
import type { Script } from "../fakes/upstream.ts";

const says =
  (error: string, status = 200): Script =>
  (_, reply) =>
    reply.error(error, status);
const fails: Script = (_, reply) => reply.body("", 500);

/** The bytes of the error member of an answer without evidence in its body. */
function errorOf(text: string): string {
  return /^\{"jsonrpc":"2\.0","id":[^,]+,"error":(.*)\}$/s.exec(text)?.[1] ?? text;
}

test("a deterministic error is the answer at once and its error member arrives byte for byte", async (t) => {
  const revert =
    '{ "data" : "0x08c379a0\\u0030", "n":12345678901234567890, "code": 3 ,"message":"execution ' +
    'reverted: \\ud800 \\u00e4" }';
  const { call, upstreams } = await serviceFixture(t, [says(revert), undefined]);
  const answer = await call("eth_call", [{}, "latest"]);
  assert.equal(errorOf(answer.text), revert);
  assert.equal(answer.status, 200);
  assert.equal(walked(answer), "a:revert");
  assert.equal(upstreams[1]?.asked.length, 0);
});

test(
  "of several failures the most informative real error is told, unchanged, and its provider is " +
    "named as the selected one",
  async (t) => {
    const informative =
      '{"message":"invalid argument 0: hex string too ' +
      'short","code":-32000,"data":{"z":1e3,"a":-0.0}}';
    const { call } = await serviceFixture(t, [
      says('{"code":-32000,"message":"something odd"}'),
      says('{"code":-32000,"message":"header not found"}'),
      fails,
    ]);
    const first = await call("eth_getBalance", ["0x1", "0x5"]);
    assert.equal(walked(first), "a:unknown b:block_missing c:server");
    assert.equal(errorOf(first.text), '{"code":-32000,"message":"header not found"}');
    assert.deepEqual(metaOf(first)["selected_provider"], { id: "b" });
    const { call: other } = await serviceFixture(t, [fails, says(informative), undefined]);
    const second = await other("eth_getBalance", ["0x1", "0x5"]);
    assert.equal(errorOf(second.text), informative);
  },
);

test("method-not-found is told only when every provider said so", async (t) => {
  const missing = '{"code":-32601,"message":"the method debug_x does not exist/is not available"}';
  const all = await serviceFixture(t, [says(missing), says(missing), says(missing)]);
  assert.equal(errorOf((await all.call("debug_getBadBlocks")).text), missing);
  const some = await serviceFixture(t, [says(missing), fails, says(missing)]);
  const { json } = await some.call("debug_getBadBlocks");
  assert.deepEqual(
    [json.error.code, json.error.data.code, json.error.data.upstream_attempts],
    [-32002, "unavailable", 3],
  );
  const better = await serviceFixture(t, [
    says(missing),
    says('{"code":-32000,"message":"header not found"}'),
    says(missing),
  ]);
  assert.equal((await better.call("debug_getBadBlocks")).json.error.message, "header not found");
});

test(
  "a log range that everybody refuses is log_range_limit with the provider's words; one that " +
    "somebody allows is answered and remembered",
  async (t) => {
    const refusal = '{"code":-32701,"message":"exceed maximum block range: 5"}';
    const filter = [{ fromBlock: "0x1", toBlock: "0x40" }];
    const { call } = await serviceFixture(t, [says(refusal), says(refusal)]);
    const answer = await call("eth_getLogs", filter);
    assert.equal(answer.status, 200);
    assert.equal(answer.json.error.code, -32005);
    assert.equal(answer.json.error.data.code, "log_range_limit");
    assert.equal(answer.json.error.data.retryable, false);
    assert.deepEqual(answer.json.error.data.provider_error, {
      code: -32701,
      message: "exceed maximum block range: 5",
    });
    const mixed = await serviceFixture(t, [says(refusal), (_, reply) => reply.result("[]")]);
    assert.equal(walked(await mixed.call("eth_getLogs", filter)), "a:block_range b:ok");
    const again = await mixed.call("eth_getLogs", filter);
    assert.deepEqual([walked(again), again.json.result], ["b:ok", []]);
  },
);

test(
  "when every circuit is open a call asks the least bad all the same, once per provider, and " +
    "the evidence says panic",
  async (t) => {
    const { call } = await serviceFixture(t, [undefined, undefined], {
      providers: [{ url: "http://127.0.0.1:1" }, { url: "http://127.0.0.1:1" }],
    });
    for (let n = 0; n < 3; n++) await call("eth_gasPrice");
    const answer = await call("eth_gasPrice");
    const { code, data } = answer.json.error;
    assert.deepEqual(
      [answer.status, code, data.code, data.upstream_attempts, data.retryable],
      [200, -32002, "unavailable", 2, true],
    );
    assert.ok(data.retry_after_ms >= 250 && data.retry_after_ms <= 1_000, `${data.retry_after_ms}`);
    assert.deepEqual(
      [metaOf(answer)["panic"], metaOf(answer)["candidate_providers"]],
      [true, ["a", "b"]],
    );
    const before = await call("eth_call", [{}, "latest"]);
    assert.equal(metaOf(before)["panic"], true);
  },
);

test(
  "when no attempt is possible the answer is unavailable: HTTP 200, -32002, no attempt, the " +
    "wait in header and data",
  async (t) => {
    const { service } = await serviceFixture(t, [undefined, undefined], {
      providers: [{ url: "http://127.0.0.1:1" }],
    });
    const path = "/rpc/provider/a/ethereum?include_meta=headers";
    const read = { jsonrpc: "2.0", id: 9, method: "eth_gasPrice" };
    for (let n = 0; n < 3; n++) await service.post(path, read);
    const answer = await service.post(path, read);
    const { code, data } = answer.json.error;
    assert.deepEqual(
      [answer.status, code, data.code, data.upstream_attempts, data.retryable],
      [200, -32002, "unavailable", 0, true],
    );
    assert.equal(data.reason, "circuit_open");
    assert.ok(
      data.retry_after_ms > 5_000 && data.retry_after_ms <= 31_500,
      `${data.retry_after_ms}`,
    );
    assert.equal(Number(answer.headers.get("retry-after")), Math.ceil(data.retry_after_ms / 1_000));
    const { attempts, excluded, selected_provider, panic } = metaOf(answer);
    assert.deepEqual([attempts, selected_provider, panic], [[], null, undefined]);
    assert.deepEqual(excluded, [{ provider: "a", reason: "circuit_open" }]);
    assert.equal(
      (await service.post("/rpc/priority/ethereum", read)).json.result,
      "0x1",
      "without the pin there is another",
    );
  },
);

test("where waiting cannot help the answer is not retryable and names no time", async (t) => {
  const { call } = await serviceFixture(t, [undefined, undefined]);
  const answer = await call("eth_getBalance", [
    "0x0000000000000000000000000000000000000001",
    "earliest",
  ]);
  const { code, data } = answer.json.error;
  assert.deepEqual(
    [answer.status, code, data.code, data.reason, data.retryable],
    [200, -32002, "unavailable", "archival_required ×2", false],
  );
  assert.deepEqual(["retry_after_ms" in data, answer.headers.get("retry-after")], [false, null]);
  assert.match(data.next_action, /do not retry/);
});

test(
  "errors about the provider's own credentials are never shown, and it is left out until a " +
    "probe succeeds",
  async (t) => {
    const denied = '{"code":-32000,"message":"invalid api key abc"}';
    const { call, service, upstreams } = await serviceFixture(t, [says(denied, 401), says(denied)]);
    await service.probed();
    for (const upstream of upstreams) upstream.probesSay(null);
    const answer = await call("eth_gasPrice");
    assert.equal(walked(answer), "a:auth b:auth");
    assert.equal(answer.json.error.data.code, "unavailable");
    assert.doesNotMatch(answer.text, /api key/);
    for (const id of ["a", "b"])
      await until("the cordon", async () => (await healthOf(service, id)).cordoned === "auth");
    const next = await call("eth_gasPrice");
    assert.deepEqual(
      [next.json.error.data.reason, next.json.error.data.upstream_attempts],
      ["cordoned ×2", 0],
    );
  },
);

test("an error that repeats a provider's key, in plain or in disguise, is never shown", async (t) => {
  const key = "Abc-123_topSecretKey";
  for (const spelling of [key, "Abc\\u002d123_topSecretKey", "Abc%2D123_topSecretKey"]) {
    const leak = `{"code":3,"message":"execution reverted","data":{"request":"POST \\/v2\\/${spelling}"}}`;
    const upstreams = await serviceFixture(t, [says(leak)], {
      providers: [{ headers: { "X-Key": key } }],
    });
    const answer = await upstreams.call("eth_call", [{}, "latest"]);
    assert.doesNotMatch(answer.text, /topSecretKey/, spelling);
    assert.equal(answer.json.error.data.code, "unavailable");
  }
});

test("a pinned call asks that provider alone, also when it fails", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [fails, undefined]);
  const { json } = await service.post("/rpc/ethereum?provider=a", {
    jsonrpc: "2.0",
    id: 9,
    method: "eth_gasPrice",
  });
  assert.deepEqual([json.error.data.code, json.error.data.upstream_attempts], ["unavailable", 1]);
  assert.deepEqual(
    upstreams.map((it) => it.asked.length),
    [1, 0],
  );
});

test("a provider on another chain is found out by its probe and excluded until it is back", async (t) => {
  const { call, upstreams, service } = await serviceFixture(t, [undefined, undefined], {
    set: { monitoring: { probe_interval_ms: 50 } },
  });
  upstreams[0]?.probesSay({ chainId: 5, height: 100 });
  await until(
    "the exclusion",
    async () => (await healthOf(service, "a")).cordoned === "wrong_chain",
  );
  const answer = await call("eth_gasPrice");
  assert.equal(walked(answer), "b:ok");
  assert.deepEqual(metaOf(answer)["excluded"], [{ provider: "a", reason: "wrong_chain" }]);
  upstreams[0]?.probesSay({ chainId: 1, height: 100 });
  await until("the return", async () => (await healthOf(service, "a")).cordoned === null);
  assert.equal(walked(await call("eth_gasPrice")), "a:ok");
});
