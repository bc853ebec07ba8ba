// What the router tells of a call that its caller leaves, at every point of its way: whether
// anything was sent, and whether a provider had timed out.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Abandoned } from "../../../src/core/billing/charging.ts";
import { plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { type RoutedCall, Router } from "../../../src/upstream/engine/router.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { AnswerListener, Dispatch, Upstream } from "../../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/runtime.ts";

/** A request at a provider, whose fate the test decides. */
interface AtProvider extends Dispatch {
  readonly listener: AnswerListener;
  sent: boolean;
}

interface Fixture {
  readonly runtime: SimulatedWorld;
  readonly route: RoutedCall;
  readonly at: readonly AtProvider[];
}

const SIGNED =
  "0x02f86a01808085028fa6ae0082520894000000000000000000000000000000000000000080c080a0aa01a0bb";

/** A call of a method, under way at the first of two providers. */
function createFixture(name: string): Fixture {
  const runtime = simulatedWorld(1);
  const at: AtProvider[] = [];
  const upstream: Upstream = {
    send(_, listener) {
      const one: AtProvider = { listener, sent: false, cancel() {} };
      at.push(one);
      return one;
    },
    retain() {},
    async close() {},
  };
  const providers = [fakeProvider(0, { priority: 0 }), fakeProvider(1, { priority: 1 })];
  const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
  const limits = () => ({ maxAttempts: 3, firstAttemptShare: 0.6 });
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    upstreams: { http: upstream },
    limits,
    hedge: () => null,
  });
  const sent = writeRequest(name, Buffer.from(`["${SIGNED}"]`));
  const call = {
    methodName: name,
    method: methodOf(name),
    block: { kind: "none" } as const,
    ...sent,
  };
  const way = {
    strategy: "priority",
    pin: null,
    transport: "http",
    avoid: null,
    caller: { key: "test" },
    deadlineMs: 1_000,
    mayStream: true,
  } as const;
  return { runtime, at, route: router.route({ call, tracker, ...way }, () => {}) };
}

/** Moves the request at one provider on. */
function atProvider({ at }: Fixture, index: number): AtProvider {
  const one = at[index];
  assert.ok(one !== undefined, `provider ${index} was not asked`);
  return one;
}

const WAYS: readonly (readonly [name: string, go: (it: Fixture) => void, left: Abandoned])[] = [
  ["waits for a connection", () => {}, { sent: false, countedAsTimeout: false }],
  [
    "was sent",
    (it) => {
      atProvider(it, 0).sent = true;
    },
    { sent: true, countedAsTimeout: false },
  ],
  [
    "could not be sent, and waits at the next provider",
    (it) => atProvider(it, 0).listener.failed(plainFailure("unsent", "refused"), null),
    { sent: false, countedAsTimeout: false },
  ],
  [
    "was answered with a broken body, and waits at the next provider",
    (it) => {
      atProvider(it, 0).sent = true;
      atProvider(it, 0).listener.failed(plainFailure("body", "<html>"), null);
    },
    { sent: true, countedAsTimeout: false },
  ],
  [
    "timed out, and waits at the next provider",
    (it) => {
      atProvider(it, 0).sent = true;
      it.runtime.advance(700);
    },
    { sent: true, countedAsTimeout: true },
  ],
  [
    "timed out, and was sent to the next provider",
    (it) => {
      atProvider(it, 0).sent = true;
      it.runtime.advance(700);
      atProvider(it, 1).sent = true;
    },
    { sent: true, countedAsTimeout: false },
  ],
];
for (const [name, go, left] of WAYS) {
  test(`a read that ${name}`, () => {
    const it = createFixture("eth_gasPrice");
    go(it);
    assert.deepEqual(it.route.cancel(), left);
    assert.deepEqual(it.route.cancel(), { sent: false, countedAsTimeout: false }, "told once");
  });
}

test("the first of several providers has 60 % of the deadline, and no more", () => {
  const it = createFixture("eth_getBalance");
  atProvider(it, 0).sent = true;
  it.runtime.advance(590);
  assert.equal(it.at.length, 1);
  it.runtime.advance(40);
  assert.equal(it.at.length, 2);
});

test("a transaction that is being looked up has been sent", () => {
  const it = createFixture("eth_sendRawTransaction");
  const first = atProvider(it, 0);
  first.sent = true;
  const raw = '{"code":-32000,"message":"nonce too low"}';
  first.listener.failed(
    { ...plainFailure("error", "nonce too low"), code: -32_000, httpStatus: 200 },
    Buffer.from(raw),
  );
  assert.equal(it.at.length, 2, "the transaction is looked up");
  assert.deepEqual(it.route.cancel(), { sent: true, countedAsTimeout: false });
});

test("an answered call has nothing to tell", () => {
  const it = createFixture("eth_gasPrice");
  atProvider(it, 0).sent = true;
  atProvider(it, 0).listener.result(Buffer.from('"0x1"'), { start: 0, end: 5, idAt: null });
  assert.deepEqual(it.route.cancel(), { sent: false, countedAsTimeout: false });
});
