// What becomes of an answer, and of its price, when the work of compressing it fails: a long one is
// cut and free, a whole one is sent as it is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_SOURCE } from "../../../src/core/routing/answer-source.ts";
import { realRuntime } from "../../../src/runtime.ts";
import type { Outcome } from "../../../src/upstream/engine/answer.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { AnswerStream } from "../../../src/upstream/transport.ts";
import { AnswerWriter } from "../../../src/web/rpc/answer-writer.ts";
import type { CompressionJob } from "../../../src/web/rpc/answers/compression.ts";
import type { Reply } from "../../../src/web/rpc/answers/reply.ts";
import type { BodySink, HttpExchange } from "../../../src/web/rpc/caller.ts";
import type { RpcParts } from "../../../src/web/rpc/parts.ts";
import { RequestMemory } from "../../../src/web/rpc/request-memory.ts";
import { resultOutcome } from "../../fakes/outcome.ts";

/** What the connection was told. */
interface Sent {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
}

/** One answer to a caller that takes compression, by work that fails when the test says so. */
function answerFixture() {
  const sent: Sent[] = [];
  const settled: boolean[] = [];
  let failCompression: () => void = () => assert.fail("nothing is compressed");
  let destroyed = false;
  const exchange = {
    requestId: "req-1",
    directives: { legacyForms: undefined, url: "/rpc/load-balanced/ethereum" },
    url: "/rpc/load-balanced/ethereum",
    address: "203.0.113.9",
    delivered: false,
    unsent: 0,
    header: () => undefined,
    get open() {
      return !destroyed;
    },
    send(status: number, headers: readonly string[], body: readonly Buffer[] | null) {
      sent.push({ status, headers, body: Buffer.concat(body ?? []).toString() });
    },
    begin() {},
    write: () => 0,
    drained() {},
    // As a server does: a connection that ends tells its request.
    destroy() {
      destroyed = true;
      writer.close("left");
    },
  } as unknown as HttpExchange;
  const job: CompressionJob = {
    encoding: "gzip",
    whole() {
      const work = Promise.withResolvers<null>();
      failCompression = () => work.resolve(null);
      return work.promise;
    },
    body(sink: BodySink) {
      failCompression = () => sink.destroy();
      return { write: () => 1, end() {}, drained() {}, destroy() {}, abandon() {} };
    },
  };
  const parts = {
    admission: null,
    compression: { concerns: () => true, take: () => job },
    observer: { log: { warn() {}, error() {} }, refused() {} },
    runtime: realRuntime,
    timerWheel: new TimerWheel(realRuntime),
  } as unknown as RpcParts;
  const memory = new RequestMemory({ budget: MemoryBudget.unbounded(), caller: { key: "test" } });
  const writer = new AnswerWriter(parts, exchange, memory);
  return {
    sent,
    settled,
    /** Writes an answer, then has its compression fail. */
    async answer(outcome: Outcome) {
      writer.settle = (delivered) => settled.push(delivered);
      writer.reply(replyOf(outcome));
      failCompression();
      await new Promise(setImmediate);
    },
    get destroyed() {
      return destroyed;
    },
    end: () => writer.close("left"),
  };
}

function replyOf(outcome: Outcome): Reply {
  const target = { legacyForms: null, meta: "none" } as unknown as Reply["target"];
  return {
    id: "7",
    outcome,
    source: NO_SOURCE,
    route: null,
    target,
    requestId: "req-1",
    transport: "http",
    notify: false,
    written: null,
    ended: null,
    billing: null,
    settle: null,
  };
}

test("a streamed answer whose compression fails is cut by the service, and is free", async () => {
  const fixture = answerFixture();
  const stream: AnswerStream = {
    head: Buffer.from('{"jsonrpc":"2.0","id":8765432187654321,"result":'),
    idAt: 23,
    bodyBytes: null,
    flow() {},
    pause() {},
    resume() {},
    recycle() {},
    cut() {},
  };
  await fixture.answer({ kind: "stream", stream });
  assert.deepEqual([fixture.destroyed, fixture.settled], [true, [false]]);
});

test("a whole answer whose compression fails is sent as it is", async () => {
  const fixture = answerFixture();
  const value = JSON.stringify("x".repeat(20_000));
  await fixture.answer(resultOutcome(value));
  const [answer] = fixture.sent;
  assert.deepEqual([fixture.sent.length, fixture.destroyed], [1, false]);
  assert.equal(answer?.body, `{"jsonrpc":"2.0","id":7,"result":${value}}`);
  assert.deepEqual(
    [answer.headers.includes("Content-Encoding"), answer.headers.includes("Vary")],
    [false, true],
  );
  fixture.end();
});
