// Providers that lie on their sockets, or break them: bounded, each caller still hears its own
// answers and every event once, and nobody else is affected.
import assert from "node:assert/strict";
import { test } from "node:test";
import { headerText } from "../fakes/chain.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { until, walked } from "../fakes/service-fixture.ts";
import {
  type SocketNode,
  socketFixture,
  subscribe,
  subscriptionsOf,
  told,
  transportOf,
} from "../fakes/socket-fixture.ts";
import { notification, type SocketScript } from "../fakes/socket-upstream.ts";
import { type Client, call } from "../web/socket/socket-fixture.ts";

const QUIET = { monitoring: { socket_heads: false } };
/** Probes come at the start and then not again. */
const ONE_PROBE = 3_600_000;

/** A script for some methods; the rest is answered as it should be. */
function lie(node: SocketNode | undefined, methods: readonly string[], script: SocketScript): void {
  node?.ws.script((asked, reply) =>
    (methods.includes(asked.method) ? script : node.sane)(asked, reply),
  );
}

async function answersTo(client: Client, count: number): Promise<ReadonlyMap<unknown, unknown>> {
  const answers = new Map<unknown, unknown>();
  while (answers.size < count) {
    const { id, result, error } = await client.next();
    assert.equal(answers.has(id), false, `${id} is answered twice`);
    answers.set(id, result ?? error);
  }
  return answers;
}

test(
  "answers given twice, to nobody, without an id, in arrays or as junk reach nobody: each " +
    "caller hears its own answer, once",
  async (t) => {
    const { nodes, open, service, listening } = await socketFixture(t, ["ws"]);
    const [a] = nodes;
    await listening();
    lie(a, ["eth_call"], ({ id, params }, reply) => {
      const wrong = (wrongId: string): string => `{"jsonrpc":"2.0",${wrongId}"result":"0xbad"}`;
      for (const frame of [
        "",
        "{",
        "junk",
        "[]",
        `[${wrong(`"id":${id},`)}]`,
        wrong(""),
        wrong('"id":null,'),
        wrong('"id":987654321,'),
        wrong(`"id":"${id}",`),
      ])
        reply.peer.send(frame);
      reply.peer.send(notification("0xdead", '"0xbad"'));
      reply.peer.send(`{"jsonrpc":"2.0","id":${id}}`);
      reply.result(JSON.stringify(params));
      reply.result('"0xbad"');
    });
    const [client, other] = [await open(), await open()];
    for (let n = 0; n < 20; n++) {
      client.send(call(n, "eth_call", [n]));
      other.send(call(n, "eth_call", [n + 100]));
    }
    const [answers, others] = [await answersTo(client, 20), await answersTo(other, 20)];
    for (let n = 0; n < 20; n++)
      assert.deepEqual([answers.get(n), others.get(n)], [[n], [n + 100]]);
    assert.equal(a?.ws.opened(), 1);
    const { socket, outcomes } = await transportOf(service, "a", "ws");
    assert.ok(socket.stray_frames >= 40 * 10, `${socket.stray_frames}`);
    assert.deepEqual([outcomes.delivered, outcomes.failed], [40, 0]);
  },
);

test(
  "a head that overtakes its acknowledgement is told behind it, and events of unknown " +
    "subscriptions are told to nobody",
  async (t) => {
    const { nodes, open, chain, mine, listening } = await socketFixture(t, ["ws"], { set: QUIET });
    const [a] = nodes;
    await listening();
    lie(a, ["eth_subscribe"], (_, reply) => {
      reply.peer.send(notification("0xfeed", headerText(chain.mine())));
      reply.result('"0xfeed"');
    });
    const client = await open();
    const id = await subscribe(client, "newHeads");
    assert.notEqual(id, "0xfeed");
    const early = chain.tip();
    assert.deepEqual(await told(client, id, 1), [JSON.parse(headerText(early))]);
    const next = mine();
    for (const stranger of ["0xdead", "", id]) a?.ws.send(notification(stranger, headerText(next)));
    a?.ws.send(notification("0xfeed", headerText(early)));
    a?.ws.send(notification("0xfeed", headerText(next)));
    a?.ws.send(notification("0xfeed", headerText(next)));
    const last = mine();
    a?.ws.send(notification("0xfeed", headerText(last)));
    const heads = await told(client, id, 2);
    assert.deepEqual(
      heads.map((it) => it.hash),
      [next.hash, last.hash],
    );
  },
);

