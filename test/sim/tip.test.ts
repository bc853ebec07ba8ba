// Subscriptions and calls at one tip, in simulated time: one provider pushes each block at once,
// the other some time later. A subscriber that is told of a block finds it with the next call, at
// either provider.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Consistency,
  DEFAULT_CONSISTENCY,
  type Provider,
} from "../../src/core/provider/profile.ts";
import { NO_BLOCK } from "../../src/core/rpc/call.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import { readSubscription } from "../../src/core/stream/subscription.ts";
import type { Outcome } from "../../src/upstream/engine/answer.ts";
import type { RouteRequest } from "../../src/upstream/engine/call-context.ts";
import { Router } from "../../src/upstream/engine/router.ts";
import { Prober } from "../../src/upstream/health/prober.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import type { StreamPosition } from "../../src/upstream/stream/subscriber.ts";
import { Subscriptions } from "../../src/upstream/stream/subscriptions.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import { chainAudience } from "../fakes/audience.ts";
import { fakeChain } from "../fakes/chain.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { seededRandom, simulatedWorld } from "../fakes/runtime.ts";
import { seedsBesides } from "../fakes/seed.ts";
import { fakeSockets } from "../fakes/sockets.ts";

const BLOCK_MS = 2_000;
const CHAIN = { chainId: 1, chainName: "sim", name: "Sim", aliases: [], blockTimeMs: BLOCK_MS };
const HEADS = ["newHeads"];
const LOGS = ["logs", {}];

interface Options {
  readonly seed?: number;
  readonly consistency?: Consistency;
}

/** Two providers, the first preferred, whose heads are heard. */
function createFixture({ seed = 1, consistency = DEFAULT_CONSISTENCY }: Options = {}) {
  const random = seededRandom(seed);
  const runtime = simulatedWorld(seed + 1);
  const timerWheel = new TimerWheel(runtime);
  const chain = fakeChain(random);
  const providers = [fakeProvider(0, { priority: 0 }), fakeProvider(1, { priority: 1 })] as const;
  const sockets = fakeSockets(runtime, chain, providers);
  const [fast, slow] = [sockets.node(providers[0]), sockets.node(providers[1])];
  const tracker = new Tracker(fakeSet(providers, { chain: CHAIN }), runtime, SELECTION);
  const { view } = tracker.blocks;
  const limits = () => ({ maxAttempts: 3, firstAttemptShare: 0.5 });
  const upstreams = { ws: sockets };
  const router = new Router({ runtime, timerWheel, upstreams, limits, hedge: () => null });
  const streams = { runtime, timerWheel, router, sockets, consistency: () => consistency };
  const subscriptions = new Subscriptions(streams);
  const kept = {
    ...sockets,
    keep(_: Provider, listener: { up(): void }) {
      listener.up();
      return () => {};
    },
  };
  const ofWatch = { runtime, timerWheel, consistency: () => DEFAULT_CONSISTENCY };
  const watch = new Prober({ ...ofWatch, upstreams: {}, sockets: kept });
  watch.watch([tracker]);
  /** A call at the view; `avoid` = the id of a provider that is not asked. */
  const ask = (
    methodName: string,
    params: unknown,
    avoid: string | null = null,
  ): Promise<unknown> =>
    new Promise((resolve) => {
      router.route(requestOf(methodName, params, { tracker, avoid }), ({ outcome }) =>
        resolve(resultIn(outcome)),
      );
    });
  const pass = async (ms: number): Promise<void> => {
    for (const endMs = runtime.now() + ms; runtime.now() < endMs; ) {
      runtime.advance(Math.min(10, endMs - runtime.now()));
      await new Promise(setImmediate);
    }
  };
  /** Mines; the slow provider follows after a time. */
  const mine = (slowMs = 50 + random() * 250): void => {
    const tip = chain.mine();
    fast.follow(tip);
    runtime.after(slowMs, () => slow.follow(tip));
  };
  const open = (params: unknown, hear: (number: number, hash: string) => void, pin = false) => {
    const subscription = readSubscription(params);
    assert.ok(subscription.kind !== "invalid");
    const complaints: string[] = [];
    const fail = (what: string): never => {
      complaints.push(what);
      return assert.fail(what);
    };
    const height = (): number => view.tip?.number ?? 0;
    const audience = chainAudience({ chain, subscription, height, fail });
    const heard: { position: StreamPosition | null; ended: string | null } = {
      position: null,
      ended: null,
    };
    subscriptions.open(
      {
        profile: "team",
        tracker,
        subscription,
        strategy: "priority",
        pin: pin ? providers[0] : null,
        caller: null,
        deadlineMs: 5_000,
      },
      {
        started(_, position) {
          heard.position = position ?? null;
          audience.started();
        },
        refused: () => assert.fail("refused"),
        events(results) {
          audience.events(results);
          for (const raw of results) {
            const { number, hash, blockNumber, blockHash } = JSON.parse(raw.toString());
            hear(Number(number ?? blockNumber), hash ?? blockHash);
          }
        },
        ended: (reason) => {
          heard.ended = reason;
        },
      },
    );
    return { heard, audience, complaints };
  };
  const use = { ask, pass, mine, open };
  return { runtime, timerWheel, chain, tracker, view, fast, slow, subscriptions, watch, ...use };
}

function requestOf(
  methodName: string,
  params: unknown,
  { tracker, avoid }: { readonly tracker: Tracker; readonly avoid: string | null },
): RouteRequest {
  const body = writeRequest(methodName, Buffer.from(JSON.stringify(params)));
  return {
    call: { methodName, method: methodOf(methodName), block: NO_BLOCK, ...body },
    tracker,
    strategy: "priority",
    pin: null,
    transport: "ws",
    caller: { key: "caller" },
    avoid: avoid === null ? null : new Set([avoid]),
    deadlineMs: 5_000,
    view: tracker.blocks.view.current(),
    mayStream: false,
  };
}

