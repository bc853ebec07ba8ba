// The whole surface of callers' sockets over the real service: every URL form, refusals, batches,
// subscriptions, pins, bounds, evidence, and the drain.
import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { WebSocket } from "ws";
import { URL_FORMS } from "../../src/web/rpc/target.ts";
import { headerText } from "../fakes/chain.ts";
import { startProcess } from "../fakes/process.ts";
import { configText, type Service } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import {
  type SocketNode,
  socketFixture,
  subscribe,
  subscriptionsOf,
  told,
} from "../fakes/socket-fixture.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";
import { bare, type Client, call, frame, open } from "../web/socket/socket-fixture.ts";

const UPGRADE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": `${"A".repeat(22)}==`,
};

/** Holds the answers to a method until they are released. */
function hold(node: SocketNode | undefined, method: string): () => void {
  const held: (() => void)[] = [];
  let open = true;
  node?.ws.script((asked, reply) => {
    if (asked.method === method && open) held.push(() => node.sane(asked, reply));
    else node.sane(asked, reply);
  });
  return () => {
    open = false;
    for (const release of held) release();
  };
}

interface Refused {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** What a handshake is told when it is not accepted. */
function handshake(
  { port }: Service,
  path: string,
  headers: Readonly<Record<string, string>> = UPGRADE,
  method = "GET",
): Promise<Refused> {
  return new Promise((resolve, reject) => {
    const asking = request(
      { port, host: "127.0.0.1", path, method, headers, agent: false },
      (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => {
          text += chunk.toString();
        });
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        );
      },
    );
    asking.on("upgrade", (_, socket) => {
      socket.destroy();
      reject(new Error(`${path} was accepted`));
    });
    asking.on("error", reject);
    asking.end();
  });
}

/** Every answer to requests with these ids, in whatever order. */
async function answersOf(client: Client, count: number) {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  const answers = new Map<unknown, any>();
  while (answers.size < count) {
    const answer = await client.next();
    answers.set(answer.id, answer);
  }
  return answers;
}

test("every URL form but that of paid calls serves a socket under /ws, by chain name, alias and id", async (t) => {
  const { open } = await socketFixture(t, ["ws"]);
  for (const form of URL_FORMS.filter((it) => !it.startsWith("/rpc/session/")))
    for (const chain of ["ethereum", "mainnet", "1"]) {
      const path = form
        .replace("{profile}", "team")
        .replace("{provider}", "a")
        .replace("{strategy}", "fastest")
        .replace("{chain}", chain);
      const client = await open(`/ws${path}`);
      client.send(call(form, "eth_call"));
      assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: form, result: "0xa" });
      client.ws.terminate();
    }
});

test("a handshake that leads nowhere gets the status and the JSON that a POST to the same path gets", async (t) => {
  const { service } = await socketFixture(t, ["ws"]);
  const paths = [
    "/rpc/9",
    "/rpc/priority/nowhere",
    "/rpc/profile/nobody/1",
    "/rpc/1/nobody",
    "/rpc/provider/nobody/1",
    "/rpc/1?strategy=best",
  ];
  for (const path of [
    ...paths,
    "/rpc/1?include_meta=all",
    "/rpc/k/svc_ak_0/fastest/1",
    "/rpc/%ff",
  ]) {
    const [refused, posted] = [
      await handshake(service, `/ws${path}`),
      await service.post(path, call(1)),
    ];
    assert.deepEqual(
      [refused.status, JSON.parse(refused.text)],
      [posted.status, posted.json],
      path,
    );
    assert.ok(refused.status >= 400 && posted.json.error.data.code !== undefined, path);
    assert.match(String(refused.headers["x-svc-request-id"]), /^req-/);
    assert.match(String(refused.headers["content-type"]), /^application\/json/);
  }
  const headers = await handshake(service, "/ws/rpc/1?include_meta=headers");
  assert.deepEqual(
    [headers.status, JSON.parse(headers.text).error.data.code],
    [400, "invalid_field"],
  );
});

