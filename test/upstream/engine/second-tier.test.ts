// The second tier behind the real router, tracker and rules, in simulated time: what one node has
// asked for is known to another that asks the same providers, what must not be shared is not, and a
// call is carried out as if there were no second tier where that has nothing for it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Provider, ProviderSet } from "../../../src/core/provider/profile.ts";
import { readBlockRef } from "../../../src/core/rpc/call.ts";
import { type Failure, plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { CachedAnswers } from "../../../src/upstream/engine/cache/cached-answers.ts";
import { type RoutedCall, Router } from "../../../src/upstream/engine/router.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { SecondTier } from "../../../src/upstream/second-tier/second-tier.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { type TierServer, tierServer } from "../../fakes/tier-server.ts";

const ADDRESS = `"0x${"ab".repeat(20)}"`;
const OLD = `[${ADDRESS},"0x50"]`;
const REVERT: Failure = {
  ...plainFailure("error", "execution reverted"),
  code: 3,
  data: "0x08c379a0",
};

interface NodeSettings {
  readonly profileId?: string;
  readonly chainId?: number;
  readonly providers?: readonly Provider[];
  readonly finalized?: number;
  readonly byAccount?: boolean;
}

const PROVIDERS = [fakeProvider(0, { priority: 0 }), fakeProvider(1, { priority: 1 })];

/** A node at block 100, of which block 90 is final, beside a server of the second tier. */
async function nodeAt(server: TierServer, settings: NodeSettings = {}) {
  const { profileId = "team", chainId = 1, providers = PROVIDERS, finalized = 90 } = settings;
  const runtime = simulatedWorld(7);
  runtime.advance(1_000);
  const log = { warn: () => {}, info: () => {} };
  const tier = new SecondTier({ runtime, log, connect: server.connect, secret: null });
  const cacheSettings = {
    maxBytes: 1_048_576,
    accountMaxBytes: 262_144,
    byAccount: settings.byAccount === true,
    methods: new Map<string, number>(),
  };
  const cached = new CachedAnswers(() => cacheSettings, tier);
  const set: ProviderSet = fakeSet(providers);
  const chain = { ...set.chain, chainId };
  const tracker = new Tracker({ ...set, chain }, runtime, { ...SELECTION, profileId });
  const sent: string[] = [];
  const node = { said: '"0x1"', failure: null as Failure | null, during: () => {} };
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
    hedge: () => null,
    coalesce: () => true,
    byAccount: () => cacheSettings.byAccount,
    cache: cached,
    upstreams: {
      http: {
        send({ provider }, listener) {
          sent.push(provider.id);
          runtime.after(5, () => {
            node.during();
            const bytes = Buffer.from(
              node.failure === null ? node.said : '{"code":3,"data":"0x08"}',
            );
            if (node.failure !== null) listener.failed(node.failure, bytes);
            else listener.result(bytes, { start: 0, end: bytes.length, idAt: null });
          });
          return { sent: true, cancel() {} };
        },
      },
    },
  });
  for (const provider of providers) {
    for (let number = 80; number <= 100; number++) {
      const hashOf = (of: number): string => `0x${of.toString(16).padStart(64, "0")}`;
      const head = { number, hash: hashOf(number), parentHash: hashOf(number - 1) };
      tracker.recordHead(provider, number, head);
    }
    tracker.recordNamed(provider, "finalized", finalized);
  }
  const begin = (method: string, params: string, more: object = {}) => {
    const written = writeRequest(method, Buffer.from(params));
    const row = methodOf(method);
    const block = readBlockRef(written.body, written.params, row);
    const told: string[] = [];
    const routed: RoutedCall = router.route(
      {
        call: { methodName: method, method: row, block, ...written },
        tracker,
        strategy: "priority",
        pin: null,
        transport: "http",
        avoid: null,
        caller: { key: "caller" },
        deadlineMs: 5_000,
        mayStream: true,
        ...more,
      },
      ({ outcome }, { cacheUse }) => {
        const text =
          outcome.kind === "result"
            ? outcome.body.toString("latin1", outcome.start, outcome.end)
            : outcome.kind;
        told.push(`${text} ${cacheUse?.result === "hit" ? cacheUse.tier : cacheUse?.result}`);
      },
    );
    return { told, routed };
  };
  /** Lets the server and the providers answer. */
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 12; turn++) await setImmediate();
    runtime.advance(10);
    for (let turn = 0; turn < 12; turn++) await setImmediate();
  };
  const call = async (method: string, params: string, more: object = {}): Promise<string> => {
    const { told } = begin(method, params, more);
    await settle();
    assert.equal(told.length, 1);
    return told[0] ?? "";
  };
  tier.use("redis://localhost");
  await settle();
  // The first look-up makes the generation.
  await call("eth_getBalance", `[${ADDRESS},"0x10"]`);
  sent.length = 0;
  return { runtime, cached, tracker, tier, node, sent, begin, settle, call };
}

