// The guard through every client there is: names that change their mind, that lead inside, or
// nowhere; redirects; pools. 127.0.0.2 plays the internet (`isAllowed`), 127.0.0.1 plays the inside
// of our network, which must never hear of a connection.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, isIP, type Server } from "node:net";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { WebSocketServer } from "ws";
import type { Provider } from "../../src/core/provider/profile.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import { realRuntime } from "../../src/runtime.ts";
import { HTTP_LIMITS, HttpUpstream } from "../../src/upstream/http/http-upstream.ts";
import { SOCKET_LIMITS } from "../../src/upstream/socket/socket-limits.ts";
import { createSockets } from "../../src/upstream/socket/sockets.ts";
import { nameServers, SsrfGuard, type SsrfGuardOptions } from "../../src/upstream/ssrf-guard.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import type { Upstream } from "../../src/upstream/transport.ts";
import { fakeProvider } from "../fakes/providers.ts";
import { until } from "../fakes/service-fixture.ts";

const INTERNET = "127.0.0.2";
const INSIDE = "127.0.0.1";

/** A server of JSON-RPC over HTTP and WebSocket on one address. */
interface Site {
  readonly port: number;
  connections: number;
  readonly hosts: (string | undefined)[];
  /** Ends every connection. */
  cut(): void;
  /** Answers with a redirect to this from now on. */
  redirect: string | null;
}

async function site(t: TestContext, host: string, port = 0): Promise<Site> {
  const it = {
    port: 0,
    connections: 0,
    hosts: [] as (string | undefined)[],
    cut: () => server.closeAllConnections(),
    redirect: null as string | null,
  };
  const server = createServer(async (request, response) => {
    it.hosts.push(request.headers.host);
    const { redirect } = it;
    const { id } = JSON.parse(await text(request));
    if (redirect === null) response.end(`{"jsonrpc":"2.0","id":${id},"result":"0x1"}`);
    else response.writeHead(307, { location: redirect }).end();
  });
  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, socket, head) => {
    it.hosts.push(request.headers.host);
    if (it.redirect !== null)
      return void socket.end(
        `HTTP/1.1 302 Found\r\nlocation: ${it.redirect}\r\ncontent-length: 0\r\n\r\n`,
      );
    sockets.handleUpgrade(request, socket, head, (ws) => {
      ws.on("message", (message: Buffer) =>
        ws.send(
          `{"jsonrpc":"2.0","id":${JSON.stringify(JSON.parse(message.toString()).id)},"result":"0x1"}`,
        ),
      );
    });
  });
  server.on("connection", () => void it.connections++);
  // A kept connection is used again, however slow the test is.
  server.keepAliveTimeout = 120_000;
  await listening(server, port, host);
  it.port = (server.address() as AddressInfo).port;
  t.after(() => {
    for (const ws of sockets.clients) ws.terminate();
    server.closeAllConnections();
    server.close();
  });
  it.cut = () => {
    for (const ws of sockets.clients) ws.terminate();
    server.closeAllConnections();
  };
  return it;
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
}

/** Name servers that answer from a script: one entry a question, the last one for ever. */
function scriptedDns(
  script: Readonly<Record<string, readonly (readonly string[] | string | "silence")[]>>,
) {
  const asked: string[] = [];
  const resolve: NonNullable<SsrfGuardOptions["resolve"]> = (host, done) => {
    const answers = script[host] ?? ["ENOTFOUND"];
    const answer =
      answers[Math.min(asked.filter((it) => it === host).length, answers.length - 1)] ??
      "ENOTFOUND";
    asked.push(host);
    if (answer === "silence") return;
    setImmediate(() => (typeof answer === "string" ? done([], answer) : done(answer, null)));
  };
  return { asked, resolve };
}

type Kind = "http" | "ws";

interface Clients extends Record<Kind, Upstream> {
  ask(kind: Kind, provider: Provider): Promise<string>;
}

function clients(t: TestContext, guard: SsrfGuard, patienceMs = 60_000): Clients {
  const runtime = realRuntime;
  const timerWheel = new TimerWheel(runtime);
  const http = new HttpUpstream(
    runtime,
    { ...HTTP_LIMITS, connectTimeoutMs: patienceMs, maxGuardedBytes: 50_000 },
    guard,
  );
  const ws = createSockets({
    runtime,
    timerWheel,
    guard,
    limits: {
      ...SOCKET_LIMITS,
      handshakeTimeoutMs: patienceMs,
      hurryMs: 0,
      maxGuardedFrameBytes: 50_000,
    },
  });
  t.after(() => Promise.all([http.close(), ws.close()]));
  const upstreams = { http, ws };
  return {
    ...upstreams,
    ask: (kind, provider) =>
      new Promise((resolve) => {
        upstreams[kind].send(
          { provider, ...writeRequest("eth_chainId", null), mayStream: false },
          {
            result: (bytes, { start, end }) => resolve(bytes.toString("utf8", start, end)),
            failed: ({ kind: why, message, httpStatus }) =>
              resolve(`${why} ${message}${httpStatus === 0 ? "" : httpStatus}`),
            stream: (stream) => stream.cut(),
            broken: () => {},
          },
        );
      }),
  };
}

