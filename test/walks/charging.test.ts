// What is charged when an answer does not reach its end: callers who leave, answers that the
// service cuts off, on every way into it. Real sockets, a real store.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { type Runtime, realRuntime } from "../../src/runtime.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { type HostedFixture, hostedFixture } from "../fakes/hosted-fixture.ts";
import { PATIENT, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const GRANT_CU = 5_000;
const RAW = "0x02f8";

const callOf = (method: string, id: unknown = 1): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"${method}","params":["${RAW}"]}`;

/** The bytes of a POST; with `viaNode` they go on to node's HTTP server. */
function post(path: string, body: string, viaNode: boolean): string {
  const extra = viaNode ? "TE: trailers\r\n" : "";
  return (
    `POST ${path} HTTP/1.1\r\nHost: svc\r\n${extra}Content-Length: ` +
    `${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

/** A caller on a connection of its own, who can be made to leave. */
function caller(
  t: TestContext,
  port: number,
): { readonly socket: Socket; readonly received: () => number } {
  const socket = connect({ port, host: "127.0.0.1" });
  let received = 0;
  socket.on("data", (chunk) => {
    received += chunk.length;
  });
  socket.on("error", () => {});
  t.after(() => socket.destroy());
  return { socket, received: () => received };
}

async function usedCu({ service }: HostedFixture, key: string): Promise<number> {
  return GRANT_CU - (await service.get(`/api/v1/agent/keys/${key}`)).json.balance_cu;
}

for (const viaNode of [false, true]) {
  const door = viaNode ? "node's HTTP server" : "the fast path";

  test(`who leaves before the answer pays for what a provider was asked, at ${door}`, async (t) => {
    const fixture = await hostedFixture(t);
    fixture.premium.script(() => {});
    for (const [method, cu] of [
      ["eth_sendRawTransaction", 5],
      ["debug_traceBlockByNumber", 100],
      ["no_such_method", 3],
      ["eth_gasPrice", 3],
    ] as const) {
      const key = await fixture.anonymousKey();
      const asked = fixture.premium.asked.length;
      const { socket } = caller(t, fixture.service.port);
      socket.write(post(`/rpc/k/${key}/ethereum`, callOf(method), viaNode));
      await until("the provider is asked", () => fixture.premium.asked.length > asked);
      assert.equal(await usedCu(fixture, key), 0, "nothing is charged while the call is under way");
      socket.destroy();
      await until(`${method} is charged`, async () => (await usedCu(fixture, key)) === cu);
    }
  });

  test(
    "a streamed answer that its provider breaks off is free, and one that its caller leaves is " +
      `not, at ${door}`,
    async (t) => {
      const fixture = await hostedFixture(t);
      const key = await fixture.anonymousKey();
      const long = "x".repeat(300_000);
      const replies: (() => void)[] = [];
      fixture.premium.script(
        ({ id }, reply) =>
          void replies.push(reply.begin(`{"jsonrpc":"2.0","id":${id},"result":"${long}`).reset),
      );
      const path = `/rpc/k/${key}/ethereum`;

      const cut = caller(t, fixture.service.port);
      const closed = new Promise((resolve) => cut.socket.on("close", resolve));
      cut.socket.write(post(path, callOf("debug_traceBlockByNumber"), viaNode));
      await until("the answer begins", () => cut.received() > 100_000);
      assert.equal(await usedCu(fixture, key), 0, "nothing is charged before the answer has ended");
      replies[0]?.();
      await closed;
      await until("the answer is cut off", () => /answer cut off/.test(fixture.service.log()));
      assert.equal(await usedCu(fixture, key), 0);

      const leaving = caller(t, fixture.service.port);
      leaving.socket.write(post(path, callOf("debug_traceBlockByNumber"), viaNode));
      await until("the answer begins", () => leaving.received() > 100_000);
      leaving.socket.destroy();
      await until("what was left is charged", async () => (await usedCu(fixture, key)) === 100);

      fixture.premium.script((_, reply) => reply.result(`"${long}"`));
      const whole = await fixture.call(key, "debug_traceBlockByNumber");
      assert.deepEqual(
        [whole.json.result.length, whole.headers.get("x-svc-cu"), whole.headers.get("x-svc-usd")],
        [300_000, "100", "0.0005"],
      );
      assert.equal(await usedCu(fixture, key), 200);
    },
  );
}

test(
  "of a batch whose caller leaves the items that were under way are charged, and those that " +
    "never began are not",
  async (t) => {
    const fixture = await hostedFixture(t, {}, { limits: { batch_concurrency: 2 } });
    const key = await fixture.anonymousKey();
    fixture.premium.script(({ method }, reply) =>
      method === "eth_gasPrice" ? reply.result('"0x1"') : undefined,
    );
    const items = [
      "eth_gasPrice",
      "eth_sendRawTransaction",
      "debug_traceTransaction",
      "debug_traceTransaction",
      "debug_traceTransaction",
    ];
    const { socket } = caller(t, fixture.service.port);
    socket.write(
      post(
        `/rpc/k/${key}/ethereum`,
        `[${items.map((it, n) => callOf(it, n + 1)).join(",")}]`,
        false,
      ),
    );
    await until("two items are under way", () => fixture.premium.asked.length === 3);
    socket.destroy();
    await until("they are charged", async () => (await usedCu(fixture, key)) === 3 + 5 + 50);
    assert.equal(fixture.premium.asked.length, 3);
  },
);

test("a caller who closes its WebSocket pays for what a provider was asked", async (t) => {
  const fixture = await hostedFixture(t);
  const key = await fixture.anonymousKey();
  fixture.premium.script(() => {});
  for (const [end, cu] of [
    ["close", 5],
    ["terminate", 10],
  ] as const) {
    const asked = fixture.premium.asked.length;
    const ws = new WebSocket(`ws://127.0.0.1:${fixture.service.port}/ws/rpc/k/${key}/ethereum`);
    t.after(() => ws.terminate());
    await new Promise((resolve) => ws.on("open", resolve));
    ws.send(callOf("eth_sendRawTransaction"));
    await until("the provider is asked", () => fixture.premium.asked.length > asked);
    ws[end]();
    await until("it is charged", async () => (await usedCu(fixture, key)) === cu);
  }
});

/** A hosted service that a test stops; `used` reads afterwards what was charged. */
async function stoppable(
  t: TestContext,
  limits: Record<string, unknown>,
  runtime: Runtime = realRuntime,
) {
  const upstream = await scriptedUpstream();
  const dataDir = mkdtempSync(join(tmpdir(), "svc-charging-"));
  t.after(async () => {
    await upstream.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const provider = { chains: { ethereum: { providers: [{ id: "a", url: upstream.url }] } } };
  const service = await startService(
    JSON.stringify({
      server: { port: 0 },
      data_dir: dataDir,
      chains: { ethereum: { chain_id: 1, name: "Ethereum", block_time_ms: 12_000 } },
      profiles: { premium: provider, public: provider },
      limits: { drain_timeout_ms: 300, ...limits },
      deadlines: PATIENT,
      hosted: { enabled: true },
    }),
    runtime,
  );
  const { key } = (await service.post("/api/v1/agent/keys", {})).json;
  const used = async () => {
    const store = await openStore({ url: "", dataDir });
    t.after(() => store.close());
    return await store.db.selectFrom("usage_hour").select(["method", "calls", "cu"]).execute();
  };
  return { service, upstream, path: `/rpc/k/${key}/ethereum`, used };
}

/** A WebSocket that is open. */
async function opened(t: TestContext, url: string): Promise<WebSocket> {
  const ws = new WebSocket(url);
  t.after(() => ws.terminate());
  ws.on("error", () => {});
  await new Promise((resolve) => ws.on("open", resolve));
  return ws;
}

test("calls that the service itself gives up when it stops are free", async (t) => {
  const { service, upstream, path, used } = await stoppable(t, {});
  upstream.script(() => {});
  for (const viaNode of [false, true])
    caller(t, service.port).socket.write(post(path, callOf("eth_sendRawTransaction"), viaNode));
  const ws = await opened(t, `ws://127.0.0.1:${service.port}/ws${path}`);
  ws.send(callOf("eth_sendRawTransaction"));
  await until("all are under way", () => upstream.asked.length === 3);
  await service.drain();
  assert.deepEqual(await used(), []);
});

test(
  "a batch that the service gives up when it stops is free, also the items that were answered " +
    "by then",
  async (t) => {
    const { service, upstream, path, used } = await stoppable(t, {});
    upstream.script(({ method }, reply) =>
      method === "eth_gasPrice" ? reply.result('"0x1"') : undefined,
    );
    const batch = `[${["eth_gasPrice", "eth_gasPrice", "debug_traceTransaction"].map((it, n) => callOf(it, n + 1)).join(",")}]`;
    for (const viaNode of [false, true])
      caller(t, service.port).socket.write(post(path, batch, viaNode));
    const ws = await opened(t, `ws://127.0.0.1:${service.port}/ws${path}`);
    ws.send(batch);
    await until("all are under way", () => upstream.asked.length === 9);
    // One that is answered is charged: the others differ from it by their end alone.
    const whole = await fetch(`${service.url}${path}`, {
      method: "POST",
      body: `[${callOf("eth_gasPrice", 1)},${callOf("eth_gasPrice", 2)}]`,
    });
    assert.equal((await whole.text()).length > 50, true);
    await service.drain();
    assert.deepEqual(await used(), [{ method: "eth_gasPrice", calls: 2n, cu: 6n }]);
  },
);

for (const ending of ["stops", "is left"] as const) {
  const free = ending === "stops";
  test(
    `a batch's answer that lies ready unread when the service ${ending} is ` +
      `${free ? "free" : "charged"}`,
    async (t) => {
      const { service, upstream, path, used } = await stoppable(t, {});
      const long = `"${"x".repeat(6_000_000)}"`;
      upstream.script((_, reply) => reply.result(long));
      const batch = `[${["eth_gasPrice", "eth_gasPrice", "eth_gasPrice"].map((it, n) => callOf(it, n + 1)).join(",")}]`;
      const readers: { end(): void }[] = [];
      for (const viaNode of [false, true]) {
        const socket = connect({ port: service.port, host: "127.0.0.1" });
        socket.on("error", () => {});
        t.after(() => socket.destroy());
        socket.write(post(path, batch, viaNode));
        await new Promise((resolve) => socket.once("readable", resolve));
        readers.push({ end: () => socket.destroy() });
      }
      const ws = await opened(t, `ws://127.0.0.1:${service.port}/ws${path}`);
      ws.pause();
      ws.send(batch);
      await until("all are answered", () => upstream.asked.length === 9);
      readers.push({ end: () => ws.terminate() });
      const waiting = async () =>
        /svc_in_flight_bytes (\d+)/.exec((await service.get("/metrics")).text)?.[1];
      await until("the answers wait to be read", async () => Number(await waiting()) > 30_000_000);
      if (free) await service.drain();
      else {
        for (const reader of readers) reader.end();
        await until("they are gone", async () => (await waiting()) === "0");
        await service.drain();
      }
      assert.deepEqual(await used(), free ? [] : [{ method: "eth_gasPrice", calls: 9n, cu: 27n }]);
    },
  );
}

for (const ending of ["stops", "waits for its reader"] as const) {
  const free = ending === "stops";
  test(
    `a streamed answer that is not read any more is ${free ? "free" : "charged"} when the ` +
      `service ${ending}`,
    async (t) => {
      let aheadMs = 0;
      const { service, upstream, path, used } = await stoppable(
        t,
        {},
        { ...realRuntime, now: () => realRuntime.now() + aheadMs },
      );
      const long = `"${"x".repeat(30_000_000)}"`;
      upstream.script((_, reply) => reply.result(long));
      for (const viaNode of [false, true]) {
        const socket = connect({ port: service.port, host: "127.0.0.1" });
        socket.on("error", () => {});
        t.after(() => socket.destroy());
        socket.write(post(path, callOf("debug_traceBlockByNumber"), viaNode));
        await new Promise((resolve) => socket.once("readable", resolve));
      }
      if (!free) {
        const cut = () => [...service.log().matchAll(/"answer cut off"/g)].length;
        // Nothing moves any more once the connections are full: then the time of a reader who has
        // left is over.
        await until("both are cut off", () => {
          aheadMs += 1_000;
          return cut() === 2;
        });
      }
      await service.drain();
      assert.deepEqual(
        await used(),
        free ? [] : [{ method: "debug_traceBlockByNumber", calls: 2n, cu: 200n }],
      );
    },
  );
}

test("what is under way on a WebSocket that a bound of all callers together ends is free", async (t) => {
  const { service, upstream, path, used } = await stoppable(t, { max_in_flight_bytes: 200_000 });
  upstream.script(({ method }, reply) =>
    method === "eth_gasPrice" ? reply.result('"0x1"') : undefined,
  );
  const ws = await opened(t, `ws://127.0.0.1:${service.port}/ws${path}`);
  ws.send(callOf("eth_sendRawTransaction"));
  ws.send(`[${callOf("eth_gasPrice", 1)},${callOf("debug_traceTransaction", 2)}]`);
  await until("all are under way", () => upstream.asked.length === 3);
  const closed = new Promise<number>((resolve) => ws.on("close", resolve));
  ws.send("x".repeat(300_000));
  assert.equal(await closed, 1013);
  await service.drain();
  assert.deepEqual(await used(), []);
});
