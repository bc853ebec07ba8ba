// Connections over TLS: whom they trust, which sessions they resume, what becomes of a provider
// that refuses HTTP/1.1, and where connections may lead.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { createSecureServer, performServerHandshake, type ServerHttp2Stream } from "node:http2";
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type LookupFunction,
  type Server,
} from "node:net";
import { type TestContext, test } from "node:test";
import { createServer, type TLSSocket, type TlsOptions } from "node:tls";
import type { Provider } from "../../../src/core/provider/profile.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { type Runtime, realRuntime } from "../../../src/runtime.ts";
import {
  HTTP_LIMITS,
  type HttpParts,
  HttpUpstream,
} from "../../../src/upstream/http/http-upstream.ts";
import {
  type OnHandshake,
  type ProvedHost,
  TlsClient,
} from "../../../src/upstream/http/tls-client.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import type { Shares } from "../../../src/upstream/shares.ts";
import { NOT_PUBLIC, SsrfGuard } from "../../../src/upstream/ssrf-guard.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { fakeProvider } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { until } from "../../fakes/service-fixture.ts";
import { trustedIdentity } from "../../soak/foreign.ts";

/** Trusted by this process for `localhost` and 127.0.0.1. */
const IDENTITY = trustedIdentity();
const HOUR_MS = 3_600_000;