test("a plain GET is told to upgrade, and a POST that offers another upgrade is served as a POST", async (t) => {
  const { service } = await socketFixture(t, ["ws"]);
  const plain = await handshake(service, "/ws/rpc/1", {});
  assert.deepEqual(
    [plain.status, plain.headers["upgrade"], JSON.parse(plain.text).error.data.code],
    [426, "websocket", "upgrade_required"],
  );
  const body = JSON.stringify(call(1, "eth_call"));
  const h2c = await new Promise<string>((resolve, reject) => {
    const headers = {
      connection: "Upgrade, HTTP2-Settings",
      upgrade: "h2c",
      "http2-settings": "AAMAAABkAAQAAP__",
      "content-type": "application/json",
    };
    const asking = request(
      { port: service.port, host: "127.0.0.1", path: "/rpc/1", method: "POST", headers },
      (response) => {
        response.on("data", (chunk: Buffer) => resolve(`${response.statusCode} ${chunk}`));
      },
    );
    asking.on("error", reject).end(body);
  });
  assert.equal(h2c, '200 {"jsonrpc":"2.0","id":1,"result":"0xa"}');
});

test(
  "binary messages that hold UTF-8 are served like text: calls, batches and subscriptions, " +
    "answered in text; others get an error",
  async (t) => {
    const { nodes, open, mine } = await socketFixture(t, ["ws"]);
    const client = await open();
    const frames: boolean[] = [];
    client.ws.on("message", (_, binary: boolean) => frames.push(binary));
    const sendBinary = (value: unknown): void => client.ws.send(Buffer.from(JSON.stringify(value)));
    sendBinary(call(1, "eth_call", ["é😀"]));
    assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: "0xa" });
    sendBinary([call(2, "eth_call"), call(3, "eth_chainId")]);
    assert.deepEqual(
      (await client.next()).map((it: { result: string }) => it.result),
      ["0xa", "0x1"],
    );
    sendBinary(call(4, "eth_subscribe", ["newHeads"]));
    const { result: id } = await client.next();
    const { hash } = mine();
    assert.equal((await told(client, id, 1))[0].hash, hash);
    for (const bytes of [
      Buffer.from('{"jsonrpc":"2.0","id":5,"method":"\xff"}', "latin1"),
      Buffer.from([0xed, 0xa0, 0x80]),
      Buffer.alloc(0),
    ]) {
      client.ws.send(bytes);
      const { id: none, error } = await client.next();
      assert.deepEqual([none, error.code, error.data.code], [null, -32700, "parse_error"]);
    }
    sendBinary(call(6, "eth_call"));
    assert.equal((await client.next()).id, 6);
    assert.ok(frames.every((binary) => !binary));
    assert.equal(nodes[0]?.ws.count("eth_call"), 3);
  },
);

test(
  "junk in text and in binary messages, wrong ids and notifications harm nobody: the socket " +
    "goes on",
  async (t) => {
    const { nodes, open } = await socketFixture(t, ["ws"]);
    const client = await open();
    client.send("junk");
    client.ws.send(Buffer.from("junk"));
    client.send({ jsonrpc: "2.0", id: [1], method: "eth_call" });
    client.send({ jsonrpc: "2.0", id: 7, method: "eth_call", params: "0x" });
    client.send({ jsonrpc: "2.0", method: "eth_gasPrice" });
    client.send(call(2, "eth_call"));
    const codes = [];
    for (let n = 0; n < 4; n++) codes.push((await client.next()).error.code);
    assert.deepEqual(codes, [-32700, -32700, -32600, -32600]);
    assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 2, result: "0xa" });
    assert.equal(nodes[0]?.ws.count("eth_gasPrice"), 1, "a notification is executed");
  },
);

test("a subscription inside a batch: its events wait for the batch's answer, and none is lost", async (t) => {
  const { nodes, open, mine } = await socketFixture(t, ["ws"]);
  const release = hold(nodes[0], "eth_call");
  const client = await open();
  client.send([
    call(1, "eth_subscribe", ["newHeads"]),
    call(2, "eth_call"),
    call(3, "eth_subscribe", ["nothing"]),
  ]);
  await until("the subscription", async () => nodes[0]?.ws.count("eth_call") === 1);
  const other = await open();
  const id = await subscribe(other, "newHeads");
  const blocks = [mine(), mine(), mine()];
  await told(other, id, 3);
  assert.deepEqual(client.texts, []);
  release();
  const [first, second, third] = await client.next();
  assert.deepEqual([second.result, third.error.data.code], ["0xa", "invalid_field"]);
  const heads = await told(client, first.result, 3);
  assert.deepEqual(
    heads.map((it) => it.hash),
    blocks.map((it) => it.hash),
  );
});

