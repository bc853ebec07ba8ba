// The fast path beside node's HTTP server, from the outside: the same request gets the same answer
// whichever server writes it, however its bytes arrive, however slowly the answer is read, and
// whenever client or service leave.
import assert from "node:assert/strict";
import { createCipheriv } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { pino } from "pino";
import { build } from "../../src/app/app.ts";
import { realRuntime } from "../../src/runtime.ts";
import { startProcess } from "../fakes/process.ts";
import { openRawClient, type RawClient, takeAnswer, type WireAnswer } from "../fakes/raw-client.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../fakes/runtime.ts";
import { configOf, configText, type Service, startService } from "../fakes/service.ts";
import { type ServiceFixture, serviceFixture, until } from "../fakes/service-fixture.ts";
import { type Script, scriptedUpstream } from "../fakes/upstream.ts";

/** Which server wrote this answer: the two put its length in different places. */
function serverOf({ lines }: WireAnswer): "fast path" | "node" {
  const framing = lines.findIndex((it) => /^(Content-Length|Transfer-Encoding):/.test(it));
  assert.notEqual(framing, -1, "without a body there is no telling");
  return framing < lines.findIndex((it) => it.startsWith("Access-Control-Allow-Origin"))
    ? "fast path"
    : "node";
}

/** Lines that the fast path does not serve and node's server does. */
const ODD = ["X-Odd: 1", "X-Odd: 2"];

/** What must be the same through both servers. */
function comparable({ status, lines, body }: WireAnswer): {
  readonly status: string;
  readonly lines: readonly string[];
  readonly body: string;
} {
  const kept = lines.filter((it) => !/^(date|x-svc-request-id|x-svc-meta):/i.test(it));
  return { status, lines: kept.sort(), body: body.toString("latin1") };
}

interface Request {
  readonly target?: string;
  readonly lines?: readonly string[];
  readonly body: string | Buffer;
}

