// Long answers are compressed for callers far away who accept it, byte for byte the same answer,
// and nothing else is: not for neighbours, not small ones, not what holds a secret.
import assert from "node:assert/strict";
import { type IncomingHttpHeaders, request } from "node:http";
import { test } from "node:test";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { buildConsole, isConsoleBuilt } from "../../bin/build-console.ts";
import { type ServiceFixture, serviceFixture, until } from "../fakes/service-fixture.ts";

const FAR = { "x-forwarded-for": "8.8.8.8" };
const TEXT = "0123456789abcdef";

interface Raw {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

function ask(
  port: number,
  path: string,
  headers: Record<string, string>,
  body: unknown = null,
): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const method = body === null ? "GET" : "POST";
    const sent = request(
      {
        host: "127.0.0.1",
        port,
        path,
        method,
        headers: { "content-type": "application/json", ...headers },
        agent: false,
      },
      (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(parts),
          }),
        );
      },
    );
    sent.on("error", reject);
    sent.end(body === null ? undefined : JSON.stringify(body));
  });
}

/** Providers that answer with as many bytes as the parameter says, the long ones in pieces. */
async function sized(
  t: Parameters<typeof serviceFixture>[0],
  server: Record<string, unknown> = {},
): Promise<ServiceFixture> {
  return serviceFixture(
    t,
    [
      ({ params }, reply) =>
        reply.result(JSON.stringify(TEXT.repeat(sizeIn(params) / TEXT.length))),
    ],
    {
      extra: { server: { port: 0, trusted_proxies: ["127.0.0.1"], ...server } },
    },
  );
}

function sizeIn(params: unknown): number {
  return Array.isArray(params) ? Number(params[0]) : 0;
}

const call = (bytes: number, id = 1) => ({
  jsonrpc: "2.0",
  id,
  method: "debug_traceTransaction",
  params: [bytes],
});

function decoded({ headers, body }: Raw): string {
  const encoding = headers["content-encoding"];
  return (
    encoding === "gzip" ? gunzipSync(body) : encoding === "zstd" ? zstdDecompressSync(body) : body
  ).toString();
}

/**
 * `agent: false` closes connections, which only node's own server serves; keep-alive is served on
 * the fast path.
 */
const PATHS = [
  ["fast path", { connection: "keep-alive" }],
  ["node's server", { connection: "close" }],
] as const;

for (const [where, connection] of PATHS) {
  for (const encoding of ["gzip", "zstd"] as const) {
    test(`${where}: whole, streamed and batch answers are the same in ${encoding}`, async (t) => {
      const { service } = await sized(t);
      for (const body of [call(20_000), call(2_000_000), [call(30_000, 1), call(16, 2)]]) {
        const plain = await ask(service.port, "/rpc/1", { ...connection, ...FAR }, body);
        const short = await ask(
          service.port,
          "/rpc/1",
          { ...connection, ...FAR, "accept-encoding": encoding },
          body,
        );
        assert.deepEqual(
          [plain.headers["content-encoding"], short.headers["content-encoding"]],
          [undefined, encoding],
        );
        assert.deepEqual(
          [plain.headers.vary, short.headers.vary],
          ["Accept-Encoding", "Accept-Encoding"],
        );
        assert.ok(short.body.length * 10 < plain.body.length);
        assert.equal(decoded(short), plain.body.toString());
      }
    });
  }

  test(`${where}: neighbours and short answers are not compressed`, async (t) => {
    const { service } = await sized(t);
    for (const [headers, bytes] of [
      [{}, 20_000],
      [{ "x-forwarded-for": "192.168.0.4" }, 20_000],
      [FAR, 15_000],
    ] as const) {
      const { headers: told } = await ask(
        service.port,
        "/rpc/1",
        { ...connection, ...headers, "accept-encoding": "gzip" },
        call(bytes),
      );
      assert.deepEqual([told["content-encoding"], told.vary], [undefined, undefined]);
    }
  });
}

test("compression: off sends everything as it is", async (t) => {
  const { service } = await sized(t, { compression: "off" });
  const { headers } = await ask(
    service.port,
    "/rpc/1",
    { ...FAR, "accept-encoding": "gzip" },
    call(20_000),
  );
  assert.equal(headers["content-encoding"], undefined);
});

test(
  "documents have an ETag for each encoding; the page that takes the operator token is never " +
    "compressed",
  async (t) => {
    const { service } = await sized(t);
    const plain = await ask(service.port, "/openapi.json", FAR);
    const tags = new Set([plain.headers.etag]);
    for (const encoding of ["gzip", "zstd"]) {
      const short = await ask(service.port, "/openapi.json", {
        ...FAR,
        "accept-encoding": encoding,
      });
      assert.equal(decoded(short), plain.body.toString());
      assert.match(String(short.headers.vary), /Accept-Encoding/);
      tags.add(short.headers.etag);
      const again = await ask(service.port, "/openapi.json", {
        ...FAR,
        "accept-encoding": encoding,
        "if-none-match": String(short.headers.etag),
      });
      assert.deepEqual([again.status, again.headers.etag], [304, short.headers.etag]);
    }
    assert.equal(tags.size, 3);
    if (!isConsoleBuilt()) await buildConsole();
    const page = await ask(service.port, "/dashboard", { ...FAR, "accept-encoding": "gzip" });
    assert.deepEqual([page.status, page.headers["content-encoding"]], [200, undefined]);
  },
);

test("callers that leave in the middle of a compressed answer leave no work behind", async (t) => {
  const { service, upstreams } = await sized(t);
  const [upstream] = upstreams;
  assert.ok(upstream !== undefined);
  const begin = `{"jsonrpc":"2.0","id":1,"result":"${TEXT.repeat(20_000)}`;
  const headers = { ...FAR, "accept-encoding": "gzip", "content-type": "application/json" };
  for (let round = 0; round < 3; round++) {
    const under = new Set<{ reset(): void }>();
    upstream.script(({ id }, reply) =>
      under.add(reply.begin(begin.replace('"id":1', `"id":${id}`))),
    );
    const leavers = [1, 2].map(() =>
      request({
        host: "127.0.0.1",
        port: service.port,
        path: "/rpc/1",
        method: "POST",
        headers,
        agent: false,
      }),
    );
    const told = leavers.map(
      (leaver) =>
        new Promise<string>((resolve) =>
          leaver.on("response", (it) => resolve(String(it.headers["content-encoding"]))),
        ),
    );
    for (const leaver of leavers) leaver.on("error", () => {}).end(JSON.stringify(call(0)));
    assert.deepEqual(await Promise.all(told), ["gzip", "gzip"]);
    for (const leaver of leavers) leaver.destroy();
    for (const answer of under) answer.reset();
    upstream.script((_, reply) => reply.result(JSON.stringify(TEXT.repeat(2_000))));
    await until(
      "a compressed answer",
      async () =>
        (await ask(service.port, "/rpc/1", headers, call(0))).headers["content-encoding"] ===
        "gzip",
    );
  }
});
