// Batches beyond their caller's rate, in simulated time, over real rate limits: every item is
// served or refused once, in order, and nothing stays behind.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { pino } from "pino";
import { customServiceTiers } from "../../../src/core/billing/access.ts";
import type { RateLimitSize } from "../../../src/core/billing/gcra.ts";
import { takeToken } from "../../../src/core/billing/rate-limit.ts";
import { methodTable } from "../../../src/core/rpc/method-table.ts";
import type { Admission } from "../../../src/hosted/admission/admission.ts";
import { WaitingBatches } from "../../../src/hosted/admission/waiting-batches.ts";
import { type KeyContext, UNBOUND } from "../../../src/hosted/keys/key-context.ts";
import { Observer } from "../../../src/observe/observer.ts";
import type { Router } from "../../../src/upstream/engine/router.ts";
import { ProfileRegistry } from "../../../src/upstream/registry/profile-registry.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { callPaymentOf } from "../../../src/web/payment/call-payment.ts";
import { planBatch, runBatch } from "../../../src/web/rpc/calls/batch.ts";
import { BATCH_DEADLINE_MS } from "../../../src/web/rpc/pacer.ts";
import { TargetResolver } from "../../../src/web/rpc/target.ts";
import { viewOff } from "../../fakes/caller-view.ts";
import { NO_FILTERS } from "../../fakes/filters.ts";
import { resultOutcome } from "../../fakes/outcome.ts";
import { WHOLE_RANGES } from "../../fakes/providers.ts";
import { fakeRoutedCall } from "../../fakes/routed-call.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { configOf, configText } from "../../fakes/service.ts";

/** What a batch was answered. */
interface Ended {
  readonly id: number;
  readonly result?: string;
  readonly error?: {
    readonly code: number;
    readonly data: { readonly code: string; readonly retry_after_ms: number };
  };
}

interface Running {
  readonly cancel: () => void;
  readonly answer: () => readonly Ended[] | null;
  /** Why it was refused as a whole; null = it was not. */
  readonly refused: string | null;
  readonly retryAfterMs: number | null;
}

function createFixture(size: RateLimitSize) {
  const runtime = simulatedWorld(7);
  const timerWheel = new TimerWheel(runtime);
  const config = configOf(configText([{ id: "a", url: "http://a.test" }]));
  const observer = new Observer(pino({ level: "silent" }), runtime);
  const resolver = new TargetResolver(
    new ProfileRegistry(config.chains, config.profiles, runtime, config.selection),
    observer,
  );
  const target = resolver.resolve(
    { url: "/rpc/1", defaultProfile: null, within: null, provider: undefined, strategy: undefined },
    null,
  );
  assert.ok(target.kind === "target");
  const [service] = customServiceTiers("team");
  assert.ok(service !== undefined);
  const batches = new WaitingBatches();
  /** When each item was routed, in order. */
  const routedAtMs: number[] = [];
  const state = { routed: 0, settled: 0, hold: false, held: [] as (() => void)[] };
  const router: Pick<Router, "route"> = {
    route(request, done) {
      routedAtMs.push(runtime.now());
      state.routed++;
      const route = fakeRoutedCall({
        request,
        startedAtMs: runtime.now(),
        cancel: () => ({ sent: false, countedAsTimeout: false }),
      });
      const answer = (): void =>
        done({ outcome: resultOutcome('"0x1"'), source: route.source }, route);
      if (state.hold) state.held.push(answer);
      else answer();
      return route;
    },
  };
  const end = (): null => {
    state.settled++;
    return null;
  };
  const ends = { settle: end, release: end };
  const limit = { bucket: service.rateLimit, tokenMs: 1_000 / size.perSecond };
  const admission = parseGate({
    batches,
    admit(keyContext: KeyContext) {
      const why = takeToken(keyContext.account, service.rateLimit, { size, nowMs: runtime.now() });
      return why === null
        ? { kind: "grant", keyContext, service, strategy: "load-balanced", cu: 1, ...ends }
        : { kind: "refusal", fault: why, keyContext, limit };
    },
  });
  const parts = {
    runtime,
    timerWheel,
    router,
    observer,
    resolver,
    admission,
    filters: NO_FILTERS,
    node: null,
    methods: () => methodTable([]),
    logs: () => WHOLE_RANGES,
    deadlineMs: () => 1_000,
  };
  const holderOf = (id: string): KeyContext => ({
    kind: "key",
    keyId: id,
    account: { id, kind: "account", paid: null, own: null, fullAtMs: null },
    defaultProfile: "team",
    consistency: null,
    bounds: UNBOUND,
    openSockets: null,
    checked: 0,
  });

  function send(keyContext: KeyContext, items: number, concurrency = 32): Running {
    const text = `[${Array.from({ length: items }, (_, n) => `{"jsonrpc":"2.0","id":${n},"method":"eth_gasPrice"}`).join(",")}]`;
    const bytes = Buffer.from(text);
    const limits = { maxBatchItems: items, batchConcurrency: concurrency };
    const plan = planBatch({ ...parts, limits }, bytes, 0, keyContext);
    if (plan.kind === "fault")
      return {
        cancel: () => {},
        answer: () => null,
        refused: plan.code,
        retryAfterMs: plan.retryAfterMs,
      };
    let answer: readonly Ended[] | null = null;
    assert.ok(target.kind === "target");
    const cancel = runBatch(
      parts,
      {
        ...plan,
        bytes,
        target,
        payment: callPaymentOf(admission, keyContext),
        caller: { key: "test" },
        view: viewOff(),
        requestId: "r",
        room: { take: () => true, giveBack: () => {} },
        transport: "http",
        subscriptionMethods: null,
        heard: () => {},
      },
      (pieces) => {
        assert.equal(answer, null, "answered twice");
        answer = JSON.parse(Buffer.concat(pieces ?? []).toString());
      },
    );
    return {
      cancel: () => void cancel("left"),
      answer: () => answer,
      refused: null,
      retryAfterMs: null,
    };
  }

  return { runtime, timerWheel, batches, routedAtMs, state, holderOf, send };
}

