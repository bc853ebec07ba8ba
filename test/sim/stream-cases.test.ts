// Subscriptions in single cases, each with its exact outcome: bounds of a gap and of an outage,
// pins, sharing, acknowledgement, lingering, refusals, reloads.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Profile, ProviderSet } from "../../src/core/provider/profile.ts";
import { ProfileRegistry } from "../../src/upstream/registry/profile-registry.ts";
import { ADDRESSES, TOPICS } from "../fakes/chain.ts";
import { fakeCall, fakeProvider, SELECTION } from "../fakes/providers.ts";
import { REFUSAL } from "../fakes/sockets.ts";
import { createStreamFixture, type StreamFixture } from "./stream-fixture.ts";

const HEADS = ["newHeads"];
const LOGS = ["logs", {}];

test("a gap of exactly max_backfill_blocks is filled, and one more ends the subscription", async () => {
  for (const params of [HEADS, LOGS])
    for (const [missed, state] of [
      [10, "started"],
      [11, "ended"],
    ] as const) {
      const at = createStreamFixture();
      const ear = at.open(params);
      await at.pass(200);
      at.mine();
      await at.pass(3_000);
      for (const node of at.nodes) node.die();
      at.mine(missed);
      await at.pass(2_000);
      for (const node of at.nodes) node.revive();
      await at.pass(5_000);
      assert.equal(ear.state, state, `${JSON.stringify(params)}, ${missed} blocks`);
      if (state === "ended") continue;
      ear.audience.settled();
      assert.equal(at.subscriptions.reports()[0]?.filledBlocks, missed);
      assert.equal(at.subscriptions.counts()[0]?.failovers.lost, 1);
    }
});

test(
  "an outage shorter than backfill_timeout_ms is survived, a longer one ends the subscription " +
    "with a reason",
  async () => {
    for (const [outageMs, state] of [
      [15_000, "started"],
      [25_000, "ended"],
    ] as const) {
      const at = createStreamFixture();
      const ear = at.open(HEADS);
      await at.pass(200);
      // Mute rather than dead, so that no circuit opens: connections break and nothing answers.
      for (const node of at.nodes) {
        node.manners.mute = true;
        node.die();
        node.revive();
      }
      at.mine(3);
      await at.pass(outageMs);
      for (const node of at.nodes) node.manners.mute = false;
      await at.pass(4_900);
      assert.equal(ear.state, state);
      if (state === "started") ear.audience.settled();
      else assert.match(ear.reason, /in time/);
      assert.deepEqual(
        at.subscriptions.reports().map((it) => it.state),
        state === "started" ? ["live"] : [],
      );
    }
  },
);

test(
  "a pinned subscription uses its provider alone, waits for it, and goes on without a gap when " +
    "it is back",
  async () => {
    for (const params of [HEADS, LOGS]) {
      const at = createStreamFixture();
      const ear = at.open(params, { pin: at.providers[1] });
      await at.pass(200);
      at.mine(2);
      await at.pass(100);
      at.nodes[1].die();
      at.mine(4);
      await at.pass(3_000);
      assert.equal(ear.state, "started");
      at.nodes[1].revive();
      await at.pass(5_000);
      at.mine();
      await at.pass(200);
      ear.audience.settled();
      assert.deepEqual(
        [at.nodes[0].asked, at.nodes[2].asked, at.nodes[0].requests, at.nodes[2].requests],
        [[], [], [], []],
      );
    }
  },
);

test(
  "a provider that goes silent on an open socket is left after new_heads_timeout_ms, and its " +
    "health hears of it",
  async () => {
    for (const params of [HEADS, LOGS]) {
      const at = createStreamFixture({ newHeadsTimeoutMs: 5_000 });
      const ear = at.open(params);
      await at.pass(200);
      at.nodes[0].manners.stale = true;
      at.mine(3);
      await at.pass(4_000);
      assert.equal(at.subscriptions.reports()[0]?.provider?.id, "p0");
      await at.pass(1_500);
      const [report] = at.subscriptions.reports();
      assert.deepEqual(
        [
          report?.provider?.id,
          report?.failovers,
          at.subscriptions.counts()[0]?.failovers.stale_heads,
        ],
        ["p1", 1, 1],
      );
      const { excluded } = at.tracker.plan(fakeCall("eth_getBalance"), {
        strategy: "priority",
        transport: "ws",
        pin: null,
      });
      assert.deepEqual(
        excluded.map((it) => [it.provider.id, it.reason]),
        [["p0", "lagging"]],
      );
      ear.audience.settled();
    }
  },
);