function resultIn(outcome: Outcome): unknown {
  assert.ok(outcome.kind === "result", outcome.kind);
  return JSON.parse(outcome.body.toString("utf8", outcome.start, outcome.end));
}

/** What a caller finds right after it was told of a block: complaints. */
async function lookAt(
  { ask }: Pick<ReturnType<typeof createFixture>, "ask">,
  number: number,
  hash: string,
): Promise<readonly string[]> {
  const asked = [ask("eth_blockNumber", []), ask("eth_getBlockByHash", [hash, false], "p0")];
  const [height, block] = await Promise.all(asked);
  const complaints: string[] = [];
  if (Number(height) < number) complaints.push(`${number} was told, and the height is ${height}`);
  if (block === null) complaints.push(`${number} was told, and the slow provider lacks it`);
  return complaints;
}

/** Follows the chain for some blocks: what callers have to complain of, and how many looked. */
async function follow(options: Options): Promise<{ complaints: readonly string[]; looks: number }> {
  const at = createFixture(options);
  at.slow.manners.latencyMs = 0;
  await at.pass(100);
  const looks: Promise<readonly string[]>[] = [];
  const look = (number: number, hash: string): void => void looks.push(lookAt(at, number, hash));
  const heads = at.open(HEADS, look);
  const logs = at.open(LOGS, look);
  await at.pass(200);
  for (let blocks = 0; blocks < 20; blocks++) {
    at.mine();
    await at.pass(BLOCK_MS);
  }
  heads.audience.settled();
  logs.audience.settled();
  const complaints = await Promise.all(looks);
  return { complaints: complaints.flat(), looks: looks.length };
}

for (const seed of seedsBesides(1, 2)) {
  test(`after a notification its block is found by the very next call (seed ${seed})`, async () => {
    const { complaints, looks } = await follow({ seed });
    assert.ok(looks > 30, `${looks} notifications`);
    assert.deepEqual(complaints, []);
  });
}

test("without the buffer callers are told a lower height right after", async () => {
  const { complaints } = await follow({ consistency: "off" });
  assert.ok(complaints.some((text) => text.includes("the height is")));
});

test("a subscription that begins while its provider is ahead begins with the block after the tip", async () => {
  for (const params of [HEADS, LOGS]) {
    const at = createFixture();
    await at.pass(100);
    const tip = at.view.current()?.number ?? 0;
    at.fast.follow(at.chain.mine());
    await at.pass(30);
    const told: number[] = [];
    const { audience } = at.open(params, (number) => void told.push(number));
    await at.pass(300);
    assert.deepEqual([told, at.view.current()?.number], [[], tip]);
    at.slow.follow(at.chain.tip());
    await at.pass(300);
    const all = at.chain.tip().logs.length;
    assert.equal(told.length, params === HEADS ? 1 : all);
    assert.ok(told.every((number) => number === tip + 1));
    audience.settled();
  }
});

test("a block that one provider alone has is told after one block time, and is the tip then", async () => {
  const at = createFixture();
  await at.pass(100);
  const told: number[] = [];
  const { heard } = at.open(HEADS, (number) => void told.push(number));
  await at.pass(200);
  const block = at.chain.mine();
  at.fast.follow(block);
  await at.pass(BLOCK_MS - 100);
  assert.deepEqual(told, []);
  assert.equal(heard.position?.height, block.number - 1, "it stands where its subscribers stand");
  assert.equal(heard.position?.mark()?.blocks.at(-1)?.number, block.number - 1);
  await at.pass(200);
  assert.deepEqual(
    [told, at.view.tip],
    [[block.number], { number: block.number, hash: block.hash }],
  );
  assert.equal(heard.position?.mark()?.blocks.at(-1)?.hash, block.hash);
  const [report] = at.subscriptions.reports();
  assert.ok((report?.lagMs ?? 0) >= BLOCK_MS, "the time that it was held is part of the lag");
});

test("a pinned subscription is told what its provider tells, at once", async () => {
  const at = createFixture();
  await at.pass(100);
  const told: number[] = [];
  at.open(HEADS, (number) => void told.push(number), true);
  await at.pass(200);
  at.fast.follow(at.chain.mine());
  await at.pass(50);
  assert.deepEqual(told, [at.chain.tip().number]);
});

test("what is held when its provider is lost is told in its turn, and nothing twice", async () => {
  for (const params of [HEADS, LOGS]) {
    const at = createFixture();
    await at.pass(100);
    const told: number[] = [];
    const { audience, complaints } = at.open(params, (number) => void told.push(number));
    await at.pass(200);
    at.fast.follow(at.chain.mine());
    await at.pass(100);
    at.fast.die();
    await at.pass(300);
    assert.deepEqual(told, []);
    at.chain.mine();
    at.slow.follow(at.chain.tip());
    await at.pass(3_000);
    audience.settled();
    assert.deepEqual(complaints, []);
    assert.equal(at.subscriptions.reports()[0]?.provider?.id, "p1");
  }
});

test("a stream that ends while it holds leaves nothing behind", async () => {
  const at = createFixture();
  await at.pass(100);
  const told: number[] = [];
  const { heard } = at.open(HEADS, (number) => void told.push(number));
  await at.pass(200);
  at.fast.follow(at.chain.mine());
  await at.pass(50);
  at.subscriptions.close();
  at.watch.close();
  assert.deepEqual([heard.ended, at.timerWheel.size], ["the service stops", 0]);
  await at.pass(5_000);
  assert.deepEqual([told, at.view.tip?.number], [[], at.chain.tip().number - 1]);
});
