// Callers that break the rules of HTTP, or keep them in bad faith, on raw sockets: each gets a
// clear end, and everyone else is served at once as before.
import assert from "node:assert/strict";
import { ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { after, before, describe, it, type TestContext, test } from "node:test";
import { type Runtime, realRuntime } from "../../src/runtime.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { chanceSeed } from "../fakes/seed.ts";
import { configText, type Service, startService } from "../fakes/service.ts";
import { healthOf, until } from "../fakes/service-fixture.ts";
import { type Script, type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}';
const CHAIN_ID = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';

interface Fixture {
  readonly service: Service;
  readonly upstream: ScriptedUpstream;
  /** The real clock with its hands moved on; timers stay real. */
  readonly moveClock: (ms: number) => void;
  readonly close: () => Promise<unknown>;
}

/** A service with one provider. */
async function startFixture(
  limits: Record<string, unknown> = {},
  script?: Script,
): Promise<Fixture> {
  const upstream = await scriptedUpstream(script);
  let aheadMs = 0;
  const runtime: Runtime = { ...realRuntime, now: () => realRuntime.now() + aheadMs };
  const service = await startService(
    configText([{ id: "a", url: upstream.url }], { limits }),
    runtime,
  );
  return {
    service,
    upstream,
    moveClock(ms) {
      aheadMs += ms;
    },
    close: () => Promise.all([service.close(), upstream.close()]),
  };
}

async function createFixture(
  t: TestContext,
  limits?: Record<string, unknown>,
  script?: Script,
): Promise<Fixture> {
  const it = await startFixture(limits, script);
  t.after(it.close);
  return it;
}

/**
 * What must hold after any of it: a normal request is served, and nothing is held for those before.
 */
async function othersAreServed({ service, upstream }: Fixture): Promise<void> {
  upstream.script((_, reply) => reply.result('"0x1"'));
  for (const body of [CHAIN_ID, BODY]) {
    const { status, json } = await service.post("/rpc/1", body);
    assert.deepEqual([status, json.result], [200, "0x1"]);
  }
  await until("nothing held", async () =>
    /^svc_in_flight_bytes 0$/m.test((await service.get("/metrics")).text),
  );
}

/** A connection of its own that keeps what comes back. */
interface Client {
  readonly socket: Socket;
  readonly got: () => string;
  readonly closed: () => boolean;
}

function dial(t: TestContext, port: number): Promise<Client> {
  const socket = connect(port, "127.0.0.1");
  let got = "";
  let closed = false;
  t.after(() => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    got += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    closed = true;
  });
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("connect", () => resolve({ socket, got: () => got, closed: () => closed }));
  });
}

const head = (lines: readonly string[], target = "/rpc/1"): string =>
  `POST ${target} HTTP/1.1\r\n${["Host: x", ...lines].join("\r\n")}\r\n\r\n`;
const plain = (body: string, target?: string): string =>
  head([`Content-Length: ${Buffer.byteLength(body)}`], target) + body;
/**
 * The same for node's own server, which takes every connection that sends more than plain requests.
 */
const odd = (body: string, target?: string): string =>
  head(["TE: trailers", `Content-Length: ${Buffer.byteLength(body)}`], target) + body;

const statuses = (text: string): readonly string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((it) => it[1] ?? "");

/** An answer of node's parser in our words. */
function assertRefusal(text: string, status: number, code: string): void {
  assert.ok(text.startsWith(`HTTP/1.1 ${status} `), text.slice(0, 200));
  for (const line of [
    "Access-Control-Allow-Origin: *",
    "Access-Control-Expose-Headers: ",
    "x-svc-request-id: req-",
    "Content-Type: application/json",
  ]) {
    assert.ok(text.includes(`\r\n${line}`), line);
  }
  const json: { error: { data: { code: string; retryable: boolean } } } = JSON.parse(
    text.slice(text.indexOf("\r\n\r\n") + 4),
  );
  assert.equal(json.error.data.code, code);
  if (json.error.data.retryable) assert.match(text, /\r\nRetry-After: [1-9]/);
}

