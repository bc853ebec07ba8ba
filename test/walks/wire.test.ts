// HTTP/1.1 as providers write it: odd but proper answers are understood, improper ones lead to the
// next provider, and no answer reaches the wrong caller.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runsOnLibraries } from "../fakes/http-variant.ts";
import { serviceFixture, until, walked } from "../fakes/service-fixture.ts";
import type { Replier, Script } from "../fakes/upstream.ts";

/** A call has time for an answer that comes byte by byte on a busy machine. */

const json = (id: string, result = '"0xa"'): string =>
  `{"jsonrpc":"2.0","id":${id},"result":${result}}`;

const PROPER: readonly (readonly [name: string, write: (body: string, reply: Replier) => void])[] =
  [
    [
      "early hints first",
      (body, { raw }) =>
        raw(
          `HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: ` +
            `${body.length}\r\n\r\n${body}`,
        ),
    ],
    [
      "100 Continue first",
      (body, { raw }) =>
        raw(
          `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: ` +
            `${body.length}\r\n\r\n${body}`,
        ),
    ],
    ["a body that ends with the connection", endsWithConnection("HTTP/1.1 200 OK")],
    ["HTTP/1.0", endsWithConnection("HTTP/1.0 200 OK")],
    [
      "no reason phrase",
      (body, { raw }) => raw(`HTTP/1.1 200\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
    ],
    [
      "odd header case and spacing",
      (body, { raw }) =>
        raw(`HTTP/1.1 200 OK\r\nCONTENT-LENGTH:${body.length}  \r\nx-empty:\r\n\r\n${body}`),
    ],
    [
      "chunks with extensions and trailers",
      (body, { raw }) => raw(chunked(body, 7, ";a=b", "X-Trailer: 1\r\n")),
    ],
    [
      "chunks of one byte, one packet each",
      (body, { raw }) => inPieces(chunked(body, 1, "", ""), 1, raw),
    ],
    [
      "headers and body byte by byte",
      (body, { raw }) =>
        inPieces(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`, 1, raw),
    ],
    [
      "a closed connection after each answer",
      (body, reply) => reply.body(body, 200, { connection: "close" }),
    ],
    [
      "many headers",
      (body, reply) =>
        reply.body(
          body,
          200,
          Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`x-${n}`, "v".repeat(50)])),
        ),
    ],
  ];

