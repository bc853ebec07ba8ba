// Requests by chance for the differential run: sound and odd heads, bodies and ids of all kinds,
// batches, sizes around the boundaries of the code, and clients that leave early. Every choice
// comes from the seed.
import { between, pick } from "./chance.ts";

/** What a client does on one connection. */
export interface Conversation {
  /** Bytes in the order of the writes. */
  readonly writes: readonly Buffer[];
  /** Whole requests in them: at most so many answers are waited for. */
  readonly requests: number;
  /** Answers that the client waits for before its last write. */
  readonly awaited: number;
  /** What the client does behind its last byte. */
  readonly ending: "waits" | "half_closes" | "leaves";
  /** What it is about, for a report. */
  readonly name: string;
}

type Random = () => number;

/** One request and what is special about it. */
interface Request {
  readonly bytes: Buffer;
  readonly name: string;
}

/** Lengths at which code changes its ways, and some around them. */
const BOUNDARIES: readonly number[] = [1_024, 4_096, 16_384, 65_536, 131_072];
const MAX_PIPELINED = 4;

/** The next conversation. */
export function conversation(random: Random): Conversation {
  const kind = random();
  if (kind < 0.06) return brokenOff(random);
  if (kind < 0.1) return endedAtOnce(random);
  const count = random() < 0.6 ? 1 : between(random, 2, MAX_PIPELINED);
  const all = Array.from({ length: count }, () => requestOf(random));
  // Node drops what comes in one piece with a request whose upgrade is declined: it stands last.
  const upgrade = all.findIndex(({ name }) => name.includes("Upgrade: h2c"));
  const requests = upgrade === -1 ? all : all.slice(0, upgrade + 1);
  return {
    writes: cutAnywhere(
      random,
      requests.map(({ bytes }) => bytes),
    ),
    requests: requests.length,
    awaited: 0,
    ending: "waits",
    name: requests.map(({ name }) => name).join(" + "),
  };
}

/** A client that ends or leaves in the middle of its request. */
function brokenOff(random: Random): Conversation {
  const { bytes, name } = requestOf(random);
  const whole = plainRequest(random);
  const part = bytes.subarray(0, between(random, 1, bytes.length - 1));
  const isBehind = random() < 0.5;
  return {
    writes: isBehind ? [whole.bytes, part] : [part],
    requests: isBehind ? 1 : 0,
    awaited: isBehind ? 1 : 0,
    ending: pick(random, ["half_closes", "leaves"] as const),
    name: `${name}, broken off after ${part.length} of ${bytes.length} bytes`,
  };
}

/** A client that ends its side behind a whole request. */
function endedAtOnce(random: Random): Conversation {
  const held = random() < 0.5;
  const method = held ? "eth_getProof" : "eth_chainId";
  return {
    writes: [post(random, { body: `{"jsonrpc":"2.0","id":1,"method":"${method}","params":[]}` })],
    requests: 1,
    awaited: 0,
    ending: "half_closes",
    name: `${method}, ended at once`,
  };
}

/** All in one write, a write each, or cut at places by chance. */
function cutAnywhere(random: Random, requests: readonly Buffer[]): readonly Buffer[] {
  const way = random();
  if (way < 0.4) return requests;
  const bytes = Buffer.concat(requests);
  if (way < 0.6) return [bytes];
  const places = Array.from({ length: between(random, 1, 3) }, () =>
    between(random, 1, bytes.length - 1),
  ).sort((a, b) => a - b);
  const ends = [...places, bytes.length];
  return ends
    .map((end, n) => bytes.subarray(ends[n - 1] ?? 0, end))
    .filter((piece) => piece.length > 0);
}

function requestOf(random: Random): Request {
  const kind = random();
  if (kind < 0.45) return plainRequest(random);
  if (kind < 0.65) return { bytes: post(random, { body: batch(random) }), name: "a batch" };
  if (kind < 0.85) return oddHead(random);
  return oddBody(random);
}