test(
  "a silent provider is left soon after others have a newer block, long before " +
    "new_heads_timeout_ms, and once for each block they claim",
  async () => {
    for (const params of [HEADS, LOGS]) {
      const at = createStreamFixture();
      const ear = at.open(params);
      await at.pass(200);
      at.mine();
      await at.pass(200);
      at.nodes[0].manners.stale = true;
      const tip = at.mine(2);
      for (const provider of at.providers.slice(1)) at.tracker.recordHead(provider, tip.number);
      await at.pass(1_500);
      assert.equal(at.subscriptions.reports()[0]?.provider?.id, "p0", "it may just be slow");
      await at.pass(2_500);
      const [report] = at.subscriptions.reports();
      assert.deepEqual(
        [
          report?.provider?.id,
          report?.failovers,
          at.subscriptions.counts()[0]?.failovers.stale_heads,
        ],
        ["p1", 1, 1],
      );
      ear.audience.settled();
      // A block that nobody can show moves a stream once, not for ever.
      at.tracker.recordHead(at.providers[2], tip.number + 3);
      await at.pass(20_000);
      assert.equal(at.subscriptions.reports()[0]?.failovers, 2);
      ear.audience.settled();
    }
  },
);

/**
 * Mines a block a second. In second `n` a node follows the chain so many blocks behind its tip, and
 * tells of a height so much above its own.
 */
async function mineBehind(
  at: StreamFixture,
  seconds: number,
  behind: (index: number, n: number) => number,
  claims: (index: number) => number = () => 0,
): Promise<void> {
  for (let n = 0; n < seconds; n++) {
    const tip = at.chain.mine();
    for (const [index, node] of at.nodes.entries()) {
      const block = at.chain.at(tip, tip.number - behind(index, n));
      if (block === undefined) continue;
      node.follow(block);
      at.tracker.recordHead(node.provider, block.number + claims(index));
    }
    await at.pass(1_000);
  }
}

test(
  "a provider that goes on pushing heads but stays blocks behind is left as a silent one is, " +
    "for one that is not",
  async () => {
    for (const params of [HEADS, LOGS]) {
      const at = createStreamFixture({ maxBackfillBlocks: 30 });
      const ear = at.open(params);
      await at.pass(200);
      await mineBehind(at, 10, () => 0);
      assert.equal(at.subscriptions.reports()[0]?.behind, 0);
      await mineBehind(at, 10, (index) => (index === 0 ? 1 : 0));
      assert.equal(
        at.subscriptions.reports()[0]?.provider?.id,
        "p0",
        "a little late is not behind",
      );
      // Two of them tell of a new block at least every two seconds, and lose one more every other
      // second.
      await mineBehind(at, 14, (index, n) => (index === 2 ? 0 : 1 + Math.floor(n / 2)));
      const [report] = at.subscriptions.reports();
      assert.deepEqual(
        [
          report?.provider?.id,
          report?.failovers,
          at.subscriptions.counts()[0]?.failovers.stale_heads,
        ],
        ["p2", 1, 1],
        JSON.stringify(params),
      );
      assert.equal(report?.behind, 0);
      ear.audience.settled();
    }
  },
);

test("beside a height that nobody can show, streams do not move for ever, and a pinned one never", async () => {
  const at = createStreamFixture({ maxBackfillBlocks: 30 });
  const ears = [at.open(HEADS), at.open(HEADS, { pin: at.providers[1] })];
  await at.pass(200);
  await mineBehind(
    at,
    200,
    () => 0,
    (index) => (index === 2 ? 50 : 0),
  );
  const reports = at.subscriptions.reports();
  const moves = reports.find((it) => !it.pinned)?.failovers ?? 0;
  assert.ok(moves >= 1 && moves <= 6, `${moves} moves in 200 s`);
  assert.equal(reports.find((it) => it.pinned)?.failovers, 0);
  for (const ear of ears) ear.audience.settled();
});

test("a provider that repeats one head for ever is as silent as one that says nothing", async () => {
  const at = createStreamFixture({ newHeadsTimeoutMs: 5_000 });
  const ear = at.open(HEADS);
  await at.pass(200);
  at.mine();
  await at.pass(100);
  const [first] = at.nodes;
  const same = `{"number":"0x${first.tip.number.toString(16)}","hash":"${first.tip.hash}","parentHash":"${first.tip.parentHash}"}`;
  first.manners.stale = true;
  at.mine();
  for (let n = 0; n < 8; n++) {
    first.manners.stale = false;
    first.push("newHeads", same);
    first.manners.stale = true;
    await at.pass(1_000);
  }
  assert.equal(at.subscriptions.reports()[0]?.provider?.id, "p1");
  ear.audience.settled();
});

test("any number of equal subscriptions share one upstream subscription, however they are written", async () => {
  const at = createStreamFixture();
  const address = `0x${"AB".repeat(20)}`;
  const ears = [
    { address },
    { address: [address] },
    { address: [address.toLowerCase(), address], topics: [] },
    { address, topics: [null, []] },
  ].map((it) => at.open(["logs", it]));
  ears.push(at.open(HEADS), at.open(HEADS));
  await at.pass(300);
  assert.deepEqual(
    ears.map((it) => it.state),
    ears.map(() => "started"),
  );
  assert.deepEqual(at.nodes[0].open(), [
    `["logs",{"address":"${address.toLowerCase()}"}]`,
    '["newHeads"]',
  ]);
  assert.equal(at.subscriptions.reports().length, 2);
});

