// Providers that are reached by their own socket: the same engine as over HTTP (failover,
// classification, transactions, bytes), with a health per transport.
import assert from "node:assert/strict";
import { test } from "node:test";
import { simulatedWorld } from "../fakes/runtime.ts";
import { metaOf, type ShownAttempt, until, walked } from "../fakes/service-fixture.ts";
import { socketFixture, subscribe, transportOf } from "../fakes/socket-fixture.ts";
import { call } from "../web/socket/socket-fixture.ts";
import { HASH, RAW } from "./corpus.ts";

const QUIET = { monitoring: { socket_heads: false } };

function transportsOf({
  attempts,
}: {
  readonly attempts: readonly (ShownAttempt & { readonly transport?: string })[];
}): string {
  return attempts.map((it) => `${it.provider}:${it.transport}:${it.category ?? "ok"}`).join(" ");
}

test(
  "a provider with a socket only serves callers over HTTP and over sockets, and the evidence " +
    "says so",
  async (t) => {
    const { call: post, open } = await socketFixture(t, ["ws"]);
    const answer = await post("eth_call");
    assert.equal(answer.json.result, "0xa");
    assert.deepEqual(
      [metaOf(answer)["transport"], transportsOf(metaOf(answer))],
      ["http", "a:ws:ok"],
    );
    const client = await open("/ws/rpc/priority/1?include_meta=body");
    client.send(call(7, "eth_call"));
    const { id, result, svc_meta: meta } = await client.next();
    assert.deepEqual([id, result, meta.transport, transportsOf(meta)], [7, "0xa", "ws", "a:ws:ok"]);
  },
);

test("integers, numbers, escapes, key order and ids survive byte for byte over a provider's socket", async (t) => {
  const { nodes, open, service } = await socketFixture(t, ["ws"], { set: QUIET });
  const odd =
    '{ "b" :12345678901234567890123, "a":[1e3,-0.0, 1.50],"b2":"\\u00e9\\/\\ud83d\\ude00 é" }';
  nodes[0]?.ws.script((asked, reply) => {
    if (asked.method === "eth_call") reply.result(odd);
    else nodes[0]?.sane(asked, reply);
  });
  const client = await open();
  for (const id of [
    "1",
    "-0",
    "98765432109876543210987654321",
    '"x\\u0041\\n"',
    '"é"',
    "null",
    '""',
  ]) {
    const text = `{"jsonrpc":"2.0","id":${id},"result":${odd}}`;
    const params = '[{"data":"0x", "n":123456789012345678901234567890,"z":1e400}, "\\u0061"]';
    const question = `{"jsonrpc":"2.0","method":"eth_call","params":${params},"id":${id}}`;
    client.send(question);
    await client.next();
    assert.equal(client.texts.at(-1), text);
    assert.equal((await service.post("/rpc/1", question)).text, text);
    const { body, id: wireId } = nodes[0]?.ws.asked.at(-1) ?? { body: "", id: "" };
    assert.equal(
      body,
      question.replace(`"id":${id}`, () => `"id":${wireId}`),
    );
  }
});

test("an answer of five megabytes over a provider's socket reaches callers of either kind whole", async (t) => {
  const { nodes, open, call: post } = await socketFixture(t, ["ws"], { set: QUIET });
  const long = `"0x${"ab".repeat(2_500_000)}"`;
  nodes[0]?.ws.script((asked, reply) => {
    if (asked.method === "eth_call") reply.result(long);
    else nodes[0]?.sane(asked, reply);
  });
  const client = await open();
  client.send(call(1, "eth_call"));
  await client.next();
  assert.ok(client.texts[0] === `{"jsonrpc":"2.0","id":1,"result":${long}}`);
  assert.ok((await post("eth_call")).text.endsWith(`"result":${long}}`));
});

test("a provider's own error rules hold on its socket", async (t) => {
  const rules = {
    capabilities: {
      error_rules: [{ code: 30, message_contains: ["free tier"], category: "rate_limit" }],
    },
  };
  const {
    nodes,
    service,
    call: post,
  } = await socketFixture(t, ["ws", "ws"], { providers: [rules] });
  const [a] = nodes;
  a?.ws.script((asked, reply) => {
    if (asked.method === "eth_gasPrice")
      reply.error('{"code":30,"message":"Not on the FREE TIER"}');
    else a.sane(asked, reply);
  });
  assert.equal(walked(await post("eth_gasPrice")), "a:rate_limit b:ok");
  const {
    rate_limited_for_ms: limitedMs,
    circuit_breaker_state: state,
    outcomes,
  } = await transportOf(service, "a", "ws");
  assert.ok(limitedMs > 5_000 && limitedMs <= 30_000);
  assert.deepEqual([state, outcomes.rate_limited, outcomes.failed], ["closed", 1, 0]);
  assert.equal(walked(await post("eth_gasPrice")), "b:ok");
});