describe("what is not one clear HTTP request is refused with 400 and the connection ends", () => {
  let shared: Fixture;
  before(async () => {
    shared = await startFixture();
  });
  after(() => shared.close());

  const half = BODY.slice(0, 20);
  const MALFORMED: readonly (readonly [name: string, bytes: string])[] = [
    [
      "both Content-Length and Transfer-Encoding",
      head([`Content-Length: ${BODY.length}`, "Transfer-Encoding: chunked"]) + BODY,
    ],
    [
      "Transfer-Encoding before Content-Length",
      `${head(["Transfer-Encoding: chunked", "Content-Length: 5"])}0\r\n\r\n`,
    ],
    [
      "two lengths that differ",
      head([`Content-Length: ${BODY.length}`, "Content-Length: 5"]) + BODY,
    ],
    [
      "the same length twice",
      head([`Content-Length: ${BODY.length}`, `content-length: ${BODY.length}`]) + BODY,
    ],
    ["a negative length", head(["Content-Length: -1"]) + BODY],
    ["a length with a plus", head([`Content-Length: +${BODY.length}`]) + BODY],
    ["a hexadecimal length", head(["Content-Length: 0x10"]) + BODY],
    ["a list of lengths", head([`Content-Length: ${BODY.length}, ${BODY.length}`]) + BODY],
    ["a length beyond all numbers", head([`Content-Length: ${"9".repeat(30)}`]) + BODY],
    [
      "a chunk size that is none",
      `${head(["Transfer-Encoding: chunked"])}zz\r\n${BODY}\r\n0\r\n\r\n`,
    ],
    ["a negative chunk size", `${head(["Transfer-Encoding: chunked"])}-5\r\n${BODY}\r\n0\r\n\r\n`],
    [
      "a chunk size beyond all numbers",
      `${head(["Transfer-Encoding: chunked"])}${"f".repeat(20)}\r\n${BODY}`,
    ],
    [
      "a chunk longer than its size",
      `${head(["Transfer-Encoding: chunked"])}5\r\n${BODY}\r\n0\r\n\r\n`,
    ],
    ["a transfer encoding that is not chunked", head(["Transfer-Encoding: xchunked"]) + BODY],
    [
      "chunked twice over something else",
      `${head(["Transfer-Encoding: chunked, identity"])}0\r\n\r\n`,
    ],
    ["a space before the colon", head([`Content-Length : ${BODY.length}`]) + BODY],
    ["a folded header", head(["X-A: 1\r\n  folded", `Content-Length: ${BODY.length}`]) + BODY],
    ["a NUL in a header", head(["X-A: a\0b", `Content-Length: ${BODY.length}`]) + BODY],
    [
      "a bare carriage return in a header",
      head(["X-A: a\rb", `Content-Length: ${BODY.length}`]) + BODY,
    ],
    ["an empty header name", head([": x", `Content-Length: ${BODY.length}`]) + BODY],
    ["no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 client hello\r\n\r\n"],
    ["another protocol", "SSH-2.0-OpenSSH_9.6\r\n\r\n"],
    [
      "an unknown version",
      `POST /rpc/1 HTTP/3.7\r\nHost: x\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
    ],
    ["an unknown method", `FETCH /rpc/1 HTTP/1.1\r\nHost: x\r\n\r\n`],
    [
      "a target with a space",
      `POST /rpc/1 x HTTP/1.1\r\nHost: x\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
    ],
    ["half a body, then no more", head([`Content-Length: ${BODY.length}`]) + half],
  ];

  for (const [name, bytes] of MALFORMED)
    it(`${name}`, async (t) => {
      const { socket, got, closed } = await dial(t, shared.service.port);
      socket.write(bytes, "latin1");
      if (bytes.endsWith(half)) socket.end();
      await until("the end of the connection", closed);
      assertRefusal(got(), 400, "invalid_request");
      await othersAreServed(shared);
    });

  it("and no provider heard of anything but the normal requests", () =>
    assert.equal(shared.upstream.asked.length, MALFORMED.length));
});

