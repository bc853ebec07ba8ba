// Which calls share a request, what becomes of each, and what is learned of providers that refuse:
// over a transport that the test plays.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type BatchLimits,
  LEARNED_BATCH_MS,
} from "../../../src/core/provider/budget/batch-limits.ts";
import type { Provider } from "../../../src/core/provider/profile.ts";
import { type Failure, plainFailure } from "../../../src/core/rpc/failure.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { BatchCounts, batchingUpstream } from "../../../src/upstream/batch/batching-upstream.ts";
import type {
  BatchEnding,
  BatchListener,
  BatchUpstream,
  Dispatch,
  OutgoingRequest,
  Upstream,
} from "../../../src/upstream/transport.ts";
import { fakeProvider } from "../../fakes/providers.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../../fakes/runtime.ts";
import { chanceSeed } from "../../fakes/seed.ts";

const CHANCE = chanceSeed();

/** One request upstream. */
interface Request {
  readonly calls: readonly OutgoingRequest[];
  /** Null = it is no batch. */
  readonly listener: BatchListener | null;
  readonly alone: { answer(): void };
  cancelled: boolean;
}

/** What the caller of one call has heard. */
interface Caller {
  readonly dispatch: Dispatch;
  readonly told: readonly string[];
}

interface Fixture {
  readonly runtime: SimulatedWorld;
  readonly upstream: Pick<Upstream, "send">;
  readonly provider: Provider;
  readonly requests: readonly Request[];
  readonly counts: BatchCounts;
  readonly learned: readonly number[];
  /** Calls that are counted again find room. */
  room: boolean;
  /** Sends calls in this turn. */
  send(count: number, over?: Partial<OutgoingRequest>): readonly Caller[];
  turnEnds(): void;
  batch(at: number): BatchListener;
}

const SPAN = { start: 0, end: 3, idAt: null };
const ANSWER = Buffer.from('"0"');

function fixture(limits: Partial<BatchLimits> = {}): Fixture {
  const world = simulatedWorld(1);
  const turnEnds: (() => void)[] = [];
  const runtime = { ...world, atTurnEnd: (run: () => void) => void turnEnds.push(run) };
  const requests: Request[] = [];
  const learned: number[] = [];
  const counts = new BatchCounts();
  const provider = fakeProvider(0, { batch: { max: 10, waitMs: 0, ...limits } });
  const http: BatchUpstream = {
    send(outgoing, listener) {
      const alone = { answer: () => listener.result(ANSWER, SPAN) };
      const request: Request = { calls: [outgoing], listener: null, alone, cancelled: false };
      requests.push(request);
      return dispatchOf(request);
    },
    sendBatch(calls, listener) {
      const alone = { answer: () => assert.fail("a batch") };
      const request: Request = { calls, listener, alone, cancelled: false };
      requests.push(request);
      return dispatchOf(request);
    },
  };
  const it: Fixture = {
    runtime,
    provider,
    requests,
    counts,
    learned,
    room: true,
    upstream: batchingUpstream(http, {
      runtime,
      counts,
      countAgain: () => it.room,
      onRefused: (_, most) => void learned.push(most),
    }),
    send: (count, over = {}) => Array.from({ length: count }, () => callOf(it, over)),
    turnEnds() {
      for (const run of turnEnds.splice(0)) run();
    },
    batch: (at) => requests[at]?.listener ?? assert.fail(`request ${at} is no batch`),
  };
  return it;
}

function dispatchOf(request: Request): Dispatch {
  return {
    sent: true,
    cancel() {
      request.cancelled = true;
    },
  };
}

function callOf({ upstream, provider }: Fixture, over: Partial<OutgoingRequest>): Caller {
  const told: string[] = [];
  const dispatch = upstream.send(
    {
      provider,
      methodName: "eth_call",
      ...writeRequest("eth_call", null),
      mayStream: true,
      mayShare: true,
      ...over,
    },
    {
      result: () => void told.push("result"),
      stream: () => assert.fail("nothing of a batch is streamed"),
      broken: () => assert.fail("nothing of a batch is streamed"),
      heard: () => void told.push("heard"),
      failed: ({ kind, message, crowded, incident }: Failure, raw) =>
        void told.push(
          `${kind} ${message}${crowded === true ? " crowded" : ""}` +
            `${incident === undefined ? "" : " shared"}${raw === null ? "" : " own"}`,
        ),
    },
  );
  return { dispatch, told };
}

function sizes({ requests }: Fixture): readonly number[] {
  return requests.map(({ calls, listener }) => (listener === null ? 0 : calls.length));
}

function answer(listener: BatchListener, place: number): void {
  assert.ok(listener.isOpen(place));
  listener.result(place, ANSWER, SPAN);
}

function error(message: string, code: number | null = null, httpStatus = 200): Failure {
  return { ...plainFailure(code === null ? "body" : "error", message), code, httpStatus };
}

const COMPLETE: BatchEnding = { kind: "answered", failure: null, passedOver: 0 };