function bytesOf({ target = "/rpc/1", lines = [], body }: Request): Buffer {
  const bytes = Buffer.from(body);
  const head = [
    `POST ${target} HTTP/1.1`,
    "Host: x",
    "Content-Type: application/json",
    ...lines,
    `Content-Length: ${bytes.length}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), bytes]);
}

const callText = (id: number | string, method = "eth_call", params = "[]"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
const LONG = `"${"0123456789".repeat(20_000)}"`;

/** Answers by method, so that each request has an answer of its own kind. */
const provider: Script = ({ method, params }, reply) => {
  if (method === "eth_getLogs") reply.result(LONG);
  else if (method === "eth_call") reply.result(JSON.stringify(params));
  else if (method === "eth_estimateGas")
    reply.error('{"code":3,"message":"execution reverted","data":"0x08c379a0"}');
  else reply.result('"0x5"');
};

const REQUESTS: Readonly<Record<string, Request>> = {
  "a call": { body: callText(1) },
  "a call answered without a provider": { body: callText(2, "eth_chainId") },
  "a provider's error": { body: callText(3, "eth_estimateGas") },
  "an id that must come back as it is": { body: callText('"\\u0041"') },
  "a long answer": { body: callText(5, "eth_getLogs") },
  "a long answer whose envelope is written anew": { body: callText('"\\u0041"', "eth_getLogs") },
  "a batch": { body: `[${callText(1)},${callText(2, "eth_chainId")},{"x":1},${callText(1)}]` },
  "an empty batch": { body: "[]" },
  "a notification": { body: '{"jsonrpc":"2.0","method":"eth_call","params":[]}' },
  "an empty body": { body: "" },
  "no JSON": { body: '{"jsonrpc":"2.0","id":1,' },
  "no UTF-8": { body: Buffer.from([0x22, 0xff, 0xfe, 0x22]) },
  "no request": { body: '{"jsonrpc":"1.0","id":1,"method":"x"}' },
  "a blocked method": { body: callText(6, "eth_sign") },
  "an unknown chain": { target: "/rpc/nowhere", body: callText(7) },
  "an unknown path": { target: "/rpc/1/2/3/4/5/6", body: callText(7) },
  "an unknown pin": { target: "/rpc/1?provider=zzz", body: callText(8) },
  "a pin in a header": { lines: ["X-Svc-Provider:\ta "], body: callText(9) },
  "a pin with a character that looks like space": {
    lines: ["X-Svc-Provider: a\xa0"],
    body: callText(9),
  },
  "evidence in the body, refused": { target: "/rpc/1?include_meta=everywhere", body: callText(10) },
  "an id of the caller's own": { lines: ["X-Request-Id: mine-1"], body: callText(11) },
  "a compressed body": { lines: ["Content-Encoding: gzip"], body: callText(12) },
};

/** Places where a parser that waits for more could go wrong. */
function places(bytes: Buffer): readonly number[] {
  const line = bytes.indexOf("\r\n");
  const head = bytes.indexOf("\r\n\r\n");
  const length = bytes.indexOf("Content-Length: ");
  const all = [
    1,
    4,
    5,
    9,
    line - 1,
    line,
    line + 1,
    line + 2,
    line + 7,
    length,
    length + 14,
    length + 16,
    head - 1,
    head,
    head + 1,
    head + 2,
    head + 3,
    head + 4,
    head + 5,
    bytes.length - 1,
  ];
  return [...new Set(all)].filter((it) => it > 0 && it < bytes.length);
}

/** Sends bytes in two pieces with a pause between. */
async function sendSplit(client: RawClient, bytes: Buffer, at: number): Promise<void> {
  client.socket.write(bytes.subarray(0, at));
  await sleep(4);
  client.socket.write(bytes.subarray(at));
}

function open(t: TestContext, { port }: { readonly port: number }): Promise<RawClient> {
  return openRawClient(t, port);
}

async function exchange(
  t: TestContext,
  service: { readonly port: number },
  bytes: Buffer,
): Promise<WireAnswer> {
  const client = await open(t, service);
  client.socket.write(bytes);
  const answer = await client.answer();
  client.socket.destroy();
  return answer;
}

test(
  "the same answer through both servers: whole, cut in two anywhere, pipelined, and after " +
    "requests of either kind",
  async (t) => {
    const { service } = await serviceFixture(t, [provider]);
    const odd = Buffer.from("GET /api/chains HTTP/1.1\r\nHost: x\r\n\r\n");
    const plain = bytesOf({ body: callText(99) });
    for (const [name, request] of Object.entries(REQUESTS)) {
      await t.test(name, async (t) => {
        const bytes = bytesOf(request);
        const whole = await exchange(t, service, bytes);
        const expected = comparable(whole);
        const throughNode = await exchange(
          t,
          service,
          bytesOf({ ...request, lines: [...(request.lines ?? []), ...ODD] }),
        );
        assert.deepEqual(comparable(throughNode), expected);
        if (whole.body.length > 0)
          assert.deepEqual([serverOf(whole), serverOf(throughNode)], ["fast path", "node"]);

        const cut = async (at: number): Promise<void> => {
          const client = await open(t, service);
          await sendSplit(client, bytes, at);
          assert.deepEqual(comparable(await client.answer()), expected, `cut at ${at}`);
          client.socket.destroy();
        };
        await Promise.all(places(bytes).map(cut));

        const sequences: readonly (readonly Buffer[])[] = [
          [bytes, bytes],
          [plain, bytes],
          [odd, bytes],
          [bytes, odd, bytes],
          [bytes, plain, bytes],
        ];
        const clumped = sequences.map((sequence) => [Buffer.concat(sequence)]);
        for (const [n, sequence] of [...sequences, ...clumped].entries()) {
          const client = await open(t, service);
          for (const step of sequence) {
            client.socket.write(step);
            for (const part of n < sequences.length
              ? [step]
              : (sequences[n - sequences.length] ?? [])) {
              const answer = await client.answer();
              if (part === bytes) assert.deepEqual(comparable(answer), expected);
              else assert.match(answer.body.toString(), part === odd ? /"chains"/ : /"id":99/);
            }
          }
          await sleep(1);
          assert.equal(client.rest.length, 0, "nothing is answered twice");
          client.socket.destroy();
        }
      });
    }
  },
);

test("a request that is cut at random places is answered as the whole one", async (t) => {
  const { service } = await serviceFixture(t, [provider]);
  const bytes = bytesOf({
    target: "/rpc/priority/ethereum?strategy=fastest",
    lines: ["X-Request-Id: r"],
    body: callText(7, "eth_call", '["ä😀"]'),
  });
  const expected = comparable(await exchange(t, service, bytes));
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { minLength: 1, maxLength: 4 }),
      async (cuts) => {
        const client = await open(t, service);
        let from = 0;
        for (const to of [...cuts.sort((a, b) => a - b), bytes.length]) {
          client.socket.write(bytes.subarray(from, to));
          from = to;
          await sleep(1);
        }
        assert.deepEqual(comparable(await client.answer()), expected);
        client.socket.destroy();
      },
    ),
    { numRuns: 60 },
  );
});

test(
  "a thousand requests on one connection, plain ones, then odd ones between them: each is " +
    "answered once, in order",
  async (t) => {
    const { service, upstreams } = await serviceFixture(t, [provider]);
    const client = await open(t, service);
    const servers = { "fast path": 0, node: 0 };
    for (let n = 0; n < 1_000; n++) {
      const bytes = bytesOf({
        body: callText(n, "eth_call", `[${n}]`),
        lines: n > 500 && n % 2 === 0 ? ODD : [],
      });
      client.socket.write(bytes);
      const answer = await client.answer();
      assert.equal(answer.body.toString(), `{"jsonrpc":"2.0","id":${n},"result":[${n}]}`);
      servers[serverOf(answer)]++;
    }
    assert.equal(client.rest.length, 0);
    assert.equal(upstreams[0]?.asked.length, 1_000);
    assert.deepEqual(servers, { "fast path": 502, node: 498 });
  },
);

/** The value of a gauge on the metrics page. */
async function gauge(service: Service, name: string): Promise<number> {
  return Number(
    new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(
      (await service.get("/metrics")).text,
    )?.[1],
  );
}

/**
 * Asserts that nothing is counted as under way any more, and that the service therefore ends
 * without waiting out the drain time.
 */
async function assertAtRest(service: Service): Promise<void> {
  await until(
    "no bytes in flight",
    async () => (await gauge(service, "svc_in_flight_bytes")) === 0,
  );
  const startedAtMs = performance.now();
  await service.close();
  assert.ok(
    performance.now() - startedAtMs < service.config.limits.drainTimeoutMs,
    "it waited for something",
  );
}

/** A provider that answers when it is told to. */
function heldProvider(): {
  readonly script: Script;
  readonly release: () => void;
  readonly waiting: () => number;
  readonly cut: () => number;
} {
  const replies: (() => void)[] = [];
  let cut = 0;
  return {
    script({ params }, reply) {
      replies.push(() => reply.result(JSON.stringify(params)));
      reply.response.on("close", () => {
        if (!reply.response.writableFinished) cut++;
      });
    },
    release: () => {
      for (const reply of replies.splice(0)) reply();
    },
    waiting: () => replies.length,
    cut: () => cut,
  };
}

test("a request that comes while an answer is under way is answered after it", async (t) => {
  const held = heldProvider();
  const { service } = await serviceFixture(t, [held.script]);
  const client = await open(t, service);
  client.socket.write(bytesOf({ body: callText(1, "eth_call", "[1]") }));
  await until("the first request", () => held.waiting() === 1);
  const second = bytesOf({ body: callText(2, "eth_call", "[2]") });
  await sendSplit(client, second, 30);
  client.socket.write(bytesOf({ body: callText(3, "eth_chainId") }));
  await sleep(20);
  assert.equal(client.rest.length, 0);
  held.release();
  assert.equal((await client.answer()).body.toString(), '{"jsonrpc":"2.0","id":1,"result":[1]}');
  await until("the second request", () => held.waiting() === 1);
  held.release();
  assert.equal((await client.answer()).body.toString(), '{"jsonrpc":"2.0","id":2,"result":[2]}');
  assert.equal((await client.answer()).body.toString(), '{"jsonrpc":"2.0","id":3,"result":"0x1"}');
  await assertAtRest(service);
});

test(
  "a flood behind a request is not read while its answer is under way; the answer arrives all " +
    "the same",
  async (t) => {
    const held = heldProvider();
    const { service } = await serviceFixture(t, [held.script]);
    const client = await open(t, service);
    client.socket.write(bytesOf({ body: callText(1, "eth_call", "[1]") }));
    await until("the first request", () => held.waiting() === 1);
    const before = process.memoryUsage().arrayBuffers;
    for (let n = 0; n < 800; n++) client.socket.write(Buffer.alloc(65_536, "x"));
    let left = -1;
    for (; left !== client.socket.writableLength; await sleep(100))
      left = client.socket.writableLength;
    assert.ok(left > 30_000_000, `${left} of 52 MB still with the client`);
    assert.ok(
      process.memoryUsage().arrayBuffers - before < 70_000_000,
      "only the client holds them",
    );
    held.release();
    assert.equal((await client.answer()).body.toString(), '{"jsonrpc":"2.0","id":1,"result":[1]}');
    await client.closed;
    await assertAtRest(service);
  },
);

for (const [name, early] of [
  ["while it waits", ""],
  ["while it waits, having sent more", "POST /rpc/1 HTTP/1.1\r\nHost: x\r\n"],
] as const) {
  test(`a client that leaves ${name} ends its request upstream`, async (t) => {
    const held = heldProvider();
    const { service } = await serviceFixture(t, [held.script]);
    for (const leave of [(it: Socket) => it.destroy(), (it: Socket) => it.resetAndDestroy()]) {
      const before = held.cut();
      const client = await open(t, service);
      client.socket.write(bytesOf({ body: callText(1) }));
      await until("the request", () => held.waiting() > before);
      client.socket.write(early);
      await sleep(10);
      leave(client.socket);
      await until("the end upstream", () => held.cut() === before + 1);
    }
    await assertAtRest(service);
  });
}

test(
  "a client that half-closes gets what was complete by then, and no more: the same through " +
    "both servers",
  async (t) => {
    const held = heldProvider();
    const { service } = await serviceFixture(t, [held.script]);
    const halfClose = async (bytes: Buffer, at: number): Promise<string> => {
      const client = await open(t, service);
      if (at > 0) await sendSplit(client, bytes, at);
      else client.socket.write(bytes);
      client.socket.end();
      await client.closed;
      return client.rest.toString("latin1").split("\r\n", 1)[0] ?? "";
    };
    // On connections that are open before: what still waits for its own is never sent once the
    // client has left.
    const earlier = Array.from({ length: 4 }, (_, n) =>
      exchange(t, service, bytesOf({ body: callText(n) })),
    );
    await until("the earlier requests", () => held.waiting() === 4);
    held.release();
    await Promise.all(earlier);
    for (const at of [0, 30]) {
      assert.equal(
        await halfClose(bytesOf({ body: callText(1, "eth_chainId") }), at),
        "HTTP/1.1 200 OK",
        `at ${at}: an answer that was ready`,
      );
      assert.equal(
        await halfClose(bytesOf({ body: callText(2) }), at),
        "",
        `at ${at}: an answer that was not`,
      );
    }
    await until("the end upstream", () => held.cut() === 2);
    await assertAtRest(service);
  },
);

test("a client that half-closes while it reads a complete answer slowly still gets all of it", async (t) => {
  const items = Array.from({ length: 40 }, (_, n) => callText(n, "eth_getLogs"));
  const { service } = await serviceFixture(t, [provider], {
    extra: { limits: { max_batch_items: 50, batch_concurrency: 8 } },
  });
  const client = await open(t, service);
  client.socket.write(bytesOf({ body: `[${items.join(",")}]` }));
  await until("the first bytes", () => client.rest.length > 0);
  client.socket.pause();
  client.socket.end();
  await sleep(100);
  client.socket.resume();
  const { body } = await client.answer();
  assert.equal(JSON.parse(body.toString()).length, 40);
  await client.closed;
  await assertAtRest(service);
});

/** A service in front of one provider whose time the test holds in its hand. */
async function timedFixture(
  t: TestContext,
  script: Script,
  limits: Record<string, unknown>,
): Promise<{ readonly service: Service; readonly runtime: SimulatedWorld }> {
  const runtime = simulatedWorld(8);
  const upstream = await scriptedUpstream(script);
  const service = await startService(
    configText([{ id: "a", url: upstream.url }], { limits }),
    runtime,
  );
  t.after(async () => {
    timeFlows(t, runtime);
    await Promise.all([service.close(), upstream.close()]);
  });
  return { service, runtime };
}

/** Lets simulated time pass by itself from now on, as the end of a service needs it. */
function timeFlows(t: TestContext, runtime: SimulatedWorld): void {
  const flowing = setInterval(() => runtime.advance(100), 5);
  t.after(() => clearInterval(flowing));
}

test(
  "connections are closed once they are idle too long, or never send anything; one with an " +
    "answer under way never is",
  async (t) => {
    const held = heldProvider();
    const { service, runtime } = await timedFixture(t, held.script, {
      keep_alive_timeout_ms: 1_200,
      headers_timeout_ms: 300,
    });
    const silent = await open(t, service);
    const idle = await open(t, service);
    const busy = await open(t, service);
    idle.socket.write(bytesOf({ body: callText(1, "eth_chainId") }));
    busy.socket.write(bytesOf({ body: callText(2, "eth_call", "[2]") }));
    assert.ok((await idle.answer()).lines.includes("Keep-Alive: timeout=1"));
    await until("the request of the busy one", () => held.waiting() === 1);
    runtime.advance(1_100);
    await silent.closed;
    await sleep(50);
    assert.equal(idle.isClosed, false, "the idle one has more time");
    runtime.advance(2_000);
    await idle.closed;
    await sleep(50);
    assert.equal(busy.isClosed, false, "the busy one has all the time it needs");
    held.release();
    assert.equal((await busy.answer()).body.toString(), '{"jsonrpc":"2.0","id":2,"result":[2]}');
    timeFlows(t, runtime);
    await assertAtRest(service);
  },
);

test("a reader that takes longer than an idle connection may live gets its answer whole", async (t) => {
  const { service, runtime } = await timedFixture(t, provider, {
    keep_alive_timeout_ms: 200,
    headers_timeout_ms: 200,
    max_batch_items: 100,
  });
  const items = Array.from({ length: 60 }, (_, n) => callText(n, "eth_getLogs"));
  const client = await open(t, service);
  client.socket.write(bytesOf({ body: `[${items.join(",")}]` }));
  await until("the first bytes", () => client.rest.length > 0);
  client.socket.pause();
  runtime.advance(1_300);
  await sleep(50);
  client.socket.resume();
  const answer = await client.answer();
  assert.equal(serverOf(answer), "fast path");
  assert.equal(JSON.parse(answer.body.toString()).length, 60);
  timeFlows(t, runtime);
  await assertAtRest(service);
});

test("however many connections come and go, the fast path keeps one timer", async (t) => {
  const delays = new Map<object, number>();
  const runtime = {
    ...realRuntime,
    after(ms: number, run: () => void) {
      const timer = {};
      delays.set(timer, ms);
      const cancel = realRuntime.after(ms, () => {
        delays.delete(timer);
        run();
      });
      return () => {
        delays.delete(timer);
        cancel();
      };
    },
  };
  const config = configOf(configText([{ id: "a", url: "http://127.0.0.1:1" }]));
  const app = await build(config, { runtime, log: pino({ level: "silent" }), version: "0" });
  t.after(() => app.close());
  for (let n = 0; n < 50; n++) {
    const client = await open(t, app);
    client.socket.write(bytesOf({ body: callText(n, "eth_chainId") }));
    await client.answer();
    client.socket.destroy();
    await client.closed;
    await sleep(2);
  }
  const sweeps = [...delays.values()].filter((ms) => ms === 1_000).length;
  // Other parts have timers of a second as well, but none for each connection.
  assert.ok(sweeps <= 5, `${sweeps} timers of a second for no connection`);
});

test(
  "a drain with idle, busy and pipelining connections answers every request that came, tells " +
    "each client to close, and ends",
  async (t) => {
    const held = heldProvider();
    const { service } = await serviceFixture(t, [held.script]);
    const clients = { idle: await many(5), busy: await many(5), pipelining: await many(5) };
    async function many(count: number): Promise<readonly RawClient[]> {
      return Promise.all(Array.from({ length: count }, () => open(t, service)));
    }
    for (const [n, client] of clients.idle.entries())
      client.socket.write(bytesOf({ body: callText(n, "eth_chainId") }));
    for (const client of clients.idle) await client.answer();
    for (const [n, client] of [...clients.busy, ...clients.pipelining].entries())
      client.socket.write(bytesOf({ body: callText(n, "eth_call", `[${n}]`) }));
    await until("all of them upstream", () => held.waiting() === 10);
    for (const client of clients.pipelining)
      client.socket.write(bytesOf({ body: callText(77, "eth_call", "[77]") }));
    await sleep(20);
    const closed = service.drain();
    await sleep(50);
    held.release();
    const closing = async (client: RawClient, text: string): Promise<void> => {
      const answer = await client.answer();
      assert.equal(answer.body.toString(), text);
      assert.ok(answer.lines.includes("Connection: close"), answer.lines.join(" | "));
      await client.closed;
      assert.equal(client.rest.length, 0);
    };
    for (const [n, client] of clients.busy.entries())
      await closing(client, `{"jsonrpc":"2.0","id":${n},"result":[${n}]}`);
    for (const [n, client] of clients.pipelining.entries()) {
      const answer = await client.answer();
      assert.equal(answer.body.toString(), `{"jsonrpc":"2.0","id":${n + 5},"result":[${n + 5}]}`);
      assert.ok(answer.lines.includes("Connection: keep-alive"), "more is to come");
    }
    await until("the pipelined ones upstream", () => held.waiting() === 5);
    held.release();
    for (const client of clients.pipelining)
      await closing(client, '{"jsonrpc":"2.0","id":77,"result":[77]}');
    for (const client of clients.idle) await client.closed;
    await closed;
  },
);

test("a drain waits for a slow reader of a complete answer", async (t) => {
  const { service } = await serviceFixture(t, [provider], {
    extra: { limits: { max_batch_items: 100 } },
  });
  const client = await open(t, service);
  client.socket.write(
    bytesOf({
      body: `[${Array.from({ length: 60 }, (_, n) => callText(n, "eth_getLogs")).join(",")}]`,
    }),
  );
  await until("the first bytes", () => client.rest.length > 0);
  client.socket.pause();
  const closed = service.drain();
  await sleep(700);
  client.socket.resume();
  assert.equal(JSON.parse((await client.answer()).body.toString()).length, 60);
  await Promise.all([client.closed, closed]);
});

test("a request behind an answer that told its client to close is not served", async (t) => {
  const held = heldProvider();
  const { service, upstreams } = await serviceFixture(t, [held.script]);
  const client = await open(t, service);
  client.socket.write(bytesOf({ body: callText(1, "eth_call", "[1]") }));
  await until("the request", () => held.waiting() === 1);
  const closed = service.drain();
  held.release();
  assert.ok((await client.answer()).lines.includes("Connection: close"));
  client.socket.write(bytesOf({ body: callText(2, "eth_sendRawTransaction", '["0x02f8"]') }));
  await Promise.all([client.closed, closed]);
  assert.equal(upstreams[0]?.asked.length, 1);
});

const MIB = 1_048_576;

/** Hexadecimal digits that no other answer has. */
function pattern(seed: number, size: number): string {
  const key = Buffer.alloc(16, `${seed} `);
  return createCipheriv("aes-128-ctr", key, Buffer.alloc(16))
    .update(Buffer.alloc(size / 2))
    .toString("hex");
}

const envelopeOf = (id: string, seed: number, size: number): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":"${pattern(seed, size)}"}`, "latin1");

/** How one slow reader goes about it. */
interface Reading {
  readonly seed: number;
  readonly sizeBytes: number;
  readonly server: "fast path" | "node";
  /** Leaves after this many bytes. */
  readonly leaveAtBytes?: number;
  readonly stopMs: number;
}

/**
 * Sends one call and reads its answer 64 KiB at a time, with stops that begin before the kernel has
 * made room for the answer; asserts every byte.
 */
async function readSlowly(
  port: number,
  { seed, sizeBytes, server, leaveAtBytes = Infinity, stopMs }: Reading,
): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const gone = new Promise<void>(
    (resolve) => void socket.on("close", () => resolve()).on("error", () => {}),
  );
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  socket.write(
    bytesOf({
      body: callText(seed, "eth_getLogs", `[${seed}]`),
      lines: server === "node" ? ODD : [],
    }),
  );
  const pieces: Buffer[] = [];
  let size = 0;
  let reads = 0;
  for await (const piece of socket as AsyncIterable<Buffer>) {
    pieces.push(piece);
    size += piece.length;
    if (size >= leaveAtBytes) break;
    if (size > sizeBytes && takeAnswer(Buffer.concat(pieces)) !== null) break;
    await sleep(reads++ % 40 === 0 ? stopMs : 1);
  }
  socket.destroy();
  await gone;
  if (leaveAtBytes !== Infinity) return;
  const found = takeAnswer(Buffer.concat(pieces));
  assert.ok(found !== null, `answer ${seed} broke off after ${size} bytes`);
  assert.equal(serverOf(found.answer), server);
  assert.ok(
    found.answer.body.equals(envelopeOf(String(seed), seed, sizeBytes)),
    `answer ${seed} was altered`,
  );
}

