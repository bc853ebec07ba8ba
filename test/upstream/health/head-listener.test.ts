// Listening to heads: a socket is renewed when it is silent while others go on, and left alone when
// the chain itself is silent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { quietMs } from "../../../src/core/provider/blocks/head.ts";
import type { Consistency, ProviderSet } from "../../../src/core/provider/profile.ts";
import { type Failure, plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { Prober } from "../../../src/upstream/health/prober.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { Sockets, SubscriptionListener } from "../../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const TIMEOUT_MS = 10_000;

function createFixture(overrides: Partial<ProviderSet> = {}) {
  const runtime = simulatedWorld(1);
  const providers = [fakeProvider(0), fakeProvider(1)] as const;
  const tracker = new Tracker(
    fakeSet(providers, { newHeadsTimeoutMs: TIMEOUT_MS, ...overrides }),
    runtime,
    SELECTION,
  );
  const watchers: SubscriptionListener[] = [];
  const renewed: string[] = [];
  /** Whom somebody was asked whether it is there, and who answers that. */
  const doubted: string[] = [];
  const answering = new Set<string>();
  let refusal: Failure["kind"] | null = null;
  /** Requests for the newest block that wait for an answer, by provider. */
  const newest = new Map<string, (number: number) => void>();
  const sockets: Sockets = {
    send({ provider: { id }, body, methodName }, listener) {
      if (methodName === "eth_chainId") {
        doubted.push(id);
        const result = Buffer.from('"0x1"');
        if (answering.has(id))
          listener.result(result, { start: 0, end: result.length, idAt: null });
        return { sent: true, cancel() {} };
      }
      assert.ok(body.includes('"params":["latest",false]'), String(body));
      newest.set(id, (number) => {
        const result = Buffer.from(blockText(number));
        listener.result(result, { start: 0, end: result.length, idAt: null });
      });
      return { sent: true, cancel: () => void newest.delete(id) };
    },
    retain() {},
    close: () => Promise.resolve(),
    subscribe(_, __, watcher) {
      watchers.push(watcher);
      if (refusal === null) watcher.started();
      else watcher.refused(plainFailure(refusal, "no"), null);
      return { sent: true, cancel() {} };
    },
    keep(_, socketListener) {
      socketListener.up();
      return () => {};
    },
    renew: ({ id }) => void renewed.push(id),
    report: () => ({ state: "open", subscriptions: 1, opened: 1, strayFrames: 0 }),
  };
  const push = (index: number, number: number): void =>
    watchers[index]?.event(Buffer.from(blockText(number)));
  const seen: string[] = [];
  const begin = (consistency: Consistency = "off"): void =>
    new Prober({
      runtime,
      upstreams: {},
      timerWheel: new TimerWheel(runtime),
      sockets,
      consistency: () => consistency,
      tell(_, { id }, fact) {
        if (fact.kind === "head") seen.push(`${id} ${fact.height} ${fact.head?.raw.length}`);
      },
    }).watch([tracker]);
  const refuse = (kind: Failure["kind"]): void => {
    refusal = kind;
  };
  const heard = { watchers, renewed, newest, seen, doubted, answering };
  return { runtime, tracker, providers, ...heard, push, begin, refuse };
}

function blockText(number: number): string {
  const hash = hashOf(number);
  const parentHash = hashOf(number - 1);
  const transactions = number === LONG_BLOCK ? [hash.repeat(1_000)] : [];
  return JSON.stringify({ number: `0x${number.toString(16)}`, hash, parentHash, transactions });
}

function hashOf(number: number): string {
  return `0x${number.toString(16).padStart(64, "0")}`;
}

/** A block with many transactions. */
const LONG_BLOCK = 200;

test(
  "a chain without new blocks renews no socket, also when its height was polled before " +
    "anything was pushed",
  () => {
    const { runtime, tracker, providers, renewed, begin } = createFixture();
    const poll = (): void =>
      tracker.recordProbe({
        provider: providers[0],
        transport: "http",
        latencyMs: 1,
        result: { kind: "ok", chainId: 1, height: 100 },
      });
    poll();
    begin();
    for (let n = 0; n < 10; n++) {
      runtime.advance(TIMEOUT_MS / 2);
      poll();
    }
    assert.deepEqual(renewed, []);
  },
);

test("a socket that stays silent while another provider goes on is renewed", () => {
  const { runtime, renewed, push, begin } = createFixture();
  begin();
  for (let number = 101; number < 112; number++) {
    push(0, number);
    runtime.advance(TIMEOUT_MS / 10);
  }
  assert.deepEqual(renewed, ["p1"]);
});

test("a provider that falls behind is asked whether it is there, and its socket renewed if not", () => {
  for (const isThere of [false, true]) {
    const chain = { ...fakeSet([]).chain, blockTimeMs: 1_000 };
    const { runtime, renewed, doubted, answering, push, begin } = createFixture({ chain });
    if (isThere) answering.add("p1");
    begin();
    push(0, 101);
    push(1, 101);
    push(0, 102);
    const quiet = quietMs(chain);
    runtime.advance(quiet - 200);
    assert.deepEqual(doubted, []);
    push(0, 103);
    runtime.advance(400);
    assert.deepEqual(doubted, ["p1"]);
    runtime.advance(2_200);
    assert.deepEqual(renewed, isThere ? [] : ["p1"]);
  }
});

test("a socket is renewed when the circuit opens, unless its provider answers on it", () => {
  for (const transport of ["http", "ws"] as const)
    for (const isThere of [false, true]) {
      const { runtime, tracker, providers, renewed, doubted, answering, begin } = createFixture();
      if (isThere) answering.add("p1");
      begin();
      const [, provider] = providers;
      const verdict = {
        category: "server",
        step: "next",
        effect: { kind: "failure", cause: "server" },
      } as const;
      for (let n = 0; n < 20 && doubted.length === 0; n++)
        tracker.record(methodOf("eth_call"), {
          provider,
          transport,
          latencyMs: 10,
          verdict,
          code: 503,
        });
      assert.deepEqual(doubted, ["p1"]);
      runtime.advance(2_200);
      assert.deepEqual(renewed, isThere ? [] : ["p1"]);
    }
});

test("heads that were not acknowledged are asked for again soon, those that were refused later", () => {
  for (const [kind, soonMs] of [
    ["timeout", 2_000],
    ["error", 30_000],
  ] as const) {
    const { runtime, watchers, begin, refuse } = createFixture();
    refuse(kind);
    begin();
    assert.equal(watchers.length, 2);
    runtime.advance(soonMs - 100);
    assert.equal(watchers.length, 2);
    runtime.advance(200);
    assert.equal(watchers.length, 4);
  }
});

test("when it begins to listen, the newest block is asked for, and is a head with its hash", () => {
  const { tracker, newest, seen, begin } = createFixture();
  begin("tip");
  assert.deepEqual([...newest.keys()], ["p0", "p1"]);
  assert.equal(tracker.blocks.view.current(), null);
  newest.get("p0")?.(LONG_BLOCK);
  newest.get("p1")?.(LONG_BLOCK);
  const view = tracker.blocks.view.current();
  assert.deepEqual([view?.number, view?.hash, view?.isAlone], [200, hashOf(200), false]);
  assert.equal(tracker.blocks.view.hashAt(200), hashOf(200));
  // What other workers are told of it is as short as a head that was pushed.
  const shown = JSON.stringify({ number: "0xc8", hash: hashOf(200), parentHash: hashOf(199) });
  assert.deepEqual(seen, [`p0 200 ${shown.length}`, `p1 200 ${shown.length}`]);
});

test("a head that was pushed meanwhile is newer than the answer", () => {
  const { runtime, tracker, providers, newest, push, begin } = createFixture();
  begin("tip");
  push(0, 102);
  push(1, 102);
  assert.equal(newest.size, 0, "nobody waits for the answer any more");
  const [first] = providers;
  assert.equal(tracker.blocks.pushedTip(first), 102);
  runtime.advance(6_000);
  assert.equal(tracker.blocks.pushedTip(first), 102);
});

test("a socket that comes back behind what it had pushed takes nothing back", () => {
  const { tracker, providers, watchers, newest, push, begin } = createFixture();
  begin("tip");
  push(0, 102);
  // The subscription was lost, and is there again at a node that is behind.
  watchers[0]?.started();
  newest.get("p0")?.(101);
  assert.equal(tracker.blocks.pushedTip(providers[0]), 102);
});

test("where block tags go out as written, the newest block is not asked for", () => {
  const { newest, begin } = createFixture();
  begin("off");
  assert.equal(newest.size, 0);
});