test(
  "heads and logs of a real subscription arrive as the node wrote them, filtered, with removed " +
    "logs in their order",
  async (t) => {
    const { nodes, open, mine, chain, listening } = await socketFixture(t, ["ws"]);
    await listening();
    const [client, logs] = [await open(), await open()];
    const heads = await subscribe(client, "newHeads");
    const id = await subscribe(logs, "logs", {});
    const first = mine();
    const second = mine();
    await told(client, heads, 2);
    assert.deepEqual(
      client.texts.slice(1),
      [first, second].map((it) => event(heads, headerText(it))),
    );
    const told1 = [...first.logs, ...second.logs].length;
    assert.ok(told1 > 0);
    const seen = await told(logs, id, told1);
    assert.ok(seen.every((it) => it.removed === false));
    chain.reorg(1, 1);
    for (const it of nodes) it.follow();
    const branch = [chain.byHash(chain.tip().parentHash), chain.tip()].flatMap(
      (it) => it?.logs ?? [],
    );
    const back = await told(logs, id, second.logs.length + branch.length);
    assert.deepEqual(
      back.map((it) => it.removed),
      [...second.logs.map(() => true), ...branch.map(() => false)],
    );
  },
);

function event(subscription: string, result: string): string {
  return `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${subscription}","result":${result}}}`;
}

test(
  "the thirty-third request waits until another one ends, also where it subscribes; the hundred " +
    "and twenty-ninth subscription is refused with its id",
  async (t) => {
    const { nodes, open } = await socketFixture(t, ["ws"]);
    const [node] = nodes;
    assert.ok(node !== undefined);
    /** Calls that reached the node, in order, with what answers them. */
    const asked: { readonly param: unknown; readonly answer: () => void }[] = [];
    node.ws.script((it, reply) => {
      if (it.method !== "eth_call") return node.sane(it, reply);
      const [param] = it.params as readonly unknown[];
      asked.push({ param, answer: () => node.sane(it, reply) });
    });
    const client = await open();
    for (let id = 1; id <= 34; id++) client.send(call(id, "eth_call", [id]));
    client.send(call(35, "eth_subscribe", ["newPendingTransactions"]));
    client.send(call(36, "eth_call", [36]));
    await until("the calls in flight", () => asked.length === 32);
    asked[3]?.answer();
    assert.equal((await client.next()).id, 4);
    await until("the thirty-third", () => asked.length === 33);
    asked[4]?.answer();
    assert.equal((await client.next()).id, 5);
    await until("the thirty-fourth", () => asked.length === 34);
    assert.equal(node.ws.subscriptions("newPendingTransactions"), 0);
    asked[0]?.answer();
    const [first, second] = [await client.next(), await client.next()];
    assert.deepEqual([first.id, second.id], [1, 35]);
    await until("the last", () => asked.length === 35);
    assert.deepEqual(
      asked.map(({ param }) => param),
      [...Array.from({ length: 34 }, (_, n) => n + 1), 36],
    );
    for (const n of [1, 2, ...Array.from({ length: 30 }, (_, n) => n + 5)]) asked[n]?.answer();
    const answers = await answersOf(client, 32);
    assert.ok([...answers.values()].every(({ result }) => result === "0xa"));
    client.send(call(37, "eth_unsubscribe", [second.result]));
    assert.equal((await client.next()).result, true);
    const ids = new Set<string>();
    for (let n = 0; n < 128; n++) ids.add(await subscribe(client, "newPendingTransactions"));
    assert.equal(ids.size, 128);
    assert.equal(
      nodes[0]?.ws.subscriptions("newPendingTransactions"),
      1,
      "they share one upstream",
    );
    client.send(call(129, "eth_subscribe", ["newHeads"]));
    const { id, error } = await client.next();
    assert.deepEqual([id, error.data.code], [129, "rate_limit_exceeded"]);
    const [gone = ""] = ids;
    client.send(call(130, "eth_unsubscribe", [gone]));
    assert.equal((await client.next()).result, true);
    await subscribe(client, "newHeads");
  },
);