test("calls of one turn go together, one that is alone goes as it is, and so do those that may not share", () => {
  const it = fixture();
  it.send(3);
  assert.deepEqual(sizes(it), [], "not before the turn ends");
  it.turnEnds();
  it.send(1);
  it.turnEnds();
  it.send(2, { mayShare: false });
  it.upstream.send(
    { ...writeRequest("eth_call", null), provider: it.provider, mayStream: true },
    { result() {}, stream() {}, broken() {}, failed() {} },
  );
  it.send(2, { body: Buffer.alloc(70_000, 32) });
  it.send(2, { provider: fakeProvider(1) });
  assert.deepEqual(sizes(it), [3, 0, 0, 0, 0, 0, 0, 0, 0]);
  assert.deepEqual({ ...it.counts }, { sent: 1, calls: 3, refused: 0, alone: 0 });
});

test("a full batch goes at once, by its calls or by its bytes", () => {
  const it = fixture();
  it.send(25);
  assert.deepEqual(sizes(it), [10, 10]);
  it.turnEnds();
  assert.deepEqual(sizes(it), [10, 10, 5]);
  it.send(8, { body: Buffer.alloc(65_536, 32) });
  it.turnEnds();
  assert.deepEqual(sizes(it), [10, 10, 5, 8]);
  const wide = fixture({ max: 1_000 });
  wide.send(20, { body: Buffer.alloc(65_536, 32) });
  wide.turnEnds();
  assert.deepEqual(sizes(wide), [8, 8, 4]);
});

test("with a wait the first call waits that long for others, and not longer", () => {
  const it = fixture({ waitMs: 5 });
  it.send(1);
  it.turnEnds();
  it.runtime.advance(4);
  it.send(1);
  assert.deepEqual(sizes(it), []);
  it.runtime.advance(1);
  assert.deepEqual(sizes(it), [2]);
  it.send(1);
  it.runtime.advance(5);
  assert.deepEqual(sizes(it), [2, 0]);
});

test("a caller that leaves ends nothing for the others; with the last of them the request ends", () => {
  const it = fixture();
  const [early, ...others] = it.send(4);
  early?.dispatch.cancel();
  it.turnEnds();
  assert.deepEqual(sizes(it), [3], "one that left before goes nowhere");
  const [first, second, third] = others;
  assert.deepEqual([first?.dispatch.batch?.size, early?.dispatch.sent], [3, true]);
  first?.dispatch.cancel();
  first?.dispatch.cancel();
  answer(it.batch(0), 1);
  assert.equal(it.requests[0]?.cancelled, false);
  third?.dispatch.cancel();
  assert.equal(it.requests[0]?.cancelled, true);
  assert.deepEqual([first?.told, second?.told, third?.told], [[], ["result"], []]);
  const gone = it.send(2);
  for (const { dispatch } of gone) dispatch.cancel();
  it.turnEnds();
  assert.equal(it.requests.length, 1, "nobody waits, so nothing is sent");
});

test("a failure of the whole batch fails each open call, as one event", () => {
  const it = fixture();
  const [first, second] = it.send(3);
  it.turnEnds();
  const batch = it.batch(0);
  batch.heard();
  answer(batch, 0);
  batch.failed(1, error("no funds", -32_000), Buffer.from("{}"));
  batch.over({ kind: "failed", passedOver: 0, failure: plainFailure("network", "ECONNRESET") });
  assert.deepEqual(first?.told, ["heard", "result"]);
  assert.deepEqual(second?.told, ["error no funds shared own"]);
  const whole = fixture();
  const callers = whole.send(3);
  whole.turnEnds();
  whole.batch(0).over({ kind: "failed", passedOver: 0, failure: error("<html>", null, 502) });
  for (const { told } of callers) assert.deepEqual(told, ["body <html> shared"]);
  assert.deepEqual({ ...whole.counts }, { sent: 1, calls: 3, refused: 0, alone: 0 });
});

test("a provider that refuses batches is asked call by call at once, and for an hour", () => {
  const it = fixture();
  const callers = it.send(4);
  it.turnEnds();
  callers[3]?.dispatch.cancel();
  it.batch(0).over({
    kind: "failed",
    passedOver: 0,
    failure: error("batches are not supported", -32_600),
  });
  assert.deepEqual(sizes(it), [4, 0, 0, 0]);
  for (const { alone } of it.requests.slice(1)) alone.answer();
  assert.deepEqual(
    callers.map(({ told }) => told),
    [["result"], ["result"], ["result"], []],
  );
  assert.equal(callers[0]?.dispatch.batch, null);
  assert.deepEqual(
    [it.learned, { ...it.counts }],
    [[1], { sent: 1, calls: 4, refused: 1, alone: 3 }],
  );
  it.send(2);
  assert.deepEqual(sizes(it), [4, 0, 0, 0, 0, 0], "not even to the end of the turn");
  it.runtime.advance(LEARNED_BATCH_MS);
  it.send(2);
  it.turnEnds();
  assert.equal(sizes(it).at(-1), 2);
});

