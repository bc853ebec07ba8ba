// What answers from the cache cost callers with a key: what headers and `svc_meta` tell, what the
// balance and the usage say, over HTTP, in batches and over a WebSocket. Real sockets and a real
// store.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { type HostedFixture, hostedFixture, OPERATOR_TOKEN } from "../fakes/hosted-fixture.ts";
import { until } from "../fakes/service-fixture.ts";

const METHOD = "eth_getBlockTransactionCountByHash";
const GRANT_CU = 5_000;

let fixture: HostedFixture;

const closing: (() => Promise<void>)[] = [];

before(async () => {
  const owner = { after: (close: () => Promise<void>) => void closing.push(close) };
  const extra = { cache: {}, coalesce: "on" };
  fixture = await hostedFixture(owner, { cache_price: 0.3 }, extra);
});

after(async () => {
  for (const close of closing) await close();
});

let blocks = 0;
/** A call whose answer is kept for a minute: of a block that no other test names. */
const callOfBlock = (block: number, id = 1) => ({
  jsonrpc: "2.0",
  id,
  method: METHOD,
  params: [`0x${block.toString(16).padStart(64, "0")}`],
});

async function post(key: string, body: unknown, headers: Record<string, string> = {}) {
  return fixture.service.post(`/rpc/k/${key}/ethereum?include_meta=body`, body, headers);
}

async function usedCu(key: string): Promise<number> {
  return GRANT_CU - (await fixture.service.get(`/api/v1/agent/keys/${key}`)).json.balance_cu;
}

test("the first call pays the whole price, and those that the cache answers their share", async () => {
  const key = await fixture.anonymousKey();
  const block = ++blocks;
  for (const [headers, cache, cu, usd] of [
    [{}, "miss", 3, "0.000015"],
    [{}, "hit", 1, "0.000005"],
    [{}, "hit", 1, "0.000005"],
    [{ "Cache-Control": "no-cache" }, "bypass", 3, "0.000015"],
  ] as const) {
    const answer = await post(key, callOfBlock(block), headers);
    assert.equal(answer.headers.get("x-svc-cache"), cache);
    assert.deepEqual(
      [answer.headers.get("x-svc-cu"), answer.headers.get("x-svc-usd")],
      [String(cu), usd],
    );
    assert.equal(answer.json.svc_meta.charged_cu, cu);
  }
  assert.equal(await usedCu(key), 3 + 1 + 1 + 3);
  const refused = await post(key, { ...callOfBlock(block), method: "eth_sign" });
  assert.equal(refused.json.error.code, -32601);
  assert.equal(await usedCu(key), 8);
});

test("a batch costs what its items cost, and a call that shares another's answer the whole", async () => {
  const key = await fixture.anonymousKey();
  const block = ++blocks;
  await post(key, callOfBlock(block));
  const batch = [1, 2, 3].map((id) => callOfBlock(block, id));
  const answer = await post(key, batch);
  assert.deepEqual(
    answer.json.map(
      (one: { readonly svc_meta: { readonly charged_cu: number } }) => one.svc_meta.charged_cu,
    ),
    [1, 1, 1],
  );
  assert.equal(answer.headers.get("x-svc-cu"), "3");
  assert.equal(await usedCu(key), 6);
  const held: (() => void)[] = [];
  fixture.premium.script((_, reply) => void held.push(() => reply.result('"0x5"')));
  const other = ++blocks;
  const both = Promise.all([post(key, callOfBlock(other)), post(key, callOfBlock(other))]);
  await until("a provider is asked", () => held.length > 0);
  for (const give of held) give();
  fixture.premium.script((_, reply) => reply.result('"0x5"'));
  for (const { headers } of await both) assert.equal(headers.get("x-svc-cu"), "3");
  assert.equal(await usedCu(key), 12);
});

test("usage tells calls from the cache apart, by day, method and key, to its owner and the operator", async () => {
  const { key, id, token, accountId } = await fixture.account();
  const credit = `/api/v1/operator/accounts/${accountId}/credit`;
  const operator = OPERATOR_TOKEN;
  await fixture.manage(operator, "POST", credit, { usd: "1", reference: "invoice" });
  const block = ++blocks;
  for (let n = 0; n < 4; n++) await post(key, callOfBlock(block));
  const used = { calls: 4, cu: 6, usd: "0.00003", cached_calls: 3, cached_cu: 3 };
  const { json } = await fixture.manage(token, "GET", "/api/v1/usage");
  assert.deepEqual(json.totals, used);
  assert.deepEqual(
    json.by_day.map(({ day, ...day_used }: { readonly day: string }) => day_used),
    [used],
  );
  assert.deepEqual(json.by_method, [{ method: METHOD, ...used }]);
  assert.deepEqual([json.by_key[0].key_id, json.by_key[0].cached_cu], [id, 3]);
  const path = `/api/v1/operator/usage?account=${accountId}`;
  assert.deepEqual((await fixture.manage(operator, "GET", path)).json.totals, used);
  assert.deepEqual((await fixture.manage(operator, "GET", "/api/v1/operator/audit")).json.ok, true);
  const response = await fetch(`${fixture.service.url}/metrics`, {
    headers: { authorization: `Bearer ${operator}` },
  });
  const metrics = await response.text();
  assert.match(metrics, /svc_metered_compute_units_total\{price="cached"\} [1-9]/);
  assert.match(metrics, /svc_metered_compute_units_total\{price="full"\} [1-9]/);
});

test("a call over a WebSocket costs the same", async (t) => {
  const key = await fixture.anonymousKey();
  const block = ++blocks;
  const ws = new WebSocket(`ws://127.0.0.1:${fixture.service.port}/ws/rpc/k/${key}/ethereum`);
  t.after(() => ws.terminate());
  await once(ws, "open");
  for (const cu of [3, 4, 5]) {
    ws.send(JSON.stringify(callOfBlock(block)));
    await once(ws, "message");
    assert.equal(await usedCu(key), cu);
  }
});

test("the share is published with the prices", async () => {
  const pricing = (await fixture.service.get("/api/v1/agent/pricing")).json;
  assert.equal(pricing.cache_price, 0.3);
  const agent = (await fixture.service.get("/agent.json")).json;
  assert.equal(agent.pricing.cache_price.share, 0.3);
  assert.match((await fixture.service.get("/SKILL.md")).text, /costs 30 % of its CU/);
});