test(
  "nobody is told that a subscription has begun before the provider acknowledged it and said " +
    "where it stands",
  async () => {
    const at = createStreamFixture();
    Object.assign(at.nodes[0].manners, { ackMs: 1_000, latencyMs: 400 });
    const ear = at.open(HEADS);
    await at.pass(1_050);
    assert.equal(ear.state, "waiting");
    assert.deepEqual(at.nodes[0].requests, ["eth_getBlockByNumber"]);
    at.mine();
    await at.pass(700);
    assert.equal(ear.state, "started");
    at.mine();
    await at.pass(200);
    ear.audience.settled();
  },
);

test(
  "a subscriber that waits longer than its deadline is refused as unavailable, and the one " +
    "that waits on is not",
  async () => {
    const at = createStreamFixture();
    for (const node of at.nodes) node.manners.mute = true;
    const hasty = at.open(HEADS, { deadlineMs: 1_000 });
    const patient = at.open(HEADS, { deadlineMs: 30_000 });
    await at.pass(1_100);
    assert.equal(hasty.state, "refused");
    assert.ok(hasty.outcome?.kind === "fault" && hasty.outcome.fault.code === "unavailable");
    for (const node of at.nodes) node.manners.mute = false;
    await at.pass(6_000);
    assert.equal(patient.state, "started");
  },
);

test(
  "an upstream subscription is kept for 60 s after its last subscriber has left, and a new one " +
    "finds it",
  async () => {
    const at = createStreamFixture();
    const first = at.open(LOGS);
    await at.pass(200);
    first.leave();
    await at.pass(59_000);
    const second = at.open(LOGS);
    assert.equal(second.state, "started");
    assert.equal(at.nodes[0].asked.length, 2);
    at.mine();
    await at.pass(100);
    second.audience.settled();
    second.leave();
    await at.pass(59_000);
    assert.equal(at.nodes[0].open().length, 2);
    await at.pass(1_100);
    assert.deepEqual([at.nodes[0].open(), at.subscriptions.reports()], [[], []]);
  },
);

test(
  "a kind that every provider refuses is refused with a provider's own error, and asked for " +
    "anew the next time",
  async () => {
    const at = createStreamFixture();
    for (const node of at.nodes) node.manners.refuses = new Set(["newPendingTransactions"]);
    const ear = at.open(["newPendingTransactions"]);
    await at.pass(200);
    assert.ok(ear.state === "refused" && ear.outcome?.kind === "error");
    assert.equal(ear.outcome.raw.toString(), REFUSAL);
    assert.deepEqual(at.subscriptions.reports(), []);
    at.nodes[2].manners.refuses = new Set();
    const again = at.open(["newPendingTransactions"]);
    await at.pass(200);
    assert.equal(again.state, "started");
  },
);

test(
  "a stream that finds no socket for a while is polled, goes back to a socket when there is " +
    "one, and neither counts as a gap",
  async () => {
    for (const params of [HEADS, LOGS]) {
      const at = createStreamFixture({}, true);
      const ear = at.open(params);
      await at.pass(200);
      at.mine(2);
      await at.pass(3_000);
      for (const node of at.nodes) {
        node.manners.refuses = new Set(["newHeads", "logs"]);
        node.die();
        node.revive();
      }
      at.mine(3);
      await at.pass(6_000);
      ear.audience.settled();
      assert.deepEqual(
        at.nodes.flatMap((it) => it.open()),
        [],
        "no socket serves it",
      );
      for (let n = 0; n < 5; n++) {
        at.mine();
        await at.pass(1_000);
      }
      ear.audience.settled();
      for (const node of at.nodes) node.manners.refuses = new Set();
      for (let n = 0; n < 12; n++) {
        at.mine();
        await at.pass(1_000);
      }
      ear.audience.settled();
      assert.ok(at.nodes[0].open().length > 0, "a socket serves it again");
      assert.equal(at.subscriptions.counts()[0]?.failovers.lost, 1);
      const asked = at.nodes[0].requests.length;
      await at.pass(5_000);
      assert.ok(at.nodes[0].requests.length <= asked + 2, "it is polled no longer");
    }
  },
);

