// The HTTP/1.1 client against providers that frame badly, stop, lie or leave: one answer or one
// error for each request, never another's, and a pool that keeps its bounds; in plain text and over
// TLS.
import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Failure } from "../../../src/core/rpc/failure.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { realRuntime } from "../../../src/runtime.ts";
import { BufferPool } from "../../../src/upstream/http/buffer-pool.ts";
import { HttpUpstream } from "../../../src/upstream/http/http-upstream.ts";
import type { AnswerListener, AnswerStream } from "../../../src/upstream/transport.ts";
import {
  Asking,
  ask,
  echo,
  peer,
  pool,
  send,
  testBoth,
  urlOf,
  whole,
} from "../../fakes/bare-provider.ts";
import type { OriginBounds } from "../../fakes/origin.ts";
import { fakeProvider } from "../../fakes/providers.ts";
import { seededRandom, simulatedWorld } from "../../fakes/runtime.ts";
import { serviceFixture, until, walked } from "../../fakes/service-fixture.ts";

testBoth(
  "a head of the same length with other lines is read anew, and so is one that goes on",
  async (t) => {
    const answers = [
      whole("one", "X-Svc: a"),
      whole("two", "X-Svc: b"),
      whole("two", "X-Svc: b"),
      whole("four", "X-Svc: b", "X-More: c"),
      whole("two", "X-Svc: b"),
      "HTTP/1.1 200 OK\r\nX-Svc: b\r\nContent-Length: 5\r\n\r\nfive!",
      "HTTP/1.1 503 OK\r\nX-Svc: b\r\nContent-Length: 5\r\n\r\nsixth",
    ];
    const { port, opened } = await peer(t, (socket, _body, count) => {
      socket.write(answers[count - 1] ?? "");
    });
    const origin = pool(t, port);
    const heard: string[] = [];
    for (let at = 0; at < answers.length; at++) heard.push(await ask(origin));
    assert.deepEqual(heard, [
      "200 one",
      "200 two",
      "200 two",
      "200 four",
      "200 two",
      "200 five!",
      "503 sixth",
    ]);
    assert.equal(opened(), 1);
  },
);

testBoth(
  "a head that was refused is refused again on the next connection, and never kept",
  async (t) => {
    const twice = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc";
    const { port } = await peer(t, (socket, _body, count) => {
      socket.write(count % 2 === 0 ? whole("well") : twice);
    });
    const origin = pool(t, port);
    for (let round = 0; round < 3; round++) {
      assert.equal(await ask(origin), "EPROTO");
      assert.equal(await ask(origin), "200 well");
    }
  },
);

const WIRE: Readonly<Record<string, string>> = {
  counted: whole("hello"),
  chunked:
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nX: " +
    "y\r\n\r\n",
  interim: `HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n${whole("hello")}`,
};
for (const [name, wire] of Object.entries(WIRE)) {
  testBoth(
    `an answer (${name}) that is cut anywhere is read whole, and its connection is used again`,
    async (t) => {
      const { port, opened } = await peer(t, (socket, body) => {
        socket.write(wire.slice(0, Number(body)));
        setTimeout(() => socket.write(wire.slice(Number(body))), 5);
      });
      const origin = pool(t, port, { connections: 40, queue: 1_000 });
      const answers = await Promise.all(Array.from(wire, (_, at) => ask(origin, String(at))));
      for (const [at, answer] of answers.entries())
        assert.equal(answer, "200 hello", `cut at ${at}`);
      assert.equal(opened(), 40);
    },
  );

  testBoth(
    `an answer (${name}) that stops anywhere is an error, never a shorter answer`,
    async (t) => {
      const { port } = await peer(
        t,
        (socket, body) => void socket.end(wire.slice(0, Number(body))),
      );
      const origin = pool(t, port, { connections: 40, queue: 1_000 });
      const answers = await Promise.all(Array.from(wire, (_, at) => ask(origin, String(at))));
      for (const [at, answer] of answers.entries())
        assert.equal(answer, "ECONNRESET", `stopped at ${at}`);
    },
  );
}