const internetOnly = (resolve: NonNullable<SsrfGuardOptions["resolve"]>): SsrfGuard =>
  new SsrfGuard({ resolve, isAllowed: (it) => it === INTERNET });

function guarded(host: string, port: number): Provider {
  return fakeProvider(0, {
    url: `http://${host}:${port}/`,
    wsUrl: `ws://${host}:${port}/`,
    guarded: true,
  });
}

/** The same port at both places: only the address tells them apart. */
async function bothSites(
  t: TestContext,
): Promise<{ readonly internet: Site; readonly inside: Site; readonly port: number }> {
  for (let tries = 0; ; tries++) {
    const internet = await site(t, INTERNET);
    try {
      return { internet, inside: await site(t, INSIDE, internet.port), port: internet.port };
    } catch (error) {
      if (tries > 5) throw error;
    }
  }
}

for (const kind of ["http", "ws"] as const) {
  test(
    `${kind}: a name is looked up once for each connection, connects to what was checked, and ` +
      "keeps its name on the wire",
    async (t) => {
      const { internet, inside, port } = await bothSites(t);
      // A second look-up would find the inside.
      const dns = scriptedDns({ "rpc.example.com": [[INTERNET], [INSIDE]] });
      const { ask } = clients(t, internetOnly(dns.resolve));
      const provider = guarded("rpc.example.com", port);
      assert.deepEqual([await ask(kind, provider), await ask(kind, provider)], ['"0x1"', '"0x1"']);
      assert.deepEqual(new Set(internet.hosts), new Set([`rpc.example.com:${port}`]));
      assert.deepEqual([dns.asked.length, internet.connections, inside.connections], [1, 1, 0]);
    },
  );

  test(`${kind}: a name that is bound anew to the inside is refused with the next connection`, async (t) => {
    const { internet, inside, port } = await bothSites(t);
    const dns = scriptedDns({ "rpc.example.com": [[INTERNET], [INSIDE]] });
    const { ask } = clients(t, internetOnly(dns.resolve));
    const provider = guarded("rpc.example.com", port);
    assert.equal(await ask(kind, provider), '"0x1"');
    internet.cut();
    const said = await until("the refusal", async () => {
      const answer = await ask(kind, provider);
      return /ENOTPUBLIC/.test(answer) ? answer : null;
    });
    assert.equal(said, "unsent ENOTPUBLIC");
    assert.equal(inside.connections, 0);
  });

  test(
    `${kind}: one inner address among public ones is enough to refuse; so is no address, an ` +
      "error, or no answer in time",
    async (t) => {
      const { internet, inside, port } = await bothSites(t);
      const dns = scriptedDns({
        "mixed.example.com": [[INTERNET, INSIDE]],
        "turned.example.com": [[INSIDE, INTERNET]],
        "mapped.example.com": [["::ffff:127.0.0.1"]],
        "empty.example.com": [[]],
        "gone.example.com": ["ENOTFOUND"],
        "silent.example.com": ["silence"],
        "strange.example.com": [["not an address"]],
      });
      const guard = internetOnly(dns.resolve);
      const [{ ask }, hasty] = [clients(t, guard), clients(t, guard, 200)];
      const said: Record<string, string> = {};
      for (const name of ["mixed", "turned", "mapped", "empty", "gone", "strange"])
        said[name] = await ask(kind, guarded(`${name}.example.com`, port));
      for (const name of ["mixed", "turned", "mapped", "strange"])
        assert.equal(said[name], "unsent ENOTPUBLIC", name);
      for (const name of ["empty", "gone"]) assert.equal(said[name], "unsent ENOTFOUND", name);
      assert.match(
        await hasty.ask(kind, guarded("silent.example.com", port)),
        /^unsent (ETIMEDOUT|the handshake timed out)$/,
      );
      assert.deepEqual([internet.connections, inside.connections], [0, 0]);
    },
  );

  test(`${kind}: every address that is not public is refused when a name leads to it`, async (t) => {
    const { inside, port } = await bothSites(t);
    const inner = [
      "127.0.0.1",
      "0.0.0.0",
      "10.1.2.3",
      "100.100.100.200",
      "169.254.169.254",
      "192.168.0.1",
      "::1",
      "::",
      "::ffff:127.0.0.1",
      "fe80::1",
      "fd00:ec2::254",
    ];
    const dns = scriptedDns(
      Object.fromEntries(inner.map((address, n) => [`n${n}.example.com`, [[address]]])),
    );
    const { ask } = clients(t, new SsrfGuard({ resolve: dns.resolve }));
    for (const [n, address] of inner.entries())
      assert.equal(
        await ask(kind, guarded(`n${n}.example.com`, port)),
        "unsent ENOTPUBLIC",
        address,
      );
    assert.equal(inside.connections, 0);
  });

  test(
    `${kind}: a literal address is refused without a connection, also where a configured ` +
      "provider at the same place is connected",
    async (t) => {
      const inside = await site(t, INSIDE);
      const dns = scriptedDns({});
      const { ask } = clients(t, new SsrfGuard({ resolve: dns.resolve }));
      const provider = guarded(INSIDE, inside.port);
      const configured = { ...provider, guarded: false };
      assert.equal(await ask(kind, configured), '"0x1"');
      const before = inside.connections;
      assert.equal(await ask(kind, provider), "unsent ENOTPUBLIC");
      for (const host of ["0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "localhost"])
        assert.match(await ask(kind, guarded(host, inside.port)), /ENOTPUBLIC/, host);
      assert.equal(await ask(kind, configured), '"0x1"', "the configured one is still served");
      assert.deepEqual([inside.connections, dns.asked], [before, []]);
    },
  );

  test(`${kind}: redirects are not followed`, async (t) => {
    const { internet, inside, port } = await bothSites(t);
    internet.redirect = `${kind}://${INSIDE}:${inside.port}/`;
    const dns = scriptedDns({ "rpc.example.com": [[INTERNET]] });
    const { ask } = clients(t, internetOnly(dns.resolve));
    assert.match(await ask(kind, guarded("rpc.example.com", port)), /^(body|unsent) .*30[27]$/);
    assert.deepEqual([internet.connections, inside.connections], [1, 0]);
  });

  test(`${kind}: where the operator allows private addresses they are connected to`, async (t) => {
    const inside = await site(t, INSIDE);
    const { ask } = clients(t, new SsrfGuard({ rules: { allowPrivate: true, ownHost: null } }));
    assert.equal(await ask(kind, guarded(INSIDE, inside.port)), '"0x1"');
    assert.equal(await ask(kind, guarded("localhost", inside.port)), '"0x1"');
  });
}

test(
  "TLS, for HTTP and WebSocket: the name is checked for the certificate and sent as SNI, the " +
    "connection goes to the checked address only",
  async (t) => {
    const names: string[] = [];
    const identity = {
      key: readFileSync(new URL("../data/tls/key.pem", import.meta.url)),
      cert: readFileSync(new URL("../data/tls/certificate.pem", import.meta.url)),
    };
    const server = createSecureServer({
      ...identity,
      SNICallback(name, done) {
        names.push(name);
        done(null);
      },
    });
    server.on("tlsClientError", () => {});
    await listening(server, 0, INTERNET);
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const inside = await site(t, INSIDE);
    const dns = scriptedDns({ "rpc.example.com": [[INTERNET]], "inner.example.com": [[INSIDE]] });
    const { ask } = clients(t, internetOnly(dns.resolve));
    const secure = (name: string, at: number): Provider =>
      fakeProvider(0, {
        url: `https://${name}.example.com:${at}/`,
        wsUrl: `wss://${name}.example.com:${at}/`,
        guarded: true,
      });
    for (const kind of ["http", "ws"] as const) {
      // Nobody has vouched for the certificate of this server, or not for this name: it was
      // reached, and left.
      assert.match(
        await ask(kind, secure("rpc", port)),
        /^unsent (?:DEPTH_ZERO_SELF_SIGNED_CERT|ERR_TLS_CERT_ALTNAME_INVALID)/,
        kind,
      );
      assert.match(await ask(kind, secure("inner", inside.port)), /^unsent ENOTPUBLIC/, kind);
    }
    assert.deepEqual(names, ["rpc.example.com", "rpc.example.com"]);
    assert.equal(inside.connections, 0);
  },
);

test("a long answer of a user's provider is not held whole, nor a long frame", async (t) => {
  const server = createServer(async (request, response) => {
    const { id } = JSON.parse(await text(request));
    response.end(`{"jsonrpc":"2.0","id":${id},"result":"${"x".repeat(60_000)}"}`);
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (ws) =>
    ws.on("message", () => ws.send(`{"jsonrpc":"2.0","id":1,"result":"${"x".repeat(60_000)}"}`)),
  );
  await listening(server, 0, INTERNET);
  t.after(() => {
    for (const ws of sockets.clients) ws.terminate();
    server.closeAllConnections();
    server.close();
  });
  const { ask } = clients(
    t,
    internetOnly(scriptedDns({ "rpc.example.com": [[INTERNET]] }).resolve),
  );
  const provider = guarded("rpc.example.com", (server.address() as AddressInfo).port);
  assert.equal(await ask("http", provider), "body the answer is too long200");
  assert.match(await ask("ws", provider), /^network /);
});

test(
  "the real resolver asks the name servers for both kinds of address, and takes nothing from " +
    "the hosts file",
  async (t) => {
    const asked: string[] = [];
    const server = createSocket("udp4", (question, from) => {
      const end = question.indexOf(0, 12);
      const name = question.toString("latin1", 13, end).replace(/\W/g, ".");
      const type = question.readUInt16BE(end + 1);
      asked.push(`${name} ${type}`);
      const found = name === "rpc.example.com" && type === 1 ? [INTERNET] : [];
      const head = Buffer.from(question.subarray(0, end + 5));
      head.writeUInt16BE(name === "gone.example.com" ? 0x8183 : 0x8180, 2);
      head.writeUInt16BE(found.length, 6);
      head.writeUInt32BE(0, 8);
      const records = found.map((it) =>
        Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...it.split(".").map(Number)]),
      );
      server.send(Buffer.concat([head, ...records]), from.port, from.address);
    });
    await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const internet = await site(t, INTERNET);
    const { ask } = clients(t, internetOnly(nameServers([`127.0.0.1:${server.address().port}`])));
    assert.equal(await ask("http", guarded("rpc.example.com", internet.port)), '"0x1"');
    assert.deepEqual([...new Set(asked)].sort(), ["rpc.example.com 1", "rpc.example.com 28"]);
    assert.equal(await ask("http", guarded("gone.example.com", internet.port)), "unsent ENOTFOUND");
    const found = await new Promise((resolve) =>
      nameServers([`127.0.0.1:${server.address().port}`])("empty.example.com", (...all) =>
        resolve(all),
      ),
    );
    assert.deepEqual(found, [[], "ENODATA"]);
  },
);

test(
  "a public address that belongs to this machine is refused, written out as well as behind a " +
    "name",
  async () => {
    const guard = new SsrfGuard({
      resolve: (_, done) => done(["8.8.8.8"], null),
      isAllowed: (it) => it !== "8.8.8.8",
    });
    assert.equal(guard.refusal("https://9.9.9.9/"), null);
    for (const host of ["8.8.8.8", "134744072"]) assert.ok(guard.refusal(`https://${host}/`), host);
    const code = await new Promise((resolve) =>
      guard.lookup("rpc.example.com", { all: true }, (error) => resolve(error?.code)),
    );
    assert.equal(code, "ENOTPUBLIC");
    assert.equal(
      new SsrfGuard().refusal("https://8.8.8.8/"),
      null,
      "the default lets other machines' public addresses through",
    );
  },
);

test(
  "look-ups of one name at the same time are shared; too many names at once " +
    "are refused, and come through later",
  async () => {
    const waiting: (() => void)[] = [];
    const guard = new SsrfGuard({
      resolve: (_, done) =>
        void waiting.push(() => done(["8.8.8.8", "2001:4860:4860::8888"], null)),
    });
    const find = (host: string, options: object = { all: true }): Promise<unknown> =>
      new Promise((resolve) =>
        guard.lookup(host, options, (error, address, family) =>
          resolve(error?.code ?? [address, family]),
        ),
      );
    const same = [find("a.example"), find("a.example")];
    const others = Array.from({ length: 999 }, (_, n) => find(`n${n}.example`));
    assert.equal(waiting.length, 1_000);
    assert.equal(await find("late.example"), "EBUSY");
    for (const go of waiting.splice(0)) go();
    const both = [
      { address: "8.8.8.8", family: 4 },
      { address: "2001:4860:4860::8888", family: 6 },
    ];
    for (const found of await Promise.all([...same, ...others]))
      assert.deepEqual(found, [both, undefined]);
    const one = [
      find("late.example", {}),
      find("late.example", { family: 6 }),
      find("late.example", { family: 6, all: true }),
    ];
    for (const go of waiting.splice(0)) go();
    assert.deepEqual(await Promise.all(one), [
      ["8.8.8.8", 4],
      ["2001:4860:4860::8888", 6],
      [[both[1]], undefined],
    ]);
    assert.equal(isIP(String(both[0]?.address)), 4);
  },
);
