// Keys in a provider's path, query, credentials and headers: whatever goes wrong, none of them
// reaches a caller, a log line or a metric.
import assert from "node:assert/strict";
import { test } from "node:test";
import { configText, startService } from "../fakes/service.ts";
import { type Asked, type Replier, scriptedUpstream } from "../fakes/upstream.ts";

const PATH_KEY = "pathKey-0f6d2c9a8b7e";
const QUERY_KEY = "queryKey_51ac77e0";
const USER = "someUserName42";
const PASSWORD = "pass%2Fword~9931";
const HEADER_KEY = "headerKey.eyJhbGciOi";
const BASIC = Buffer.from(`${USER}:${decodeURIComponent(PASSWORD)}`).toString("base64");
const SECRETS = [
  PATH_KEY,
  QUERY_KEY,
  USER,
  PASSWORD,
  decodeURIComponent(PASSWORD),
  HEADER_KEY,
  BASIC,
];

function addressOf(origin: string): string {
  return `${origin.replace("://", `://${USER}:${PASSWORD}@`)}/v2/${PATH_KEY}?apikey=${QUERY_KEY}`;
}

/** Everything a provider can repeat of what it was sent. */
function echo({ path, headers }: Asked): string {
  return JSON.stringify(
    `failed: ${path} with ${headers["authorization"]} and ${headers["x-api-key"]}`,
  );
}

const TROUBLES: readonly (readonly [
  name: string,
  answer: (reply: Replier, asked: Asked) => void,
])[] = [
  ["a reset", (reply) => reply.reset()],
  [
    "an HTML page that repeats the request",
    (reply, asked) => reply.body(`<html>${echo(asked)}</html>`, 500),
  ],
  ["HTTP 200 that repeats the request", (reply, asked) => reply.body(echo(asked))],
  [
    "a redirect to its own address",
    (reply, asked) => reply.body("", 302, { location: asked.path }),
  ],
  ["HTTP 401", (reply, asked) => reply.error(`{"code":-32000,"message":${echo(asked)}}`, 401)],
  ["HTTP 403", (reply, asked) => reply.body(echo(asked), 403)],
  [
    "HTTP 429 with it in a header",
    (reply, asked) => reply.body(echo(asked), 429, { "retry-after": "1", "x-request": asked.path }),
  ],
  [
    "an unclassified error",
    (reply, asked) => reply.error(`{"code":-32000,"message":${echo(asked)}}`),
  ],
  [
    "a revert",
    (reply, asked) =>
      reply.error(`{"code":3,"message":"execution reverted","data":${echo(asked)}}`),
  ],
  [
    "invalid parameters",
    (reply, asked) =>
      reply.error(`{"code":-32602,"message":"invalid argument","data":{"url":${echo(asked)}}}`),
  ],
  [
    "a range refusal",
    (reply, asked) =>
      reply.error(
        `{"code":-32005,"message":"block range is too wide","data":{"url":${echo(asked)}}}`,
      ),
  ],
  [
    "an odd error code",
    (reply, asked) => reply.error(`{"code":${echo(asked)},"message":${echo(asked)}}`),
  ],
  ["an error that is a string", (reply, asked) => reply.error(echo(asked))],
  [
    "a broken long answer",
    (reply, { id }) =>
      reply.begin(`{"jsonrpc":"2.0","id":${id},"result":"${"x".repeat(100_000)}`).reset(),
  ],
  ["silence", () => {}],
];

const METHODS = ["eth_call", "eth_getLogs", "eth_sendRawTransaction", "vendor_doSomething"];

test("no secret of a provider is seen anywhere", async (t) => {
  const upstream = await scriptedUpstream();
  upstream.probesSay(null);
  // Nobody listens on port 1; one that was only just closed may be another test's by now.
  const origins = [
    upstream.url,
    "http://127.0.0.1:1",
    upstream.url.replace("http:", "https:"),
    `http://${"no-such-host"}.invalid`,
  ];
  const profiles = Object.fromEntries(
    ["own", "public"].flatMap((slug) =>
      origins.map((origin, n) => {
        const provider = { id: "a", url: addressOf(origin), headers: { "X-Api-Key": HEADER_KEY } };
        return [
          n === 0 ? slug : `${slug}-${n}`,
          { chains: { ethereum: { providers: [provider] } } },
        ];
      }),
    ),
  );
  const deadlines = { cheap_ms: 150, standard_ms: 150, default_ms: 150 };
  const service = await startService(configText([], { profiles, deadlines, log_level: "trace" }));
  t.after(() => Promise.all([service.close(), upstream.close()]));
  const seen: string[] = [];
  const send = async (slug: string, method: string, query: string): Promise<void> => {
    const body = {
      jsonrpc: "2.0",
      id: 8,
      method,
      params: method === "eth_getLogs" ? [{ fromBlock: "0x1", toBlock: "0x9" }] : [],
    };
    const answer = await service
      .post(`/rpc/profile/${slug}/1${query}`, body)
      .catch((error: unknown) => ({ text: String(error), headers: new Headers() }));
    const meta = Buffer.from(answer.headers.get("x-svc-meta") ?? "", "base64url").toString();
    seen.push(answer.text, [...answer.headers].join("\n"), meta);
  };
  for (const [, answer] of TROUBLES) {
    upstream.script((asked, reply) => answer(reply, asked));
    await Promise.all(
      ["own", "public"].flatMap((slug) =>
        METHODS.map((method, n) =>
          send(slug, method, `?include_meta=${n % 2 === 0 ? "body" : "headers"}`),
        ),
      ),
    );
    // A fresh health for every trouble, so that none is hidden behind an open circuit.
    assert.equal(service.app.reload({ ...service.config, profiles: [] }), null);
    assert.equal(service.app.reload(service.config), null);
  }
  for (const slug of Object.keys(profiles)) await send(slug, "eth_call", "?include_meta=headers");
  await send("own/nobody", "eth_call", "");
  for (const path of [
    "/metrics",
    "/api/metrics/1",
    "/api/ready",
    "/api/health",
    "/api/chains",
    "/dashboard",
  ])
    seen.push((await service.get(path)).text);
  assert.ok(upstream.asked.length >= TROUBLES.length * 8, `${upstream.asked.length}`);
  const [one] = upstream.asked;
  assert.deepEqual(
    [one?.path, one?.headers["authorization"]],
    [`/v2/${PATH_KEY}?apikey=${QUERY_KEY}`, `Basic ${BASIC}`],
    "they did go upstream",
  );
  for (const secret of SECRETS) {
    for (const text of seen)
      assert.ok(
        !text.toLowerCase().includes(secret.toLowerCase()),
        `${secret} in ${text.slice(0, 300)}`,
      );
    assert.ok(!service.log().includes(secret), `${secret} in the log`);
  }
  assert.doesNotMatch(
    service.log() + seen.join("\n"),
    new RegExp(`127\\.0\\.0\\.1:${upstream.port}`),
  );
});
