// Listening to heads: a socket is renewed when it is silent while others go on, and left alone when
// the chain itself is silent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Failure, plainFailure } from "../../../src/core/rpc/failure.ts";
import { createHeadWatch } from "../../../src/upstream/health/head-watch.ts";
import { createTracker } from "../../../src/upstream/health/tracker.ts";
import { createTimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { Sockets, SubscriptionListener } from "../../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const TIMEOUT_MS = 10_000;

function createFixture() {
  const runtime = simulatedWorld(1);
  const providers = [fakeProvider(0), fakeProvider(1)] as const;
  const tracker = createTracker(
    fakeSet(providers, { newHeadsTimeoutMs: TIMEOUT_MS }),
    runtime,
    SELECTION,
  );
  const watchers: SubscriptionListener[] = [];
  const renewed: string[] = [];
  let refusal: Failure["kind"] | null = null;
  const sockets: Sockets = {
    send: () => ({ sent: false, cancel() {} }),
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
  const push = (index: number, number: number): void => {
    const hash = `0x${number.toString(16).padStart(64, "0")}`;
    watchers[index]?.event(
      Buffer.from(JSON.stringify({ number: `0x${number.toString(16)}`, hash, parentHash: hash })),
    );
  };
  const begin = (): void =>
    createHeadWatch({ runtime, timerWheel: createTimerWheel(runtime), sockets }).watch([tracker]);
  const refuse = (kind: Failure["kind"]): void => {
    refusal = kind;
  };
  return { runtime, tracker, providers, watchers, renewed, push, begin, refuse };
}

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
