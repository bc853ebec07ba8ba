// A provider error that no rule knows: counted, shown to the operator as a redacted sample, logged
// once, and never shown to others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceFixture } from "../fakes/service-fixture.ts";

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

  const shown = await read({ authorization: `Bearer ${TOKEN}` });
  const { total, shapes } = shown.json.profiles[0].unknown_errors;
  assert.equal(total, 4);
  const [shape, ...others] = shapes;
  assert.deepEqual(
    [shape.provider, shape.method, shape.code, shape.count, others],
    ["vendor-one", "eth_getBalance", -32077, 4, []],
  );
  assert.match(shape.sample, /^flux 0 misaligned at 0x…, token=\[redacted\]$/);

  for (const headers of [{}, { authorization: "Bearer wrong-wrong-wrong-wrong-wrong" }]) {
    const text = JSON.stringify((await read(headers)).json);
    assert.ok(!text.includes("flux") && !text.includes("unknown_errors"), text);
  }
  const { text } = await service.get("/metrics");
  assert.match(text, /svc_unknown_provider_errors_total\{profile="public",chain="ethereum"\} 4/);
  assert.ok(!text.includes("flux"));
});