test(
  "a length that is too small cuts the document: it is refused, and what follows is not taken " +
    "for a request",
  async (t) => {
    const it = await createFixture(t);
    const { socket, got, closed } = await dial(t, it.service.port);
    socket.write(head([`Content-Length: ${BODY.length - 5}`]) + BODY);
    await until("the end of the connection", closed);
    assert.deepEqual(new Set(statuses(got())), new Set(["400"]));
    assert.equal(it.upstream.asked.length, 0);
    await othersAreServed(it);
  },
);

test("bytes behind a request that are no request do not get into its answer", async (t) => {
  const it = await createFixture(t, {}, ({ id }, reply) => {
    const answer = reply.begin(`{"jsonrpc":"2.0","id":${id},"result":"`);
    const more = setInterval(() => answer.write("x".repeat(50_000)), 5);
    reply.response.on("close", () => clearInterval(more));
  });
  for (const write of [plain, odd]) {
    const { socket, got, closed } = await dial(t, it.service.port);
    socket.write(write(BODY));
    await until("the beginning of the answer", () => got().includes("xxx"));
    socket.write("this is no HTTP\r\n\r\n");
    await until("more of the answer, or its end", () => closed() || got().length > 3_000_000);
    assert.deepEqual(statuses(got()), ["200"]);
    socket.destroy();
  }
  await othersAreServed(it);
});

const SEED = chanceSeed();

test(`a hundred pipelined requests are answered once each, in order (seed ${SEED})`, async (t) => {
  const random = seededRandom(SEED);
  const it = await createFixture(
    t,
    {},
    ({ params }, reply) =>
      void setTimeout(() => reply.result(JSON.stringify(params)), random() * 5),
  );
  const { socket, got } = await dial(t, it.service.port);
  socket.write(
    Array.from({ length: 100 }, (_, n) =>
      plain(`{"jsonrpc":"2.0","id":${n},"method":"test_echo","params":[${n}]}`),
    ).join(""),
  );
  await until("all answers", () => statuses(got()).length === 100 && got().endsWith("}"));
  const ids = [...got().matchAll(/"id":(\d+),"result":\[(\d+)\]/g)].map((it) => [
    Number(it[1]),
    Number(it[2]),
  ]);
  assert.deepEqual(
    ids,
    Array.from({ length: 100 }, (_, n) => [n, n]),
  );
  assert.equal(it.upstream.asked.length, 100);
  await othersAreServed(it);
});

describe("a body of 100 MB gets its 413, and no memory", () => {
  const TOTAL = 100_000_000;
  const piece = Buffer.alloc(250_000, 0x20);
  for (const [name, lines] of [
    ["declared", [`Content-Length: ${TOTAL}`]],
    ["in chunks, undeclared", ["Transfer-Encoding: chunked"]],
  ] as const)
    it(name, async (t) => {
      const it = await createFixture(t);
      const { socket, got, closed } = await dial(t, it.service.port);
      const before = process.memoryUsage().rss;
      let most = 0;
      socket.write(head(lines));
      let sent = 0;
      for (; sent < TOTAL && !closed(); sent += piece.length) {
        if (name !== "declared") socket.write(`${piece.length.toString(16)}\r\n`);
        const flushed = socket.write(piece);
        if (name !== "declared") socket.write("\r\n");
        if (!flushed) await until("room to write", () => socket.writableLength === 0 || closed());
        most = Math.max(most, process.memoryUsage().rss);
      }
      await until("the refusal", () => got().includes('"code":"body_too_large"'));
      assert.match(got(), /^HTTP\/1\.1 413 /);
      assert.ok(sent < 60_000_000, `${sent} bytes were taken`);
      assert.ok(
        most - before < 80_000_000,
        `${Math.round((most - before) / 1e6)} MB more while it was sent`,
      );
      socket.destroy();
      await othersAreServed(it);
    });
});

