// Providers behind TLS, over HTTP/1.1 and HTTP/2: the service with a certificate it trusts, also as
// a process that is told so by its environment, and what it does with one it does not trust.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
} from "node:http2";
import { createServer } from "node:https";
import type { AddressInfo, Server, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { runsOnLibraries } from "../fakes/http-variant.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { configText, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { KEPT_OPEN_MS, scriptedUpstream } from "../fakes/upstream.ts";

const CERTIFICATE = new URL("../data/tls/certificate.pem", import.meta.url);
const identity = {
  key: readFileSync(new URL("../data/tls/key.pem", import.meta.url)),
  cert: readFileSync(CERTIFICATE),
};
const TRUST = { NODE_EXTRA_CA_CERTS: CERTIFICATE.pathname };
// As that variable does, for services in this process.
setDefaultCACertificates([...getCACertificates("default"), identity.cert]);

const TOKEN = "operator-of-the-tls-walk-0123456789abcdef";

type Served = Pick<ServiceProcess, "url" | "post">;

interface Asked {
  readonly method: string;
  readonly id: string;
  readonly version: string;
  readonly session: ServerHttp2Session | null;
  /** Of the connection that it came over. */
  readonly port: number | undefined;
}

/** The part of a request and its answer that HTTP/1.1 and HTTP/2 have in common. */
interface Exchange {
  readonly asked: Asked;
  readonly write: (text: string) => void;
  readonly end: (text: string) => void;
  readonly cut: (code?: number) => void;
}

interface SecureUpstream {
  readonly url: string;
  readonly asked: Asked[];
  readonly connections: () => number;
}

const PROBED: Readonly<Record<string, string>> = {
  eth_chainId: '"0x1"',
  eth_blockNumber: '"0x64"',
  eth_getBlockByNumber: "null",
  eth_capabilities: "null",
};

/** A provider behind TLS; probes are answered truthfully, all else by `answer`. */
async function secureUpstream(
  t: TestContext,
  http: 1 | 2,
  answer: (it: Exchange) => void,
): Promise<SecureUpstream> {
  const asked: Asked[] = [];
  let connections = 0;
  const server: Server | Http2SecureServer =
    http === 1
      ? createServer({ ...identity, keepAliveTimeout: KEPT_OPEN_MS })
      : createSecureServer({ ...identity, allowHTTP1: false });
  server.on("secureConnection", () => connections++);
  server.on("request", (request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const { id, method } = JSON.parse(body);
      const one: Asked = {
        method,
        id: JSON.stringify(id),
        version: request.httpVersion,
        session: http === 2 ? request.stream.session : null,
        port: request.socket.remotePort,
      };
      const result = PROBED[method];
      if (result !== undefined)
        return response.end(`{"jsonrpc":"2.0","id":${one.id},"result":${result}}`);
      asked.push(one);
      answer({
        asked: one,
        write: (text) => response.write(text),
        end: (text) => response.end(text),
        cut: (code = constants.NGHTTP2_INTERNAL_ERROR) =>
          http === 2 ? request.stream.close(code) : request.socket.destroy(),
      });
    });
  });
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  server.on("sessionError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    connections: () => connections,
  };
}

/** The service with `upstream` first and a sound plain one second: here, or as a process. */
async function serve(
  t: TestContext,
  upstream: SecureUpstream,
  env: Readonly<Record<string, string>> | null = null,
): Promise<Served> {
  const sound = await scriptedUpstream((_, reply) => reply.result('"0xb"'));
  t.after(() => sound.close());
  const providers = [
    { id: "a", url: upstream.url, priority: 1 },
    { id: "b", url: sound.url, priority: 2 },
  ];
  // A hundred handshakes on a busy machine take longer than a cheap call may.
  const text = configText(providers, { server: { port: 0, operator_token: TOKEN } });
  if (env !== null) return startProcess(t, text, env);
  const service = await startService(text);
  t.after(() => service.close());
  return service;
}

