// Filters with keys, over the real service and a real store: whose they are, what they cost, and
// that they end with the key and with nothing less.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { manageAt } from "../fakes/hosted-fixture.ts";
import { type Answer, type Service, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type SocketFixture, socketFixture } from "../fakes/socket-fixture.ts";
import { call } from "../web/socket/socket-fixture.ts";

/** One node behind profile `public`, and keys. */
async function hosted(
  t: TestContext,
  settings: Record<string, unknown> = {},
): Promise<SocketFixture> {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-hosted-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const fixture = await socketFixture(t, ["both"], {
    slug: "public",
    extra: { data_dir: dataDir, hosted: { enabled: true, flush_interval_ms: 50, ...settings } },
  });
  await fixture.listening();
  return fixture;
}

async function manage(
  { service }: SocketFixture,
  method: string,
  path: string,
  token = "",
  body: unknown = {},
) {
  const { json } = await manageAt(service.url)(
    token,
    method,
    path,
    method === "GET" ? undefined : body,
  );
  return json ?? {};
}

function ask(
  { service }: SocketFixture,
  key: string,
  method: string,
  ...params: readonly unknown[]
): Promise<Answer> {
  return service.post(`/rpc/k/${key}/1`, call(1, method, params));
}

async function ends(fixture: SocketFixture, reason: string): Promise<number> {
  const { text } = await fixture.service.get("/metrics");
  return Number(
    new RegExp(`^svc_filters_ended_total\\{[^}]*reason="${reason}"\\} (\\d+)$`, "m").exec(
      text,
    )?.[1] ?? 0,
  );
}

test(
  "a filter is its key's: another key does not find it, and polls of every form of the key's " +
    "URL do",
  async (t) => {
    const fixture = await hosted(t);
    const [mine, other] = [
      (await manage(fixture, "POST", "/api/v1/agent/keys")).key,
      (await manage(fixture, "POST", "/api/v1/agent/keys")).key,
    ];
    const id = (await ask(fixture, mine, "eth_newBlockFilter")).json.result;
    fixture.mine();
    assert.match(
      (await ask(fixture, other, "eth_getFilterChanges", id)).text,
      /"filter not found"/,
    );
    assert.equal((await ask(fixture, other, "eth_uninstallFilter", id)).json.result, false);
    const hashes: string[] = [];
    await until("the block", async () => {
      for (const path of [
        `/rpc/k/${mine}/fastest/ethereum`,
        `/rpc/k/${mine}/profile/public/mainnet`,
        `/rpc/1?key=${mine}`,
      ])
        hashes.push(
          ...(await fixture.service.post(path, call(1, "eth_getFilterChanges", [id]))).json.result,
        );
      return hashes.length > 0;
    });
    assert.deepEqual(hashes, [fixture.chain.tip().hash]);
  },
);

test(
  "creation, polls and logs of a filter are charged by their weights, as answers are; what " +
    "finds no filter costs nothing",
  async (t) => {
    const fixture = await hosted(t, { starting_grant_cu: 1_000 });
    const { key } = await manage(fixture, "POST", "/api/v1/agent/keys");
    const costs = async (cu: number, method: string, ...params: readonly unknown[]) => {
      const answer = await ask(fixture, key, method, ...params);
      assert.equal(answer.headers.get("x-svc-cu"), String(cu), method);
      return answer.json.result;
    };
    const id = await costs(5, "eth_newFilter", {});
    await costs(5, "eth_getFilterChanges", id);
    await costs(15, "eth_getFilterLogs", id);
    const blocks = await costs(3, "eth_newBlockFilter");
    await costs(3, "eth_uninstallFilter", blocks);
    for (const method of ["eth_getFilterChanges", "eth_getFilterLogs"]) {
      const { headers, json } = await ask(fixture, key, method, blocks);
      assert.deepEqual([json.error.message, headers.get("x-svc-usd")], ["filter not found", "0"]);
    }
    await until(
      "the bill",
      async () =>
        (await manage(fixture, "GET", `/api/v1/agent/keys/${key}`)).balance_cu ===
        1_000 - 5 - 5 - 15 - 3 - 3,
    );
  },
);

test("filters go on after a restart, and tell what came while the service was down, once", async (t) => {
  const fixture = await hosted(t);
  const { key } = await manage(fixture, "POST", "/api/v1/agent/keys");
  const id = (await ask(fixture, key, "eth_newBlockFilter")).json.result;
  const before = fixture.mine().hash;
  const told: string[] = [];
  const poll = async (service: Service): Promise<void> => {
    const answer = await service.post(`/rpc/k/${key}/1`, call(1, "eth_getFilterChanges", [id]));
    told.push(...(answer.json.result ?? []));
  };
  await until("the block", async () => {
    await poll(fixture.service);
    return told.length > 0;
  });
  await fixture.service.close();
  const missed = [fixture.mine().hash, fixture.mine().hash];
  const again = await startService(fixture.text(["a"]));
  t.after(() => again.close());
  await until("what was missed", async () => {
    await poll(again);
    return told.length >= 3;
  });
  const after = fixture.mine().hash;
  await until("what came since", async () => {
    await poll(again);
    return told.length >= 4;
  });
  assert.deepEqual(told, [before, ...missed, after]);
});

test("deleting a key ends its filters; rotating it does not, and its new secret polls on", async (t) => {
  const fixture = await hosted(t);
  const made = await manage(fixture, "POST", "/api/v1/keys", "", { name: "one" });
  const [kept, other] = [
    (await ask(fixture, made.key, "eth_newBlockFilter")).json.result,
    (await ask(fixture, made.key, "eth_newFilter", {})).json.result,
  ];
  assert.equal((await ask(fixture, made.key, "eth_uninstallFilter", other)).json.result, true);
  const next = await manage(
    fixture,
    "POST",
    `/api/v1/keys/${made.id}/rotate`,
    made.management_token,
    { grace_seconds: 0 },
  );
  await until(
    "the end of the old secret",
    async () => (await ask(fixture, made.key, "eth_chainId")).status === 401,
  );
  const hashes: string[] = [];
  fixture.mine();
  await until(
    "the block",
    async () =>
      hashes.push(...(await ask(fixture, next.key, "eth_getFilterChanges", kept)).json.result) > 0,
  );
  assert.deepEqual([hashes, await ends(fixture, "owner")], [[fixture.chain.tip().hash], 0]);
  const again = (await ask(fixture, next.key, "eth_newBlockFilter")).json.result;
  assert.ok(again);
  await manage(fixture, "DELETE", `/api/v1/keys/${made.id}`, made.management_token);
  await until("the end of the filters", async () => (await ends(fixture, "owner")) === 2);
});