test("streams that are polled share the polls of a provider, which end with the last of them", async () => {
  const at = createStreamFixture(
    { providers: [0, 1, 2].map((index) => fakeProvider(index, { priority: index, wsUrl: null })) },
    true,
  );
  const ears = [HEADS, LOGS, ["logs", { address: `0x${"1".repeat(40)}` }]].map((params) =>
    at.open(params),
  );
  await at.pass(1_000);
  assert.deepEqual(
    ears.map((it) => it.state),
    ["started", "started", "started"],
  );
  const before = at.nodes[0].requests.length;
  await at.pass(10_000);
  const polled = at.nodes[0].requests.length - before;
  assert.ok(
    polled >= 18 && polled <= 22,
    `two polls a block, whatever the number of streams: ${polled}`,
  );
  for (const ear of ears) ear.leave();
  await at.pass(61_000);
  const after = at.nodes[0].requests.length;
  await at.pass(10_000);
  assert.equal(at.nodes[0].requests.length, after);
});

test("pending transactions are not polled: without a socket they are refused", async () => {
  const at = createStreamFixture(
    { providers: [0, 1, 2].map((index) => fakeProvider(index, { priority: index, wsUrl: null })) },
    true,
  );
  const ear = at.open(["newPendingTransactions"]);
  await at.pass(1_000);
  assert.equal(ear.state, "refused");
});

test("logs need heads beside them: a provider that refuses heads is passed over", async () => {
  const at = createStreamFixture();
  at.nodes[0].manners.refuses = new Set(["newHeads"]);
  const ear = at.open(LOGS);
  await at.pass(300);
  assert.equal(ear.state, "started");
  assert.equal(at.subscriptions.reports()[0]?.provider?.id, "p1");
  assert.deepEqual(at.nodes[0].open(), []);
});

test(
  "a reload keeps a subscription on a provider that stays, moves it from one that goes, and " +
    "ends it when its profile or pin goes",
  async () => {
    const at = createStreamFixture();
    const profileOf = (set: ProviderSet): Profile => ({
      slug: "team",
      owner: null,
      managed: false,
      chains: new Map([["sim", set]]),
    });
    const registry = new ProfileRegistry(
      [at.set.chain],
      [profileOf(at.set)],
      at.runtime,
      SELECTION,
    );
    const ear = at.open(HEADS);
    const pinned = at.open(HEADS, { pin: at.providers[0] });
    await at.pass(200);
    registry.replace(
      [at.set.chain],
      [profileOf({ ...at.set, providers: [at.providers[0], at.providers[1]] })],
    );
    at.subscriptions.rebind(registry);
    await at.pass(200);
    assert.deepEqual(
      at.subscriptions.reports().map((it) => [it.provider?.id, it.failovers]),
      [
        ["p0", 0],
        ["p0", 0],
      ],
    );
    registry.replace(
      [at.set.chain],
      [profileOf({ ...at.set, providers: [{ ...at.providers[1], index: 0 }] })],
    );
    at.subscriptions.rebind(registry);
    at.mine();
    await at.pass(500);
    assert.deepEqual([ear.state, pinned.state], ["started", "ended"]);
    assert.deepEqual(
      at.subscriptions.reports().map((it) => it.provider?.id),
      ["p1"],
    );
    assert.equal(at.subscriptions.counts()[0]?.failovers.removed, 1);
    ear.audience.settled();
    registry.replace([at.set.chain], []);
    at.subscriptions.rebind(registry);
    assert.equal(ear.state, "ended");
    assert.deepEqual(at.subscriptions.reports(), []);
  },
);

test("a reorg of the very block behind which a subscription began is told like any other", async () => {
  for (const params of [HEADS, LOGS]) {
    const at = createStreamFixture();
    const ear = at.open(params);
    await at.pass(200);
    at.chain.reorg(3, 1);
    for (const node of at.nodes) node.follow(at.chain.tip());
    await at.pass(3_000);
    assert.equal(ear.state, "started");
    ear.audience.settled();
    assert.equal(at.subscriptions.reports()[0]?.failovers, 0);
  }
});

test(
  "a provider that lies behind the block a subscription began with is waited for, and does not " +
    "end it",
  async () => {
    const at = createStreamFixture();
    at.nodes[0].follow(at.chain.mine());
    const ear = at.open(HEADS);
    await at.pass(200);
    at.nodes[0].die();
    await at.pass(2_000);
    assert.equal(ear.state, "started");
    at.mine();
    await at.pass(3_000);
    assert.equal(ear.state, "started");
    ear.audience.settled();
  },
);

test("a provider that sends faster than it answers is left before what waits grows without bound", async () => {
  const at = createStreamFixture();
  const ear = at.open(LOGS);
  await at.pass(200);
  const [first] = at.nodes;
  first.manners.mute = true;
  at.mine();
  for (let n = 0; n < 10_050; n++) first.push("logs", "{}");
  await at.pass(1_000);
  const [report] = at.subscriptions.reports();
  assert.deepEqual(
    [ear.state, report?.provider?.id, at.subscriptions.counts()[0]?.failovers.backlog],
    ["started", "p1", 1],
  );
  ear.audience.settled();
});