test("a million brackets are refused", async (t) => {
  const it = await createFixture(t);
  for (const body of [
    "[".repeat(1_000_000),
    '{"a":'.repeat(200_000),
    `{"jsonrpc":"2.0","id":1,"method":"m","params":${"[".repeat(500_000)}${"]".repeat(500_000)}}`,
  ]) {
    const { status, json } = await it.service.post("/rpc/1", body);
    assert.deepEqual([status, json.error.data.code], [400, "parse_error"]);
  }
  assert.equal(it.upstream.asked.length, 0);
  await othersAreServed(it);
});

describe("headers without end are refused with 431", () => {
  let shared: Fixture;
  before(async () => {
    shared = await startFixture();
  });
  after(() => shared.close());

  for (const [name, lines] of [
    ["one header of 100,000 bytes", [`X-Long: ${"x".repeat(100_000)}`]],
    ["two thousand headers", Array.from({ length: 2_000 }, (_, n) => `X-${n}: ${"x".repeat(40)}`)],
    ["a target of 100,000 bytes", []],
  ] as const)
    it(name, async (t) => {
      const { socket, got, closed } = await dial(t, shared.service.port);
      socket.write(
        head(
          [...lines, `Content-Length: ${BODY.length}`],
          lines.length === 0 ? `/rpc/${"e".repeat(100_000)}` : "/rpc/1",
        ) + BODY,
      );
      await until("the end of the connection", closed);
      assertRefusal(got(), 431, "invalid_request");
      await othersAreServed(shared);
    });
});

describe("a client that is too slow is told so and let go", { concurrency: true }, () => {
  // Time enough for those who are not slow, wherever the machine pauses. Node looks at its
  // connections every 5 s.
  const LIMITS = { headers_timeout_ms: 5_500, request_timeout_ms: 6_000 };
  let shared: Fixture;
  before(async () => {
    shared = await startFixture(LIMITS);
  });
  after(() => shared.close());

  const drips: readonly (readonly [name: string, first: string, drip: string])[] = [
    ["with its headers", "POST /rpc/1 HTTP/1.1\r\nHost: x\r\n", "X-More: 1\r\n"],
    ["with one header", "POST /rpc/1 HTTP/1.1\r\nHost: x\r\nX-A: ", "a"],
    ["with its body", head(["Content-Length: 100000"]), " "],
    ["with its chunks", head(["Transfer-Encoding: chunked"]), "1\r\n \r\n"],
  ];
  for (const [name, first, drip] of drips)
    it(name, async (t) => {
      const { socket, got, closed } = await dial(t, shared.service.port);
      socket.write(first);
      const timer = setInterval(() => socket.write(drip), 50);
      t.after(() => clearInterval(timer));
      await until("the end of the connection", closed);
      assertRefusal(got(), 408, "request_timeout");
      await othersAreServed(shared);
    });

  it("without ever sending anything", async (t) => {
    const { closed } = await dial(t, shared.service.port);
    await until("the end of the connection", closed);
    await othersAreServed(shared);
  });

  it("but not one that waits for a slow provider", async (t) => {
    const it = await createFixture(
      t,
      LIMITS,
      (_, reply) => void setTimeout(() => reply.result('"late"'), 12_000),
    );
    const { socket, got, closed } = await dial(t, it.service.port);
    socket.write(odd(BODY));
    await until("the answer", () => got().includes('"late"'));
    assert.equal(closed(), false);
    await othersAreServed(it);
  });
});

test("a thousand idle connections keep nobody from being served", async (t) => {
  const it = await createFixture(t);
  const clients = await Promise.all(Array.from({ length: 1_000 }, () => dial(t, it.service.port)));
  await othersAreServed(it);
  for (const { socket } of clients) socket.destroy();
  await othersAreServed(it);
});

