// Bad days over real sockets: a provider that hangs with all connections in use, a socket that
// closes under many calls, a chain without providers.
import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { healthOf, metaOf, serviceFixture, until, walked } from "../fakes/service-fixture.ts";
import { socketFixture } from "../fakes/socket-fixture.ts";

test(
  "a provider that hangs with all its connections in use keeps nobody: those beyond them never " +
    "wait, the others are asked of the next one",
  async (t) => {
    const { call, service, upstreams } = await serviceFixture(t, [undefined, undefined]);
    await service.probed();
    for (let n = 0; n < 30; n++) await call("eth_gasPrice");
    upstreams[0]?.probesSay(null);
    upstreams[0]?.script(() => {});
    const answers = await Promise.all(Array.from({ length: 200 }, () => call("eth_gasPrice")));
    assert.ok(answers.every((it) => it.json.result === "0x1"));
    // Those that a busy machine sends late meet an open circuit, or are asked of both.
    const ways = answers.map(walked);
    for (const way of ways) assert.match(way, /^(?:a:(?:timeout|overtaken|circuit_open) )?b:ok$/);
    const kept = ways.filter((way) => way.startsWith("a:")).length;
    assert.ok(kept > 0 && kept <= 128, `${kept}: no more than there are connections`);
    const health = await healthOf(service, "a");
    assert.deepEqual(
      [health.circuit_breaker_state, health.circuit_opened],
      ["open", { silence: 1, timeout: 0, network: 0, server: 0, auth: 0 }],
    );
    const { text } = await service.get("/metrics");
    assert.match(
      text,
      /^svc_circuit_opened_total\{[^}]*provider="a",transport="http",cause="silence"\} 1$/m,
    );
  },
);

test(
  "a provider whose TLS handshake hangs is left as a silent one is, long before its connection " +
    "would time out",
  async (t) => {
    const connected = new Set<Socket>();
    const hanging = createServer((socket) => void connected.add(socket.on("error", () => {})));
    await new Promise<void>((resolve) => hanging.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      for (const socket of connected) socket.destroy();
      hanging.close();
    });
    const { port } = hanging.address() as AddressInfo;
    const { call, service } = await serviceFixture(t, [undefined, undefined], {
      providers: [{ url: `https://127.0.0.1:${port}` }],
    });
    assert.equal(walked(await call("eth_gasPrice")), "a:circuit_open b:ok");
    assert.equal((await healthOf(service, "a")).circuit_opened.silence, 1);
  },
);

test("one close of a socket counts once toward its circuit, however many calls were under way", async (t) => {
  const { nodes, service } = await socketFixture(t, ["ws", "ws"], {
    set: { monitoring: { socket_heads: false } },
  });
  nodes[0]?.ws.script((asked, reply) => {
    if (asked.method !== "eth_call") nodes[0]?.sane(asked, reply);
  });
  const ask = (id: number) =>
    service.post("/rpc/priority/ethereum?include_meta=headers", {
      jsonrpc: "2.0",
      id,
      method: "eth_call",
      params: [{ to: "0x1" }, "latest"],
    });
  const answers = Array.from({ length: 20 }, (_, id) => ask(id));
  await until("all are under way", () => nodes[0]?.ws.count("eth_call") === 20);
  nodes[0]?.ws.drop();
  for (const answer of await Promise.all(answers)) assert.equal(walked(answer), "a:network b:ok");
  assert.equal((await healthOf(service, "a")).circuit_breaker_state, "closed");
});

test(
  "while every circuit is open four calls at once ask all the same, others are told to come " +
    "back, and a write is sent once to each",
  async (t) => {
    const { call, upstreams, service } = await serviceFixture(t, [undefined, undefined], {
      set: { monitoring: { probe_interval_ms: 600_000 } },
    });
    await service.probed();
    for (const upstream of upstreams) {
      upstream.probesSay(null);
      upstream.script((_, reply) => reply.body("", 500));
    }
    for (let n = 0; n < 5; n++) await call("eth_gasPrice");
    for (const id of ["a", "b"])
      assert.equal((await healthOf(service, id)).circuit_breaker_state, "open");
    const ready = await service.get("/api/ready");
    assert.equal(ready.status, 503);
    assert.match(ready.json.reasons.join(), /^no provider can be used now: .* have answered fail/);
    for (const upstream of upstreams) upstream.script(() => {});
    const before = upstreams.map((it) => it.asked.length);
    const answers = await Promise.all(Array.from({ length: 12 }, () => call("eth_gasPrice")));
    const refused = answers.filter((it) => it.json.error.data.upstream_attempts === 0);
    assert.equal(refused.length, 8);
    for (const { json } of refused)
      assert.deepEqual([json.error.code, json.error.data.retry_after_ms], [-32002, 250]);
    for (const answer of answers) assert.equal(metaOf(answer)["panic"], true);
    const { text } = await service.get("/metrics");
    for (const [result, n] of [
      ["sent", 4],
      ["refused", 8],
    ])
      assert.match(
        text,
        new RegExp(
          `^svc_panic_calls_total\\{profile="team",chain="ethereum",result="${result}"\\} ${n}$`,
          "m",
        ),
      );
    for (const upstream of upstreams) upstream.script((_, reply) => reply.body("", 502));
    const write = await call("eth_sendRawTransaction", ["0x02"]);
    assert.equal(write.json.error.data.code, "outcome_unknown");
    const writes = upstreams.map(
      (it, n) =>
        it.asked.slice(before[n]).filter(({ method }) => method === "eth_sendRawTransaction")
          .length,
    );
    assert.deepEqual(writes, [1, 1]);
    const pinned = await service.post("/rpc/provider/b/ethereum", {
      jsonrpc: "2.0",
      id: 1,
      method: "eth_gasPrice",
    });
    assert.equal(pinned.json.error.data.upstream_attempts, 0, "a pin never panics");
  },
);

test("a call of a panic that succeeds makes its circuit half-open, and the next one closes it", async (t) => {
  const { call, upstreams, service } = await serviceFixture(t, [undefined], {
    set: { monitoring: { probe_interval_ms: 600_000 } },
  });
  await service.probed();
  upstreams[0]?.probesSay(null);
  upstreams[0]?.script((_, reply) => reply.body("", 500));
  for (let n = 0; n < 5; n++) await call("eth_gasPrice");
  upstreams[0]?.script((asked, reply) =>
    asked.method.startsWith("eth_chain") ? reply.body("", 500) : reply.result('"0x2"'),
  );
  const states: string[] = [];
  for (let n = 0; n < 3; n++) {
    const answer = await call("eth_gasPrice");
    assert.equal(answer.json.result, "0x2");
    states.push(
      `${metaOf(answer)["panic"] === true ? "panic " : ""}${(await healthOf(service, "a")).circuit_breaker_state}`,
    );
  }
  assert.deepEqual(states, ["panic half_open", "closed", "closed"]);
});