test("what is no head on a subscription to heads is told to nobody, and the stream goes on", async (t) => {
  const { nodes, open, mine, listening } = await socketFixture(t, ["ws"]);
  await listening();
  const client = await open();
  const id = await subscribe(client, "newHeads");
  for (const junk of [
    "null",
    "7",
    '"0x1"',
    "{}",
    "[]",
    '{"number":"0x65"}',
    '{"number":"junk","hash":1,"parentHash":{}}',
  ])
    nodes[0]?.ws.notify("newHeads", junk);
  const block = mine();
  assert.equal((await told(client, id, 1))[0].hash, block.hash);
});

test(
  "a flood of frames that belong to nothing costs that provider its connection: calls and " +
    "events go on at the next",
  async (t) => {
    const { nodes, open, mine, service, listening } = await socketFixture(t, ["ws", "ws"]);
    const [a] = nodes;
    await listening();
    const client = await open();
    const id = await subscribe(client, "newHeads");
    const first = mine();
    for (let n = 0; n < 1_001; n++) a?.ws.send("{}");
    await until("the failover", async () => (await subscriptionsOf(service)).failovers.lost === 1);
    const second = mine("b");
    assert.deepEqual(
      (await told(client, id, 2)).map((it) => it.hash),
      [first.hash, second.hash],
    );
    client.send(call(1, "eth_call"));
    assert.match((await client.next()).result, /^0x[ab]$/);
    assert.ok((await transportOf(service, "a", "ws")).socket.stray_frames > 1_000);
  },
);

const BREAKS: readonly (readonly [name: string, bytes: Buffer])[] = [
  [
    "a frame that says it is a gibibyte long",
    Buffer.from([0x81, 0x7f, 0, 0, 0, 0, 0x40, 0, 0, 0, 0x7b]),
  ],
  ["text that is not UTF-8", Buffer.from([0x81, 4, 0x22, 0xff, 0xfe, 0x22])],
  ["bytes that are no frame", Buffer.from("HTTP/1.1 200 OK\r\n\r\n")],
  ["a compressed frame that was not agreed on", Buffer.from([0xc1, 1, 0x31])],
];
for (const [name, bytes] of BREAKS)
  test(
    `${name} ends that provider's connection: its calls are answered and its events told by the ` +
      "next",
    async (t) => {
      const { nodes, open, mine, listening } = await socketFixture(t, ["ws", "ws"]);
      const [a] = nodes;
      await listening();
      lie(a, ["eth_call"], () => {});
      const client = await open();
      const id = await subscribe(client, "newHeads");
      client.send(call(1, "eth_call"));
      await until("the call", () => a?.ws.count("eth_call") === 1);
      for (const peer of a?.ws.peers() ?? []) peer.raw(bytes);
      assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: "0xb" });
      const block = mine("b");
      assert.equal((await told(client, id, 1))[0].hash, block.hash);
    },
  );

test(
  "an answer from an HTTP provider that is not UTF-8 is no answer: the next one is asked and " +
    "the caller's socket lives",
  async (t) => {
    const { nodes, open, call: post } = await socketFixture(t, ["http", "http"]);
    const wrapped = (id: string, member: string): Buffer => {
      const [head = "", tail = ""] = `{"jsonrpc":"2.0","id":${id},${member}}`.split("?");
      return Buffer.concat([Buffer.from(head), Buffer.from([0xff, 0xfe]), Buffer.from(tail)]);
    };
    const client = await open("/ws/rpc/priority/1");
    for (const member of [
      '"result":"?"',
      '"error":{"code":3,"message":"execution reverted ?"}',
      `"result":"${"x".repeat(90_000)}?"`,
    ]) {
      nodes[0]?.http.script(({ id }, reply) => reply.body(wrapped(id, member)));
      client.send(call(1, "eth_call"));
      assert.deepEqual(
        await client.next(),
        { jsonrpc: "2.0", id: 1, result: "0xb" },
        member.slice(0, 60),
      );
    }
    nodes[0]?.http.script(({ id }, reply) => reply.body(wrapped(id, '"result":"?"')));
    client.send([call(1, "eth_call"), call(2, "eth_chainId")]);
    assert.deepEqual(
      (await client.next()).map((it: { result: unknown }) => it.result),
      ["0xb", "0x1"],
    );
    const answer = await post("eth_call");
    assert.equal(answer.json.result, "0xb");
  },
);

