// Everything a caller can put into a request, over real HTTP and through both servers: status,
// body, headers, and what the provider saw of it.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, it } from "node:test";
import { runsOnLibraries } from "../fakes/http-variant.ts";
import { configText, type Service, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  readonly json: any;
}

/**
 * A connection stays at the fast path while its requests are plain; one that is to be closed
 * belongs to node's server.
 */
const SERVERS = { "the fast path": "keep-alive", "node's server": "close" } as const;
const MAX_BODY_BYTES = 100_000;
const EXPOSED =
  "x-svc-request-id x-svc-meta x-svc-access x-svc-fallback x-svc-cu x-svc-usd " +
  "x-svc-balance-usd RateLimit RateLimit-Policy Retry-After WWW-Authenticate Payment-Receipt";

let upstream: ScriptedUpstream;
let service: Service;
let cutShort = 0;
const requestIds: string[] = [];

before(async () => {
  upstream = await scriptedUpstream((asked, reply) => {
    if (asked.method === "test_fail")
      return reply.error('{"code":3,"message":"execution reverted","data":"0x01"}');
    if (asked.method === "test_slow")
      return void setTimeout(() => reply.result(JSON.stringify(asked.params)), 30);
    if (asked.method === "test_long") return reply.result(JSON.stringify("x".repeat(3_000_000)));
    if (asked.method === "test_endless") {
      const answer = reply.begin(`{"jsonrpc":"2.0","id":${asked.id},"result":"`);
      const more = setInterval(() => answer.write("x".repeat(100_000)), 1);
      return void reply.response.on("close", () => {
        clearInterval(more);
        cutShort++;
      });
    }
    reply.result(JSON.stringify(asked.params ?? null));
  });
  const providers = [{ id: "a", url: upstream.url }];
  service = await startService(
    configText(providers, { limits: { max_body_bytes: MAX_BODY_BYTES } }),
  );
});
after(() => Promise.all([service.close(), upstream.close()]));

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** Sends one request exactly as written and checks what every answer must carry. */
async function ask({
  method = "POST",
  path = "/rpc/ethereum",
  headers = {},
  body,
}: Sent): Promise<Answer> {
  const answer = await new Promise<Answer>((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const sent = request(
      {
        port: service.port,
        method,
        path,
        headers: { ...length, connection: "keep-alive", ...headers },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          const single = Object.fromEntries(
            Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
          );
          resolve({
            status: response.statusCode ?? 0,
            headers: single,
            text,
            json: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : undefined,
          });
        });
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
  checkAlways(answer);
  return answer;
}

function checkAlways({ headers, json, status, text }: Answer): void {
  assert.equal(headers["access-control-allow-origin"], "*");
  const exposed = (headers["access-control-expose-headers"] ?? "").split(", ");
  for (const name of EXPOSED.split(" "))
    assert.ok(exposed.includes(name), `${name} is not exposed`);
  const id = headers["x-svc-request-id"] ?? "";
  assert.match(id, /^req-[0-9a-z]+-[0-9a-z]+$/);
  requestIds.push(id);
  if (json?.error?.data?.retryable === true)
    assert.ok(Number(headers["retry-after"]) >= 1, "retryable without Retry-After");
  if (status === 204) assert.equal(text, "");
  else if (text !== "") assert.match(headers["content-type"] ?? "", /^application\/json/);
  if (json?.error?.data?.code !== undefined) {
    const { code, next_action, retryable } = json.error.data;
    assert.ok(
      typeof next_action === "string" && next_action.length > 3 && typeof retryable === "boolean",
      code,
    );
  }
}

const call = (id: string, method = "eth_gasPrice", params = "[]"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
const askedFor = (method: string): number =>
  upstream.asked.filter((it) => it.method === method).length;

for (const [server, connection] of Object.entries(SERVERS)) {
  const post = (body: string | Buffer, headers: Readonly<Record<string, string>> = {}) =>
    ask({ body, headers: { connection, ...headers } });

  describe(`through ${server}`, () => {
    const IDS = [
      "0",
      "1",
      "-7",
      "-0",
      "1".repeat(30),
      "null",
      '""',
      '"abc"',
      '"é😀"',
      '"\\u0041\\n\\"\\ud800"',
      `"${"x".repeat(10_240)}"`,
      '"__proto__"',
    ];
    for (const id of IDS)
      it(`the id ${id.slice(0, 30)} comes back byte for byte, with a result, an error and a refusal`, async () => {
        assert.equal((await post(call(id))).text, `{"jsonrpc":"2.0","id":${id},"result":[]}`);
        assert.equal(
          (await post(call(id, "test_fail"))).text,
          `{"jsonrpc":"2.0","id":${id},"error":{"code":3,"message":"execution ` +
            `reverted","data":"0x01"}}`,
        );
        assert.equal(
          (await post(call(id, "eth_chainId"))).text,
          `{"jsonrpc":"2.0","id":${id},"result":"0x1"}`,
        );
        assert.ok(
          (await post(call(id, "eth_sign"))).text.startsWith(
            `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601`,
          ),
        );
      });

    const REFUSED: readonly (readonly [
      name: string,
      body: string | Buffer,
      status: number,
      rpcCode: number,
      code: string,
      id: unknown,
    ])[] = [
      ...["1.5", "1.0", "1e2", "true", "[]", "{}"].map(
        (id) => [`an id ${id}`, call(id), 400, -32600, "invalid_request", null] as const,
      ),
      ["no body", "", 400, -32700, "parse_error", null],
      ["white space", " \n", 400, -32700, "parse_error", null],
      ["invalid JSON", '{"jsonrpc"', 400, -32700, "parse_error", null],
      ["two documents", `${call("1")}${call("2")}`, 400, -32700, "parse_error", null],
      [
        "a trailing comma",
        '{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice",}',
        400,
        -32700,
        "parse_error",
        null,
      ],
      ["invalid UTF-8", Buffer.from(call('"\xff"'), "latin1"), 400, -32700, "parse_error", null],
      [
        "overlong UTF-8",
        Buffer.from(call('"\xc0\xaf"'), "latin1"),
        400,
        -32700,
        "parse_error",
        null,
      ],
      [
        "an encoded surrogate",
        Buffer.from(call('"\xed\xa0\x80"'), "latin1"),
        400,
        -32700,
        "parse_error",
        null,
      ],
      ["a byte order mark", `\ufeff${call("1")}`, 400, -32700, "parse_error", null],
      ["a NUL byte behind", `${call("1")}\0`, 400, -32700, "parse_error", null],
      ["a NUL byte inside", call('"a\0"'), 400, -32700, "parse_error", null],
      ["nesting of 90,000 brackets", "[".repeat(90_000), 400, -32700, "parse_error", null],
      [
        "nesting beyond the bound",
        call("1", "eth_gasPrice", `${"[".repeat(128)}${"]".repeat(128)}`),
        400,
        -32700,
        "parse_error",
        null,
      ],
      ["a string", '"eth_gasPrice"', 400, -32600, "invalid_request", null],
      ["a number", "1", 400, -32600, "invalid_request", null],
      ["null", "null", 400, -32600, "invalid_request", null],
      ["no method", '{"jsonrpc":"2.0","id":5}', 400, -32600, "invalid_request", 5],
      ["neither method nor id", '{"jsonrpc":"2.0"}', 400, -32600, "invalid_request", null],
      [
        "a method that is a number",
        '{"jsonrpc":"2.0","id":5,"method":1}',
        400,
        -32600,
        "invalid_request",
        5,
      ],
      [
        "an empty method",
        '{"jsonrpc":"2.0","id":5,"method":""}',
        400,
        -32600,
        "invalid_request",
        5,
      ],
      ["a method of 129 characters", call("5", "m".repeat(129)), 400, -32600, "invalid_request", 5],
      ["no version", '{"id":5,"method":"eth_gasPrice"}', 400, -32600, "invalid_request", 5],
      [
        "version 1.0",
        '{"jsonrpc":"1.0","id":5,"method":"eth_gasPrice"}',
        400,
        -32600,
        "invalid_request",
        5,
      ],
      [
        "a version that is a number",
        '{"jsonrpc":2.0,"id":5,"method":"eth_gasPrice"}',
        400,
        -32600,
        "invalid_request",
        5,
      ],
      [
        "params that are a string",
        call("5", "eth_gasPrice", '"x"'),
        400,
        -32600,
        "invalid_request",
        5,
      ],
      [
        "a member twice",
        '{"jsonrpc":"2.0","id":5,"method":"eth_gasPrice","method":"eth_call"}',
        400,
        -32600,
        "invalid_request",
        5,
      ],
      [
        "an id twice",
        '{"jsonrpc":"2.0","id":5,"id":6,"method":"eth_gasPrice"}',
        400,
        -32600,
        "invalid_request",
        null,
      ],
      ["an empty batch", "[]", 400, -32600, "invalid_request", null],
      [
        "a batch of 1,001",
        `[${Array.from({ length: 1_001 }, (_, n) => call(String(n))).join(",")}]`,
        400,
        -32600,
        "invalid_request",
        null,
      ],
      [
        "a body of one byte too many",
        call("1").padEnd(MAX_BODY_BYTES + 1),
        413,
        -32600,
        "body_too_large",
        null,
      ],
      ["eth_sendTransaction", call("5", "eth_sendTransaction"), 200, -32601, "method_blocked", 5],
      ["eth_coinbase", call("5", "eth_coinbase"), 200, -32601, "method_blocked", 5],
      ["eth_sign", call("5", "eth_sign"), 200, -32601, "method_blocked", 5],
      ["eth_signTransaction", call("5", "eth_signTransaction"), 200, -32601, "method_blocked", 5],
      [
        "personal_unlockAccount",
        call("5", "personal_unlockAccount"),
        200,
        -32601,
        "method_blocked",
        5,
      ],
      [
        "eth_subscribe",
        call("5", "eth_subscribe", '["newHeads"]'),
        200,
        -32601,
        "websocket_only",
        5,
      ],
      ["eth_unsubscribe", call("5", "eth_unsubscribe"), 200, -32601, "websocket_only", 5],
    ];
    for (const [name, body, status, rpcCode, code, id] of REFUSED)
      it(`${name} is refused with ${status}, ${rpcCode} and ${code}, and no provider hears of it`, async () => {
        const before = upstream.asked.length;
        const answer = await post(body);
        assert.deepEqual(
          [answer.status, answer.json.error.code, answer.json.error.data.code, answer.json.id],
          [status, rpcCode, code, id],
        );
        assert.equal(answer.json.jsonrpc, "2.0");
        assert.equal(upstream.asked.length, before);
      });

    it("a body of exactly the limit is served", async () => {
      assert.equal(
        (await post(call("1").padEnd(MAX_BODY_BYTES))).text,
        '{"jsonrpc":"2.0","id":1,"result":[]}',
      );
    });

    it("a compressed body is refused with 415, and `identity` is none", async () => {
      const answer = await post(call("1"), { "content-encoding": "gzip" });
      assert.deepEqual(
        [answer.status, answer.json.error.data.code],
        [415, "unsupported_media_type"],
      );
      assert.equal((await post(call("1"), { "content-encoding": "identity" })).status, 200);
    });

    it("params that are absent or null count as an empty list, and objects pass as they are", async () => {
      assert.equal(
        (await post('{"jsonrpc":"2.0","id":1,"method":"test_echo"}')).json.result.length,
        0,
      );
      assert.equal((await post(call("1", "test_echo", "null"))).json.result.length, 0);
      assert.equal(
        (await post(call("1", "test_echo", '{"b":1,"a":[]}'))).text,
        '{"jsonrpc":"2.0","id":1,"result":{"b":1,"a":[]}}',
      );
    });

    it(
      "white space, order of members and unknown members change nothing, and no unknown member " +
        "goes upstream",
      async () => {
        const body =
          ' {\n"params" : ["0x1", 1e3 ,1.0] ,\t"method":"test_echo","extra":{"svc_meta":1},"id": ' +
          '7 ,"__proto__":{"method":"x"},"jsonrpc":"2.0"}\r\n';
        assert.equal((await post(body)).json.id, 7);
        const { body: sent, id } = upstream.asked.at(-1) ?? { body: "", id: "" };
        assert.equal(
          sent,
          `{"jsonrpc":"2.0","id":${id},"method":"test_echo","params":["0x1", 1e3 ,1.0]}`,
        );
      },
    );

    it(
      "a plain request reaches the provider byte for byte but for its id, which is a new one of " +
        "ours each time",
      async () => {
        const body =
          '{"id":"a-1","params":["0x1", ' +
          '123456789012345678901234567890],"method":"test_echo","jsonrpc":"2.0"}';
        const ids = new Set<string>();
        for (let n = 0; n < 20; n++) {
          assert.equal((await post(body)).json.id, "a-1");
          const { body: sent, id } = upstream.asked.at(-1) ?? { body: "", id: "" };
          assert.match(id, /^[1-9]\d{15}$/);
          assert.equal(sent, body.replace('"a-1"', id));
          ids.add(id);
        }
        assert.equal(ids.size, 20);
      },
    );

    it("the caller's headers stay here: only what the provider needs is sent on", async () => {
      await post(call("1", "test_echo"), {
        authorization: "Bearer caller-secret",
        cookie: "a=b",
        "x-request-id": "mine",
        "x-forwarded-for": "1.2.3.4",
        origin: "https://x",
      });
      assert.deepEqual(Object.keys(upstream.asked.at(-1)?.headers ?? {}).sort(), [
        "accept",
        ...(runsOnLibraries ? ["connection"] : []),
        "content-length",
        "content-type",
        "host",
        "user-agent",
      ]);
    });

    it("chain id and network id are answered here, and asked of the provider when it is pinned", async () => {
      const before = upstream.asked.length;
      assert.equal(
        (await post(call("1", "eth_chainId"))).text,
        '{"jsonrpc":"2.0","id":1,"result":"0x1"}',
      );
      assert.equal(
        (await post(call("1", "net_version"))).text,
        '{"jsonrpc":"2.0","id":1,"result":"1"}',
      );
      assert.equal(upstream.asked.length, before);
      const pinned = await ask({
        path: "/rpc/ethereum/a",
        headers: { connection },
        body: call("77", "net_version", "[5]"),
      });
      assert.deepEqual(
        [pinned.json.result, upstream.asked.length, upstream.asked.at(-1)?.method],
        [[5], before + 1, "net_version"],
      );
    });

    it(
      "eth_accounts is an empty list, pinned or not, and no provider tells the accounts of its " +
        "node",
      async () => {
        const before = upstream.asked.length;
        assert.equal(
          (await post(call('"a"', "eth_accounts"))).text,
          '{"jsonrpc":"2.0","id":"a","result":[]}',
        );
        const pinned = await ask({
          path: "/rpc/ethereum/a",
          headers: { connection },
          body: call("7", "eth_accounts"),
        });
        assert.deepEqual(
          [pinned.text, upstream.asked.length],
          ['{"jsonrpc":"2.0","id":7,"result":[]}', before],
        );
      },
    );

    it(
      "a notification is executed upstream with an id of our own and answered 204, also when it " +
        "fails or is refused",
      async () => {
        const methods = ["test_echo", "test_fail", "test_slow"];
        for (const method of methods) {
          const before = askedFor(method);
          assert.equal(
            (await post(`{"jsonrpc":"2.0","method":"${method}","params":[1]}`)).status,
            204,
            method,
          );
          assert.equal(askedFor(method), before + 1, method);
          assert.match(upstream.asked.at(-1)?.id ?? "", /^\d{16}$/);
        }
        const before = upstream.asked.length;
        for (const method of ["eth_accounts", "eth_sign", "eth_subscribe", "eth_chainId"])
          assert.equal((await post(`{"jsonrpc":"2.0","method":"${method}"}`)).status, 204, method);
        assert.equal(upstream.asked.length, before);
      },
    );

    it("a notification whose result is long ends it upstream: nobody waits for it", async () => {
      const before = cutShort;
      assert.equal((await post('{"jsonrpc":"2.0","method":"test_endless"}')).status, 204);
      await until("the end of the upstream request", () => cutShort === before + 1);
    });

    it("X-Request-Id comes back where it is sane, and only there", async () => {
      assert.equal(
        (await post(call("1"), { "x-request-id": "trace/1:2" })).headers["x-request-id"],
        "trace/1:2",
      );
      assert.equal(
        (await post("nope", { "x-request-id": "trace-2" })).headers["x-request-id"],
        "trace-2",
      );
      for (const bad of ["two words", "x".repeat(129), "é"]) {
        const headers = { "x-request-id": Buffer.from(bad).toString("latin1") };
        assert.equal((await post(call("1"), headers)).headers["x-request-id"], undefined, bad);
      }
    });

    it("a subscription is told where the WebSocket is", async () => {
      const { json } = await ask({
        path: "/rpc/profile/team/fastest/mainnet?x=1",
        headers: { connection },
        body: call("1", "eth_subscribe"),
      });
      assert.equal(json.error.data.websocket_url, "/ws/rpc/profile/team/fastest/mainnet");
    });

    describe("a batch", () => {
      it("is answered in the order of its items, also with duplicate ids and slow items", async () => {
        const items = [
          call("1", "test_slow", "[1]"),
          call('"x"', "test_echo", "[2]"),
          call("1", "test_slow", "[3]"),
          call("-5", "test_echo", "[4]"),
        ];
        const { status, text } = await post(`[${items.join(" , ")}]`);
        assert.equal(status, 200);
        const answer = (id: string, n: number): string =>
          `{"jsonrpc":"2.0","id":${id},"result":[${n}]}`;
        assert.equal(
          text,
          `[${answer("1", 1)},${answer('"x"', 2)},${answer("1", 3)},${answer("-5", 4)}]`,
        );
      });

      it("gives every item its own end: results, errors, refusals and notifications side by side", async () => {
        const notification = '{"jsonrpc":"2.0","method":"test_echo"}';
        const items = [
          call("1", "eth_chainId"),
          "1",
          call("2", "eth_sign"),
          notification,
          call("3", "test_fail"),
          '{"id":4}',
          call("1.5"),
          "[]",
          call("6", "no_such"),
        ];
        const { status, json } = await post(`[${items.join(",")}]`);
        assert.equal(status, 200);
        const ends = json.map(
          (it: {
            id: unknown;
            result?: unknown;
            error?: { code: number; data: { code?: string } };
          }) => [it.id, it.result ?? it.error?.data.code ?? it.error?.code],
        );
        assert.deepEqual(ends, [
          [1, "0x1"],
          [null, "invalid_request"],
          [2, "method_blocked"],
          [3, 3],
          [4, "invalid_request"],
          [null, "invalid_request"],
          [null, "invalid_request"],
          [6, []],
        ]);
      });

      it("of one item is a list of one answer", async () =>
        assert.equal(
          (await post(`[${call("1")}]`)).text,
          '[{"jsonrpc":"2.0","id":1,"result":[]}]',
        ));

      it("of notifications alone is executed and answered 204", async () => {
        const before = askedFor("test_echo");
        const { status } = await post(
          `[${'{"jsonrpc":"2.0","method":"test_echo"},'.repeat(3)}{"jsonrpc":"2.0","method":"eth_chainId"}]`,
        );
        assert.deepEqual([status, askedFor("test_echo")], [204, before + 3]);
      });

      it("of fifty items is served, with all of them asked once", async () => {
        const before = askedFor("test_echo");
        const { json } = await post(
          `[${Array.from({ length: 50 }, (_, n) => call(String(n), "test_echo", `[${n}]`)).join(",")}]`,
        );
        assert.deepEqual(
          json.map((it: { id: number; result: number[] }) => [it.id, it.result[0]]),
          Array.from({ length: 50 }, (_, n) => [n, n]),
        );
        assert.equal(askedFor("test_echo"), before + 50);
      });

      it("may hold a long answer beside short ones", async () => {
        const { json } = await post(
          `[${call("1", "test_echo", "[1]")},${call("2", "test_long")},${call("3", "eth_chainId")}]`,
        );
        assert.deepEqual(
          [json[0].result, json[1].result.length, json[2].result],
          [[1], 3_000_000, "0x1"],
        );
      });
    });
  });
}

describe("pages and methods", () => {
  it("a preflight is answered 204 with everything a browser asks for, on every path", async () => {
    for (const path of ["/rpc/ethereum", "/rpc/no-such", "/api/chains", "/no/such/page"]) {
      const { status, headers } = await ask({
        method: "OPTIONS",
        path,
        headers: { origin: "https://dapp.example", "access-control-request-method": "POST" },
      });
      assert.equal(status, 204, path);
      assert.equal(headers["access-control-max-age"], "86400");
      const allowed = (headers["access-control-allow-headers"] ?? "").toLowerCase().split(", ");
      const paying = [
        "payment-signature",
        "payment-authorization",
        "accept-payment",
        "access-control-expose-headers",
      ];
      for (const name of [
        "authorization",
        "content-type",
        "x-svc-provider",
        "x-svc-strategy",
        "x-svc-consistency",
        "x-svc-seen",
        "x-request-id",
        ...paying,
      ])
        assert.ok(allowed.includes(name), name);
      assert.match(headers["access-control-expose-headers"] ?? "", /\bx-svc-seen\b/);
      const methods = (headers["access-control-allow-methods"] ?? "").split(", ");
      for (const name of ["GET", "POST", "OPTIONS"]) assert.ok(methods.includes(name), name);
    }
  });

  for (const method of ["GET", "PUT", "DELETE", "PATCH"])
    it(`${method} on an RPC path is 405 with Allow and a body that shows the POST`, async () => {
      const { status, headers, json } = await ask({ method, path: "/rpc/ethereum" });
      assert.deepEqual(
        [status, headers["allow"], json.error.data.code],
        [405, "POST, OPTIONS", "method_not_allowed"],
      );
      assert.match(
        json.error.data.next_action,
        /POST .*\{"jsonrpc":"2\.0","id":1,"method":"eth_blockNumber","params":\[\]\}/,
      );
    });

  it("HEAD is a GET without a body", async () => {
    for (const [path, expected] of [
      ["/rpc/ethereum", 405],
      ["/api/health", 200],
      ["/no/such", 404],
    ] as const) {
      const { status, text } = await ask({ method: "HEAD", path });
      assert.deepEqual([status, text], [expected, ""], path);
    }
  });

  it("a POST to a page is 405 and says to send a GET", async () => {
    const { status, headers, json } = await ask({ path: "/api/chains", body: "{}" });
    assert.deepEqual(
      [status, headers["allow"], json.error.data.next_action],
      [405, "GET, HEAD, OPTIONS", "send a GET"],
    );
  });

  it("what is nowhere is 404, in JSON", async () => {
    for (const path of [
      "/no/such",
      "/rpc",
      "/RPC/ethereum",
      "/api",
      "/metrics/x",
      "/dashboard/../x",
      "/__proto__",
      "/constructor",
      "/ws",
    ])
      for (const method of ["GET", "POST"]) {
        const { status, json } = await ask({ method, path });
        assert.deepEqual([status, json.error.data.code], [404, "not_found"], `${method} ${path}`);
      }
  });

  it("the instance endpoints answer as published, and echo X-Request-Id", async () => {
    const chains = await ask({
      method: "GET",
      path: "/api/chains",
      headers: { "x-request-id": "abc" },
    });
    assert.deepEqual(chains.json, {
      chains: [
        { chain_id: "1", name: "Ethereum Mainnet", chain_name: "ethereum", supported: true },
      ],
    });
    assert.equal(chains.headers["x-request-id"], "abc");
    const { json } = await ask({ method: "GET", path: "/api/health?x=1" });
    assert.deepEqual(
      [json.status, json.version, json.cluster.status, json.cluster.enabled],
      ["healthy", "0.0.0-test", "standalone", false],
    );
    assert.ok(
      Number.isInteger(json.uptime_seconds) &&
        Math.abs(Date.parse(json.timestamp) - Date.now()) < 60_000,
    );
    await service.probed();
    assert.deepEqual((await ask({ method: "GET", path: "/api/ready" })).json.ready, true);
  });

  it("every answer above had a request id of its own", () => {
    assert.ok(requestIds.length > 150);
    assert.equal(new Set(requestIds).size, requestIds.length);
  });
});

describe("bounds of a batch", () => {
  it("thirty-two items are in flight at most, and each that ends lets the next one start", async (t) => {
    const open: (() => void)[] = [];
    let most = 0;
    const counting = await scriptedUpstream((_, reply) => {
      most = Math.max(
        most,
        open.push(() => reply.result("1")),
      );
    });
    const tight = await startService(configText([{ id: "a", url: counting.url }]));
    t.after(() => Promise.all([tight.close(), counting.close()]));
    const answer = tight.post(
      "/rpc/1",
      Array.from({ length: 96 }, (_, id) => ({ jsonrpc: "2.0", id, method: "eth_call" })),
    );
    for (let ended = 0; ended < 64; ended++) {
      await until("thirty-two in flight", () => open.length === 32);
      open.shift()?.();
    }
    await until("the last thirty-two", () => open.length === 32);
    for (const end of open) end();
    assert.equal((await answer).json.length, 96);
    assert.equal(most, 32);
  });

  it(
    "an answer that does not fit beside the others is replaced by an error of its own, and the " +
      "room is free again afterwards",
    async (t) => {
      const long = await scriptedUpstream(({ params }, reply) =>
        reply.result(JSON.stringify("x".repeat(Number(Array.isArray(params) ? params[0] : 0)))),
      );
      const tight = await startService(
        configText([{ id: "a", url: long.url }], { limits: { max_in_flight_bytes: 50_000 } }),
      );
      t.after(() => Promise.all([tight.close(), long.close()]));
      for (let round = 0; round < 3; round++) {
        const sizes = [20_000, 60_000, 20_000, 20];
        const { json } = await tight.post(
          "/rpc/1",
          sizes.map((size, id) => ({
            jsonrpc: "2.0",
            id,
            method: "debug_traceTransaction",
            params: [size],
          })),
        );
        const ends = json.map(
          (it: { result?: string; error?: { data: { code: string } } }) =>
            it.result?.length ?? it.error?.data.code,
        );
        assert.deepEqual(ends, [20_000, "unavailable", 20_000, 20]);
      }
      assert.match((await tight.get("/metrics")).text, /^svc_in_flight_bytes 0$/m);
    },
  );

  it("fifty local answers, which come at once, give their room back too", async () => {
    for (let round = 0; round < 3; round++) {
      const { json } = await service.post(
        "/rpc/1",
        Array.from({ length: 50 }, (_, id) => ({ jsonrpc: "2.0", id, method: "eth_chainId" })),
      );
      assert.equal(json.length, 50);
    }
    assert.match((await service.get("/metrics")).text, /^svc_in_flight_bytes 0$/m);
  });

  it("a retryable error says so inside a batch too", async (t) => {
    const refused = await startService(configText([{ id: "a", url: "http://127.0.0.1:1" }]));
    t.after(() => refused.close());
    for (let n = 0; n < 3; n++)
      await refused.post("/rpc/1", { jsonrpc: "2.0", id: 1, method: "eth_gasPrice" });
    const { json } = await refused.post("/rpc/1", [
      { jsonrpc: "2.0", id: 1, method: "eth_gasPrice" },
    ]);
    assert.deepEqual(
      [json[0].error.code, json[0].error.data.code, json[0].error.data.retryable],
      [-32002, "unavailable", true],
    );
    const { retry_after_ms: waitMs } = json[0].error.data;
    assert.ok(waitMs >= 250 && waitMs <= 1_000, `${waitMs}`);
  });
});
