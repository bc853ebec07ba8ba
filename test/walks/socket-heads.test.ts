// Heads that providers push: they feed lag and consensus for every call, spare the polling, and are
// told on the pages with sockets and subscriptions.
import assert from "node:assert/strict";
import { test } from "node:test";
import { logText } from "../fakes/chain.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { metaOf, until, walked } from "../fakes/service-fixture.ts";
import {
  socketFixture,
  subscribe,
  subscriptionsOf,
  told,
  transportOf,
} from "../fakes/socket-fixture.ts";
import { call } from "../web/socket/socket-fixture.ts";

/** Probes come at the start and then not again. */
const ONE_PROBE = 3_600_000;

test(
  "a provider whose pushed heads stay behind is lagging for calls over HTTP, and serves again " +
    "when it has caught up",
  async (t) => {
    const {
      nodes,
      mine,
      call: post,
      service,
      listening,
    } = await socketFixture(t, ["both", "both"], {
      set: { monitoring: { probe_interval_ms: ONE_PROBE } },
    });
    const [a] = nodes;
    await service.probed();
    await listening();
    mine();
    await until(
      "the first head",
      async () => (await transportOf(service, "a", "ws")).block_height === 101,
    );
    assert.equal(walked(await post("eth_call")), "a:ok");
    for (let n = 0; n < 6; n++) mine("b");
    await until("the lag", async () => (await transportOf(service, "a", "http")).lag_blocks === 6);
    const answer = await post("eth_call");
    assert.deepEqual(
      [walked(answer), metaOf(answer)["excluded"]],
      ["b:ok", [{ provider: "a", reason: "lagging" }]],
    );
    const { json } = await service.get("/api/metrics/1");
    assert.equal(json.profiles[0].head_block, 107);
    assert.match((await service.get("/metrics")).text, /^svc_head_block\{[^}]*\} 107$/m);
    a?.follow();
    await until(
      "the end of the lag",
      async () => (await transportOf(service, "a", "http")).lag_blocks === 0,
    );
    assert.equal(walked(await post("eth_call")), "a:ok");
  },
);

test("a head pushed by one provider alone makes a block old for the archive rule", async (t) => {
  const set = {
    monitoring: { probe_interval_ms: ONE_PROBE },
    selection: { archival_threshold: 3 },
  };
  const {
    mine,
    call: post,
    service,
    listening,
  } = await socketFixture(t, ["both", "both"], { set, providers: [{}, { archival: true }] });
  await service.probed();
  await listening();
  assert.equal(
    walked(await post("eth_getBalance", ["0x0000000000000000000000000000000000000001", "0x64"])),
    "a:ok",
  );
  for (let n = 0; n < 4; n++) mine();
  await until("the head", async () => (await transportOf(service, "a", "ws")).block_height === 104);
  assert.equal(
    walked(await post("eth_getBalance", ["0x0000000000000000000000000000000000000001", "0x64"])),
    "b:ok",
  );
});

test("a provider that pushes its heads is polled far less than one that does not", async (t) => {
  const { nodes, mine, listening } = await socketFixture(t, ["both", "http"], {
    set: { monitoring: { probe_interval_ms: 20 } },
  });
  const [a, b] = nodes;
  await listening();
  mine("a");
  const [from, fromOther] = [a?.http.probes() ?? 0, b?.http.probes() ?? 0];
  await until("a hundred probes of the other", () => (b?.http.probes() ?? 0) - fromOther >= 100);
  const polled = (a?.http.probes() ?? 0) - from;
  assert.ok(polled > 0 && polled <= 40, `${polled} beside 100`);
});

test(
  "with socket_heads off nothing is subscribed for ourselves, and a caller's subscription " +
    "still works",
  async (t) => {
    const set = { monitoring: { socket_heads: false, probe_interval_ms: 20 } };
    const { nodes, mine, open, service, listening } = await socketFixture(t, ["ws", "ws"], { set });
    await listening();
    for (const { ws } of nodes) await until("probes", () => ws.count("eth_blockNumber") > 2);
    for (const { ws } of nodes) assert.equal(ws.count("eth_subscribe"), 0);
    assert.equal((await transportOf(service, "a", "ws")).block_height, 100);
    const client = await open();
    const id = await subscribe(client, "newHeads");
    assert.deepEqual(
      nodes.map(({ ws }) => ws.subscriptions()),
      [1, 0],
    );
    const block = mine();
    assert.equal((await told(client, id, 1))[0].hash, block.hash);
  },
);

test("our own listening and callers' subscriptions to heads share one upstream subscription", async (t) => {
  const { nodes, open, listening } = await socketFixture(t, ["ws"]);
  await listening();
  const clients = [await open(), await open(), await open()];
  for (const client of clients) await subscribe(client, "newHeads");
  for (const client of clients) await subscribe(client, "logs", {});
  assert.deepEqual(
    [nodes[0]?.ws.count("eth_subscribe"), nodes[0]?.ws.subscriptions("newHeads")],
    [2, 1],
  );
});