test("calls fail over from a provider's socket to another's HTTP and the other way round", async (t) => {
  const { nodes, open } = await socketFixture(t, ["ws", "http", "ws"]);
  const [a, b] = nodes;
  const client = await open("/ws/rpc/priority/1?include_meta=body");
  const ask = async (): Promise<string> => {
    client.send(call(1, "eth_call"));
    const { result, svc_meta: meta } = await client.next();
    return `${result} ${transportsOf(meta)}`;
  };
  const broken = '{"code":-32603,"message":"internal error"}';
  assert.equal(await ask(), "0xa a:ws:ok");
  a?.ws.script((asked, reply) =>
    asked.method === "eth_call" ? reply.error(broken) : a.sane(asked, reply),
  );
  assert.equal(await ask(), "0xb a:ws:server b:http:ok");
  b?.http.script((_, reply) => reply.reset());
  assert.equal(await ask(), "0xc a:ws:server b:http:network c:ws:ok");
  a?.ws.script(a.sane);
  assert.equal(await ask(), "0xa a:ws:ok");
});

test(
  "a connection that breaks under calls: each read is answered by the next provider, and a " +
    "transaction is handed to it",
  async (t) => {
    const { nodes, open } = await socketFixture(t, ["ws", "ws"], { set: QUIET });
    const [a, b] = nodes;
    const slow = ["eth_call", "eth_sendRawTransaction"];
    a?.ws.script((asked, reply) => void (slow.includes(asked.method) || a.sane(asked, reply)));
    b?.ws.script((asked, reply) =>
      asked.method === "eth_sendRawTransaction" ? reply.result(`"${HASH}"`) : b.sane(asked, reply),
    );
    const client = await open();
    for (let id = 1; id <= 20; id++) client.send(call(id, "eth_call", [id]));
    client.send(call(21, "eth_sendRawTransaction", [RAW]));
    await until(
      "the calls",
      () => a?.ws.count("eth_call") === 20 && a.ws.count("eth_sendRawTransaction") === 1,
    );
    a?.ws.drop();
    const answers = new Map<number, { readonly result?: string }>();
    while (answers.size < 21) {
      const answer = await client.next();
      answers.set(answer.id, answer);
    }
    for (let id = 1; id <= 20; id++) assert.equal(answers.get(id)?.result, "0xb");
    assert.equal(answers.get(21)?.result, HASH);
    assert.equal(b?.ws.count("eth_sendRawTransaction"), 1);
  },
);

test(
  "a transaction that a socket could not take goes to the next provider, one that is known is " +
    "a success",
  async (t) => {
    const { nodes, open } = await socketFixture(t, ["ws", "ws"], { set: QUIET });
    const [a, b] = nodes;
    await a?.ws.close();
    b?.ws.script((asked, reply) => {
      if (asked.method === "eth_sendRawTransaction")
        reply.error('{"code":-32000,"message":"already known"}');
      else b.sane(asked, reply);
    });
    const client = await open();
    client.send(call(1, "eth_sendRawTransaction", [RAW]));
    assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: HASH });
    assert.equal(b?.ws.count("eth_sendRawTransaction"), 1);
  },
);

test(
  "each transport has a circuit of its own: with the one over HTTP open a provider is served " +
    "over its socket",
  async (t) => {
    const { nodes, open, service, call: post } = await socketFixture(t, ["both"], { set: QUIET });
    const [a] = nodes;
    a?.http.script((_, reply) => reply.reset());
    const broken: string[] = [];
    for (let n = 0; n < 5; n++) broken.push(walked(await post("eth_call")));
    assert.deepEqual(new Set(broken), new Set(["a:network"]));
    assert.equal(transportsOf(metaOf(await post("eth_call"))), "a:ws:ok");
    const client = await open();
    client.send(call(1, "eth_call"));
    assert.equal((await client.next()).result, "0xa");
    const [http, ws] = [
      await transportOf(service, "a", "http"),
      await transportOf(service, "a", "ws"),
    ];
    assert.deepEqual(
      [
        http.circuit_breaker_state,
        http.outcomes.failed,
        ws.circuit_breaker_state,
        ws.outcomes.delivered,
      ],
      ["open", 5, "closed", 2],
    );
    const { text } = await service.get("/metrics");
    const line = (name: string, transport: string, value: string): RegExp =>
      new RegExp(`^${name}\\{[^}]*provider="a",transport="${transport}"[^}]*\\} ${value}$`, "m");
    assert.match(text, line("svc_circuit_breaker_state", "http", "2"));
    assert.match(text, line("svc_circuit_breaker_state", "ws", "0"));
    assert.match(text, line("svc_upstream_socket_open", "ws", "1"));
  },
);

