// Regions of providers over real sockets: which one is asked first, who is left out, and where
// callers and the operator see it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { metaOf, serviceFixture } from "../fakes/service-fixture.ts";
import type { Script } from "../fakes/upstream.ts";

const CALLS = 12;
const fails: Script = (_, reply) => reply.body("", 503);
const NODE = { cluster: { region: "eu-west" } };
const PROVIDERS = [
  { id: "far", region: "us-east" },
  { id: "near", region: "eu-west" },
  { id: "vendor" },
];

test("a node asks its own region first, then providers without a region, then the others", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [undefined, undefined, undefined], {
    extra: NODE,
    providers: PROVIDERS,
  });
  await service.probed();
  const ask = () =>
    service.post("/rpc/ethereum?include_meta=headers", {
      jsonrpc: "2.0",
      id: 1,
      method: "eth_gasPrice",
      params: [],
    });
  for (let n = 0; n < CALLS; n++) {
    const meta = metaOf(await ask());
    assert.deepEqual(meta["selected_provider"], { id: "near", region: "eu-west" });
    assert.deepEqual(meta["candidate_providers"], ["near", "vendor", "far"]);
  }
  upstreams[1]?.script(fails);
  const { attempts } = metaOf(await ask());
  assert.deepEqual(
    attempts.map(({ provider }) => provider),
    ["near", "vendor"],
  );
  const { json: health } = await service.get("/api/health");
  assert.deepEqual(health.cluster.regions, ["eu-west"]);
  const pinned = await service.post("/rpc/ethereum/far", {
    jsonrpc: "2.0",
    id: 2,
    method: "eth_gasPrice",
  });
  assert.equal(pinned.json.result, "0x1");
});

test("`only` asks nobody elsewhere and says why; metrics and the ready document tell of regions", async (t) => {
  const { service, upstreams, call } = await serviceFixture(t, [undefined, fails, undefined], {
    extra: NODE,
    set: { selection: { region_preference: "only" } },
    providers: PROVIDERS,
  });
  await service.probed();
  const refused = metaOf(await call("eth_gasPrice"));
  assert.deepEqual(
    refused.attempts.map(({ provider }) => provider),
    ["near"],
  );
  assert.deepEqual(refused["excluded"], [
    { provider: "far", reason: "other_region" },
    { provider: "vendor", reason: "other_region" },
  ]);
  assert.deepEqual(
    [upstreams[0]?.asked.length, upstreams[2]?.asked.length],
    [0, 0],
    "no call left the region",
  );
  const { profiles } = (await service.get("/api/metrics/ethereum")).json;
  assert.deepEqual(
    profiles[0].providers.map((it: { id: string; region: string | null }) => [it.id, it.region]),
    [
      ["far", "us-east"],
      ["near", "eu-west"],
      ["vendor", null],
    ],
  );
  const { chains } = (await service.get("/api/ready")).json;
  assert.deepEqual([chains[0].providers_usable, chains[0].providers_total], [1, 3]);
});
