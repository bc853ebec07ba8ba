// The fast path's reading of a request head against node's own parser: what it accepts, node reads
// the same way; what smells of smuggling it leaves alone.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import {
  type RequestHead,
  readNextHead,
  readRequestHead,
} from "../../../src/web/rpc/connections/fast-path-head.ts";

const PLAIN = ["Host: x", "Content-Type: application/json", "Content-Length: 5"];

/** A head as `readRequestHead` takes it: without its blank line. */
function headOf(lines: readonly string[], requestLine = "POST /rpc/1 HTTP/1.1"): string {
  return `${[requestLine, ...lines].join("\r\n")}\r\n`;
}

/** What node's parser makes of one request. */
interface Reading {
  readonly url: string;
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

/** Reads one request with node's HTTP server, over a real connection; null = refused. */
async function nodeReader(t: TestContext): Promise<(bytes: string) => Promise<Reading | null>> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const reading: Reading = {
        url: request.url ?? "",
        rawHeaders: request.rawHeaders,
        body: Buffer.concat(chunks).toString("latin1"),
      };
      response.setHeader("connection", "close").end(JSON.stringify(reading));
    });
  });
  server.on("clientError", (_, socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return (bytes) =>
    new Promise((resolve) => {
      let text = "";
      // The end tells the server that no more of a body will come: one that waits for more refuses,
      // and nobody has to wait for that.
      const socket = connect(port, "127.0.0.1", () => socket.end(bytes, "latin1"));
      socket.on("data", (chunk) => (text += chunk.toString()));
      socket.on("error", () => {});
      socket.on("close", () =>
        resolve(
          text.startsWith("HTTP/1.1 200 ")
            ? JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4))
            : null,
        ),
      );
    });
}

/** Asserts that node reads the very same request. */
async function assertSameReading(
  read: (bytes: string) => Promise<Reading | null>,
  text: string,
  head: RequestHead,
): Promise<void> {
  const body = "b".repeat(head.bodyBytes);
  const reading = await read(`${text}\r\n${body}`);
  assert.ok(reading !== null, "node refuses what the lean door accepts");
  assert.equal(reading.url, head.url);
  assert.equal(reading.body, body);
  const fields = reading.rawHeaders.flatMap((name, at) =>
    at % 2 === 0 && name.toLowerCase() !== "content-length"
      ? [[name.toLowerCase(), reading.rawHeaders[at + 1]]]
      : [],
  );
  assert.deepEqual(fields, [...head.fields]);
}

const SMALL = fc.integer({ min: 0, max: 300 });
const names = fc.oneof(
  fc.constantFrom(
    "X-Svc-Provider",
    "x-svc-strategy",
    "Accept",
    "User-Agent",
    "content-encoding",
    "X-REQUEST-ID",
    "Cookie",
    "Authorization",
    "__proto__",
    "Keep-Alive",
  ),
  fc.string({ unit: fc.constantFrom(..."abcXYZ019!#$%&'*+.^_`|~-"), minLength: 1, maxLength: 12 }),
);
const values = fc.string({
  unit: fc.constantFrom(..." \tabc:,;=\"'/\\{}\x21\x7e\x80\x85\xa0\xff"),
  maxLength: 20,
});
const lengths = fc.oneof(
  SMALL.map(String),
  SMALL.map((n) => `0${n}`),
  SMALL.map((n) => `${n}\t`),
  SMALL.map((n) => `${n}  `),
  SMALL.map((n) => `\t${n}`),
  SMALL.map((n) => `${n}\xa0`),
  values,
);
const connections = fc.constantFrom(
  ["Connection: keep-alive"],
  ["connection:Keep-Alive"],
  ["Connection: close"],
  [],
  [],
);
const urls = fc.oneof(
  fc.constantFrom(
    "/rpc/1",
    "/rpc/fastest/ethereum?include_meta=body",
    "/rpc/1#a",
    "/rpc/1#a#b?c",
    "//rpc/1",
    "/rpc/1?a?b",
  ),
  fc
    .string({
      unit: fc.integer({ min: 0x21, max: 0x7e }).map((c) => String.fromCharCode(c)),
      maxLength: 20,
    })
    .map((rest) => `/${rest}`),
);
const heads = fc
  .record({
    url: urls,
    length: lengths,
    gap: fc.constantFrom("", " ", "  ", "\t"),
    fields: fc.array(fc.tuple(names, values), { maxLength: 8 }),
    connections,
  })
  .chain((it) => {
    const own = [
      "Host: x",
      `Content-Length:${it.gap}${it.length}`,
      ...it.connections,
      ...it.fields.map(([name, value]) => `${name}:${it.gap}${value}`),
    ];
    return fc
      .shuffledSubarray(own, { minLength: own.length })
      .map((lines) => headOf(lines, `POST ${it.url} HTTP/1.1`));
  });

