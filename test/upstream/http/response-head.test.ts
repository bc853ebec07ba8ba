// How an answer's head and chunks are read, against what is known, against node's own client
// parser, and against bytes made to be misread.
import assert from "node:assert/strict";
import { request } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import {
  ChunkedBody,
  type ResponseHead,
  readHead,
} from "../../../src/upstream/http/response-head.ts";

const headOf = (...lines: readonly string[]): string => ["HTTP/1.1 200 OK", ...lines].join("\r\n");

test("the length, the connection's fate and the origin's patience are read from a plain head", () => {
  assert.deepEqual(
    readHead(
      headOf(
        "content-LENGTH:\t7 ",
        "Content-Type: x",
        "Connection: Keep-Alive",
        "Keep-Alive: timeout=5, max=100",
        "Retry-After: 3",
      ),
    ),
    {
      status: 200,
      headers: {
        "content-length": "7",
        connection: "Keep-Alive",
        "keep-alive": "timeout=5, max=100",
        "retry-after": "3",
      },
      idleMs: 3_000,
      keepAlive: true,
      body: { kind: "counted", bytes: 7 },
    },
  );
});

const BODIES: readonly (readonly [
  text: string,
  body: ResponseHead["body"]["kind"] | number,
  keepAlive: boolean,
])[] = [
  [headOf("Content-Length: 0"), 0, true],
  [headOf("Content-Length: 000000000000012"), 12, true],
  [headOf("Content-Length: 5", "Connection: close"), 5, false],
  [headOf("Content-Length: 5", "Connection: x, Close ,y"), 5, false],
  [headOf("Content-Length: 5", "Connection: keep-alive", "Connection: close"), 5, false],
  [headOf("Content-Length: 5", "Connection: closed"), 5, true],
  [headOf("Transfer-Encoding: Chunked"), "chunked", true],
  [headOf(), "until_close", false],
  [headOf("Connection: keep-alive"), "until_close", false],
  ["HTTP/1.0 200 OK\r\nContent-Length: 5", 5, false],
  ["HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive", 5, true],
  ["HTTP/1.1 204 No Content", 0, true],
  ["HTTP/1.1 204 No Content\r\nContent-Length: 9", 0, true],
  ["HTTP/1.1 304 Not Modified\r\nContent-Length: 9", 0, true],
  ["HTTP/1.1 304 \r\nTransfer-Encoding: chunked", 0, true],
  ["HTTP/1.1 103 Early Hints\r\nLink: <x>", 0, true],
  ["HTTP/1.1 500\r\nContent-Length: 5", 5, true],
];
test("where an answer's body ends, and whether its connection stays, follows from its head", () => {
  for (const [text, body, keepAlive] of BODIES) {
    const head = readHead(text);
    assert.ok(head !== null, JSON.stringify(text));
    assert.deepEqual(
      [head.body.kind === "counted" ? head.body.bytes : head.body.kind, head.keepAlive],
      [body, keepAlive],
      JSON.stringify(text),
    );
  }
});

test(
  "an origin's patience is believed between nothing and two minutes, and given up two seconds " +
    "early",
  () => {
    const idleMs = (hint: string): number | null | undefined =>
      readHead(headOf("Content-Length: 1", `Keep-Alive: ${hint}`))?.idleMs;
    assert.deepEqual(
      [
        "timeout=60",
        "max=5, timeout=10",
        "timeout=1",
        "timeout=0",
        "timeout=999999",
        "max=5",
        "timeout=x",
      ].map(idleMs),
      [58_000, 8_000, 0, 0, 118_000, null, null],
    );
  },
);