test("what one node has asked for another one with the same providers is given", async () => {
  const server = tierServer();
  const [first, second] = [await nodeAt(server), await nodeAt(server)];
  assert.equal(await first.call("eth_getBalance", OLD), '"0x1" miss');
  second.node.said = '"0x2"';
  assert.equal(await second.call("eth_getBalance", OLD), '"0x1" redis');
  assert.equal(await second.call("eth_getBalance", OLD), '"0x1" memory');
  assert.deepEqual(second.sent, []);
  first.node.failure = REVERT;
  const revert = `[{"to":${ADDRESS}},"0x50"]`;
  assert.equal(await first.call("eth_call", revert), "error miss");
  assert.equal(await second.call("eth_call", revert), "error redis");
  assert.deepEqual(second.sent, []);
});

test("nothing is shared with another profile, chain or set of providers, nor with an account", async () => {
  const server = tierServer();
  const first = await nodeAt(server);
  await first.call("eth_getBalance", OLD);
  const [one, two] = PROVIDERS;
  assert.ok(one !== undefined && two !== undefined);
  const others: readonly NodeSettings[] = [
    { profileId: "other" },
    { chainId: 2 },
    { providers: [one] },
    { providers: [one, { ...two, id: "renamed" }] },
    { providers: [one, { ...two, url: "https://elsewhere.example" }] },
    { providers: [one, { ...two, headers: { "x-key": "another" } }] },
  ];
  for (const settings of others) {
    const node = await nodeAt(server, settings);
    assert.equal(await node.call("eth_getBalance", OLD), '"0x1" miss', JSON.stringify(settings));
  }
  const before = server.commands.filter((name) => name !== "PING").length;
  const custom = await nodeAt(server, { profileId: "account/mine" });
  assert.equal(await custom.call("eth_getBalance", OLD), '"0x1" miss');
  assert.equal(await custom.call("eth_getBalance", OLD), '"0x1" memory');
  assert.equal(server.commands.filter((name) => name !== "PING").length, before, "never");
});

test("with `scope: account` each account is given only what it has asked for itself", async () => {
  const server = tierServer();
  const [first, second] = [
    await nodeAt(server, { byAccount: true }),
    await nodeAt(server, { byAccount: true }),
  ];
  await first.call("eth_getBalance", OLD, { caller: { key: "one" } });
  assert.equal(await second.call("eth_getBalance", OLD, { caller: { key: "two" } }), '"0x1" miss');
  assert.equal(await second.call("eth_getBalance", OLD, { caller: { key: "one" } }), '"0x1" redis');
});

test("only what is final here is looked up or given, and only what never changes is stored", async () => {
  const server = tierServer();
  const first = await nodeAt(server);
  const stored = (): number => server.commands.filter((name) => name === "SET").length;
  const before = stored();
  for (const params of [`[${ADDRESS},"0x5f"]`, `[${ADDRESS},"latest"]`, `[${ADDRESS},"finalized"]`])
    await first.call("eth_getBalance", params);
  first.node.said = "null";
  await first.call("eth_getBlockByNumber", '["0x50",false]');
  first.node.said = '"0x"';
  await first.call("eth_getCode", OLD);
  assert.equal(stored(), before);

  const receipt = `["0x${"1".repeat(64)}"]`;
  const hash = `0x${(85).toString(16).padStart(64, "0")}`;
  first.node.said = `{"blockHash":"${hash}","blockNumber":"0x55"}`;
  await first.call("eth_getTransactionReceipt", receipt);
  assert.equal(stored(), before + 1);
  const behind = await nodeAt(server, { finalized: 84 });
  behind.node.said = first.node.said;
  assert.match(await behind.call("eth_getTransactionReceipt", receipt), /miss$/);
  assert.equal(behind.sent.length, 1);
  assert.equal(behind.tier.report()?.lookUps.unusable, 1);
  const level = await nodeAt(server);
  assert.match(await level.call("eth_getTransactionReceipt", receipt), /redis$/);
});

