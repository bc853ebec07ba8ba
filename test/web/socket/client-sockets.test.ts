// Callers' sockets from the outside: handshakes and refusals, what one message may be, bounds,
// signs of life, slow and hostile clients, and the end.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { configText } from "../../fakes/service.ts";
import { until } from "../../fakes/service-fixture.ts";
import { bare, call, createFixture, frame, open } from "./socket-fixture.ts";

const KEY = `Sec-WebSocket-Key: ${"A".repeat(22)}==`;
const UPGRADE = [
  "Host: x",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  KEY,
];

/** Everything that comes back for a request, until the connection ends or `enough` is there. */
function raw(
  t: TestContext,
  port: number,
  line: string,
  fields: readonly string[],
  enough = "\0",
): Promise<string> {
  return new Promise((resolve) => {
    let got = "";
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(`${line}\r\n${fields.join("\r\n")}\r\n\r\n`),
    );
    t.after(() => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      got += chunk.toString("latin1");
      if (got.includes(enough)) resolve(got);
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(got));
  });
}

function parted(answer: string): {
  readonly status: number;
  readonly head: string;
  readonly code: unknown;
  readonly data: Record<string, unknown>;
} {
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  const { error } = JSON.parse(body) as { error: { code: unknown; data: Record<string, unknown> } };
  assert.match(head, new RegExp(`Content-Length: ${Buffer.byteLength(body)}\\b`));
  return { status: Number(head.split(" ")[1]), head, code: error.code, data: error.data };
}

test("every URL form of HTTP opens a socket under /ws, and pins and strategies count as there", async (t) => {
  const { port, calls, ...fixture } = await createFixture(t);
  fixture.echo = true;
  const forms = [
    "/rpc/1",
    "/rpc/fastest/mainnet",
    "/rpc/profile/team/ethereum",
    "/rpc/profile/team/priority/1",
    "/profile/team/fastest/1",
    "/rpc/1/a",
    "/rpc/provider/a/1",
  ];
  for (const form of forms) {
    const client = await open(t, port, `/ws${form}`);
    client.send(call("x", "eth_gasPrice", [form]));
    assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: "x", result: [form] });
    client.ws.terminate();
  }
  assert.equal(calls.length, 0);
});

test("header pins and the query of the handshake hold for every request on the socket", async (t) => {
  const it = await createFixture(t);
  it.echo = false;
  const client = await open(t, it.port, "/ws/rpc/1?strategy=fastest", {
    headers: { "X-Svc-Provider": "a", "X-Request-Id": "mine" },
  });
  assert.match(client.headers["x-svc-request-id"]?.toString() ?? "", /^req-/);
  assert.equal(client.headers["x-request-id"], "mine");
  client.send(call(1));
  const { request } = await until("the call", () => it.calls[0]);
  assert.deepEqual([request.strategy, request.pin?.id, request.mayStream], ["fastest", "a", false]);
});

test("a handshake that leads nowhere is refused with the status and the JSON body that HTTP gives", async (t) => {
  const { port, observer } = await createFixture(t);
  const refused: readonly (readonly [path: string, status: number, code: string])[] = [
    ["/ws/rpc/nowhere", 400, "unknown_chain"],
    ["/ws/rpc/profile/nobody/1", 404, "unknown_profile"],
    ["/ws/rpc/1/nobody", 400, "invalid_field"],
    ["/ws/rpc/1?strategy=best", 400, "invalid_field"],
    ["/ws/rpc/1?include_meta=headers", 400, "invalid_field"],
    ["/ws/a/b/c/d/e", 404, "not_found"],
  ];
  for (const [path, status, code] of refused) {
    const answer = parted(await raw(t, port, `GET ${path} HTTP/1.1`, UPGRADE, "}}}"));
    assert.deepEqual([answer.status, answer.data["code"]], [status, code], path);
    assert.match(
      answer.head,
      /x-svc-request-id: req-\d+\r\n[\s\S]*Access-Control-Allow-Origin: \*[\s\S]*Connection: close/i,
    );
  }
  assert.equal(observer.sockets.open, 0);
});