test(
  "a reorg of logs that are too large to be held ends the subscription instead of leaving them " +
    "untrue",
  async () => {
    const at = createStreamFixture();
    const ear = at.open(LOGS, { unchecked: true });
    await at.pass(200);
    const { number, hash } = at.mine();
    await at.pass(3_000);
    const data = "0".repeat(3_000_000);
    for (const index of [100, 101, 102])
      at.nodes[0].push(
        "logs",
        `{"blockNumber":"0x${number.toString(16)}","blockHash":"${hash}","logIndex":"0x${index}","data":"${data}"}`,
      );
    await at.pass(100);
    at.mine();
    await at.pass(100);
    assert.equal(ear.state, "started");
    const tip = at.chain.reorg(2, 0);
    for (const node of at.nodes) node.follow(tip);
    await at.pass(500);
    assert.equal(ear.state, "ended");
    assert.match(ear.reason, /no longer held/);
  },
);

test(
  "logs that a provider takes back just before it is lost are told again when the next one " +
    "still has their block",
  async () => {
    const at = createStreamFixture();
    const ear = at.open(LOGS);
    await at.pass(3_000);
    while (at.mine().logs.length === 0) await at.pass(100);
    await at.pass(3_000);
    const older = at.chain.tip();
    const tip = at.mine();
    await at.pass(100);
    for (const block of [tip, older])
      for (const log of block.logs.toReversed()) at.nodes[0].pushLog(block, log, true);
    await at.pass(50);
    const before = ear.events;
    at.nodes[0].die();
    await at.pass(1_000);
    assert.equal(ear.events, before + older.logs.length + tip.logs.length);
    ear.audience.settled();
  },
);

test("logs of a head that was told just before its provider was lost are asked of the next one", async () => {
  const at = createStreamFixture();
  const ear = at.open(LOGS);
  await at.pass(3_000);
  at.nodes[0].manners.logsAfterMs = 500;
  while (at.mine().logs.length === 0) await at.pass(600);
  await at.pass(200);
  at.nodes[0].die();
  await at.pass(1_000);
  ear.audience.settled();
});

test(
  "logs that are owed when a polled provider is left are asked of the next one, which has their " +
    "blocks later",
  async () => {
    const at = createStreamFixture(
      {
        providers: [0, 1, 2].map((index) => fakeProvider(index, { priority: index, wsUrl: null })),
        ...{ logVerification: "strict", verificationBudget: 10_000 },
      },
      true,
    );
    const [liar, slow, honest] = at.nodes;
    liar.manners.hidesLogs = true;
    const ear = at.open(LOGS);
    await at.pass(1_000);
    const blocks = Array.from({ length: 3 }, () => {
      let block = at.chain.mine();
      while (block.logs.length === 0) block = at.chain.mine();
      return block;
    });
    // The check of the first block ends while that of the others is under way.
    for (const block of [blocks[0], blocks[2]]) {
      if (block !== undefined) for (const node of [liar, honest]) node.follow(block);
      await at.pass(1_000);
    }
    await at.pass(3_000);
    assert.equal(at.subscriptions.reports()[0]?.provider?.id, slow.provider.id);
    for (const block of blocks) {
      slow.follow(block);
      await at.pass(3_000);
    }
    ear.audience.settled();
  },
);

test("logs that were dropped because their block could not be shown yet are asked for when it comes", async () => {
  const at = createStreamFixture();
  const ear = at.open(LOGS);
  await at.pass(3_000);
  Object.assign(at.nodes[0].manners, { logsAfterMs: -600, showMs: 500 });
  for (let n = 0; n < 5; n++) {
    at.mine();
    await at.pass(2_000);
  }
  assert.ok(ear.events > 0);
  ear.audience.settled();
});

test(
  "a replacement that subscribes but does not answer what was missed is left for the next one " +
    "long before the outage bound",
  async () => {
    for (const [params, method] of [
      [HEADS, "eth_getBlockByHash"],
      [LOGS, "eth_getLogs"],
      [LOGS, "eth_getBlockByNumber"],
    ] as const) {
      const at = createStreamFixture({ backfillTimeoutMs: 30_000 });
      const ear = at.open(params);
      await at.pass(200);
      at.mine(2);
      await at.pass(3_000);
      at.nodes[0].die();
      at.nodes[1].manners.deafTo = new Set([method]);
      at.mine(3);
      await at.pass(4_000);
      const [report] = at.subscriptions.reports();
      assert.deepEqual(
        [ear.state, report?.state, report?.provider?.id],
        ["started", "live", "p2"],
        `${JSON.stringify(params)}, ${method}`,
      );
      ear.audience.settled();
    }
  },
);

test("a source that stops answering while it lives is left as soon as a gap cannot be filled", async () => {
  const at = createStreamFixture({ backfillTimeoutMs: 30_000 });
  const ear = at.open(HEADS);
  await at.pass(200);
  at.nodes[0].manners.deafTo = new Set(["eth_getBlockByHash"]);
  at.nodes[0].manners.skip = 1;
  at.mine();
  at.nodes[0].manners.skip = 0;
  at.mine();
  await at.pass(3_500);
  assert.equal(at.subscriptions.reports()[0]?.provider?.id, "p1");
  ear.audience.settled();
});