const REFUSED: Readonly<Record<string, readonly string[]>> = {
  "two lengths, equal or not": ["Content-Length: 5", "Content-Length: 6", "content-length:5"].map(
    (it) => headOf("Content-Length: 5", it),
  ),
  "a length that is no plain decimal": [
    "+5",
    "-5",
    "5,5",
    "0x5",
    "5 5",
    "5;",
    "5.0",
    "",
    '"5"',
    "5\0",
    "5\x0b",
    "1234567890123456",
    "x",
  ].map((it) => headOf(`Content-Length: ${it}`)),
  "a length beside a transfer encoding": [
    headOf("Content-Length: 5", "Transfer-Encoding: chunked"),
    headOf("Transfer-Encoding: chunked", "Content-Length: 5"),
  ],
  "a transfer encoding other than chunked, or twice": [
    ...[
      "gzip, chunked",
      "identity",
      "chunked, chunked",
      "xchunked",
      "chunked;a=b",
      "chunked\t",
      "",
    ].map((it) => headOf(`Transfer-Encoding: ${it}`)),
    headOf("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
  ],
  "chunks in HTTP/1.0": ["HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked"],
  "a switch to another protocol": ["HTTP/1.1 101 Switching Protocols\r\nUpgrade: x"],
  "a name with white space or control characters around it": [
    "Content-Length : 5",
    "Content-Length\t: 5",
    " Content-Length: 5",
    "\tX: y",
    "X : y",
    "X\0: y",
    "Content-Length\x0b: 5",
    "\0Content-Length: 5",
  ].map((it) => headOf(it)),
  "a folded line": [headOf("X: a", " b"), headOf("Content-Length:", " 5"), headOf("X: a", "\tb")],
  "line ends that are not CR LF": [
    "HTTP/1.1 200 OK\nContent-Length: 5",
    "HTTP/1.1 200 OK\rContent-Length: 5",
    headOf("X: a\nContent-Length: 5"),
    headOf("X: a\rContent-Length: 5"),
    headOf("X: a\r\r", "Content-Length: 5"),
    headOf("X: a\n\r", "Content-Length: 5"),
    headOf("Content-Length: 5\n"),
    headOf("Content-Length: 5\r"),
  ],
  "a line without a name or without a colon": [
    headOf("X"),
    headOf(": y"),
    headOf("", "X: y"),
    headOf("Content-Length 5"),
  ],
  "a status line that is none": [
    "",
    "HTTP/1.1",
    "HTTP/1.1 ",
    "HTTP/1.1 20",
    "HTTP/1.1 2000",
    "HTTP/1.1 099 X",
    "HTTP/1.1 600 X",
    "HTTP/1.1  200 OK",
    "HTTP/1.2 200 OK",
    "HTTP/2 200",
    "http/1.1 200 OK",
    "ICY 200 OK",
    " HTTP/1.1 200 OK",
    "HTTP/1.1 200OK",
    "HTTP/1.1\t200 OK",
  ],
  "more lines than anybody sends": [headOf(...Array.from({ length: 129 }, (_, n) => `X-${n}: y`))],
};
for (const [what, texts] of Object.entries(REFUSED)) {
  test(`an answer is refused for ${what}`, () => {
    for (const text of texts) assert.equal(readHead(text), null, JSON.stringify(text));
  });
}

/**
 * What comes after every head; reads as chunks, as a counted body and as one that ends with the
 * connection.
 */
const TAIL = "5\r\nhello\r\n0\r\n\r\n";

/** The body that node's client makes of raw bytes; null = it refuses them. */
async function nodeReader(
  t: TestContext,
): Promise<(bytes: string) => Promise<{ readonly status: number; readonly body: string } | null>> {
  let next = "";
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(next, "latin1"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return (bytes) =>
    new Promise((resolve) => {
      next = bytes;
      const asked = request({ host: "127.0.0.1", port, method: "POST", agent: false }, (answer) => {
        let body = "";
        answer.on("data", (chunk: Buffer) => (body += chunk.toString("latin1")));
        answer.on("error", () => resolve(null));
        answer.on("end", () =>
          resolve(answer.complete ? { status: answer.statusCode ?? 0, body } : null),
        );
      });
      asked.on("upgrade", (_, socket) => {
        socket.destroy();
        resolve(null);
      });
      asked.on("error", () => resolve(null));
      asked.end();
    });
}

/** The body that our reading of a head makes of the tail; null = none that is complete. */
function ourBody({ body }: ResponseHead): string | null {
  switch (body.kind) {
    case "counted":
      return body.bytes <= TAIL.length ? TAIL.slice(0, body.bytes) : null;
    case "chunked":
      return "hello";
    case "until_close":
      return TAIL;
  }
}

const NASTY = fc.constantFrom(
  "\0",
  "\t",
  "\n",
  "\r",
  "\r\n",
  "\r\n ",
  " ",
  ":",
  ",",
  "\x0b",
  "\x7f",
  "\x80",
  "\xa0",
  "+",
  "0x",
  "5",
  "0",
  "Content-Length: 3\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Transfer-Encoding: x\r\n",
  "Connection: close\r\n",
);

test("node's client reads the same status and body from every accepted head, or refuses it", async (t) => {
  const read = await nodeReader(t);
  const starts = [
    headOf("Content-Length: 5", "X: y", "Connection: close"),
    headOf("Transfer-Encoding: chunked", "X: y"),
    headOf("X: y", "Content-Type: z"),
    "HTTP/1.0 404 No\r\nContent-Length: 15",
  ];
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...starts),
      fc.nat(70),
      NASTY,
      fc.nat(2),
      async (start, at, nasty, cut) => {
        const text = start.slice(0, at) + nasty + start.slice(at + cut);
        const head = `${text}\r\n\r\n`.indexOf("\r\n\r\n") < text.length ? null : readHead(text);
        if (head === null || head.status < 200) return;
        const theirs = await read(`${text}\r\n\r\n${TAIL}`);
        const ours = ourBody(head);
        if (theirs === null || ours === null) return;
        compared++;
        assert.deepEqual({ status: head.status, body: ours }, theirs);
      },
    ),
    { numRuns: 1_500 },
  );
  assert.ok(compared > 200, `only ${compared} heads were compared`);
});

