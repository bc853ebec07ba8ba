// Who sees a managed pool's real provider ids: the operator, by token or on this machine's
// /metrics. Everybody else sees public aliases.
import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { type ServiceFixture, serviceFixture } from "../fakes/service-fixture.ts";

const TOKEN = "operator-operator-operator";
const REAL = "vendor-one";
const ALIAS = "p1";

async function managed(
  t: Parameters<typeof serviceFixture>[0],
  server: Record<string, unknown> = {},
): Promise<ServiceFixture> {
  const extra = { server: { port: 0, operator_token: TOKEN, ...server } };
  return serviceFixture(t, [undefined], {
    slug: "public",
    providers: [{ id: REAL, name: "Vendor One Inc", alias: ALIAS }],
    extra,
  });
}

/** Provider names in a text of either page. */
function namesIn(text: string): readonly string[] {
  return [REAL, "Vendor One Inc", ALIAS].filter((name) => text.includes(`"${name}"`));
}

/** GET over node's own client: `fetch` cannot reach another port by another address family. */
function get(
  port: number,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    })
      .on("error", reject)
      .end();
  });
}

test("/api/metrics shows real ids to the operator token alone", async (t) => {
  const { service } = await managed(t);
  const shown = async (headers: Record<string, string>): Promise<readonly string[]> =>
    namesIn((await get(service.port, "/api/metrics/1", headers)).text);
  assert.deepEqual(await shown({}), [ALIAS]);
  assert.deepEqual(await shown({ authorization: "Bearer operator-operator-operatoR" }), [ALIAS]);
  assert.deepEqual(await shown({ authorization: `Bearer ${TOKEN}` }), [REAL, "Vendor One Inc"]);
});

test("/metrics shows real ids to the token and to this machine, but not through a proxy on it", async (t) => {
  const { service } = await managed(t);
  const shown = async (headers: Record<string, string>): Promise<readonly string[]> =>
    namesIn((await get(service.port, "/metrics", headers)).text);
  assert.deepEqual(await shown({}), [REAL]);
  for (const header of ["X-Forwarded-For", "X-Real-IP", "Forwarded", "Via"]) {
    assert.deepEqual(await shown({ [header]: "127.0.0.1" }), [ALIAS], header);
    assert.deepEqual(
      await shown({ [header]: "127.0.0.1", authorization: `Bearer ${TOKEN}` }),
      [REAL],
      header,
    );
  }
});

test("with server.metrics_listen real ids are on that address, which serves nothing else", async (t) => {
  const { service } = await managed(t, { metrics_listen: "127.0.0.1:0" });
  assert.deepEqual(namesIn((await get(service.port, "/metrics")).text), [ALIAS]);
  const port = service.app.metricsPort ?? assert.fail("nothing listens");
  assert.deepEqual(namesIn((await get(port, "/metrics")).text), [REAL]);
  assert.equal((await get(port, "/api/chains")).status, 404);
  assert.equal((await get(port, "/rpc/1")).status, 404);
});

test("without an operator token no token opens anything", async (t) => {
  const { service } = await serviceFixture(t, [undefined], {
    slug: "public",
    providers: [{ id: REAL, alias: ALIAS }],
  });
  assert.deepEqual(
    namesIn((await get(service.port, "/api/metrics/1", { authorization: "Bearer " })).text),
    [ALIAS],
  );
  assert.deepEqual(
    namesIn((await get(service.port, "/api/metrics/1", { authorization: "Bearer null" })).text),
    [ALIAS],
  );
});