test(
  "broken handshakes are told what is missing; requests without an upgrade get 426, other " +
    "methods 405, h2c is plain HTTP",
  async (t) => {
    const { port } = await createFixture(t);
    const get = "GET /ws/rpc/1 HTTP/1.1";
    for (const fields of [
      UPGRADE.slice(0, 4),
      [...UPGRADE.slice(0, 3), "Sec-WebSocket-Version: 7", KEY],
      [...UPGRADE.slice(0, 4), "Sec-WebSocket-Key: short"],
    ]) {
      const answer = parted(await raw(t, port, get, fields, "}}}"));
      assert.deepEqual([answer.status, answer.data["code"]], [400, "invalid_request"]);
      assert.match(answer.head, /Sec-WebSocket-Version: 13/);
    }
    for (const fields of [["Host: x"], ["Host: x", "Connection: Upgrade", "Upgrade: h2c"]]) {
      const answer = parted(await raw(t, port, get, fields, "}}}"));
      assert.deepEqual([answer.status, answer.data["code"]], [426, "upgrade_required"]);
      assert.match(answer.head, /Upgrade: websocket/);
    }
    assert.equal(
      parted(
        await raw(t, port, "POST /ws/rpc/1 HTTP/1.1", [...UPGRADE, "Content-Length: 0"], "}}}"),
      ).status,
      405,
    );
    for (const fields of [UPGRADE.slice(1), [...UPGRADE, "Host: y"]])
      assert.equal(parted(await raw(t, port, get, fields, "}}}")).status, 400);
    const body = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}';
    const plain = [
      "Host: x",
      "Connection: Upgrade",
      "Upgrade: h2c",
      `Content-Length: ${body.length}`,
      "",
      body,
    ];
    assert.match(await raw(t, port, "POST /rpc/1 HTTP/1.1", plain, '"0x1"}'), /^HTTP\/1\.1 200 /);
  },
);

test("ids come back exactly as sent, notifications get no answer, batches keep their order", async (t) => {
  const { port } = await createFixture(t);
  const client = await open(t, port);
  for (const id of ["12345678901234567890123", '"a\\u0041"', "-0", "null"]) {
    client.send(`{"jsonrpc":"2.0","id":${id},"method":"eth_gasPrice","params":[1e3]}`);
    await client.next();
    assert.equal(client.texts.at(-1)?.includes(`"id":${id},`), true, id);
  }
  client.send({ jsonrpc: "2.0", method: "eth_gasPrice" });
  client.send([
    call(2, "eth_gasPrice", [2]),
    { jsonrpc: "2.0", method: "eth_gasPrice" },
    7,
    call(1, "eth_chainId"),
  ]);
  const batch = await client.next();
  assert.deepEqual(
    [batch.length, batch[0].result, batch[1].error.code, batch[2].result],
    [3, [2], -32600, "0x1"],
  );
});

test("junk in text or binary and what is no request is answered with an error, and the socket lives", async (t) => {
  const { port } = await createFixture(t, { max_batch_items: 2 });
  const client = await open(t, port);
  for (const text of ["", "junk", '{"jsonrpc":"2.0"', "\u0000"]) {
    client.send(text);
    const { id, error } = await client.next();
    assert.deepEqual([id, error.code, error.data.code], [null, -32700, "parse_error"]);
  }
  for (const bytes of [Buffer.from("junk"), Buffer.from([0x22, 0xff, 0x22])]) {
    client.ws.send(bytes);
    assert.equal((await client.next()).error.code, -32700);
  }
  for (const value of [
    [],
    [1, 2, 3],
    7,
    { jsonrpc: "1.0", id: 5, method: "x" },
    { jsonrpc: "2.0", id: 1.5, method: "x" },
  ]) {
    client.send(value);
    assert.equal((await client.next()).error.code, -32600);
  }
  client.send(call(1, "eth_chainId"));
  assert.equal((await client.next()).result, "0x1");
});

test("what breaks the protocol is closed with the code of the protocol, and nobody else is affected", async (t) => {
  const it = await createFixture(t, { max_body_bytes: 100_000 });
  const other = await open(t, it.port);
  const cases: readonly (readonly [bytes: Buffer, code: number])[] = [
    [frame(1, Buffer.from([0x22, 0xff, 0xfe, 0x22])), 1007],
    [frame(1, Buffer.alloc(100_001, 0x20)), 1009],
    [Buffer.from([0x81, 0x01, 0x31]), 1002],
    [frame(3, "x"), 1002],
    [frame(0, "x"), 1002],
    [
      Buffer.concat([
        frame(1, "[", false),
        ...Array.from({ length: 1_100 }, () => frame(0, " ", false)),
      ]),
      1008,
    ],
  ];
  for (const [bytes, code] of cases) {
    const socket = await bare(t, it.port);
    const got: Buffer[] = [];
    socket.on("data", (chunk) => got.push(chunk));
    socket.write(bytes);
    await new Promise<void>((resolve) => socket.once("close", () => resolve()));
    const [opcode, , high = 0, low = 0] = Buffer.concat(got);
    assert.deepEqual([opcode, high * 256 + low], [0x88, code]);
  }
  await until("the sockets to be gone", () => it.observer.sockets.open === 1);
  other.send(call(1, "eth_chainId"));
  assert.equal((await other.next()).result, "0x1");
});

