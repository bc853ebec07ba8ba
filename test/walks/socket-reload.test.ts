// A new configuration while sockets are open: subscriptions go on without a gap at providers that
// stay, and end where nobody serves them any longer.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { type ChainBlock, headerText } from "../fakes/chain.ts";
import { startProcess } from "../fakes/process.ts";
import { configOf, configText } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import {
  type SocketFixture,
  socketFixture,
  subscribe,
  subscriptionsOf,
  told,
} from "../fakes/socket-fixture.ts";
import { type Client, call, open as openAt } from "../web/socket/socket-fixture.ts";

function reload(
  { service, text }: SocketFixture,
  ids: readonly string[],
  settings?: Parameters<SocketFixture["text"]>[1],
): void {
  assert.equal(service.app.reload(configOf(text(ids, settings))), null);
}

function hashes(blocks: readonly { readonly hash: string }[]): readonly string[] {
  return blocks.map((it) => it.hash);
}

test(
  "a provider that is removed loses its streams to the others without a gap, and its calls are " +
    "answered",
  async (t) => {
    const fixture = await socketFixture(t, ["ws", "ws"]);
    const { nodes, open, mine, service, listening } = fixture;
    const [a, b] = nodes;
    await listening();
    const [client, logs] = [await open(), await open()];
    const [id, filtered] = [await subscribe(client, "newHeads"), await subscribe(logs, "logs", {})];
    const blocks: ChainBlock[] = [mine()];
    let release = (): void => {};
    a?.ws.script((asked, reply) => {
      if (asked.method === "eth_call") release = () => reply.result('"0x7"');
      else a.sane(asked, reply);
    });
    client.send(call(1, "eth_call"));
    await until("the call", () => a?.ws.count("eth_call") === 1);
    // The provider that stays is ahead: what was not pushed must be asked for.
    blocks.push(mine("b"), mine("b"));
    reload(fixture, ["b"]);
    release();
    blocks.push(mine("b"));
    const heard: ChainBlock[] = [];
    let answered = false;
    while (heard.length < 4 || !answered) {
      const { id: answerTo, result, params } = await client.next();
      if (answerTo === 1) answered = result === "0x7";
      else if (params.subscription === id) heard.push(params.result);
    }
    assert.deepEqual(hashes(heard), hashes(blocks));
    const wanted = blocks.flatMap((it) => it.logs.map((log) => [it.hash, log.index]));
    const seen = await told(logs, filtered, wanted.length);
    assert.deepEqual(
      seen.map((it) => [it.blockHash, Number(it.logIndex)]),
      wanted,
    );
    assert.ok((await subscriptionsOf(service)).failovers.removed >= 1);
    await until("the end of its connection", () => a?.ws.peers().length === 0);
    client.send(call(2, "eth_call"));
    assert.equal((await client.next()).result, "0xb");
    assert.equal(b?.ws.opened(), 1);
  },
);

test("twenty reloads with the same providers break no socket, no stream and no upstream connection", async (t) => {
  const fixture = await socketFixture(t, ["ws", "ws"]);
  const { nodes, open, mine, service, listening } = fixture;
  await listening();
  const client = await open();
  const id = await subscribe(client, "newHeads");
  for (let n = 0; n < 20; n++) {
    reload(fixture, n % 2 === 0 ? ["b", "a"] : ["a", "b"]);
    const block = mine();
    assert.equal((await told(client, id, 1))[0].hash, block.hash);
  }
  assert.deepEqual(
    nodes.map(({ ws }) => ws.opened()),
    [1, 1],
  );
  const { failovers, open: streams } = await subscriptionsOf(service);
  assert.deepEqual([Object.values(failovers).every((it) => it === 0), streams], [true, 1]);
});

test("a provider that comes is used by sockets that are open already", async (t) => {
  const fixture = await socketFixture(t, ["ws", "ws"]);
  const { nodes, open, mine } = fixture;
  const [a] = nodes;
  reload(fixture, ["b"]);
  const client = await open();
  const ask = async (): Promise<string> => {
    client.send(call(1, "eth_call"));
    return (await client.next()).result;
  };
  assert.equal(await ask(), "0xb");
  reload(fixture, ["a", "b"]);
  // Until its own socket is open, calls go to the provider that has one.
  await until("a call to the new provider", async () => (await ask()) === "0xa");
  await fixture.listening();
  const id = await subscribe(client, "newHeads");
  const block = mine("a");
  assert.equal((await told(client, id, 1))[0].hash, block.hash);
  assert.ok((a?.ws.subscriptions("newHeads") ?? 0) > 0);
});

