// Methods of the configuration: how they are sent, what they cost, and that a reload takes them
// over.
import assert from "node:assert/strict";
import { test } from "node:test";
import { methodTable } from "../../src/core/rpc/method-table.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { agentDocument } from "../../src/web/discovery/texts.ts";
import { serveApi } from "../fakes/hosted.ts";
import { configOf, configText, startService } from "../fakes/service.ts";
import { walked } from "../fakes/service-fixture.ts";
import { newPlace } from "../fakes/stores.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";
import { facts, SITE } from "../web/discovery/facts-fixture.ts";

test("a read is asked of the next provider where a write stops, as it is configured now", async (t) => {
  const broken = await scriptedUpstream((_, reply) =>
    reply.error('{"code":-32000,"message":"server is shutting down"}'),
  );
  const sound = await scriptedUpstream((_, reply) => reply.result('"0x1"'));
  const providers = [
    { id: "a", url: broken.url, priority: 1 },
    { id: "b", url: sound.url, priority: 2 },
  ];
  const textWith = (methods: Readonly<Record<string, unknown>>): string =>
    configText(providers, { methods });
  const service = await startService(textWith({ foo_read: { kind: "read" } }));
  t.after(() => Promise.all([service.close(), broken.close(), sound.close()]));
  const ask = (method: string) =>
    service.post("/rpc/priority/1?include_meta=headers", {
      jsonrpc: "2.0",
      id: 1,
      method,
      params: [],
    });

  assert.equal(walked(await ask("foo_read")), "a:server b:ok");
  assert.equal((await ask("foo_other")).json.error.data.code, "outcome_unknown");
  assert.equal(
    service.app.reload(
      configOf(textWith({ foo_read: { kind: "write" }, foo_other: { kind: "read" } })),
    ),
    null,
  );
  assert.equal((await ask("foo_read")).json.error.data.code, "outcome_unknown");
  assert.equal(walked(await ask("foo_other")), "a:server b:ok");

  const { text } = await service.get("/metrics");
  assert.match(text, /svc_requests_total\{[^}]*method="foo_read",outcome="answered"\} 1/);
  assert.match(text, /svc_requests_total\{[^}]*method="foo_other",outcome="answered"\} 1/);
});

test("the pricing catalog and agent.json say what they cost", async (t) => {
  const methods = { foo_read: { kind: "read", cu: 11 }, eth_getLogs: { cu: 44 } };
  const table = methodTable(
    configOf(configText([{ id: "a", url: "http://127.0.0.1:1" }], { methods })).methods,
  );
  const { place, remove } = await newPlace("sqlite");
  t.after(remove);
  const store = await openStore(place);
  t.after(() => store.close());
  const api = await serveApi(t, store, { methods: () => table });
  const { json } = await api.call("GET /api/v1/agent/pricing");
  const priceOf = (name: string) =>
    json.methods.find((it: { method: string }) => it.method === name)?.by_strategy;
  assert.deepEqual(
    [
      priceOf("foo_read")["load-balanced"].cu,
      priceOf("foo_read").fastest.cu,
      priceOf("eth_getLogs")["load-balanced"].cu,
    ],
    [11, 22, 44],
  );

  const document = JSON.stringify(agentDocument(facts({ enabled: true }, { methods }), SITE));
  assert.match(document, /"foo_read":\{"load-balanced":\{"cu":11/);
});