const SIZE = 3 * MIB;
/**
 * More than the kernel takes for a reader that does not read: the rest waits in the service, in
 * memory that is used again.
 */
const WAITING_SIZE = 8 * MIB;

for (const [framing, sizeBytes, headers] of [
  ["with a length", WAITING_SIZE, (size: number) => ({ "content-length": String(size) })],
  ["in chunks", SIZE, () => ({})],
] as const) {
  for (const server of ["fast path", "node"] as const) {
    test(
      `eight slow readers of long answers ${framing}, through the ${server} server: no byte is ` +
        "altered, even when others leave",
      async (t) => {
        const { service } = await patternFixture(t, sizeBytes, headers);
        const random = seededRandom(5);
        const read = async (lane: number): Promise<void> => {
          for (let round = 0; round < 2; round++) {
            const leaves = lane % 2 === 1;
            const reading = { seed: lane * 10 + round, sizeBytes, server, stopMs: 150 };
            await readSlowly(
              service.port,
              leaves ? { ...reading, leaveAtBytes: random() * sizeBytes } : reading,
            );
          }
        };
        await Promise.all(Array.from({ length: 8 }, (_, lane) => read(lane)));
        await assertAtRest(service);
      },
    );
  }
}

/** A provider whose answer to a call is the pattern that the call names. */
function patternFixture(
  t: TestContext,
  sizeBytes: number,
  headers: (size: number) => Readonly<Record<string, string>>,
): Promise<ServiceFixture> {
  const script: Script = ({ id, params }, { response }) => {
    const body = envelopeOf(id, Number(params), sizeBytes);
    response.writeHead(200, headers(body.length));
    for (let at = 0; at < body.length; at += 50_021) response.write(body.subarray(at, at + 50_021));
    response.end();
  };
  // A drain is compared with its limit: far more than a busy machine needs for one that waits for
  // nothing.
  return serviceFixture(t, [script], { extra: { limits: { drain_timeout_ms: 180_000 } } });
}

