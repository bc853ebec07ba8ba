// What a caller may learn of how a call was routed: the shape of `svc_meta` in body and header,
// aliases for managed pools, exclusions for own profiles.
import assert from "node:assert/strict";
import { test } from "node:test";
import { metaOf, serviceFixture } from "../fakes/service-fixture.ts";
import type { Script } from "../fakes/upstream.ts";

const fails: Script = (_, reply) => reply.body("", 503);
const MEMBERS = [
  "version",
  "request_id",
  "strategy",
  "chain_id",
  "transport",
  "profile",
  "candidate_providers",
  "selected_provider",
  "upstream_latency_ms",
  "svc_overhead_ms",
  "end_to_end_latency_ms",
  "retries",
  "circuit_breaker_state",
  "attempts",
];

test("an own profile sees ids, every attempt and why others were left out", async (t) => {
  const blocked = { capabilities: { unsupported_methods: ["eth_gasPrice"] } };
  const { call } = await serviceFixture(t, [fails, undefined, undefined], {
    providers: [{}, {}, blocked],
  });
  const answer = await call("eth_gasPrice", [], "?include_meta=body");
  const meta = answer.json.svc_meta;
  assert.deepEqual(Object.keys(meta), [...MEMBERS, "excluded"]);
  assert.equal(meta.request_id, answer.headers.get("x-svc-request-id"));
  const { strategy, chain_id, transport, profile, retries, circuit_breaker_state } = meta;
  assert.deepEqual(
    [strategy, chain_id, transport, profile, retries, circuit_breaker_state],
    ["priority", 1, "http", "team", 1, "closed"],
  );
  assert.deepEqual([meta.candidate_providers, meta.selected_provider], [["a", "b"], { id: "b" }]);
  assert.deepEqual(meta.excluded, [{ provider: "c", reason: "method_unsupported" }]);
  const [first, second] = meta.attempts;
  assert.deepEqual(Object.keys(first), [
    "provider",
    "transport",
    "outcome",
    "category",
    "code",
    "latency_ms",
  ]);
  assert.deepEqual(
    [first.provider, first.transport, first.outcome, first.category, first.code],
    ["a", "http", "error", "server", 503],
  );
  assert.deepEqual(
    [second.provider, second.outcome, second.category, second.code],
    ["b", "success", null, null],
  );
  assert.equal(meta.upstream_latency_ms, second.latency_ms);
  assert.ok(meta.end_to_end_latency_ms >= first.latency_ms + second.latency_ms - 0.01);
  assert.ok(
    Math.abs(
      meta.end_to_end_latency_ms - first.latency_ms - second.latency_ms - meta.svc_overhead_ms,
    ) < 0.01,
  );
});

test("a managed pool shows aliases only, no exclusions, and takes pins by id and by alias", async (t) => {
  const blocked = { id: "inner-c", capabilities: { unsupported_methods: ["eth_gasPrice"] } };
  const settings = {
    slug: "public",
    providers: [{ id: "inner-a", alias: "north" }, { id: "inner-b" }, blocked],
  };
  const { call, service } = await serviceFixture(t, [fails, undefined, undefined], settings);
  const answer = await call("eth_gasPrice", [], "?include_meta=body");
  assert.deepEqual(Object.keys(answer.json.svc_meta), MEMBERS);
  assert.deepEqual(answer.json.svc_meta.candidate_providers, ["north", "p2"]);
  assert.doesNotMatch(answer.text, /inner-/);
  for (const pin of ["inner-b", "p2"]) {
    const pinned = await service.post(`/rpc/ethereum/${pin}?include_meta=body`, {
      jsonrpc: "2.0",
      id: 1,
      method: "eth_gasPrice",
    });
    assert.deepEqual(pinned.json.svc_meta.selected_provider, { id: "p2" });
  }
  const unknown = await service.post("/rpc/ethereum/nobody", {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_gasPrice",
  });
  assert.deepEqual(
    [unknown.status, unknown.json.error.data.known_providers],
    [400, ["north", "p2", "p3"]],
  );
  assert.doesNotMatch((await service.get("/api/metrics/1")).text, /inner-/);
});

test(
  "the header form holds the same members and leaves the body untouched; a header that grew " +
    "too long is left out",
  async (t) => {
    const { call } = await serviceFixture(t, [undefined]);
    const answer = await call("eth_gasPrice");
    assert.equal(answer.text, '{"jsonrpc":"2.0","id":101,"result":"0x1"}');
    assert.deepEqual(Object.keys(metaOf(answer)), [...MEMBERS, "excluded"]);
    assert.doesNotMatch(answer.headers.get("x-svc-meta") ?? "=", /[=+/]/);
    const providers = Array.from({ length: 50 }, (_, n) => ({
      id: `a-provider-with-a-very-long-name-indeed-${n}`,
      capabilities: { unsupported_methods: ["eth_gasPrice"] },
    }));
    const crowd = await serviceFixture(t, [undefined, ...providers.slice(1).map(() => undefined)], {
      providers: [{}, ...providers.slice(1)],
    });
    const long = await crowd.call("eth_gasPrice");
    assert.equal(long.json.result, "0x1");
    assert.equal(long.headers.get("x-svc-meta"), null);
    assert.match(long.headers.get("x-svc-request-id") ?? "", /^req-/);
  },
);

test("errors, refusals and local answers carry the evidence too, plain calls carry none", async (t) => {
  const { call } = await serviceFixture(t, [fails]);
  const refused = await call("eth_gasPrice", [], "?include_meta=body");
  const { error, svc_meta: meta } = refused.json;
  assert.deepEqual(
    [error.data.code, meta.selected_provider, meta.circuit_breaker_state, meta.attempts.length],
    ["unavailable", null, null, 1],
  );
  const local = (await call("eth_chainId", [], "?include_meta=body")).json.svc_meta;
  assert.deepEqual(
    [
      local.selected_provider,
      local.source,
      local.upstream_latency_ms,
      local.attempts,
      local.candidate_providers,
    ],
    [null, "local", 0, [], ["a"]],
  );
  assert.equal((await call("eth_gasPrice", [], "")).json.svc_meta, undefined);
});

test("in a batch each item carries its own evidence in body form", async (t) => {
  const { service } = await serviceFixture(t, [undefined]);
  const batch = [1, 2, 3].map((id) => ({ jsonrpc: "2.0", id, method: "eth_gasPrice" }));
  const { json, headers } = await service.post("/rpc/1?include_meta=body", batch);
  const ids: readonly string[] = json.map(
    (it: { svc_meta: { request_id: string } }) => it.svc_meta.request_id,
  );
  assert.equal(new Set(ids).size, 3);
  for (const id of ids) assert.ok(id.startsWith(headers.get("x-svc-request-id") ?? "?"));
});

test("a long streamed answer carries the evidence behind its result", async (t) => {
  const { call } = await serviceFixture(t, [
    (_, reply) => reply.result(`"${"x".repeat(200_000)}"`),
  ]);
  const { json } = await call("eth_gasPrice", [], "?include_meta=body");
  assert.equal(json.result.length, 200_000);
  assert.deepEqual(json.svc_meta.selected_provider, { id: "a" });
});