test("a message in fragments, with pings between them, is one message, and every ping is answered", async (t) => {
  const { port } = await createFixture(t);
  const socket = await bare(t, port);
  let got = "";
  socket.on("data", (chunk: Buffer) => {
    got += chunk.toString("latin1");
  });
  socket.write(frame(1, '{"jsonrpc":"2.0",', false));
  socket.write(frame(9, "sign"));
  socket.write(Buffer.concat([frame(0, '"id":1,"method":', false), frame(0, '"eth_chainId"}')]));
  await until("the answer", () => got.includes('"0x1"}'));
  assert.ok(got.includes("\x8a\x04sign"));
});

test("requests beyond those in flight wait for an answer, and all are answered", async (t) => {
  const it = await createFixture(t, { max_socket_requests: 2 });
  it.echo = false;
  const client = await open(t, it.port);
  for (let id = 1; id <= 3; id++) client.send(call(id));
  client.send([call(4)]);
  client.send("junk");
  assert.equal((await client.next()).error.code, -32700);
  assert.equal(it.calls.length, 2);
  it.calls[0]?.answer('"first"');
  assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: "first" });
  assert.equal(it.calls.length, 2);
  for (const text of ['"second"', '"third"']) it.calls[0]?.answer(text);
  it.calls[0]?.answer('"fourth"');
  assert.deepEqual((await client.next()).result, "second");
  assert.deepEqual((await client.next()).result, "third");
  assert.deepEqual(await client.next(), [{ jsonrpc: "2.0", id: 4, result: "fourth" }]);
  await until("all given back", () => it.budget.used === 0);
});

test(
  "a socket whose requests hold as many bytes as they may is not read, so that its client cannot " +
    "send, until some of them end; then each is answered",
  async (t) => {
    const it = await createFixture(t, { max_socket_bytes: 100_000, max_socket_requests: 4 });
    it.echo = false;
    const client = await open(t, it.port);
    const count = 800;
    const padding = "x".repeat(60_000);
    for (let id = 0; id < count; id++) client.send(call(id, "eth_call", [padding]));
    await until("the first calls", () => it.calls.length > 0);
    // What is sent fills the buffers of the kernel, and then stays with the client.
    let unsent = -1;
    await until("a client that cannot send", async () => {
      const before = unsent;
      await new Promise((resolve) => setTimeout(resolve, 50));
      unsent = client.ws.bufferedAmount;
      return unsent === before && unsent > 0;
    });
    assert.ok(unsent > 20_000_000, `${unsent} bytes stay with the client`);
    // The bound, the message that exceeded it, and one that has arrived in part.
    assert.ok(it.budget.used < 100_000 + 3 * 65_536, `${it.budget.used} bytes are held`);
    it.echo = true;
    for (const waiting of [...it.calls]) waiting.answer('"0x1"');
    for (let id = 0; id < count; id++) assert.equal((await client.next()).id, id);
    await until("all given back", () => it.budget.used === 0);
  },
);

test("a full socket, on which no pong can be seen, lives on", async (t) => {
  const runtime = simulatedWorld(7);
  t.after(() => void setInterval(() => runtime.advance(500), 5).unref());
  const it = await createFixture(t, { max_socket_bytes: 1_024 }, runtime);
  it.echo = false;
  const client = await open(t, it.port);
  client.send(call(1, "eth_call", ["x".repeat(2_000)]));
  await until("the call", () => it.calls.length === 1);
  for (let n = 0; n < 5; n++) runtime.advance(30_000);
  client.send(call(2));
  it.calls[0]?.answer('"0x1"');
  assert.equal((await client.next()).result, "0x1");
  await until("the next call", () => it.calls.length === 1);
});