test(
  "slow readers of long answers from a provider behind TLS: no byte is altered, even when " +
    "others leave",
  async (t) => {
    const file = (name: string): URL => new URL(`../data/tls/${name}.pem`, import.meta.url);
    const upstream = createServer(
      { key: readFileSync(file("key")), cert: readFileSync(file("certificate")) },
      (request, response) => {
        let text = "";
        request.on("data", (chunk: Buffer) => (text += chunk.toString()));
        request.on("end", () => {
          const { id, method, params } = JSON.parse(text);
          const probed: Readonly<Record<string, string>> = {
            eth_chainId: '"0x1"',
            eth_blockNumber: '"0x64"',
          };
          const result = probed[method];
          response.end(
            result === undefined
              ? envelopeOf(id, Number(params), SIZE)
              : `{"jsonrpc":"2.0","id":${id},"result":${result}}`,
          );
        });
      },
    );
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      upstream.closeAllConnections();
      upstream.close();
    });
    const url = `https://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const service = await startProcess(t, configText([{ id: "a", url }]), {
      NODE_EXTRA_CA_CERTS: file("certificate").pathname,
    });
    const port = Number(new URL(service.url).port);
    const readings = Array.from({ length: 12 }, (_, seed) => ({
      seed,
      sizeBytes: SIZE,
      server: seed % 4 === 0 ? ("node" as const) : ("fast path" as const),
      stopMs: 150,
      ...(seed % 3 === 1 ? { leaveAtBytes: MIB } : {}),
    }));
    await Promise.all(readings.map((it) => readSlowly(port, it)));
  },
);

test(
  "sixteen readers that stop hold only a little of their long answers in memory, and get the " +
    "rest when they go on",
  async (t) => {
    const size = 12 * MIB;
    const rest = Buffer.from(`,"result":"${"ab".repeat(size / 2)}"}`);
    const upstream = await scriptedUpstream(({ id }, { response }) => {
      const head = `{"jsonrpc":"2.0","id":${id}`;
      response.writeHead(200, { "content-length": head.length + rest.length }).write(head);
      response.end(rest);
    });
    t.after(() => upstream.close());
    const service = await startProcess(t, configText([{ id: "a", url: upstream.url }]));
    const before = await service.residentBytes();
    const clients = await Promise.all(
      Array.from({ length: 16 }, () => open(t, { port: Number(new URL(service.url).port) })),
    );
    for (const client of clients) {
      client.socket.pause();
      client.socket.write(bytesOf({ body: callText(1, "eth_getLogs") }));
    }
    await until("all of them upstream", () => upstream.asked.length === 16);
    await sleep(500);
    const held = (await service.residentBytes()) - before;
    assert.ok(
      held < 64 * MIB,
      `${Math.round(held / MIB)} MiB for ${(16 * size) / MIB} MiB of answers`,
    );
    t.diagnostic(`${Math.round(held / MIB)} MiB held`);
    for (const client of clients) {
      let got = 0;
      client.socket.removeAllListeners("data");
      client.socket.on("data", (chunk: Buffer) => (got += chunk.length));
      client.socket.resume();
      await until("the rest", () => got > rest.length);
    }
  },
);

test("an answer in thousands of tiny chunks to a slow reader piles up no listeners", async (t) => {
  const warnings: string[] = [];
  const warn = (warning: Error): void => void warnings.push(warning.message);
  process.on("warning", warn);
  t.after(() => process.off("warning", warn));
  const count = 60_000;
  const { service } = await serviceFixture(t, [
    ({ id }, { raw }) => {
      const start = `{"jsonrpc":"2.0","id":${id},"result":"${"x".repeat(100_000)}`;
      const tiny = `64\r\n${"y".repeat(100)}\r\n`;
      raw(
        `HTTP/1.1 200 OK\r\nTransfer-Encoding: ` +
          `chunked\r\n\r\n${start.length.toString(16)}\r\n${start}\r\n${tiny.repeat(count)}2\r\n"}\r\n0\r\n\r\n`,
      );
    },
  ]);
  for (const lines of [[], ODD]) {
    const socket = connect(service.port, "127.0.0.1");
    t.after(() => socket.destroy());
    socket.write(bytesOf({ body: callText(1, "eth_getLogs"), lines }));
    await sleep(300);
    let tail = "";
    for await (const piece of socket as AsyncIterable<Buffer>) {
      tail = (tail + piece.toString("latin1")).slice(-100);
      if (tail.endsWith("0\r\n\r\n")) break;
    }
    assert.match(tail, /y"\}\r\n0\r\n\r\n$/);
  }
  assert.deepEqual(warnings, []);
});