const IMPROPER: readonly (readonly [
  name: string,
  write: (body: string, reply: Replier) => void,
])[] = [
  [
    "two lengths that differ",
    (body, { raw }) =>
      raw(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nContent-Length: 3\r\n\r\n${body}`),
  ],
  [
    "a length that is no number",
    (body, { raw }) => raw(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}x\r\n\r\n${body}`),
  ],
  [
    "a negative length",
    (body, { raw }) => raw(`HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n${body}`),
  ],
  [
    "a broken chunk size",
    (body, { raw }) =>
      raw(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n${body}\r\n0\r\n\r\n`),
  ],
  [
    "an endless chunk size",
    (body, { raw }) =>
      raw(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"f".repeat(40)}\r\n${body}`),
  ],
  [
    "chunks without an end",
    (body, { raw, close }) => {
      raw(chunked(body, 9, "", "").slice(0, -5));
      close();
    },
  ],
  [
    "half a body that ends with the connection",
    (body, reply) => endsWithConnection("HTTP/1.1 200 OK")(body.slice(0, -9), reply),
  ],
  [
    "endless headers",
    (_, { raw, response }) => {
      raw("HTTP/1.1 200 OK\r\n");
      flood(raw, response.socket, `X-Pad: ${"p".repeat(1_000)}\r\n`);
    },
  ],
  [
    "one endless header",
    (_, { raw, response }) => {
      raw("HTTP/1.1 200 OK\r\nX-Pad: ");
      flood(raw, response.socket, "p".repeat(1_000));
    },
  ],
  [
    "endless interim answers",
    (_, { raw, response }) =>
      flood(raw, response.socket, "HTTP/1.1 102 Processing\r\n\r\n".repeat(40)),
  ],
  [
    "another protocol",
    (_, { raw, close }) => {
      raw("HTTP/2.0 200 OK\r\n\r\n");
      close();
    },
  ],
  [
    "a switch of protocols",
    (_, { raw, close }) => {
      raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nhello");
      close();
    },
  ],
  [
    "a status that is no number",
    (body, { raw }) => raw(`HTTP/1.1 2OO OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
  ],
];

function endsWithConnection(start: string): (body: string, reply: Replier) => void {
  return (body, { raw, close }) => {
    raw(`${start}\r\nContent-Type: application/json\r\n\r\n${body}`);
    close();
  };
}

function chunked(body: string, size: number, extension: string, trailer: string): string {
  let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (let at = 0; at < body.length; at += size) {
    const part = body.slice(at, at + size);
    text += `${part.length.toString(16)}${extension}\r\n${part}\r\n`;
  }
  return `${text}0\r\n${trailer}\r\n`;
}

function inPieces(text: string, size: number, raw: Replier["raw"]): void {
  let at = 0;
  const next = (): void => {
    raw(text.slice(at, at + size));
    at += size;
    if (at < text.length) setImmediate(next);
  };
  next();
}

/** Writes again and again until the other side hangs up, at most 50 MB. */
function flood(raw: Replier["raw"], socket: Replier["response"]["socket"], text: string): void {
  let written = 0;
  const timer = setInterval(() => {
    if (socket === null || socket.destroyed || written > 50_000_000) return clearInterval(timer);
    for (let n = 0; n < 100; n++) raw(text);
    written += 100 * text.length;
  }, 1);
}

/** Proper answers that undici takes for broken ones: the next provider is asked. */
const UNDICI_REFUSES: ReadonlySet<string> = new Set([
  "100 Continue first",
  "odd header case and spacing",
]);
/** Undici reads interim answers without a bound, until the deadline. */
const UNDICI_READS_ON: ReadonlySet<string> = new Set(["endless interim answers"]);

for (const [name, write] of PROPER) {
  const skip = runsOnLibraries && UNDICI_REFUSES.has(name) && "undici refuses it";
  test(`an answer with ${name} is understood, one after the other`, { skip }, async (t) => {
    const { call } = await serviceFixture(t, [
      ({ id }, reply) => write(json(id), reply),
      (_, reply) => reply.result('"0xb"'),
    ]);
    for (let n = 0; n < 3; n++) {
      const answer = await call("eth_gasPrice");
      assert.equal(walked(answer), "a:ok");
      assert.equal(answer.json.result, "0xa");
    }
  });
}

for (const [name, write] of IMPROPER) {
  const skip = runsOnLibraries && UNDICI_READS_ON.has(name) && "undici has no bound";
  const title = `an answer with ${name} leads to the next provider, and its connection is given up`;
  test(title, { skip }, async (t) => {
    const { call, upstreams } = await serviceFixture(t, [
      ({ id }, reply) => write(json(id), reply),
      (_, reply) => reply.result('"0xb"'),
    ]);
    const answer = await call("eth_gasPrice");
    assert.equal(answer.json.result, "0xb");
    assert.match(walked(answer), /^a:(network|bad_body|server|timeout) b:ok$/);
    upstreams[0]?.script((_, reply) => reply.result('"0xc"'));
    assert.equal((await call("eth_gasPrice")).json.result, "0xc", "the next call meets no remains");
  });
}

test("a second answer that nobody asked for is never taken for the answer to the next call", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [undefined]);
  const whole = (body: string): string =>
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ` +
    `${body.length}\r\n\r\n${body}`;
  const post = async (n: number): Promise<string> =>
    (
      await service.post("/rpc/1", {
        jsonrpc: "2.0",
        id: 7,
        method: "eth_getBalance",
        params: [`0x${n}`],
      })
    ).text;
  for (const gapMs of [0, 5]) {
    for (let n = 0; n < 5; n++) {
      upstreams[0]?.script(({ id }, { raw }) => {
        const stray = whole(json(id, '"poison"'));
        raw(whole(json(id)) + (gapMs === 0 ? stray : ""));
        if (gapMs > 0) setTimeout(() => raw(stray), gapMs);
      });
      assert.equal(await post(n), json("7"));
      await new Promise((resolve) => setTimeout(resolve, 2 * gapMs));
      upstreams[0]?.script(
        ({ id }, reply) => void setTimeout(() => reply.body(json(id, '"true"')), 20),
      );
      assert.equal(await post(n), json("7", '"true"'));
    }
  }
});

/** Errors that do not say whose they are. */
const UNOWNED: readonly (readonly [name: string, error: string, walk: string, told: RegExp])[] = [
  [
    "a revert",
    '{"code":3,"message":"execution reverted: stranger","data":"0x57"}',
    "a:revert",
    /"code":-32002/,
  ],
  [
    "wrong parameters",
    '{"code":-32602,"message":"invalid argument 0: stranger"}',
    "a:invalid_params",
    /"code":-32002/,
  ],
  [
    "a broken request",
    '{"code":-32700,"message":"parse error near stranger"}',
    "a:parse",
    /"error":\{"code":-32700,"message":"Parse error"\}/,
  ],
  [
    "a rate limit",
    '{"code":-32005,"message":"rate limit exceeded for stranger"}',
    "a:rate_limit",
    /"code":-32002/,
  ],
];
for (const [name, error, walk, told] of UNOWNED) {
  test(
    `an error without an id (${name}) is judged, but not told: the next provider answers, and ` +
      "where there is none no word of it is shown",
    async (t) => {
      for (const id of ['"id":null,', ""]) {
        const wrong: Script = (_, reply) => reply.body(`{"jsonrpc":"2.0",${id}"error":${error}}`);
        const two = await serviceFixture(t, [wrong, (_, reply) => reply.result('"0xb"')]);
        const answer = await two.call("eth_gasPrice");
        assert.deepEqual([walked(answer), answer.json.result], [`${walk} b:ok`, "0xb"]);
        const one = await serviceFixture(t, [wrong]);
        const { text } = await one.call("eth_gasPrice");
        assert.match(text, told);
        assert.doesNotMatch(text, /stranger|0x57/);
      }
    },
  );
}

test(
  "an error without an id decides nothing about a transaction: whether it was known, or its " +
    "nonce used, is not believed",
  async (t) => {
    for (const message of [
      "already known",
      "nonce too low",
      "insufficient funds for stranger",
      "replacement transaction underpriced",
    ]) {
      const { call, service, upstreams } = await serviceFixture(t, [
        (_, reply) =>
          reply.body(`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"${message}"}}`),
        (_, reply) => reply.result('"0xb"'),
      ]);
      const answer = await call("eth_sendRawTransaction", ["0x02f8"]);
      assert.equal(answer.json.result, "0xb", message);
      assert.equal(upstreams[1]?.asked.length, 1);
      const pinned = await service.post("/rpc/provider/a/1", {
        jsonrpc: "2.0",
        id: 1,
        method: "eth_sendRawTransaction",
        params: ["0x02f8"],
      });
      assert.equal(pinned.json.error?.data.code, "outcome_unknown", message);
      assert.doesNotMatch(pinned.text, /stranger/);
    }
  },
);

test("a provider that closes its idle connections costs no call", async (t) => {
  const { call, upstreams } = await serviceFixture(t, [undefined]);
  let closed = 0;
  upstreams[0]?.script(({ id }, { response }) => {
    const { socket } = response;
    socket?.once("close", () => closed++);
    response.on("finish", () => setTimeout(() => socket?.destroy(), 5));
    response.end(json(id));
  });
  for (let n = 1; n <= 12; n++) {
    assert.equal(walked(await call("eth_gasPrice")), "a:ok");
    await until("the end of the connection", () => closed === n);
  }
});

test("a request of eight million bytes goes up whole", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [
    ({ params }, reply) => reply.result(String(String(params).length)),
  ]);
  const { json: answer } = await service.post("/rpc/1", {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_call",
    params: ["x".repeat(7_900_000)],
  });
  assert.equal(answer.result, 7_900_000);
  assert.equal(upstreams[0]?.asked.length, 1);
});