test("a hundred equal calls are one look-up and one call to a provider", async () => {
  const server = tierServer();
  const node = await nodeAt(server);
  const before = server.commands.length;
  const calls = Array.from({ length: 100 }, () => node.begin("eth_getBalance", OLD));
  await node.settle();
  await node.settle();
  assert.deepEqual([node.sent.length, server.commands.length - before], [1, 3]);
  for (const { told } of calls) assert.deepEqual(told, ['"0x1" miss']);
});

test("a caller who leaves is told nothing, and a call with little time is not looked up", async () => {
  const server = tierServer();
  const node = await nodeAt(server);
  const left = node.begin("eth_getBalance", OLD);
  assert.deepEqual(left.routed.cancel(), { sent: false, countedAsTimeout: false });
  await node.settle();
  assert.deepEqual([left.told, node.sent], [[], []]);
  const leaves = node.begin("eth_getBalance", OLD);
  for (let turn = 0; turn < 12; turn++) await setImmediate();
  assert.equal(node.sent.length, 1);
  assert.equal(leaves.routed.cancel().sent, true, "it has been asked of a provider meanwhile");
  await node.settle();
  assert.deepEqual(leaves.told, []);
  const before = server.commands.length;
  assert.equal(await node.call("eth_getBalance", OLD, { deadlineMs: 39 }), '"0x1" miss');
  assert.equal(server.commands.length, before);
});

test("a server that is silent or gone fails no call", async () => {
  const server = tierServer();
  const node = await nodeAt(server);
  server.mode = "silent";
  const { told } = node.begin("eth_getBalance", OLD);
  for (let turn = 0; turn < 12; turn++) await setImmediate();
  node.runtime.advance(19);
  assert.equal(node.sent.length, 0);
  node.runtime.advance(1);
  assert.equal(node.sent.length, 1);
  await node.settle();
  assert.deepEqual(told, ['"0x1" miss']);
  server.mode = "down";
  server.cut();
  assert.equal(await node.call("eth_getCode", OLD), '"0x1" miss');
  assert.equal(await node.call("eth_getCode", OLD), '"0x1" memory');
});

test("what is stored of a provider that is not among these, or is no answer, is not given", async () => {
  const server = tierServer();
  const first = await nodeAt(server);
  await first.call("eth_getBalance", OLD);
  const [key, good] = [...server.values].findLast(([name]) => !name.endsWith(":generation")) ?? [];
  assert.ok(key !== undefined && good !== undefined);
  const change = (at: number, byte: number): Buffer => {
    const bytes = Buffer.from(good);
    bytes.writeUInt8(byte, at);
    return bytes;
  };
  // This byte belongs to a checksum, and may have any value.
  const checked = good.length - 5;
  const bad = [change(67, 0x7a), change(4, 1), change(checked, good.readUInt8(checked) ^ 1)];
  for (const [index, bytes] of bad.entries()) {
    server.values.set(key, bytes);
    const node = await nodeAt(server);
    node.node.said = '"0x2"';
    assert.equal(await node.call("eth_getBalance", OLD), '"0x2" miss', String(index));
    assert.equal(node.tier.report()?.lookUps.unusable, 1);
  }
});

test("what was asked for before a purge is not kept after it, here or in the second tier", async () => {
  const server = tierServer();
  const [node, other] = [await nodeAt(server), await nodeAt(server)];
  const all = { profile: null, chain: null, provider: null, method: null };
  node.node.during = () => void node.cached.purge(all);
  await node.call("eth_getBalance", OLD);
  node.node.during = () => {};
  assert.equal(await other.call("eth_getBalance", OLD), '"0x1" miss');
  node.node.said = '"0x2"';
  assert.match(await node.call("eth_getBalance", OLD), /redis$/, "the other one asked after it");
  assert.equal(await node.cached.purge(all), true);
  assert.equal(await node.call("eth_getBalance", OLD), '"0x2" miss');
});

test("what a provider has told goes from the second tier when it is on another chain", async () => {
  const server = tierServer();
  const [node, other] = [await nodeAt(server), await nodeAt(server)];
  await node.call("eth_getBalance", OLD);
  assert.match(await (await nodeAt(server)).call("eth_getBalance", OLD), /redis$/);
  const wrong = { kind: "ok", chainId: 666, height: 100 } as const;
  const [provider] = PROVIDERS;
  assert.ok(provider !== undefined);
  node.tracker.recordProbe({ provider, transport: "http", latencyMs: 1, result: wrong });
  await node.settle();
  assert.equal(await other.call("eth_getBalance", OLD), '"0x1" miss');
});