test(
  "a socket that is full and whose client does not read its answers is read again when neither " +
    "is so any more, whichever ends first",
  async (t) => {
    const limits = { max_socket_bytes: 1_024, max_socket_queue_bytes: 20_000_000 };
    const it = await createFixture(t, limits);
    it.echo = false;
    const client = await open(t, it.port);
    const other = await open(t, it.port);
    /** What had arrived before is read after this, if it is read at all. */
    const turns = async (): Promise<void> => {
      for (let n = 0; n < 3; n++) {
        other.send(call(n, "eth_chainId"));
        await other.next();
      }
    };
    const answer = `"${"y".repeat(12_000_000)}"`;
    const large = ["x".repeat(2_000)];
    for (const isFullLonger of [false, true]) {
      client.send(call(1));
      client.send(call(2, "eth_call", large));
      await until("both calls", () => it.calls.length === 2);
      client.ws.pause();
      client.send(call(3, "eth_call", ["z".repeat(100_000)]));
      if (!isFullLonger) it.calls[1]?.answer('"0x2"');
      it.calls[0]?.answer(answer);
      await until("bytes that wait", () => it.budget.used > 1_048_576);
      await turns();
      assert.deepEqual([it.calls.length, it.budget.callers], [isFullLonger ? 1 : 0, 0]);
      client.ws.resume();
      for (let n = isFullLonger ? 1 : 0; n < 2; n++) await client.next();
      await turns();
      if (isFullLonger) {
        assert.deepEqual([it.calls.length, it.budget.callers], [1, 0]);
        it.calls[0]?.answer('"0x2"');
        await client.next();
      }
      await until("the last call", () => it.calls.length === 1 && it.budget.callers === 1);
      it.calls[0]?.answer('"0x3"');
      assert.equal((await client.next()).result, "0x3");
    }
    await until("all given back", () => it.budget.used === 0);
  },
);

test("a request that waits is started when its client has read the answers before it", async (t) => {
  const limits = { max_socket_requests: 1, max_socket_queue_bytes: 20_000_000 };
  const it = await createFixture(t, limits);
  it.echo = false;
  const client = await open(t, it.port);
  for (const id of [1, 2]) client.send(call(id));
  await until("a request that waits", () => it.calls.length === 1 && it.budget.callers === 1);
  client.ws.pause();
  it.calls[0]?.answer(`"${"y".repeat(12_000_000)}"`);
  assert.equal(it.calls.length, 0);
  client.ws.resume();
  await until("its start", () => it.calls.length === 1);
});

test("request bytes are bounded, with those of half-received messages, on all sockets together", async (t) => {
  const it = await createFixture(t, { max_in_flight_bytes: 300_000, max_body_bytes: 1_000_000 });
  it.echo = false;
  const client = await open(t, it.port);
  client.send(call(1, "eth_call", ["x".repeat(8_000)]));
  await until("the call", () => it.calls.length === 1 && it.budget.used > 8_000);
  const socket = await bare(t, it.port);
  const got: Buffer[] = [];
  socket.on("data", (chunk) => got.push(chunk));
  socket.write(frame(1, Buffer.alloc(900_000, 0x20)).subarray(0, 400_000));
  await new Promise<void>((resolve) => socket.once("close", () => resolve()));
  assert.deepEqual([...Buffer.concat(got).subarray(2, 4)], [1013 >> 8, 1013 & 255]);
  it.calls[0]?.answer("1");
  await client.next();
  await until("all given back", () => it.budget.used === 0);
});

test("a socket that closes ends its calls and gives everything back", async (t) => {
  const it = await createFixture(t);
  it.echo = false;
  const client = await open(t, it.port);
  client.send(call(1));
  client.send([call(2), call(3)]);
  const calls = [...(await until("the calls", () => it.calls.length === 3 && [...it.calls]))];
  for (let id = 4; id < 60; id++) client.send(call(id));
  await until("calls that wait", () => it.calls.length === 33 && it.budget.callers === 1);
  client.ws.close(1000);
  await client.closed;
  await until("the end", () => it.observer.sockets.open === 0);
  assert.ok(calls.every(({ cancelled }) => cancelled));
  assert.equal(it.budget.used, 0);
  assert.deepEqual([...it.observer.sockets.closes], [["1000", 1]]);
});