const well = ({ asked, end }: Exchange): void =>
  end(`{"jsonrpc":"2.0","id":${asked.id},"result":"0xa"}`);
const call = (service: Served, id = 7) =>
  service.post("/rpc/priority/1?include_meta=body", { jsonrpc: "2.0", id, method: "eth_gasPrice" });

async function walk(service: Served): Promise<string> {
  const { result, svc_meta: meta } = JSON.parse((await call(service)).text);
  return (
    `${meta.attempts.map((it: { provider: string; category: string | null }) => `${it.provider}:${it.category ?? "ok"}`).join(" ")} ` +
    `${result}`
  );
}

const ownClientOnly = runsOnLibraries && "undici does not count handshakes";
test("a connection over TLS that follows another one resumes its session, and metrics count both", {
  skip: ownClientOnly,
}, async (t) => {
  const upstream = await secureUpstream(t, 1, ({ asked, end, cut }) => {
    end(`{"jsonrpc":"2.0","id":${asked.id},"result":"0xa"}`);
    setImmediate(cut);
  });
  const service = await serve(t, upstream);
  for (let n = 0; n < 5; n++) assert.match((await call(service, n)).text, /"0xa"/);
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  const counted = (kind: string): number =>
    Number(new RegExp(`tls_handshakes_total\\{kind="${kind}"\\} (\\d+)`).exec(metrics)?.[1]);
  assert.ok(
    counted("full") >= 1 && counted("resumed") >= 3,
    metrics.match(/.*handshakes.*/g)?.join(),
  );
  // A probe may be in the middle of one.
  assert.ok(Math.abs(counted("full") + counted("resumed") - upstream.connections()) <= 1);
});

test("an operator is told when the certificate of a provider ends, and nobody else is", {
  skip: ownClientOnly,
}, async (t) => {
  const service = await serve(t, await secureUpstream(t, 1, well));
  assert.match((await call(service)).text, /"0xa"/);
  const told = async (headers: Readonly<Record<string, string>>) => {
    const response = await fetch(`${service.url}/api/metrics/ethereum`, { headers });
    const { profiles } = JSON.parse(await response.text());
    return profiles[0].providers.map((each: Record<string, unknown>) => each["certificate_until"]);
  };
  const ends = new Date(new X509Certificate(identity.cert).validTo).toISOString();
  assert.deepEqual(await told({ authorization: `Bearer ${TOKEN}` }), [ends, null]);
  assert.deepEqual(await told({}), [undefined, undefined]);
});

for (const http of [1, 2] as const) {
  test(
    `a provider behind TLS over HTTP/${http} is served, a hundred calls at once, over ` +
      "connections that are kept",
    async (t) => {
      const upstream = await secureUpstream(t, http, well);
      const service = await serve(t, upstream, TRUST);
      // So that the handshakes of the others resume its session, which costs little.
      await until("an answer of the provider", async () => (await walk(service)) === "a:ok 0xa");
      const before = upstream.asked.length;
      const answers = await Promise.all(Array.from({ length: 100 }, (_, id) => call(service, id)));
      for (const [id, { text }] of answers.entries())
        assert.deepEqual([JSON.parse(text).id, JSON.parse(text).result], [id, "0xa"]);
      assert.equal(upstream.asked.length, before + 100);
      assert.equal(upstream.asked[0]?.version, http === 1 ? "1.1" : "2.0");
      const opened = upstream.connections();
      for (let n = 0; n < 20; n++) assert.equal(await walk(service), "a:ok 0xa");
      assert.ok(
        upstream.connections() <= opened + 1,
        "no new handshakes, but for one that a probe may need while all are busy",
      );
      t.diagnostic(`${opened} connections`);
    },
  );

  test(`a long answer over HTTP/${http} passes whole, a cut one reaches the caller as cut`, async (t) => {
    const long = `0x${"0".repeat(3_000_000)}`;
    let cutting = false;
    const upstream = await secureUpstream(t, http, ({ asked, write, end, cut }) => {
      write(`{"jsonrpc":"2.0","id":${asked.id},"result":"${long}`);
      if (cutting) setTimeout(cut, 50);
      else end('"}');
    });
    const service = await serve(t, upstream);
    const plain = '{"jsonrpc":"2.0","id":7,"method":"eth_gasPrice","params":[]}';
    assert.equal(
      (await service.post("/rpc/priority/1", plain)).text,
      `{"jsonrpc":"2.0","id":7,"result":"${long}"}`,
    );
    cutting = true;
    await assert.rejects(service.post("/rpc/priority/1", plain), TypeError);
  });

  test(`a connection over HTTP/${http} that is cut before the answer leads to the next provider`, async (t) => {
    const upstream = await secureUpstream(t, http, ({ cut }) => cut());
    const service = await serve(t, upstream);
    assert.equal(await walk(service), "a:network b:ok 0xb");
  });
}

