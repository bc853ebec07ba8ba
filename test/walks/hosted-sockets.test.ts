// Keys on WebSockets, over the real service and a real store: handshakes, unary calls, metered
// notifications, and every way a key ends a socket.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { manageAt } from "../fakes/hosted-fixture.ts";
import { until } from "../fakes/service-fixture.ts";
import { type SocketFixture, socketFixture, subscribe, told } from "../fakes/socket-fixture.ts";
import { call } from "../web/socket/socket-fixture.ts";

const UPGRADE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": `${"A".repeat(22)}==`,
};

/** A fixture with one node on a socket, behind profile `public`, and keys. */
function hostedSockets(
  t: TestContext,
  hosted: Record<string, unknown> = {},
): Promise<SocketFixture> {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-hosted-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  return socketFixture(t, ["ws"], {
    slug: "public",
    extra: { data_dir: dataDir, hosted: { enabled: true, flush_interval_ms: 50, ...hosted } },
  });
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

async function anonymousKey(fixture: SocketFixture): Promise<string> {
  return (await manage(fixture, "POST", "/api/v1/agent/keys")).key;
}

function refusal(
  { service }: SocketFixture,
  path: string,
): Promise<{ readonly status: number; readonly code: string }> {
  return new Promise((resolve, reject) => {
    const asking = request(
      { port: service.port, host: "127.0.0.1", path, headers: UPGRADE, agent: false },
      (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => {
          text += chunk.toString();
        });
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, code: JSON.parse(text).error.data.code }),
        );
      },
    );
    asking.on("upgrade", (_, socket) => {
      socket.destroy();
      reject(new Error(`${path} was accepted`));
    });
    asking.on("error", reject);
    // Without an effect where the answer is whole.
    asking.on("close", () => reject(new Error(`${path} was closed before an answer`)));
    asking.end();
  });
}

test(
  "a handshake without a key that works is refused with the status and body of a POST, and one " +
    "with a key in any place is accepted",
  async (t) => {
    const fixture = await hostedSockets(t, { starting_grant_cu: 3 });
    const key = await anonymousKey(fixture);
    assert.deepEqual(await refusal(fixture, "/ws/rpc/1"), { status: 401, code: "unauthorized" });
    assert.deepEqual(await refusal(fixture, `/ws/rpc/k/${key}x/1`), {
      status: 401,
      code: "unauthorized",
    });
    assert.deepEqual(await refusal(fixture, `/ws/rpc/k/${key}/nochain`), {
      status: 400,
      code: "unknown_chain",
    });
    assert.deepEqual(await refusal(fixture, `/ws/rpc/k/${key}/profile/nobody/1`), {
      status: 404,
      code: "unknown_profile",
    });
    const clients = [
      await fixture.open(`/ws/rpc/k/${key}/load-balanced/1`),
      await fixture.open(`/ws/rpc/1?key=${key}`),
    ];
    clients.push(await fixture.open("/ws/rpc/1", { headers: { authorization: `Bearer ${key}` } }));
    clients.push(await fixture.open("/ws/rpc/1", { headers: { "x-svc-api-key": key } }));
    for (const client of clients) client.send(call(1, "eth_chainId"));
    for (const client of clients) assert.equal((await client.next()).result, "0x1");
    const [first] = clients;
    assert.ok(first);
    first.send(call(2, "eth_call"));
    assert.equal((await first.next()).result, "0xa");
    await until(
      "the end of the grant",
      async () => (await manage(fixture, "GET", `/api/v1/agent/keys/${key}`)).balance_cu === 0,
    );
    assert.deepEqual(await refusal(fixture, `/ws/rpc/k/${key}/1`), {
      status: 402,
      code: "balance_exhausted",
    });
  },
);

test("notifications are metered at three units each, beside the call that subscribed", async (t) => {
  const fixture = await hostedSockets(t);
  const key = await anonymousKey(fixture);
  const client = await fixture.open(`/ws/rpc/k/${key}/1`);
  const id = await subscribe(client, "newHeads");
  for (let n = 0; n < 4; n++) fixture.mine();
  await told(client, id, 4);
  await until(
    "the bill",
    async () =>
      (await manage(fixture, "GET", `/api/v1/agent/keys/${key}`)).balance_cu === 5_000 - 3 - 4 * 3,
  );
});

test(
  "when nothing pays any more the socket is closed with balance_exhausted, after what was paid " +
    "for",
  async (t) => {
    const fixture = await hostedSockets(t, { starting_grant_cu: 12 });
    const client = await fixture.open(`/ws/rpc/k/${await anonymousKey(fixture)}/1`);
    const id = await subscribe(client, "newHeads");
    for (let n = 0; n < 3; n++) fixture.mine();
    await told(client, id, 3);
    fixture.mine();
    assert.deepEqual(await client.closed, [1008, "balance_exhausted"]);
  },
);

test(
  "sockets of a key are closed when it is deleted, when its overlap ends and when its default " +
    "profile changes; others stay",
  async (t) => {
    const fixture = await hostedSockets(t);
    const made = await manage(fixture, "POST", "/api/v1/keys", "", { name: "one" });
    const token = made.management_token;
    const other = await manage(fixture, "POST", "/api/v1/keys", token, { name: "other" });
    const bystander = await fixture.open(`/ws/rpc/k/${other.key}/1`);

    const patched = await fixture.open(`/ws/rpc/k/${made.key}/1`);
    await manage(fixture, "PATCH", `/api/v1/keys/${made.id}`, token, { default_profile: "public" });
    assert.deepEqual(await patched.closed, [1008, "default_profile_changed"]);

    const rotated = await fixture.open(`/ws/rpc/k/${made.key}/1`);
    const next = await manage(fixture, "POST", `/api/v1/keys/${made.id}/rotate`, token, {
      grace_seconds: 1,
    });
    const successor = await fixture.open(`/ws/rpc/k/${next.key}/1`);
    assert.deepEqual(await rotated.closed, [1008, "key_revoked"]);

    await manage(fixture, "DELETE", `/api/v1/keys/${made.id}`, token);
    assert.deepEqual(await successor.closed, [1008, "key_revoked"]);

    bystander.send(call(1, "eth_call"));
    assert.equal((await bystander.next()).result, "0xa");
  },
);

test(
  "each call on a socket is limited and charged like one over HTTP, also in a batch; those " +
    "beyond the rate wait for it",
  async (t) => {
    const fixture = await hostedSockets(t, { buckets: { managed: { per_second: 1, burst: 3 } } });
    const key = await anonymousKey(fixture);
    const client = await fixture.open(`/ws/rpc/k/${key}/1`);
    client.send([1, 2, 3, 4].map((id) => call(id, "eth_call")));
    const answers: { readonly error?: { readonly data: { readonly code: string } } }[] =
      await client.next();
    assert.deepEqual(
      answers.map((it) => it.error?.data.code ?? "ok"),
      ["ok", "ok", "ok", "ok"],
    );
    await until(
      "the bill",
      async () =>
        (await manage(fixture, "GET", `/api/v1/agent/keys/${key}`)).balance_cu === 5_000 - 12,
    );
    for (let id = 5; id < 9; id++) client.send(call(id, "eth_call"));
    for (let id = 5; id < 9; id++) {
      const answer = await client.next();
      assert.deepEqual([answer.id, answer.result], [id, "0xa"]);
    }
    await until(
      "the bill",
      async () =>
        (await manage(fixture, "GET", `/api/v1/agent/keys/${key}`)).balance_cu === 5_000 - 8 * 3,
    );
  },
);