function plainRequest(random: Random): Request {
  const body = call(random);
  return { bytes: post(random, { body }), name: body.slice(0, 160) };
}

const TARGETS: readonly string[] = [
  "/rpc/1",
  "/rpc/1",
  "/rpc/ethereum",
  "/rpc/mainnet",
  "/rpc/0x1",
  "/rpc/priority/ethereum",
  "/rpc/provider/b/1",
  "/rpc/1?provider=b",
  "/rpc/1?provider=zzz",
  "/rpc/1?strategy=nonsense",
  "/rpc/nowhere",
  "/rpc/1/2/3/4/5",
  "/rpc/%31",
  "//rpc/1",
  "/rpc/1/",
  "/rpc",
  "/no/such/path",
];

/** A POST with sound framing. */
function post(
  random: Random,
  { body, lines = [] }: { readonly body: string | Buffer; readonly lines?: readonly string[] },
): Buffer {
  const bytes = Buffer.from(body);
  const target = random() < 0.7 ? "/rpc/1" : pick(random, TARGETS);
  const head = [
    `POST ${target} HTTP/1.1`,
    "Host: x",
    "Content-Type: application/json",
    ...(random() < 0.2 ? [pick(random, SOUND_LINES)] : []),
    ...lines,
    `Content-Length: ${bytes.length}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1"), bytes]);
}

const SOUND_LINES: readonly string[] = [
  "X-Request-Id: mine-1",
  "X-Request-Id: not sane",
  "X-Svc-Provider: b",
  "X-Svc-Provider:\t b \t",
  "X-Svc-Strategy: load-balanced",
  "Origin: https://example.org",
  "Accept-Encoding: gzip, zstd",
  "Authorization: Bearer nothing",
  "Authorization: Payment nothing",
  "User-Agent: \xe4\xf6",
  "Connection: Keep-Alive",
  "Accept: */*",
];

const IDS: readonly string[] = [
  "0",
  "-1",
  "1.5",
  "1e3",
  "9007199254740993",
  "123456789012345678901234567890",
  '""',
  '"a"',
  '"\\u0041\\ud83d\\ude00"',
  '"ä😀"',
  '"\\"}{"',
  `"${"i".repeat(300)}"`,
  "null",
  "true",
  "[]",
  "{}",
];

/** How the provider answers a call; see `differential.ts`. */
const SHAPES: readonly string[] = [
  "counted",
  "chunked",
  "pieces",
  "until_close",
  "id_last",
  "spaced",
  "members",
  "error",
  "data_error",
];
/** Ways in which the first provider fails, so that the second one is asked. */
const FAILURES: readonly string[] = ["status_500", "status_429", "reset", "no_json", "other_id"];
const FAILURE_SHARE = 0.02;

function call(random: Random): string {
  const id = random() < 0.5 ? String(between(random, 1, 1_000_000)) : pick(random, IDS);
  const method = random();
  const [name, params] =
    method < 0.1
      ? ["eth_chainId", "[]"]
      : method < 0.15
        ? [pick(random, ["eth_sign", "eth_accounts", "net_version", "foo_bar", "web3_sha3"]), "[]"]
        : ["eth_call", JSON.stringify([instruction(random)])];
  const members = ['"jsonrpc":"2.0"', `"id":${id}`, `"method":"${name}"`, `"params":${params}`];
  if (random() < 0.2) members.sort(() => random() - 0.5);
  const gap = random() < 0.1 ? " \n\t" : "";
  return `${gap}{${members.join(`,${gap}`)}}${gap}`;
}

/** What the provider reads out of a call's parameters. */
function instruction(random: Random): Record<string, unknown> {
  const shape = random() < FAILURE_SHARE ? pick(random, FAILURES) : pick(random, SHAPES);
  const pad = random() < 0.2 ? { pad: "p".repeat(around(random)) } : {};
  return { shape, bytes: random() < 0.5 ? between(random, 0, 200) : around(random), ...pad };
}

/** A size close to a boundary: what surrounds a value is added to it. */
function around(random: Random): number {
  return Math.max(0, pick(random, BOUNDARIES) + between(random, -260, 20));
}

function batch(random: Random): string {
  const items = Array.from({ length: between(random, 0, 12) }, () => {
    const kind = random();
    if (kind < 0.8) return call(random);
    return pick(random, [
      "{}",
      "[]",
      "1",
      "null",
      '{"jsonrpc":"2.0","method":"eth_chainId"}',
      '{"jsonrpc":"1.0","id":1,"method":"eth_chainId"}',
    ]);
  });
  return `[${items.join(",")}]`;
}

function oddBody(random: Random): Request {
  const sound = call(random);
  const body = pick(random, [
    "",
    " ",
    "1",
    '""',
    "{",
    "[",
    "[1,]",
    sound.slice(0, -1),
    `${sound}x`,
    `${sound}\0`,
    `\ufeff${sound}`,
    sound.replace('"jsonrpc":"2.0"', '"jsonrpc":"1.0"'),
    sound.replace('"method"', '"methods"'),
    sound.replace('"method":"', '"method":"\\ud800'),
    sound.replace("{", '{"id":7,'),
    `${"[".repeat(between(random, 1, 2_000))}`,
    Buffer.from([0x22, 0xff, 0xfe, 0x22]),
    Buffer.concat([Buffer.from(sound), Buffer.from([0xc3])]),
  ]);
  return { bytes: post(random, { body }), name: `an odd body ${body.toString().slice(0, 80)}` };
}

/** Heads that the fast path leaves, or that nobody should serve. */
function oddHead(random: Random): Request {
  const asked = call(random);
  const headOf = pick(random, ODD_HEADS);
  const askedHead = headOf(lengthOf(asked), random);
  // Over HTTP/1.0 an answer that is passed on ends its connection, and whether a long one is passed
  // on depends on how its bytes arrive: only short ones are asked for.
  const isFirst = askedHead[0]?.endsWith("HTTP/1.0") === true;
  const body = isFirst ? SHORT_CALL : asked;
  const head = isFirst ? headOf(lengthOf(body), random) : askedHead;
  const isChunked = /^transfer-encoding: *chunked$/im.test(head.join("\n"));
  const sent = isChunked ? chunksOf(random, body) : Buffer.from(body);
  const text = `${head.join("\r\n")}\r\n\r\n`;
  return { bytes: Buffer.concat([Buffer.from(text, "latin1"), sent]), name: head.join(" | ") };
}

const SHORT_CALL = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}';

function lengthOf(body: string): string {
  return `Content-Length: ${Buffer.byteLength(body)}`;
}

type Head = (length: string, random: Random) => readonly string[];

const POST = "POST /rpc/1 HTTP/1.1";
const ODD_HEADS: readonly Head[] = [
  (length) => [POST, "host: x", length.toLowerCase()],
  (length) => [POST, "HOST:x", length.replace(": ", ":")],
  (length) => [POST, "Host: x", `${length}\t `],
  (length) => [POST, "Host: x", "X-Odd: 1", "X-Odd: 2", length],
  (length) => [POST, "Host: x", "TE: trailers", length],
  (length) => [POST, "Host: x", "Connection: close", length],
  (length) => [POST, "Host: x", "Connection: upgrade", "Upgrade: h2c", length],
  (length) => [POST, "Host: x", "Expect: 100-continue", length],
  (length) => [POST, "Host: x", "Expect: something", length],
  (length) => [POST, "Host: x", "Content-Encoding: gzip", length],
  (length) => [POST, "Host: x", "Content-Encoding: identity", length],
  () => [POST, "Host: x", "Transfer-Encoding: chunked"],
  () => [POST, "Host: x", "Transfer-Encoding: chunked", "Trailer: x-end"],
  (length) => [POST, "Host: x", "Transfer-Encoding: gzip", length],
  (length) => [POST, "Host: x", "Transfer-Encoding: chunked", length],
  (length) => [POST, "Host: x", length, length],
  (length) => [POST, "Host: x", length, "Content-Length: 1"],
  (length) => [POST, "Host: x", length.replace(": ", ": +")],
  (length) => [POST, "Host: x", length.replace(": ", ": 0")],
  (length) => [POST, "Host: x", `${length}, 5`],
  () => [POST, "Host: x", "Content-Length: -1"],
  () => [POST, "Host: x", "Content-Length: 99999999999999999999"],
  () => [POST, "Host: x"],
  (length) => [POST, length],
  (length) => [POST, "Host:", length],
  (length) => [POST, "Host: x", "Host: y", length],
  (length) => ["POST /rpc/1 HTTP/1.0", "Host: x", length],
  (length) => ["POST /rpc/1 HTTP/1.0", "Host: x", "Connection: keep-alive", length],
  (length) => ["POST /rpc/1 HTTP/1.2", "Host: x", length],
  (length) => ["POST /rpc/1 HTTP/2.0", "Host: x", length],
  (length) => ["POST http://x/rpc/1 HTTP/1.1", "Host: x", length],
  (length) => ["POST rpc/1 HTTP/1.1", "Host: x", length],
  (length) => ["POST /rpc/ 1 HTTP/1.1", "Host: x", length],
  (length) => ["post /rpc/1 HTTP/1.1", "Host: x", length],
  (length) => ["PUT /rpc/1 HTTP/1.1", "Host: x", length],
  (length) => ["GET /rpc/1 HTTP/1.1", "Host: x", length],
  (length) => ["DELETE /api/chains HTTP/1.1", "Host: x", length],
  (length) => ["OPTIONS /rpc/1 HTTP/1.1", "Host: x", length],
  (length) => ["GET /ws/rpc/1 HTTP/1.1", "Host: x", length],
  (length) => [POST, "Host: x", " folded: 1", length],
  (length) => [POST, "Host: x", "Name : 1", length],
  (length) => [POST, "Host: x", "No colon", length],
  (length) => [POST, "Host: x", "Nul: \0", length],
  (length) => [POST, "Host: x", "Tab: \t1\t2", length],
  (length) => [POST, "Host: x", "Empty:", length],
  (length) => [POST, "Host: x", "Feed: a\nb", length],
  (length, random) => [POST, "Host: x", `X: ${"x".repeat(between(random, 8_000, 8_300))}`, length],
  (length, random) => [
    POST,
    "Host: x",
    `X: ${"x".repeat(between(random, 16_100, 16_600))}`,
    length,
  ],
  (length) => [POST, "Host: x", ...Array.from({ length: 70 }, (_, n) => `X-${n}: ${n}`), length],
  (length, random) => [
    `POST /rpc/1?${"q".repeat(between(random, 7_900, 8_300))} HTTP/1.1`,
    "Host: x",
    length,
  ],
];

/** A chunked body, cut by chance, sometimes with extensions or trailers. */
function chunksOf(random: Random, body: string): Buffer {
  const bytes = Buffer.from(body);
  const parts: Buffer[] = [];
  const extension = random() < 0.2 ? ";a=b" : "";
  for (let at = 0; at < bytes.length; ) {
    const size = Math.min(bytes.length - at, between(random, 1, Math.max(1, bytes.length)));
    parts.push(
      Buffer.from(`${size.toString(16)}${extension}\r\n`),
      bytes.subarray(at, at + size),
      Buffer.from("\r\n"),
    );
    at += size;
  }
  parts.push(Buffer.from(random() < 0.2 ? "0\r\nX-End: 1\r\n\r\n" : "0\r\n\r\n"));
  return Buffer.concat(parts);
}