test("only the socket that has a subscription can end it, and nothing of it comes afterwards", async (t) => {
  const { nodes, open } = await socketFixture(t, ["ws"]);
  const [client, other] = [await open(), await open()];
  const [id, others] = [
    await subscribe(client, "newPendingTransactions"),
    await subscribe(other, "newPendingTransactions"),
  ];
  other.send(call(1, "eth_unsubscribe", [id]));
  assert.equal((await other.next()).error.data.code, "subscription_not_found");
  client.send(call(2, "eth_unsubscribe", [id]));
  assert.equal((await client.next()).result, true);
  nodes[0]?.ws.notify("newPendingTransactions", '"0x01"');
  assert.deepEqual(await told(other, others, 1), ["0x01"]);
  client.send(call(3, "eth_unsubscribe", [id]));
  assert.deepEqual((await client.next()).error.data.code, "subscription_not_found");
});

test("a client that never reads is closed with 1013 while others get every event", async (t) => {
  const { nodes, open, service } = await socketFixture(t, ["ws"], {
    extra: { limits: { max_socket_queue_bytes: 1_000_000 } },
  });
  const fast = await open();
  const id = await subscribe(fast, "newPendingTransactions", true);
  const slow = await bare(t, service.port, "/ws/rpc/1");
  slow.write(frame(1, JSON.stringify(call(1, "eth_subscribe", ["newPendingTransactions", true]))));
  await until("both", async () => (await subscriptionsOf(service)).subscribers === 2);
  slow.pause();
  const filler = "f".repeat(400_000);
  const closed = async (): Promise<boolean> =>
    /^svc_socket_closes_total\{code="1013"\} 1$/m.test((await service.get("/metrics")).text);
  let sent = 0;
  while (sent < 200 && !(await closed())) {
    nodes[0]?.ws.notify(
      "newPendingTransactions",
      `{"hash":"0x${String(++sent).padStart(64, "0")}","input":"0x${filler}"}`,
    );
    const [transaction] = await told(fast, id, 1);
    assert.deepEqual(
      [Number(transaction.hash), transaction.input.length],
      [Number(`0x${String(sent)}`), filler.length + 2],
    );
  }
  // It is counted once the client has not answered the close for a second.
  await until(`the close after ${sent} transactions`, closed);
  assert.equal((await subscriptionsOf(service)).subscribers, 1);
  fast.send(call(9, "eth_call"));
  assert.equal((await fast.next()).result, "0xa");
});

test(
  "evidence comes in the body or in a message of its own, with the provider, the transports " +
    "and the attempts",
  async (t) => {
    const { nodes, open, call: post } = await socketFixture(t, ["ws", "http"]);
    const [a] = nodes;
    a?.ws.script((asked, reply) =>
      asked.method === "eth_call"
        ? reply.error('{"code":-32603,"message":"no"}')
        : a.sane(asked, reply),
    );
    const client = await open("/ws/rpc/priority/1?include_meta=body");
    client.send(call(1, "eth_call"));
    const { result, svc_meta: meta } = await client.next();
    const shown = (it: { attempts: { provider: string; transport: string }[] }) =>
      it.attempts.map(({ provider, transport }) => `${provider}:${transport}`);
    assert.deepEqual(
      [result, meta.transport, meta.selected_provider.id, shown(meta)],
      ["0xb", "ws", "b", ["a:ws", "b:http"]],
    );
    const noted = await open();
    noted.send(call("x", "eth_call", [], { svc_meta: "notify" }));
    assert.deepEqual(await noted.next(), { jsonrpc: "2.0", id: "x", result: "0xb" });
    const { method, params } = await noted.next();
    assert.deepEqual(
      [method, params.id, params.retries, shown(params)],
      ["svc_meta", "x", 1, ["a:ws", "b:http"]],
    );
    assert.ok(
      nodes[1]?.http.asked.every(({ body }) => !body.includes("svc_meta")),
      "it is not routed",
    );
    noted.send(call("s", "eth_subscribe", ["newHeads"], { svc_meta: "notify" }));
    assert.match((await noted.next()).result, /^0x/);
    assert.deepEqual(shown((await noted.next()).params), ["a:ws"]);
    assert.equal((await post("eth_call")).json.svc_meta, undefined);
  },
);