test(
  "sources that are slow but well get more time in every round, so that a stream goes on when " +
    "there is no other",
  async () => {
    const at = createStreamFixture({ backfillTimeoutMs: 60_000 });
    const ear = at.open(HEADS);
    await at.pass(200);
    for (const node of at.nodes) {
      node.manners.latencyMs = 3_000;
      node.die();
      node.revive();
    }
    at.mine(2);
    await at.pass(55_000);
    assert.equal(ear.state, "started");
    ear.audience.settled();
  },
);

const filterOf = (n: number): unknown => [
  "logs",
  { address: `0x${n.toString(16).padStart(40, "0")}` },
];

test(
  "one caller has so many different log filters at once, equal ones count once, and nobody " +
    "else notices",
  async () => {
    const at = createStreamFixture();
    const [caller, other] = [
      { id: "one", maxLogFilters: 3 },
      { id: "other", maxLogFilters: 3 },
    ];
    const ears = [1, 2, 3, 3, 1].map((n) => at.open(filterOf(n), { caller }));
    const beyond = at.open(filterOf(4), { caller });
    assert.ok(beyond.state === "refused" && beyond.outcome?.kind === "fault");
    assert.equal(beyond.outcome.fault.code, "rate_limit_exceeded");
    const more = [at.open(filterOf(4), { caller: other }), at.open(HEADS, { caller })];
    await at.pass(300);
    assert.deepEqual(
      [...ears, ...more].map((it) => it.state),
      [...ears, ...more].map(() => "started"),
    );
    ears[2]?.leave();
    assert.equal(
      at.open(filterOf(5), { caller }).state,
      "refused",
      "another subscription still has it",
    );
    ears[3]?.leave();
    ears[3]?.leave();
    assert.equal(at.open(filterOf(5), { caller }).state, "waiting");
    assert.equal(at.open(filterOf(6), { caller }).state, "refused");
  },
);

test("long filters are bounded in sum; those that nobody has any more make room, short ones need none", async () => {
  const at = createStreamFixture();
  const long = (n: number) => [
    "logs",
    { topics: Array.from({ length: 4 }, (_, place) => topicsOf(4 * n + place)) },
  ];
  const open = (n: number) =>
    at.open(long(n), { caller: { id: `caller ${n}`, maxLogFilters: 9 }, unchecked: true });
  const ears = Array.from({ length: 80 }, (_, n) => open(n));
  await at.pass(300);
  const isRefused = ({ state }: { readonly state: string }): boolean => state === "refused";
  const count = ears.filter((it) => !isRefused(it)).length;
  assert.ok(count > 40 && count < 70, `${count} of 80`);
  const short = at.open(filterOf(1), { caller: { id: "other", maxLogFilters: 9 } });
  assert.ok(!isRefused(short));
  ears[0]?.leave();
  const later = open(100);
  await at.pass(300);
  assert.ok(!isRefused(later), "the one that is kept for nobody ends");
});

/** The most topics that may stand at one place. */
function topicsOf(from: number): readonly string[] {
  return Array.from({ length: 1_000 }, (_, n) => {
    return `0x${(1_000 * from + n).toString(16).padStart(64, "0")}`;
  });
}

test(
  "streams that nobody has any more are bounded: opening and closing filters leaves room for " +
    "others",
  async () => {
    const at = createStreamFixture();
    const caller = { id: "one", maxLogFilters: 500 };
    let opened = 0;
    for (let round = 0; round < 5; round++) {
      const ears = Array.from({ length: 500 }, () =>
        at.open(filterOf(++opened), { caller, unchecked: true }),
      );
      await at.pass(300);
      for (const it of ears) it.leave();
    }
    assert.equal(at.subscriptions.reports().length, 1_000);
    const kept = at.open(filterOf(opened), { caller });
    assert.equal(kept.state, "started", "the latest are those that are kept");
    await at.pass(61_000);
    assert.equal(at.subscriptions.reports().length, 1);
  },
);

const STRICT: Partial<ProviderSet> = { logVerification: "strict", verificationBudget: 100 };

/** Mines blocks, one a second. */
async function mineSlowly(at: StreamFixture, blocks: number): Promise<void> {
  for (let n = 0; n < blocks; n++) {
    at.mine();
    await at.pass(1_000);
  }
}

