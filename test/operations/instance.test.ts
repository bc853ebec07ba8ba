// The instance operations of the contract, which the pages serve: every declared status, with the
// declared shape.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CONTRACT, OPERATIONS, type OperationId } from "../../src/web/contract/contract.ts";
import { type Answer, configText, startService } from "../fakes/service.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

test("the pages answer what the contract declares for them", async (t) => {
  const upstream = await scriptedUpstream();
  t.after(() => upstream.close());
  const service = await startService(configText([{ id: "a", url: upstream.url }]));
  t.after(() => service.close());
  await service.probed();
  const dead = await startService(configText([{ id: "a", url: "http://127.0.0.1:9" }]));
  t.after(() => dead.close());
  const notPublic = { console: { public: false } };
  const closed = await startService(configText([{ id: "a", url: upstream.url }], notPublic));
  t.after(() => closed.close());
  const tried = [
    shown("listChains", await service.get("/api/chains")),
    shown("getHealth", await service.get("/api/health")),
    shown("getReadiness", await service.get("/api/ready")),
    shown("getReadiness", await dead.get("/api/ready")),
    shown("getChainMetrics", await service.get("/api/metrics/ethereum")),
    shown("getChainMetrics", await service.get("/api/metrics/nowhere")),
    shown("getChainMetrics", await closed.get("/api/metrics/ethereum")),
  ];
  const declared = OPERATIONS.filter((it) => it.servedBy === "pages").flatMap((it) =>
    Object.keys(it.answers).map((status) => `${it.id} ${status}`),
  );
  assert.deepEqual(tried.sort(), declared.sort());
});

/** Operation and status of an answer that has its declared shape. */
function shown(id: OperationId, { status, json }: Answer): string {
  const answers: Readonly<
    Record<number, { readonly schema: { parse(json: unknown): unknown } | null }>
  > = CONTRACT[id].answers;
  const schema = answers[status]?.schema;
  assert.ok(schema != null, `${id} does not declare ${status}`);
  assert.deepEqual(schema.parse(json), json, `${id} answers more or less than it declares`);
  return `${id} ${status}`;
}