test(
  "pins hold on sockets: calls and subscriptions use that provider alone, and a pinned " +
    "subscription ends rather than leave it",
  async (t) => {
    const set = {
      monitoring: { socket_heads: false },
      subscriptions: { backfill_timeout_ms: 300 },
    };
    const { nodes, open, mine } = await socketFixture(t, ["ws", "ws"], { set });
    const [a, b] = nodes;
    const [pinned, free] = [
      await open("/ws/rpc/1?provider=b"),
      await open("/ws/rpc/1", { headers: { "x-svc-provider": "a" } }),
    ];
    const [any] = [await open()];
    for (const [client, name] of [
      [pinned, "0xb"],
      [free, "0xa"],
    ] as const) {
      client.send(call(1, "eth_call"));
      assert.equal((await client.next()).result, name);
    }
    const id = await subscribe(pinned, "newHeads");
    const others = await subscribe(any, "newHeads");
    assert.deepEqual([a?.ws.subscriptions("newHeads"), b?.ws.subscriptions("newHeads")], [1, 1]);
    const block = mine();
    for (const [client, subscription] of [
      [pinned, id],
      [any, others],
    ] as const)
      assert.equal((await told(client, subscription, 1))[0].hash, block.hash);
    b?.ws.refuse({ status: 503 });
    b?.ws.drop();
    const [code, reason] = await pinned.closed;
    assert.equal(code, 1011);
    assert.match(reason, /resubscribe/);
    const next = mine();
    assert.equal((await told(any, others, 1))[0].hash, next.hash);
    free.send(call(2, "eth_call"));
    assert.equal((await free.next()).result, "0xa");
  },
);

test(
  "methods that need a node's keys are blocked, the chain's identity is answered here, and " +
    "subscribing over HTTP names the socket",
  async (t) => {
    const { nodes, open, service } = await socketFixture(t, ["ws"]);
    const client = await open("/ws/rpc/profile/team/fastest/mainnet");
    for (const method of [
      "eth_coinbase",
      "eth_sendTransaction",
      "eth_sign",
      "personal_unlockAccount",
    ]) {
      client.send(call(1, method));
      const { error } = await client.next();
      assert.deepEqual([error.code, error.data.code], [-32601, "method_blocked"]);
      assert.equal(nodes[0]?.ws.count(method), 0);
    }
    client.send([call(1, "eth_chainId"), call(2, "net_version"), call(3, "eth_accounts")]);
    assert.deepEqual(
      (await client.next()).map((it: { result: string }) => it.result),
      ["0x1", "1", []],
    );
    const { json } = await service.post(
      "/rpc/profile/team/fastest/mainnet",
      call(1, "eth_subscribe", ["newHeads"]),
    );
    assert.deepEqual(
      [json.error.code, json.error.data.websocket_url],
      [-32601, "/ws/rpc/profile/team/fastest/mainnet"],
    );
    const there = await open(json.error.data.websocket_url);
    await subscribe(there, "newHeads");
  },
);

/** Why no socket can be opened there. */
function refusal(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws/rpc/1`);
    socket.on("error", (error) => resolve(String(error)));
    socket.on("open", () => {
      socket.terminate();
      reject(new Error("a socket was opened"));
    });
  });
}

test(
  "SIGTERM: what is in flight on sockets is answered, new requests and sockets are refused, " +
    "then all close with 1012",
  async (t) => {
    const upstream = await scriptedUpstream();
    t.after(() => upstream.close());
    const service = await startProcess(t, configText([{ id: "a", url: upstream.url }]));
    const port = Number(new URL(service.url).port);
    let release = (): void => {};
    upstream.script((_, reply) => {
      release = () => reply.result('"late"');
    });
    const [busy, idle] = [await open(t, port), await open(t, port)];
    busy.send(call(1, "eth_call"));
    await until("the call", () => upstream.asked.length === 1);
    service.signal("SIGTERM");
    await until("the drain", () => /draining/.test(service.log()));
    busy.send(call(2, "eth_call"));
    assert.deepEqual((await busy.next()).error.data.code, "unavailable");
    // The kernel resets a connection that it made just before the service stopped listening.
    await until("the refusal of a socket", async () =>
      /ECONNREFUSED|503/.test(await refusal(port)),
    );
    release();
    assert.deepEqual(await busy.next(), { jsonrpc: "2.0", id: 1, result: "late" });
    assert.deepEqual(await busy.closed, [1012, "service restart"]);
    assert.deepEqual(await idle.closed, [1012, "service restart"]);
    assert.equal(await service.ended, 0);
  },
);