test(
  "logs that a source leaves out while its heads go on are told all the same, in their place, " +
    "and the source is left",
  async () => {
    for (const logVerification of ["strict", "sampled"] as const) {
      const at = createStreamFixture({ ...STRICT, logVerification });
      const ear = at.open(LOGS);
      await at.pass(3_000);
      await mineSlowly(at, 3);
      at.nodes[0].manners.omit = 1;
      await mineSlowly(at, 8);
      await at.pass(3_000);
      ear.audience.settled();
      const [report] = at.subscriptions.reports();
      assert.notEqual(report?.provider?.id, "p0");
      assert.equal(at.subscriptions.counts()[0]?.failovers.missing_logs, 1);
      assert.ok((at.subscriptions.checks()[0]?.missing ?? 0) > 0);
      // A new stream goes elsewhere too, as long as there is somebody else.
      const other = at.open(["logs", { topics: [null, []] }]);
      await at.pass(500);
      assert.equal(other.state, "started");
      assert.ok(at.subscriptions.reports().every((it) => it.provider?.id !== "p0"));
      ear.leave();
    }
  },
);

test(
  "under strict the logs of a block wait for the check, at most two seconds, and a late " +
    "finding is told in its place",
  async () => {
    const at = createStreamFixture({
      ...STRICT,
      chain: { chainId: 1, chainName: "sim", name: "Sim", aliases: [], blockTimeMs: 12_000 },
    });
    const ear = at.open(LOGS);
    await at.pass(3_000);
    while (at.mine().logs.length < 2) await at.pass(12_000);
    await at.pass(40);
    assert.equal(ear.events, 0, "not yet checked");
    await at.pass(300);
    assert.ok(ear.events >= 2);
    ear.audience.settled();
    const before = ear.events;
    for (const node of at.nodes.slice(1)) node.manners.deafTo = new Set(["eth_getLogs"]);
    at.nodes[0].manners.deafTo = new Set(["eth_getLogs"]);
    at.nodes[0].manners.omit = 0.5;
    let mined = at.mine();
    for (; mined.logs.length < 3; mined = at.mine()) await at.pass(12_000);
    await at.pass(1_900);
    assert.equal(ear.events, before, "nobody has answered");
    assert.equal(ear.unconfirmed.get(mined.hash), undefined);
    await at.pass(200);
    assert.ok(ear.events > before, "told after two seconds");
    assert.equal(ear.unconfirmed.get(mined.hash), "unanswered");
    for (const node of at.nodes) node.manners.deafTo = new Set();
    await at.pass(30_000);
    ear.audience.settled();
  },
);

test("where no other provider can ever be asked, the source's own answer confirms its logs", async () => {
  const unsupportedMethods = new Set(["eth_getLogs"]);
  const at = createStreamFixture({
    ...STRICT,
    providers: [
      fakeProvider(0, { priority: 0 }),
      fakeProvider(1, { priority: 1, unsupportedMethods }),
      fakeProvider(2, { priority: 2, unsupportedMethods }),
    ],
  });
  const ear = at.open(LOGS);
  await at.pass(3_000);
  await mineSlowly(at, 10);
  await at.pass(3_000);
  ear.audience.settled();
  assert.ok(ear.events > 0);
  assert.equal(ear.unconfirmed.size, 0);
});

test(
  "equal filters are one check, and more than four different ones are one question without a " +
    "filter",
  async () => {
    const at = createStreamFixture(STRICT);
    const ears = [at.open(LOGS), at.open(LOGS), at.open(["logs", { topics: [] }])];
    await at.pass(3_000);
    const asked = (): number =>
      at.nodes.reduce(
        (sum, it) => sum + it.requests.filter((method) => method === "eth_getLogs").length,
        0,
      );
    while (at.mine().logs.length === 0) await at.pass(1_000);
    await at.pass(1_000);
    const before = asked();
    while (at.mine().logs.length === 0) await at.pass(1_000);
    await at.pass(1_000);
    assert.equal(asked() - before, 1);
    const more = ADDRESSES.flatMap((address) =>
      TOPICS.slice(0, 2).map((topic) => at.open(["logs", { address, topics: [topic] }])),
    );
    await at.pass(3_000);
    at.mine();
    const last = asked();
    await at.pass(1_000);
    assert.ok(asked() - last <= 2, `${asked() - last} questions for seven filters`);
    await mineSlowly(at, 10);
    for (const it of [...ears, ...more]) it.audience.settled();
  },
);

test(
  "beyond its budget, and what blocks at the pace of the chain need, strict becomes a sample, " +
    "which is counted and told in the log, and logs are told as they come",
  async () => {
    const lines: string[] = [];
    const at = createStreamFixture({ ...STRICT, verificationBudget: 1 }, false, (line) =>
      lines.push(line),
    );
    const ear = at.open(LOGS);
    await at.pass(3_000);
    for (let n = 0; n < 120; n++) {
      at.mine();
      await at.pass(50);
    }
    await at.pass(3_000);
    ear.audience.settled();
    const [checks] = at.subscriptions.checks();
    assert.ok(checks !== undefined && checks.overBudget > 5, JSON.stringify(checks));
    const overBudget = [...ear.unconfirmed.values()].filter((why) => why === "over_budget");
    assert.equal(overBudget.length, checks.overBudget);
    assert.ok(checks.calls <= 2 * 8 + 12 * 8, `${checks.calls} calls`);
    assert.ok(
      lines.includes("checks of logs are over verification_budget: only a sample is checked"),
    );
  },
);