/** Listens on a free port of this machine until the test ends. */
async function listen(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<TLSSocket>();
  server.on("secureConnection", (socket: TLSSocket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A TLS server that sends a byte to each connection: by then its tickets have arrived. */
async function greeting(t: TestContext, options: TlsOptions = {}): Promise<number> {
  return listen(
    t,
    createServer({ ...IDENTITY, ...options }, (socket) => void socket.write("x")),
  );
}

interface Handshakes {
  readonly kinds: string[];
  readonly proved: ProvedHost[];
  nowMs: number;
  readonly client: TlsClient;
}

/** A client of one origin, and the handshakes that it has made. */
function clientOf(): Handshakes {
  const kinds: string[] = [];
  const proved: ProvedHost[] = [];
  const state = { kinds, proved, nowMs: 0 };
  const onHandshake: OnHandshake = (isResumed, host) => {
    kinds.push(isResumed ? "resumed" : "full");
    if (host !== null) proved.push(host);
  };
  const client = new TlsClient(() => state.nowMs, onHandshake);
  return Object.assign(state, { client });
}

/** Connects once; the code of the error, or the server name that was sent. */
function connected(
  { client }: Handshakes,
  port: number,
  { host = "127.0.0.1", lookup }: { readonly host?: string; readonly lookup?: LookupFunction } = {},
): Promise<string> {
  return new Promise((resolve) => {
    const socket = client.connect({ host, port, ...(lookup === undefined ? {} : { lookup }) });
    socket.on("error", ({ code, message }: NodeJS.ErrnoException) => resolve(code ?? message));
    // A ticket is told of in the turn in which the byte behind it arrives.
    socket.on("data", () =>
      setImmediate(() => {
        resolve(`name ${String(socket.servername)}`);
        socket.destroy();
      }),
    );
  });
}

for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const)
  test(`a client resumes its own session, and no other client ever does (${maxVersion})`, async (t) => {
    const port = await greeting(t, { maxVersion });
    const [ours, others] = [clientOf(), clientOf()];
    for (const client of [ours, ours, others, ours, others]) await connected(client, port);
    assert.deepEqual(
      [ours.kinds, others.kinds],
      [
        ["full", "resumed", "resumed"],
        ["full", "resumed"],
      ],
    );
    assert.deepEqual(
      ours.proved,
      [
        {
          host: `127.0.0.1:${port}`,
          validToMs: Date.parse(new X509Certificate(String(IDENTITY.cert)).validTo),
        },
      ],
      "each full handshake tells when the certificate ends",
    );
  });

test("an hour after a certificate was verified it is verified again, however often it was resumed", async (t) => {
  const port = await greeting(t);
  const client = clientOf();
  for (const nowMs of [0, 0.4 * HOUR_MS, 0.8 * HOUR_MS, 1.2 * HOUR_MS, 1.6 * HOUR_MS]) {
    client.nowMs = nowMs;
    await connected(client, port);
  }
  assert.deepEqual(client.kinds, ["full", "resumed", "resumed", "full", "resumed"]);
});

test("the name of the provider is sent and verified; an address is verified and not sent", async (t) => {
  const names: (string | false | null)[] = [];
  const port = await listen(
    t,
    createServer(IDENTITY, (socket) => {
      names.push(socket.servername);
      socket.write("x");
    }),
  );
  const here: LookupFunction = (_, { all }, done) =>
    all === true ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);
  await connected(clientOf(), port);
  await connected(clientOf(), port, { host: "localhost", lookup: here });
  assert.deepEqual(names, [false, "localhost"]);
  const other = await connected(clientOf(), port, { host: "other.test", lookup: here });
  assert.equal(other, "ERR_TLS_CERT_ALTNAME_INVALID");
});

test("of several addresses of a name the first that answers is used, with its certificate verified", async (t) => {
  const port = await greeting(t);
  const lookup: LookupFunction = (_, __, done) =>
    done(null, [
      { address: "::1", family: 6 },
      { address: "127.0.0.1", family: 4 },
    ]);
  assert.equal(await connected(clientOf(), port, { host: "localhost", lookup }), "name localhost");
});

/** The outcomes of `calls` calls at once: a result, or the kind and the message of a failure. */
function callsTo(
  http: HttpUpstream,
  provider: Provider,
  calls: number,
): Promise<readonly string[]> {
  const outcome = (): Promise<string> =>
    new Promise((resolve) => {
      http.send(
        { provider, ...writeRequest("eth_gasPrice", null), mayStream: false },
        {
          result: (body, { start, end }) => resolve(body.toString("latin1", start, end)),
          failed: ({ kind, message }) => resolve(`${kind} ${message}`),
          stream: () => assert.fail("the answer is short"),
          broken: resolve,
        },
      );
    });
  return Promise.all(Array.from({ length: calls }, outcome));
}

interface Transport {
  readonly guard?: SsrfGuard;
  readonly connections?: number;
  readonly parts?: Partial<HttpParts>;
  readonly runtime?: Runtime;
}

function transport(t: TestContext, options: Transport): HttpUpstream {
  const { guard, connections = 128, parts, runtime = realRuntime } = options;
  const limits = { ...HTTP_LIMITS, connectionsPerOrigin: connections };
  const http = new HttpUpstream(runtime, limits, guard ?? new SsrfGuard(), {
    budget: MemoryBudget.unbounded(),
    timerWheel: new TimerWheel(runtime),
    ...parts,
  });
  t.after(() => http.close());
  return http;
}

test("a user's provider whose name leads to an address that is not public is not connected to over TLS", async (t) => {
  let connections = 0;
  const server = createServer(IDENTITY).on("connection", () => connections++);
  const port = await listen(t, server);
  const guard = new SsrfGuard({ resolve: (_, done) => done(["127.0.0.1"], null) });
  const provider = fakeProvider(0, { url: `https://rebound.test:${port}/`, guarded: true });
  const outcomes = await callsTo(transport(t, { guard }), provider, 2);
  assert.deepEqual(outcomes, [`unsent ${NOT_PUBLIC}`, `unsent ${NOT_PUBLIC}`]);
  assert.equal(connections, 0);
});

/** A provider that takes one request on each connection. */
async function answering(t: TestContext): Promise<number> {
  const server = createServer(IDENTITY, (socket) => {
    socket.once("data", (request) => {
      const id = /"id":(\d+)/.exec(request.toString("latin1"))?.[1] ?? "";
      const body = `{"jsonrpc":"2.0","id":${id},"result":"0xa"}`;
      socket.end(
        `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
    });
  });
  return listen(t, server);
}

/** A port that leads to another one, but for the next `silences` connections. */
async function withSilences(t: TestContext, port: number) {
  const state = { silences: 0, silent: 0, port: 0 };
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    t.after(() => socket.destroy());
    if (state.silent < state.silences) return void state.silent++;
    socket.pipe(connect(port, "127.0.0.1").on("error", () => {})).pipe(socket);
  });
  state.port = await listen(t, server);
  return state;
}

test(
  "a session with which a handshake failed or hung is not offered again, also not to what waits " +
    "for a connection",
  async (t) => {
    const kinds: string[] = [];
    const parts = { onHandshake: (it: boolean) => void kinds.push(it ? "resumed" : "full") };
    const world = simulatedWorld(1);
    const front = await withSilences(t, await answering(t));
    const http = transport(t, { connections: 1, parts, runtime: world });
    const provider = fakeProvider(0, { url: `https://127.0.0.1:${front.port}/` });
    await callsTo(http, provider, 2);
    assert.deepEqual(kinds.splice(0), ["full", "resumed"]);
    front.silences = 1;
    const calls = callsTo(http, provider, 2);
    await until("a handshake that hangs", () => front.silent === 1);
    world.advance(HTTP_LIMITS.connectTimeoutMs);
    assert.deepEqual(await calls, ["unsent ETIMEDOUT", '"0xa"']);
    assert.deepEqual(kinds.splice(0), ["full"]);
  },
);

/** A provider that speaks HTTP/2 alone; an answer is for another request while `isForeign`. */
async function http2Provider(t: TestContext) {
  const state = { refused: 0, sessions: 0, isForeign: false, port: 0 };
  const server = createSecureServer({ ...IDENTITY, allowHTTP1: false });
  server.on("stream", (stream) => answer(stream, state));
  server.on("tlsClientError", () => state.refused++);
  server.on("session", () => state.sessions++);
  state.port = await listen(t, server);
  return state;
}

/** Answers a request over HTTP/2. */
function answer(stream: ServerHttp2Stream, { isForeign }: { readonly isForeign: boolean }): void {
  let body = "";
  stream.on("data", (chunk: Buffer) => (body += chunk.toString()));
  stream.on("end", () => {
    const id = isForeign ? 1 : JSON.parse(body).id;
    stream.respond({ ":status": 200 });
    stream.end(`{"jsonrpc":"2.0","id":${id},"result":"0xa"}`);
  });
}

test("a provider that speaks HTTP/2 alone and takes no part in choosing is served from the second call on", async (t) => {
  let sessions = 0;
  const server = createServer(IDENTITY, (socket) => {
    const session = performServerHandshake(socket);
    session.on("error", () => {}).on("stream", (stream) => answer(stream, { isForeign: false }));
    session.once("stream", () => sessions++);
  });
  const port = await listen(t, server);
  const http = transport(t, { connections: 1 });
  const provider = fakeProvider(0, { url: `https://127.0.0.1:${port}/` });
  const [first, ...others] = await callsTo(http, provider, 50);
  assert.deepEqual([first, new Set(others)], ["network EHTTP2", new Set(['"0xa"'])]);
  assert.deepEqual(await callsTo(http, provider, 1), ['"0xa"']);
  assert.equal(sessions, 1);
});

test(
  "a provider that speaks HTTP/2 alone gets every request once, those in line too, and is not " +
    "asked for HTTP/1.1 again",
  async (t) => {
    const node = await http2Provider(t);
    const http = transport(t, { connections: 4 });
    const provider = fakeProvider(0, { url: `https://127.0.0.1:${node.port}/` });
    assert.deepEqual(new Set(await callsTo(http, provider, 50)), new Set(['"0xa"']));
    const { refused } = node;
    assert.ok(refused >= 1 && refused <= 4, `${refused} handshakes were refused`);
    assert.deepEqual(new Set(await callsTo(http, provider, 50)), new Set(['"0xa"']));
    assert.equal(node.refused, refused);
  },
);

test("a foreign answer to a request that was handed to HTTP/2 ends its connection as well", async (t) => {
  const node = await http2Provider(t);
  node.isForeign = true;
  const http = transport(t, { connections: 1 });
  const provider = fakeProvider(0, { url: `https://127.0.0.1:${node.port}/` });
  assert.deepEqual(await callsTo(http, provider, 1), ["body the answer carries another id"]);
  node.isForeign = false;
  assert.deepEqual(await callsTo(http, provider, 1), ['"0xa"']);
  assert.equal(node.sessions, 2);
});

test("connections over HTTP/2 take over the share of those that were refused", async (t) => {
  const node = await http2Provider(t);
  const events: string[] = [];
  const shares: Shares = {
    of() {
      events.push("opened");
      let limit = 2;
      return {
        get limit() {
          return limit;
        },
        close() {
          events.push("closed");
          limit = 0;
        },
      };
    },
  };
  const http = transport(t, { parts: { shares } });
  const provider = fakeProvider(0, { url: `https://127.0.0.1:${node.port}/` });
  assert.deepEqual(new Set(await callsTo(http, provider, 6)), new Set(['"0xa"']));
  assert.deepEqual(events, ["opened", "closed", "opened"]);
});

test("`upstream.http: undici` sends everything over TLS through undici", async (t) => {
  const node = await http2Provider(t);
  const handshakes: boolean[] = [];
  const parts = {
    client: "undici",
    onHandshake: (it: boolean) => void handshakes.push(it),
  } as const;
  const http = transport(t, { parts });
  const provider = fakeProvider(0, { url: `https://127.0.0.1:${node.port}/` });
  assert.deepEqual(await callsTo(http, provider, 1), ['"0xa"']);
  assert.deepEqual([handshakes, node.refused], [[], 0]);
});

test("a request that is answered before a provider has read it all over TLS leaves no connection in use", async (t) => {
  let opened = 0;
  const answer = (id: string): string => {
    const body = `{"jsonrpc":"2.0","id":${id},"result":"0xa"}`;
    return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  const port = await listen(
    t,
    createServer(IDENTITY, (socket) => {
      opened++;
      socket.once("data", (first) => {
        const id = /"id":(\d+)/.exec(first.toString("latin1"))?.[1] ?? "";
        socket.pause();
        socket.write(answer(id));
      });
    }),
  );
  const http = transport(t, { connections: 1 });
  const provider = fakeProvider(0, { url: `https://127.0.0.1:${port}/` });
  const long = Buffer.from(`["0x${"0".repeat(20_000_000)}"]`);
  const outcome = await new Promise<string>((resolve) => {
    http.send(
      { provider, ...writeRequest("eth_call", long), mayStream: false },
      {
        result: () => resolve("result"),
        failed: ({ kind }) => resolve(kind),
        stream: () => assert.fail("the answer is short"),
        broken: resolve,
      },
    );
  });
  assert.equal(outcome, "result");
  assert.deepEqual(await callsTo(http, provider, 1), ['"0xa"']);
  await until("another connection", () => opened === 2);
});
