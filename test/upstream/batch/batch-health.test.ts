// What a batch says of its provider's health: what happens to all of its calls at once counts once,
// while each call keeps its own deadline. Over the real router and tracker, in simulated time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { BatchCounts, batchingUpstream } from "../../../src/upstream/batch/batching-upstream.ts";
import type { Answer } from "../../../src/upstream/engine/answer.ts";
import { Router } from "../../../src/upstream/engine/router.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { BatchListener, BatchUpstream } from "../../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const CALLS = 12;
const DEADLINE_MS = 5_000;

/** Twelve calls of as many callers at one provider, with batches or without. */
function fixture(batch: { readonly max: number; readonly waitMs: number } | null) {
  const world = simulatedWorld(3);
  const turnEnds: (() => void)[] = [];
  const runtime = { ...world, atTurnEnd: (run: () => void) => void turnEnds.push(run) };
  const provider = fakeProvider(0, { wsUrl: null, batch });
  const tracker = new Tracker(fakeSet([provider]), runtime, SELECTION);
  const batches: BatchListener[] = [];
  let alone = 0;
  const http: BatchUpstream = {
    send() {
      alone++;
      return { sent: true, cancel() {} };
    },
    sendBatch(_, listener) {
      batches.push(listener);
      return { sent: true, cancel() {} };
    },
  };
  const countAgain = (): boolean => true;
  const upstream = batchingUpstream(http, { runtime, counts: new BatchCounts(), countAgain });
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    upstreams: { http: upstream },
    limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
    hedge: () => null,
  });
  const answers: Answer[] = [];
  function ask(deadlineMs = DEADLINE_MS): void {
    for (let n = 0; n < CALLS; n++) {
      const call = {
        methodName: "eth_call",
        method: methodOf("eth_call"),
        block: { kind: "none" } as const,
        ...writeRequest("eth_call", null),
      };
      router.route(
        {
          call,
          tracker,
          strategy: "priority",
          pin: null,
          transport: "http",
          avoid: null,
          caller: { key: `caller ${n}` },
          deadlineMs: deadlineMs + n * 100,
          mayStream: true,
        },
        (answer) => void answers.push(answer),
      );
    }
    for (const run of turnEnds.splice(0)) run();
  }
  const health = () => tracker.health(provider, "http");
  const circuit = (): string => health().breaker;
  return { runtime, batches, answers, ask, health, circuit, alone: () => alone };
}

test("a batch that hangs is one silence; as many requests would have opened the circuit", () => {
  const together = fixture({ max: 100, waitMs: 0 });
  together.ask();
  together.runtime.advance(3_000);
  assert.deepEqual([together.batches.length, together.circuit()], [1, "closed"]);
  together.runtime.advance(DEADLINE_MS);
  assert.equal(together.answers.length, CALLS, "each at its own deadline");
  assert.equal(together.circuit(), "closed");
  const apart = fixture(null);
  apart.ask();
  apart.runtime.advance(3_000);
  assert.deepEqual([apart.alone(), apart.circuit()], [CALLS, "open"]);
});

test("two batches in a row that hang open the circuit, like two requests of two callers", () => {
  const it = fixture({ max: 6, waitMs: 0 });
  it.ask();
  it.runtime.advance(3_000);
  assert.deepEqual([it.batches.length, it.circuit()], [2, "open"]);
});

test("a batch that fails is one failure, whether as a whole or in each of its calls", () => {
  const it = fixture({ max: 100, waitMs: 0 });
  for (let round = 0; round < 5; round++) {
    assert.equal(it.circuit(), "closed", `after ${round} batches`);
    it.ask();
    const batch = it.batches[round] ?? assert.fail();
    const failure = { ...plainFailure("body", "Bad Gateway"), httpStatus: 502 };
    if (round % 2 === 0) batch.over({ kind: "failed", passedOver: 0, failure });
    else
      for (let place = 0; place < CALLS; place++)
        batch.failed(
          place,
          { ...plainFailure("error", "internal error"), code: -32_603, httpStatus: 200 },
          Buffer.from('{"code":-32603,"message":"internal error"}'),
        );
    it.runtime.advance(10);
  }
  assert.equal(it.circuit(), "open", "five in a row");
});

test("a batch that is refused for the rate of requests is one refusal", () => {
  const it = fixture({ max: 100, waitMs: 0 });
  it.ask();
  const failure = { ...plainFailure("body", "slow down"), httpStatus: 429, retryAfter: "20" };
  it.batches[0]?.over({ kind: "failed", passedOver: 0, failure });
  assert.equal(it.health().learned.requestsPerSecond, CALLS / 2, "halved once");
  assert.equal(it.circuit(), "closed");
});