test(
  "a block without logs that could not be checked for want of budget is checked when there is " +
    "room, and what was left out is told then",
  async () => {
    const at = createStreamFixture({ ...STRICT, verificationBudget: 1 });
    const ear = at.open(LOGS);
    await at.pass(3_000);
    at.nodes[0].manners.omit = 1;
    for (let n = 0; n < 40; n++) {
      at.mine();
      await at.pass(50);
    }
    const [busy] = at.subscriptions.checks();
    assert.ok((busy?.overBudget ?? 0) > 0, JSON.stringify(busy));
    await at.pass(90_000);
    ear.audience.settled();
  },
);

test("a block that is unknown to who checks it is asked for again, and counts against nobody", async () => {
  const at = createStreamFixture(STRICT);
  for (const node of at.nodes) node.manners.unknownMs = 700;
  const ear = at.open(LOGS);
  await at.pass(3_000);
  await mineSlowly(at, 5);
  await at.pass(3_000);
  ear.audience.settled();
  const [checks] = at.subscriptions.checks();
  assert.ok(
    checks !== undefined && checks.agreed > 0 && checks.missing + checks.surplus === 0,
    JSON.stringify(checks),
  );
  for (const provider of at.providers)
    for (const transport of ["http", "ws"] as const)
      assert.equal(at.tracker.health(provider, transport).outcomes.failed, 0);
});

test(
  "blooms that have proved right spare the checks of blocks that hold nothing, until one is " +
    "wrong",
  async () => {
    const at = createStreamFixture(STRICT);
    const nobody = ["logs", { address: `0x${"12".repeat(20)}` }];
    const ear = at.open(LOGS);
    await at.pass(3_000);
    const quiet = at.open(nobody);
    await at.pass(3_000);
    const asked = (): number =>
      at.nodes.reduce(
        (sum, it) => sum + it.requests.filter((method) => method === "eth_getLogs").length,
        0,
      );
    await mineSlowly(at, 150);
    ear.leave();
    await at.pass(61_000);
    const before = asked();
    await mineSlowly(at, 20);
    assert.ok(asked() - before <= 4, `${asked() - before} questions for twenty blocks`);
    at.nodes[0].manners.blooms = "false";
    const again = at.open(LOGS);
    await at.pass(3_000);
    await mineSlowly(at, 10);
    const last = asked();
    await mineSlowly(at, 10);
    assert.ok(asked() - last >= 10, "every block is checked again");
    for (const it of [quiet, again]) it.audience.settled();
  },
);

test("a pinned subscription is checked with its own provider alone", async () => {
  const at = createStreamFixture(STRICT);
  const ear = at.open(LOGS, { pin: at.providers[1] });
  await at.pass(3_000);
  at.nodes[1].manners.omit = 1;
  await mineSlowly(at, 6);
  await at.pass(3_000);
  ear.audience.settled();
  assert.deepEqual([at.nodes[0].requests, at.nodes[2].requests], [[], []]);
});

test("logs of a block that come out of order are told in order", async () => {
  for (const logVerification of ["strict", "sampled", "off"] as const) {
    const at = createStreamFixture({ ...STRICT, logVerification });
    const ear = at.open(LOGS);
    await at.pass(3_000);
    at.nodes[0].manners.disorder = 1;
    await mineSlowly(at, 8);
    await at.pass(3_000);
    ear.audience.settled();
    assert.equal(at.subscriptions.reports()[0]?.provider?.id, "p0");
  }
});

test("a log that comes again after it was taken back is told again only if its block is still there", async () => {
  const at = createStreamFixture();
  const ear = at.open(LOGS);
  await at.pass(3_000);
  while (at.mine().logs.length === 0) await at.pass(1_000);
  const left = at.chain.tip();
  await at.pass(3_000);
  const before = ear.events;
  const log = left.logs.at(-1);
  assert.ok(log !== undefined);
  at.nodes[0].pushLog(left, log, true);
  at.nodes[0].pushLog(left, log, false);
  await at.pass(100);
  assert.equal(ear.events, before + 2, "its block is still there");
  ear.audience.settled();
  // Before the heads of the new branch are told the node takes back the logs of the old one, and
  // sends one of them once more.
  at.nodes[0].manners.logsAfterMs = -500;
  const tip = at.chain.reorg(1, 1);
  for (const node of at.nodes) node.follow(tip);
  at.nodes[0].pushLog(left, log, false);
  await at.pass(3_000);
  ear.audience.settled();
  const fresh = tip.logs.length + (at.chain.byHash(tip.parentHash)?.logs.length ?? 0);
  assert.equal(ear.events, before + 2 + left.logs.length + fresh);
});