test("a provider whose socket is on another chain is excluded on its socket only", async (t) => {
  const settings = { set: { monitoring: { probe_interval_ms: 50 } } };
  const {
    nodes,
    open,
    service,
    listening,
    call: post,
  } = await socketFixture(t, ["both", "both"], settings);
  const [a, b] = nodes;
  a?.ws.says({ chainId: 5 });
  await listening();
  await until(
    "the probe",
    async () => (await transportOf(service, "a", "ws")).cordoned === "wrong_chain",
  );
  assert.equal((await transportOf(service, "a", "http")).cordoned, null);
  assert.equal(walked(await post("eth_call")), "a:ok");
  a?.http.script((_, reply) => reply.reset());
  assert.equal(walked(await post("eth_call")), "a:network b:ok");
  const client = await open();
  await subscribe(client, "newPendingTransactions");
  assert.deepEqual(
    [a?.ws.subscriptions("newPendingTransactions"), b?.ws.subscriptions("newPendingTransactions")],
    [0, 1],
  );
  a?.ws.says({ chainId: 1 });
  await until("its return", async () => (await transportOf(service, "a", "ws")).cordoned === null);
});

test("a provider that never acknowledges a subscription is left for the next one in time", async (t) => {
  const runtime = simulatedWorld(3);
  t.after(() => void setInterval(() => runtime.advance(500), 5).unref());
  const { nodes, open, mine, service } = await socketFixture(
    t,
    ["ws", "ws"],
    { set: { monitoring: { socket_heads: false, probe_interval_ms: ONE_PROBE } } },
    runtime,
  );
  const [a, b] = nodes;
  lie(a, ["eth_subscribe"], () => {});
  const client = await open();
  client.send(call("sub", "eth_subscribe", ["newHeads"]));
  await until("the question", () => a?.ws.count("eth_subscribe") === 1);
  runtime.advance(6_500);
  const { result: id } = await client.next();
  assert.deepEqual([a?.ws.count("eth_subscribe"), b?.ws.subscriptions("newHeads")], [3, 1]);
  assert.equal((await transportOf(service, "a", "ws")).outcomes.failed, 1);
  const block = mine();
  assert.equal((await told(client, id, 1))[0].hash, block.hash);
});

test(
  "a connection that is silent and answers no ping is given up, and its subscriptions go on at " +
    "the next provider",
  async (t) => {
    const runtime = simulatedWorld(4);
    t.after(() => void setInterval(() => runtime.advance(500), 5).unref());
    const set = {
      monitoring: { probe_interval_ms: ONE_PROBE, socket_heads: false },
      subscriptions: { new_heads_timeout_ms: 600_000 },
    };
    const { nodes, open, mine, service, listening } = await socketFixture(
      t,
      ["ws", "ws"],
      { set },
      runtime,
    );
    const [a, b] = nodes;
    await listening();
    a?.ws.pongs(false);
    const client = await open();
    const pinned = await open("/ws/rpc/1/b");
    const id = await subscribe(client, "newHeads");
    const first = mine();
    assert.equal((await told(client, id, 1))[0].hash, first.hash);
    for (let n = 0; n < 25; n++) {
      runtime.advance(3_000);
      // What was pinged has had time to answer once a call on the other socket has been answered.
      pinned.send(call(n, "eth_call"));
      assert.equal((await pinned.next()).result, "0xb");
    }
    await until("the failover", async () => (await subscriptionsOf(service)).failovers.lost === 1);
    const second = mine("b");
    assert.equal((await told(client, id, 1))[0].hash, second.hash);
    assert.equal(b?.ws.opened(), 1);
  },
);

test(
  "the only provider closes an idle connection on which nothing ever came: the subscription " +
    "goes on over the next one, and what was missed is told",
  async (t) => {
    const { nodes, chain, open, mine, listening } = await socketFixture(t, ["ws"], {
      set: { monitoring: { probe_interval_ms: ONE_PROBE, socket_heads: false } },
    });
    const [a] = nodes;
    await listening();
    const client = await open();
    const heads = await subscribe(client, "newHeads");
    for (const peer of a?.ws.peers() ?? []) peer.close(1001);
    await until("the end of the connection", () => a?.ws.peers().length === 0);
    const missed = [mine("none"), mine("none")];
    a?.follow();
    await until("a new subscription", () => a?.ws.subscriptions("newHeads") === 1);
    const last = mine();
    assert.deepEqual(
      (await told(client, heads, 3)).map((it) => it.hash),
      [...missed, last].map((it) => it.hash),
    );
    assert.equal(chain.tip().hash, last.hash);
  },
);
