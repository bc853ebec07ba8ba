// Keys in the address and headers of a provider's socket: whatever goes wrong on it, none of them
// reaches a caller, a close reason, a log line or a metric.
import assert from "node:assert/strict";
import { test } from "node:test";
import { configText, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type SocketAsked, type SocketReplier, socketUpstream } from "../fakes/socket-upstream.ts";
import { call, open } from "../web/socket/socket-fixture.ts";

const PATH_KEY = "pathKey-0f6d2c9a8b7e";
const QUERY_KEY = "queryKey_51ac77e0";
const USER = "someUserName42";
const PASSWORD = "passWord~9931";
const HEADER_KEY = "headerKey.eyJhbGciOi";
const BASIC = Buffer.from(`${USER}:${PASSWORD}`).toString("base64");
const SECRETS = [PATH_KEY, QUERY_KEY, USER, PASSWORD, HEADER_KEY, BASIC];

function addressOf(origin: string): string {
  return `${origin.replace("://", `://${USER}:${PASSWORD}@`)}/v2/${PATH_KEY}?apikey=${QUERY_KEY}`;
}

/** Everything a provider can repeat of what it was sent. */
function echo({ peer: { path, headers } }: SocketReplier): string {
  return JSON.stringify(
    `failed: ${path} with ${headers["authorization"]} and ${headers["x-api-key"]}`,
  );
}

const TROUBLES: readonly (readonly [
  name: string,
  answer: (reply: SocketReplier, asked: SocketAsked) => void,
])[] = [
  ["an unclassified error", (reply) => reply.error(`{"code":-32000,"message":${echo(reply)}}`)],
  [
    "a revert",
    (reply) => reply.error(`{"code":3,"message":"execution reverted","data":${echo(reply)}}`),
  ],
  [
    "invalid parameters",
    (reply) =>
      reply.error(`{"code":-32602,"message":"invalid argument","data":{"url":${echo(reply)}}}`),
  ],
  [
    "missing credentials",
    (reply) =>
      reply.error(`{"code":-32000,"message":"Must be authenticated!","data":${echo(reply)}}`),
  ],
  ["an odd error code", (reply) => reply.error(`{"code":${echo(reply)},"message":${echo(reply)}}`)],
  ["an error that is a string", (reply) => reply.error(echo(reply))],
  [
    "an answer that is none",
    (reply, { id }) =>
      reply.peer.send(`{"jsonrpc":"2.0","id":${id},"result":1,"error":${echo(reply)}}`),
  ],
  ["a close that repeats it", (reply) => reply.peer.close(4_000, echo(reply).slice(0, 120))],
  ["bytes that repeat it", (reply) => reply.peer.raw(echo(reply))],
  ["frames that repeat it", (reply) => reply.peer.send(echo(reply))],
];

const ASKED = [
  call(1, "eth_call"),
  call(2, "eth_sendRawTransaction", ["0x00"]),
  call(3, "eth_subscribe", ["newPendingTransactions"]),
  call(4, "vendor_do"),
];

test("no secret of a provider's socket is seen anywhere", async (t) => {
  const upstream = await socketUpstream();
  // Nobody listens on port 1; one that was only just closed may be another test's by now.
  const origins = [
    upstream.url,
    "ws://127.0.0.1:1",
    upstream.url.replace("ws:", "wss:"),
    "ws://no-such-host.invalid",
  ];
  const profiles = Object.fromEntries(
    ["own", "public"].flatMap((slug) =>
      origins.map((origin, n) => {
        const providers = [
          { id: "a", ws_url: addressOf(origin), headers: { "X-Api-Key": HEADER_KEY } },
        ];
        return [
          n === 0 ? slug : `${slug}-${n}`,
          { chains: { ethereum: { providers, monitoring: { probe_interval_ms: 3_600_000 } } } },
        ];
      }),
    ),
  );
  const deadlines = { cheap_ms: 150, standard_ms: 150, default_ms: 150 };
  const service = await startService(configText([], { profiles, deadlines, log_level: "trace" }));
  t.after(() => Promise.all([service.close(), upstream.close()]));
  const seen: string[] = [];
  const send = async (slug: string): Promise<void> => {
    const client = await open(t, service.port, `/ws/rpc/profile/${slug}/1?include_meta=body`);
    for (const it of ASKED) client.send(it);
    await until("the answers", () => client.texts.length === ASKED.length);
    client.ws.close();
    seen.push(...client.texts, (await client.closed)[1]);
  };
  const pages = async (): Promise<void> => {
    for (const path of ["/metrics", "/api/metrics/1", "/api/ready"])
      seen.push((await service.get(path)).text);
  };
  const methods = new Set(ASKED.map(({ method }) => method));
  for (const [, answer] of TROUBLES) {
    upstream.script((asked, reply) =>
      methods.has(asked.method) && asked.body.includes("newHeads") === false
        ? answer(reply, asked)
        : reply.usual(),
    );
    await Promise.all([send("own"), send("public")]);
    await pages();
    // A fresh health for every trouble, so that none is hidden behind an open circuit.
    assert.equal(service.app.reload({ ...service.config, profiles: [] }), null);
    assert.equal(service.app.reload(service.config), null);
  }
  for (const status of [302, 401, 429, 500]) {
    const body = `${PATH_KEY} ${QUERY_KEY} ${BASIC} ${HEADER_KEY}`;
    upstream.refuse({ status, headers: { location: `/v2/${PATH_KEY}` }, body });
    upstream.drop();
    await Promise.all([send("own"), send("public")]);
    await pages();
  }
  for (const slug of Object.keys(profiles)) await send(slug);
  await pages();
  assert.ok(upstream.asked.length >= TROUBLES.length * 4, `${upstream.asked.length}`);
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

test("the keys of an address and of headers do go with the handshake", async (t) => {
  const upstream = await socketUpstream();
  const service = await startService(
    configText([
      { id: "a", ws_url: addressOf(upstream.url), headers: { "X-Api-Key": HEADER_KEY } },
    ]),
  );
  t.after(() => Promise.all([service.close(), upstream.close()]));
  const [peer] = await until("the socket", () => upstream.peers().length > 0 && upstream.peers());
  assert.equal(peer?.path, `/v2/${PATH_KEY}?apikey=${QUERY_KEY}`);
  assert.deepEqual(
    [peer?.headers["authorization"], peer?.headers["x-api-key"]],
    [`Basic ${BASIC}`, HEADER_KEY],
  );
});