test("a provider that takes fewer calls gets fewer, again and again", () => {
  const it = fixture();
  it.send(10);
  it.batch(0).over({
    kind: "failed",
    passedOver: 0,
    failure: error("batch size exceeds 6", -32_600),
  });
  it.send(6);
  it.batch(11).over({ kind: "failed", passedOver: 0, failure: error("", null, 413) });
  it.send(3);
  it.batch(18).failed(0, error("batch too large", -32_600), Buffer.from("{}"));
  it.batch(18).over(COMPLETE);
  assert.deepEqual(it.learned, [6, 3, 1]);
  assert.equal(it.requests.length, 22, "every call was asked alone after its batch");
});

test("calls that an answer leaves out are asked alone, and so are those whose answer is too long", () => {
  const it = fixture();
  const callers = it.send(5);
  it.turnEnds();
  const batch = it.batch(0);
  answer(batch, 2);
  batch.tooLong(4);
  batch.failed(3, error("response too large", -32_003), Buffer.from("{}"));
  batch.over(COMPLETE);
  assert.equal(it.requests.length, 5);
  for (const { alone } of it.requests.slice(1)) alone.answer();
  for (const { told } of callers) assert.deepEqual(told, ["result"]);
  assert.deepEqual(it.learned, [3]);
  const single = fixture();
  single.send(3);
  single.turnEnds();
  answer(single.batch(0), 0);
  single.batch(0).over({ ...COMPLETE, kind: "single" });
  assert.deepEqual([sizes(single), single.learned], [[3, 0, 0], [1]]);
});

test("an answer that was too long to tell whose it is teaches nothing", () => {
  const it = fixture();
  const callers = it.send(3);
  it.turnEnds();
  answer(it.batch(0), 0);
  answer(it.batch(0), 2);
  it.batch(0).over({ ...COMPLETE, passedOver: 1 });
  assert.deepEqual([sizes(it), it.learned, it.counts.refused], [[3, 0], [], 0]);
  it.requests[1]?.alone.answer();
  for (const { told } of callers) assert.deepEqual(told, ["result"]);
});

test("an error without an id is that of every call without an answer", () => {
  const it = fixture();
  const callers = it.send(2);
  it.turnEnds();
  const failure = error("too many requests", -32_005, 429);
  answer(it.batch(0), 1);
  it.batch(0).over({ ...COMPLETE, failure });
  assert.deepEqual(callers[0]?.told, ["error too many requests shared"]);
  assert.deepEqual([callers[1]?.told, it.learned], [["result"], []]);
});

test("what is asked again counts again: without room it is not sent", () => {
  const it = fixture();
  const callers = it.send(2);
  it.turnEnds();
  it.room = false;
  it.batch(0).over({
    kind: "failed",
    passedOver: 0,
    failure: error("batch requests are disabled", -32_000),
  });
  assert.equal(it.requests.length, 1);
  for (const { told } of callers)
    assert.deepEqual(told, ["unsent its own limit is reached crowded"]);
});

test(`property: each caller hears one thing, or nothing after it left (seed ${CHANCE})`, () => {
  const random = seededRandom(CHANCE);
  const chance = (count: number): number => Math.floor(random() * count);
  const endings: readonly BatchEnding[] = [
    COMPLETE,
    { ...COMPLETE, kind: "single" },
    { ...COMPLETE, failure: error("busy", -32_000) },
    { kind: "failed", passedOver: 0, failure: error("batch too large", -32_600) },
    { kind: "failed", passedOver: 0, failure: plainFailure("network", "ECONNRESET") },
    { kind: "failed", passedOver: 0, failure: plainFailure("unsent", "ECONNREFUSED") },
  ];
  for (let round = 0; round < 300; round++) {
    const it = fixture({ max: 2 + chance(9) });
    const callers = it.send(1 + chance(12));
    const heard = callers.map(() => 0);
    const left = new Set<number>();
    const leave = (): void => {
      const at = chance(callers.length);
      const { dispatch, told } = callers[at] ?? assert.fail();
      if (left.has(at)) return;
      left.add(at);
      heard[at] = told.length;
      dispatch.cancel();
    };
    if (chance(3) === 0) leave();
    it.turnEnds();
    const batches = it.requests.filter(({ listener }) => listener !== null);
    for (const { calls, listener } of batches) {
      for (let step = chance(2 * calls.length); step > 0; step--) {
        const place = chance(calls.length);
        if (chance(6) === 0) leave();
        else if (listener?.isOpen(place) !== true) continue;
        else if (chance(8) === 0) listener.tooLong(place);
        else if (chance(4) === 0) listener.failed(place, error("reverted", 3), Buffer.from("{}"));
        else listener.result(place, ANSWER, SPAN);
      }
      listener?.over(endings[chance(endings.length)] ?? COMPLETE);
      assert.equal(listener?.isWaiting, false);
    }
    for (let at = 0; at < it.requests.length; at++) {
      const { listener, alone, cancelled } = it.requests[at] ?? assert.fail();
      if (listener === null && !cancelled) alone.answer();
    }
    for (const [at, { told }] of callers.entries())
      assert.equal(told.length, left.has(at) ? heard[at] : 1, `call ${at} of round ${round}`);
  }
});