/** Takes a chunked body in pieces; what came out of it, or why not. */
function chunksOf(
  bytes: Buffer,
  cuts: readonly number[],
): { readonly data: string; readonly rest: string | null } | "malformed" {
  const body = new ChunkedBody();
  let data = "";
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    const piece = Buffer.from(bytes.subarray(from, to));
    from = to;
    if (piece.length === 0) continue;
    const rest = body.take(piece, (start, end) => {
      data += piece.toString("latin1", start, end);
    });
    if (rest === undefined) return "malformed";
    if (rest !== null)
      return { data, rest: rest.toString("latin1") + bytes.toString("latin1", from) };
  }
  return { data, rest: null };
}

const chunked = fc.record({
  parts: fc.array(
    fc.string({ unit: fc.constantFrom("\r", "\n", "0", "a", "\xff"), minLength: 1, maxLength: 40 }),
    { maxLength: 6 },
  ),
  extension: fc.constantFrom("", ";a=b", " ;x", "\t", ';q="a;b"', ";"),
  zeros: fc.constantFrom("", "0", "000"),
  trailers: fc.array(fc.constantFrom("X: y", "Content-Length: 3", "Transfer-Encoding: chunked"), {
    maxLength: 3,
  }),
  rest: fc.constantFrom("", "H", "HTTP/1.1 200 OK\r\n\r\n"),
});

test(
  "a chunked body comes out whole however it is cut, with extensions and trailers, and its end " +
    "is where it is",
  () => {
    fc.assert(
      fc.property(
        chunked,
        fc.array(fc.nat(300), { maxLength: 12 }),
        ({ parts, extension, zeros, trailers, rest }, at) => {
          const wire = parts
            .map((it) => `${zeros}${it.length.toString(16)}${extension}\r\n${it}\r\n`)
            .join("");
          const bytes = Buffer.from(
            `${wire}0${extension}\r\n${trailers.map((it) => `${it}\r\n`).join("")}\r\n${rest}`,
            "latin1",
          );
          const cuts = at.filter((it) => it < bytes.length).sort((a, b) => a - b);
          const expected = { data: parts.join(""), rest };
          assert.deepEqual(chunksOf(bytes, cuts), expected);
        },
      ),
      { numRuns: 2_000 },
    );
  },
);