test(
  "a client that does not read is no longer read itself, and what waits for it counts until it " +
    "is gone",
  async (t) => {
    const it = await createFixture(t, { max_socket_queue_bytes: 4_000_000 });
    const socket = await bare(t, it.port);
    socket.pause();
    const large = frame(1, JSON.stringify(call(1, "eth_call", ["x".repeat(900_000)])));
    const feeding = setInterval(() => socket.writableLength === 0 && socket.write(large), 2);
    t.after(() => clearInterval(feeding));
    await until("bytes that wait", () => it.budget.used > 1_048_576);
    const unread = await until(
      "a client that cannot send",
      () => socket.writableLength > 0 && it.budget.used,
    );
    assert.ok(unread < 4_000_000, `${unread} bytes wait`);
    assert.equal(it.observer.sockets.open, 1);
    clearInterval(feeding);
    socket.destroy();
    await until("the end", () => it.observer.sockets.open === 0);
    assert.equal(it.budget.used, 0);
  },
);

test("pings go out at their time; two without a pong close with 1002, and a late pong counts", async (t) => {
  const runtime = simulatedWorld(7);
  // The drain at the end needs time to pass.
  t.after(() => void setInterval(() => runtime.advance(500), 5).unref());
  const it = await createFixture(t, {}, runtime);
  const silent = await open(t, it.port, "/ws/rpc/1", { autoPong: false });
  const answering = await open(t, it.port);
  let pings = 0;
  silent.ws.on("ping", () => {
    pings++;
  });
  const heard: unknown[] = [];
  answering.ws.on("ping", () => heard.push(1));
  for (let n = 1; n <= 3; n++) {
    runtime.advance(30_000);
    await until(`ping ${n}`, () => pings === n && heard.length === n);
    if (n === 2) silent.ws.pong();
    // The pongs must have arrived before time goes on; an answer comes after them.
    for (const client of [silent, answering]) {
      client.send(call(n, "eth_chainId"));
      await client.next();
    }
  }
  runtime.advance(30_000);
  await until("ping 4", () => pings === 4 && heard.length === 4);
  answering.send(call(9, "eth_chainId"));
  await answering.next();
  runtime.advance(30_000);
  assert.deepEqual(await silent.closed, [1002, "no pong came"]);
  assert.equal(answering.ws.readyState, WebSocket.OPEN);
  await until("the count", () => it.observer.sockets.closes.get("1002") === 1);
});

test("a drain lets calls finish, refuses new ones and new sockets, and closes with 1012", async (t) => {
  const it = await createFixture(t, { drain_timeout_ms: 60_000, max_socket_requests: 1 });
  it.echo = false;
  const client = await open(t, it.port);
  const idle = await open(t, it.port);
  client.send(call(1));
  client.send(call("waits"));
  await until("the calls", () => it.calls.length === 1 && it.budget.callers === 1);
  const over = it.server.drain();
  client.send(call(2));
  for (const id of ["waits", 2]) {
    const refused = await client.next();
    assert.deepEqual([refused.id, refused.error.data.code], [id, "unavailable"]);
  }
  it.calls[0]?.answer('"done"');
  assert.equal((await client.next()).result, "done");
  assert.deepEqual(await client.closed, [1012, "service restart"]);
  assert.deepEqual(await idle.closed, [1012, "service restart"]);
  await over;
  assert.equal(it.observer.sockets.open, 0);
});

test(
  "a drain refuses handshakes on open connections with 503, and cuts a client that does not " +
    "answer its close",
  async (t) => {
    const it = await createFixture(t, { drain_timeout_ms: 60_000 });
    const waiting = connect(it.port, "127.0.0.1");
    t.after(() => waiting.destroy());
    let got = "";
    waiting.on("data", (chunk: Buffer) => {
      got += chunk.toString();
    });
    waiting.write("GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n");
    await until("its answer", () => got.includes('"healthy"'));
    const deaf = await bare(t, it.port);
    const over = it.server.drain();
    got = "";
    waiting.write(`GET /ws/rpc/1 HTTP/1.1\r\n${UPGRADE.join("\r\n")}\r\n\r\n`);
    await until("the refusal", () => got.includes("}}}"));
    assert.match(got, /^HTTP\/1\.1 503 [\s\S]*Retry-After: 1\r\n[\s\S]*"unavailable"/);
    await over;
    await until(
      "the cut",
      () => deaf.destroyed || deaf.readableEnded || it.observer.sockets.open === 0,
    );
  },
);

test("a reload reaches open sockets: they go on with the new profile, or are told that it is gone", async (t) => {
  const it = await createFixture(t);
  it.echo = false;
  const client = await open(t, it.port, "/ws/rpc/1/a");
  const next = (id: string): string => configText([{ id, url: "http://next.test" }]);
  it.reload(next("a"));
  client.send(call(1));
  const { request } = await until("the call", () => it.calls[0]);
  assert.equal(request.pin?.url, "http://next.test");
  it.reload(next("b"));
  client.send(call(2));
  assert.deepEqual((await client.next()).error.data.known_providers, ["b"]);
});