async function refusalOn(client: Client): Promise<unknown> {
  client.send(call(1, "eth_call"));
  const { id, error } = await client.next();
  return [id, error.data.code];
}

test(
  "a profile or chain that is removed: sockets without subscriptions get the fault on each " +
    "request, those with them end with 1011",
  async (t) => {
    const fixture = await socketFixture(t, ["ws"]);
    const { nodes, open, service } = fixture;
    const [idle, subscribed] = [
      await open("/ws/rpc/profile/team/1"),
      await open("/ws/rpc/profile/team/1"),
    ];
    await subscribe(subscribed, "newHeads");
    const providers = [{ id: "a", ws_url: nodes[0]?.ws.url }];
    const chains = {
      ethereum: {
        chain_id: 1,
        name: "Ethereum Mainnet",
        aliases: ["mainnet"],
        block_time_ms: 12_000,
      },
    };
    const profiles = { other: { chains: { ethereum: { providers } } }, team: { chains: {} } };
    assert.equal(service.app.reload(configOf(configText([], { chains, profiles }))), null);
    assert.equal((await subscribed.closed)[0], 1011);
    assert.deepEqual(await refusalOn(idle), [1, "unknown_chain"]);
    assert.equal(
      service.app.reload(configOf(configText([], { chains, profiles: { other: profiles.other } }))),
      null,
    );
    assert.deepEqual(await refusalOn(idle), [1, "unknown_profile"]);
    const settled = await open("/ws/rpc/profile/other/1");
    await subscribe(settled, "newPendingTransactions");
    reload(fixture, ["a"]);
    assert.equal((await settled.closed)[0], 1011);
    idle.send(call(2, "eth_call"));
    assert.equal(
      (await idle.next()).result,
      "0xa",
      "and it is served again when the profile is back",
    );
  },
);

test(
  "a pinned provider that is removed ends its subscriptions with 1011 and is named no more; " +
    "other sockets notice nothing",
  async (t) => {
    const fixture = await socketFixture(t, ["ws", "ws"]);
    const { open, mine } = fixture;
    const [pinned, idle, free] = [
      await open("/ws/rpc/1/a"),
      await open("/ws/rpc/1/a"),
      await open("/ws/rpc/1/b"),
    ];
    await subscribe(pinned, "newHeads");
    const id = await subscribe(free, "newHeads");
    reload(fixture, ["b"]);
    assert.equal((await pinned.closed)[0], 1011);
    assert.deepEqual(await refusalOn(idle), [1, "invalid_field"]);
    const block = mine();
    assert.equal((await told(free, id, 1))[0].hash, block.hash);
  },
);

test("new limits hold for sockets that are open", async (t) => {
  const fixture = await socketFixture(t, ["ws"]);
  const client = await fixture.open();
  await subscribe(client, "newHeads");
  reload(fixture, ["a"], {
    extra: { limits: { max_socket_subscriptions: 1, max_batch_items: 1 } },
  });
  client.send(call(1, "eth_subscribe", ["syncing"]));
  assert.equal((await client.next()).error.data.code, "rate_limit_exceeded");
  client.send([call(1), call(2)]);
  assert.equal((await client.next()).error.data.code, "invalid_request");
});

test("SIGHUP moves a running process's subscriptions to the new providers without a gap", async (t) => {
  const fixture = await socketFixture(t, ["ws", "ws"]);
  const { mine, text } = fixture;
  const process = await startProcess(t, text(["a"]));
  const client = await openAt(t, Number(new URL(process.url).port));
  const id = await subscribe(client, "newHeads");
  const first = mine();
  assert.equal((await told(client, id, 1))[0].hash, first.hash);
  await writeFile(process.file, text(["b"]));
  process.signal("SIGHUP");
  await until("the reload", () => process.log().includes("configuration reloaded"));
  const blocks = [mine("b"), mine("b")];
  assert.deepEqual(
    (await told(client, id, 2)).map((it) => it.hash),
    hashes(blocks),
  );
  assert.ok(client.texts.at(-1)?.includes(headerText(fixture.chain.tip())));
});