test(
  "a socket that is accepted and then closed with 1000 has failed: three times open its " +
    "circuit, and HTTP goes on",
  async (t) => {
    const runtime = simulatedWorld(6);
    t.after(() => void setInterval(() => runtime.advance(500), 5).unref());
    const {
      nodes,
      service,
      call: post,
    } = await socketFixture(
      t,
      ["both", "both"],
      { set: { monitoring: { probe_interval_ms: 3_600_000 } } },
      runtime,
    );
    const [a] = nodes;
    a?.ws.script((_, reply) => reply.peer.close(1000, "bye"));
    for (const peer of a?.ws.peers() ?? []) peer.close(1000, "bye");
    await until("the open circuit", async () => {
      runtime.advance(100);
      return (await transportOf(service, "a", "ws")).circuit_breaker_state === "open";
    });
    assert.equal(a?.ws.opened(), 3);
    assert.equal((await transportOf(service, "a", "http")).circuit_breaker_state, "closed");
    assert.equal(transportsOf(metaOf(await post("eth_call"))), "a:http:ok");
  },
);

const REFUSED: readonly (readonly [
  status: number,
  headers: Record<string, string>,
  check: (ws: Record<string, unknown>) => boolean,
])[] = [
  [
    429,
    { "retry-after": "90" },
    (ws) => Number(ws["rate_limited_for_ms"]) > 80_000 && ws["circuit_breaker_state"] !== "open",
  ],
  [401, {}, (ws) => ws["cordoned"] === "auth"],
  [503, {}, (ws) => ws["circuit_breaker_state"] === "open"],
];
for (const [status, headers, check] of REFUSED)
  test(
    `a handshake that is refused with ${status} counts on the socket as that status does over ` +
      "HTTP",
    async (t) => {
      const runtime = simulatedWorld(7);
      t.after(() => void setInterval(() => runtime.advance(500), 5).unref());
      const { nodes, open, service } = await socketFixture(
        t,
        ["ws", "ws"],
        { set: { monitoring: { probe_interval_ms: 3_600_000 } } },
        runtime,
      );
      const [a] = nodes;
      a?.ws.refuse({ status, headers, body: "no" });
      a?.ws.drop();
      const refused = async (): Promise<boolean> => {
        runtime.advance(200);
        return check(await transportOf(service, "a", "ws"));
      };
      await until("the refusal", refused);
      assert.equal((await transportOf(service, "a", "ws")).calls, 0, "it was no call");
      const client = await open();
      client.send(call(1, "eth_call"));
      assert.equal((await client.next()).result, "0xb");
      await subscribe(client, "newPendingTransactions");
      assert.equal(nodes[1]?.ws.subscriptions("newPendingTransactions"), 1);
    },
  );

test(
  "a provider that refuses a subscription is passed over, and when all refuse the real error " +
    "is told",
  async (t) => {
    const { nodes, open, service } = await socketFixture(t, ["ws", "ws"], { set: QUIET });
    const [a, b] = nodes;
    const error = '{"code":-32000,"message":"notifications not supported"}';
    const refuse = (node: typeof a): void =>
      node?.ws.script((asked, reply) =>
        asked.method === "eth_subscribe" ? reply.error(error) : node.sane(asked, reply),
      );
    refuse(a);
    const client = await open();
    await subscribe(client, "newPendingTransactions");
    assert.deepEqual([a?.ws.count("eth_subscribe"), b?.ws.count("eth_subscribe")], [1, 1]);
    refuse(b);
    client.send(call(9, "eth_subscribe", ["syncing"]));
    assert.deepEqual((await client.next()).error, JSON.parse(error));
    assert.equal((await transportOf(service, "a", "ws")).outcomes.failed, 0);
  },
);