describe("a caller who asks for a long answer and does not read it", () => {
  for (const [server, write] of [
    ["the fast path", plain],
    ["node's server", odd],
  ] as const)
    it(
      "holds back the provider, costs little memory, and is cut off when nothing moves for 30 s " +
        `(${server})`,
      async (t) => {
        let taken = 0;
        let hungUp = false;
        const it = await createFixture(t, {}, ({ id }, { response }) => {
          response.writeHead(200, { "content-type": "application/json" });
          response.write(`{"jsonrpc":"2.0","id":${id},"result":"`);
          const piece = Buffer.alloc(100_000, 0x78);
          const more = (): void => {
            while (!hungUp && taken < 200_000_000) {
              taken += piece.length;
              if (!response.write(piece)) return void response.once("drain", more);
            }
          };
          response.on("close", () => {
            hungUp = true;
          });
          more();
        });
        const before = process.memoryUsage().rss;
        const { socket } = await dial(t, it.service.port);
        socket.pause();
        socket.write(write(BODY));
        const settled = await until("the provider to be held back", async () => {
          const seen = taken;
          await new Promise((resolve) => setTimeout(resolve, 150));
          return seen > 1_000_000 && taken === seen && seen;
        });
        assert.ok(settled < 40_000_000, `${settled} bytes were taken`);
        assert.ok(process.memoryUsage().rss - before < 120_000_000);
        assert.equal(hungUp, false);
        for (let n = 0; n < 3 && !hungUp; n++) {
          it.moveClock(31_000);
          await new Promise((resolve) => setTimeout(resolve, 150));
        }
        await until("the end of the upstream request", () => hungUp);
        socket.destroy();
        await othersAreServed(it);
      },
    );

  it(
    "that is here whole (a batch) is counted as held until it is cut off; one who reads slowly " +
      "gets all of it",
    async (t) => {
      const { setTimeout: original } = ServerResponse.prototype;
      t.mock.method(
        ServerResponse.prototype,
        "setTimeout",
        function (this: ServerResponse, ms: number, run: () => void) {
          return original.call(this, ms / 100, run);
        },
      );
      const it = await createFixture(t, {}, (_, reply) =>
        reply.result(JSON.stringify("x".repeat(1_000_000))),
      );
      const request = odd(
        `[${Array.from({ length: 20 }, (_, id) => BODY.replace('"id":1', `"id":${id}`)).join(",")}]`,
      );
      const slow = await dial(t, it.service.port);
      const never = await dial(t, it.service.port);
      never.socket.pause();
      never.socket.write(request);
      await until("the answer to be held", async () =>
        /^svc_in_flight_bytes 2\d{7}$/m.test((await it.service.get("/metrics")).text),
      );
      slow.socket.write(request);
      for (let n = 0; n < 60; n++) {
        slow.socket.pause();
        await new Promise((resolve) => setTimeout(resolve, 10));
        slow.socket.resume();
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await until("all of it", () => slow.got().length > 20_000_000 && slow.got().endsWith("}]"));
      await until("room again", async () =>
        /^svc_in_flight_bytes 0$/m.test((await it.service.get("/metrics")).text),
      );
      never.socket.resume();
      await until("the end of the other", never.closed);
      assert.ok(never.got().length < 20_000_000, `${never.got().length} bytes`);
      await othersAreServed(it);
    },
  );

  it("or asks for thousands of short ones, is not served without end", async (t) => {
    const answer = JSON.stringify("x".repeat(60_000));
    const it = await createFixture(t, {}, (_, reply) => reply.result(answer));
    const { socket } = await dial(t, it.service.port);
    socket.pause();
    const { upstream } = it;
    let served = 0;
    for (; served < 400; served++) {
      socket.write(plain(BODY));
      const asked = await until("the next call", () => upstream.asked.length > served, 400).catch(
        () => false,
      );
      if (!asked) break;
    }
    assert.ok(served < 300, `${served} answers of 60 kB wait for a caller who reads none`);
    socket.destroy();
    await othersAreServed(it);
  });
});

test(
  "request bytes beyond the bound on all of them are refused with 503 and Retry-After, and the " +
    "room comes back",
  async (t) => {
    const it = await createFixture(t, { max_in_flight_bytes: 1_000_000, max_body_bytes: 900_000 });
    const big = head(["Content-Length: 900000"]) + " ".repeat(600_000);
    const first = await dial(t, it.service.port);
    first.socket.write(big);
    await until("the first body to be held", async () =>
      /^svc_in_flight_bytes [56]\d{5}$/m.test((await it.service.get("/metrics")).text),
    );
    const second = await dial(t, it.service.port);
    second.socket.write(big + " ".repeat(300_000));
    await until("the refusal", () => second.got().includes('"code":"unavailable"'));
    assert.match(second.got(), /^HTTP\/1\.1 503 .*\r\nRetry-After: [1-9]/s);
    const small = await it.service.post("/rpc/1", BODY);
    assert.equal(small.status, 200, "a small request still fits");
    first.socket.destroy();
    await othersAreServed(it);
  },
);

test("a caller who leaves in the middle of its request costs nothing and is never asked upstream", async (t) => {
  const it = await createFixture(t);
  for (const cut of [
    10,
    40,
    head([`Content-Length: ${BODY.length}`]).length,
    plain(BODY).length - 1,
  ]) {
    for (const leave of ["destroy", "resetAndDestroy"] as const) {
      const { socket } = await dial(t, it.service.port);
      await new Promise<void>((resolve) =>
        socket.write(plain(BODY).slice(0, cut), () => resolve()),
      );
      socket[leave]();
    }
  }
  await othersAreServed(it);
  assert.equal(it.upstream.asked.length, 1, "only the normal request");
});

describe("a caller who leaves while a provider works", () => {
  for (const [server, write] of [
    ["the fast path", plain],
    ["node's server", odd],
  ] as const) {
    it(`ends every upstream request of its batch (${server})`, async (t) => {
      let open = 0;
      const it = await createFixture(t, {}, (_, { response }) => {
        open++;
        response.on("close", () => open--);
      });
      const { socket } = await dial(t, it.service.port);
      socket.write(
        write(
          `[${Array.from({ length: 50 }, (_, id) => BODY.replace('"id":1', `"id":${id}`)).join(",")}]`,
        ),
      );
      await until("thirty-two in flight", () => open === 32);
      socket.destroy();
      await until("none in flight", () => open === 0);
      assert.equal(it.upstream.asked.length, 32, "and starts no further one");
      await othersAreServed(it);
    });

    it(`gives a half-open circuit its trial back (${server})`, async (t) => {
      const it = await createFixture(t, {}, (_, reply) => reply.body("", 500));
      const state = async (): Promise<unknown> =>
        (await healthOf(it.service, "a")).circuit_breaker_state;
      for (let n = 0; n < 5; n++) await it.service.post("/rpc/1", BODY);
      assert.equal(await state(), "open");
      it.moveClock(32_000);
      assert.equal(await state(), "half_open");
      let hungUp = false;
      it.upstream.script((_, { response }) => void response.on("close", () => (hungUp = true)));
      const { socket } = await dial(t, it.service.port);
      const asked = it.upstream.asked.length;
      socket.write(write(BODY));
      await until("the trial", () => it.upstream.asked.length > asked);
      assert.equal(
        (await it.service.post("/rpc/1", BODY)).json.error.data.code,
        "unavailable",
        "the one trial is taken",
      );
      socket.destroy();
      await until("the end of the trial", () => hungUp);
      it.upstream.script((_, reply) => reply.result('"0x1"'));
      for (let n = 0; n < 2; n++)
        assert.equal((await it.service.post("/rpc/1", BODY)).json.result, "0x1");
      assert.equal(await state(), "closed");
      await othersAreServed(it);
    });
  }
});