test("a chunked body comes out whole when it is cut at every byte, and in single bytes", () => {
  const bytes = Buffer.from("3;x\r\nabc\r\n0a\r\n0123456789\r\n0\r\nX: y\r\n\r\n");
  const expected = { data: "abc0123456789", rest: "" };
  for (let at = 0; at <= bytes.length; at++)
    assert.deepEqual(chunksOf(bytes, [at]), expected, `cut at ${at}`);
  const everywhere = Array.from(bytes, (_, n) => n);
  assert.deepEqual(chunksOf(bytes, everywhere), expected);
  for (let size = 0; size < bytes.length; size++)
    assert.deepEqual(chunksOf(bytes.subarray(0, size), everywhere.slice(0, size)), {
      data: expected.data.slice(0, dataIn(size)),
      rest: null,
    });
});

/** Data bytes in the first `size` bytes of the body above. */
function dataIn(size: number): number {
  return Math.max(0, Math.min(3, size - 5)) + Math.max(0, Math.min(10, size - 14));
}

const BAD_CHUNKS: Readonly<Record<string, readonly string[]>> = {
  "data that goes on where its line end should be": [
    "3\r\nabcd\r\n0\r\n\r\n",
    "3\r\nabcHT",
    "3\r\nabc\rX",
    "3\r\nabc\n\n",
    "3\r\nabc\r\r\n",
    "3\r\nabc0\r\n\r\n",
    "3\r\nabc\n0\r\n\r\n",
  ],
  "a size that is none": [
    "\r\n",
    "g\r\n",
    "-1\r\n",
    "+1\r\n",
    "0x1\r\n",
    " 1\r\n",
    "1 1\r\n",
    "1,\r\n",
    ";a\r\n",
    "1\0\r\n",
    "fffffffffffff\r\n",
    "1e1x\r\n",
    '"1"\r\n',
  ],
  "line ends that are not CR LF": [
    "3\nabc\r\n0\r\n\r\n",
    "3\rabc\r\n0\r\n\r\n",
    "3;a\nb\r\nabc",
    "3;a\rb\r\nabc",
    "3\n\r\nabc",
    "0\n\n\r\n",
  ],
};
for (const [what, texts] of Object.entries(BAD_CHUNKS)) {
  test(`a chunked body is refused for ${what}, however it is cut`, () => {
    for (const text of texts) {
      const bytes = Buffer.from(text, "latin1");
      for (let at = 0; at <= bytes.length; at++)
        assert.equal(chunksOf(bytes, [at]), "malformed", JSON.stringify([text, at]));
    }
  });
}

test("a chunk announced with a trillion bytes is only counted: nothing is set aside for it", () => {
  assert.deepEqual(chunksOf(Buffer.from("e8d4a51000\r\nabc"), []), { data: "abc", rest: null });
});

test("endless lines and endless trailers are refused after a few kilobytes", () => {
  const fed = (first: string, piece: string): number => {
    const body = new ChunkedBody();
    let bytes = 0;
    body.take(Buffer.from(first), () => {});
    while (bytes < 1_000_000) {
      bytes += piece.length;
      if (body.take(Buffer.from(piece), () => {}) === undefined) break;
    }
    return bytes;
  };
  assert.ok(fed("1;", "x".repeat(100)) < 2_000);
  assert.ok(fed("1", "0") < 2_000);
  assert.ok(fed("0\r\n", "X: y\r\n") < 20_000);
  assert.ok(fed("0\r\n", "x") < 2_000);
});
