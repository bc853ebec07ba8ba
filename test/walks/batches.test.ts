// Batches as stock clients send them, over HTTP and on sockets, with and without a key: a thousand
// items, and a pace where a rate limits the caller.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { hostedFixture } from "../fakes/hosted-fixture.ts";
import { until } from "../fakes/service-fixture.ts";
import { type Reach, type SocketFixture, socketFixture } from "../fakes/socket-fixture.ts";
import { call } from "../web/socket/socket-fixture.ts";

const batchOf = (items: number, method = "eth_gasPrice"): readonly object[] =>
  Array.from({ length: items }, (_, n) => call(n, method));
const idsOf = (answer: readonly { readonly id: number }[]): readonly number[] =>
  answer.map((it) => it.id);
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);

/** A rate that is used up at once, and one that passes a small batch in a second or two. */
const SLOW = { buckets: { managed: { per_second: 1, burst: 2 } }, starting_grant_cu: 100_000 };
const STEADY = { buckets: { managed: { per_second: 200, burst: 20 } }, starting_grant_cu: 100_000 };

async function hostedSockets(
  t: TestContext,
  hosted: Record<string, unknown>,
): Promise<{ readonly fixture: SocketFixture; readonly path: string }> {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-batches-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const reaches: readonly Reach[] = ["ws"];
  const fixture = await socketFixture(t, reaches, {
    slug: "public",
    extra: { data_dir: dataDir, hosted: { enabled: true, ...hosted } },
  });
  const { json } = await fixture.service.post("/api/v1/agent/keys", {});
  return { fixture, path: `/k/${json.key}/1` };
}

test(
  "a thousand items in one batch, over HTTP and on a socket; one more is refused with the name " +
    "of the setting, and none of it is executed",
  async (t) => {
    const { service, open, nodes } = await socketFixture(t, ["both"]);
    const client = await open();
    const posted = await service.post("/rpc/1", batchOf(1_000));
    assert.deepEqual([posted.status, idsOf(posted.json)], [200, upTo(1_000)]);
    client.send(batchOf(1_000));
    assert.deepEqual(idsOf(await client.next()), upTo(1_000));
    const before = nodes[0]?.ws.count("eth_gasPrice");
    const refused = await service.post("/rpc/1", batchOf(1_001));
    client.send(batchOf(1_001));
    const onSocket = await client.next();
    for (const { id, error } of [refused.json, onSocket]) {
      assert.deepEqual([id, error.code], [null, -32600]);
      assert.match(error.message, /1000 items.*limits\.max_batch_items/);
    }
    assert.deepEqual([refused.status, nodes[0]?.ws.count("eth_gasPrice")], [400, before]);
  },
);

test(
  "without metering no rate limits a batch, also on a hosted instance that serves callers " +
    "without a key",
  async (t) => {
    const fixture = await hostedFixture(t, { keyless: true, ...SLOW });
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => fixture.service.post("/rpc/ethereum", batchOf(100))),
    );
    for (const { json } of answers)
      assert.ok(json.every((it: { result?: unknown }) => it.result !== undefined));
  },
);

test("items beyond the rate wait and are served: in order, duplicate ids kept, each charged once", async (t) => {
  const fixture = await hostedFixture(t, STEADY);
  const key = await fixture.anonymousKey();
  const items = Array.from({ length: 120 }, (_, n) => call(n % 7, "eth_gasPrice"));
  const { status, json, headers } = await fixture.service.post(`/rpc/k/${key}/ethereum`, items);
  assert.equal(status, 200);
  assert.deepEqual(
    idsOf(json),
    items.map((_, n) => n % 7),
  );
  assert.ok(json.every((it: { result?: unknown }) => it.result !== undefined));
  assert.deepEqual([fixture.premium.asked.length, headers.get("x-svc-cu")], [120, "360"]);
  const { json: view } = await fixture.manage("", "GET", `/api/v1/agent/keys/${key}`);
  assert.equal(view.balance_cu, 100_000 - 360);
});

test(
  "two batches of an account wait, a third gets 429 and Retry-After; when the callers leave, " +
    "their places are free",
  async (t) => {
    const fixture = await hostedFixture(t, SLOW);
    const key = await fixture.anonymousKey();
    const url = `${fixture.service.url}/rpc/k/${key}/ethereum`;
    const send = (signal: AbortSignal): Promise<Response> =>
      fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(batchOf(60)),
        signal,
      });
    const leaving = new AbortController();
    const sent = [send(leaving.signal), send(leaving.signal), send(leaving.signal)];
    const third = await Promise.race(sent);
    assert.equal(third.status, 429);
    assert.match(
      await third.text(),
      /^{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"two batches .*"code":"rate_limit_exceeded"/,
    );
    // What is left of the others at the rate of the account: far more than a second.
    assert.ok(
      Number(third.headers.get("retry-after")) >= 10,
      third.headers.get("retry-after") ?? "",
    );
    leaving.abort();
    await Promise.allSettled(sent);
    await until(
      "the places to be free",
      async () => (await fixture.service.post(`/rpc/k/${key}/ethereum`, batchOf(1))).status === 200,
    );
  },
);

test(
  "on a socket: items beyond the rate wait, a third batch is refused, and a socket that closes " +
    "frees its place",
  async (t) => {
    const steady = await hostedSockets(t, STEADY);
    const client = await steady.fixture.open(`/ws/rpc${steady.path}`);
    client.send(batchOf(100, "eth_call"));
    const answer = await client.next();
    assert.deepEqual(idsOf(answer), upTo(100));
    assert.ok(answer.every((it: { result?: unknown }) => it.result === "0xa"));

    const slow = await hostedSockets(t, SLOW);
    const [one, two] = [
      await slow.fixture.open(`/ws/rpc${slow.path}`),
      await slow.fixture.open(`/ws/rpc${slow.path}`),
    ];
    for (let n = 0; n < 3; n++) one.send(batchOf(50, "eth_call"));
    const { id, error } = await one.next();
    assert.deepEqual([id, error.code, error.data.code], [null, -32005, "rate_limit_exceeded"]);
    one.ws.terminate();
    await until("the places to be free", async () => {
      two.send(batchOf(1, "eth_call"));
      return Array.isArray(await two.next());
    });
  },
);
