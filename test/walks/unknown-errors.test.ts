// A provider error that no rule knows: counted, shown to the operator as a redacted sample, logged
// once, and never shown to others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceFixture } from "../fakes/service-fixture.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into documents of any shape
type Json = any;

const TOKEN = "operator-operator-operator";
const SECRET = "k3y5tha7open4doors99";

test("an unknown error is the operator's to see, without secrets, and nobody else's", async (t) => {
  const said = (n: number): string =>
    `{"code":-32077,"message":"flux ${n} misaligned at 0x${"ab".repeat(20)}, token=${SECRET}"}`;
  let n = 0;
  const extra = { server: { port: 0, operator_token: TOKEN } };
  const { service } = await serviceFixture(t, [(_, reply) => reply.error(said(n++))], {
    slug: "public",
    providers: [{ id: "vendor-one", alias: "p1" }],
    extra,
  });
  const read = async (headers: Record<string, string>) => ({
    json: JSON.parse(await (await fetch(`${service.url}/api/metrics/1`, { headers })).text()),
  });
  for (let call = 0; call < 3; call++)
    await service.post("/rpc/1", { jsonrpc: "2.0", id: 1, method: "eth_getBalance", params: [] });
  await service.post("/rpc/1", {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_sendRawTransaction",
    params: ["0x00"],
  });

  const headers = { authorization: `Bearer ${TOKEN}` };
  const { seen } = await (await fetch(`${service.url}/api/v1/operator/errors`, { headers })).json();
  assert.deepEqual(
    seen.map(({ providers, methods, code, category, unknown }: Json) => [
      providers.map(({ provider }: Json) => provider),
      methods,
      code,
      category,
      unknown,
    ]),
    [
      [["vendor-one"], [{ method: "eth_getBalance", count: 3 }], -32077, "unknown", true],
      [
        ["vendor-one"],
        [{ method: "eth_sendRawTransaction", count: 1 }],
        -32077,
        "tx_rejected",
        true,
      ],
    ],
  );
  assert.match(seen[0].sample, /^flux 0 misaligned at 0x…, token=\[redacted\]$/);

  for (const others of [{}, { authorization: "Bearer wrong-wrong-wrong-wrong-wrong" }]) {
    const text = JSON.stringify((await read(others)).json);
    assert.ok(!text.includes("flux"), text);
  }
  const { text } = await service.get("/metrics");
  assert.match(text, /svc_unknown_provider_errors_total\{profile="public",chain="ethereum"\} 4/);
  assert.ok(!text.includes("flux"));
});