function parseGate(it: object): Admission {
  return it as Admission;
}

const ids = (answer: readonly Ended[] | null): readonly number[] =>
  (answer ?? []).map((it) => it.id);
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);

test(
  "a thousand items at a hundred a second: two hundred at once, the rest at the rate, all " +
    "served, in order, and nothing stays behind",
  () => {
    const { runtime, timerWheel, batches, routedAtMs, holderOf, send, state } = createFixture({
      perSecond: 100,
      burst: 200,
    });
    const startMs = runtime.now();
    const batch = send(holderOf("acc_1"), 1_000);
    assert.deepEqual([state.routed, batch.answer(), batches.size], [200, null, 1]);
    runtime.advance(7_900);
    assert.equal(batch.answer(), null);
    runtime.advance(200);
    const answer = batch.answer();
    assert.deepEqual(ids(answer), upTo(1_000));
    assert.ok(answer?.every((it) => it.result === "0x1"));
    for (const [n, atMs] of routedAtMs.entries())
      assert.ok(atMs - startMs >= (n - 200) * 10 - 1, `item ${n} was ahead of the rate`);
    assert.deepEqual([state.settled, batches.size, timerWheel.size], [1_000, 0, 0]);
  },
);

test("what the rate has not admitted by the deadline is refused item by item, with the time to wait", () => {
  const { runtime, batches, timerWheel, holderOf, send } = createFixture({
    perSecond: 1,
    burst: 10,
  });
  const batch = send(holderOf("acc_1"), 100);
  runtime.advance(BATCH_DEADLINE_MS - 100);
  assert.equal(batch.answer(), null);
  runtime.advance(200);
  const answer = batch.answer() ?? [];
  assert.deepEqual(ids(answer), upTo(100));
  const served = answer.filter((it) => it.result !== undefined).length;
  assert.ok(served >= 39 && served <= 40, `${served} served`);
  for (const { error } of answer.slice(served)) {
    assert.deepEqual([error?.code, error?.data.code], [-32005, "rate_limit_exceeded"]);
    assert.ok((error?.data.retry_after_ms ?? 0) > 0);
  }
  assert.deepEqual([batches.size, timerWheel.size], [0, 0]);
});

test(
  "two batches of an account wait, a third is refused as a whole with nothing of it executed; " +
    "those of others are not affected",
  () => {
    const { runtime, batches, holderOf, send, state } = createFixture({ perSecond: 10, burst: 10 });
    const [mine, other] = [holderOf("acc_1"), holderOf("acc_2")];
    const first = send(mine, 50);
    const second = send(mine, 50);
    const { routed } = state;
    assert.deepEqual([send(mine, 2).refused, state.routed], ["rate_limit_exceeded", routed]);
    assert.equal(send(other, 5).answer()?.length, 5);
    const third = send(other, 30);
    assert.deepEqual([third.refused, batches.size], [null, 2]);
    runtime.advance(12_000);
    for (const batch of [first, second])
      assert.ok(batch.answer()?.every((it) => it.result === "0x1"));
    assert.equal(third.answer()?.length, 30);
    assert.equal(batches.size, 0);
    runtime.advance(2_000);
    assert.equal(send(mine, 2).answer()?.length, 2);
  },
);

