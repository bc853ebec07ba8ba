// The official exchanges of the Ethereum execution APIs come back as they were given, in every way
// in which they can be asked for, and the document that says so is current.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { serviceFixture } from "../fakes/service-fixture.ts";
import { conformanceDocument, DOCUMENT } from "./document.ts";
import { runExchanges } from "./exchange-run.ts";
import { isOfAll, isRefused, readExchanges, servedOf } from "./exchanges.ts";

const EXCHANGES = readExchanges();

test("official exchanges come back byte for byte, and CONFORMANCE.md says so", async () => {
  const result = await runExchanges(servedOf(EXCHANGES));
  assert.deepEqual(
    result.differences.map(({ way, exchange, received }) => [way, exchange.file, received]),
    [],
  );
  assert.ok(result.cached.size >= 30, `${result.cached.size} from the cache`);
  // All but those that the service answers by itself.
  assert.ok(result.failedOver.size >= 220, `${result.failedOver.size} after a failure`);
  assert.equal(readFileSync(DOCUMENT, "utf8"), await conformanceDocument(EXCHANGES, result));
});

test("what providers have together is told in the form of the exchange", async (t) => {
  const [exchange] = EXCHANGES.filter(isOfAll);
  assert.ok(exchange !== undefined);
  const { service, upstreams } = await serviceFixture(t, [undefined], {
    providers: [{ archival: true }],
  });
  await service.probed();
  const { json } = await service.post("/rpc/1", exchange.request);
  const { head, ...resources } = JSON.parse(exchange.answer).result;
  assert.deepEqual(Object.keys(json.result), ["head", ...Object.keys(resources)]);
  assert.deepEqual(Object.keys(json.result.head), Object.keys(head));
  for (const name of Object.keys(resources))
    assert.deepEqual(json.result[name], { disabled: false, oldestBlock: "0x0" }, name);
  assert.deepEqual(upstreams[0]?.asked, []);
});

test("what is for nodes under test is refused and reaches no provider", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [undefined]);
  const refused = EXCHANGES.filter(isRefused);
  assert.ok(refused.length > 0);
  for (const { request } of refused) {
    const { json } = await service.post("/rpc/1", request);
    assert.deepEqual([json.error.code, json.error.data.code], [-32601, "method_blocked"]);
  }
  assert.deepEqual(upstreams[0]?.asked, []);
});