test(
  "/api/metrics and /metrics show sockets, subscriptions, failovers and the blocks that had to " +
    "be filled",
  async (t) => {
    const { nodes, open, mine, service, listening } = await socketFixture(t, ["ws", "ws"], {
      set: { monitoring: { probe_interval_ms: ONE_PROBE } },
    });
    const [a] = nodes;
    await listening();
    const [client, other] = [await open(), await open()];
    const [id, second] = [await subscribe(client, "newHeads"), await subscribe(other, "newHeads")];
    await subscribe(other, "newPendingTransactions");
    const first = mine();
    await told(client, id, 1);
    await told(other, second, 1);
    // Two blocks are pushed by nobody who is listened to: the next provider has to be asked for
    // them.
    a?.ws.refuse({ status: 503 });
    mine("b");
    mine("b");
    const last = nodes[1];
    a?.ws.drop();
    const heads = await told(client, id, 2);
    assert.deepEqual(
      heads.map((it) => Number(it.number)),
      [first.number + 1, first.number + 2],
    );
    const {
      open: streams,
      subscribers,
      failovers,
      blocks_filled: filled,
      ended,
      notifications,
      streams: shown,
    } = await subscriptionsOf(service);
    assert.deepEqual(
      [streams, subscribers, failovers.lost, ended, notifications.newHeads],
      [2, 3, 2, 0, 6],
    );
    assert.equal(filled, 2);
    const stream = shown.find((it: { kind: string }) => it.kind === "newHeads");
    assert.deepEqual(
      [stream.provider, stream.state, stream.subscribers, stream.block_height, stream.failovers],
      ["b", "live", 2, first.number + 2, 1],
    );
    const { json } = await service.get("/api/metrics/1");
    assert.equal(json.open_sockets, 2);
    assert.notEqual((await transportOf(service, "a", "ws")).socket.state, "open");
    assert.deepEqual((await transportOf(service, "b", "ws")).socket, {
      state: "open",
      subscriptions: 2,
      opened: 1,
      stray_frames: 0,
    });
    const { text } = await service.get("/metrics");
    const labels = 'profile="team",chain="ethereum"';
    for (const line of [
      "svc_sockets 2",
      `svc_notifications_total{${labels},kind="newHeads"} 6`,
      `svc_subscriptions{${labels},kind="newHeads",state="live"} 1`,
      `svc_subscribers{${labels},kind="newHeads",state="live"} 2`,
      `svc_subscription_failovers_total{${labels},reason="lost"} 2`,
      `svc_subscription_blocks_filled_total{${labels}} 2`,
      `svc_subscriptions_ended_total{${labels}} 0`,
      `svc_upstream_socket_open{${labels},provider="a",transport="ws"} 0`,
      `svc_upstream_socket_open{${labels},provider="b",transport="ws"} 1`,
      `svc_upstream_socket_subscriptions{${labels},provider="b",transport="ws"} 2`,
    ])
      assert.ok(text.split("\n").includes(line), line);
    assert.equal(last?.ws.subscriptions("newPendingTransactions"), 1);
    client.send(call(1, "eth_call"));
    assert.equal((await client.next()).result, "0xb");
  },
);

test(
  "a subscription whose provider's heads stop while others go on moves to another provider " +
    "without a gap",
  async (t) => {
    const runtime = simulatedWorld(2);
    t.after(() => void setInterval(() => runtime.advance(500), 5).unref());
    const set = {
      monitoring: { probe_interval_ms: ONE_PROBE },
      subscriptions: { new_heads_timeout_ms: 400 },
    };
    const { open, mine, service, listening } = await socketFixture(
      t,
      ["ws", "ws"],
      { set },
      runtime,
    );
    await listening();
    const client = await open();
    const id = await subscribe(client, "newHeads");
    const blocks = [mine()];
    await told(client, id, 1);
    for (let n = 0; n < 3; n++) blocks.push(mine("b"));
    await until(
      "the heads of the other",
      async () => (await transportOf(service, "b", "ws")).block_height === blocks.at(-1)?.number,
    );
    runtime.advance(500);
    const heads = await told(client, id, 3);
    assert.deepEqual(
      heads.map((it) => it.hash),
      blocks.slice(1).map((it) => it.hash),
    );
    const { failovers } = await subscriptionsOf(service);
    assert.ok(failovers.stale_heads + failovers.lost === 1, JSON.stringify(failovers));
  },
);

test(
  "logs that a provider leaves out while its heads go on are told in order, and the metrics " +
    "tell of it",
  async (t) => {
    const { nodes, open, mine, service, listening } = await socketFixture(t, ["ws", "both"], {
      set: { subscriptions: { verification_budget: 10_000 } },
    });
    await listening();
    const [a] = nodes;
    assert.ok(a !== undefined);
    const client = await open();
    const id = await subscribe(client, "logs", {});
    a.leavesLogsOut = true;
    // What comes soon after the subscription began is asked for anyway, so it takes some blocks
    // until there is something to be missed.
    await until("logs that are missing", async () => {
      const block = mine();
      const heard = await told(client, id, block.logs.length);
      assert.deepEqual(
        heard.map((it) => JSON.stringify(it)),
        block.logs.map((log) => logText(block, log)),
      );
      return (await subscriptionsOf(service)).log_checks.missing > 0;
    });
    await until(
      "the move",
      async () => (await subscriptionsOf(service)).failovers.missing_logs === 1,
    );
    const { streams, log_checks: checks } = await subscriptionsOf(service);
    assert.equal(streams.find((it: { kind: string }) => it.kind === "logs").provider, "b");
    assert.ok(
      checks.missing >= 1 && checks.calls >= 1 && checks.over_budget === 0,
      JSON.stringify(checks),
    );
    const { text } = await service.get("/metrics");
    assert.match(
      text,
      new RegExp(`^svc_log_checks_total\\{[^}]*result="missing"[^}]*\\} ${checks.missing}$`, "m"),
    );
  },
);