for (const http of [1, 2] as const) {
  test(
    `an answer under another id over TLS and HTTP/${http} is never delivered, and no later ` +
      "request takes its connection",
    async (t) => {
      let isForeign = false;
      const upstream = await secureUpstream(t, http, ({ asked, end }) =>
        end(`{"jsonrpc":"2.0","id":${isForeign ? 1 : asked.id},"result":"0xa"}`),
      );
      const service = await serve(t, upstream);
      await until("a connection to the provider", async () => (await walk(service)) === "a:ok 0xa");
      isForeign = true;
      assert.equal(await walk(service), "a:bad_body b:ok 0xb");
      isForeign = false;
      const foreign = upstream.asked.at(-1)?.port;
      const before = upstream.asked.length;
      await until("five answers", async () => {
        await walk(service);
        return upstream.asked.length >= before + 5;
      });
      assert.ok(
        upstream.asked.slice(before).every((it) => it.port !== foreign),
        "the connection was used again",
      );
    },
  );
}

for (const http of [1, 2] as const) {
  test(`a certificate over HTTP/${http} that is not trusted is a failure before anything was sent`, async (t) => {
    const upstream = await secureUpstream(t, http, well);
    const service = await serve(t, upstream, {});
    assert.equal(await walk(service), "a:unsent b:ok 0xb");
    assert.equal(upstream.asked.length, 0);
  });
}

const CALMING: readonly (readonly [name: string, answer: (it: Exchange) => void])[] = [
  ["a GOAWAY", ({ asked }) => asked.session?.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)],
  ["a reset of the stream", ({ cut }) => cut(constants.NGHTTP2_ENHANCE_YOUR_CALM)],
];
for (const [name, answer] of CALMING) {
  test(
    `${name} that says ENHANCE_YOUR_CALM is a rate limit: the next provider answers, the circuit ` +
      "stays closed",
    async (t) => {
      let isCalming = false;
      const upstream = await secureUpstream(t, 2, (it) => (isCalming ? answer(it) : well(it)));
      const service = await serve(t, upstream);
      await until("an answer of the provider", async () => (await walk(service)) === "a:ok 0xa");
      isCalming = true;
      assert.equal(await walk(service), "a:connection_rate_limit b:ok 0xb");
      const document = JSON.parse(await (await fetch(`${service.url}/api/metrics/1`)).text());
      const [health] = document.profiles[0].providers[0].transports;
      assert.ok(health.rate_limited_for_ms > 5_000, `${health.rate_limited_for_ms}`);
      assert.equal(health.circuit_breaker_state, "closed");
    },
  );
}

test(
  "a GOAWAY that only ends the connection loses nothing: calls under way are answered, later " +
    "ones use a new connection",
  async (t) => {
    const upstream = await secureUpstream(t, 2, (it) => {
      it.asked.session?.goaway(constants.NGHTTP2_NO_ERROR);
      setTimeout(() => well(it), 50);
    });
    const service = await serve(t, upstream);
    for (let n = 0; n < 3; n++) assert.equal(await walk(service), "a:ok 0xa");
    await until("new connections", () => upstream.connections() >= 2);
  },
);