test("node's parser reads every head that the fast path accepts with the same URL, length and fields", async (t) => {
  const read = await nodeReader(t);
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(heads, async (text) => {
      const head = readRequestHead(text);
      if (head === null) return;
      accepted++;
      await assertSameReading(read, text, head);
    }),
    { numRuns: 1_000 },
  );
  assert.ok(accepted > 200, `only ${accepted} heads were accepted`);
});

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
  "\x0c",
  "\x7f",
  "\x80",
  "\xa0",
  "\xff",
  "+",
  "0x",
  "5",
  "Content-Length: 3\r\n",
  "Transfer-Encoding: chunked\r\n",
);

test(
  "a head with anything put in, taken out or replaced anywhere is read as node reads it, or " +
    "left to node",
  async (t) => {
    const read = await nodeReader(t);
    const text = headOf([...PLAIN, "X-Svc-Provider: a b"]);
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(fc.nat(text.length), NASTY, fc.nat(2), async (at, nasty, cut) => {
        const changed = text.slice(0, at) + nasty + text.slice(at + cut);
        const head = readRequestHead(changed);
        if (head === null) return;
        accepted++;
        await assertSameReading(read, changed, head);
      }),
      { numRuns: 3_000 },
    );
    assert.ok(accepted > 200, `only ${accepted} heads were accepted`);
  },
);

test(
  "a plain head is understood: path and query, length, fields by lower-case name without the " +
    "space around their values",
  () => {
    const head = readRequestHead(
      headOf(
        [
          "HOST:  x\t",
          "content-length: 007",
          "X-Svc-Provider:a",
          "Empty:",
          "Connection: Keep-Alive",
        ],
        "POST /rpc/1?a=b HTTP/1.1",
      ),
    );
    assert.ok(head !== null);
    assert.deepEqual([head.url, head.bodyBytes], ["/rpc/1?a=b", 7]);
    assert.deepEqual(Object.fromEntries(head.fields), {
      host: "x",
      "x-svc-provider": "a",
      empty: "",
      connection: "Keep-Alive",
    });
  },
);

test("a head that differs in the length of its body alone is read as if it were the first", () => {
  const lines = (length: string): string =>
    headOf(["Host: x", `Content-LENGTH:\t${length} `, "a: 5"]);
  const first = readRequestHead(lines("5")) ?? assert.fail();
  for (const length of ["5", "6", "0", "12345", "007", "999999999"])
    assert.deepEqual(
      { ...readNextHead(lines(length), first), around: null },
      { ...readRequestHead(lines(length)), around: null },
    );
  for (const length of ["", "-1", "1x", "1, 2", "1\r\nb: 1", "1234567890", "1 1"])
    assert.equal(readNextHead(lines(length), first), null, length);
  const other = ["host: x", "Content-LENGTH:\t5 ", "a: 5"];
  assert.equal(readNextHead(headOf(other), first), null);
  assert.equal(readNextHead(headOf(["Host: x", "Content-LENGTH:\t5 ", "a: 6"]), first), null);
  assert.equal(readNextHead(lines("5").slice(0, -6), first), null);
  assert.equal(readNextHead("", first), null);
});

