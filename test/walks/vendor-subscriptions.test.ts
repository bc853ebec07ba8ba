// Kinds of subscription that only some vendor serves: passed on from one provider as they come, and
// ended with it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { socketFixture, subscribe, subscriptionsOf, told } from "../fakes/socket-fixture.ts";
import type { SocketScript } from "../fakes/socket-upstream.ts";
import { call } from "../web/socket/socket-fixture.ts";

/** Subscribes to heads and to nothing else. */
const headsOnly: SocketScript = ({ method, params }, reply) =>
  method === "eth_subscribe" && JSON.stringify(params) !== '["newHeads"]'
    ? reply.error('{"code":-32601,"message":"no such subscription in eth namespace"}')
    : reply.usual();

/** Long events that begin alike and name one hash, as those of one block do. */
const eventAt = (index: number): string =>
  JSON.stringify({ hash: `0x${"ab".repeat(32)}`, diff: "00".repeat(300), index });

test("a vendor's kind comes from the one provider that serves it, every event as it was sent", async (t) => {
  const { nodes, open, listening, service } = await socketFixture(t, ["ws", "ws"]);
  nodes[0]?.ws.script(headsOnly);
  await listening();
  const [first, second] = [await open(), await open()];
  const ids = [
    await subscribe(first, "newFlashblocks"),
    await subscribe(second, "newFlashblocks"),
  ] as const;
  assert.equal(nodes[1]?.ws.subscriptions("newFlashblocks"), 1, "equal ones share one");
  const events = [eventAt(0), eventAt(1), eventAt(1), "1", "1"];
  for (const event of events) nodes[1]?.ws.notify("newFlashblocks", event);
  for (const [n, client] of [first, second].entries())
    assert.deepEqual(
      (await told(client, ids[n] ?? "", events.length)).map((it) => JSON.stringify(it)),
      events,
    );
  const { notifications } = await subscriptionsOf(service);
  assert.equal(notifications.vendor, 2 * events.length);
});

test("it is closed with 1011 when its provider goes, and not continued elsewhere", async (t) => {
  const { nodes, open, listening } = await socketFixture(t, ["ws", "ws"]);
  await listening();
  const [subscribed, idle] = [await open(), await open()];
  await subscribe(subscribed, "pendingLogs", { address: `0x${"11".repeat(20)}` });
  assert.equal(nodes[0]?.ws.subscriptions("pendingLogs"), 1);
  nodes[0]?.ws.drop();
  assert.equal((await subscribed.closed)[0], 1011);
  assert.equal(nodes[1]?.ws.subscriptions("pendingLogs"), 0);
  idle.send(call(1, "eth_gasPrice"));
  assert.equal((await idle.next()).result, "0xb", "others stay open");
});

test("names of the configuration are passed on, others are refused, and so is what nobody serves", async (t) => {
  const { nodes, open, listening } = await socketFixture(t, ["ws"], {
    set: { subscriptions: { kinds: ["acmeBlocks"] } },
  });
  await listening();
  const client = await open();
  const id = await subscribe(client, "acmeBlocks", { deep: [1, { more: null }] });
  nodes[0]?.ws.notify("acmeBlocks", '{"a":1}');
  assert.deepEqual(await told(client, id, 1), [{ a: 1 }]);
  client.send(call(2, "eth_subscribe", ["otherBlocks"]));
  const { error } = await client.next();
  assert.deepEqual([error.code, error.data.code], [-32602, "invalid_field"]);
  nodes[0]?.ws.script(headsOnly);
  client.send(call(3, "eth_subscribe", ["monadNewHeads"]));
  assert.equal((await client.next()).error.message, "no such subscription in eth namespace");
});

test("different ones of a caller are bounded, in number and in size", async (t) => {
  const { open, listening } = await socketFixture(t, ["ws"], {
    extra: { limits: { max_log_filters: 2, max_keyless_log_filters: 2 } },
  });
  await listening();
  const client = await open();
  for (const address of ["0x01", "0x02"]) await subscribe(client, "pendingLogs", { address });
  client.send(call(1, "eth_subscribe", ["pendingLogs", { address: "0x03" }]));
  assert.equal((await client.next()).error.data.code, "rate_limit_exceeded");
  client.send(call(2, "eth_subscribe", ["monadLogs", "a".repeat(65_536)]));
  assert.equal((await client.next()).error.data.code, "invalid_field");
});