test(
  "a third batch is told when a place is expected to be free, by what the others have left and " +
    "by their deadlines",
  () => {
    const { runtime, holderOf, send } = createFixture({ perSecond: 10, burst: 10 });
    const keyContext = holderOf("acc_1");
    // Ten of the first begin at once; both then share ten tokens a second.
    const waiting = [send(keyContext, 50), send(keyContext, 60)];
    assert.equal(send(keyContext, 2).retryAfterMs, 2 * 40 * 100);
    runtime.advance(4_000);
    const { retryAfterMs } = send(keyContext, 2);
    assert.ok(
      retryAfterMs !== null && retryAfterMs > 2_000 && retryAfterMs < 6_000,
      `${retryAfterMs} ms`,
    );
    runtime.advance(retryAfterMs / 2);
    assert.equal(send(keyContext, 2).refused, "rate_limit_exceeded", "half of it is too early");
    runtime.advance(retryAfterMs / 2);
    // Timers may be late by a tick.
    runtime.advance(100);
    assert.equal(send(keyContext, 2).refused, null);
    for (const batch of waiting) batch.cancel();

    const other = holderOf("acc_2");
    for (let n = 0; n < 2; n++) send(other, 1_000);
    runtime.advance(20_000);
    assert.equal(send(other, 2).retryAfterMs, BATCH_DEADLINE_MS - 20_000);
    runtime.advance(BATCH_DEADLINE_MS - 20_000 + 100);
    assert.equal(send(other, 2).refused, null);
  },
);

test(
  "a batch that meets the limit while two others of its account wait: its remaining items are " +
    "refused one by one",
  async () => {
    const { runtime, holderOf, send, state } = createFixture({ perSecond: 10, burst: 10 });
    const keyContext = holderOf("acc_1");
    state.hold = true;
    const slow = send(keyContext, 6, 1);
    state.hold = false;
    const waiting = [send(keyContext, 20), send(keyContext, 20)];
    assert.equal(slow.answer(), null);
    for (const answer of state.held) answer();
    await new Promise((resolve) => runtime.atTurnEnd(() => resolve(null)));
    const answer = slow.answer() ?? [];
    assert.deepEqual(ids(answer), upTo(6));
    assert.deepEqual(
      answer.map(({ result, error }) => result ?? error?.data.code),
      ["0x1", ...Array.from({ length: 5 }, () => "rate_limit_exceeded")],
    );
    runtime.advance(5_000);
    for (const batch of waiting) assert.ok(batch.answer()?.every(({ result }) => result === "0x1"));
  },
);

test(
  "a caller who leaves ends the wait: the place is free, no timer is left, and no item is " +
    "started afterwards",
  () => {
    const { runtime, timerWheel, batches, holderOf, send, state } = createFixture({
      perSecond: 1,
      burst: 1,
    });
    const keyContext = holderOf("acc_1");
    const [first, second] = [send(keyContext, 20), send(keyContext, 20)];
    assert.equal(send(keyContext, 1).refused, "rate_limit_exceeded");
    first.cancel();
    second.cancel();
    assert.deepEqual([batches.size, timerWheel.size], [0, 0]);
    const { routed } = state;
    runtime.advance(60_000);
    assert.deepEqual([state.routed, first.answer(), second.answer()], [routed, null, null]);
    assert.equal(send(keyContext, 1).answer()?.length, 1);
  },
);

test(
  "whatever the rate, the number of items and the number of callers: every item ends once, in " +
    "order, not ahead of the rate",
  () => {
    const shape = fc.record({
      perSecond: fc.integer({ min: 1, max: 500 }),
      burst: fc.integer({ min: 1, max: 300 }),
    });
    const sizes = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(
        shape,
        sizes,
        fc.integer({ min: 1, max: 40 }),
        fc.infiniteStream(fc.integer({ min: 0, max: 3_000 })),
        (size, counts, concurrency, gaps) => {
          const { runtime, timerWheel, batches, routedAtMs, holderOf, send, state } =
            createFixture(size);
          const keyContext = holderOf("acc_1");
          const startMs = runtime.now();
          const running = counts.map((count) => {
            const batch = send(keyContext, count, concurrency);
            runtime.advance(gaps.next().value ?? 0);
            return { count, batch };
          });
          runtime.advance(BATCH_DEADLINE_MS + 1_000);
          for (const { count, batch } of running)
            if (batch.refused === null) assert.deepEqual(ids(batch.answer()), upTo(count));
          const served = running.reduce(
            (sum, { batch }) =>
              sum + (batch.answer() ?? []).filter((it) => it.result !== undefined).length,
            0,
          );
          assert.deepEqual(
            [state.routed, state.settled, batches.size, timerWheel.size],
            [served, served, 0, 0],
          );
          for (const [n, atMs] of routedAtMs.entries())
            assert.ok(
              n + 1 <= size.burst + ((atMs - startMs) * size.perSecond) / 1_000 + 1,
              `item ${n} was ahead of the rate`,
            );
        },
      ),
      { numRuns: 100 },
    );
  },
);