test("every head that is read as the next one is read so as the first one", () => {
  const again = fc.record({ at: fc.nat(80), put: NASTY, cut: fc.nat(3), length: lengths });
  fc.assert(
    fc.property(heads, again, (text, { at, put, cut, length }) => {
      const first = readRequestHead(text);
      if (first === null) return;
      const [before, after] = first.around;
      const changed = text.slice(0, at) + put + text.slice(at + cut);
      for (const next of [`${before}${length}${after}`, changed]) {
        const read = readNextHead(next, first);
        if (read === null) continue;
        assert.deepEqual({ ...read, around: null }, { ...readRequestHead(next), around: null });
      }
    }),
    { numRuns: 2_000 },
  );
});

test("sixty fields are understood, a hundred are left to node", () => {
  const fields = (count: number): string[] => Array.from({ length: count }, (_, n) => `X-${n}: v`);
  assert.ok(readRequestHead(headOf([...PLAIN, ...fields(57)])) !== null);
  assert.equal(readRequestHead(headOf([...PLAIN, ...fields(97)])), null);
});

/** The plain head with the line of one field replaced, or with lines added. */
const lengthAs = (line: string): string => headOf(["Host: x", line]);
const withLines = (...lines: readonly string[]): string => headOf([...PLAIN, ...lines]);

