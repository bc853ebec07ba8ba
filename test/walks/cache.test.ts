// Kept answers and shared calls of the real service over HTTP: what `x-svc-cache` and `svc_meta`
// tell, what callers can ask for, and what a configuration may say.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { configText, type Service, startService } from "../fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const HASHES = `"hash":"0x${"a".repeat(64)}","parentHash":"0x${"b".repeat(64)}"`;
const OLD = [`0x${"1".repeat(40)}`, "0x10"];

/** A provider at block 100, of which block 90 is final. */
async function finalProvider(): Promise<ScriptedUpstream> {
  const upstream = await scriptedUpstream((asked, reply) => {
    if (asked.method === "eth_chainId") return reply.result('"0x1"');
    if (asked.method === "eth_blockNumber") return reply.result('"0x64"');
    if (JSON.stringify(asked.params).startsWith('["finalized"'))
      return reply.result(`{"number":"0x5a",${HASHES}}`);
    setTimeout(() => reply.result('"0x7"'), 30);
  });
  upstream.probesSay(null);
  return upstream;
}

async function fixture(extra: Record<string, unknown>): Promise<{
  readonly service: Service;
  readonly asked: (method: string) => number;
}> {
  const upstreams = [await finalProvider(), await finalProvider()];
  const providers = upstreams.map(({ url }, index) => ({ id: `p${index}`, url }));
  const service = await startService(
    configText(providers, { cache: {}, coalesce: "on", ...extra }),
  );
  after(async () => {
    await service.close();
    for (const upstream of upstreams) await upstream.close();
  });
  await until(() => upstreams.every(({ asked }) => asked.some(({ params }) => isFinality(params))));
  const asked = (method: string): number =>
    upstreams.flatMap((upstream) => upstream.asked).filter((one) => one.method === method).length;
  return { service, asked };
}

const isFinality = (params: unknown): boolean => JSON.stringify(params).includes("finalized");

async function until(isTrue: () => boolean): Promise<void> {
  for (let n = 0; n < 3_000 && !isTrue(); n++)
    await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(isTrue());
}

const balance = (params: readonly unknown[] = OLD, id = 1) => ({
  jsonrpc: "2.0",
  id,
  method: "eth_getBalance",
  params,
});

test("a kept answer is told as one, and callers can have a provider asked all the same", async () => {
  const { service, asked } = await fixture({});
  const path = "/rpc/ethereum?include_meta=body";
  // The report of the second provider may still be on its way.
  let hit = await service.post(path, balance());
  for (let n = 0; n < 200 && hit.headers.get("x-svc-cache") !== "hit"; n++)
    hit = await service.post(path, balance());
  const before = asked("eth_getBalance");
  hit = await service.post(path, balance(OLD, 77));
  assert.equal(hit.headers.get("x-svc-cache"), "hit");
  assert.deepEqual([hit.json.id, hit.json.result], [77, "0x7"]);
  assert.equal(hit.json.svc_meta.cache.result, "hit");
  assert.equal(hit.json.svc_meta.cache.class, "immutable");
  assert.ok(hit.json.svc_meta.cache.age_ms >= 0);
  assert.equal(hit.json.svc_meta.source, "cache");
  assert.deepEqual(hit.json.svc_meta.attempts, []);
  // No provider was asked: who could be asked now, and no time at one.
  assert.deepEqual([...hit.json.svc_meta.candidate_providers].sort(), ["p0", "p1"]);
  assert.equal(hit.json.svc_meta.upstream_latency_ms, 0);
  assert.equal(asked("eth_getBalance"), before);
  for (const headers of [{ "Cache-Control": "no-cache" }, { "X-Svc-Cache": "bypass" }]) {
    const fresh = await service.post(path, balance(), headers);
    assert.equal(fresh.headers.get("x-svc-cache"), "bypass");
    assert.equal(fresh.json.svc_meta.cache.result, "bypass");
  }
  const pinned = await service.post("/rpc/provider/p0/ethereum", balance());
  assert.equal(pinned.headers.get("x-svc-cache"), "bypass");
  assert.equal(asked("eth_getBalance"), before + 3);
  const uncached = await service.post("/rpc/ethereum", { ...balance([]), method: "net_listening" });
  assert.equal(uncached.headers.get("x-svc-cache"), null);
  const exposed = uncached.headers.get("access-control-expose-headers") ?? "";
  assert.match(exposed, /x-svc-cache/);
  const metrics = (await service.get("/metrics")).text;
  assert.match(metrics, /svc_cache_calls_total\{[^}]*result="bypass"\} 3/);
  assert.match(metrics, /svc_cache_entries 1\n/);
});

test("the operator removes kept answers, of what was named and of nothing else", async () => {
  const operator = "operator-token-of-this-test";
  const { service } = await fixture({ server: { port: 0, operator_token: operator } });
  const use = async (): Promise<string | null> =>
    (await service.post("/rpc/ethereum", balance())).headers.get("x-svc-cache");
  const remove = async (query: string, token = operator) => {
    const response = await fetch(`${service.url}/api/v1/operator/cache${query}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${token}` },
    });
    const body: { readonly [name: string]: unknown } = JSON.parse(await response.text());
    return { status: response.status, body };
  };
  for (let n = 0; n < 200 && (await use()) !== "hit"; n++);
  assert.equal((await remove("", "another-token")).status, 401);
  assert.equal((await remove("?chain=nowhere")).status, 404);
  await remove("?method=eth_call&profile=team");
  assert.equal(await use(), "hit");
  assert.deepEqual(await remove("?profile=team&chain=1&method=eth_getBalance"), {
    status: 200,
    body: {
      profile: "team",
      chain: "ethereum",
      provider: null,
      method: "eth_getBalance",
      complete: true,
      redis: "none",
    },
  });
  assert.deepEqual([await use(), await use()], ["miss", "hit"]);
  await remove("");
  assert.deepEqual([await use(), await use()], ["miss", "hit"]);
});

test("a hundred equal calls at once make one call to a provider, and `off` makes a hundred", async () => {
  for (const [setting, calls] of [
    ["on", 1],
    ["off", 100],
  ] as const) {
    const { service, asked } = await fixture({ cache: "off", coalesce: setting });
    const batch = Array.from({ length: 100 }, (_, id) => balance([OLD[0], "latest"], id));
    const { json } = await service.post("/rpc/ethereum", batch);
    assert.equal(json.length, 100);
    for (const [id, one] of json.entries()) assert.deepEqual([one.id, one.result], [id, "0x7"]);
    if (calls === 1) assert.ok(asked("eth_getBalance") <= 4, String(asked("eth_getBalance")));
    else assert.equal(asked("eth_getBalance"), calls);
  }
});