test(
  "evidence comes in the body when the address says so, and in a message of its own when the " +
    "request does",
  async (t) => {
    const { port } = await createFixture(t);
    const body = await open(t, port, "/ws/rpc/1?include_meta=body");
    body.send(call(1, "eth_chainId"));
    const { svc_meta: meta } = await body.next();
    assert.deepEqual([meta.transport, meta.chain_id, meta.attempts], ["ws", 1, []]);
    const client = await open(t, port);
    client.send(call("a", "eth_gasPrice", [], { svc_meta: "notify" }));
    assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: "a", result: [] });
    const note = await client.next();
    assert.deepEqual(
      [note.method, note.params.id, note.params.transport, note.params.profile, note.id],
      ["svc_meta", "a", "ws", "team", undefined],
    );
    client.send([
      call(1, "eth_chainId", [], { svc_meta: "notify" }),
      call(2, "eth_gasPrice", [], { svc_meta: "other" }),
      call(3, "eth_gasPrice", [], { svc_meta: "notify" }),
    ]);
    assert.equal((await client.next()).length, 3);
    assert.deepEqual([(await client.next()).params.id, (await client.next()).params.id], [1, 3]);
    client.send({ jsonrpc: "2.0", method: "eth_gasPrice", svc_meta: "notify" });
    client.send(call(4, "eth_chainId"));
    assert.equal((await client.next()).id, 4);
  },
);

test("answers of every size arrive whole in one frame", async (t) => {
  const { port } = await createFixture(t);
  const client = await open(t, port);
  for (const size of [
    0, 70, 71, 72, 100, 125, 16_300, 16_384, 65_400, 65_535, 65_536, 200_000, 3_000_000,
  ]) {
    client.send(call(size, "eth_call", ["é".repeat(size)]));
    const { id, result } = await client.next();
    assert.deepEqual([id, result[0].length], [size, size]);
  }
});

test(
  "a connection that has carried HTTP requests can become a socket, and one whose request " +
    "waits for its answer cannot",
  async (t) => {
    const it = await createFixture(t);
    const body = JSON.stringify(call(1, "eth_chainId"));
    const post = `POST /rpc/1 HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const upgrade = `GET /ws/rpc/1 HTTP/1.1\r\n${UPGRADE.join("\r\n")}\r\n\r\n`;
    const socket = connect(it.port, "127.0.0.1");
    t.after(() => socket.destroy());
    let got = "";
    socket.on("data", (chunk: Buffer) => {
      got += chunk.toString("latin1");
    });
    socket.write(post);
    await until("the answer", () => got.endsWith('"0x1"}'));
    socket.write(upgrade);
    await until("the switch", () => got.includes("HTTP/1.1 101 "));
    socket.write(frame(1, body));
    await until("the frame", () => got.endsWith('\x81\x27{"jsonrpc":"2.0","id":1,"result":"0x1"}'));
    it.echo = false;
    const busy = connect(it.port, "127.0.0.1", () =>
      busy.write(
        `GET /api/health HTTP/1.1\r\nHost: ` +
          `x\r\n\r\n${post.replace("eth_chainId", "eth_blockNum")}${upgrade}`,
      ),
    );
    t.after(() => busy.destroy());
    await new Promise<void>((resolve) =>
      busy
        .on("error", () => {})
        .resume()
        .once("close", () => resolve()),
    );
  },
);

test("sockets, closes and notifications are told on /metrics", async (t) => {
  const it = await createFixture(t);
  const client = await open(t, it.port);
  client.send(call(1, "eth_subscribe", ["syncing"]));
  const { subscriber } = await until("the subscription", () => it.asked[0]);
  subscriber.started(null);
  subscriber.events([Buffer.from("true"), Buffer.from("false")]);
  const page = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${it.port}/metrics`)).text();
  const text = await page();
  assert.match(text, /^svc_sockets 1$/m);
  assert.match(
    text,
    /^svc_notifications_total\{profile="team",chain="ethereum",kind="syncing"\} 2$/m,
  );
  client.ws.close(4_321);
  await client.closed;
  await until("the count", async () =>
    /^svc_socket_closes_total\{code="other"\} 1$/m.test(await page()),
  );
});