test("an answer that ends with the connection is read whole; a reset is an error", async (t) => {
  const { port, opened } = await peer(t, (socket, body) => {
    socket.write("HTTP/1.1 200 OK\r\n\r\nhel");
    setTimeout(() => (body === "reset" ? socket.resetAndDestroy() : socket.end("lo")), 5);
  });
  const origin = pool(t, port);
  assert.equal(await ask(origin), "200 hello");
  assert.equal(await ask(origin, "reset"), "ECONNRESET");
  assert.equal(await ask(origin), "200 hello");
  assert.equal(opened(), 3);
});

const STAYS: readonly (readonly [name: string, wire: string, connections: number])[] = [
  ["a plain answer", whole("x"), 1],
  ["an answer without a body", "HTTP/1.1 204 No Content\r\n\r\n", 1],
  ["a 304 that tells a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 1],
  [
    "HTTP/1.0 with keep-alive",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
    1,
  ],
  ["HTTP/1.0 without", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 3],
  ["Connection: close", whole("x", "Connection: close"), 3],
  ["sixteen interim answers", `${"HTTP/1.1 102 Processing\r\n\r\n".repeat(16)}${whole("x")}`, 1],
  ["a byte too many", `${whole("x")}y`, 3],
  ["a second answer", whole("x") + whole("poison"), 3],
  [
    "a second answer after the last chunk",
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n${whole("poison")}`,
    3,
  ],
  ["a body where none may be", `HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\npoison`, 3],
];
for (const [name, wire, connections] of STAYS) {
  testBoth(
    `after ${name}, three calls take ` +
      `${connections === 1 ? "one connection" : "a connection each"}`,
    async (t) => {
      const { port, opened } = await peer(t, (socket) => void socket.write(wire));
      const origin = pool(t, port);
      for (let n = 0; n < 3; n++) assert.match(await ask(origin), /^(200 x|204 |304 )$/);
      assert.equal(opened(), connections);
    },
  );
}

const REFUSED: readonly (readonly [name: string, wire: string])[] = [
  [
    "two lengths that differ",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy",
  ],
  ["two lengths that agree", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"],
  [
    "a length beside chunks",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  ],
  [
    "chunk data without its line end",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxHT0\r\n\r\n",
  ],
  [
    "a second answer hidden in a chunk's line end",
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx0\r\n\r\n${whole("poison")}`,
  ],
  ["seventeen interim answers", `${"HTTP/1.1 102 Processing\r\n\r\n".repeat(17)}${whole("x")}`],
  ["a switch to another protocol", `HTTP/1.1 101 Switching Protocols\r\n\r\n${whole("x")}`],
  [
    "a header hidden behind a bare line feed",
    "HTTP/1.1 200 OK\r\nX: y\nContent-Length: 1\r\n\r\nx",
  ],
];
for (const [name, wire] of REFUSED) {
  testBoth(
    `an answer is refused for ${name}, and the next call takes a new connection`,
    async (t) => {
      const { port, opened } = await peer(
        t,
        (socket, _, count) => void socket.write(count === 1 ? wire : whole("sound")),
      );
      const origin = pool(t, port);
      assert.equal(await ask(origin), "EPROTO");
      assert.equal(await ask(origin), "200 sound");
      assert.equal(opened(), 2);
    },
  );
}

const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
/** Answers that wait for a CR LF which never comes. */
const WRONG_LINE_ENDS: readonly (readonly [name: string, wire: string])[] = [
  ["a head whose lines all end in LF", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"],
  ["a head whose lines all end in CR", "HTTP/1.1 200 OK\rContent-Length: 5\r\rhello"],
  ["a head whose last line ends in LF", "HTTP/1.1 200 OK\r\nContent-Length: 5\n\nhello"],
  ["a head whose blank line is an LF", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\nhello"],
  ["a head with an LF within a line", "HTTP/1.1 200 OK\r\nX: y\nContent-Length: 5\r\n"],
  ["a head with a CR within a line", "HTTP/1.1 200 OK\r\nX: y\rContent-Length: 5\r\n"],
  ["a head that begins with an LF", "\nHTTP/1.1 200 OK\r\n"],
  ["an interim head whose lines end in LF", "HTTP/1.1 103 Early Hints\n\n"],
  [
    "a proper interim head and then one with LF",
    "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\n",
  ],
  ["no head at all", '{"jsonrpc":"2.0"}'],
  ["another protocol", "SSH-2.0-x"],
  ["a chunk size that ends in LF", `${CHUNKED}5\nhello\n0\n\n`],
  ["a chunk size that ends in CR", `${CHUNKED}5\rhello`],
  ["a chunk that ends in LF", `${CHUNKED}5\r\nhello\n`],
  ["a chunk that does not end", `${CHUNKED}5\r\nhellox`],
  ["a chunk extension with an LF", `${CHUNKED}5;a=b\nhello`],
  ["a chunk size that is none", `${CHUNKED}hello`],
  ["a last chunk that ends in LF", `${CHUNKED}5\r\nhello\r\n0\n\n`],
  ["a trailer that ends in LF", `${CHUNKED}5\r\nhello\r\n0\r\nX: y\n\n`],
  ["a blank line behind the chunks that is an LF", `${CHUNKED}5\r\nhello\r\n0\r\n\n`],
];
for (const [name, wire] of WRONG_LINE_ENDS) {
  testBoth(
    `${name} fails at once, in one piece and byte by byte, though the provider keeps the ` +
      "connection open",
    async (t) => {
      const { port, opened } = await peer(t, async (socket, body) => {
        if (body === "sound") return void socket.write(whole(body));
        if (body === "whole") return void socket.write(wire);
        for (const byte of wire) {
          socket.write(byte);
          await new Promise(setImmediate);
        }
      });
      const origin = pool(t, port);
      assert.deepEqual(
        [await ask(origin, "whole"), await ask(origin, "bytes"), await ask(origin, "sound")],
        ["EPROTO", "EPROTO", "200 sound"],
      );
      assert.equal(opened(), 3);
    },
  );
}

const ENDLESS: readonly (readonly [name: string, first: string, more: string])[] = [
  ["head", "HTTP/1.1 200 OK\r\n", "X-Pad: y\r\n"],
  ["header", "HTTP/1.1 200 OK\r\nX-Pad: ", "y"],
  ["status line", "HTTP/1.1 200 ", "O"],
  ["row of interim answers", "", "HTTP/1.1 102 Processing\r\n\r\n"],
  ["chunk extension", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "x"],
  ["chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "0"],
  ["row of trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n"],
  ["trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", "y"],
];
for (const [name, first, more] of ENDLESS) {
  testBoth(`an endless ${name} is given up after a few kilobytes`, async (t) => {
    let taken = 0;
    const { port } = await peer(t, (socket) => {
      const piece = more.repeat(Math.ceil(4_096 / more.length));
      const pour = (): void => {
        if (socket.destroyed || taken > 2_000_000) return;
        taken += piece.length;
        socket.write(piece, () => setImmediate(pour));
      };
      socket.write(first);
      pour();
    });
    assert.equal(await ask(pool(t, port)), "EPROTO");
    assert.ok(taken < 500_000, `${taken} bytes`);
  });
}

testBoth(
  "what a provider says on an idle connection ends that connection and is never an answer",
  async (t) => {
    const { port, opened, open } = await peer(t, (socket, body) => {
      socket.write(whole(body));
      setTimeout(() => socket.write(whole("poison")), 5);
    });
    const origin = pool(t, port);
    for (let n = 1; n <= 3; n++) {
      assert.equal(await ask(origin, `call ${n}`), `200 call ${n}`);
      await until("the end of the connection", () => open() === 0);
      assert.equal(opened(), n);
    }
  },
);

testBoth(
  "an answer to something else ends its connection: the next in line gets a new one",
  async (t) => {
    const { port, opened } = await peer(t, echo);
    const origin = pool(t, port);
    const foreign = new Asking();
    foreign.foreign = true;
    const [first, second] = [send(origin, "first", foreign), send(origin, "second")];
    assert.deepEqual(
      [await first.done, await second.done, opened()],
      ["200 first", "200 second", 2],
    );
  },
);

test(
  "an answer that comes before the whole request has left is nobody's: the request fails, and " +
    "its connection is not used again",
  async (t) => {
    const { port, opened } = await peer(t, echo, (socket) => {
      socket.once("data", (first) => {
        if (first.length < 10_000) return;
        socket.pause();
        socket.write(whole("too long"));
      });
    });
    const origin = pool(t, port);
    assert.equal(await ask(origin, "x".repeat(20_000_000)), "EPROTO");
    assert.equal(await ask(origin, "small"), "200 small");
    assert.equal(opened(), 2);
  },
);

testBoth("a thousand calls one after the other take one connection", async (t) => {
  const { port, opened, asked } = await peer(t, echo);
  const origin = pool(t, port, { connections: 8 });
  for (let n = 0; n < 1_000; n++) assert.equal(await ask(origin, `${n}`), `200 ${n}`);
  assert.deepEqual([opened(), asked.length], [1, 1_000]);
});

testBoth(
  "calls beyond the connections wait in line, those beyond the line are refused at once",
  async (t) => {
    const held: Socket[] = [];
    const { port, opened, asked } = await peer(t, (socket, body) =>
      held.length < 2 ? void held.push(socket) : echo(socket, body, 0),
    );
    const origin = pool(t, port, { connections: 2, queue: 3 });
    const calls = Array.from({ length: 7 }, (_, n) => send(origin, `${n}`));
    assert.deepEqual(await Promise.all(calls.slice(5).map((it) => it.done)), ["EPOOL", "EPOOL"]);
    await until("the first two", () => held.length === 2);
    for (const socket of held) socket.write(whole("held"));
    assert.deepEqual(await Promise.all(calls.slice(0, 5).map((it) => it.done)), [
      "200 held",
      "200 held",
      "200 2",
      "200 3",
      "200 4",
    ]);
    assert.deepEqual([opened(), asked.length], [2, 5]);
    assert.deepEqual(
      calls.map((it) => it.started),
      [1, 1, 1, 1, 1, 0, 0],
    );
  },
);

testBoth(
  "calls that were cancelled while they waited cost neither a request nor a connection, " +
    "however many they are",
  async (t) => {
    let held: Socket | null = null;
    const { port, opened, asked } = await peer(t, (socket, body) => {
      if (body === "first") held = socket;
      else echo(socket, body, 0);
    });
    const origin = pool(t, port, { queue: 20_000 });
    const first = send(origin, "first");
    const cancelled = Array.from({ length: 10_000 }, (_, n) => send(origin, `cancelled ${n}`));
    const live = [send(origin, "a"), send(origin, "b")];
    for (const it of cancelled) it.cancelled = true;
    (await until("the first call", (): Socket | null => held)).write(whole("first"));
    assert.deepEqual(await Promise.all([first, ...live].map((it) => it.done)), [
      "200 first",
      "200 a",
      "200 b",
    ]);
    assert.deepEqual([asked, opened()], [["first", "a", "b"], 1]);
  },
);

testBoth(
  "a call that was cancelled while its connection was made sends nothing, and the connection " +
    "serves the next",
  async (t) => {
    const { port, opened, asked } = await peer(t, echo);
    const origin = pool(t, port);
    const cancelled = send(origin, "cancelled");
    const waiting = send(origin, "waiting");
    cancelled.cancelled = true;
    assert.equal(await waiting.done, "200 waiting");
    assert.equal(await ask(origin, "later"), "200 later");
    assert.deepEqual([asked, opened()], [["waiting", "later"], 1]);
  },
);

testBoth(
  "a call that is cancelled in the middle of its answer ends the connection, and the next in " +
    "line gets another",
  async (t) => {
    const { port, opened, open } = await peer(t, (socket, body) =>
      body === "long"
        ? void socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\nx`)
        : echo(socket, body, 0),
    );
    const origin = pool(t, port);
    const long = send(origin, "long");
    const next = send(origin, "next");
    long.onData = () => long.controller?.abort(new Error("cancelled"), long);
    assert.equal(await long.done, "cancelled");
    assert.equal(await next.done, "200 next");
    await until("the end of the first connection", () => open() === 1);
    assert.deepEqual([opened(), long.ends], [2, 1]);
  },
);

testBoth(
  "a refused connection, and one that is not made in time, are errors of requests that never " +
    "started",
  async (t) => {
    // A port that was just closed may be given to somebody else; this one is given to nobody.
    const port = 1;
    const refused = Array.from({ length: 5 }, () => send(pool(t, port)));
    for (const it of refused) assert.deepEqual([await it.done, it.started], ["ECONNREFUSED", 0]);
    const unheard = send(
      pool(t, port, { connectTimeoutMs: 1, host: "silent.test", lookup: () => {} }),
    );
    assert.deepEqual([await unheard.done, unheard.started], ["ETIMEDOUT", 0]);
  },
);

test("a name that is found late and a handshake that hangs have one bound together", async (t) => {
  const world = simulatedWorld(1);
  let connections = 0;
  const silent = createServer((socket) => {
    connections++;
    t.after(() => socket.destroy());
  });
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  t.after(() => silent.close());
  let found = (): void => assert.fail("nobody asked for the name");
  const bounds: OriginBounds = {
    ...{ scheme: "https", host: "silent.test", connectTimeoutMs: 5_000, runtime: world },
    lookup: (_, __, done) => {
      found = () => done(null, [{ address: "127.0.0.1", family: 4 }]);
    },
  };
  const { port } = silent.address() as AddressInfo;
  const asked = send(pool(t, port, bounds));
  world.advance(4_000);
  found();
  await until("a handshake that hangs", () => connections === 1);
  world.advance(1_000);
  assert.deepEqual([await asked.done, asked.started], ["ETIMEDOUT", 0]);
});

testBoth(
  "a retired origin finishes what it has, in flight and in line, and then has no connection left",
  async (t) => {
    const { port, open, asked } = await peer(
      t,
      (socket, body) => void setTimeout(() => echo(socket, body, 0), 20),
    );
    const origin = pool(t, port);
    const calls = [send(origin, "a"), send(origin, "b")];
    await until("the first call", () => asked.length === 1);
    origin.drain();
    assert.deepEqual(await Promise.all(calls.map((it) => it.done)), ["200 a", "200 b"]);
    await until("the end of the connection", () => open() === 0);
  },
);

testBoth(
  "a destroyed origin fails what is connecting, in flight and in line, once each, and takes " +
    "nothing more",
  async (t) => {
    const { port, open, asked } = await peer(t, () => {});
    const origin = pool(t, port, { connections: 2 });
    const flying = send(origin, "flying");
    await until("the first call", () => asked.length === 1);
    const calls = [
      flying,
      send(origin, "connecting"),
      send(origin, "in line"),
      send(origin, "in line"),
    ];
    void origin.destroy();
    calls.push(send(origin, "late"));
    assert.deepEqual(
      await Promise.all(calls.map((it) => it.done)),
      Array.from(calls, () => "ECLOSED"),
    );
    await until("the end of the connections", () => open() === 0);
    assert.deepEqual(
      calls.map((it) => it.ends),
      [1, 1, 1, 1, 1],
    );
    assert.deepEqual(asked, ["flying"]);
  },
);

testBoth(
  "an idle connection is given up before the provider would close it, and no timer outlives " +
    "the connections",
  async (t) => {
    const runtime = simulatedWorld(1);
    const { port, open } = await peer(
      t,
      (socket, body) => void socket.write(whole(body, "Keep-Alive: timeout=5")),
    );
    const origin = pool(t, port, { runtime });
    assert.equal(await ask(origin), "200 ping");
    runtime.advance(2_900);
    assert.equal(await ask(origin), "200 ping");
    runtime.advance(2_900);
    await sleep(20);
    assert.equal(open(), 1, "still within the provider's patience");
    runtime.advance(1_100);
    await until("the end of the connection", () => open() === 0);
    runtime.advance(1_000);
    assert.equal(runtime.pendingTimers(), 0);
  },
);

testBoth(
  "a connection that was idle for too long is not used, also where nobody has swept it away yet",
  async (t) => {
    const { port, opened, asked } = await peer(t, (socket) =>
      socket.write("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok"),
    );
    const runtime = simulatedWorld(1);
    const origin = pool(t, port, { runtime, connections: 2 });
    await Promise.all([send(origin).done, send(origin).done]);
    runtime.stall(2_900);
    assert.deepEqual([await send(origin).done, opened()], ["200 ok", 2], "it may still be used");
    runtime.stall(3_100);
    assert.equal(await send(origin).done, "200 ok");
    assert.deepEqual([opened(), asked.length], [3, 4]);
  },
);

testBoth(
  "a provider that closes while the next call is on its way: one answer or one error for each " +
    "call, and no call reaches it twice",
  async (t) => {
    const random = seededRandom(7);
    const { port, asked } = await peer(t, (socket, body) => {
      socket.write(whole(body));
      setTimeout(() => (random() < 0.5 ? socket.end() : socket.destroy()), random() * 2);
    });
    const origin = pool(t, port, { connections: 4 });
    const calls: Asking[] = [];
    for (let n = 0; n < 600; n++) {
      const call = send(origin, `${n}`);
      calls.push(call);
      assert.match(await call.done, new RegExp(`^(200 ${n}|ECONNRESET|EPIPE)$`));
      if (random() < 0.5) await sleep(random() * 2);
    }
    assert.ok(calls.every((it) => it.ends === 1));
    assert.equal(new Set(asked).size, asked.length, "a call was sent twice");
  },
);

test(
  "when a kept connection ends under a call, a read and a signed transaction go to the next " +
    "provider, and a call that may run twice to nobody else",
  async (t) => {
    const { call, upstreams } = await serviceFixture(t, [
      undefined,
      (_, reply) => reply.result('"0xb"'),
    ]);
    assert.equal(walked(await call("eth_gasPrice")), "a:ok");
    upstreams[0]?.script((_, reply) => reply.close());
    const read = await call("eth_gasPrice");
    assert.deepEqual([walked(read), read.json.result], ["a:network b:ok", "0xb"]);
    upstreams[0]?.script((_, reply) => reply.result('"0x1"'));
    assert.equal(walked(await call("eth_gasPrice")), "a:ok");
    upstreams[0]?.script((_, reply) => reply.close());
    const before = upstreams.map((it) => it.asked.length);
    assert.equal(walked(await call("eth_sendRawTransaction", ["0x02f8"])), "a:network b:ok");
    const sent = await call("foo_other");
    assert.equal(sent.json.error.data.code, "outcome_unknown");
    assert.deepEqual(
      upstreams.map((it, n) => it.asked.length - (before[n] ?? 0)),
      [2, 1],
    );
  },
);

/** Bytes that no other answer has. */
function pattern(seed: number, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  const random = seededRandom(seed);
  for (let at = 0; at + 4 <= size; at += 4)
    bytes.writeUInt32LE(Math.floor(random() * 4_294_967_296), at);
  return bytes;
}

testBoth(
  "chunks of long answers that are kept stay as they were while others are read, and their " +
    "memory is used again once handed back",
  async (t) => {
    const SIZE = 1_000_003;
    const { port } = await peer(t, (socket, body) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${SIZE}\r\n\r\n`);
      socket.write(pattern(Number(body), SIZE));
    });
    const buffers = new BufferPool();
    const origin = pool(t, port, { connections: 4, buffers });
    for (let round = 0; round < 5; round++) {
      const askings = Array.from({ length: 8 }, (_, n) => {
        const asking = new Asking();
        asking.keeps = true;
        return send(origin, `${round * 8 + n}`, asking);
      });
      await Promise.all(askings.map((it) => it.done));
      for (const [n, { chunks }] of askings.entries()) {
        assert.ok(
          Buffer.concat(chunks).equals(pattern(round * 8 + n, SIZE)),
          `answer ${round * 8 + n} was altered`,
        );
        for (const chunk of chunks) {
          origin.buffers.recycle(chunk);
        }
      }
    }
    const answers = 40 * Math.ceil(SIZE / 131_072);
    assert.ok(buffers.made < answers / 2, `${buffers.made} buffers for ${answers} long reads`);
  },
);

testBoth(
  "a paused answer takes no more than what is on its way, and all of it once resumed",
  async (t) => {
    const SIZE = 30_000_000;
    const { port } = await peer(t, (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${SIZE}\r\n\r\n`);
      socket.write(Buffer.alloc(SIZE, "x"));
    });
    const asking = send(pool(t, port));
    const size = (): number => asking.chunks.reduce((sum, it) => sum + it.length, 0);
    asking.onData = () => asking.controller?.pause();
    await until("the first bytes", () => size() > 0);
    await sleep(50);
    const before = size();
    assert.ok(before <= 135_168, `${before} bytes after the pause`);
    asking.onData = () => {};
    asking.controller?.resume();
    assert.equal((await asking.done).length, SIZE + "200 ".length);
  },
);

/** Hears one answer of the HTTP transport as a line. */
function listener(settle: (line: string) => void): AnswerListener {
  return {
    result: (body, { start, end }) => settle(`result ${body.toString("latin1", start, end)}`),
    stream(stream: AnswerStream) {
      stream.flow({
        data: () => true,
        end() {
          settle("stream ended");
          return false;
        },
        broken: () => settle("broken"),
      });
    },
    broken() {},
    failed: (failure: Failure) => settle(`${failure.kind} ${failure.message}`),
  };
}

const TIGHT = {
  connectionsPerOrigin: 1,
  maxWaiting: 10_000,
  connectTimeoutMs: 60_000,
  maxAnswerBytes: 3_000_000,
  maxWholeBytes: 1_000_000,
  maxGuardedBytes: 500_000,
};

test(
  "a body that is no answer costs its own call alone: the call that got the connection after " +
    "it is answered",
  async (t) => {
    const { port, opened } = await peer(t, (socket, body, count) => {
      const { id } = JSON.parse(body);
      socket.write(
        whole(
          count === 1
            ? "<html>out of order</html>"
            : `{"jsonrpc":"2.0","id":${id},"result":"sound"}`,
        ),
      );
    });
    const upstream = new HttpUpstream(realRuntime, TIGHT);
    t.after(() => upstream.close());
    const provider = fakeProvider(0, { url: urlOf(t, port) });
    const outcome = (): Promise<string> =>
      new Promise(
        (resolve) =>
          void upstream.send(
            { provider, ...writeRequest("eth_call", null), mayStream: true },
            listener(resolve),
          ),
      );
    assert.deepEqual(await Promise.all([outcome(), outcome()]), [
      "body <html>out of order</html>",
      'result "sound"',
    ]);
    assert.equal(opened(), 1);
  },
);

testBoth(
  "an answer under another id is a failure without a word of it, ends its connection, and " +
    "harms no other call",
  async (t) => {
    const others = ["1", '"1"', "null", "1234567890123456"];
    const { port, opened } = await peer(t, (socket, body, count) => {
      const { id } = JSON.parse(body);
      const result = `"${"secret ".repeat(count % 2 === 0 ? 1 : 20_000)}"`;
      socket.write(whole(`{"jsonrpc":"2.0","id":${others[count - 1] ?? id},"result":${result}}`));
    });
    const upstream = new HttpUpstream(realRuntime, TIGHT);
    t.after(() => upstream.close());
    const provider = fakeProvider(0, { url: urlOf(t, port) });
    const outcome = (): Promise<string> =>
      new Promise(
        (resolve) =>
          void upstream.send(
            { provider, ...writeRequest("eth_call", null), mayStream: false },
            listener(resolve),
          ),
      );
    const outcomes = await Promise.all(Array.from({ length: 6 }, outcome));
    assert.deepEqual(
      outcomes.map((it) => it.slice(0, 40)),
      [
        ...others.map(() => "body the answer carries another id"),
        `result "${"secret ".repeat(4)}secr`,
        'result "secret "',
      ],
    );
    assert.equal(opened(), others.length + 1);
  },
);

for (const [name, start] of [
  ["chunk", "Transfer-Encoding: chunked\r\n\r\ne8d4a51000\r\n"],
  ["body", "Content-Length: 1000000000000\r\n\r\n"],
  ["body without a length", "\r\n"],
] as const) {
  testBoth(
    `a ${name} of a trillion bytes ends at the bound of answers, whether held or passed on`,
    async (t) => {
      let wrote = 0;
      const { port, open } = await peer(t, (socket, body) => {
        const piece = Buffer.alloc(65_536, "x");
        const pour = (): void => {
          if (socket.destroyed || wrote > 50_000_000) return;
          wrote += piece.length;
          socket.write(piece, () => setImmediate(pour));
        };
        socket.write(
          `HTTP/1.1 200 OK\r\n${start}{"jsonrpc":"2.0","id":${JSON.parse(body).id},"result":"`,
        );
        pour();
      });
      const upstream = new HttpUpstream(realRuntime, TIGHT);
      t.after(() => upstream.close());
      const provider = fakeProvider(0, { url: urlOf(t, port) });
      const outcome = (mayStream: boolean): Promise<string> =>
        new Promise(
          (resolve) =>
            void upstream.send(
              { provider, ...writeRequest("eth_call", null), mayStream },
              listener(resolve),
            ),
        );
      assert.equal(await outcome(false), "body the answer is too long");
      assert.ok(wrote < 10_000_000, `${wrote} bytes to hold`);
      wrote = 0;
      // A length that is announced is refused before anything was passed on: another provider may
      // still answer.
      assert.equal(await outcome(true), name === "body" ? "body the answer is too long" : "broken");
      assert.ok(wrote < 12_000_000, `${wrote} bytes to pass on`);
      await until("the end of the connections", () => open() === 0);
    },
  );
}

testBoth(
  "ten thousand calls wait for a connection; the next one is refused as not sent, and all of " +
    "them end with the transport",
  async (t) => {
    const { port, asked } = await peer(t, () => {});
    const upstream = new HttpUpstream(realRuntime, TIGHT);
    t.after(() => upstream.close());
    const provider = fakeProvider(0, { url: urlOf(t, port) });
    const outcomes: string[] = [];
    const outgoing = { provider, ...writeRequest("eth_call", null), mayStream: true };
    const note = (line: string): void => void outcomes.push(line);
    const dispatches = Array.from({ length: 10_001 }, () =>
      upstream.send(outgoing, listener(note)),
    );
    const refused = upstream.send(outgoing, listener(note));
    assert.deepEqual([outcomes, refused.sent], [["unsent EPOOL"], false]);
    await until("the first call", () => asked.length === 1);
    assert.equal(dispatches.filter((it) => it.sent).length, 1);
    await upstream.close();
    await until("the end of all", () => outcomes.length === 10_002);
    assert.equal(outcomes.filter((it) => it === "unsent ECLOSED").length, 10_000);
    assert.equal(asked.length, 1);
  },
);