const REFUSED: Readonly<Record<string, readonly string[]>> = {
  "a length beside a transfer encoding, in any spelling": [
    "Transfer-Encoding: chunked",
    "transfer-encoding:chunked",
    "TRANSFER-ENCODING: identity",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding:",
    "Transfer-Encoding: \tchunked",
  ].flatMap((it) => [withLines(it), headOf([it, ...PLAIN]), headOf(["Host: x", it])]),
  "a transfer encoding spelled so that only some would see it": [
    "Transfer-Encoding : chunked",
    " Transfer-Encoding: chunked",
    "\tTransfer-Encoding: chunked",
    "Transfer-Encoding\t: chunked",
    "Transfer-Encoding\0: chunked",
    "\x0bTransfer-Encoding: chunked",
    "X: y\nTransfer-Encoding: chunked",
    "X: y\rTransfer-Encoding: chunked",
    "Transfer-Encoding:\r\n chunked",
  ].map((it) => withLines(it)),
  "two lengths, equal or not, in any case": [
    "Content-Length: 5",
    "Content-Length: 6",
    "content-length: 5",
    "CONTENT-LENGTH: 0",
    "Content-length: 5, 5",
  ].map((it) => withLines(it)),
  "a length that is no plain decimal": [
    "+5",
    "-5",
    "5,5",
    "5, 5",
    "0x5",
    "5 5",
    "5;",
    "5.0",
    "5e0",
    "",
    " ",
    '"5"',
    "٥",
    "5\0",
    "\x005",
    "5\x0b",
    "\x0b5",
    "5\xa0",
    "\xa05",
    "5\x85",
    "1234567890",
    "99999999999999999999",
  ].map((it) => lengthAs(`Content-Length: ${it}`)),
  "a length whose name is not clean": [
    "Content-Length : 5",
    "Content-Length\t: 5",
    " Content-Length: 5",
    "Content-Length\0: 5",
    "Content_Length: 5",
    "Content-Length",
  ].map(lengthAs),
  "no length at all": [headOf(["Host: x"]), headOf(["Host: x", "Content-Length-X: 5"])],
  "a line folded onto the next": [
    withLines("X: a", " b"),
    withLines("X: a", "\tb"),
    headOf(["Host: x", "Content-Length:", " 5"]),
  ],
  "line ends that are not CR LF": [
    headOf(PLAIN).replaceAll("\r\n", "\n"),
    headOf(PLAIN).replaceAll("\r\n", "\r"),
    headOf(PLAIN).replace("x\r\n", "x\n"),
    headOf(PLAIN).replace("x\r\n", "x\r"),
    headOf(PLAIN).replace("x\r\n", "x\r\r\n"),
    headOf(PLAIN).replace("x\r\n", "x\n\r\n"),
    `\r\n${headOf(PLAIN)}`,
    `${headOf(PLAIN)}\r\n`,
    headOf(PLAIN).slice(0, -2),
  ],
  "control characters": [
    "X: a\0b",
    "X: a\x01b",
    "X: a\x7fb",
    "X\0: a",
    "X: \x0c",
    "X\x80: a",
    "X y: a",
    "X\ty: a",
    "(X): a",
    "X/y: a",
  ].map((it) => withLines(it)),
  "a field without a name or without a colon": [
    withLines(": a"),
    withLines("X"),
    withLines(" : a"),
    withLines(""),
  ],
  "a connection that is to end or to become something else": [
    "Connection: close",
    "connection: CLOSE",
    "Connection: upgrade",
    "Connection: keep-alive, upgrade",
    "Connection: keep-alive, te",
    "Connection:",
    "Upgrade: websocket",
    "HTTP2-Settings: x",
    "Proxy-Connection: keep-alive",
  ].map((it) => withLines(it)),
  "what changes how the message is sent": [
    "Expect: 100-continue",
    "expect:",
    "TE: trailers",
    "Trailer: X",
  ].map((it) => withLines(it)),
  "what carries a payment": [
    "PAYMENT-SIGNATURE: a",
    "payment-signature:",
    "Payment-Authorization: Payment a",
    "Authorization: Payment a",
    "authorization:pAYMENT a",
    "Authorization: Bearer a, Payment b",
    "Authorization: Payment",
  ].map((it) => withLines(it)),
  "a field that occurs twice": [
    withLines("X-Svc-Provider: a", "x-svc-provider: b"),
    withLines("X: a", "X: a"),
    withLines("__proto__: a", "__PROTO__: a"),
  ],
  "a host that is missing, empty or double": [
    headOf(["Content-Length: 5"]),
    headOf(["Host:", "Content-Length: 5"]),
    headOf(["Host: \t ", "Content-Length: 5"]),
    withLines("host: y"),
    withLines("Host: x"),
  ],
  "another method": [
    "GET",
    "post",
    "Post",
    "PUT",
    "OPTIONS",
    "HEAD",
    "CONNECT",
    "POSTT",
    " POST",
    "POST\t",
    "",
  ].map((it) => headOf(PLAIN, `${it} /rpc/1 HTTP/1.1`)),
  "another version": [
    "HTTP/1.0",
    "HTTP/1.2",
    "HTTP/2.0",
    "HTTP/0.9",
    "http/1.1",
    "HTTP/1.1 ",
    " HTTP/1.1",
    "HTTP/1.10",
    "HTTP/11",
    "ICE/1.1",
    "RTSP/1.0",
    "",
  ].map((it) => headOf(PLAIN, `POST /rpc/1 ${it}`)),
  "a target that is not a plain path": [
    "http://x/rpc/1",
    "*",
    "x:80",
    "rpc/1",
    "",
    "/rpc/1 x",
    "/rpc/ä",
    "/rpc/\x7f",
    "/rpc/\t1",
    "/rpc/1\0",
    "\\rpc\\1",
  ].map((it) => headOf(PLAIN, `POST ${it} HTTP/1.1`)),
  nothing: ["", "\r\n", "POST /rpc/1 HTTP/1.1\r\n"],
};

for (const [what, texts] of Object.entries(REFUSED)) {
  test(`left to node's parser: ${what}`, () => {
    assert.ok(texts.length > 0);
    for (const text of texts) assert.equal(readRequestHead(text), null, JSON.stringify(text));
  });
}

test("a head of the longest length that the fast path reads is handed over soon", () => {
  for (const filler of ["a", ":", "a:", "a:\r\n", "a: b\r\n", "\r\n", " ", "\t:", "a:\x80"]) {
    for (const end of ["", "\0", "\r", "x"])
      assert.equal(
        readRequestHead(`POST / HTTP/1.1\r\n${filler.repeat(8_192 / filler.length)}${end}`),
        null,
      );
  }
});
